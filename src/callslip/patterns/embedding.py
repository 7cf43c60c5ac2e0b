"""An embedding, whatever form it has: a function, an object of LangChain's, or one that comes along."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from callslip.errors import SettingsError
from callslip.limits import EMBEDDED_AT_ONCE

Vectors = Sequence[Sequence[float]]
Embed = Callable[[list[str]], Vectors | Awaitable[Vectors]]

__all__ = ["Embed", "Embedding"]


class Embedding:
    """Texts to vectors. `embed` is a function of a list of texts, sync or async; an object with
    `embed_documents` and `embed_query`; or ``"wordllama"``, whose model ships in its package
    (``pip install 'callslip[memory]'``). Raises `SettingsError` for anything else."""

    def __init__(self, embed: Any) -> None:
        if embed == "wordllama":
            self._documents = self._queries = cast("Embed", _wordllama)
        elif hasattr(embed, "embed_documents"):
            single = getattr(embed, "embed_query", None)
            self._documents = embed.embed_documents
            self._queries = (
                embed.embed_documents if single is None else lambda texts: [*map(single, texts)]
            )
        elif callable(embed):
            self._documents = self._queries = embed
        else:
            raise SettingsError(
                f'embed={embed!r}: give a function of a list of texts, or "wordllama"'
            )

    def documents(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text that is kept."""
        found: list[list[float]] = []
        for start in range(0, len(texts), EMBEDDED_AT_ONCE):
            found += _done(self._documents, list(texts[start : start + EMBEDDED_AT_ONCE]))
        return found

    def query(self, text: str) -> list[float]:
        """The vector to look for."""
        return _done(self._queries, [text])[0]


def _done(embed: Embed, texts: list[str]) -> list[list[float]]:
    made = embed(texts)
    if inspect.isawaitable(made):
        import asyncio

        async def waited(some: Awaitable[Vectors]) -> Vectors:
            return await some

        made = asyncio.run(waited(made))
    vectors = [[float(each) for each in vector] for vector in made]
    if len(vectors) != len(texts):
        raise ValueError(f"embed gave {len(vectors)} vectors for {len(texts)} texts")
    return vectors


def _wordllama(texts: list[str]) -> Vectors:
    return cast("Vectors", _wordllama_model().embed(texts))


@cache
def _wordllama_model() -> Any:
    try:
        wordllama: Any = import_module("wordllama")
    except ImportError as error:
        raise SettingsError("embed='wordllama' needs: pip install 'callslip[memory]'") from error
    # Its weights and its tokenizer lie in the package: told so, it asks no network for them.
    return wordllama.WordLlama.load(
        cache_dir=Path(str(wordllama.__file__)).parent, disable_download=True
    )
