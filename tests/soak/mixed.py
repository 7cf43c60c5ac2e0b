"""One worker of many on a store whose servers are restarted: mixed operations, and what it was told.

    python -m tests.soak.mixed DSN PAYLOADS SPOOL NAME FOLDER --operations 500 | --seconds 1800

Writes into FOLDER what it may be held to: `NAME.acks` (`kept`, `spooled` or `gone`, each line
written after the call returned, but `gone` before it is asked for), and `NAME.json` with what each
operation took. Ends with an error where something was wrong, and not where a server was away.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from callslip import Envelope, ResultStore, StoreUnavailable

LINES = (40, 900, 9_000)
"""In the index row (twice), or an object."""

MIX = {"put": 5, "offload": 5, "page": 12, "search": 5, "query": 4, "load": 3, "list": 2}
MIX |= {"delete": 1}


def text_of(seed: int) -> str:
    dice = random.Random(seed)
    lines = range(dice.choice(LINES))
    return "".join(f"{seed} {dice.getrandbits(64):016x} line {n}\n" for n in lines)


def rows_of(seed: int) -> list[dict[str, int]]:
    return [{"id": n, "seed": seed, "v": n * 7919 % 1009} for n in range(2_000)]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Worker:
    """What it has stored, and what it does next."""

    def __init__(self, store: ResultStore, name: str, folder: Path, first: int) -> None:
        self.session = store.session(name)
        self.dice = random.Random(first)
        self.first = first
        self.n = 0
        self.texts: dict[str, str] = {}
        self.rows = ""
        self.waits: dict[str, list[float]] = defaultdict(list)
        self.away: dict[str, list[float]] = defaultdict(list)
        self.acks = os.open(folder / f"{name}.acks", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def tell(self, *words: str) -> None:
        os.write(self.acks, (" ".join(words) + "\n").encode())

    def insist(self, kind: str, work: Callable[[], object]) -> object:
        """Do it until the store takes it; each try is timed."""
        until = time.monotonic() + 120
        while True:
            began = time.perf_counter()
            try:
                answer = work()
            except StoreUnavailable:
                self.away[kind].append(time.perf_counter() - began)
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)
            else:
                self.waits[kind].append(time.perf_counter() - began)
                return answer

    def step(self) -> None:
        self.n += 1
        kinds = list(MIX) if self.texts else ["put"]
        kind = self.dice.choices(kinds, [MIX[k] for k in kinds])[0]
        getattr(self, f"do_{kind}")()

    def _new(self) -> tuple[str, str]:
        # Some contents are common to all workers: payloads are shared, released, fought over.
        seed = self.n % 50 if self.dice.random() < 0.3 else self.first + self.n
        return text_of(seed), f"call {self.n}"

    def _one(self) -> tuple[str, str]:
        return self.dice.choice(list(self.texts.items()))

    def do_put(self) -> None:
        text, call = self._new()
        value = (lambda: iter(text.splitlines(keepends=True))) if self.n % 3 else (lambda: text)
        handle = self.insist("put", lambda: self.session.put(value(), tool="t", call_id=call))
        self.texts[handle.id] = text  # type: ignore[attr-defined]
        self.tell("kept", handle.id, digest(text))  # type: ignore[attr-defined]

    def do_offload(self) -> None:
        text, call = self._new()
        began = time.perf_counter()
        shown = self.session.offload(text, tool="t", call_id=call)
        took = time.perf_counter() - began
        if not isinstance(shown, Envelope):
            assert shown == text
            return
        stored = shown.handle is not None
        (self.waits if stored else self.away)["offload"].append(took)
        if stored:
            self.texts[shown.handle.id] = text
            self.tell("kept", shown.handle.id, digest(text))
        else:
            assert len(shown) < 6_000
            self.tell("spooled", digest(text))

    def do_page(self) -> None:
        id, text = self._one()
        lines = text.splitlines(keepends=True)
        start = self.dice.randrange(len(lines)) + 1
        page = self.insist("page", lambda: self.session.read(id, start=start, limit=3))
        assert page.text == "".join(lines[start - 1 : start + 2]), id  # type: ignore[attr-defined]

    def do_search(self) -> None:
        id, text = self._one()
        line = self.dice.choice(text.splitlines())
        hits = self.insist("search", lambda: self.session.search(id, line.split()[1]))
        assert hits.total == 1, id  # type: ignore[attr-defined]

    def do_query(self) -> None:
        if not self.rows:
            rows = rows_of(self.first)
            handle = self.insist("put", lambda: self.session.put(rows, tool="rows"))
            self.rows = handle.id  # type: ignore[attr-defined]
        least = self.dice.randrange(1009)
        found = self.insist("query", lambda: self.session.query(self.rows, where=f"v >= {least}"))
        expected = sum(row["v"] >= least for row in rows_of(self.first))
        assert found.total == expected  # type: ignore[attr-defined]

    def do_load(self) -> None:
        id, text = self._one()
        assert self.insist("load", lambda: self.session.load(id)) == text, id

    def do_list(self) -> None:
        listed = self.insist("list", self.session.list)
        assert listed.total >= len(self.texts)  # type: ignore[attr-defined]

    def do_delete(self) -> None:
        if len(self.texts) < 5:
            return
        id, _ = self._one()
        del self.texts[id]
        self.tell("gone", id)
        self.insist("delete", lambda: self.session.delete(id))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dsn")
    parser.add_argument("payloads")
    parser.add_argument("spool")
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--operations", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.0)
    given = parser.parse_args()
    store = ResultStore(given.dsn, payloads=given.payloads, spool=given.spool)
    worker = Worker(store, given.name, given.folder, given.first)
    until = time.monotonic() + given.seconds
    while worker.n < given.operations or time.monotonic() < until:
        worker.step()
        if worker.n % 25 == 0:
            (given.folder / f"{given.name}.done").write_text(str(worker.n))
    found = {"waits": worker.waits, "away": worker.away}
    (given.folder / f"{given.name}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
