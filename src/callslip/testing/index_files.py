"""The contract of scratch files in an index: the part of `callslip.testing.index` about versions."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from callslip.errors import StoreUnavailable
from callslip.handle import Quota, Scope, Shape
from callslip.stacks import ops
from callslip.stacks.fileops import File, FindWrite, ListFiles, ReadFile, View, WriteFile, Wrote
from callslip.testing.index_rows import HOME, NOW


def make_write(content: str, path: str = "todo.md", **changes: Any) -> WriteFile:
    """A write to try: equal `content` and tenant is the same payload."""
    scope = changes.get("scope", HOME)
    digest = hashlib.sha256(f"{scope.tenant!r} {content!r}".encode()).digest()
    raw = content.encode("utf-8", "surrogatepass")
    shape = Shape(size=len(raw), chars=len(content), lines=content.count("\n") + 1)
    payload = ops.Payload(digest, "str", 60, 40, None, raw, lock=digest)
    op = WriteFile(HOME, path, shape, payload, View(), None, b"", None, Quota(), NOW)
    return replace(op, **changes)


def written(index: ops.Runs, op: WriteFile) -> File:
    """Write, where it must be possible, and answer the new version."""
    wrote = index.run(op)
    assert isinstance(wrote, Wrote)
    assert wrote.outcome == "written"
    assert wrote.file is not None
    return wrote.file


def text_in(index: ops.Runs, view: View, path: str = "todo.md") -> str | None:
    """The text of a path in a view."""
    found = index.run(ReadFile(HOME, path, view, NOW))
    if found is None or found.payload is None:
        return None
    assert found.payload.data is not None
    return found.payload.data.decode("utf-8", "surrogatepass")


class FilesContract:
    """The promises about scratch files. A subclass gives `open`."""

    def open(self) -> ops.Runs:
        """An empty index."""
        raise NotImplementedError

    def test_a_file_comes_back_as_it_was_written(self) -> None:
        index = self.open()
        odd = "\0 \ud800 é ' \" % _ \n"
        scope = Scope(odd, odd + "u", odd + "t")
        op = make_write(odd, odd, scope=scope)
        file = written(index, op)
        assert file == File(odd, 1, op.shape, op.payload, NOW)
        assert index.run(ReadFile(scope, odd, View(), NOW)) == file
        listed = replace(file, payload=replace(op.payload, data=None))
        assert index.run(ListFiles(scope, View(), NOW)) == ([listed], 1)
        assert index.run(ReadFile(scope, odd + "x", View(), NOW)) is None
        assert index.run(ListFiles(HOME, View(), NOW)) == ((), 0)

    def test_every_version_can_be_seen_as_it_was(self) -> None:
        index = self.open()
        for n, (text, path) in enumerate([("a", "todo.md"), ("n", "notes"), ("b", "todo.md")], 1):
            assert written(index, make_write(text, path)).version == n
        seen = [text_in(index, View(version)) for version in (0, 1, 2, 3, None, 4)]
        assert seen == [None, "a", "a", "b", "b", None]
        names = [
            [(file.path, file.version) for file in index.run(ListFiles(HOME, View(n), NOW))[0]]
            for n in range(4)
        ]
        one, two, three = ("todo.md", 1), ("notes", 2), ("todo.md", 3)
        assert names == [[], [one], [two, one], [two, three]]
        assert index.run(ListFiles(HOME, View(9), NOW)) == ((), None)
        assert index.run(ListFiles(HOME, View(9, "run"), NOW))[1] == 3

    def test_a_stale_write_is_told_so_and_writes_nothing(self) -> None:
        index = self.open()
        first = written(index, make_write("a", expect=0))
        second = written(index, make_write("b", expect=first.version))
        for expect in (0, 1, 7):
            wrote = index.run(make_write("c", expect=expect))
            assert wrote == Wrote("stale", second)
        assert text_in(index, View()) == "b"
        assert index.run(make_write("c", "new", expect=3)) == Wrote("stale", None)
        assert index.run(ops.Count()).files == 2

    def test_the_same_content_is_no_new_version(self) -> None:
        index = self.open()
        first = written(index, make_write("a"))
        assert index.run(make_write("a")) == Wrote("same", first)
        written(index, make_write("b"))
        assert written(index, make_write("a")).version == 3
        assert index.run(ops.Count()).payloads == 2

    def test_a_replayed_write_answers_what_it_wrote(self) -> None:
        index = self.open()
        first = written(index, make_write("a", call=b"1" * 16))
        written(index, make_write("b"))
        wrote = index.run(make_write("c", call=b"1" * 16, expect=0))
        assert wrote is not None
        assert (wrote.outcome, wrote.file and wrote.file.version) == ("replayed", first.version)
        found = index.run(FindWrite(HOME, b"1" * 16, NOW))
        assert found is not None
        assert found.version == 1
        assert index.run(FindWrite(HOME, b"2" * 16, NOW)) is None
        assert index.run(FindWrite(HOME, b"", NOW)) is None
        assert text_in(index, View()) == "b"

    def test_two_runs_from_one_version_see_their_own_files(self) -> None:
        index = self.open()
        written(index, make_write("start", view=View(0, "run", "1")))
        abandoned = written(index, make_write("old", view=View(1, "run", "2"))).version
        written(index, make_write("n", "notes", view=View(abandoned, "run", "3")))
        # The same run goes on from version 1 once more, in another way.
        assert text_in(index, View(1, "run")) == "start"
        anew = written(index, make_write("new", view=View(1, "run", "4"), expect=1)).version
        for line in ("", "run"):
            assert text_in(index, View(anew, line)) == "new"
            assert text_in(index, View(anew, line), "notes") is None
            assert text_in(index, View(3, line)) == "old"
            assert text_in(index, View(3, line), "notes") == "n"

    def test_two_writes_of_one_step_follow_each_other(self) -> None:
        index = self.open()
        view = View(0, "run", "1")
        written(index, make_write("a", view=view))
        assert written(index, make_write("n", "notes", view=view)).version == 2
        assert index.run(make_write("b", view=view, expect=0)) == Wrote(
            "stale", index.run(ReadFile(HOME, "todo.md", View(), NOW))
        )
        assert text_in(index, View(2)) == "a"
        assert text_in(index, View(2), "notes") == "n"

    def test_a_run_sees_what_others_wrote_after_it(self) -> None:
        index = self.open()
        written(index, make_write("mine", view=View(0, "run", "1")))
        written(index, make_write("theirs", "notes"))
        written(index, make_write("sub", "more", view=View(None, "other", "1")))
        assert text_in(index, View(1)) == "mine"
        assert text_in(index, View(1), "notes") is None
        assert text_in(index, View(1, "run"), "notes") == "theirs"
        assert text_in(index, View(1, "run"), "more") == "sub"
        assert written(index, make_write("next", view=View(1, "run", "2"))).version == 4
        assert text_in(index, View(4), "notes") == "theirs"

    def test_files_go_with_their_session(self) -> None:
        removals: list[dict[str, Any]] = [
            {"session": "s", "user": "ana"},
            {"user": "ana"},
            {},
        ]
        for where in removals:
            for tombstones in (True, False):
                index = self.open()
                written(index, make_write("a", payload=self._uploaded("a", "k/a")))
                written(index, make_write("b", scope=Scope("s", "bob")))
                index.run(ops.Remove("closed", NOW, tenant="acme", tombstones=tombstones, **where))
                assert index.run(ListFiles(HOME, View(), NOW)) == ((), 0)
                assert list(index.run(ops.Garbage(9))) == ["k/a"]
                held = index.run(ops.Count())
                assert (held.files, held.file_bytes, held.payloads, held.sessions) == (1, 1, 1, 1)
                assert index.run(ops.Repair(mend=False)) == []
                assert written(index, make_write("again")).version == 1

    def test_removing_one_result_leaves_the_files(self) -> None:
        index = self.open()
        written(index, make_write("a"))
        op = ops.Remove("deleted", NOW, "acme", "ana", "s", "res_a", tombstones=False)
        assert index.run(op) == 0
        assert text_in(index, View()) == "a"

    def test_files_expire_with_their_session(self) -> None:
        for swept in (False, True):
            index = self.open()
            written(index, make_write("a", ttl=10.0, payload=self._uploaded("a", "k/a")))
            assert index.run(ReadFile(HOME, "todo.md", View(), NOW + 9)) is not None
            assert index.run(ReadFile(HOME, "todo.md", View(), NOW + 19)) is not None
            assert index.run(ReadFile(HOME, "todo.md", View(), NOW + 30)) is None
            assert index.run(ListFiles(HOME, View(1), NOW + 30)) == ((), None)
            if swept:
                while index.run(ops.Sweep(NOW + 30, 200, 1000.0)):
                    pass
                assert index.run(ops.Count()) == ops.Totals(0, 0, 0, 0, 0, 0, 1)
            assert written(index, make_write("b", now=NOW + 31)).version == 1
            assert list(index.run(ops.Garbage(9))) == ["k/a"]
            assert index.run(ops.Repair(mend=False)) == []

    def test_a_sweep_of_files_is_bounded(self) -> None:
        index = self.open()
        for n in range(30):
            written(index, make_write(str(n), ttl=10.0))
        assert index.run(ops.Sweep(NOW + 11, 7, 1000.0)) is True
        assert index.run(ops.Count()).files == 23
        while index.run(ops.Sweep(NOW + 11, 7, 1000.0)):
            pass
        assert index.run(ops.Count()) == ops.Totals(0, 0, 0, 0, 0, 0, 0)

    def test_a_quota_counts_files_and_never_lets_one_go_that_stands(self) -> None:
        for quota in (Quota(session_bytes=25), Quota(tenant_bytes=25)):
            index = self.open()
            for text in ("a" * 10, "b" * 10):
                written(index, make_write(text, quota=quota))
            written(index, make_write("c" * 10, quota=quota))
            # The oldest text made room; its version is still known.
            assert text_in(index, View(1)) is None
            gone = index.run(ReadFile(HOME, "todo.md", View(1), NOW))
            assert gone is not None
            assert (gone.version, gone.payload) == (1, None)
            assert text_in(index, View(2)) == "b" * 10
            with_room = index.run(ops.Count())
            try:
                index.run(make_write("d" * 20, "other", quota=quota))
            except StoreUnavailable as error:
                assert error.reason == "over quota"
            else:
                raise AssertionError("a quota was broken")
            assert index.run(ops.Count()) == with_room
            assert text_in(index, View(2)) == "b" * 10
            assert index.run(ops.Repair(mend=False)) == []

    def test_a_payload_that_results_and_files_share_is_one(self) -> None:
        index = self.open()
        op = make_write("a")
        row = ops.Result(
            HOME,
            "",
            b"c" * 16,
            "t",
            "",
            "",
            op.shape,
            "",
            NOW,
            replace(op.payload, key="k/1", data=None),
        )
        assert index.run(ops.Insert(row, ["res_a"], None, Quota(), NOW)) is not None
        written(index, make_write("a", payload=replace(op.payload, data=None)))
        assert [n for _, _, n in index.run(ops.Payloads(None, 9))] == [2]
        totals = index.run(ops.Count(scope=HOME))
        assert (totals.payloads, totals.packed_bytes, totals.files) == (1, 60, 1)
        index.run(ops.Remove("deleted", NOW, "acme", "ana", "s", "res_a"))
        assert list(index.run(ops.Garbage(9))) == []
        assert index.run(ops.Count(scope=HOME)).packed_bytes == 60
        index.run(ops.Remove("deleted", NOW, "acme"))
        assert list(index.run(ops.Garbage(9))) == ["k/1"]

    def test_a_files_payload_that_is_gone_meanwhile_writes_nothing(self) -> None:
        index = self.open()
        op = make_write("a")
        assert index.run(replace(op, payload=replace(op.payload, data=None))) is None
        assert index.run(ops.Count()) == ops.Totals(0, 0, 0, 0, 0, 0, 0)

    @staticmethod
    def _uploaded(content: str, key: str) -> ops.Payload:
        return replace(make_write(content).payload, key=key, data=None)
