"""What a `ResultStore` is set to, checked once when it is made."""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeGuard, cast
from urllib.parse import unquote, urlsplit

from callslip import limits
from callslip.errors import SettingsError
from callslip.handle import Handle, Quota, Scope
from callslip.window.envelope import Vocabulary
from callslip.window.policy import Policy, Rule

Redact = Callable[[str], str]
Authorize = Callable[[Scope, Handle | None, str], bool]
"""Scope, the handle and the action: `store`, `read`, `search`, `query`, `get`, `list`, `load`, `open`,
`export` (`records`, `frame`), `share` or `delete`. The handle of a result that is to be stored has no
id; it is None where there is no such result, and the answer is then not used."""
Mask = Mapping[str, Callable[[Any], Any]] | Callable[[str], str]
"""By the name of a field, at any depth, or `user.email`: a function of its value that answers what a
model sees (`callslip.masks` has some); or a function of whole lines of text, as `Redact`."""
Style = Literal["text", "json"]


@dataclass(frozen=True, slots=True)
class Retention:
    """How long results are kept, in seconds, beside `ttl_seconds`.

    `tools`: results of that tool go so long after they were stored, whatever is done in the session.
    `tenants`: the `ttl_seconds` of that tenant's sessions; None keeps them until they are closed.
    """

    tools: Mapping[str, float] = field(default_factory=dict)
    tenants: Mapping[str, float | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("tools", "tenants"):
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                raise SettingsError(f"{name}={given!r}: give a mapping of names to seconds")
            for key, seconds in given.items():
                forever = seconds is None and name == "tenants"
                if not isinstance(key, str) or not (forever or is_seconds(seconds)):
                    raise SettingsError(f"{name}={{{key!r}: {seconds!r}}}: give seconds above 0")

    def runs_out(self, tool: str, stored_at: float) -> float | None:
        """When a result of that tool runs out by itself; None if it lives as its session does."""
        seconds = self.tools.get(tool)
        return None if seconds is None else stored_at + seconds


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to one value, for `on_event=` and the log. Never carries content.

    `name` is `stored`; `refused` (the store was away) or `spooled` (and the spool took it);
    `delivered` (the spool's copy has reached the store).
    """

    name: str
    tool: str = ""
    id: str = ""
    size: int = 0
    """Bytes of the content."""
    shown: int = 0
    """Characters that the model sees in its place."""
    reason: str = ""

    def __str__(self) -> str:
        size = f"{self.size:,} bytes" if self.size else ""
        shown = f"{self.shown:,} characters shown" if self.shown else ""
        facts = ", ".join(filter(None, (self.id, size, shown, self.reason)))
        return f"{self.name}: a result of {self.tool or 'no tool'}{facts and f' ({facts})'}"


@dataclass(frozen=True, slots=True)
class Settings:
    """The keywords of `ResultStore`, as frozen values."""

    url: str | None = field(default=None, repr=False)  # there may be a password in it
    payloads: str | None = field(default=None, repr=False)
    policy: Policy = field(default_factory=Policy)
    preview_lines: int = limits.PREVIEW_LINES
    preview_chars: int = limits.PREVIEW_CHARS
    ttl_seconds: float | None = None
    member_responses: bool = True
    quota: Quota = field(default_factory=Quota)
    redact: Redact | None = None
    on_event: Callable[[Event], object] | None = None
    clock: Callable[[], float] = time.time
    spool: str | None = None
    """Folder of the local spool; "" for none."""
    vocabulary: Vocabulary = "results"
    style: Style = "text"
    keys: Any = field(default=None, repr=False)  # a KMS of the caller's, which may show a secret
    authorize: Authorize | None = None
    mask: Mask | None = None
    audit: bool = False
    actor: str = ""
    """Who the audit names, if it is not the user of the scope: `ResultStore.acting`."""
    retention: Retention = field(default_factory=Retention)

    @property
    def plain_folder(self) -> str:
        """The folder of plain files, absolute; "" where there are none."""
        where = self.payloads or ""
        if not where and self.on_a_server and "payloads=" in (self.url or ""):
            where = place_of(self).payloads
        if where[:7].lower() != "file://" or not where.endswith("?plain"):
            return ""
        return unquote(urlsplit(where).path).rstrip("/")

    @property
    def on_a_server(self) -> bool:
        """Whether the index is another machine's: it has a clock and locks of its own."""
        return _scheme_of(self.url or "") in _SERVERS

    def ttl_of(self, tenant: str) -> float | None:
        """Seconds that a session of that tenant lives after its last activity."""
        return self.retention.tenants.get(tenant, self.ttl_seconds)

    def __post_init__(self) -> None:
        for name in ("redact", "on_event", "clock", "authorize"):
            given = getattr(self, name)
            if given is not None and not callable(given):
                raise SettingsError(f"{name}={given!r}: give a function")
        if _is_async(self.authorize):
            raise SettingsError(
                f"authorize={self.authorize!r}: give a plain function; what an async one answers is "
                "not known when it is asked"
            )
        if not isinstance(self.quota, Quota):
            raise SettingsError(f"quota={self.quota!r}: give callslip.Quota(session_results=…, …)")
        if self.keys is not None:
            from callslip.stacks.index.sealed.master import master_of

            master_of(self.keys)  # what names no key at all is an error here, not at the first put
        for name in ("preview_lines", "preview_chars"):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int) or given < 0:
                raise SettingsError(f"{name}={given!r}: give a whole number, 0 or more")
        for name in ("url", "payloads", "spool"):
            given = getattr(self, name)
            if given is not None and (not isinstance(given, str) or not _is_path(given)):
                shown = "…" if "://" in str(given) else given
                raise SettingsError(f"{name}={shown!r}: give a path or a URL as valid text")
        if self.url == "":
            raise SettingsError("url='': give a folder, or None for ./.callslip")
        for name in ("keys", "mask", "authorize"):
            if self.plain_folder and getattr(self, name) is not None:
                raise SettingsError(
                    f"payloads='file://…?plain' with {name}=: plain files hold the content as it "
                    f"is, for anybody who can open them; give one of the two"
                )
        if self.vocabulary not in ("results", "files"):
            raise SettingsError(f"vocabulary={self.vocabulary!r}: give 'results' or 'files'")
        if self.style not in ("text", "json"):
            raise SettingsError(f"style={self.style!r}: give 'text' or 'json'")
        if not isinstance(self.audit, bool):
            raise SettingsError(f"audit={self.audit!r}: give True or False")
        if not isinstance(self.retention, Retention):
            raise SettingsError(
                f"retention={self.retention!r}: give callslip.Retention(tools=…, …)"
            )
        ttl = self.ttl_seconds
        if ttl is not None and not is_seconds(ttl):
            raise SettingsError(
                f"ttl_seconds={ttl!r}: give seconds above 0, or None to keep results until their "
                "session is closed"
            )


def is_number(given: object) -> TypeGuard[float]:
    """Whether it is a number that a float can hold: an int may be longer than one, nan is none."""
    most = sys.float_info.max
    number = isinstance(given, int | float) and not isinstance(given, bool)
    return number and -most <= cast("float", given) <= most


def is_seconds(given: object) -> TypeGuard[float]:
    """Whether it is a time that something may take or last."""
    return is_number(given) and given > 0


def _is_async(given: object) -> bool:
    called = (given, getattr(given, "__call__", None))  # noqa: B004 - an object's own may be async
    return any(
        kind(each)
        for each in called
        for kind in (
            inspect.iscoroutinefunction,
            inspect.isasyncgenfunction,
            inspect.isgeneratorfunction,
        )
    )


def _is_path(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def policy_of(
    threshold_chars: int,
    threshold_tokens: int | None,
    count_tokens: Callable[[str], int] | None,
    tools: Mapping[str, Rule] | None,
    keep: Callable[[Any, str], bool] | None,
) -> Policy:
    """The policy of those keywords. Raises `SettingsError` for what cannot be meant."""
    if tools is not None and not isinstance(tools, Mapping):
        raise SettingsError(f"tools={tools!r}: give a mapping of tool names to rules")
    for name, given in (("keep", keep), ("count_tokens", count_tokens)):
        if given is not None and not callable(given):
            raise SettingsError(f"{name}={given!r}: give a function")
    return Policy(
        threshold_chars=threshold_chars,
        threshold_tokens=threshold_tokens,
        count_tokens=count_tokens,
        tools=dict(tools or {}),
        keep=keep,
    )


_SERVERS = ("postgresql", "postgres")
_PQ_WORDS = re.compile(r"\s*(host|hostaddr|port|dbname|user|password|service|sslmode)\s*=")
"""How libpq's other way to name a database begins, which is none of ours."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the index, the payloads and the spool of a URL are."""

    index: Path | None
    """The SQLite file; None for an index in memory or in a database."""
    payloads: str
    database: str = field(default="", repr=False)
    """The URL of the index's database, its password in it; empty for one in SQLite."""

    @property
    def identity(self) -> str:
        """Tells this store from others on this machine; the same with another password."""
        from callslip.stacks.index.address import address_of

        index = address_of(self.database).identity if self.database else self.index
        return f"{index}\0{self.payloads}"


def _scheme_of(url: str) -> str:
    """The scheme of a URL; "" for what is none, as a folder is."""
    scheme, mark, _ = url.partition("://")
    return scheme.lower() if mark else ""


def place_of(settings: Settings) -> Place:
    """Resolve `url` and `payloads`. Raises `SettingsError` for a URL that nothing here opens."""
    from callslip.stacks.payloads import check_place, mistyped

    url = settings.url if settings.url is not None else ".callslip"
    scheme = _scheme_of(url)
    check_place(settings.payloads or "")
    if url == ":memory:" or (scheme == "memory"):
        return Place(None, settings.payloads or "memory://")
    if scheme in _SERVERS:
        from callslip.stacks.index.address import address_of

        address = address_of(url)
        payloads = settings.payloads or address.payloads
        if payloads is None:
            raise SettingsError(
                f"payloads=None: the index {address.shown} has no folder of its own; give "
                "payloads='s3://bucket/prefix' (gs://, az://) or a folder that all workers see, or "
                "write it into the URL: ?payloads=s3://bucket/prefix"
            )
        check_place(payloads)
        return Place(None, payloads, url)
    if scheme == "sqlite":
        # sqlite:///relative and sqlite:////absolute, as SQLAlchemy writes them
        path = url.split("://", 1)[1]
        if not path.startswith("/") or path == "/":
            raise SettingsError(
                f"url={url!r}: write sqlite:///relative.db or sqlite:////absolute.db"
            )
        file = Path(path[1:]).absolute()
        return Place(file, settings.payloads or str(file.with_name(file.name + "-payloads")))
    if scheme == "file":
        folder = Path(unquote(urlsplit(url).path)).absolute()
    elif scheme:
        raise SettingsError(
            f"url='{scheme}://…': give a folder, sqlite:///path/to/index.db, postgresql://host/database "
            "or file:///folder; object stores go into payloads="
        )
    elif name := mistyped(url):  # a folder of that name is not what was meant, nor seen by others
        raise SettingsError(f"url='{name}…': write {name}://…, or for a folder of such a name ./…")
    elif _PQ_WORDS.match(url):  # a folder of that name would tell the password
        raise SettingsError(
            "url='…=…': for an index in PostgreSQL write postgresql://user:password@host:port/database; "
            "for a folder of such a name ./…"
        )
    else:
        folder = Path(url).expanduser().absolute()
    return Place(folder / "index.db", settings.payloads or str(folder / "payloads"))


def spool_of(settings: Settings) -> Path | None:
    """The folder that takes results while the store is away: of this user, on this machine.

    It stands apart from the store on purpose: what fills or breaks the one spares the other.
    """
    if settings.spool == "":
        return None
    if settings.spool is not None:
        return Path(settings.spool).expanduser().absolute()
    store = hashlib.sha256(place_of(settings).identity.encode("utf-8", "replace"))
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base) / "callslip" / "spool" / store.hexdigest()[:16]
