"""What a field may be shown as: functions for `ResultStore(mask={"ssn": last4, …})`.

Any function of one value will do; what it answers takes the value's place in all that a model
reads. One that raises hides the value.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable

from callslip.errors import SettingsError
from callslip.stacks.hiding.scan import HIDDEN

__all__ = ["hashed", "hidden", "last4"]

_KEPT = 4
_ALNUM = re.compile(r"[^\W_]")  # what str.isalnum says of a character


def hidden(value: object) -> str:
    """Nothing of the value: `[hidden]`."""
    return HIDDEN


def last4(value: object) -> str | None:
    """The last four letters and digits, and a star for each one before: `***-**-6789`.

    Of a value with eight or fewer of them no more than half is shown; null stays null.
    """
    if value is None:
        return None
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return HIDDEN
    text = str(value)
    count = len(_ALNUM.findall(text))
    starred = count - min(_KEPT, count // 2)
    return _ALNUM.sub("*", text, count=starred) if starred else text  # a count of 0 is all of them


def hashed(key: bytes | str) -> Callable[[object], str | None]:
    """A function that shows sixteen hexadecimal digits of a keyed hash: equal values look equal, so
    a model can group and join by them, and who has not the key cannot try values out.

    Raises `SettingsError` for a key of fewer than 16 bytes.
    """
    secret = key.encode() if isinstance(key, str) else bytes(key)
    if len(secret) < 16:
        raise SettingsError(f"hashed(<{len(secret)} bytes>): give a secret of 16 bytes or more")

    def shown(value: object) -> str | None:
        if value is None:
            return None
        text = f"{value}".encode("utf-8", "surrogatepass")
        return hmac.new(secret, text, hashlib.sha256).hexdigest()[:16]

    return shown
