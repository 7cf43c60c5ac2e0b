"""LangGraph's checkpoint savers, each one object for both kinds of run.

LangGraph has one for sync, and another that is bound to the event loop it was opened on. These are
the first, with their calls in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

if TYPE_CHECKING:
    from callslip.stacks.index.postgres.server import Server


class OffTheLoop(BaseCheckpointSaver[Any]):
    """What a saver for sync needs for tasks, before its class in the order of bases."""

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


def sqlite_saver_class() -> Any:
    """LangGraph's saver in SQLite. Raises `ImportError`, which says what to install."""
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError as error:
        raise ImportError("callslip.team.SqliteDb needs: pip install 'callslip[team]'") from error

    class Saver(OffTheLoop, SqliteSaver):
        pass

    return Saver


def postgres_saver(server: Server) -> BaseCheckpointSaver[Any]:
    """LangGraph's saver in PostgreSQL: its tables in the schema of ours, its transactions within the
    bounds of ours. Raises `ImportError`, which says what to install."""
    try:
        from langgraph.checkpoint.postgres import PostgresSaver
    except ImportError as error:
        raise ImportError(
            "callslip.team.PostgresDb needs: pip install 'callslip[team,postgres]'"
        ) from error
    from callslip.stacks.index.postgres import cursors

    class Saver(OffTheLoop, PostgresSaver):
        @contextmanager
        def _cursor(self, *, pipeline: bool = False) -> Iterator[Any]:
            with cursors.cursor(server, pipeline=pipeline) as cursor:
                yield cursor

        def setup(self) -> None:
            cursors.migrated(server, "checkpoints", _migrate)

        def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            # Of these LangGraph makes JSON, and PostgreSQL's has no NUL and no half of a pair.
            described = {name: _json_text(config.get(name, {})) for name in _DESCRIBED}
            config = {**config, **described}
            values = {name: _held(value) for name, value in checkpoint["channel_values"].items()}
            checkpoint = {**checkpoint, "channel_values": values}
            return super().put(config, checkpoint, _json_text(metadata), new_versions)

    def _migrate(db: Any) -> None:
        # LangGraph's own `setup` is for one process at a time, and cannot be in a transaction.
        migrations = [each.replace("CONCURRENTLY", "") for each in PostgresSaver.MIGRATIONS]
        # Looked at first: who finds all of it there needs no right to make tables.
        ((there,),) = db.execute("SELECT to_regclass('checkpoint_migrations')")
        if there is None:
            db.execute(migrations[0])
        ((version,),) = db.execute("SELECT coalesce(max(v), -1) FROM checkpoint_migrations")
        for number, migration in enumerate(migrations[version + 1 :], version + 1):
            db.execute(migration)
            db.execute("INSERT INTO checkpoint_migrations (v) VALUES (%s)", (number,))

    saver = Saver(None, serde=_Serializer())  # type: ignore[arg-type]
    saver.setup()
    return saver


_DESCRIBED = ("configurable", "metadata")


class _Odd:
    """A text that PostgreSQL's JSON cannot hold, on its way to be stored as bytes."""

    def __init__(self, text: str) -> None:
        self.text = text


class _Serializer(JsonPlusSerializer):
    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if isinstance(obj, _Odd):
            return "callslip/text", obj.text.encode("utf-8", "surrogatepass")
        return super().dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        if data[0] == "callslip/text":
            return data[1].decode("utf-8", "surrogatepass")
        return super().loads_typed(data)


def hidden(value: Any) -> Any:
    """A text as an object, which no saver writes in the clear."""
    return _Odd(value) if isinstance(value, str) else value


def _is_odd(text: str) -> bool:
    return "\0" in text or not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)


def _held(value: Any) -> Any:
    return _Odd(value) if isinstance(value, str) and _is_odd(value) else value


def _json_text(value: Any) -> Any:
    """A description for people to look at, without what JSON cannot say."""
    if isinstance(value, str):
        if not _is_odd(value):
            return value
        return value.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
    if isinstance(value, dict):
        return {_json_text(name): _json_text(each) for name, each in value.items()}
    if type(value) in (list, tuple):
        return [_json_text(each) for each in value]
    return value
