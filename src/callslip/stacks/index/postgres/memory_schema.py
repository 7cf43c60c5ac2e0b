"""The PostgreSQL schema of memory: one migration.

Why it is as it is: `docs/decisions/0017-memory-and-teams-on-postgres.md`. `memory_found` answers
which facts have a word, the latest first, and nothing else: one row for each word of a fact under its
namespace, and one under its tenant. A `token` is a number made of both (`memory_words.token`).
`tenant` is the tenant's name; where rows are many and short, a number made of it, `owner`.
"""

from __future__ import annotations

from callslip.stacks.index.postgres.runs_schema import RUNS
from callslip.stacks.index.postgres.wall import wall

_OWN = "owner = (SELECT hashtextextended(current_setting('callslip.tenant', true), 1874))"


def _wall(table: str) -> tuple[str, ...]:
    every = "(SELECT current_setting('callslip.all', true)) = 'yes'"
    return (
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY own_tenant ON {table} USING ({_OWN} OR {every})",
    )


MEMORY: tuple[str, ...] = (
    # `mark` is a hash of `path`, whatever its length; `start` orders namespaces in an index.
    """CREATE TABLE memory_spaces (
        n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        tenant bytea NOT NULL,
        mark bytea NOT NULL UNIQUE,
        path bytea NOT NULL,
        start bytea NOT NULL GENERATED ALWAYS AS (substring(path FOR 256)) STORED,
        parts bytea NOT NULL,
        facts bigint NOT NULL DEFAULT 0,
        bytes bigint NOT NULL DEFAULT 0,
        words bigint NOT NULL DEFAULT 0
    ) WITH (fillfactor = 70)""",
    "CREATE INDEX memory_spaces_start ON memory_spaces (start)",
    """CREATE TABLE memories (
        n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        tenant bytea NOT NULL,
        space bigint NOT NULL,
        id bytea NOT NULL,
        key bytea,
        key_mark bytea,
        same bytea NOT NULL,
        text bytea NOT NULL,
        kind bytea NOT NULL,
        source bytea NOT NULL,
        metadata bytea NOT NULL,
        item boolean NOT NULL,
        count bigint NOT NULL,
        created_at double precision NOT NULL,
        updated_at double precision NOT NULL,
        expires_at double precision,
        ttl double precision,
        version bigint NOT NULL,
        size bigint NOT NULL,
        filters integer NOT NULL,
        words bytea NOT NULL,
        UNIQUE (space, id)
    )""",
    "CREATE UNIQUE INDEX memories_key ON memories (space, key_mark) WHERE key_mark IS NOT NULL",
    "CREATE INDEX memories_same ON memories (space, same, n)",
    "CREATE INDEX memories_updated ON memories (space, updated_at, n)",
    "CREATE INDEX memories_expiry ON memories (expires_at) WHERE expires_at IS NOT NULL",
    """CREATE TABLE memory_past (
        tenant bytea NOT NULL,
        fact bigint NOT NULL REFERENCES memories (n) ON DELETE CASCADE,
        version bigint NOT NULL,
        text bytea NOT NULL,
        kind bytea NOT NULL,
        source bytea NOT NULL,
        metadata bytea NOT NULL,
        since double precision NOT NULL,
        until double precision NOT NULL,
        why text NOT NULL,
        PRIMARY KEY (fact, version)
    )""",
    """CREATE TABLE memory_terms (
        owner bigint NOT NULL,
        space bigint NOT NULL,
        word bytea NOT NULL,
        facts bigint NOT NULL,
        PRIMARY KEY (space, word)
    ) WITH (fillfactor = 70)""",
    "CREATE INDEX memory_terms_word ON memory_terms (owner, word)",
    """CREATE TABLE memory_forms (
        owner bigint NOT NULL,
        form bytea NOT NULL,
        word bytea NOT NULL,
        PRIMARY KEY (owner, form, word)
    )""",
    """CREATE TABLE memory_found (
        token bigint NOT NULL,
        fact bigint NOT NULL,
        owner bigint NOT NULL,
        PRIMARY KEY (token, fact) INCLUDE (owner)
    )""",
    # One embedding's vector of one fixed sentence: nobody's.
    """CREATE TABLE memory_models (
        n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        dims integer NOT NULL,
        probe bytea NOT NULL
    )""",
    """CREATE TABLE memory_vectors (
        tenant bytea NOT NULL,
        space bigint NOT NULL,
        model bigint NOT NULL REFERENCES memory_models (n),
        fact bigint NOT NULL REFERENCES memories (n) ON DELETE CASCADE,
        vector bytea NOT NULL,
        PRIMARY KEY (space, model, fact)
    )""",
    "CREATE INDEX memory_vectors_fact ON memory_vectors (fact, model)",
    # Numbers do not get smaller by compression; it would only be tried each time.
    "ALTER TABLE memory_vectors ALTER COLUMN vector SET STORAGE EXTERNAL",
    *wall("memory_spaces"),
    *wall("memories"),
    *wall("memory_past"),
    *wall("memory_vectors"),
    *_wall("memory_terms"),
    *_wall("memory_forms"),
    *_wall("memory_found"),
    *RUNS,
)
