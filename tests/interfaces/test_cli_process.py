"""The installed command in a separate process: locales, pipes, signals, and loaded modules."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

COMMAND = str(Path(sys.executable).with_name("memory-mesh"))
MAIN = "from memory_mesh.interfaces.cli.main import main; main()"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    ours = (
        "MEMORY_MESH_",
        "LC_",
        "LANG",
        "COV",
        "PYTHONUNBUFFERED",
        "PYTHONIOENCODING",
        "PYTHONUTF8",
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "MEMORY_MESH_HOME": str(tmp_path / "home"), "MEMORY_MESH_EMBEDDER": "hash"}


def ran(
    environ: dict[str, str], *words: str, text: str = ""
) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        words, env=environ, input=text.encode(), capture_output=True, check=False, timeout=60
    )


@pytest.mark.deep
@pytest.mark.req("MESH-164")
def test_the_installed_command_and_the_module_are_the_same(environ):
    installed = ran(environ, COMMAND, "stats")
    module = ran(environ, sys.executable, "-m", "memory_mesh", "stats")
    assert installed.stdout.startswith(b"[MemoryMesh] Total Memories: 0\n")
    assert module.stdout == installed.stdout
    failed = ran(environ, sys.executable, "-m", "memory_mesh", "get", "--id", "x")
    assert (failed.returncode, failed.stdout) == (4, b"")
    assert failed.stderr.startswith(b"[MemoryMesh Error] no memory 'x'")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "xx_YY.UTF-8"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    ],
)
@pytest.mark.deep
def test_every_character_is_written_in_the_poorest_locale(environ, locale):
    text = "elephant Ωmega 🐘 日本語"
    stored = ran({**environ, **locale}, COMMAND, "store", "--content", "-", text=text)
    assert stored.returncode == 0, stored.stderr
    found = ran({**environ, **locale}, COMMAND, "search", "elephant")
    assert text in found.stdout.decode()
    assert found.stderr == b""


@pytest.mark.deep
def test_a_home_with_letters_that_the_locale_does_not_know_is_used(environ, tmp_path):
    poor = {
        **environ,
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "MEMORY_MESH_HOME": str(tmp_path / "Ωmé"),
    }
    stored = ran(poor, COMMAND, "store", "--content", "an elephant")
    assert stored.returncode == 0, stored.stderr
    assert (tmp_path / "Ωmé" / "memory.db").exists()
    assert b"an elephant" in ran({**poor, "PYTHONUTF8": "1"}, COMMAND, "search", "elephant").stdout


@pytest.mark.deep
def test_a_reader_that_goes_away_ends_the_command_quietly(environ):
    ran(environ, COMMAND, "store", "--content", "-", text="many words " * 15_000)
    listing = subprocess.Popen(
        [COMMAND, "search", "words"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )  # fmt: skip
    with listing:
        assert listing.stdout.readline() == b"[MemoryMesh] Found 1 matches.\n"
        listing.stdout.close()
        assert listing.stderr.read() == b""
    assert listing.returncode == 141


@pytest.mark.deep
def test_ctrl_c_ends_in_one_line(environ):
    keyboard, terminal = pty.openpty()
    # A shell that starts jobs in the background makes them deaf to Ctrl-C; this one shall hear it.
    hearing = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {MAIN}"
    asking = subprocess.Popen(
        [sys.executable, "-c", hearing, "delete-all", "--agent", "x"],
        env=environ, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with asking:
        question = b""
        while not question.endswith(b"[y/N] ") and (byte := asking.stderr.read(1)):
            question += byte
        assert question == b"[MemoryMesh] Erase all memories of agent x for good? [y/N] "
        asking.send_signal(signal.SIGINT)
        assert (asking.stdout.read(), asking.stderr.read()) == (
            b"",
            b"[MemoryMesh Error] interrupted\n",
        )
    os.close(keyboard)
    os.close(terminal)
    assert asking.returncode == 130


@pytest.mark.deep
def test_a_mistake_of_ours_is_one_line_and_its_trace_is_shown_on_request(environ):
    broken = (
        "from memory_mesh.interfaces.cli import main; main.run = lambda words: {}['private']; "
        "main.main()"
    )
    brief = ran(environ, sys.executable, "-c", broken, "stats")
    assert (brief.returncode, brief.stdout) == (1, b"")
    assert brief.stderr.startswith(b"[MemoryMesh Error] unexpected KeyError: ")
    assert brief.stderr.count(b"\n") == 1
    assert b"private" not in brief.stderr
    full = ran(environ, sys.executable, "-c", broken, "--debug", "stats")
    assert full.returncode == 1
    assert b"Traceback" in full.stderr


@pytest.mark.deep
def test_small_commands_load_nothing_heavy(environ):
    heavy = "{'numpy', 'sqlglot', 'rich', 'asyncio', 'pydantic', 'email', 'ssl', 'unittest'}"
    code = (
        "import sys; from memory_mesh.interfaces.cli.main import run; "
        "run(['store', '--content', 'The key rotates.', '--tag', 'x']); run(['stats']); "
        f"run(['list']); print('loaded:', sorted({heavy} & sys.modules.keys())); run(['list', "
        f"'--filter', 'turn = 1']); print('loaded:', sorted({heavy} & sys.modules.keys()))"
    )
    told = ran(environ, sys.executable, "-c", code).stdout.decode()
    lines = [line for line in told.splitlines() if line.startswith("loaded:")]
    assert lines[0] == "loaded: []"
    assert "sqlglot" in lines[1]


@pytest.mark.deep
def test_a_command_loads_only_the_flows_that_it_runs(environ):
    code = (
        "import sys; from memory_mesh.interfaces.cli.main import run; "
        "names = 'write.write search.search write.embed learning.lessons upkeep.erase "
        "mirror.folders search.filters'; flows = {'memory_mesh.flows.' + name for name in "
        "names.split()}; "
        "run(['stats']); print('loaded:', *(flows & sys.modules.keys())); "
        "run(['store', '--content', 'x']); print('loaded:', 'memory_mesh.flows.write.write' in "
        "sys.modules)"
    )
    told = ran(environ, sys.executable, "-c", code).stdout.decode()
    assert [line for line in told.splitlines() if line.startswith("loaded:")] == [
        "loaded:",
        "loaded: True",
    ]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("command", "code", "error"),
    [
        ("stats >&-", 0, b"[MemoryMesh] nothing is stored yet"),
        ("--version >&-", 0, b""),
        ("bogus 2>&-", 2, b""),
        ("stats <&- >&- 2>&-", 0, b""),
        ("store --content - <&-", 2, b"[MemoryMesh Error] content is blank"),
        ("delete-all --agent x <&-", 2, b"[MemoryMesh Error] this needs a confirmation"),
    ],
)
@pytest.mark.deep
def test_a_closed_stream_is_an_empty_one(environ, command, code, error):
    done = ran(environ, "bash", "-c", f"{COMMAND} {command}")
    assert (done.returncode, done.stdout) == (code, b"")
    assert done.stderr.startswith(error)
    assert done.stderr.count(b"\n") == bool(error)


@pytest.mark.deep
def test_an_error_that_nobody_can_read_keeps_its_exit_code(environ):
    assert ran(environ, "bash", "-c", f"{COMMAND} bogus 2>/dev/full").returncode == 2
    gone = ran(environ, "bash", "-c", f"({COMMAND} bogus; echo $? >&3) 3>&1 >/dev/null 2> >(true)")
    assert gone.stdout == b"2\n"


@pytest.mark.deep
def test_a_working_folder_that_is_gone_is_one_line(environ, tmp_path):
    (tmp_path / "gone").mkdir()
    done = ran(environ, "bash", "-c", f"cd {tmp_path}/gone; rmdir ../gone; {COMMAND} stats")
    assert (done.returncode, done.stdout) == (3, b"")
    assert (
        done.stderr
        == b"[MemoryMesh Error] the working folder was removed; change to another folder\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ["--version"],
        ["--help"],
        [],
        ["audit"],
        ["search", "--help"],
        ["frobnicate"],
        ["store"],
        ["search", "--limt", "3"],
    ],
)
@pytest.mark.deep
def test_help_and_usage_errors_load_neither_store_nor_settings(environ, words):
    heavy = (
        "numpy",
        "sqlite3",
        "rich",
        "asyncio",
        "memory_mesh.api.settings",
        "memory_mesh.api",
        "memory_mesh.stores",
    )
    code = (
        f"import sys; from memory_mesh.interfaces.cli.main import run; run({words!r}); "
        "print('loaded:', *sys.modules)"
    )
    loaded = (
        ran(environ, sys.executable, "-c", code).stdout.decode().rpartition("loaded:")[2].split()
    )
    assert "memory_mesh.interfaces.render.output" in loaded
    assert [name for name in loaded if name in heavy] == []


COMPLETED = {
    "memory-mesh sea": ["search", "search-skills"],
    "memory-mesh delete": ["delete", "delete-all"],
    "memory-mesh audit ": ["verify", "head", "anchor", "rekey", "log", "export"],
    "memory-mesh audit verify --f": ["--file"],
    "memory-mesh search deploy --st": ["--status", "--store"],
    "memory-mesh list --status arch": ["archived"],
    "memory-mesh completion f": ["fish"],
    "memory-mesh search --ranker = l": ["learnt"],  # bash splits --ranker=l
    "memory-mesh search --ranker =": ["learnt", "rrf"],
    "memory-mesh lessons --order-by s": ["severity\\ DESC"],
    "memory-mesh --v": ["--version"],
    "memory-mesh audit --": ["--help"],
    "memory-mesh stats --js": ["--json", "--jsonl"],
    "memory-mesh search -- --l": [],
}


@pytest.mark.deep
def test_bash_completes_what_can_stand_there(environ):
    script = f'export PATH="{Path(COMMAND).parent}:$PATH"; eval "$(memory-mesh completion bash)"; '
    script += "complete -p memory-mesh >/dev/null || exit 1; "
    for line in COMPLETED:
        script += f"COMP_WORDS=({line if not line.endswith(' ') else line + chr(39) * 2}); "
        script += (
            'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _memory_mesh; printf "%s\\n" '
            '"${COMPREPLY[@]}" =; '
        )
    done = ran(environ, "bash", "-c", script)
    assert (done.returncode, done.stderr) == (0, b"")
    offered = [block.strip("\n").split("\n") for block in done.stdout.decode().split("=\n")[:-1]]
    assert dict(zip(COMPLETED, offered, strict=True)) == {
        line: words or [""] for line, words in COMPLETED.items()
    }


@pytest.mark.deep
def test_zsh_and_fish_complete_a_flag_with_its_value_as_one_word(environ):
    for shell in ("zsh", "fish"):
        assert (
            ran(environ, COMMAND, "completion", shell, "--", "list", "--status=ar").stdout
            == b"--status=archived\n"
        )


@pytest.mark.parametrize("shell", ["zsh", "fish"])
@pytest.mark.deep
def test_the_other_shells_get_a_script_that_they_can_parse(environ, shell):
    done = ran(environ, COMMAND, "completion", shell)
    assert done.returncode == 0
    assert f"memory-mesh completion {shell} -- ".encode() in done.stdout
    if which(shell):
        assert ran(environ, shell, "-n", "/dev/stdin", text=done.stdout.decode()).stderr == b""


@pytest.mark.deep
def test_an_answer_that_cannot_be_written_is_an_error(environ, tmp_path):
    # A disk that is full for files above one block; the store itself stays in memory.
    tight = (
        "import resource, sys; sys.dont_write_bytecode = True; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16)); {MAIN}"
    )
    with (tmp_path / "answer.txt").open("wb") as answer:
        told = subprocess.run(
            [sys.executable, "-c", tight, "stats", "--store", "memory://"],
            env=environ, stdout=answer, stderr=subprocess.PIPE, check=False, timeout=60,
        )  # fmt: skip
    assert told.returncode == 1
    assert told.stderr.startswith(b"[MemoryMesh Error] the answer cannot be written: ")
    assert told.stderr.count(b"\n") == 1
