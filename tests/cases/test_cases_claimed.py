"""Every reported failure of cases.json that concerns us now has its test, or its issue.

A test claims a case by its name: `test_case_05_…`. What waits for a later issue stands in `LATER`,
and leaves it with the issue that takes it.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parent
OURS = ("core", "store")

LATER: dict[str, str] = {}


def cases() -> dict[str, dict[str, str]]:
    data = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))
    return {case["id"]: case for case in data["cases"]}


def claimed() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for number in re.findall(r"^test_case_(\d\d)_", node.name):
                    found.setdefault(number, []).append(f"{path.name}::{node.name}")
    return found


def test_every_case_of_the_core_and_the_store_is_tested_or_waits_for_an_issue() -> None:
    tested = claimed()
    missing = {
        number: case["symptom"]
        for number, case in cases().items()
        if any(place in case["where"] for place in OURS)
        and number not in tested
        and number not in LATER
    }
    assert not missing, "name a test test_case_NN_…, or enter the case in LATER with its issue"


def test_no_claim_and_no_postponement_is_of_a_case_that_does_not_exist() -> None:
    known = set(cases())
    assert set(claimed()) <= known
    assert set(LATER) <= known


def test_what_waits_for_an_issue_is_not_claimed_as_done() -> None:
    assert not set(LATER) & set(claimed())


def test_the_inputs_of_every_case_are_here() -> None:
    for case in cases().values():
        for name in case["inputs"]:
            assert (HERE / name).is_file(), name
