"""The text of errors: what was wrong, what was expected and what to do, in one line; errors can
be pickled."""

import pickle
import re
from pathlib import Path
from traceback import format_exception_only

import pytest

from memory_mesh.core import errors
from memory_mesh.core.errors import (
    InvalidFilter,
    InvalidInput,
    MemoryMeshError,
    NotFound,
    SettingsError,
    not_installed,
    shown,
)

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, MemoryMeshError)
]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_says_what_was_wrong_expected_and_to_be_done(kind: type[MemoryMeshError]) -> None:
    error = kind("it broke", expected="a whole one", remedy="mend it")
    assert str(error) == "it broke; expected a whole one; mend it"
    assert str(kind("it broke")) == "it broke"
    assert str(kind("it broke", remedy="mend it")) == "it broke; mend it"


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_pickled_with_all_its_parts(kind: type[MemoryMeshError]) -> None:
    error = kind("it broke", expected="a whole one", remedy="mend it")
    back = pickle.loads(pickle.dumps(error))  # noqa: S301  (our own bytes)
    assert (type(back), str(back), back.what, back.expected, back.remedy) == (
        kind,
        str(error),
        "it broke",
        "a whole one",
        "mend it",
    )


def test_a_wrong_filter_is_wrong_input() -> None:
    assert issubclass(InvalidFilter, InvalidInput)


def test_what_is_not_found_is_also_a_key_error_whose_text_is_not_quoted() -> None:
    with pytest.raises(KeyError) as raised:
        raise NotFound("no memory 'x'", expected="one", remedy="check the id")
    assert isinstance(raised.value, MemoryMeshError)
    text = "no memory 'x'; expected one; check the id"
    assert (str(raised.value), f"{raised.value}") == (text, text)
    assert format_exception_only(raised.value)[-1].endswith(f"NotFound: {text}\n")


def test_a_value_is_shown_short_whatever_it_is() -> None:
    endless: list[object] = []
    for _ in range(10_000):
        endless = [endless]
    for odd in (10**5000, "x" * 1000, endless, b"\xff" * 1000, float("nan")):
        assert 0 < len(shown(odd)) <= 60
    assert shown("a\nb") == r"'a\nb'"
    assert shown(12345, max_length=3) == "123"


def test_a_secret_is_masked_before_the_value_is_cut() -> None:
    password = "hunter2" * 20
    url = f"https://ana:{password}@host.example/"
    assert "hunter2" in str(InvalidInput(f"bad {url!r:.60}")), (
        "cut first, it is not recognised any more"
    )
    assert "hunter2" not in shown(url)
    assert "hunter2" not in shown({"urls": [url]})


def test_no_error_cuts_a_value_that_is_not_masked_yet() -> None:
    sources = [
        path
        for path in Path(errors.__file__).parents[1].rglob("*.py")
        if "redaction" not in path.parts
    ]
    assert len(sources) > 100
    assert not [
        path.name for path in sources if re.search(r"!r:\.\d", path.read_text(encoding="utf-8"))
    ]


def test_a_missing_package_is_named_with_its_extra() -> None:
    error = not_installed(SettingsError, "uvicorn", "server")
    assert isinstance(error, SettingsError)
    assert str(error) == (
        "the package uvicorn is not installed; install it with pip install 'memory-mesh[server]', "
        "in a clone pip install '.[server]'"
    )
