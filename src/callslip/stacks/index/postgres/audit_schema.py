"""The PostgreSQL schema of the audit, legal holds and subjects: one migration.

Why it is as it is: `docs/decisions/0020-audit-and-retention.md`. What goes is told by triggers, once
a statement, in transactions that say so (`callslip.auditing`), so no code path can forget it.
"""

from __future__ import annotations

from callslip.stacks.index.postgres.wall import wall

HELD = "CS005"
"""SQLSTATE: a legal hold keeps what was to be removed."""

_TOLD = "coalesce(current_setting('callslip.auditing', true), '') <> ''"
_BY = "decode(current_setting('callslip.actor', true), 'hex')"
_AT = "current_setting('callslip.auditing', true)::float8"
_CAUSE = "decode(current_setting('callslip.cause', true), 'hex')"
_ENTRY = 'INSERT INTO audit (at, action, actor, tenant, "user", session, id, cause)'
_FILE = "convert_to('file:' || c.version, 'UTF8')"


def _erasing(id: str) -> str:
    return f"""INSERT INTO erasing (payload, key, actor, tenant, "user", session, id, cause)
            SELECT p.n, p.key, {_BY}, s.tenant, s."user", s.name, {id}, {_CAUSE}
            FROM changed c JOIN sessions s ON s.n = c.session JOIN payloads p ON p.n = c.payload;"""


def _trigger(name: str, table: str, event: str, which: str, body: str) -> tuple[str, ...]:
    return (
        f"""CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            {body} RETURN NULL; END $$""",
        (
            f"CREATE TRIGGER {name} AFTER {event} ON {table} REFERENCING {which} TABLE AS changed"
            f" FOR EACH STATEMENT EXECUTE FUNCTION {name}()"
        ),
    )


def _forgets(name: str, table: str, id: str, unless: str) -> tuple[str, ...]:
    """Subjects go with what they are noted of."""
    return _trigger(
        name,
        table,
        "DELETE",
        "OLD",
        f"""IF EXISTS (SELECT 1 FROM subjects) THEN
            DELETE FROM subjects x USING changed c WHERE x.session = c.session AND x.id = {id}
                {unless};
        END IF;""",
    )


AUDIT: tuple[str, ...] = (
    # --- legal holds ---
    """CREATE TABLE holds (
        n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        tenant bytea NOT NULL,
        "user" bytea,
        session bytea,
        reason bytea NOT NULL,
        actor bytea NOT NULL,
        since float8 NOT NULL
    )""",
    "CREATE INDEX holds_tenant ON holds (tenant)",
    *wall("holds"),
    """CREATE FUNCTION is_held(s sessions) RETURNS boolean LANGUAGE sql STABLE AS $$
        SELECT EXISTS (SELECT 1 FROM holds h WHERE h.tenant = s.tenant
            AND coalesce(h."user", s."user") = s."user" AND coalesce(h.session, s.name) = s.name);
    $$""",
    # The holds that reach into that; none is placed until the transaction is over.
    """CREATE FUNCTION holds_on(_tenant bytea, _user bytea, _name bytea) RETURNS SETOF holds
    LANGUAGE plpgsql AS $$ BEGIN
        LOCK TABLE holds IN SHARE MODE;
        RETURN QUERY SELECT * FROM holds WHERE (_tenant IS NULL OR tenant = _tenant)
            AND ("user" IS NULL OR _user IS NULL OR "user" = _user)
            AND (session IS NULL OR _name IS NULL OR session = _name) ORDER BY n;
    END $$""",
    f"""CREATE FUNCTION refuse_held(_tenant bytea, _user bytea, _name bytea) RETURNS void
    LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT 1 FROM holds_on(_tenant, _user, _name)) THEN
            RAISE EXCEPTION 'a hold reaches into it' USING ERRCODE = '{HELD}';
        END IF;
    END $$""",
    # Notes in the sessions of a reach whether they are held: a sweep asks them, not the holds. A held
    # row has its time in `held_expiry` alone, so that no sweep ever looks at it.
    """CREATE FUNCTION mark_held(_tenant bytea, _user bytea, _name bytea) RETURNS void
    LANGUAGE plpgsql AS $$
    DECLARE turned bigint[];
    BEGIN
        WITH t AS (UPDATE sessions s SET held = is_held(s) WHERE tenant = _tenant
            AND (_user IS NULL OR "user" = _user) AND (_name IS NULL OR name = _name)
            AND held <> is_held(s) RETURNING n)
        SELECT array_agg(n) INTO turned FROM t;
        UPDATE results r SET expires_at = held_expiry, held_expiry = expires_at
            WHERE session = ANY(turned) AND coalesce(expires_at, held_expiry) IS NOT NULL;
    END $$""",
    # --- subjects ---
    # By id, not by row: it is true of a result, of the tombstone that it becomes, and of the version
    # of a file, whose id is `file:3`.
    """CREATE TABLE subjects (
        tenant bytea NOT NULL,
        name bytea NOT NULL,
        session bigint NOT NULL,
        id bytea NOT NULL,
        PRIMARY KEY (session, id, name)
    )""",
    "CREATE INDEX subjects_name ON subjects (tenant, name, session, id)",
    *wall("subjects"),
    """CREATE FUNCTION add_subjects(_tenant bytea, _session bigint, _id bytea, _names bytea[])
    RETURNS void LANGUAGE sql AS $$
        INSERT INTO subjects (tenant, name, session, id)
            SELECT _tenant, x, _session, _id FROM unnest(_names) x ON CONFLICT DO NOTHING;
    $$""",
    """CREATE TABLE memory_subjects (
        tenant bytea NOT NULL,
        name bytea NOT NULL,
        fact bigint NOT NULL REFERENCES memories (n) ON DELETE CASCADE,
        PRIMARY KEY (fact, name)
    )""",
    "CREATE INDEX memory_subjects_name ON memory_subjects (tenant, name, fact)",
    *wall("memory_subjects"),
    *_forgets(
        "subjects_of_results",
        "results",
        "c.id",
        "AND NOT EXISTS (SELECT 1 FROM tombstones t WHERE t.session = c.session AND t.id = c.id)",
    ),
    *_forgets(
        "subjects_of_tombstones",
        "tombstones",
        "c.id",
        "AND NOT EXISTS (SELECT 1 FROM results r WHERE r.session = c.session AND r.id = c.id)",
    ),
    *_forgets("subjects_of_files", "files", _FILE, ""),
    # --- the audit ---
    """CREATE TABLE audit (
        n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        at float8 NOT NULL,
        action text NOT NULL,
        outcome text NOT NULL DEFAULT 'done',
        actor bytea NOT NULL DEFAULT '',
        tenant bytea NOT NULL DEFAULT '',
        "user" bytea NOT NULL DEFAULT '',
        session bytea NOT NULL DEFAULT '',
        id bytea NOT NULL DEFAULT '',
        tool bytea NOT NULL DEFAULT '',
        count bigint NOT NULL DEFAULT 1,
        cause bytea NOT NULL DEFAULT '',
        detail bytea NOT NULL DEFAULT ''
    )""",
    'CREATE INDEX audit_session ON audit (tenant, "user", session, n)',
    "CREATE INDEX audit_tenant ON audit (tenant, n)",
    "CREATE INDEX audit_id ON audit (id, n)",
    "CREATE INDEX audit_cause ON audit (cause, n) WHERE cause <> ''",
    *wall("audit"),
    """CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'the audit is append-only';
    END $$""",
    """CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
        FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only()""",
    # What went and is not yet known to be erased: `fresh` until the end of its transaction, then as
    # long as the payload's object is there.
    """CREATE TABLE erasing (
        n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        fresh boolean NOT NULL DEFAULT true,
        payload bigint NOT NULL,
        key bytea,
        actor bytea NOT NULL,
        tenant bytea NOT NULL,
        "user" bytea NOT NULL,
        session bytea NOT NULL,
        id bytea NOT NULL,
        cause bytea NOT NULL
    )""",
    "CREATE INDEX erasing_key ON erasing (key)",
    "CREATE INDEX erasing_fresh ON erasing (n) WHERE fresh",
    *wall("erasing"),
    # The end of a transaction that is told: what was erased with it, and what is yet to be.
    f"""CREATE FUNCTION settle_erasing() RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        IF NOT EXISTS (SELECT 1 FROM erasing WHERE fresh) THEN RETURN; END IF;
        WITH known AS (SELECT e.n, p.n IS NOT NULL AS kept FROM erasing e
                LEFT JOIN payloads p ON p.n = e.payload WHERE e.fresh),
            gone AS (DELETE FROM erasing e USING known k
                WHERE k.n = e.n AND (e.key IS NULL OR k.kept) RETURNING e.*, k.kept)
        INSERT INTO audit (at, action, outcome, actor, tenant, "user", session, id, cause)
            SELECT {_AT}, 'erased', CASE WHEN kept THEN 'kept' ELSE 'done' END, actor, tenant,
                "user", session, id, cause FROM gone ORDER BY n;
        UPDATE erasing SET fresh = false WHERE fresh;
    END $$""",
    # The last statement of a transaction that is told: its entries, then what was erased with it.
    """CREATE FUNCTION tell(_at float8[], _action text[], _outcome text[], _actor bytea[],
        _tenant bytea[], _user bytea[], _session bytea[], _id bytea[], _tool bytea[],
        _count bigint[], _cause bytea[], _detail bytea[]) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO audit (at, action, outcome, actor, tenant, "user", session, id, tool, count,
                cause, detail)
            SELECT * FROM unnest(_at, _action, _outcome, _actor, _tenant, _user, _session, _id,
                _tool, _count, _cause, _detail);
        PERFORM settle_erasing();
    END $$""",
    # Their names put them before the triggers that let go of payloads.
    *_trigger(
        "audit_tombstones",
        "tombstones",
        "INSERT",
        "NEW",
        f"""IF {_TOLD} THEN
            {_ENTRY} SELECT {_AT}, c.why, {_BY}, s.tenant, s."user", s.name, c.id, {_CAUSE}
                FROM changed c JOIN sessions s ON s.n = c.session;
        END IF;""",
    ),
    # What only says what was there is told with a delete by subject, and not as its time is over.
    *_trigger(
        "audit_tombstones_gone",
        "tombstones",
        "DELETE",
        "OLD",
        f"""IF {_TOLD} AND {_CAUSE} <> '' THEN
            {_ENTRY} SELECT {_AT}, 'deleted', {_BY}, s.tenant, s."user", s.name, c.id, {_CAUSE}
                FROM changed c JOIN sessions s ON s.n = c.session ORDER BY c.id;
        END IF;""",
    ),
    *_trigger(
        "audit_results",
        "results",
        "DELETE",
        "OLD",
        f"""IF {_TOLD} THEN
            {_ENTRY} SELECT {_AT}, CASE WHEN c.seq < s.floor THEN 'expired' ELSE 'deleted' END,
                {_BY}, s.tenant, s."user", s.name, c.id, {_CAUSE}
                FROM changed c JOIN sessions s ON s.n = c.session WHERE NOT EXISTS
                (SELECT 1 FROM tombstones t WHERE t.session = c.session AND t.id = c.id)
                ORDER BY c.n;
            {_erasing("c.id")}
        END IF;""",
    ),
    *_trigger(
        "audit_files",
        "files",
        "DELETE",
        "OLD",
        f"""IF {_TOLD} THEN
            {_ENTRY} SELECT {_AT}, CASE WHEN s.expires_at < {_AT} AND NOT s.held THEN 'expired'
                ELSE 'deleted' END, {_BY}, s.tenant, s."user", s.name, {_FILE}, {_CAUSE}
                FROM changed c JOIN sessions s ON s.n = c.session ORDER BY c.n;
            {_erasing(_FILE)}
        END IF;""",
    ),
    f"""CREATE FUNCTION audit_file_emptied() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        {_ENTRY} SELECT {_AT}, 'evicted', {_BY}, s.tenant, s."user", s.name,
            {_FILE.replace("c.", "OLD.")}, {_CAUSE} FROM sessions s WHERE s.n = OLD.session;
        INSERT INTO erasing (payload, key, actor, tenant, "user", session, id, cause)
            SELECT p.n, p.key, {_BY}, s.tenant, s."user", s.name,
                {_FILE.replace("c.", "OLD.")}, {_CAUSE}
            FROM sessions s JOIN payloads p ON p.n = OLD.payload WHERE s.n = OLD.session;
        RETURN NULL;
    END $$""",
    f"""CREATE TRIGGER audit_file_emptied AFTER UPDATE OF payload ON files FOR EACH ROW
        WHEN (NEW.payload IS NULL AND OLD.payload IS NOT NULL AND {_TOLD})
        EXECUTE FUNCTION audit_file_emptied()""",
    # The second word of a path (`memory_rows.path_of`).
    r"""CREATE FUNCTION memory_user(_path bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
    DECLARE word bytea;
    BEGIN
        word := substring(_path FROM position('\x0001'::bytea IN _path) + 2);
        IF position('\x0001'::bytea IN word) = 0 THEN RETURN ''; END IF;
        word := substring(word FOR position('\x0001'::bytea IN word) - 1);
        WHILE position('\x00ff'::bytea IN word) > 0 LOOP
            word := overlay(word PLACING ''::bytea
                FROM position('\x00ff'::bytea IN word) + 1 FOR 1);
        END LOOP;
        RETURN word;
    END $$""",
    *_trigger(
        "audit_facts",
        "memories",
        "DELETE",
        "OLD",
        f"""IF {_TOLD} THEN
            INSERT INTO audit (at, action, actor, tenant, "user", id, cause)
            SELECT {_AT}, CASE WHEN c.expires_at <= {_AT} THEN 'expired' ELSE 'deleted' END, {_BY},
                c.tenant, memory_user(s.path), c.id, {_CAUSE}
                FROM changed c JOIN memory_spaces s ON s.n = c.space ORDER BY c.n;
        END IF;""",
    ),
)
