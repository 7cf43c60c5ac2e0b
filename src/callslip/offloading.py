"""The flows that take a value in: keep it inline, or store it and render the envelope.

One place for the order of things: policy, content, redaction, payload, row, envelope; and for what
happens where the store is away (law 2: a bounded head and tail, no handle, and the spool).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from callslip import access, limits, rendering
from callslip.blocks import Redacted, Resumed, Whole
from callslip.errors import StoreUnavailable
from callslip.handle import (
    Envelope,
    Handle,
    Hits,
    Listing,
    Page,
    Quota,
    Record,
    Reply,
    Rows,
    Scope,
)
from callslip.rendering import handle_of, render
from callslip.settings import Event, Settings
from callslip.stacks.content import Content, canonical, is_stream, restore
from callslip.stacks.flows import aside
from callslip.stacks.hiding import keep_view
from callslip.stacks.hiding.values import shown_content, shown_text, shown_value
from callslip.stacks.ops import Count, Flow, Inserted, Result, do
from callslip.stacks.pieces import Pieces
from callslip.stacks.saving import save
from callslip.stacks.writing import Blocks, Call, Packing, digest_key, write
from callslip.window.measure import size_of
from callslip.window.outcome import Control, control
from callslip.window.preview import own
from callslip.window.profile import Top

if TYPE_CHECKING:
    from callslip.store import ResultStore

logger = logging.getLogger("callslip")

OURS = (Envelope, Reply, Page, Hits, Listing, Record, Rows, Handle)
"""What we made ourselves is never offloaded: exempt by type, whatever its size (law 8)."""

PreviewOf = Callable[[Any], str] | Top


def put(
    store: ResultStore, scope: Scope, value: object, call: Call, preview: PreviewOf | None
) -> Flow[Handle]:
    """Store a value whatever its size. Raises `StoreUnavailable`, and what its iterator raises."""
    blocks, whole = _blocks_of(value)
    chosen = _chosen(store, value, call, preview)
    key = yield from digest_key(scope.tenant)
    packing = _packing(store, key, blocks, preview)
    return (yield from _put(store, scope, packing, whole, call, chosen))


def keep(store: ResultStore, scope: Scope, blocks: Blocks, call: Call) -> Flow[Handle]:
    """Store what comes as blocks of bytes already. Raises as `put` does."""
    chosen = _chosen(store, None, call, None)
    key = yield from digest_key(scope.tenant)
    return (yield from _put(store, scope, _packing(store, key, blocks), False, call, chosen))


def _put(
    store: ResultStore,
    scope: Scope,
    packing: Packing,
    whole: bool,
    call: Call,
    chosen: Callable[[Packing], str],
) -> Flow[Handle]:
    if not (yield from access.may_store(store, scope, call)):
        said = f"authorize= does not let a result of {call.tool} be stored in this session"
        raise StoreUnavailable(said, reason="permission denied")
    inserted = yield from _write(store, scope, packing, whole, call, chosen)
    if inserted is None:
        raise StoreUnavailable("the index answered nothing", reason="failed")
    handle = handle_of(inserted.result, store.settings)
    _tell(store, "stored", inserted.result, len(handle.envelope))
    yield from store.upkeep()
    return handle


def offload(
    store: ResultStore,
    scope: Scope,
    value: object,
    call: Call,
    preview: PreviewOf | None,
    seen: Callable[[str], bool] | None = None,
) -> Flow[object]:
    """The value itself, or the envelope that stands in for it. Never raises for the store's sake.

    What the value's own iterator raises, the caller gets. `seen` says whether an earlier handle is
    still in front of the model: content that is not is shown again, and not named as shown.
    """
    given = _given(store, value, call.tool)
    if given.stays:
        return inline(store, given.value)
    said = Control() if is_stream(value) else control(value)
    if said.outcome == "error" and not call.status:
        call = replace(call, status=f"error {said.error_type}".strip())
    error_text = said.text if said.outcome == "error" else ""
    chosen = _chosen(store, given.value, call, preview, error_text)
    key = yield from _digest_key(store, scope)
    packing = _packing(store, key, given.blocks, preview)
    whole = given.content is not None

    if not (yield from access.may_store(store, scope, call)):
        # Nor does the spool take it: it would be delivered some day.
        store.emit(Event("refused", call.tool, reason="permission denied"))
        return _refused(store, "permission denied", given.content, packing, call)

    def smaller(row: Result) -> bool:
        if store.settings.plain_folder:  # the path of a plain file counts, and comes with the key
            row = replace(row, payload=replace(row.payload, key="to be"))
        return len(render(row, store.settings)) < row.shape.chars

    try:
        inserted = yield from _write(store, scope, packing, whole, call, chosen, smaller)
    except StoreUnavailable as error:
        logger.warning("a result of %s was not stored: %s", call.tool, error)
        if not packing.again() and given.content is not None:
            packing = _packing(store, key, given.blocks, preview)
        spooled = yield from _spooled(store, scope, packing, whole, call, chosen)
        store.emit(Event("spooled" if spooled else "refused", call.tool, reason=error.reason))
        return _refused(store, error.reason, given.content, packing, call)
    except Exception as error:
        if error is packing.error:
            raise
        # A fault of ours, or of a hook, must not fail the caller's tool, nor flood its window.
        logger.exception("a result of %s was not stored", call.tool)
        store.emit(Event("refused", call.tool, reason="failed"))
        return _refused(store, "failed", given.content, packing, call)
    if inserted is None:
        return inline(store, given.value)
    row = inserted.result
    if row.same_as and seen is not None and not seen(row.same_as):
        row = replace(row, same_as="")
    if not inserted.created and not call.named and not row.same_as:
        text = rendering.same(row, row.id, store.settings)
    else:
        text = render(row, store.settings)
    _tell(store, "stored", row, len(text))
    yield from store.upkeep()
    return Envelope(text, handle_of(row, store.settings))


def inline(store: ResultStore, value: object) -> object:
    """A value that stays in the window, as a model may see it: the value itself where nothing of it
    is masked, else its JSON view or its text."""
    return value if isinstance(value, OURS) else shown_value(store.mask, value)


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
            return _Given(value, Resumed(pieces, chain(taken, rest)), None)
        body = b"".join(taken)
        value = restore(pieces.form, body, pieces.twin)
        content = Content(pieces.form, pieces.source, body, pieces.twin)
        return _Given(value, Whole(content), content, policy.decide(value, tool) == "keep")
    content = canonical(value)
    stays = False
    if size_of(value, 0) is None:
        # An object that tells its size only as content: what its class shows may be short.
        chars = len(content.text)
        stays = policy.decide(value, tool, chars) == "keep"
    return _Given(value, Whole(content), content, stays)


def _blocks_of(value: object) -> tuple[Blocks, bool]:
    if is_stream(value):
        return Pieces(value), False
    return Whole(canonical(value)), True


def _digest_key(store: ResultStore, scope: Scope) -> Flow[bytes]:
    """The tenant's digest key, or a spool's, or one of no use: what is wrong is then told by the
    write, which fails as well, and the value is still seen and counted."""
    away = False
    try:
        return (yield from digest_key(scope.tenant))
    except Exception as error:  # noqa: BLE001 - a wrong key, too, must not fail the caller's tool
        logger.warning("no digest key: %s", error)
        away = isinstance(error, StoreUnavailable)
    # With a wrong key nothing will go to the spool, which must not be sealed with it for good.
    if away and store.spool is not None:
        try:
            return (yield from aside(digest_key(scope.tenant)))
        except Exception as error:  # noqa: BLE001
            logger.warning("no digest key of the spool: %s", error)
    return secrets.token_bytes(32)


def _packing(
    store: ResultStore, key: bytes, blocks: Blocks, preview: PreviewOf | None = None
) -> Packing:
    if store.settings.redact is not None:
        blocks = Redacted(blocks, store.settings.redact)
    top = preview.field if isinstance(preview, Top) else ""
    return Packing(blocks, key, top, store.mask)


def _write(
    store: ResultStore,
    scope: Scope,
    packing: Packing,
    whole: bool,
    call: Call,
    preview: Callable[[Packing], str],
    wanted: Callable[[Result], bool] = lambda row: True,
    waits: bool = False,
) -> Flow[Inserted | None]:
    """`waits`: for its delivery. Until then it does not run out: its session lives elsewhere."""
    settings, now = store.settings, store.now()
    plain = bool(settings.plain_folder) and not waits
    inserted = yield from write(
        packing,
        scope,
        call,
        whole=whole,
        preview=preview,
        wanted=wanted,
        ttl=None if waits else settings.ttl_of(scope.tenant),
        quota=Quota() if waits else settings.quota,
        now=now,
        expires_at=None if waits else settings.retention.runs_out(call.tool, now),
        # A plain file goes with the payload's object, so there is one for each.
        inline=0 if plain else limits.INLINE_BYTES,
    )
    if inserted is not None and packing.view is not None:
        keep_view(inserted.result, packing.view, store.caches)
    if plain and inserted is not None:
        yield from save(inserted.result, store.caches)
    return inserted


def _chosen(
    store: ResultStore,
    value: object,
    call: Call,
    preview: PreviewOf | None,
    error_text: str = "",
) -> Callable[[Packing], str]:
    settings = store.settings

    def made(text: str) -> str:
        # Unlike the sample, it comes from the value as it was: before the redaction.
        text = text if settings.redact is None else settings.redact(text)
        return own(shown_text(store.mask, text), settings.preview_chars)

    def choose(packing: Packing) -> str:
        if preview is not None and not isinstance(preview, Top):
            try:
                return made(str(preview(shown_value(store.mask, value))))
            except Exception:
                logger.exception("preview= raised; the chosen preview stands in for it")
        if error_text:
            return made(error_text)
        return rendering.chosen(packing, call, settings)

    return choose


def _spooled(
    store: ResultStore,
    scope: Scope,
    packing: Packing,
    whole: bool,
    call: Call,
    preview: Callable[[Packing], str],
) -> Flow[bool]:
    # Of a long stream too much may have gone by: the rest of it is seen (`rest`) but not kept.
    if store.spool is None or packing.spent:
        return False
    try:
        held = yield from aside(do(Count()))
        if held.packed_bytes >= limits.SPOOL_BYTES:
            raise StoreUnavailable(f"it holds {held.packed_bytes} bytes", reason="disk full")
        yield from aside(_write(store, scope, packing, whole, call, preview, waits=True))
    except StoreUnavailable as error:
        logger.warning("the spool took nothing: %s", error)
        return False
    store.note_spooled()
    return True


def _refused(
    store: ResultStore, reason: str, content: Content | None, packing: Packing, call: Call
) -> Envelope:
    """What the model gets instead: the head and tail of a text, and what is known of a stream's."""
    if content is not None:
        text = in_short(store, content)
        return Envelope(rendering.refused(reason, text, call, store.settings))
    sample, chars = packing.rest()
    text = sample.head + sample.tail
    return Envelope(rendering.refused(reason, text, call, store.settings, chars))


def in_short(store: ResultStore, content: Content) -> str:
    """The text that an excerpt may be cut from, where a model gets no handle: masked and redacted."""
    return _redacted(store, shown_content(store.mask, content).text)


def _redacted(store: ResultStore, text: str) -> str:
    redact = store.settings.redact
    if redact is None:
        return text
    try:
        return redact(text)
    except Exception:
        logger.exception("redact= raised; nothing of the result is shown")
        return ""


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
