"""Flows made of other flows: the same policy, its operations done elsewhere or told on the way. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from callslip.stacks.ops import Aside, Flow, Op, do

T = TypeVar("T")


def through(flow: Flow[T], each: Callable[[Op[Any]], Flow[Any]]) -> Flow[T]:
    """The same flow, each of its operations run by another one, `each`; what that raises comes back
    into the flow, at its `yield`, as a backend's error does."""
    try:
        op = next(flow)
        while True:
            try:
                result = yield from each(op)
            except Exception as error:  # noqa: BLE001 - whatever it is, the inner flow decides
                op = flow.throw(error)
            else:
                op = flow.send(result)
    except StopIteration as stop:
        return cast("T", stop.value)


def aside(flow: Flow[T]) -> Flow[T]:
    """The same flow, run on the spool: each of its operations goes `Aside`."""
    return through(flow, lambda op: do(Aside(op)))
