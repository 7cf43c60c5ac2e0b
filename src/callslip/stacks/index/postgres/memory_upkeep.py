"""Memory in PostgreSQL: what `ops.Repair` looks at."""

from __future__ import annotations

from callslip.stacks.index.postgres.transaction import Db

_COUNTED = (
    "SELECT s.n, coalesce(c.facts, 0) AS facts, coalesce(c.bytes, 0)::bigint AS bytes"
    " FROM memory_spaces s LEFT JOIN (SELECT space, count(*) AS facts, sum(size) AS bytes"
    " FROM memories GROUP BY space) c ON c.space = s.n"
    " WHERE (s.facts, s.bytes) IS DISTINCT FROM (coalesce(c.facts, 0), coalesce(c.bytes, 0))"
)


def repair(db: Db, mend: bool) -> list[str]:
    """Check the counts of namespaces, and that what is found by a word is there; one sentence for
    each finding."""
    if mend:
        db.execute("LOCK TABLE memory_spaces IN SHARE ROW EXCLUSIVE MODE")
    wrong = len(db.execute(_COUNTED))
    found = [f"The number of facts of a namespace is wrong in {wrong} of them."] if wrong else []
    if wrong and mend:
        db.execute(
            f"UPDATE memory_spaces s SET facts = c.facts, bytes = c.bytes FROM ({_COUNTED}) c"
            " WHERE c.n = s.n"
        )
    ((lost,),) = db.execute(
        "SELECT count(DISTINCT fact) FROM memory_found f WHERE NOT EXISTS"
        " (SELECT FROM memories m WHERE m.n = f.fact)"
    )
    if lost:
        found.append(f"The words of {lost} facts are left that are gone.")
    if lost and mend:
        db.execute(
            "DELETE FROM memory_found f WHERE NOT EXISTS"
            " (SELECT FROM memories m WHERE m.n = f.fact)"
        )
    return found
