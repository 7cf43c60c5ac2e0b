"""The keys of tenants and sessions: made, wrapped, kept in memory for a while, and destroyed.

::

    master key ─ wraps ─→ root      the store's own secret: which token stands for which tenant
               └ wraps ─→ tenant    its name, its secret, and the keys that wrap those of
                            └────→  sessions: what seals their rows, and through these their payloads

Rows are named by tokens. What is wrapped is bound to its row's name, so that none can stand in for
another.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

from callslip.errors import SettingsError, StoreUnavailable
from callslip.handle import Scope
from callslip.limits import KEYS_CACHED_SECONDS
from callslip.stacks.index.sealed.cipher import (
    Box,
    Unopened,
    fresh,
    from_token,
    mac,
    to_bytes,
    to_text,
    to_token,
)
from callslip.stacks.index.sealed.clear import holds_any
from callslip.stacks.index.sealed.holders import SessionKey, Tenant
from callslip.stacks.index.sealed.known import Known
from callslip.stacks.index.sealed.master import Master
from callslip.stacks.index.sealed.wrapping import Wrapping
from callslip.stacks.keyops import AddKey, DropKeys, GetKey, KeyRow, ListKeys, SealMark, SwapKey
from callslip.stacks.ops import Count, Runs

_ROOT = "root"

RUNS = b"runs"
"""The kind of the tenant that stands for the runs of teams: no name that a person gives is of it."""

_BATCH = 500
_REPLACED_SECONDS = 3600.0
"""How long a key that wraps a tenant's sessions' keys stays once there is a newer one: other
processes use it until they look again, and their clocks may be apart."""


class Stale(StoreUnavailable):
    """Keys were destroyed since they were looked up. Nothing was done; it may be done again."""

    def __init__(self) -> None:
        super().__init__(
            "what it belongs to was deleted, and the keys destroyed, while it was used",
            reason="failed",
        )


class Ring:
    """The keys of one index. For many threads; a key is kept for `KEYS_CACHED_SECONDS` at the most,
    so that is how long a process may know one that another process has destroyed."""

    def __init__(
        self,
        index: Runs,
        master: Master,
        seconds: float = KEYS_CACHED_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._index = index
        self._master = master
        self._master_key = Wrapping(master, clock)
        self._clock = clock
        self._known = Known(seconds)
        self._root: bytes | None = None
        self.also_holds: Callable[[], bool] = lambda: False
        """Whether anything stands in the clear beside the index, in what the same keys are for."""

    # --- the store's own ----------------------------------------------------------------------------

    def root(self) -> bytes:
        """The store's secret; made by the first use of an index that is empty.

        Raises `SettingsError` for an index in the clear, one whose keys are gone, and a wrong key.
        """
        if self._root is None:
            mark = self._index.run(SealMark())
            row = self._index.run(GetKey(_ROOT))
            secret = self._first(mark) if row is None else self._master_key.opened(row)
            own = _mark(secret)
            if (mark or self._index.run(SealMark(own))) != own:
                raise SettingsError(
                    "keys=: the keys beside this index are those of another one; put back the keys "
                    "file (or table) that belongs to it"
                )
            self._root = secret
        return self._root

    def rooted(self) -> bool:
        """Whether the store's secret is still that of the index. One that was emptied or made anew
        since has none, or another's: what is known here would seal what nobody else can open. Then
        all of it is forgotten."""
        secret = self._root
        if secret is None:
            return True
        if self._index.run(GetKey(_ROOT)) and self._index.run(SealMark()) == _mark(secret):
            return True
        self.forget()
        return False

    def forget(self) -> None:
        """Know nothing of the index any longer: the next use looks again."""
        self._root = None
        self.clear()

    def _first(self, mark: bytes | None) -> bytes:
        if mark is not None:
            raise SettingsError(
                "keys=: this index is sealed, and the wrapped keys beside it are not there; put back "
                "the keys file (or table) that belongs to it"
            )
        if holds_any(self._index) or self.also_holds():
            raise SettingsError(
                "keys=: this index holds data in the clear, which keys cannot seal any more; give "
                "keys= with a new place, and this one without"
            )
        return self._master_key.added(self._index, _ROOT, fresh())[1]

    # --- tenants ------------------------------------------------------------------------------------

    def token(self, tenant: str, kind: bytes = b"tenant") -> str:
        """What stands for a tenant in the index."""
        return to_token(mac(self.root(), kind, to_bytes(tenant))[:18])

    def runs(self) -> Tenant:
        """The tenant that stands for the runs of teams."""
        return self.tenant("", RUNS)

    def tenant(self, name: str, kind: bytes = b"tenant") -> Tenant:
        """The tenant of that name, with keys of its own from its first use on."""
        token = self.token(name, kind)
        found = self.tenant_of(token)
        if found is None and not self.rooted():
            token = self.token(name, kind)
            found = self.tenant_of(token)
        if found is None:
            # Digests, and so ids, are the same in every store of one key file: a run that is done
            # over elsewhere gives the same handles. All else is this store's own.
            digests = self._master.seed(b"digests" + to_bytes(name)) or fresh()
            blob = {
                "name": to_token(to_bytes(name)),
                "secret": to_token(fresh()),
                "digests": to_token(digests),
                "keys": {"1": to_token(fresh())},
            }
            made, root = json.dumps(blob).encode(), self._index.run(GetKey(_ROOT))
            found = self._tenant_in(*self._master_key.added(self._index, f"t:{token}", made, root))
        return found

    def tenant_of(self, token: str) -> Tenant | None:
        """The tenant that a token stands for; None if its keys were destroyed."""
        known = self._known.get(f"t:{token}")
        if known is not None:
            return known  # type: ignore[no-any-return]
        row = self._index.run(GetKey(f"t:{token}"))
        return None if row is None else self._tenant_in(row, self._master_key.opened(row))

    def _tenant_in(self, row: KeyRow, blob: bytes) -> Tenant:
        held = json.loads(blob)
        tenant = Tenant(
            to_text(from_token(held["name"])),
            row.name[2:],
            from_token(held["secret"]),
            {int(generation): from_token(key) for generation, key in held["keys"].items()},
            from_token(held["digests"]),
            row,
        )
        return self._known.keep(row.name, tenant)

    # --- sessions -----------------------------------------------------------------------------------

    def scope(self, scope: Scope, tenant: Tenant) -> Scope:
        """A scope as it stands in the index."""
        of = tenant.name_token
        return Scope(of(scope.session), of(scope.user), tenant.token)

    def session(self, scope: Scope, tenant: Tenant) -> SessionKey | None:
        """The keys of a session, in tokens; None if it has none (any more)."""
        name = _name(scope)
        known = self._known.get(name)
        if known is not None:
            return known  # type: ignore[no-any-return]
        row = self._index.run(GetKey(name))
        # Of a tenant that has no keys, those that one made since wraps are not to be opened.
        return None if row is None or not tenant.made_at else self._session_in(row, tenant)

    def make_session(self, scope: Scope, tenant: Tenant) -> SessionKey:
        """The keys of a session, in tokens, made if there are none. Raises `Stale`: what a tenant
        wraps whose own keys were destroyed or exchanged meanwhile, nobody might ever open."""
        found = self.session(scope, tenant)
        if found is None:
            name = _name(scope)
            row = KeyRow(name, _sealed_by(tenant, name, fresh()), self._clock())
            added = None if tenant.row is None else self._index.run(AddKey(row, tenant.row))
            if added is None:
                self.drop([f"t:{tenant.token}"])
                raise Stale
            found = self._session_in(added, tenant)
        return found

    def _session_in(self, row: KeyRow, tenant: Tenant) -> SessionKey:
        key = self._session_key(row, tenant)
        return self._known.keep(row.name, SessionKey(row.name, row.made_at, key))

    def _session_key(self, row: KeyRow, tenant: Tenant) -> bytes:
        generation = int.from_bytes(row.wrapped[:4], "little")
        if generation not in tenant.keys:  # it was wrapped anew since the tenant was looked up
            self.drop([f"t:{tenant.token}"])
            again = self.tenant_of(tenant.token)
            if again is None or generation not in again.keys:
                raise StoreUnavailable(
                    "a session's key was wrapped by none of ours", reason="failed"
                )
            tenant = again
        try:
            return Box(tenant.keys[generation]).open(row.wrapped[4:], row.name.encode())
        except Unopened:
            if not self.stands(tenant):
                raise Stale from None
            raise SettingsError(
                "keys=: the wrapped key of a session does not open: the keys file (or table) beside "
                "the index was changed, or is damaged"
            ) from None

    def stands(self, key: SessionKey | Tenant) -> bool:
        """Whether a key that was just used is still there: what it sealed can be opened again."""
        name = f"t:{key.token}" if isinstance(key, Tenant) else key.name
        row = self._index.run(GetKey(name))
        if row is not None and row.made_at == key.made_at:
            return True
        # The tenant's may have gone with it.
        self.drop([name, f"t:{name.split(':')[1]}"])
        return False

    # --- wrapping anew, and destroying --------------------------------------------------------------

    def rewrap(self, sessions: bool) -> int:
        """Do `keyops.Rewrap`."""
        self.root()
        done = 0
        for row in self._rows(_ROOT):
            done += self._rewrapped(row)
        for row in self._rows("t:"):
            done += self._rewrapped(row)
            if sessions:
                done += self._rewrap_sessions(row.name)
        return done

    def _rewrapped(self, row: KeyRow, blob: bytes | None = None) -> int:
        if blob is None and self._master.is_current(json.loads(row.wrapped)["by"]):
            return 0
        new = self._master_key.wrapped(
            row.name, self._master_key.opened(row) if blob is None else blob
        )
        self.drop([row.name])
        return int(self._index.run(SwapKey(row.name, row.wrapped, new.wrapped)))

    def _rewrap_sessions(self, name: str) -> int:
        row = self._index.run(GetKey(name))
        if row is None:
            return 0
        held = json.loads(self._master_key.opened(row))
        newest = max(int(each) for each in held["keys"]) + 1
        held["keys"][str(newest)] = to_token(fresh())
        held.setdefault("made", {})[str(newest)] = self._clock()
        done = self._rewrapped(row, json.dumps(held).encode())
        tenant = self.tenant_of(name[2:])
        if not done or tenant is None:
            return 0  # another process does it, or has destroyed it
        for each in self._rows(f"s:{tenant.token}:"):
            new = _sealed_by(tenant, each.name, self._session_key(each, tenant))
            done += self._index.run(SwapKey(each.name, each.wrapped, new))
        # Now only, and of what is there now: another process may have added a key meanwhile. One that
        # was replaced long ago wraps nothing any more: this went through all, and nobody knows it.
        row = self._index.run(GetKey(name))
        if row is not None:
            held = json.loads(self._master_key.opened(row))
            made, now = held.get("made", {}), self._clock()
            held["keys"] = {
                each: key
                for each, key in held["keys"].items()
                if int(each) >= newest
                or now - made.get(str(int(each) + 1), now) < _REPLACED_SECONDS
            }
            self._rewrapped(row, json.dumps(held).encode())
        return done

    def shred(
        self, tenant: str, user: str | None, session: str | None, older: float = 0.0
    ) -> tuple[int, list[Scope]]:
        """Do `keyops.Shred`; leave keys that are not `older` in seconds. Also answers the sessions,
        in tokens, that a worker who knew their key has written to in between: nobody can open it."""
        token, late = self.token(tenant), []
        found = self.tenant_of(token)
        if found is None:
            return 0, []
        names = found.names
        prefix = f"s:{token}:" + ("" if user is None else f"{names.token(user)}:")
        gone = 0
        if session is not None and user is not None:
            rows = iter([self._index.run(GetKey(prefix + names.token(session)))])
        else:
            rows = iter(self._rows(prefix))
        for row in rows:
            if row is None or self._clock() - row.made_at < older:
                continue
            _, _, user_token, session_token = row.name.split(":")
            if session is not None and names.token(session) != session_token:
                continue
            scope = Scope(session_token, user_token, token)
            if _held(self._index, Count(scope=scope)):
                continue
            gone += self.destroy(row)
            if _held(self._index, Count(scope=scope)):
                if older:  # nobody wants it gone
                    self._index.run(AddKey(row))
                else:
                    late.append(scope)
        return gone, late

    def destroy(self, key: KeyRow | SessionKey) -> int:
        """Destroy a key; another of its name stays."""
        self.drop([key.name])
        return self._index.run(DropKeys([(key.name, key.made_at)]))

    def destroy_tenant(self, tenant: Tenant) -> tuple[KeyRow, int]:
        """Destroy the keys of a tenant and of all its sessions; its row, and how many went."""
        name = f"t:{tenant.token}"
        self.drop([name])
        row = self._index.run(GetKey(name)) or KeyRow(name, b"", 0.0)
        return row, self._index.run(DropKeys([(name, tenant.made_at)], f"s:{tenant.token}:"))

    def tenants(self) -> Iterator[Tenant]:
        """Every tenant that has keys."""
        for row in self._rows("t:"):
            yield self._known.get(row.name) or self._tenant_in(row, self._master_key.opened(row))

    def _rows(self, prefix: str) -> Iterator[KeyRow]:
        after = ""
        while rows := self._index.run(ListKeys(prefix, after, _BATCH)):
            yield from rows
            after = rows[-1].name

    # --- kept in memory -----------------------------------------------------------------------------

    def drop(self, rows: list[str]) -> None:
        """Know those keys no longer."""
        self._known.drop(rows)

    def clear(self) -> None:
        """Know no key of a tenant or a session any longer."""
        self._known.clear()


def _mark(secret: bytes) -> bytes:
    return mac(secret, b"mark")[:16]


def _name(scope: Scope) -> str:
    return f"s:{scope.tenant}:{scope.user}:{scope.session}"


def _sealed_by(tenant: Tenant, name: str, key: bytes) -> bytes:
    generation = tenant.generation
    box = Box(tenant.keys[generation])
    return generation.to_bytes(4, "little") + box.seal(key, name.encode())


def _held(index: Runs, op: Count) -> bool:
    held = index.run(op)
    return bool(held.results or held.tombstones or held.files)
