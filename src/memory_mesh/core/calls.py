"""Errors of calls that cannot work, for methods whose name means something else in other libraries."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def teaching(remedy: str) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """Add what to do to the `TypeError` of a call with arguments that the method does not have."""

    def decorate(method: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        @wraps(method)
        def call(*args: _Given.args, **options: _Given.kwargs) -> _Result:
            from inspect import signature  # slow to load, and few processes call such a method

            try:
                signature(method).bind(*args, **options)
            except TypeError as error:
                raise TypeError(f"{method.__name__}: {error}; {remedy}") from None
            return method(*args, **options)

        return call

    return decorate
