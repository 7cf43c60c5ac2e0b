"""Ceph's S3 gateway: one monitor, one store in memory, one gateway. Debian packages it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence

from tests.servers.process import Server, answers, free_port, wait_for
from tests.servers.s3 import s3_environment

PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "monmaptool", "ceph-authtool")
PACKAGES = "radosgw ceph-mon ceph-osd ceph-common"
KEY, SECRET = "test-key", "test-secret"

_CONF = """\
[global]
fsid = {fsid}
auth_cluster_required = cephx
auth_service_required = cephx
auth_client_required = cephx
mon_host = [v2:127.0.0.1:{mon}/0]
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pgp_num = 4
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
mon_data_avail_crit = 1
mon_data_avail_warn = 2
mon_cluster_log_to_file = false
admin_socket = {folder}/$name.asok
pid_file =
log_file = {folder}/$name.log
run_dir = {folder}
keyring = {folder}/keyring
[mon.a]
mon_data = {folder}/mon
[osd.0]
osd_data = {folder}/osd
keyring = {folder}/osd/keyring
osd_objectstore = memstore
memstore_device_bytes = 4294967296
osd_memory_target = 939524096
[client.admin]
# Without tcp_nodelay each small reply waits 40 ms.
rgw_frontends = beast endpoint=127.0.0.1:{port} tcp_nodelay=1
rgw_data = {folder}/rgw
rgw_enable_usage_log = false
rgw_crypt_require_ssl = false
"""


def missing() -> str:
    """What of it is not installed, in words; empty when all is there."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"{', '.join(absent)} not installed: apt-get install {PACKAGES}" if absent else ""


class _Part(Server):
    """One of Ceph's servers, in the folder of the gateway."""

    def __init__(self, ceph: Ceph, name: str, arguments: Sequence[str]) -> None:
        super().__init__(name)
        self._arguments = [name, "-f", "-c", str(ceph.folder / "ceph.conf"), *arguments]

    def command(self) -> Sequence[str]:
        return self._arguments

    def is_up(self) -> bool:
        return True  # the next one waits for it


class Ceph(Server):
    """An S3 server with real authentication. `restart` restarts the gateway; objects survive it."""

    def __init__(self) -> None:
        super().__init__("radosgw")
        self._monitor_port = free_port()
        self._fsid = str(uuid.uuid4())
        conf = _CONF.format(
            fsid=self._fsid, mon=self._monitor_port, port=self.port, folder=self.folder
        )
        (self.folder / "ceph.conf").write_text(conf)
        self.bucket = ""
        self._monitor = _Part(self, "ceph-mon", ["-i", "a"])
        self._osd = _Part(self, "ceph-osd", ["-i", "0"])
        self._make()
        self.start()
        self._user()

    def command(self) -> Sequence[str]:
        return ["radosgw", "-f", "-c", str(self.folder / "ceph.conf"), "-n", "client.admin"]

    def is_up(self) -> bool:
        return answers(self.port)

    @property
    def environ(self) -> dict[str, str]:
        return self.environ_at(self.port)

    def environ_at(self, port: int) -> dict[str, str]:
        """What leads to it, by way of a proxy's port."""
        return s3_environment(port, KEY, SECRET)

    def new_bucket(self) -> str:
        """Make an empty bucket, which `url` then names."""
        import boto3

        client = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )
        self.bucket = f"b{uuid.uuid4().hex[:12]}"
        client.create_bucket(Bucket=self.bucket)
        return self.bucket

    def url(self, prefix: str = "") -> str:
        return f"s3://{self.bucket}/{prefix}".rstrip("/")

    def close(self) -> None:
        super().close()
        if os.getpid() == self._owner:
            self._osd.close()
            self._monitor.close()

    def _make(self) -> None:
        folder = self.folder
        keyring, monmap = folder / "keyring", folder / "monmap"
        osd_keyring = folder / "osd" / "keyring"
        for name in ("osd", "rgw"):
            (folder / name).mkdir()
        address = f"[v2:127.0.0.1:{self._monitor_port}]"
        everything = [part for who in ("mon", "osd", "mgr") for part in ("--cap", who, "allow *")]
        made = ("--create", "--addv", "a", address, "--fsid", self._fsid)
        self._run("monmaptool", *made, str(monmap))
        self._run("ceph-authtool", "--create-keyring", str(keyring), "--gen-key", "-n", "mon.")
        self._run("ceph-authtool", str(keyring), "-n", "mon.", "--cap", "mon", "allow *")
        self._run("ceph-authtool", str(keyring), "--gen-key", "-n", "client.admin", *everything)
        self._run(
            *("ceph-mon", "--mkfs", "-i", "a", "--monmap", str(monmap), "--keyring", str(keyring))
        )
        self._monitor.start()
        osd = str(uuid.uuid4())
        self._ceph("osd", "new", osd)
        self._run("ceph-authtool", "--create-keyring", str(osd_keyring), "--gen-key", "-n", "osd.0")
        rights = ("osd", "allow *", "mon", "allow profile osd")
        self._ceph("auth", "add", "osd.0", *rights, "-i", str(osd_keyring))
        self._run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
        self._osd.start()
        wait_for(
            lambda: "1 up" in self._ceph("osd", "stat"), "Ceph's store", lambda: self._osd.told()
        )

    def _user(self) -> None:
        keys = ("--access-key", KEY, "--secret-key", SECRET)
        self._run(
            *("radosgw-admin", "-n", "client.admin", "user", "create"),
            *("--uid", "test", "--display-name", "test", *keys),
        )

    def _ceph(self, *arguments: str) -> str:
        # The command is a script of the system's own Python, not of this environment's.
        script = shutil.which("ceph") or "ceph"
        return self._run("/usr/bin/python3", script, *arguments)

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
            cwd=self.folder,
            env={**os.environ, "CEPH_CONF": str(self.folder / "ceph.conf")},
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr[-1000:]}")
        return done.stdout


if __name__ == "__main__":  # a gateway to try things on, until Enter is pressed
    began = time.monotonic()
    server = Ceph()
    server.new_bucket()
    print(f"up in {time.monotonic() - began:.1f} s:", server.url(), server.environ, flush=True)
    sys.stdin.readline()
    server.close()
