"""Any text is a query, braces too."""

from __future__ import annotations

import pytest

from callslip import ResultStore
from callslip.patterns.memory import Memory


@pytest.mark.parametrize(
    "query", ["conflicts {x}", "conflicts {", 'how does {"conflicts": 1} work']
)
def test_a_query_with_braces_is_a_query(query: str) -> None:
    memory = Memory(ResultStore(":memory:", spool=""), ("t", "u"))
    memory.remember("Ana wants conflicts side by side")
    assert "side by side" in str(memory.recall(query))
    recall = next(tool for tool in memory.tools() if tool.name == "recall")
    assert "side by side" in recall.call(query=query)
