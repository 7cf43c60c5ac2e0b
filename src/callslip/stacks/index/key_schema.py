"""What the SQLite index itself says of its keys: whether it is sealed, and by which. The wrapped keys
are in a file of their own (`callslip.stacks.index.keys`), so that no backup of the index has them."""

from __future__ import annotations

KEYS: tuple[str, ...] = ("ALTER TABLE store ADD COLUMN sealed BLOB",)
