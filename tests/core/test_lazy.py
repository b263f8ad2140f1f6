"""A property that is computed on first use, and dataclasses whose methods are written on first use."""

import copy
import dataclasses
import inspect
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

from memory_mesh.core import lazy
from memory_mesh.core.lazy import lazy_property


class Text:
    """Computes its length slowly: it waits until it may go on."""

    def __init__(self, text: str, go_on: Event) -> None:
        self.text, self._go_on, self.computed = text, go_on, 0
        self.started = Event()

    @lazy_property
    def length(self) -> int:
        """The number of characters."""
        self.started.set()
        assert self._go_on.wait(60)
        self.computed += 1
        return len(self.text)


def at_once() -> Event:
    event = Event()
    event.set()
    return event


def test_it_is_computed_once_for_each_object() -> None:
    short, long = Text("a", at_once()), Text("abc", at_once())
    assert (short.computed, long.computed) == (0, 0)
    assert (short.length, long.length, short.length, long.length) == (1, 3, 1, 3)
    assert (short.computed, long.computed) == (1, 1)
    assert Text.length.__doc__ == "The number of characters."


def test_an_object_does_not_wait_for_another() -> None:
    slow, quick = Text("slow", Event()), Text("quick", at_once())
    thread = Thread(target=lambda: slow.length, daemon=True)
    thread.start()
    assert slow.started.wait(60)
    found: list[int] = []
    other = Thread(target=lambda: found.append(quick.length), daemon=True)
    other.start()
    other.join(10)
    found_meanwhile = [*found]
    slow._go_on.set()
    thread.join(60)
    assert (found_meanwhile, slow.length) == ([5], 4)


# --- dataclasses ---


def classes_of(dataclass: Callable[..., Any]) -> tuple[Any, Any]:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Place:
        name: str
        tags: list[str] = dataclasses.field(default_factory=list, compare=False)
        note: str = dataclasses.field(default="-", repr=False)

        def __post_init__(self) -> None:
            if not self.name:
                raise ValueError("no name")

    @dataclass(frozen=True, slots=True, kw_only=True, repr=False)
    class City(Place):
        people: int = 3

        def __repr__(self) -> str:
            return f"the city of {self.name}"

    return Place, City


LAZY, EAGER = classes_of(lazy.dataclass), classes_of(dataclasses.dataclass)


def shown(use: Callable[[Any, Any], object], classes: tuple[Any, Any]) -> str:
    try:
        return repr(use(*classes)).replace("classes_of.<locals>.", "")
    except (TypeError, ValueError, AttributeError) as error:
        return f"{type(error).__name__}: {error}".replace("classes_of.<locals>.", "")


@pytest.mark.parametrize(
    "use",
    [
        lambda place, city: (place(name="a", tags=["b"]), city(name="a")),
        lambda place, city: (place(name="a") == place(name="a", tags=["b"]), place(name="a") == place(name="b")),
        lambda place, city: (place(name="a") == city(name="a"), len({place(name="a"), place(name="a"), city(name="a")})),
        lambda place, city: dataclasses.replace(city(name="a", tags=["b"]), people=4).people,
        lambda place, city: [copy.deepcopy(city(name="a", tags=["b"])).tags, copy.copy(place(name="a", note="c")).note],
        lambda place, city: dataclasses.asdict(city(name="a", tags=["b"])),
        lambda place, city: place(name=""),
        lambda place, city: place(),
        lambda place, city: place("a"),
        lambda place, city: city(name="a", colour="red"),
        lambda place, city: setattr(place(name="a"), "name", "b"),
        lambda place, city: setattr(city(name="a"), "people", 1),
        lambda place, city: delattr(place(name="a"), "name"),
        lambda place, city: delattr(city(name="a"), "note"),
        lambda place, city: place(name="a").__dict__,
        lambda place, city: dataclasses.dataclass(frozen=True)(type("Town", (city,), {}))(name="a"),
    ],
)
def test_a_dataclass_whose_methods_are_written_on_first_use_is_like_any_other(use: Callable[[Any, Any], object]) -> None:
    first, again, expected = shown(use, classes_of(lazy.dataclass)), shown(use, LAZY), shown(use, EAGER)
    assert first == expected
    assert again == expected


def test_its_methods_are_written_once() -> None:
    place, _ = classes_of(lazy.dataclass)
    first = place(name="a")
    written = place.__init__
    assert place(name="a") == first
    assert place.__init__ is written
    assert list(inspect.signature(place).parameters) == ["name", "tags", "note"]
