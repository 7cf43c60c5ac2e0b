"""Twenty questions over the corpus, asked by an agent that follows a script and sees what a model sees.

Each is answered in at most two calls, none of whose replies is longer than 3,000 characters, and the
answer is read off the last reply. What is right is computed from the files, without callslip.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import mean
from typing import Any

import pytest

from callslip import ResultStore, Session
from callslip.testing.model import Answer, Call, Message, ScriptedModel, run_agent
from tests.corpus import FOLDER, needs_corpus

CALLS = 2
CHARS = 3_000


def rows_of(reply: str) -> list[dict[str, Any]]:
    """The records of a reply, as somebody who reads it would take them."""
    inside = reply.partition(">\n")[2].rpartition("\n</")[0]
    lines = [re.sub(r"^#\d+ ", "", line) for line in inside.split("\n")]
    return [json.loads(line) for line in lines]


def first(*names: str) -> Callable[[str], Any]:
    """The first record's values, or its one value."""

    def read(reply: str) -> Any:
        row = rows_of(reply)[0]
        values = [row[name] for name in names] if names else list(row.values())
        return values[0] if len(values) == 1 else values

    return read


def count(reply: str) -> int:
    """The number that a reply begins with."""
    match = re.match(r"([\d,]+) of the [\d,]+ records", reply)
    assert match, reply
    return int(match[1].replace(",", ""))


def value(reply: str) -> str:
    """What a reply of `get_record` holds."""
    return reply.partition(">\n")[2].rpartition("\n</page>")[0]


def table(name: str) -> list[dict[str, str]]:
    text = (FOLDER / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t" if name.endswith("tsv") else ","))


def data(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def movies() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = data("json/vega_movies.json")
    return found


AIRPORTS, ZIPS = "csv/vega_airports.csv", "sql/zipcodes_5000.sqlite.json"
MOVIES, RUFF = "json/vega_movies.json", "json/ruff_click.json"
PENGUINS, GMAIL = "csv/palmer_penguins-raw.csv", "json/google_discovery_gmail.v1.json"
GRAPH, LOCK = "mcp/memory.read_graph.wire.json", "json/package_lock.json"


@dataclass(frozen=True)
class Question:
    """What is asked, of which files, by which calls. `{0}` is the id of the first file's result,
    `{last}` the id that was shown last."""

    text: str
    files: tuple[str, ...]
    calls: tuple[tuple[str, Mapping[str, Any]], ...]
    read: Callable[[str], Any]
    right: Callable[[], Any]


def ask(where: str = "", **more: Any) -> tuple[str, Mapping[str, Any]]:
    return "query_result", {"result_id": "{0}", **({"where": where} if where else {}), **more}


def select(sql: str) -> tuple[str, Mapping[str, Any]]:
    return "query_results", {"sql": sql}


def get(key: str, **more: Any) -> tuple[str, Mapping[str, Any]]:
    return "get_record", {"result_id": "{0}", "key": key, **more}


def heaviest_gentoo() -> str:
    rows = [row for row in table(PENGUINS) if row["Species"].startswith("Gentoo")]
    rows = [row for row in rows if row["Body Mass (g)"] not in ("", "NA")]
    return max(rows, key=lambda row: float(row["Body Mass (g)"]))["Individual ID"]


def airports_of_places_with_a_zip() -> int:
    places = {(row["city"], row["state"]) for row in data(ZIPS)}
    return sum((row["city"], row["state"]) in places for row in table(AIRPORTS))


def zips_of_new_york_airports() -> list[Any]:
    cities = {row["city"] for row in table(AIRPORTS) if row["state"] == "NY"}
    held = Counter(
        row["city"] for row in data(ZIPS) if row["state"] == "NY" and row["city"] in cities
    )
    return list(max(held.items(), key=lambda item: item[1]))


def most_named() -> list[Any]:
    relations = data(GRAPH)["result"]["structuredContent"]["relations"]
    return list(Counter(relation["to"] for relation in relations).most_common(1)[0])


QUESTIONS = [
    Question(
        "How many films have no rating?",
        (MOVIES,),
        (ask('"MPAA Rating" is null', limit=0),),
        count,
        lambda: sum(row["MPAA Rating"] is None for row in movies()),
    ),
    Question(
        "Which film grossed the most worldwide?",
        (MOVIES,),
        (ask(fields="Title", order_by='"Worldwide Gross" desc', limit=1),),
        first("Title"),
        lambda: max(movies(), key=lambda row: row["Worldwide Gross"] or 0)["Title"],
    ),
    Question(
        "What do Spielberg's films score on average?",
        (MOVIES,),
        (ask("Director = 'Steven Spielberg'", fields='round(avg("IMDB Rating"), 4) as score'),),
        first("score"),
        lambda: round(
            mean(
                row["IMDB Rating"]
                for row in movies()
                if row["Director"] == "Steven Spielberg" and row["IMDB Rating"] is not None
            ),
            4,
        ),
    ),
    Question(
        "Which genre has the most films, and how many?",
        (MOVIES,),
        (ask('"Major Genre" is not null', fields='"Major Genre", count(*) as n',
             group_by='"Major Genre"', limit=1),),
        first(),
        lambda: list(
            max(
                Counter(row["Major Genre"] for row in movies() if row["Major Genre"]).items(),
                key=lambda item: item[1],
            )
        ),
    ),
    Question(
        "How many directors are there?",
        (MOVIES,),
        (ask(fields="count(distinct Director) as n"),),
        first("n"),
        lambda: len({row["Director"] for row in movies() if row["Director"] is not None}),
    ),
    Question(
        "How many airports are in Texas?",
        (AIRPORTS,),
        (ask("state = 'TX'", limit=0),),
        count,
        lambda: sum(row["state"] == "TX" for row in table(AIRPORTS)),
    ),
    Question(
        "Which airport is the northernmost?",
        (AIRPORTS,),
        (ask(order_by="latitude desc", fields="iata", limit=1),),
        first("iata"),
        lambda: max(table(AIRPORTS), key=lambda row: float(row["latitude"]))["iata"],
    ),
    Question(
        "How many airports are in a place that has a zip code?",
        (AIRPORTS, ZIPS),
        (select(
            "select count(distinct a.iata) as n from {0} a join {1} z "
            "on a.city = z.city and a.state = z.state"
        ),),
        first("n"),
        airports_of_places_with_a_zip,
    ),
    Question(
        "Which place in New York with an airport has the most zip codes?",
        (AIRPORTS, ZIPS),
        (
            ask("state = 'NY'", fields="city", group_by="city", save_as="cities in NY"),
            select(
                "select z.city, count(*) as n from {1} z join {last} c on z.city = c.city "
                "where z.state = 'NY' group by z.city order by n desc limit 1"
            ),
        ),
        first("city", "n"),
        zips_of_new_york_airports,
    ),
    Question(
        "Which Gentoo penguin is the heaviest?",
        (PENGUINS,),
        (ask(
            "Species like 'Gentoo%' and \"Body Mass (g)\" > 6200",
            fields='"Individual ID", "Body Mass (g)"',
        ),),
        lambda reply: max(rows_of(reply), key=lambda row: float(row["Body Mass (g)"]))[
            "Individual ID"
        ],
        heaviest_gentoo,
    ),
    Question(
        "Which county has the highest unemployment?",
        ("csv/vega_unemployment.tsv",),
        (ask(order_by="rate desc", limit=1),),
        lambda reply: int(rows_of(reply)[0]["id"]),
        lambda: int(max(table("csv/vega_unemployment.tsv"), key=lambda row: float(row["rate"]))["id"]),
    ),
    Question(
        "How many subdivisions has Germany?",
        ("json/iso_3166-2.json",),
        (ask("code like 'DE-%'", limit=0),),
        count,
        lambda: sum(row["code"][:3] == "DE-" for row in data("json/iso_3166-2.json")["3166-2"]),
    ),
    Question(
        "What is the language with the code sna?",
        ("json/iso_639-3.json",),
        (get("alpha_3=sna", field="name"),),
        value,
        lambda: next(r["name"] for r in data("json/iso_639-3.json")["639-3"] if r["alpha_3"] == "sna"),
    ),
    Question(
        "Which file has the most findings?",
        (RUFF,),
        (ask(fields="filename, count(*) as n", group_by="filename", limit=1),),
        first("filename", "n"),
        lambda: list(Counter(row["filename"] for row in data(RUFF)).most_common(1)[0]),
    ),
    Question(
        "How many findings below line 1,000 can be fixed?",
        (RUFF,),
        (ask("location.row > 1000 and fix is not null", limit=0),),
        count,
        lambda: sum(row["location"]["row"] > 1000 and row["fix"] is not None for row in data(RUFF)),
    ),
    Question(
        "What is the largest id, to the last digit?",
        ("json/sqlite_int64_ids.json",),
        (ask(fields="max(id64) as id"),),
        first("id"),
        lambda: max(row["id64"] for row in data("json/sqlite_int64_ids.json")),
    ),
    Question(
        "By which HTTP method is a message sent?",
        (GMAIL,),
        (get("resources.users.resources.messages.methods.send.httpMethod"),),
        value,
        lambda: data(GMAIL)["resources"]["users"]["resources"]["messages"]["methods"]["send"][
            "httpMethod"
        ],
    ),
    Question(
        "Which version of zod is locked?",
        (LOCK,),
        (get('packages["node_modules/zod"].version'),),
        value,
        lambda: data(LOCK)["packages"]["node_modules/zod"]["version"],
    ),
    Question(
        "Which entity of the graph do the most others point to?",
        (GRAPH,),
        (ask(path="result.structuredContent.relations", fields='"to", count(*) as n',
             group_by='"to"', limit=1),),
        first("to", "n"),
        most_named,
    ),
    Question(
        "Which class depends on the most others?",
        ("json/vega_flare-dependencies.json",),
        (ask(fields="source, count(*) as n", group_by="source", limit=1),),
        first("source", "n"),
        lambda: list(
            Counter(r["source"] for r in data("json/vega_flare-dependencies.json")).most_common(1)[0]
        ),
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    store = ResultStore(tmp_path_factory.mktemp("questions"))
    yield store.session("s")
    store.close()


def filled(given: Mapping[str, Any], seen: Any) -> dict[str, Any]:
    """The arguments, with the ids that the conversation shows."""
    shown = [re.findall(r"res_[0-9a-f]{10,40}", message.text)[:1] for message in seen]
    ids = [found[0] for found in shown if found]
    return {
        name: text.format(*ids, last=ids[-1]) if isinstance(text, str) and "{" in text else text
        for name, text in given.items()
    }


@needs_corpus
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
def test_an_agent_answers_in_two_calls_and_few_characters(
    question: Question, session: Session
) -> None:
    def fetch(name: str) -> str:
        """A file, as a tool returns it."""
        return (FOLDER / name).read_text(encoding="utf-8")

    def step(tool: str, given: Mapping[str, Any]) -> Call:
        return Call(tool, lambda seen: filled(given, seen))

    script = [
        *(Call("fetch", name=name) for name in question.files),
        *(step(tool, given) for tool, given in question.calls),
        Answer(lambda seen: json.dumps(question.read(seen[-1].text))),
    ]
    run = run_agent(
        ScriptedModel(script), [session.offloaded(fetch), *session.tools()], question.text
    )
    replies: list[Message] = [m for m in run.requests[-1].messages if m.role == "tool"]
    asked = replies[len(question.files) :]
    assert all(reply.text.startswith("<result id=") for reply in replies[: len(question.files)])
    assert len(asked) <= CALLS
    assert max(len(reply.text) for reply in asked) <= CHARS
    assert json.loads(run.answer) == question.right()


def test_there_are_twenty_of_them() -> None:
    assert len({question.text for question in QUESTIONS}) == 20
