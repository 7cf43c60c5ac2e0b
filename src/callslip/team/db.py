"""Where teams and agents keep their runs, checkpoints and results.

A database is a LangGraph checkpoint saver, a table of runs, and a place for results, or none: then
nothing is offloaded. A PostgreSQL one is these three again.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver

from callslip.limits import BUSY_SECONDS
from callslip.stacks.index.runs import SqliteRuns, StoredRun
from callslip.store import ResultStore

if TYPE_CHECKING:
    from os import PathLike


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


class InMemoryDb(Db):
    """Sessions that live as long as this object. Offloading is off on it."""

    def __init__(self) -> None:
        super().__init__(InMemorySaver(), _MemoryRuns())


class SqliteDb(Db):
    """One SQLite file for runs, checkpoints and results; large payloads beside it, in a folder.

    The file is made at the first use, with rights for this user alone. It must be callslip's own.
    """

    def __init__(self, db_file: str | PathLike[str]) -> None:
        # Resolved here: a folder changed later must not part what is in it.
        self.path = Path(db_file).expanduser().absolute()
        self._lock = threading.RLock()
        self._open = ExitStack()
        self._opened: BaseCheckpointSaver[Any] | None = None
        self._stores: weakref.WeakKeyDictionary[ResultStore, dict[str | None, ResultStore]] = (
            weakref.WeakKeyDictionary()
        )
        self._table = SqliteRuns(self.path)
        self.runs = self._table

    def __repr__(self) -> str:
        return f"SqliteDb({str(self.path)!r})"

    @property
    def saver(self) -> BaseCheckpointSaver[Any]:
        """LangGraph's own saver; its blocking calls leave the event loop."""
        with self._lock:
            if self._opened is None:
                saver_class = _saver_class()
                self.runs.list("", "", last=0)  # makes the file, with its rights
                saver = self._open.enter_context(saver_class.from_conn_string(str(self.path)))
                saver.conn.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
                # Of the checkpoints alone: a killed process loses none, a power failure at most the
                # last steps, which are then done again. Results and runs are on the disk.
                saver.conn.execute("PRAGMA synchronous = NORMAL")
                self._opened = saver
            return self._opened

    def bind(self, store: ResultStore, payloads: str | None = None) -> ResultStore | None:
        """A copy of the store with its index in this file. The store given is not modified."""
        with self._lock:
            copies = self._stores.setdefault(store, {})
            if payloads not in copies:
                copies[payloads] = store.bind(f"sqlite:///{self.path}", payloads)
            return copies[payloads]

    @property
    def bound(self) -> list[ResultStore]:
        """The stores that were bound here and are in use."""
        with self._lock:
            return [copy for copies in self._stores.values() for copy in copies.values()]

    def close(self) -> None:
        """Close files and connections. Nothing is lost; a later call opens them again."""
        with self._lock:
            self._opened = None
            self._open.close()
        self._table.close()
        for store in self.bound:
            store.close()


def _saver_class() -> Any:
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError as error:
        raise ImportError("callslip.team.SqliteDb needs: pip install 'callslip[team]'") from error

    class Saver(SqliteSaver):
        """LangGraph's saver for both kinds of run: it has one for sync, and another that is bound
        to the event loop it was opened on. This is the first, with its calls in a thread."""

        async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
            return await asyncio.to_thread(self.get_tuple, config)

        async def alist(
            self, config: RunnableConfig | None, **given: Any
        ) -> AsyncIterator[CheckpointTuple]:
            for found in await asyncio.to_thread(lambda: list(self.list(config, **given))):
                yield found

        async def aput(self, *given: Any, **named: Any) -> RunnableConfig:
            return await asyncio.to_thread(self.put, *given, **named)

        async def aput_writes(self, *given: Any, **named: Any) -> None:
            await asyncio.to_thread(self.put_writes, *given, **named)

        async def adelete_thread(self, thread_id: str) -> None:
            await asyncio.to_thread(self.delete_thread, thread_id)

    return Saver


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
