"""Every cap and default, once. Sizes are in characters unless a name says bytes."""

from __future__ import annotations

# --- what enters a window -----------------------------------------------------------------------

THRESHOLD_CHARS = 16_000
"""A result longer than this is offloaded: one full page, below which reading back costs more."""

PAGE_CAP_CHARS = 16_000
"""No reply of a read-back tool is longer than this, its frame included."""

PAGE_CHARS = 4_000
"""What a page holds when the caller names no limit. Small models copy a cap as their argument."""

FRAME_CHARS = 600
"""What the frame of a reply (opening tag, note, continuation) may take of it at the most."""

PREVIEW_LINES = 20
PREVIEW_CHARS = 1_200
TAIL_LINES = 5
ENVELOPE_CHARS = 400
"""What the envelope may add to the preview."""

REFUSED_CHARS = 4_000
"""The bounded head and tail a model gets when a result could not be stored."""

TURN_CHARS = 48_000
"""What the results of one turn's parallel calls may take together: three full pages."""

HARD_CAP_CHARS = 250_000
"""No text of a tool's result that an adapter passes on is longer; providers refuse from 256,000."""

HITS_DEFAULT = 8
HITS_CAP = 100
HIT_CHARS = 160
"""A search hit's window: the match and what stands around it in its line."""

ROWS_DEFAULT = 8
ROWS_CAP = 200
"""Records that one reply of a query shows, where they are short enough."""

CONTEXT_CAP = 10
LIST_ITEMS = 20
TOOL_NAME_CHARS = 64
ARGS_CHARS = 300
"""What is kept of a call's arguments, for the answer that names the call which would repeat it."""

# --- scratch files -------------------------------------------------------------------------------

PATH_CHARS = 120
FILE_CHARS = 1_000_000
"""A scratch file is no longer than this: what is larger is a result, and has a handle."""

PLAN_CHARS = 4_000
"""What the plan takes at the end of every request, its frame included."""

# --- how it is stored ---------------------------------------------------------------------------

CHUNK_BYTES = 128 * 1024
"""Raw bytes of one chunk at the most; a page decompresses one or two of them."""

CHUNK_MIN_BYTES = 64 * 1024
INLINE_BYTES = 32 * 1024
"""A packed payload up to this size lives in the index row, in the same transaction."""

STREAM_BLOCK_BYTES = 1024 * 1024
HELD_BYTES = 16 * 1024 * 1024
"""How much a packer holds back for a record whose end is not found yet; then it gives records up."""

MATCH_BYTES = 8 * 1024 * 1024
"""A search match longer than this is not looked for: it bounds what is held of a text."""

MATCH_CHARS = 64 * 1024
"""What a hit holds of a match."""

OBJECT_CONNECT_SECONDS = 3.0
OBJECT_REQUEST_SECONDS = 6.0
OBJECT_RETRY_SECONDS = 3.0
"""One request to an object store, and how long it is begun anew for when it fails at once (refused,
throttled): together with the last wait some 10 seconds, which is the most that one operation takes
to say that the store is away. The environment may give more (`AWS_TIMEOUT=60s`)."""

OBJECT_WAIT_SECONDS = 1.0
"""The longest wait between two tries."""

METADATA_SECONDS = 1.0
"""How long a machine is asked whether it gives credentials, where nothing else has any."""

PART_BYTES = 5 * 1024 * 1024
"""An object up to this size goes up in one request, a larger one in parts of it: the least that S3
takes, so that a slow line brings each over in time. 10,000 parts of it are 48 GiB packed."""

DIRECTORIES_CACHED = 256
DERIVED_CACHED_BYTES = 64 * 1024 * 1024
"""Packed bytes of what was taken out of documents to be read: a long text, a list as rows."""

CHUNKS_CACHED = 64

# --- what a query may take -----------------------------------------------------------------------

QUERY_CHARS = 2_000
"""An expression or a select longer than this is not read."""

QUERY_SECONDS = 2.0
QUERY_MEMORY_BYTES = 256 * 1024 * 1024
"""What the engine may take for one query: sorting, grouping, joining."""

COLUMNS_CACHED_BYTES = 256 * 1024 * 1024
"""Typed columns that are kept, of all results; one query alone may not need more."""

KEPT_BYTES = 16 * 1024 * 1024
"""Of a packed stream that is being stored, what is kept for the spool, should the store fail."""

SUBJECT_CHARS = 200
"""The name of whom a result is about."""

# --- how long it lives --------------------------------------------------------------------------

TOMBSTONE_SECONDS = 30 * 24 * 3600
ORPHAN_GRACE_SECONDS = 3600
"""gc leaves unreferenced objects alone until they are this old: a put may be under way."""

SWEEP_EVERY_SECONDS = 30
SWEEP_ROWS = 200
SWEEP_MILLISECONDS = 20
BUSY_SECONDS = 10.0
"""How long writers of one SQLite file wait for each other."""

AWAY_SECONDS = 0.5
PAUSE_FACTOR = 3.0
PAUSE_SECONDS = 30.0
"""An operation that failed after so long shuts its part of the store off for three times as long as
it waited, at most half a minute: a run waits for a store that is away a quarter of its time at the
most, and 10 seconds at once."""

CLOCK_SECONDS = 600.0
"""How often a worker compares its clock with the index's."""

DELIVER_SECONDS = 1.0
"""How much of the spool one put delivers by the way; what is begun is finished."""

SPOOL_BYTES = 1024 * 1024 * 1024
"""Packed bytes beyond which the spool takes nothing more, so that it does not fill a worker's disk."""


# --- what is remembered -------------------------------------------------------------------------

FACT_CHARS = 8_000
"""A fact is a sentence or a few; what is longer is a result."""

FACT_NAME_CHARS = 200
"""A key, a kind, a source, one word of a namespace."""

FACT_METADATA_CHARS = 8_000
FACT_VERSIONS = 20
"""How much of a fact's past is kept."""

RECALL_DEFAULT = 5
RECALL_CAP = 50
RECALL_CHARS = 4_000
"""What one recall may take of a window, its frame included."""

FACT_SHOWN_CHARS = 600
"""What a recall shows of one fact."""

RECALL_LOOKED_AT = 2_000
"""Facts with a rare word of the query that are looked at for it."""

RECALL_SCORED = 300
"""Facts whose words are read to score them."""

VECTORS_SCANNED = 50_000
VECTORS_BY_THE_WAY = 256
"""Facts without a vector that one recall embeds."""

EMBEDDED_AT_ONCE = 64
PROBE_TEXT = "The quick brown fox asks two librarians for call slip 1874."
"""What tells one embedding from another: the vector that it makes of this."""

# --- a PostgreSQL index ---------------------------------------------------------------------------

INDEX_SECONDS = 10.0
"""No operation on it takes longer: waiting for a connection, for locks and retries included."""

INDEX_CONNECT_SECONDS = 3.0
INDEX_LOCK_SECONDS = 5.0
INDEX_CONNECTIONS = 8
"""Connections that one process holds at the most; `?connections=` in the URL."""

INDEX_IDLE_SECONDS = 300.0
"""A connection that was not used for longer is closed: firewalls drop such ones silently."""

MIGRATION_SECONDS = 600.0

SCOPE_BYTES = 2_600
"""What the names of tenant, session and user may have together: they are in one entry of an index."""

# --- keys -----------------------------------------------------------------------------------------

KMS_SECONDS = 10.0
"""How long one call of a KMS may take; then it counts as away."""

KMS_PAUSE_SECONDS = 5.0
"""How long a KMS that took too long is not asked again."""

KEYS_CACHED_SECONDS = 60.0
"""How long a process may know a key that another one has destroyed."""

KEYS_CACHED = 4_096
"""Keys of tenants and sessions that a process keeps unwrapped."""

KEYS_IDLE_SECONDS = 24 * 3600.0
"""gc destroys the keys of a session of which nothing is left once they are so old: a first put may be
under way."""
