"""What a model asks of a read-back tool, mended where its meaning is plain; and what to try next.

What may live here: arguments to values, and wording. No store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callslip.handle import Handle, Hits, Listing, Page, Record, Reply, Rows
from callslip.limits import HITS_CAP, HITS_DEFAULT, ROWS_DEFAULT, TOOL_NAME_CHARS
from callslip.reading.missing import unknown
from callslip.reading.page import whole
from callslip.reading.suggest import quoted
from callslip.tool_words import Verb, Vocabulary

if TYPE_CHECKING:
    from callslip.tools import Reads

__all__ = ["Asked", "asked_of", "way_on"]

_ID = re.compile(
    r"[\s\"'`<(\[]*(?:(?:result_)?id\s{0,3}[=:]\s{0,3})?[\"'`]*"
    r"([A-Za-z0-9_]{5,80})[\"'`>)\].,;:\s]*"
)
_PATH = re.compile(r"[\s\"'`]*(/[^\"'`<>\r\n]{1,900}[/-]res_[0-9a-f]{10,40}\.[a-z]{3,5})[\s\"'`]*")
"""The path of a result's plain file. Whether it is one, the session says."""
_NONE = ("", "none", "null")


@dataclass(frozen=True, slots=True)
class Asked:
    """A call, mended: equal calls are equal values, however they were written."""

    verb: Verb
    id: str
    arguments: tuple[tuple[str, Any], ...]

    def of(self, reads: Reads, prefix: str) -> Any:
        """Ask it; `prefix` is "a" for the async twin."""
        method: Callable[..., Any] = getattr(reads, prefix + self.verb)
        return method(*([self.id] if self.id else []), **dict(self.arguments))


def asked_of(verb: Verb, given: Mapping[str, Any], words: Vocabulary) -> Asked | Reply:
    """What is asked for, or the reply where that needs no look at the store."""
    after = whole(given.get("after"), 0, 0)
    if verb == "list":
        return Asked(verb, "", (("after", after),))
    if verb == "sql":
        sql = given.get("sql", given.get("query"))
        if not isinstance(sql, str) or not sql.strip():
            return Reply(f"Say what to select: {words.sql}(sql), with the id of each as a table.")
        return Asked(verb, "", (("sql", sql), *_part(given)))
    id = _id_in(given, words)
    if id is None:
        return Reply(words.worded(unknown("").for_model))
    arguments: dict[str, Any]
    if verb == "read":
        arguments = {
            "start": whole(given.get(words.start, given.get("start")), 1, 1),
            "limit": whole(given.get("limit"), 0, 0) or None,
            "column": whole(given.get("column"), 0, 0),
        }
    elif verb == "get":
        key = given.get(words.key, given.get("key", given.get("record")))
        if key is None or key == "":
            return Reply(
                f'Say which: {words.get}("{id}", {words.key}), where {words.key} is a record '
                "number, the value of its id, or a path."
            )
        field = given.get("field")
        if words.get == "get_by_id" or not isinstance(key, str | int | float):
            # What is got by its id is looked for as an id first, and that is what a string says.
            key = str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)
        arguments = {
            "key": key,
            "field": field if isinstance(field, str) and field else None,
            "start": whole(given.get("start"), 1, 1),
            "limit": whole(given.get("limit"), 0, 0) or None,
            "column": whole(given.get("column"), 0, 0),
        }
    elif verb == "query":
        inner = given.get(words.inner, given.get("table"))
        arguments = {
            name: _given(given.get(name)) for name in ("where", "fields", "order_by", "group_by")
        }
        arguments["path"] = inner if isinstance(inner, str) and _given(inner) else ""
        arguments |= dict(_part(given))
    else:
        pattern = given.get("pattern")
        if pattern is None or pattern == "":
            return Reply(f'Say what to look for: {words.search}("{id}", pattern).')
        arguments = {
            "pattern": pattern if isinstance(pattern, str) else str(pattern),
            "context": whole(given.get("context"), 0, 0),
            "after": after or None,
            "limit": min(whole(given.get("limit"), 0, HITS_DEFAULT), HITS_CAP),
            "ignore_case": _truth(given.get("ignore_case")),
        }
    return Asked(verb, id, tuple(arguments.items()))


def _id_in(given: Mapping[str, Any], words: Vocabulary) -> str | None:
    value = next((given[key] for key in (words.id, "id", "handle") if key in given), None)
    if not isinstance(value, str) or len(value) > 1_000:
        return None
    match = _PATH.fullmatch(value) or (_ID.fullmatch(value) if len(value) <= 200 else None)
    return match[1] if match else None


def _given(value: Any) -> Any:
    """None for what a model writes where it means nothing."""
    empty = isinstance(value, str) and value.strip().lower() in _NONE
    return None if empty or value in ([], {}) else value


def _part(given: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Which part of the outcome is shown, or the name that all of it is kept under: a model names
    a limit of what it wants to see, out of habit, and means the whole."""
    name = _given(given.get("save_as"))
    if isinstance(name, str):
        return (("save_as", name.strip()[:TOOL_NAME_CHARS]),)
    limit = _given(given.get("limit"))
    limit = None if limit is None else whole(limit, 0, ROWS_DEFAULT)
    return ("limit", limit), ("after", whole(given.get("after"), 0, 0))


def _truth(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in {"true", "1", "yes"}
    return value is True or value == 1


def way_on(
    asked: Asked, found: Page | Hits | Record | Rows | Handle | Listing, words: Vocabulary
) -> str:
    """What is said when the very same call comes once more."""
    given, id = dict(asked.arguments), asked.id
    following = None if isinstance(found, Handle) else found.next
    if asked.verb == "list":
        more = f"{words.list}(after={following['after']})" if following else ""
        todo = f"Go on with {more}" if more else f"Read one with {words.read}(its id)"
    elif asked.verb == "read":
        todo = f'Try {words.search}("{id}", pattern)'
        if following:
            inside = f", column={following['column']}" if "column" in following else ""
            todo = f'Go on with {words.read}("{id}", {words.start}={following["start"]}{inside})'
    elif asked.verb == "get":
        todo = f'Try another {words.key}, or {words.search}("{id}", pattern)'
        if following:
            todo = f"Go on with start={following['start']}"
            todo += f", column={following['column']}" if "column" in following else ""
    elif isinstance(found, Handle):
        todo = f'Go on with {words.query}("{found.id}", where)'
    elif asked.verb in ("query", "sql"):
        todo = "Try another condition" if asked.verb == "query" else "Try another select"
        if following:
            todo = f"Go on with after={following['after']}"
    else:
        todo = f'Try another pattern, or {words.read}("{id}")'
        if following:
            flag = ", ignore_case=True" if given["ignore_case"] else ""
            todo = f'Go on with {words.search}("{id}", {quoted(given["pattern"])}'
            todo += f"{flag}, after={following['after']})"
    return (
        f"You made this very call just now, and its answer stands above. {todo}; "
        "or ask once more to have the same again."
    )
