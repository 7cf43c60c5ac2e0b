"""How a row gets in, as functions of the database: an insert is one round trip.

What they decide is what `stacks/index/inserting.py` and `adopting.py` decide for SQLite. Rows are
locked in one order, so that writers wait for each other and do not meet: the session, then payloads.
"""

from __future__ import annotations

GONE = "CS001"
"""SQLSTATE: the payload that was seen is not there any more; nothing is written."""
TAKEN = "CS002"
"""SQLSTATE: every id that was offered is another's."""
KEPT = "CS004"
"""SQLSTATE: a legal hold keeps what would have to go for a quota."""

FUNCTIONS: tuple[str, ...] = (
    # Those payloads have so many references less; what none is left of goes.
    """CREATE FUNCTION let_go(_payloads bigint[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
        PERFORM 1 FROM payloads WHERE n = ANY(_payloads) ORDER BY n FOR UPDATE;
        UPDATE payloads p SET refs = refs - c.times
            FROM (SELECT x, count(*) times FROM unnest(_payloads) x GROUP BY x) c WHERE p.n = c.x;
        DELETE FROM payloads WHERE n = ANY(_payloads) AND refs <= 0;
    END $$""",
    # Up to so many versions of a session, the oldest first. A session that ended begins anew: what
    # its next life writes is version 1.
    """CREATE FUNCTION drop_files(_session bigint, _limit bigint) RETURNS bigint
    LANGUAGE plpgsql AS $$
    DECLARE dropped bigint;
    BEGIN
        DELETE FROM files WHERE session = _session AND version IN
            (SELECT version FROM files WHERE session = _session ORDER BY version LIMIT _limit);
        GET DIAGNOSTICS dropped = ROW_COUNT;
        IF NOT EXISTS (SELECT 1 FROM files WHERE session = _session) THEN
            DELETE FROM branches WHERE session = _session;
            UPDATE sessions SET next_file = 1 WHERE n = _session AND next_file <> 1;
        END IF;
        RETURN dropped;
    END $$""",
    # The session of that scope, locked; a new one if there is none.
    """CREATE FUNCTION lock_session(_tenant bytea, _name bytea, _user bytea, _ttl float8,
        _now float8) RETURNS sessions LANGUAGE plpgsql AS $$
    DECLARE s sessions;
    BEGIN
        LOOP
            SELECT * INTO s FROM sessions
                WHERE tenant = _tenant AND name = _name AND "user" = _user FOR UPDATE;
            IF FOUND THEN RETURN s; END IF;
            INSERT INTO sessions (tenant, name, "user", active_at, ttl, expires_at)
                VALUES (_tenant, _name, _user, _now, _ttl, _now + _ttl)
                ON CONFLICT DO NOTHING RETURNING * INTO s;
            IF FOUND THEN
                IF is_held(s) THEN
                    UPDATE sessions SET held = true WHERE n = s.n RETURNING * INTO s;
                END IF;
                RETURN s;
            END IF;
        END LOOP;
    END $$""",
    # Open and active from now on. Rows of a session that had run out stay below its floor; files
    # leave no tombstones, so there is nothing for the sweep to turn them into.
    """CREATE FUNCTION open_session(s sessions, _ttl float8, _now float8) RETURNS sessions
    LANGUAGE plpgsql AS $$
    BEGIN
        IF NOT s.closed AND NOT s.held AND s.expires_at < _now THEN
            PERFORM drop_files(s.n, 4611686018427387904);
            UPDATE sessions SET floor = next_seq, floor_at = expires_at, dead = results,
                dead_bytes = content_bytes WHERE n = s.n;
        ELSIF NOT s.closed AND s.active_at = _now AND s.ttl IS NOT DISTINCT FROM _ttl THEN
            RETURN s;
        END IF;
        UPDATE sessions SET active_at = greatest(active_at, _now), ttl = _ttl,
            expires_at = greatest(active_at, _now) + _ttl, closed = false
            WHERE n = s.n RETURNING * INTO s;
        RETURN s;
    END $$""",
    # The tenant's payload of that digest, locked and held: what is dropped meanwhile does not take
    # it along. NULL if there is none and the given one can be taken.
    f"""CREATE FUNCTION hold_payload(_tenant bytea, _digest bytea, _key bytea, _given boolean)
        RETURNS payloads LANGUAGE plpgsql AS $$
    DECLARE p payloads;
    BEGIN
        UPDATE payloads SET refs = refs + 1 WHERE tenant = _tenant AND digest = _digest
            RETURNING n, tenant, digest, form, packed, trailer, refs, key, NULL INTO p;
        IF FOUND THEN RETURN p; END IF;
        IF _key IS NULL AND NOT _given
            OR EXISTS (SELECT 1 FROM garbage WHERE key = _key) THEN
            RAISE EXCEPTION 'the payload is gone' USING ERRCODE = '{GONE}';
        END IF;
        RETURN NULL;
    END $$""",
    # The number of the payload to refer to, held once; and whether it is the given one.
    """CREATE FUNCTION adopt(p payloads, _tenant bytea, _digest bytea, _form bytea, _packed bigint,
        _trailer bigint, _key bytea, _data bytea, OUT _payload bigint, OUT _adopted boolean)
    LANGUAGE plpgsql AS $$
    BEGIN
        WHILE p.n IS NULL LOOP
            INSERT INTO payloads (tenant, digest, form, packed, trailer, key, data, refs)
                VALUES (_tenant, _digest, _form, _packed, _trailer, _key, _data, 1)
                ON CONFLICT (tenant, digest) DO NOTHING RETURNING n INTO _payload;
            IF FOUND THEN
                _adopted := true;
                RETURN;
            END IF;
            p := hold_payload(_tenant, _digest, _key, _data IS NOT NULL);
        END LOOP;
        _payload := p.n;
        -- A retried insert whose first answer was lost gives the key that is stored.
        _adopted := coalesce(_key = p.key, false);
        IF _data IS NOT NULL AND p.key IS NULL
            AND (SELECT data FROM payloads WHERE n = p.n) IS DISTINCT FROM _data THEN
            PERFORM move_payload(p.n, _form, _packed, _trailer, _key, _data);
        END IF;
    END $$""",
    # A payload is kept where the given is from now on. Other bytes of it may be more or fewer.
    """CREATE FUNCTION move_payload(_n bigint, _form bytea, _packed bigint, _trailer bigint,
        _key bytea, _data bytea) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE old payloads;
    BEGIN
        SELECT * INTO old FROM payloads WHERE n = _n FOR UPDATE;
        UPDATE payloads SET form = _form, packed = _packed, trailer = _trailer, key = _key,
            data = _data WHERE n = _n;
        INSERT INTO deltas (tenant, packed_bytes) VALUES (old.tenant, _packed - old.packed);
        IF old.key IS NOT NULL AND old.key IS DISTINCT FROM _key THEN
            INSERT INTO garbage (key) VALUES (old.key) ON CONFLICT DO NOTHING;
        END IF;
    END $$""",
    # Where the objects are; recorded, if nothing is, as there.
    """CREATE FUNCTION payload_place(_where bytea) RETURNS bytea LANGUAGE plpgsql AS $$
    DECLARE known bytea;
    BEGIN
        SELECT payloads INTO known FROM store;
        IF known IS NULL AND _where IS NOT NULL THEN
            UPDATE store SET payloads = _where WHERE payloads IS NULL;
            SELECT payloads INTO known FROM store;
        END IF;
        RETURN known;
    END $$""",
    # The answer's first two columns say what was done, the rest is the row as it stands.
    f"""CREATE FUNCTION insert_result(_tenant bytea, _name bytea, _user bytea, _ttl float8,
        _now float8, _ids bytea[], _call bytea, _tool bytea, _args bytea, _status bytea,
        _shape bytea, _preview bytea, _size bigint, _created_at float8, _digest bytea, _form bytea,
        _packed bigint, _trailer bigint, _key bytea, _data bytea, _most bigint[],
        _expires_at float8, _subjects bytea[])
    RETURNS TABLE (created boolean, adopted boolean, r_id bytea, r_call bytea, r_tool bytea,
        r_args bytea, r_status bytea, r_shape bytea, r_preview bytea, r_created_at float8,
        r_same_as bytea, p_digest bytea, p_form bytea, p_packed bigint, p_trailer bigint,
        p_key bytea, p_data bytea)
    LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    DECLARE
        s sessions;
        p payloads;
        _payload bigint;
        _adopted boolean;
        _created boolean := true;
        within boolean;
        chosen record;
        _seq bigint;
    BEGIN
        PERFORM lock_tenant(_tenant, _most);
        s := lock_session(_tenant, _name, _user, _ttl, _now);
        p := hold_payload(_tenant, _digest, _key, _data IS NOT NULL);
        s := open_session(s, _ttl, _now);
        SELECT a._payload, a._adopted INTO _payload, _adopted FROM
            adopt(p, _tenant, _digest, _form, _packed, _trailer, _key, _data) a;
        -- An id that this call and content had before wins over a shorter one that became free: a
        -- replay gives the same handle.
        SELECT i.id, r.seq, t.id IS NOT NULL AS buried,
                coalesce(r.expires_at < _now, false) AS ran_out INTO chosen
            FROM unnest(_ids) WITH ORDINALITY i (id, place)
            LEFT JOIN results r ON r.session = s.n AND r.id = i.id
            LEFT JOIN tombstones t ON t.session = s.n AND t.id = i.id
            WHERE (r.id IS NULL OR (r.call = _call AND r.payload = _payload))
                AND (t.id IS NULL OR (t.call = _call AND t.digest = _digest))
            ORDER BY r.id IS NULL AND t.id IS NULL, i.place LIMIT 1;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'no id is free' USING ERRCODE = '{TAKEN}';
        END IF;
        _seq := chosen.seq;
        IF _seq IS NOT NULL AND _seq >= s.floor AND NOT chosen.ran_out THEN
            _created := false;
        ELSE
            -- What lives again is about whom it was about.
            _subjects := _subjects || ARRAY(SELECT x.name FROM subjects x
                WHERE x.session = s.n AND x.id = chosen.id);
            IF _seq IS NOT NULL THEN
                -- The row of an earlier life makes room.
                DELETE FROM results WHERE session = s.n AND seq = _seq;
            ELSIF chosen.buried THEN
                DELETE FROM tombstones WHERE session = s.n AND id = chosen.id;
            END IF;
            _seq := s.next_seq;
            INSERT INTO results (tenant, session, seq, id, call, payload, size, created_at, tool,
                    status, args, shape, preview, expires_at, held_expiry)
                VALUES (_tenant, s.n, _seq, chosen.id, _call, _payload, _size, _created_at, _tool,
                    _status, _args, _shape, _preview, CASE WHEN NOT s.held THEN _expires_at END,
                    CASE WHEN s.held THEN _expires_at END);
            -- Without a hold a single result may be larger than its quota: it is the newest.
            IF _most IS NOT NULL THEN
                within := enforce(_tenant, s.n, _seq, _most, _now);
                IF NOT within AND (s.held OR (coalesce(_most[3], _most[4]) IS NOT NULL
                    AND EXISTS (SELECT 1 FROM sessions WHERE tenant = _tenant AND held))) THEN
                    RAISE EXCEPTION 'a hold keeps what fills the quota' USING ERRCODE = '{KEPT}';
                END IF;
            END IF;
            -- After the quota, so that it never names a row which this very insert pushed out. A
            -- row that names another was never shown in full, so it is not the one to name.
            UPDATE results SET same_as = first.id FROM
                (SELECT id FROM results WHERE payload = _payload AND session = s.n
                    AND seq >= s.floor AND seq < _seq AND same_as = ''
                    AND coalesce(expires_at >= _now, true) ORDER BY seq LIMIT 1) first
                WHERE session = s.n AND seq = _seq;
        END IF;
        UPDATE payloads SET refs = refs - 1 WHERE n = _payload;
        IF _subjects <> '{{}}' THEN
            PERFORM add_subjects(_tenant, s.n, chosen.id, _subjects);
        END IF;
        PERFORM fold_some(_tenant);
        RETURN QUERY SELECT _created, _adopted, r.id, r.call, r.tool, r.args, r.status, r.shape,
            r.preview, r.created_at, r.same_as, p.digest, p.form, p.packed, p.trailer, p.key,
            CASE WHEN _data IS NULL THEN p.data END
            FROM results r JOIN payloads p ON p.n = r.payload
            WHERE r.session = s.n AND r.seq = _seq;
    END $$""",
)
