"""An agent answers questions about four long outputs; then, what its window held.

Run it with `make demo` or `python -m demo`. Exits with 1 if an answer is wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from callslip import ResultStore
from demo.agent import both
from demo.outputs import made
from demo.questions import Question, asked
from demo.show import Screen, parts_of


def main(
    words: Sequence[str] | None = None,
    questions_in: Callable[[Path], Sequence[Question]] = lambda folder: asked(made(folder)),
) -> int:
    """The whole demo; 0 if every answer is right."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.parse_args(words)
    started = time.monotonic()
    if hasattr(sys.stdout, "reconfigure"):
        # A terminal that lacks a sign shows another instead of ending the demo.
        sys.stdout.reconfigure(errors="replace")
    screen = Screen(Console())
    screen.opening()
    with tempfile.TemporaryDirectory(prefix="callslip-demo-") as folder:
        questions = questions_in(Path(folder))
        store = ResultStore(Path(folder) / "store", tools={"pip_list": "preview"}, spool="")
        offloaded, plain, right = both(questions, store.session("demo"), screen)
        store.close()
    parts = parts_of(questions, offloaded, plain)
    screen.seen_by_a_model(offloaded, parts[-1])
    screen.table(parts)
    screen.chart(parts, offloaded, plain)
    screen.sums(parts, offloaded, plain)
    screen.end(right, time.monotonic() - started)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
