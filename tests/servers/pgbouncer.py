"""pgbouncer in transaction mode: each transaction of a client may be another server's connection."""

from __future__ import annotations

import contextlib
import shutil
import signal
from collections.abc import Sequence

from tests.servers.postgres import ADMIN, Postgres
from tests.servers.process import Server, give_away


def program() -> str | None:
    return shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")


class PgBouncer(Server):
    """In front of a server. Few server connections for many clients, so that they do change."""

    signal = signal.SIGINT
    refuses_root = True

    def __init__(self, postgres: Postgres) -> None:
        super().__init__("pgbouncer")
        self._postgres = postgres
        give_away(self.folder)
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "any",
            "pool_mode": "transaction",
            "default_pool_size": 3,
            "max_client_conn": 200,
            "server_round_robin": 1,
        }
        lines = [f"{name} = {value}" for name, value in settings.items()]
        to = f"* = host=127.0.0.1 port={postgres.port} user={ADMIN}"
        (self.folder / "pgbouncer.ini").write_text(
            "\n".join(["[databases]", to, "[pgbouncer]", *lines, ""])
        )
        self.start()

    def command(self) -> Sequence[str]:
        return [program() or "pgbouncer", str(self.folder / "pgbouncer.ini")]

    def is_up(self) -> bool:
        import psycopg

        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(self.dsn_of("postgres"), connect_timeout=5).close()
            return True
        return False

    def dsn_of(self, database: str) -> str:
        return f"postgresql://{ADMIN}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """An empty database of the server behind it, by way of this pooler."""
        return self.dsn_of(self._postgres.new_database().rpartition("/")[2])
