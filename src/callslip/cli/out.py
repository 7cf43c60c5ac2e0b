"""What a command prints: exact in a pipe, harmless and quiet on a terminal.

Data goes to stdout, and whatever is about it (errors, notes, progress) to stderr.
"""

from __future__ import annotations

import errno
import json as jsonlib
import os
import shutil
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import IO, Any

import click

from callslip.handle import Handle

# What moves a terminal's cursor, colours it, types into it, or turns its text around. Control
# characters get their Unicode pictures, the rest a replacement: one character for one.
_HARMLESS = (
    {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
    | {0x7F: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
    | dict.fromkeys(
        [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD
    )
)


class PipeClosed(Exception):
    """Whoever read our output has gone: nothing to say about that."""


class CannotWrite(Exception):
    """Our output cannot be written: the disk under it is full, for one."""


def on_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def watched() -> bool:
    """Whether somebody looks at stderr: then progress may be shown."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def coloured() -> bool:
    """Whether stdout takes colours."""
    return on_terminal() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def harmless(text: str) -> str:
    """`text` without what a terminal would obey."""
    return text.replace("\r\n", "\n").translate(_HARMLESS)


def one_line(text: str) -> str:
    """`text` harmless and on one line, in a pipe too: a newline in a name would break a list."""
    return harmless(text).replace("\n", "␊").replace("\t", "␉")


def stamp(at: float) -> str:
    """A moment, to the second: `2026-12-31T23:59:59Z`."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def fitting(line: str, *, beside: int = 0) -> str:
    """A line no wider than the terminal, with so many columns taken already; whole in a pipe."""
    if not on_terminal():
        return line
    from rich.cells import cell_len, set_cell_size

    width = max(shutil.get_terminal_size().columns - beside, 8)
    line = line.expandtabs(4)
    return line if cell_len(line) <= width else set_cell_size(line, width - 1) + "…"


def style(text: str, **how: Any) -> str:
    """Styled for stdout; as it is where stdout takes no colours."""
    return click.style(text, **how) if coloured() else text


def raw(block: bytes | memoryview) -> None:
    """Exact bytes to stdout."""
    stream = _binary(sys.stdout)
    try:
        view = memoryview(block)
        while view:
            view = view[stream.write(view) or 0 :]
    except BrokenPipeError as error:
        raise PipeClosed from error
    except OSError as error:
        raise CannotWrite(f"stdout: {os_reason(error)}") from error


def text(words: str, *, end: str = "\n") -> None:
    """Text to stdout: UTF-8 and as it is in a pipe, harmless on a terminal."""
    if on_terminal():
        words = harmless(words)
    _write(words if words.endswith("\n") else words + end)


def styled(words: str) -> None:
    """A line of our own, whose parts are harmless already, to stdout."""
    _write(words + "\n")


def json(value: Any) -> None:
    """One JSON document on one line."""
    line = jsonlib.dumps(value, ensure_ascii=False)
    if on_terminal():
        line = "".join(f"\\u{ord(char):04x}" if ord(char) in _HARMLESS else char for char in line)
    _write(line + "\n")


def _write(words: str) -> None:
    sys.stdout.flush()
    raw(words.encode("utf-8", "replace"))


def note(words: str) -> None:
    """A line for a person, on stderr."""
    words = harmless(words)
    if sys.stderr.isatty() and "NO_COLOR" not in os.environ:
        words = click.style(words, dim=True)
    click.echo(words, err=True)


def complain(words: str, status: int) -> int:
    """One line on stderr that says what is wrong and what to do; answers `status`."""
    words = " ".join(harmless(words).split())
    click.echo(f"callslip: {words}", err=True)
    return status


def listen() -> None:
    """Tell the library's warnings as lines of ours, on stderr: no traceback, nothing a terminal
    obeys."""
    import logging

    class Line(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return f"callslip: {one_line(record.getMessage())}"

    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(Line())
    logging.getLogger("callslip").addHandler(handler)


def flush() -> None:
    """Everything printed so far is on its way, or the error is raised here."""
    try:
        sys.stdout.flush()
        _binary(sys.stdout).flush()
    except BrokenPipeError as error:
        raise PipeClosed from error
    except OSError as error:
        raise CannotWrite(f"stdout: {os_reason(error)}") from error


def drop() -> None:
    """Let go of a stdout that cannot be written, so that the interpreter's exit says nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


_REASONS = {
    errno.ENOENT: "no such file",
    errno.EISDIR: "is a directory",
    errno.EACCES: "permission denied",
}


def reason(error: OSError) -> str:
    """Why the system refused: in our words where it is a person's slip, else in its own."""
    return _REASONS.get(error.errno or 0) or error.strerror or str(error)


def os_reason(error: OSError) -> str:
    """Why the system refused, with the file it is about."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
    return f"{name}: {reason(error)}" if name else reason(error)


def _binary(stream: Any) -> IO[bytes]:
    buffer: IO[bytes] = stream.buffer
    return buffer


def of_handle(handle: Handle, *, envelope: bool = False) -> dict[str, Any]:
    """A handle as JSON. The keys are stable: more may come, none goes."""
    shape = handle.shape
    found: dict[str, Any] = {
        "id": handle.id,
        "tool": handle.tool,
        "args": handle.args,
        "status": handle.status,
        "kind": shape.kind,
        "mime": shape.mime,
        "size": shape.size,
        "chars": shape.chars,
        "lines": shape.lines,
        "records": shape.records,
        "created_at": handle.created_at,
        "same_as": handle.same_as or None,
    }
    if envelope:
        found["envelope"] = handle.envelope
    return found


def columns(rows: Iterable[tuple[str, str]], indent: str = "  ") -> str:
    """Names and values, aligned."""
    pairs = list(rows)
    width = max((len(name) for name, _ in pairs), default=0)
    return "\n".join(
        f"{indent}{style(name.ljust(width), dim=True)}  {value}".rstrip() for name, value in pairs
    )
