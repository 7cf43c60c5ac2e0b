"""`Session`: every verb of one conversation, each with its async twin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from callslip import access, limits
from callslip.handle import Handle, Hits, Listing, Page, Scope
from callslip.opened import AsyncStored, Stored
from callslip.queried import Queried
from callslip.reading.listing import listing
from callslip.reading.missing import gone, unknown
from callslip.reading.page import read as read_page
from callslip.reading.records import in_stead
from callslip.reading.search import search as search_hits
from callslip.sharing import Sharing
from callslip.stacks import saving, upkeep
from callslip.stacks.content import restore
from callslip.stacks.hiding import seen
from callslip.stacks.ops import Flow, Get, List, Remove, Result, Tombstone, do
from callslip.stacks.reader import Reader, open_reader
from callslip.stacks.savedops import id_in, saved_name
from callslip.structured import Structured
from callslip.taking import Taking
from callslip.window.envelope import human_size
from callslip.wrap import Wrapping

if TYPE_CHECKING:
    from types import TracebackType

    from callslip.store import ResultStore
    from callslip.tools import Tool
    from callslip.window.envelope import Vocabulary


_LISTED = 500
"""Rows of a session that are forgotten at once when it is closed."""

_Rows = list[Result]  # `Session.list` hides the class of that name


class Session(Taking, Structured, Queried, Sharing, Wrapping):
    """One conversation's results: what is put here is found here, and nowhere else.

    Made by `ResultStore.session`; cheap, so make one wherever it is needed. It may be used by many
    threads and tasks at once. Handles stay valid over restarts and compactions until `close`, or
    until `ttl_seconds` after the last activity.

    Every look-up raises `UnknownHandle` for an id that is not in this scope and `HandleGone` for
    one that was; every verb raises `StoreUnavailable` while the store is away, but for `offload`
    and `offloaded`, which then give a bounded head and tail instead.
    """

    def __init__(self, store: ResultStore, scope: Scope, subjects: tuple[str, ...] = ()) -> None:
        self.store = store
        self.scope = scope
        self.subjects = subjects
        """Whom its results are about, where a call does not say otherwise."""

    def __repr__(self) -> str:
        return f"Session({self.scope.session!r})"

    # --- out, in slices -----------------------------------------------------------------------------

    def read(self, id: str, start: int = 1, limit: int | None = None, column: int = 0) -> Page:
        """Lines of a stored result from line `start`, about 4,000 characters of them.

        `limit` is a number of lines; with one, a page may take up to 16,000 characters. `column`
        goes on inside a line that is longer than a page. `page.next` are the arguments that
        continue, `page.text` the text alone.
        """
        return self.store.run_flow(self._read(id, start, limit, column))

    async def aread(
        self, id: str, start: int = 1, limit: int | None = None, column: int = 0
    ) -> Page:
        """`read`, off the event loop."""
        return await self.store.arun_flow(self._read(id, start, limit, column))

    @access.as_it_is_now
    def _read(self, id: str, start: int, limit: int | None, column: int) -> Flow[Page]:
        row, reader = yield from self._read_in_stead(id, "read")
        hide = row.shape.base64
        page = yield from read_page(reader, row.id, start, limit, column, base64=hide)
        if row.shape.kind == "media":
            # Its bytes are the caller's; as text they would only mislead a model.
            size = human_size(row.shape.size)
            said = (
                f"{row.id} is {row.shape.mime}, {size}: no text, and no tool here shows more of it."
            )
            page = replace(page, rendered=said)
        return page

    def search(
        self,
        id: str,
        pattern: str,
        context: int = 0,
        after: int | None = None,
        *,
        limit: int = limits.HITS_DEFAULT,
        ignore_case: bool = False,
    ) -> Hits:
        """Matches of an RE2 pattern: their exact number, and `limit` of them after skipping `after`.

        Linear time, whatever the pattern. `context` adds lines around each. `limit=0` only counts.
        Raises `PatternError` for what RE2 does not take (look-around, back-references).
        """
        return self.store.run_flow(self._search(id, pattern, context, after, limit, ignore_case))

    async def asearch(
        self,
        id: str,
        pattern: str,
        context: int = 0,
        after: int | None = None,
        *,
        limit: int = limits.HITS_DEFAULT,
        ignore_case: bool = False,
    ) -> Hits:
        """`search`, off the event loop."""
        return await self.store.arun_flow(
            self._search(id, pattern, context, after, limit, ignore_case)
        )

    @access.as_it_is_now
    def _search(
        self,
        id: str,
        pattern: str,
        context: int,
        after: int | None,
        limit: int,
        ignore_case: bool,
    ) -> Flow[Hits]:
        row, reader = yield from self._read_in_stead(id, "search")
        return (
            yield from search_hits(
                reader,
                row.id,
                pattern,
                context=context,
                after=after,
                limit=limit,
                case=not ignore_case,
                base64=row.shape.base64,
            )
        )

    def list(self, after: int = 0, limit: int = limits.LIST_ITEMS) -> Listing:
        """What this session holds, oldest first: `limit` handles after skipping `after`."""
        return self.store.run_flow(self._list(after, limit))

    async def alist(self, after: int = 0, limit: int = limits.LIST_ITEMS) -> Listing:
        """`list`, off the event loop."""
        return await self.store.arun_flow(self._list(after, limit))

    def _list(self, after: int, limit: int) -> Flow[Listing]:
        store, scope = self.store, self.scope
        rows, total = yield from access.listed(store, scope, max(after, 0), max(limit, 1))
        handles = [access.given_out(store, scope, row) for row in rows]
        return listing(handles, after=max(after, 0), total=total)

    def handle(self, id: str) -> Handle:
        """The handle of an id: its kind, size and shape, and its envelope as `str(handle)`."""
        return self.store.run_flow(self._handle(id))

    async def ahandle(self, id: str) -> Handle:
        """`handle`, off the event loop."""
        return await self.store.arun_flow(self._handle(id))

    def _handle(self, id: str) -> Flow[Handle]:
        row = yield from self._row(id, "list")
        return access.given_out(self.store, self.scope, row)

    # --- the caller's side: all of it ---------------------------------------------------------------

    def load(self, id: str) -> Any:
        """The exact value that was stored, with its type.

        Raises `NotRestorable` if it holds an object of a class that is not imported here.
        """
        return self.store.run_flow(self._load(id))

    async def aload(self, id: str) -> Any:
        """`load`, off the event loop."""
        return await self.store.arun_flow(self._load(id))

    @access.as_it_is_now
    def _load(self, id: str) -> Flow[Any]:
        row, reader = yield from self._open(id, "load")
        return (yield from self._value(row, reader))

    @staticmethod
    def _value(row: Result, reader: Reader) -> Flow[Any]:
        body = yield from reader.body()
        twin = yield from reader.twin()
        return restore(row.payload.form, body, twin)

    def open(self, id: str) -> Stored:
        """The exact bytes as a binary file object: seekable, read chunk by chunk."""
        _, reader = self.store.run_flow(self._open(id, "open"))
        return Stored(self.store, reader)

    async def aopen(self, id: str) -> AsyncStored:
        """The exact bytes for a task: ``await file.read(n)``, or ``async for block in file``."""
        _, reader = await self.store.arun_flow(self._open(id, "open"))
        return AsyncStored(self.store, reader)

    @access.as_it_is_now
    def _open(self, id: str, action: access.Action) -> Flow[tuple[Result, Reader]]:
        """All of a result, as it was stored: for the caller's side."""
        row = yield from self._row(id, action)
        return row, (yield from open_reader(row.payload, self.store.caches))

    def _shown(self, id: str, action: access.Action) -> Flow[tuple[Result, Reader]]:
        """What a model may read of a result; nothing else of it reaches one."""
        row, reader = yield from self._open(id, action)
        return (yield from seen(row, reader, self.store.mask, self.store.caches))

    def _whole(self, id: str, action: access.Action) -> Flow[tuple[Result, Reader]]:
        """All of a result, with a shape that is of all of it."""
        row, reader = yield from self._open(id, action)
        return (yield from seen(row, reader, None, self.store.caches))

    def _read_in_stead(self, id: str, action: access.Action) -> Flow[tuple[Result, Reader]]:
        row, reader = yield from self._shown(id, action)
        return row, (yield from in_stead(reader, row.shape))

    def _row(self, id: str, action: access.Action) -> Flow[Result]:
        found = None
        id = access.id_of(id)
        path, id = (id, id_in(id)) if isinstance(id, str) and "/" in id else ("", id)
        if isinstance(id, str) and id.isascii() and 5 <= len(id) <= 80:
            meant = partial(self._is_at, path) if path else None
            found = yield from access.found(self.store, self.scope, id, action, meant)
        if found is None:
            raise unknown(path or id)
        if isinstance(found, Tombstone):
            raise gone(found)
        return found

    def _is_at(self, path: str, found: Result | Tombstone) -> bool:
        """Whether a path is that of the plain file of a row of this session, or was."""
        folder = self.store.settings.plain_folder
        if not folder:
            return False
        if isinstance(found, Result) and found.scope != self.scope:
            return False
        name = saved_name(self.scope, found.id, found.tool, found.shape)
        return path == f"{folder}/{name}"

    # --- tools, and the end -------------------------------------------------------------------------

    def tools(self, vocabulary: Vocabulary | None = None) -> Sequence[Tool]:
        """The read-back tools, framework-free: name, description, parameters, `call`, `acall`.

        In the store's vocabulary, which is also that of its envelopes, unless another is given.
        """
        from callslip.tools import tools_for

        return tools_for(self, vocabulary or self.store.settings.vocabulary)

    def delete(self, id: str) -> bool:
        """Remove one result now; what is left says what it was. False if it was not here."""
        return self.store.run_flow(self._delete(id)) > 0

    async def adelete(self, id: str) -> bool:
        """`delete`, off the event loop."""
        return await self.store.arun_flow(self._delete(id)) > 0

    def _delete(self, id: str) -> Flow[int]:
        id = access.id_of(id)
        if self.store.settings.authorize is not None:
            found = yield from access.found(self.store, self.scope, id, "delete")
            if found is None or found.id != id:
                return 0
        return (yield from self._remove(id))

    def close(self) -> int:
        """End the session: its results go, and how many is the answer. Never called by itself."""
        return self.store.run_flow(self._remove(None))

    async def aclose(self) -> int:
        """`close`, off the event loop."""
        return await self.store.arun_flow(self._remove(None))

    def _remove(self, id: str | None) -> Flow[int]:
        gone = yield from self._forget(id)
        removed = yield from upkeep.remove(
            Remove(
                why="closed" if id is None else "deleted",
                now=self.store.now(),
                tenant=self.scope.tenant,
                user=self.scope.user,
                session=self.scope.session,
                id=id,
            )
        )
        yield from saving.drop(gone)
        return removed

    def _forget(self, id: str | None) -> Flow[_Rows]:
        """What is about to go is kept in memory no longer either; the rows with plain files."""
        if id is not None:
            found = yield from do(Get(self.scope, id, self.store.now(), action=""))
            return self._forgotten([found] if isinstance(found, Result) else [])
        gone: _Rows = []
        after, total = 0, 1
        while after < total:
            op = List(self.scope, after, _LISTED, self.store.now(), action="")
            rows, total = yield from do(op)
            gone += self._forgotten(rows)
            after += _LISTED
        return gone

    def _forgotten(self, rows: Sequence[Result]) -> _Rows:
        for row in rows:
            self.store.forget(row.payload.digest)
        # Those of what is only shared with this session are another's.
        plain = bool(self.store.settings.plain_folder)
        return [row for row in rows if plain and row.scope == self.scope]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
