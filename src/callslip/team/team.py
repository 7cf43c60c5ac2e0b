"""`Team`: a leader that delegates to members, which are agents or teams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from callslip.errors import SettingsError
from callslip.store import ResultStore
from callslip.team.db import Db
from callslip.team.delegation import delegation_tools
from callslip.team.owner import Owner


class Team(Owner):
    """A leader and its members, who work in one session and on one store of results.

    members           agents and teams; each is addressed by its `id`
    respond_directly  a member's answer is the run's answer: the leader only chooses who answers
    delegate_to_all_members   the leader gives every task to all members at once

    All other settings are those of `Agent`, for the leader; members without `model` or
    `offload_tool_results` have the team's.
    """

    _kind = "team"

    def __init__(
        self,
        members: Sequence[Owner],
        *,
        respond_directly: bool = False,
        delegate_to_all_members: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.members = list(members)
        self.respond_directly = respond_directly
        self.delegate_to_all_members = delegate_to_all_members
        self._named()

    def _named(self) -> dict[str, Owner]:
        named: dict[str, Owner] = {}
        for number, member in enumerate(self.members, 1):
            member.id = member.id or f"member-{number}"
            if named.setdefault(member.id, member) is not member:
                raise SettingsError(f"two members have the id {member.id!r}: give one an id=")
        return named

    def _bind(self, db: Db | None, inherited: ResultStore | None) -> None:
        super()._bind(db, inherited)
        for member in self._named().values():
            member._bind(db, self.result_store)

    def member(self, given: str) -> Owner | None:
        """The member of that id, or name: models mix them up."""
        wanted = given.strip().lower()
        for member in self.members:
            if wanted in (member.id.lower(), (member.name or member.id).lower()):
                return member
        return None

    def _own_tools(self) -> list[Any]:
        return delegation_tools(self)

    def _prompt(self) -> str:
        who = [": ".join([each.id, *([each.role] if each.role else [])]) for each in self.members]
        lines = ["You lead a team. Members:", *(f"- {each}" for each in who)]
        own = super()._prompt()
        return "\n".join([*lines, own] if own else lines)
