"""A Supabase project for tests: the npm package `@supabase/lite` in front of a database of the
PostgreSQL server for tests."""

import os
import shutil
import subprocess
import tempfile
from contextlib import closing, suppress
from itertools import product
from pathlib import Path
from time import monotonic, sleep

import httpx

from memory_mesh.stores.postgres import PostgresStore
from memory_mesh.stores.postgres.tables import ALL

from .postgres import Server, _free_port

LITE = (
    Path(__file__).parents[2]
    / "build"
    / "supabase"
    / "node_modules"
    / "@supabase"
    / "lite"
    / "dist"
    / "cli"
    / "index.js"
)
KEY, PUBLIC_KEY = "sb_secret_of-the-test-engine-0123", "sb_publishable_of-the-test-engine"
JWT_SECRET = "a-secret-of-the-test-engine-with-many-characters"
SCHEMAS = ("public", "elsewhere")
_ROLES = (
    "CREATE ROLE anon NOLOGIN", "CREATE ROLE authenticated NOLOGIN",
    "CREATE ROLE service_role NOLOGIN",
    "CREATE ROLE authenticator LOGIN NOINHERIT PASSWORD 'secret'",
    "GRANT anon, authenticated, service_role TO authenticator",
)  # fmt: skip
_GRANTS = (
    "GRANT CREATE ON DATABASE {database} TO authenticator",  # for the tables of its own
    *(
        f"SELECT {{schema}}.mesh_grant('{role}', 'token')"
        for role in ("authenticator", "authenticated", "service_role")
    ),
)


class Project:
    """A database with our tables, and the server in front of it. It is gone after `stop`."""

    def __init__(self, server: Server) -> None:
        self.database, self._server, self.port = server.database(), server, _free_port()
        for schema in SCHEMAS:
            with closing(PostgresStore(f"{server.url(self.database)}?schema={schema}")) as store:
                store.prepare()
        if not server.execute("SELECT 1 FROM pg_roles WHERE rolname = 'authenticator'"):
            for statement in _ROLES:
                server.execute(statement)
        for statement, schema in product(_GRANTS, SCHEMAS):
            server.execute(
                statement.format(database=self.database, schema=schema), database=self.database
            )
        self.folder = Path(tempfile.mkdtemp(prefix="mesh-supabase-"))
        (self.folder / "supabase").mkdir()
        (self.folder / "supabase" / "config.toml").write_text(
            f'[api]\nport = {self.port}\nschemas = ["public", "elsewhere"]\n[db]\n'
            'driver = "postgres"\n'
            f'url = "{server.url(self.database, user="authenticator")}"\n[auth]\nenabled = true\n'
            f'jwt_secret = "{JWT_SECRET}"\npublishable_key = "{PUBLIC_KEY}"\n'
            f'secret_key = "{KEY}"\n'
        )
        self.start()

    def start(self) -> None:
        """Start the server in front of the database, again after `kill`."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "LITE_TELEMETRY": "0",
            "DO_NOT_TRACK": "1",
        }
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["node", LITE, "start", "--no-admin"],
                cwd=self.folder,
                env=environment,
                stdout=log,
                stderr=log,
            )
        self._wait()

    @property
    def url(self) -> str:
        return f"supabase://127.0.0.1:{self.port}/?local=true"

    @property
    def database_url(self) -> str:
        return self._server.url(self.database)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/rest/v1"

    def clear(self) -> None:
        """Remove all rows."""
        names = ", ".join(f"{schema}.{name}" for schema in SCHEMAS for name in ALL)
        self._server.execute(f"TRUNCATE {names}", database=self.database)

    def kill(self) -> None:
        """End the server at once, as a crash does. The database goes on."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait(self) -> None:
        until = monotonic() + 300
        while True:
            with suppress(httpx.HTTPError):
                address, arguments = (
                    f"{self.address}/rpc/mesh_raise",
                    {"state": "PT418", "message": "ready"},
                )
                # Its first answer is an error: it tries to grant rights that only the owner of the
                # tables can grant.
                if httpx.post(address, json=arguments, headers={"apikey": KEY}).status_code == 418:
                    return
            assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
            assert monotonic() < until
            sleep(0.1)
