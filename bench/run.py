"""All contestants over all sizes, in one run; Markdown tables on stdout.

python -m bench.run [--sizes 7.9MB,10MB] [--peers callslip,agno] [--out bench/results]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from bench import small, texts
from bench.peers import NAMES

OPERATIONS = ("page", "rare", "common", "regex")
OURS_ALONE = ("1GB",)
"""Sizes that only callslip is asked for."""
LIMIT_SECONDS = 600

Cell = dict[str, Any]


def ask(*arguments: str) -> Cell:
    """One child process; a crash or a hang is a result too, and is told as one."""
    command = [sys.executable, "-m", "bench.measure", *arguments]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=LIMIT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"no answer in {LIMIT_SECONDS} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return {"failed": last[:160]}
    answer: Cell = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def seconds(value: float) -> str:
    return f"{value * 1000:,.2f} ms" if value < 0.01 else f"{value * 1000:,.0f} ms"


def shown(cell: Cell | None, what: str = "times") -> str:
    if cell is None:
        return "–"
    for key in ("none", "refused", "failed"):
        if key in cell:
            return f"{key}: {cell[key]}"
    if what == "memory":
        return f"{cell['memory'] / 1e6:,.1f} MB"
    value = cell["first"] if what == "first" else median(cell["times"])
    return seconds(value) + (f" ({cell['wrong']})" if "wrong" in cell else "")


def contest(name: str, text: Path, folder: Path) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    large = text.stat().st_size > 500_000_000
    if not large:
        cells["put"] = ask("write", name, str(text), str(folder))
    if name == "callslip":
        cells["stream"] = ask("write", name, str(text), str(folder), "stream")
    stored = cells.get("put", cells.get("stream", {}))
    if "answer" in stored:
        for operation in OPERATIONS:
            cells[operation] = ask(
                "read", name, str(text), str(folder), operation, stored["answer"]
            )
    return cells


def table(size: str, results: dict[str, dict[str, Cell]]) -> str:
    heads = [
        "",
        "put",
        "page, first",
        "page",
        "rare",
        "common",
        "regex",
        "memory: put",
        "page",
        "rare",
    ]
    lines = [f"### {size}", "", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for name, cells in results.items():
        rows = [("", cells.get("put"))]
        if "stream" in cells:
            rows.append((", streamed in", cells["stream"]))
        for suffix, put in rows:
            if put is None:
                continue
            again = not suffix or "put" not in cells
            some = cells if again else {}
            row = [
                put.get("label", name) + suffix,
                shown(put),
                shown(some.get("page"), "first"),
                *(shown(some.get(operation)) for operation in OPERATIONS),
                shown(put, "memory"),
                shown(some.get("page"), "memory"),
                shown(some.get("rare"), "memory"),
            ]
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def about(results: dict[str, dict[str, dict[str, Cell]]]) -> str:
    lines = [
        "# Measured against peers",
        "",
        (
            f"CPython {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}, one run; "
            "median of 5, first call apart; how, and what the columns mean: `bench/README.md`."
        ),
        "",
    ]
    said: set[str] = set()
    for by_peer in results.values():
        for cells in by_peer.values():
            for cell in cells.values():
                if "notes" in cell and cell["label"] not in said:
                    said.add(cell["label"])
                    lines.append(f"- **{cell['label']}**: " + " ".join(cell["notes"]))
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1MB,7.9MB,10MB,100MB,1GB")
    parser.add_argument("--peers", default=",".join(NAMES))
    parser.add_argument("--out", default="bench/results")
    options = parser.parse_args()
    # Tools that came with the packages (rg) are found by peers that look for them.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ |= {"AGNO_TELEMETRY": "false", "HAYSTACK_TELEMETRY_ENABLED": "False"}
    if importlib.util.find_spec("callslip") is None:
        raise SystemExit("callslip is not installed here; use `make bench`")

    results: dict[str, dict[str, dict[str, Cell]]] = {}
    work = Path(tempfile.mkdtemp(prefix="callslip-bench-"))
    try:
        for size in options.sizes.replace(" ", ",").split(","):
            text = work / f"{size}.txt"
            texts.make(text, texts.SIZES[size])
            results[size] = {}
            for name in options.peers.replace(" ", ",").split(","):
                if size in OURS_ALONE and name != "callslip":
                    continue
                print(f"{size}: {name} …", file=sys.stderr, flush=True)
                folder = work / name
                folder.mkdir()
                results[size][name] = contest(name, text, folder)
                shutil.rmtree(folder)
            text.unlink()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    report = about(results) + "\n" + "\n".join(table(s, r) for s, r in results.items())
    if "callslip" in options.peers:
        report += "\n" + small.report()
    Path(options.out + ".json").write_text(json.dumps(results, indent=1) + "\n")
    Path(options.out + ".md").write_text(report)
    print(report)


if __name__ == "__main__":
    main()
