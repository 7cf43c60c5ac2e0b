"""The contract of payloads in an index: the part of `callslip.testing.index` about their places."""

from __future__ import annotations

from dataclasses import replace

from callslip.handle import Scope
from callslip.stacks import ops
from callslip.testing.index_files import make_write, written
from callslip.testing.index_rows import HOME, NOW


class PlacesContract:
    """The promises about where payloads are kept. A subclass gives `open`."""

    def open(self) -> ops.Runs:
        """An empty index."""
        raise NotImplementedError

    def test_a_payload_that_is_replaced_is_found_in_its_new_place(self) -> None:
        index = self.open()
        other = Scope("other", "bob", "acme")
        payload = replace(make_write("a").payload, key="k/old", data=None)
        for scope in (HOME, other):
            written(index, make_write("a", scope=scope, payload=payload))
        written(index, make_write("b"))
        new = replace(payload, key="k/new", packed=75, trailer=50)
        assert index.run(ops.Replace("acme", new)) is True
        assert index.run(ops.FindPayload("acme", payload.digest)) == new
        assert list(index.run(ops.Garbage(9))) == ["k/old"]
        assert [n for _, p, n in index.run(ops.Payloads(None, 9)) if p == new] == [2]
        assert index.run(ops.Count("acme")).packed_bytes == 75 + 60
        assert index.run(ops.Count(scope=HOME)).packed_bytes == 75 + 60
        assert index.run(ops.Count(scope=other)).packed_bytes == 75
        assert index.run(ops.Repair(mend=False)) == []
        # The same once more, as a retry does, and then into the index itself.
        assert index.run(ops.Replace("acme", new)) is True
        inline = replace(new, key=None, data=b"packed")
        assert index.run(ops.Replace("acme", inline)) is True
        assert list(index.run(ops.Garbage(9))) == ["k/new", "k/old"]
        index.run(ops.Remove("deleted", NOW, "acme", tombstones=False))
        assert index.run(ops.Count("acme")).packed_bytes == 0

    def test_what_is_not_stored_is_not_replaced(self) -> None:
        index = self.open()
        payload = replace(make_write("a").payload, key="k/1", data=None)
        assert index.run(ops.Replace("acme", payload)) is False
        written(index, make_write("a", payload=payload))
        assert index.run(ops.Replace("other", replace(payload, key="k/2"))) is False
        assert index.run(ops.Replace("acme", replace(payload, key="k/2"))) is True
        # Its object may be deleted at any moment.
        assert index.run(ops.Replace("acme", payload)) is False
        assert index.run(ops.FindPayload("acme", payload.digest)) == replace(payload, key="k/2")

    def test_given_data_stands_in_for_damaged_data(self) -> None:
        index = self.open()
        good = make_write("a").payload
        damaged = replace(good, data=b"?", packed=61)
        written(index, make_write("a", payload=damaged))
        written(index, make_write("a", path="other.md"))
        assert [p for _, p, _ in index.run(ops.Payloads(None, 9))] == [good]
        assert index.run(ops.Count("acme")).packed_bytes == good.packed
        assert index.run(ops.Repair(mend=False)) == []

    def test_the_first_place_of_payloads_is_recorded_for_good(self) -> None:
        index = self.open()
        assert index.run(ops.PayloadPlace()) is None
        assert index.run(ops.PayloadPlace("é\ud800")) == "é\ud800"
        assert index.run(ops.PayloadPlace("other")) == "é\ud800"
        assert index.run(ops.PayloadPlace()) == "é\ud800"
