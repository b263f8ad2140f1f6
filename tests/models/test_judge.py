"""The judge of pairs: its graph follows the formulas, and without its files a mesh goes on."""

import gc
import logging
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from memory_mesh import MemoryMesh
from memory_mesh.api import build
from memory_mesh.api.settings import Settings, load
from memory_mesh.core.errors import Cancelled
from memory_mesh.core.model import Ids
from memory_mesh.core.model.background import cancellable
from memory_mesh.core.ports import RELATIONS, Likely, PairJudge
from memory_mesh.models import (
    JUDGE,
    HashingEmbedder,
    LocalJudge,
    ModelFiles,
    ModelPaths,
    model_files,
    onnx_graph,
)
from memory_mesh.models import judge as judges
from memory_mesh.models.judge import PairEngine, cut
from memory_mesh.models.model_files import (
    GRAPHS,
    HASHES,
    JUDGE_CHANGE,
    MODEL,
    PUBLISHED,
    TOKENIZER,
    read_change,
    read_model,
)

from .test_onnx_graph import WIDTH, random_weights, safetensors, states

IDS, SEGMENTS = [101, 7, 8, 102, 9, 10, 11, 102], [0, 0, 0, 0, 1, 1, 1, 1]
PAIRS = [
    ("Ana lives in Lisbon.", "Ana moved to Porto last week."),
    ("The gym is on Mondays.", "We cancelled the gym."),
    ("Bob likes tea.", "Bob has two dogs."),
    ("", "\ud800"),
]


def random_change(weights: dict[str, np.ndarray], rank: int = 10) -> dict[str, np.ndarray]:
    """A change of all matrices and norms, and a head, as a training would write them."""
    chance = np.random.default_rng(5)
    change: dict[str, np.ndarray] = {}
    for name, value in weights.items():
        if name.endswith(("dense.weight", "query.weight", "key.weight", "value.weight")):
            rows, columns = value.shape
            change[name.replace(".weight", ".up")] = chance.normal(0, 0.1, (rows, rank))
            change[name.replace(".weight", ".down")] = chance.normal(0, 0.1, (rank, columns))
        elif "LayerNorm" in name:
            change[name] = value + chance.normal(0, 0.1, value.shape)
    change["head.weight"] = chance.normal(0, 0.03, (len(RELATIONS), 2 * WIDTH))
    change["head.bias"] = chance.normal(0, 0.2, len(RELATIONS))
    return {name: value.astype(np.float16) for name, value in change.items()}


def by_hand(
    weights: dict[str, np.ndarray], change: dict[str, np.ndarray], segments: list[int]
) -> np.ndarray:
    """The probabilities by the formulas."""
    given = {**weights, **{name: value.astype(np.float64) for name, value in change.items()}}
    for name in [name.removesuffix(".up") for name in change if name.endswith(".up")]:
        given[f"{name}.weight"] = (
            weights[f"{name}.weight"] + given[f"{name}.up"] @ given[f"{name}.down"]
        )
    hidden = states(given, IDS, segments)
    both = np.concatenate([hidden[0], hidden.mean(axis=0)])
    logits = given["head.weight"] @ both + given["head.bias"]
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def by_graph(graph: bytes, tokenizer: bytes, segments: list[int]) -> np.ndarray:
    inputs = {"ids": np.array([IDS]), "segments": np.array([segments])}
    return PairEngine(graph, tokenizer).call(**inputs)[0][0]


@pytest.mark.deep
def test_the_graph_computes_what_the_formulas_say_and_tells_the_segments_apart(
    model: ModelFiles,
) -> None:
    weights = random_weights()
    change = random_change(weights)
    graph = onnx_graph.build(safetensors(weights), change=change, quantized=False)
    first, second = (
        by_graph(graph, model.tokenizer, segments) for segments in (SEGMENTS, SEGMENTS[::-1])
    )
    assert first == pytest.approx(by_hand(weights, change, SEGMENTS), abs=1e-5)
    assert second == pytest.approx(by_hand(weights, change, SEGMENTS[::-1]), abs=1e-5)
    assert np.abs(first - second).max() > 1e-2


@pytest.mark.deep
def test_eight_bits_stay_near_the_formulas(model: ModelFiles) -> None:
    weights = random_weights()
    change = random_change(weights)
    graph = onnx_graph.build(safetensors(weights), change=change)
    found = by_graph(graph, model.tokenizer, SEGMENTS)
    assert found == pytest.approx(by_hand(weights, change, SEGMENTS), abs=0.05)
    assert onnx_graph.build(safetensors(weights), change=change) == graph


def test_the_shipped_change_is_small_and_has_the_parts_of_the_judge() -> None:
    data = (model_files._DATA / JUDGE_CHANGE).read_bytes()
    assert sha256(data).hexdigest() == HASHES[JUDGE_CHANGE]
    assert len(data) < 1_000_000
    change = read_change(JUDGE)
    assert {str(value.dtype) for value in change.values()} == {"float16"}
    assert change["head.weight"].shape == (len(RELATIONS), 2 * WIDTH)
    assert change["head.bias"].shape == (len(RELATIONS),)
    assert sum(name.endswith(".up") for name in change) == 36
    assert sum("LayerNorm" in name for name in change) == 2 * 13
    assert all(np.isfinite(value).all() for value in change.values())


# --- the judge with its real files ---


@pytest.fixture(scope="session")
def real(paths: ModelPaths) -> LocalJudge:
    assert read_model(paths.built, JUDGE), "run `memory-mesh model fetch`"
    return LocalJudge(paths, fetch=False)


def test_each_pair_has_four_probabilities_whose_sum_is_1(real: LocalJudge) -> None:
    judged = real.judge(PAIRS)
    assert len(judged) == len(PAIRS)
    for likely in judged:
        parts = [getattr(likely, name) for name in RELATIONS]
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(1, abs=1e-5)
        assert likely.change == likely.replaces + likely.ends
    assert real.version == "pairs-1"


def test_a_pair_is_judged_alone_in_any_thread_and_the_model_is_loaded_once(
    paths: ModelPaths, real: LocalJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[str] = []
    find = judges.find_model
    monkeypatch.setattr(
        judges,
        "find_model",
        lambda paths, **more: loads.append(paths.model) or find(paths, **more),
    )
    alone = [real.judge([pair])[0] for pair in PAIRS]
    shared = LocalJudge(paths, fetch=False)
    with ThreadPoolExecutor(4) as pool:
        judged = list(pool.map(lambda _: shared.judge(PAIRS), range(4)))
    assert judged == [alone] * 4
    assert loads == [JUDGE]


def test_a_cancelled_call_stops(real: LocalJudge) -> None:
    stop = Event()
    stop.set()
    for pairs in (PAIRS, PAIRS[:1]):
        with cancellable(stop), pytest.raises(Cancelled):
            real.judge(pairs)
    assert len(real.judge(PAIRS)) == len(PAIRS)


class Spy:
    """Records what reaches the graph of an engine, which always answers the same."""

    def __init__(self, engine: PairEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ids: list[int] = []
        self.segments: list[int] = []
        self.split: list[int] = []  # lengths of the texts that became tokens
        tokens = engine.tokens

        def call(*, ids: np.ndarray, segments: np.ndarray) -> list[np.ndarray]:
            self.ids, self.segments = ids[0].tolist(), segments[0].tolist()
            return [np.array([[0.1, 0.2, 0.3, 0.4]])]

        monkeypatch.setattr(engine, "call", call)
        monkeypatch.setattr(
            engine, "tokens", lambda text: self.split.append(len(text)) or tokens(text)
        )


@pytest.fixture
def engine(model: ModelFiles) -> PairEngine:
    return PairEngine(model.graph, model.tokenizer)  # the graph is not run


def test_the_graph_reads_the_older_statement_first_and_the_newer_one_as_its_second_segment(
    engine: PairEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    older, newer = engine.tokens("one [SEP] two"), engine.tokens("three")
    spy = Spy(engine, monkeypatch)
    assert engine.judge("one [SEP] two", "three") == Likely(0.1, 0.2, 0.3, 0.4)
    assert spy.ids == [101, *older, 102, *newer, 102]
    assert spy.segments == [0] * (len(older) + 2) + [1] * (len(newer) + 1)


@pytest.mark.parametrize("words", [62, 63, 1000, 200_000])
def test_of_a_long_statement_the_first_48_and_the_last_16_tokens_are_read(
    engine: PairEngine, monkeypatch: pytest.MonkeyPatch, words: int
) -> None:
    first, word, last = (engine.tokens(text)[0] for text in ("first", "word", "last"))
    spy = Spy(engine, monkeypatch)
    engine.judge("first " + "word " * words + "last", "tea")
    filler = min(words, 62)
    assert spy.ids[1:-3] == [first, *[word] * filler, last]
    assert max(spy.split) <= 5006  # of a very long one only two parts become tokens


def test_a_statement_that_fits_is_read_whole() -> None:
    tokens = list(range(65))
    assert cut(tokens[:64]) == tokens[:64]
    assert cut(tokens) == [*tokens[:48], *tokens[49:]]


# --- what cannot be used ---


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of small files that count as the published ones."""
    folder = tmp_path / "published"
    folder.mkdir()
    for name in PUBLISHED:
        (folder / name).write_text(f"the {name} of a test")
        monkeypatch.setitem(HASHES, name, sha256((folder / name).read_bytes()).hexdigest())
    return folder


@pytest.mark.parametrize("wrong", ["missing", "damaged", "of another model"])
def test_a_wrong_change_is_one_line_and_nothing_is_judged(
    wrong: str,
    empty: ModelPaths,
    published: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = tmp_path / JUDGE_CHANGE
    if wrong == "damaged":
        file.write_bytes((model_files._DATA / JUDGE_CHANGE).read_bytes()[:-1])
    elif wrong != "missing":
        np.savez(file, **{"head.bias": np.zeros(4, np.float16)})
    monkeypatch.setattr(model_files, "_DATA", tmp_path)
    judge = LocalJudge(replace(empty, model_path=published))
    assert [judge.judge(PAIRS) for _ in range(2)] == [[], []]
    [line] = caplog.messages
    assert line.startswith("changes of memories are not recognised: ")
    assert JUDGE_CHANGE in line
    assert "\n" not in line


def test_a_graph_that_cannot_be_run_is_one_line_and_nothing_is_judged(
    empty: ModelPaths,
    published: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    model: ModelFiles,
) -> None:
    (published / TOKENIZER).write_bytes(model.tokenizer)
    monkeypatch.setitem(HASHES, TOKENIZER, sha256(model.tokenizer).hexdigest())
    monkeypatch.setattr(onnx_graph, "build", lambda weights, progress, change: b"no graph")
    monkeypatch.setitem(HASHES, GRAPHS[JUDGE], sha256(b"no graph").hexdigest())
    judge = LocalJudge(replace(empty, model_path=published))
    assert [judge.judge(PAIRS) for _ in range(2)] == [[], []]
    assert [line.count("cannot be loaded") for line in caplog.messages] == [1]


def test_offline_a_missing_judge_is_one_line_and_nothing_is_fetched(
    empty: ModelPaths, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        model_files, "SOURCES", {"a way": lambda into: pytest.fail("it was fetched")}
    )
    judge = LocalJudge(replace(empty, offline=True))
    assert [judge.judge(PAIRS) for _ in range(2)] == [[], []]
    [line] = caplog.messages
    assert "offline is set" in line
    assert "update_judge = off" in line


def test_without_pairs_nothing_is_loaded(
    empty: ModelPaths, caplog: pytest.LogCaptureFixture
) -> None:
    assert LocalJudge(empty, fetch=False).judge([]) == []
    assert caplog.messages == []


# --- the judge of a mesh ---


def settings(folder: Path, **options: object) -> Settings:
    given = {"cache_dir": str(folder / "cache"), **options}
    return load(given, environ={"MEMORY_MESH_HOME": str(folder / "home")}, cwd=folder)


def judge_of(folder: Path, **options: object) -> PairJudge | None:
    return build.make_judge(settings(folder, **options), None, Ids())


def test_the_local_judge_is_the_default_and_meshes_share_it_until_the_last_one_is_gone(
    tmp_path: Path,
) -> None:
    one, other = judge_of(tmp_path), judge_of(tmp_path)
    assert isinstance(one, LocalJudge)
    assert one is other
    assert one is not judge_of(tmp_path, cache_dir=str(tmp_path / "elsewhere"))
    paths = replace(build.model_paths(settings(tmp_path)), model=JUDGE)
    assert paths in build._local_judges
    del one, other
    gc.collect()
    assert paths not in build._local_judges


@pytest.mark.parametrize(
    "options", [{"update_judge": "off"}, {"embedder": "hash"}, {"embedder": "none"}]
)
def test_without_the_local_model_and_switched_off_there_is_none(
    tmp_path: Path, options: dict[str, str]
) -> None:
    assert judge_of(tmp_path, **options) is None


def test_offline_there_is_none_if_its_files_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(model_files, "find_spec", lambda package: None)
    with caplog.at_level(logging.INFO, "memory_mesh"):
        assert judge_of(tmp_path, offline=True) is None
    assert caplog.messages == [
        "changes of memories are not recognised: offline is set, and memory-mesh/pairs-1 is missing"
    ]
    here = tmp_path / "here"
    here.mkdir()
    for names in (PUBLISHED, (GRAPHS[JUDGE], TOKENIZER)):
        for name in names:
            (here / name).touch()
        assert judge_of(tmp_path, offline=True, model_path=str(here)) is not None
        for name in names:
            (here / name).unlink()
    (here / GRAPHS[MODEL]).touch()
    assert judge_of(tmp_path, offline=True, model_path=str(here)) is None


def test_a_mesh_opens_and_closes_with_its_judge_and_one_of_the_callers_embedder_has_none(
    tmp_path: Path,
) -> None:
    places = {"cache_dir": str(tmp_path / "cache"), "offline": False}
    with MemoryMesh("memory://", embedder="local", **places) as mesh:
        assert isinstance(mesh._context().models.judge, LocalJudge)
    with MemoryMesh("memory://", embedder=HashingEmbedder(), **places) as mesh:
        assert mesh._context().models.judge is None


def test_making_a_judge_loads_nothing(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from memory_mesh.models import LocalJudge, ModelPaths\n"
        "LocalJudge(ModelPaths(cache=pathlib.Path(sys.argv[1]))).version\n"
        "print(*{'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules))\n"
    )
    words: Sequence[str] = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == []
