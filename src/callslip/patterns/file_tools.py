"""The scratchpad's tools: `write_file`, `read_file`, `edit_file`, `list_files`.

As the read-back tools: they never raise and never answer more than a page, and mend what a model
gets wrong where its meaning is plain.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from callslip.errors import CallslipError
from callslip.handle import Reply
from callslip.limits import PAGE_CAP_CHARS
from callslip.patterns import files
from callslip.patterns.scratchpad import NOTHING_SEEN, Scratchpad
from callslip.reading.page import whole
from callslip.stacks.ops import Flow
from callslip.tools import Tool
from callslip.window.inert import shown

__all__ = ["FileTool", "system_line", "tools_for"]

logger = logging.getLogger(__name__)

_FAILED = "This call failed for a reason of ours; try it once more, or go on without the file."
_SENTENCE_CHARS = 800
VERBS = ("write_file", "read_file", "edit_file", "list_files")


def system_line(pad: Scratchpad) -> str:
    """The one line about the scratchpad for a system prompt."""
    return (
        f"Keep your plan in {pad.plan_path}: write the goal and the steps with "
        f"{pad.prefix}write_file before you begin, and tick off and correct with "
        f"{pad.prefix}edit_file as you go. You are shown it again at the end of every request."
    )


class FileTool(Tool):
    """One tool over a `Scratchpad`. A `Tool`, and so never offloaded; `call` always answers.

    `version` is the version that its last write made, None if it wrote nothing: what an adapter
    keeps in an agent's state.
    """

    def __init__(self, verb: str, pad: Scratchpad, call: bytes = b"") -> None:
        self.name = pad.prefix + verb
        self.description, self._parameters = _described(verb)
        self.version: int | None = None
        self._file_verb = verb
        self._pad = pad
        self._call = call

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return deepcopy(self._parameters)

    def call(self, /, **arguments: Any) -> Reply:
        """Answer a model's call, in the caller's thread. Never raises on what is asked."""
        try:
            return self._reply(self._pad.session.store.run_flow(self._flow(arguments)))
        except Exception as error:  # noqa: BLE001 - a model gets a sentence, the log gets the error
            return self._failure(error)

    async def acall(self, /, **arguments: Any) -> Reply:
        """The same, off the event loop."""
        try:
            return self._reply(await self._pad.session.store.arun_flow(self._flow(arguments)))
        except Exception as error:  # noqa: BLE001 - a model gets a sentence, the log gets the error
            return self._failure(error)

    def _flow(self, given: Mapping[str, Any]) -> Flow[object]:
        pad, verb = self._pad, self._file_verb
        if verb == "list_files":
            return (yield from pad.listing(whole(given.get("after"), 0, 0)))
        path = next(
            (given[key] for key in ("path", "file_path", "file", "name") if key in given), ""
        )
        if verb == "read_file":
            start = whole(given.get("start", given.get("offset")), 1, 1)
            limit = whole(given.get("limit"), 0, 0) or None
            return (yield from pad.reading(path, start, limit, whole(given.get("column"), 0, 0)))
        version = whole(given.get("version"), 0, -1)
        expect = None if version < 0 else version
        if verb == "edit_file":
            old = given.get("old", given.get("old_string"))
            new = given.get("new", given.get("new_string"))
            every = str(given.get("all", given.get("replace_all"))).strip().lower() in {"true", "1"}
            note = yield from pad.editing(path, old, new, every, expect, self._call)
        else:
            content = _text(given.get("content"))
            if expect is None:
                expect = yield from pad.expected(path)
                if expect == NOTHING_SEEN:
                    return (
                        f"Nothing was written: {files.inside(files.path_of(path))} is there already "
                        f"and you have not seen it. See it with {pad.prefix}read_file("
                        f"{files.quoted(files.path_of(path))}), then write."
                    )
            note = yield from pad.writing(path, content, expect, self._call)
        self.version = note.version
        return note

    def _reply(self, found: object) -> Reply:
        reply = str(found)
        # Frames are bounded and pages leave them room; a list of hostile paths is cut.
        return Reply(reply if len(reply) <= PAGE_CAP_CHARS else reply[: PAGE_CAP_CHARS - 1] + "…")

    def _failure(self, error: Exception) -> Reply:
        if not isinstance(error, CallslipError):
            logger.error("%s failed", self.name, exc_info=error)
            return Reply(_FAILED)
        said = " ".join(shown(error.for_model).split())
        return Reply(said if len(said) <= _SENTENCE_CHARS else said[: _SENTENCE_CHARS - 1] + "…")


def tools_for(pad: Scratchpad, call: bytes = b"") -> list[FileTool]:
    """The four tools over a scratchpad. `call` is the identity of the one call they are made for,
    where a framework knows it: a replay of it is answered, not done again."""
    return [FileTool(verb, pad, call) for verb in VERBS]


def _text(given: object) -> str:
    """What a model means by a content: some write JSON where text belongs."""
    if isinstance(given, str):
        return given
    return "" if given is None else json.dumps(given, ensure_ascii=False, indent=1, default=str)


def _described(verb: str) -> tuple[str, dict[str, Any]]:
    path = {"path": {"type": "string"}}
    text = {"type": "string"}
    number = {"type": "integer"}
    if verb == "write_file":
        about = "Write a text file of your own, whole; it outlives this conversation's transcript."
        fields: dict[str, Any] = path | {"content": text}
        required = ["path", "content"]
    elif verb == "read_file":
        about = "Read lines of a file of your own. The reply ends with the call that reads on."
        fields = path | {
            "start": number | {"description": "first line, from 1"},
            "limit": number | {"description": "how many lines; leave out for a page"},
            "column": number | {"description": "characters to skip in a very long first line"},
        }
        required = ["path"]
    elif verb == "edit_file":
        about = "Replace a passage of a file of your own; the quickest way to tick off a step."
        fields = path | {
            "old": text
            | {"description": "the passage, exactly, with enough around it to be found"},
            "new": text,
            "all": {"type": "boolean", "description": "replace every one"},
        }
        required = ["path", "old", "new"]
    else:
        about = "List the files of your own, with their versions."
        fields, required = {"after": number | {"description": "files to skip"}}, []
    return about, {"type": "object", "properties": fields, "required": required}
