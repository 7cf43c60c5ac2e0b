"""What a tenant's and a session's keys seal and open."""

from __future__ import annotations

from callslip.limits import KEYS_CACHED
from callslip.stacks.index.sealed.cipher import Box, Fixed, derived, mac, to_bytes
from callslip.stacks.keyops import KeyRow


class Tenant:
    """What seals a tenant's rows as far as they belong to no session."""

    def __init__(
        self,
        name: str,
        token: str,
        secret: bytes,
        keys: dict[int, bytes],
        digests: bytes,
        row: KeyRow | None = None,
    ) -> None:
        self.name = name
        self.token = token
        self.row = row
        """What it was opened from; None of a tenant that has no keys."""
        self.made_at = 0.0 if row is None else row.made_at
        self.secret = secret
        self.keys = keys
        """By generation; what wraps the keys of sessions."""
        self.names = Fixed(secret, "names")
        self._tokens: dict[str, str] = {}
        self.facts = Fixed(secret, "facts")
        self.vectors = Box(derived(secret, "vectors"))
        self.digests = digests
        self._calls = derived(secret, "calls")
        self._words = derived(secret, "words")

    def name_token(self, name: str) -> str:
        """What stands for a user or a session: asked for with every look-up, so kept."""
        token = self._tokens.get(name)
        if token is None:
            if len(self._tokens) > KEYS_CACHED:
                self._tokens.clear()
            token = self._tokens[name] = self.names.token(name)
        return token

    @property
    def generation(self) -> int:
        """The newest generation of its keys."""
        return max(self.keys)

    def call(self, call: bytes) -> bytes:
        """16 bytes that stand for the identity of a call; none for none."""
        return mac(self._calls, call)[:16] if call else b""

    def same(self, same: bytes) -> bytes:
        """16 bytes that stand for what a fact says."""
        return mac(self._calls, b"same", same)[:16]

    def word(self, word: str) -> str:
        """What stands for a word in an index of words: a digit, then letters and digits."""
        return "0" + mac(self._words, to_bytes(word)).hex()[:23]


class SessionKey:
    """What seals a session's rows."""

    def __init__(self, name: str, made_at: float, key: bytes) -> None:
        self.name = name
        self.made_at = made_at
        self.box = Box(derived(key, "rows"))
        self.paths = Fixed(key, "paths")
        self.views = derived(key, "views")
        self.id = derived(key, "id", 8)
        """Says which key sealed a row, where one that was destroyed may have."""
        self._calls = derived(key, "calls")

    def call(self, call: bytes) -> bytes:
        """16 bytes that stand for the call that wrote a file; none for none."""
        return mac(self._calls, call)[:16] if call else b""
