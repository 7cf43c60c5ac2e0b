"""Six delegations of one long answer: what the leader's model is handed, here and in Agno's teams.

    .venv/bin/python -m bench.team [--agno .venv-bench/bin/python]

A leader with one member, a session of six turns with one delegation each, a history of ten runs,
SQLite; the member's answer is 223,892 characters. Each row is a process of its own, all in one run.
The models are scripted, so what is measured is the frameworks' own: `largest prompt` is the
characters of all messages, system included, of the largest call of the leader's model (its sixth
turn's last), `all prompts` the same over all twelve calls. `member` is the member's largest prompt.
`stored` is the payload bytes that the offloading keeps, `on disk` all files after closing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TURNS = 6
REPORT = "\n".join(f"finding {i}: " + "d" * 60 for i in range(1, 3001))


def answers(different: bool) -> list[str]:
    return [f"report {turn}\n{REPORT}" if different else REPORT for turn in range(TURNS)]


def in_callslip(folder: Path, on: bool, different: bool) -> dict[str, Any]:
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    from callslip.team import Agent, SqliteDb, Team

    class Scripted(BaseChatModel):
        script: list[Any]
        sizes: list[int]

        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any):
            self.sizes.append(sum(len(message.text) for message in messages))
            step = self.script[len(self.sizes) - 1]
            if isinstance(step, dict):
                name, args = "delegate_task_to_member", {"member_id": "researcher", **step}
                call = {"name": name, "args": args, "id": f"call_{len(self.sizes)}"}
                return _result(AIMessage("", tool_calls=[call]))
            return _result(AIMessage(step))

    def _result(message: AIMessage) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=message)])

    steps: list[Any] = []
    for turn in range(TURNS):
        steps += [{"task": f"Look into topic {turn}."}, f"Noted {turn}."]
    leader = Scripted(script=steps, sizes=[])
    member = Scripted(script=answers(different), sizes=[])
    db = SqliteDb(folder / "team.db")
    team = Team(
        model=leader,
        members=[Agent(name="Researcher", role="finds facts", model=member)],
        db=db,
        offload_tool_results=on,
        num_history_runs=10,
    )
    begun = time.perf_counter()
    for turn in range(TURNS):
        out = team.run(f"Look into topic {turn}.", session_id="s1")
        assert out.member_responses[0].content == answers(different)[turn]
    seconds = time.perf_counter() - begun
    stored = (0, 0)
    if team.result_store is not None:
        totals = team.result_store.stats()
        stored = (totals.payloads, totals.packed_bytes)
    db.close()
    return measured(leader.sizes, member.sizes, stored, seconds)


def in_agno(folder: Path, on: bool, different: bool) -> dict[str, Any]:
    import sqlite3

    from agno.agent import Agent
    from agno.db.sqlite import SqliteDb
    from agno.models.base import Model
    from agno.models.response import ModelResponse
    from agno.team import Team

    class Scripted(Model):
        def __init__(self, script: list[Any]) -> None:
            super().__init__(id="scripted", name="scripted", provider="scripted")
            self.script = script
            self.sizes: list[int] = []

        def invoke(self, *args: Any, messages: Any = None, **kwargs: Any) -> ModelResponse:
            messages = args[0] if messages is None else messages
            self.sizes.append(sum(len(str(message.content or "")) for message in messages))
            step = self.script[len(self.sizes) - 1]
            if isinstance(step, dict):
                args_ = json.dumps({"member_id": "researcher", **step})
                function = {"name": "delegate_task_to_member", "arguments": args_}
                call = {"id": f"call_{len(self.sizes)}", "type": "function", "function": function}
                return ModelResponse(role="assistant", tool_calls=[call])
            return ModelResponse(role="assistant", content=step)

        async def ainvoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
            return self.invoke(*args, **kwargs)

        def invoke_stream(self, *args: Any, **kwargs: Any) -> Any:
            yield self.invoke(*args, **kwargs)

        async def ainvoke_stream(self, *args: Any, **kwargs: Any) -> Any:
            yield self.invoke(*args, **kwargs)

        def _parse_provider_response(self, response: Any, **kwargs: Any) -> ModelResponse:
            return response

        def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
            return response

    steps: list[Any] = []
    for turn in range(TURNS):
        steps += [{"task": f"Look into topic {turn}."}, f"Noted {turn}."]
    leader, member = Scripted(steps), Scripted(answers(different))
    file = folder / "team.db"
    team = Team(
        model=leader,
        members=[Agent(name="Researcher", role="finds facts", model=member)],
        db=SqliteDb(db_file=str(file)),
        offload_tool_results=on,
        add_history_to_context=True,
        num_history_runs=10,
        telemetry=False,
    )
    begun = time.perf_counter()
    for turn in range(TURNS):
        out = team.run(f"Look into topic {turn}.", session_id="s1")
        assert out.member_responses[0].content == answers(different)[turn]
    seconds = time.perf_counter() - begun
    stored = [0, 0]
    database = sqlite3.connect(file)
    tables = [
        name for (name,) in database.execute("select name from sqlite_master where type='table'")
    ]
    for table in tables:
        columns = [row[1] for row in database.execute(f"pragma table_info({table})")]
        if on and "content" in columns and "path" in columns:
            query = f"select count(*), coalesce(sum(length(content)), 0) from {table}"
            count, size = database.execute(query).fetchone()
            stored = [stored[0] + count, stored[1] + size]
    database.close()
    return measured(leader.sizes, member.sizes, (stored[0], stored[1]), seconds)


def measured(
    leader: list[int], member: list[int], stored: tuple[int, int], seconds: float
) -> dict[str, Any]:
    return {
        "turns": [max(leader[at : at + 2]) for at in range(0, len(leader), 2)],
        "all": sum(leader),
        "member": max(member),
        "payloads": stored[0],
        "stored": stored[1],
        "seconds": seconds,
    }


def row(python: str, peer: str, on: bool, different: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-m", "bench.team", "--one", peer, str(on), str(different), folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{peer} failed:\n{done.stderr[-3000:]}")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        files = (path for path in Path(folder).rglob("*") if path.is_file())
        found["disk"] = sum(path.stat().st_size for path in files)
        return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--agno", default=".venv-bench/bin/python")
    parser.add_argument("--one", nargs=4)
    given = parser.parse_args()
    if given.one:
        peer, on, different, folder = given.one
        run = {"callslip": in_callslip, "agno": in_agno}[peer]
        print(json.dumps(run(Path(folder), on == "True", different == "True")))
        return
    print("| | largest prompt | all prompts | member | payloads | stored | on disk | seconds |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    turns = []
    for answers_, different in (("equal", False), ("different", True)):
        for peer, python in (("callslip", sys.executable), ("agno", given.agno)):
            for on in (True, False):
                got = row(python, peer, on, different)
                name = f"{peer}, {answers_} answers, offloading {'on' if on else 'off'}"
                turns.append(f"{name}: {', '.join(f'{size:,}' for size in got['turns'])}")
                print(
                    f"| {name} | {max(got['turns']):,} | {got['all']:,} | {got['member']:,} "
                    f"| {got['payloads']} | {got['stored'] / 1000:,.1f} kB "
                    f"| {got['disk'] / 1000:,.0f} kB | {got['seconds']:.2f} |",
                    flush=True,
                )
    print("\nThe largest prompt of each turn:\n")
    print("\n".join(f"- {line}" for line in turns))


if __name__ == "__main__":
    main()
