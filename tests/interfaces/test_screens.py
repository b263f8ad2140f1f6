"""What a person sees at a terminal: search results, lists, and what a write did. A pipe gets
other lines."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from memory_mesh.core.language.redaction import KINDS
from memory_mesh.core.model import SearchResult, iso, millis
from memory_mesh.interfaces.render import output
from memory_mesh.interfaces.render.output import age, counted, masked_values, next_page

from .conftest import Output

COMMAND = str(Path(sys.executable).with_name("memory-mesh"))
COLOUR = re.compile(r"\x1b\[[0-9;]+m")
MARK = "\x1b[1;33m"
NOW = millis("2026-03-01T12:00:00.000Z")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "90")


def plain(said: Output) -> list[str]:
    return COLOUR.sub("", said.out).splitlines()


def hit(**fields: object) -> SearchResult:
    given = {
        "id": "mem_1_abcdef",
        "content": "The key rotates.",
        "created_at": iso(NOW),
        "updated_at": iso(NOW),
        "score": 0.9,
    }
    return SearchResult(**{**given, **fields})  # type: ignore[arg-type]


def drawn(*found: SearchResult, query: str = "key") -> str:
    return output.results(
        found, query, language="english", hint="--mode recall shows weaker matches."
    )


# --- search ---


@pytest.mark.req("MESH-161")
def test_a_person_sees_score_age_tags_source_and_the_words_marked_and_a_pipe_the_documents_lines(
    cli,
):
    metadata = '{"source": "runbook.md"}'
    id_ = cli(
        "store",
        "The deploy key rotates on Mondays.",
        "--tag",
        "ops",
        "--tag",
        "keys",
        "--metadata",
        metadata,
    ).id
    seen = cli("search", "rotating", "keys", terminal=True)
    head, _, line, text = plain(seen)
    assert head == "[MemoryMesh] 1 memory about “rotating keys”"
    assert re.fullmatch(rf"[01]\.\d\d  just now  #ops #keys  runbook.md  {id_}", line)
    assert text == "    The deploy key rotates on Mondays."
    assert f"The deploy {MARK}key\x1b[0m {MARK}rotates\x1b[0m on" in seen.out
    piped = cli("search", "rotating", "keys").out
    assert piped.startswith("[MemoryMesh] Found 1 matches.\n\n[ATTENTION DIRECTIVE]\n")
    assert "\x1b" not in piped


def test_nothing_relevant_is_said_as_such_with_what_shows_weaker_matches(cli, monkeypatch):
    cli("store", "The key rotates.")
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "none")
    nothing, hint = "[MemoryMesh] Nothing relevant to “zeppelin”", "shows weaker matches."
    assert plain(cli("search", "key", terminal=True))[0] == "[MemoryMesh] 1 memory about “key”"
    assert plain(cli("search", "zeppelin", "--mode", "precise", terminal=True)) == [
        nothing,
        f"--mode recall {hint}",
    ]
    assert plain(cli("search", "zeppelin", "--min-score", "0.5", terminal=True)) == [
        nothing,
        f"--min-score 0 {hint}",
    ]
    for flags in ([], ["--mode", "recall"], ["--min-score", "0"]):  # nothing is below these
        assert plain(cli("search", "zeppelin", *flags, terminal=True)) == [nothing]
    assert cli("search", "zeppelin").out == "[MemoryMesh] Found 0 matches.\n"
    assert json.loads(cli("search", "zeppelin", "--json").out)["results"] == []


def test_a_long_memory_shows_the_passage_around_the_first_word(cli, tmp_path):
    filler = "\n\n".join(f"Step {number}: tell the team what was done." for number in range(200))
    (tmp_path / "runbook.md").write_text(
        f"# Deploy\n\n{filler}\n\nThe zebra key is turned twice.\n\n{filler}\n"
    )
    cli("ingest-dir", str(tmp_path))
    lines = plain(cli("search", "zebra", terminal=True))
    assert "runbook.md › Deploy" in lines[2]
    assert lines.index("    The zebra key is turned twice.") <= 6
    assert len(lines) <= 3 + 8 + 2
    assert lines[-1] == "    …"


@pytest.mark.parametrize("width", [20, 40, 90, 200])
def test_results_fit_the_terminal_with_wide_characters(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    text = "デプロイキーは月曜日に回転します。" * 9 + " key 🐘🐘🐘 " + "x" * 300 + "\tend\n\n\nlast"
    seen = COLOUR.sub(
        "", drawn(hit(content=text, metadata={"source": "文書" * 40}, tags=["a", "b"]))
    )
    assert "key" in seen
    assert [line for line in seen.splitlines()[1:] if cell_len(line) > width] == []
    assert [line for line in seen.splitlines() if line != line.rstrip()] == []


@given(st.text(min_size=1), st.text(), st.text())
def test_no_text_controls_the_terminal(content, source, query):
    seen = COLOUR.sub(
        "",
        drawn(
            hit(content=content, tags=[source], speaker=source, metadata={"source": source}),
            query=query,
        ),
    )
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", seen)


def test_what_is_not_usual_is_shown():
    line = COLOUR.sub(
        "", drawn(hit(status="archived", memory_type="agent", speaker="Ana", copies=3))
    ).splitlines()[2]
    assert "Ana  agent  archived  3 copies" in line


# --- store and list ---


def test_store_tells_whether_the_text_was_new_and_what_was_masked(cli):
    words = ["store", "Ask ann@example.org, bob@example.org or +44 20 7946 0958."]
    first, second = (plain(cli(*words, terminal=True)) for _ in range(2))
    assert first[0] == second[0]
    assert first[0].startswith("[MemoryMesh] Ingested record mem_")
    assert first[1:] == ["Stored. 2 e-mail addresses and 1 phone number masked."]
    assert second[1:] == [
        "Known already: seen 2 times, first just now. 2 e-mail addresses and 1 phone number masked."
    ]
    id_ = first[0].split()[-1]
    assert plain(cli("update", id_, "From 203.0.113.42", terminal=True))[1:] == [
        "1 IP address masked."
    ]
    assert len(plain(cli("update", id_, "plain", terminal=True))) == 1
    assert cli("store", "new").out.count("\n") == 1


def test_store_tells_that_a_key_was_used_before(cli):
    told = [
        plain(cli("store", text, "--key", "ana", terminal=True))[1]
        for text in ("here", "away", "away", "back")
    ]
    assert [line.partition(":")[0] for line in told] == [
        "Stored.", "Replaced what was stored under the key ana; `history` keeps it.",
        "Known already", told[1],
    ]  # fmt: skip


def test_every_kind_of_redaction_has_a_name_for_people():
    told = masked_values(dict.fromkeys(KINDS, 2))
    assert told.startswith("2 ")
    assert "_" not in told
    assert "2 e-mail addresses" in told
    assert masked_values({}) == ""


def test_a_full_page_names_the_command_for_the_next(cli):
    for number in range(5):
        cli("store", f"note {number}", "--store", "sqlite:///my notes.db")
    typed, seen = ["list", "--limit", "2", "--store", "sqlite:///my notes.db"], []
    for length in (2, 2, 1):
        lines = plain(cli(*typed, terminal=True))
        seen += [line.split("  ")[-1] for line in lines[1:] if line.startswith("mem_")]
        assert lines[0] == f"[MemoryMesh] {counted(length, 'memory')}"
        if length == 2:
            more = re.fullmatch(r"More: memory-mesh (.*)", lines[-1])
            assert more
            assert "'sqlite:///my notes.db'" in more[1]
            typed = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", more[1])]
    assert seen == [f"note {number}" for number in (4, 3, 2, 1, 0)]
    assert not lines[-1].startswith("More")


def test_a_page_as_json_has_the_cursor_of_the_next(cli):
    for number in range(3):
        cli("store", f"note {number}")
    page = json.loads(cli("list", "--limit", "2", "--json").out)
    assert page["next"] == page["results"][-1]["id"]
    assert "next" not in json.loads(
        cli("list", "--limit", "2", "--after", page["next"], "--json").out
    )


def test_the_next_page_keeps_the_other_words():
    assert next_page(["list", "--after", "a", "--filter", "tags = 'x'"], "b") == (
        "memory-mesh list --filter 'tags = '\"'\"'x'\"'\"'' --after b"
    )
    assert next_page(["list", "--after=a"], "b") == "memory-mesh list --after b"


def test_a_list_is_cut_at_the_edge_of_the_terminal(cli):
    cli("store", "long 日本語 " * 99, "--type", "agent")
    *_, line = plain(cli("list", terminal=True))
    assert "[agent] long 日本語" in line
    assert line.endswith("…")
    assert cell_len(line) <= 90


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "just now"), (59, "just now"), (60, "1 minute ago"), (3599, "59 minutes ago"),
        (7200, "2 hours ago"), (3 * 86_400, "3 days ago"), (8 * 86_400, "1 week ago"),
        (65 * 86_400, "2 months ago"), (800 * 86_400, "2 years ago"), (-30, "just now"),
        (-2 * 86_400, "in 2 days"),
    ],
)  # fmt: skip
def test_an_age_is_told_in_its_largest_unit(seconds, told):
    assert age(iso(NOW - 1000 * seconds), NOW) == told


def test_without_colour_a_terminal_still_gets_the_screen(cli, monkeypatch):
    cli("store", "The key rotates.")
    painted = cli("search", "key", terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    quiet = cli("search", "key", terminal=True)
    assert MARK in painted.out
    assert "\x1b" not in quiet.out
    assert quiet.out.splitlines() == plain(painted)


# --- a real terminal ---


def at_terminal(home: Path, *words: str, width: int = 60, **environ: str) -> str:
    """Run the installed command at a pseudo-terminal, and return what it shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    kept = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")
    }
    env = {
        **kept,
        "MEMORY_MESH_HOME": str(home),
        "MEMORY_MESH_EMBEDDER": "hash",
        "TERM": "xterm",
        **environ,
    }
    with subprocess.Popen([COMMAND, *words], env=env, stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65_536):
                shown += piece
        except OSError:  # Linux reports the end of a pseudo-terminal as an error
            pass
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.deep
def test_a_real_terminal_gets_the_screens_at_its_width(tmp_path):
    text = (
        "The deploy key rotates on Mondays, and the vault key on the first Friday of every month."
    )
    assert "\nStored.\n" in at_terminal(tmp_path, "store", text)
    shown = at_terminal(tmp_path, "search", "key")
    assert shown.count(f"{MARK}key") == 2
    assert max(len(line) for line in COLOUR.sub("", shown).splitlines()) <= 60


@pytest.mark.deep
def test_a_poor_terminal_gets_no_colour_and_an_error_is_one_line(tmp_path):
    at_terminal(tmp_path, "store", "The deploy key rotates on Mondays.")
    listed = at_terminal(tmp_path, "list", width=45, TERM="dumb")
    assert re.search(r"mem_\w+  just now  The depl…\n", listed)
    assert at_terminal(tmp_path, "get", "nope").startswith(
        "\x1b[1;31m[MemoryMesh Error]\x1b[0m no memory 'nope'"
    )
