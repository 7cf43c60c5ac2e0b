"""No library at all: a file, a scan to the line, and ripgrep (or grep) beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
from itertools import count, islice
from pathlib import Path

from bench.peers import PAGE_LINES, NotOffered

_RG = shutil.which("rg")
_GREP = shutil.which("grep")


class Plain:
    label = f"plain file, {'rg' if _RG else 'grep' if _GREP else 'no grep'}"
    notes = (
        "put writes the file and calls fsync; a page reads lines from the start up to it.",
        (
            "search is a new process of rg (or of grep, where rg is missing) that prints every match "
            "with its line number; its start is in the figure."
        ),
    )

    def __init__(self, where: Path) -> None:
        self.where = where / "plain"
        self.where.mkdir(exist_ok=True)
        self.calls = count(1)

    def put(self, text: str) -> str:
        path = self.where / f"call-{os.getpid()}-{next(self.calls)}.txt"
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        return str(path)

    def page(self, id: str, line: int) -> str:
        with open(id, encoding="utf-8", newline="") as file:
            return "".join(islice(file, line - 1, line - 1 + PAGE_LINES))

    def search(self, id: str, pattern: str, *, regex: bool) -> str:
        if _RG:
            command = [_RG, "--no-config", "-n", *([] if regex else ["-F"]), "-e", pattern, id]
        elif _GREP:
            command = [_GREP, "-n", "-P" if regex else "-F", "-e", pattern, id]
        else:
            raise NotOffered("neither rg nor grep")
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def open_peer(where: Path) -> Plain:
    return Plain(where)
