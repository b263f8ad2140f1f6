"""The PostgreSQL store passes the contract."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from engines.postgres import Server
from memory_mesh.core.ports import Store
from memory_mesh.stores.postgres import PostgresStore
from memory_mesh.stores.postgres.tables import ALL
from memory_mesh.testing import StoreContract, machine_for
from memory_mesh.testing.state_machine import StoreMachine

pytestmark = pytest.mark.deep


class Schemas:
    """Schemas of one database, used again by the next test: to create the tables takes longer
    than to empty them."""

    def __init__(self, server: Server) -> None:
        self._database = server.database()
        self._server, self._made, self.places = server, set[str](), dict[Path, str]()

    def open(self, place: Path) -> PostgresStore:
        name = self.places.get(place)
        if name is None:
            name = self.places[place] = f"s{len(self.places)}"
            if name in self._made:
                tables = ", ".join(f"{name}.{table}" for table in ALL)
                self._server.execute(f"TRUNCATE {tables}", database=self._database)
        store = PostgresStore(f"{self._server.keeper(self._database)}?schema={name}")
        store.prepare()
        self._made.add(name)
        return store

    def release(self) -> None:
        """Let the next test use them."""
        self.places.clear()


@pytest.fixture(scope="module")
def all_schemas(server: Server) -> Schemas:
    return Schemas(server)


@pytest.fixture
def schemas(all_schemas: Schemas) -> Iterator[Schemas]:
    yield all_schemas
    all_schemas.release()


@pytest.mark.req("MESH-020")
class TestPostgres(StoreContract):
    """Rows in PostgreSQL."""

    @pytest.fixture(autouse=True)
    def _database(self, schemas: Schemas) -> None:
        self.schemas = schemas

    def open(self, place: Path) -> Store:
        return self.schemas.open(place)


def test_any_history_in_postgres_is_a_history_of_a_dict(schemas: Schemas) -> None:
    effort = settings(
        StoreMachine.TestCase.settings,
        max_examples=settings().max_examples // 10,
        stateful_step_count=20,
    )

    def opened(place: Path) -> Store:
        if place not in schemas.places:
            schemas.release()
        return schemas.open(place)

    run_state_machine_as_test(machine_for(opened), settings=effort)
