"""Rows of docs/faults.md: objects that were damaged or lost are named, and mended."""

from __future__ import annotations

import obstore
import pytest
from obstore.store import from_url

from callslip import PayloadDamaged
from tests.faults.deployment import LARGE, Deployment, assert_sound


def objects(deployment: Deployment) -> dict[str, bytes]:
    store = from_url(deployment.payloads)
    found = [entry["path"] for page in obstore.list(store) for entry in page]
    return {path: bytes(obstore.get(store, path).bytes()) for path in found}


def damaged(deployment: Deployment, damage: str) -> tuple[str, str]:
    """Store two results and damage the object of one: its id and its text, as `verify` names it."""
    session = deployment.worker().session("a")
    texts = {session.put(text, tool="t").id: text for text in (LARGE, f"1\n{LARGE}")}
    bucket = from_url(deployment.payloads)
    key = min(objects(deployment))
    body = objects(deployment)[key]
    if damage == "deleted":
        obstore.delete(bucket, key)
    else:
        half = len(body) // 2
        obstore.put(bucket, key, body[:half] + (b"\0" + body[half + 1 :]) * (damage == "flipped"))
    (problem,) = deployment.worker().verify().problems
    (broken,) = [id for id in texts if id in problem]
    reader = deployment.worker().session("a")
    with pytest.raises(PayloadDamaged):
        reader.load(broken)
    (sound,) = set(texts) - {broken}
    assert reader.load(sound) == texts[sound]
    return broken, texts[broken]


@pytest.mark.parametrize("damage", ["cut", "deleted"])
def test_an_object_that_is_lost_is_named_and_mended_by_the_same_content(
    damage: str, deployment: Deployment
) -> None:
    broken, text = damaged(deployment, damage)
    # The tool is called again, in whatever session, and what it returns is stored in its place.
    deployment.worker().session("b").put(text, tool="t")
    assert deployment.worker().session("a").load(broken) == text
    assert_sound(deployment)


def test_a_damaged_result_is_named_deleted_and_made_again(deployment: Deployment) -> None:
    broken, text = damaged(deployment, "flipped")
    session = deployment.worker().session("a")
    # Its end is whole, and over a network no more than that is compared before it is shared.
    session.delete(broken)
    again = session.put(text, tool="t")
    assert again.id == broken, "the same call and content have the same id"
    assert deployment.worker().session("a").load(broken) == text
    assert_sound(deployment)
