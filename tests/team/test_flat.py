"""The figure that this is for: what a leader's model is handed, over six delegations."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from callslip.team import Agent, SqliteDb, Team
from tests.team.team_helpers import MODES, REPORT, Scripted, delegate, go, scripted

TURNS = 6


def six(folder: Path, mode: str, setting: bool, answers: list[str]) -> tuple[Scripted, Team]:
    """Six turns, one delegation each, with a history of ten runs."""
    folder.mkdir()
    steps = []
    for turn in range(TURNS):
        steps += [delegate("researcher", f"topic {turn}", id=f"call_{turn}"), f"Noted {turn}."]
    leader = scripted(*steps)
    member = Agent(name="Researcher", role="finds facts", model=scripted(*answers))
    team = Team(
        model=leader,
        members=[member],
        db=SqliteDb(folder / "team.db"),
        offload_tool_results=setting,
        num_history_runs=10,
    )
    for turn, answer in enumerate(answers):
        out = go(mode, team, f"Look into topic {turn}.", session_id="s1")
        assert out.content == f"Noted {turn}."
        assert out.member_responses[0].content == answer
    return leader, team


def per_turn(leader: Scripted) -> list[int]:
    """The largest call of each turn: the characters of all its messages, system included."""
    sizes = leader.sizes
    return [max(sizes[at : at + 2]) for at in range(0, 2 * TURNS, 2)]


@pytest.mark.parametrize("mode", MODES)
def test_six_delegations_stay_flat_with_offloading(
    mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(REPORT) == 223_892
    leader, team = six(tmp_path / "equal", mode, True, [REPORT] * TURNS)
    equal = per_turn(leader)
    store = team.result_store
    assert store is not None
    held = store.stats()
    growth = [after - before for before, after in pairwise(equal)]

    different = [f"report {turn}\n{REPORT}" for turn in range(TURNS)]
    leader_different, team_different = six(tmp_path / "different", mode, True, different)
    assert team_different.result_store is not None
    held_different = team_different.result_store.stats()
    six_different = per_turn(leader_different)
    with capsys.disabled():
        print(f"\n{mode:8} equal answers, per turn     {equal}, {held.packed_bytes:,} bytes")
        print(f"{mode:8} different answers, per turn {six_different}")

    assert max(equal) < 6_000
    assert max(growth) < 500
    assert held.payloads == 1
    assert held.packed_bytes < 100_000
    assert max(six_different) < 11_000
    assert held_different.payloads == TURNS


def test_without_offloading_the_same_six_delegations_pile_up(tmp_path: Path) -> None:
    leader, _ = six(tmp_path / "off", "sync", False, [REPORT] * TURNS)
    assert max(leader.sizes) > TURNS * len(REPORT)


def test_what_a_turn_begins_with_is_what_the_turn_before_ended_with(tmp_path: Path) -> None:
    """Law 4: a provider's prompt cache holds over turns."""
    leader, _ = six(tmp_path / "cache", "sync", True, [REPORT] * TURNS)
    for before, after in pairwise(leader.seen):
        begins = [(m.type, m.content) for m in after[: len(before)]]
        assert begins == [(m.type, m.content) for m in before]
