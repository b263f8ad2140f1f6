"""Whose memories the pages show and by which date, and a plain chat in pages of the whole store."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import console_seed
from memory_mesh import MemoryMesh

from .browser import Console, Watched, serving, watching

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.deep
PHONE = {"viewport": {"width": 390, "height": 780}}
NAME = "änne 茶 <b>"  # no name of a header by itself, and no element
CHAT = (
    "I want to book a trip to Lisbon in April.",
    "Lisbon in April is mild; take a light jacket for the evenings.",
    "My sister lives in Berlin and works as a nurse.",
    "She can visit you in Lisbon for a weekend.",
)
ADDRESS = "https://example.com/a/long/address/" + "with-many-parts/" * 12
# Words that the browser broke inside: those whose letters are on more than one line.
BROKEN = """() => {
  const broken = [], walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    if (walk.currentNode.parentElement.closest("pre, code, option, .one-line, legend, thead")) continue;
    for (const word of walk.currentNode.data.matchAll(/[\\p{L}\\p{N}]{2,20}/gu)) {
      const range = document.createRange();
      range.setStart(walk.currentNode, word.index);
      range.setEnd(walk.currentNode, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((one) => Math.round(one.top))).size > 1) broken.push(word[0]);
    }
  }
  return broken;
}"""  # noqa: E501


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> console_seed.Seeded:
    """A store in which every memory is of a user."""
    done = console_seed.Seeded(tmp_path_factory.mktemp("readers"))
    with MemoryMesh(
        str(done.home / "memory.db"), agent_id=console_seed.AGENT, embedder="hash"
    ) as mesh:
        ana = mesh.scoped(user_id="ana")
        times = {"timestamp": "2023-04-05T10:00:00Z"}
        ana.scoped(session_id="travel").add(
            [{"role": "user", "content": text, **times} for text in CHAT]
        )
        homes = ("I live in Berlin.", "I moved to Hamburg.", "I live in Munich now.")
        years = ("2021-01-02", "2022-05-02", "2024-09-02")
        made = [
            ana.add(text, {"event_time": year}) for text, year in zip(homes, years, strict=True)
        ]
        for older, newer in pairwise(made):
            ana.confirm_change(newer.id, older.id)
        ana.add(f"The timetable is at {ADDRESS} and changes in summer.")
        mesh.scoped(user_id=NAME).add("The tea is in the cupboard.")
    return done


@pytest.fixture(scope="module")
def console(seeded: console_seed.Seeded) -> Iterator[Console]:
    with serving(seeded, embedder="hash") as running:
        yield running


@pytest.fixture
def page(console: Console, browser: "Browser") -> Iterator[Watched]:
    """A page that shows the memories of ana."""
    with watching(browser, console.url) as watched:
        watched.open("/")
        watched.page.get_by_label("User", exact=True).select_option("ana")
        watched.page.get_by_text("Memories of ana").wait_for()
        yield watched


def test_a_user_without_memories_is_told_of_the_others_and_switches_to_them(
    console: Console, browser: "Browser"
) -> None:
    with watching(browser, console.url) as page:
        shown = page.open("/")
        shown.get_by_text("Nothing is stored without a user; 9 memories of 2 users.").wait_for()
        page.check_accessible()
        for path in ("/search", "/search?query=tea", "/time", "/graph", "/changes", "/numbers"):
            page.open(path)
            shown.locator("main").get_by_text("Nothing is stored without a user").wait_for()
        shown.get_by_role("button", name="Show ana (8)").click()
        shown.get_by_text("8 memories since 2021-01-02").wait_for()
        page.open("/")
        switch = shown.get_by_label("User", exact=True)
        assert switch.locator("option").all_inner_texts() == [
            "no user (0)",
            "ana (8)",
            f"{NAME} (1)",
        ]
        switch.select_option(NAME)
        shown.get_by_role("link", name="The tea is in the cupboard.").wait_for()
        shown.reload()
        shown.get_by_text(f"Memories of {NAME}").wait_for()
        shown.get_by_role("link", name="The tea is in the cupboard.").wait_for()
        assert shown.get_by_role("link", name="Lisbon").count() == 0


def test_a_reader_of_one_user_is_told_of_no_other(
    seeded: console_seed.Seeded, browser: "Browser"
) -> None:
    with (
        serving(seeded, "--user", "bob", embedder="hash") as console,
        watching(browser, console.url) as page,
    ):
        shown = page.open("/")
        shown.get_by_text("Nothing is stored for bob yet.").wait_for()
        shown.get_by_text('memory-mesh store --user bob "The backup runs at four."').wait_for()
        assert shown.get_by_label("User", exact=True).count() == 0
        assert "ana" not in shown.locator("#app").inner_text()


def test_a_memory_has_one_date_on_every_page_with_what_it_is_the_date_of(page: Watched) -> None:
    shown = page.page
    row = shown.get_by_role("listitem").filter(has_text="I moved to Hamburg.").first
    age = row.locator("time").inner_text()
    assert row.get_by_text("happened").count() == 1
    for path in ("/search?query=Hamburg&mode=recall", "/review"):
        page.open(path)
    page.open("/search?query=Hamburg&mode=recall")
    hit = shown.locator("article.hit").filter(has_text="I moved to Hamburg.").first
    assert hit.locator("time").inner_text() == age
    hit.get_by_role("link", name="I moved to Hamburg.").click()
    shown.get_by_role("heading", name="Memory", exact=True).wait_for()
    assert shown.locator(".title time").inner_text() == age
    page.open("/time")
    last = shown.locator("main .items li")
    last.filter(has_text="happened 2 Sept 2024").wait_for()
    assert last.first.inner_text().split("\n")[0].startswith("The timetable is at")  # stored today
    assert last.first.get_by_text("stored").count() == 1
    shown.get_by_role("slider").focus()
    shown.keyboard.press("Home")
    shown.get_by_role("heading", name="Until 2021-01-02").wait_for()
    last.filter(has_text="I live in Munich now.").wait_for(state="detached")
    assert last.first.inner_text().startswith("I live in Berlin.")


def test_what_changed_is_one_line_through_time_and_can_be_undone(page: Watched) -> None:
    shown = page.open("/changes")
    line = shown.locator(".timeline li")
    line.first.wait_for()
    firsts = [text.split("\n")[0] for text in line.all_inner_texts()]
    assert firsts == ["I live in Munich now.", "I moved to Hamburg.", "I live in Berlin."]
    assert line.nth(0).get_by_text("holds now").count() == 1
    assert line.nth(1).get_by_text("until 2 Sept 2024").count() == 1
    page.check_accessible()
    line.nth(1).get_by_role("button", name="Undo").click()
    line.nth(1).get_by_text("undone").wait_for()
    line.nth(1).get_by_role("button", name="Confirm").click()
    line.nth(1).get_by_text("confirmed").wait_for()
    page.open("/changes?about=where+is+the+tea")
    shown.get_by_text("No change of this is known.").wait_for()


def test_a_plain_chat_is_drawn_with_names_of_normal_size_and_listed_for_the_keyboard(
    page: Watched,
) -> None:
    shown = page.open("/graph?colour=session")
    shown.locator(".graph[data-drawn]").wait_for()
    shown.get_by_text("next in the session").wait_for()
    sizes = shown.evaluate(
        "() => document.querySelector('.graph').graph.nodes().map((node) =>"
        " [parseFloat(node.renderedStyle('font-size')), node.renderedOuterWidth()])"
    )
    assert len(sizes) == 8
    assert all(11 <= font <= 13 and 8 <= width <= 40 for font, width in sizes), sizes
    first = shown.get_by_role("button", name=CHAT[0])
    first.focus()
    shown.keyboard.press("Enter")
    assert first.get_attribute("aria-pressed") == "true"
    shown.get_by_role("link", name="Open the memory").wait_for()
    shown.keyboard.press("j")
    shown.keyboard.press("Enter")
    shown.locator(".chosen-node").get_by_text(CHAT[0]).wait_for(state="detached")
    page.check_accessible()


@pytest.mark.parametrize(
    "path", ["/", "/search?query=timetable", "/time", "/changes", "/graph", "/numbers", "/audit"]
)
def test_no_word_is_broken_inside_on_a_phone(
    console: Console, browser: "Browser", path: str
) -> None:
    with watching(browser, console.url, **PHONE) as page:
        page.page.add_init_script("sessionStorage.setItem('user', 'ana')")
        shown = page.open(path)
        shown.locator("main h1").wait_for()
        shown.locator("main .loading").first.wait_for(state="detached")
        assert shown.evaluate(BROKEN) == []
        assert not shown.evaluate("document.documentElement.scrollWidth > window.innerWidth")
