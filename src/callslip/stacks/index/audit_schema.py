"""The SQLite schema of the audit, legal holds, subjects and the retention of single rows: one migration.

Why it is as it is: `docs/decisions/0020-audit-and-retention.md`. What goes is told by triggers, so
no code path can forget it: as long as `auditing` has a row, which it has only inside of a transaction
that is told. Names are denormalised in `audit`, and it refers to nothing: it outlives what it tells of.
"""

from __future__ import annotations

_WHOSE = "auditing a, sessions s JOIN tenants t ON t.n = s.tenant"
_ENTRY = "INSERT INTO audit (at, action, actor, tenant, user, session, id, cause)"
_BY = "a.actor, t.name, s.user, s.name"
_UNDER_WAY = "EXISTS (SELECT 1 FROM auditing)"
_FILE = "CAST('file:' || OLD.version AS BLOB)"


def _erasing(id: str) -> str:
    return (
        "INSERT INTO erasing (payload, digest, key, actor, tenant, user, session, id, cause)"
        f" SELECT p.n, p.digest, p.key, {_BY}, {id}, a.cause FROM {_WHOSE} JOIN payloads p"
        " WHERE s.n = OLD.session AND p.n = OLD.payload;"
    )


AUDIT: tuple[str, ...] = (
    # --- rows that run out by themselves ---
    # A held row has its time in `held_expiry` alone, so that no sweep ever looks at it.
    "ALTER TABLE results ADD COLUMN expires_at REAL",
    "ALTER TABLE results ADD COLUMN held_expiry REAL",
    "CREATE INDEX results_expiry ON results (expires_at) WHERE expires_at IS NOT NULL",
    """CREATE INDEX results_session_expiry ON results (session, expires_at)
        WHERE expires_at IS NOT NULL""",
    """CREATE INDEX results_tenant_expiry ON results (tenant, expires_at)
        WHERE expires_at IS NOT NULL""",
    # --- legal holds ---
    "ALTER TABLE sessions ADD COLUMN held INTEGER NOT NULL DEFAULT 0",
    "DROP INDEX sessions_expiry",
    "DROP INDEX sessions_tenant_expiry",
    "DROP INDEX sessions_dead",
    """CREATE INDEX sessions_expiry ON sessions (expires_at)
        WHERE expires_at IS NOT NULL AND held = 0""",
    """CREATE INDEX sessions_tenant_expiry ON sessions (tenant, expires_at)
        WHERE expires_at IS NOT NULL AND held = 0""",
    "CREATE INDEX sessions_dead ON sessions (tenant) WHERE dead > 0 AND held = 0",
    "CREATE INDEX sessions_held ON sessions (tenant) WHERE held = 1",
    """CREATE TABLE holds (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant BLOB NOT NULL,
        user BLOB,
        session BLOB,
        reason BLOB NOT NULL,
        actor BLOB NOT NULL,
        since REAL NOT NULL
    )""",
    "CREATE INDEX holds_tenant ON holds (tenant)",
    # Whose facts are in a namespace: its first two words, as bytes. SQLite's JSON ends a text at NUL.
    "ALTER TABLE memory_spaces ADD COLUMN tenant BLOB",
    "ALTER TABLE memory_spaces ADD COLUMN owner BLOB",
    """UPDATE memory_spaces SET
        tenant = CAST(json_extract(CAST(parts AS TEXT), '$[0]') AS BLOB),
        owner = CAST(json_extract(CAST(parts AS TEXT), '$[1]') AS BLOB)""",
    # --- subjects ---
    # By id, not by row: it is true of a result, of the tombstone that it becomes, and of the version
    # of a file, whose id is `file:3`.
    """CREATE TABLE subjects (
        tenant INTEGER NOT NULL REFERENCES tenants (n),
        name BLOB NOT NULL,
        session INTEGER NOT NULL REFERENCES sessions (n),
        id BLOB NOT NULL,
        PRIMARY KEY (tenant, name, session, id)
    ) WITHOUT ROWID""",
    "CREATE INDEX subjects_row ON subjects (session, id)",
    """CREATE TABLE memory_subjects (
        tenant BLOB NOT NULL,
        name BLOB NOT NULL,
        fact INTEGER NOT NULL REFERENCES memories (n) ON DELETE CASCADE,
        PRIMARY KEY (tenant, name, fact)
    ) WITHOUT ROWID""",
    "CREATE INDEX memory_subjects_fact ON memory_subjects (fact)",
    """CREATE TRIGGER subjects_of_result AFTER DELETE ON results BEGIN
        DELETE FROM subjects WHERE session = OLD.session AND id = OLD.id AND NOT EXISTS
            (SELECT 1 FROM tombstones WHERE session = OLD.session AND id = OLD.id);
    END""",
    """CREATE TRIGGER subjects_of_tombstone AFTER DELETE ON tombstones BEGIN
        DELETE FROM subjects WHERE session = OLD.session AND id = OLD.id AND NOT EXISTS
            (SELECT 1 FROM results WHERE session = OLD.session AND id = OLD.id);
    END""",
    f"""CREATE TRIGGER subjects_of_file AFTER DELETE ON files BEGIN
        DELETE FROM subjects WHERE session = OLD.session AND id = {_FILE};
    END""",
    # --- the audit ---
    """CREATE TABLE audit (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        at REAL NOT NULL,
        action TEXT NOT NULL,
        outcome TEXT NOT NULL DEFAULT 'done',
        actor BLOB NOT NULL DEFAULT x'',
        tenant BLOB NOT NULL DEFAULT x'',
        user BLOB NOT NULL DEFAULT x'',
        session BLOB NOT NULL DEFAULT x'',
        id BLOB NOT NULL DEFAULT x'',
        tool BLOB NOT NULL DEFAULT x'',
        count INTEGER NOT NULL DEFAULT 1,
        cause BLOB NOT NULL DEFAULT x'',
        detail BLOB NOT NULL DEFAULT x''
    )""",
    "CREATE INDEX audit_session ON audit (tenant, user, session)",
    "CREATE INDEX audit_tenant ON audit (tenant)",
    "CREATE INDEX audit_id ON audit (id)",
    "CREATE INDEX audit_cause ON audit (cause) WHERE cause <> x''",
    *(
        f"""CREATE TRIGGER audit_never_{verb.lower()}d BEFORE {verb} ON audit BEGIN
        SELECT raise(ABORT, 'the audit is append-only');
    END"""
        for verb in ("UPDATE", "DELETE")
    ),
    # `INSERT OR REPLACE` deletes a row without a word to the triggers that refuse it.
    """CREATE TRIGGER audit_never_replaced BEFORE INSERT ON audit
    WHEN EXISTS (SELECT 1 FROM audit WHERE n = NEW.n) BEGIN
        SELECT raise(ABORT, 'the audit is append-only');
    END""",
    """CREATE TABLE auditing (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        actor BLOB NOT NULL,
        at REAL NOT NULL,
        cause BLOB NOT NULL
    )""",
    # What went and is not yet known to be erased: `fresh` until the end of its transaction, then as
    # long as the payload's object is there.
    """CREATE TABLE erasing (
        n INTEGER PRIMARY KEY,
        fresh INTEGER NOT NULL DEFAULT 1,
        payload INTEGER NOT NULL,
        digest BLOB NOT NULL,
        key BLOB,
        actor BLOB NOT NULL,
        tenant BLOB NOT NULL,
        user BLOB NOT NULL,
        session BLOB NOT NULL,
        id BLOB NOT NULL,
        cause BLOB NOT NULL
    )""",
    "CREATE INDEX erasing_key ON erasing (key)",
    "CREATE INDEX erasing_fresh ON erasing (n) WHERE fresh = 1",
    f"""CREATE TRIGGER audit_tombstone AFTER INSERT ON tombstones WHEN {_UNDER_WAY} BEGIN
        {_ENTRY} SELECT a.at, NEW.why, {_BY}, NEW.id, a.cause FROM {_WHOSE} WHERE s.n = NEW.session;
    END""",
    # What only says what was there is told with a delete by subject, and not as its time is over.
    f"""CREATE TRIGGER audit_tombstone_gone AFTER DELETE ON tombstones
    WHEN EXISTS (SELECT 1 FROM auditing WHERE cause <> x'') BEGIN
        {_ENTRY} SELECT a.at, 'deleted', {_BY}, OLD.id, a.cause FROM {_WHOSE}
            WHERE s.n = OLD.session;
    END""",
    # Before the row goes: what counts references would take the payload's key with it.
    f"""CREATE TRIGGER audit_result BEFORE DELETE ON results WHEN {_UNDER_WAY} BEGIN
        {_ENTRY} SELECT a.at, CASE WHEN OLD.seq < s.floor THEN 'expired' ELSE 'deleted' END,
            {_BY}, OLD.id, a.cause FROM {_WHOSE} WHERE s.n = OLD.session AND NOT EXISTS
            (SELECT 1 FROM tombstones WHERE session = OLD.session AND id = OLD.id);
        {_erasing("OLD.id")}
    END""",
    f"""CREATE TRIGGER audit_file BEFORE DELETE ON files WHEN {_UNDER_WAY} BEGIN
        {_ENTRY} SELECT a.at, CASE WHEN s.expires_at < a.at AND s.held = 0 THEN 'expired'
            ELSE 'deleted' END, {_BY}, {_FILE}, a.cause FROM {_WHOSE} WHERE s.n = OLD.session;
        {_erasing(_FILE)}
    END""",
    f"""CREATE TRIGGER audit_file_emptied BEFORE UPDATE OF payload ON files
    WHEN NEW.payload IS NULL AND OLD.payload IS NOT NULL AND {_UNDER_WAY} BEGIN
        {_ENTRY} SELECT a.at, 'evicted', {_BY}, {_FILE}, a.cause FROM {_WHOSE}
            WHERE s.n = OLD.session;
        {_erasing(_FILE)}
    END""",
    f"""CREATE TRIGGER audit_fact BEFORE DELETE ON memories WHEN {_UNDER_WAY} BEGIN
        INSERT INTO audit (at, action, actor, tenant, user, id, cause)
        SELECT a.at, CASE WHEN OLD.expires_at <= a.at THEN 'expired' ELSE 'deleted' END, a.actor,
            coalesce(m.tenant, x''), coalesce(m.owner, x''), OLD.id, a.cause
        FROM auditing a, memory_spaces m WHERE m.n = OLD.space;
    END""",
)
