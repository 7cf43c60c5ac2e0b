"""Scratch files as functions of the database: versions along branches, and the views they make.

What they decide is what `stacks/index/files.py` decides for SQLite; so a read, a list and a write
are one round trip each.
"""

from __future__ import annotations

FULL = "CS003"
"""SQLSTATE: the files as they stand fill the quota."""

_SPANS = """WITH RECURSIVE spans (branch, last, depth) AS (
        SELECT _branch, _at, 0 WHERE _branch <> 0
        UNION ALL SELECT b.parent, b.forked_at, s.depth + 1 FROM spans s JOIN branches b
            ON b.session = _session AND b.branch = s.branch WHERE b.parent <> 0)"""
"""The branches that led to a version, each with the last version that counts, nearest first."""

FILES: tuple[str, ...] = (
    # Where a view stands, 0 and 0 before the first version; NULLs if it has no such version.
    """CREATE FUNCTION resolve_view(_session bigint, _version bigint, _line bytea, _step bytea,
        OUT _branch bigint, OUT _at bigint) LANGUAGE plpgsql STABLE AS $$
    DECLARE after record;
    BEGIN
        IF _version = 0 THEN
            _branch := 0;
            _at := 0;
        ELSIF _version IS NOT NULL THEN
            SELECT branch, version INTO _branch, _at FROM files
                WHERE session = _session AND version = _version;
        END IF;
        IF _version IS NULL OR (_at IS NULL AND _line <> '') THEN
            SELECT branch, version INTO _branch, _at FROM files WHERE session = _session
                ORDER BY version DESC LIMIT 1;
            IF NOT FOUND THEN
                _branch := 0;
                _at := 0;
            END IF;
            RETURN;
        END IF;
        -- The latest child that the line follows, and so on.
        WHILE _line <> '' LOOP
            SELECT f.branch, f.version INTO after FROM
                (SELECT branch FROM branches
                    WHERE session = _session AND parent = _branch AND forked_at = _at
                UNION ALL SELECT _branch WHERE _branch <> 0) b
                CROSS JOIN LATERAL (SELECT * FROM files WHERE session = _session
                    AND branch = b.branch AND version > _at ORDER BY version LIMIT 1) f
                WHERE f.line <> _line OR (_step <> '' AND f.step = _step)
                ORDER BY f.version DESC LIMIT 1;
            EXIT WHEN NOT FOUND;
            _branch := after.branch;
            _at := after.version;
        END LOOP;
    END $$""",
    f"""CREATE FUNCTION file_in(_session bigint, _branch bigint, _at bigint, _path bytea)
        RETURNS SETOF files LANGUAGE sql STABLE AS $$
        {_SPANS}
        SELECT f.* FROM spans s CROSS JOIN LATERAL (SELECT * FROM files
            WHERE session = _session AND path = _path AND branch = s.branch AND version <= s.last
            ORDER BY version DESC LIMIT 1) f ORDER BY s.depth LIMIT 1
    $$""",
    f"""CREATE FUNCTION files_in(_session bigint, _branch bigint, _at bigint)
        RETURNS SETOF files LANGUAGE sql STABLE AS $$
        {_SPANS},
        newest AS (SELECT DISTINCT ON (f.path) f.version FROM spans s CROSS JOIN LATERAL
            (SELECT path, max(version) AS version FROM files WHERE session = _session
                AND branch = s.branch AND version <= s.last GROUP BY path) f
            ORDER BY f.path, s.depth)
        SELECT f.* FROM newest JOIN files f ON f.session = _session AND f.version = newest.version
            ORDER BY f.path
    $$""",
    f"""CREATE FUNCTION write_file(_tenant bytea, _name bytea, _user bytea, _ttl float8,
        _now float8, _path bytea, _shape bytea, _size bigint, _version bigint, _line bytea,
        _step bytea, _expect bigint, _call bytea, _digest bytea, _form bytea, _packed bigint,
        _trailer bigint, _key bytea, _data bytea, _most bigint[], _subjects bytea[])
    RETURNS TABLE (outcome text, adopted boolean, f_path bytea, f_version bigint, f_shape bytea,
        f_written_at float8, p_digest bytea, p_form bytea, p_packed bigint, p_trailer bigint,
        p_key bytea, p_data bytea)
    LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    DECLARE
        s sessions;
        p payloads;
        f files;
        v record;
        _outcome text;
        _adopted boolean := false;
        _payload bigint;
        _branch bigint;
    BEGIN
        PERFORM lock_tenant(_tenant, _most);
        s := lock_session(_tenant, _name, _user, _ttl, _now);
        p := hold_payload(_tenant, _digest, _key, _data IS NOT NULL);
        s := open_session(s, _ttl, _now);
        SELECT * INTO f FROM files WHERE session = s.n AND call = _call AND call <> '';
        IF FOUND THEN
            _outcome := 'replayed';
        ELSE
            SELECT * INTO v FROM resolve_view(s.n, _version, _line, _step);
            IF v._at IS NULL THEN
                -- A writer from a state that is gone is told of what is there now.
                SELECT * INTO v FROM resolve_view(s.n, NULL, _line, _step);
            END IF;
            SELECT * INTO f FROM file_in(s.n, v._branch, v._at, _path);
            IF _expect <> coalesce(f.version, 0) THEN
                _outcome := 'stale';
            ELSIF f.payload = p.n THEN
                _outcome := 'same';
            ELSE
                _outcome := 'written';
            END IF;
        END IF;
        IF _outcome = 'written' THEN
            SELECT a._payload, a._adopted INTO _payload, _adopted FROM
                adopt(p, _tenant, _digest, _form, _packed, _trailer, _key, _data) a;
            -- The same branch goes on at its end; elsewhere a new one is forked.
            _branch := v._branch;
            IF _branch = 0 OR v._at <>
                (SELECT max(version) FROM files WHERE session = s.n AND branch = _branch) THEN
                SELECT coalesce(max(branch), 0) + 1 INTO _branch FROM branches
                    WHERE session = s.n;
                INSERT INTO branches (tenant, session, branch, parent, forked_at)
                    VALUES (_tenant, s.n, _branch, v._branch, v._at);
            END IF;
            INSERT INTO files (tenant, session, version, branch, path, payload, size, shape, line,
                    step, call, written_at)
                VALUES (_tenant, s.n, s.next_file, _branch, _path, _payload, _size, _shape, _line,
                    _step, _call, _now) RETURNING * INTO f;
            UPDATE payloads SET refs = refs - 1 WHERE n = _payload;
            IF _most IS NOT NULL AND NOT enforce(_tenant, s.n, -1, _most, _now) THEN
                RAISE EXCEPTION 'the files fill the quota' USING ERRCODE = '{FULL}';
            END IF;
        ELSIF p.n IS NOT NULL THEN
            PERFORM let_go(ARRAY[p.n]);
        END IF;
        IF _outcome IN ('written', 'same') THEN
            PERFORM add_subjects(_tenant, s.n, convert_to('file:' || f.version, 'UTF8'), _subjects);
        END IF;
        PERFORM fold_some(_tenant);
        RETURN QUERY SELECT _outcome, _adopted, f.path, f.version, f.shape, f.written_at, q.digest,
            q.form, q.packed, q.trailer, q.key, q.data
            FROM (SELECT 1) one LEFT JOIN payloads q ON q.n = f.payload;
    END $$""",
)
