"""Shares in plain lists: what `callslip.stacks.shareops` means, beside `callslip.testing.index_model`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from callslip.handle import Scope, Shared
from callslip.stacks import ops
from callslip.stacks.shareops import Revoke, Share, Shares

Rows = Mapping[tuple[Scope, str], ops.Result]
"""The live rows of all sessions, by the session and the id."""


@dataclass
class _Given:
    """A share, and which life of its row it is of."""

    owner: Scope
    life: int
    shared: Shared


class ModelShares:
    """The shares of all sessions, oldest first. One that has ended by its time stays until `sweep`."""

    def __init__(self) -> None:
        self._given: list[_Given] = []
        self._lives: dict[tuple[Scope, str], int] = {}
        self._count = 0

    def born(self, scope: Scope, id: str) -> None:
        """A row was made: what was shared of an earlier one of that id is not shared of this."""
        self._count += 1
        self._lives[scope, id] = self._count

    def sweep(self, now: float, rows: Rows) -> None:
        """Forget what has ended."""
        self._given = [each for each in self._given if self._live(each, now, rows)]

    def waits(self, op: Share, rows: Rows) -> bool:
        """Whether it is not said which of two answers an index gives: the same share has ended and
        may be swept by now, or another's result of that id is shared in this tenant."""
        for each in self._given:
            shared = each.shared
            if each.owner.tenant != op.scope.tenant or shared.id != op.id:
                continue
            ended = not self._live(each, op.now, rows)
            if each.owner != op.scope or (
                ended and each.life == self._lives.get((op.scope, op.id))
            ):
                return True
        return False

    def share(self, op: Share, rows: Rows) -> Shared | None:
        """What `Share` answers."""
        if (op.scope, op.id) not in rows:
            return None
        life = self._lives[op.scope, op.id]
        for each in self._given:
            known = (each.owner, each.life, each.shared.user, each.shared.session)
            if known == (op.scope, life, op.user, op.session):
                each.shared = replace(each.shared, until=op.until)
                return each.shared
        shared = Shared(op.name, op.id, op.user, op.session, op.now, op.until)
        self._given.append(_Given(op.scope, life, shared))
        return shared

    def revoke(self, op: Revoke, rows: Rows) -> int:
        """What `Revoke` answers."""
        meant = [
            each
            for each in self._given
            if each.owner == op.scope
            and op.name in (None, each.shared.name)
            and op.id in (None, each.shared.id)
        ]
        live = [each for each in meant if self._live(each, op.now, rows)]
        self._given = [each for each in self._given if each not in meant]
        return len(live)

    def given(self, op: Shares, rows: Rows) -> list[Shared]:
        """What `Shares` answers."""
        found = [
            each.shared
            for each in self._given
            if each.owner == op.scope
            and op.id in (None, each.shared.id)
            and self._live(each, op.now, rows)
        ]
        return found[op.after : op.after + op.limit]

    def received(self, scope: Scope, now: float, rows: Rows) -> list[ops.Result]:
        """The rows that are shared with a scope, each once."""
        found: dict[tuple[Scope, str], ops.Result] = {}
        for each in self._given:
            shared, owner = each.shared, each.owner
            if (owner.tenant, shared.user) != (scope.tenant, scope.user):
                continue
            if shared.session not in (None, scope.session) or not self._live(each, now, rows):
                continue
            row = rows[owner, shared.id]
            found.setdefault((owner, shared.id), replace(row, same_as=""))
        return list(found.values())

    def _live(self, each: _Given, now: float, rows: Rows) -> bool:
        place = (each.owner, each.shared.id)
        return place in rows and self._lives[place] == each.life and each.shared.until > now
