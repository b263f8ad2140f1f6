"""For your own tests: the contract every store keeps, a state machine that looks for what breaks it, crash points and fakes.

`StoreContract`, `machine_for` and the strategies of `rows` need the extra `testing`; `fakes` and `crash` need nothing. Names are
loaded when they are first used, so that these come without pytest and Hypothesis.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_mesh.testing.contract import StoreContract
    from memory_mesh.testing.crash import Recorder, crash_at
    from memory_mesh.testing.fakes import DownEmbedder, FakeClock, RecordingEmbedder, ScriptedChat, no_pause, seeded_ids
    from memory_mesh.testing.state_machine import machine_for

_FROM = {
    "DownEmbedder": "fakes",
    "FakeClock": "fakes",
    "Recorder": "crash",
    "RecordingEmbedder": "fakes",
    "ScriptedChat": "fakes",
    "StoreContract": "contract",
    "crash_at": "crash",
    "machine_for": "state_machine",
    "no_pause": "fakes",
    "seeded_ids": "fakes",
}

__all__ = [
    "DownEmbedder",
    "FakeClock",
    "Recorder",
    "RecordingEmbedder",
    "ScriptedChat",
    "StoreContract",
    "crash_at",
    "machine_for",
    "no_pause",
    "seeded_ids",
]


def __getattr__(name: str) -> object:
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name in ("StoreContract", "machine_for"):
        _show_both_sides()
    return getattr(import_module(f"{__name__}.{_FROM[name]}"), name)


def _show_both_sides() -> None:
    """Have pytest explain the contract's assertions as it explains those of test files; said before they are loaded."""
    import sys

    import pytest

    parts = ("changes", "handles", "keywords", "reads", "rows", "vectors", "where", "writes")
    modules = [f"{__name__}.{module}" for module in ("state_machine", *(f"contract.{part}" for part in parts))]
    pytest.register_assert_rewrite(*(module for module in modules if module not in sys.modules))
