"""A pytest plugin that tools/mutants.py loads: it runs the tests of one requirement and notes the
first that catches a bug.

`MUTANT_ROOT` is the copy to test, `MUTANT_ID` the requirement (none: every test), `MUTANT_CAUGHT`
the file for the test's name.
"""

import os
from pathlib import Path

import pytest
from hypothesis import Phase, settings

# Few fixed examples and no shrinking: the first counter-example is enough.
settings.register_profile(
    "mutants",
    max_examples=30,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
)
_ID = os.environ["MUTANT_ID"]


def pytest_configure() -> None:
    import memory_mesh

    assert str(memory_mesh.__file__).startswith(os.environ["MUTANT_ROOT"]), memory_mesh.__file__  # noqa: S101


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _ID:
        config.hook.pytest_deselected(items=[item for item in items if not _carries(item)])
        items[:] = [item for item in items if _carries(item)]


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    if call.excinfo is not None and _catches(call, call.excinfo):
        Path(os.environ["MUTANT_CAUGHT"]).write_text(item.nodeid, encoding="utf-8")
        item.session.shouldstop = "caught"


def _carries(item: pytest.Item) -> bool:
    return any(_ID in mark.args for mark in item.iter_markers("req"))


def _catches(call: pytest.CallInfo[None], raised: pytest.ExceptionInfo[BaseException]) -> bool:
    """Return whether a test noticed the bug. For a requirement an assertion in the test failed,
    or the program refused what the test asked of it; any other error, such as one at import, is
    not enough."""
    from memory_mesh.core.errors import MemoryMeshError

    if not _ID:
        return not raised.errisinstance(pytest.skip.Exception)
    timed_out = str(raised.value).startswith("Timeout")
    return (
        call.when == "call"
        and raised.errisinstance((AssertionError, pytest.fail.Exception, MemoryMeshError))
        and not timed_out
    )
