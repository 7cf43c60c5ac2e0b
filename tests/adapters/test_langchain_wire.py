"""What goes over the wire: real provider clients against a loopback server that keeps the bodies."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from threading import Thread
from typing import Any

import msgspec
import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from callslip.adapters.langchain import Offload
from callslip.tools import SYSTEM_LINE
from tests.adapters.langchain_helpers import memory

TURNS = 30
STRING_LIMIT = 256_000
Call = tuple[str, dict[str, Any]]


@tool
def search(q: int) -> str:
    """Search."""
    return "".join(f"{q}: row {at} of this search\n" for at in range(2000 + 500 * q))


@tool
def part(q: int) -> str:
    """A part: below the threshold, but three of them are not."""
    return f"{q}: part\n" * 1600


def planned(turn: int, body: str) -> list[Call]:
    """The calls of a turn, as a model might make them of what it was sent."""
    if turn % 5 == 0:
        return [("part", {"q": turn + at}) for at in range(5)]
    if turn % 2:
        return [("search", {"q": turn})]
    ids = re.findall(r"res_[0-9a-f]+", body)
    return [
        ("read_result", {"result_id": ids[-1], "start": turn}),
        ("search_result", {"result_id": ids[-1], "pattern": f"row {turn}"}),
    ]


class Provider(ThreadingHTTPServer):
    """Answers every request with the plan's next calls, in OpenAI's form or Anthropic's."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Provider

    def log_message(self, format: str, *args: Any) -> None:
        return None

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(body)
        turn = len(self.server.bodies)
        wanted = planned(turn, body.decode()) if turn <= TURNS else []
        openai = self.path.endswith("/chat/completions")
        reply = json.dumps(as_openai(turn, wanted) if openai else as_anthropic(turn, wanted))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply.encode())


def as_openai(turn: int, wanted: list[Call]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None if wanted else "done"}
    if wanted:
        message["tool_calls"] = [
            {
                "id": f"call_{turn}_{at}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for at, (name, arguments) in enumerate(wanted)
        ]
    choice = {"index": 0, "finish_reason": "tool_calls" if wanted else "stop", "message": message}
    return {
        "id": f"chat-{turn}",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [choice],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def as_anthropic(turn: int, wanted: list[Call]) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [
        {"type": "tool_use", "id": f"call_{turn}_{at}", "name": name, "input": arguments}
        for at, (name, arguments) in enumerate(wanted)
    ]
    return {
        "id": f"msg_{turn}",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": blocks or [{"type": "text", "text": "done"}],
        "stop_reason": "tool_use" if wanted else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Provider() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def asked_and_answered(messages: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """("call" or "answer", its id), in the order of a request, in either form."""
    for message in messages:
        for call in message.get("tool_calls") or ():
            yield "call", call["id"]
        if message["role"] == "tool":
            yield "answer", message["tool_call_id"]
        if isinstance(message["content"], list):
            for block in message["content"]:
                if block["type"] == "tool_use":
                    yield "call", block["id"]
                if block["type"] == "tool_result":
                    yield "answer", block["tool_use_id"]


@pytest.mark.parametrize("client", ["openai", "anthropic"])
@pytest.mark.parametrize("is_async", [False, True])
def test_each_request_is_the_beginning_of_the_next(
    provider: Provider, client: str, is_async: bool
) -> None:
    key = SecretStr("none")
    model: Any
    if client == "openai":
        model = ChatOpenAI(model="m", base_url=provider.url + "/v1", api_key=key, max_retries=0)
    else:
        model = ChatAnthropic(
            model_name="m",
            base_url=provider.url,
            api_key=key,
            max_retries=0,
            timeout=None,
            stop=None,
        )
    agent = create_agent(
        model, [search, part], middleware=[Offload(memory())], system_prompt="Be brief."
    )
    given = {"messages": [HumanMessage("go")]}
    config = {"configurable": {"thread_id": client}}
    out = asyncio.run(agent.ainvoke(given, config)) if is_async else agent.invoke(given, config)
    assert out["messages"][-1].text == "done"
    assert len(provider.bodies) == TURNS + 1
    raw = [msgspec.json.decode(body, type=dict[str, msgspec.Raw]) for body in provider.bodies]
    for now, after in pairwise(raw):
        transcript = bytes(now.pop("messages"))
        assert bytes(after["messages"]).startswith(transcript[:-1] + b",")
        assert {k: bytes(v) for k, v in now.items()} == {
            k: bytes(v) for k, v in after.items() if k != "messages"
        }
    for body in map(json.loads, provider.bodies):
        assert max(map(len, strings(body))) <= STRING_LIMIT
        pairs = list(asked_and_answered(body["messages"]))
        called = [id for kind, id in pairs if kind == "call"]
        answered = [id for kind, id in pairs if kind == "answer"]
        assert answered == called
        assert len(set(answered)) == len(answered)
    assert provider.bodies[-1].decode().count(SYSTEM_LINE) == 1
    results = sum(len(search.invoke({"q": q})) for q in range(1, TURNS, 2) if q % 5)
    assert results > 3_000_000
    assert len(provider.bodies[-1]) < 400_000
