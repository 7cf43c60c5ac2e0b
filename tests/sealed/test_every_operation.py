"""An operation that an index with keys does not know is refused: none must be forgotten."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from callslip import stacks
from callslip.stacks import keyops
from callslip.stacks.auditops import Trail
from callslip.stacks.index.sqlite import SqliteIndex
from callslip.stacks.ops import IndexOp
from tests.stacks.index.sealed.sealed_index import sealed


def test_an_index_with_keys_knows_every_operation_there_is() -> None:
    for module in pkgutil.iter_modules(stacks.__path__, "callslip.stacks."):
        if module.name.endswith("ops"):
            importlib.import_module(module.name)
    inside = {keyops.AddKey, keyops.GetKey, keyops.SwapKey, keyops.DropKeys, keyops.ListKeys}
    # By name: a dataclass with slots leaves the class that it was made of behind.
    every = {
        getattr(sys.modules[kind.__module__], kind.__name__)
        for kind in IndexOp.__subclasses__()
        if kind.__module__.startswith("callslip.")
    }
    index = sealed(SqliteIndex(":memory:"))
    known = {*index._steps, *index._whole, Trail, *inside, keyops.SealMark}
    assert len(every) > 50
    assert sorted(kind.__name__ for kind in every - known) == []
