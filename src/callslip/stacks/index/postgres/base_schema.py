"""The PostgreSQL schema of results, payloads, sessions and files: the first migration.

The totals and the reference counts are kept by triggers, so no code path can forget them: once a
statement, from all the rows that it touched. No trigger waits for a row that other sessions write:
a session's totals are in its own row, a tenant's are appended (`deltas`) and folded by the sweep.
"""

from __future__ import annotations

from callslip.stacks.index.postgres.base_files import FILES
from callslip.stacks.index.postgres.base_functions import FUNCTIONS
from callslip.stacks.index.postgres.base_retention import RETENTION
from callslip.stacks.index.postgres.wall import wall

COUNTED = (
    "sessions", "results", "tombstones", "payloads", "content_bytes", "packed_bytes", "files",
    "file_bytes",
)  # fmt: skip
"""What is counted of a tenant: the columns of `tallies` and of `deltas`."""

_COUNTERS = ", ".join(f"{name} bigint NOT NULL DEFAULT 0" for name in COUNTED)

_TABLES: tuple[str, ...] = (
    "CREATE TABLE store (one boolean PRIMARY KEY DEFAULT true CHECK (one), payloads bytea)",
    "INSERT INTO store DEFAULT VALUES",
    f"CREATE TABLE tallies (tenant bytea PRIMARY KEY, {_COUNTERS}) WITH (fillfactor = 50)",
    (
        f"CREATE TABLE deltas (tenant bytea NOT NULL, {_COUNTERS})"
        " WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2)"
    ),
    "CREATE INDEX deltas_tenant ON deltas (tenant)",
    # `floor`: rows with a lower seq ran out with an earlier life of the session, and only wait for
    # the sweep; there are `dead` of them. So reopening a run-out session costs the same whatever it
    # held. `expires_at` is NULL without a ttl and once closed.
    """CREATE TABLE sessions (
        n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        tenant bytea NOT NULL,
        name bytea NOT NULL,
        "user" bytea NOT NULL,
        active_at float8 NOT NULL,
        ttl float8,
        expires_at float8,
        closed boolean NOT NULL DEFAULT false,
        next_seq bigint NOT NULL DEFAULT 1,
        floor bigint NOT NULL DEFAULT 0,
        floor_at float8 NOT NULL DEFAULT 0,
        dead bigint NOT NULL DEFAULT 0,
        dead_bytes bigint NOT NULL DEFAULT 0,
        results bigint NOT NULL DEFAULT 0,
        tombstones bigint NOT NULL DEFAULT 0,
        content_bytes bigint NOT NULL DEFAULT 0,
        next_file bigint NOT NULL DEFAULT 1,
        files bigint NOT NULL DEFAULT 0,
        file_bytes bigint NOT NULL DEFAULT 0,
        held boolean NOT NULL DEFAULT false,
        UNIQUE (tenant, name, "user")
    ) WITH (fillfactor = 70)""",
    # `closed` first, so that no look-up of one session takes this index: a user may have a million.
    'CREATE INDEX sessions_user ON sessions (closed, tenant, "user")',
    "CREATE INDEX sessions_active ON sessions (active_at, n) WHERE NOT closed",
    "CREATE INDEX sessions_tenant_active ON sessions (tenant, active_at, n) WHERE NOT closed",
    """CREATE INDEX sessions_expiry ON sessions (expires_at)
        WHERE expires_at IS NOT NULL AND NOT held""",
    """CREATE INDEX sessions_tenant_expiry ON sessions (tenant, expires_at)
        WHERE expires_at IS NOT NULL AND NOT held""",
    "CREATE INDEX sessions_dead ON sessions (tenant) WHERE dead > 0 AND NOT held",
    "CREATE INDEX sessions_held ON sessions (tenant) WHERE held",
    # The bytes of a small payload are compressed already, and stand apart from the row, so that
    # counting a reference does not copy them.
    """CREATE TABLE payloads (
        n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        tenant bytea NOT NULL,
        digest bytea NOT NULL,
        form bytea NOT NULL,
        packed bigint NOT NULL,
        trailer bigint NOT NULL,
        refs bigint NOT NULL DEFAULT 0,
        key bytea,
        data bytea,
        UNIQUE (tenant, digest)
    ) WITH (fillfactor = 80, toast_tuple_target = 128)""",
    "ALTER TABLE payloads ALTER COLUMN data SET STORAGE EXTERNAL",
    "CREATE UNIQUE INDEX payloads_key ON payloads (key) WHERE key IS NOT NULL",
    # No foreign keys: each check would lock the row it finds once more, and `Repair` looks for what
    # points nowhere. `n` tells which of two results of a tenant is older.
    """CREATE TABLE results (
        n bigint GENERATED ALWAYS AS IDENTITY,
        tenant bytea NOT NULL,
        session bigint NOT NULL,
        seq bigint NOT NULL,
        payload bigint NOT NULL,
        size bigint NOT NULL,
        created_at float8 NOT NULL,
        id bytea NOT NULL,
        call bytea NOT NULL,
        same_as bytea NOT NULL DEFAULT '',
        tool bytea NOT NULL,
        status bytea NOT NULL,
        args bytea NOT NULL,
        shape bytea NOT NULL,
        preview bytea NOT NULL,
        expires_at float8,
        held_expiry float8,
        PRIMARY KEY (session, seq),
        UNIQUE (session, id)
    )""",
    "CREATE INDEX results_expiry ON results (expires_at) WHERE expires_at IS NOT NULL",
    """CREATE INDEX results_session_expiry ON results (session, expires_at)
        WHERE expires_at IS NOT NULL""",
    """CREATE INDEX results_tenant_expiry ON results (tenant, expires_at)
        WHERE expires_at IS NOT NULL""",
    "CREATE INDEX results_payload ON results (payload, session, seq)",
    "CREATE INDEX results_tenant ON results (tenant, n)",
    """CREATE TABLE tombstones (
        tenant bytea NOT NULL,
        session bigint NOT NULL,
        gone_at float8 NOT NULL,
        id bytea NOT NULL,
        call bytea NOT NULL,
        digest bytea NOT NULL,
        why text NOT NULL,
        tool bytea NOT NULL,
        args bytea NOT NULL,
        shape bytea NOT NULL,
        PRIMARY KEY (session, id)
    )""",
    "CREATE INDEX tombstones_gone ON tombstones (gone_at)",
    # Keys are random: they say nothing of whose they were. So this table has no wall.
    "CREATE TABLE garbage (key bytea PRIMARY KEY)",
    """CREATE TABLE files (
        n bigint GENERATED ALWAYS AS IDENTITY,
        tenant bytea NOT NULL,
        session bigint NOT NULL,
        version bigint NOT NULL,
        branch bigint NOT NULL,
        payload bigint,
        size bigint NOT NULL,
        written_at float8 NOT NULL,
        path bytea NOT NULL,
        shape bytea NOT NULL,
        line bytea NOT NULL,
        step bytea NOT NULL,
        call bytea NOT NULL,
        PRIMARY KEY (session, version)
    )""",
    "CREATE INDEX files_path ON files (session, path, branch, version)",
    "CREATE INDEX files_branch ON files (session, branch, version, path)",
    "CREATE INDEX files_payload ON files (payload, session)",
    "CREATE INDEX files_tenant ON files (tenant, n)",
    "CREATE UNIQUE INDEX files_call ON files (session, call) WHERE call <> ''",
    """CREATE TABLE branches (
        tenant bytea NOT NULL,
        session bigint NOT NULL,
        branch bigint NOT NULL,
        parent bigint NOT NULL,
        forked_at bigint NOT NULL,
        PRIMARY KEY (session, branch)
    )""",
    "CREATE INDEX branches_forked ON branches (session, parent, forked_at)",
)

_WALLED = (
    "tallies", "deltas", "sessions", "payloads", "results", "tombstones", "files", "branches",
)  # fmt: skip


def _trigger(table: str, event: str, body: str) -> tuple[str, ...]:
    """A trigger for all the rows of a statement: `changed` are those that were added, or went."""
    which = "NEW" if event == "INSERT" else "OLD"
    name = f"{table}_{'added' if event == 'INSERT' else 'gone'}"
    return (
        (
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body}"
            " RETURN NULL; END $$"
        ),
        (
            f"CREATE TRIGGER {name} AFTER {event} ON {table} REFERENCING {which} TABLE AS changed"
            f" FOR EACH STATEMENT EXECUTE FUNCTION {name}()"
        ),
    )


_TRIGGERS: tuple[str, ...] = (
    *_trigger(
        "payloads",
        "INSERT",
        """INSERT INTO deltas (tenant, payloads, packed_bytes)
            SELECT tenant, count(*), sum(packed) FROM changed GROUP BY tenant;""",
    ),
    *_trigger(
        "payloads",
        "DELETE",
        """INSERT INTO garbage (key) SELECT key FROM changed WHERE key IS NOT NULL
            ON CONFLICT DO NOTHING;
        INSERT INTO deltas (tenant, payloads, packed_bytes)
            SELECT tenant, -count(*), -sum(packed) FROM changed GROUP BY tenant;""",
    ),
    *_trigger(
        "results",
        "INSERT",
        """UPDATE payloads p SET refs = refs + c.n
            FROM (SELECT payload, count(*) n FROM changed GROUP BY payload) c WHERE p.n = c.payload;
        UPDATE sessions s SET results = results + c.n, content_bytes = content_bytes + c.size,
            next_seq = greatest(next_seq, c.last + 1)
            FROM (SELECT session, count(*) n, sum(size) size, max(seq) last FROM changed
                GROUP BY session) c WHERE s.n = c.session;
        INSERT INTO deltas (tenant, results, content_bytes)
            SELECT tenant, count(*), sum(size) FROM changed GROUP BY tenant;""",
    ),
    *_trigger(
        "results",
        "DELETE",
        """UPDATE sessions s SET results = results - c.n, content_bytes = content_bytes - c.size,
            dead = dead - c.ended, dead_bytes = dead_bytes - c.ended_size
            FROM (SELECT g.session, count(*) n, sum(g.size) size,
                    count(*) FILTER (WHERE g.seq < o.floor) ended,
                    coalesce(sum(g.size) FILTER (WHERE g.seq < o.floor), 0) ended_size
                FROM changed g JOIN sessions o ON o.n = g.session GROUP BY g.session) c
            WHERE s.n = c.session;
        INSERT INTO deltas (tenant, results, content_bytes)
            SELECT tenant, -count(*), -sum(size) FROM changed GROUP BY tenant;
        PERFORM let_go(ARRAY(SELECT payload FROM changed));""",
    ),
    *_trigger(
        "tombstones",
        "INSERT",
        """UPDATE sessions s SET tombstones = tombstones + c.n
            FROM (SELECT session, count(*) n FROM changed GROUP BY session) c
            WHERE s.n = c.session;
        INSERT INTO deltas (tenant, tombstones)
            SELECT tenant, count(*) FROM changed GROUP BY tenant;""",
    ),
    *_trigger(
        "tombstones",
        "DELETE",
        """UPDATE sessions s SET tombstones = tombstones - c.n
            FROM (SELECT session, count(*) n FROM changed GROUP BY session) c
            WHERE s.n = c.session;
        INSERT INTO deltas (tenant, tombstones)
            SELECT tenant, -count(*) FROM changed GROUP BY tenant;""",
    ),
    *_trigger(
        "files",
        "INSERT",
        """UPDATE payloads p SET refs = refs + c.n
            FROM (SELECT payload, count(*) n FROM changed GROUP BY payload) c WHERE p.n = c.payload;
        UPDATE sessions s SET files = files + c.n, file_bytes = file_bytes + c.size,
            next_file = greatest(next_file, c.last + 1)
            FROM (SELECT session, count(*) n, sum(size) size, max(version) last FROM changed
                GROUP BY session) c WHERE s.n = c.session;
        INSERT INTO deltas (tenant, files, file_bytes)
            SELECT tenant, count(*), sum(size) FROM changed GROUP BY tenant;""",
    ),
    *_trigger(
        "files",
        "DELETE",
        """UPDATE sessions s SET files = files - c.n, file_bytes = file_bytes - c.size
            FROM (SELECT session, count(*) n, sum(size) size FROM changed GROUP BY session) c
            WHERE s.n = c.session;
        INSERT INTO deltas (tenant, files, file_bytes)
            SELECT tenant, -count(*), -sum(size) FROM changed GROUP BY tenant;
        PERFORM let_go(ARRAY(SELECT payload FROM changed WHERE payload IS NOT NULL));""",
    ),
    """CREATE FUNCTION file_emptied() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        UPDATE sessions SET file_bytes = file_bytes - OLD.size WHERE n = OLD.session;
        INSERT INTO deltas (tenant, file_bytes) VALUES (OLD.tenant, -OLD.size);
        PERFORM let_go(ARRAY[OLD.payload]);
        RETURN NULL;
    END $$""",
    """CREATE TRIGGER file_emptied AFTER UPDATE OF payload ON files FOR EACH ROW
        WHEN (NEW.payload IS NULL AND OLD.payload IS NOT NULL) EXECUTE FUNCTION file_emptied()""",
    """CREATE FUNCTION session_turned() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF TG_OP = 'INSERT' THEN
            INSERT INTO deltas (tenant, sessions) VALUES (NEW.tenant, 1);
        ELSIF TG_OP = 'DELETE' THEN
            INSERT INTO deltas (tenant, sessions) VALUES (OLD.tenant, -1);
        ELSE
            INSERT INTO deltas (tenant, sessions)
                VALUES (NEW.tenant, CASE WHEN NEW.closed THEN -1 ELSE 1 END);
        END IF;
        RETURN NULL;
    END $$""",
    """CREATE TRIGGER session_opened AFTER INSERT ON sessions FOR EACH ROW
        WHEN (NOT NEW.closed) EXECUTE FUNCTION session_turned()""",
    """CREATE TRIGGER session_turned AFTER UPDATE OF closed ON sessions FOR EACH ROW
        WHEN (NEW.closed <> OLD.closed) EXECUTE FUNCTION session_turned()""",
    """CREATE TRIGGER session_gone AFTER DELETE ON sessions FOR EACH ROW
        WHEN (NOT OLD.closed) EXECUTE FUNCTION session_turned()""",
)

_SUMS = ", ".join(f"sum({name}) {name}" for name in COUNTED)
_ADDED = ", ".join(f"{name} = a.{name} + excluded.{name}" for name in COUNTED)
_NOTHING = " AND ".join(f"{name} = 0" for name in COUNTED)

_FOLDING: tuple[str, ...] = (
    # What others are folding, or have not committed, is left to them or to the next. An answer is
    # the sum of both tables in one snapshot, so it is right at any moment.
    f"""CREATE FUNCTION fold(_tenant bytea, _limit bigint) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE folded bigint;
    BEGIN
        WITH chosen AS (SELECT ctid FROM deltas WHERE _tenant IS NULL OR tenant = _tenant
                LIMIT _limit FOR UPDATE SKIP LOCKED),
            gone AS (DELETE FROM deltas WHERE ctid IN (SELECT ctid FROM chosen) RETURNING *),
            added AS (INSERT INTO tallies AS a (tenant, {", ".join(COUNTED)})
                SELECT tenant, {_SUMS} FROM gone GROUP BY tenant ORDER BY tenant
                ON CONFLICT (tenant) DO UPDATE SET {_ADDED} RETURNING tenant)
        SELECT count(*) INTO folded FROM gone;
        IF folded > 0 THEN
            DELETE FROM tallies WHERE (_tenant IS NULL OR tenant = _tenant) AND {_NOTHING};
        END IF;
        RETURN folded;
    END $$""",
    # Each 64th write folds what some 64 appended, so that there is never much to sum, however many
    # write. Who has a quota on the tenant may wait for more than the tally: he is left alone.
    """CREATE FUNCTION fold_some(_tenant bytea) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
        IF random() < 1 / 64.0 AND pg_try_advisory_xact_lock(hashtextextended(
            current_schema || encode(_tenant, 'hex'), 1874)) THEN
            PERFORM fold(_tenant, 512);
        END IF;
    END $$""",
)

BASE: tuple[str, ...] = (
    *_TABLES,
    *(statement for table in _WALLED for statement in wall(table)),
    *_TRIGGERS,
    *_FOLDING,
    *FUNCTIONS,
    *RETENTION,
    *FILES,
)
