"""One operation on its way through: what the index inside is asked, and what its answer means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from callslip.handle import Scope
from callslip.stacks.index.sealed.cipher import Fixed, derived, mac
from callslip.stacks.index.sealed.holders import SessionKey, Tenant
from callslip.stacks.index.sealed.ring import Ring
from callslip.stacks.ops import IndexOp


def _same(answer: Any) -> Any:
    return answer


@dataclass(frozen=True, slots=True)
class Step:
    """What to run inside, how to open the answer, and which key must still be there afterwards, for
    what was sealed with it to be of use."""

    op: IndexOp[Any]
    open: Callable[[Any], Any] = _same
    key: SessionKey | Tenant | None = None
    looked: SessionKey | Tenant | None = None
    """Whose names were looked up: where nothing was found, they may be of keys that were destroyed."""


class Names:
    """Tenants, users and sessions, and the tokens that stand for them in the index."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self._store: tuple[bytes, Fixed] | None = None

    @property
    def store(self) -> Fixed:
        """What seals what outlives a tenant: who did what, and why, in the audit."""
        root = self.ring.root()
        if self._store is None or self._store[0] is not root:
            self._store = root, Fixed(root, "store")
        return self._store[1]

    def there(self, tenant: str) -> Tenant:
        """A tenant for reading: of one that has no keys, one of whom nothing is stored. A look-up in
        that takes the same way."""
        token = self.ring.token(tenant)
        found = self.ring.tenant_of(token)
        if found is None:
            root = self.ring.root()
            nobody = derived(mac(root, token.encode()), "nobody")
            found = Tenant(tenant, token, nobody, {1: root}, nobody)
        return found

    def anew(self, tenant: str) -> Tenant:
        """The same, whatever is known: what is removed must not be missed in the names of keys that
        another process has destroyed."""
        self.ring.drop([f"t:{self.ring.token(tenant)}"])
        return self.there(tenant)

    def of_token(self, token: str) -> Tenant | None:
        """The tenant of a row; None if its keys were destroyed."""
        return self.ring.tenant_of(token)

    def opened(self, scope: Scope, tenant: Tenant) -> Scope:
        """The names of a scope in tokens. Raises `Unopened`."""
        names = tenant.names
        return Scope(names.text(scope.session), names.text(scope.user), tenant.name)


def maybe(fixed: Fixed, text: str | None) -> str | None:
    """A token, or None for None."""
    return None if text is None else fixed.token(text)
