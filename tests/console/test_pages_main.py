"""The pages home, search, memory, review and login of the console, in Chromium."""

import json
import math
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import console_seed

from .browser import Console, Watched, serving, watching

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Route

pytestmark = pytest.mark.deep
PHONE = {"viewport": {"width": 360, "height": 740}}
PAGES = ("/", "/search?query=deploy+key", "/search?status=any", "/review", "memory", "/nowhere")
WRITING = ("Pin", "Edit", "Archive", "Erase …")  # the buttons of a memory that write


def route(console: Console, path: str) -> str:
    return f"/memory/{console.ids['plain0']}" if path == "memory" else path


def hits(page: Watched) -> "Locator":
    return page.page.locator("article.hit")


def decision(page: Watched, text: str) -> "Locator":
    return page.page.locator("article.decision").filter(has_text=text).first


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A server on a store that this test may change."""
    seeded = console_seed.seed(tmp_path_factory.mktemp("fresh"), embedder="local")
    with serving(seeded) as running:
        yield running


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_accessible_in_light_and_dark(
    console: Console, browser: "Browser", path: str, scheme: str
) -> None:
    with watching(browser, console.url, color_scheme=scheme) as page:
        page.open(route(console, path))
        page.page.get_by_role("heading", level=1).wait_for()
        assert page.page.locator("h1").count() == 1
        for details in page.page.locator("main details summary").all():
            details.click()
        page.check_accessible()
        page.picture(f"{path}-{scheme}")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_fits_the_width_of_a_phone(console: Console, browser: "Browser", path: str) -> None:
    with watching(browser, console.url, **PHONE) as page:
        page.open(route(console, path))
        for details in page.page.locator("main details summary").all():
            details.click()
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 360
        page.page.get_by_role("button", name="Pages").click()
        page.page.get_by_role("link", name="Review", exact=True).wait_for()
        page.check_accessible()
        page.picture(f"{path}-phone")


def test_the_first_view_counts_and_lists_the_newest_memories(
    console: Console, page: Watched
) -> None:
    page.open("/")
    page.page.get_by_text("quarantined").first.wait_for()
    rows = page.page.get_by_role("list", name="Newest memories").get_by_role("listitem")
    assert rows.first.get_by_role("link").count() == 1
    page.page.get_by_role("link", name=re.compile("Review .*conflict")).click()
    page.page.get_by_role("heading", name="Review", level=1).wait_for()


def test_a_search_marks_the_words_and_explains_the_score(console: Console, page: Watched) -> None:
    page.open("/")
    page.page.keyboard.press("/")
    page.page.keyboard.type("when does the deploy key rotate?")
    page.page.keyboard.press("Enter")
    first = hits(page).first
    first.wait_for()
    assert first.locator("mark").all_inner_texts()[:2] == ["deploy", "key"]
    first.get_by_text("Why this score").click()
    assert first.get_by_text("Words of the question in it").is_visible()
    assert first.get_by_text("Similar meaning", exact=True).is_visible()
    values = [
        float(text.replace("−", "-")) for text in first.locator(".bar-text").all_inner_texts()
    ]
    assert [abs(one) for one in values] == sorted((abs(one) for one in values), reverse=True)
    score = float(first.locator(".score").inner_text().split()[0]) / 100
    assert 0 not in values  # what would read +0.00 or −0.00 has no bar
    assert sum(values) == pytest.approx(math.log(score / (1 - score)), abs=0.1)
    for bar, value in zip(first.locator(".bar-track span").all(), values, strict=True):
        drawn, track = bar.bounding_box(), bar.locator("..").bounding_box()
        assert drawn
        assert track
        middle = track["x"] + track["width"] / 2
        assert drawn["x"] + (drawn["width"] if value < 0 else 0) == pytest.approx(middle, abs=1)
    page.page.get_by_label("Ranker").select_option("rrf")
    page.page.get_by_text("Its place by words (no. 1)").first.wait_for(state="attached")


def test_a_search_shows_the_passage_of_a_long_memory(console: Console, page: Watched) -> None:
    page.open("/search?query=queue+longer+than+700+start+another+worker")
    passage = page.page.locator(".passage.found").first
    passage.wait_for()
    assert "longer than 700" in passage.inner_text()


def test_filters_narrow_a_search_and_stay_in_the_address(console: Console, page: Watched) -> None:
    page.open("/search?query=deploy&mode=recall")
    hits(page).first.wait_for()
    page.page.get_by_text("Filters", exact=True).click()
    page.page.get_by_label("Tag").fill("it's")
    page.page.get_by_label("Tag").press("Tab")
    page.page.get_by_role("heading", name="Nothing relevant is known.").wait_for()
    assert "tag=it%27s" in page.page.url
    page.page.get_by_role("button", name="Remove 1 filter").click()
    hits(page).first.wait_for()


def test_a_line_stands_below_the_last_relevant_result(console: Console, page: Watched) -> None:
    page.open("/search?query=when+does+the+deploy+key+rotate")
    hits(page).first.wait_for()
    texts = page.page.locator("[data-item], .below").all_inner_texts()
    words = ("search", "when does the deploy key rotate", "--limit", "20", "--json")
    found = json.loads(console.cli(*words))["results"]
    relevant = sum(one["relevant"] for one in found)
    assert 0 < relevant < len(found)
    assert texts.index("Probably not relevant") == relevant
    assert len(texts) == len(found) + 1
    page.open("/search?query=when+does+the+deploy+key+rotate&mode=precise")
    page.page.get_by_role("button", name="Show weaker ones").click()
    page.page.get_by_text("Probably not relevant", exact=True).wait_for()
    assert hits(page).count() == len(found)


def test_a_question_that_nothing_answers_says_so(console: Console, page: Watched) -> None:
    page.open("/search?query=penguin+migration+antarctic+1911")
    page.page.get_by_role("heading", name="Nothing relevant is known.").wait_for()
    assert page.page.locator(".below, [data-item]").first.inner_text() == "Probably not relevant"
    page.open("/search?query=penguin+migration+antarctic+1911&mode=precise")
    page.page.get_by_role("button", name="Show weaker ones").wait_for()
    assert hits(page).count() == 0


def test_a_memory_shows_its_history_as_a_difference_of_words(
    console: Console, page: Watched
) -> None:
    page.open(f"/memory/{console.ids['plain0']}")
    history = page.page.locator("section.card").filter(has_text="History")
    history.wait_for()
    assert "Mondays" in history.locator("del").all_inner_texts()
    assert "Fridays" in history.locator("ins").all_inner_texts()
    assert "at noon" in "".join(history.locator("ins").all_inner_texts())
    for title in ("Trust", "Provenance", "Sightings", "Audit blocks", "Links"):
        assert page.page.get_by_role("heading", name=title).count() == 1, title
    assert page.page.get_by_text("sealed", exact=True).count() >= 3
    assert page.page.get_by_text("made exact").is_visible()


def test_a_memory_that_is_gone_is_said_to_be(console: Console, page: Watched) -> None:
    page.expects("404")
    page.open("/memory/mem_1760000000000_000000")
    page.page.get_by_role("alert").wait_for()
    assert page.page.get_by_role("link", name="Search for another memory").is_visible()


@pytest.mark.parametrize("name", ["script", "bidi", "long line", "long word"])
def test_hostile_texts_stay_texts(console: Console, page: Watched, name: str) -> None:
    page.open(f"/memory/{console.ids[name]}")
    content = page.page.locator(".content .text")
    content.wait_for()
    text = content.inner_text()
    if name == "script":
        assert "<script>window.broken = 1</script>" in text
        assert page.page.locator("a[href^='javascript']").count() == 0
    elif name.startswith("long"):
        assert len(text) < 5_000
        page.page.get_by_role("button", name=re.compile("Show more")).click()
        assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.open("/search?query=hostile+script+works+place&mode=recall")
    hits(page).first.wait_for()
    page.open("/review")
    decision(page, "works at another").wait_for()


def test_hidden_characters_of_a_text_become_visible(console: Console, page: Watched) -> None:
    """Stored texts have lost them; a store that another program wrote may have them."""
    page.open("/")
    shown = page.page.evaluate(
        """async (text) => {
            const {Text, html, render} = await import("/console/ui.js");
            const place = document.body.appendChild(document.createElement("div"));
            render(html`<${Text}>${text}</${Text}>`, place);
            return place.innerText;
        }""",
        console_seed.BIDI,
    )
    assert "U+202E" in shown
    assert "U+0007" in shown
    assert not set(shown) & set("\u202e\u202c\u2066\u2069\u200b\x07")


def test_a_person_pins_edits_archives_and_erases(fresh: Console, browser: "Browser") -> None:
    id_ = fresh.ids["plain3"]
    with watching(browser, fresh.url) as page:
        page.open(f"/memory/{id_}")
        page.page.get_by_role("button", name="Pin").click()
        page.page.get_by_role("button", name="Unpin").wait_for()
        page.page.get_by_role("button", name="Edit").click()
        page.page.get_by_label("Text", exact=True).fill(
            "Invoices are sent on the second working day of the month."
        )
        page.page.get_by_label("Why (for the history)").fill("asked by Ana")
        page.page.get_by_role("button", name="Save").click()
        page.page.get_by_text("asked by Ana").wait_for()
        assert page.page.locator("del").filter(has_text="first").count() == 1
        page.page.get_by_role("button", name="Archive", exact=True).click()
        page.page.get_by_role("button", name="Undo").click()
        page.page.get_by_role("button", name="Archive", exact=True).wait_for()
        page.page.get_by_role("button", name="Erase …").click()
        dialog = page.page.get_by_role("dialog")
        dialog.get_by_text("No other memory goes with it.").wait_for()
        page.check_accessible()
        dialog.get_by_role("button", name="Erase for good").click()
        page.page.get_by_text("Erased for good.").wait_for()
        page.expects("404")
        page.open(f"/memory/{id_}")
        page.page.get_by_role("alert").wait_for()


def test_a_person_sees_what_changed_and_undoes_and_confirms_it(
    fresh: Console, browser: "Browser"
) -> None:
    older, newer = (
        fresh.cli("store", text).split()[-1]
        for text in ("The office is in Elm Street.", "The office moved to Oak Avenue.")
    )
    fresh.cli("changes", "--confirm", newer, older)
    with watching(browser, fresh.url) as page:
        page.open("/search?query=office+Elm+Street&mode=recall")
        mark = hits(page).filter(has_text="Elm Street").get_by_role("link", name="until")
        mark.click()
        page.page.get_by_text("The office moved to Oak Avenue.").first.wait_for()
        changes = page.page.locator("section.card").filter(has_text="What changed")
        changes.get_by_text("replaced").wait_for()
        assert changes.get_by_role("link", name="The office is in Elm Street.").count() == 1
        assert changes.get_by_role("button", name="Confirm").count() == 0
        page.check_accessible()
        changes.get_by_role("button", name="Undo").click()
        changes.get_by_text("undone").wait_for()
        assert '"both_hold"' in fresh.cli("changes", newer, "--json")
        changes.get_by_role("button", name="Confirm").click()
        changes.get_by_text("confirmed").wait_for()
        assert '"updates"' in fresh.cli("changes", newer, "--json")
        page.open(f"/memory/{fresh.ids['plain5']}")
        page.page.locator("code").filter(has_text=fresh.ids["plain5"]).wait_for()
        assert page.page.get_by_role("heading", name="What changed").count() == 0


def test_an_edit_does_not_overwrite_what_another_person_saved_meanwhile(
    fresh: Console, browser: "Browser"
) -> None:
    id_ = fresh.ids["plain5"]
    with watching(browser, fresh.url) as page:
        page.open(f"/memory/{id_}")
        page.page.get_by_role("button", name="Edit").click()
        page.page.get_by_label("Text", exact=True).fill("Releases are cut from the branch stable.")
        fresh.cli("update", id_, "--content", "Releases are cut from the branch next.")
        page.page.get_by_role("button", name="Save").click()
        page.page.get_by_text("Someone changed this memory while you wrote.").wait_for()
        assert (
            page.page.get_by_label("Text", exact=True).input_value()
            == "Releases are cut from the branch stable."
        )
        page.page.get_by_role("button", name="Save").click()
        page.page.locator("ins").filter(has_text="stable").wait_for()
        assert page.page.locator("del").filter(has_text="next").count() == 1, (
            "both are in the history"
        )


def test_a_review_is_decided_and_undone_with_one_key(fresh: Console, browser: "Browser") -> None:
    with watching(browser, fresh.url) as page:
        page.open("/review")
        decision(page, "650 euros").get_by_role("link", name="Open").first.focus()
        page.page.keyboard.press("r")
        page.page.get_by_text("Rejected", exact=True).wait_for()
        assert fresh.cli("get", fresh.ids["quarantined"], "--json").count('"archived"') == 1
        page.page.keyboard.press("u")
        decision(page, "650 euros").wait_for()
        assert fresh.cli("get", fresh.ids["quarantined"], "--json").count('"quarantined"') == 1
        decision(page, "Turin").get_by_role("button", name="Keep both").click()
        page.page.get_by_text("Kept both", exact=True).wait_for()


def test_two_people_who_decide_the_same_conflict_are_told(
    fresh: Console, browser: "Browser"
) -> None:
    with watching(browser, fresh.url) as ana, watching(browser, fresh.url) as bob:
        bob.expects("409")
        ana.open("/review")
        bob.open("/review")
        decision(bob, "650 euros").get_by_label("Reason, for the history").fill(
            "the invoice says so"
        )
        decision(ana, "650 euros").get_by_role("button", name="Believe").click()
        ana.page.get_by_text("Activated", exact=True).wait_for()
        decision(bob, "650 euros").get_by_role("button", name="Reject it").click()
        bob.page.get_by_text("Decided by someone else meanwhile; it is active.").wait_for()
        assert fresh.cli("get", fresh.ids["quarantined"], "--json").count('"active"') == 1, (
            "the first decision stays"
        )


def test_the_keyboard_reaches_pages_and_items(console: Console, page: Watched) -> None:
    page.open("/")
    page.page.get_by_role("list", name="Newest memories").get_by_role("listitem").first.wait_for()
    for key in "jjk":
        page.page.keyboard.press(key)
    assert (
        page.page.evaluate(
            "document.activeElement.closest('.long-row').getAttribute('aria-posinset')"
        )
        == "1"
    )
    page.page.keyboard.press("Enter")
    page.page.get_by_role("heading", name="Memory", level=1).wait_for()
    page.page.keyboard.press("g")
    page.page.keyboard.press("r")
    page.page.get_by_role("heading", name="Review", level=1).wait_for()
    page.page.keyboard.press("?")
    page.page.get_by_role("dialog").get_by_text("next and previous item").wait_for()
    page.check_accessible()
    page.page.keyboard.press("Escape")
    assert page.page.get_by_role("dialog").count() == 0


def test_the_colours_are_switched_and_remembered(console: Console, page: Watched) -> None:
    page.open("/")
    light = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
    switch = page.page.get_by_role("button", name=re.compile("Colours"))
    switch.click()
    switch.click()
    page.page.get_by_role("button", name="Colours: dark").wait_for()
    assert page.page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    page.page.reload()
    page.page.get_by_role("button", name="Colours: dark").wait_for()


def test_a_server_that_is_gone_is_said_and_nothing_is_lost(
    fresh: Console, browser: "Browser"
) -> None:
    with watching(browser, fresh.url) as page:
        page.expects("ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET")
        page.open(f"/memory/{fresh.ids['plain2']}")
        page.page.get_by_role("button", name="Edit").click()
        page.page.get_by_label("Text", exact=True).fill("The staging server is called crane.")
        fresh.process.terminate()
        fresh.process.wait(30)
        page.page.get_by_role("button", name="Save").click()
        page.page.get_by_role("alert").filter(has_text="The server does not answer").wait_for()
        assert (
            page.page.get_by_label("Text", exact=True).input_value()
            == "The staging server is called crane."
        )


def test_a_damaged_store_is_said_on_the_page(fresh: Console, browser: "Browser") -> None:
    with watching(browser, fresh.url) as page:
        page.expects("5\\d\\d|4\\d\\d")
        page.open("/")
        with sqlite3.connect(fresh.seeded.home / "memory.db") as db:
            tables = [
                name
                for (name,) in db.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE "
                    "'%VIRTUAL%'"
                )
            ]
            damaged = [name for name in tables if name.startswith("mem")]
            assert damaged
            for name in damaged:
                db.execute(f'DROP TABLE "{name}"')
        page.open("/search?query=deploy")
        page.page.get_by_role("alert").first.wait_for()
        page.picture("damaged")


def test_a_store_that_is_gone_is_said_and_an_edit_is_saved_once_it_is_back(
    fresh: Console, browser: "Browser"
) -> None:
    store = fresh.seeded.home / "memory.db"
    files = [file for file in store.parent.glob("memory.db*") if file.is_file()]
    with watching(browser, fresh.url) as page:
        page.expects("5\\d\\d|4\\d\\d")
        page.page.set_default_timeout(60_000)
        page.open(f"/memory/{fresh.ids['plain2']}")
        page.page.get_by_role("button", name="Edit").click()
        page.page.get_by_label("Text", exact=True).fill("The staging server is called crane.")
        for file in files:
            file.rename(file.with_name(f"away-{file.name}"))
        page.page.get_by_role("button", name="Save").click()
        page.page.locator(".message.bad, .problem").first.wait_for()
        assert (
            page.page.get_by_label("Text", exact=True).input_value()
            == "The staging server is called crane."
        )
        for file in files:
            file.with_name(f"away-{file.name}").rename(file)
        page.page.get_by_role("button", name="Save").click()
        page.page.locator("ins").filter(has_text="crane").wait_for()
    assert "crane" in fresh.cli("get", fresh.ids["plain2"])


def test_a_store_for_reading_only_shows_no_button_that_writes(
    tmp_path: Path, browser: "Browser"
) -> None:
    seeded = console_seed.seed(tmp_path, embedder="hash")
    with (
        serving(
            seeded, store=f"sqlite:///{tmp_path / 'memory.db'}?mode=ro", embedder="hash"
        ) as console,
        watching(browser, console.url) as page,
    ):
        page.page.set_default_timeout(60_000)
        page.open(f"/memory/{console.ids['plain2']}")
        page.page.get_by_role("heading", name="Provenance").wait_for()
        page.page.get_by_text("Read only").wait_for()
        for name in WRITING:
            assert page.page.get_by_role("button", name=name).count() == 0
        page.open("/review")
        decision(page, "650 euros").wait_for()
        assert page.page.get_by_role("button", name="Believe").count() == 0
        _begins_before_the_store_is_read_only(page)
        page.open(f"/memory/{console.ids['plain2']}")
        for name in WRITING:
            page.page.get_by_role("button", name=name).wait_for()
        page.expects("403")
        page.page.get_by_role("button", name="Edit").click()
        page.page.get_by_label("Text", exact=True).fill("The staging server is called crane.")
        page.page.get_by_role("button", name="Save").click()
        page.page.locator(".message.bad, .problem").filter(has_text="reading only").first.wait_for()
        assert (
            page.page.get_by_label("Text", exact=True).input_value()
            == "The staging server is called crane."
        )


def _begins_before_the_store_is_read_only(page: Watched) -> None:
    """Load the console again, with a session that may write."""

    def fulfil(route: "Route") -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "read_only": False})

    page.page.route("**/console/session", fulfil)
    page.page.reload()


def test_a_read_only_token_sees_no_button_that_writes(fresh: Console, browser: "Browser") -> None:
    token = fresh.token("viewer", "--read-only")
    with watching(browser, fresh.url) as page:
        page.expects("401")
        page.open("/")
        page.page.get_by_label("Token").fill("mm_wrong")
        page.page.get_by_role("button", name="Log in").click()
        page.page.get_by_role("alert").wait_for()
        page.check_accessible()
        page.page.get_by_label("Token").fill(token)
        page.page.get_by_role("button", name="Log in").click()
        page.page.get_by_text("Read only").wait_for()
        page.open(f"/memory/{fresh.ids['plain0']}")
        page.page.get_by_role("heading", name="Provenance").wait_for()
        for name in WRITING:
            assert page.page.get_by_role("button", name=name).count() == 0
        page.open("/review")
        decision(page, "650 euros").wait_for()
        assert page.page.get_by_role("button", name="Believe").count() == 0
        page.page.keyboard.press("a")
        assert '"quarantined"' in fresh.cli("get", fresh.ids["quarantined"], "--json")


def log_in(page: Watched, token: str) -> None:
    page.page.get_by_label("Token").fill(token)
    page.page.get_by_role("button", name="Log in").click()


def test_an_expired_token_is_refused_and_what_was_written_is_kept(
    fresh: Console, browser: "Browser"
) -> None:
    token = fresh.token("first")
    file = fresh.seeded.home / "tokens.json"
    with watching(browser, fresh.url) as page:
        page.expects("401")
        page.open("/")
        log_in(page, token)
        page.page.get_by_role("button", name="Log out").wait_for()
        page.open(f"/memory/{fresh.ids['plain4']}")
        page.page.get_by_role("button", name="Edit").click()
        page.page.get_by_label("Text", exact=True).fill("The office in Berlin closes at five.")
        tokens = json.loads(file.read_text(encoding="utf-8"))["tokens"]
        file.write_text(
            json.dumps(
                {"tokens": [{**one, "expires_at": "2020-01-01T00:00:00.000Z"} for one in tokens]}
            ),
            "utf-8",
        )
        page.page.get_by_role("button", name="Save").click()
        page.page.get_by_role("heading", name="Your session has ended").wait_for()
        log_in(page, token)
        page.page.get_by_role("alert").filter(has_text="memory-mesh token create").wait_for()
        assert (
            page.page.get_by_label("Text", exact=True).input_value()
            == "The office in Berlin closes at five."
        )
        log_in(page, fresh.token("second"))
        page.page.get_by_role("heading", name="Your session has ended").wait_for(state="hidden")
        page.page.get_by_role("button", name="Save").click()
        page.page.locator("ins").filter(has_text="five").wait_for()


def test_a_session_that_ends_asks_for_a_token_and_keeps_what_was_written(
    fresh: Console, browser: "Browser"
) -> None:
    token, second = fresh.token("first"), fresh.token("second")
    number = re.search(r"(\S+)\s+first", fresh.cli("token", "list"))
    assert number
    with watching(browser, fresh.url) as page:
        page.expects("401")
        page.open("/")
        page.page.get_by_label("Token").fill(token)
        page.page.get_by_role("button", name="Log in").click()
        page.page.get_by_role("heading", level=1).wait_for()
        page.open(f"/memory/{fresh.ids['plain4']}")
        page.page.get_by_role("button", name="Edit").click()
        page.page.get_by_label("Text", exact=True).fill("The office in Berlin closes at five.")
        fresh.cli("token", "revoke", number[1])
        page.page.get_by_role("button", name="Save").click()
        page.page.get_by_role("heading", name="Your session has ended").wait_for()
        page.page.get_by_label("Token").fill(second)
        page.page.get_by_role("button", name="Log in").click()
        page.page.get_by_role("heading", name="Your session has ended").wait_for(state="hidden")
        page.page.get_by_role("button", name="Save").click()
        page.page.locator("ins").filter(has_text="five").wait_for()
