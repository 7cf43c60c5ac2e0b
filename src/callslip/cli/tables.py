"""Records as a table for a person: as many columns as the terminal has room for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from callslip.cli import out

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

CUT = "…"
"""The name under which a cut record of a preview says how many fields it has besides."""

_GAP = 3
_LEAST = 10
"""A column that must be cut keeps so much at least; where that does not fit, later ones are named."""

_WIDEST = 60
_CELL = 200


def table(*, expand: bool = False) -> Table:
    """A table in the one style of all our tables."""
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        header_style="bold",
        border_style="bright_black",
        expand=expand,
    )


def draw(drawn: Table, indent: int = 0) -> None:
    """Print it to stdout."""
    import sys

    from rich.console import Console
    from rich.padding import Padding

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    console.print(Padding(drawn, (0, 0, 0, indent)) if indent else drawn)


def roomy(least: dict[str, int], spare: Sequence[str]) -> list[str]:
    """Of columns that need so much at least, those there is room for: who is in `spare` goes first,
    so that what a person copies is never cut."""
    names = list(least)
    for name in spare:
        if sum(least[each] for each in names) + _GAP * (len(names) - 1) <= _room():
            break
        names.remove(name)
    return names


def widest(title: str, cells: Iterable[str], most: int = _WIDEST) -> int:
    """What a column of these cells takes, up to so much."""
    return min(max(cell_width(text) for text in (title, *cells)), most)


def plain(words: str, style: str = "") -> Text:
    """Words on one line, cut where the column ends."""
    from rich.text import Text

    return Text(words, style=style, no_wrap=True, overflow="ellipsis")


def of_records(records: Sequence[Any], numbers: Sequence[int] = (), indent: int = 0) -> None:
    """Draw records: objects have a column for each of their fields, with the room there is."""
    rows = [row if isinstance(row, dict) else {"value": row} for row in records]
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name != CUT]
    cells = [[_cell(row, name) for row in rows] for name in names]
    room = _room() - indent
    if numbers:
        room -= len(str(max(numbers))) + _GAP
    wanted = [
        max(cell_width(out.one_line(name)), *(cell_width(cell.plain) for cell in column))
        for name, column in zip(names, cells, strict=True)
    ]
    widths = fitted(wanted, room)
    drawn = table()
    if numbers:
        drawn.add_column("#", justify="right", no_wrap=True, style="dim")
    for name, width in zip(names, widths, strict=False):
        values = [row[name] for row in rows if row.get(name) is not None]
        right = bool(values) and all(isinstance(value, int | float) for value in values)
        title = plain(out.one_line(name))
        drawn.add_column(
            title, justify="right" if right else "left", no_wrap=True, width=width, min_width=width
        )
    for place in range(len(rows)):
        number = [str(numbers[place])] if numbers else []
        drawn.add_row(*number, *(column[place] for column in cells[: len(widths)]))
    draw(drawn, indent)
    if len(names) > len(widths):
        left = names[len(widths) :]
        said = f"{len(left)} more: {', '.join(map(out.one_line, left))}"
        out.styled(" " * indent + out.style(out.fitting(said, beside=indent), dim=True))


def _room() -> int:
    return shutil.get_terminal_size().columns


def cell_width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def fitted(wanted: Sequence[int], room: int) -> list[int]:
    """Widths for the first columns, as many as fit: short ones keep theirs, long ones share."""
    widths = [min(max(width, 1), _WIDEST) for width in wanted]
    while widths:
        space = room - _GAP * (len(widths) - 1)
        least = sum(min(width, _LEAST) for width in widths)
        if least <= space or len(widths) == 1:
            break
        widths.pop()
    space = max(room - _GAP * (len(widths) - 1), 1)
    while sum(widths) > space:
        longest = max(widths)
        second = max((width for width in widths if width < longest), default=1)
        many = widths.count(longest)
        cut = min(longest - second, -(-(sum(widths) - space) // many))
        widths = [max(width - cut, 1) if width == longest else width for width in widths]
        if longest == 1:
            break
    return widths


def _cell(row: dict[str, Any], name: str) -> Text:
    if name not in row:
        return plain("")
    value = row[name]
    if value is None:
        return plain("null", "dim")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return plain(out.one_line(text[:_CELL]))


def sections(lines: Sequence[str]) -> Iterator[str | list[tuple[int, Any]]]:
    """A preview's lines, those of numbered records (`12: {"id": …}`) together and parsed."""
    held: list[tuple[int, Any]] = []
    for line in lines:
        number, colon, text = line.partition(": ")
        if colon and number.isdecimal() and text[:1] == "{":
            try:
                held.append((int(number), json.loads(text)))
                continue
            except ValueError:
                pass  # cut: shown as the text it is
        if held:
            yield held
            held = []
        yield line
    if held:
        yield held
