"""Where teams and agents keep their runs, checkpoints and results.

A database is a LangGraph checkpoint saver, a table of runs, and a place for results, or none: then
nothing is offloaded.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from callslip.errors import SettingsError
from callslip.limits import BUSY_SECONDS
from callslip.stacks.index.runs import SqliteRuns, StoredRun
from callslip.store import ResultStore
from callslip.team.clear import ClearRuns
from callslip.team.savers import hidden, postgres_saver, sqlite_saver_class

if TYPE_CHECKING:
    from os import PathLike

    from callslip.stacks.index.postgres.runs import PostgresRuns
    from callslip.stacks.index.sealed.ring import Ring


class Runs(Protocol):
    """The stored runs: what `SqliteRuns` does, in any place."""

    def put(self, run: StoredRun) -> None: ...

    def get(self, user: str, session: str, run: str) -> StoredRun | None: ...

    def list(
        self,
        user: str,
        session: str,
        *,
        owner: str | None = None,
        parent: str | None = None,
        status: Sequence[str] = (),
        last: int | None = None,
    ) -> Sequence[StoredRun]: ...

    def remove(self, user: str, session: str, run: str | None = None) -> Sequence[StoredRun]: ...


class Db:
    """A database for agents and teams. Subclass it with a saver and runs of your own."""

    runs: Runs

    def __init__(self, saver: BaseCheckpointSaver[Any], runs: Runs) -> None:
        self._saver = saver
        self.runs = runs

    @property
    def saver(self) -> BaseCheckpointSaver[Any]:
        """LangGraph's checkpoints of runs that are under way or paused."""
        return self._saver

    def bind(self, store: ResultStore, payloads: str | None = None) -> ResultStore | None:
        """A copy of the store's settings that keeps results here; None: there is no place here.

        The same copy for the same object, so that its connections and caches are shared.
        """
        return None

    @property
    def bound(self) -> list[ResultStore]:
        """The stores that were bound here and are in use."""
        return []

    def kept(self, default: ResultStore) -> ResultStore | None:
        """A store on the results that are here, for who looks at or deletes those of others:
        settings may have been turned off since."""
        return next(iter(self.bound), None) or self.bind(default)


class InMemoryDb(Db):
    """Sessions that live as long as this object. Offloading is off on it."""

    def __init__(self) -> None:
        super().__init__(InMemorySaver(), _MemoryRuns())


class _Kept(Db):
    """A database at a URL of an index: results have a place there, too."""

    def __init__(self, url: str, runs: SqliteRuns | PostgresRuns, keys: Any = None) -> None:
        self._url = url
        self._keys = keys
        self._ring: Ring | None = None
        self._lock = threading.RLock()
        self._opened: BaseCheckpointSaver[Any] | None = None
        self._stores: weakref.WeakKeyDictionary[ResultStore, dict[str | None, ResultStore]] = (
            weakref.WeakKeyDictionary()
        )
        self.runs: Runs = ClearRuns(runs, self._index)
        if keys is not None:
            from callslip.stacks.index.sealed import Sealed, master_of
            from callslip.team.sealing import SealedRuns

            self._sealed = Sealed(self._index(), master_of(keys))
            self._ring = self._sealed.ring
            self._ring.also_holds = runs.holds_any
            self.runs = SealedRuns(runs, self._ring)

    def _index(self) -> Any:
        """The index at the URL, for its keys."""
        raise NotImplementedError

    def bind(self, store: ResultStore, payloads: str | None = None) -> ResultStore | None:
        """A copy of the store with its index in this database. The store given is not modified."""
        with self._lock:
            copies = self._stores.setdefault(store, {})
            if payloads not in copies:
                copies[payloads] = self._bound_copy(store, payloads)
            return copies[payloads]

    def _bound_copy(self, store: ResultStore, payloads: str | None) -> ResultStore:
        if self._keys is None and store.settings.keys is not None:
            raise SettingsError(
                f"the store has keys=, and {self!r} has none: what its runs say would be stored in "
                "the clear; give the database the same keys="
            )
        bound = store.bind(self._url, payloads)
        return (
            bound if self._keys is None else bound._with(replace(bound.settings, keys=self._keys))
        )

    @property
    def bound(self) -> list[ResultStore]:
        """The stores that were bound here and are in use."""
        with self._lock:
            return [copy for copies in self._stores.values() for copy in copies.values()]


class SqliteDb(_Kept):
    """One SQLite file for runs, checkpoints and results; large payloads beside it, in a folder.

    The file is made at the first use, with rights for this user alone. It must be callslip's own.
    `keys`, as `ResultStore`'s, seals all of it.
    """

    def __init__(self, db_file: str | PathLike[str], keys: Any = None) -> None:
        # Resolved here: a folder changed later must not part what is in it.
        self.path = Path(db_file).expanduser().absolute()
        self._open = ExitStack()
        self._table = SqliteRuns(self.path)
        super().__init__(f"sqlite:///{self.path}", self._table, keys)

    def __repr__(self) -> str:
        return f"SqliteDb({str(self.path)!r})"

    @property
    def saver(self) -> BaseCheckpointSaver[Any]:
        """LangGraph's own saver; its blocking calls leave the event loop."""
        with self._lock:
            if self._opened is None:
                saver_class = sqlite_saver_class()
                self.runs.list("", "", last=0)  # makes the file, with its rights
                saver = self._open.enter_context(saver_class.from_conn_string(str(self.path)))
                saver.conn.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
                # Of the checkpoints alone: a killed process loses none, a power failure at most the
                # last steps, which are then done again. Results and runs are on the disk.
                saver.conn.execute("PRAGMA synchronous = NORMAL")
                saver.conn.execute("PRAGMA secure_delete = ON")  # some builds do not by themselves
                if self._ring is not None:
                    from callslip.team.sealing import seal_saver

                    seal_saver(saver, self._ring)
                self._opened = saver
            return self._opened

    def _index(self) -> Any:
        from callslip.stacks.index.sqlite import SqliteIndex

        return SqliteIndex(self.path)

    def close(self) -> None:
        """Close files and connections. Nothing is lost; a later call opens them again."""
        with self._lock:
            self._opened = None
            self._open.close()
        self._table.close()
        if self._ring is not None:
            self._sealed.close()
        for store in self.bound:
            store.close()


class PostgresDb(_Kept):
    """One PostgreSQL database for runs, checkpoints and results, for workers on many machines.

    db_url    as `ResultStore`'s: ``postgresql://…``, with its ``?schema=``; LangGraph's tables stand
              in that schema, beside ours. Made at the first use
    payloads  where large results are, as `ResultStore(payloads=…)`: a folder or an object store that
              all workers reach, or `?payloads=` in the URL. A store that brings a place of its own is
              bound with that
    keys      as `ResultStore`'s: seals runs, checkpoints and results

    Raises `SettingsError` for a wrong URL and where psycopg is missing, `ImportError` at the first
    use where LangGraph's saver is.
    """

    def __init__(
        self, db_url: str, payloads: str | PathLike[str] | None = None, keys: Any = None
    ) -> None:
        from callslip.stacks.index.postgres.runs import PostgresRuns
        from callslip.stacks.index.postgres.server import Server

        self._server = Server(db_url)
        said = self._server.address.payloads
        self._payloads = said if payloads is None else str(payloads)
        self._kept: ResultStore | None = None
        super().__init__(db_url, PostgresRuns(self._server), keys)

    def __repr__(self) -> str:
        return f"PostgresDb({self._server.address.shown!r})"

    @property
    def saver(self) -> BaseCheckpointSaver[Any]:
        """LangGraph's own saver, on connections that the runs use, too."""
        with self._lock:
            if self._opened is None:
                self._opened = postgres_saver(self._server)
                if self._ring is not None:
                    from callslip.team.sealing import seal_saver

                    seal_saver(self._opened, self._ring, hidden)
            return self._opened

    def _index(self) -> Any:
        from callslip.stacks.index.postgres import PostgresIndex

        return PostgresIndex(self._url)

    def bind(self, store: ResultStore, payloads: str | None = None) -> ResultStore | None:
        """A copy of the store with its index in this database, its payloads where the store, this
        database or those before it say. The store given is not modified."""
        place = payloads or store.settings.payloads or self._payloads or self._recorded()
        if place is None:
            raise SettingsError(
                f"{self!r} has no folder of its own for large results: give it payloads="
                "'s3://bucket/prefix' (gs://, az://) or a folder that all workers see"
            )
        return super().bind(store, place)

    def kept(self, default: ResultStore) -> ResultStore | None:
        """As `Db.kept`, also where nobody said where payloads are: then none is outside of here."""
        with self._lock:
            known = next(iter(self.bound), None) or self._kept
            if known is None:
                place = self._payloads or self._recorded() or "memory://"
                known = self._kept = self._bound_copy(default, place)
            return known

    def _recorded(self) -> str | None:
        """Where the large results of this database are, if there is one."""
        from callslip.stacks.ops import PayloadPlace
        from callslip.stacks.payloads.placed import named

        index = self._index()
        try:
            recorded = index.run(PayloadPlace())
            return None if recorded is None else named(recorded)[0]
        finally:
            index.close()

    def close(self) -> None:
        """Close the connections. Nothing is lost; a later call opens them again."""
        self._server.close()
        if self._ring is not None:
            self._sealed.close()
        for store in (*self.bound, *([self._kept] if self._kept else [])):
            store.close()


class _MemoryRuns:
    def __init__(self) -> None:
        self._runs: dict[tuple[str, str, str], StoredRun] = {}
        self._lock = threading.Lock()

    def put(self, run: StoredRun) -> None:
        with self._lock:
            self._runs[run.user, run.session, run.run] = run

    def get(self, user: str, session: str, run: str) -> StoredRun | None:
        return self._runs.get((user, session, run))

    def list(
        self,
        user: str,
        session: str,
        *,
        owner: str | None = None,
        parent: str | None = None,
        status: Sequence[str] = (),
        last: int | None = None,
    ) -> Sequence[StoredRun]:
        def wanted(run: StoredRun) -> bool:
            return (
                (run.user, run.session) == (user, session)
                and owner in (None, run.owner)
                and parent in (None, run.parent)
                and (not status or run.status in status)
            )

        found = self._where(wanted)
        return found if last is None else found[len(found) - min(last, len(found)) :]

    def remove(self, user: str, session: str, run: str | None = None) -> Sequence[StoredRun]:
        removed = self._tree(user, session, run)
        with self._lock:
            for each in removed:
                self._runs.pop((user, session, each.run), None)
        return removed

    def _where(self, wanted: Callable[[StoredRun], bool]) -> Sequence[StoredRun]:
        with self._lock:
            return [run for run in self._runs.values() if wanted(run)]

    def _tree(self, user: str, session: str, run: str | None) -> Sequence[StoredRun]:
        if run is None:
            return self.list(user, session)
        found = self.get(user, session, run)
        return [] if found is None else [found, *self._below(user, session, run)]

    def _below(self, user: str, session: str, run: str) -> Iterator[StoredRun]:
        for child in self.list(user, session, parent=run):
            yield child
            yield from self._below(user, session, child.run)
