"""The state machine of an index with sharing among its calls.

::

    TestMyIndex = shares_machine(lambda: MyIndex(...)).TestCase

As `callslip.testing.index_machine`, whose rules it has, and with them what readers see of shares.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from callslip.handle import Scope
from callslip.stacks import ops
from callslip.stacks.shareops import Revoke, Share, Shares
from callslip.testing.index_machine import index_machine

_scopes = st.sampled_from([Scope("s"), Scope("s"), Scope("s", "ana"), Scope("t\0\ud800")])
_ids = st.sampled_from(["r0", "r1", "r2", "r00", "r01", "r10", "nope"])
_users = st.sampled_from(["", "ana", "eve"])
_sessions = st.sampled_from([None, "s", "t\0\ud800"])


def shares_machine(
    open: Callable[[], ops.Runs],
    close: Callable[[Any], None] = lambda index: None,
    reopen: Callable[[Any], ops.Runs] | None = None,
) -> type[RuleBasedStateMachine]:
    """A state machine over indexes that `open()` makes, empty each time; `reopen` as there."""
    base: Any = index_machine(open, close, reopen)

    class SharesMachine(base):  # type: ignore[misc]
        named = 0

        def _rows(self) -> dict[tuple[Scope, str], ops.Result]:
            self.model.expire(self.now)
            sessions = self.model.sessions.items()
            return {(scope, row.id): row for scope, each in sessions for row in each.rows}

        @rule(
            pick=st.integers(0, 9),
            user=_users,
            session=_sessions,
            seconds=st.sampled_from([1.0, 30.0, 1000.0]),
        )
        def share(self, pick: int, user: str, session: str | None, seconds: float) -> None:
            rows = self._rows()
            places = [*rows, (Scope("s"), "nope")]
            self._share(*places[pick % len(places)], user, session, seconds)
            self.look_around(user, session or "other")

        @rule(call=st.integers(0, 2), content=st.integers(0, 2), user=_users)
        def share_what_was_just_put(self, call: int, content: int, user: str) -> None:
            scope = Scope("s", "ana")
            self._insert(scope, call, content, True, None, (None,) * 4)
            *_, row = self.model.sessions[scope].rows
            self._share(scope, row.id, user, None, 1000.0)
            self.look_around(user, "other")

        def _share(
            self, scope: Scope, id: str, user: str, session: str | None, seconds: float
        ) -> None:
            self.named += 1
            until = self.now + seconds
            op = Share(scope, id, f"shr_{self.named}", user, session, until, self.now)
            rows = self._rows()
            if not self.model.shares.waits(op, rows):
                assert self.index.run(op) == self.model.shares.share(op, rows)

        @rule(scope=_scopes, id=st.one_of(st.none(), _ids), name=st.integers(0, 12))
        def revoke(self, scope: Scope, id: str | None, name: int) -> None:
            op = Revoke(scope, self.now, f"shr_{name}" if name else None, id)
            assert self.index.run(op) == self.model.shares.revoke(op, self._rows())

        @rule(scope=_scopes, id=st.one_of(st.none(), _ids), after=st.integers(0, 2))
        def shares(self, scope: Scope, id: str | None, after: int) -> None:
            op = Shares(scope, self.now, id, 3, after)
            assert list(self.index.run(op)) == self.model.shares.given(op, self._rows())

        @rule(user=_users, session=st.sampled_from(["s", "t\0\ud800", "other"]))
        def look_around(self, user: str, session: str) -> None:
            scope = Scope(session, user)
            self.list(scope, 0, 9)
            for row in self.model.received(scope, self.now):
                self.get(scope, row.id)

        @rule()
        def sweep_shares(self) -> None:
            while self.index.run(ops.Sweep(self.now, 50, 1000.0)):
                pass
            self.model.sweep(self.now)
            self.model.shares.sweep(self.now, self._rows())

    return SharesMachine
