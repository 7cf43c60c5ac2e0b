"""What sixty turns with fifteen megabytes of results leave in a request and in a checkpoint."""

from __future__ import annotations

from bench import langchain_window as task


def test_sixty_turns_with_fifteen_megabytes_stay_small_in_requests_and_checkpoints() -> None:
    _, least, _ = task.run(task.short, task.in_none)
    largest, checkpoint, _ = task.run(task.ours, task.in_ours)
    fetched = sum(len(task.result(turn)) for turn in range(1, task.TURNS, task.EVERY))
    assert fetched > 14_500_000
    assert largest < 40_000
    assert checkpoint - least < 50_000
