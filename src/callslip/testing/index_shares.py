"""The contract of shares in an index: the part of `callslip.testing.index` about other readers."""

from __future__ import annotations

from dataclasses import replace

from callslip.handle import Quota, Scope, Shared
from callslip.stacks import ops
from callslip.stacks.shareops import Revoke, Share, Shares
from callslip.testing.index_rows import HOME, NOW, ODD, insert, make_row, put

OWNER = HOME
FRIEND = Scope("r", "bob", "acme")


def stored(
    index: ops.Runs, id: str, scope: Scope = OWNER, ttl: float | None = None, now: float = NOW
) -> ops.Result:
    """A row of that id, as it stands now; rows of all ids have one content."""
    row = replace(make_row(call=f"{scope!r} {id}", scope=scope), created_at=now)
    return put(index, insert(row, id, ttl=ttl, now=now))


def shared(
    index: ops.Runs,
    id: str,
    to: Scope = FRIEND,
    until: float = NOW + 60,
    *,
    by: Scope = OWNER,
    all_sessions: bool = False,
) -> Shared | None:
    """Share it; the share, or None."""
    name = f"shr_{id}_{to.user}_{'' if all_sessions else to.session}"
    session = None if all_sessions else to.session
    return index.run(Share(by, id, name, to.user, session, until, NOW))


def got(index: ops.Runs, scope: Scope, id: str, now: float = NOW) -> object:
    """What a look-up answers."""
    return index.run(ops.Get(scope, id, now))


def ids(index: ops.Runs, scope: Scope, now: float = NOW) -> list[str]:
    """What a list answers, its total checked."""
    rows, total = index.run(ops.List(scope, 0, 99, now))
    assert total == len(rows)
    return [row.id for row in rows]


class SharesContract:
    """The promises about shares. A subclass gives `open`."""

    def open(self) -> ops.Runs:
        """An empty index."""
        raise NotImplementedError

    def test_a_shared_row_is_read_in_the_session_it_was_shared_with_and_nowhere_else(self) -> None:
        index = self.open()
        row = stored(index, "res_a")
        stored(index, "res_b")
        share = shared(index, "res_a")
        assert share == Shared("shr_res_a_bob_r", "res_a", "bob", "r", NOW, NOW + 60)
        assert got(index, FRIEND, "res_a") == row, "with its owner's scope"
        assert got(index, FRIEND, "res_b") is None
        listed, total = index.run(ops.List(FRIEND, 0, 9, NOW))
        assert (listed, total) == ([replace(row, payload=replace(row.payload, data=None))], 1)
        for other in (Scope("r2", "bob", "acme"), Scope("r", "eve", "acme"), Scope("r", "bob")):
            assert got(index, other, "res_a") is None
            assert ids(index, other) == []
        assert ids(index, OWNER) == ["res_a", "res_b"]

    def test_a_row_can_be_shared_with_every_session_of_a_user(self) -> None:
        index = self.open()
        stored(index, "res_a")
        shared(index, "res_a", all_sessions=True)
        shared(index, "res_a")
        for session in ("r", "r2", "", ODD):
            scope = Scope(session, "bob", "acme")
            assert got(index, scope, "res_a") is not None
            assert ids(index, scope) == ["res_a"], "once, however often it was shared"
        assert got(index, Scope("r", "", "acme"), "res_a") is None

    def test_names_that_look_alike_share_nothing(self) -> None:
        index = self.open()
        odd = Scope(ODD, ODD + "u", ODD + "t")
        stored(index, "res_a", odd)
        shared(index, "res_a", Scope(ODD + "2", ODD + "v", ODD + "t"), by=odd)
        assert got(index, Scope(ODD + "2", ODD + "v", ODD + "t"), "res_a") is not None
        for name in ("", "\x01", ODD, ODD + "2 ", "\x01" + ODD + "2"):
            assert got(index, Scope(name, ODD + "v", ODD + "t"), "res_a") is None

    def test_a_share_that_has_ended_leaves_nothing(self) -> None:
        index = self.open()
        stored(index, "res_a")
        for end in ("time", "revoked by name", "revoked by id", "all revoked"):
            share = shared(index, "res_a")
            assert share is not None
            assert got(index, FRIEND, "res_a", NOW + 59) is not None
            if end == "revoked by name":
                assert index.run(Revoke(OWNER, NOW, name="shr_other")) == 0
                assert index.run(Revoke(FRIEND, NOW, name=share.name)) == 0
                assert got(index, FRIEND, "res_a") is not None
                assert index.run(Revoke(OWNER, NOW, name=share.name)) == 1
            elif end == "revoked by id":
                assert index.run(Revoke(OWNER, NOW, id="res_b")) == 0
                assert index.run(Revoke(OWNER, NOW, id="res_a")) == 1
            elif end == "all revoked":
                assert index.run(Revoke(OWNER, NOW)) == 1
            later = NOW + 60 if end == "time" else NOW
            assert got(index, FRIEND, "res_a", later) is None
            assert ids(index, FRIEND, later) == []
            assert index.run(Shares(OWNER, later)) in ([], ())
        assert got(index, OWNER, "res_a") is not None

    def test_a_row_that_goes_takes_its_shares_along(self) -> None:
        for how in ("deleted", "closed", "expired", "without a trace", "evicted"):
            index = self.open()
            stored(index, "res_a", ttl=30.0 if how == "expired" else None)
            shared(index, "res_a")
            now = NOW
            if how == "expired":
                now = NOW + 31
            elif how == "evicted":
                row = replace(stored(index, "res_b"), call=b"c" * 16)
                index.run(ops.Insert(row, ["res_c"], None, Quota(session_results=1), NOW))
            else:
                gone = ops.Remove("closed", NOW, "acme", "ana", "s")
                if how == "deleted":
                    gone = replace(gone, why="deleted", id="res_a")
                elif how == "without a trace":
                    gone = replace(gone, why="deleted", tombstones=False)
                index.run(gone)
            # To its owner it is gone; to who it was shared with it is unknown.
            assert got(index, FRIEND, "res_a", now) is None, how
            assert ids(index, FRIEND, now) == []
            while index.run(ops.Sweep(now, 100, 1000.0)):
                pass
            again = stored(index, "res_a", now=now)
            assert again.id == "res_a"
            assert got(index, FRIEND, "res_a", now) is None, "what is stored again is not shared"

    def test_who_received_a_row_can_neither_remove_it_nor_share_it_on(self) -> None:
        index = self.open()
        stored(index, "res_a")
        stored(index, "res_mine", FRIEND)
        shared(index, "res_a")
        assert shared(index, "res_a", Scope("x", "eve", "acme"), by=FRIEND) is None
        remove = ops.Remove("deleted", NOW, "acme", "bob", "r", "res_a")
        assert index.run(remove) == 0
        assert index.run(replace(remove, id=None, why="closed")) == 1
        assert index.run(replace(remove, id=None, tombstones=False)) == 0
        assert got(index, OWNER, "res_a") is not None
        assert got(index, FRIEND, "res_a") is not None, "the share is of the owner's making"
        assert got(index, Scope("x", "eve", "acme"), "res_a") is None

    def test_a_sessions_own_row_comes_before_a_shared_one(self) -> None:
        index = self.open()
        stored(index, "res_a")
        shared(index, "res_a")
        own = stored(index, "res_a", FRIEND)
        stored(index, "res_z")
        shared(index, "res_z")
        assert got(index, FRIEND, "res_a") == own
        assert ids(index, FRIEND) == ["res_a", "res_z"]
        for after in range(3):
            rows, total = index.run(ops.List(FRIEND, after, 1, NOW))
            assert ([row.id for row in rows], total) == (["res_a", "res_z"][after : after + 1], 2)
        stored(index, "res_other")
        assert shared(index, "res_other", OWNER) is not None
        assert ids(index, OWNER) == ["res_a", "res_z", "res_other"]

    def test_a_row_of_ones_own_that_ran_out_does_not_hide_a_shared_one(self) -> None:
        for swept in (False, True):
            index = self.open()
            stored(index, "res_a", FRIEND, ttl=10.0)
            stored(index, "res_b", FRIEND, ttl=10.0)
            assert stored(index, "res_c", FRIEND, now=NOW + 11).id == "res_c"
            stored(index, "res_a", now=NOW + 11)
            op = Share(OWNER, "res_a", "shr_1", "bob", None, NOW + 99, NOW + 11)
            assert index.run(op) is not None
            while swept and index.run(ops.Sweep(NOW + 12, 100, 1000.0)):
                pass
            found = got(index, FRIEND, "res_a", NOW + 12)
            assert isinstance(found, ops.Result)
            assert found.scope == OWNER
            assert ids(index, FRIEND, NOW + 12) == ["res_c", "res_a"]
            assert isinstance(got(index, FRIEND, "res_b", NOW + 12), ops.Tombstone)

    def test_only_a_live_row_of_ones_own_can_be_shared(self) -> None:
        index = self.open()
        assert shared(index, "res_a") is None
        stored(index, "res_a", ttl=10.0)
        assert shared(index, "res_b") is None
        assert shared(index, "res_a", by=Scope("s", "ana", "other")) is None
        assert index.run(Share(OWNER, "res_a", "shr_1", "bob", None, NOW + 99, NOW + 11)) is None
        stored(index, "res_c", now=NOW + 12)
        assert index.run(Share(OWNER, "res_a", "shr_1", "bob", None, NOW + 99, NOW + 13)) is None

    def test_shares_are_listed_and_sharing_again_is_the_same_share(self) -> None:
        index = self.open()
        stored(index, "res_a")
        stored(index, "res_b")
        first = shared(index, "res_a")
        assert first is not None
        second = shared(index, "res_b", all_sessions=True, until=NOW + 10)
        third = shared(index, "res_a", Scope("q", "eve", "acme"))
        assert list(index.run(Shares(OWNER, NOW))) == [first, second, third]
        assert list(index.run(Shares(OWNER, NOW, "res_a"))) == [first, third]
        assert list(index.run(Shares(OWNER, NOW + 10))) == [first, third]
        assert list(index.run(Shares(OWNER, NOW, None, 1, 1))) == [second]
        assert list(index.run(Shares(FRIEND, NOW))) == []
        again = index.run(Share(OWNER, "res_a", "shr_new", "bob", "r", NOW + 99, NOW + 5))
        assert again == replace(first, until=NOW + 99)
        assert got(index, FRIEND, "res_a", NOW + 98) is not None

    def test_a_shared_row_repeats_nothing_that_the_reader_cannot_see(self) -> None:
        index = self.open()
        stored(index, "res_a")
        assert stored(index, "res_b").same_as == "res_a"
        shared(index, "res_b")
        found = got(index, FRIEND, "res_b")
        assert isinstance(found, ops.Result)
        assert found.same_as == ""

    def test_the_sweep_drops_shares_that_have_ended(self) -> None:
        index = self.open()
        for n in range(30):
            stored(index, f"res_{n}")
            shared(index, f"res_{n}", until=NOW + n)
        later = NOW + 10
        while index.run(ops.Sweep(later, 5, 1000.0)):
            pass
        # With an earlier clock they would be seen again if they were still there.
        assert len(index.run(Shares(OWNER, NOW - 1))) == 19
