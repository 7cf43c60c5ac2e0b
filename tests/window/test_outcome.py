from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from callslip.window.policy import control, outcome


class Status(enum.Enum):
    PAUSED = "PAUSED"


@dataclass
class RunOutput:
    status: Status = Status.PAUSED
    requirements: list[str] = field(default_factory=lambda: ["confirm"])


@dataclass
class ToolMessage:
    content: str
    status: str = "success"


class CallToolResult:
    isError = True
    content = "disk is full"


class Interrupt:
    pass


class Raises:
    @property
    def status(self) -> str:
        raise RuntimeError("no status here")


@pytest.mark.parametrize(
    "value",
    [
        {"status": "waiting_for_user", "message": "Choose"},
        {"status": "input-required"},
        {"status": "requires_action", "required_action": {}},
        {"status": "paused", "requirements": [{"tool": "delete"}]},
        {"__interrupt__": [1]},
        json.dumps({"status": "waiting_for_user", "interactions": [{"id": 1}]}),
        RunOutput(),
        Interrupt(),
    ],
)
def test_what_waits_for_a_person_is_known(value: Any) -> None:
    assert outcome(value) == "waiting"


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ({"success": False, "error": "E", "error_type": "rate_limit"}, "rate_limit", "E"),
        ({"ok": False, "message": "no"}, "", "no"),
        ({"isError": True, "content": [{"type": "text", "text": "gone"}]}, "", "gone"),
        ({"error": {"type": "not_found", "message": "no such file"}}, "not_found", "no such file"),
        ({"error": "boom"}, "", "boom"),
        ({"status": "failed", "error": "boom", "rows": []}, "", "boom"),
        ('{"is_error": true, "message": "x"}', "", "x"),
        (ToolMessage("bad", status="error"), "", "bad"),
        (CallToolResult(), "", "disk is full"),
        (ValueError("bad value"), "ValueError", '"bad value"'),
    ],
)
def test_a_failed_result_keeps_its_type_and_its_text(value: Any, kind: str, text: str) -> None:
    found = control(value)
    assert found.outcome == "error"
    assert found.error_type == kind
    assert text.strip('"') in found.text


@pytest.mark.parametrize(
    "value",
    [
        {"status": "paused", "title": "a video", "seconds": 12},
        {"status": "pending", "orders": [1, 2]},
        {"status": "failed", "job": 7},
        {"error": None, "rows": [1]},
        {"error": "", "rows": [1]},
        {"error": 0.25, "model": "fit", "rows": [1]},
        {"errors": [], "data": {"a": 1}},
        {"success": True, "error": "none"},
        {"exit_code": 1, "stdout": "no tests ran"},
        [{"success": False}],
        "status: error",
        '{"success": false',
        "[" * 100_000,
        '{"a":' * 100_000,
        None,
        12,
        ToolMessage("fine"),
        Raises(),
    ],
)
def test_data_is_not_taken_for_a_control_result(value: Any) -> None:
    assert outcome(value) == "ok"


@pytest.mark.parametrize(
    "text",
    [
        '{"status": "waiting_for_user", "question": "cut \\ud83d"}',
        '{"status": "waiting_for_user", "score": NaN}',
        '{"status": "waiting_for_user", "n": 1E400}',
        '\ufeff{"status": "waiting_for_user"}',
    ],
)
def test_json_that_only_a_patient_parser_takes_says_the_same(text: str) -> None:
    assert outcome(text) == "waiting"
    assert control(text.replace("waiting_for_user", "error")).outcome == "error"
    assert outcome(text + "]") == "ok"
