"""Wrap one function; see what a model sees of it; read a slice back; get the exact value.

Run it with `python examples/offload_a_function.py`. It keeps what it stores in ./.callslip.
"""

from __future__ import annotations

from callslip import Envelope, ResultStore

store = ResultStore(ttl_seconds=3600)
session = store.session("example")


@session.offloaded
def orders(customer: str) -> list[dict[str, object]]:
    """All orders of a customer."""
    return [
        {"order": number, "customer": customer, "total": number * 7 % 1000, "paid": number % 9 > 0}
        for number in range(1, 2001)
    ]


if __name__ == "__main__":
    shown = orders("ana")
    assert isinstance(shown, Envelope) and shown.handle is not None
    print("What a model sees:\n")
    print(shown)

    result = shown.handle.id
    print("\nWhat it gets when it looks for one thing:\n")
    print(session.search(result, '"order":1234'))

    print("\nWhat it gets when it reads on from there:\n")
    print(session.read(result, start=1234, limit=2))

    rows = session.load(result)
    print(f"\nWhat your code gets: {type(rows).__name__} of {len(rows):,}, the last {rows[-1]}")

    removed = session.close()
    print(f"\nThe session is closed; {removed} result went with it.")
