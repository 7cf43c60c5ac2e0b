"""Images, PDF and sound: what a reader can be told without seeing them."""

from __future__ import annotations

from callslip.handle import Shape
from callslip.window.envelope import human_size
from callslip.window.preview.sample import Sample
from callslip.window.survey import MediaFacts
from callslip.window.survey.media import media_of

__all__ = ["described", "render"]


def render(sample: Sample, shape: Shape, lines: int, chars: int) -> str | None:
    """None for what is no media: bytes are never shown as text."""
    known = sample.outline
    if not isinstance(known, MediaFacts):
        if shape.kind != "media":
            return None
        # A bad byte of the view stands for itself; the head is enough for all but a PDF's pages.
        try:
            head = sample.head.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            head = b""
        known = media_of(head, shape.size, shape.mime) or MediaFacts(shape.mime, shape.size)
    return f"what it is, not its bytes\n{described(known)}"[: max(chars, 0)]


def described(known: MediaFacts) -> str:
    """`image/png, 640x420 pixels, 806.4KB`: what is known of it."""
    facts = [known.mime[:60]]
    if known.width and known.height:
        facts.append(f"{known.width}x{known.height} pixels")
    if known.pages:
        facts.append(f"{known.pages:,} page{'' if known.pages == 1 else 's'}")
    if known.seconds:
        facts.append(f"{known.seconds:,.1f} seconds")
    facts.append(human_size(known.size))
    return ", ".join(facts)
