"""The SQLite schema of the index, as migrations that several processes may race.

Why it is as it is: `docs/decisions/0004-index-schema.md`. The running totals and the reference
counts are kept by triggers, so no code path can forget them. Text of a caller is kept as BLOB
(`rows.to_blob`): NUL and lone surrogates survive, and equality is equality of bytes.
"""

from __future__ import annotations

import sqlite3

from callslip.errors import SettingsError
from callslip.stacks.index.audit_schema import AUDIT
from callslip.stacks.index.key_schema import KEYS
from callslip.stacks.index.memory_schema import MEMORY
from callslip.stacks.index.share_schema import SHARES

APPLICATION_ID = 0x43534C50  # "CSLP": tells our files from another program's database.

_FIRST: tuple[str, ...] = (
    """CREATE TABLE store (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        garbage INTEGER NOT NULL DEFAULT 0
    )""",
    "INSERT INTO store (one) VALUES (1)",
    """CREATE TABLE tenants (
        n INTEGER PRIMARY KEY,
        name BLOB NOT NULL UNIQUE,
        sessions INTEGER NOT NULL DEFAULT 0,
        results INTEGER NOT NULL DEFAULT 0,
        tombstones INTEGER NOT NULL DEFAULT 0,
        payloads INTEGER NOT NULL DEFAULT 0,
        content_bytes INTEGER NOT NULL DEFAULT 0,
        packed_bytes INTEGER NOT NULL DEFAULT 0
    )""",
    # `floor`: rows with a lower seq ran out with an earlier life of the session, and only wait for
    # the sweep; there are `dead` of them. So reopening a run-out session costs the same whatever it
    # held. `expires_at` is NULL without a ttl and once closed.
    """CREATE TABLE sessions (
        n INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL REFERENCES tenants (n),
        name BLOB NOT NULL,
        user BLOB NOT NULL,
        active_at REAL NOT NULL,
        ttl REAL,
        expires_at REAL,
        closed INTEGER NOT NULL DEFAULT 0,
        next_seq INTEGER NOT NULL DEFAULT 1,
        floor INTEGER NOT NULL DEFAULT 0,
        floor_at REAL NOT NULL DEFAULT 0,
        dead INTEGER NOT NULL DEFAULT 0,
        dead_bytes INTEGER NOT NULL DEFAULT 0,
        results INTEGER NOT NULL DEFAULT 0,
        tombstones INTEGER NOT NULL DEFAULT 0,
        payloads INTEGER NOT NULL DEFAULT 0,
        content_bytes INTEGER NOT NULL DEFAULT 0,
        packed_bytes INTEGER NOT NULL DEFAULT 0,
        UNIQUE (tenant, name, user)
    )""",
    "CREATE INDEX sessions_user ON sessions (tenant, user)",
    "CREATE INDEX sessions_active ON sessions (active_at) WHERE closed = 0",
    "CREATE INDEX sessions_tenant_active ON sessions (tenant, active_at) WHERE closed = 0",
    "CREATE INDEX sessions_expiry ON sessions (expires_at) WHERE expires_at IS NOT NULL",
    """CREATE INDEX sessions_tenant_expiry ON sessions (tenant, expires_at)
        WHERE expires_at IS NOT NULL""",
    "CREATE INDEX sessions_dead ON sessions (tenant) WHERE dead > 0",
    """CREATE TABLE payloads (
        n INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL REFERENCES tenants (n),
        digest BLOB NOT NULL,
        form BLOB NOT NULL,
        packed INTEGER NOT NULL,
        trailer INTEGER NOT NULL,
        key BLOB,
        refs INTEGER NOT NULL DEFAULT 0,
        UNIQUE (tenant, digest)
    )""",
    "CREATE UNIQUE INDEX payloads_key ON payloads (key) WHERE key IS NOT NULL",
    "CREATE TABLE inline (payload INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    """CREATE TABLE results (
        n INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL REFERENCES tenants (n),
        session INTEGER NOT NULL REFERENCES sessions (n),
        seq INTEGER NOT NULL,
        id BLOB NOT NULL,
        call BLOB NOT NULL,
        payload INTEGER NOT NULL REFERENCES payloads (n),
        size INTEGER NOT NULL,
        created_at REAL NOT NULL,
        same_as BLOB NOT NULL,
        tool BLOB NOT NULL,
        status BLOB NOT NULL,
        args BLOB NOT NULL,
        shape BLOB NOT NULL,
        preview BLOB NOT NULL,
        UNIQUE (session, id),
        UNIQUE (session, seq)
    )""",
    "CREATE INDEX results_payload ON results (payload, session, seq)",
    "CREATE INDEX results_tenant ON results (tenant)",
    """CREATE TABLE tombstones (
        n INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL REFERENCES tenants (n),
        session INTEGER NOT NULL REFERENCES sessions (n),
        id BLOB NOT NULL,
        call BLOB NOT NULL,
        digest BLOB NOT NULL,
        why TEXT NOT NULL,
        gone_at REAL NOT NULL,
        tool BLOB NOT NULL,
        args BLOB NOT NULL,
        shape BLOB NOT NULL,
        UNIQUE (session, id)
    )""",
    "CREATE INDEX tombstones_gone ON tombstones (gone_at)",
    # tombstones.tenant and payloads.tenant are covered by the foreign keys of sessions: a tenant
    # goes only when its last session has gone. SQLite still wants to look when it deletes one.
    "CREATE INDEX tombstones_tenant ON tombstones (tenant)",
    "CREATE TABLE garbage (key BLOB PRIMARY KEY) WITHOUT ROWID",
    """CREATE TRIGGER garbage_added AFTER INSERT ON garbage BEGIN
        UPDATE store SET garbage = garbage + 1;
    END""",
    """CREATE TRIGGER garbage_gone AFTER DELETE ON garbage BEGIN
        UPDATE store SET garbage = garbage - 1;
    END""",
    """CREATE TRIGGER payload_added AFTER INSERT ON payloads BEGIN
        UPDATE tenants SET payloads = payloads + 1, packed_bytes = packed_bytes + NEW.packed
        WHERE n = NEW.tenant;
    END""",
    """CREATE TRIGGER payload_free AFTER UPDATE OF refs ON payloads
    WHEN NEW.refs = 0 AND OLD.refs > 0 BEGIN
        DELETE FROM payloads WHERE n = NEW.n;
    END""",
    """CREATE TRIGGER payload_gone AFTER DELETE ON payloads BEGIN
        DELETE FROM inline WHERE payload = OLD.n;
        INSERT INTO garbage (key) SELECT OLD.key WHERE OLD.key IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM garbage WHERE key = OLD.key);
        UPDATE tenants SET payloads = payloads - 1, packed_bytes = packed_bytes - OLD.packed
        WHERE n = OLD.tenant;
    END""",
    """CREATE TRIGGER result_added AFTER INSERT ON results BEGIN
        UPDATE payloads SET refs = refs + 1 WHERE n = NEW.payload;
        UPDATE sessions SET results = results + 1, content_bytes = content_bytes + NEW.size
        WHERE n = NEW.session;
        UPDATE sessions SET payloads = payloads + 1,
            packed_bytes = packed_bytes + (SELECT packed FROM payloads WHERE n = NEW.payload)
        WHERE n = NEW.session AND NOT EXISTS (SELECT 1 FROM results
            WHERE payload = NEW.payload AND session = NEW.session AND seq <> NEW.seq);
        UPDATE tenants SET results = results + 1, content_bytes = content_bytes + NEW.size
        WHERE n = NEW.tenant;
    END""",
    """CREATE TRIGGER result_gone AFTER DELETE ON results BEGIN
        UPDATE sessions SET results = results - 1, content_bytes = content_bytes - OLD.size
        WHERE n = OLD.session;
        UPDATE sessions SET dead = dead - 1, dead_bytes = dead_bytes - OLD.size
        WHERE n = OLD.session AND OLD.seq < floor;
        UPDATE sessions SET payloads = payloads - 1,
            packed_bytes = packed_bytes - (SELECT packed FROM payloads WHERE n = OLD.payload)
        WHERE n = OLD.session AND NOT EXISTS (SELECT 1 FROM results
            WHERE payload = OLD.payload AND session = OLD.session);
        UPDATE tenants SET results = results - 1, content_bytes = content_bytes - OLD.size
        WHERE n = OLD.tenant;
        UPDATE payloads SET refs = refs - 1 WHERE n = OLD.payload;
    END""",
    """CREATE TRIGGER tombstone_added AFTER INSERT ON tombstones BEGIN
        UPDATE sessions SET tombstones = tombstones + 1 WHERE n = NEW.session;
        UPDATE tenants SET tombstones = tombstones + 1 WHERE n = NEW.tenant;
    END""",
    """CREATE TRIGGER tombstone_gone AFTER DELETE ON tombstones BEGIN
        UPDATE sessions SET tombstones = tombstones - 1 WHERE n = OLD.session;
        UPDATE tenants SET tombstones = tombstones - 1 WHERE n = OLD.tenant;
    END""",
    """CREATE TRIGGER session_opened AFTER INSERT ON sessions WHEN NEW.closed = 0 BEGIN
        UPDATE tenants SET sessions = sessions + 1 WHERE n = NEW.tenant;
    END""",
    """CREATE TRIGGER session_turned AFTER UPDATE OF closed ON sessions
    WHEN NEW.closed <> OLD.closed BEGIN
        UPDATE tenants SET sessions = sessions + OLD.closed - NEW.closed WHERE n = NEW.tenant;
    END""",
    """CREATE TRIGGER session_gone AFTER DELETE ON sessions WHEN OLD.closed = 0 BEGIN
        UPDATE tenants SET sessions = sessions - 1 WHERE n = OLD.tenant;
    END""",
)

_SECOND: tuple[str, ...] = (
    # Scratch files: docs/decisions/0011-scratch-files.md.
    "ALTER TABLE sessions ADD COLUMN next_file INTEGER NOT NULL DEFAULT 1",
    "ALTER TABLE sessions ADD COLUMN files INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN file_bytes INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE tenants ADD COLUMN files INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE tenants ADD COLUMN file_bytes INTEGER NOT NULL DEFAULT 0",
    """CREATE TABLE files (
        n INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL REFERENCES tenants (n),
        session INTEGER NOT NULL REFERENCES sessions (n),
        version INTEGER NOT NULL,
        branch INTEGER NOT NULL,
        path BLOB NOT NULL,
        payload INTEGER REFERENCES payloads (n),
        size INTEGER NOT NULL,
        shape BLOB NOT NULL,
        line BLOB NOT NULL,
        step BLOB NOT NULL,
        call BLOB NOT NULL,
        written_at REAL NOT NULL,
        UNIQUE (session, version)
    )""",
    "CREATE INDEX files_path ON files (session, path, branch, version)",
    "CREATE INDEX files_branch ON files (session, branch, version, path)",
    "CREATE INDEX files_payload ON files (payload, session)",
    "CREATE INDEX files_tenant ON files (tenant)",
    "CREATE UNIQUE INDEX files_call ON files (session, call) WHERE call <> x''",
    """CREATE TABLE branches (
        session INTEGER NOT NULL REFERENCES sessions (n),
        branch INTEGER NOT NULL,
        parent INTEGER NOT NULL,
        forked_at INTEGER NOT NULL,
        PRIMARY KEY (session, branch)
    ) WITHOUT ROWID""",
    "CREATE INDEX branches_forked ON branches (session, parent, forked_at)",
    # A session's payloads are those of its results and its files: the two triggers of the first
    # migration that count them look at both from here on.
    "DROP TRIGGER result_added",
    """CREATE TRIGGER result_added AFTER INSERT ON results BEGIN
        UPDATE payloads SET refs = refs + 1 WHERE n = NEW.payload;
        UPDATE sessions SET results = results + 1, content_bytes = content_bytes + NEW.size
        WHERE n = NEW.session;
        UPDATE sessions SET payloads = payloads + 1,
            packed_bytes = packed_bytes + (SELECT packed FROM payloads WHERE n = NEW.payload)
        WHERE n = NEW.session AND NOT EXISTS (SELECT 1 FROM results
            WHERE payload = NEW.payload AND session = NEW.session AND seq <> NEW.seq)
            AND NOT EXISTS (SELECT 1 FROM files
            WHERE payload = NEW.payload AND session = NEW.session);
        UPDATE tenants SET results = results + 1, content_bytes = content_bytes + NEW.size
        WHERE n = NEW.tenant;
    END""",
    "DROP TRIGGER result_gone",
    """CREATE TRIGGER result_gone AFTER DELETE ON results BEGIN
        UPDATE sessions SET results = results - 1, content_bytes = content_bytes - OLD.size
        WHERE n = OLD.session;
        UPDATE sessions SET dead = dead - 1, dead_bytes = dead_bytes - OLD.size
        WHERE n = OLD.session AND OLD.seq < floor;
        UPDATE sessions SET payloads = payloads - 1,
            packed_bytes = packed_bytes - (SELECT packed FROM payloads WHERE n = OLD.payload)
        WHERE n = OLD.session AND NOT EXISTS (SELECT 1 FROM results
            WHERE payload = OLD.payload AND session = OLD.session)
            AND NOT EXISTS (SELECT 1 FROM files
            WHERE payload = OLD.payload AND session = OLD.session);
        UPDATE tenants SET results = results - 1, content_bytes = content_bytes - OLD.size
        WHERE n = OLD.tenant;
        UPDATE payloads SET refs = refs - 1 WHERE n = OLD.payload;
    END""",
    """CREATE TRIGGER file_added AFTER INSERT ON files BEGIN
        UPDATE payloads SET refs = refs + 1 WHERE n = NEW.payload;
        UPDATE sessions SET files = files + 1, file_bytes = file_bytes + NEW.size
        WHERE n = NEW.session;
        UPDATE sessions SET payloads = payloads + 1,
            packed_bytes = packed_bytes + (SELECT packed FROM payloads WHERE n = NEW.payload)
        WHERE n = NEW.session AND NOT EXISTS (SELECT 1 FROM results
            WHERE payload = NEW.payload AND session = NEW.session)
            AND NOT EXISTS (SELECT 1 FROM files
            WHERE payload = NEW.payload AND session = NEW.session AND n <> NEW.n);
        UPDATE tenants SET files = files + 1, file_bytes = file_bytes + NEW.size
        WHERE n = NEW.tenant;
    END""",
    # An evicted text and a deleted version let go of their payload in the same way.
    *(
        f"""CREATE TRIGGER {name} AFTER {event} BEGIN
        UPDATE sessions SET files = files - {rows}, file_bytes = file_bytes - OLD.size
        WHERE n = OLD.session;
        UPDATE sessions SET payloads = payloads - 1,
            packed_bytes = packed_bytes - (SELECT packed FROM payloads WHERE n = OLD.payload)
        WHERE n = OLD.session AND OLD.payload IS NOT NULL AND NOT EXISTS (SELECT 1 FROM results
            WHERE payload = OLD.payload AND session = OLD.session)
            AND NOT EXISTS (SELECT 1 FROM files
            WHERE payload = OLD.payload AND session = OLD.session);
        UPDATE tenants SET files = files - {rows}, file_bytes = file_bytes - OLD.size
        WHERE n = OLD.tenant;
        UPDATE payloads SET refs = refs - 1 WHERE n = OLD.payload;
    END"""
        for name, event, rows in (
            ("file_gone", "DELETE ON files", 1),
            (
                "file_emptied",
                "UPDATE OF payload ON files WHEN NEW.payload IS NULL AND OLD.payload IS NOT NULL",
                0,
            ),
        )
    ),
)

_FOURTH: tuple[str, ...] = (
    # Where the payload objects are: `callslip.stacks.payloads.placed`.
    "ALTER TABLE store ADD COLUMN payloads BLOB",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    _FIRST,
    _SECOND,
    MEMORY,
    _FOURTH,
    AUDIT,
    SHARES,
    KEYS,
)
"""Each entry brings a database from its position to the next `user_version`. Append, never edit."""


def check(connection: sqlite3.Connection, where: str) -> bool:
    """Whether the database is of today's version. Reads only: a file that is not ours stays as is.

    Raises `SettingsError` for another program's database and for one of a newer callslip.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables or application or version:
            raise SettingsError(
                f"{where} is a database of another program; give a path of its own to the index"
            )
        return False
    if version > len(MIGRATIONS):
        raise SettingsError(
            f"{where} was written by a newer callslip (schema {version}, this one knows "
            f"{len(MIGRATIONS)}); upgrade callslip, or give another path"
        )
    return bool(version == len(MIGRATIONS))


def migrate(connection: sqlite3.Connection, where: str) -> None:
    """Bring the database to today's version, in one transaction; a racing process finds it done."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not check(connection, where):
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
