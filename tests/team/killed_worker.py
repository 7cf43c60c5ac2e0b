"""A team whose process is killed while a member works. Run by test_killed.py.

killed_worker.py FOLDER begin | go-on | next [URL of a PostgreSQL database]
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from callslip.team import Agent, PostgresDb, SqliteDb, Team
from tests.team.team_helpers import REPORT, call, calls, delegate, scripted, texts

folder, what = Path(sys.argv[1]), sys.argv[2]


def fetch() -> str:
    """The data."""
    with (folder / "fetched").open("a") as log:
        log.write("x")
    return REPORT + "raw"


def work() -> str:
    """Half of it."""
    if what == "begin":
        os.kill(os.getpid(), signal.SIGKILL)
    return "worked"


both = calls(delegate("quick", id="call_q"), delegate("slow", id="call_s"))
scripts = {
    # In the first process the quick one is done, and the slow one in its second tool, at the kill.
    "begin": (
        [delegate("quick", id="call_0"), both],
        [REPORT, "ok"],
        [call("fetch"), call("work")],
    ),
    "go-on": (["Done."], ["ok"], [REPORT + "slow"]),
    "next": (["Next."], [], []),
}
leader, quick, slow = (scripted(*script) for script in scripts[what])
team = Team(
    model=leader,
    members=[
        Agent(id="quick", model=quick),
        Agent(id="slow", model=slow, tools=[fetch, work]),
    ],
    db=(
        PostgresDb(sys.argv[3], payloads=folder / "team.db-payloads")
        if len(sys.argv) > 3
        else SqliteDb(folder / "team.db")
    ),
    offload_tool_results=True,
)
if what == "begin":
    team.run("Go.", session_id="s1")
    sys.exit("it was to be killed")
out = team.continue_run(session_id="s1") if what == "go-on" else team.run("And?", session_id="s1")
assert team.result_store is not None
stats = team.result_store.stats()
print(out.content)
print([each.content for each in out.member_responses] == [REPORT, "ok", REPORT + "slow"])
print(stats.results, stats.payloads)
print([(kind, text[:8]) for kind, text in texts(leader.seen[-1])[1:]])
print([kind for kind, _ in texts(slow.seen[0])] if slow.seen else "-")
