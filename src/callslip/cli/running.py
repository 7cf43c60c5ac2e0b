"""`callslip run`: a command whose long output goes into the store, and whose status is ours."""

from __future__ import annotations

import codecs
import errno
import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import click

from callslip import limits
from callslip.cli import out
from callslip.cli.given import COUNT, Given, given, verb
from callslip.cli.process import Command, forwarded
from callslip.cli.progress import Meter, meter
from callslip.cli.putting import ways_on
from callslip.errors import CallslipError, SettingsError, StoreUnavailable
from callslip.handle import Handle

_TICK_SECONDS = 0.2
_LEAST_CHARS = limits.PREVIEW_CHARS + 2 * limits.ENVELOPE_CHARS
"""An envelope and the two lines under it may be as long as this: shorter output is itself shorter."""

_HEAD_BYTES = limits.REFUSED_CHARS * 2 // 3
_TAIL_BYTES = limits.REFUSED_CHARS - _HEAD_BYTES


@verb(
    short_help="Run a command; store its output if it is long.",
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    options_metavar="[OPTIONS] --",
)
@click.argument("command", metavar="CMD [ARG]...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--threshold",
    type=COUNT,
    default=limits.THRESHOLD_CHARS,
    metavar="CHARS",
    help="Store what is longer than this, and than its envelope. "
    f"[default: {limits.THRESHOLD_CHARS}]",
)
@click.option("--tool", metavar="NAME", help="Name in the envelope. [default: CMD's own]")
@click.option("--tee", is_flag=True, help="Pass the output through as it comes, too.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress on the terminal.")
@click.pass_context
def run(
    ctx: click.Context,
    command: tuple[str, ...],
    threshold: int,
    tool: str | None,
    tee: bool,
    quiet: bool,
) -> int:
    """Run a command; print its output if it is short, store it and print an envelope if it is long.

    stdout and stderr of CMD are one pipe, so their order is kept, and CMD sees no terminal; its
    stdin is ours. Short output is printed when CMD ends, long output is stored as it comes, in
    bounded memory. Exits with CMD's own status: 128+n if signal n ended it, 127 if there is no such
    command, 126 if it cannot be run.

    INT, TERM, HUP, QUIT, USR1 and USR2 go on to CMD. If something that CMD left behind keeps its
    output open, that is waited for 2 seconds and no longer. If the store cannot take the output,
    its first and last part are printed and the reason is on stderr.

    \b
    callslip run -- pytest -x
    callslip run --threshold 4000 -- git log -p
    """
    held = given(ctx)
    if held.json and tee:
        raise click.UsageError("--json prints one document: leave --tee out", ctx)
    name = tool or _name_of(command)
    with forwarded() as signals, meter(name, quiet=quiet or tee) as progress:
        try:
            running = Command(command)
        except (OSError, ValueError) as error:
            progress.end()
            return _not_started(command[0], error)
        signals.belong_to(running.child)
        output = Output(running, progress, tee=tee)
        short = output.short(max(threshold, _LEAST_CHARS))
        kept = None if short is not None else _store(held, output, name, command)
        status = running.finish()
    if running.left_open:
        out.note(
            f"callslip: something that {name} left behind still holds its output; "
            "what it prints from now on is lost"
        )
    try:
        _tell(held, Outcome(command, status, short, kept, output))
        out.flush()
    except out.PipeClosed:
        out.drop()  # it ran all the same, and its status is what is asked for
    except out.CannotWrite as error:
        out.drop()
        return out.complain(str(error), status or 2)
    return status


class Output:
    """A command's output: what is short is held, of what is long the head and the tail.

    It is read like a file, so that the store takes it in as it comes.
    """

    def __init__(self, running: Command, progress: Meter, *, tee: bool) -> None:
        self.tee = tee
        self.size = 0
        self.head = b""
        self.tail = b""
        self._progress = progress
        self._blocks = self._noted(running.blocks(_TICK_SECONDS))

    def _noted(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self._progress.add(len(block))
            if not block:
                continue
            if self.tee:
                self._pass_on(block)
            self.size += len(block)
            self.head += block[: max(_HEAD_BYTES - len(self.head), 0)]
            self.tail = (self.tail + block[-_TAIL_BYTES:])[-_TAIL_BYTES:]
            yield block

    def _pass_on(self, block: bytes) -> None:
        try:
            out.raw(block)
            out.flush()
        except (out.PipeClosed, out.CannotWrite):
            self.tee = False  # nobody listens: the store still does
            out.drop()

    def short(self, threshold: int) -> bytes | None:
        """All of it if it has no more than `threshold` characters; None as soon as it has more."""
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        held: list[bytes] = []
        chars = 0
        for block in self._blocks:
            held.append(block)
            chars += len(decoder.decode(block))
            if chars > threshold:
                self._blocks = chain(held, self._blocks)
                return None
        if chars + len(decoder.decode(b"", True)) > threshold:
            self._blocks = iter(held)
            return None
        return b"".join(held)

    def read(self, size: int = -1) -> bytes:
        """The next block, whatever its size; empty at the end."""
        return next(self._blocks, b"")

    def drain(self) -> None:
        """Read the rest, so that the command can end."""
        for _ in self._blocks:
            pass

    def excerpt(self) -> bytes:
        """The first and the last part, with an exact note of what lies between."""
        if self.size <= len(self.head) + len(self.tail):
            return self.head + self.tail[len(self.head) + len(self.tail) - self.size :]
        head = self.head[: _whole_end(self.head)]
        tail = self.tail[_whole_start(self.tail) :]
        between = self.size - len(head) - len(tail)
        return head + f"\n[… {between:,} bytes left out …]\n".encode() + tail


def _whole_end(head: bytes) -> int:
    """Where to cut off what may be half a line, or else half a character."""
    line = head.rfind(b"\n") + 1
    if line > len(head) // 2:
        return line
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(head)
    return len(head) - len(decoder.getstate()[0])


def _whole_start(tail: bytes) -> int:
    line = tail.find(b"\n") + 1
    if 0 < line < len(tail) // 2:
        return line
    return len(tail[:4]) - len(tail[:4].lstrip(bytes(range(0x80, 0xC0))))


@dataclass(frozen=True)
class Outcome:
    """How it ended: `short` is all of the output, or `kept` is its handle, or there is neither."""

    command: tuple[str, ...]
    status: int
    short: bytes | None
    kept: Handle | None
    output: Output = field(repr=False)


def _store(held: Given, output: Output, name: str, command: tuple[str, ...]) -> Handle | None:
    """Store the output as it comes. Where that fails the command still runs to its end."""
    try:
        session = held.open_session(must_exist=False)
        return session.put(output, tool=name, args={"command": shlex.join(command)})
    except StoreUnavailable as error:
        out.complain(f"the output could not be stored ({error.reason}): {error}", 4)
    except (CallslipError, SettingsError) as error:
        out.complain(f"the output could not be stored: {error}", 4)
    output.drain()
    return None


def _tell(held: Given, outcome: Outcome) -> None:
    kept = outcome.kept
    if held.json:
        text = outcome.short if kept is None else None
        if text is None and kept is None:
            text = outcome.output.excerpt()
        out.json(
            {
                "command": list(outcome.command),
                "exit": outcome.status,
                "stored": kept is not None,
                "size": outcome.output.size,
                "handle": None if kept is None else out.of_handle(kept),
                "text": None if text is None else text.decode("utf-8", "replace"),
                "envelope": None if kept is None else kept.envelope,
            }
        )
    elif kept is not None:
        out.text(str(kept))
        out.text(f"{out.one_line(kept.tool)} exited with {outcome.status}.")
        out.text(ways_on(held, kept))
    elif outcome.output.tee:
        return  # it was shown as it came
    elif outcome.short is not None:
        out.raw(outcome.short)
    else:
        excerpt = outcome.output.excerpt()
        out.raw(excerpt if excerpt.endswith(b"\n") else excerpt + b"\n")


def _not_started(name: str, error: OSError | ValueError) -> int:
    reason = out.reason(error) if isinstance(error, OSError) else str(error)
    if isinstance(error, FileNotFoundError) and shutil.which(name) is None:
        return out.complain(f"{name}: command not found", 127)
    if isinstance(error, FileNotFoundError):
        reason = "the interpreter that its first line names is missing"
    elif isinstance(error, OSError) and error.errno == errno.ENOEXEC:
        reason = "not a program, and no #! line says what runs it"
    return out.complain(f"{name}: cannot be run: {reason}", 126)


def _name_of(command: Sequence[str]) -> str:
    """`pytest` for `pytest -v`, and for `python -m pytest` too."""
    name = os.path.basename(command[0]) or "run"
    if name.startswith("python") and len(command) > 2 and command[1] == "-m":
        return command[2]
    return name
