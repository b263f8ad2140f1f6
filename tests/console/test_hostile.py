"""Hostile texts in every kind of record: no page of the console runs them or reports an error;
each stays usable and narrow."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import console_seed
from console_seed import AGENT, BIDI, LINK, SCRIPT, TOOL, USER
from memory_mesh import MemoryMesh
from memory_mesh.core.errors import InvalidInput

from .browser import Console, Watched, serving, watching

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.deep
LINE = "hostile line " + "x y " * 249_000  # a megabyte without a line break
WORD = "hostile" + "w" * 999_000  # one token of a million characters
TEXTS = {"script": f"hostile {SCRIPT}", "bidi": f"hostile {BIDI}", "line": LINE, "word": WORD}
NAME = 120  # characters of a name: of a tag, a category, an agent, a session
PAGES = (
    "/", "/search", "/search?query=hostile&mode=recall", "/review", "/lessons", "/skills", "/notes",
    "/traces", "/captures", "/junk", "/time", "/changes",
    "/graph", "/graph?view=list", "/audit", "/numbers",
    *(f"/memory/{name}" for name in (*TEXTS, *(f"claim {name}" for name in TEXTS))),
)  # fmt: skip
# A canvas, and figures: they have no texts of memories.
WITHOUT_TEXT = ("/graph", "/audit", "/numbers")
_MAX_SECONDS = 20.0  # to answer a key on a page; a page that hangs takes minutes
_WIDE = "document.documentElement.scrollWidth > window.innerWidth"


def _store(mesh: MemoryMesh, text: str, name: str, ids: dict[str, str]) -> None:
    """Store a text in every kind of record, shortened where a kind takes less."""
    named = text[:NAME].replace("\x07", "")
    memory = mesh.add(
        text,
        {"tags": [named], "source": LINK, "category": named, "actor": named, named: text[:1000]},
    )
    ids[name] = memory.id
    again = mesh.add(f"{text[:1000]} again")
    mesh.graph.link(memory.id, again.id, "related")
    mesh.confirm_change(again.id, memory.id)
    mesh.update(memory.id, metadata={**memory.metadata, "changed": named}, why=text[:1000])
    spy = mesh.scoped(agent_id=named, session_id=named, project=named, user_id=None)
    spy.add(f"{text[:500]} of an agent, a session and a project with such a name")
    subject = {"subject": text[:400], "predicate": f"works_at_{name}"}
    for value, length, provenance in (
        ("one", 1000, {**USER, "actor": named}),
        ("another", 900_000, TOOL),
    ):
        claim = {**subject, "value": f"{value} {text[:400]}"}
        kept = mesh.graph.store(
            AGENT, f"{value} {text[:length]}", claim=claim, provenance=provenance
        )
        ids[f"claim {name}"] = kept.id
    _store_learnt(mesh, text, name)


def _store_learnt(mesh: MemoryMesh, text: str, name: str) -> None:
    """Store a text as a lesson, a skill, a note, a trace, a capture and junk."""
    _longest(text, lambda part: mesh.distill_lesson(
        {"error_pattern": f"hostile_{name}", "preventative_rule": part, "situation": part,
         "oversight": part, "fix": part, "severity": "low", "applicable_scope": part[:200]}
    ))  # fmt: skip
    quoted = "'{}'".format(text.replace("'", "''").replace("\x07", ""))
    _longest(
        quoted,
        lambda part: mesh.ingest_skill(
            f"name: hostile-{name}\nintent: {part.rstrip(chr(39))}'\nsteps:\n  - go\n"
        ),
    )
    _longest(
        text,
        lambda part: mesh.notes.append(
            title=f"{name} {part[:80]}", content=part, when_to_use=["hostile"], tags=[part[:60]]
        ),
    )
    _longest(text, lambda part: mesh.traces.record(
        part[:2000], steps=[part], learnings=[part], decisions=[part], tools_used=[part[:60]],
        results=part
    ))  # fmt: skip
    # Capture itself refuses code, instructions and pasted documents, so what it would store is
    # stored as such.
    captured = mesh.scoped(session_id=f"session {name} {text[:NAME]}".replace("\x07", "")).lane
    _longest(
        text,
        lambda part: captured.store(
            f"Never use {part}", memory_type="correction", source_chunk=part
        ),
    )
    mesh.add(
        'Traceback (most recent call last):\n  File "app.py", line 3, in <module>\n'
        f"KeyError: '{text[:900_000]}'"
    )


def _longest(text: str, store: Callable[[str], object]) -> None:
    """Call with the text, or with the longest beginning of it that is accepted."""
    for length in (len(text), 100_000, 10_000, 1_000):
        try:
            store(text[:length])
        except InvalidInput:
            continue
        return
    raise AssertionError(f"refused: {text[:60]}")


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> console_seed.Seeded:
    home: Path = tmp_path_factory.mktemp("hostile")
    done = console_seed.Seeded(home)
    # Redaction takes seconds for a megabyte; it has tests of its own.
    folders = {"notes_dir": str(home / "notes"), "traces_dir": str(home / "traces")}
    with MemoryMesh(
        str(home / "memory.db"), agent_id=AGENT, embedder="hash", redaction="off", **folders
    ) as mesh:  # type: ignore[arg-type]
        for name, text in TEXTS.items():
            _store(mesh, text, name, done.ids)
    return done


@pytest.fixture(scope="module")
def console(seeded: console_seed.Seeded) -> Iterator[Console]:
    with serving(seeded, embedder="hash", redaction="off") as running:
        yield running


def _open(console: Console, page: Watched, path: str) -> "Page":
    """Open a page, wait until everything is loaded, and open what is folded."""
    from playwright.sync_api import expect

    page.page.set_default_timeout(60_000)
    if path.startswith("/memory/"):
        path = f"/memory/{console.ids[path.removeprefix('/memory/')]}"
    shown = page.open(path)
    shown.get_by_role("heading", level=1).wait_for()
    expect(shown.locator("main .loading")).to_have_count(0, timeout=60_000)
    for details in shown.locator("main details > summary").all()[:10]:
        details.click()
    return shown


@pytest.mark.one_in_ci(3)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_with_hostile_texts_runs_nothing_and_stays_usable(
    console: Console, page: Watched, path: str
) -> None:
    shown = _open(console, page, path)
    assert shown.locator("main .problem").count() == 0
    assert (
        shown.locator(
            "main script, main img, main svg[onload], main [onerror], a[href^='javascript']"
        ).count()
        == 0
    )
    if path not in WITHOUT_TEXT:
        text = shown.locator("main").inner_text()
        assert "hostile" in text
        assert not [mark for mark in "\u202e\u2066\u200b\x07" if mark in text]
    assert not shown.evaluate(_WIDE)
    began = time.monotonic()
    shown.keyboard.press("?")
    shown.get_by_role("dialog").wait_for()
    shown.get_by_role("button", name="Close", exact=True).click()
    shown.keyboard.press("/")
    shown.keyboard.type("quick")
    assert shown.locator("#quick").input_value() == "quick"
    assert time.monotonic() - began < _MAX_SECONDS
    shown.set_viewport_size({"width": 360, "height": 740})
    assert not shown.evaluate(_WIDE)


def test_a_user_with_a_hostile_name_is_shown_as_text(browser: "Browser", tmp_path: Path) -> None:
    name = f"{SCRIPT} {BIDI}".replace("\x07", "")
    with MemoryMesh(str(tmp_path / "memory.db"), agent_id=AGENT, embedder="hash") as mesh:
        mesh.scoped(user_id=name).add("The hostile user drinks tea.")
    with (
        serving(console_seed.Seeded(tmp_path), embedder="hash") as console,
        watching(browser, console.url) as page,
    ):
        token = console.token("SCRIPT <img src=x onerror='window.broken = 4'>", "--user", name)
        page.expects("401")
        shown = page.open("/")
        shown.get_by_label("Token").fill(token)
        shown.get_by_role("button", name="Log in").click()
        shown.get_by_text("The hostile user drinks tea.").first.wait_for()
        text = shown.locator(".who").inner_text()
        assert "<script>window.broken" in text
        assert "<img src=x onerror='window.broken = 4'>" in text
        assert not [mark for mark in "\u202e\u2066\u200b" if mark in text]
        assert shown.locator("#app script, #app img, #app [onload], #app [onerror]").count() == 0
        assert not shown.evaluate(_WIDE)
        page.check_accessible()


def test_a_page_that_runs_the_texts_or_is_too_wide_is_noticed(
    console: Console, page: Watched, browser: "Browser"
) -> None:
    with browser.new_context() as context:
        plain = context.new_page()
        plain.on("dialog", lambda dialog: dialog.dismiss())
        plain.set_content(f"<main>{TEXTS['script']}</main>")
        plain.wait_for_function("window.broken !== undefined")
        assert plain.locator("main img, main svg[onload], main [onerror]").count() > 0
    shown = _open(console, page, "/search")
    shown.evaluate("document.querySelector('main h1').style.width = '3000px'")
    assert shown.evaluate(_WIDE)
