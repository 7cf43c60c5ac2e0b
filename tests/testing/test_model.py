"""The scripted model and its loop: real tools, real sizes, and a script that does not fit is loud."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from callslip import ResultStore, Session
from callslip.testing.model import (
    Answer,
    Call,
    Message,
    ScriptedModel,
    ScriptError,
    arun_agent,
    id_shown,
    run_agent,
)


def search(query: str, limit: int = 2000) -> str:
    """Search the catalogue."""
    return "\n".join(f"{n:04d} {query} item, shelf {n * 7 % 100}" for n in range(limit))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return ResultStore(tmp_path, spool="").session("s")


def script() -> ScriptedModel:
    return ScriptedModel(
        [
            Call("search", query="red"),
            Call("search_result", lambda seen: {"result_id": id_shown(seen), "pattern": "^1499"}),
            Answer(lambda seen: seen[-1].text.split("shelf ")[1].split()[0]),
        ]
    )


def test_a_script_runs_over_real_tools_and_its_answer_comes_from_their_replies(
    session: Session,
) -> None:
    run = run_agent(script(), [session.offloaded(search), *session.tools()], "Which shelf?")
    assert run.answer == str(1499 * 7 % 100)
    assert [message.role for message in run.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert run.read_backs == 1
    assert [reply.tool for reply in run.replies] == ["search", "search_result"]


def test_each_request_is_recorded_with_what_it_held(session: Session) -> None:
    tools = [session.offloaded(search), *session.tools()]
    run = run_agent(script(), tools, "Which shelf?", system="Be brief.")
    assert len(run.requests) == 3
    for earlier, later in zip(run.requests, run.requests[1:], strict=False):
        assert later.messages[: len(earlier.messages)] == earlier.messages
    first = run.requests[0]
    assert first.chars == len("Be brief.") + len("Which shelf?") + run.tool_chars
    assert run.tool_chars > sum(len(tool.description) for tool in session.tools())
    last = run.requests[-1]
    assert last.chars == run.tool_chars + sum(message.chars for message in last.messages)
    assert run.largest == max(run.sizes) == last.chars
    assert run.sent == sum(run.sizes)


def test_the_same_loop_without_offloading_shows_what_the_window_would_have_held() -> None:
    plain = ScriptedModel([Call("search", query="red"), Answer("seen")])
    run = run_agent(plain, [search], "Which shelf?")
    assert run.largest > len(search("red"))
    assert run.read_backs == 0


def test_several_calls_of_one_turn_come_back_in_their_order() -> None:
    def double(n: int) -> int:
        return 2 * n

    steps = [[Call("double", n=1), Call("double", n=2)], Answer(lambda seen: seen[-2].text)]
    run = run_agent(ScriptedModel(steps), [double], "?")
    assert [reply.text for reply in run.replies] == ["2", "4"]
    assert run.answer == "2"
    assert len(run.requests) == 2


def test_a_step_may_be_a_function_of_what_was_seen() -> None:
    def flip(coin: str) -> str:
        return "heads"

    def decide(seen: object) -> Answer | Call:
        assert isinstance(seen, tuple)
        return Answer("won") if seen[-1].text == "heads" else Call("flip", coin="other")

    run = run_agent(ScriptedModel([Call("flip", {"coin": "mine"}), decide]), [flip], "?")
    assert run.answer == "won"


def test_results_that_are_no_text_are_shown_as_json_and_generators_whole() -> None:
    def rows() -> list[dict[str, object]]:
        return [{"a": 1, "when": Path("x")}]

    def lines() -> Iterator[str]:
        yield "one\n"
        yield "two\n"

    steps = [Call("rows"), Call("lines"), Answer("done")]
    run = run_agent(ScriptedModel(steps), [rows, lines], "?")
    assert [reply.text for reply in run.replies] == ['[{"a": 1, "when": "x"}]', "one\ntwo\n"]


def test_async_tools_run_on_the_loop_and_generators_of_both_kinds(session: Session) -> None:
    @session.offloaded
    async def find(query: str) -> str:
        await asyncio.sleep(0)
        return search(query)

    async def parts() -> AsyncIterator[str]:
        yield "a"
        yield "b"

    steps = [
        Call("find", query="red"),
        Call("read_result", lambda seen: {"result_id": id_shown(seen), "start": 1500, "limit": 1}),
        Call("parts"),
        Answer(lambda seen: seen[-3].text),
    ]
    tools = [find, parts, *session.tools()]
    run = asyncio.run(arun_agent(ScriptedModel(steps), tools, "?"))
    assert "1499 red item" in run.answer
    assert run.replies[-1].text == "ab"
    with pytest.raises(ScriptError, match="find is async: use arun_agent"):
        run_agent(ScriptedModel(steps), tools, "?")


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([Call("nothing")], "no tool 'nothing', but search, read_result"),
        ([Call("search", query="a", page=2)], "does not fit search.*unexpected keyword"),
        ([Call("search")], "does not fit search.*missing a required argument"),
        ([Call("search_result", patern="a")], "search_result takes result_id, .* not patern"),
        ([Call("search", query="a")], "1 steps and gives no answer; the last message is '0000 a"),
        ([Call("search", lambda seen: "query")], "must be a mapping, not 'query'"),
        ([lambda seen: "words"], "a step came out as 'words'"),
        ([Answer(lambda seen: 7)], "must be a string, not 7"),
        ([lambda seen: Answer("early"), Call("search", query="a")], "answered with 1 steps still"),
        ([Call("read_result", lambda seen: {"result_id": id_shown(seen)})], "no reply shows the"),
    ],
)
def test_a_script_that_does_not_fit_is_an_error(
    session: Session, steps: list[object], said: str
) -> None:
    tools = [search, *session.tools()]
    with pytest.raises(ScriptError, match=said):
        run_agent(ScriptedModel(steps), tools, "?")  # type: ignore[arg-type]


def test_a_script_is_checked_when_it_is_made() -> None:
    with pytest.raises(ScriptError, match="step 1 of 2 is an answer"):
        ScriptedModel([Answer("a"), Call("b")])
    with pytest.raises(ScriptError, match="step 1 is 'search'"):
        ScriptedModel(["search"])  # type: ignore[list-item]
    with pytest.raises(ScriptError, match="not both"):
        Call("search", {"query": "a"}, query="b")


def test_an_error_inside_a_step_names_the_step_and_the_last_message() -> None:
    model = ScriptedModel([Call("search", query="a"), Answer(lambda seen: seen[99].text)])
    with pytest.raises(IndexError) as caught:
        run_agent(model, [search], "?")
    assert "in step 2 of the script, after '0000 a" in caught.value.__notes__[0]


def test_what_a_tool_raises_its_caller_gets() -> None:
    def broken() -> str:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        run_agent(ScriptedModel([Call("broken"), Answer("")]), [broken], "?")


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ScriptError, match="two tools are named 'search'"):
        run_agent(ScriptedModel([Answer("")]), [search, search], "?")


def test_a_model_that_never_answers_is_stopped() -> None:
    def again() -> str:
        return "no"

    with pytest.raises(ScriptError, match="no answer after 200 requests"):
        run_agent(lambda seen: Call("again"), [again], "?")


def test_the_id_that_is_found_is_the_one_shown_last_or_last_by_a_tool() -> None:
    seen = [
        Message("tool", 'a <result id="res_0123456789">', tool="one"),
        Message("tool", 'b <result id="res_abcdef0123">', tool="two"),
        Message("assistant", "res_ffffffffff"),
    ]
    assert id_shown(seen) == "res_abcdef0123"
    assert id_shown(seen, "one") == "res_0123456789"
    with pytest.raises(ScriptError, match="no reply of three shows"):
        id_shown(seen, "three")
