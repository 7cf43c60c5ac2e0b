"""JSON rows in one line, stored: put, a record in the middle, a selective filter; peers beside it.

python -m bench.structured 7.9 10 100      sizes in megabytes; peers that are not there are left out

Each cell is a process of its own. The rows are those of `bench.query`, of some 260 bytes. What was
put is asked by a second process that has asked another result before: so a first figure includes
finding the row, decompressing and decoding what is named, and no import.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from bench.measure import give_back, peak, reset_peak, resident
from bench.query import WHERE, rows

ROUNDS = 5
Action = Callable[[], Any]


def one_line(records: list[bytes]) -> str:
    return "[" + ", ".join(record.decode() for record in records) + "]"


def timed(
    action: Action, rounds: int, before: Callable[[int], None] | None = None
) -> dict[str, Any]:
    """Milliseconds of the first call and the median of the others; memory of the first in MB."""
    times: list[float] = []
    extra, answer = 0, None
    for number in range(rounds + 1):
        if before is not None:
            before(number)
        if number == 0:
            give_back()
            reset_peak()
            held = resident()
        start = perf_counter()
        answer = action()
        times.append((perf_counter() - start) * 1000)
        if number == 0:
            extra = max(0, peak() - held)
    return {"first": times[0], "then": median(times[1:]), "memory": extra / 1e6, "answer": answer}


# --- callslip -------------------------------------------------------------------------------------


def _session(folder: Path) -> Any:
    from callslip import ResultStore

    return ResultStore(folder / "store").session("bench")


def callslip_put(records: list[bytes], folder: Path, *, text: bool = False) -> dict[str, Any]:
    """As rows, or with another first character: then the same bytes are a text."""
    session = _session(folder)
    session.put("warm " * 9_000)
    given = {"value": ""}

    def fresh(number: int) -> None:
        # Equal content is stored once: each round differs in its last record.
        last = json.dumps({"id": number, "status": "ok", "amount": 0.5}).encode()
        whole = one_line([*records, last])
        given["value"] = "#" + whole[1:] if text else whole

    found = timed(lambda: session.put(given["value"], tool="rows").id, ROUNDS, fresh)
    if not text:
        assert session.handle(found["answer"]).shape.records == len(records) + 1
    return found


def callslip_text(records: list[bytes], folder: Path) -> dict[str, Any]:
    return callslip_put(records, folder, text=True)


def callslip_stored(records: list[bytes], folder: Path) -> str:
    return str(_session(folder).put(one_line(records), tool="rows").id)


def _opened(folder: Path) -> Any:
    """A session whose process has its imports, its connections and its first query behind it."""
    session = _session(folder)
    small = session.put([{"a": n, "b": f"{n * 7919}" * 9} for n in range(9_000)], tool="warm").id
    session.query(small, "a > 1")
    session.get(small, 5_000)
    return session


def callslip_record(records: list[bytes], folder: Path, id: str) -> dict[str, Any]:
    session, place = _opened(folder), {"n": len(records) // 2}

    def action() -> Any:
        place["n"] += 997  # another chunk each time
        return session.get(id, place["n"])

    found = timed(action, ROUNDS)
    assert found.pop("answer").text.encode() == records[place["n"] - 1]
    return found


def callslip_filter(records: list[bytes], folder: Path, id: str) -> dict[str, Any]:
    session = _opened(folder)
    found = timed(lambda: session.query(id, WHERE), ROUNDS)
    found["answer"] = found["answer"].total
    return found


# --- the others -----------------------------------------------------------------------------------


def duckdb_put(records: list[bytes], folder: Path) -> None:
    (folder / "rows.ndjson").write_bytes(b"\n".join(records) + b"\n")


def duckdb_filter(records: list[bytes], folder: Path, _id: str) -> dict[str, Any]:
    import duckdb

    connection = duckdb.connect(config={"threads": "2"})
    connection.execute("select 1").fetchall()
    of = f"from read_json('{folder / 'rows.ndjson'}') where {WHERE}"

    def action() -> int:
        connection.execute(f"select * {of} limit 8").fetchall()
        return int(connection.execute(f"select count(*) {of}").fetchall()[0][0])

    return timed(action, ROUNDS)


def _ctxtual(memory: bool, records: list[bytes], folder: Path, what: str) -> dict[str, Any]:
    from ctxtual import Ctx, MemoryStore, SQLiteStore
    from ctxtual.utils import pipeline

    ctx = Ctx(store=MemoryStore() if memory else SQLiteStore(folder / "ctxtual.db"))
    pipeline(ctx, name="rows")
    values = [json.loads(row) for row in records]
    rounds = 1 if len(records) > 100_000 else ROUNDS
    if what == "put":
        return timed(
            lambda: ctx.store_workspace(values, workspace_type="rows").workspace_id, rounds
        )
    id = ctx.store_workspace(values, workspace_type="rows").workspace_id
    if what == "record":
        steps: list[Any] = [{"skip": len(records) // 2}, {"limit": 1}]
    else:
        steps = [{"filter": {"status": "failed", "amount": {"$gt": 990}}}, {"count": True}]

    def action() -> Any:
        return ctx.dispatch_tool_call("rows_pipe", {"workspace_id": id, "steps": steps})

    found = timed(action, rounds)
    answer = found.pop("answer")
    if isinstance(answer, dict) and "error" in answer:
        raise SystemExit(str(answer["error"])[:80])
    if what == "filter":
        found["answer"] = answer["count"]
    return found


def _agno(records: list[bytes], folder: Path, what: str) -> dict[str, Any]:
    """One row a line, because it searches by line; its regex says less than the condition does."""
    from bench.peers import Refused, open_peer

    peer = open_peer("agno", folder)
    text = b"\n".join(records).decode()
    try:
        if what == "put":
            return timed(lambda: peer.put(text), ROUNDS)
        id = peer.put(text)
    except Refused as error:
        raise SystemExit(str(error)) from error
    if what == "record":
        return timed(lambda: peer.page(id, len(records) // 2), ROUNDS)
    pattern = r'"status": "failed", "amount": 99[0-9]'
    found = timed(lambda: peer.search(id, pattern, regex=True), ROUNDS)
    found["answer"] = f"{found['answer'].count(chr(10)) + 1}, stops at 20"
    return found


CELLS: dict[str, dict[str, Any]] = {
    "callslip": {"put": callslip_put, "record": callslip_record, "filter": callslip_filter},
    "callslip, as text": {"put": callslip_text},
    "DuckDB, NDJSON file": {"filter": duckdb_filter},
    "ctxtual, memory": {w: (True, w) for w in ("put", "record", "filter")},
    "ctxtual, SQLite": {w: (False, w) for w in ("put", "record", "filter")},
    "Agno, regex": {w: w for w in ("put", "record", "filter")},
}
NEEDS = {"DuckDB": "duckdb", "ctxtual": "ctxtual", "Agno": "agno"}


def one(name: str, what: str, megabytes: float, folder: Path) -> dict[str, Any]:
    records = rows(megabytes)
    cell = CELLS[name][what]
    if name.startswith("ctxtual"):
        return _ctxtual(cell[0], records, folder, what)
    if name.startswith("Agno"):
        return _agno(records, folder, what)
    if what == "put":
        found: dict[str, Any] = cell(records, folder)
        return found
    id = (folder / "id").read_text() if (folder / "id").exists() else ""
    found = cell(records, folder, id)
    return found


def stored(megabytes: float, folder: Path) -> None:
    """What the reading cells of callslip and DuckDB ask."""
    records = rows(megabytes)
    duckdb_put(records, folder)
    (folder / "id").write_text(callslip_stored(records, folder))


def cell(name: str, what: str, size: str, folder: str) -> str:
    command = [sys.executable, "-m", "bench.structured", "--one", name, what, size, folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return f"| {size} MB | {what} | {name} | {said[:60]} | | | |"
    f = json.loads(done.stdout)
    answer = f["answer"] if what == "filter" else ""
    figures = f"{f['first']:,.1f} | {f['then']:,.1f} | {f['memory']:,.0f} | {answer}"
    return f"| {size} MB | {what} | {name} | {figures} |"


def main() -> None:
    """Print a Markdown table."""
    if sys.argv[1:2] == ["--one"]:
        name, what, size, folder = sys.argv[2:]
        if what == "store":
            stored(float(size), Path(folder))
        else:
            found = one(name, what, float(size), Path(folder))
            print(json.dumps(found | {"answer": found.get("answer")}))
        return
    print("| rows | what | contestant | first, ms | then, ms | memory, MB | matches |")
    print("|---|---|---|---|---|---|---|")
    for size in sys.argv[1:] or ["7.9", "10", "100"]:
        with tempfile.TemporaryDirectory(prefix="callslip-bench-") as folder:
            command = [sys.executable, "-m", "bench.structured", "--one", "", "store", size, folder]
            subprocess.run(command, check=True)
            for what in ("put", "record", "filter"):
                for name, cells in CELLS.items():
                    needed = NEEDS.get(name.partition(",")[0])
                    if what not in cells or (needed and not importlib.util.find_spec(needed)):
                        continue
                    with tempfile.TemporaryDirectory(prefix="callslip-bench-") as own:
                        shared = what != "put" and name in ("callslip", "DuckDB, NDJSON file")
                        print(cell(name, what, size, folder if shared else own), flush=True)


if __name__ == "__main__":
    main()
