from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from memory_mesh.stores.lance import LanceStore
from memory_mesh.testing import machine_for
from memory_mesh.testing.state_machine import StoreMachine
import pytest
EFFORT = settings(StoreMachine.TestCase.settings, max_examples=settings().max_examples * 2 // 5, stateful_step_count=20)
@pytest.mark.parametrize("rows", [1,5,512])
def test_any_history_in_lance(rows) -> None:
    run_state_machine_as_test(machine_for(lambda place: LanceStore(place / "memory", flush_rows=rows)), settings=EFFORT)
