"""What may go wrong with the keys that are given: shown, hanging, lost, or for a store in the clear."""

from __future__ import annotations

import base64
import os
import threading
from pathlib import Path

import pytest

from callslip import ResultStore, SettingsError, StoreUnavailable, limits
from callslip.patterns.memory import Memory
from callslip.stacks.index.sealed.master import _keys_in, add_key, new_key_file


@pytest.fixture
def key(tmp_path: Path) -> Path:
    new_key_file(tmp_path / "key")
    return tmp_path / "key"


def test_no_form_of_a_key_is_shown_by_an_error(key: Path) -> None:
    text = key.read_text()
    (raw,) = _keys_in(text, "")
    itself = base64.b64encode(raw).decode()
    for given in (
        text,
        f"{itself},{itself}",
        f"{itself}\n{itself}\n",
        itself.rstrip("="),
        base64.urlsafe_b64encode(raw).decode(),
        raw.hex(),
        f"env:{itself}",
    ):
        with pytest.raises(SettingsError) as told:
            ResultStore(keys=given)
        assert not any(word in str(told.value) for word in given.replace(",", " ").split()[-1:])
        assert itself[:20] not in str(told.value) and raw.hex()[:20] not in str(told.value)


def test_settings_show_nothing_of_a_kms() -> None:
    class Kms:
        def __repr__(self) -> str:
            return "Kms(token=s3cret)"

        def wrap(self, key: bytes) -> bytes:
            return key

        unwrap = wrap

    store = ResultStore(keys=Kms())
    assert "s3cret" not in repr(store.settings) + repr(store)


def test_a_kms_that_hangs_is_away_within_a_bound_and_not_asked_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, asked = threading.Event(), []

    def kms(action: str, key: bytes) -> bytes:
        asked.append(action)
        goes_on.wait(60)
        return key[::-1]

    monkeypatch.setattr(limits, "KMS_SECONDS", 0.2)
    session = ResultStore(tmp_path / "store", keys=kms, spool="").session("s")
    with pytest.raises(StoreUnavailable, match=r"within 0\.2 seconds"):
        session.put("x")
    with pytest.raises(StoreUnavailable, match="not asked again yet"):
        session.put("x")
    assert session.offload("long " * 9_000, tool="t").handle is None
    assert len(asked) == 1
    goes_on.set()
    monkeypatch.setattr(limits, "KMS_PAUSE_SECONDS", 0.0)
    later = ResultStore(tmp_path / "store", keys=kms, spool="").session("s")
    assert later.load(later.put("x").id) == "x"


def test_a_kms_that_hangs_is_waited_for_once_for_the_store_and_its_spool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "KMS_SECONDS", 0.05)
    over, asked = threading.Event(), []

    def kms(action: str, key: bytes) -> bytes:
        asked.append(action)
        over.wait(60)
        return key

    store = ResultStore(tmp_path / "store", keys=kms, spool=tmp_path / "spool")
    assert store.session("s").offload("text\n" * 20_000, tool="t").handle is None
    over.set()
    assert asked == ["wrap"]


def test_a_kms_that_wants_to_end_the_process_has_failed_and_is_asked_again(tmp_path: Path) -> None:
    answers = [SystemExit(3), KeyboardInterrupt()]

    def kms(action: str, key: bytes) -> bytes:
        if answers:
            raise answers.pop()
        return key[::-1]

    session = ResultStore(tmp_path / "store", keys=kms, spool="").session("s")
    for name in ("KeyboardInterrupt", "SystemExit"):
        with pytest.raises(StoreUnavailable, match=f"did not wrap: {name}$"):
            session.put("text")
    assert session.load(session.put("text").id) == "text"


def test_two_that_add_a_key_at_once_lose_none(key: Path) -> None:
    threads = [threading.Thread(target=add_key, args=(key,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(_keys_in(key.read_text(), "")) == 7
    assert os.listdir(key.parent) == ["key"]


def test_a_key_is_added_to_what_a_link_points_to(key: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(key)
    added = add_key(link)
    assert link.is_symlink() and added in key.read_text()


@pytest.mark.parametrize("what", ["fact", "audit", "hold"])
def test_a_store_that_holds_anything_in_the_clear_takes_no_keys(
    tmp_path: Path, key: Path, what: str
) -> None:
    clear = ResultStore(tmp_path / "store", audit=what == "audit")
    if what == "fact":
        Memory(clear, ("acme", "ana")).remember("Ana likes tables")
    elif what == "hold":
        clear.hold(tenant="acme", reason="case 7")
    else:
        clear.session("s", tenant="acme").put("x")
        clear.delete(tenant="acme")
    clear.close()
    with pytest.raises(SettingsError, match="in the clear"):
        ResultStore(tmp_path / "store", keys=key).session("s").put("sealed")
    assert ResultStore(tmp_path / "store").session("t").put("still open").id


def test_who_opened_an_empty_store_without_keys_writes_nothing_into_it_once_it_is_sealed(
    tmp_path: Path, key: Path
) -> None:
    clear = ResultStore(tmp_path / "store", spool="")
    assert clear.session("s").list().total == 0
    ResultStore(tmp_path / "store", keys=key).session("s").put("sealed")
    with pytest.raises(SettingsError, match="sealed"):
        clear.session("s").put("in the clear")
    with pytest.raises(SettingsError, match="sealed"):
        Memory(clear, ("acme",)).remember("in the clear")
