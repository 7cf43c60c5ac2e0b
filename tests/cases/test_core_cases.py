"""Failures that people reported of other tools, each replayed through the public face.

One test for each case of `cases.json` that concerns the core and the store; the symptom and what
must hold instead stand there, under the number in the test's name.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from callslip import (
    Envelope,
    HandleGone,
    Quota,
    ResultStore,
    Session,
    StoreUnavailable,
    UnknownHandle,
)
from callslip.limits import ENVELOPE_CHARS, PAGE_CAP_CHARS, PREVIEW_CHARS, REFUSED_CHARS

INPUTS = Path(__file__).parent / "inputs"


def made(name: str) -> ModuleType:
    """The input module of that name, known to `sys.modules` as an imported one would be."""
    spec = importlib.util.spec_from_file_location(f"case_{name}", INPUTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def pages(session: Session, id: str, limit: int | None = None) -> Iterator[Any]:
    where: dict[str, int] | None = {"start": 1}
    while where is not None:
        page = session.read(id, limit=limit, **where)
        assert len(str(page)) <= PAGE_CAP_CHARS
        yield page
        where = page.next


def walked(session: Session, id: str, limit: int | None = None) -> str:
    return "".join(page.text for page in pages(session, id, limit))


@pytest.fixture
def open_store(tmp_path: Path) -> Callable[..., ResultStore]:
    return lambda **settings: ResultStore(tmp_path / "store", **settings)


@pytest.fixture
def session(open_store: Callable[..., ResultStore]) -> Session:
    return open_store().session("s", user="u", tenant="t")


def test_case_04_a_one_line_file_is_paged_by_column(session: Session) -> None:
    text = (INPUTS / "04_one_line.json").read_text()
    id = session.put(text, tool="fetch").id
    assert walked(session, id) == text
    assert len(list(pages(session, id))) > 3
    assert any("NEEDLE-MIDDLE" in page.text for page in pages(session, id))


def test_case_05_a_search_of_one_long_line_gives_windows_and_the_total(session: Session) -> None:
    id = session.put((INPUTS / "05_search_one_line.json").read_text(), tool="fetch").id
    before = session.list().total
    hits = session.search(id, "quota exceeded")
    assert hits.total == 37
    assert len(str(hits)) <= PAGE_CAP_CHARS
    assert hits.hits
    assert all("quota exceeded" in hit.text and len(hit.text) < 1_000 for hit in hits.hits)
    places = []
    while True:
        places += [(hit.line, hit.column) for hit in hits.hits]
        if hits.next is None:
            break
        hits = session.search(id, "quota exceeded", **hits.next)
    assert len(set(places)) == 37
    assert session.list().total == before


@pytest.mark.parametrize("limit", [None, 1, 2, 3, 1000])
def test_case_08_no_line_falls_between_two_pages(session: Session, limit: int | None) -> None:
    text = (INPUTS / "08_wrapped_lines.txt").read_text()
    id = session.put(text, tool="cat").id
    whole = walked(session, id, limit)
    assert whole == text
    assert whole.count("MUST-SEE-LINE") == 1


def test_case_09_what_a_reader_answers_is_never_offloaded_again(session: Session) -> None:
    text = made("09_readback_recursion").make()
    envelope = session.offload(text, tool="fetch")
    assert isinstance(envelope, Envelope)
    assert envelope.handle is not None
    id = envelope.handle.id
    read, *_ = (tool for tool in session.tools() if tool.name == "read_result")
    replies = [read.call(result_id=id, start=start, limit=2000) for start in (1, 1001, 2001)]
    assert any("NEEDLE=4417" in reply for reply in replies)
    assert [session.offload(reply, tool="read_result") for reply in replies] == replies
    wrapped = session.offloaded(lambda: replies[0])
    assert wrapped() == replies[0]
    assert session.list().total == 1


def test_case_16_an_odd_call_id_makes_a_short_plain_handle(session: Session) -> None:
    calls = made("16_odd_tool_call_ids").make()
    ids = [session.put(text, tool="t", call_id=call).id for call, text in calls]
    assert len(set(ids)) == len(calls)
    for id, (_, text) in zip(ids, calls, strict=True):
        assert re.fullmatch(r"[a-z0-9_]{1,40}", id)
        assert session.load(id) == text


def test_case_18_a_quota_evicts_the_oldest_and_says_so(
    open_store: Callable[..., ResultStore],
) -> None:
    session = open_store(quota=Quota(session_results=20)).session("s")
    ids = [
        session.put(text, tool="fetch", args={"call": call}).id
        for call, text in (item for item, _ in zip(made("18_storage_growth").make(), range(100)))
    ]
    assert session.list().total == 20
    assert session.load(ids[-20]).startswith("result 80 line")
    with pytest.raises(HandleGone) as gone:
        session.read(ids[79])
    assert gone.value.why == "evicted"


def test_case_19_a_hostile_handle_opens_nothing_and_raises_nothing(
    session: Session, tmp_path: Path
) -> None:
    session.put("x" * 50_000, tool="fetch")
    hostile = json.loads((INPUTS / "19_hostile_handles.json").read_text())
    assert len(hostile) == 31
    opened: list[str] = []
    watching = True

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event == "open" and isinstance(arguments[0], (str, bytes)):
            opened.append(os.fsdecode(arguments[0]))

    tools = {tool.name: tool for tool in session.tools()}
    invented = tools["read_result"].call(result_id="res_0123456789")
    sys.addaudithook(watch)
    try:
        for handle in hostile:
            reply = tools["read_result"].call(result_id=handle)
            assert len(reply) < 400, handle
            assert reply == invented, handle
            assert len(tools["search_result"].call(result_id=handle, pattern="x")) < 400
            with pytest.raises(UnknownHandle):
                session.read(handle)
    finally:
        watching = False
    inside = (str(tmp_path), sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]))
    assert [path for path in opened if not path.startswith(inside)] == []


def test_case_22_what_a_model_has_seen_never_changes(
    open_store: Callable[..., ResultStore],
) -> None:
    turns = made("22_cache_stability").make()
    session = open_store().session("s")
    requests, request = [], ""
    for turn in turns:
        request += str(session.offload(turn["content"], tool="t", args={"c": turn["tool_call_id"]}))
        requests.append(request)
    assert all(after.startswith(before) for before, after in pairwise(requests))
    again = open_store().session("s")
    replayed = ""
    for turn in turns:
        replayed += str(again.offload(turn["content"], tool="t", args={"c": turn["tool_call_id"]}))
    assert replayed == request


@pytest.mark.parametrize(("name", "per_char"), [("31_cjk.txt", 0.5), ("31_digits.log", 0.32)])
def test_case_31_dense_text_is_offloaded_before_a_quarter_of_its_length_says_so(
    open_store: Callable[..., ResultStore], name: str, per_char: float
) -> None:
    text = (INPUTS / name).read_text(encoding="utf-8")
    threshold = int(len(text) * per_char)
    assert threshold > len(text) / 4
    session = open_store(threshold_tokens=threshold).session("s")
    assert isinstance(session.offload(text, tool="t"), Envelope)


def test_case_32_a_cut_preview_of_json_says_that_it_is_an_excerpt(
    open_store: Callable[..., ResultStore],
) -> None:
    events: list[Any] = []
    session = open_store(on_event=events.append).session("s")
    envelope = session.offload(made("32_middle_cut").make(), tool="t")
    assert isinstance(envelope, Envelope)
    assert re.match(r'<result [^>]*shown="[^"]+ of [^"]+"', envelope)
    assert envelope.handle is not None
    assert [(e.name, e.id) for e in events] == [("stored", envelope.handle.id)]
    assert events[0].size > events[0].shown > 0


def test_case_34_a_preview_is_not_made_of_brackets(session: Session) -> None:
    text = made("34_tail_braces").make()
    envelope = session.offload(text, tool="t")
    assert isinstance(envelope, Envelope)
    assert envelope.handle is not None
    preview = envelope.split("\n", 1)[1].rpartition("</result>")[0]
    assert sum(c in "{}[] \n\t," for c in preview) <= len(preview) / 2
    assert session.search(envelope.handle.id, "LAST-VALUE=91").total == 1


def test_case_35_the_handle_stands_outside_the_data(session: Session) -> None:
    envelope = session.offload(made("35_notice_vs_data").make(), tool="t")
    assert isinstance(envelope, Envelope)
    assert envelope.handle is not None
    id = envelope.handle.id
    assert re.fullmatch(r"res_[a-z0-9]+", id)
    assert envelope.startswith(f'<result id="{id}"')
    notice = envelope.rpartition("</result>")[2]
    assert f'read_result("{id}"' in notice
    assert len(envelope) <= PREVIEW_CHARS + ENVELOPE_CHARS


def test_case_39_expired_is_another_answer_than_unknown(
    open_store: Callable[..., ResultStore],
) -> None:
    now = [0.0]
    hour = 3600.0
    session = open_store(ttl_seconds=24 * hour, clock=lambda: now[0]).session("s")
    id = session.put("x" * 50_000, tool="fetch_orders", args={"year": 2026}).id
    now[0] = hour
    assert session.load(id) == "x" * 50_000
    now[0] = 72 * hour
    with pytest.raises(HandleGone) as gone:
        session.read(id)
    assert gone.value.why == "expired"
    assert "fetch_orders" in gone.value.for_model
    assert "2026" in gone.value.for_model
    with pytest.raises(UnknownHandle):
        session.read("res_never")


def test_case_40_a_store_that_is_full_costs_neither_the_run_nor_the_newest_part(
    open_store: Callable[..., ResultStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    from callslip.stacks.index.sqlite import SqliteIndex

    def full(self: SqliteIndex, op: object) -> object:
        raise StoreUnavailable("INSERT INTO secret failed: no space", reason="disk full")

    monkeypatch.setattr(SqliteIndex, "run", full)
    _, text = made("40_store_failure").make()
    store = open_store(spool="")
    envelope = store.session("s").offload(text, tool="history")
    assert isinstance(envelope, Envelope)
    assert envelope.handle is None
    assert 'stored="false"' in envelope
    assert "disk full" in envelope
    assert "LATEST: worker finished ok" in envelope
    assert "turn 0: worker" in envelope
    assert "res_" not in envelope
    assert "INSERT" not in envelope
    assert len(envelope) <= REFUSED_CHARS + ENVELOPE_CHARS


def test_case_43_no_python_value_is_refused(session: Session) -> None:
    module = made("43_python_objects")
    value = module.make()
    handle = session.put(value, tool="query")
    strict = json.loads(walked(session, handle.id), parse_constant=pytest.fail)
    assert strict["rows"][0]["dec"] == "0.10000000000000000000001"
    assert strict["rows"][0]["nan"] is None
    assert strict["rows"][0]["bytes"] == {"$base64": "AP+F"}
    back = session.load(handle.id)
    for key in (
        "dec",
        "dt",
        "uuid",
        "bytes",
        "set",
        "tuple",
        "row",
        "enum",
        "nt",
        "cplx",
        ("a", 1),
    ):
        was, now = value["rows"][0][key], back["rows"][0][key]
        assert (type(now), now) == (type(was), was)
    assert back["cycle"]["self"] is back["cycle"]
    assert next(value["iter"]) == 0, "a generator inside a value is not consumed"


def test_case_48_stored_text_is_framed_and_cannot_leave_its_frame(session: Session) -> None:
    text = (INPUTS / "48_injection.txt").read_text()
    handle = session.put(text, tool="fetch")
    shown = [str(handle), *map(str, pages(session, handle.id))]
    shown.append(str(session.search(handle.id, "(?i)result|ignore|system", context=2)))
    for rendered, tag in zip(shown, ["result", *["page"] * (len(shown) - 2), "hits"], strict=True):
        assert len(re.findall(rf"(?i)<\s*/\s*{tag}\b", rendered)) == 1
        other = {"result", "page", "hits"} - {tag}
        assert not re.search(rf"(?i)<\s*/?\s*(?:{'|'.join(other)})\b", rendered)
    for named in set(re.findall(r"res_[a-z0-9_]+", text)):
        with pytest.raises(UnknownHandle):
            session.read(named)
    assert session.load(handle.id) == text


def test_case_49_what_is_stored_is_private_and_may_be_redacted_first(tmp_path: Path) -> None:
    text = made("49_secrets_at_rest").make()
    before = os.umask(0o022)
    try:
        plain = ResultStore(tmp_path / "plain").session("s")
        plain_id = plain.put(text, tool="env").id
        plain.put(os.urandom(200_000), tool="blob")
    finally:
        os.umask(before)
    found = [tmp_path / "plain", *(tmp_path / "plain").rglob("*")]
    assert len(found) > 3
    for path in found:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    assert plain.load(plain_id) == text

    def redact(part: str) -> str:
        return part.replace("hunter2-not-real", "***")

    kept = ResultStore(tmp_path / "redacted", redact=redact).session("s")
    id = kept.put(text, tool="env").id
    assert kept.search(id, "hunter2").total == 0
    assert kept.load(id).endswith('key = os.getenv("SOME_API_KEY")\n')


def test_case_52_the_rule_of_a_tool_wins(open_store: Callable[..., ResultStore]) -> None:
    calls = made("52_per_tool_policy").make()
    rules = {tool: rule for tool, (rule, _) in calls.items() if rule is not None}
    session = open_store(tools=rules).session("s")
    offloaded = {
        tool: isinstance(session.offload(text, tool=tool), Envelope)
        for tool, (_, text) in calls.items()
    }
    assert offloaded == {"search_data": True, "read_note": False, "other": False, "default": True}


def test_case_55_bytes_that_are_no_utf8_are_kept_and_marked(session: Session) -> None:
    raw = (INPUTS / "55_non_utf8.bin").read_bytes()
    handle = session.put(raw, tool="cat")
    assert session.load(handle.id) == raw
    assert handle.shape.marked == 3
    text = walked(session, handle.id)
    assert text.count("\ufffd") == 3
    assert text.splitlines()[-1] == raw.splitlines()[-1].decode()


def test_case_55_an_envelope_with_a_byte_that_is_no_utf8_is_still_opened(session: Session) -> None:
    lines = "".join(f"[{n}] caf\xe9\\n" for n in range(5_000))
    raw = f'{{"stdout": "{lines}", "exit_code": 3}}'.encode("latin-1")
    handle = session.put(raw, tool="run")
    assert session.load(handle.id) == raw
    assert session.read(handle.id, start=2_501, limit=1).text == "[2500] caf\ufffd\n"
    assert session.get(handle.id, "exit_code").value == 3


HALF = json.dumps("cut within an emoji \ud83d")
ROWS = ", ".join(f'{{"n": {n}, "said": {HALF}}}' for n in range(200))


@pytest.mark.parametrize(
    ("text", "kind", "records"),
    [
        (f'{{"title": {HALF}, "rows": [{ROWS}]}}', "rows", 200),
        (ROWS.replace("}, ", "}\n"), "rows", 200),
        (json.dumps(f"[{ROWS}]"), "rows", 200),
        (
            f'{{"n": [{", ".join(map(str, range(200)))}], "said": [{", ".join([HALF] * 200)}]}}',
            "rows",
            200,
        ),
        (f"[{', '.join([HALF] * 200)}]", "document", 200),
        (f'{{"title": "a title", "said": {HALF}, "more": {{"n": 1}}}}', "document", None),
    ],
    ids=["in a document", "a line each", "encoded twice", "columns", "texts", "a document"],
)
def test_case_43_json_with_half_of_a_pair_of_surrogates_is_json(
    session: Session, text: str, kind: str, records: int | None
) -> None:
    handle = session.put(text, tool="t")
    assert (handle.kind, handle.shape.records) == (kind, records)
    assert session.load(handle.id) == text
    assert "\ud83d" not in str(handle)
    if records and kind == "rows":
        assert session.query(handle.id, "n >= 150", limit=0).total == 50
        assert session.get(handle.id, 8).value["n"] == 7
        assert len(session.frame(handle.id)) == records
    if records is None:
        assert session.get(handle.id, "said").value.startswith("cut within")
    for tool in session.tools():
        wanted = {"result_id": handle.id, "pattern": "cut", "key": "said", "where": "n < 2"}
        given = {name: wanted[name] for name in tool.parameters["properties"] if name in wanted}
        tool.call(**given).encode()


def test_case_07_an_envelope_cut_within_an_emoji_is_read_as_its_lines(session: Session) -> None:
    text = json.dumps(
        {"stdout": "".join(f"[{n}] ok\n" for n in range(5_000)) + "\ud83d", "exit_code": 3}
    )
    handle = session.put(text, tool="run")
    assert session.read(handle.id, start=2_501, limit=1).text == "[2500] ok\n"
    assert session.get(handle.id, "exit_code").value == 3


STREAM = """
import importlib.util, pathlib, sys
from callslip import ResultStore

def status(field):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024

spec = importlib.util.spec_from_file_location("big", sys.argv[1])
big = importlib.util.module_from_spec(spec); spec.loader.exec_module(big)
session = ResultStore(sys.argv[2]).session("s")
session.put("warm " * 20_000, tool="warm")
pathlib.Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS:")
handle = session.put(big.make(), tool="stream")
stored = status("VmHWM:")
page = session.read(handle.id, start=100_000)
print(handle.size, stored - before, status("VmHWM:") - stored, page.text[:3])
"""


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peak memory is read in /proc"
)
def test_case_60_a_stream_of_200_mb_is_stored_in_little_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STREAM, str(INPUTS / "60_big_stream.py"), str(tmp_path / "s")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    size, grown, page_grown, text = done.stdout.split()
    assert int(size) == 200 * 1024 * 1024
    assert int(grown) < 50e6
    assert int(page_grown) < 20e6
    assert text == "xxx"
