"""A preference told in one session is used in the next, a week later, by one call.

A scripted model stands for a real one: what it is asked and what it answers is all that a provider
would see.
"""

from __future__ import annotations

from callslip import ResultStore
from callslip.patterns.memory import Memory

MONDAY = 1_795_424_400.0
WEEK = 7 * 86_400
now = MONDAY


def clock() -> float:
    return now


# --- the first session: a steward says how she wants to see conflicts ------------------------------

store = ResultStore(".callslip", clock=clock)
tools = {tool.name: tool for tool in Memory(store, ("acme", "ana")).tools(source="session 1")}

print("user:   Show me conflicts side by side from now on.")
arguments = {
    "text": "Ana wants conflicts side by side",
    "key": "conflict view",
    "kind": "preference",
}
print("model:  remember", arguments)
print("tool:  ", tools["remember"].call(**arguments))
key = "sk-proj-" + "0123456789abcdefghijklmn"
print(f"user:   And the key for the hub is {key}.")
print("tool:  ", tools["remember"].call(text=f"The hub's key is {key}"))
store.close()

# --- a week and a restart later ---------------------------------------------------------------------

now = MONDAY + WEEK
store = ResultStore(".callslip", clock=clock)
memory = Memory(store, ("acme", "ana"))
tools = {tool.name: tool for tool in memory.tools(source="session 2")}

print("\nuser:   Show me the conflicts in entity 4471.")
print("model:  recall {'query': 'how to show conflicts'}")
print("tool:  ", tools["recall"].call(query="how to show conflicts"))

# --- somebody else sees nothing of it ----------------------------------------------------------------

print("\nbob:   ", Memory(store, ("acme", "bob")).recall("how to show conflicts"))
