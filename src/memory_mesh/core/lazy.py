"""What is made on first use: a property, a module, and the methods of a dataclass."""

import dataclasses
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

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


# --- dataclasses ---

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool = False, init: bool = True, repr: bool = True, eq: bool = True, **options: bool) -> Callable:
        """Do what `dataclasses.dataclass` does, but write the methods of a frozen class when one of them is called.

        Python compiles them from text: of the hundred classes that a command loads this took half of its start, and it uses few.
        """
        wanted = {name for name, on in (("__init__", init), ("__repr__", repr), ("__eq__", eq), ("__hash__", eq)) if on}

        def decorate(cls: type) -> type:
            own = {name for name, value in vars(cls).items() if value is not None}  # `__hash__` is None next to an `__eq__`
            # A class that inherits must be as frozen as its base, and then gets the methods that refuse changes from Python.
            inherits = any(map(dataclasses.is_dataclass, cls.__mro__[1:]))
            made = dataclasses.dataclass(init=False, repr=False, eq=False, frozen=inherits, **options)(cls)
            if not inherits:
                made.__setattr__, made.__delattr__ = _refuse_to_set, _refuse_to_delete
                made.__dataclass_params__.frozen = True
                if options.get("slots"):
                    made.__getstate__, made.__setstate__ = _state, _set_state
            for name in wanted - own:
                setattr(made, name, _written_on_first_use(made, name))
            return made

        if frozen and not options.get("order"):
            return decorate
        return dataclasses.dataclass(frozen=frozen, init=init, repr=repr, eq=eq, **options)


def _written_on_first_use(cls: Any, name: str) -> Callable[..., Any]:
    """Return a method that is replaced, when it is called, by the one that Python writes for a class of the same fields."""

    def method(self: object, *args: object, **options: object) -> Any:
        fields = [(one.name, one.type, _same(one)) for one in dataclasses.fields(cls)]
        check = getattr(cls, "__post_init__", None)
        init, repr_ = name == "__init__", name == "__repr__"
        twin = dataclasses.make_dataclass(
            cls.__qualname__, fields, namespace={"__post_init__": check} if check else {}, frozen=True,
            init=init, repr=repr_, eq=not (init or repr_),
        )  # fmt: skip
        setattr(cls, name, vars(twin)[name])
        return getattr(cls, name)(self, *args, **options)

    return method


def _same(one: Any) -> Any:
    names = ("default", "default_factory", "init", "repr", "hash", "compare", "kw_only")
    return dataclasses.field(**{name: getattr(one, name) for name in names})


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> dict[str, object]:
    return {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}


def _set_state(self: object, state: dict[str, object]) -> None:
    for name, value in state.items():
        object.__setattr__(self, name, value)
