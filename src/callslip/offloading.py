"""The flows that take a value in: keep it inline, or store it and render the envelope.

One place for the order of things: policy, content, redaction, payload, row, envelope; and for what
happens where the store is away (law 2: a bounded head and tail, no handle, and the spool).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from callslip import limits
from callslip.errors import StoreUnavailable
from callslip.handle import Envelope, Handle, Hits, Listing, Page, Reply, Scope, Source
from callslip.settings import Event, Settings
from callslip.stacks.content import Content, canonical, is_stream, restore
from callslip.stacks.ops import Flow, Inserted, Result, aside
from callslip.stacks.pieces import Pieces
from callslip.stacks.writing import Blocks, Call, Packing, tenant_key, write
from callslip.window import envelope
from callslip.window.measure import size_of
from callslip.window.outcome import Control, control
from callslip.window.preview import own
from callslip.window.preview import preview as choose_preview

if TYPE_CHECKING:
    from callslip.store import ResultStore

logger = logging.getLogger("callslip")

OURS = (Envelope, Reply, Page, Hits, Listing, Handle)
"""What we made ourselves is never offloaded: exempt by type, whatever its size (law 8)."""

PreviewOf = Callable[[Any], str]

_REDACTED_LINE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Whole:
    """A content in memory, as blocks."""

    content: Content

    @property
    def whole(self) -> bytes:
        """All of it: what is in memory can be looked into."""
        return self.content.body

    @property
    def form(self) -> str:
        return self.content.form

    @property
    def source(self) -> Source:
        return self.content.source

    @property
    def twin(self) -> bytes | None:
        return self.content.twin

    def __iter__(self) -> Iterator[bytes]:
        body = self.content.body
        for start in range(0, len(body), limits.STREAM_BLOCK_BYTES):
            yield body[start : start + limits.STREAM_BLOCK_BYTES]


class Redacted:
    """Blocks with a redaction applied, cut at line ends so that nothing hides across a cut.

    Where it changed something the exact Python form is dropped: `load` then gives the redacted text.
    """

    def __init__(self, blocks: Blocks, redact: Callable[[str], str]) -> None:
        self._blocks = blocks
        self._redact = redact
        self._changed = False

    @property
    def form(self) -> str:
        return "str" if self._changed and self.source == "str" else self._blocks.form

    @property
    def source(self) -> Source:
        return self._blocks.source

    @property
    def twin(self) -> bytes | None:
        return None if self._changed else self._blocks.twin

    def __iter__(self) -> Iterator[bytes]:
        held = b""
        for block in self._blocks:
            held += block
            end = held.rfind(b"\n") + 1
            if not end and len(held) > _REDACTED_LINE_BYTES:
                # A line that never ends: cut where a word does, rather than hold all of it.
                end = max(held.rfind(b","), held.rfind(b" ")) + 1
            if end:
                yield self._applied(held[:end])
                held = held[end:]
        if held:
            yield self._applied(held)

    def _applied(self, block: bytes) -> bytes:
        errors = "surrogatepass" if self.source == "str" else "surrogateescape"
        text = block.decode("utf-8", errors)
        redacted = self._redact(text)
        if redacted == text:
            return block
        self._changed = True
        return redacted.encode("utf-8", errors)


def render(row: Result, settings: Settings) -> str:
    """The envelope of a row: a function of the row and the settings alone."""
    if row.same_as:
        return envelope.same_as(
            row.id, row.tool, row.shape, row.same_as, vocabulary=settings.vocabulary
        )
    status, _, error_type = row.status.partition(" ")
    return envelope.stored(
        row.id,
        row.tool,
        row.shape,
        row.preview,
        status=status,
        error_type=error_type,
        vocabulary=settings.vocabulary,
        preview_chars=settings.preview_chars,
    )


def handle_of(row: Result, settings: Settings) -> Handle:
    """The handle that a row is shown as."""
    return Handle(
        id=row.id,
        tool=row.tool,
        shape=row.shape,
        created_at=row.created_at,
        args=row.args,
        status=row.status,
        same_as=row.same_as,
        envelope=render(row, settings),
    )


def put(
    store: ResultStore, scope: Scope, value: object, call: Call, preview: PreviewOf | None
) -> Flow[Handle]:
    """Store a value whatever its size. Raises `StoreUnavailable`, and what its iterator raises."""
    blocks, whole = _blocks_of(value)
    inserted = yield from _write(store, scope, blocks, whole, call, _chosen(store, value, preview))
    if inserted is None:
        raise StoreUnavailable("the index answered nothing", reason="failed")
    handle = handle_of(inserted.result, store.settings)
    _tell(store, "stored", inserted.result, len(handle.envelope))
    yield from store.upkeep()
    return handle


def offload(
    store: ResultStore, scope: Scope, value: object, call: Call, preview: PreviewOf | None
) -> Flow[object]:
    """The value itself, or the envelope that stands in for it. Never raises for the store's sake.

    What the value's own iterator raises, the caller gets.
    """
    given = _given(store, value, call.tool)
    if given.stays:
        return given.value
    said = Control() if is_stream(value) else control(value)
    if said.outcome == "error" and not call.status:
        call = replace(call, status=f"error {said.error_type}".strip())
    chosen = _chosen(store, given.value, preview, said.text if said.outcome == "error" else "")
    packing = _packing(store, scope, given.blocks)
    whole = given.content is not None

    def smaller(row: Result) -> bool:
        return len(render(row, store.settings)) < row.shape.chars

    try:
        inserted = yield from _write(store, scope, packing, whole, call, chosen, smaller)
    except StoreUnavailable as error:
        logger.warning("a result of %s was not stored: %s", call.tool, error)
        spooled = yield from _spooled(store, scope, given.content, call, chosen)
        store.emit(Event("spooled" if spooled else "refused", call.tool, reason=error.reason))
        return _refused(error.reason, given.content, packing, call)
    except Exception as error:
        if error is packing.error:
            raise
        # A fault of ours, or of a hook, must not fail the caller's tool, nor flood its window.
        logger.exception("a result of %s was not stored", call.tool)
        store.emit(Event("refused", call.tool, reason="failed"))
        return _refused("failed", given.content, packing, call)
    if inserted is None:
        return given.value
    row = inserted.result
    if not inserted.created and not call.named and not row.same_as:
        words = store.settings.vocabulary
        text = envelope.same_as(row.id, row.tool, row.shape, row.id, vocabulary=words)
    else:
        text = render(row, store.settings)
    _tell(store, "stored", row, len(text))
    yield from store.upkeep()
    return Envelope(text, handle_of(row, store.settings))


# --- the steps ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Given:
    """A value on its way in. `content` is None for a stream that is longer than any envelope."""

    value: object
    blocks: Blocks
    content: Content | None
    stays: bool = False


def _given(store: ResultStore, value: object, tool: str) -> _Given:
    """The value as content; a stream only as far as it takes to know that it is long."""
    policy = store.settings.policy
    if is_stream(value):
        pieces = Pieces(value)
        # One iterator for both parts: a second one would find the stream closed.
        rest = iter(pieces)
        taken, ended = _taken(rest, _most(store.settings, tool))
        if not ended:
            return _Given(value, _Resumed(pieces, chain(taken, rest)), None)
        body = b"".join(taken)
        value = restore(pieces.form, body, pieces.twin)
        content = Content(pieces.form, pieces.source, body, pieces.twin)
        return _Given(value, Whole(content), content, policy.decide(value, tool) == "keep")
    content = canonical(value)
    stays = False
    if size_of(value, 0) is None:
        # An object that tells its size only as content: what its class shows may be short.
        chars = len(content.body.decode("utf-8", "replace"))
        stays = policy.decide(value, tool, chars) == "keep"
    return _Given(value, Whole(content), content, stays)


def _blocks_of(value: object) -> tuple[Blocks, bool]:
    if is_stream(value):
        return Pieces(value), False
    return Whole(canonical(value)), True


def _packing(store: ResultStore, scope: Scope, blocks: Blocks) -> Packing:
    if store.settings.redact is not None:
        blocks = Redacted(blocks, store.settings.redact)
    return Packing(blocks, tenant_key(scope.tenant))


def _write(
    store: ResultStore,
    scope: Scope,
    blocks: Blocks | Packing,
    whole: bool,
    call: Call,
    preview: Callable[[Packing], str],
    wanted: Callable[[Result], bool] = lambda row: True,
) -> Flow[Inserted | None]:
    packing = blocks if isinstance(blocks, Packing) else _packing(store, scope, blocks)
    return (
        yield from write(
            packing,
            scope,
            call,
            whole=whole,
            preview=preview,
            wanted=wanted,
            ttl=store.settings.ttl_seconds,
            quota=store.settings.quota,
            now=store.now(),
        )
    )


def _chosen(
    store: ResultStore, value: object, preview: PreviewOf | None, error_text: str = ""
) -> Callable[[Packing], str]:
    settings = store.settings

    def made(text: str) -> str:
        # Unlike the sample, it comes from the value as it was: before the redaction.
        text = text if settings.redact is None else settings.redact(text)
        return own(text, settings.preview_chars)

    def choose(packing: Packing) -> str:
        if preview is not None:
            try:
                return made(str(preview(value)))
            except Exception:
                logger.exception("preview= raised; the chosen preview stands in for it")
        if error_text:
            return made(error_text)
        return choose_preview(
            packing.sample, packing.shape, settings.preview_lines, settings.preview_chars
        )

    return choose


def _spooled(
    store: ResultStore,
    scope: Scope,
    content: Content | None,
    call: Call,
    preview: Callable[[Packing], str],
) -> Flow[bool]:
    # A stream is gone by now: what of it was not stored is seen (`Packing.rest`) but not kept.
    if store.spool is None or content is None:
        return False
    try:
        yield from aside(_write(store, scope, Whole(content), True, call, preview))
    except StoreUnavailable as error:
        logger.warning("the spool took nothing: %s", error)
        return False
    store.note_spooled()
    return True


def _refused(reason: str, content: Content | None, packing: Packing, call: Call) -> Envelope:
    """What the model gets instead: the head and tail of a text, and what is known of a stream's."""
    if content is not None:
        errors = "surrogatepass" if content.source == "str" else "surrogateescape"
        text = content.body.decode("utf-8", errors)
        return Envelope(envelope.refused(reason, text, tool=call.tool, status=call.status))
    sample, chars = packing.rest()
    text = sample.head + sample.tail
    return Envelope(envelope.refused(reason, text, tool=call.tool, status=call.status, chars=chars))


def _tell(store: ResultStore, name: str, row: Result, shown: int) -> None:
    store.emit(Event(name, row.tool, row.id, row.shape.size, shown))


def _most(settings: Settings, tool: str) -> int:
    """Bytes of a stream beyond which it is longer than its threshold, in whatever characters, and
    longer than the envelope that would replace it."""
    rule = settings.policy.tools.get(tool, "threshold")
    tokens = settings.policy.threshold_tokens
    if isinstance(rule, int):
        chars = rule
    elif tokens is not None:
        chars = tokens * 64
    else:
        chars = settings.policy.threshold_chars
    return 4 * max(chars, settings.preview_chars + limits.ENVELOPE_CHARS)


def _taken(blocks: Iterator[bytes], most: int) -> tuple[list[bytes], bool]:
    """What a stream gives up to `most` bytes, and whether that was all of it."""
    taken: list[bytes] = []
    size = 0
    for block in blocks:
        taken.append(block)
        size += len(block)
        if size > most:
            return taken, False
    return taken, True


class _Resumed:
    """A stream whose first blocks were already taken: they come first once more."""

    def __init__(self, pieces: Pieces, blocks: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._blocks = blocks

    @property
    def form(self) -> str:
        return self._pieces.form

    @property
    def source(self) -> Source:
        return self._pieces.source

    @property
    def twin(self) -> bytes | None:
        return self._pieces.twin

    def __iter__(self) -> Iterator[bytes]:
        return self._blocks
