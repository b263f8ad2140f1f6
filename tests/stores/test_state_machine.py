"""Random histories have the same effect on every store as on a dict."""

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from memory_mesh.stores.json import JsonStore
from memory_mesh.stores.lance import LanceStore
from memory_mesh.stores.ram import RamStore
from memory_mesh.stores.sqlite import SqliteStore
from memory_mesh.testing import machine_for
from memory_mesh.testing.state_machine import StoreMachine

# A step tries more than an example elsewhere does; two fifths of what the profile says are many.
EFFORT = settings(
    StoreMachine.TestCase.settings,
    max_examples=settings().max_examples * 2 // 5,
    stateful_step_count=20,
)


def test_any_history_in_ram_is_a_history_of_a_dict() -> None:
    stored: dict[Path, RamStore] = {}
    run_state_machine_as_test(
        machine_for(lambda place: stored.setdefault(place, RamStore()), durable=False),
        settings=EFFORT,
    )


def test_any_history_in_sqlite_is_a_history_of_a_dict() -> None:
    run_state_machine_as_test(
        machine_for(lambda place: SqliteStore(place / "memory.db")), settings=EFFORT
    )


@pytest.mark.parametrize(
    "flush_rows",
    [pytest.param(1, marks=pytest.mark.deep), 6, pytest.param(500, marks=pytest.mark.deep)],
)
def test_any_history_in_lance_is_a_history_of_a_dict(flush_rows: int) -> None:
    run_state_machine_as_test(
        machine_for(lambda place: LanceStore(place / "memory", flush_rows=flush_rows)),
        settings=EFFORT,
    )


@pytest.mark.deep
@pytest.mark.parametrize("flush_bytes", [0, 3_000])
def test_any_history_in_json_is_a_history_of_a_dict(flush_bytes: int) -> None:
    run_state_machine_as_test(
        machine_for(lambda place: JsonStore(place / "memory", flush_bytes=flush_bytes)),
        settings=EFFORT,
    )
