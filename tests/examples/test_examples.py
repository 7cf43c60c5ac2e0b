"""Every example runs as it stands, in an empty folder, and shows what it says it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SHOWN = {
    "offload_member_results.py": [
        "members have answered 351,946 characters, the leader's transcript has 4,",
        "What is stored, and read by any of them by its id:",
        "catalogue: 1,200 lines, 89,399 bytes",
        "delegate_task_to_member: 1,200 lines, 89,399 bytes, the same as res_",
        "3 payloads, 2",
    ],
    "handing_a_result_to_a_member.py": [
        "inspector: 158,480 characters",
        "editor: line 1789: finding 1789: the pump at station 20 LEAKS",
        "counter: 2,499 pumps are tight",
        "The leader's messages have 1,4",
    ],
    "member_store_settings.py": [
        "inherits: setting None, store: 8,000 characters, preview 1200, the team",
        "opts-out: setting False, store: none",
        "store: 16,000 characters, preview 200, its own",
        "opts-out: its history holds 28,784 of 28,784 characters",
        "own: its history holds 572 of 23,784 characters",
    ],
    "offload_agent_results.py": [
        "line 1743: 12:29:02 ERROR shop payment gateway answered 502, giving up",
        "line 8: 12:00:07 INFO shop request 7 done",
        "the transcript has 1,9",
        "3,000 lines of service_log, 109,914 bytes",
        "what your code loads is what the tool returned: True",
    ],
    "forty_eight_candidates.py": [
        "answer: 3 true matches: C-07, C-19, C-40; all by the tax number.",
        "the sub-agent's window: 4",
        "the orchestrator's grew by 2",
        "not in the inputs: C-77",
    ],
    "steward_graph.py": [
        "to be merged (2): id C-0003, why same tax number; id C-0041",
        "rejected (45): C-0000, C-0001, C-0002, [… 42 more, all in res_",
        "{'into': 'E-17', 'merge': ['C-0003', 'C-0041']}",
        "497,381 bytes of candidates; 52 checkpoints",
        "the largest request had 1,0",
    ],
    "remember_a_preference.py": [
        "Remembered as mem_",
        "Not remembered: this holds an API key. Say it without that.",
        'key="conflict view" kind="preference" source="session 1" told="2026-11-23, 7 days ago">',
        "Ana wants conflicts side by side\n</fact>",
        "bob:    Nothing is remembered yet.",
    ],
    "offload_a_function.py": [
        '<result id="res_',
        '> line 1234: {"order":1234,',
        '<page id="res_',
        "list of 2,000, the last {'order': 2000,",
        "1 result went with it",
    ],
    "offload_in_create_agent.py": [
        '<result id="res_',
        "> line 12345: order 12345  ana  265 EUR",
        "Order 12345 was 265 EUR.",
        "the tool returned 762,293 characters; the window held 1,",
    ],
    "agent_loop.py": [
        "--> service_log(service='shop')",
        '<hits total="1"',
        "answer: line 1743: 12:29:02 ERROR shop payment gateway answered 502, giving up",
    ],
}


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_runs_and_shows_what_it_is_about(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    at = 0
    for part in SHOWN[name]:
        at = done.stdout.find(part, at)
        assert at >= 0, f"{part!r} is missing, or out of order, in:\n{done.stdout}"
