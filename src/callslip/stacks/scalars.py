"""The scalars that JSON lacks: how each is shown, and how each is stored exactly.

One row a type: its code in the exact form (never reuse one), how it is shown, how it becomes bytes,
and how bytes become it. Looked up by exact type; a subclass is another type.

What may live here: leaves. A value with parts is for `callslip.stacks.kinds`.
"""

from __future__ import annotations

import base64
import ipaddress
import pathlib
import struct
import uuid
import zoneinfo
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, NamedTuple

import msgspec

from callslip.errors import NotRestorable

__all__ = ["BY_CODE", "HUGE_BITS", "INT", "SCALARS", "STR", "Scalar", "shown_int"]

HUGE_BITS: Final = 14_000
"""Integers of more bits are shown in hexadecimal: Python refuses to write or read their digits."""


class Scalar(NamedTuple):
    code: int
    show: Callable[[Any], Any]
    """The JSON value of the view."""
    pack: Callable[[Any], bytes]
    unpack: Callable[[bytes], Any]


def shown_int(value: int) -> int | str:
    """An integer as it is shown: itself, or its hexadecimal digits if it is very long."""
    return value if value.bit_length() <= HUGE_BITS else hex(value)


def _base64(value: bytes | bytearray) -> dict[str, str]:
    return {"$base64": base64.b64encode(value).decode("ascii")}


def _pack_int(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def _unpack_int(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


# --- dates and times ----------------------------------------------------------------------------


def _pack_zone(zone: tzinfo | None) -> str | None:
    if zone is None:
        return "-"
    if type(zone) is timezone:
        if zone is UTC:
            return "utc"
        return _pack_offset(*zone.__getinitargs__())  # type: ignore[attr-defined]
    if type(zone) is zoneinfo.ZoneInfo and zone.key is not None:
        return f"z{zone.key}"
    return None


def _pack_offset(offset: timedelta, name: str | None = None) -> str:
    ticks = offset // timedelta(microseconds=1)
    return f"o{ticks}" + ("" if name is None else f" {name}")


def _unpack_zone(text: str) -> tzinfo | None:
    if text == "-":
        return None
    if text == "utc":
        return UTC
    if text.startswith("z"):
        try:
            return zoneinfo.ZoneInfo(text[1:])
        except zoneinfo.ZoneInfoNotFoundError:
            raise NotRestorable(f"the time zone {text[1:]!r} is not known here") from None
    ticks, named, name = text[1:].partition(" ")
    offset = timedelta(microseconds=int(ticks))
    return timezone(offset, name) if named else timezone(offset)


def _pack_moment(value: datetime | time) -> bytes:
    zone = _pack_zone(value.tzinfo)
    if zone is None:
        # A time zone of another library: kept is the offset it has at that moment.
        offset = value.utcoffset()
        zone = "-" if offset is None else _pack_offset(offset, value.tzname())
    plain = value if zone == "-" and not value.fold else value.replace(tzinfo=None, fold=0)
    text = plain.isoformat()
    return f"{text}|{value.fold}|{zone}".encode("utf-8", "surrogatepass")


def _unpack_moment(cls: Any) -> Callable[[bytes], Any]:
    def unpack(data: bytes) -> Any:
        text, fold, zone = data.decode("utf-8", "surrogatepass").split("|", 2)
        value = cls.fromisoformat(text)
        if fold == "0" and zone == "-":
            return value
        return value.replace(tzinfo=_unpack_zone(zone), fold=int(fold))

    return unpack


def _show_delta(value: timedelta) -> str:
    return str(msgspec.to_builtins(value))


def _show_iso(value: Any) -> str:
    return str(value.isoformat())


def _pack_delta(value: timedelta) -> bytes:
    return f"{value.days} {value.seconds} {value.microseconds}".encode()


def _pack_view(value: memoryview) -> bytes:
    data = {"format": value.format, "shape": list(value.shape or ()), "data": value.tobytes()}
    return msgspec.msgpack.encode(data)


def _unpack_view(data: bytes) -> memoryview:
    parts = msgspec.msgpack.decode(data)
    view = memoryview(parts["data"])
    if parts["format"] == "B" and len(parts["shape"]) == 1:
        return view
    return view.cast(parts["format"], parts["shape"])


# --- the table ----------------------------------------------------------------------------------


def _text(cls: Any) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """For types whose `str` says all, and whose constructor takes it."""
    return (
        lambda value: str(value).encode("utf-8", "surrogatepass"),
        lambda data: cls(data.decode("utf-8", "surrogatepass")),
    )


STR: Final = 2
INT: Final = 3

SCALARS: Final[dict[type, Scalar]] = {
    datetime: Scalar(4, _show_iso, _pack_moment, _unpack_moment(datetime)),
    date: Scalar(5, _show_iso, *_text(date.fromisoformat)),
    time: Scalar(6, _show_iso, _pack_moment, _unpack_moment(time)),
    timedelta: Scalar(
        7, _show_delta, _pack_delta, lambda data: timedelta(*map(int, data.decode().split()))
    ),
    Decimal: Scalar(8, str, *_text(Decimal)),
    uuid.UUID: Scalar(9, str, lambda value: value.bytes, lambda data: uuid.UUID(bytes=data)),
    complex: Scalar(
        10,
        str,
        lambda v: struct.pack(">dd", v.real, v.imag),
        lambda d: complex(*struct.unpack(">dd", d)),
    ),
    Fraction: Scalar(
        11,
        lambda value: f"{shown_int(value.numerator)}/{shown_int(value.denominator)}",
        lambda value: f"{value.numerator:x}/{value.denominator:x}".encode(),
        lambda data: Fraction(*(int(part, 16) for part in data.decode().split("/"))),
    ),
    bytes: Scalar(12, _base64, bytes, bytes),
    bytearray: Scalar(13, _base64, bytes, bytearray),
    memoryview: Scalar(14, lambda value: _base64(value.tobytes()), _pack_view, _unpack_view),
    timezone: Scalar(
        15, str, lambda v: (_pack_zone(v) or "").encode(), lambda d: _unpack_zone(d.decode())
    ),
    type(Ellipsis): Scalar(16, lambda _: "...", lambda _: b"", lambda _: ...),
    type(NotImplemented): Scalar(17, repr, lambda _: b"", lambda _: NotImplemented),
    pathlib.PurePosixPath: Scalar(20, str, *_text(pathlib.PurePosixPath)),
    pathlib.PureWindowsPath: Scalar(21, str, *_text(pathlib.PureWindowsPath)),
    type(pathlib.Path()): Scalar(22, str, *_text(pathlib.Path)),
    ipaddress.IPv4Address: Scalar(30, str, *_text(ipaddress.IPv4Address)),
    ipaddress.IPv6Address: Scalar(31, str, *_text(ipaddress.IPv6Address)),
    ipaddress.IPv4Network: Scalar(32, str, *_text(ipaddress.IPv4Network)),
    ipaddress.IPv6Network: Scalar(33, str, *_text(ipaddress.IPv6Network)),
    ipaddress.IPv4Interface: Scalar(34, str, *_text(ipaddress.IPv4Interface)),
    ipaddress.IPv6Interface: Scalar(35, str, *_text(ipaddress.IPv6Interface)),
    # Codes only the exact form uses: what msgpack itself cannot hold.
    str: Scalar(
        STR,
        str,
        lambda v: v.encode("utf-8", "surrogatepass"),
        lambda d: d.decode("utf-8", "surrogatepass"),
    ),
    int: Scalar(INT, shown_int, _pack_int, _unpack_int),
}

BY_CODE: Final = {row.code: row.unpack for row in SCALARS.values()}
