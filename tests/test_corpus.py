"""Every file of the corpus, through the public face: stored exactly, paged whole, found by search."""

from __future__ import annotations

import hashlib
import json
import random
import re
from pathlib import Path

import pytest

from callslip import Envelope, ResultStore, Session, limits
from tests.corpus import FOLDER, corpus_params, corpus_paths, needs_corpus


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return ResultStore(tmp_path_factory.mktemp("corpus")).session("s")


@needs_corpus
def test_the_corpus_is_the_one_of_the_manifest() -> None:
    manifest = {
        entry["path"]: entry for entry in json.loads((FOLDER / "manifest.json").read_text())
    }
    assert {str(path.relative_to(FOLDER)) for path in corpus_paths()} == set(manifest)
    for path in corpus_paths():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert digest.startswith(manifest[str(path.relative_to(FOLDER))]["sha256"])


def shown(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def values(path: Path) -> list[bytes | str]:
    raw = path.read_bytes()
    try:
        return [raw, raw.decode()]
    except UnicodeDecodeError:
        return [raw]


@pytest.mark.parametrize("path", corpus_params())
def test_a_file_comes_back_exactly_and_its_pages_are_its_text(session: Session, path: Path) -> None:
    for value in values(path):
        handle = session.put(value, tool="corpus", args=[path.name, type(value).__name__])
        raw = value if isinstance(value, bytes) else value.encode()
        digest = hashlib.sha256(raw).hexdigest()
        assert session.load(handle.id) == value
        assert hashlib.sha256(session.open(handle.id).read()).hexdigest() == digest
        text = shown(raw.decode("utf-8", "surrogateescape"))
        assert len(str(handle)) <= limits.PREVIEW_CHARS + limits.ENVELOPE_CHARS
        for limit in (None, 1_000_000):
            pieces, where = [], {"start": 1}
            while where is not None:
                page = session.read(handle.id, limit=limit, **where)
                assert len(str(page)) <= limits.PAGE_CAP_CHARS
                pieces.append(page.text)
                where = page.next
            assert "".join(pieces) == text


@pytest.mark.parametrize("path", corpus_params())
def test_words_of_a_file_are_found_on_their_right_line(session: Session, path: Path) -> None:
    value = values(path)[-1]
    handle = session.put(value, tool="corpus", args=path.name)
    raw = value if isinstance(value, bytes) else value.encode()
    text = shown(raw.decode("utf-8", "surrogateescape"))
    words = re.findall(r"[^\W_]{4,40}", text)
    for word in random.Random(path.name).sample(words, min(6, len(words))):
        hits = session.search(handle.id, re.escape(word), limit=20)
        assert hits.total == text.count(word)
        for hit in hits.hits:
            assert hit.match == word
            line = session.read(handle.id, start=hit.line, limit=1, column=hit.column)
            assert line.text.startswith(word)
            if not handle.shape.by_record:
                assert text.split("\n")[hit.line - 1][hit.column :].startswith(word)


@pytest.mark.parametrize("path", corpus_params())
def test_a_file_is_offloaded_when_it_is_long_and_else_left_alone(
    session: Session, path: Path
) -> None:
    for value in values(path):
        seen = session.offload(value, tool="corpus", args=["offload", path.name, str(type(value))])
        if len(value) > limits.THRESHOLD_CHARS:
            assert isinstance(seen, Envelope)
            assert seen.handle is not None
            assert len(seen) < len(value)
        else:
            assert seen is value
