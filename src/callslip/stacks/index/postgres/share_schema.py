"""The PostgreSQL schema of sharing: one migration."""

from __future__ import annotations

from callslip.stacks.index.postgres.wall import wall

SHARES: tuple[str, ...] = (
    # `session` is empty for all sessions of the user, else 01 and the session's name. A share goes
    # with its result, however that goes.
    """CREATE TABLE shares (
        n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        tenant bytea NOT NULL,
        owner bigint NOT NULL,
        seq bigint NOT NULL,
        made_at float8 NOT NULL,
        until float8 NOT NULL,
        name bytea NOT NULL UNIQUE,
        id bytea NOT NULL,
        "user" bytea NOT NULL,
        session bytea NOT NULL,
        UNIQUE (owner, seq, "user", session)
    )""",
    # `until` behind the id: a look for what has not ended steps over what has in the index itself.
    'CREATE INDEX shares_to ON shares (tenant, "user", session, id, until)',
    "CREATE INDEX shares_until ON shares (until)",
    *wall("shares"),
    """CREATE FUNCTION shares_gone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT 1 FROM shares) THEN
            DELETE FROM shares h USING changed c WHERE h.owner = c.session AND h.seq = c.seq;
        END IF;
        RETURN NULL;
    END $$""",
    """CREATE TRIGGER shares_gone AFTER DELETE ON results REFERENCING OLD TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION shares_gone()""",
)
