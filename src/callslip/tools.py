"""The read-back tools a model calls, without any framework: name, description, schema, call.

A tool never raises and never answers more than one page. What a model gets wrong is mended where
its meaning is plain (`"5"`, `5.0`, `null`, quotes around an id) and answered in one short sentence
where it is not. Adapters bind these to a framework; nothing here knows one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Protocol, cast

from callslip.errors import CallslipError, SettingsError, UnknownHandle
from callslip.handle import Handle, Hits, Listing, Page, Record, Reply, Rows
from callslip.limits import PAGE_CAP_CHARS
from callslip.reading.missing import unknown
from callslip.tool_calls import Asked, asked_of, way_on
from callslip.tool_words import VOCABULARIES, Verb, Vocabulary, described
from callslip.window.inert import shown, untagged

__all__ = ["SYSTEM_LINE", "Reads", "Tool", "tools_for"]

logger = logging.getLogger(__name__)

SYSTEM_LINE = (
    "Long tool results are stored, and you see a small part of each. Before you answer from one, "
    "find what you need with the call that its last line names."
)
"""The one line about stored results for a system prompt; true under either vocabulary."""

_FAILED = "This call failed for a reason of ours; try another call, or go on without this result."
_SENTENCE_CHARS = 800


class Reads(Protocol):
    """What the tools need of a session. Any object with these six will do; where it has `get`,
    `query` or `sql` with their async twins, there is a tool for that too."""

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


_Found = Page | Hits | Record | Rows | Handle | Listing


class _Memory:
    """The last call that was answered, of all tools that were made together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: Asked | None = None
        self._way_on = ""

    def repeated(self, asked: Asked) -> str | None:
        """A line for the same call right after itself. Said once: the next time it is served."""
        with self._lock:
            if asked != self._last:
                return None
            self._last = None
            return self._way_on

    def answered(self, asked: Asked | None, way_on: str) -> None:
        with self._lock:
            self._last = asked
            self._way_on = way_on

    def __deepcopy__(self, memo: dict[int, Any]) -> _Memory:
        found = _Memory()
        found.__setstate__(self.__getstate__())
        return found

    def __getstate__(self) -> tuple[Asked | None, str]:
        with self._lock:
            return self._last, self._way_on

    def __setstate__(self, state: tuple[Asked | None, str]) -> None:
        self._lock = threading.Lock()
        self._last, self._way_on = state


class Tool:
    """One read-back tool. `call` and `acall` take the arguments by name, or in the order of the
    schema, and always answer.

    `name` and `description` are for a model; `parameters` is the JSON Schema of the arguments, a
    fresh copy each time. Made by `tools_for` (`session.tools()`).

    A deep copy reads the same session and remembers calls for itself; those that are copied
    together remember together. It is pickled with its session, which is a place and a name.
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

    def __deepcopy__(self, memo: dict[int, Any]) -> Tool:
        return type(self)(self._verb, self._reads, self._words, deepcopy(self._memory, memo))

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return deepcopy(self._parameters)

    def call(self, /, *positional: Any, **arguments: Any) -> Reply:
        """Answer a model's call, in the caller's thread. Never raises on what is asked."""
        try:
            asked = self._asked(self._named(positional) | arguments)
            if isinstance(asked, Reply):
                return asked
            found = cast("_Found", asked.of(self._reads, ""))
            return self._answer(asked, found)
        except Exception as error:  # noqa: BLE001 - a model gets a sentence, the log gets the error
            return self._failure(error)

    async def acall(self, /, *positional: Any, **arguments: Any) -> Reply:
        """The same, off the event loop."""
        try:
            asked = self._asked(self._named(positional) | arguments)
            if isinstance(asked, Reply):
                return asked
            found = await cast("Awaitable[_Found]", asked.of(self._reads, "a"))
            return self._answer(asked, found)
        except Exception as error:  # noqa: BLE001 - a model gets a sentence, the log gets the error
            return self._failure(error)

    # --- a call, step by step ---------------------------------------------------------------------

    def _named(self, positional: Sequence[Any]) -> dict[str, Any]:
        """Arguments without names, in the order of the schema; a mapping alone holds them all."""
        if len(positional) == 1 and isinstance(positional[0], Mapping):
            return dict(positional[0])
        return dict(zip(self._parameters["properties"], positional, strict=False))

    def _asked(self, given: Mapping[str, Any]) -> Asked | Reply:
        """What is asked for, or the reply where that needs no look at the store."""
        found = asked_of(self._verb, given, self._words)
        if isinstance(found, Reply):
            return found
        line = self._memory.repeated(found)
        return found if line is None else Reply(line)

    def _answer(self, asked: Asked, found: _Found) -> Reply:
        reply = self._words.worded(str(found))
        self._memory.answered(asked, way_on(asked, found, self._words))
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
        said = untagged(" ".join(shown(said).split()))
        if len(said) > _SENTENCE_CHARS:
            said = said[: _SENTENCE_CHARS - 1] + "…"
        return Reply(self._words.worded(said))


def tools_for(reads: Reads, vocabulary: str = "results") -> list[Tool]:
    """The read-back tools over a session: `read`, `search`, `get`, `query`, `sql` and `list`, in
    that order, as far as it has them. Always all of them, whatever is stored: schemas that change
    within a conversation would cost its prompt cache.

    `vocabulary` is `results` (`read_result`, `search_result`, `get_record`, `query_result`,
    `query_results`, `list_results`) or `files` (`read_slice`, `grep_file`, `get_by_id`,
    `query_file`, `query_files`, `list_files`). The tools of one call share the memory of the last
    call, so make them once for each conversation. Raises SettingsError for another vocabulary.
    """
    words = VOCABULARIES.get(vocabulary)
    if words is None:
        raise SettingsError(f'vocabulary={vocabulary!r}: give "results" or "files"')
    memory = _Memory()
    verbs: list[Verb] = ["read", "search", "get", "query", "sql", "list"]
    verbs = [verb for verb in verbs if hasattr(reads, verb)]
    return [Tool(verb, reads, words, memory) for verb in verbs]
