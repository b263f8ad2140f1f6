"""The resident process that answers hooks: real processes, each test with a folder of its own."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_mesh.interfaces.hosts import resident

pytestmark = pytest.mark.deep

PYTHON = [sys.executable, "-P", "-m"]
PROCESS = [*PYTHON, "memory_mesh.interfaces.hosts.process"]
KEY = "The deploy key rotates on Mondays."
PROMPT = {"session_id": "s1", "prompt": "When does the deploy key rotate?"}
FENCE = re.compile(r"memory-\d{6}")
Done = subprocess.CompletedProcess[str]


class Hosts:
    """A user with a home folder and a runtime folder, who runs hooks."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.home, self.folder, self._patch = folder / "home", folder, patch
        for name in [name for name in os.environ if name.startswith("MEMORY_MESH_")]:
            patch.delenv(name)
        self.set(HOME=self.home, EMBEDDER="none", HOST_SECONDS="60")
        # The path of a socket has at most 100 characters.
        self.processes: list[subprocess.Popen[bytes]] = []
        self.runtime = Path(tempfile.mkdtemp(prefix="mm-"))
        patch.setenv("XDG_RUNTIME_DIR", str(self.runtime))
        patch.chdir(folder)

    def set(self, **settings: object) -> None:
        for name, value in settings.items():
            self._patch.setenv(f"MEMORY_MESH_{name}", str(value))

    def run(self, *words: str, text: str = "", **more: str) -> Done:
        return subprocess.run(
            [*PYTHON, "memory_mesh", *words],
            env={**os.environ, **more},
            input=text,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
            timeout=120,
        )

    def hook(self, event: str = "user-prompt-submit", **given: str) -> Done:
        return self.run("host", "claude-code", event, text=json.dumps({**PROMPT, **given}))

    def alone(self, *words: str, text: str) -> Done:
        """A hook that answers by itself, whatever runs."""
        return self.run(*words, text=text, XDG_RUNTIME_DIR=str(self.folder / "empty"), **OFF)

    def process(self, words: list[str] = PROCESS) -> "subprocess.Popen[bytes]":
        (self.runtime / "memory-mesh").mkdir(mode=0o700, exist_ok=True)
        self.processes.append(subprocess.Popen(words))
        return self.processes[-1]

    def start(self) -> "subprocess.Popen[bytes]":
        process = self.process()
        self.ready()
        return process

    def ready(self) -> dict[str, object]:
        """Wait until a process answers."""
        until = time.monotonic() + 120
        while not (found := resident.ask({"status": True})):
            assert time.monotonic() < until
            time.sleep(0.02)
        return found

    @property
    def answered(self) -> object:
        return self.ready()["answered"]


OFF = {"MEMORY_MESH_HOST_IDLE_SECONDS": "0"}


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    hosts = Hosts(tmp_path, monkeypatch)
    try:
        yield hosts
    finally:
        resident.stop()
        for process in hosts.processes:
            process.kill()
            process.wait()
        shutil.rmtree(hosts.runtime)


def masked(done: Done) -> tuple[int, str, str]:
    return done.returncode, FENCE.sub("memory-0", done.stdout), done.stderr


def gone(pid: int) -> bool:
    """Wait until a process that is not our child has ended."""
    try:
        while True:
            os.kill(pid, 0)
            time.sleep(0.02)
    except ProcessLookupError:
        return True


def test_the_first_hook_starts_the_process_that_answers_the_next_ones(hosts: Hosts) -> None:
    assert hosts.run("host", "status").returncode == 1
    hosts.run("store", KEY)
    assert KEY in hosts.hook().stdout
    pid = hosts.ready()["pid"]
    if sys.platform == "linux":  # it writes no log
        streams = {os.readlink(f"/proc/{pid}/fd/{number}") for number in range(3)}
        assert streams == {os.devnull}
    assert hosts.answered == 0
    assert KEY in hosts.hook().stdout
    assert hosts.answered == 1
    shown = hosts.run("host", "status")
    assert (shown.returncode, f"Process {pid} has answered 1 since " in shown.stdout) == (0, True)
    assert f"ok  process      process {pid} has answered 1" in hosts.run("doctor").stdout
    assert hosts.run("host", "stop").stdout == f"[MemoryMesh] Process {pid} has ended\n"
    assert gone(int(str(pid)))
    assert hosts.run("host", "stop").stdout == "[MemoryMesh] No process answers hooks\n"
    assert [path.suffix for path in (hosts.runtime / "memory-mesh").iterdir()] == [".lock"]


def test_the_answers_are_those_of_a_hook_without_the_process(hosts: Hosts) -> None:
    hosts.run("store", KEY)
    hosts.run("store", "The deploy key of Atlas is ü.", "--project", "atlas")
    (hosts.folder / "atlas").mkdir()
    given = json.dumps({**PROMPT, "cwd": str(hosts.folder / "atlas")})
    cases = (
        ("claude-code session-start", given),
        ("claude-code user-prompt-submit", given),
        ("claude-code user-prompt-submit --project other", given),
        ("opencode user-prompt-submit", f"{given}\n{{cut off"),
        ("claude-code user-prompt-submit", '{"prompt": "\ufffd \udcff'),
        ("claude-code user-prompt", given),
        ("opencode stop --help", ""),
    )
    process = hosts.start()
    for number, (words, text) in enumerate(cases, start=1):
        answers = [
            masked(ran("host", *words.split(), text=text)) for ran in (hosts.run, hosts.alone)
        ]
        assert answers[0] == answers[1]
        assert hosts.answered == number
    hosts.run("host", "stop")
    assert process.wait() == 0


def test_a_change_of_the_environment_or_a_settings_file_counts_at_once(hosts: Hosts) -> None:
    hosts.run("store", KEY)
    hosts.start()
    asked = [KEY in hosts.hook().stdout]
    hosts.set(ENABLE_MEMORY="false")
    asked.append(KEY in hosts.hook().stdout)
    hosts.set(ENABLE_MEMORY="true", HOME=hosts.folder / "other")
    asked.append(KEY in hosts.hook().stdout)
    hosts.set(HOME=hosts.home)
    (hosts.home / "memory-mesh.toml").write_text('store = "elsewhere.db"\n')
    asked.append(KEY in hosts.hook().stdout)
    (hosts.home / "memory-mesh.toml").unlink()
    asked.append(KEY in hosts.hook().stdout)
    assert asked == [True, False, False, False, True]
    assert hosts.answered == 5


def test_a_warning_is_repeated_for_each_hook(hosts: Hosts) -> None:
    hosts.start()
    for _ in range(2):
        done = hosts.run(
            "host", "claude-code", "user-prompt-submit", text="{}", MEMORY_MESH_FOO="1"
        )
        assert "ignored unknown environment variable MEMORY_MESH_FOO" in done.stderr
    assert hosts.answered == 2


def test_a_prompt_is_searched_by_meaning_as_a_search_with_the_model_is(hosts: Hosts) -> None:
    hosts.set(EMBEDDER="local")
    hosts.run("store", "My car is a red convertible.")
    asked = {"prompt": "Which automobile do I drive?"}
    hosts.start()
    assert "convertible" in hosts.hook(**asked).stdout
    assert hosts.answered == 1
    alone = hosts.alone("host", "claude-code", "user-prompt-submit", text=json.dumps(asked))
    assert alone.stdout == "{}\n"


def test_of_several_processes_that_start_at_once_one_stays(hosts: Hosts) -> None:
    started = [hosts.process() for _ in range(5)]
    pid = hosts.ready()["pid"]
    assert [process.wait() for process in started if process.pid != pid] == [0] * 4
    assert hosts.ready()["pid"] == pid
    assert [process.poll() for process in started if process.pid == pid] == [None]


def test_hooks_at_the_same_moment_start_one_process(hosts: Hosts) -> None:
    hosts.run("store", KEY)
    words = [*PYTHON, "memory_mesh", "host", "claude-code", "session-start"]
    hooks = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert all(KEY in hook.communicate(json.dumps(PROMPT))[0] for hook in hooks)
    pid = hosts.ready()["pid"]
    if sys.platform == "linux":
        mine = f"XDG_RUNTIME_DIR={hosts.runtime}".encode()

        def running() -> set[int]:
            return {
                int(place.parent.name)
                for place in Path("/proc").glob("[0-9]*/cmdline")
                if b"hosts.process" in read(place) and mine in read(place.with_name("environ"))
            }

        while len(running()) > 1:  # the others see that the lock is taken, and end
            time.sleep(0.05)
        assert running() == {pid}


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_after_a_process_was_killed_a_hook_answers_and_starts_another(hosts: Hosts) -> None:
    hosts.run("store", KEY)
    killed = hosts.start()
    killed.kill()
    killed.wait()
    assert Path(resident.path("socket")).exists()
    assert KEY in hosts.hook().stdout
    assert hosts.ready()["pid"] != killed.pid
    assert KEY in hosts.hook().stdout
    assert hosts.answered == 1


@pytest.mark.parametrize("signals", [(signal.SIGSTOP,), ()])
def test_a_stuck_process_is_not_waited_for_and_can_be_stopped(
    hosts: Hosts, signals: tuple[int, ...]
) -> None:
    hosts.run("store", KEY)
    process = hosts.start()
    for number in signals:
        process.send_signal(number)
    assert KEY in hosts.hook().stdout
    shown = hosts.run("host", "status")
    assert ("is starting, busy or stuck" in shown.stdout) == bool(signals)
    assert "Doctor" in (doctor := hosts.run("doctor")).stdout
    assert doctor.returncode == 0
    assert hosts.run("host", "stop").stdout == f"[MemoryMesh] Process {process.pid} has ended\n"
    assert process.wait() == (-signal.SIGKILL if signals else 0)


def test_a_hook_that_gave_up_waiting_is_not_answered_once_more(hosts: Hosts) -> None:
    hosts.run("store", KEY)
    process = hosts.start()
    hosts.hook()
    assert hosts.answered == 1
    process.send_signal(signal.SIGSTOP)
    assert KEY in hosts.hook().stdout  # by itself
    process.send_signal(signal.SIGCONT)
    hosts.hook()
    assert hosts.answered == 2


def test_a_process_of_another_version_ends_and_is_replaced(hosts: Hosts) -> None:
    hosts.run("store", KEY)
    old = hosts.start()
    assert resident.ask({"status": True}) is not None
    assert resident.ask({"identity": "another", "words": ["host"], "status": True}) is None
    assert old.wait() == 0
    assert KEY in hosts.hook().stdout
    assert hosts.ready()["pid"] != old.pid


def test_an_idle_process_ends_and_with_zero_seconds_there_is_none(hosts: Hosts) -> None:
    hosts.set(HOST_IDLE_SECONDS="2")
    assert hosts.process().wait() == 0
    assert not Path(resident.path("socket")).exists()
    hosts.set(HOST_IDLE_SECONDS="0")
    assert hosts.hook().returncode == 0
    assert resident.holder() is None
    assert "hooks answer by themselves: disabled by environment" in hosts.run("doctor").stdout
    assert subprocess.run(PROCESS, check=False).returncode == 0
    hosts.set(HOST_IDLE_SECONDS="900")
    process = hosts.start()
    hosts.set(HOST_IDLE_SECONDS="0")  # while it runs
    assert hosts.hook().returncode == 0
    assert process.wait() == 0


def test_a_process_whose_folder_is_gone_ends(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import memory_mesh.interfaces.hosts.process as p; p._POLL_SECONDS = 0.1; p.main()"
    process = hosts.process([sys.executable, "-P", "-c", code])
    hosts.ready()
    shutil.rmtree(hosts.runtime / "memory-mesh")
    assert process.wait() == 0


def test_only_the_user_can_reach_the_process(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts.hook()
    hosts.ready()
    folder = hosts.runtime / "memory-mesh"
    modes = {path.suffix: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}
    assert modes == {"": 0o700, ".socket": 0o600, ".lock": 0o600}
    folder.chmod(0o755)
    assert resident.ask({"status": True}) is None
    doctor = hosts.run("doctor")
    assert (doctor.returncode, f"chmod 700 {folder}" in doctor.stdout) == (1, True)
    folder.chmod(0o700)
    assert resident.ask({"status": True}) is not None
    if sys.platform == "linux":
        here, there = socket.socketpair()
        with here, there:
            assert resident.is_own(here)
            monkeypatch.setattr(os, "getuid", lambda: 12345)
            assert not resident.is_own(here)


def test_between_hooks_no_file_of_the_store_is_open_and_another_store_takes_its_place(
    hosts: Hosts,
) -> None:
    hosts.run("store", KEY)
    process = hosts.start()
    assert KEY in hosts.hook().stdout
    assert hosts.answered == 1  # it has closed the store: it serves one after the other
    if sys.platform == "linux":
        opened = [os.readlink(path) for path in Path(f"/proc/{process.pid}/fd").iterdir()]
        assert resident.path("lock") in opened
        assert [name for name in opened if str(hosts.folder) in name] == []
    shutil.rmtree(hosts.home)
    assert hosts.hook().stdout == "{}\n"
    assert not hosts.home.exists()
    hosts.run("store", "The deploy key rotates on Fridays.")
    found = hosts.hook().stdout
    assert ("Fridays" in found, "Mondays" in found) == (True, False)
    assert hosts.answered == 3


def test_a_hook_that_is_killed_half_way_disturbs_no_other(hosts: Hosts) -> None:
    hosts.run("store", KEY)
    process = hosts.start()
    request = {
        "identity": resident.identity(),
        "words": ["host", "claude-code", "user-prompt-submit"],
        "text": json.dumps(PROMPT),
        "cwd": str(hosts.folder),
        "environ": dict(os.environ),
    }
    line = json.dumps(request).encode() + b"\n"
    for sent in (b"", line[:100], line, b"[]\n", b"no JSON\n", b'{"identity": 5}\n' * 0):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(resident.path("socket"))
            connection.sendall(sent)
    for missing in ("words", "cwd"):
        less = {name: value for name, value in request.items() if name != missing}
        assert resident.ask(less) is None
    assert resident.ask({**request, "cwd": "/nowhere"}) is None
    assert KEY in hosts.hook().stdout
    assert process.poll() is None
    assert hosts.ready()["pid"] == process.pid


def test_what_a_session_taught_is_captured_by_a_process_of_its_own(hosts: Hosts) -> None:
    said = "From now on I want you to always run the linter before committing."
    line = {"type": "user", "uuid": "u1", "message": {"role": "user", "content": said}}
    (transcript := hosts.folder / "s1.jsonl").write_text(json.dumps(line) + "\n")
    process = hosts.start()
    assert masked(hosts.hook("stop", transcript_path=str(transcript))) == (0, "{}\n", "")
    assert hosts.answered == 1
    while "run the linter" not in hosts.hook("session-start").stdout:
        assert process.poll() is None


def test_a_hook_loads_nothing_heavy_before_it_asks() -> None:
    code = "import memory_mesh.interfaces.cli.main, memory_mesh.interfaces.hosts.deadline, sys;"
    code += "print(*(name for name in sys.modules if name.startswith(('memory_mesh', 'numpy'))))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert {name.removeprefix("memory_mesh").removeprefix(".") for name in done.stdout.split()} == {
        "", "interfaces", "interfaces.cli", "interfaces.cli.main", "interfaces.hosts",
        "interfaces.hosts.deadline", "interfaces.hosts.resident",
    }  # fmt: skip


def test_a_system_without_such_sockets_does_without(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert resident.is_available()
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/" + "long" * 30)
    assert not resident.is_available()
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    assert not resident.is_available()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(hosts.runtime))
    monkeypatch.setattr(sys, "platform", "win32")
    for asked in (resident.is_available(), resident.ask({"status": True}), resident.stop()):
        assert not asked
    resident.start()
    assert (
        resident.state()[1]
        == "hooks answer by themselves: this system has no socket for the process"
    )
    monkeypatch.undo()


def test_a_working_folder_that_was_removed_is_reported_as_without_the_process(
    hosts: Hosts,
) -> None:
    hosts.start()
    (gone_folder := hosts.folder / "gone").mkdir()
    code = f"import os; os.rmdir({str(gone_folder)!r}); import memory_mesh.__main__ as m; m.main()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "host", "claude-code", "session-start"],
        cwd=gone_folder, input="{}", capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "{}\n")
    assert "the working folder was removed" in done.stderr


def test_input_that_comes_slowly_is_read_to_its_end(hosts: Hosts) -> None:
    hosts.run("store", KEY)
    hosts.start()
    words = [*PYTHON, "memory_mesh", "host", "claude-code", "user-prompt-submit"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as slow:
        assert slow.stdin is not None
        assert slow.stdout is not None
        text = json.dumps(PROMPT).encode()
        slow.stdin.write(text[:20])
        slow.stdin.flush()
        time.sleep(2 * resident.ASK_SECONDS)  # longer than it waits before it answers by itself
        slow.stdin.write(text[20:])
        slow.stdin.close()
        assert KEY.encode() in slow.stdout.read()
    assert hosts.answered == 0
