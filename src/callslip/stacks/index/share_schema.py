"""The SQLite schema of handles that are shared on purpose: one migration."""

from __future__ import annotations

SHARES: tuple[str, ...] = (
    # `session` is x'' for all sessions of the user, else x'01' and the session's name. A share goes
    # with its result, however that goes.
    """CREATE TABLE shares (
        n INTEGER PRIMARY KEY,
        result INTEGER NOT NULL REFERENCES results (n) ON DELETE CASCADE,
        tenant INTEGER NOT NULL REFERENCES tenants (n) ON DELETE CASCADE,
        name BLOB NOT NULL UNIQUE,
        id BLOB NOT NULL,
        user BLOB NOT NULL,
        session BLOB NOT NULL,
        made_at REAL NOT NULL,
        until REAL NOT NULL,
        UNIQUE (result, user, session)
    )""",
    # `until` behind the id: a look for what has not ended steps over what has in the index itself,
    # so that an ended share costs the very steps that an invented id does.
    "CREATE INDEX shares_to ON shares (tenant, user, session, id, until)",
    "CREATE INDEX shares_until ON shares (until)",
)
