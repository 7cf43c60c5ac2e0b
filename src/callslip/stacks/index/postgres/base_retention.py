"""How rows go, as functions of the database: removed, run out, or pushed out by a quota.

Always in O(rows that go), and a bounded number of them; what they decide is what
`stacks/index/retention.py` decides for SQLite.
"""

from __future__ import annotations

RETENTION: tuple[str, ...] = (
    # Rows of a session with _start <= seq < _end become tombstones, up to so many.
    """CREATE FUNCTION bury(_session bigint, _start bigint, _end bigint, _why text, _at float8,
        _limit bigint) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE buried bigint;
    BEGIN
        WITH gone AS (DELETE FROM results WHERE session = _session AND seq IN
                (SELECT seq FROM results WHERE session = _session AND seq >= _start AND seq < _end
                    ORDER BY seq LIMIT _limit) RETURNING *)
        INSERT INTO tombstones (tenant, session, id, call, digest, why, gone_at, tool, args, shape)
            SELECT g.tenant, g.session, g.id, g.call, p.digest, _why, _at, g.tool, g.args, g.shape
            FROM gone g JOIN payloads p ON p.n = g.payload;
        GET DIAGNOSTICS buried = ROW_COUNT;
        RETURN buried;
    END $$""",
    # A closed session of which nothing is left leaves no trace.
    """CREATE FUNCTION settle(_session bigint) RETURNS void LANGUAGE sql AS $$
        DELETE FROM sessions WHERE n = _session AND closed AND results = 0 AND tombstones = 0
            AND files = 0;
    $$""",
    # Up to so many rows and files of a session that have run out; it is closed when through.
    """CREATE FUNCTION bury_expired(s sessions, _now float8, _limit bigint) RETURNS bigint
    LANGUAGE plpgsql AS $$
    DECLARE
        gone bigint := 0;
        over boolean := NOT s.closed AND NOT s.held AND coalesce(s.expires_at < _now, false);
    BEGIN
        IF over AND s.files > 0 THEN
            gone := drop_files(s.n, _limit);
        END IF;
        IF s.dead > 0 AND gone < _limit THEN
            gone := gone + bury(s.n, 0, s.floor, 'expired', s.floor_at, _limit - gone);
        END IF;
        IF over THEN
            IF gone < _limit THEN
                gone := gone + bury(s.n, s.floor, 9223372036854775807, 'expired', s.expires_at,
                    _limit - gone);
            END IF;
            UPDATE sessions SET closed = true, expires_at = NULL
                WHERE n = s.n AND results = 0 AND files = 0;
            PERFORM settle(s.n);
        END IF;
        RETURN gone;
    END $$""",
    # Up to so many rows that ran out by themselves: of all, of a tenant, or of a session.
    """CREATE FUNCTION bury_run_out(_tenant bytea, _session bigint, _now float8, _limit bigint)
        RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        r record;
        gone bigint := 0;
        due refcursor;
    BEGIN
        IF _session IS NOT NULL THEN
            OPEN due FOR SELECT session, seq, expires_at FROM results WHERE session = _session
                AND expires_at < _now ORDER BY expires_at LIMIT _limit;
        ELSIF _tenant IS NOT NULL THEN
            OPEN due FOR SELECT session, seq, expires_at FROM results WHERE tenant = _tenant
                AND expires_at < _now ORDER BY expires_at LIMIT _limit FOR UPDATE SKIP LOCKED;
        ELSE
            OPEN due FOR SELECT session, seq, expires_at FROM results
                WHERE expires_at < _now ORDER BY expires_at LIMIT _limit FOR UPDATE SKIP LOCKED;
        END IF;
        LOOP
            FETCH due INTO r;
            EXIT WHEN NOT FOUND;
            gone := gone + bury(r.session, r.seq, r.seq + 1, 'expired', r.expires_at, 1);
        END LOOP;
        RETURN gone;
    END $$""",
    # Whoever has a quota on a whole tenant takes turns with the others who have: what they let go
    # depends on what they add.
    """CREATE FUNCTION lock_tenant(_tenant bytea, _most bigint[]) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        IF _most[3] IS NOT NULL OR _most[4] IS NOT NULL THEN
            PERFORM pg_advisory_xact_lock(hashtextextended(
                current_schema || encode(_tenant, 'hex'), 1874));
        END IF;
    END $$""",
    # The text of the oldest version goes that a later one of its branch follows.
    """CREATE FUNCTION evict_file(_tenant bytea, _session bigint) RETURNS boolean
    LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE files SET payload = NULL, size = 0 WHERE (session, version) IN
            (SELECT f.session, f.version FROM files f WHERE payload IS NOT NULL
                AND (_session IS NULL OR f.session = _session) AND f.tenant = _tenant
                AND NOT (SELECT held FROM sessions WHERE n = f.session)
                AND EXISTS (SELECT 1 FROM files g WHERE g.session = f.session AND g.path = f.path
                    AND g.branch = f.branch AND g.version > f.version)
                ORDER BY f.n LIMIT 1);
        RETURN FOUND;
    END $$""",
    # The oldest rows go until the quota holds, never row _seq of this session; then the texts of
    # old versions. _most: results and bytes of the session, of the tenant. Whether it holds.
    """CREATE FUNCTION enforce(_tenant bytea, _session bigint, _seq bigint, _most bigint[],
        _now float8) RETURNS boolean LANGUAGE plpgsql AS $$
    DECLARE
        s sessions;
        held record;
        oldest record;
        holds boolean := true;
    BEGIN
        PERFORM bury_run_out(NULL, _session, _now, 4611686018427387904);
        IF _most[1] IS NOT NULL OR _most[2] IS NOT NULL THEN
            LOOP
                SELECT results - dead AS results, content_bytes - dead_bytes + file_bytes AS bytes,
                    floor, sessions.held AS kept INTO held FROM sessions WHERE n = _session;
                EXIT WHEN coalesce(held.results <= _most[1], true)
                    AND coalesce(held.bytes <= _most[2], true);
                SELECT seq INTO oldest FROM results WHERE session = _session
                    AND seq >= held.floor AND seq <> _seq AND NOT held.kept ORDER BY seq LIMIT 1;
                IF FOUND THEN
                    PERFORM bury(_session, oldest.seq, oldest.seq + 1, 'evicted', _now, 1);
                -- Old texts go for bytes alone: they are no results.
                ELSIF NOT (coalesce(held.bytes > _most[2], false)
                    AND evict_file(_tenant, _session)) THEN
                    holds := false;
                    EXIT;
                END IF;
            END LOOP;
        END IF;
        IF _most[3] IS NOT NULL OR _most[4] IS NOT NULL THEN
            PERFORM fold(_tenant, 10000);
            LOOP
                SELECT sum(results) AS results, sum(bytes) AS bytes INTO held FROM
                    (SELECT results, content_bytes + file_bytes AS bytes FROM tallies
                        WHERE tenant = _tenant
                    UNION ALL SELECT results, content_bytes + file_bytes FROM deltas
                        WHERE tenant = _tenant) both_of_them;
                EXIT WHEN coalesce(held.results <= _most[3], true)
                    AND coalesce(held.bytes <= _most[4], true);
                -- What has run out goes first: it must not push out what a reader still has.
                SELECT * INTO s FROM sessions o WHERE tenant = _tenant AND dead > 0 AND NOT o.held
                    LIMIT 1 FOR UPDATE SKIP LOCKED;
                IF NOT FOUND THEN
                    SELECT * INTO s FROM sessions o WHERE tenant = _tenant AND NOT o.held
                        AND expires_at IS NOT NULL AND expires_at < _now ORDER BY expires_at LIMIT 1
                        FOR UPDATE SKIP LOCKED;
                END IF;
                IF FOUND THEN
                    PERFORM bury_expired(s, _now, 1);
                    CONTINUE;
                END IF;
                CONTINUE WHEN bury_run_out(_tenant, NULL, _now, 1) > 0;
                SELECT session, seq INTO oldest FROM results r WHERE tenant = _tenant
                    AND NOT (session = _session AND seq = _seq)
                    AND NOT (SELECT o.held FROM sessions o WHERE o.n = r.session)
                    ORDER BY n LIMIT 1;
                IF FOUND THEN
                    PERFORM bury(oldest.session, oldest.seq, oldest.seq + 1, 'evicted', _now, 1);
                ELSIF NOT (coalesce(held.bytes > _most[4], false)
                    AND evict_file(_tenant, NULL)) THEN
                    holds := false;
                    EXIT;
                END IF;
            END LOOP;
        END IF;
        RETURN holds;
    END $$""",
    # Whether a sweep has anything to do.
    """CREATE FUNCTION sweep_more(_now float8, _old float8) RETURNS boolean
    LANGUAGE sql STABLE AS $$
        SELECT EXISTS (SELECT 1 FROM sessions WHERE dead > 0 AND NOT held)
            OR EXISTS (SELECT 1 FROM sessions WHERE expires_at IS NOT NULL AND NOT held
                AND expires_at < _now)
            OR EXISTS (SELECT 1 FROM results WHERE expires_at < _now)
            OR EXISTS (SELECT 1 FROM tombstones t WHERE gone_at < _old
                AND NOT (SELECT held FROM sessions WHERE n = t.session));
    $$""",
    # What others work on is left to them. Half of the time is the commit's.
    """CREATE FUNCTION sweep(_now float8, _old float8, _rows bigint, _seconds float8)
        RETURNS boolean LANGUAGE plpgsql AS $$
    DECLARE
        until timestamptz := clock_timestamp() + make_interval(secs => _seconds / 2);
        rest bigint := _rows;
        s sessions;
        went bigint[];
        each bigint;
    BEGIN
        WHILE rest > 0 AND clock_timestamp() < until LOOP
            SELECT * INTO s FROM sessions WHERE dead > 0 AND NOT held LIMIT 1
                FOR UPDATE SKIP LOCKED;
            IF NOT FOUND THEN
                SELECT * INTO s FROM sessions WHERE expires_at IS NOT NULL AND NOT held
                    AND expires_at < _now ORDER BY expires_at LIMIT 1 FOR UPDATE SKIP LOCKED;
            END IF;
            EXIT WHEN NOT FOUND;
            -- A session without rows is a row's work too, so that many of them stay bounded.
            rest := rest - greatest(1, bury_expired(s, _now, least(rest, 20)));
        END LOOP;
        WHILE rest > 0 AND clock_timestamp() < until LOOP
            each := bury_run_out(NULL, NULL, _now, least(rest, 20));
            EXIT WHEN each = 0;
            rest := rest - each;
        END LOOP;
        WHILE rest > 0 AND clock_timestamp() < until LOOP
            WITH old AS (SELECT session, id FROM tombstones t WHERE gone_at < _old
                    AND NOT (SELECT held FROM sessions WHERE n = t.session) ORDER BY gone_at LIMIT least(rest, 20) FOR UPDATE SKIP LOCKED),
                gone AS (DELETE FROM tombstones t USING old o
                    WHERE t.session = o.session AND t.id = o.id RETURNING t.session)
            SELECT array_agg(session) INTO went FROM gone;
            EXIT WHEN went IS NULL;
            FOR each IN SELECT DISTINCT x FROM unnest(went) x LOOP
                PERFORM settle(each);
            END LOOP;
            rest := rest - cardinality(went);
        END LOOP;
        RETURN sweep_more(_now, _old);
    END $$""",
    # Sessions of a tenant, all, of a user, of a name, or of both, after number _after: up to so
    # many rows. Answers how many that a reader still saw went, and where to go on, or NULL.
    """CREATE FUNCTION remove_some(_tenant bytea, _user bytea, _name bytea, _why text, _now float8,
        _tombstones boolean, _after bigint, _limit bigint, OUT _gone bigint, OUT _next bigint)
    LANGUAGE plpgsql AS $$
    DECLARE
        s sessions;
        rest bigint := _limit;
        numbers bigint[];
        each bigint;
        went bigint;
        seen bigint;
        live boolean;
    BEGIN
        PERFORM refuse_held(_tenant, _user, _name);
        _gone := 0;
        IF _name IS NOT NULL THEN
            numbers := ARRAY(SELECT n FROM sessions WHERE tenant = _tenant AND name = _name
                AND (_user IS NULL OR "user" = _user) AND n > _after ORDER BY n + 0 LIMIT 40);
        ELSIF _user IS NOT NULL THEN
            numbers := ARRAY(SELECT n FROM sessions WHERE closed IN (true, false) AND tenant = _tenant
                AND "user" = _user AND n > _after ORDER BY n + 0 LIMIT 40);
        ELSE
            numbers := ARRAY(SELECT n FROM sessions WHERE tenant = _tenant AND n > _after
                ORDER BY n + 0 LIMIT 40);
        END IF;
        -- All of them before any payload: whoever has one of them locked may wait for a payload.
        PERFORM 1 FROM sessions WHERE n = ANY(numbers) ORDER BY n FOR UPDATE;
        FOREACH each IN ARRAY numbers LOOP
            _next := each - 1;  -- the same once more, should it hold more than may go at once
            IF rest <= 0 THEN RETURN; END IF;
            SELECT * INTO s FROM sessions WHERE n = each FOR UPDATE;
            CONTINUE WHEN NOT FOUND;
            live := NOT s.closed AND NOT coalesce(s.expires_at < _now, false);
            IF s.files > 0 THEN
                rest := rest - drop_files(s.n, rest);
                IF rest <= 0 THEN RETURN; END IF;
            END IF;
            IF _tombstones THEN
                IF NOT s.closed THEN
                    rest := rest - bury_expired(s, _now, rest);
                    IF rest <= 0 THEN RETURN; END IF;
                    rest := rest - bury_run_out(NULL, s.n, _now, rest);
                    IF rest <= 0 THEN RETURN; END IF;
                    IF live THEN
                        went := bury(s.n, s.floor, 9223372036854775807, _why, _now, rest);
                        _gone := _gone + went;
                        rest := rest - went;
                        IF rest <= 0 THEN RETURN; END IF;
                    END IF;
                    UPDATE sessions SET closed = true, expires_at = NULL WHERE n = s.n;
                END IF;
                PERFORM settle(s.n);
            ELSE
                WITH gone AS (DELETE FROM results WHERE session = s.n AND seq IN
                    (SELECT seq FROM results WHERE session = s.n ORDER BY seq LIMIT rest)
                    RETURNING seq, expires_at)
                SELECT count(*), count(*) FILTER (WHERE live AND seq >= s.floor
                    AND coalesce(expires_at >= _now, true)) INTO went, seen FROM gone;
                _gone := _gone + seen;
                rest := rest - went;
                IF rest <= 0 THEN RETURN; END IF;
                DELETE FROM tombstones WHERE session = s.n AND id IN
                    (SELECT id FROM tombstones WHERE session = s.n LIMIT rest);
                GET DIAGNOSTICS went = ROW_COUNT;
                rest := rest - went;
                IF rest <= 0 THEN RETURN; END IF;
                DELETE FROM sessions WHERE n = s.n;
            END IF;
            rest := rest - 1;
            _next := each;
        END LOOP;
        IF cardinality(numbers) < 40 THEN
            _next := NULL;
        END IF;
        IF NOT _tombstones THEN
            PERFORM fold(_tenant, 10000);  -- a tenant's name in its totals would be a trace too
        END IF;
    END $$""",
    # One result, of the sessions of that name. Answers whether a reader still saw it.
    """CREATE FUNCTION remove_one(_tenant bytea, _user bytea, _name bytea, _id bytea, _why text,
        _now float8, _tombstones boolean) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        s sessions;
        _seq bigint;
        _runs_out float8;
        gone bigint := 0;
    BEGIN
        PERFORM refuse_held(_tenant, _user, _name);
        FOR s IN SELECT * FROM sessions WHERE tenant = _tenant AND name = _name
            AND (_user IS NULL OR "user" = _user) ORDER BY n FOR UPDATE
        LOOP
            SELECT seq, expires_at INTO _seq, _runs_out FROM results
                WHERE session = s.n AND id = _id;
            IF FOUND THEN
                IF _seq < s.floor THEN
                    PERFORM bury(s.n, _seq, _seq + 1, 'expired', s.floor_at, 1);
                ELSIF NOT s.closed AND s.expires_at < _now THEN
                    PERFORM bury(s.n, _seq, _seq + 1, 'expired', s.expires_at, 1);
                ELSIF _runs_out < _now THEN
                    PERFORM bury(s.n, _seq, _seq + 1, 'expired', _runs_out, 1);
                ELSE
                    gone := gone + bury(s.n, _seq, _seq + 1, _why, _now, 1);
                END IF;
            END IF;
            IF NOT _tombstones THEN
                DELETE FROM tombstones WHERE session = s.n AND id = _id;
                -- A session that nothing is left of would be a trace too.
                UPDATE sessions SET closed = true, expires_at = NULL WHERE n = s.n AND results = 0
                    AND tombstones = 0 AND files = 0;
                PERFORM settle(s.n);
            END IF;
        END LOOP;
        RETURN gone;
    END $$""",
)
