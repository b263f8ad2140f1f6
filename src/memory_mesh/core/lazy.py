"""A property that is computed on first use, and a module that is loaded on first use."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")


class lazy_property(Generic[Value]):  # noqa: N801 - used like `property`
    """`functools.cached_property` without its lock.

    Before Python 3.12 all objects of a class share the lock: threads wait for each other, and a process that forks while another
    thread has it leaves a child that waits forever. Without it, two threads may both compute the value.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object, owner: type) -> Self | Value:
        if instance is None:
            return self
        value: Value = self._compute(instance)
        instance.__dict__[self._name] = value
        return value


class LazyModule:
    """A module that is loaded when one of its names is used: a command that needs one flow does not wait for the others."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
