"""Agents and teams on LangGraph, whose leader pays for a member's answer once.

::

    team = Team(model="anthropic:…", members=[Agent(name="Researcher", role="…", tools=[…])],
                db=SqliteDb("team.db"), offload_tool_results=True)
    out = team.run("…", session_id="s1")

What may live here: what makes a run of `create_agent` a member's, a leader's and a session's. How
a result leaves the window is the LangChain adapter's, how it is stored the core's.
"""

from __future__ import annotations

try:
    from callslip.team.agent import Agent
    from callslip.team.db import Db, InMemoryDb, PostgresDb, SqliteDb
    from callslip.team.output import Pause, RunEvent, RunOutput
    from callslip.team.team import Team
except ModuleNotFoundError as missing:
    if missing.name is None or not missing.name.startswith(("langchain", "langgraph")):
        raise
    raise ImportError("callslip.team needs: pip install 'callslip[team]'") from missing

__all__ = [
    "Agent",
    "Db",
    "InMemoryDb",
    "Pause",
    "PostgresDb",
    "RunEvent",
    "RunOutput",
    "SqliteDb",
    "Team",
]
