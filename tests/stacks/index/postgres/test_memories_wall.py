"""Memory behind row-level security, and what goes with a namespace: nothing of anybody else."""

from __future__ import annotations

import pytest

from callslip.stacks.index.postgres import PostgresIndex
from callslip.stacks.memoryops import AddVectors, ForgetFacts, KnowModel, ListFacts, Which
from callslip.testing.index_finding import NOW, found, listed, remember
from tests.stacks.index.postgres.conftest import Opens

BY_NAME = ("memory_spaces", "memories", "memory_past", "memory_vectors")
BY_NUMBER = ("memory_terms", "memory_forms", "memory_found")


def fill(index: PostgresIndex) -> None:
    for tenant in ("a", "b"):
        remember(index, f"zebra of {tenant}", (tenant, "u"), key="k")
        fact = remember(index, f"yellow yak of {tenant}", (tenant, "u"), key="k").fact
        model = index.run(KnowModel([1.0, 0.0]))
        vectors = [((tenant, "u"), fact.id, 2, [1.0, 0.0])]
        assert index.run(AddVectors(model, vectors)) == 1


def asked_as(index: PostgresIndex, tenant: bytes | None, sql: str) -> list[tuple]:  # type: ignore[type-arg]
    return index.server.transact(lambda db: list(db.execute(sql)), tenant=tenant, again=True)


def test_no_statement_sees_another_tenants_facts_whatever_it_asks(opens: Opens) -> None:
    index = opens()
    fill(index)
    for table in (*BY_NAME, *BY_NUMBER):
        column = "tenant" if table in BY_NAME else "owner"
        whose = f"SELECT DISTINCT {column} FROM {table}"
        of_a, of_b = (asked_as(index, tenant, whose) for tenant in (b"a", b"b"))
        assert len(of_a) == len(of_b) == 1 and of_a != of_b, table
        assert asked_as(index, b"c", whose) == [], table
        assert len(asked_as(index, None, whose)) == 2, table


@pytest.mark.parametrize("table", [*BY_NAME, *BY_NUMBER])
def test_no_statement_deletes_or_adds_another_tenants_facts(table: str, opens: Opens) -> None:
    index = opens()
    fill(index)
    before = asked_as(index, b"b", f"SELECT count(*) FROM {table}")
    asked_as(index, b"a", f"DELETE FROM {table} RETURNING 1")
    assert asked_as(index, b"b", f"SELECT count(*) FROM {table}") == before
    if table == "memory_found":
        with pytest.raises(Exception, match="InsufficientPrivilege"):
            asked_as(index, b"a", f"INSERT INTO {table} VALUES (1, 1, 1) RETURNING 1")


def test_what_many_namespaces_below_one_hold_is_found_by_the_words_of_their_tenant(
    opens: Opens,
) -> None:
    """More of them than are looked into one by one."""
    index = opens()
    for n in range(70):
        remember(index, f"zebra number {n}", ("acme", "team", f"user{n}"), now=NOW + n)
    remember(index, "zebra of the other team", ("acme", "other"))
    remember(index, "zebra abroad, zebra, zebra", ("elsewhere",))
    team = Which(("acme", "team"), deep=True)
    assert found(index, "zebra 42", team) == [
        "zebra number 42",
        *(f"zebra number {n}" for n in (69, 68, 67, 66)),
    ]
    assert found(index, "zebra other", team)[0] == "zebra number 69"
    assert found(index, "zebra other", Which(("acme",), deep=True))[0] == "zebra of the other team"
    assert found(index, "abroad", Which(("acme",), deep=True)) == []
    assert found(index, "abroad", Which((), deep=True)) == ["zebra abroad, zebra, zebra"]
    assert found(index, "zeebra 42", team)[0] == "zebra number 42"
    assert index.run(ListFacts(team, 0, 1, NOW))[1] == 70
    assert index.run(ForgetFacts(("acme", "team"))) == 70
    assert listed(index, Which((), deep=True)) == [
        "zebra abroad, zebra, zebra",
        "zebra of the other team",
    ]


def test_names_and_texts_of_any_length_and_kind_are_kept(opens: Opens) -> None:
    """Longer than a page of an index, with NUL and half a pair, and equal but for their ends."""
    index = opens()
    long = "n\0\ud800é" * 3_000
    for end in ("1", "2"):
        remember(index, f"{long} zebra {end}", ("acme", long + end), key=long + end, kind=long)
    for end in ("1", "2"):
        assert listed(index, Which(("acme", long + end))) == [f"{long} zebra {end}"]
        assert listed(index, Which(("acme", long + end), deep=True)) == [f"{long} zebra {end}"]
        assert index.run(ForgetFacts(("acme", long + end), key=long + end)) == 1
    assert listed(index, Which((), deep=True)) == []
