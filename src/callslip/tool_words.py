"""What the read-back tools are called, and what a model is told of them.

What may live here: words. Every character of a description is paid for on every request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

__all__ = ["VOCABULARIES", "Verb", "Vocabulary", "described"]

Verb = Literal["read", "search", "get", "query", "sql", "list"]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    read: str
    search: str
    get: str
    query: str
    sql: str
    list: str
    id: str
    start: str
    key: str
    inner: str
    """The argument that leads to another list in a document."""
    noun: str
    where: str

    @property
    def tools(self) -> frozenset[str]:
        """The names of the tools."""
        return frozenset(getattr(self, verb) for verb in get_args(Verb))

    def worded(self, reply: str) -> str:
        """A reply with its calls in these words. Replies are made in those of "results".

        Only what stands outside of stored text is ours to change: behind the closing tag.
        """
        if self.read == "read_result":
            return reply
        at = max(reply.rfind(f"</{tag}>\n") for tag in ("page", "hits", "rows"))
        head, own = reply[: max(at, 0)], reply[max(at, 0) :]
        own = re.sub(r'\bread_result\(("[^"]*"), start=', rf"{self.read}(\1, {self.start}=", own)
        own = re.sub(r'\bread_result(?=\(")', self.read, own)
        own = re.sub(r'\bsearch_result(?=\(")', self.search, own)
        # There a bare number is an id first: a record's number is written with its mark.
        own = re.sub(r'\bget_record\(("[^"]*"), (\d+)', rf'{self.get}(\1, "#\2"', own)
        own = re.sub(r"\bget_record\b", self.get, own)
        own = re.sub(r'(\bquery_result\("[^\n]*), path=(?=")', rf"\1, {self.inner}=", own)
        own = re.sub(r"\bquery_result(?=\()", self.query, own)
        own = re.sub(r"\bquery_results(?=\()", self.sql, own)
        return head + re.sub(r"\blist_results(?=\()", self.list, own)


VOCABULARIES = {
    "results": Vocabulary(
        read="read_result",
        search="search_result",
        get="get_record",
        query="query_result",
        sql="query_results",
        list="list_results",
        id="result_id",
        start="start",
        key="key",
        inner="path",
        noun="result",
        where="its id",
    ),
    "files": Vocabulary(
        read="read_slice",
        search="grep_file",
        get="get_by_id",
        query="query_file",
        sql="query_files",
        list="list_files",
        id="path",
        start="offset",
        key="id",
        inner="inside",
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

    def text(description: str = "") -> dict[str, Any]:
        return {"type": "string"} | ({"description": description} if description else {})

    if verb == "read":
        about = f"Read lines of a stored {noun}. The reply ends with the call that reads on."
        fields = id | {
            words.start: number("first line, from 1"),
            "limit": number("how many lines; leave out for a page"),
            "column": number("characters to skip in a very long first line"),
        }
        required = [words.id]
    elif verb == "search":
        about = (
            f"Find a word or a regular expression in a stored {noun}: how many matches there are "
            "in all, and the first few with their lines. The quickest way to one fact."
        )
        fields = id | {
            "pattern": text("RE2; ^ and $ are line ends"),
            "context": number("lines around each match"),
            "after": number("matches to skip"),
            "limit": number("matches to show; 0 only counts"),
            "ignore_case": {"type": "boolean"},
        }
        required = [words.id, "pattern"]
    elif verb == "get":
        about = f"Get one record of a stored {noun}, or one value of a JSON document."
        fields = id | {
            words.key: text("record number, the value of its id or name, or a path like a.b[0]"),
            "field": text("a path inside the record"),
            "start": number("first line of a long text"),
            "column": number("characters to skip in that line"),
        }
        required = [words.id, words.key]
    elif verb == "query":
        about = (
            f"Ask a stored {noun} of records (JSON, CSV): how many match in all, and the first "
            "few. Also totals and groups."
        )
        fields = id | {
            "where": text("SQL condition: status = 'failed' and amount > 100; a.b goes inside"),
            "fields": text("names, count(*), sum(x) as y"),
            "order_by": text("amount desc"),
            "group_by": text("field; fields then count(*)"),
            "limit": number("records to show; 0 only counts"),
            "after": number("records to skip"),
            words.inner: text("another list in a document: data.items"),
            "save_as": text(f"keep all of it as a new {noun}"),
        }
        required = [words.id]
    elif verb == "sql":
        about = f"One SQL select over several stored {noun}s, each by its id as a table."
        fields = {
            "sql": text("select a.x, b.y from res_1 a join res_2.items b on a.id = b.id"),
            "after": number("rows to skip"),
            "save_as": text(),
        }
        required = ["sql"]
    else:
        about = f"List the {noun}s stored in this conversation, and the call that made each."
        fields = {"after": number(f"{noun}s to skip")}
        required = []
    return about, {"type": "object", "properties": fields, "required": required}
