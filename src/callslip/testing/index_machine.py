"""A hypothesis state machine: any index against the plain model, whatever the order of calls.

::

    TestMyIndex = index_machine(lambda: MyIndex(...)).TestCase

Needs `hypothesis`. Few tenants, sessions, calls, contents and ids on purpose, so that they collide.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from callslip.errors import StoreUnavailable
from callslip.handle import Quota, Scope, Shape
from callslip.limits import TOMBSTONE_SECONDS
from callslip.stacks import fileops, ops
from callslip.testing.index_model import Model

_scopes = st.sampled_from(
    [
        Scope("s"),
        Scope("s"),
        Scope("s"),
        Scope("s", "ana"),
        Scope("t\0\ud800"),
        Scope("s", "", "acme"),
    ]
)
_ids = st.sampled_from(["r0", "r1", "r2", "r00", "r01", "r02", "r10", "r12", "res_0_0", "nope"])
_numbers = st.integers(0, 2)
_views = st.builds(
    fileops.View,
    st.one_of(st.none(), st.integers(0, 9)),
    st.sampled_from(["", "", "run", "sub\0"]),
    st.sampled_from(["", "1", "2"]),
)
_caps = st.one_of(st.none(), st.integers(0, 4))


def index_machine(
    open: Callable[[], ops.Runs],
    close: Callable[[Any], None] = lambda index: None,
    reopen: Callable[[Any], ops.Runs] | None = None,
) -> type[RuleBasedStateMachine]:
    """A state machine over indexes that `open()` makes, empty each time.

    `reopen` gets the index and answers the same one opened anew: nothing may depend on what a
    process remembers.
    """

    class IndexMachine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.index: Any = open()
            self.model = Model()
            self.now = 1_000_000.0
            self.uploads = 0
            self.keys: set[str] = set()
            """Keys of every object that the index took and has not let go of."""

        def teardown(self) -> None:
            close(self.index)

        @rule(
            scope=_scopes,
            call=_numbers,
            content=_numbers,
            inline=st.booleans(),
            ttl=st.sampled_from([None, 0.0, 30.0, 30.0]),
            caps=st.one_of(st.just((None,) * 4), st.tuples(_caps, _caps, _caps, _caps)),
            runs_out=st.sampled_from([None, None, None, 0.0, 20.0]),
        )
        def insert(
            self,
            scope: Scope,
            call: int,
            content: int,
            inline: bool,
            ttl: float | None,
            caps: tuple[int | None, ...],
            runs_out: float | None,
        ) -> None:
            self._insert(scope, call, content, inline, ttl, caps, runs_out)

        def _insert(
            self,
            scope: Scope,
            call: int,
            content: int,
            inline: bool,
            ttl: float | None,
            caps: tuple[int | None, ...],
            runs_out: float | None = None,
        ) -> None:
            digest = hashlib.sha256(f"{scope.tenant!r}{content}".encode()).digest()
            payload = ops.Payload(digest, "str", 10 + content, 5, lock=digest)
            stored = self.index.run(ops.FindPayload(scope.tenant, digest))
            if stored is None:
                # The model drops payloads no later than an index does.
                assert not any(
                    row.payload.digest == digest for row in self._after_expiry(scope.tenant)
                )
                self.uploads += 1
                key = f"k/{self.uploads}"
                payload = replace(payload, **({"data": b"d" * 9} if inline else {"key": key}))
            row = ops.Result(
                scope=scope,
                id="",
                call=bytes([call]) * 16,
                tool=f"tool{call}\0\udcff",
                args="{}",
                status="",
                shape=Shape(size=content + 1, fields=("é", "\ud83d\ude00")),
                preview="\ud83d\ude00 \0",
                created_at=self.now,
                payload=payload,
            )
            size = None if caps[1] is None else caps[1] * 2
            quota = Quota(caps[0], size, caps[2], None if caps[3] is None else caps[3] * 3)
            # The shorter two collide between calls and contents; the last is this one's own.
            ids = (f"r{content}", f"r{call}{content}"[:3], f"res_{call}_{content}")
            expires_at = None if runs_out is None else self.now + runs_out
            op = ops.Insert(row, ids, ttl, quota, self.now, expires_at)
            inserted = self.index.run(op)
            expected, created = self.model.insert(op)
            assert inserted is not None
            assert inserted.created == created
            assert inserted.adopted == (stored is None)
            self._same_row(inserted.result, expected)
            if stored is None and payload.key is not None:
                self.keys.add(payload.key)

        @rule(scope=_scopes, call=_numbers, content=_numbers, other=_numbers)
        def come_back_to_a_session_that_ran_out(
            self, scope: Scope, call: int, content: int, other: int
        ) -> None:
            none = (None,) * 4
            self._insert(scope, call, content, False, 30.0, none)
            self.now += 31.0
            self._insert(scope, call, other, False, 30.0, none)

        @rule(scope=_scopes, content=_numbers)
        def insert_what_is_gone(self, scope: Scope, content: int) -> None:
            digest = hashlib.sha256(b"never stored" + bytes([content])).digest()
            row = ops.Result(
                scope,
                "",
                b"c" * 16,
                "t",
                "",
                "",
                Shape(),
                "",
                0.0,
                ops.Payload(digest, "str", 1, 1, lock=digest),
            )
            before = self.index.run(ops.Count())
            assert self.index.run(ops.Insert(row, ("x",), None, Quota(), self.now)) is None
            assert self.index.run(ops.Count()) == before

        @rule(scope=_scopes, id=_ids)
        def get(self, scope: Scope, id: str) -> None:
            op = ops.Get(scope, id, self.now)
            found, expected = self.index.run(op), self.model.get(op)
            if isinstance(expected, ops.Result):
                assert isinstance(found, ops.Result)
                self._same_row(found, expected)
            elif isinstance(expected, ops.Tombstone):
                assert isinstance(found, ops.Tombstone)
                if expected.why == "expired":
                    # It ended unseen; an index may know only when its session last ran out.
                    assert expected.gone_at <= found.gone_at <= self.now
                    found = replace(found, gone_at=expected.gone_at)
                assert found == expected
            else:
                assert found is None

        @rule(
            scope=_scopes,
            path=st.sampled_from(["todo.md", "é\udcff"]),
            content=_numbers,
            view=_views,
            expect=st.one_of(st.none(), st.none(), st.integers(0, 4)),
            call=st.sampled_from([b"", b"", b"c" * 16]),
            ttl=st.sampled_from([None, 30.0]),
            caps=st.one_of(st.just((None,) * 4), st.tuples(_caps, _caps, _caps, _caps)),
        )
        def write_file(
            self,
            scope: Scope,
            path: str,
            content: int,
            view: fileops.View,
            expect: int | None,
            call: bytes,
            ttl: float | None,
            caps: tuple[int | None, ...],
        ) -> None:
            digest = hashlib.sha256(f"{scope.tenant!r}{content}".encode()).digest()
            payload = ops.Payload(digest, "str", 10 + content, 5, lock=digest)
            stored = self.index.run(ops.FindPayload(scope.tenant, digest))
            if stored is None:
                self.uploads += 1
                payload = replace(payload, key=f"k/{self.uploads}")
            quota = Quota(
                caps[0],
                None if caps[1] is None else caps[1] * 3,
                caps[2],
                None if caps[3] is None else caps[3] * 4,
            )
            shape = Shape(size=content + 1, lines=content)
            op = fileops.WriteFile(
                scope, path, shape, payload, view, expect, call, ttl, quota, self.now
            )
            expected = self.model.write(op)
            try:
                wrote = self.index.run(op)
            except StoreUnavailable as error:
                assert (expected, error.reason) == (None, "over quota")
                return
            assert wrote is not None
            assert expected is not None
            assert wrote.outcome == expected.outcome
            assert wrote.adopted == (stored is None and wrote.outcome == "written")
            self._same_file(wrote.file, expected.file)
            if wrote.adopted and payload.key is not None:
                self.keys.add(payload.key)

        @rule(scope=_scopes, view=_views)
        def files(self, scope: Scope, view: fileops.View) -> None:
            op = fileops.ListFiles(scope, view, self.now)
            (found, at), (expected, expected_at) = self.index.run(op), self.model.files(op)
            assert (at, len(found)) == (expected_at, len(expected))
            for each, other in zip(found, expected, strict=True):
                self._same_file(each, other)
                self._same_file(
                    self.index.run(fileops.ReadFile(scope, each.path, view, self.now)), other
                )
            assert self.index.run(fileops.ReadFile(scope, "none", view, self.now)) is None

        @rule(scope=_scopes)
        def every_view_there_is(self, scope: Scope) -> None:
            for version in (None, *range(12)):
                for line, step in (("", ""), ("run", ""), ("run", "1"), ("sub\0", "2")):
                    self.files(scope, fileops.View(version, line, step))
            find = fileops.FindWrite(scope, b"c" * 16, self.now)
            self._same_file(self.index.run(find), self.model.wrote(find))

        @rule(scope=_scopes)
        def read_all_there_ever_was(self, scope: Scope) -> None:
            short = [f"r{n}{m}" for n in ("", 0, 1, 2) for m in range(3)]
            for id in (*short, *(f"res_{n}_{m}" for n in range(3) for m in range(3))):
                self.get(scope, id)
            for after in range(9):
                self.list(scope, after, 3)

        @rule(scope=_scopes, after=st.integers(0, 4), limit=st.integers(0, 4))
        def list(self, scope: Scope, after: int, limit: int) -> None:
            op = ops.List(scope, after, limit, self.now)
            (rows, total), (expected, expected_total) = self.index.run(op), self.model.list(op)
            assert (total, len(rows)) == (expected_total, len(expected))
            for row, other in zip(rows, expected, strict=True):
                assert row.payload.data is None
                self._same_row(row, other)

        @rule(
            scope=_scopes,
            why=st.sampled_from(["closed", "deleted"]),
            depth=st.sampled_from(["tenant", "user", "session", "name", "id"]),
            id=_ids,
            tombstones=st.booleans(),
        )
        def remove(self, scope: Scope, why: Any, depth: str, id: str, tombstones: bool) -> None:
            op = ops.Remove(
                why=why,
                now=self.now,
                tenant=scope.tenant,
                user=scope.user if depth in ("user", "session", "id") else None,
                session=scope.session if depth in ("session", "name", "id") else None,
                id=id if depth == "id" else None,
                tombstones=tombstones,
            )
            assert self.index.run(op) == self.model.remove(op)

        @rule(seconds=st.sampled_from([0.0, 1.0, 5.0, 29.0, 31.0, 61.0, 100.0]))
        def time_passes(self, seconds: float) -> None:
            self.now += seconds

        @rule(rows=st.integers(0, 3))
        def sweep_a_little(self, rows: int) -> None:
            self.index.run(ops.Sweep(self.now, rows, 1000.0))

        @rule(long=st.booleans())
        def sweep_all_and_compare(self, long: bool) -> None:
            if long:
                self.now += TOMBSTONE_SECONDS + 24 * 3600
            while self.index.run(ops.Sweep(self.now, 200, 1000.0)):
                pass
            self.model.sweep(self.now)
            self._compare()

        @rule(limit=st.integers(1, 3))
        def collect_garbage(self, limit: int) -> None:
            keys = self.index.run(ops.Garbage(limit))
            assert len(keys) <= limit
            assert set(keys) <= self.keys
            self.index.run(ops.Forget(keys))
            self.keys -= set(keys)

        @precondition(lambda self: reopen is not None)
        @rule()
        def open_anew(self) -> None:
            assert reopen is not None
            self.index = reopen(self.index)

        def _after_expiry(self, tenant: str) -> Any:
            self.model.expire(self.now)
            return self.model.live(tenant)

        def _same_row(self, found: ops.Result, expected: ops.Result) -> None:
            assert found.payload.digest == expected.payload.digest
            assert replace(found, payload=expected.payload) == expected

        def _same_file(self, found: fileops.File | None, expected: fileops.File | None) -> None:
            if found is None or expected is None or expected.payload is None:
                assert found == expected
                return
            assert found.payload is not None
            assert found.payload.digest == expected.payload.digest
            assert replace(found, payload=expected.payload) == expected

        def _compare(self) -> None:
            referred: dict[tuple[str, bytes], int] = {}
            places = [(row.scope.tenant, row.payload.digest) for row in self.model.live()]
            for scope, session in self.model.sessions.items():
                for version in session.versions:
                    if version.file.payload is not None:
                        places.append((scope.tenant, version.file.payload.digest))
            for place in places:
                referred[place] = referred.get(place, 0) + 1
            found, after = [], None
            while page := self.index.run(ops.Payloads(after, 2)):
                found += page
                after = (page[-1][0], page[-1][1].digest)
            # In an order of the index's own, each once.
            assert len(found) == len(referred)
            assert {(t, p.digest): n for t, p, n in found} == referred
            living = {p.key for _, p, _ in found if p.key is not None}
            garbage = set(self.index.run(ops.Garbage(1000)))
            assert garbage == self.keys - living
            assert self.index.run(ops.KnownKeys([*sorted(self.keys), "k/none"])) == self.keys
            assert self.index.run(ops.Count()) == self.model.totals(None, None, len(garbage))
            for tenant in {scope.tenant for scope in self.model.sessions}:
                expected = self.model.totals(tenant, None, 0)
                assert replace(self.index.run(ops.Count(tenant)), garbage=0) == expected
            for scope in self.model.sessions:
                expected = self.model.totals(None, scope, 0)
                assert replace(self.index.run(ops.Count(scope=scope)), garbage=0) == expected
            listed = self.index.run(ops.Sessions(100))
            assert [at for _, at, _ in listed] == sorted((at for _, at, _ in listed), reverse=True)
            assert {scope: (at, live) for scope, at, live in listed} == {
                scope: (each.active_at, len(each.rows))
                for scope, each in self.model.sessions.items()
                if not each.closed
            }
            assert self.index.run(ops.Repair(mend=False)) == []

    return IndexMachine
