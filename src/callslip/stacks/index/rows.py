"""Values to columns and back. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from callslip.errors import SettingsError
from callslip.handle import Scope, Shape, Shared
from callslip.limits import SCOPE_BYTES
from callslip.stacks.auditops import Hold
from callslip.stacks.ops import Payload, Result


def to_blob(text: str) -> bytes:
    """Text as the bytes we keep: any `str` at all, lone surrogates and NUL included."""
    return text.encode("utf-8", "surrogatepass")


def to_text(blob: bytes) -> str:
    """The `str` that `to_blob` was given."""
    return blob.decode("utf-8", "surrogatepass")


def blob_if_any(text: str | None) -> bytes | None:
    """The same of a text that may be none."""
    return None if text is None else to_blob(text)


def text_if_any(blob: bytes | None) -> str | None:
    """The text of a blob that may be none."""
    return None if blob is None else to_text(blob)


def scope_key(scope: Scope) -> tuple[bytes, bytes, bytes]:
    """Tenant, session and user of a scope in PostgreSQL. Raises SettingsError for names that no
    entry of its indexes has room for."""
    key = to_blob(scope.tenant), to_blob(scope.session), to_blob(scope.user)
    if (size := sum(map(len, key))) > SCOPE_BYTES:
        raise SettingsError(
            f"the names of tenant, session and user have {size:,} bytes together; an index in "
            f"PostgreSQL takes {SCOPE_BYTES:,}: give shorter ones"
        )
    return key


def shape_to_blob(shape: Shape) -> bytes:
    """A shape as one JSON object, without what has its default.

    One column, not nine: kinds that come later add fields without a migration. Not ASCII-escaped:
    two lone surrogates next to each other would come back as one character.
    """
    facts = {
        name: value
        for name in Shape.__dataclass_fields__
        if (value := getattr(shape, name)) != Shape.__dataclass_fields__[name].default
    }
    return to_blob(json.dumps(facts, ensure_ascii=False, separators=(",", ":")))


def shape_from_blob(blob: bytes) -> Shape:
    """The shape that `shape_to_blob` was given. Facts that this version does not know are left."""
    facts = json.loads(to_text(blob))
    known = {name: facts[name] for name in Shape.__dataclass_fields__ if name in facts}
    if "fields" in known:
        known["fields"] = tuple(known["fields"])
    return Shape(**known)


def payload_from(
    digest: bytes, form: bytes, packed: int, trailer: int, key: bytes | None, data: bytes | None
) -> Payload:
    """A payload from its columns."""
    return Payload(
        digest=digest,
        form=to_text(form),
        packed=packed,
        trailer=trailer,
        key=text_if_any(key),
        data=data,
    )


def result_from(scope: Scope, row: Sequence[Any], data: bytes | None) -> Result:
    """A result of a row that begins with its own columns in the order of the fields, `same_as` the
    last, and then those of `payload_from`: what both databases select."""
    return Result(
        scope=scope,
        id=to_text(row[0]),
        call=row[1],
        tool=to_text(row[2]),
        args=to_text(row[3]),
        status=to_text(row[4]),
        shape=shape_from_blob(row[5]),
        preview=to_text(row[6]),
        created_at=row[7],
        same_as=to_text(row[8]),
        payload=payload_from(row[9], row[10], row[11], row[12], row[13], data),
    )


def receiver_to_blob(session: str | None) -> bytes:
    """The session that something is shared with; b"" for all of a user's."""
    return b"" if session is None else b"\x01" + to_blob(session)


def shared_from(row: Sequence[Any]) -> Shared:
    """A share from its columns: what both databases select, in the order of the fields."""
    name, id, user, session, made_at, until = row
    receiver = to_text(session[1:]) if session else None
    return Shared(to_text(name), to_text(id), to_text(user), receiver, made_at, until)


def hold_from(row: Sequence[Any]) -> Hold:
    """A legal hold from its columns: what both databases select, in the order of the fields."""
    n, tenant, user, session, reason, actor, since = row
    whose = to_text(tenant), text_if_any(user), text_if_any(session)
    return Hold(n, *whose, to_text(reason), to_text(actor), since)


def holder_from(tenant: str, row: Sequence[Any]) -> tuple[Scope, str, str]:
    """What `auditops.Holders` answers of a result: its session, user, id and tool."""
    session, user, id, tool = map(to_text, row)
    return Scope(session, user, tenant), id, tool


def touch_after(ttl: float | None) -> float:
    """Seconds that a read's activity may go unwritten: a minute, or a tenth of a short ttl."""
    return 60.0 if ttl is None else min(60.0, ttl / 10)
