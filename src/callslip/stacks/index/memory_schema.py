"""The tables of memory in SQLite: the third migration of `callslip.stacks.index.schema`.

Why they are as they are: `docs/decisions/0015-memory.md`. `memory_found` is an FTS5 table without
content and without positions: it answers which facts have a word, the latest first, and nothing
else; scores are made of `memory_words`. Each word is in it twice: by itself, and with the number of
its namespace in front, so that what one namespace is asked costs nothing for what others hold.
"""

from __future__ import annotations

MEMORY: tuple[str, ...] = (
    """CREATE TABLE memory_spaces (
        n INTEGER PRIMARY KEY,
        path BLOB NOT NULL UNIQUE,
        parts BLOB NOT NULL,
        facts INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL DEFAULT 0,
        words INTEGER NOT NULL DEFAULT 0,
        below INTEGER NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE memories (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        space INTEGER NOT NULL REFERENCES memory_spaces (n),
        id BLOB NOT NULL,
        key BLOB,
        same BLOB NOT NULL,
        text BLOB NOT NULL,
        kind BLOB NOT NULL,
        source BLOB NOT NULL,
        metadata BLOB NOT NULL,
        item INTEGER NOT NULL,
        count INTEGER NOT NULL,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        expires_at REAL,
        ttl REAL,
        version INTEGER NOT NULL,
        size INTEGER NOT NULL,
        UNIQUE (space, id)
    )""",
    "CREATE UNIQUE INDEX memories_key ON memories (space, key) WHERE key IS NOT NULL",
    "CREATE INDEX memories_same ON memories (space, same)",
    "CREATE INDEX memories_updated ON memories (space, updated_at, n)",
    "CREATE INDEX memories_expiry ON memories (expires_at) WHERE expires_at IS NOT NULL",
    """CREATE TABLE memory_past (
        fact INTEGER NOT NULL REFERENCES memories (n) ON DELETE CASCADE,
        version INTEGER NOT NULL,
        text BLOB NOT NULL,
        kind BLOB NOT NULL,
        source BLOB NOT NULL,
        metadata BLOB NOT NULL,
        since REAL NOT NULL,
        until REAL NOT NULL,
        why TEXT NOT NULL,
        PRIMARY KEY (fact, version)
    ) WITHOUT ROWID""",
    """CREATE TABLE memory_words (
        fact INTEGER PRIMARY KEY REFERENCES memories (n) ON DELETE CASCADE,
        filters INTEGER NOT NULL,
        words TEXT NOT NULL
    )""",
    # Spaces are 1 and up; 0 is all of them together.
    """CREATE TABLE memory_terms (
        space INTEGER NOT NULL,
        word TEXT NOT NULL,
        facts INTEGER NOT NULL,
        PRIMARY KEY (space, word)
    ) WITHOUT ROWID""",
    """CREATE TABLE memory_forms (
        form TEXT NOT NULL,
        word TEXT NOT NULL,
        PRIMARY KEY (form, word)
    ) WITHOUT ROWID""",
    """CREATE VIRTUAL TABLE memory_found USING fts5 (
        words, content = '', detail = none, columnsize = 0, tokenize = "ascii tokenchars '_'"
    )""",
    "CREATE TABLE memory_models (n INTEGER PRIMARY KEY, dims INTEGER NOT NULL, probe BLOB NOT NULL)",
    """CREATE TABLE memory_vectors (
        space INTEGER NOT NULL,
        model INTEGER NOT NULL REFERENCES memory_models (n),
        fact INTEGER NOT NULL REFERENCES memories (n) ON DELETE CASCADE,
        vector BLOB NOT NULL,
        PRIMARY KEY (space, model, fact)
    )""",
    "CREATE INDEX memory_vectors_fact ON memory_vectors (fact, model)",
)
