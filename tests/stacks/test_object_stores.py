"""Object stores: the payloads contract on real servers, and what a bucket asks beyond it."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import socket
import subprocess
import sys
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from callslip import ResultStore, limits
from callslip.errors import PayloadDamaged, SettingsError, StoreUnavailable
from callslip.stacks.ops import DeleteObjects, ListObjects, Op, PutObject, ReadObject
from callslip.stacks.payloads import Payloads, library, open_payloads
from callslip.stacks.payloads.credentials import options
from callslip.testing.payloads import MIB, PayloadsContract, key
from tests.machine import forked
from tests.servers.azure import Azurite
from tests.servers.ceph import Ceph
from tests.servers.proxy import FaultProxy
from tests.servers.s3 import Moto

_names = itertools.count(1)


class TestS3(PayloadsContract):
    @pytest.fixture(autouse=True)
    def _server(self, s3: Moto) -> None:
        self.server: Moto | Azurite | Ceph = s3

    def open(self) -> Payloads:
        return open_payloads(self.server.url(f"store-{next(_names)}"))


class TestAzure(TestS3):
    @pytest.fixture(autouse=True)
    def _server(self, azure: Azurite) -> None:
        self.server = azure


@pytest.mark.ceph
class TestCeph(TestS3):
    @pytest.fixture(autouse=True)
    def _server(self, ceph: Ceph) -> None:
        self.server = ceph


# --- away, hanging, throttled -------------------------------------------------------------------

BIG = [b"x" * MIB] * 12


def every_operation() -> list[Op[Any]]:
    return [
        PutObject(key("a"), [b"1"]),
        PutObject(key("b"), iter(BIG)),
        ReadObject(key("a"), 0, 1),
        DeleteObjects([key("a")]),
        ListObjects(None, 10),
    ]


@pytest.fixture
def way(s3: Moto, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    """The way to the S3 server. What fails at once is not tried for long."""
    monkeypatch.setattr(limits, "OBJECT_RETRY_SECONDS", 0.3)
    with FaultProxy("127.0.0.1", s3.port, http=True) as proxy:
        for name, value in s3.environ_at(proxy.port).items():
            monkeypatch.setenv(name, value)
        yield proxy


def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What hangs is not waited for long, by the stores that are opened from here on."""
    monkeypatch.setattr(limits, "OBJECT_REQUEST_SECONDS", 0.4)


def test_the_waits_of_one_operation_are_ten_seconds_together() -> None:
    waits = limits.OBJECT_REQUEST_SECONDS + limits.OBJECT_RETRY_SECONDS
    assert waits + limits.OBJECT_WAIT_SECONDS <= 10
    assert limits.OBJECT_CONNECT_SECONDS < limits.OBJECT_REQUEST_SECONDS


def test_a_store_that_is_away_is_unreachable(s3: Moto, way: FaultProxy) -> None:
    store = open_payloads(s3.url("p"))
    way.refuse()
    for op in every_operation():
        with pytest.raises(StoreUnavailable) as caught:
            store.run(op)
        assert caught.value.reason == "unreachable"
    way.clear()
    assert store.run(PutObject(key("a"), [b"1"])) == 1


def test_a_store_that_hangs_is_given_up(
    s3: Moto, way: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_payloads(s3.url("p"))
    store.run(PutObject(key("kept"), [b"1"]))
    hurried(monkeypatch)
    hasty = open_payloads(s3.url("p"))
    way.hang()
    for op in every_operation():
        with pytest.raises(StoreUnavailable) as caught:
            hasty.run(op)
        assert caught.value.reason == "timed out"
    way.clear()
    assert store.run(ReadObject(key("kept"), 0, 1)) == b"1"


def test_a_part_that_hangs_is_given_up(
    s3: Moto, way: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OBJECT_REQUEST_SECONDS", 2.0)
    store = open_payloads(s3.url("p"))

    def parts() -> Iterator[bytes]:
        for number in range(40):
            if number == 8:
                way.hang()
            yield b"x" * MIB

    with pytest.raises(StoreUnavailable) as caught:
        store.run(PutObject(key("a"), parts()))
    assert caught.value.reason == "timed out"


def test_a_throttled_request_is_made_again(s3: Moto, way: FaultProxy) -> None:
    store = open_payloads(s3.url("p"))
    for op in every_operation():
        way.slow_down(1)
        store.run(op)
    way.slow_down(1000)
    with pytest.raises(StoreUnavailable, match="503 SlowDown") as caught:
        store.run(PutObject(key("c"), [b"1"]))
    assert caught.value.reason == "failed"


def test_nothing_is_deleted_from_a_container_that_is_not_there(
    azure: Azurite,
) -> None:
    store = open_payloads("az://not-there/p")
    for keys in ([key("a")], [key("a"), key("b")]):
        with pytest.raises(StoreUnavailable, match="there is no such container"):
            store.run(DeleteObjects(keys))
    store = open_payloads(azure.url("p"))
    store.run(PutObject(key("b"), [b"1"]))
    store.run(DeleteObjects([key("a"), key("b"), key("c")]))
    assert store.run(ListObjects(None, 9)) == []


def test_a_bucket_that_is_not_there_is_no_damage(s3: Moto) -> None:
    store = open_payloads("s3://no-such-bucket/p")
    for op in every_operation():
        with pytest.raises(StoreUnavailable):
            store.run(op)


@pytest.mark.parametrize(
    ("status", "code", "reason", "words"),
    [
        (
            "301 Moved Permanently",
            "PermanentRedirect",
            "failed",
            "in another region than AWS_REGION",
        ),
        (
            "400 Bad Request",
            "ExpiredToken",
            "permission denied",
            "400 ExpiredToken: the credentials",
        ),
        ("403 Forbidden", "RequestTimeTooSkewed", "permission denied", "the clock of this machine"),
        ("404 Not Found", "NoSuchBucket", "failed", "404 NoSuchBucket: there is no such bucket"),
        ("409 Conflict", "OperationAborted", "failed", "409 OperationAborted"),
    ],
)
def test_what_a_person_has_to_change_is_said(
    status: str, code: str, reason: str, words: str, s3: Moto, way: FaultProxy
) -> None:
    store = open_payloads(s3.url("p"))
    way.slow_down(1000, status, code)
    for op in (PutObject(key("a"), [b"x"]), ListObjects(None, 1)):
        with pytest.raises(StoreUnavailable, match=words) as caught:
            store.run(op)
        assert caught.value.reason == reason


def test_a_right_to_delete_that_is_missing_is_told(s3: Moto) -> None:
    bucket = s3.new_bucket()
    store = open_payloads(s3.url())
    store.run(PutObject("a.cslip", [b"x"]))
    deny = {"Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "s3:DeleteObject"}
    statement = deny | {"Resource": f"arn:aws:s3:::{bucket}/*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]}).encode()
    where = f"http://127.0.0.1:{s3.port}/{bucket}?policy"
    as_json = {"Content-Type": "application/json"}
    put = urllib.request.Request(where, policy, as_json, method="PUT")
    urllib.request.urlopen(put, timeout=30).close()
    with pytest.raises(StoreUnavailable, match="the object store: DELETE AccessDenied$") as caught:
        store.run(DeleteObjects(["a.cslip"]))
    assert caught.value.reason == "permission denied"


def test_an_endpoint_without_tls_that_was_not_allowed_says_so(
    s3: Moto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    with pytest.raises(StoreUnavailable, match="PUT, not sent: .* wants AWS_ALLOW_HTTP=true$"):
        open_payloads(s3.url()).run(PutObject("a.cslip", [b"x"]))


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT"])
def test_an_endpoint_without_its_scheme_is_a_setting_and_no_panic(
    s3: Moto, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, f"127.0.0.1:{s3.port}")
    with pytest.raises(SettingsError, match=f"^{name}: write http:// or https:// before the host$"):
        open_payloads(s3.url()).run(PutObject("a.cslip", [b"x"]))


def test_a_panic_of_the_library_is_a_store_that_failed_and_ends_no_tool(
    s3: Moto, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PanicException(BaseException):
        """What the library raises, which is no Exception."""

    def panics(*_: object, **__: object) -> None:
        raise PanicException("with a word of theirs")

    monkeypatch.setattr(library.obstore(), "put", panics)
    with pytest.raises(StoreUnavailable, match="its library cannot do") as caught:
        open_payloads(s3.url()).run(PutObject("a.cslip", [b"x"]))
    assert caught.value.reason == "failed" and "theirs" not in str(caught.value)


def test_the_environment_may_give_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for scheme, prefix in (("s3", "AWS"), ("gs", "GOOGLE"), ("az", "AZURE")):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
        monkeypatch.setenv(f"{prefix}_TIMEOUT", "60s")
        client = options(scheme)["client_options"]
        assert client["timeout"] == "60s"
        assert client["connect_timeout"].total_seconds() == limits.OBJECT_CONNECT_SECONDS


def test_a_url_that_cannot_be_opened_is_a_setting_and_not_quoted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(SettingsError, match="Account must be specified"):
        open_payloads("az://container/p").run(ListObjects(None, 1))
    for url in ("az:///p?sig=SECRET", "s3:///SECRET/p?SECRET", "az://SECRET@/x"):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
        with pytest.raises((SettingsError, StoreUnavailable)) as caught:
            open_payloads(url).run(ListObjects(None, 1))
        assert "SECRET" not in str(caught.value)


# --- what an upload leaves ------------------------------------------------------------------------


def uploads(server: Moto) -> list[str]:
    """The uploads in parts that the server holds unfinished."""
    url = f"http://127.0.0.1:{server.port}/{server.bucket}?uploads"
    with urllib.request.urlopen(url, timeout=30) as reply:
        return re.findall(rb"<Key>([^<]*)</Key>", reply.read())


def test_an_upload_that_fails_is_given_up_on_the_server(s3: Moto, way: FaultProxy) -> None:
    store = open_payloads(s3.url("p"))

    def parts(fault: str) -> Iterator[bytes]:
        yield from BIG
        assert uploads(s3), "one is under way"
        if fault == "source":
            raise OSError("the source broke")
        if fault == "server":
            way.slow_down(3, "403 Forbidden", "AccessDenied")
        yield from BIG

    with pytest.raises(OSError, match="the source broke"):
        store.run(PutObject(key("a"), parts("source")))
    assert uploads(s3) == []
    assert list(store.run(ListObjects(None, 9))) == []


def test_a_conditional_put_whose_answer_was_lost_is_a_put(s3: Moto, way: FaultProxy) -> None:
    store = open_payloads(s3.url("p"))
    store.run(PutObject(key("a"), [b"mine"]))
    assert store.run(PutObject(key("a"), [b"mine"])) == 4
    for other in (b"else", b"min", b"mine!"):
        with pytest.raises(StoreUnavailable, match="exists"):
            store.run(PutObject(key("a"), [other]))


def test_a_compatible_store_may_know_no_condition(
    s3: Moto, way: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_payloads(s3.url("p"))
    way.slow_down(1, "400 Bad Request", "InvalidArgument")
    assert store.run(PutObject(key("a"), [b"1"])) == 1
    assert way.requests == {"PUT": 2, "HEAD": 1}
    way.reset()
    assert store.run(PutObject(key("b"), [b"2"])) == 1
    assert way.requests == {"HEAD": 1, "PUT": 1}  # it is not tried again
    with pytest.raises(StoreUnavailable, match="exists"):
        store.run(PutObject(key("b"), [b"3"]))
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
    told = open_payloads(s3.url("p"))
    assert told.run(PutObject(key("c"), [b"4"])) == 1
    assert [told.run(ReadObject(key(name), 0, 1)) for name in "abc"] == [b"1", b"2", b"4"]


def test_a_store_that_knows_the_condition_and_refuses_the_object_is_asked_with_it_again(
    s3: Moto, way: FaultProxy
) -> None:
    store = open_payloads(s3.url("p"))
    way.slow_down(3, "400 Bad Request", "InvalidArgument")
    with pytest.raises(StoreUnavailable):
        store.run(PutObject(key("a"), [b"1"]))
    way.clear()
    way.reset()
    assert store.run(PutObject(key("a"), [b"1"])) == 1
    assert way.requests == {"PUT": 1}


def test_an_upload_holds_a_few_parts_only(s3: Moto) -> None:
    script = (
        "import resource, sys\n"
        "from callslip.stacks.payloads import open_payloads\n"
        "from callslip.stacks.ops import PutObject\n"
        f"store = open_payloads({s3.url('p')!r})\n"
        "def put(name, count):\n"
        "    store.run(PutObject(name, (bytes(2**20) for _ in range(count))))\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "base = put('small.cslip', 24)\n"
        "print(put('large.cslip', 64) - base)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert int(ended.stdout) < 16 * 1024, "KiB more for 40 MiB more"


# --- credentials ----------------------------------------------------------------------------------


def test_nothing_that_fails_says_a_secret(
    s3: Moto, way: FaultProxy, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "SECRETID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRETKEY")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "SECRETTOKEN")
    caplog.set_level("DEBUG")
    hurried(monkeypatch)
    said = []
    for url in (s3.url("p"), f"s3://user:SECRETPW@{s3.bucket}/p?sig=SECRETSIG"):
        for fault in ("refuse", "hang", "403", "500", "bucket"):
            store = open_payloads(url.replace(s3.bucket, "none") if fault == "bucket" else url)
            if fault in ("refuse", "hang"):
                getattr(way, fault)()
            elif fault.isdigit():
                # A refusal in which a server quotes what it was sent.
                quoted = "No</Code><Message>SECRETID SECRETTOKEN</Message><Code>SECRET-1"
                way.slow_down(1000, f"{fault} No", quoted)
            with pytest.raises(StoreUnavailable) as caught:
                store.run(ReadObject(key("a"), 0, 1))
            way.clear()
            said += [repr(store), caught.value.for_model]
            said += traceback.format_exception(caught.value)
    text = "".join(said) + caplog.text
    assert "GET 403" in text
    assert "GET 500" in text
    assert "SECRET" not in text


def test_no_secret_reaches_the_index(s3: Moto, tmp_path: Path) -> None:
    url = f"s3://user:SECRETPW@{s3.bucket}/p?sig=SECRETSIG"
    store = ResultStore(tmp_path, payloads=url)
    id = store.session("a").put(os.urandom(100_000).hex(), tool="t").id
    store.close()
    raw = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert id.encode() in raw
    assert b"SECRET" not in raw


@pytest.fixture
def nobody(s3: Moto, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment without credentials; the home folder."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        if name not in ("AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".aws").mkdir()
    return tmp_path


def test_without_credentials_it_says_so_at_once(
    s3: Moto, nobody: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://127.0.0.1:{port}")
    for disabled in ("false", "true"):
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", disabled)
        with pytest.raises(StoreUnavailable, match="set AWS_ACCESS_KEY_ID") as caught:
            open_payloads(s3.url("p")).run(PutObject(key("a"), [b"1"]))
        assert caught.value.reason == "permission denied"


def test_a_profile_gives_its_keys(s3: Moto, nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (nobody / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = D\naws_secret_access_key = S\n"
        "[work]\naws_access_key_id = W\naws_secret_access_key = S\naws_session_token = T\n"
    )
    (nobody / ".aws" / "config").write_text("[profile work]\nregion = eu-west-1\n[default]\n")
    assert options("s3")["config"]["access_key_id"] == "D"
    assert open_payloads(s3.url("p")).run(PutObject(key("a"), [b"1"])) == 1
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert options("s3")["config"] == {
        "region": "eu-west-1",
        "access_key_id": "W",
        "secret_access_key": "S",
        "session_token": "T",
    }
    assert open_payloads(s3.url("p")).run(PutObject(key("b"), [b"1"])) == 1
    monkeypatch.setenv("AWS_PROFILE", "none")
    with pytest.raises(SettingsError, match="'none'"):
        open_payloads(s3.url("p")).run(ListObjects(None, 1))


def test_credentials_that_are_exchanged_while_a_worker_runs_are_taken(
    s3: Moto, way: FaultProxy, nobody: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = nobody / ".aws" / "credentials"

    def renew(token: str) -> None:
        keys = "[default]\naws_access_key_id = K\naws_secret_access_key = S\n"
        profile.write_text(f"{keys}aws_session_token = {token}\n")

    renew("first")
    store = open_payloads(s3.url("p"))
    store.run(PutObject(key("a"), [b"1"]))
    for number, op in enumerate(every_operation()[1:]):
        way.slow_down(1, "400 Bad Request", "ExpiredToken")
        with pytest.raises(StoreUnavailable, match="ExpiredToken"):
            store.run(ListObjects(None, 1))
        renew("later" * (number + 1))
        way.slow_down(1, "400 Bad Request", "ExpiredToken")
        store.run(op)
    way.slow_down(1, "403 Forbidden", "InvalidAccessKeyId")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    assert store.run(PutObject(key("c"), [b"3"])) == 1


def test_a_profile_that_is_just_being_written_is_not_taken(
    s3: Moto, way: FaultProxy, nobody: Path
) -> None:
    profile = nobody / ".aws" / "credentials"
    profile.write_text("[default]\naws_access_key_id = K\naws_secret_access_key = S\n")
    store = open_payloads(s3.url("p"))
    store.run(PutObject(key("a"), [b"1"]))
    profile.write_text("aws_access_k")
    way.slow_down(1, "400 Bad Request", "ExpiredToken")
    with pytest.raises(StoreUnavailable, match="ExpiredToken"):
        store.run(ReadObject(key("a"), 0, 1))
    assert store.run(ReadObject(key("a"), 0, 1)) == b"1"


def test_a_broken_profile_is_not_quoted(nobody: Path) -> None:
    (nobody / ".aws" / "credentials").write_text("aws_secret_access_key SECRET\n")
    with pytest.raises(SettingsError) as caught:
        options("s3")
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


# --- forks ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_uses_the_bucket_and_so_does_its_child(s3: Moto) -> None:
    store = open_payloads(s3.url("p"))
    store.run(PutObject(key("a"), [b"parent"]))

    def child() -> None:
        assert store.run(ReadObject(key("a"), 0, 6)) == b"parent"
        store.run(PutObject(key("b"), iter(BIG)))
        with pytest.raises(PayloadDamaged):
            store.run(ReadObject(key("none"), 0, 1))
        assert forked(grandchild) == 0

    def grandchild() -> None:
        assert open_payloads(s3.url("p")).run(ReadObject(key("b"), 0, 2)) == b"xx"
        store.run(PutObject(key("c"), [b"grandchild"]))

    assert forked(child) == 0
    found = [entry[0] for entry in store.run(ListObjects(None, 9))]
    assert found == [key("a"), key("b"), key("c")]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_that_cannot_load_the_library_is_told(
    s3: Moto, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_payloads(s3.url("p"))
    store.run(PutObject(key("a"), [b"parent"]))

    def child() -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(library.shutil, "copyfile", full)
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="spawn"):
                store.run(ReadObject(key("a"), 0, 6))

    assert forked(child) == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_store_in_memory_is_not_shared_with_a_forked_child() -> None:
    store = open_payloads("memory://")
    store.run(PutObject(key("a"), [b"parent"]))

    def child() -> None:
        with pytest.raises(StoreUnavailable, match="forked"):
            store.run(ReadObject(key("a"), 0, 6))
        fresh = open_payloads("memory://")
        assert fresh.run(PutObject(key("a"), [b"child"])) == 5
        assert fresh.run(ReadObject(key("a"), 0, 5)) == b"child"

    assert forked(child) == 0


# --- a store on a bucket ---------------------------------------------------------------------------

LINES = "".join(f"{n:06d} {random.Random(n).getrandbits(128):x}\n" for n in range(20_000))


class Bucket:
    """The objects of a deployment, to be spoiled."""

    def __init__(self, url: str) -> None:
        self.store = library.obstore().store.from_url(url)

    def keys(self) -> list[str]:
        pages = library.obstore().list(self.store)
        return sorted(entry["path"] for page in pages for entry in page)

    def spoil(self, how: Callable[[bytes], bytes] | None) -> None:
        (key,) = self.keys()
        raw = bytes(library.obstore().get(self.store, key).bytes())
        if how is None:
            library.obstore().delete(self.store, key)
        else:
            library.obstore().put(self.store, key, how(raw))


def flipped(raw: bytes) -> bytes:
    return raw[:90] + bytes([raw[90] ^ 1]) + raw[91:]


def test_keys_are_deployment_tenant_session_and_chance(s3: Moto, tmp_path: Path) -> None:
    store = ResultStore(tmp_path, payloads=s3.url("some/prefix"), spool="")
    for name in ("../a", "b"):
        store.session(name, tenant="Ä/../acme").put(LINES + name, tool="t")
    keys = Bucket(s3.url("some/prefix")).keys()
    parts = [re.fullmatch(r"(d-\w{16})/(\w{16})/(\w{16})/\w{32}\.cslip", key) for key in keys]
    deployments, tenants, sessions = zip(*(part.groups() for part in parts if part), strict=True)
    assert (len(set(deployments)), len(set(tenants)), len(set(sessions))) == (1, 1, 2)


@pytest.mark.parametrize("how", [flipped, lambda raw: raw[: len(raw) // 2], None])
def test_what_is_damaged_in_a_bucket_is_never_returned_and_stored_anew(
    s3: Moto, tmp_path: Path, how: Callable[[bytes], bytes] | None
) -> None:
    session = ResultStore(tmp_path, payloads=s3.url("p"), spool="").session("s")
    id = session.put(LINES, tool="t").id
    Bucket(s3.url("p")).spoil(how)
    fresh = ResultStore(tmp_path, payloads=s3.url("p"), spool="").session("s")
    with pytest.raises(PayloadDamaged):
        fresh.load(id)
    assert len(fresh.store.verify().problems) == 1
    assert "damaged" in fresh.tools()[0].call(result_id=id)
    if how is not flipped:  # of that the end is whole: `verify` finds it, a repeat does not
        again = fresh.put(LINES, tool="again").id
        assert fresh.load(again) == LINES
        assert fresh.load(id) == LINES
        assert fresh.store.verify().ok


@pytest.mark.parametrize("server", ["s3", "azure"])
def test_a_store_works_on_a_bucket(
    server: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    at: Moto | Azurite = request.getfixturevalue(server)
    store = ResultStore(tmp_path, payloads=at.url("results"), spool="")
    session = store.session("run-42", user="ana", tenant="acme")
    id = session.put(LINES, tool="log").id
    streamed = session.put(iter([LINES, LINES]), tool="stream").id
    assert session.load(id) == LINES
    assert session.load(streamed) == LINES * 2
    assert session.read(id, start=19_000).text.startswith("018999")
    assert session.search(id, "^019999").total == 1
    assert session.put(LINES, tool="again").same_as == id
    found = store.verify()
    assert (found.ok, found.payloads, found.orphans) == (True, 2, 0)
    session.close()
    assert store.gc().orphans == 0
    assert Bucket(at.url("results")).keys() == []
