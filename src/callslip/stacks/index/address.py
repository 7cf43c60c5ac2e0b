"""A PostgreSQL URL taken apart: what is ours in its query, what psycopg gets, what may be shown."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from callslip.errors import SettingsError
from callslip.limits import INDEX_CONNECTIONS

SCHEMA = "callslip"
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_HOST = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(:[0-9]*)?")
"""What a host of the URL is: a name or an address, and a port or none."""
_OPTION = re.compile(r"[A-Za-z_]+=")
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
    def hosts(self) -> int:
        """How many hosts libpq tries, one after the other."""
        _, where, query = _taken_apart(self.conninfo)
        said = dict(parse_qsl(query))
        lists = (where.partition("/")[0], said.get("host", ""), said.get("hostaddr", ""))
        return 1 + max(each.count(",") for each in lists)

    @property
    def identity(self) -> str:
        """Names this index on every machine, whatever password it is reached with: 16 hex digits."""
        user, where, query = _taken_apart(self.conninfo)
        host, slash, name = where.partition("/")
        said = [pair for pair in parse_qsl(query) if pair[0] in ("host", "port", "dbname")]
        path = unquote(slash + name)
        parts = (unquote(user.split(":")[0]), host, path, repr(said), self.schema)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def address_of(url: str) -> Address:
    """Take a URL apart. Raises SettingsError, which names the option and never the whole URL."""
    user, where, query = _taken_apart(url.strip())
    # What is not ours goes on as it came: libpq reads a query in its own way (a "+" is a plus).
    given = [(pair.partition("=")[0], pair) for pair in query.split("&") if pair]
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
    conninfo = f"postgresql://{user}{'@' if user else ''}{where}" + (f"?{rest}" if rest else "")
    shown = f"postgresql://{where}"
    return Address(conninfo, schema, int(most), shown, ours.get("payloads") or None)


def _taken_apart(url: str) -> tuple[str, str, str]:
    """The user with the password, host and database, and the query, where libpq parts them: it takes
    a "#", a "?" or a "[" in a password as it is, which no reader of web addresses does.

    Raises SettingsError for what can only be a password that reaches into the rest: that must not
    be shown as the name of a host.
    """
    rest = url.partition("://")[2]
    first = re.search("[@/]", rest)
    at = first.start() if first and first[0] == "@" else -1
    user, (where, _, query) = rest[: max(at, 0)], rest[at + 1 :].partition("?")
    hosts = [_HOST.fullmatch(host) for host in where.partition("/")[0].split(",")]
    options = [_OPTION.match(pair) for pair in query.split("&") if pair]
    if "@" in where or not all(hosts) or not all(options):
        raise SettingsError(
            "url='postgresql://…': write it as postgresql://user:password@host:port/database?option=… "
            "with / @ : % and spaces in the user's name or password percent-encoded (%2F %40 %3A %25 %20)"
        )
    return user, where, query
