"""The laws once more, with everything on that stands between a result and its readers: each store
has a redaction, a mask, a hook that is asked about every use, and results that are
read in a session they were shared with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callslip import Handle, ResultStore, Scope, Session
from callslip.masks import hidden, last4
from tests.test_laws import *
from tests.test_laws import (
    BIG,
    id_of,
    store,  # noqa: F401
)
from tests.test_laws import session as _session  # noqa: F401

ASKED: list[tuple[Scope, str]] = []


def _authorize(scope: Scope, handle: Handle | None, action: str) -> bool:
    ASKED.append((scope, action))
    return handle is not None


@pytest.fixture(autouse=True)
def _guarded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made = ResultStore.__init__

    def guarded(self: ResultStore, *given: Any, **more: Any) -> None:
        # The fields are none of the laws' own, so that what a law says of a page is still true of it.
        on: dict[str, Any] = {
            "redact": lambda text: text.replace("hunter2", "[redacted]"),
            "mask": {"ssn": last4, "user.email": hidden},
            "authorize": _authorize,
        }
        made(self, *given, **{**on, **more})

    monkeypatch.setattr(ResultStore, "__init__", guarded)
    ASKED.clear()
    yield


@pytest.fixture
def session(store: ResultStore) -> Session:  # noqa: F811
    return store.session("s", user="u", tenant="t")


def test_the_stores_of_these_laws_are_guarded(store: ResultStore, tmp_path: Path) -> None:  # noqa: F811
    held = store.session("s", user="u", tenant="t").put({"ssn": "123-45-6789", "pw": "hunter2"})
    assert "123-45" not in str(held)
    assert "[redacted]" in str(store.session("s", user="u", tenant="t").read(held.id))
    assert {action for _, action in ASKED} == {"store", "read"}


def test_law_6_holds_for_what_is_shared_only_where_and_while_it_is(store: ResultStore) -> None:  # noqa: F811
    owner = store.session("s", user="u", tenant="t")
    id = id_of(owner.offload(BIG, tool="t"))
    share = owner.share(id, with_session="r", user="v")
    reader = store.session("r", user="v", tenant="t")
    assert reader.read(id).text == owner.read(id).text
    assert reader.load(id) == BIG
    for session, user, tenant in (("x", "v", "t"), ("r", "x", "t"), ("r", "v", "x")):
        other = store.session(session, user=user, tenant=tenant)
        tools = {tool.name: tool for tool in other.tools()}
        foreign = tools["read_result"].call(result_id=id)
        assert foreign == tools["read_result"].call(result_id="res_0123456789")
    owner.revoke(share)
    tools = {tool.name: tool for tool in reader.tools()}
    ended = tools["read_result"].call(result_id=id)
    assert ended == tools["read_result"].call(result_id="res_0123456789")
    assert reader.list().total == 0
