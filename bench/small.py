"""Costs that every program pays, offloading or not: the import, and a small result that stays."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

MODULES = {
    "callslip": "callslip",
    "Agno": "agno.offload.store",
    "Strands": "strands.vended_plugins.context_offloader",
    "Haystack": "haystack.hooks.tool_result_offloading",
    "deepagents": "deepagents.backends",
    "ctxtual": "ctxtual",
}
_TIMED = "from time import perf_counter as p; a = p(); import {}; print(p() - a)"


def import_seconds(module: str, rounds: int = 5) -> float:
    """Median time of an import in a fresh process, after one that warms the disk cache."""
    command = [sys.executable, "-c", _TIMED.format(module)]
    times = [
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for _ in range(rounds + 1)
    ]
    return median(times[1:])


def per_call(function: Callable[[], Any], calls: int = 20_000, rounds: int = 5) -> float:
    """Seconds of one call: the median of five rounds."""
    times = []
    for _ in range(rounds):
        start = perf_counter()
        for _ in range(calls):
            function()
        times.append((perf_counter() - start) / calls)
    return median(times)


def wrapped_cost() -> dict[str, float]:
    """What `session.offloaded` adds to a tool whose result stays in the window, in seconds."""
    from callslip import ResultStore

    results = {
        "a 200-character text": "x" * 200,
        "a 10,000-character text": "x" * 10_000,
        "a dict of 5 fields": {"id": 7, "name": "a", "tags": ["b", "c"], "ok": True, "at": 1.5},
    }
    cost = {}
    with tempfile.TemporaryDirectory(prefix="callslip-bench-") as folder:
        session = ResultStore(folder).session("bench")
        for name, result in results.items():

            def tool(result: Any = result) -> Any:
                return result

            cost[name] = per_call(session.offloaded(tool)) - per_call(tool)
    return cost


def report() -> str:
    lines = ["### Paid by everybody", "", "| | |", "|---|---|"]
    for name, module in MODULES.items():
        if importlib.util.find_spec(module.split(".")[0]):
            lines.append(
                f"| `import {module}` ({name}) | {import_seconds(module) * 1000:,.0f} ms |"
            )
    for name, seconds in wrapped_cost().items():
        lines.append(f"| a wrapped tool that returns {name} | + {seconds * 1e6:.1f} µs |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(report())
