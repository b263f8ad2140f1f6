"""The local model: similar texts have similar vectors, batches change nothing, and loading
happens at the first use."""

import json
import math
import os
import re
import subprocess
import sys
from array import array
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path

import pytest

from memory_mesh.core.errors import EmbeddingError, ModelMissing
from memory_mesh.core.language.safety.fence import fence_memories
from memory_mesh.core.model import MemoryRecord, Vector
from memory_mesh.models import PUBLISHED_MODEL, LocalEmbedder, ModelFiles, ModelPaths, model_files
from memory_mesh.models.local import Engine

TEXTS = [
    "The deploy key rotates on Mondays.",
    "Ana prefers tea to coffee.",
    "The heron nests by the river in spring.",
    "short",
    "Ünïcödé, 日本語, 🐘 and عربى in one text",
    "A much longer text, " + "which goes on and on about the weather, " * 20,
    "",
]


def cosine(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(values(one), values(other), strict=True))


def values(vector: Vector) -> array:
    return array("f", vector.data)


@pytest.mark.req("MESH-134")
def test_it_makes_vectors_of_384_dimensions_and_length_1_under_the_documents_name(
    local: LocalEmbedder,
) -> None:
    vectors = local.embed(TEXTS)
    assert [(vector.model, vector.dimension) for vector in vectors] == [
        ("memory-mesh/MiniLM-everyday-2", 384)
    ] * len(TEXTS)
    assert local.model == "memory-mesh/MiniLM-everyday-2"
    for vector in vectors:
        assert math.isclose(cosine(vector, vector), 1, abs_tol=1e-5)


PARAPHRASES = [
    (
        "How do I reset my password?",
        "I forgot my login credentials and need new ones.",
        "The soup needs more salt.",
    ),
    (
        "The meeting was moved to Friday.",
        "They rescheduled the appointment for the end of the week.",
        "Cats sleep a lot.",
    ),
    (
        "She adopted a puppy from the shelter.",
        "She got a young dog at the animal rescue.",
        "The server ran out of memory.",
    ),
    (
        "The database is slow today.",
        "Queries take ages to answer this morning.",
        "He plays the violin beautifully.",
    ),
]


@pytest.mark.parametrize(("text", "same", "other"), PARAPHRASES)
def test_a_paraphrase_is_nearer_than_another_subject(
    local: LocalEmbedder, text: str, same: str, other: str
) -> None:
    asked, near, far = local.embed([text, same, other])
    assert cosine(asked, near) > cosine(asked, far) + 0.2


# What sentence-transformers 6.2 (fp32) says of these pairs. Eight bits move the cosine of a pair by
# 0.012 on average, by more than 0.040 in one pair of a hundred and by 0.073 at most (44 850 pairs
# of chat messages).
EIGHT_BITS = 0.05
KNOWN = {
    ("A man is eating food.", "A man is eating a piece of bread."): 0.7553,
    ("A man is eating food.", "The girl is carrying a baby."): -0.1050,
    ("A man is riding a horse.", "A man is riding a white horse on an enclosed ground."): 0.7369,
    (
        "A monkey is playing drums.",
        "Someone in a gorilla costume is playing a set of drums.",
    ): 0.6433,
}


@pytest.mark.parametrize("pair", KNOWN)
def test_known_pairs_have_the_similarity_of_the_reference(
    local: LocalEmbedder, pair: tuple[str, str]
) -> None:
    published = local.of_model(PUBLISHED_MODEL)
    assert published is not None
    assert cosine(*published.embed(pair)) == pytest.approx(KNOWN[pair], abs=EIGHT_BITS)


@pytest.mark.parametrize("pair", KNOWN)
def test_the_learnt_change_leaves_statements_about_as_similar_as_they_were(
    local: LocalEmbedder, pair: tuple[str, str]
) -> None:
    # Thresholds of cosines go on working.
    assert cosine(*local.embed(pair)) == pytest.approx(KNOWN[pair], abs=0.15)


def test_a_question_is_nearer_to_its_answer_than_with_the_published_model(
    local: LocalEmbedder,
) -> None:
    published = local.of_model(PUBLISHED_MODEL)
    assert published is not None
    pair = (
        "Which medicine must I avoid?",
        "I'm allergic to penicillin, found out the hard way last year.",
    )
    assert cosine(*local.embed(pair)) > cosine(*published.embed(pair)) + 0.05


def test_a_model_that_cannot_run_here_has_no_embedder(local: LocalEmbedder) -> None:
    assert local.of_model("text-embedding-3-small") is None


def test_a_vector_does_not_depend_on_what_else_is_in_the_batch(local: LocalEmbedder) -> None:
    alone = [local.embed([text])[0] for text in TEXTS]
    assert local.embed(TEXTS) == alone
    assert local.embed(TEXTS[::-1]) == alone[::-1]
    assert local.embed(TEXTS * 3) == alone * 3
    assert len({vector.data for vector in alone}) == len(TEXTS)


def test_one_worker_or_many_make_no_difference(paths: ModelPaths, local: LocalEmbedder) -> None:
    single = LocalEmbedder(paths, fetch=False, workers=1)
    assert (
        single.embed(TEXTS)
        == LocalEmbedder(paths, fetch=False, workers=7).embed(TEXTS)
        == local.embed(TEXTS)
    )


@pytest.mark.deep
def test_another_process_makes_the_same_vectors(
    local: LocalEmbedder, paths: ModelPaths, tmp_path: Path
) -> None:
    program = (
        "import sys, json, pathlib\n"
        "from memory_mesh.models import LocalEmbedder, ModelPaths\n"
        "texts = json.load(sys.stdin)\n"
        "made = LocalEmbedder(ModelPaths(cache=pathlib.Path(sys.argv[1])), "
        "fetch=False).embed(texts)\nprint(json.dumps([vector.data.hex() for vector in made]))\n"
    )
    words = [sys.executable, "-I", "-c", program, str(paths.cache)]
    done = subprocess.run(
        words, input=json.dumps(TEXTS), capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert json.loads(done.stdout) == [vector.data.hex() for vector in local.embed(TEXTS)]


@pytest.mark.deep
def test_many_threads_share_one_embedder_that_loads_once(
    paths: ModelPaths, model: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Path] = []
    real = model_files.read_model
    monkeypatch.setattr(
        model_files, "read_model", lambda folder, model: reads.append(folder) or real(folder, model)
    )
    embedder = LocalEmbedder(paths, fetch=False)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: embedder.embed(TEXTS[n % 3 :]), range(8)))
    assert reads == [paths.built]
    for one, other in combinations(made, 2):
        assert one[-1] == other[-1]
    assert made[0] == embedder.embed(TEXTS)


# --- the window ---


@pytest.mark.req("MESH-018")
def test_tokens_are_counted_by_the_models_own_tokenizer(local: LocalEmbedder) -> None:
    counted = {
        text: local.count(text)
        for text in ("", "hello world", "unbelievably", "日本語", "a.b", "x" * 101)
    }
    assert counted == {
        "": 0,
        "hello world": 2,
        "unbelievably": 5,
        "日本語": 3,
        "a.b": 3,
        "x" * 101: 1,
    }


def test_a_prompt_of_fifty_tokens_of_the_model_holds_one_memory_and_of_four_hundred_fifteen(
    local: LocalEmbedder,
) -> None:
    at = "2026-11-26T09:30:00.000Z"
    memories = [
        MemoryRecord(
            id=f"mem_{n}",
            content=f"The deploy key of Atlas rotates on Mondays and lies in the safe, {n:03}.",
            created_at=at,
            updated_at=at,
        )
        for n in range(30)
    ]
    for start in range(20):
        boundary = f"{start * 31_415_926_535:032x}"
        for max_tokens, least in ((50, 1), (400, 15)):
            text = fence_memories(memories, boundary, max_tokens=max_tokens, count=local.count)
            assert local.count(text) <= max_tokens
            assert len(re.findall(r", \d{3}\.$", text, re.MULTILINE)) >= least


def test_only_the_tokens_within_the_window_reach_the_vector(local: LocalEmbedder) -> None:
    full = " ".join(["word"] * local.window)
    assert local.count(full) == local.window == 256
    fitting, more, fewer = local.embed(
        [full, f"{full} heron heron heron", full.removesuffix(" word") + " heron"]
    )
    assert more == fitting
    assert fewer != fitting


@pytest.mark.deep
def test_a_text_of_a_million_characters_has_a_vector(local: LocalEmbedder) -> None:
    text = "The deploy key rotates on Mondays. " * 30_000
    assert len(text) > 1_000_000
    assert local.count(text) == 240_000
    assert local.embed([text]) == local.embed([text[:5_000]])


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n\t",
        "\0",
        "\u200b",
        "🐘" * 500,
        "e\u0301" * 300,
        "x" * 10_000,
        "\ud800",
        "a\udfffb",
    ],
)
def test_any_text_has_a_vector(local: LocalEmbedder, text: str) -> None:
    (vector,) = local.embed([text])
    assert all(math.isfinite(value) for value in values(vector))
    assert local.count(text) >= 0


def test_an_empty_list_loads_nothing(empty: ModelPaths) -> None:
    assert LocalEmbedder(empty, fetch=False).embed([]) == []


def test_special_tokens_in_a_text_are_ordinary_text(local: LocalEmbedder) -> None:
    ends, other = local.embed(["tea [SEP] [PAD] [CLS]", "tea"])
    assert local.count("[SEP]") > 1
    assert ends != other


# --- laziness and failure ---


@pytest.mark.req("MESH-137")
def test_making_an_embedder_loads_nothing_and_the_first_embedding_does(
    paths: ModelPaths, model: ModelFiles, tmp_path: Path
) -> None:
    program = (
        "import sys, pathlib\n"
        "from memory_mesh.models import CachedEmbedder, FallbackEmbedder, LocalEmbedder, "
        "ModelPaths\n"
        "heavy = {'numpy', 'onnx', 'onnxruntime', 'tokenizers', 'safetensors', 'huggingface_hub', "
        "'torch', 'subprocess'}\nembedder = "
        "FallbackEmbedder([CachedEmbedder(LocalEmbedder(ModelPaths(cache=pathlib.Path(sys.argv[1]))"
        ", fetch=False))])\nembedder.model, embedder.window\n"
        "print(*sorted(heavy & set(sys.modules)))\n"
        "embedder.embed(['text'])\n"
        "print(*sorted(heavy & set(sys.modules)))\n"
    )
    words = [sys.executable, "-I", "-c", program, str(paths.cache)]
    out = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    before, after = out.splitlines()
    assert before == ""
    assert {"numpy", "onnxruntime", "tokenizers"} <= set(after.split())
    assert not {"onnx", "safetensors", "torch"} & set(after.split())


def test_running_the_model_leaves_no_id_of_this_computer_and_sends_nothing(
    paths: ModelPaths, tmp_path: Path
) -> None:
    """ONNX Runtime would write an id of the device into the user's cache, and send usage data
    with it."""
    program = (
        "import ctypes, pathlib, sys\n"
        "from memory_mesh.models import LocalEmbedder, ModelPaths\n"
        "print(LocalEmbedder(ModelPaths(cache=pathlib.Path(sys.argv[1])), "
        "fetch=False).embed(['text'])[0].dimension)\nget = ctypes.CDLL(None).getenv; get.restype = "
        "ctypes.c_char_p\n"
        "print(get(b'ORT_DISABLE_TELEMETRY'))\n"
    )
    home = tmp_path / "home"
    home.mkdir()
    environ = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home)}
    words = [sys.executable, "-c", program, str(paths.cache)]
    done = subprocess.run(
        words, capture_output=True, text=True, check=True, env=environ, cwd=tmp_path
    )
    assert done.stdout.split() == ["384", "b'1'"]
    assert done.stderr == ""
    assert list(home.rglob("*")) == []


def test_without_a_model_the_error_is_one_line_with_the_remedies(empty: ModelPaths) -> None:
    embedder = LocalEmbedder(empty, fetch=False)
    for call in (lambda: embedder.embed(["x"]), lambda: embedder.count("x")):
        with pytest.raises(ModelMissing, match="memory-mesh model fetch") as missing:
            call()
        assert "is not on this computer" in str(missing.value)
        assert "embedder = none" in str(missing.value)
        assert len(str(missing.value)) < 200


def test_an_embedder_finds_the_model_as_soon_as_it_is_there(
    empty: ModelPaths, model: ModelFiles, local: LocalEmbedder
) -> None:
    embedder = LocalEmbedder(empty, fetch=False)
    with pytest.raises(ModelMissing):
        embedder.embed(["x"])
    model_files.write_model(ModelFiles(empty.built, model.graph, model.tokenizer))
    assert embedder.embed(["x"]) == local.embed(["x"])


def test_a_failed_fetch_is_not_repeated(empty: ModelPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Path] = []
    monkeypatch.setattr(
        model_files, "SOURCES", {"a way": lambda into: tries.append(into) or "no network"}
    )
    embedder = LocalEmbedder(empty)
    with pytest.raises(ModelMissing, match="a way: no network"):
        embedder.embed(["x"])
    with pytest.raises(ModelMissing, match="nothing was fetched"):
        embedder.embed(["x"])
    assert len(tries) == 1


def test_a_graph_that_cannot_be_run_is_an_embedding_error(model: ModelFiles) -> None:
    with pytest.raises(EmbeddingError, match="cannot be loaded"):
        Engine(b"no graph", model.tokenizer)
