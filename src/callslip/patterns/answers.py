"""What a sub-agent is told, and what becomes of its answer: parsed, checked, stored where it is long."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from callslip.errors import CallslipError, HandleError, NotRestorable
from callslip.patterns import fields
from callslip.patterns.files import inside
from callslip.patterns.shared import SharedSession
from callslip.session import Session
from callslip.stacks.hiding.values import shown_value
from callslip.tool_words import VOCABULARIES
from callslip.window.inert import plain
from callslip.window.measure import estimate_tokens
from callslip.window.policy import bounded

INLINE_CHARS = 2_000
"""An input that takes more is stored, and given to the sub-agent as a handle."""

EVIDENCE_SHOWN = 20
EVIDENCE_MOST = 500
_ID_CHARS = 200
_SENTENCE_CHARS = 300


@dataclass(frozen=True, slots=True)
class Delegated:
    """What came of a sub-task. `str(it)` is what the asker's model sees; `it["result"]` and the
    like work too.

    unresolved   evidence ids that the inputs do not hold, and artifacts that lead nowhere: the
                 result may rest on something made up
    stored       the handle of the whole result, where that was longer than was asked for
    evidence     the handle of all evidence ids, where they are many
    transcript   the handle of the transcript, if it was kept; never shown to the asker's model
    """

    result: str
    evidence_ids: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    ok: bool = True
    stored: str = ""
    evidence: str = ""
    transcript: str = ""
    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """What is told of it: result, evidence_ids, artifacts; and what is wrong with it, if
        anything is."""
        told: dict[str, Any] = {
            "result": self.result,
            "evidence_ids": list(self.evidence_ids),
            "artifacts": list(self.artifacts),
        }
        if self.unresolved:
            told["unresolved"] = list(self.unresolved)
        return told if self.ok else {"status": "failed", "result": self.result}

    def __getitem__(self, name: str) -> Any:
        return self.to_dict()[name]

    def __str__(self) -> str:
        told = self.to_dict()
        for name in ("evidence_ids", "unresolved"):
            if len(told.get(name, ())) > EVIDENCE_SHOWN:
                rest = len(told[name]) - EVIDENCE_SHOWN
                where = f", all in {self.evidence}" if name == "evidence_ids" else ""
                told[name] = [*told[name][:EVIDENCE_SHOWN], f"… {rest:,} more{where}"]
        if self.unresolved:
            told["warning"] = "what is unresolved is not in the inputs: do not rely on it"
        return inside(json.dumps(told, ensure_ascii=False))

    def noted(self, transcript: str, steps: int, tokens: int, seconds: float) -> Delegated:
        """The same, with what it took."""
        return replace(self, transcript=transcript, steps=steps, tokens=tokens, seconds=seconds)


def failed(said: str) -> Delegated:
    """A sub-task that came to nothing, in one sentence."""
    return Delegated(" ".join(said.split()), ok=False)


def sentence(error: Exception) -> str:
    """What an error of a sub-agent is to the asker: one sentence, no traceback."""
    if isinstance(error, CallslipError):
        return f"The sub-agent failed: {error.for_model}"
    said = plain(str(error).strip().split("\n")[0], _SENTENCE_CHARS)
    return f"The sub-agent failed ({type(error).__name__}{said and ': '}{said})."


# --- what it is told ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Given:
    """The inputs of a sub-task: how they are shown, which stored results they are, every single
    value that stands in its message, and whom the stored ones are about: so is what comes of it."""

    text: str
    handles: tuple[str, ...]
    inline: frozenset[str]
    about: tuple[str, ...]


def given(session: Session, inputs: Mapping[str, Any]) -> Given:
    """Inputs as a sub-agent gets them. Handles are shown as such, what is long becomes one."""
    lines: list[str] = []
    handles: list[str] = []
    inline: set[str] = set()
    for name, value in inputs.items():
        label = inside(plain(name, 80))
        id = fields.handle_in(value)
        if id is None:
            seen = shown_value(session.store.mask, value)
            text = json.dumps(seen, ensure_ascii=False, default=str)
            ids = [found for each in _leaves(value) if (found := fields.handle_in(each))]
            handles += [each for each in ids if _known(session, each)]
            if len(text) <= INLINE_CHARS:
                inline.update(str(each) for each in _leaves(seen))
                lines.append(f"{label}: {inside(text)}")
                continue
            id = session.put(value, tool="input", args={"name": name}).id
        handles.append(id)
        lines.append(f"{label}:\n{session.handle(id)}")
    ids_given = tuple(dict.fromkeys(handles))
    return Given("\n".join(lines), ids_given, frozenset(inline), _about(session, ids_given))


def system(max_tokens: int, instructions: str) -> str:
    """The narrow instruction."""
    return (
        "You do one task for another agent, with the tools you have. It sees nothing of your work "
        "but your last message, which is one JSON object and no other word:\n"
        '{"result": "…", "evidence_ids": ["…"], "artifacts": ["…"]}\n'
        f"result: the answer, in fewer than {max_tokens} tokens. evidence_ids: the ids of the "
        "records that it rests on, letter by letter as the inputs have them; none that you did not "
        "see there. artifacts: ids of stored results (res_…) that the other agent needs, or longer "
        "texts of yours, which are stored for it; mostly none."
    ) + (f"\n{instructions}" if instructions else "")


def message(task: str, inputs: Given) -> str:
    """The one message of a fresh window."""
    return f"{task}\n\nInputs:\n{inputs.text}" if inputs.text else task


def repair(wrong: str) -> str:
    """The one message that asks for the answer once more."""
    return (
        f"That is not the form that was asked for: {wrong}. Answer once more, with the JSON object "
        'alone: {"result": "…", "evidence_ids": ["…"], "artifacts": ["…"]}'
    )


# --- its answer -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer in the agreed form, as it came."""

    result: str
    evidence_ids: tuple[str, ...]
    artifacts: tuple[str, ...]


def parsed(text: str) -> Answered | str:
    """The answer in a last message; or what is wrong with it, in a few words.

    Words or a code fence around the object are forgiven, a missing or misshapen field is not.
    """
    found = next(_objects(text), None)
    if found is None:
        return "there is no JSON object in it"
    missing = [name for name in ("result", "evidence_ids", "artifacts") if name not in found]
    if missing:
        return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    result = found["result"]
    if not isinstance(result, str) or not result.strip():
        return "result is not a text"
    lists: list[tuple[str, ...]] = []
    for name in ("evidence_ids", "artifacts"):
        items = found[name]
        if not isinstance(items, list) or not all(
            isinstance(each, str | int) and not isinstance(each, bool) for each in items
        ):
            return f"{name} is not a list of texts"
        lists.append(tuple(dict.fromkeys(str(each).strip() for each in items if str(each).strip())))
    if len(lists[0]) > EVIDENCE_MOST or any(len(each) > _ID_CHARS for each in lists[0]):
        return f"evidence_ids are ids, at most {EVIDENCE_MOST} of them"
    return Answered(result.strip(), *lists)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """JSON objects in a text that have at least one of the fields; the last one first."""
    decoder = json.JSONDecoder(strict=False)
    starts = [match.start() for match in re.finditer(r"\{", text)][:200]
    found: list[dict[str, Any]] = []
    end = 0
    for start in starts:
        if start < end:
            continue
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and {"result", "evidence_ids", "artifacts"} & value.keys():
            found.append(value)
    yield from reversed(found)


def delivered(
    session: Session,
    own: SharedSession,
    inputs: Given,
    answer: Answered,
    max_tokens: int,
    resolves: Callable[[str], bool] | None,
) -> Delegated:
    """The answer as the asker gets it: evidence looked up, what is long stored and not cut.

    What is stored of it is about whom its inputs were about.
    """
    about = inputs.about
    wrong = [each for each in answer.evidence_ids if not _held(session, inputs, each)]
    wrong = [each for each in wrong if resolves is None or not resolves(each)]
    artifacts: list[str] = []
    for each in answer.artifacts:
        id = _artifact(session, own, each, about)
        if id is None:
            wrong.append(each)
        else:
            artifacts.append(id)
    result, stored = answer.result, ""
    if estimate_tokens(result) > max_tokens:
        stored = session.put(result, tool="delegate result", subject=about).id
        words = VOCABULARIES[session.store.settings.vocabulary]
        note = f' [… all of it is stored: {words.read}("{stored}") …]'
        cap = max_tokens * 3
        while cap > 80 and estimate_tokens(bounded(result, cap)) > max_tokens:
            cap = cap * 3 // 4
        result = bounded(result, cap) + note
    evidence = ""
    if len(answer.evidence_ids) > EVIDENCE_SHOWN:
        ids = list(answer.evidence_ids)
        evidence = session.put(ids, tool="delegate evidence", subject=about).id
    return Delegated(
        result=result,
        evidence_ids=answer.evidence_ids,
        artifacts=tuple(dict.fromkeys(artifacts)),
        unresolved=tuple(dict.fromkeys(wrong)),
        stored=stored,
        evidence=evidence,
    )


def _held(session: Session, inputs: Given, id: str) -> bool:
    """Whether an evidence id stands in the inputs: as one of them, as a whole value in the message,
    or as a whole value or word in a stored one."""
    if id in inputs.handles or id in inputs.inline:
        return True
    for handle in inputs.handles:
        try:
            found = session.handle(handle)
            pattern = _value(id) if found.kind in ("rows", "document") else _word(id)
            if "csv" in found.shape.mime or "tab-separated" in found.shape.mime:
                pattern = _word(id)
            if session.search(handle, pattern, limit=0).total:
                return True
        except HandleError:
            continue  # evicted meanwhile: then nothing rests on it
    return False


def _value(id: str) -> str:
    """A pattern for an id as one whole JSON value, or key."""
    exact = json.dumps(id, ensure_ascii=False)
    either = re.escape(exact)
    if not exact.isascii():
        either = f"(?:{either}|{re.escape(json.dumps(id))})"
    if re.fullmatch(r"-?\d+", id):
        either = f"(?:{either}|(?:^|[\\s:,\\[]){re.escape(id)}(?:$|[\\s,\\]}}]))"
    return either


def _word(id: str) -> str:
    """A pattern for an id that no letter, digit, dash or underscore goes on."""
    return rf"(?:^|[^\pL\pN_-]){re.escape(id)}(?:$|[^\pL\pN_-])"


def _artifact(
    session: Session, own: SharedSession, given: str, about: tuple[str, ...]
) -> str | None:
    """The handle of an artifact in the asker's session; None if it leads nowhere."""
    if fields.is_id(given):
        if _known(session, given):
            return given
        found = own.handle(given)
        if found is None:
            return None
        # The sub-agent's own results go with it: what it hands over becomes the asker's.
        try:
            value = own.session.load(given)
        except NotRestorable:
            value = own.session.open(given).read()
        about = tuple(dict.fromkeys((*about, *_about(own.session, [given]))))
        return session.put(value, tool=found.tool, args=found.args or None, subject=about).id
    if len(given) > _ID_CHARS or "\n" in given:
        return session.put(given, tool="delegate artifact", subject=about).id
    return None


def _about(session: Session, ids: Sequence[str]) -> tuple[str, ...]:
    """Whom results of a session are about, and what is stored of what rests on them."""
    rows = []
    for id in ids:
        try:
            rows.append(session.store.run_flow(session._row(id, "list")))
        except HandleError:
            continue  # gone meanwhile: then nothing rests on it
    return session.store.run_flow(session._about(rows))


def _known(session: Session, id: str) -> bool:
    try:
        session.handle(id)
    except HandleError:
        return False
    return True


def _leaves(value: Any) -> Iterator[Any]:
    """The single values in a value, keys of objects too."""
    todo: list[Any] = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, Mapping):
            todo += [*each.keys(), *each.values()]
        elif isinstance(each, Sequence | set | frozenset) and not isinstance(each, str | bytes):
            todo += list(each)
        else:
            yield each
