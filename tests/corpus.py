"""The corpus of real tool outputs, which lies beside the project and not in it.

``../shared/corpus``, or the folder that CALLSLIP_CORPUS names. Where there is none, what needs it is
skipped, and the reason is printed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(os.environ.get("CALLSLIP_CORPUS") or Path(__file__).parents[2] / "shared" / "corpus")
_ABSENT = f"no corpus at {FOLDER}: set CALLSLIP_CORPUS to the folder that holds it"


def corpus_paths(*folders: str) -> list[Path]:
    """The corpus' files, of these folders or of all, in order; none where there is no corpus."""
    found = (path for path in FOLDER.rglob("*") if path.is_file() and path.name != "manifest.json")
    return sorted(
        path for path in found if not folders or path.relative_to(FOLDER).parts[0] in folders
    )


def corpus_params(*folders: str) -> list[Any]:
    """The same, for `pytest.mark.parametrize("path", …)`: one test a file."""
    paths = corpus_paths(*folders)
    if not paths:
        return [pytest.param(FOLDER, marks=pytest.mark.skip(reason=_ABSENT), id="no corpus")]
    return [pytest.param(path, id=str(path.relative_to(FOLDER))) for path in paths]


needs_corpus = pytest.mark.skipif(not corpus_paths(), reason=_ABSENT)
"""For a test that looks at many files at once."""
