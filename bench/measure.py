"""One process of one contestant: times and peak memory, as one line of JSON on stdout.

python -m bench.measure write PEER TEXT FOLDER [stream]
python -m bench.measure read  PEER TEXT FOLDER OPERATION ID
"""

from __future__ import annotations

import ctypes
import gc
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import texts
from bench.peers import NotOffered, Peer, Refused, open_peer

ROUNDS = 5
PUTS_CHARS_TOTAL = 600_000_000
"""A text so large that five rounds would fill a small disk is put fewer times."""


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def resident() -> int:
    """Bytes resident now; where the system does not say, the peak so far."""
    try:
        return _status("VmRSS:")
    except OSError:
        return peak()


def reset_peak() -> None:
    # A fresh process inherits its parent's peak on Linux; writing 5 here starts it anew.
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def give_back() -> None:
    """Return freed memory to the system, so that what was used before does not hide what is now."""
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        return


def peak() -> int:
    """Bytes resident at the highest."""
    try:
        return _status("VmHWM:")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def measured(
    action: Callable[[int], Any], rounds: int, settle: Callable[[], None]
) -> dict[str, Any]:
    """The first call with its memory, then `rounds` more; what the last one answered."""
    times: list[float] = []
    before = extra = 0
    answer: Any = None
    for number in range(rounds + 1):
        settle()
        gc.collect()
        if number == 0:
            give_back()
            reset_peak()
            before = resident()
        start = time.perf_counter()
        answer = action(number)
        times.append(time.perf_counter() - start)
        if number == 0:
            extra = max(0, peak() - before)
    return {"first": times[0], "times": times[1:], "memory": extra, "answer": answer}


def write(peer: Peer, text_path: Path, stream: bool) -> dict[str, Any]:
    size = text_path.stat().st_size
    rounds = max(1, min(ROUNDS, PUTS_CHARS_TOTAL // size))
    if stream:

        def action(number: int) -> str:
            head = texts.FIRST_LINE.format(100 + number).encode()
            return peer.put_stream(text_path, head)  # type: ignore[attr-defined, no-any-return]

        return measured(action, rounds, lambda: None)

    text = text_path.read_bytes().decode("ascii")
    # Made one before each call, outside the clock, so that only one extra copy is ever held.
    ready = {"next": 0, "text": text}

    def settle() -> None:
        number = int(ready["next"])  # type: ignore[call-overload]
        ready["text"] = texts.in_round(text, number)
        ready["next"] = number + 1

    return measured(lambda _: peer.put(str(ready["text"])), rounds, settle)


def read(peer: Peer, text_path: Path, operation: str, id: str) -> dict[str, Any]:
    middle = 0
    if operation == "page":
        with text_path.open("rb") as file:
            middle = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b"")) // 2
    actions: dict[str, Callable[[int], str]] = {
        # Neighbouring pages, so that no contestant answers from what it answered just before.
        "page": lambda number: peer.page(id, middle + 40 * number),
        "rare": lambda _: peer.search(id, texts.RARE, regex=False),
        "common": lambda _: peer.search(id, texts.COMMON, regex=False),
        "regex": lambda _: peer.search(id, texts.REGEX, regex=True),
    }
    result = measured(actions[operation], ROUNDS, lambda: None)
    answer = result.pop("answer")
    result["answer_chars"] = len(answer)
    if operation == "rare" and texts.RARE not in answer:
        result["wrong"] = "the reply does not show the phrase"
    if operation == "common" and texts.COMMON not in answer:
        result["wrong"] = "the reply does not show the phrase"
    return result


def main(arguments: list[str]) -> None:
    mode, name, text, folder, *rest = arguments
    try:
        peer = open_peer(name, Path(folder))
        if mode == "write":
            result = write(peer, Path(text), stream="stream" in rest)
        else:
            result = read(peer, Path(text), rest[0], rest[1])
        result |= {"label": peer.label, "notes": list(peer.notes)}
    except NotOffered as reason:
        result = {"none": str(reason), "label": peer.label, "notes": list(peer.notes)}
    except Refused as reason:
        result = {"refused": str(reason), "label": peer.label, "notes": list(peer.notes)}
    print("\n" + json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
