"""The verbs of a `Session` that take a value in: `offload` and `put`, each with its async twin."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from callslip import offloading
from callslip.governing import subjects_of
from callslip.handle import Handle, Scope
from callslip.stacks.hiding.values import shown_text
from callslip.stacks.ops import Flow
from callslip.stacks.writing import Call, call_of
from callslip.window.policy import outcome
from callslip.wrap import Bridge, bridged

if TYPE_CHECKING:
    from callslip.store import ResultStore

T = TypeVar("T")
Subject = str | Sequence[str] | None
logger = logging.getLogger("callslip")


class Taking:
    """What `Session` inherits: it has the store and the scope."""

    store: ResultStore
    scope: Scope
    subjects: tuple[str, ...]

    def offload(
        self,
        value: Any,
        *,
        tool: str = "tool",
        args: Any = None,
        call_id: str | None = None,
        status: str = "",
        preview: offloading.PreviewOf | None = None,
        subject: Subject = None,
    ) -> Any:
        """The value itself if it is short enough to stay in the window, else its `Envelope`.
        Where fields of it are masked, a short one comes back as its JSON or its text without them.

        `tool` and `args` say which call made it; `call_id`, where a framework gives one, tells a
        replay of a call from a second call. `status="error"` marks a failed call. `preview` makes
        the preview from the value; with `top("score")` it shows the rows with the largest score.
        `subject` says whom it is about, one name or several, so that `store.delete(subject=…)` finds
        it; the session's by default. A stream (file object, iterator) is stored as it comes, or
        returned as its whole content if that is short.
        """
        stays = self._stays(value, tool)
        if stays and self.store.mask is None:
            return value
        call = (tool, args, call_id, status, subject)
        return self.store.run_flow(self._offload(stays, value, call, preview))

    async def aoffload(
        self,
        value: Any,
        *,
        tool: str = "tool",
        args: Any = None,
        call_id: str | None = None,
        status: str = "",
        preview: offloading.PreviewOf | None = None,
        subject: Subject = None,
    ) -> Any:
        """`offload`, with the work done off the event loop. Takes async iterators too."""
        stays = self._stays(value, tool)
        if stays and self.store.mask is None:
            return value

        given, call = bridged(value), (tool, args, call_id, status, subject)
        return await self._unless_cancelled(given, self._offload(stays, given, call, preview))

    def _offload(
        self, stays: bool, value: Any, call: tuple[Any, ...], preview: offloading.PreviewOf | None
    ) -> Flow[object]:
        if stays:
            return offloading.inline(self.store, value)
        made = self._call(*call)
        return (yield from offloading.offload(self.store, self.scope, value, made, preview))

    async def _unless_cancelled(self, given: Any, flow: Flow[T]) -> T:
        try:
            return await self.store.arun_flow(flow)
        except BaseException:
            if isinstance(given, Bridge):
                given.stop()
            raise

    def _call(
        self,
        tool: str,
        args: Any,
        call_id: str | None,
        status: str,
        subject: Subject = None,
    ) -> Call:
        tool, status = _word(tool, "tool"), _word(status, "")
        call_id = None if call_id is None else _word(call_id, "")
        call = call_of(tool, args, call_id, status, self._told)
        about = self.subjects if subject is None else subjects_of(subject)
        call = replace(call, subjects=about)
        redact = self.store.settings.redact
        if redact is None:
            return call
        return replace(call, tool=redact(call.tool), status=redact(call.status))

    def _told(self, args: str) -> str:
        """What is kept of a call's arguments: to say which call it was, to a model too."""
        redact = self.store.settings.redact
        return shown_text(self.store.mask, args if redact is None else redact(args))

    def _stays(self, value: Any, tool: str) -> bool:
        if isinstance(value, offloading.OURS):
            return True
        try:
            return (
                self.store.settings.policy.decide(value, tool) == "keep"
                or outcome(value) == "waiting"
            )
        except Exception:
            # `keep` or `count_tokens` raised: the caller's tool has worked, its result is not lost.
            logger.exception("the policy failed for a result of %s; it is offloaded", tool)
            return False

    def put(
        self,
        value: Any,
        *,
        tool: str = "tool",
        args: Any = None,
        call_id: str | None = None,
        status: str = "",
        preview: offloading.PreviewOf | None = None,
        subject: Subject = None,
    ) -> Handle:
        """Store a value whatever its size, and return its handle. Never raises on a value.

        File objects and iterators (of str, bytes, or any objects) stream: memory stays small.
        What such an iterator raises is raised here, and nothing is stored. `subject` as in `offload`.
        """
        call = (tool, args, call_id, status, subject)
        return self.store.run_flow(self._put(value, call, preview))

    async def aput(
        self,
        value: Any,
        *,
        tool: str = "tool",
        args: Any = None,
        call_id: str | None = None,
        status: str = "",
        preview: offloading.PreviewOf | None = None,
        subject: Subject = None,
    ) -> Handle:
        """`put`, with the work done off the event loop. Takes async iterators too."""
        given, call = bridged(value), (tool, args, call_id, status, subject)
        return await self._unless_cancelled(given, self._put(given, call, preview))

    def _put(
        self, value: Any, call: tuple[Any, ...], preview: offloading.PreviewOf | None
    ) -> Flow[Handle]:
        made = self._call(*call)
        return (yield from offloading.put(self.store, self.scope, value, made, preview))


def _word(value: object, default: str) -> str:
    """A name as text, whatever a caller gave for it."""
    if isinstance(value, str):
        return value or default
    return default if value is None else str(value)
