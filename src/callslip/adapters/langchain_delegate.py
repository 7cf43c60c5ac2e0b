"""LangChain: sub-tasks in a window of their own, from your code or as a tool of the asker's model.

::

    found = delegate(
        "Which candidates are true matches?", [compare], {"candidates": state["artifacts"]["all"]},
        model="provider:model", session=store.session("run-42"))
    found["result"], found["evidence_ids"], found.unresolved
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

try:
    from langgraph.prebuilt import ToolRuntime
except ImportError as error:
    raise ImportError("langchain_delegate needs: pip install 'callslip[langchain]'") from error
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.tools import StructuredTool

from callslip.adapters.langchain import Offload
from callslip.adapters.langchain_runner import AgentRunner
from callslip.patterns.delegate import Budget, Delegated, Delegation, Job
from callslip.session import Session

__all__ = [
    "Budget", "Delegated", "Job", "adelegate", "adelegate_all", "delegate", "delegate_all",
    "delegate_tool",
]  # fmt: skip

Model = str | BaseChatModel
_AT_ONCE = 4


def delegate(
    task: str,
    tools: Sequence[Any] = (),
    inputs: Mapping[str, Any] | None = None,
    max_result_tokens: int = 300,
    *,
    model: Model,
    session: Session,
    middleware: Sequence[Any] = (),
    **options: Any,
) -> Delegated:
    """Have a sub-agent do `task` in a fresh window, and return its checked answer alone.

    inputs   by name: handles, or values; a long value is stored and given as a handle. Of the
             asker's results the sub-agent can read those, and no other
    tools    the only ones it has, besides the read-back tools
    options  `budget`, `keep_transcript`, `max_depth`, `resolves`, `instructions`, `cancelled`: as
             for `callslip.patterns.delegate.Delegation`

    What goes wrong inside is told in the answer (`ok` False, a sentence); interrupts pass.
    """
    made = _made(model, session, max_result_tokens, middleware, **options)
    return made.run(task, tools, inputs)


async def adelegate(
    task: str,
    tools: Sequence[Any] = (),
    inputs: Mapping[str, Any] | None = None,
    max_result_tokens: int = 300,
    *,
    model: Model,
    session: Session,
    middleware: Sequence[Any] = (),
    **options: Any,
) -> Delegated:
    """`delegate` as a coroutine: cancelling it, or its time budget, ends the sub-agent at once."""
    made = _made(model, session, max_result_tokens, middleware, **options)
    return await made.arun(task, tools, inputs)


def delegate_all(
    jobs: Sequence[Job], max_result_tokens: int = 300, *, at_once: int = _AT_ONCE, **options: Any
) -> list[Delegated]:
    """Several sub-agents, `at_once` of them in parallel; the answers in the order of the jobs.

    The other keywords are those of `delegate`: `model`, `session`, and its options.
    """
    return _made(max_result_tokens=max_result_tokens, **options).run_all(jobs, at_once)


async def adelegate_all(
    jobs: Sequence[Job], max_result_tokens: int = 300, *, at_once: int = _AT_ONCE, **options: Any
) -> list[Delegated]:
    """`delegate_all` as a coroutine, with the same keywords."""
    return await _made(max_result_tokens=max_result_tokens, **options).arun_all(jobs, at_once)


def delegate_tool(
    model: Model,
    tools: Sequence[Any],
    session: Session | Offload,
    max_result_tokens: int = 300,
    *,
    name: str = "delegate",
    middleware: Sequence[Any] = (),
    **options: Any,
) -> StructuredTool:
    """`delegate` as a tool that the asker's model calls, with a task and named inputs.

    With the asker's `Offload` in place of a session, it is the session of whichever run calls,
    and what the sub-agent leaves is about whom that run is.
    """

    def made(runtime: ToolRuntime) -> Delegation:
        given = session
        own = given.session(runtime.config, runtime.state) if isinstance(given, Offload) else given
        return _made(model, own, max_result_tokens, middleware, **options)

    def call(runtime: ToolRuntime, task: str, inputs: dict[str, Any] | None = None) -> str:
        return str(made(runtime).run(task, tools, inputs))

    async def acall(runtime: ToolRuntime, task: str, inputs: dict[str, Any] | None = None) -> str:
        return str(await made(runtime).arun(task, tools, inputs))

    about = (
        "Have a helper do a task that takes many steps or much reading. It sees the task and the "
        "inputs alone, and answers with a short result, the ids that this rests on, and handles."
    )
    schema = {
        "type": "object",
        "properties": {
            "task": {"type": "string", "description": "what to find out or make, in full"},
            "inputs": {
                "type": "object",
                "description": "by name: ids of stored results (res_…), or short values",
            },
        },
        "required": ["task"],
    }
    return StructuredTool(
        name=name, description=about, args_schema=schema, func=call, coroutine=acall
    )


def _made(
    model: Model,
    session: Session,
    max_result_tokens: int,
    middleware: Sequence[Any] = (),
    **options: Any,
) -> Delegation:
    runner = AgentRunner(model, middleware)
    return Delegation(runner, session, max_result_tokens=max_result_tokens, **options)
