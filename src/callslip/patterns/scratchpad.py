"""Files that an agent keeps beside its transcript, and the plan that it is shown again and again.

::

    pad = Scratchpad(store.session("run-42"))
    tools = pad.tools()                  # write_file, read_file, edit_file, list_files
    tail = pad.plan()                    # todo.md, capped: put it at the end of every request

The files are rows of the session: they outlive compaction and the process, and go with the session.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from callslip import limits
from callslip.blocks import Redacted, Whole
from callslip.errors import FileError, FileStale, SettingsError, UnknownFile
from callslip.patterns import files
from callslip.patterns.files import FileList, FileNote, FilePage
from callslip.reading.page import read as read_page
from callslip.session import Session
from callslip.stacks.auditops import FILE_ID, SubjectsOf
from callslip.stacks.content import canonical
from callslip.stacks.fileops import File, FindWrite, ListFiles, ReadFile, View, Wrote
from callslip.stacks.filing import write_file
from callslip.stacks.ops import Flow, do
from callslip.stacks.reader import Reader, open_reader
from callslip.stacks.writing import Packing, digest_key
from callslip.store import ResultStore

if TYPE_CHECKING:
    from callslip.patterns.file_tools import FileTool
    from callslip.stacks.writing import Blocks

__all__ = ["FileList", "FileNote", "FilePage", "Scratchpad", "View"]

T = TypeVar("T")

_TRIES = 20
"""How often an edit is made anew on what another writer left, before it gives up."""

NOTHING_SEEN = -1


class Scratchpad:
    """The files of a session. Any number of threads, tasks and processes may write at once.

    session     a `Session`; or a `ResultStore`, then with `name=` the session's name
    plan        the path of the plan
    plan_chars  what `plan()` may take, its frame included
    prefix      goes before the names of the tools, where another toolset has the same ones
    view        which state of the files is meant; the latest unless an adapter says otherwise

    Every write makes a new version. Versions are numbered through the session, so one number names
    a state of all files. Paths are names and touch no file system. Verbs raise `FileError` (its kinds
    `FileStale`, `UnknownFile`) and `StoreUnavailable`; the tools never raise.
    """

    def __init__(
        self,
        session: Session | ResultStore,
        *,
        name: str = "",
        plan: str = "todo.md",
        plan_chars: int = limits.PLAN_CHARS,
        prefix: str = "",
        view: View | None = None,
    ) -> None:
        if isinstance(session, ResultStore):
            if not name:
                raise SettingsError(
                    "Scratchpad(store): name the session, as Scratchpad(store, name=…), or give "
                    "store.session(…)"
                )
            session = session.session(name)
        if plan_chars < 500:
            raise SettingsError(f"plan_chars={plan_chars!r}: give 500 or more")
        self.session = session
        self.plan_path = files.path_of(plan, session.store.settings.redact)
        self.plan_chars = plan_chars
        self.prefix = prefix
        self.view = view or View()
        self._seen: dict[str, int] = {}
        self._lock = threading.Lock()

    def at(self, view: View) -> Scratchpad:
        """The same files in another view: an older version, or those of one run (`View`)."""
        return Scratchpad(
            self.session,
            plan=self.plan_path,
            plan_chars=self.plan_chars,
            prefix=self.prefix,
            view=view,
        )

    # --- verbs ------------------------------------------------------------------------------------

    def write_file(self, path: str, content: str, *, version: int | None = None) -> FileNote:
        """Write a whole file, new or not.

        `version` is the one that the writer has seen, 0 for none: if the file is at another,
        `FileStale` is raised and nothing is written. None writes in any case; what was there stays
        readable as the earlier version.
        """
        return self._run(self.writing(path, content, version))

    async def awrite_file(self, path: str, content: str, *, version: int | None = None) -> FileNote:
        """`write_file`, off the event loop."""
        return await self._arun(self.writing(path, content, version))

    def read_file(
        self, path: str, start: int = 1, limit: int | None = None, column: int = 0
    ) -> FilePage:
        """Lines of a file from line `start`, about 4,000 characters of them, or `limit` lines.
        `column` goes on inside a line that is longer than a page."""
        return self._run(self.reading(path, start, limit, column))

    async def aread_file(
        self, path: str, start: int = 1, limit: int | None = None, column: int = 0
    ) -> FilePage:
        """`read_file`, off the event loop."""
        return await self._arun(self.reading(path, start, limit, column))

    def edit_file(
        self, path: str, old: str, new: str, *, all: bool = False, version: int | None = None
    ) -> FileNote:
        """Replace `old`, which must stand in the file once (or `all` of them), by `new`.

        What another writer changed meanwhile is kept: the edit is made on the file as it then is.
        With `version`, `FileStale` is raised instead.
        """
        return self._run(self.editing(path, old, new, all, version))

    async def aedit_file(
        self, path: str, old: str, new: str, *, all: bool = False, version: int | None = None
    ) -> FileNote:
        """`edit_file`, off the event loop."""
        return await self._arun(self.editing(path, old, new, all, version))

    def list_files(self, after: int = 0) -> FileList:
        """The files by path, after skipping `after`. `.version` is the number of this state."""
        return self._run(self.listing(after))

    async def alist_files(self, after: int = 0) -> FileList:
        """`list_files`, off the event loop."""
        return await self._arun(self.listing(after))

    def text(self, path: str) -> str:
        """The exact and whole text of a file. For a caller; never for a window."""
        return self._run(self._text_of(path))

    async def atext(self, path: str) -> str:
        """`text`, off the event loop."""
        return await self._arun(self._text_of(path))

    def plan(self, version: int | None = None) -> str:
        """The plan as it is to stand at the end of a request, `plan_chars` at the most.

        `version` shows it as it stood then. "" where there is none.
        """
        return self._run(self.planning(version))

    async def aplan(self, version: int | None = None) -> str:
        """`plan`, off the event loop."""
        return await self._arun(self.planning(version))

    def tools(self) -> Sequence[FileTool]:
        """The tools for a model: `name`, `description`, `parameters`, `call`, `acall`."""
        from callslip.patterns.file_tools import tools_for

        return tools_for(self)

    # --- flows ------------------------------------------------------------------------------------

    def writing(
        self, path: str, content: str, version: int | None = None, call: bytes = b""
    ) -> Flow[FileNote]:
        """The flow of `write_file`. `call` tells a replay from a second write."""
        path = self._path(path)
        if not isinstance(content, str):
            raise FileError("The content of a file is text.")
        wrote = yield from self._put(path, content, version, call)
        if wrote.outcome == "stale":
            raise self._stale(path, wrote.file)
        return self._told("Wrote" if wrote.outcome != "same" else "Nothing changed in", wrote)

    def editing(
        self,
        path: str,
        old: str,
        new: str,
        all: bool = False,
        version: int | None = None,
        call: bytes = b"",
    ) -> Flow[FileNote]:
        """The flow of `edit_file`."""
        path = self._path(path)
        if not isinstance(old, str) or not isinstance(new, str) or not old:
            raise FileError("Give the text to replace (old) and what it becomes (new).")
        if call:
            before = yield from do(FindWrite(self.session.scope, call, self._now()))
            if before is not None:
                return self._told("Edited", Wrote("replayed", before))
        found: File | None = None
        for _ in range(_TRIES):
            found = yield from self._file(path)
            if version is not None and version != found.version:
                raise self._stale(path, found)
            text = yield from self._body(found)
            edited = self._replaced(path, text, old, new, all)
            # What is left of a text stays about whom it was about, whoever edits it.
            about = yield from do(SubjectsOf(self.session.scope, f"{FILE_ID}{found.version}"))
            wrote = yield from self._put(path, edited, found.version, call, about)
            if wrote.outcome != "stale":
                return self._told("Edited" if wrote.outcome != "same" else "No change in", wrote)
        raise self._stale(path, found)

    def reading(
        self, path: str, start: int = 1, limit: int | None = None, column: int = 0
    ) -> Flow[FilePage]:
        """The flow of `read_file`."""
        found = yield from self._file(self._path(path))
        reader = yield from self._reader(found)
        part = yield from read_page(reader, "file", start=start, limit=limit, column=column)
        self._saw(found)
        return files.page(found.path, found.version, part, f"{self.prefix}read_file")

    def listing(self, after: int = 0) -> Flow[FileList]:
        """The flow of `list_files`."""
        found, at = yield from do(ListFiles(self.session.scope, self.view, self._now()))
        notes = [
            files.noted(
                each.path, each.version, each.shape.lines, each.shape.chars, each.shape.size
            )
            for each in found
        ]
        return files.listed(notes, at or 0, max(after, 0), f"{self.prefix}list_files")

    def planning(self, version: int | None = None) -> Flow[str]:
        """The flow of `plan`."""
        view = self.view if version is None else View(version)
        found = yield from do(ReadFile(self.session.scope, self.plan_path, view, self._now()))
        if found is None or found.payload is None:
            return ""
        text = yield from self._body(found)
        if not text.strip():
            return ""
        self._saw(found)
        read, edit = f"{self.prefix}read_file", f"{self.prefix}edit_file"
        return files.plan(found.path, found.version, text, self.plan_chars, read, edit)

    def expected(self, path: str) -> Flow[int]:
        """The version of a path that the window has seen: in its view, or by its own reads and
        writes; `NOTHING_SEEN` where it has not looked and there is no view to go by."""
        path = self._path(path)
        if self.view.version is not None:
            exact = View(self.view.version)
            found = yield from do(ReadFile(self.session.scope, path, exact, self._now()))
            return 0 if found is None else found.version
        with self._lock:
            seen = self._seen.get(path, NOTHING_SEEN)
        if seen == NOTHING_SEEN:
            found = yield from do(ReadFile(self.session.scope, path, self.view, self._now()))
            return 0 if found is None else NOTHING_SEEN
        return seen

    # --- parts ------------------------------------------------------------------------------------

    def _run(self, flow: Flow[T]) -> T:
        return self.session.store.run_flow(flow)

    async def _arun(self, flow: Flow[T]) -> T:
        return await self.session.store.arun_flow(flow)

    def _now(self) -> float:
        return self.session.store.now()

    def _path(self, given: str) -> str:
        return files.path_of(given, self.session.store.settings.redact)

    def _put(
        self, path: str, text: str, expect: int | None, call: bytes, about: Sequence[str] = ()
    ) -> Flow[Wrote]:
        if len(text) > limits.FILE_CHARS:
            raise FileError(
                f"A file has at most {limits.FILE_CHARS:,} characters; this would be {len(text):,}."
            )
        settings, scope = self.session.store.settings, self.session.scope
        blocks: Blocks = Whole(canonical(text))
        if settings.redact is not None:
            blocks = Redacted(blocks, settings.redact)
        wrote = yield from write_file(
            Packing(blocks, (yield from digest_key(scope.tenant))),
            scope,
            path,
            self.view,
            expect=expect,
            call=call,
            ttl=settings.ttl_of(scope.tenant),
            quota=settings.quota,
            now=self._now(),
            subjects=(*about, *self.session.subjects),
        )
        yield from self.session.store.upkeep()
        return wrote

    def _file(self, path: str) -> Flow[File]:
        found = yield from do(ReadFile(self.session.scope, path, self.view, self._now()))
        if found is None:
            others, _ = yield from do(ListFiles(self.session.scope, self.view, self._now()))
            raise UnknownFile(files.unknown(path, [each.path for each in others]))
        return found

    def _reader(self, found: File) -> Flow[Reader]:
        if found.payload is None:
            raise UnknownFile(
                f"The text of {files.inside(found.path)} as of version {found.version} was "
                "evicted to make room."
            )
        return (yield from open_reader(found.payload, self.session.store.caches))

    def _body(self, found: File) -> Flow[str]:
        reader = yield from self._reader(found)
        return (yield from reader.body()).decode("utf-8", "surrogatepass")

    def _text_of(self, path: str) -> Flow[str]:
        found = yield from self._file(self._path(path))
        return (yield from self._body(found))

    def _replaced(self, path: str, text: str, old: str, new: str, all: bool) -> str:
        name = files.inside(path)
        places = files.places(text, old)
        if not places and "\r\n" in text and "\r" not in old:
            old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
            places = files.places(text, old)
        if not places:
            # What a window shows of it has our own tags defused, character for character.
            places = files.places(files.inside(text), files.inside(old))
        if not places:
            raise FileError(
                f"The text to replace does not stand in {name}; look with "
                f"{self.prefix}read_file({files.quoted(path)})."
            )
        if len(places) > 1 and not all:
            raise FileError(
                f"The text to replace stands {len(places):,} times in {name}; give more of what "
                "stands around it, or all=true."
            )
        pieces, last = [], 0
        for place in places:
            pieces += [text[last:place], new]
            last = place + len(old)
        return "".join([*pieces, text[last:]])

    def _stale(self, path: str, found: File | None) -> FileStale:
        name, read = files.inside(path), f"{self.prefix}read_file({files.quoted(path)})"
        if found is None:
            text = f"{name} is not there, so nothing was written; a new file has version 0."
            return FileStale(text, version=0)
        text = (
            f"Nothing was written: {name} is at version {found.version}, which is not the one you "
            f"go by. See it with {read}, then write again."
        )
        return FileStale(text, version=found.version)

    def _told(self, verb: str, wrote: Wrote) -> FileNote:
        assert wrote.file is not None
        self._saw(wrote.file)
        file, shape = wrote.file, wrote.file.shape
        note = files.noted(file.path, file.version, shape.lines, shape.chars, shape.size)
        return files.wrote(verb, note)

    def _saw(self, found: File) -> None:
        with self._lock:
            self._seen[found.path] = found.version
