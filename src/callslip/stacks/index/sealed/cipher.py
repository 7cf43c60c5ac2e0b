"""The primitives, all of `cryptography`: AES-256-GCM, AES-SIV, HKDF-SHA256; and HMAC-SHA256.

`Box` seals a thing differently each time. `Fixed` seals equal things equally, so that they can be
looked up; of what it seals, only equality can be seen. Tokens are base64, for columns of text.
"""

from __future__ import annotations

import binascii
import hmac
import secrets
from functools import lru_cache
from typing import Any

from callslip.errors import SettingsError

KEY_BYTES = 32
_NONCE_BYTES = 12


class Unopened(Exception):
    """What was sealed does not open: another key, or not the bytes that were sealed. Never leaves
    this package."""


@lru_cache(maxsize=1)
def _parts() -> tuple[Any, Any, Any, Any, type[Exception]]:
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
    except ImportError as error:
        raise SettingsError("keys= needs: pip install 'callslip[encryption]'") from error
    return AESGCM, AESSIV, HKDFExpand, SHA256, InvalidTag


def aesgcm(key: bytes) -> Any:
    """AES-256-GCM with that key."""
    return _parts()[0](key)


def invalid() -> type[Exception]:
    """What `cryptography` raises for what does not open."""
    return _parts()[4]


def fresh() -> bytes:
    """A new random key."""
    return secrets.token_bytes(KEY_BYTES)


def derived(key: bytes, purpose: str, length: int = KEY_BYTES) -> bytes:
    """A key for one purpose out of a random one."""
    _, _, expand, sha256, _ = _parts()
    made: bytes = expand(sha256(), length, b"callslip 1 " + purpose.encode()).derive(key)
    return made


def mac(key: bytes, *parts: bytes) -> bytes:
    """32 bytes, equal for equal parts under one key."""
    return hmac.digest(key, packed(*parts), "sha256")


class Box:
    """AES-256-GCM under a random nonce, which stands in front."""

    __slots__ = ("_aead",)

    def __init__(self, key: bytes) -> None:
        self._aead = aesgcm(key)

    def seal(self, plain: bytes, about: bytes) -> bytes:
        """Seal; `about` is bound in, and must be the same to open."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed: bytes = nonce + self._aead.encrypt(nonce, plain, about)
        return sealed

    def open(self, sealed: bytes, about: bytes) -> bytes:
        """What was sealed. Raises `Unopened`."""
        try:
            opened: bytes = self._aead.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], about)
        except (invalid(), ValueError) as error:
            raise Unopened from error
        return opened


class Fixed:
    """AES-256-SIV: equal things sealed about the same are equal."""

    __slots__ = ("_aead",)

    def __init__(self, key: bytes, purpose: str) -> None:
        self._aead = _parts()[1](derived(key, purpose, 64))

    def seal(self, plain: bytes, about: bytes = b"") -> bytes:
        """Seal; nothing at all is sealed, too."""
        sealed: bytes = self._aead.encrypt(b"." + plain, [about])
        return sealed

    def open(self, sealed: bytes, about: bytes = b"") -> bytes:
        """What was sealed. Raises `Unopened`."""
        try:
            opened: bytes = self._aead.decrypt(sealed, [about])
        except (invalid(), ValueError) as error:
            raise Unopened from error
        return opened[1:]

    def token(self, text: str, about: bytes = b"") -> str:
        """A text as a token; the empty one stays empty."""
        return to_token(self.seal(to_bytes(text), about)) if text else ""

    def text(self, token: str, about: bytes = b"") -> str:
        """The text of a token. Raises `Unopened`."""
        return to_text(self.open(from_token(token), about)) if token else ""


# --- bytes and texts ------------------------------------------------------------------------------


def to_bytes(text: str) -> bytes:
    """Any `str` at all, lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    """The `str` that `to_bytes` was given."""
    return data.decode("utf-8", "surrogatepass")


def to_token(data: bytes) -> str:
    """Bytes as letters, digits, `+` and `/`."""
    return binascii.b2a_base64(data, newline=False).rstrip(b"=").decode()


def from_token(token: str) -> bytes:
    """The bytes of a token. Raises `Unopened`."""
    try:
        return binascii.a2b_base64(token + "=" * (-len(token) % 4), strict_mode=True)
    except ValueError as error:
        raise Unopened from error


def packed(*parts: bytes) -> bytes:
    """Several parts as one, so that no other parts give the same."""
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def unpacked(data: bytes) -> list[bytes]:
    """The parts that `packed` was given."""
    parts = []
    at = 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        parts.append(data[at + 4 : end])
        at = end
    return parts
