"""Nothing that a model writes reaches a file, a setting, another table, or much time or memory."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from callslip.errors import QueryError
from callslip.limits import QUERY_CHARS
from callslip.reading.query import Select, Tables, query, select
from tests.reading.query.listed_records import ask, listed, matching, run

ROWS = [
    {"id": n, "name": f"n{n}", "tags": ["a"], "price": n / 2, "o": {"k": n}, "ok": n % 2 == 0}
    for n in range(20)
]

ESCAPES = [
    # other statements
    "1=1; drop table t0",
    "1=1; attach 'x.db'",
    "id = 1; select * from duckdb_settings()",
    "; copy t0 to '/tmp/x'",
    # sub-selects, other tables
    "id in (select 1)",
    "exists (select 1)",
    "id = (select count(*) from duckdb_tables())",
    "id = (from range(10))",
    "id > all (select 1)",
    "id in (from t1)",
    "true union select 1",
    "1=1) or (select 1 from information_schema.tables) = (1",
    # files and URLs
    "read_text('/etc/passwd') is not null",
    "id in (select content from read_text('/etc/passwd'))",
    "read_blob('/etc/passwd') = name",
    "glob('/*') is not null",
    "read_csv('http://example.org/x') = 1",
    "id in (select 1 from '/etc/passwd')",
    "parquet_scan('x') = 1",
    "sniff_csv('/etc/passwd') = 1",
    # settings, the environment, the engine itself
    "getenv('HOME') = 'x'",
    "current_setting('secret_directory') = 'x'",
    "getvariable('x') = 1",
    "current_user = 'x'",
    "current_database() = 'memory'",
    "version() = 'x'",
    "pg_sleep(10)",
    "now() > date '2020-01-01'",
    "current_date = '2020-01-01'",
    "random() < 0.5",
    "uuid() = 'x'",
    "nextval('s') = 1",
    "txid_current() = 1",
    "add_parquet_key('k', 'x')",
    "load_aws_credentials()",
    "enable_logging()",
    "write_log('x')",
    "pragma_table_info('t0') = 1",
    "query('select 1') = 1",
    "query_table('t0') = 1",
    "duckdb_secrets() is null",
    "in_search_path('a', 'b')",
    "checkpoint()",
    "error('x')",
    # much of something
    "repeat('x', 2000000000) = name",
    "repeat(name, 2000000000) = 'x'",
    "length(rpad('x', 2000000000, 'y')) > 1",
    "lpad(name, 2000000000, 'y') = 'x'",
    "len(range(1000000000)) > 1",
    "len(generate_series(1, 1000000000)) > 1",
    "list_contains(range(1000000000), id)",
    "replace(name, 'n', 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn') = 'x'",
    "regexp_replace(name, '', 'xxxxxxxxxxxxxxxxxxxxxxxxx', 'g') = 'x'",
    "array_to_string(list_value(name, name), name) = 'x'",
    "string_split(name, '') = 'x'",
    "format('{:1000000000}', id) = 'x'",
    "printf('%1000000000d', id) = 'x'",
    "bar(id, 0, 1, 1000000000) = 'x'",
    "factorial(100000) > 1",
    "2 ** 1000000000 > id",
    "pow(id, 1000000) > 1",
    "bitstring('1', 2000000000) = 'x'",
    "list_resize(tags, 1000000000) is null",
    "list_transform(tags, x -> repeat(x, 1000000)) is null",
    "len([x for x in range(1000000000)]) > 1",
    "list_reduce(tags, (x, y) -> x || y) = 'x'",
    "to_base(id, 2, 1000000000) = 'x'",
    "name ~ '(a{50}){50}(b{50}){50}'",
    "name ~ '((((a{30}){30}){30}){30})'",
    "regexp_matches(name, repeat('a', 100000))",
    "name ~ name",
    "name like name",
    "name similar to '%x%'",
    "name like '____________________________%'",
    # windows, totals, other kinds of expression
    "row_number() over () = 1",
    "sum(id) > 1",
    "count(*) > 1",
    "string_agg(name, '') = 'x'",
    "list(name) is null",
    "columns('.*') is null",
    "columns(*) = 1",
    "unnest(tags) = 'a'",
    "struct_pack(a := 1) is null",
    "{'a': 1} is null",
    "[1, 2] = tags",
    "map {'a': 1} is null",
    "name::blob is null",
    "name::json is null",
    "name::int[] is null",
    "cast(name as struct(a int)) is null",
    "name collate nocase = 'N1'",
    "interval '1000000 years' is null",
    "$1 = 1",
    "? = 1",
    ":name = 1",
    "t0.n = 1",
    "rowid = 1",
    "name = e'\\x00'",
    "name = $$x$$",
    "try(error('x')) is null",
    "if(true, (select 1), 2) = 1",
    "case when (select 1) = 1 then true end",
    "coalesce((select 1), 2) = 1",
    "name is json",
    "id between (select 1) and 2",
    "cast((select 1) as int) = 1",
    "not exists (from t0)",
]

NESTED = [
    "(" * 100 + "id=1" + ")" * 100,
    "(" * 900 + "id=1" + ")" * 900,
    "not " * 490 + "ok",
    "- " * 900 + "id = 1",
    "-" * 900 + "id = 1",
    "case when ok then " * 90 + "1" + " end" * 90 + " = 1",
    "coalesce(" * 200 + "id" + ")" * 200 + " = 1",
    "[" * 500 + "]" * 500 + " = id",
    "{'a':" * 300 + "1" + "}" * 300 + " = 1",
    "'" * 1999,
    '"' * 1999,
    "id = 1 -- " + "x" * 3000,
    "/*" * 900,
    "id.id" + ".id" * 600 + " = 1",
    "name" + "[0]" * 600 + " = 1",
    "name" + "->'a'" * 390 + " = 1",
    "cast(" * 150 + "id" + " as bigint)" * 150 + " = 1",
    "id" + "::int" * 390 + " = 1",
    "lower(" * 300 + "name" + ")" * 300 + " = 'x'",
    "\x00" * 1000,
    "\ud800 = 1",
    "id =",
    "= 1",
    "'",
    "id = 1 order by id",
    "x" * (QUERY_CHARS + 1),
    "",
    "   ;  ",
]


@pytest.mark.parametrize("where", ESCAPES)
def test_an_escape_is_refused_with_one_sentence(where: str) -> None:
    with pytest.raises(QueryError) as raised:
        ask(listed(*ROWS), where)
    _is_a_sentence(raised.value, where)


@pytest.mark.parametrize("where", NESTED, ids=range(len(NESTED)))
def test_no_text_is_too_deep_or_too_odd_to_be_answered(where: str) -> None:
    try:
        assert ask(listed(*ROWS), where).total >= 0
    except QueryError as error:
        _is_a_sentence(error, where)


def _is_a_sentence(error: QueryError, given: str = "") -> None:
    said = error.for_model
    assert said == str(error)
    assert 0 < len(said) < 400
    assert "\n" not in said
    for word in ("duckdb", "sqlglot", "t0", "SELECT", "Traceback", "c0"):
        assert word in given or word not in said, said


@pytest.mark.parametrize("argument", ["fields", "group_by", "order_by"])
@pytest.mark.parametrize(
    "text",
    [
        "repeat(name, 1000000000)", "id from duckdb_settings()", "1; drop table t0",
        "(select 1)", "read_text('/etc/passwd')", "id into x", "columns('.*')", "id limit 1",
        "row_number() over ()", "unnest(tags)", "list(name)", "string_agg(name, '')",
        "histogram(id)", "name order by (select 1)", "id union select 1", "getenv('HOME')",
        "rpad(name, 1000000000, 'x')", "(" * 300 + "id" + ")" * 300, "a" * 3000,
    ],
)  # fmt: skip
def test_the_other_arguments_are_no_way_out_either(argument: str, text: str) -> None:
    with pytest.raises(QueryError) as raised:
        ask(listed(*ROWS), **{argument: text})
    _is_a_sentence(raised.value)


SELECTS = [
    "drop table res_1", "insert into res_1 values (1)", "update res_1 set id = 1",
    "delete from res_1", "create table x as select 1", "attach 'x.db'", "copy res_1 to 'x'",
    "set threads = 8", "pragma version", "install httpfs", "load httpfs", "call pragma_version()",
    "explain select 1", "describe res_1", "show tables", "select 1", "select 1; select 2",
    "select * from 'x.csv'", "select * from read_csv('x')", "select * from range(10)",
    "select * from duckdb_settings()", "select * from (select 1)",
    "with x as (select 1) select * from x", "select * from res_1 union select 1",
    "select * from (values (1))", "select 1 into x from res_1",
    "select * from res_1 tablesample 10%", "select distinct on (id) id from res_1",
    "select * from res_1 natural join res_1 b", "select * from res_1 a asof join res_1 b on true",
    "select * from res_1 a positional join res_1 b", "select * from res_1 group by all",
    "select id from res_1 group by rollup(id)", "select * from res_1 limit (select 1)",
    "select * from res_1 for update", "select id, row_number() over () from res_1",
    "select * from res_1 qualify true", "select unnest(tags) from res_1",
    "select * exclude (id) from res_1", "select * replace (1 as id) from res_1",
    "select (select 1) from res_1", "select repeat(name, 1000000000) from res_1",
    "from res_1 select list(id)", "select * from res_1, lateral (select 1)",
    "select columns(*) from res_1", "select $1 from res_1", "select id from res_1 where id in (select 1)",
    "with recursive x as (select 1 union all select 1 from x) select * from x",
    "select * from res_1 a join res_1 a on true", "select * from res_1 order by (select 1)",
    "select id from res_1 group by 99", "select id from res_1 order by 99", "select * from",
    "select 1 from res_1 pivot (sum(id) for ok in (true))", "summarize res_1", "use x",
    "export database 'x'", "checkpoint", "vacuum", "begin", "prepare x as select 1", "",
]  # fmt: skip


@pytest.mark.parametrize("sql", SELECTS)
def test_only_one_plain_select_over_results_is_taken(sql: str) -> None:
    with pytest.raises(QueryError) as raised:
        asked = Select.of(sql)
        assert all(table.id == "res_1" for table in asked.tables) or _refuse(asked)
        run(select(asked, [listed(*ROWS) for _ in asked.tables], Tables(), sql))
    _is_a_sentence(raised.value)


def _refuse(asked: Select) -> bool:
    """What a session does with a table that is no result of its own."""
    raise QueryError(f"No result {asked.tables[0].id!r:.40} is here.")


def test_what_is_taken_still_works_after_all_that_was_refused() -> None:
    source = listed(*ROWS)
    for where in ESCAPES[:20]:
        with pytest.raises(QueryError):
            ask(source, where)
    assert matching(source, "id < 3 and ok") == [1, 3]


def test_a_field_named_like_something_of_ours_is_only_a_field() -> None:
    source = listed({"n": 5, "t0": 1, "c0": "x", "rowid": 3, "o0": True, "count": 7})
    for where in ("n = 5", "t0 = 1", "c0 = 'x'", "rowid = 3", "o0", '"count" = 7'):
        assert matching(source, where) == [1], where


def test_the_engine_itself_is_locked_down() -> None:
    """Should a text ever reach it, it still reaches nothing."""
    import duckdb

    from callslip.reading.query import engine

    for sql in (
        "select * from read_text('/etc/passwd')",
        "select * from '/etc/passwd'",
        "attach '/tmp/callslip-escape.db'",
        "copy (select 1) to '/tmp/callslip-escape.csv'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set memory_limit = '100GB'",
        "create secret (type s3)",
    ):
        connection = engine._connection()
        with pytest.raises(duckdb.Error):
            connection.execute(sql)
        connection.close()
    assert not list(Path("/tmp").glob("callslip-escape*"))


def test_python_variables_are_no_tables() -> None:
    import duckdb

    from callslip.reading.query import engine

    secret = listed(*ROWS)
    assert secret is not None
    connection = engine._connection()
    with pytest.raises(duckdb.Error):
        connection.execute("select * from secret")
    connection.close()


RUNAWAY = "select count(*) from res_1 a, res_1 b, res_1 c, res_1 d where a.name < b.name"


def test_a_runaway_query_ends_in_time_with_one_sentence() -> None:
    source = listed(*({"id": n, "name": f"n{n}"} for n in range(3000)))
    asked = Select.of(RUNAWAY)
    with pytest.raises(QueryError, match="took more than 0.2 seconds"):
        run(select(asked, [source] * 4, Tables(), RUNAWAY, seconds=0.2))
    assert ask(source, "id = 1").total == 1, "the next query is not interrupted"


def test_the_event_loop_ticks_while_a_query_runs_away() -> None:
    source = listed(*({"id": n, "name": f"n{n}"} for n in range(3000)))
    asked = Select.of(RUNAWAY)

    def runaway() -> None:
        with pytest.raises(QueryError, match="seconds"):
            run(select(asked, [source] * 4, Tables(), RUNAWAY, seconds=0.5))

    async def both() -> int:
        task = asyncio.create_task(asyncio.to_thread(runaway))
        ticks = 0
        while not task.done():
            await asyncio.sleep(0.005)
            ticks += 1
        await task
        return ticks

    # A loop that stood still would tick once or twice.
    assert asyncio.run(both()) >= 10


BOMBS = [
    "ask(source, group_by='text')",
    "ask(source, order_by='text desc')",
    "ask(source, fields='count(distinct text), min(text), max(text), median(id)')",
    "ask(source, ' || '.join(['text'] * 60) + \" = 'x'\")",
    "ask(source, 'lower(upper(lower(upper(lower(text))))) like \\'%zzz%\\'')",
    "ask(source, ' or '.join(f\"upper(text) = 'x{n}'\" for n in range(80)))",
    "ask(source, \"text ilike '%a%a%a%a%a%a%a%a%a%a%b'\")",
    "ask(source, \"text like '%x_x_x_x_x_x_x_x%x_x_x_x%zz'\")",
    "ask(source, \"text ~ '(x+x+)+y'\")",
    "ask(source, \"text ~ '.*.*.*.*.*.*.*.*z'\")",
    "ask(source, 'replace(replace(text, \\'x\\', \\'y\\'), \\'y\\', \\'z\\') = \\'q\\'')",
    'ask(source, group_by="text || text || text || text")',
    "many('select a.text, b.text from res_1 a, res_1 b order by a.text, b.text')",
    "many('select distinct a.text || b.text as x from res_1 a, res_1 b')",
    "many('select a.text from res_1 a join res_1 b on a.text <= b.text group by a.text')",
    "many('select count(distinct a.text || b.text) from res_1 a, res_1 b')",
    "ask(source, ' or '.join(f'id = {n}' for n in range(150)))",
    "ask(source, 'text in (' + ','.join(f\"'{n}'\" for n in range(280)) + ')')",
]


def test_no_query_takes_a_gigabyte_of_memory() -> None:
    """In a child of its own, over records with 24 MB of text, some of it in one record."""
    program = f"""
        import json, resource, sys
        sys.path[:0] = {[str(Path(__file__).parents[3])]!r}
        from tests.reading.query.listed_records import ask, listed, run
        from callslip.errors import QueryError
        from callslip.reading.query import Select, Tables, select

        rows = [{{"id": n, "text": ("x%dxa" % n) * 300}} for n in range(8000)]
        rows += [{{"id": -1, "text": "xa" * 2_000_000}}, {{"id": -2, "text": "a" * 3_000_000}}]
        source = listed(*rows)

        def many(sql):
            asked = Select.of(sql)
            return run(select(asked, [source for _ in asked.tables], Tables(), sql))

        ended = []
        for bomb in {BOMBS!r}:
            try:
                eval(bomb)
                ended.append("answered")
            except QueryError as error:
                ended.append(str(error))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps([peak, ended]))
    """
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr[-2000:]
    peak, ended = json.loads(child.stdout)
    assert len(ended) == len(BOMBS)
    assert peak < 1_000_000, f"{peak:,} KB at the most; {list(zip(BOMBS, ended, strict=True))}"


def test_what_is_too_large_to_be_held_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from callslip.reading.query import table

    monkeypatch.setattr(table, "COLUMNS_CACHED_BYTES", 10_000)
    with pytest.raises(QueryError, match="too large to be queried"):
        run(query(listed(*({"t": "x" * 100} for _ in range(200))), "res_1", Tables(), "t = 'y'"))


def test_many_threads_may_ask_at_once() -> None:
    from concurrent.futures import ThreadPoolExecutor

    tables = Tables()
    source = listed(*({"id": n, "k": n % 7, "name": f"n{n}"} for n in range(3000)))

    def one(k: int) -> int:
        answer = run(query(source, "res_abc12345", tables, f"k = {k} and name like 'n%'"))
        return answer.total

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(one, [n % 7 for n in range(56)]))
    assert found == [sum(1 for n in range(3000) if n % 7 == k % 7) for k in range(56)]


def test_a_forked_process_may_ask_too() -> None:
    """The parent's engine has no threads there; the child opens one of its own."""
    program = """
        import os, sys, warnings
        from tests.reading.query.listed_records import ask, listed
        warnings.simplefilter("ignore")
        source = listed(*({"id": n} for n in range(100)))
        assert ask(source, "id > 90").total == 9
        child = os.fork()
        if child == 0:
            os._exit(0 if ask(source, "id > 80").total == 19 else 3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert ask(source, "id > 70").total == 29
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("package", ["duckdb", "sqlglot"])
def test_a_missing_package_is_named_in_one_sentence(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from callslip.reading.query import engine

    monkeypatch.setattr(engine, "_idle", [])
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(QueryError, match=f"Queries need the package {package}: pip install"):
        ask(listed(*ROWS), "id = 1")


def test_no_engine_is_loaded_until_somebody_asks() -> None:
    program = "import sys, callslip.reading.query; print('duckdb' in sys.modules, 'sqlglot' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]
