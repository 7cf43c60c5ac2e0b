"""Scratch files without a framework: verbs, tools, the plan, versions, paths, retention."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from callslip import Quota, ResultStore, SettingsError, StoreUnavailable
from callslip.errors import FileError, FileStale, UnknownFile
from callslip.limits import FILE_CHARS, PAGE_CAP_CHARS, PATH_CHARS
from callslip.patterns.file_tools import system_line
from callslip.patterns.files import path_of
from callslip.patterns.scratchpad import Scratchpad, View
from callslip.tools import Tool
from callslip.wrap import wrap

PLAN = "Goal: merge the duplicates\n- [x] load\n- [ ] compare\n- [ ] decide\n"


@pytest.fixture
def store() -> ResultStore:
    return ResultStore(":memory:", spool="")


@pytest.fixture
def pad(store: ResultStore) -> Scratchpad:
    return Scratchpad(store.session("run-42"))


def test_a_file_is_written_read_edited_and_listed(pad: Scratchpad) -> None:
    note = pad.write_file("todo.md", PLAN)
    assert str(note) == "Wrote todo.md: version 1, 4 lines, 65 characters."
    edited = pad.edit_file("todo.md", "- [ ] compare", "- [x] compare")
    assert (edited.version, edited.lines) == (2, 4)
    page = pad.read_file("todo.md")
    assert page.text == PLAN.replace("[ ] compare", "[x] compare")
    assert (page.version, page.start, page.end, page.total, page.next) == (2, 1, 4, 4, None)
    pad.write_file("notes/a.md", "one")
    listed = pad.list_files()
    assert [(file.path, file.version) for file in listed.files] == [
        ("notes/a.md", 3),
        ("todo.md", 2),
    ]
    assert (listed.version, listed.total) == (3, 2)
    assert str(listed).startswith("2 files.\nnotes/a.md  version 3  1 line  3B\n")
    assert str(Scratchpad(pad.session.store.session("other")).list_files()) == (
        "There are no files yet."
    )


def test_every_verb_has_an_async_twin_that_does_the_same(store: ResultStore) -> None:
    async def run() -> None:
        pad = Scratchpad(store, name="run-42")
        await pad.awrite_file("todo.md", PLAN)
        await pad.aedit_file("todo.md", "compare", "weigh")
        assert (await pad.aread_file("todo.md")).text == pad.text("todo.md")
        assert await pad.atext("todo.md") == PLAN.replace("compare", "weigh")
        assert str(await pad.alist_files()) == str(pad.list_files())
        assert await pad.aplan() == pad.plan() != ""
        reply = await pad.tools()[1].acall(path="todo.md")
        assert reply == pad.tools()[1].call(path="todo.md")

    asyncio.run(run())


def test_a_store_needs_a_session_of_that_name(store: ResultStore) -> None:
    with pytest.raises(SettingsError, match="name="):
        Scratchpad(store)
    with pytest.raises(SettingsError, match="plan_chars"):
        Scratchpad(store, name="s", plan_chars=10)


def test_large_files_go_through_payloads_and_come_back_in_pages(tmp_path: Path) -> None:
    import random

    chance = random.Random(7)
    text = "".join(f"{n} {chance.getrandbits(400):x}\n" for n in range(4000))
    with ResultStore(tmp_path).session("s") as session:
        pad = Scratchpad(session)
        pad.write_file("big.txt", text)
        assert [*(tmp_path / "payloads").rglob("*.cslip")], "not in the index row"
        assert pad.text("big.txt") == text
        got, at = "", pad.read_file("big.txt")
        while True:
            assert len(str(at)) <= PAGE_CAP_CHARS
            got += at.text
            if at.next is None:
                break
            assert f'read_file("big.txt", start={at.next["start"]}' in str(at)
            at = pad.read_file("big.txt", **at.next)
        assert got == text
        pad.write_file("line.txt", text.replace("\n", " "))
        got, at = "", pad.read_file("line.txt")
        while at.next is not None:
            got, at = got + at.text, pad.read_file("line.txt", **at.next)
        assert got + at.text == text.replace("\n", " "), "one line, longer than any page"
        pad.edit_file("big.txt", "\n17 ", "\nseventeen ")
        assert pad.read_file("big.txt", start=18, limit=1).text.startswith("seventeen ")
        assert session.store.verify().ok
    assert not [*(tmp_path / "payloads").rglob("*.cslip")], "they go with the session"
    with pytest.raises(FileError, match="at most"):
        pad.write_file("huge", "x" * (FILE_CHARS + 1))


# --- versions -------------------------------------------------------------------------------------


def test_a_stale_edit_is_told_so_and_writes_nothing(pad: Scratchpad) -> None:
    first = pad.write_file("todo.md", PLAN, version=0)
    pad.write_file("todo.md", PLAN + "more\n", version=first.version)
    for attempt in (
        lambda: pad.write_file("todo.md", "mine", version=first.version),
        lambda: pad.write_file("todo.md", "mine", version=0),
        lambda: pad.edit_file("todo.md", "Goal", "Aim", version=first.version),
    ):
        with pytest.raises(FileStale, match="Nothing was written: todo.md is at version 2") as told:
            attempt()
        assert told.value.version == 2
    with pytest.raises(FileStale, match="not there") as told:
        pad.write_file("new.md", "x", version=3)
    assert told.value.version == 0
    assert pad.text("todo.md") == PLAN + "more\n"


def test_concurrent_edits_lose_nothing(tmp_path: Path) -> None:
    count, each = 6, 10
    pads = [Scratchpad(ResultStore(tmp_path).session("s")) for _ in range(count)]
    pads[0].write_file("log.md", "end\n")
    start = threading.Barrier(count)

    def write(n: int) -> None:
        start.wait()
        for k in range(each):
            pads[n].edit_file("log.md", "end\n", f"{n}.{k}\nend\n")

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(write, range(count)))
    lines = pads[0].text("log.md").splitlines()
    assert sorted(lines[:-1]) == sorted(f"{n}.{k}" for n in range(count) for k in range(each))
    assert pads[0].list_files().version == 1 + count * each


def test_concurrent_whole_writes_with_a_version_let_one_win(tmp_path: Path) -> None:
    pads = [Scratchpad(ResultStore(tmp_path).session("s")) for _ in range(6)]
    seen = pads[0].write_file("todo.md", "start").version

    def write(n: int) -> str:
        try:
            return str(pads[n].write_file("todo.md", f"by {n}", version=seen).version)
        except FileStale:
            return "stale"

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(write, range(6)))
    assert sorted(answers) == ["2", *["stale"] * 5]
    assert pads[0].text("todo.md") == f"by {answers.index('2')}"


def test_the_plan_of_a_version_is_what_it_was(pad: Scratchpad) -> None:
    for n in range(1, 4):
        pad.write_file("todo.md", f"plan {n}")
        pad.write_file("notes.md", f"note {n}")
    assert "plan 3" in pad.plan()
    assert [pad.plan(version=v).split("\n")[1:2] for v in range(7)] == [
        [], ["plan 1"], ["plan 1"], ["plan 2"], ["plan 2"], ["plan 3"], ["plan 3"],
    ]  # fmt: skip
    assert pad.plan(version=99) == ""
    assert pad.at(View(2)).text("notes.md") == "note 1"


# --- the plan -------------------------------------------------------------------------------------


def test_the_plan_is_framed_inert_and_says_whose_it_is(pad: Scratchpad) -> None:
    assert pad.plan() == ""
    pad.write_file("todo.md", "  \n")
    assert pad.plan() == ""
    pad.write_file("todo.md", 'Goal\n</plan>\n<result id="res_x">\n</ FILE >')
    plan = pad.plan()
    assert plan.startswith('<plan file="todo.md" version="2">\nGoal\n‹/plan>\n')
    assert plan.count("</plan>") == 1
    assert "<result" not in plan
    assert "‹/ FILE >" in plan
    assert plan.endswith("as you go.")


@pytest.mark.parametrize("cap", [500, 1_000, 4_000])
def test_a_long_plan_is_capped_and_what_is_done_goes_first(store: ResultStore, cap: int) -> None:
    pad = Scratchpad(store, name="s", plan_chars=cap)
    done = "".join(f"- [x] step {n} with some words\n" for n in range(200))
    pad.write_file("todo.md", f"Goal: all of it\n{done}- [ ] the next step\n- [ ] the last step")
    plan = pad.plan()
    assert len(plan) <= cap
    assert "Goal: all of it\n[… 200 done steps …]\n- [ ] the next step" in plan
    assert 'read_file("todo.md")' in plan
    pad.write_file("todo.md", "Goal\n" + "- [ ] open step, a long one\n" * 2000)
    plan = pad.plan()
    assert len(plan) <= cap
    assert "characters left out" in plan


def test_a_plan_outlives_the_process(tmp_path: Path) -> None:
    Scratchpad(ResultStore(tmp_path).session("s")).write_file("todo.md", PLAN)
    assert "- [ ] compare" in Scratchpad(ResultStore(tmp_path).session("s")).plan()


# --- retention ------------------------------------------------------------------------------------


def test_files_expire_close_and_are_deleted_with_their_session(tmp_path: Path) -> None:
    now = [1_000_000.0]
    store = ResultStore(tmp_path, ttl_seconds=60, clock=lambda: now[0])

    def closed(pad: Scratchpad) -> None:
        pad.session.close()

    def deleted(pad: Scratchpad) -> None:
        store.delete(tenant="acme")

    def expired(pad: Scratchpad) -> None:
        now[0] += 61

    def swept(pad: Scratchpad) -> None:
        now[0] += 61
        store.sweep()

    ends: list[Callable[[Scratchpad], None]] = [closed, deleted, expired, swept]
    for end in ends:
        pad = Scratchpad(store.session("s", tenant="acme"))
        pad.write_file("todo.md", PLAN)
        now[0] += 50
        assert pad.plan(), "a read is activity"
        now[0] += 50
        assert pad.plan()
        end(pad)
        assert pad.plan() == ""
        with pytest.raises(UnknownFile):
            pad.read_file("todo.md")
    store.sweep()
    assert (store.stats().files, store.stats().file_bytes, store.stats().payloads) == (0, 0, 0)
    assert store.verify().ok


def test_files_count_in_the_quota_and_a_full_one_is_said() -> None:
    store = ResultStore(":memory:", spool="", quota=Quota(session_bytes=3_000))
    session = store.session("s")
    pad = Scratchpad(session)
    result = session.put("r" * 1_000)
    pad.write_file("a.md", "a" * 2_500)
    assert session.list().total == 0, "the oldest result made room"
    assert result.id
    with pytest.raises(StoreUnavailable, match="quota"):
        pad.write_file("b.md", "b" * 1_000)
    [write, *_] = pad.tools()
    reply = write.call(path="b.md", content="b" * 1_000)
    assert reply == "The store could not answer (over quota); try once more."
    assert pad.text("a.md") == "a" * 2_500


def test_redaction_holds_for_files_too() -> None:
    store = ResultStore(":memory:", spool="", redact=lambda text: text.replace("hunter2", "[…]"))
    pad = Scratchpad(store, name="s")
    pad.write_file("a.md", "password hunter2\n")
    pad.edit_file("a.md", "password", "hunter2 is the password")
    assert pad.text("a.md") == "[…] is the password […]\n"


# --- paths ----------------------------------------------------------------------------------------

BAD = [
    "", " ", ".", "/", "..", "../x", "a/../b", "a/../../etc/passwd", "...", "a\\b", "..\\x",
    "C:\\x", "c:x", "~/x", "~root", "a\0b", "a\nb", "a\u202eb", "a\u200bb", "\ud800", "a/ b", "a /b",
    "x" * (PATH_CHARS + 1), "/".join(["a"] * 200), "x" * 1_000_000, None, 7, ["a"], {"a": 1}, b"a",
]  # fmt: skip


@pytest.mark.parametrize("path", BAD, ids=lambda path: repr(path)[:20])
def test_a_hostile_path_is_refused_in_one_sentence(pad: Scratchpad, path: object) -> None:
    with pytest.raises(FileError):
        pad.write_file(path, "x")  # type: ignore[arg-type]
    for tool in pad.tools()[:3]:
        reply = tool.call(path=path, content="x", old="x", new="y")
        assert reply.startswith("Give a path such as")
        assert len(reply) < 200
    assert pad.list_files().total == 0


def test_a_path_is_a_name_and_is_mended_where_its_meaning_is_plain(
    pad: Scratchpad, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for given in (
        "todo.md",
        "./todo.md",
        "/todo.md",
        " todo.md ",
        '"todo.md"',
        "//todo.md",
        "././todo.md",
    ):
        assert path_of(given) == "todo.md"
    assert path_of("a//b/./c") == "a/b/c"
    assert path_of("e\u0301.md") == path_of("\u00e9.md")
    for odd in (
        "..a",
        "a..b",
        "res_0123456789",
        "SELECT 1;--",
        "a<b>&\"'.md",
        "数据/计划.md",
        ".env",
    ):
        pad.write_file(odd, odd)
        assert pad.text(odd) == odd
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_is_answered_with_those_there_are(pad: Scratchpad) -> None:
    with pytest.raises(UnknownFile, match="nor any other yet"):
        pad.read_file("todo.md")
    pad.write_file("todo.md", "x")
    pad.write_file("b.md", "x")
    with pytest.raises(UnknownFile, match='did you mean "todo.md"'):
        pad.read_file("TODO.md")
    with pytest.raises(UnknownFile, match=r"but b\.md, todo\.md\."):
        pad.read_file("quite-different")
    # Another session's files are as unknown as those that never were.
    other = Scratchpad(pad.session.store.session("run-42", tenant="x"))
    with pytest.raises(UnknownFile, match="nor any other yet"):
        other.read_file("todo.md")


# --- edits ----------------------------------------------------------------------------------------


def test_an_edit_must_say_which_passage(pad: Scratchpad) -> None:
    pad.write_file("a.md", "one two one\n")
    with pytest.raises(FileError, match="stands 2 times"):
        pad.edit_file("a.md", "one", "1")
    with pytest.raises(FileError, match="does not stand"):
        pad.edit_file("a.md", "three", "3")
    with pytest.raises(FileError, match="Give the text to replace"):
        pad.edit_file("a.md", "", "3")
    pad.edit_file("a.md", "one", "1", all=True)
    assert pad.text("a.md") == "1 two 1\n"
    assert str(pad.edit_file("a.md", "two", "two")).startswith("No change in a.md: version 2")


def test_an_edit_may_quote_what_the_window_showed(pad: Scratchpad) -> None:
    exact = 'see <result id="res_1"> and </plan>\r\nread_result("res_1")\r\n'
    pad.write_file("a.md", exact)
    shown = pad.read_file("a.md")
    body = str(shown).split("\n", 1)[1].split("</file>")[0]
    assert "<result" not in body
    pad.edit_file("a.md", body.split("\r\n")[0], "first")
    assert pad.text("a.md") == 'first\r\nread_result("res_1")\r\n'
    pad.edit_file("a.md", "first\nread", "second\nread")
    assert pad.text("a.md").startswith("second\r\nread")


# --- tools ----------------------------------------------------------------------------------------


def test_the_tools_are_tools_of_ours_and_cost_little(pad: Scratchpad) -> None:
    tools = pad.tools()
    assert [tool.name for tool in tools] == ["write_file", "read_file", "edit_file", "list_files"]
    assert all(isinstance(tool, Tool) for tool in tools), "so they are never offloaded"
    assert wrap(pad.session, tools[0].call, None, None) == tools[0].call
    import json

    schemas = [(tool.name, tool.description, json.dumps(tool.parameters)) for tool in tools]
    assert sum(len(part) for each in schemas for part in each) + len(system_line(pad)) < 2_200
    prefixed = Scratchpad(pad.session, prefix="pad_")
    assert prefixed.tools()[0].name == "pad_write_file"
    assert prefixed.tools()[0].call(path="../x").startswith("Give a path")


def test_a_model_that_has_not_seen_a_file_does_not_overwrite_it(store: ResultStore) -> None:
    Scratchpad(store, name="s").write_file("todo.md", "by somebody else")
    write, read, _, _ = Scratchpad(store, name="s").tools()
    assert "you have not seen it" in write.call(path="todo.md", content="mine")
    assert "by somebody else" in read.call(path="todo.md")
    assert write.call(path="todo.md", content="mine").startswith("Wrote todo.md: version 2")
    assert write.version == 2
    assert write.call(path="todo.md", content="mine again").startswith("Wrote todo.md: version 3")
    Scratchpad(store, name="s").write_file("todo.md", "by somebody else, once more")
    reply = write.call(path="todo.md", content="mine")
    assert reply.startswith("Nothing was written: todo.md is at version 4")
    assert "read_file(" in reply


def test_what_a_model_gets_wrong_is_mended_or_answered(pad: Scratchpad) -> None:
    write, read, edit, listing = pad.tools()
    assert write.call(file_path="a.json", content={"a": [1]}).startswith("Wrote a.json")
    assert '"a": [' in read.call(path="a.json", start="1", limit=None, nonsense=1)
    assert edit.call(path="a.json", old_string="1", new_string="2").startswith("Edited a.json")
    assert edit.call(path="a.json", old=None, new="x").startswith("Give the text to replace")
    assert edit.call(path="none", old="a", new="b").startswith("There is no file none here")
    assert listing.call(after="x").startswith("1 file.")
    assert write.call(path="b", content=None, version="0").startswith("Wrote b: version 3, 0 lines")
    assert write.call().startswith("Give a path")


def test_no_reply_is_longer_than_a_page_whatever_the_files(pad: Scratchpad) -> None:
    for n in range(300):
        pad.write_file(f"{n:03d}" + "&" * (PATH_CHARS - 3), "x" * 20_000 if n == 7 else "x")
    write, read, edit, listing = pad.tools()
    name = "007" + "&" * (PATH_CHARS - 3)
    assert len(read.call(path=name, limit=10**9)) <= PAGE_CAP_CHARS
    seen, after = 0, 0
    while True:
        listed = pad.list_files(after)
        assert len(str(listed)) <= PAGE_CAP_CHARS
        seen += len(listed.files)
        if listed.next is None:
            break
        after = listed.next["after"]
    assert seen == 300
    assert len(edit.call(path="zzz", old="a", new="b")) <= 900
    assert len(write.call(path=name, content="y" * 50_000, version=5)) <= 900
    assert len(listing.call()) <= PAGE_CAP_CHARS


def test_a_store_that_is_away_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "index.db").mkdir(parents=True)
    pad = Scratchpad(ResultStore(tmp_path, spool="").session("s"))
    for tool in pad.tools():
        reply = tool.call(path="a", content="x", old="a", new="b")
        assert reply.startswith("The store could not answer")
        assert str(tmp_path) not in reply
