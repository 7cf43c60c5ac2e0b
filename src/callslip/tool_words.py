"""What the read-back tools are called, and what a model is told of them.

What may live here: words. Every character of a description is paid for on every request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["VOCABULARIES", "Verb", "Vocabulary", "described"]

Verb = Literal["read", "search", "get", "list"]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    read: str
    search: str
    get: str
    list: str
    id: str
    start: str
    noun: str
    where: str

    def worded(self, reply: str) -> str:
        """A reply with its calls in these words. Replies are made in those of "results".

        Only what stands outside of stored text is ours to change: behind the closing tag.
        """
        if self.read == "read_result":
            return reply
        at = max(reply.rfind(f"</{tag}>\n") for tag in ("page", "hits"))
        head, own = reply[: max(at, 0)], reply[max(at, 0) :]
        own = re.sub(r'\bread_result\(("[^"]*"), start=', rf"{self.read}(\1, {self.start}=", own)
        own = re.sub(r'\bread_result(?=\(")', self.read, own)
        own = re.sub(r'\bsearch_result(?=\(")', self.search, own)
        own = re.sub(r"\bget_record\b", self.get, own)
        return head + re.sub(r"\blist_results(?=\()", self.list, own)


VOCABULARIES = {
    "results": Vocabulary(
        read="read_result",
        search="search_result",
        get="get_record",
        list="list_results",
        id="result_id",
        start="start",
        noun="result",
        where="its id",
    ),
    "files": Vocabulary(
        read="read_slice",
        search="grep_file",
        get="get_by_id",
        list="list_files",
        id="path",
        start="offset",
        noun="file",
        where="its id, as shown with it",
    ),
}


def described(verb: Verb, words: Vocabulary) -> tuple[str, dict[str, Any]]:
    """What a model is told of a tool. Every character of it is paid for on every request."""
    noun = words.noun
    id = {words.id: {"type": "string", "description": words.where}}

    def number(description: str) -> dict[str, Any]:
        return {"type": "integer", "description": description}

    if verb == "read":
        about = f"Read lines of a stored {noun}. The reply ends with the call that reads on."
        fields = id | {
            words.start: number("first line, from 1"),
            "limit": number("how many lines; leave out for a page"),
            "column": number("characters to skip in the first line, if it is very long"),
        }
        required = [words.id]
    elif verb == "search":
        about = (
            f"Find a word or a regular expression in a stored {noun}: how many matches there are "
            "in all, and the first few with their lines. The quickest way to one fact."
        )
        fields = id | {
            "pattern": {"type": "string", "description": "RE2; ^ and $ are line ends"},
            "context": number("lines around each match"),
            "after": number("matches to skip"),
            "limit": number("matches to show; 0 only counts"),
            "ignore_case": {"type": "boolean"},
        }
        required = [words.id, "pattern"]
    elif verb == "get":
        about = f"Get one record of a stored {noun}, or one value of a JSON document."
        fields = id | {
            "key": {
                "type": "string",
                "description": "record number, the value of its id or name, or a path like a.b[0]",
            },
            "field": {"type": "string", "description": "a path inside the record"},
            "start": number("first line, where the value is a long text"),
            "column": number("characters to skip in that line"),
        }
        required = [words.id, "key"]
    else:
        about = f"List the {noun}s stored in this conversation, and the call that made each."
        fields = {"after": number(f"{noun}s to skip")}
        required = []
    return about, {"type": "object", "properties": fields, "required": required}
