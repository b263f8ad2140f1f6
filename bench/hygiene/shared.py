"""The programs, invariants and worlds of the tests, which the checks reuse."""

import sys
from importlib import import_module
from typing import Any

from bench.peers import ROOT


def tests(name: str) -> Any:
    """Return a module of `tests/`, such as `durability.children`."""
    for place in (str(ROOT / "tools"), str(ROOT / "tests")):
        if place not in sys.path:
            sys.path.insert(0, place)
    return import_module(name)
