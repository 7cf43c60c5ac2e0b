"""What a payload store must do, as a suite that anyone can run on a new one.

::

    class TestMyStore(PayloadsContract):
        def open(self) -> Payloads:
            return MyStore(...)          # empty; a new one for each test

pytest collects the inherited tests; nothing in here needs pytest.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

from callslip.errors import CallslipError, PayloadDamaged, StoreUnavailable
from callslip.stacks.layout import KEY_SUFFIX
from callslip.stacks.ops import (
    DeleteObjects,
    IsRemote,
    ListObjects,
    PutObject,
    ReadObject,
    Runs,
)
from callslip.testing.expected import raised

MIB = 1024 * 1024


def key(name: str) -> str:
    """A well-formed key."""
    return f"tenant/{name}{KEY_SUFFIX}"


class PayloadsContract:
    """Subclass it and give `open()`."""

    def open(self) -> Runs:
        """A new, empty payload store."""
        raise NotImplementedError

    def test_what_is_put_is_read_back(self) -> None:
        store = self.open()
        assert store.run(PutObject(key("a"), [b"hello ", b"", b"world"])) == 11
        assert store.run(ReadObject(key("a"), 0, 11)) == b"hello world"

    def test_any_range_is_read(self) -> None:
        store = self.open()
        data = random.Random(1).randbytes(70_000)
        store.run(PutObject(key("a"), [data]))
        for start, length in [(0, 1), (69_999, 1), (12_345, 50_000), (0, 70_000), (5, 0)]:
            assert store.run(ReadObject(key("a"), start, length)) == data[start : start + length]

    def test_a_missing_object_is_damage(self) -> None:
        store = self.open()
        raised(PayloadDamaged, lambda: store.run(ReadObject(key("none"), 0, 1)))
        raised(PayloadDamaged, lambda: store.run(ReadObject(key("none"), 0, 0)))

    def test_a_short_read_is_damage(self) -> None:
        store = self.open()
        store.run(PutObject(key("a"), [b"12345"]))
        raised(PayloadDamaged, lambda: store.run(ReadObject(key("a"), 0, 6)))
        raised(PayloadDamaged, lambda: store.run(ReadObject(key("a"), 4, 2)))
        raised(PayloadDamaged, lambda: store.run(ReadObject(key("a"), 99, 1)))

    def test_an_empty_object_is_an_object(self) -> None:
        store = self.open()
        assert store.run(PutObject(key("a"), [])) == 0
        assert [entry[:2] for entry in store.run(ListObjects(None, 10))] == [(key("a"), 0)]

    def test_an_existing_key_is_never_overwritten(self) -> None:
        store = self.open()
        big = [b"n" * MIB] * 20
        store.run(PutObject(key("a"), [b"first"]))
        raised(CallslipError, lambda: store.run(PutObject(key("a"), [b"second"])))
        raised(CallslipError, lambda: store.run(PutObject(key("a"), iter(big))))
        assert store.run(ReadObject(key("a"), 0, 5)) == b"first"

    def test_a_large_object_streams(self) -> None:
        store = self.open()
        blocks = [random.Random(n).randbytes(MIB - n) for n in range(20)]
        size = sum(map(len, blocks))
        assert store.run(PutObject(key("big"), iter(blocks))) == size
        assert store.run(ReadObject(key("big"), 0, size)) == b"".join(blocks)

    def test_an_error_of_the_parts_passes_and_nothing_is_visible(self) -> None:
        for count in (1, 20):
            store = self.open()

            def parts(count: int = count) -> Iterator[bytes]:
                for _ in range(count):
                    yield b"x" * MIB
                raise OSError("the source broke")

            error = raised(OSError, lambda: store.run(PutObject(key("a"), parts())))  # noqa: B023
            assert str(error) == "the source broke"
            raised(PayloadDamaged, lambda: store.run(ReadObject(key("a"), 0, 1)))  # noqa: B023
            assert store.run(PutObject(key("a"), [b"again"])) == 5

    def test_half_an_object_is_not_visible_under_its_key(self) -> None:
        store = self.open()
        seen: list[bool] = []

        def parts() -> Iterator[bytes]:
            for _ in range(12):
                yield b"x" * MIB
                listed = [entry[0] for entry in store.run(ListObjects(None, 100))]
                seen.append(key("a") in listed)
                raised(PayloadDamaged, lambda: store.run(ReadObject(key("a"), 0, 1)))

        store.run(PutObject(key("a"), parts()))
        assert len(seen) == 12
        assert not any(seen)

    def test_deleting_is_idempotent(self) -> None:
        store = self.open()
        for name in "abc":
            store.run(PutObject(key(name), [b"1"]))
        store.run(DeleteObjects([key("a"), key("none"), key("c")]))
        store.run(DeleteObjects([key("a")]))
        store.run(DeleteObjects([]))
        assert [entry[0] for entry in store.run(ListObjects(None, 10))] == [key("b")]
        raised(PayloadDamaged, lambda: store.run(ReadObject(key("a"), 0, 1)))

    def test_a_listing_pages_in_key_order(self) -> None:
        store = self.open()
        names = ["a", "a-b", "a/b", "a/b/c", "a0", "b", "b/a", "z/y/x/w"]
        for n, name in enumerate(names):
            store.run(PutObject(key(name), [b"x" * n]))
        whole = [entry[0] for entry in store.run(ListObjects(None, 100))]
        assert whole == sorted(key(name) for name in names)
        for limit in (1, 2, 3, 100):
            walked: list[str] = []
            after: str | None = None
            while page := store.run(ListObjects(after, limit)):
                assert len(page) <= limit
                assert after is None or page[0][0] > after
                walked += [entry[0] for entry in page]
                after = page[-1][0]
            assert walked == whole

    def test_a_listing_of_one_folder_shows_nothing_beside_it(self) -> None:
        store = self.open()
        for name in ("a/x", "a/b/y", "ab/z", "c"):
            store.run(PutObject(key(name), [b"1"]))
        found = [entry[0] for entry in store.run(ListObjects(None, 10, "tenant/a"))]
        assert found == [key("a/b/y"), key("a/x")]
        assert [e[0] for e in store.run(ListObjects(found[0], 10, "tenant/a"))] == found[1:]
        assert list(store.run(ListObjects(None, 10, "tenant/none"))) == []
        for bad in ("..", "/", "a/", "A"):
            raised(ValueError, lambda: store.run(ListObjects(None, 10, bad)))  # noqa: B023

    def test_it_says_whether_reads_go_over_a_network(self) -> None:
        assert self.open().run(IsRemote()) in (True, False)

    def test_a_listing_states_size_and_time(self) -> None:
        store = self.open()
        store.run(PutObject(key("a"), [b"12345"]))
        ((name, size, modified),) = store.run(ListObjects(None, 10))
        assert (name, size) == (key("a"), 5)
        assert abs(modified - time.time()) < 300

    def test_an_empty_store_lists_nothing(self) -> None:
        assert list(self.open().run(ListObjects(None, 10))) == []

    def test_a_strange_key_is_refused(self) -> None:
        store = self.open()
        for bad in ("../a", "/a", "a//b", "a/../b", "A", "a b", "", ".hidden", "a\n", "a/.."):
            wrong = bad + KEY_SUFFIX if bad else bad
            raised(ValueError, lambda: store.run(PutObject(wrong, [b"1"])))  # noqa: B023
            raised(ValueError, lambda: store.run(ReadObject(wrong, 0, 1)))  # noqa: B023
            raised(ValueError, lambda: store.run(DeleteObjects([wrong])))  # noqa: B023
        raised(ValueError, lambda: store.run(PutObject("tenant/no-suffix", [b"1"])))

    def test_many_threads_share_it(self) -> None:
        store = self.open()
        failures: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for turn in range(10):
                    name = key(f"t{number}/{turn}")
                    body = bytes([number]) * (1000 + turn)
                    assert store.run(PutObject(name, [body])) == len(body)
                    assert store.run(ReadObject(name, 0, len(body))) == body
                    if turn % 2:
                        store.run(DeleteObjects([name]))
            except BaseException as error:  # noqa: BLE001  (asserted on below)
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert len(store.run(ListObjects(None, 1000))) == 30

    def test_one_key_has_one_winner(self) -> None:
        store = self.open()
        won: list[bytes] = []

        def work(body: bytes) -> None:
            try:
                store.run(PutObject(key("a"), [body]))
            except StoreUnavailable:
                return
            won.append(body)

        threads = [threading.Thread(target=work, args=(bytes([65 + n]) * 9,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [store.run(ReadObject(key("a"), 0, 9))] == won
