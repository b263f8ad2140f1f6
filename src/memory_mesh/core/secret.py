"""A text that is not for the eye: an API key shows itself only to whoever asks for it by name."""

from typing import Never


class Secret:
    """Holds a secret. No `repr`, `str`, format, comparison error or pickle tells it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The secret itself."""
        return self._value

    def hidden_in(self, text: str) -> str:
        """A text of somebody else's, without the secret where it quotes it."""
        return text.replace(self._value, "***") if self._value else text

    def __repr__(self) -> str:
        return "Secret(***)"

    def __reduce__(self) -> Never:
        raise TypeError("a secret is not written anywhere")
