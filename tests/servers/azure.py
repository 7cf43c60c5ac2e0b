"""Azurite, which Microsoft writes to stand in for Azure's blob storage. Comes from npm."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import os
import shutil
import urllib.request
from collections.abc import Sequence
from email.utils import formatdate
from pathlib import Path

from tests.servers.process import Server

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / ".servers" / "azurite" / "node_modules" / ".bin" / "azurite-blob"
"""Where `make servers` puts it."""

ACCOUNT = "devstoreaccount1"
# Not a secret: every Azurite in the world has this key, and its manual names it.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def program() -> str | None:
    return str(INSTALLED) if INSTALLED.exists() else shutil.which("azurite-blob")


class Azurite(Server):
    """Containers in a folder: they survive `restart`."""

    def __init__(self) -> None:
        super().__init__("azurite")
        self._names = itertools.count(1)
        self.container = ""
        self.start()

    def command(self) -> Sequence[str]:
        address = ["--blobHost", "127.0.0.1", "--blobPort", str(self.port)]
        quiet = ["--silent", "--skipApiVersionCheck", "--disableTelemetry"]
        return [program() or "azurite-blob", *address, "--location", str(self.folder), *quiet]

    @property
    def environ(self) -> dict[str, str]:
        return self.environ_at(self.port)

    def environ_at(self, port: int) -> dict[str, str]:
        """What leads to it, by way of a proxy's port."""
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{port}/{ACCOUNT}",
            "AZURE_ALLOW_HTTP": "true",
        }

    def new_bucket(self) -> str:
        """Make an empty container, which `url` then names."""
        self.container = f"c{os.getpid()}-{next(self._names)}"
        path = f"/{ACCOUNT}/{self.container}"
        when = formatdate(usegmt=True)
        told = f"x-ms-date:{when}\nx-ms-version:2021-08-06\n"
        signed = f"PUT\n\n\n\n\n\n\n\n\n\n\n\n{told}/{ACCOUNT}{path}\nrestype:container"
        digest = hmac.digest(base64.b64decode(KEY), signed.encode(), hashlib.sha256)
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}?restype=container",
            method="PUT",
            headers={
                "x-ms-date": when,
                "x-ms-version": "2021-08-06",
                "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}",
            },
        )
        urllib.request.urlopen(request, timeout=30).close()
        return self.container

    def url(self, prefix: str = "") -> str:
        return f"az://{self.container}/{prefix}".rstrip("/")
