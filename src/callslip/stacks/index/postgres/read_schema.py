"""The reads of a page and of a list, as functions of the database: one migration.

As functions their plans are kept by each connection. Planned anew every time, a page costs the server
eight times what it costs to find its row.
"""

from __future__ import annotations

SESSION = (
    ("s.n", "bigint"), ("s.active_at", "float8"), ("s.ttl", "float8"), ("s.expires_at", "float8"),
    ("s.closed", "boolean"), ("s.floor", "bigint"), ("s.floor_at", "float8"),
    ("s.results", "bigint"), ("s.dead", "bigint"), ("s.held", "boolean"),
)  # fmt: skip
"""What the reads need of a session: `sessions.Session`."""

RESULT = (
    ("r.id", "bytea"), ("r.call", "bytea"), ("r.tool", "bytea"), ("r.args", "bytea"),
    ("r.status", "bytea"), ("r.shape", "bytea"), ("r.preview", "bytea"), ("r.created_at", "float8"),
    ("r.same_as", "bytea"), ("p.digest", "bytea"), ("p.form", "bytea"), ("p.packed", "bigint"),
    ("p.trailer", "bigint"), ("p.key", "bytea"),
)  # fmt: skip
"""A result and its payload, without the bytes: `results.result_from`."""

_GRAVE = (
    ("t.id", "bytea"), ("t.tool", "bytea"), ("t.args", "bytea"), ("t.shape", "bytea"),
    ("t.why", "text"), ("t.gone_at", "float8"),
)  # fmt: skip


def _names(*columns: tuple[str, str]) -> str:
    return ", ".join(name for name, _ in columns)


def _table(*columns: tuple[str, str]) -> str:
    """What a function answers, its columns numbered: their names are taken by what it reads."""
    return ", ".join(f"c{n} {kind}" for n, (_, kind) in enumerate(columns))


_OF_SCOPE = 's.tenant = _tenant AND s.name = _name AND s."user" = _user'
_RECEIVED = (
    "shares h JOIN sessions s ON s.n = h.owner"
    " JOIN results r ON r.session = h.owner AND r.seq = h.seq"
)
_TO = (
    """h.tenant = _tenant AND h."user" = _user AND h.session IN ('', _shared) AND h.until > _now"""
    " AND r.seq >= s.floor AND NOT s.closed"
    " AND (s.expires_at IS NULL OR s.held OR s.expires_at >= _now)"
    " AND (r.expires_at IS NULL OR r.expires_at >= _now)"
)
"""Which rows a scope may read now because they were shared with it."""

_GET_COLUMNS = (
    *SESSION, *RESULT, ("p.data", "bytea"), ("r.seq", "bigint"), ("r.expires_at", "float8"),
    ("owner_user", "bytea"), ("owner_name", "bytea"), *_GRAVE,
)  # fmt: skip
_LIST_COLUMNS = (
    *SESSION, *RESULT, ("ran_out", "bigint"), ("given", "bigint"), ("none", "float8"),
    ("owner_user", "bytea"), ("owner_name", "bytea"), ("place", "bigint"),
)  # fmt: skip

GET = f"""SELECT {_names(*SESSION, *RESULT)}, p.data, r.seq, r.expires_at, NULL::bytea,
            NULL::bytea, {_names(*_GRAVE)}
        FROM sessions s
        LEFT JOIN results r ON r.session = s.n AND r.id = _id
        LEFT JOIN payloads p ON p.n = r.payload
        LEFT JOIN tombstones t ON t.session = s.n AND t.id = _id
        WHERE {_OF_SCOPE}
        UNION ALL (SELECT {_names(*SESSION, *RESULT)}, p.data, r.seq, NULL, s."user", s.name,
            {", ".join(f"NULL::{kind}" for _, kind in _GRAVE)}
        FROM {_RECEIVED} JOIN payloads p ON p.n = r.payload WHERE h.id = _id AND {_TO} LIMIT 1)"""
"""One statement, whatever there is."""

_GET = f"""CREATE FUNCTION get_result(_tenant bytea, _name bytea, _user bytea, _id bytea, _now float8,
    _shared bytea) RETURNS TABLE ({_table(*_GET_COLUMNS)}) LANGUAGE plpgsql STABLE AS $$
    BEGIN
        RETURN QUERY {GET};
    END $$"""

_MINE = _names(*SESSION).replace("s.", "mine.")

# Without gaps, where nothing was deleted out of the middle, the page begins `_after` numbers after
# the first: so a list's end costs what its start does. What was shared comes behind the own rows.
_LIST = f"""CREATE FUNCTION list_results(_tenant bytea, _name bytea, _user bytea, _after bigint,
    _limit bigint, _now float8, _shared bytea) RETURNS TABLE ({_table(*_LIST_COLUMNS)})
    LANGUAGE plpgsql STABLE AS $$
    DECLARE
        mine sessions;
        first bigint;
        last bigint;
        gone bigint := 0;
        live bigint := 0;
        dense boolean;
        shared record;
    BEGIN
        SELECT * INTO mine FROM sessions s WHERE {_OF_SCOPE};
        SELECT count(*) AS n, array_agg(owner ORDER BY place) AS owners,
            array_agg(seq ORDER BY place) AS seqs INTO shared FROM
            (SELECT h.owner, h.seq, min(h.n) AS place FROM {_RECEIVED} WHERE {_TO}
                AND NOT EXISTS (SELECT 1 FROM sessions s JOIN results o ON o.session = s.n
                    AND o.seq >= s.floor WHERE o.id = r.id AND {_OF_SCOPE} AND NOT s.closed
                    AND (s.expires_at IS NULL OR s.held OR s.expires_at >= _now)
                    AND (o.expires_at IS NULL OR o.expires_at >= _now))
                GROUP BY h.owner, h.seq) received;
        IF mine.n IS NOT NULL AND NOT mine.closed
            AND (mine.held OR NOT coalesce(mine.expires_at < _now, false)) THEN
            SELECT count(*) INTO gone FROM results r
                WHERE r.session = mine.n AND r.expires_at < _now AND r.seq >= mine.floor;
            live := mine.results - mine.dead - gone;
        END IF;
        -- One row always, which says what there is in all.
        RETURN QUERY SELECT {_MINE},
            {", ".join(f"NULL::{kind}" for _, kind in RESULT)}, gone, shared.n, NULL::float8,
            NULL::bytea, NULL::bytea, NULL::bigint;
        IF _limit > 0 AND _after < live THEN
            SELECT r.seq INTO first FROM results r WHERE r.session = mine.n AND r.seq >= mine.floor
                ORDER BY r.seq LIMIT 1;
            SELECT r.seq INTO last FROM results r WHERE r.session = mine.n AND r.seq >= mine.floor
                ORDER BY r.seq DESC LIMIT 1;
            dense := gone = 0 AND last - first + 1 = live;
            RETURN QUERY SELECT {_MINE}, {_names(*RESULT)}, gone, shared.n, NULL::float8,
                NULL::bytea, NULL::bytea, NULL::bigint
                FROM results r JOIN payloads p ON p.n = r.payload WHERE r.session = mine.n
                AND r.seq >= CASE WHEN dense THEN first + _after ELSE mine.floor END
                AND (r.expires_at IS NULL OR r.expires_at >= _now)
                ORDER BY r.seq OFFSET CASE WHEN dense THEN 0 ELSE _after END LIMIT _limit;
        END IF;
        IF shared.n > 0 THEN
            RETURN QUERY SELECT {_names(*SESSION, *RESULT)}, gone, shared.n, NULL::float8,
                s."user", s.name, g.place
                FROM unnest(shared.owners, shared.seqs) WITH ORDINALITY g (owner, seq, place)
                JOIN sessions s ON s.n = g.owner
                JOIN results r ON r.session = g.owner AND r.seq = g.seq
                JOIN payloads p ON p.n = r.payload
                WHERE g.place > greatest(_after - live, 0)
                ORDER BY g.place LIMIT greatest(_limit - greatest(live - _after, 0), 0);
        END IF;
    END $$"""

READS: tuple[str, ...] = (_GET, _LIST)
