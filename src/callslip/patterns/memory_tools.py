"""Memory's tools for a model: `remember`, `recall`, `forget`.

As the read-back tools: they never raise, never answer more than `limits.RECALL_CHARS`, and mend what
a model gets wrong where its meaning is plain. What they cost a request is their entries: there is no
line for a system prompt, and nothing is loaded before a model asks.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from callslip import limits
from callslip.errors import CallslipError, SettingsError
from callslip.handle import Reply
from callslip.patterns import remembering
from callslip.patterns.remembering import Said
from callslip.reading.page import whole
from callslip.stacks.memoryops import ForgetFacts, GetFact
from callslip.stacks.ops import Flow, do
from callslip.tools import Tool
from callslip.window.inert import shown
from callslip.window.remembered import gist

if TYPE_CHECKING:
    from callslip.patterns.memory import Memory

__all__ = ["MemoryTool", "tools_for"]

logger = logging.getLogger(__name__)

VERBS = ("remember", "recall", "forget")
_FAILED = "This call failed for a reason of ours; try it once more, or go on without."
_SENTENCE_CHARS = 800
_ID = re.compile(r"mem_[0-9a-z_]{4,60}")
_DAYS_MOST = 36_500


class _Asked:
    """The last query that these tools answered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: object = None

    def again(self, asked: object) -> bool:
        """Whether it is the same as right before. Said once: the next time it is answered."""
        with self._lock:
            same = asked is not None and asked == self._last
            self._last = None if same else asked
            return same


class MemoryTool(Tool):
    """One tool over a `Memory`. A `Tool`, and so never offloaded; `call` always answers."""

    def __init__(self, verb: str, memory: Memory, source: str, last: _Asked) -> None:
        self.name = verb
        self.description, self._parameters = _described(verb)
        self._facts = memory
        self._source = source
        self._recalled = last

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return deepcopy(self._parameters)

    def call(self, /, **arguments: Any) -> Reply:
        """Answer a model's call, in the caller's thread. Never raises on what is asked."""
        try:
            return Reply(self._facts.store.run_flow(self._flow(arguments)))
        except Exception as error:  # noqa: BLE001 - a model gets a sentence, the log gets the error
            return self._failure(error)

    async def acall(self, /, **arguments: Any) -> Reply:
        """The same, off the event loop."""
        try:
            return Reply(await self._facts.store.arun_flow(self._flow(arguments)))
        except Exception as error:  # noqa: BLE001 - a model gets a sentence, the log gets the error
            return self._failure(error)

    def _flow(self, given: Mapping[str, Any]) -> Flow[str]:
        if self.name == "recall":
            return (yield from self._recall(given))
        self._recalled.again(None)
        if self.name == "remember":
            return (yield from self._remember(given))
        return (yield from self._forget(given))

    def _remember(self, given: Mapping[str, Any]) -> Flow[str]:
        text = _text(given, "text", "fact", "content", "memory")
        if not text.strip():
            return 'Say what to remember: remember("one fact, as a whole sentence").'
        days = min(whole(given.get("days"), 0, 0), _DAYS_MOST)
        said = Said(
            text,
            _text(given, "key").strip()[: limits.FACT_NAME_CHARS] or None,
            _text(given, "kind").strip()[: limits.FACT_NAME_CHARS],
            self._source,
            expires=days * 86_400 or None,
            subjects=self._facts.subjects,
        )
        if len(text) > limits.FACT_CHARS:
            return (
                f"Not remembered: {len(text):,} characters. Say the one fact that matters later, in "
                "a sentence."
            )
        did = yield from remembering.remember(self._facts._shelf, said)
        fact = did.fact
        if did.outcome == "repeated":
            return f"Known already, as {fact.id}; now told {fact.count} times."
        if did.before is not None:
            return f'Remembered as {fact.id}, in place of: "{gist(did.before.text, 300)}"'
        return f"Remembered as {fact.id}."

    def _recall(self, given: Mapping[str, Any]) -> Flow[str]:
        query = _text(given, "query", "text", "q")
        if not query.strip():
            return 'Say what to look for: recall("a few words").'
        kind = _text(given, "kind").strip() or None
        limit = min(whole(given.get("limit", given.get("k")), 0, 0) or limits.RECALL_DEFAULT, 20)
        if self._recalled.again((query, kind, limit)):
            return (
                "You made this very call just now, and its answer stands above. Try other words, or "
                "go on without."
            )
        found = yield from self._facts._recall(query, limit, kind, None)
        if not found and kind is not None:
            # A model guesses at kinds: degrade rather than refuse.
            found = yield from self._facts._recall(query, limit, None, None)
        return str(found)

    def _forget(self, given: Mapping[str, Any]) -> Flow[str]:
        match = _ID.search(_text(given, "id", "fact_id", "memory_id"))
        memory = self._facts
        if match is not None:
            fact = yield from do(GetFact(memory.namespace, memory.store.now(), id=match[0]))
            if fact is not None and (yield from do(ForgetFacts(memory.namespace, id=fact.id))):
                return f'Forgotten: "{gist(fact.text, 300)}"'
        return "No fact of that id is remembered here; recall tells the ids."

    def _failure(self, error: Exception) -> Reply:
        self._recalled.again(None)
        if not isinstance(error, CallslipError):
            logger.error("%s failed", self.name, exc_info=error)
            return Reply(_FAILED)
        said = str(error) if isinstance(error, SettingsError) else error.for_model
        said = " ".join(shown(said).split())
        return Reply(said if len(said) <= _SENTENCE_CHARS else said[: _SENTENCE_CHARS - 1] + "…")


def tools_for(memory: Memory, source: str = "") -> list[MemoryTool]:
    """The three tools over a memory. Make them once for each conversation."""
    last = _Asked()
    return [MemoryTool(verb, memory, source, last) for verb in VERBS]


def _text(given: Mapping[str, Any], *names: str) -> str:
    value = next((given[name] for name in names if given.get(name) is not None), "")
    return value if isinstance(value, str) else str(value)


def _described(verb: str) -> tuple[str, dict[str, Any]]:
    """What a model is told of a tool. Every character of it is paid for on every request."""
    text = {"type": "string"}
    if verb == "remember":
        about = (
            "Keep one durable fact for later conversations: a preference, a decision, an exception, "
            "what is known to be wrong. No secrets, nothing that only matters now."
        )
        fields: dict[str, Any] = {
            "text": text | {"description": "the fact, as a whole sentence"},
            "key": text | {"description": "what it is about, where a newer fact replaces it"},
            "kind": text | {"description": "such as preference, policy, system"},
            "days": {
                "type": "integer",
                "description": "forget it after so many; leave out to keep",
            },
        }
        required = ["text"]
    elif verb == "recall":
        about = (
            "Look up what earlier conversations left: preferences, decisions, known problems. Ask "
            "before you choose how to do something for somebody."
        )
        fields = {
            "query": text | {"description": "a few words"},
            "kind": text,
            "limit": {"type": "integer"},
        }
        required = ["query"]
    else:
        about = "Delete a fact that is wrong or unwanted, by the id that recall shows."
        fields = {"id": text}
        required = ["id"]
    return about, {"type": "object", "properties": fields, "required": required}
