"""`offload_tool_results`: from what an agent or team was given to the store that it runs with."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from callslip.settings import place_of
from callslip.store import ResultStore
from callslip.team.db import Db

if TYPE_CHECKING:
    from callslip.team.owner import Owner

logger = logging.getLogger("callslip")

Setting = bool | ResultStore | None
DEFAULT = ResultStore()
"""The settings of `True`. One object, so that all who say `True` share what is bound to a file."""


def checked(setting: Any) -> Setting:
    """The setting, if it is one. Raises `TypeError`."""
    if setting is None or isinstance(setting, bool | ResultStore):
        return setting
    raise TypeError(
        f"offload_tool_results={setting!r}: give True, False, None or a ResultStore; the size from "
        "which a result is stored is set as ResultStore(threshold_chars=8000)"
    )


def effective(owner: Owner, db: Db | None, inherited: ResultStore | None) -> ResultStore | None:
    """The store that an owner runs with on `db`, below a team that runs with `inherited`.

    None: nothing is offloaded. Its own setting is read, never modified. Payloads of one database
    live in one place, the team's: elsewhere the rest of the team could not read them.
    """
    setting = checked(owner.offload_tool_results)
    if setting is False:
        return None
    if setting is None or (setting is True and inherited is not None):
        return inherited
    given = DEFAULT if setting is True else setting
    payloads = place_of(inherited.settings).payloads if inherited is not None else None
    bound = None if db is None else db.bind(given, payloads)
    if bound is None and not owner._warned:
        owner._warned = True
        logger.warning(
            "offload_tool_results of %r is off: it needs SqliteDb or PostgresDb, and its database "
            "is %s. Nothing is stored, results stay in the window.",
            owner.id,
            "none" if db is None else type(db).__name__,
        )
    return bound
