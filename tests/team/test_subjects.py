"""Whom a run is about: what it and its members store goes with `delete(subject=…)`, nothing else."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import interrupt

from callslip import ResultStore, SettingsError
from callslip.adapters.langchain_memory import Remembers
from callslip.adapters.langchain_scratchpad import Scratchpad
from callslip.patterns.memory import Memory
from callslip.team import Agent, Db, InMemoryDb, SqliteDb, Team
from tests.team.team_helpers import MODES, call, calls, delegate, go, go_on, scripted

ONE, TWO = "patient-17", "patient-18"
SAID = {ONE: "zimtschnecke", TWO: "franzbroetchen"}


def much(said: str, what: str) -> str:
    return f"{said}: {what}\n" * 2_000


def notes(of: str) -> str:
    """Much about somebody."""
    return much(of, "notes")


def line(of: str, n: int) -> str:
    """Less."""
    return much(of, f"bed {n}")[:12_000]


def fails(of: str) -> str:
    """Fails at length."""
    raise ValueError(much(of, "fault"))


def approve(of: str) -> str:
    """Ask a person, then fetch."""
    return much(of, interrupt("May I?"))


def store_of(team: Agent | Team) -> ResultStore:
    assert team.result_store is not None
    return team.result_store


def forgets_one_and_keeps_two(team: Agent | Team, db: Any, count: int, user: str = "") -> None:
    """Delete what is about the first: `count` results, all of it, and nothing else."""
    store = store_of(team)
    clear = isinstance(db, SqliteDb) and store.settings.keys is None
    there = [handle.id for handle in store.session("s", user=user).list(limit=99).handles]
    about = {name: _stored(db, name) if clear else set() for name in SAID}
    assert len(there) == 2 * count
    if clear:
        assert {name: len(ids) for name, ids in about.items()} == {ONE: count, TWO: count}
        assert about[ONE] | about[TWO] == set(there)
    assert store.acting("dpo").delete(subject=ONE) == count
    left = [handle.id for handle in store.session("s", user=user).list(limit=99).handles]
    assert len(left) == count and set(left) < set(there)
    if clear:
        assert {name: _stored(db, name) for name in SAID} == {ONE: set(), TWO: set(left)}
        rows = _rows(db, "SELECT id, preview FROM results UNION SELECT id, '' FROM tombstones")
        assert {id.decode() for id, _ in rows} == set(left)
        assert not [text for _, text in rows if SAID[ONE].encode() in bytes(text)]
    proof = store.proof(subject=ONE)
    assert proof.complete and len(proof.deleted) == count
    assert store.verify().ok and store.stats().garbage == 0
    assert store.delete(subject=TWO) == count
    assert store.stats().payloads == 0


def _stored(db: SqliteDb, subject: str) -> set[str]:
    found = _rows(db, "SELECT id FROM subjects WHERE name = ?", subject.encode())
    return {id.decode() for (id,) in found}


def _rows(db: SqliteDb, sql: str, *given: Any) -> list[Any]:
    with sqlite3.connect(db.path) as raw:
        return raw.execute(sql, given).fetchall()


@pytest.mark.parametrize("mode", MODES)
def test_what_a_team_and_its_members_store_is_about_the_runs_subject(mode: str, db: Db) -> None:
    for name, said in SAID.items():
        of = {"of": said}
        worker = scripted(
            call("notes", f"n{said}", **of),
            calls(*(call("line", f"{n}{said}", n=n, **of) for n in range(6))),
            call("fails", f"f{said}", **of),
            much(said, "answer"),
        )
        lead = scripted(
            delegate("lab", id=f"l{said}"), call("notes", f"o{said}", of=f"{said} too"), "Done."
        )
        inner = scripted(delegate("worker", id=f"w{said}"), much(said, "sum"))
        team = Team(
            model=lead,
            members=[
                Team(
                    id="lab", model=inner,
                    members=[Agent(id="worker", model=worker, tools=[notes, line, fails])],
                )
            ],
            tools=[notes], db=db, offload_tool_results=ResultStore(audit=True),
        )  # fmt: skip
        out = go(mode, team, "Go.", session_id="s", user_id="ana", subject=name)
        assert out.content == "Done."
        assert out.subjects == out.member_responses[0].subjects == (name,)
    # Notes, three lines, the failure and the answer of the worker; the lab's; the leader's notes.
    forgets_one_and_keeps_two(team, db, 8, "ana")


@pytest.mark.parametrize("mode", MODES)
def test_a_paused_run_goes_on_about_whom_it_was_begun(mode: str, tmp_path: Path) -> None:
    def made(lead: Any, work: Any) -> tuple[SqliteDb, Team]:
        database = SqliteDb(tmp_path / "team.db")
        worker = Agent(id="worker", model=work, tools=[notes, approve])
        settings = ResultStore(audit=True)
        return database, Team(
            model=lead, members=[worker], db=database, offload_tool_results=settings
        )

    for name, said in SAID.items():
        first = scripted(call("notes", "n", of=said), call("approve", "a", of=said))
        db, team = made(scripted(delegate("worker")), first)
        paused = go(mode, team, "Go.", session_id="s", subject=[name])
        assert paused.is_paused
        assert paused.subjects == (name,)
        texts = [
            row
            for table in ("checkpoints", "writes")
            for row in _rows(db, f"SELECT * FROM {table}")
        ]
        assert name not in str(texts), "LangGraph notes no lists"
        db.close()
        # Another process: it is not told again.
        db, team = made(scripted("Done."), scripted(much(said, "answer")))
        out = go_on(mode, team, paused.run_id, "yes", session_id="s")
        assert out.subjects == out.member_responses[0].subjects == (name,)
        assert out.content == "Done."
        db.close()
    forgets_one_and_keeps_two(team, db, 3)
    db.close()


def test_a_run_that_was_cut_off_goes_on_about_whom_it_was_begun(db: Db) -> None:
    def broken(messages: Any) -> str:
        raise ConnectionError("no model")

    agent = Agent(tools=[notes], db=db, offload_tool_results=ResultStore(audit=True))
    for name, said in SAID.items():
        agent.model = scripted(broken)
        with pytest.raises(ConnectionError):
            agent.run("Go.", session_id="s", subject=name)
        agent.model = scripted(call("notes", said, of=said), "Done.")
        out = agent.continue_run(session_id="s")
        assert agent.continue_run(out).subjects == out.subjects == (name,)
    assert [run.subjects for run in agent.runs("s")] == [(ONE,), (TWO,)]
    forgets_one_and_keeps_two(agent, db, 1)


@pytest.mark.parametrize("own", [True, False])
def test_a_direct_answer_is_about_the_runs_subject_whatever_store_a_member_has(
    own: bool, db: SqliteDb
) -> None:
    settings = ResultStore(audit=True)
    theirs = ResultStore(preview_chars=300, audit=True) if own else None
    for name, said in SAID.items():
        member = Agent(id="a", model=scripted(much(said, "answer")), offload_tool_results=theirs)
        team = Team(
            model=scripted(delegate("a", id=said)), members=[member], respond_directly=True, db=db,
            offload_tool_results=settings,
        )  # fmt: skip
        out = team.run("Go.", session_id="s", subject=name)
        assert out.content == much(said, "answer")
    forgets_one_and_keeps_two(team, db, 1)


def test_files_and_facts_of_an_agents_middleware_are_about_the_runs_subject(
    db: SqliteDb, tmp_path: Path
) -> None:
    store = ResultStore(tmp_path / "beside", spool="", audit=True)
    for name, said in SAID.items():
        model = scripted(
            call("write_file", "w", path="a.md", content=said),
            call("remember", "r", text=f"{said} likes tea"),
            "Done.",
        )
        agent = Agent(model=model, db=db, middleware=[Scratchpad(store), Remembers(store)])
        agent.run("Go.", user_id="ana", subject=name)
    assert store.delete(subject=ONE) == 2
    assert [fact.text for fact in Memory(store, ("", "ana")).list()] == [f"{SAID[TWO]} likes tea"]
    raw = b"".join(path.read_bytes() for path in store_files(tmp_path / "beside"))
    assert SAID[ONE].encode() not in raw and SAID[TWO].encode() in raw


def store_files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("stream", [False, True])
def test_a_printed_run_is_about_its_subject_too(
    stream: bool, db: SqliteDb, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = (call("notes", "1", of="x"), "Done.", call("notes", "2", of="y"), "Done.")
    agent = Agent(model=scripted(*steps), tools=[notes], db=db, offload_tool_results=True)
    agent.print_response("Go.", session_id="s", subject=ONE, stream=stream)
    asyncio.run(agent.aprint_response("Go.", session_id="s", subject=ONE, stream=stream))
    assert capsys.readouterr().out.count("Done.") == 2
    assert store_of(agent).delete(subject=ONE) == 2


@pytest.mark.parametrize("wrong", [7, "", ["a", 7], {"a": 1}])
def test_what_is_no_subject_is_said_before_a_run_begins(wrong: Any, db: SqliteDb) -> None:
    agent = Agent(model=scripted(), db=db)
    for begin in (agent.run, agent.arun, agent.print_response):
        with pytest.raises(SettingsError, match="^subject="):
            begin("Go.", session_id="s", subject=wrong)
    assert agent.runs("s") == []


def test_an_odd_name_is_kept_as_it_is(db: Db) -> None:
    odd = "p\ud800\0é"
    agent = Agent(
        model=scripted(call("notes", "1", of="x"), "Done."), tools=[notes], db=db,
        offload_tool_results=True,
    )  # fmt: skip
    out = agent.run("Go.", session_id="s", subject=odd)
    assert [run.subjects for run in agent.runs("s")] == [out.subjects] == [(odd,)]
    assert store_of(agent).delete(subject=odd) == 1


def test_a_run_whose_results_are_gone_can_still_be_looked_at_continued_and_deleted(
    db: SqliteDb,
) -> None:
    worker = Agent(id="a", model=scripted(much(SAID[ONE], "answer"), "short"))
    team = Team(
        model=scripted(delegate("a"), "Done.", delegate("a", id="c2"), "Again."),
        members=[worker], db=db, offload_tool_results=True,
    )  # fmt: skip
    first = team.run("Go.", session_id="s", subject=ONE)
    assert store_of(team).delete(subject=ONE) == 1
    assert team.run("Go on.", session_id="s").content == "Again."
    for run in team.runs("s"):
        if ONE in run.subjects:
            team.delete_run(run.run_id, session_id="s")
    assert [run.subjects for run in team.runs("s")] == [(), ()]
    assert (first.run_id,) not in _rows(db, "SELECT run FROM team_runs")
    assert ONE not in str(_rows(db, "SELECT * FROM team_runs"))


def test_nothing_of_a_deleted_run_can_be_read_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def lazily(*given: Any, **named: Any) -> sqlite3.Connection:
        opened = connect(*given, **named)
        opened.execute("PRAGMA secure_delete = OFF")  # as some builds of SQLite are
        return opened

    monkeypatch.setattr(sqlite3, "connect", lazily)
    db = SqliteDb(tmp_path / "team.db")
    said = SAID[ONE]
    agent = Agent(
        model=scripted(call("line", "1", of=said, n=1), call("approve", "2", of=said)),
        tools=[line, approve], db=db, offload_tool_results=True,
    )  # fmt: skip
    paused = agent.run(f"How is {said}?", session_id="s", subject=ONE)
    with connect(db.path) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert said.encode() in db.path.read_bytes()
    store_of(agent).delete(subject=ONE)
    assert agent.delete_run(paused.run_id, session_id="s")
    store_of(agent).gc()
    left = b"".join(path.read_bytes() for path in store_files(tmp_path))
    assert said.encode() not in left and ONE.encode() not in left
    db.close()


def test_where_nothing_is_offloaded_a_subject_is_noted_with_the_run() -> None:
    agent = Agent(model=scripted("Done."), db=InMemoryDb())
    assert agent.run("Go.", session_id="s", subject=ONE).subjects == (ONE,)
    assert agent.runs("s")[0].subjects == (ONE,)
    assert Agent(model=scripted("Done.")).run("Go.", subject=ONE).subjects == (ONE,)
