"""The REST server does what its description says: schemathesis with every check finds nothing.

It reads `schemathesis.toml` of the root folder, as it does when a person runs it there.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .test_rest_process import Process, serving

pytestmark = pytest.mark.deep
ROOT = Path(__file__).parents[2]


@contextmanager
def api_server(home: Path) -> Iterator[Process]:
    folders = {"NOTES_DIR": str(home / "notes"), "TRACES_DIR": str(home / "traces")}
    limits = {"SERVER_REQUESTS_PER_MINUTE": "1000000", "SERVER_AGENT_WRITES_PER_DAY": "1000000"}
    with serving(home, EMBEDDER="none", **folders, **limits) as server:
        yield server


def schemathesis(home: Path, location: str, *arguments: str) -> tuple[int, str]:
    """Return the exit code of `st run` and what it prints. In a folder of its own it starts
    without the failures of earlier runs."""
    config = (ROOT / "schemathesis.toml").read_text().replace('hooks = "', f'hooks = "{ROOT}/')
    (home / "schemathesis.toml").write_text(config)
    words = [sys.executable, "-m", "schemathesis.cli", "run", location, "--no-color"]
    words += ["--generation-deterministic", "--no-shrink"]
    words += ["--suppress-health-check", "all", "--continue-on-failure", *arguments]
    done = subprocess.run(words, cwd=home, capture_output=True, text=True, env=os.environ)
    return done.returncode, done.stdout + done.stderr


def test_schemathesis_finds_no_answer_that_the_description_does_not_allow(tmp_path: Path) -> None:
    with api_server(tmp_path / "home") as server:
        url = f"{server.client.base_url}/openapi.json"
        code, text = schemathesis(tmp_path, url, "--phases", "fuzzing", "--max-examples", "6")
        assert code == 0, text
        assert int(re.findall(r"Tested: (\d+)", text)[0]) > 100, text
        assert "Traceback" not in server.log
        assert server.end() == 0


@pytest.mark.parametrize("name", ["store", "delete", "graph/link", "get", "search", "episodes"])
def test_schemathesis_finds_nothing_at_the_limits_of_each_argument(
    tmp_path: Path, name: str
) -> None:
    with api_server(tmp_path / "home") as server:
        url = f"{server.client.base_url}/openapi.json"
        path = ("--include-path", f"/v1/{name}")
        code, text = schemathesis(tmp_path, url, "--phases", "coverage", *path)
        assert code == 0, text


def test_schemathesis_finds_a_rule_that_the_description_does_not_say(tmp_path: Path) -> None:
    with api_server(tmp_path / "home") as server:
        spec = server.client.get("/openapi.json").json()
        post = spec["paths"]["/v1/delete"]["post"]
        del post["requestBody"]["content"]["application/json"]["schema"]["allOf"]
        file = tmp_path / "openapi.json"
        file.write_text(json.dumps(spec))
        path = ("--url", str(server.client.base_url), "--include-path", "/v1/delete")
        code, text = schemathesis(
            tmp_path, str(file), "--phases", "fuzzing", "--max-examples", "20", *path
        )
    assert code == 1, text
    assert "Schema-valid request rejected" in text
