"""The documentation is true: its examples run and print what it shows, its tables are the code's
own, its links lead somewhere.

Every `python` and `console` block of a page is run, in order, in one empty folder with a memory of
its own. What a `python` block prints stands in the `output` block behind it; in a `console` block
the lines behind each `$ command` are what it prints, errors included, and a line `...` stands for
any lines. An id, hash or moment differs from run to run: the first time that a page shows one in an
output it becomes a name for the real one, and later commands of the page use the real one.
"""

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from inspect import isfunction
from itertools import pairwise
from pathlib import Path

import pytest

from memory_mesh.api.settings import PREFIX
from memory_mesh.core import errors
from memory_mesh.core.errors import MemoryMeshError
from memory_mesh.core.model import FILTERABLE
from memory_mesh.core.options import NAMES
from memory_mesh.core.ports import Store
from memory_mesh.interfaces.cli.main import run
from memory_mesh.interfaces.render.output import outcome
from memory_mesh.interfaces.verbs import COMMANDS, parameters

ROOT = Path(__file__).parents[1]
# Many commands, many writes, or libraries that only the deep tests install.
LONG_PAGES = (
    "docs/cli.md",
    "docs/cookbook.md",
    "docs/hosts.md",
    "docs/integrations.md",
    "docs/lane.md",
    "docs/mcp.md",
    "docs/notes.md",
    "docs/operate.md",
    "docs/rest.md",
    "docs/traces.md",
)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(r"^```(?P<kind>[a-z]*)\n(?P<text>.*?)^```$", flags=re.MULTILINE | re.DOTALL)
TOKEN = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)|(?P<name>(?:mem|lesson|reflect|skill|"
    r"conflict|yamo_[a-z]+)_\d{13}_[0-9a-f]{6}|\b[0-9a-f]{64}\b|trace-\d{13}-[0-9a-f]{6}"
    r"|(?<=signing_key;)[0-9a-f]{16})"
)
ANY_LINES = "\ufffc"
MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def names(pages: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in pages]


def blocks(page: Path) -> list[tuple[str, str]]:
    return [
        (match["kind"], match["text"]) for match in FENCE.finditer(page.read_text(encoding="utf-8"))
    ]


def without_blocks(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


@dataclass
class Reading:
    """One page being read aloud: where it runs, and what its names stand for."""

    folder: Path
    home: Path
    real: dict[str, str] = field(default_factory=dict)
    namespace: dict[str, object] = field(default_factory=lambda: {"__name__": "__page__"})

    def compare(self, shown: str, printed: str) -> None:
        printed = printed.replace(str(self.home), "/abs/.memory-mesh").replace(
            str(self.folder), "/abs/project"
        )
        shown, printed = (text.strip("\n") for text in (shown, printed))
        match = re.fullmatch(self._pattern(shown), printed, flags=re.DOTALL)
        assert match, f"the page shows\n{shown}\nand the run printed\n{printed}"
        fresh = [name for name in dict.fromkeys(self._names(shown)) if name not in self.real]
        self.real.update(zip(fresh, match.groups(), strict=True))

    def command(self, text: str) -> str:
        """A command or program with the page's names replaced by the real ones."""
        return TOKEN.sub(lambda token: self.real.get(token.group(), token.group()), text)

    def _names(self, shown: str) -> Iterator[str]:
        return (token["name"] for token in TOKEN.finditer(shown) if token["name"])

    def _pattern(self, shown: str) -> str:
        groups: dict[str, str] = {}
        parts, at = [], 0
        shown = re.sub(r"(?m)^\.\.\.$", ANY_LINES, shown)
        for token in TOKEN.finditer(shown):
            parts.append(_literal(shown[at : token.start()]))
            at = token.end()
            parts.append(MOMENT if token["time"] else self._name(token["name"], groups))
        return "".join([*parts, _literal(shown[at:])])

    def _name(self, name: str, groups: dict[str, str]) -> str:
        if name in self.real:
            return re.escape(self.real[name])
        if name in groups:
            return groups[name]
        groups[name] = f"\\{len(groups) + 1}"
        return "([0-9a-z_-]+)"


# A score comes from a model, and its last digits from the processor.
SCORE = re.compile(
    r"(?m)(?<=IMPORTANCE:\\ )[01]\\\.\d\d|(?<=similarity\\ )[01]\\\.\d\d|^[01]\\\.\d\d(?=\\ )"
)


def _literal(text: str) -> str:
    return SCORE.sub(_near, re.escape(text)).replace(ANY_LINES, ".*?")


def _near(score: re.Match[str]) -> str:
    """A pattern of the scores that differ by at most 0.05."""
    shown = round(float(score.group().replace("\\", "")) * 100)
    return (
        "(?:"
        + "|".join(
            re.escape(f"{near / 100:.2f}")
            for near in range(max(0, shown - 5), min(100, shown + 5) + 1)
        )
        + ")"
    )


@pytest.fixture
def reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reading:
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MEMORY_MESH_HOME", str(home))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    # Beside other tests a process starts slowly.
    monkeypatch.setenv("MEMORY_MESH_HOST_SECONDS", "30")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    return Reading(folder, home)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(name, marks=pytest.mark.deep) if name in LONG_PAGES else name
        for name in names(PAGES)
        if {"python", "console"} & {kind for kind, _ in blocks(ROOT / name)}
    ],
)
def test_the_examples_of_a_page_run_and_print_what_it_shows(
    reading: Reading, page: str, deep: bool
) -> None:
    held = [*blocks(ROOT / page), ("", "")]
    for (kind, text), (next_kind, next_text) in pairwise(held):
        if kind == "python":
            run_python(reading, text, next_text if next_kind == "output" else "")
        elif kind == "console":
            run_console(reading, text, deep=deep)


ALONE = [*pairwise([*blocks(ROOT / "docs/integrations.md"), ("", "")])]


@pytest.mark.deep  # the frameworks are installed for the deep tests
@pytest.mark.parametrize(
    "place", [at for at, ((kind, _), _) in enumerate(ALONE) if kind == "python"]
)
def test_every_example_of_an_adapter_also_runs_alone_in_an_empty_folder(
    reading: Reading, place: int
) -> None:
    (_, text), (next_kind, shown) = ALONE[place]
    assert next_kind == "output"
    run_python(reading, text, shown)
    assert (reading.folder / "memory.db").exists()


def run_python(reading: Reading, text: str, shown: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(reading.command(text), "<page>", "exec"), reading.namespace)  # noqa: S102  (our own pages)
    reading.compare(shown, printed.getvalue())


def run_console(reading: Reading, text: str, *, deep: bool) -> None:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = re.sub(r"\\\n", " ", part).partition("\n")
        real = reading.command(command)
        ours = None if deep else OURS.fullmatch(real)
        code, printed = run_ours(ours) if ours else run_shell(real)
        reading.compare(shown, printed)
        assert code == 0, f"`{command}` ended with {code}"


# [a command |] [NAME=value …] memory-mesh …, without anything else that the shell would read.
OURS = re.compile(
    r"(?:(?P<input>[^|]+) \| )?(?P<set>(?:[A-Z_]+=\S+ )*)memory-mesh (?P<words>[^|<>;&$`]*)"
)


def run_shell(command: str) -> tuple[int, str]:
    words = ["/bin/sh", "-c", command]
    done = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stdout


def run_ours(command: re.Match[str]) -> tuple[int, str]:
    """Run `memory-mesh` in this process: a deep run starts it, for half a second of CPU time
    each."""
    given = run_shell(command["input"])[1] if command["input"] else ""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (pair.split("=", 1) for pair in shlex.split(command["set"])):
            patch.setenv(name, value)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8"))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", out)
        code = run(shlex.split(command["words"]))
    out.flush()
    return code, out.buffer.getvalue().decode()


def test_a_name_of_a_page_stands_for_one_real_thing(tmp_path: Path) -> None:
    reading = Reading(tmp_path, tmp_path / "home")
    first, second = "mem_1760000000000_aaaaaa", "mem_1760000000001_bbbbbb"
    reading.compare(
        f"stored {first}\nat 2026-01-01T00:00:00.000Z",
        "stored mem_1_x\nat 2031-02-03T04:05:06.007Z\n",
    )
    reading.compare(f"{first} {second} {second}", "mem_1_x mem_2_y mem_2_y")
    assert reading.command(f"get {first} {second}") == "get mem_1_x mem_2_y"
    for wrong in (
        "mem_1_x mem_2_y mem_3_z",
        "mem_2_y mem_2_y mem_2_y",
        "mem_1_x mem_2_y mem_2_y and more",
    ):
        with pytest.raises(AssertionError, match="the page shows"):
            reading.compare(f"{first} {second} {second}", wrong)


def test_a_score_may_differ_a_little_from_the_page(tmp_path: Path) -> None:
    reading = Reading(tmp_path, tmp_path / "home")
    reading.compare("0.85 tea\n--- [IMPORTANCE: 1.00] ---", "0.82 tea\n--- [IMPORTANCE: 0.98] ---")
    for wrong in ("0.77 tea\n--- [IMPORTANCE: 1.00] ---", "0.85 tea\n--- [IMPORTANCE: 0.90] ---"):
        with pytest.raises(AssertionError, match="the page shows"):
            reading.compare("0.85 tea\n--- [IMPORTANCE: 1.00] ---", wrong)


def test_three_dots_stand_for_lines_and_only_where_they_stand_alone(tmp_path: Path) -> None:
    reading = Reading(tmp_path, tmp_path / "home")
    reading.compare("first\n...\nlast", "first\nsecond\nthird\nlast")
    with pytest.raises(AssertionError):
        reading.compare("first...last", "first and last")
    with pytest.raises(AssertionError):
        reading.compare("first\n...\nlast", "first\nsecond")


# --- links ---

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The headings of a page as the anchors that a reader's browser knows."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", names(PAGES))
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    for target in LINK.findall(without_blocks(ROOT / page)):
        file, _, anchor = target.partition("#")
        other = ((ROOT / page).parent / file).resolve() if file else ROOT / page
        assert other.exists(), target
        assert not anchor or anchor in anchors(other), target


NAMED_FILE = re.compile(r"`(?:python )?((?:[a-z_.]+/)+[a-z_0-9]+\.(?:py|toml))\b")


@pytest.mark.parametrize(
    "page",
    [
        name
        for name in names(PAGES)
        if name not in ("CHANGELOG.md", "docs/internals/conformance.md")
    ],
)
def test_every_file_that_a_page_names_exists(page: str) -> None:
    folders = (ROOT, ROOT / "src", ROOT / "src" / "memory_mesh")
    named = NAMED_FILE.findall(without_blocks(ROOT / page))
    assert [file for file in named if not any((folder / file).exists() for folder in folders)] == []
    assert named or page != "CONTRIBUTING.md"


def test_every_page_is_in_the_navigation_of_the_site_and_linked() -> None:
    """Pages for users are linked from the first page, those for builders from any other one."""
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    listed = re.findall(
        r"^ +- .+: ([\w/-]+\.md)$",
        (ROOT / "mkdocs.yml").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    assert sorted(listed) == sorted({*pages, "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"})
    first = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for_builders = {page for page in pages if page.startswith("internals/")}
    assert pages - for_builders - {"index.md"} <= set(LINK.findall(first))
    linked = {
        link.partition("#")[0]
        for page in ROOT.glob("docs/*.md")
        for link in LINK.findall(page.read_text(encoding="utf-8"))
    }
    assert for_builders <= linked
    assert "docs/index.md" in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


# --- short enough to be read ---

# Lower it when pages get shorter.
MAX_WORDS = 50_400
# Generated, or for builders.
NOT_COUNTED = {"cli.md", "methods.md", "routes.md", "settings.md", "deviations.md"}


def test_what_users_read_stays_short() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    words = {
        page.name: len(page.read_text(encoding="utf-8").split())
        for page in pages
        if page.name not in NOT_COUNTED
    }
    longest = sorted(words, key=words.__getitem__, reverse=True)[:5]
    assert sum(words.values()) <= MAX_WORDS, f"the longest pages: {longest}"


# --- tables that are the code's own ---


def rows(page: str, columns_: int) -> list[list[str]]:
    """The table rows of a page that have so many columns and begin with code."""
    lines = re.findall(r"^\| (`.*) \|$", without_blocks(ROOT / page), flags=re.MULTILINE)
    return [
        cells
        for line in lines
        if len(cells := [cell.strip() for cell in line.split(" | ")]) == columns_
    ]


def test_the_page_of_settings_lists_every_option() -> None:
    assert [cells[0].strip("`") for cells in rows("docs/settings.md", 5)] == list(NAMES)


def test_the_page_of_errors_lists_every_error_with_parent_exit_code_status_and_meaning() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("| `")] == list(
        error_rows(MemoryMeshError)
    )


def error_rows(kind: type[MemoryMeshError]) -> Iterator[str]:
    """The rows of an error and of those below it. The meaning is the first paragraph of its
    docstring."""
    codes, meaning = outcome(kind("x")), " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
    parent = f"`{kind.__bases__[0].__name__}`" if kind is not MemoryMeshError else "`Exception`"
    yield f"| `{kind.__name__}` | {parent} | {codes.exit_code} | {codes.http_status} | {meaning} |"
    for below in (each for each in every_error() if each.__bases__[0] is kind):
        yield from error_rows(below)


def every_error() -> list[type[MemoryMeshError]]:
    return [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, MemoryMeshError)
    ]


def test_the_page_of_the_filter_language_lists_every_column() -> None:
    listed = {
        cell.strip("`") for cells in rows("docs/python.md", 3) for cell in cells[0].split(", ")
    }
    assert listed - {"metadata.KEY"} == set(FILTERABLE)


def test_the_page_of_stores_for_builders_lists_every_method_of_the_port() -> None:
    listed = {
        cells[0].strip("`").partition("(")[0]
        for cells in rows("docs/internals/storage.md", 2)
        if "(" in cells[0]
    }
    assert listed == {
        name
        for name, member in vars(Store).items()
        if isfunction(member) and not name.startswith("_")
    }


def test_the_page_of_the_command_line_shows_every_command() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [command for command in COMMANDS if f"memory-mesh {command}" not in page] == []


def test_a_command_line_that_is_not_run_names_a_command_and_its_flags() -> None:
    assert _unknown_words("memory-mesh --store a.db list") == {"--store"}
    assert _unknown_words("memory-mesh list --sore a.db") == {"--sore"}
    # Newcomers typed this one.
    lines = {line for page in PAGES for line in _command_lines(page)} - {"memory-mesh add"}
    assert len(lines) > 100
    assert {line: unknown for line in lines if (unknown := _unknown_words(line))} == {}


def _command_lines(page: Path) -> Iterator[str]:
    """Yield the command lines in the blocks and in the prose of a page, without what follows a
    pipe or a comment."""
    prose = re.findall(r"`(memory-mesh [^`\n]+)`", without_blocks(page))
    shown = "\n".join(text for kind, text in blocks(page) if kind in ("text", "sh"))
    for line in (
        *prose,
        *re.findall(r"^(?:.*(?:&&|;) )?(memory-mesh .+)$", shown, flags=re.MULTILINE),
    ):
        yield re.split(r" (?:#|\||&&|>)", line)[0].rstrip()


def _unknown_words(line: str) -> set[str]:
    """Return the flags of a command line that its command does not have, or its first word if it
    names no command."""
    words = line.split()[1:]
    command = next((name for n in (3, 2, 1) if (name := " ".join(words[:n])) in COMMANDS), "")
    groups = {name.split()[0] for name in COMMANDS}
    if not command:
        return (
            set() if words[0] in groups | {"help", "--version", "--help", "COMMAND"} else {words[0]}
        )
    known = {one.word for one in parameters(command)} | {"--help", "--debug"}
    return {word for word in words if re.fullmatch(r"--[a-z][a-z-]*", word)} - known


# It starts four processes with the model.
_PICTURE = pytest.param("terminal_picture", marks=pytest.mark.deep)
_MCP = pytest.param("mcp_transcript", marks=pytest.mark.deep)  # it starts a server


@pytest.mark.parametrize(
    "tool",
    [
        "bench_docs",
        pytest.param("battery_docs", marks=pytest.mark.deep),
        "claim_docs",
        "settings_docs",
        "cli_docs",
        "reference_docs",
        _PICTURE,
        _MCP,
    ],
)
def test_generated_pages_are_current(tool: str) -> None:
    check = [sys.executable, f"tools/{tool}.py", "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_line_of_the_page_of_threats_names_a_test_that_is_collected() -> None:
    page = ROOT / "docs" / "internals" / "threats.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    rows = [
        line for line in lines if line.startswith("|") and not line.startswith(("|---", "| attack"))
    ]
    named = [
        (row, re.findall(r"`(tests/[\w/]+/test_\w+\.py|tests/test_\w+\.py)::(test_\w+)` \|$", row))
        for row in rows
    ]
    assert len(rows) > 80
    assert [row for row, found in named if len(found) != 1] == []
    assert [
        test for _, found in named for file, test in found if test not in _collected(ROOT / file)
    ] == []


@cache
def _collected(file: Path) -> set[str]:
    """Return the tests of a file as pytest finds them: functions of the module, not those inside
    another one."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}
