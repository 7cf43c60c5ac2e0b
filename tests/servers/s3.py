"""An S3 server: moto's, in a process of its own. It takes any credentials."""

from __future__ import annotations

import itertools
import os
import sys
import urllib.request
from collections.abc import Mapping, Sequence

from tests.servers.process import Server, answers


class Moto(Server):
    """Buckets in the memory of one process: `restart`, `stop` and `kill` lose all of them.

    To see a store go away and come back with what it holds, put a `FaultProxy` before it.
    """

    def __init__(self) -> None:
        super().__init__("moto")
        self._names = itertools.count(1)
        self.bucket = ""
        self.start()

    def start(self) -> None:
        super().start()
        self.bucket = self.new_bucket()

    def command(self) -> Sequence[str]:
        run = "from moto.server import main; main()"
        return [sys.executable, "-c", run, "-H", "127.0.0.1", "-p", str(self.port)]

    @property
    def environ(self) -> dict[str, str]:
        """What a process needs in its environment to reach this server by `url`."""
        return self.environ_at(self.port)

    def environ_at(self, port: int) -> dict[str, str]:
        """The same by way of a proxy's port."""
        return s3_environment(port, "testing", "testing-secret")

    def new_bucket(self) -> str:
        """Make an empty bucket, which `url` then names."""
        self.bucket = f"b{os.getpid()}-{next(self._names)}"
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/{self.bucket}", method="PUT", data=b""
        )
        urllib.request.urlopen(request, timeout=30).close()
        return self.bucket

    def url(self, prefix: str = "") -> str:
        return f"s3://{self.bucket}/{prefix}".rstrip("/")

    def is_up(self) -> bool:
        return answers(self.port)

    def environment(self) -> Mapping[str, str]:
        # Real credentials of the machine have no business in there.
        return {"AWS_ACCESS_KEY_ID": "moto", "AWS_SECRET_ACCESS_KEY": "moto"}


def s3_environment(port: int, key: str, secret: str) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
    }
