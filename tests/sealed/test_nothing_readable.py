"""Without the key nothing readable is on disk: every file that a store makes is searched for what
was put in, in the forms that it might be found in."""

from __future__ import annotations

import base64
import os
import secrets
import tempfile
import threading
from pathlib import Path
from typing import Self

import pytest

from callslip import ResultStore
from callslip.patterns.memory import Memory
from callslip.patterns.scratchpad import Scratchpad
from callslip.stacks.auditops import Audited
from callslip.stacks.fileops import View
from callslip.stacks.index.sealed.master import new_key_file
from callslip.stacks.ops import Insert, ListObjects, ReadObject
from callslip.stacks.payloads import open_payloads
from callslip.testing.faults import FaultyBackend
from tests.servers.postgres import Postgres
from tests.servers.s3 import Moto

WORDS = {
    "tool": "zebratool",
    "argument": "quaggaargument",
    "content": "okapicontent",
    "small content": "tapirsmall",
    "field": "ibexfield",
    "value": "kuduvalue",
    "status": "gnustatus",
    "preview": "elandpreview",
    "file path": "oryxpath",
    "file text": "nyalatext",
    "run": "bongorun",
    "fact": "dikdikfact",
    "fact's key": "serowkey",
    "fact's kind": "takinkind",
    "fact's source": "gaursource",
    "metadata": "banteng",
    "metadata's value": "markhor",
    "history": "urialpast",
    "tenant": "acmetenant",
    "user": "anauser@example.com",
    "session": "sessionname",
    "subject": "patientsubject",
    "spooled": "wisentspooled",
    "tombstone": "addaxgone",
    "reason": "saigareason",
    "actor": "argaliactor",
}


def forms(word: str) -> dict[str, bytes]:
    """A word as it might be found. Of base64 the three ways it may begin, without their edges."""
    raw = word.encode()
    found = {"utf-8": raw, "utf-16": word.encode("utf-16-le"), "hex": raw.hex().encode()}
    for skip in range(3):
        whole = base64.b64encode(b"\0" * skip + raw)
        found[f"base64+{skip}"] = whole[4 if skip else 0 : len(whole) // 4 * 4 - 4]
    return found


def leaks(data: bytes) -> list[str]:
    low = data.lower()
    return [
        f"{what} as {form}"
        for what, word in WORDS.items()
        for form, sign in forms(word).items()
        if (low.find(sign.lower()) if form in ("utf-8", "hex") else data.find(sign)) >= 0
    ]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


class Watch:
    """Keeps what is in the files of some folders while something is done, also what goes again."""

    def __init__(self, *folders: Path) -> None:
        self.folders = folders
        self.seen: dict[str, bytes] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def look(self) -> None:
        for folder in self.folders:
            # `walk` passes over a folder that goes while it looks; `rglob` fails.
            for path in (Path(at, name) for at, _, names in os.walk(folder) for name in names):
                try:
                    if path.is_file():
                        data = path.read_bytes()
                        self.seen[f"{path}"] = data
                        found = leaks(data)
                        assert not found, f"{path}: {found}"
                except FileNotFoundError:
                    continue

    def _watch(self) -> None:
        self.failure: BaseException | None = None
        while not self._done.wait(0.1):
            try:
                self.look()
            except (AssertionError, OSError) as error:
                self.failure = error
                return

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure
        self.look()


def use(store: ResultStore) -> None:
    """Put every word somewhere, by every verb that writes."""
    scope = {"user": WORDS["user"], "tenant": WORDS["tenant"]}
    session = store.session(WORDS["session"], **scope)
    # Too much, and too unlike, for a row of the index.
    big = "".join(f"{WORDS['content']} {secrets.token_hex(8)}\n" for _ in range(20_000))
    handle = session.put(big, tool=WORDS["tool"], args={"q": WORDS["argument"]})
    session.put(
        WORDS["small content"],
        tool=WORDS["tool"],
        status=WORDS["status"],
        preview=lambda value: WORDS["preview"],
        subject=WORDS["subject"],
    )
    rows = [{WORDS["field"]: f"{WORDS['value']} {n}", "n": n} for n in range(20_000)]
    table = session.put(rows, tool=WORDS["tool"])
    stream = (f"{WORDS['content']} {secrets.token_hex(8)}\n" for _ in range(20_000))
    session.put(stream, tool=WORDS["tool"])
    assert session.read(handle.id).text.startswith(WORDS["content"])
    assert session.search(handle.id, WORDS["content"]).total > 0
    query = session.query(table.id, where=f"{WORDS['field']} = '{WORDS['value']} 7'")
    assert query.total == 1
    session.sql(f"select {WORDS['field']}, count(*) from {table.id} group by 1 order by 1")
    gone = session.put(WORDS["tombstone"] * 900, tool=WORDS["tombstone"], args=WORDS["tombstone"])
    session.delete(gone.id)

    pad = Scratchpad(session, view=View(line=WORDS["run"], step=WORDS["run"]))
    pad.write_file(f"{WORDS['file path']}.md", WORDS["file text"])
    pad.write_file(
        f"{WORDS['file path']}/long.md", big.replace(WORDS["content"], WORDS["file text"])
    )

    memory = Memory(store, (WORDS["tenant"], WORDS["user"]))
    memory.remember(WORDS["history"], key=WORDS["fact's key"])
    memory.remember(
        f"{WORDS['fact']} is so",
        key=WORDS["fact's key"],
        kind=WORDS["fact's kind"],
        source=WORDS["fact's source"],
        metadata={WORDS["metadata"]: WORDS["metadata's value"]},
    )
    assert memory.recall(WORDS["fact"]).facts
    store.hold(tenant=WORDS["tenant"], user=WORDS["user"], reason=WORDS["reason"])
    store.acting(WORDS["actor"]).release(tenant=WORDS["tenant"], user=WORDS["user"])
    share = session.share(handle.id, user=WORDS["user"])
    assert share

    session.offload(f"{WORDS['content']} again " * 9_000, tool=WORDS["tool"])
    backend = store._backend
    whole = backend.index
    backend.index = FaultyBackend(whole, only=(Insert, Audited), times=None)
    spooled = big.replace(WORDS["content"], WORDS["spooled"])
    envelope = session.offload(spooled, tool=WORDS["spooled"])
    assert envelope.handle is None, "the store is away"
    backend.index = whole


@pytest.fixture
def key(tmp_path: Path) -> str:
    new_key_file(tmp_path / "key")
    return str(tmp_path / "key")


def test_no_file_of_a_sealed_store_holds_what_was_put_in(
    tmp_path: Path, temporary: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / "store", tmp_path / "spool", temporary]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    store = ResultStore(
        tmp_path / "store", keys=key, spool=tmp_path / "spool", audit=True, ttl_seconds=3600
    )
    with Watch(*folders) as watch:
        use(store)
        watch.look()  # with the connections open: the log has not gone into the database yet
        assert any(name.endswith("-wal") for name in watch.seen)
        assert any("spool" in name and name.endswith(".db") for name in watch.seen)
        store.gc()
        assert {entry.tool for entry in store.audit()} >= {WORDS["tool"]}
        assert store.verify().ok
        store.backup(tmp_path / "store" / "backup")
        store.close()


def test_the_search_finds_what_is_in_the_clear(tmp_path: Path, temporary: Path) -> None:
    """The test above must be able to fail: without keys nearly every word is found."""
    store = ResultStore(tmp_path / "store", spool="", audit=True)
    session = store.session(WORDS["session"], user=WORDS["user"], tenant=WORDS["tenant"])
    session.put(WORDS["small content"], tool=WORDS["tool"], args={"q": WORDS["argument"]})
    store.close()
    left = b"".join(p.read_bytes() for p in (tmp_path / "store").rglob("*") if p.is_file())
    found = {each.split(" as ")[0] for each in leaks(left)}
    assert found >= {"tool", "argument", "small content", "tenant", "user", "session"}
    for form, sign in forms("zebratool").items():
        if form.startswith("base64"):
            skip = int(form[-1])
            assert sign in base64.b64encode(b"x" * skip + b"zebratool, and more"), form


def test_no_table_and_no_object_of_a_sealed_store_holds_what_was_put_in(
    tmp_path: Path, temporary: Path, key: str, postgres: Postgres, s3: Moto
) -> None:
    url = postgres.new_database()  # as a superuser, whom no row-level security stops
    store = ResultStore(
        url, payloads=s3.url("sealed"), keys=key, spool=tmp_path / "spool", audit=True
    )
    use(store)
    assert store.verify().ok
    tables = postgres.sql(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'callslip'", url
    )
    found: dict[str, list[str]] = {}
    rows = 0
    for (table,) in tables:
        for row in postgres.sql(f"SELECT t.* FROM callslip.{table} t", url):
            rows += 1
            for value in row:
                data = value if isinstance(value, bytes) else str(value).encode()
                found.setdefault(table, []).extend(leaks(data))
    objects = open_payloads(s3.url("sealed"))
    listed = objects.run(ListObjects(None, 1000))
    for name, size, _ in listed:
        found[name] = leaks(name.encode()) + leaks(objects.run(ReadObject(name, 0, size)))
    assert {where: what for where, what in found.items() if what} == {}
    assert rows > 30 and len(listed) >= 3
    store.close()
