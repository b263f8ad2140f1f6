"""What linters cannot see: the size of modules, what each floor may touch, and lists that must
agree with each other."""

import ast
import inspect
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import fields
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import memory_mesh
from memory_mesh import MemoryMesh
from memory_mesh.core.errors import MemoryMeshError, SettingsError
from memory_mesh.core.model import (
    BASE,
    COLUMNS,
    Block,
    Change,
    Head,
    Kind,
    Memory,
    Meta,
    Receipt,
    Usage,
)
from memory_mesh.core.options import Options

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "memory_mesh"
MODULES = sorted(PACKAGE.rglob("*.py"))
SCRIPTS = sorted(
    path for folder in ("tests", "tools", "bench") for path in (ROOT / folder).rglob("*.py")
)

MOST_LINES, MOST_FUNCTION_LINES, UNDOCUMENTED_LINES = 700, 75, 27
REASON = "over 700 lines because"
# Functions that are longer than that, each with the reason.
LONG_FUNCTIONS: dict[str, str] = {}

IO_MODULES = {
    *("os", "io", "pathlib", "shutil", "tempfile", "glob", "sqlite3"),
    *("socket", "ssl", "select", "urllib", "http", "httpx", "httpcore2", "requests", "asyncio"),
    *("subprocess", "multiprocessing", "logging"),
}
# What differs from run to run is handed in; `core.model.rows` takes its bits as an argument and
# names only the default.
CHANCE = {"time", "random", "secrets", "uuid"}
CHANCE_ALLOWED = {"core/model/rows.py": {"secrets"}}
NOW = {"now", "utcnow", "today", "fromtimestamp", "urandom"}
HEAVY = {
    *("numpy", "sqlglot", "asyncio", "rich", "hypothesis", "typer", "pydantic", "pytest"),
    *("onnxruntime", "tokenizers", "onnx", "safetensors", "httpcore2", "ssl"),
}


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(path)))


def name(path: Path) -> str:
    return (
        path.relative_to(PACKAGE).as_posix()
        if path.is_relative_to(PACKAGE)
        else path.relative_to(ROOT).as_posix()
    )


def under(*floors: str) -> list[Path]:
    return [path for path in MODULES if path.relative_to(PACKAGE).parts[0] in floors]


def imported(path: Path) -> set[str]:
    """The top names of what a module imports, at its head or later."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def used(path: Path) -> Iterator[tuple[str, int]]:
    """Every name and attribute that a module uses, with its line."""
    for node in nodes(path):
        if isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.name, node.lineno) for alias in node.names)


def users_of(words: set[str], paths: list[Path]) -> list[str]:
    return [
        f"{name(path)}:{line} {word}"
        for path in paths
        for word, line in used(path)
        if word in words
    ]


def definitions(
    path: Path,
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """Every class and function of a module with its dotted name; those inside a function are its
    own business."""

    def walk(
        node: ast.AST, prefix: str
    ) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + child.name, child
                if isinstance(child, ast.ClassDef):
                    yield from walk(child, f"{prefix}{child.name}.")

    yield from walk(tree(path), "")


def length(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def strays(folder: Path) -> list[str]:
    """The files of a source folder that are neither Python, nor data in a folder called `data`,
    nor pages in one called `web`."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    belongs, pages = (".py", ".pyi"), (".html", ".css", ".js", ".json", ".txt")
    return sorted(
        path.as_posix()
        for path in files
        if not {"data", "__pycache__"} & {*path.parts[:-1]}
        and path.suffix not in belongs
        and path.name != "py.typed"
        if not ("web" in path.parts[:-1] and path.suffix in pages)
        if not path.parts[0].endswith(".egg-info")
    )


def test_nothing_but_python_and_data_lies_in_the_source() -> None:
    assert strays(ROOT / "src") == []


def test_a_stray_file_in_the_source_is_noticed(tmp_path: Path) -> None:
    names = (
        "a.py",
        "a.pyi",
        "py.typed",
        "data/words.toml",
        "sub/data/x.bin",
        "sub/cli.py.orig",
        "notes.md",
        "data.json",
        "x",
    )
    for name_ in names:
        (tmp_path / name_).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name_).touch()
    assert strays(tmp_path) == ["data.json", "notes.md", "sub/cli.py.orig", "x"]


# --- size ---


def test_the_walk_finds_the_package() -> None:
    expected = {
        "api/build.py",
        "core/audit/chain.py",
        "flows/write/write.py",
        "stores/sqlite/store.py",
    }
    assert expected <= {name(path) for path in MODULES}
    assert ("randbits", 17) in [
        (word, line) for word, line in used(PACKAGE / "core" / "model" / "rows.py")
    ]


def test_a_module_is_short_or_says_why_it_is_not() -> None:
    long = {path for path in MODULES if path.read_text(encoding="utf-8").count("\n") > MOST_LINES}
    unexplained = [
        name(path)
        for path in long
        if REASON not in " ".join((ast.get_docstring(tree(path)) or "").split())
    ]
    assert unexplained == []


def test_a_function_is_short_or_on_the_list_with_its_reason() -> None:
    long = {
        f"{name(path)} {dotted}"
        for path in MODULES
        for dotted, node in definitions(path)
        if not isinstance(node, ast.ClassDef) and length(node) > MOST_FUNCTION_LINES
    }
    assert long == LONG_FUNCTIONS.keys()


# --- words ---


def test_every_module_says_what_it_is_for() -> None:
    assert [
        name(path)
        for path in [*MODULES, *SCRIPTS]
        if not re.match(r'(#!.*\n)?"""\S', text_of(path))
    ] == []


def test_public_classes_and_all_but_the_smallest_public_functions_have_a_docstring() -> None:
    bare = [
        f"{name(path)} {dotted}"
        for path in MODULES
        # The port documents what every store does.
        if path.relative_to(PACKAGE).parts[0] not in ("stores",)
        for dotted, node in definitions(path)
        # A test's name says it.
        if not any(part.startswith(("_", "test_")) for part in dotted.split("."))
        and ast.get_docstring(node) is None
        and (isinstance(node, ast.ClassDef) or length(node) > UNDOCUMENTED_LINES)
    ]
    assert bare == []


def test_no_name_promises_everything() -> None:
    vague = re.compile(r"^Base[A-Z]|(Manager|Helper|Helpers|Util|Utils)$")
    classes = [
        f"{name(path)} {dotted}"
        for path in MODULES
        for dotted, _ in definitions(path)
        if vague.search(dotted)
    ]
    # The document's own name.
    assert [found for found in classes if not found.endswith("MemoryContextManager")] == []
    assert [
        name(path)
        for path in MODULES
        if path.stem in ("utils", "util", "helpers", "common", "misc")
    ] == []


def test_a_silenced_check_names_the_check() -> None:
    mute = re.compile(r"#\s*(type:\s*ignore(?!\[)|noqa(?!:\s*[A-Z]+\d))")
    suspects = [path for path in [*MODULES, *SCRIPTS] if mute.search(text_of(path))]
    assert [
        f"{name(path)}:{line}"
        for path in suspects
        for line, text in comments(path)
        if mute.search(text)
    ] == []


def comments(path: Path) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text_of(path)).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


# --- what each floor may touch ---


def test_only_settings_reads_the_environment() -> None:
    readers = users_of({"environ", "getenv", "environb"}, MODULES)
    # NO_COLOR and TERM are not our settings, and a command that only shows help does not load the
    # settings. A hook asks its process before it loads them, which takes over the environment.
    assert {found.split(":")[0] for found in readers} == {
        "api/settings.py",
        "interfaces/hosts/deadline.py",
        "interfaces/hosts/process.py",
        "interfaces/hosts/resident.py",
        "interfaces/render/output.py",
    }


def test_core_and_flows_have_no_clock_and_no_chance_of_their_own() -> None:
    reached = {name(path): imported(path) & CHANCE for path in under("core", "flows")}
    assert {path: found for path, found in reached.items() if found} == CHANCE_ALLOWED
    assert users_of(NOW, under("core", "flows")) == []


def test_core_does_no_input_or_output() -> None:
    reached = {name(path): imported(path) & IO_MODULES for path in under("core")}
    # Ports name the folder that a store offers; a path is a value.
    assert {path: found for path, found in reached.items() if found} == {
        "core/ports.py": {"pathlib"}
    }
    assert users_of({"open", "print", "input"}, under("core")) == []
    # The word lists of the injection detector and the weights of capture are packaged data: the
    # same in every run.
    readers = users_of(
        {"read_text", "read_bytes", "write_text", "write_bytes", "get_data"}, under("core")
    )
    assert {found.split(":")[0] for found in readers} == {
        "core/language/packaged.py",
    }


LISTENS = "interfaces/rest/serve.py"  # it accepts connections, and opens none


@pytest.mark.req("GRAPH-81")
def test_only_the_floor_of_outgoing_calls_opens_connections() -> None:
    network = {
        "socket",
        "ssl",
        "http",
        "httpcore2",
        "httpx",
        "httpx2",
        "requests",
        "urllib3",
        "aiohttp",
        "ftplib",
        "smtplib",
    }
    local = ("interfaces/hosts/process.py", "interfaces/hosts/resident.py")
    reached = {name(path): imported(path) & network for path in MODULES}
    others = {path for path, found in reached.items() if found} - {LISTENS, *local}
    assert {path.split("/")[0] for path in others} == {"net"}
    attributes = {
        node.attr
        for path in local
        for node in ast.walk(tree(PACKAGE / path))
        if isinstance(node, ast.Attribute)
    }
    assert {attribute for attribute in attributes if attribute.startswith("AF_")} == {"AF_UNIX"}
    assert not attributes & {"create_connection", "create_server"}
    calls = {
        node.attr for node in ast.walk(tree(PACKAGE / LISTENS)) if isinstance(node, ast.Attribute)
    }
    assert {"create_server"} == calls & {"create_server", "create_connection", "connect"}


def test_nothing_is_left_unimplemented_guessed_at_or_printed() -> None:
    assert users_of({"NotImplementedError", "hasattr"}, MODULES) == []
    assert users_of({"print"}, [path for path in MODULES if path not in under("interfaces")]) == []


LOOKS = {"exists", "lexists", "is_file", "isfile", "is_dir", "isdir"}
USES = {"stat", "open", "read_bytes", "read_text", "getsize", "samefile", "unlink", "remove"}
USES |= {"iterdir", "scandir", "listdir", "glob", "rglob"}
# Functions that may look at a file and then use it, each with the reason.
LOOKS_FIRST = {
    "stores/audit_files.py AnchorFile.write": (
        "refuses a link that leads nowhere; opening creates the file"
    ),
    "stores/markdown_files.py DiskTraces.append": (
        "whether the folder must be synced; opening creates the file"
    ),
    "stores/markdown_files.py DiskInstructions._at": "catches that the file is missing",
    "stores/json.py load": (
        "catches that the journal is missing, and looks afterwards whether it is there now"
    ),
    "stores/files.py sync": (
        "its caller has the file; without one it raises the `OSError` that it documents"
    ),
    "stores/imports.py detect": (
        "the caller translates every `OSError`: the file that the user named cannot be read"
    ),
    "stores/imports.py _url": "only chooses a scheme; opening the store names what is wrong",
    "stores/salvage.py salvage": (
        "only chooses a format; nobody else may use a store that is repaired"
    ),
}


def looked_at_first(function: ast.AST) -> set[str]:
    """The files that a function asks for and then uses, though another process may have removed
    them in between."""
    looks, uses = set(), set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            word = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            of_module = isinstance(node.func, ast.Name) or ast.unparse(node.func.value) in (
                "os",
                "os.path",
                "io",
                "shutil",
            )
            target = (
                node.args[0]
                if of_module and node.args
                else node.func.value
                if isinstance(node.func, ast.Attribute)
                else None
            )
            if target is not None and not any(
                option.arg == "missing_ok" for option in node.keywords
            ):
                looks |= {ast.unparse(target)} if word in LOOKS else set()
                uses |= {ast.unparse(target)} if word in USES else set()
    return looks & uses


def test_a_file_is_asked_for_and_used_in_one_step() -> None:
    found = {
        f"{name(path)} {dotted}"
        for path in MODULES
        for dotted, node in definitions(path)
        if not isinstance(node, ast.ClassDef) and looked_at_first(node)
    }
    assert found == LOOKS_FIRST.keys()


def test_the_check_for_files_that_are_looked_at_first_sees_them() -> None:
    for text in (
        "log.exists() and log.stat().st_size",
        "(root / name).read_bytes() if (root / name).exists() else b''",
        "[file.stat() for file in files if file.is_file()]",
        "os.stat(path) if os.path.isfile(path) else None",
    ):
        assert looked_at_first(ast.parse(text)), text
    assert not looked_at_first(ast.parse("one.exists() and other.stat()"))
    assert not looked_at_first(ast.parse("path.exists() and path.unlink(missing_ok=True)"))


LIGHT = {
    "importing the package": "import memory_mesh",
    "naming the class": "from memory_mesh import MemoryMesh",
    "storing, reading, erasing": """
from memory_mesh import MemoryMesh
with MemoryMesh(store="sqlite:///light.db") as mesh:
    id = mesh.add("The deploy key rotates on Mondays.").id
    assert mesh.get(id).id == mesh.get_all()[0].id == id
    mesh.delete(id)
    assert mesh.stats().total_memories == 0
""",
}


@pytest.mark.parametrize("what", LIGHT)
def test_a_first_use_loads_nothing_heavy(tmp_path: Path, what: str) -> None:
    assert loaded_by(tmp_path, LIGHT[what]) == set()


def test_the_check_for_heavy_imports_sees_them(tmp_path: Path) -> None:
    assert loaded_by(tmp_path, "import numpy") == {"numpy"}


def loaded_by(folder: Path, program: str) -> set[str]:
    # -I: nothing but the installed packages, whatever the environment of the tests adds.
    words = [sys.executable, "-I", "-c", f"{program}\nimport sys\nprint(*sys.modules)"]
    out = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout
    return HEAVY & set(out.split())


# --- import cycles ---


def dotted(path: Path) -> str:
    return ".".join(("memory_mesh", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that can run: all but the bodies of `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        typing_only = (
            isinstance(child, ast.If)
            and isinstance(child.test, ast.Name)
            and child.test.id == "TYPE_CHECKING"
        )
        for one in child.orelse if isinstance(child, ast.If) and typing_only else [child]:
            yield one
            yield from executed(one)


def import_graph(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return the modules that each module imports, at its head or later, with the `__init__` of
    packages it is not part of."""
    graph: dict[str, set[str]] = {}
    for module, parsed in trees.items():
        targets: set[str] = set()
        for node in executed(parsed):
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                targets |= {name if name in trees else node.module for name in names}
        parents = {
            target.rsplit(".", depth)[0]
            for target in targets
            for depth in range(1, target.count("."))
        }
        graph[module] = (
            targets | {parent for parent in parents if not module.startswith(f"{parent}.")}
        ) & trees.keys() - {module}
    return graph


def cycles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The groups of modules that reach each other."""
    reached = {module: set(targets) for module, targets in graph.items()}
    for middle in graph:
        for targets in reached.values():
            if middle in targets:
                targets |= reached[middle]
    loops = (
        frozenset(other for other in reached[module] if module in reached[other])
        for module in graph
    )
    return {loop for loop in loops if loop}


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert cycles(import_graph({dotted(path): tree(path) for path in MODULES})) == set()


def test_the_check_for_import_cycles_sees_them() -> None:
    hidden = "def late():\n    from memory_mesh.one import a"
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from memory_mesh.one import a"
    package = {
        "memory_mesh.two": "from memory_mesh.two.inner import b",
        "memory_mesh.two.inner": "",
    }
    for source, expected in (
        (hidden, {frozenset({"memory_mesh.one", "memory_mesh.two", "memory_mesh.three"})}),
        (typed, set()),
    ):
        made_up = {
            **package,
            "memory_mesh.one": "from memory_mesh.two.inner import b",
            "memory_mesh.three": source,
        }
        made_up["memory_mesh.two"] += "\nimport memory_mesh.three"
        assert (
            cycles(import_graph({module: ast.parse(text) for module, text in made_up.items()}))
            == expected
        )


# --- what the files give away ---

LEFT_ASIDE = {".git", ".venv", "build", "dist", "__pycache__"}
FROM_ANYWHERE = (
    "tests/data/",
    "tests/core/test_redact",
    "tests/core/test_scrub",
    "bench/capture/",
    "bench/updates/",
    "bench/notes/",
    "bench/everyday/worlds/",
)  # their texts are examples of anything
PLACES = re.compile(
    r"(?<![\w.~-])/(?:(?:root|work|tmp|opt|mnt)\b|(?:home|Users)/\w+/)|pypi\.org|pythonhosted"
)


def texts() -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = parts[0].startswith(".") and parts[0] not in (".ci", ".gitignore")
        if (
            path.is_file()
            and not hidden
            and not LEFT_ASIDE & set(parts)
            and path.suffix not in (".pyc", ".png", ".npz")
        ):
            yield path


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    assert PLACES.search("sqlite:////" + "tmp/x.db")
    assert PLACES.search("in /" + "home/me/x")
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in texts()
        if path != Path(__file__)
        and not path.relative_to(ROOT).as_posix().startswith(FROM_ANYWHERE)
        for match in PLACES.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


# --- lists that must agree ---


def test_every_word_of_the_makefile_says_what_it_does() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    words = set(re.findall(r"^\.PHONY: (.+)$", text, flags=re.MULTILINE)[0].split())
    assert words == {
        *(
            "help",
            "setup",
            "lock",
            "audit",
            "demo",
            "clean",
            "lint",
            "docs",
            "test",
            "test-pythons",
            "test-deep",
            "fuzz",
        ),
        *(
            "conformance",
            "mutants",
            "batteries",
            "bench",
            "bench-peers",
            "bench-quality",
            "bench-stores",
            "bench-console",
        ),
    }
    assert set(re.findall(r"^([a-z-]+):.*## \S", text, flags=re.MULTILINE)) == words


RECORDS = {
    Kind.MEMORY: Memory,
    Kind.CHANGE: Change,
    Kind.BLOCK: Block,
    Kind.HEAD: Head,
    Kind.RECEIPT: Receipt,
    Kind.META: Meta,
    Kind.USAGE: Usage,
}


def columns_of(kind: Kind) -> set[str]:
    return {column.name for column in COLUMNS if kind in column.kinds} - {"kind", "partition"}


# Shown with a memory: from other rows, or what a write masked, which is kept nowhere.
COUNTED = {"access_count", "last_accessed", "redactions", "sealed"}


def test_a_memory_has_exactly_the_columns_of_its_kind() -> None:
    assert {field.name for field in fields(Memory)} - {"vector"} - COUNTED == columns_of(
        Kind.MEMORY
    )


@pytest.mark.parametrize("kind", RECORDS)
def test_a_record_has_no_field_without_a_column_and_every_column_that_is_its_alone(
    kind: Kind,
) -> None:
    own = (
        {field.name for field in fields(RECORDS[kind])}
        - {"vector"}
        - (COUNTED if kind is Kind.MEMORY else set())
    )
    alone = {column.name for column in COLUMNS if column.kinds == {kind}}
    assert own <= columns_of(kind)
    assert alone <= own


def test_every_column_stands_once() -> None:
    names = [column.name for column in COLUMNS]
    assert len(names) == len(set(names))
    assert tuple(names[: len(BASE)]) == BASE


def subclasses(kind: type) -> set[type]:
    own = {sub for sub in kind.__subclasses__() if sub.__module__.startswith("memory_mesh.")}
    return own.union(*(subclasses(sub) for sub in own))


def test_the_public_names_are_the_same_for_type_checkers_and_at_run_time() -> None:
    checked = {
        alias.name: node.module
        for node in ast.walk(tree(PACKAGE / "__init__.py"))
        if isinstance(node, ast.ImportFrom)
        and node.module
        and node.module.startswith("memory_mesh.")
        for alias in node.names
    }
    assert checked == {
        name: f"memory_mesh.{module}" for name, module in memory_mesh._MODULES.items()
    }
    assert all(getattr(memory_mesh, public) for public in memory_mesh.__all__)
    assert {kind.__name__ for kind in subclasses(MemoryMeshError)} | {
        "MemoryMeshError"
    } <= checked.keys()


def test_every_error_is_defined_in_the_one_module() -> None:
    for path in MODULES:  # what is not loaded has no subclasses
        # The second is for another version of the SDK than the installed one.
        if path.name in ("__main__.py", "version_1.py"):
            continue
        # Only the deep tests install what the adapters plug into.
        needs_an_extra = path.parent.name == "integrations"
        with suppress(SettingsError) if needs_an_extra else nullcontext():
            import_module(
                ".".join(
                    ("memory_mesh", *path.relative_to(PACKAGE).with_suffix("").parts)
                ).removesuffix(".__init__")
            )
    assert {kind.__module__ for kind in subclasses(MemoryMeshError)} == {"memory_mesh.core.errors"}


# --- what the document names: it is here, or it says by its name that it is not ---

RFC_OPTIONS: dict[str, object] = {
    "enable_yamo": True,
    "enable_llm": True,
    "enable_memory": True,
    "agent_id": "YAMO_AGENT",
    "llm_provider": None,
    "llm_model": None,
    "llm_api_key": None,
    "llm_max_tokens": None,
    "skill_directories": None,
    "db_dir": None,
    "enable_wisdom_distillation": False,
    "lesson_min_confidence": 0.7,
    "lesson_retention_days": 365,
    "enable_heritage_tracking": False,
    "max_heritage_depth": 5,
}
RFC_METHODS = {
    *(
        "init",
        "close",
        "add",
        "ingest",
        "get",
        "get_all",
        "delete",
        "search",
        "reflect",
        "synthesize",
    ),
    *("distill_lesson", "query_lessons", "insert_heritage", "get_memories_by_pattern"),
    *("ingest_skill", "search_skills", "list_skills", "update_skill_reliability", "prune_skills"),
    *("stats", "clear_cache", "get_cache_stats", "format_results"),
}


def test_every_option_of_the_document_exists_with_its_default() -> None:
    held = {field.name: field.default for field in fields(Options)}
    assert {option: held.get(option, "missing") for option in RFC_OPTIONS} == RFC_OPTIONS


def test_the_mesh_takes_every_setting_by_name() -> None:
    taken = inspect.signature(MemoryMesh).parameters
    for field in fields(Options):
        positional = field.name == "store"
        assert (taken[field.name].kind is inspect.Parameter.KEYWORD_ONLY) is not positional
        assert taken[field.name].default is None


def test_every_method_of_the_document_is_here() -> None:
    assert [method for method in RFC_METHODS if method not in dir(MemoryMesh)] == []
