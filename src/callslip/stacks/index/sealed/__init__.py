"""Encryption at rest: an index around another one, which sees nothing but what is sealed.

`cipher` has the primitives, `master` the keys that a person or a KMS holds, `ring` the keys of
tenants and sessions that these wrap, `rows`, `facts` and `trail` what is sealed of which row, and
`wrapper` the index itself. Why it is so: `docs/decisions/0019-encryption.md`.

What may live here: keys, and operations sealed on their way in and opened on their way out. No SQL.
"""

from __future__ import annotations

from callslip.stacks.index.sealed.clear import Clear
from callslip.stacks.index.sealed.master import Master, master_of
from callslip.stacks.index.sealed.wrapper import Sealed

__all__ = ["Clear", "Master", "Sealed", "master_of"]
