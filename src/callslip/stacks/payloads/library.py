"""obstore as this process can use it, after a fork, too.

Its threads belong to the process that started them. A forked child has none, and would wait for
them for ever; they cannot be started again, for the library keeps them in memory of its own. So the
child loads the library once more, from a copy of its file: to the system that is another library.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

from callslip.errors import StoreUnavailable

__all__ = ["generation", "obstore"]

_lock = threading.Lock()
_stale = False
"""Whether this process was forked from one that had loaded the library."""
_generation = 0
_kept: list[ModuleType] = []
"""The parent's modules: what of theirs is dropped would call for threads that are not there."""
_NATIVE = "obstore._obstore"
_origin = ""


def generation() -> int:
    """Changes where what was made by the library cannot be used any more."""
    return _generation


def obstore() -> Any:
    """The library, its parts `store` and `exceptions` imported.

    Raises StoreUnavailable in a forked child that cannot load it anew.
    """
    global _stale
    if _stale:
        with _lock:
            if _stale:
                _load_anew()
                _stale = False
    import obstore
    import obstore.exceptions
    import obstore.store

    return obstore


def _load_anew() -> None:
    global _origin
    _origin = _origin or sys.modules[_NATIVE].__file__ or ""
    for name in [name for name in sys.modules if name.partition(".")[0] == "obstore"]:
        _kept.append(sys.modules.pop(name))
    folder = tempfile.mkdtemp(prefix="callslip-")
    finder = _Copied(os.path.join(folder, os.path.basename(_origin)))
    sys.meta_path.insert(0, finder)
    try:
        shutil.copyfile(_origin, finder.file)
        import obstore.store  # noqa: F401
    except (OSError, ImportError) as error:
        raise StoreUnavailable(
            "the object store was used before this process was forked, and its library could not "
            f"be loaded anew ({error}); start workers with spawn or forkserver",
            reason="failed",
        ) from None
    finally:
        sys.meta_path.remove(finder)
        shutil.rmtree(folder, ignore_errors=True)  # what is loaded stays in memory


class _Copied(MetaPathFinder):
    """Finds the library's native part in a file of our own."""

    def __init__(self, file: str) -> None:
        self.file = file

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != _NATIVE:
            return None
        loader = importlib.machinery.ExtensionFileLoader(name, self.file)
        return importlib.util.spec_from_file_location(name, self.file, loader=loader)


def _forked() -> None:
    global _stale, _generation, _lock
    _lock = threading.Lock()
    _generation += 1
    _stale = _stale or _NATIVE in sys.modules


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
