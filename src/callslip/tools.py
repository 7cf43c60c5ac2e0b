"""The read-back tools a model calls, without any framework: name, description, schema, call.

A tool never raises and never answers more than one page. What a model gets wrong is mended where
its meaning is plain (`"5"`, `5.0`, `null`, quotes around an id) and answered in one short sentence
where it is not. Adapters bind these to a framework; nothing here knows one.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Protocol, cast

from callslip.errors import CallslipError, SettingsError, UnknownHandle
from callslip.handle import Hits, Listing, Page, Record, Reply
from callslip.limits import HITS_CAP, HITS_DEFAULT, PAGE_CAP_CHARS
from callslip.reading.missing import unknown
from callslip.reading.page import whole
from callslip.reading.suggest import quoted
from callslip.tool_words import VOCABULARIES, Verb, Vocabulary, described
from callslip.window.inert import shown

__all__ = ["SYSTEM_LINE", "Reads", "Tool", "tools_for"]

logger = logging.getLogger(__name__)

SYSTEM_LINE = (
    "Long tool results are stored, and you see a small part of each. Before you answer from one, "
    "find what you need with the call that its last line names."
)
"""The one line about stored results for a system prompt; true under either vocabulary."""

_FAILED = "This call failed for a reason of ours; try another call, or go on without this result."
_SENTENCE_CHARS = 800
_ID = re.compile(
    r"[\s\"'`<(\[]*(?:(?:result_)?id\s{0,3}[=:]\s{0,3})?[\"'`]*"
    r"([A-Za-z0-9_]{5,80})[\"'`>)\].,;:\s]*"
)


class Reads(Protocol):
    """What the tools need of a session. Any object with these six will do."""

    def read(self, id: str, start: int = 1, limit: int | None = None, column: int = 0) -> Page: ...

    def search(
        self,
        id: str,
        pattern: str,
        context: int = 0,
        after: int | None = None,
        *,
        limit: int = ...,
        ignore_case: bool = False,
    ) -> Hits: ...

    def list(self, after: int = 0) -> Listing: ...

    async def aread(
        self, id: str, start: int = 1, limit: int | None = None, column: int = 0
    ) -> Page: ...

    async def asearch(
        self,
        id: str,
        pattern: str,
        context: int = 0,
        after: int | None = None,
        *,
        limit: int = ...,
        ignore_case: bool = False,
    ) -> Hits: ...

    async def alist(self, after: int = 0) -> Listing: ...


_Found = Page | Hits | Record | Listing


@dataclass(frozen=True, slots=True)
class _Asked:
    """A call, mended: equal calls are equal values, however they were written."""

    verb: Verb
    id: str
    arguments: tuple[tuple[str, Any], ...]

    def of(self, reads: Reads, prefix: str) -> Any:
        method: Callable[..., Any] = getattr(reads, prefix + self.verb)
        return method(*([self.id] if self.id else []), **dict(self.arguments))


class _Memory:
    """The last call that was answered, of all tools that were made together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: _Asked | None = None
        self._way_on = ""

    def repeated(self, asked: _Asked) -> str | None:
        """A line for the same call right after itself. Said once: the next time it is served."""
        with self._lock:
            if asked != self._last:
                return None
            self._last = None
            return self._way_on

    def answered(self, asked: _Asked | None, way_on: str) -> None:
        with self._lock:
            self._last = asked
            self._way_on = way_on


class Tool:
    """One read-back tool. `call` and `acall` take the arguments by name and always answer.

    `name` and `description` are for a model; `parameters` is the JSON Schema of the arguments, a
    fresh copy each time. Made by `tools_for` (`session.tools()`).
    """

    def __init__(
        self,
        verb: Verb,
        reads: Reads,
        vocabulary: Vocabulary,
        memory: _Memory,
    ) -> None:
        self.name: str = getattr(vocabulary, verb)
        self.description, self._parameters = described(verb, vocabulary)
        self._verb = verb
        self._reads = reads
        self._words = vocabulary
        self._memory = memory

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return deepcopy(self._parameters)

    def call(self, /, **arguments: Any) -> Reply:
        """Answer a model's call, in the caller's thread. Never raises on what is asked."""
        try:
            asked = self._asked(arguments)
            if isinstance(asked, Reply):
                return asked
            found = cast("_Found", asked.of(self._reads, ""))
            return self._answer(asked, found)
        except Exception as error:  # noqa: BLE001 - a model gets a sentence, the log gets the error
            return self._failure(error)

    async def acall(self, /, **arguments: Any) -> Reply:
        """The same, off the event loop."""
        try:
            asked = self._asked(arguments)
            if isinstance(asked, Reply):
                return asked
            found = await cast("Awaitable[_Found]", asked.of(self._reads, "a"))
            return self._answer(asked, found)
        except Exception as error:  # noqa: BLE001 - a model gets a sentence, the log gets the error
            return self._failure(error)

    # --- a call, step by step ---------------------------------------------------------------------

    def _asked(self, given: Mapping[str, Any]) -> _Asked | Reply:
        """What is asked for, or the reply where that needs no look at the store."""
        words, verb = self._words, self._verb
        after = whole(given.get("after"), 0, 0)
        if verb == "list":
            asked = _Asked(verb, "", (("after", after),))
        else:
            id = _id_in(given, words)
            if id is None:
                return Reply(words.worded(unknown("").for_model))
            arguments: dict[str, Any]
            if verb == "read":
                start = given.get(words.start, given.get("start"))
                arguments = {
                    "start": whole(start, 1, 1),
                    "limit": whole(given.get("limit"), 0, 0) or None,
                    "column": whole(given.get("column"), 0, 0),
                }
            elif verb == "get":
                key = given.get("key", given.get("record"))
                if key is None or key == "":
                    return Reply(
                        f'Say which: {words.get}("{id}", key), where key is a record number, '
                        "the value of its id, or a path."
                    )
                field = given.get("field")
                arguments = {
                    "key": key if isinstance(key, str | int | float) else str(key),
                    "field": field if isinstance(field, str) and field else None,
                    "start": whole(given.get("start"), 1, 1),
                    "limit": whole(given.get("limit"), 0, 0) or None,
                    "column": whole(given.get("column"), 0, 0),
                }
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
            asked = _Asked(verb, id, tuple(arguments.items()))
        line = self._memory.repeated(asked)
        return asked if line is None else Reply(line)

    def _answer(self, asked: _Asked, found: _Found) -> Reply:
        reply = self._words.worded(str(found))
        self._memory.answered(asked, self._way_on(asked, found))
        if len(reply) > PAGE_CAP_CHARS:
            # Our own replies keep the cap themselves; another object's `read` may not.
            reply = reply[: PAGE_CAP_CHARS - 1] + "…"
        return Reply(reply)

    def _failure(self, error: Exception) -> Reply:
        # The same call may well work the next time.
        self._memory.answered(None, "")
        if not isinstance(error, CallslipError):
            logger.error("%s failed", self.name, exc_info=error)
            return Reply(_FAILED)
        said = unknown("").for_model if isinstance(error, UnknownHandle) else error.for_model
        said = " ".join(shown(said).split())
        if len(said) > _SENTENCE_CHARS:
            said = said[: _SENTENCE_CHARS - 1] + "…"
        return Reply(self._words.worded(said))

    def _way_on(self, asked: _Asked, found: _Found) -> str:
        words, given = self._words, dict(asked.arguments)
        id, following = asked.id, found.next
        if asked.verb == "list":
            more = f"{words.list}(after={following['after']})" if following else ""
            todo = f"Go on with {more}" if more else f"Read one with {words.read}(its id)"
        elif asked.verb == "read":
            todo = f'Try {words.search}("{id}", pattern)'
            if following:
                inside = f", column={following['column']}" if "column" in following else ""
                todo = (
                    f'Go on with {words.read}("{id}", {words.start}={following["start"]}{inside})'
                )
        elif asked.verb == "get":
            todo = f'Try another key, or {words.search}("{id}", pattern)'
            if following:
                todo = f"Go on with start={following['start']}"
                todo += f", column={following['column']}" if "column" in following else ""
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


def tools_for(reads: Reads, vocabulary: str = "results") -> list[Tool]:
    """The read-back tools over a session: `read`, `search`, `get` and `list`, in that order; `get`
    only where the session has it.

    `vocabulary` is `results` (`read_result`, `search_result`, `get_record`, `list_results`) or
    `files` (`read_slice`, `grep_file`, `get_by_id`, `list_files`). The tools of one call share the memory of the last
    call, so make them once for each conversation. Raises SettingsError for another vocabulary.
    """
    words = VOCABULARIES.get(vocabulary)
    if words is None:
        raise SettingsError(f'vocabulary={vocabulary!r}: give "results" or "files"')
    memory = _Memory()
    verbs: list[Verb] = ["read", "search", "list"]
    if hasattr(reads, "get"):
        verbs.insert(2, "get")
    return [Tool(verb, reads, words, memory) for verb in verbs]


def _id_in(given: Mapping[str, Any], words: Vocabulary) -> str | None:
    value = next((given[key] for key in (words.id, "id", "handle") if key in given), None)
    if not isinstance(value, str) or len(value) > 200:
        return None
    match = _ID.fullmatch(value)
    return match[1] if match else None


def _truth(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in {"true", "1", "yes"}
    return value is True or value == 1
