"""The bytes that every contestant gets: log-like lines from a fixed seed."""

from __future__ import annotations

import random
from pathlib import Path

RARE = "quota exceeded for tenant 4417"
COMMON = "upstream timed out"
REGEX = r"status=5\d+ .*shard-1[0-9]*7 "

SIZES = {
    "1MB": 1_000_000,
    "7.9MB": 7_900_000,
    "10MB": 10_000_000,
    "100MB": 100_000_000,
    "1GB": 1_000_000_000,
}

FIRST_LINE = "# round {:03d}\n"
_BLOCK = 8_000_000
_VERBS = ("GET", "GET", "GET", "POST", "PUT", "DELETE")
_PLACES = ("orders", "users", "invoices", "search", "export", "sessions", "payments")


def _lines(seed: int, size: int) -> bytes:
    dice = random.Random(seed)
    out: list[str] = []
    used = number = 0
    while used < size:
        number += 1
        roll = dice.random()
        status = 200 if roll < 0.9 else 404 if roll < 0.97 else 503
        note = f" {COMMON} after {dice.randrange(30_000)} ms" if number % 50 == 0 else ""
        line = (
            f"2026-03-{1 + number // 40_000:02d}T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:"
            f"{number % 60:02d}.{dice.randrange(1000):03d}Z {dice.getrandbits(48):012x} "
            f"{dice.choice(_VERBS)} /api/v2/{dice.choice(_PLACES)}/{dice.randrange(900_000)} "
            f"status={status} shard-{dice.randrange(200)} {dice.randrange(4000)}us{note}\n"
        )
        out.append(line)
        used += len(line)
    return "".join(out).encode()


def make(path: Path, size: int) -> None:
    """Write a text of exactly `size` bytes, unless it is there. Lines differ within every 8 MB."""
    if path.exists() and path.stat().st_size == size:
        return
    block = _lines(1, min(size, _BLOCK))
    rare_at = size * 71 // 100
    half_made = path.with_suffix(".part")
    with half_made.open("wb") as file:
        file.write(FIRST_LINE.format(0).encode())
        number = 0
        while file.tell() < size:
            number += 1
            mark = f"# block {number} of {path.stem}\n".encode()
            piece = (mark + block)[: size - file.tell()]
            here = file.tell()
            if here <= rare_at < here + len(piece):
                cut = piece.rfind(b"\n", 0, rare_at - here + 1) + 1
                rare = f"2026-03-09T11:11:11.111Z {RARE}\n".encode()
                piece = (piece[:cut] + rare + piece[cut:])[: len(piece)]
            file.write(piece)
    half_made.replace(path)


def in_round(text: str, number: int) -> str:
    """The same text with another first line of the same length, so that no two are equal."""
    head = FIRST_LINE.format(0)
    return FIRST_LINE.format(number) + text[len(head) :]
