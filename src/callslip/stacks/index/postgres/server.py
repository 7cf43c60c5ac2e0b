"""Transactions on a server that may be slow, restarted or gone: bounded, retried, and their errors.

What psycopg says is never passed on: its messages quote statements, values and addresses.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from copy import copy
from typing import TypeVar

import psycopg

from callslip.errors import SettingsError, StoreUnavailable
from callslip.limits import INDEX_SECONDS
from callslip.stacks.index.address import address_of
from callslip.stacks.index.postgres import schema
from callslip.stacks.index.postgres.pool import CROWDED, Pool, TimedOut
from callslip.stacks.index.postgres.transaction import Db

T = TypeVar("T")

_TRIES = 4
"""How often a transaction is run that others' transactions undid."""

_REASONS = {
    "53100": "disk full",
    "42501": "permission denied",
    "3F000": "permission denied",  # asked again by then: without its USAGE a schema is not found
    "25006": "permission denied",
    "57014": "timed out",
    "55P03": "locked",
    "40001": "locked",
    "40P01": "locked",
    "53300": "unreachable",
    "57P01": "unreachable",
    "57P02": "unreachable",
    "57P03": "unreachable",
    "57P05": "unreachable",
    "25P03": "timed out",
}
_UNDONE = ("40001", "40P01")
_ABSENT = ("3F000", "42P01", "42883")
"""A schema, a table or a function that is not there: it was dropped under us, or is of before."""

_RIGHTS = "its role may not use that schema: docs/postgres.md, Rights"
_DENIED, _AWAY = "permission denied", "unreachable"
_REFUSALS = (
    (
        r"password authentication failed|no password supplied",
        _DENIED,
        "it refuses user or password",
    ),
    (r"role .* does not exist|no such user", _DENIED, "it refuses user or password"),
    (r"no pg_hba\.conf entry|not permitted to log in", _DENIED, "this user may not come from here"),
    (r"permission denied for database", _DENIED, "this user may not connect to that database"),
    (r"database .* does not exist|no such database", "failed", "there is no such database"),
    (CROWDED, _AWAY, "it has no connection left: max_connections, or a role's or database's limit"),
    (r"failed to resolve host|translate host name", _AWAY, "there is no such host"),
    (r"Connection refused", _AWAY, "nothing listens there"),
    (r"not support SSL|root certificate|certificate verify", _AWAY, "TLS does not work with it"),
)
"""A connection that is refused has no SQLSTATE, only words, and none of ours in another language of
the server's."""


def _refusal(error: psycopg.Error) -> tuple[str, str]:
    """The reason of a connection that was refused, and why in words of ours; "" for not known."""
    if error.sqlstate is None and isinstance(error, psycopg.OperationalError):
        said = str(error)
        for form, reason, words in _REFUSALS:
            if re.search(form, said):
                return reason, words
    if error.sqlstate == "25006":
        return "", "it only reads: a standby, or default_transaction_read_only"
    return "", _RIGHTS if error.sqlstate in ("42501", *_ABSENT) else ""


def reason_of(error: psycopg.Error) -> str:
    """The fixed words of `StoreUnavailable.reason` for a server's or the driver's error."""
    state = error.sqlstate
    if isinstance(error, TimedOut | psycopg.errors.ConnectionTimeout):
        return "timed out"
    if state is None:
        away = "unreachable" if isinstance(error, psycopg.OperationalError) else "failed"
        return _refusal(error)[0] or away
    if state[:2] == "28":
        return "permission denied"
    return "unreachable" if state[:2] == "08" else _REASONS.get(state, "failed")


def unavailable(error: psycopg.Error, shown: str) -> StoreUnavailable:
    """The error of ours that one of psycopg's becomes."""
    name = type(error).__name__ + (f", SQLSTATE {error.sqlstate}" if error.sqlstate else "")
    why = f": {words}" if (words := _refusal(error)[1]) else ""
    return StoreUnavailable(
        f"the index {shown} could not answer ({name}){why}", reason=reason_of(error)
    )


class Server:
    """The database of a URL, brought to today's schema by the first transaction."""

    def __init__(self, url: str) -> None:
        self.address = address_of(url)
        try:
            psycopg.conninfo.conninfo_to_dict(self.address.conninfo)
        except psycopg.ProgrammingError:  # which may quote a password
            raise SettingsError(
                f"url='{self.address.shown}?…': libpq does not read it; give options that it knows, "
                "and percent-encode user and password"
            ) from None
        self.pool = Pool(self.address)
        self.anew: Callable[[], None] | None = None
        """Called once the tables that were there are found to be gone, before they are made anew."""
        self._made: Callable[..., Db] = Db

    def making(self, made: Callable[..., Db]) -> Server:
        """The same server, whose transactions are of another kind (`auditing.telling`)."""
        other = copy(self)
        other._made = made
        return other

    def transact(
        self,
        work: Callable[[Db], T],
        *,
        tenant: bytes | None,
        again: bool,
        seconds: float | None = None,
    ) -> T:
        """Run `work` in one transaction, within `seconds` (`limits.INDEX_SECONDS`) in all.

        It is run anew where others' transactions undid it, and once where the connection was lost
        before the commit was sent; with `again`, also after. Raises StoreUnavailable.
        """
        until = time.monotonic() + (INDEX_SECONDS if seconds is None else seconds)
        undone, lost, absent = 0, False, False
        while True:
            db: Db | None = None
            current = self.pool.current
            try:
                self._migrate(until)
                with self.pool.borrow(until) as connection:
                    db = self._made(connection, self.address.schema, tenant)
                    try:
                        answer = work(db)
                        db.commit()
                    except BaseException:
                        db.rollback()
                        raise
                    return answer
            except psycopg.Error as error:
                state = error.sqlstate
                in_time = time.monotonic() < until
                if in_time and state in _UNDONE and (undone := undone + 1) < _TRIES:
                    time.sleep(0.01 * undone)
                    continue
                if in_time and state in _ABSENT and not absent:
                    absent, self.pool.current = True, False
                    if current and self.anew is not None:
                        self.anew()
                    continue
                gone = reason_of(error) == "unreachable" and not re.search(CROWDED, str(error))
                sure = db is None or again or not db.committing
                # Whatever else is idle was opened before this one broke: the server was restarted.
                if gone:
                    self.pool.close()
                if in_time and gone and sure and not lost:
                    lost = True
                    continue
                raise unavailable(error, self.address.shown) from None

    def _migrate(self, until: float) -> None:
        if self.pool.current:
            return
        with self.pool.making:
            if not self.pool.current:
                with self.pool.borrow(until) as connection:
                    schema.migrate(connection, self.address)
                self.pool.current = True

    def close(self) -> None:
        """Let go of the connections; a later operation opens them again."""
        self.pool.close()
