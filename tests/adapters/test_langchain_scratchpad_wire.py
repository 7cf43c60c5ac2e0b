"""The scratchpad over the wire: with real provider clients, only the tail of a request changes."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from callslip.adapters.langchain import Offload
from callslip.adapters.langchain_scratchpad import Scratchpad
from tests.adapters import test_langchain_wire as wire
from tests.adapters.langchain_helpers import memory

provider = wire.provider


def planned(turn: int, body: str) -> list[tuple[str, dict[str, Any]]]:
    """A plan is written, then each turn searches and ticks off a step."""
    if turn == 1:
        steps = "".join(f"- [ ] step {n:02d}\n" for n in range(wire.TURNS + 1))
        return [("write_file", {"path": "todo.md", "content": f"Goal\n{steps}"})]
    tick = {"path": "todo.md", "old": f"[ ] step {turn:02d}", "new": f"[x] step {turn:02d}"}
    return [("search", {"q": turn}), ("edit_file", tick)]


@pytest.mark.parametrize("client", ["openai", "anthropic"])
def test_each_request_up_to_the_plan_is_the_beginning_of_the_next(
    provider: wire.Provider,
    client: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "planned", planned)
    key, store = SecretStr("none"), memory()
    model: Any
    if client == "openai":
        model = ChatOpenAI(model="m", base_url=provider.url + "/v1", api_key=key, max_retries=0)
    else:
        model = ChatAnthropic(
            model_name="m", base_url=provider.url, api_key=key, max_retries=0, timeout=None, stop=None
        )  # fmt: skip
    agent = create_agent(model, [wire.search], middleware=[Scratchpad(store), Offload(store)])
    config: Any = {"configurable": {"thread_id": client}}
    out = agent.invoke({"messages": [HumanMessage("go")]}, config)
    assert out["messages"][-1].text == "done"
    assert len(provider.bodies) == wire.TURNS + 1
    raw = [msgspec.json.decode(body, type=dict[str, msgspec.Raw]) for body in provider.bodies]
    tails = 0
    for now, after in pairwise(raw):
        transcript = bytes(now.pop("messages"))
        at = transcript.rfind(b"<plan file=")
        if at >= 0:
            tails += 1
            assert transcript.count(b"<plan file=") == 1
            assert len(transcript) - at < 1_400
            transcript = transcript[: transcript.rfind(b",{", 0, at)]
        else:
            transcript = transcript[:-1]
        assert bytes(after["messages"]).startswith(transcript)
        assert {k: bytes(v) for k, v in now.items()} == {
            k: bytes(v) for k, v in after.items() if k != "messages"
        }
    assert tails == wire.TURNS - 1
    last = json.loads(provider.bodies[-1])["messages"]
    assert "- [x] step 30" in json.dumps(last[-1])
    pairs = list(wire.asked_and_answered(last))
    called = [id for kind, id in pairs if kind == "call"]
    assert sorted(called) == sorted(id for kind, id in pairs if kind == "answer")
    assert len(set(called)) == len(called)
