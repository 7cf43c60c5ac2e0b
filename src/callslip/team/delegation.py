"""The leader's tools: a task for a member, or for all of them."""

from __future__ import annotations

import asyncio
import contextvars
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import StructuredTool
from langgraph.prebuilt import ToolRuntime

from callslip.team.binding import effective
from callslip.team.output import RunOutput
from callslip.team.pausing import ask
from callslip.team.records import unpacked
from callslip.team.run import Run

if TYPE_CHECKING:
    from callslip.team.owner import Owner
    from callslip.team.team import Team

ONE, ALL = "delegate_task_to_member", "delegate_task_to_members"
_TASK = {
    "type": "string",
    "description": "all it needs to know; name the id of a stored result for it to read",
}


def delegation_tools(team: Team) -> list[StructuredTool]:
    """The tools of a leader; with `respond_directly` their results are its answer."""

    def to_one(runtime: ToolRuntime, member_id: str, task: str) -> str:
        member = team.member(member_id)
        return _unknown(team, member_id) if member is None else _delegate(runtime, [member], task)

    async def ato_one(runtime: ToolRuntime, member_id: str, task: str) -> str:
        member = team.member(member_id)
        if member is None:
            return _unknown(team, member_id)
        return await _adelegate(runtime, [member], task)

    def to_all(runtime: ToolRuntime, task: str) -> str:
        return _delegate(runtime, team.members, task)

    async def ato_all(runtime: ToolRuntime, task: str) -> str:
        return await _adelegate(runtime, team.members, task)

    ids = {"type": "string", "enum": [member.id for member in team.members]}
    one = StructuredTool(
        name=ONE,
        description="Give a member a task; the result is its answer. It sees nothing else.",
        args_schema=_schema(member_id=ids, task=_TASK),
        func=to_one,
        coroutine=ato_one,
        return_direct=team.respond_directly,
    )
    every = StructuredTool(
        name=ALL,
        description="Give all members the same task; the result is their answers.",
        args_schema=_schema(task=_TASK),
        func=to_all,
        coroutine=ato_all,
        return_direct=team.respond_directly,
    )
    if team.delegate_to_all_members or not team.members:
        return [every] if team.members else []
    return [one, every] if len(team.members) > 1 else [one]


def _schema(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _unknown(team: Team, given: str) -> str:
    known = ", ".join(member.id for member in team.members)
    return f"There is no member {given[:80]!r}. The members are: {known}."


# --- a delegation -----------------------------------------------------------------------------


def _delegate(runtime: ToolRuntime, members: Sequence[Owner], task: str) -> str:
    runs = _runs(runtime, members, task)
    apart = [contextvars.copy_context() for _ in runs]
    if len(runs) == 1:
        outputs = [apart[0].run(_pumped, runs[0], runtime)]
    else:
        with ThreadPoolExecutor(len(runs)) as pool:
            begun = [
                pool.submit(context.run, _pumped, run, runtime)
                for context, run in zip(apart, runs, strict=True)
            ]
            outputs = [each.result() for each in begun]
    for at, run in enumerate(runs):
        asked = _asked(run)
        answers = [ask(run.owner.id, question) for question in asked]
        while outputs[at].is_paused:
            run.resume = answers[-1]
            outputs[at] = contextvars.copy_context().run(_pumped, run, runtime)
            answers += [ask(run.owner.id, question) for question in _asked(run)[len(answers) :]]
    return _answer(runs, outputs)


async def _adelegate(runtime: ToolRuntime, members: Sequence[Owner], task: str) -> str:
    runs = await asyncio.to_thread(_runs, runtime, members, task)
    outputs = list(await asyncio.gather(*(_apumped(run, runtime) for run in runs)))
    for at, run in enumerate(runs):
        asked = await asyncio.to_thread(_asked, run)
        answers = [ask(run.owner.id, question) for question in asked]
        while outputs[at].is_paused:
            run.resume = answers[-1]
            outputs[at] = await _apumped(run, runtime)
            asked = await asyncio.to_thread(_asked, run)
            answers += [ask(run.owner.id, question) for question in asked[len(answers) :]]
    return _answer(runs, outputs)


def _runs(runtime: ToolRuntime, members: Sequence[Owner], task: str) -> list[Run]:
    """The members' runs. Their ids are a function of the call, so a call that runs again, after a
    pause or in another process, finds what the member had done."""
    above: Run = runtime.context  # type: ignore[assignment]
    messages = runtime.state["messages"]
    last = next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)
    calls = last.tool_calls if last else []
    order = next((n for n, c in enumerate(calls) if c["id"] == runtime.tool_call_id), 0)
    name, args = (calls[order]["name"], calls[order]["args"]) if calls else (ONE, {"task": task})
    made = []
    for number, member in enumerate(members):
        key = "\0".join([above.run_id, str(len(messages)), str(runtime.tool_call_id), member.id])
        call = {"tool": name, "args": args, "call_id": runtime.tool_call_id}
        if len(members) > 1:
            call = {"tool": member.id, "call_id": f"{runtime.tool_call_id}|{member.id}"}
        run = Run(
            owner=member,
            db=above.db,
            store=effective(member, above.db, above.store),
            run_id=uuid.uuid5(uuid.NAMESPACE_OID, key).hex,
            session=above.session,
            user=above.user,
            subjects=above.subjects,
            path="/".join([above.path, member.id.replace("/", "//")]),
            model=member.model or above.model,
            input=[HumanMessage(task)],
            stream=above.stream,
            parent=above.run_id,
            place=(len(messages), order, number),
            call=call,
            above=above.store if len(members) == 1 else None,
        )
        made.append(run)
    return made


def _pumped(run: Run, runtime: ToolRuntime) -> RunOutput:
    """Run a member, as a graph of its own: outside of the leader's LangGraph context, inside of
    which its events are told."""
    leaders = contextvars.copy_context()
    var_child_runnable_config.set(None)
    output = None
    for event in run.events():
        output = event.output or output
        leaders.run(runtime.stream_writer, event)
    return _noted(run, runtime, output)


async def _apumped(run: Run, runtime: ToolRuntime) -> RunOutput:
    leaders = contextvars.copy_context()

    async def pumped() -> RunOutput:
        var_child_runnable_config.set(None)
        output = None
        async for event in run.aevents():
            output = event.output or output
            leaders.run(runtime.stream_writer, event)
        return _noted(run, runtime, output)

    return await asyncio.create_task(pumped())  # a task has a context of its own


def _noted(run: Run, runtime: ToolRuntime, output: RunOutput | None) -> RunOutput:
    assert output is not None
    above: Run = runtime.context  # type: ignore[assignment]
    above.outputs[run.run_id] = output
    return output


def _asked(run: Run) -> list[Any]:
    found = run.db.runs.get(run.user, run.session, run.run_id)
    return unpacked(found).asked if found is not None else []


def _answer(runs: Sequence[Run], outputs: Sequence[RunOutput]) -> str:
    if len(runs) == 1:
        return outputs[0].content
    pairs = zip(runs, outputs, strict=True)
    return "\n\n".join(f"{run.owner.id}:\n{output.content}" for run, output in pairs)
