"""Support for your own tests: the contract of a store, a state machine, crash points and fakes.

`StoreContract`, `machine_for` and the strategies of `rows` need the extra `testing`; the fakes need
nothing. Names are loaded on first use, so that the fakes work without pytest and Hypothesis.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_mesh.testing.contract import StoreContract
    from memory_mesh.testing.fakes import (
        DownEmbedder,
        FakeClock,
        Recorder,
        RecordingEmbedder,
        ScriptedChat,
        crash_at,
        no_pause,
        seeded_ids,
    )  # fmt: skip
    from memory_mesh.testing.state_machine import machine_for

_ELSEWHERE = {"StoreContract": "contract", "machine_for": "state_machine"}

__all__ = [
    "DownEmbedder", "FakeClock", "Recorder", "RecordingEmbedder", "ScriptedChat", "StoreContract",
    "crash_at", "machine_for", "no_pause", "seeded_ids",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name in _ELSEWHERE:
        _rewrite_assertions()
    return getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'fakes')}"), name)


def _rewrite_assertions() -> None:
    """Have pytest explain the assertions of the contract like those of test files; must run
    before they are imported."""
    import sys

    import pytest

    modules = [
        f"{__name__}.{module}"
        for module in ("state_machine", "contract.reads", "contract.searches", "contract.writes")
    ]
    pytest.register_assert_rewrite(*(module for module in modules if module not in sys.modules))
