"""`Agent`: a model with tools and a session, by itself or as a member of a team."""

from __future__ import annotations

from callslip.team.owner import Owner


class Agent(Owner):
    """A model with tools, whose long results leave its window.

    ::

        agent = Agent(model="anthropic:…", tools=[…], db=SqliteDb("agent.db"),
                      offload_tool_results=True)
        agent.run("…", session_id="s1").content

    name, role        who it is: what a leader is told of it. `id` is made of the name if not given
    model             a LangChain chat model, or a name for `init_chat_model`; a member without one
                      has its team's
    tools             functions, or LangChain tools
    instructions      for its system prompt
    db                where its sessions are: `SqliteDb`, `InMemoryDb`; without one a run has no
                      history. A member's are in its team's
    offload_tool_results   True, False, a `ResultStore` with settings; None (the default) is off, or
                      what the team says
    tool_call_limit   how many calls of tools a run may make; those of the read-back tools are free
    add_history_to_context, num_history_runs   how many earlier runs of the session it sees
    resolve_results   a task that names a result's id brings the whole result into its window
    middleware        LangChain middleware, for approval and the like
    """
