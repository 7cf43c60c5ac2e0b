"""A hypothesis state machine: a whole store against a plain dict, whatever the order of calls.

::

    TestMyStore = store_machine(lambda: ResultStore("postgresql://…", payloads="s3://…")).TestCase

Needs `hypothesis`. What an index and a payload store promise each for itself, `index_machine` and
`PayloadsContract` hold; this is about the two together. The store need not be empty: each walk
has tenants of its own. Few scopes, tools and contents on purpose, so that they collide.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from callslip.errors import HandleGone, UnknownHandle
from callslip.session import Session
from callslip.store import ResultStore

_noise = random.Random(1874)
_CONTENTS: tuple[Any, ...] = (
    "short",
    "two lines\nwith a \ud800 and a \0 in them\n",
    "\n".join(f"line {n} {_noise.getrandbits(256):064x}" for n in range(1_500)),
    _noise.randbytes(90_000),
    [{"n": n, "name": f"name {n}", "word": f"{_noise.getrandbits(128):x}"} for n in range(2_000)],
    {"nested": {"list": [1, 2.5, None, "x" * 50_000]}},
)
"""Texts, bytes, rows and a document: some stand in the index's row, some are objects."""

_scopes = st.sampled_from([("s", "", "a"), ("s", "", "a"), ("t", "ana", "a"), ("s", "", "b")])
_contents = st.integers(0, len(_CONTENTS) - 1)
_tools = st.sampled_from(["read", "search"])


def store_machine(
    open: Callable[[], ResultStore], reopen: Callable[[ResultStore], ResultStore] | None = None
) -> type[RuleBasedStateMachine]:
    """A state machine over the store that `open()` answers. `reopen` gets it and answers another
    one of the same place: nothing may depend on what a process remembers."""

    class StoreMachine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.store = open()
            self.walk = uuid.uuid4().hex
            self.live: dict[tuple[str, str, str], dict[str, Any]] = {}
            self.gone: dict[tuple[str, str, str], set[str]] = {}
            self.ids: dict[tuple[Any, ...], str] = {}
            """The id that each scope, tool and content had first: it never gets another."""

        def teardown(self) -> None:
            for scope in list(self.live):
                self._load_all(scope)
            for tenant in ("a", "b"):
                self.store.delete(tenant=self.walk + tenant)
                assert self.store.stats(tenant=self.walk + tenant).results == 0
            self.store.gc()
            found = self.store.verify()
            assert found.ok, found.problems
            self.store.close()

        def _session(self, scope: tuple[str, str, str]) -> Session:
            session, user, tenant = scope
            return self.store.session(session, user=user, tenant=self.walk + tenant)

        @initialize()
        def one_of_each(self) -> None:
            # A walk of few steps, too, is to meet every content.
            for content in range(len(_CONTENTS)):
                self._put(("s", "", "a"), content, "read", streamed=content % 2 == 1)

        @rule(scope=_scopes, content=_contents, tool=_tools, streamed=st.booleans())
        def put(self, scope: tuple[str, str, str], content: int, tool: str, streamed: bool) -> None:
            self._put(scope, content, tool, streamed)

        def _put(
            self, scope: tuple[str, str, str], content: int, tool: str, streamed: bool
        ) -> None:
            value = _CONTENTS[content]
            given = iter([value]) if streamed and isinstance(value, bytes) else value
            id = self._session(scope).put(given, tool=tool, args={"n": content}).id
            assert self.ids.setdefault((scope, tool, content), id) == id
            self.live.setdefault(scope, {}).setdefault(id, value)
            self.gone.setdefault(scope, set()).discard(id)

        @rule(scope=_scopes)
        def list_all(self, scope: tuple[str, str, str]) -> None:
            listed = self._session(scope).list(limit=100)
            assert [handle.id for handle in listed.handles] == list(self.live.get(scope, {}))
            assert listed.total == len(listed.handles)

        @rule(scope=_scopes)
        def load(self, scope: tuple[str, str, str]) -> None:
            self._load_all(scope)

        def _load_all(self, scope: tuple[str, str, str]) -> None:
            for id, value in self.live.get(scope, {}).items():
                loaded = self._session(scope).load(id)
                assert loaded == value and type(loaded) is type(value)

        @rule(scope=_scopes, data=st.data())
        def read_and_search(self, scope: tuple[str, str, str], data: st.DataObject) -> None:
            for id, value in self._some(scope, data):
                session = self._session(scope)
                if isinstance(value, list):
                    assert session.query(id, "n >= 1990", limit=0).total == 10
                    assert session.get(id, 7).value == value[6]
                elif isinstance(value, str):
                    assert session.search(id, "line", limit=0).total == value.count("line")
                    assert session.read(id, start=2, limit=1).total == len(value.splitlines())

        def _some(self, scope: tuple[str, str, str], data: st.DataObject) -> list[tuple[str, Any]]:
            live = list(self.live.get(scope, {}).items())
            return [data.draw(st.sampled_from(live))] if live else []

        @rule(scope=_scopes, other=_scopes)
        def what_is_not_here(
            self, scope: tuple[str, str, str], other: tuple[str, str, str]
        ) -> None:
            session = self._session(scope)
            here = self.live.get(scope, {}).keys() | self.gone.get(scope, set())
            for id in self.live.get(other, {}).keys() - here:
                assert _raised(session, id) is UnknownHandle
            for id in self.gone.get(scope, set()):
                assert _raised(session, id) is HandleGone

        @rule(scope=_scopes, data=st.data())
        def delete(self, scope: tuple[str, str, str], data: st.DataObject) -> None:
            for id, _ in self._some(scope, data):
                assert self._session(scope).delete(id)
                del self.live[scope][id]
                self.gone[scope].add(id)

        @rule(scope=_scopes)
        def close_session(self, scope: tuple[str, str, str]) -> None:
            went = self.live.pop(scope, {})
            assert self._session(scope).close() == len(went)
            self.gone.setdefault(scope, set()).update(went)

        @rule(scope=_scopes)
        def delete_session_for_good(self, scope: tuple[str, str, str]) -> None:
            session, user, tenant = scope
            removed = self.store.delete(tenant=self.walk + tenant, user=user, session=session)
            assert removed == len(self.live.pop(scope, {}))
            self.gone.pop(scope, None)

        @rule()
        def collect(self) -> None:
            self.store.gc()

        @rule()
        def open_anew(self) -> None:
            if reopen is not None:
                self.store.close()
                self.store = reopen(self.store)

    return StoreMachine


def _raised(session: Session, id: str) -> type[Exception] | None:
    try:
        session.read(id)
    except (UnknownHandle, HandleGone) as error:
        return type(error)
    return None
