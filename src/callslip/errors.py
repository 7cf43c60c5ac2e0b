"""Every error that callslip raises, as one tree.

::

    CallslipError                   anything below; catch this to catch all of them
    ├── SettingsError               a setting or an argument of a caller is wrong (also a ValueError)
    ├── HandleError                 a handle did not lead to a result (also a LookupError)
    │   ├── UnknownHandle           nothing of that id in this scope: invented, foreign or mistyped
    │   └── HandleGone              it was here: expired, evicted, deleted, or its session closed
    ├── StoreError                  the index or the payload store could not do its work
    │   ├── StoreUnavailable        away, full, locked, refused: the same call may work later
    │   └── PayloadDamaged          stored bytes do not match their checksum: never returned
    ├── LegalHold                   a legal hold keeps what was to be deleted; nothing was
    ├── PatternError                a search pattern that RE2 does not take (also a ValueError)
    ├── FileError                   a scratch file: a bad path, or what cannot be done (a ValueError)
    │   ├── FileStale               it was changed since the writer saw it: nothing was written
    │   └── UnknownFile             no file of that path, or no such version of it
    ├── FactError                   memory: a fact that is not taken, or not there
    │   ├── FactRefused             it holds a credential, or a `screen` refused it (a ValueError)
    │   └── UnknownFact             no fact of that id in this namespace (also a LookupError)
    ├── RunGone                     a team's run was deleted under way (also a LookupError)
    ├── QueryError                  a query that is not taken, or took too long (also a ValueError)
    └── NotRestorable               a stored Python object needs a class that is not importable here

A caller gets these. A model never does: the tools in `callslip.tools` turn each of them into one
short sentence (`CallslipError.for_model`), which carries no path, no SQL and no payload.
"""

from __future__ import annotations

__all__ = [
    "CallslipError",
    "FactError",
    "FactRefused",
    "FileError",
    "FileStale",
    "HandleError",
    "HandleGone",
    "LegalHold",
    "NotRestorable",
    "PatternError",
    "PayloadDamaged",
    "QueryError",
    "RunGone",
    "SettingsError",
    "StoreError",
    "StoreUnavailable",
    "UnknownFact",
    "UnknownFile",
    "UnknownHandle",
]


class CallslipError(Exception):
    """The root of the tree. `for_model` is the sentence that a model may see."""

    def __init__(self, message: str, *, for_model: str | None = None) -> None:
        super().__init__(message)
        self.for_model = for_model or "The store could not answer; go on without this result."


class SettingsError(CallslipError, ValueError):
    """A setting or an argument is wrong; the message names it, its value and what to give."""


class HandleError(CallslipError, LookupError):
    """A handle did not lead to a result."""


class UnknownHandle(HandleError):
    """No result of that id is visible in this scope.

    An id of another session, user or tenant gets this very answer, so that nobody learns what
    others store.
    """


class HandleGone(HandleError):
    """The result was here and is gone; `why` says how (`expired`, `evicted`, `closed`, `deleted`)."""

    def __init__(self, message: str, *, why: str, for_model: str | None = None) -> None:
        super().__init__(message, for_model=for_model)
        self.why = why


class StoreError(CallslipError):
    """The index or the payload store could not do its work."""


class StoreUnavailable(StoreError):
    """The store is away, full, locked or refused the call; the same call may work later.

    `reason` is a few fixed words (`disk full`, `permission denied`, `locked`, `timed out`,
    `unreachable`, `over quota`, `failed`) that are safe to show to a model.
    """

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(
            message, for_model=f"The store could not answer ({reason}); try once more."
        )
        self.reason = reason


class PayloadDamaged(StoreError):
    """Stored bytes do not match their checksum, are cut short or gone. They are never returned.

    `missing` is True where there is no such object at all.
    """

    def __init__(self, message: str, *, missing: bool = False) -> None:
        self.missing = missing
        super().__init__(
            message,
            for_model="This part of the stored result is damaged and cannot be shown; "
            "read another part, or run the tool again.",
        )


class LegalHold(CallslipError):
    """What was to be deleted or closed is under a legal hold: nothing of it was done."""

    def __init__(self, message: str) -> None:
        super().__init__(message, for_model="This is kept for now and cannot be removed.")


class PatternError(CallslipError, ValueError):
    """A search pattern that RE2 does not take: look-around, a back-reference, or bad syntax."""


class FileError(CallslipError, ValueError):
    """What was asked of a scratch file cannot be done. `for_model` is the same as the message."""

    def __init__(self, message: str) -> None:
        super().__init__(message, for_model=message)


class FileStale(FileError):
    """The file was changed since the writer saw it. Nothing was written; `version` is what it is at
    now, 0 if it is not there."""

    def __init__(self, message: str, *, version: int) -> None:
        super().__init__(message)
        self.version = version


class UnknownFile(FileError):
    """No scratch file of that path in this session, or not in that version."""


class FactError(CallslipError):
    """A fact was not taken, or is not there."""


class FactRefused(FactError, ValueError):
    """A fact that must not be remembered; `what` says what it holds, never the text itself."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"not remembered: the text holds {what}",
            for_model=f"Not remembered: this holds {what}. Say it without that.",
        )
        self.what = what


class UnknownFact(FactError, LookupError):
    """No fact of that id is in this namespace: never told, forgotten, run out, or another's."""

    def __init__(self, id: str) -> None:
        super().__init__(
            f"no fact {id!r} in this namespace",
            for_model="No fact of that id is remembered here; recall tells the ids.",
        )


class QueryError(CallslipError, ValueError):
    """A query over records that is not taken: a field that is not there, values of another type,
    what SQL offers beyond conditions and totals, or more time or memory than a query may take.

    `for_model` is the same sentence as the message.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, for_model=message)


class RunGone(CallslipError, LookupError):
    """A run of a team or an agent was deleted, or its session was, while it was under way. What it
    had stored is deleted, too; nothing is left to continue."""

    def __init__(self, run: str) -> None:
        super().__init__(
            f"run {run!r} was deleted while it was under way: nothing of it is kept, and it cannot "
            "be continued"
        )


class NotRestorable(CallslipError):
    """A stored Python object needs a class that is not importable in this process."""


def in_words(error: OSError) -> str:
    """What the system refused, without its number: `Permission denied: /some/folder`."""
    parts = (error.strerror, error.filename) if error.strerror else (error,)
    return ": ".join(str(part) for part in parts if part)
