"""What the contract suites expect to be raised. They are for any test runner, so not pytest's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def raised(kind: type[BaseException], act: Callable[[], object]) -> Any:
    """The error of that kind that `act` raises; an AssertionError if it raises none."""
    try:
        act()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")
