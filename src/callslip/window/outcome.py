"""What a result says about its own call: fine, failed, or waiting for a person. Pure.

Cautious: a value is taken for a control result only by what no data would carry by accident.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

__all__ = ["Control", "Outcome", "control", "outcome"]

Outcome = Literal["ok", "error", "waiting"]

_WAITING_WORDS = (
    "waiting_for_user waiting_for_human waiting_for_input waiting_for_approval "
    "waiting_for_confirmation awaiting_user awaiting_user_input awaiting_human awaiting_input "
    "awaiting_approval awaiting_confirmation input_required user_input_required requires_input "
    "requires_user_input requires_action requires_approval requires_confirmation needs_input "
    "needs_approval needs_confirmation approval_required confirmation_required auth_required "
    "pending_approval pending_confirmation human_input_required interrupt"
)
_WAITING = frozenset(_WAITING_WORDS.split())
# A job or a video may be "paused" too; a run that waits says what it waits for.
_MAYBE_WAITING = frozenset({"paused", "interrupted", "pending", "waiting", "suspended"})
_ASKING_FIELDS = (
    "interactions interaction interrupt interrupts requirements active_requirements approvals "
    "pending_approvals action_requests review_configs questions question confirmation "
    "user_input_schema tools_requiring_confirmation"
)
_ASKS = frozenset(_ASKING_FIELDS.split())
_FAILED = frozenset({"error", "failed", "failure"})
_ERROR_FIELDS = ("error", "exception", "message", "detail", "error_message", "traceback", "errors")
_BARE_FIELDS = (
    "error error_type error_code code status status_code message detail details type traceback "
    "exception hint request_id errors data"
)
_BARE_ERROR = frozenset(_BARE_FIELDS.split())
_PARSED_CHARS = 1_000_000


@dataclass(frozen=True, slots=True)
class Control:
    """The outcome, with what a failure keeps in the window: its type and its text."""

    outcome: Outcome = "ok"
    error_type: str = ""
    text: str = ""


_OK = Control()


def outcome(value: object) -> Outcome:
    """`waiting` for what waits for a person, `error` for a failed call's result, else `ok`."""
    return control(value).outcome


def control(value: object) -> Control:
    """The outcome of a result, and for a failure its type and text. Never raises.

    Reads mappings, JSON text of an object, and objects that carry `isError`, `is_error`, `status`
    or `interrupts` as messages and run outputs of agent frameworks do.
    """
    # By the class itself: what an object says of its own class (`__class__`) may be anything.
    given: Any = value
    cls = type(value)
    if issubclass(cls, str):
        return _of_text(given)
    if issubclass(cls, dict):
        return _of_mapping(given)
    if issubclass(cls, BaseException):
        return Control("error", cls.__name__, _word_or_text(value))
    if value is None or issubclass(
        cls, (int, float, bytes, bytearray, memoryview, list, tuple, set, frozenset)
    ):
        return _OK
    return _of_object(value)


def _of_text(text: str) -> Control:
    head = text[:64].lstrip("\ufeff \t\r\n")
    if not head.startswith("{") or len(text) > _PARSED_CHARS:
        return _OK
    text = text.removeprefix("\ufeff")
    found: object
    try:
        found = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        try:  # NaN, a number beyond a float, half of a surrogate pair
            found = json.loads(text)
        except (ValueError, RecursionError):
            return _OK
    return _of_mapping(found) if isinstance(found, dict) else _OK


def _of_object(value: object) -> Control:
    fields = {}
    for name in ("status", "isError", "is_error", "error", "content", "interrupts", "requirements"):
        try:
            fields[name] = getattr(value, name, None)
        except Exception:  # noqa: BLE001
            # A property of the caller's class may raise anything: it says nothing to us then.
            fields[name] = None
    if type(value).__name__ in {"Interrupt", "GraphInterrupt"}:
        return Control("waiting")
    if (
        fields["isError"] is True
        or fields["is_error"] is True
        or _word(fields["status"]) == "error"
    ):
        return Control("error", "", _word_or_text(fields["content"] or fields["error"] or ""))
    if _word(fields["status"]) in _WAITING:
        return Control("waiting")
    if _word(fields["status"]) in _MAYBE_WAITING and (
        fields["interrupts"] or fields["requirements"]
    ):
        return Control("waiting")
    return _OK


def _of_mapping(value: Mapping[Any, Any]) -> Control:
    get = value.get
    word = _word(get("status")) or _word(get("state"))
    if "__interrupt__" in value or word in _WAITING or _word(get("type")) in _WAITING:
        return Control("waiting")
    if word in _MAYBE_WAITING and any(get(key) for key in _ASKS):
        return Control("waiting")
    failed = (
        get("success") is False
        or get("ok") is False
        or get("isError") is True
        or get("is_error") is True
        or word == "error"
        or (word in _FAILED and any(get(key) for key in _ERROR_FIELDS))
        or (isinstance(get("error_type"), str) and bool(get("error_type")))
        or (bool(get("error")) and _BARE_ERROR.issuperset(value))
        or (bool(get("errors")) and get("data") is None and _BARE_ERROR.issuperset(value))
    )
    if not failed:
        return _OK
    error = get("error")
    inner = error if isinstance(error, Mapping) else {}
    kind = next(
        (
            word
            for word in (
                get("error_type"), get("error_code"), inner.get("type"), inner.get("code"),
                get("code"), get("status_code"),
            )
            if isinstance(word, str | int) and not isinstance(word, bool) and word != ""
        ),
        "",
    )  # fmt: skip
    text = next((get(key) for key in (*_ERROR_FIELDS, "content") if get(key)), "")
    return Control("error", _word_or_text(kind), _word_or_text(text))


def _word(value: object) -> str:
    if isinstance(value, enum.Enum):
        value = value.value
    if not isinstance(value, str) or len(value) > 40:
        return ""
    return value.strip().lower().replace("-", "_").replace(" ", "_")


def _word_or_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if (
        isinstance(value, list)
        and value
        and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in value)
    ):
        return "\n".join(part["text"] for part in value)
    if isinstance(value, dict) and isinstance(value.get("message"), str):
        return str(value["message"])
    try:
        return msgspec.json.encode(value).decode()
    except Exception:  # noqa: BLE001
        try:
            return str(value)
        except Exception:  # noqa: BLE001
            return type(value).__name__
