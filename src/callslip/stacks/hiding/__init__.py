"""What a model sees of a content in which fields are masked: the same content, with their values
replaced where they stand.

What may live here: finding those values in JSON, in tables and in texts (`scan`, `fields`,
`tables`), block by block (`masker`), and the view of a stored payload that comes of it (`view`).
Pure, but for the operations that its flows yield. Where a value cannot be told for sure, more is
hidden rather than less.
"""

from __future__ import annotations

from callslip.stacks.hiding.masker import Mask, Masker, mask_of
from callslip.stacks.hiding.view import Seeing, View, keep_view, seen

__all__ = ["Mask", "Masker", "Seeing", "View", "keep_view", "mask_of", "seen"]
