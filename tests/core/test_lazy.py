"""A property that is computed on first use."""

from threading import Event, Thread

from memory_mesh.core.text import lazy_property


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
