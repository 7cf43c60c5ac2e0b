"""The table of teams' runs in PostgreSQL: part of the second migration."""

from __future__ import annotations

RUNS: tuple[str, ...] = (
    # `mark` is a hash of user and session, whatever their length.
    """CREATE TABLE team_runs (
        seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        mark bytea NOT NULL,
        user_name bytea NOT NULL,
        session bytea NOT NULL,
        run bytea NOT NULL,
        parent bytea NOT NULL,
        owner bytea NOT NULL,
        status text NOT NULL,
        data bytea NOT NULL,
        UNIQUE (mark, run)
    )""",
    "CREATE INDEX team_runs_order ON team_runs (mark, seq)",
)
