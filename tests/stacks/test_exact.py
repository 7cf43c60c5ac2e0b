from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import importlib.util
import io
import ipaddress
import json
import math
import os
import pathlib
import subprocess
import sys
import threading
import types
import uuid
import zoneinfo
from pathlib import Path
from typing import Any, NamedTuple

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.errors import NotRestorable
from callslip.stacks import exact
from callslip.stacks.content import canonical, restore
from callslip.stacks.exact import Opaque
from callslip.stacks.plain import VIEW_DEPTH

INPUTS = Path(__file__).resolve().parents[1] / "cases" / "inputs"


@dataclasses.dataclass
class Node:
    name: str
    other: Any = None
    hidden: int = dataclasses.field(default=0, init=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: Any


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Mode(enum.Flag):
    R = 1
    W = 2


class Pair(NamedTuple):
    left: Any
    right: Any


class Person(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    name: str
    born: dt.date | None = None
    _secret: int = pydantic.PrivateAttr(default=3)


class Tags(pydantic.RootModel[list[str]]):
    pass


class Text(str):
    note: str


class Number(int):
    pass


class Bag(dict[str, Any]):
    pass


class Stack(list[Any]):
    pass


class Plain:
    def __init__(self) -> None:
        self.secret = 1


def back(value: Any) -> Any:
    content = canonical(value)
    if content.form in ("json", "python"):
        json.loads(content.body.decode("utf-8", "surrogatepass"), parse_constant=pytest.fail)
    return restore(content.form, content.body, content.twin)


def view(value: Any) -> Any:
    return json.loads(canonical([value]).body)[0]


UTC9 = dt.timezone(dt.timedelta(hours=9))
EXACT: list[tuple[Any, Any]] = [
    (decimal.Decimal("0.10000000000000000000001"), "0.10000000000000000000001"),
    (decimal.Decimal("-0E+5"), "-0E+5"),
    (dt.datetime(2026, 1, 2, 3, 4, 5, 6, UTC9), "2026-01-02T03:04:05.000006+09:00"),
    (dt.datetime(2026, 1, 2), "2026-01-02T00:00:00"),
    (dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "2026-01-02T00:00:00+00:00"),
    (dt.date(2026, 1, 2), "2026-01-02"),
    (dt.time(1, 2), "01:02:00"),
    (dt.time(1, 2, tzinfo=dt.timezone(dt.timedelta(hours=1), "A|B")), "01:02:00+01:00"),
    (dt.timedelta(days=1, microseconds=5), "P1DT0.000005S"),
    (dt.timedelta(days=-1, microseconds=5), "-PT86399.999995S"),
    (dt.timedelta.max, "P999999999DT86399.999999S"),
    (UTC9, "UTC+09:00"),
    (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    (b"\x00\xff\x85", {"$base64": "AP+F"}),
    (bytearray(b"ab"), {"$base64": "YWI="}),
    (memoryview(b"cd"), {"$base64": "Y2Q="}),
    ({3, 1, 2}, [1, 2, 3]),
    (frozenset({1}), [1]),
    ((1, (2,)), [1, [2]]),
    (Color.RED, "red"),
    (Level.LOW, 1),
    (Mode.R | Mode.W, 3),
    (Pair(1, Color.RED), {"left": 1, "right": "red"}),
    (pathlib.PurePosixPath("/a/b"), "/a/b"),
    (pathlib.PureWindowsPath("C:\\a"), "C:\\a"),
    (pathlib.Path("a"), "a"),
    (fractions.Fraction(1, 3), "1/3"),
    (fractions.Fraction(-5, 2), "-5/2"),
    (1 + 2j, "(1+2j)"),
    (ipaddress.ip_address("::1"), "::1"),
    (ipaddress.ip_network("10.0.0.0/8"), "10.0.0.0/8"),
    (range(1, 9, 2), "range(1, 9, 2)"),
    (slice(1, None), "slice(1, None, None)"),
    (..., "..."),
    (Node("a", dt.date(2026, 1, 1)), {"name": "a", "other": "2026-01-01", "hidden": 0}),
    (Point(1, (2, 3)), {"x": 1, "y": [2, 3]}),
    (Person(name="Ana", nick="a"), {"name": "Ana", "born": None, "nick": "a"}),
    (Tags(["a", "b"]), ["a", "b"]),
    (collections.OrderedDict(b=1, a=(2,)), {"b": 1, "a": [2]}),
    (collections.Counter("aab"), {"a": 2, "b": 1}),
    (collections.defaultdict(list, {"a": [1]}), {"a": [1]}),
    (collections.deque([1, 2], maxlen=5), [1, 2]),
    (types.SimpleNamespace(a=(1,)), {"a": [1]}),
    (types.MappingProxyType({"a": {1}}), {"a": [1]}),
    (Text("hello"), "hello"),
    (Number(7), 7),
    (Bag(a=(1,)), {"a": [1]}),
    (Stack([1, "a"]), [1, "a"]),
    ({7: "int", ("a", 1): "tuple", None: "none", True: "b", 1.5: "f"}, None),
]


@pytest.mark.parametrize(("value", "seen"), EXACT, ids=[type(v).__name__ for v, _ in EXACT])
def test_every_row_of_the_table_is_shown_and_restored(value: Any, seen: Any) -> None:
    again = back(value)
    assert type(again) is type(value) and again == value
    nested = back({"k": [value], "same": value})
    assert type(nested["k"][0]) is type(value) and nested == {"k": [value], "same": value}
    if seen is not None:
        assert view(value) == seen


def test_the_handed_objects_come_back_equal_and_of_their_types() -> None:
    spec = importlib.util.spec_from_file_location("objects_43", INPUTS / "43_python_objects.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # and never in sys.modules: its classes come back all the same
    value = module.make()
    content = canonical(value)
    seen = json.loads(content.body.decode(), parse_constant=pytest.fail)
    again = restore(content.form, content.body, content.twin)
    assert list(again) == list(value) and len(again["rows"]) == 300
    for before, after in zip(value["rows"], again["rows"], strict=True):
        assert list(after) == list(before)
        for key, item in before.items():
            if key == "opaque":
                assert after[key] == Opaque("objects_43.Opaque", "<Opaque>")
                continue
            assert type(after[key]) is type(item)
            if key == "exc":
                assert after[key].args == item.args
            else:
                assert after[key] == item or (math.isnan(item) and math.isnan(after[key]))
    assert again["cycle"]["self"] is again["cycle"] and again["cycle"]["name"] == "cycle"
    depth, inner = 0, again["deep"]
    while type(inner) is list:
        depth, inner = depth + 1, inner[0]
    assert (depth, inner) == (3000, 0)
    assert again["iter"] == Opaque("generator", "<generator>")
    assert list(value["iter"]) == [0, 1, 2], "the generator was not touched"
    assert seen["cycle"] == {"name": "cycle", "self": {"$ref": "#/cycle"}}
    assert seen["iter"] == "<generator>"
    row = seen["rows"][0]
    assert row["dec"] == "0.10000000000000000000001" and row["nan"] is row["inf"] is None
    assert row["7"] == "int key" and row["('a', 1)"] == "tuple key" and row["null"] == "none key"
    assert row["exc"] == {"type": "ValueError", "message": "boom"}
    assert {"nan", "inf", "decimal.Decimal", "cycle", "generator"} <= set(content.types)
    assert exact.types_of(content.twin or b"") == content.types


HASHABLE = st.recursive(
    st.none()
    | st.integers()
    | st.text(max_size=4)
    | st.decimals(allow_nan=False)
    | st.datetimes(timezones=st.none() | st.timezones(), allow_imaginary=False)
    | st.uuids()
    | st.binary(max_size=4)
    | st.timedeltas()
    | st.sampled_from([Color.RED, Level.LOW, math.inf, "\ud800", 2**80, -(2**64)]),
    lambda inner: (
        st.tuples(inner, inner)
        | st.frozensets(inner, max_size=3)
        | st.builds(Point, st.integers(), inner)
        | st.builds(Pair, inner, inner)
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    HASHABLE,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(HASHABLE, inner, max_size=3)
        | st.sets(HASHABLE, max_size=3)
        | st.builds(Node, st.text(max_size=3), inner)
        | st.builds(Stack, st.lists(inner, max_size=2))
        | st.builds(Bag, st.dictionaries(st.text(max_size=2), inner, max_size=2))
        | st.builds(collections.deque, st.lists(inner, max_size=2))
    ),
    max_leaves=12,
)


@given(VALUES)
def test_nested_values_come_back_equal_and_of_their_types(value: Any) -> None:
    again = back(value)
    assert again == value and type(again) is type(value)
    # Equal is not the same type all the way down (1 == True == 1.0): the exact forms must agree.
    assert exact.encode(again) == exact.encode(value)


def test_time_zones_folds_and_foreign_zones_keep_the_moment() -> None:
    lisbon = zoneinfo.ZoneInfo("Europe/Lisbon")
    for fold in (0, 1):
        value = dt.datetime(2025, 10, 26, 1, 30, tzinfo=lisbon, fold=fold)
        again = back(value)
        assert again.tzinfo is lisbon and again.fold == fold
        assert again.utcoffset() == value.utcoffset()

    class Foreign(dt.tzinfo):
        def utcoffset(self, when: dt.datetime | None) -> dt.timedelta:
            return dt.timedelta(hours=3)

        def tzname(self, when: dt.datetime | None) -> str:
            return "FOR"

        def dst(self, when: dt.datetime | None) -> None:
            return None

    value = dt.datetime(2026, 1, 1, tzinfo=Foreign())
    assert back([value]) == [value] and back([value])[0].tzname() == "FOR"


def test_parts_that_occur_twice_are_one_object_again() -> None:
    part = [{1, 2}]
    again = back({"a": part, "b": part, "c": (part,)})
    assert again["a"] is again["b"] is again["c"][0]


def test_cycles_of_every_kind_close_again() -> None:
    node = Node("a")
    node.other = {"back": node, "set": {1}}
    again = back(node)
    assert again.other["back"] is again
    inner: list[Any] = []
    pair = (inner, {"t": None})
    inner.append(pair)
    pair[1]["t"] = pair
    again = back(pair)
    assert again[0][0] is again and again[1]["t"] is again
    frozen = Point(1, [])
    frozen.y.append(frozen)
    again = back([frozen])[0]
    assert again.y[0] is again
    stack = Stack()
    stack.append(stack)
    again = back(stack)
    assert again[0] is again
    queue: collections.deque[Any] = collections.deque()
    queue.append((queue,))
    again = back(queue)
    assert again[0][0] is again
    person = Person(name="p")
    person.__pydantic_extra__["me"] = person  # type: ignore[index]
    again = back(person)
    assert again.me is again


def test_depth_is_no_matter_and_every_parser_reads_the_view() -> None:
    value: Any = {"leaf": 'a "quoted" leaf', "when": dt.date(2026, 1, 1)}
    for level in range(50_000):
        value = (value,) if level % 2 else [value]
    content = canonical({"deep": value, "n": 1})
    seen = json.loads(content.body)["deep"]
    for _ in range(VIEW_DEPTH - 1):
        seen = seen[0]
    assert seen.startswith("[[[") and '"leaf":"a \\"quoted\\" leaf"' in seen
    again = restore(content.form, content.body, content.twin)["deep"]
    for level in reversed(range(50_000)):
        assert type(again) is (tuple if level % 2 else list)
        again = again[0]
    assert again["when"] == dt.date(2026, 1, 1)


def test_instance_variables_beside_the_fields_come_back_too() -> None:
    text = Text("hello")
    text.note = "kept"
    again = back({"t": text})["t"]
    assert again == "hello" and type(again) is Text and again.note == "kept"
    assert back(text).note == "kept"
    node = Node("a")
    node.__dict__["cached"] = (1,)
    assert back(node).cached == (1,)
    assert view(node) == {"name": "a", "other": None, "hidden": 0}


def test_a_pydantic_model_comes_back_with_what_was_set_and_what_is_private() -> None:
    person = Person(name="Ana")
    person._secret = 9
    again = back(person)
    assert again == person and again._secret == 9
    assert again.model_fields_set == {"name"} and again.model_dump() == person.model_dump()


def test_built_in_exceptions_come_back_and_others_are_told() -> None:
    error = OSError(2, "No such file", "/x")
    error.add_note("noted")
    again = back([error])[0]
    assert type(again) is FileNotFoundError and again.args == error.args
    assert again.filename == "/x" and again.__notes__ == ["noted"]
    group = back([ExceptionGroup("g", [ValueError(1)])])[0]
    assert group.exceptions[0].args == (1,)
    own = json.JSONDecodeError("bad", "x", 0)
    assert view(own)["type"] == "json.decoder.JSONDecodeError"
    assert isinstance(back([own])[0], Opaque)


def test_keys_that_look_alike_all_stay() -> None:
    value = {1: "a", "1": "b", "1 (int)": "c", dt.date(2026, 1, 1): "d"}
    assert view(value) == {"1 (int) 2": "a", "1": "b", "1 (int)": "c", "2026-01-01": "d"}
    assert back(value) == value


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Huge:
    def __repr__(self) -> str:
        return "x" * 10_000_000


class Liar(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no")

    def __iter__(self) -> Any:
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("no")


class BadProperty:
    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no")


class Meta(type):
    def __getattr__(cls, name: str) -> Any:
        raise RuntimeError("no")


class Strange(metaclass=Meta):
    pass


def released() -> memoryview:
    found = memoryview(b"x")
    found.release()
    return found


RUDE: dict[str, Any] = {
    "a repr that raises": Rude,
    "an endless repr": Huge,
    "a dict whose every method raises": lambda: Liar(a=1),
    "a __dict__ that raises": BadProperty,
    "an instance of a rude class": Strange,
    "a rude class": lambda: Strange,
    "a released view": released,
    "a lock": threading.Lock,
    "an object": object,
    "a type": lambda: type,
    "a function": lambda: len,
    "a module": lambda: sys,
    "a file": lambda: io.StringIO("x"),
    "an iterator": lambda: iter([1]),
    "a signalling nan": lambda: decimal.Decimal("sNaN"),
    "an exception of a rude value": lambda: BaseException(Rude()),
    "a namespace": lambda: types.SimpleNamespace(**{"a b": Rude()}),
}


@pytest.mark.parametrize("name", RUDE)
def test_put_never_raises_on_a_value(name: str) -> None:
    value = RUDE[name]()
    for given_value in (value, [value], {"a": (value,)}):
        content = canonical(given_value)
        json.loads(content.body, parse_constant=pytest.fail)
        assert len(content.body) < 50_000
        restore(content.form, content.body, content.twin)


def test_what_cannot_be_rebuilt_says_what_it_was_without_its_address() -> None:
    content = canonical({"lock": Plain()})
    (found,) = restore(content.form, content.body, content.twin).values()
    assert found.type.endswith("test_exact.Plain") and found.repr.endswith(
        "test_exact.Plain object>"
    )
    assert canonical({"lock": Plain()}) == content


def test_a_data_frame_is_stored_without_raising() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1, 2]})
    content = canonical({"df": table})
    assert restore(content.form, content.body, content.twin)["df"].equals(table)
    grouped = canonical({"by": table.groupby("a")})
    assert "GroupBy" in restore(grouped.form, grouped.body, grouped.twin)["by"].type


def test_a_numpy_number_is_a_number_in_the_view() -> None:
    numpy = pytest.importorskip("numpy")
    assert view(numpy.float64(1.5)) == 1.5
    canonical([numpy.int64(3), numpy.array([1, 2])])


def test_equal_values_give_equal_bytes_in_every_process() -> None:
    code = (
        "from callslip.stacks.content import canonical; import hashlib;"
        "v = {'s': {'b', 'a', 'c', 'dd'}, 'm': {1, 'a', None, ('x', frozenset('pqr'))}, 'o': object()};"
        "c = canonical(v); print(hashlib.sha256(c.body + c.twin).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


# --- what loading may do -------------------------------------------------------------------------


def test_loading_imports_nothing_and_says_which_module_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shelf_of_mine.py").write_text(
        "import dataclasses\n@dataclasses.dataclass\nclass Book:\n    title: str\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    twin = exact.encode(importlib.import_module("shelf_of_mine").Book("x"))
    del sys.modules["shelf_of_mine"]
    exact.local_classes.clear()
    with pytest.raises(NotRestorable, match="import the module shelf_of_mine first"):
        exact.decode(twin)
    assert "shelf_of_mine" not in sys.modules
    book = importlib.import_module("shelf_of_mine").Book
    assert exact.decode(twin) == book("x")


def test_loading_runs_no_constructor_and_takes_no_class_of_another_kind() -> None:
    twin = exact.encode(Node("a"))
    assert b"Node" in twin
    with pytest.raises(NotRestorable, match="no dataclass"):
        exact.decode(twin.replace(b"\xa4Node", b"\xa4Text"))
    with pytest.raises(NotRestorable, match="no Enum"):
        exact.decode(exact.encode(Color.RED).replace(b"\xa5Color", b"\xa5Plain"))
    with pytest.raises(NotRestorable, match="no member"):
        exact.decode(exact.encode(Color.RED).replace(b"\xa3RED", b"\xa3XYZ"))


def test_classes_of_a_function_come_back_within_the_process() -> None:
    @dataclasses.dataclass
    class Local:
        x: int

    assert back(Local(1)) == Local(1)
