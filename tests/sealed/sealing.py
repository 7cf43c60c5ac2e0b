"""Every store that a test makes has keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from callslip.settings import Settings
from callslip.stacks.index.sealed.master import new_key_file


def seal_every_store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give keys to every store that is given none; answer the key file."""
    file = folder / "keys"
    new_key_file(file)

    def made(**given: Any) -> Settings:
        return Settings(**{**given, "keys": given.get("keys") or str(file)})

    monkeypatch.setattr("callslip.store.Settings", made)
    return file
