"""Clients that generators of others make from `/openapi.json`: every operation is in them, their
types hold against a running server, and type checkers find mistakes in programs that use them."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .test_rest_process import Process, serving

pytestmark = pytest.mark.deep
PROGRAMS = Path(__file__).with_name("openapi_clients")
ROOT = Path(__file__).parents[2]
MODULES = ROOT / "build" / "openapi-clients" / "node_modules"
PAGE = (ROOT / "docs" / "rest.md").read_text()
# What both programs print.
EXPECTED = {
    "store": ["The deploy key rotates on Mondays.", ["ops"], "runbook", 2, 1],
    "search": [True, "The deploy key rotates on Mondays.", True, True],
    "filtered": ["The deploy key rotates on Mondays."],
    "queried": ["Ana drinks green tea."],
    "get": [True, "active", True],
    "update": ["The deploy key rotates on Fridays.", "chat", True],
    "history": [["add", None], ["update", "the team moved it"]],
    "pin": True,
    "pages": [1, True, 1, False],
    "store_many": ["One of many.", "Two."],
    "ingest": ["event: progress", "event: done"],
    "graph_store": [True, "The office is in Berlin.", []],
    "claim": ["Berlin", True],
    "lane": "Use pnpm, not npm.",
    "judge": [0, "What time is it?"],
    "context": True,
    "explain": True,
    "verify": [True, True],
    "stats": [8, 8],
    "forget": [1, True, 0],
    "left": [
        "A line of a stream.",
        "Another line.",
        "The deploy key rotates on Fridays.",
        "The office is in Berlin.",
        "Two.",
        "Use pnpm, not npm.",
    ],
    "missing": ["NotFound", 404, True],
    "blank": ["InvalidInput", 400, True],
    "filter": ["InvalidFilter", 400, True],
    "metrics": True,
    "unknown token": ["TokenInvalid", 401, True],
    "health": "ok",
}


def run(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, with the commands of this Python first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def on_page(pattern: str) -> str:
    """Return what the page about REST shows."""
    (shown,) = re.findall(pattern, PAGE, re.DOTALL)
    return str(shown)


def new_token(server: Process) -> str:
    return json.loads(server.cli("token", "create", "client", "--json"))["token"]


def used(folder: Path, *program: str) -> Any:
    """Run a program that uses a client against a new server, and return what it printed."""
    with serving(folder / "home") as server:
        done = run(folder, *program, str(server.client.base_url), new_token(server))
        assert done.returncode == 0, done.stderr[-3000:] + server.log[-1000:]
        return json.loads(done.stdout)


def refused_lines(name: str, reports: str) -> set[int]:
    """Return the numbers of the lines that a type checker reports; all are of the file `name`."""
    lines = re.findall(r"^(\S+?)[:(](\d+)[:,].*error", reports, re.MULTILINE)
    assert {file for file, _ in lines} == {name}, reports[:3000]
    return {int(number) for _, number in lines}


def marked_lines(name: str) -> set[int]:
    """Return the numbers of the lines with a comment behind code: those with a mistake."""
    lines = (PROGRAMS / name).read_text().splitlines()
    return {n for n, line in enumerate(lines, 1) if re.search(r";? +(#|//) ", line)}


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file with the description of a server that needs a token."""
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    with serving(path.parent / "home") as server:
        bearer = {"Authorization": f"Bearer {new_token(server)}"}
        path.write_text(server.client.get("/openapi.json", headers=bearer).text)
    return path


@pytest.fixture(scope="module")
def python_client(document: Path) -> Path:
    """Return a folder with the client of openapi-python-client and the programs that use it."""
    folder, settings = document.parent / "python", document.parent / "generator.json"
    settings.write_text(on_page(r"echo '(.*)' > generator.json"))
    made = run(
        document.parent,
        *("openapi-python-client", "generate", "--fail-on-warning", "--path", document),
        *("--config", settings, "--output-path", folder),
    )
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-1000:]
    assert "arning" not in made.stdout + made.stderr
    for name in ("program.py", "wrong.py"):
        shutil.copy(PROGRAMS / name, folder)
    (folder / "page.py").write_text(on_page(r"```py\n(.*?)```"))
    return folder


@pytest.fixture(scope="module")
def typescript_client(document: Path) -> Path:
    """Return a folder with the types of openapi-typescript and the programs that use them."""
    folder = document.parent / "typescript"
    folder.mkdir()
    for name in ("package.json", "tsconfig.json", "program.ts", "wrong.ts"):
        shutil.copy(PROGRAMS / name, folder)
    (folder / "page.ts").write_text(on_page(r"```ts\n(.*?)```"))
    (folder / "node_modules").symlink_to(MODULES)
    made = run(folder, MODULES / ".bin" / "openapi-typescript", document, "--output", "schema.d.ts")
    assert made.returncode == 0, made.stderr[-3000:]
    assert "arning" not in made.stdout + made.stderr
    return folder


def operations(document: Path) -> dict[str, Any]:
    """Return the operations of a description by their ids."""
    paths = json.loads(document.read_text())["paths"].values()
    return {one["operationId"]: one for methods in paths for one in methods.values()}


def test_the_generated_python_client_has_every_operation_and_names_every_answer(
    document: Path, python_client: Path
) -> None:
    package = python_client / "memory_mesh_client"
    modules = {path.stem.rstrip("_") for path in package.glob("api/*/[!_]*.py")}
    assert modules == operations(document).keys()
    assert not [*package.glob("models/*response*.py")]  # the name of an answer without one


def test_the_types_of_the_generated_python_client_hold_against_a_server(
    python_client: Path,
) -> None:
    assert used(python_client, sys.executable, "program.py") == EXPECTED


def test_mypy_accepts_the_programs_with_the_generated_client_and_refuses_each_mistake(
    python_client: Path,
) -> None:
    checked = run(
        python_client,
        *("mypy", "--strict", "--config-file=", "--cache-dir=cache"),
        *("program.py", "wrong.py", "page.py"),
    )
    assert refused_lines("wrong.py", checked.stdout) == marked_lines("wrong.py"), checked.stdout


def test_the_generated_typescript_types_have_every_operation_and_no_answer_is_unknown(
    document: Path, typescript_client: Path
) -> None:
    types = (typescript_client / "schema.d.ts").read_text()
    found = operations(document)
    assert set(
        re.findall(r"^    (\w+): \{$", types.partition("interface operations")[2], re.M)
    ) == (found.keys())
    without_arguments = [
        name
        for name, one in found.items()
        for content in one.get("requestBody", {}).get("content", {}).values()
        if content["schema"].get("properties") == {}
    ]
    # Elsewhere it is an object that accepts nothing, or of which nothing is known.
    assert types.count('"application/json": Record<string, never>') == len(without_arguments)
    assert types.count("Record<string, never>") == len(without_arguments) + 2
    assert not re.search(r'"(application|text)/.*": unknown', types)


def test_tsc_accepts_the_programs_with_the_generated_types_which_hold_against_a_server(
    typescript_client: Path,
) -> None:
    checked = run(typescript_client, MODULES / ".bin" / "tsc", "--project", ".")
    assert refused_lines("wrong.ts", checked.stdout) == marked_lines("wrong.ts"), checked.stdout
    assert used(typescript_client, "node", "program.js") == EXPECTED
