"""What needs an extra says which one, where the extra is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

LANGCHAIN = {"langchain": None, "langchain_core": None, "langgraph": None}


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("adapters.langchain", "langchain"),
        ("adapters.langchain_delegate", "langchain"),
        ("adapters.langchain_memory", "langchain"),
        ("adapters.langchain_scratchpad", "langchain"),
        ("adapters.langchain_script", "langchain"),
        ("adapters.langgraph_backend", "langchain"),
        ("adapters.langgraph_store", "langchain"),
        ("team", "team"),
    ],
)
def test_a_module_without_its_extra_says_what_to_install(module: str, extra: str) -> None:
    code = f"import sys; sys.modules.update({LANGCHAIN!r}); import callslip.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = done.stderr.strip().splitlines()[-1]
    assert said.startswith("ImportError") and said.endswith(f"pip install 'callslip[{extra}]'")
