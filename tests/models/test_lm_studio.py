"""LM Studio that is not running: on macOS it is started once; on other systems the call fails."""

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from socket import create_server
from subprocess import CompletedProcess
from threading import Event, Lock

import pytest

from memory_mesh.core.errors import CallError, Cancelled, EmbeddingError, Unreachable
from memory_mesh.core.model import Vector
from memory_mesh.core.model.background import cancellable
from memory_mesh.models import HashingEmbedder, remote_embedder
from memory_mesh.models.remote_embedder import LmStudioEmbedder, RemoteEmbedder, start_lm_studio
from memory_mesh.net import HttpClient, System

PLAIN = HashingEmbedder(16)


def refused_connection() -> EmbeddingError:
    error = EmbeddingError("no vectors")
    error.__cause__ = Unreachable("gave no answer")
    return error


class Studio:
    """An embedder that works after it was started, and after `slow` more calls."""

    def __init__(
        self, *, slow: int = 0, starts: bool = True, error: EmbeddingError | None = None
    ) -> None:
        self.launched, self.asked, self.waited = 0, 0, [0.0][:0]
        self._left = slow
        self._starts, self._error = starts, error or refused_connection()
        self._runs = False

    model, window = "lmstudio/some-model", 510

    def count(self, text: str) -> int:
        return PLAIN.count(text)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.asked += 1
        if not self._runs or self._left:
            self._left -= self._runs
            raise self._error
        return PLAIN.embed(texts)

    def launch(self) -> bool:
        self.launched += 1
        self._runs = self._starts
        return True

    def wrapped(self, *, platform: str = "darwin", once: "Lock | None" = None) -> LmStudioEmbedder:
        return LmStudioEmbedder(
            self,
            platform=platform,
            start=self.launch,
            once=once or Lock(),
            pause=self.waited.append,
        )


@pytest.mark.req("LANE-33")
@pytest.mark.parametrize("slow", [0, 3])
def test_on_macos_it_is_started_and_the_call_is_repeated(slow: int) -> None:
    studio = Studio(slow=slow)
    assert studio.wrapped().embed(["tea"]) == PLAIN.embed(["tea"])
    assert (studio.launched, studio.asked, len(studio.waited)) == (1, slow + 2, slow + 1)


@pytest.mark.req("LANE-33")
@pytest.mark.parametrize("platform", ["linux", "win32", "freebsd14", "cygwin", "ios"])
def test_nothing_is_started_on_other_systems(platform: str) -> None:
    studio = Studio()
    with pytest.raises(EmbeddingError, match="no vectors"):
        studio.wrapped(platform=platform).embed(["tea"])
    assert (studio.launched, studio.asked, studio.waited) == (0, 1, [])


@pytest.mark.req("LANE-33")
def test_a_failed_start_is_an_error_and_is_not_repeated() -> None:
    studio = Studio(starts=False)
    wrapped = studio.wrapped()
    for _ in range(3):
        with pytest.raises(EmbeddingError, match="no vectors"):
            wrapped.embed(["tea"])
    assert studio.launched == 1
    assert len(studio.waited) == remote_embedder.START_TRIES


def test_a_program_that_cannot_be_started_is_not_waited_for() -> None:
    studio = Studio()
    wrapped = LmStudioEmbedder(
        studio, platform="darwin", start=lambda: False, once=Lock(), pause=studio.waited.append
    )
    with pytest.raises(EmbeddingError, match="no vectors"):
        wrapped.embed(["tea"])
    assert (studio.asked, studio.waited) == (1, [])


@pytest.mark.req("LANE-33")
def test_a_process_starts_it_once_for_all_embedders() -> None:
    once, studios = Lock(), [Studio(starts=False) for _ in range(8)]

    def ask(studio: Studio) -> None:
        with pytest.raises(EmbeddingError):
            studio.wrapped(once=once).embed(["tea"])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, studios))
    assert sum(studio.launched for studio in studios) == 1


@pytest.mark.parametrize("cause", [None, CallError("answered 500"), ValueError("x")])
def test_a_server_that_runs_is_not_started(cause: Exception | None) -> None:
    error = EmbeddingError("something else")
    error.__cause__ = cause
    studio = Studio(error=error)
    with pytest.raises(EmbeddingError, match="something else"):
        studio.wrapped().embed(["tea"])
    assert studio.launched == 0


def test_an_answer_that_is_wrong_ends_the_wait() -> None:
    class Wrong(Studio):
        def embed(self, texts: Sequence[str]) -> list[Vector]:
            if self.launched:
                self.asked += 1
                raise EmbeddingError("not that model")
            return super().embed(texts)

    studio = Wrong()
    with pytest.raises(EmbeddingError, match="not that model"):
        studio.wrapped().embed(["tea"])
    assert studio.asked == 2


def test_the_wait_can_be_cancelled() -> None:
    studio, stop = Studio(slow=3), Event()
    stop.set()
    wrapped = LmStudioEmbedder(studio, platform="darwin", start=studio.launch, once=Lock())
    with cancellable(stop), pytest.raises(Cancelled):
        wrapped.embed(["tea"])


def test_it_delegates_everything_else() -> None:
    studio = Studio()
    studio.launch()
    wrapped = studio.wrapped()
    assert (wrapped.model, wrapped.window, wrapped.count("hello")) == (
        studio.model,
        510,
        PLAIN.count("hello"),
    )
    assert wrapped.embed(["tea"]) == PLAIN.embed(["tea"])
    assert studio.launched == 1


@pytest.mark.req("LANE-33")
def test_a_refused_connection_starts_it() -> None:
    with create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    quick = replace(System(), pause=lambda seconds: None)
    client = HttpClient(f"http://127.0.0.1:{port}/v1", allow_local=True, attempts=2, system=quick)
    remote = RemoteEmbedder(client, model="m", name="lmstudio/m", window=510)
    launched: list[bool] = []

    def start() -> bool:
        launched.append(True)
        return False

    with pytest.raises(EmbeddingError, match="cannot be reached"):
        LmStudioEmbedder(remote, platform="darwin", start=start, once=Lock()).embed(["tea"])
    assert launched == [True]


# --- how it is started ---


class Programs:
    """What would have been run; those on the list fail."""

    def __init__(self, *failing: str) -> None:
        self.run: list[list[str]] = []
        self._failing = failing

    def __call__(self, words: list[str], **options: object) -> CompletedProcess[str]:
        assert not options.get("shell")
        self.run.append(words)
        if "missing" in self._failing and words[0].endswith("lms"):
            raise FileNotFoundError(words[0])
        return CompletedProcess(words, int(words[0].rpartition("/")[2] in self._failing), stderr="")


@pytest.mark.parametrize(
    ("failing", "started", "worked"),
    [
        ((), ["lms"], True),
        (("lms",), ["lms", "open"], True),
        (("missing",), ["lms", "open"], True),
        (("lms", "open"), ["lms", "open"], False),
    ],
)
def test_its_own_command_is_tried_first_and_then_the_program_is_opened(
    monkeypatch: pytest.MonkeyPatch, failing: tuple[str, ...], started: list[str], worked: bool
) -> None:
    programs = Programs(*failing)
    monkeypatch.setattr(subprocess, "run", programs)
    assert start_lm_studio() is worked
    assert [words[0].rpartition("/")[2] for words in programs.run] == started
    assert programs.run[0][1:] == ["server", "start"]
    assert programs.run[1:] in ([], [["/usr/bin/open", "-g", "-a", "LM Studio"]])
