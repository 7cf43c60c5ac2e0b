"""The packed payload: chunked, compressed, checksummed, seekable, written as a stream.

::

    header | frame of chunk 0 | frame of chunk 1 | … | twin frames | trailer

`Packer` writes it, `Directory` reads it. The trailer says where each line, record, character and
byte starts, so that a page costs the chunks it shows and nothing of the rest.
`docs/decisions/0003-payload-format.md` says why it is so.
"""

from __future__ import annotations

from callslip.stacks.directory import Chunk, Directory
from callslip.stacks.packing import Packer, plain_digest

__all__ = ["Chunk", "Directory", "Packer", "plain_digest"]
