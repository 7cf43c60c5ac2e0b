"""A LangChain agent whose long tool results stay out of its window, by one line of middleware.

Runs offline with a scripted model; CALLSLIP_MODEL=provider:model asks a real one instead.
"""

from __future__ import annotations

import os
from typing import Any

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from callslip import ResultStore
from callslip.adapters.langchain import Offload
from callslip.adapters.langchain_script import ScriptedChat
from callslip.testing.model import Answer, Call, ScriptedModel, id_shown


def search_orders(customer: str) -> str:
    """All orders of a customer, one a line."""
    return "\n".join(f"order {n}  {customer}  {n * 37 % 500} EUR" for n in range(1, 30_001))


script = ScriptedModel(
    [
        Call("search_orders", customer="ana"),
        Call(
            "search_result",
            lambda seen: {"result_id": id_shown(seen), "pattern": "^order 12345 "},
        ),
        Answer("Order 12345 was 265 EUR."),
    ]
)
name = os.environ.get("CALLSLIP_MODEL")
model: Any = init_chat_model(name) if name else ScriptedChat(script=script)

with SqliteSaver.from_conn_string("checkpoints.db") as checkpoints:
    agent = create_agent(
        model,
        [search_orders],
        middleware=[Offload(ResultStore())],  # the one line
        checkpointer=checkpoints,
    )
    found = agent.invoke(
        {"messages": [{"role": "user", "content": "How much was ana's order 12345?"}]},
        {"configurable": {"thread_id": "run-42"}},
    )

for message in found["messages"]:
    if isinstance(message, ToolMessage):
        print(f"{message.name}:\n{message.text}\n")
print(found["messages"][-1].text)
whole = len(search_orders("ana"))
held = sum(len(message.text) for message in found["messages"])
print(f"\nthe tool returned {whole:,} characters; the window held {held:,} in all")
