"""An agent loop with nothing in it but functions: where wrapped tools and read-back tools go.

The model is a script here, so this runs without a key and always the same way. In your loop its
place is taken by a call of your model, given `SYSTEM_LINE` and each tool's `name`, `description`
and `parameters`. Run it with `python examples/agent_loop.py`; it stores into ./.callslip.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from callslip import ResultStore
from callslip.testing.model import Answer, Call, Message, Model, ScriptedModel, id_shown
from callslip.tools import SYSTEM_LINE

session = ResultStore().session("example")


@session.offloaded
def service_log(service: str) -> str:
    """The log of a service."""
    lines = [f"12:{n // 60:02d}:{n % 60:02d} INFO {service} request {n} done" for n in range(3000)]
    lines[1742] = "12:29:02 ERROR " + service + " payment gateway answered 502, giving up"
    return "\n".join(lines)


def run(model: Model, question: str) -> str:
    """Ask, make the calls that are wanted, show what comes back, until there is an answer."""
    tools: dict[str, Callable[..., Any]] = {"service_log": service_log}
    tools |= {tool.name: tool.call for tool in session.tools()}

    messages = [Message("system", SYSTEM_LINE), Message("user", question)]
    while True:
        turn = model(messages)
        if isinstance(turn, Answer):
            return str(turn.text)
        calls = (turn,) if isinstance(turn, Call) else tuple(turn)
        messages.append(Message("assistant", calls=calls))
        for call in calls:
            reply = str(tools[call.tool](**call.arguments))
            print(f"--> {call}\n{reply}\n")
            messages.append(Message("tool", reply, tool=call.tool))


if __name__ == "__main__":
    script = ScriptedModel(
        [
            Call("service_log", service="shop"),
            Call("search_result", lambda seen: {"result_id": id_shown(seen), "pattern": "ERROR"}),
            Answer(lambda seen: seen[-1].text.split("> line ")[1].splitlines()[0]),
        ]
    )
    print("answer: line", run(script, "What went wrong in the shop?"))
    session.close()
