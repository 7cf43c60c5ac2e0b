"""A PostgreSQL URL taken apart: what is ours in its query, what psycopg gets, what may be shown."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from callslip.errors import SettingsError
from callslip.limits import INDEX_CONNECTIONS

SCHEMES = ("postgresql", "postgres")
SCHEMA = "callslip"
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_OURS = ("schema", "connections", "payloads")


@dataclass(frozen=True, slots=True)
class Address:
    """Where an index is. Neither `str` nor `repr` shows anything that may be a credential."""

    conninfo: str
    """For psycopg, the password in it."""
    schema: str
    connections: int
    """How many connections a process holds at the most."""
    shown: str
    """For messages: host and database alone."""
    payloads: str | None = None
    """Where payloads go, if the URL says so: then one string names a whole store."""

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"

    __str__ = __repr__

    @property
    def identity(self) -> str:
        """Names this index on every machine, whatever password it is reached with: 16 hex digits."""
        url = urlsplit(self.conninfo)
        user, _, host = url.netloc.rpartition("@")
        query = [pair for pair in parse_qsl(url.query) if pair[0] in ("host", "port", "dbname")]
        parts = (unquote(user.split(":")[0]), host, unquote(url.path), repr(query), self.schema)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def address_of(url: str) -> Address:
    """Take a URL apart. Raises SettingsError, which names the option and never the whole URL."""
    parts = urlsplit(url)
    # What is not ours goes on as it came: libpq reads a query in its own way (a "+" is a plus).
    given = [(pair.partition("=")[0], pair) for pair in parts.query.split("&") if pair]
    ours = dict(parse_qsl("&".join(pair for name, pair in given if name in _OURS), True))
    schema = ours.get("schema", SCHEMA)
    if not _SCHEMA_NAME.fullmatch(schema) or schema.startswith("pg_"):
        raise SettingsError(
            f"schema={schema!r} in the index's URL: give up to 63 of a-z, 0-9 and _, such as "
            "schema=callslip_test"
        )
    most = ours.get("connections", str(INDEX_CONNECTIONS))
    if not (most.isascii() and most.isdigit() and 0 < int(most) <= 1000):
        raise SettingsError(f"connections={most!r} in the index's URL: give a number from 1")
    rest = "&".join(pair for name, pair in given if name not in _OURS)
    conninfo = f"postgresql://{parts.netloc}{parts.path}" + (f"?{rest}" if rest else "")
    host = parts.netloc.rpartition("@")[2]
    shown = f"postgresql://{host}{parts.path}"
    return Address(conninfo, schema, int(most), shown, ours.get("payloads") or None)
