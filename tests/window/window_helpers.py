"""What the tests of the window share: a shape and a preview of a text, case inputs, the corpus."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

from callslip.handle import Shape, Source
from callslip.window.preview import Sample, Sampler, preview
from tests.corpus import corpus_paths

INPUTS = Path(__file__).parents[1] / "cases" / "inputs"


def case_input(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"case_{name}", INPUTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def corpus() -> list[Path]:
    """Every file of the corpus but the binaries; none where there is no corpus."""
    return [path for path in corpus_paths() if "binary" not in path.parts]


def raw_of(text: str | bytes) -> tuple[bytes, Source]:
    if isinstance(text, bytes):
        return text, "bytes"
    return text.encode("utf-8", "surrogatepass"), "str"


def view_of(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")


def shape_of(text: str | bytes) -> Shape:
    view = view_of(text)
    lines = view.count("\n") + (1 if view and not view.endswith("\n") else 0)
    found: object = None
    if view[:1] in "[{":
        try:
            found = json.loads(view)
        except ValueError:
            found = None
    size = len(raw_of(text)[0])
    if isinstance(found, list) and len(found) > lines:
        return Shape(
            "rows",
            "application/json",
            size,
            len(view),
            len(found),
            records=len(found),
            by_record=True,
        )
    if found is not None:
        return Shape("document", "application/json", size, len(view), lines)
    return Shape(size=size, chars=len(view), lines=lines)


def sample_of(text: str | bytes, block: int = 100_000) -> Sample:
    raw, source = raw_of(text)
    sampler = Sampler(source)
    for at in range(0, len(raw), block):
        sampler.add(raw[at : at + block])
    return sampler.finish()


def preview_of(text: str | bytes, lines: int = 20, chars: int = 1200) -> str:
    return preview(sample_of(text), shape_of(text), lines, chars)
