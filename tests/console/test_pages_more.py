"""The further pages of the console in Chromium: main paths, empty stores, reading only, errors,
phones, and hostile texts."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import console_seed

from .browser import Console, Watched, serving, watching

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.deep

PAGES = (
    "lessons",
    "skills",
    "notes",
    "traces",
    "captures",
    "junk",
    "time",
    "changes",
    "graph",
    "audit",
    "numbers",
)
# What each page says about an empty store.
EMPTY = {
    "lessons": "No lesson was learnt yet", "skills": "There are no skills yet",
    "notes": "There are no notes yet", "traces": "No run was recorded yet",
    "captures": "Nothing was captured yet", "junk": "This store has no memories yet",
    "time": "This store has no memories yet", "graph": "This store has no memories yet",
    "changes": "This store has no memories yet", "audit": "There are no chains yet",
    "numbers": "This store has no memories yet",
}  # fmt: skip
# Buttons that write: with a token for reading only, none of them is there.
WRITES = (
    "Helpful", "Harmful", "Make a skill", "It worked", "It failed", "Delete",
    "Read the folder again", "Learn from the runs", "Keep them as memories", "Archive all",
)  # fmt: skip
PHONE = {"viewport": {"width": 360, "height": 740}}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with serving(console_seed.Seeded(tmp_path_factory.mktemp("empty"))) as running:
        yield running


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Console, str]]:
    """A server that needs a token, and one that only reads."""
    with serving(console_seed.seed(tmp_path_factory.mktemp("locked"))) as running:
        yield running, running.token("reader", "--read-only")


def settled(page: "Page") -> "Page":
    """Wait until nothing is loading, and open all that is folded."""
    page.locator("main h1").wait_for()
    page.locator("main .loading").first.wait_for(state="detached")
    page.evaluate(
        "() => [...document.querySelectorAll('main details')].slice(0, 6).forEach(one => { "
        "one.open = true })"
    )
    page.wait_for_load_state("networkidle")
    return page


def says(page: "Page", text: str) -> None:
    """Wait for a text on the page."""
    page.get_by_text(text).first.wait_for()


def answers(page: "Page", path: str, data: dict[str, Any]) -> None:
    """Let the server answer so, for what a seeded store does not have."""

    def fulfil(route: "Route") -> None:
        route.fulfill(body=json.dumps(data), content_type="application/json")

    page.route(f"**/{path}*", fulfil)


# --- every page ---


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_in_both_themes_and_shows_hostile_texts_as_text(
    console: Console, browser: "Browser", scheme: str
) -> None:
    with watching(browser, console.url, color_scheme=scheme) as page:
        for name in (*PAGES, f"traces/{console.ids['trace']}", "graph?view=list"):
            settled(page.open(f"/{name}"))
            page.check_accessible()
            page.picture(f"{name}-{scheme}")
            assert page.page.locator("main script, main img, main svg[onload]").count() == 0, name
    assert "<script>" in console.cli("lessons", "--json")  # it is there, so it was shown


def test_every_page_fits_a_phone_without_scrolling_sideways(
    console: Console, browser: "Browser"
) -> None:
    with watching(browser, console.url, **PHONE) as page:
        for name in (*PAGES, f"traces/{console.ids['trace']}", "graph?view=list"):
            settled(page.open(f"/{name}"))
            page.picture(f"{name}-phone")
            assert (
                page.page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
            ), name


def test_an_empty_store_is_explained(empty: Console, browser: "Browser") -> None:
    with watching(browser, empty.url) as page:
        for name, text in EMPTY.items():
            says(page.open(f"/{name}"), text)


def test_a_session_that_only_reads_sees_every_page_and_no_button_that_writes(
    locked: tuple[Console, str], browser: "Browser"
) -> None:
    console, token = locked
    with watching(browser, console.url) as page:
        page.open("/lessons").get_by_label("Token").fill(token)
        page.page.get_by_role("button", name="Log in").click()
        says(page.page, "Refresh the token before every deploy.")
        for name in (*PAGES, f"traces/{console.ids['trace']}"):
            settled(page.open(f"/{name}"))
            assert page.page.locator("main .problem").count() == 0, name
            shown = page.page.locator("main button").all_inner_texts()
            assert not [button for button in shown if button.startswith(WRITES)], name


def test_a_server_that_does_not_answer_is_said_on_every_page_and_loading_again_helps(
    page: Watched,
) -> None:
    from playwright.sync_api import TimeoutError as NotThere

    page.expects("ERR_FAILED", "Failed to load")
    page.open("/search")
    for name in PAGES:
        page.page.route("**/v1/**", lambda route: route.abort())
        page.page.route("**/console/api/**", lambda route: route.abort())
        page.open(f"/{name}")
        says(page.page, "The server does not answer")
        page.page.unroute_all()
        # Each part of the page says so, some later than others.
        problem, until = page.page.locator("main .problem"), time.monotonic() + 60
        while problem.count() and time.monotonic() < until:
            # The last one first: a button stays until its part is loaded, and the places of those
            # before it do not change.
            for button in reversed(page.page.get_by_role("button", name="Try again").all()):
                with suppress(NotThere):  # its part was loaded meanwhile
                    button.click(timeout=1000)
            page.page.wait_for_timeout(200)
        assert problem.count() == 0


# --- what was learnt ---


def test_a_lesson_shows_where_it_came_from_and_is_rated(page: Watched) -> None:
    shown = page.open("/lessons")
    card = shown.locator(".lesson", has_text="Rotate the logs every night.")
    card.get_by_text("Where it came from").click()
    card.get_by_text("The disk was full.").wait_for()
    card.get_by_text("Not rated yet").wait_for()
    card.get_by_role("button", name="Helpful").click()
    card.get_by_text("Rank × 1.10 after 1 rating").wait_for()
    shown.get_by_role("searchbox", name="Find lessons").fill("deploy the shop with a token")
    says(shown, "relevance 0.")
    assert "Refresh the token before every deploy." in shown.locator(".lesson").first.inner_text()
    assert "query=deploy" in shown.url


def test_a_skill_is_rated_and_deleted_after_a_question(console: Console, page: Watched) -> None:
    console.cli("ingest-skill", "name;sweep;\nintent;Sweep the floor.;\n")
    shown = page.open("/skills")
    card = shown.locator(".skill", has_text="Sweep the floor.")
    card.get_by_role("button", name="It failed").click()
    card.get_by_text("0.30").wait_for()
    card.get_by_text("Used 1 time").wait_for()
    card.get_by_text("Text and origin").click()
    card.get_by_role("button", name="Delete").click()
    dialog = shown.get_by_role("dialog")
    dialog.get_by_role("button", name="Cancel").click()
    dialog.wait_for(state="detached")
    card.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete for good").click()
    card.wait_for(state="detached")
    assert "sweep" not in console.cli("list-skills", "--json")


def test_a_task_shows_its_notes_with_the_points(page: Watched) -> None:
    shown = page.open("/notes")
    says(shown, "Invoices are in euros.")
    shown.get_by_role("searchbox").nth(1).fill("add a login page")
    says(shown, "Matched by")
    assert shown.locator(".note").count() == 1
    shown.get_by_text("When it is used").click()
    shown.get_by_role("button", name="Helpful").click()
    says(shown, "after 1 rating")


def test_a_trace_shows_its_steps_and_its_decisions_are_kept(
    console: Console, page: Watched
) -> None:
    shown = page.open("/traces?archived=yes")
    shown.get_by_role("link", name="Deploy the shop to staging").first.click()
    shown.get_by_role("heading", name="Steps").wait_for()
    assert shown.locator(".steps li").all_inner_texts() == ["build", "test"]
    shown.get_by_role("button", name="Keep them as memories").click()
    says(shown, "1 decision stored as memories.")
    settled(page.open("/traces?goal=deploy+the+shop"))
    says(shown, "similarity")
    page.expects("404")
    says(page.open("/traces/trace-1-unknown"), "no trace")


def test_learnings_are_drawn_from_runs(console: Console, page: Watched) -> None:
    for _ in range(2):
        console.cli("trace", "record", "--goal", "Say hello to the harbour", "--", "echo", "hello")
    shown = settled(page.open("/traces"))
    shown.get_by_role("button", name="Learn from the runs now").click()
    shown.locator("summary", has_text="Say hello to the harbour").wait_for()


# --- what comes in ---


def test_captures_show_what_was_kept_and_a_trial_says_why_not(
    console: Console, page: Watched
) -> None:
    shown = page.open("/captures")
    says(shown, "No, use pnpm instead of npm here.")
    before = console.cli("stats", "--json")
    shown.get_by_label("Transcript").fill(
        "user: Hi!\nuser: We decided to go with Postgres for the ledger, MySQL is out.\nuser: ok?"
    )
    shown.get_by_role("button", name="Judge it").click()
    says(shown, "1 statement would be kept")
    says(shown, "small talk")
    assert console.cli("stats", "--json") == before


def test_junk_is_deleted_one_by_one_or_archived_at_once_with_undo(
    console: Console, page: Watched
) -> None:
    shown = page.open("/junk")
    item = shown.locator(".junk", has_text="Thanks a lot!")
    item.get_by_text("small talk").wait_for()
    item.get_by_role("button", name="Delete").click()
    shown.get_by_role("button", name="Delete for good").click()
    item.wait_for(state="detached")
    assert "Thanks a lot!" not in console.cli("list", "--limit", "200", "--json")
    shown.get_by_role("button", name="Archive all").click()
    shown.get_by_role("dialog").get_by_role("button", name="Archive all").click()
    says(shown, "Every memory looks worth keeping.")
    shown.get_by_role("button", name="Undo").click()
    says(shown, "What time is it in Lisbon?")


# --- the whole store ---


def test_the_slider_shows_the_memory_as_it_was(page: Watched) -> None:
    shown = settled(page.open("/time"))
    shown.get_by_role("radio", name="What was known").check()
    says(shown, "The server stands in Oslo.")
    slider = shown.get_by_role("slider")
    slider.focus()
    shown.keyboard.press("Home")
    says(shown, "1 memory known by then")
    assert shown.locator("main .items li").all_inner_texts()[0].startswith("The deploy key rotates")
    assert "known_at=" in shown.url
    shown.keyboard.press("End")
    says(shown, "memories known by then")
    shown.get_by_role("radio", name="What was true").check()
    says(shown, "true by then")
    assert "as_of=" in shown.url


def test_the_graph_is_drawn_clicked_and_listed(console: Console, page: Watched) -> None:
    shown = page.open("/graph")
    shown.locator(".graph canvas").first.wait_for()
    at = shown.evaluate(
        "id => { const node = document.querySelector('.graph').graph.getElementById(id)"
        ".renderedPosition();"
        " const box = document.querySelector('.graph').getBoundingClientRect(); return [box.left + "
        "node.x, box.top + node.y] }",
        console.ids["plain2"],
    )
    shown.mouse.click(*at)
    shown.get_by_role("link", name="Open the memory").wait_for()
    shown.get_by_role("button", name="Centre it").click()
    shown.get_by_role("button", name="Show the whole memory").wait_for()
    before = shown.evaluate("() => document.querySelector('.graph').graph.zoom()")
    shown.get_by_role("button", name="Zoom in").click()
    assert shown.evaluate("() => document.querySelector('.graph').graph.zoom()") > before
    shown.get_by_role("radio", name="List").check()
    shown.get_by_text("2 links").first.click()
    assert shown.get_by_role("link", name="The staging server is called heron.").count()


def test_the_buttons_of_the_graph_wait_for_its_library(page: Watched) -> None:
    held: list[Route] = []
    page.page.route("**/vendor/cytoscape.js", lambda route: held.append(route))
    page.page.goto(f"{page.url}/console/#/graph")
    for name in ("Zoom in", "Fit"):
        page.page.get_by_role("button", name=name).click()
    assert not page.page.locator(".graph canvas").count()
    # As the message of a button that failed.
    assert not page.page.get_by_text("Cannot read properties").count()
    held[0].continue_()
    page.page.locator(".graph canvas").first.wait_for()


def test_groups_beyond_what_can_be_read_are_opened_by_a_click(page: Watched) -> None:
    page.open("/search")
    nodes = [
        {
            "id": f"mem_{n}",
            "title": f"Group {n}",
            "kind": "cluster",
            "size": 9,
            "count": 40,
            "cluster": n,
        }
        for n in range(9)
    ]
    answers(page.page, "console/api/graph", {"nodes": nodes, "edges": [], "aggregated": True})
    shown = page.open("/graph?view=list")
    says(shown, "There are more memories than can be read at once")
    shown.get_by_role("button", name="40 memories: Group 3").click()
    shown.get_by_role("button", name="Show the whole memory").wait_for()
    assert "seed=mem_3" in shown.url


def test_chains_are_verified_and_a_broken_one_is_named(page: Watched) -> None:
    shown = settled(page.open("/audit"))
    says(shown, "not checked yet")
    shown.get_by_role("button", name="Verify now").click()
    says(shown, "chains sound: nothing that the blocks name was changed")
    says(shown, "where")  # the newest blocks
    heads = shown.evaluate("() => fetch('/v1/audit/head').then(answer => answer.json())")["results"]
    broken = [
        {
            **one,
            "ok": False,
            "signature": None,
            "reason": "the content of mem_1 differs from what was sealed",
        }
        for one in heads
    ]
    answers(shown, "v1/audit/verify", {"ok": False, "results": broken})
    shown.get_by_role("button", name="Verify now").click()
    says(shown, "the content of mem_1 differs from what was sealed")
    says(shown, "Keep a copy of the store")


def test_numbers_are_plotted_with_a_sentence_and_a_table(page: Watched) -> None:
    settled(page.open("/search?query=deploy"))  # or the next page could be opened before it is sent
    shown = settled(page.open("/numbers"))
    says(shown, "half took at most")
    assert shown.locator(".plot canvas").count() >= 5
    growth = shown.locator(".card", has_text="Growth")
    # Of the first memories.
    year = time.strftime("%Y", time.gmtime(time.time() - 40 * console_seed.DAY))
    growth.get_by_role("cell", name=year, exact=False).first.wait_for()
    spent = [
        {
            "operation": "extract",
            "model": "small",
            "calls": 3,
            "failed": 1,
            "sent": 900,
            "received": 90,
            "cost": 0.02,
        }
    ]
    numbers = shown.evaluate("() => fetch('/console/api/numbers').then(answer => answer.json())")
    answers(
        shown, "console/api/numbers", {**numbers, "spending": {"today": spent, "in_all": spent}}
    )
    page.open("/time")
    says(page.open("/numbers"), "3 calls of models in all, today 3 calls")
