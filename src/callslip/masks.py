"""What a field may be shown as: functions for `ResultStore(mask={"ssn": last4, …})`.

Any function of one value will do; what it answers takes the value's place in all that a model
reads. One that raises hides the value. What a query saved was shown once, and is shown again when it
is read: a function that leaves its own answers alone, as these do, lets both be compared.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable

from callslip.errors import SettingsError
from callslip.stacks.hiding.scan import HIDDEN

__all__ = ["hashed", "hidden", "last4"]

_KEPT = 4
_ALNUM = re.compile(r"[^\W_]")  # what str.isalnum says of a character
_DIGITS, _CHECK = 16, 8
_HASHED = re.compile(rf"[0-9a-f]{{{_DIGITS + _CHECK}}}")


def hidden(value: object) -> str:
    """Nothing of the value: `[hidden]`."""
    return HIDDEN


def last4(value: object) -> str | None:
    """The last four letters and digits, and a star for each one before: `***-**-6789`.

    Of a value with eight or fewer of them no more than half is shown; null stays null, and so does
    what has its stars already.
    """
    if value is None:
        return None
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return HIDDEN
    text = str(value)
    count = len(_ALNUM.findall(text))
    if "*" in text and _is_starred(text, count):
        return text
    starred = count - min(_KEPT, count // 2)
    return _ALNUM.sub("*", text, count=starred) if starred else text  # a count of 0 is all of them


def _is_starred(text: str, count: int) -> bool:
    """Whether all of its letters and digits, `count` of them, are such as `last4` leaves: behind the
    stars, and no more of them than there are of these."""
    stars, _, rest = text.rpartition("*")
    shown = min(_KEPT, stars.count("*") + 1)
    return count <= shown and len(_ALNUM.findall(rest)) == count


def hashed(key: bytes | str) -> Callable[[object], str | None]:
    """A function that shows twenty-four hexadecimal digits of a keyed hash: equal values look equal,
    so a model can group and join by them, and who has not the key cannot try values out. By the last
    eight it knows what it made itself, and leaves it.

    Raises `SettingsError` for a key of fewer than 16 bytes.
    """
    secret = key.encode() if isinstance(key, str) else bytes(key)
    if len(secret) < 16:
        raise SettingsError(f"hashed(<{len(secret)} bytes>): give a secret of 16 bytes or more")

    def shown(value: object) -> str | None:
        if value is None:
            return None
        text = f"{value}".encode("utf-8", "surrogatepass")
        if len(text) == _DIGITS + _CHECK and _HASHED.fullmatch(f"{value}"):
            made, check = text[:_DIGITS].decode(), text[_DIGITS:].decode()
            if hmac.compare_digest(checked(made), check):
                return made + check
        made = hmac.digest(secret, text, "sha256").hex()[:_DIGITS]
        return made + checked(made)

    def checked(made: str) -> str:
        return hmac.digest(secret, b"made here:" + made.encode(), "sha256").hex()[:_CHECK]

    return shown
