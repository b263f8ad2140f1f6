"""The scrubber: six stages that clean what is markup and leave alone what is not."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.language import scrubbing
from memory_mesh.core.language.scrubbing import MESH_OVERRIDES, ScrubSettings, pieces, scrub
from memory_mesh.core.text import estimate

DEFAULT = ScrubSettings()
MESH = DEFAULT.merged(MESH_OVERRIDES)

PLAIN = [
    'issue #123 in C#7 uses `foo()` and "bar"',
    "5 * 3 * 2",
    "a_b_c, __init__, _private_ and snake_case",
    "x < y and y > z",
    "List<int> and Map<String, T>",
    "if (a<b) {x>y}",
    "mail <bob> or the <b> tag",
    "1. 2. 3.",
    "- 5 degrees",
    r"C:\Users\me\*.txt",
    r"$\frac{a}{b}$",
    '{"a": [1, 2], "b": "<x>"}',
    "key: value\nother:\n  - a\n  - b",
    (
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n'
        "    raise ValueError(x)\nValueError: 3"
    ),
    "ls *.py *.md && echo $HOME",
    "+ added line\n- removed line\n@@ -1,2 +3,4 @@",
    "def f(*args, **kwargs):\n    return args[0](kwargs)",
    "SELECT * FROM t WHERE a = b * c;",
    "2**3**4",
    "#hashtag is fun",
    "---\ntitle: x\n---\n\nbody",
    "for (int i=0;i<n;i++) { a[i] = *p * *q; }",
    "> quoted line",
    "[EMAIL] wrote (yesterday)",
    "T&C apply, a &amp; b, ?x=1&copy=2",
    "/* comment */",
]


def clean(text: str) -> str:
    return scrub(text, MESH).text


@pytest.mark.req("MESH-123")
@pytest.mark.parametrize("text", PLAIN)
def test_a_text_that_is_no_markup_comes_through_unharmed(text: str) -> None:
    assert clean(text) == text


@pytest.mark.req("MESH-127")
@pytest.mark.parametrize("text", ["Hi", "OK", "👍", "42", "C++", "…", "ja"])
def test_a_short_memory_survives(text: str) -> None:
    assert clean(text) == text


@pytest.mark.req("MESH-122")
@pytest.mark.parametrize(
    ("given_text", "kept"),
    [
        ("<p>Hello <b>world</b></p>", "Hello world"),
        ("<p>a</p><script>alert('x')</script><style>p {}</style><p>b</p>", "a\n\nb"),
        ("<p>x &lt; y &amp; z</p>", "x < y & z"),
        ('<p>see <a href="https://e.org/a">this</a></p>', "see this (https://e.org/a)"),
        ('<div><img src=x alt="a cat"> sleeps</div>', "a cat sleeps"),
        ("<h2>Head</h2><ul><li>one<li>two</ul>", "## Head\n\n- one\n- two"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "a | b |"),
        ("<p>before</p> <!-- hidden --> <p>after</p>", "before\n\nafter"),
        (
            "Text with **bold**, *slanted* and [a link](https://x.org/y).",
            "Text with bold, slanted and a link (https://x.org/y).",
        ),
        ("a phrase __in bold type__ here", "a phrase in bold type here"),
        ("<https://x.org>", "https://x.org"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| a | b |\n| 1 | 2 |"),
        ("too   many    spaces\n\n\n\n\nand lines  ", "too many spaces\n\nand lines"),
    ],
)
def test_structural_cleaning_takes_markup_away_and_keeps_what_it_says(
    given_text: str, kept: str
) -> None:
    assert clean(given_text) == kept


@pytest.mark.req("MESH-123")
def test_code_keeps_every_byte() -> None:
    fenced = "```python\nx  =  “1”   \n\n\n\n# **no** <b>heading</b>\n\tif a<b: pass\n```"
    assert fenced in clean(f"# Title ##\n\n{fenced}\n\nand `a  *b*  “c”` stays")
    assert "`a  *b*  “c”`" in clean(f"# Title ##\n\n{fenced}\n\nand `a  *b*  “c”` stays")


@pytest.mark.req("MESH-123")
def test_preformatted_html_becomes_code_that_keeps_its_indentation() -> None:
    assert (
        clean("<pre>  if a &lt; b:\n      go()</pre><p>end</p>")
        == "```\n  if a < b:\n      go()\n```\n\nend"
    )
    assert clean("<p>call <code>a  &lt;b&gt;</code> now</p>") == "call `a  <b>` now"


@pytest.mark.req("MESH-123")
def test_quotes_are_straightened_and_never_removed() -> None:
    assert clean("“she said ‘hi’”") == "\"she said 'hi'\""


@pytest.mark.req("MESH-122")
@pytest.mark.parametrize(
    ("given_text", "kept"),
    [
        ("##  Title ##", "## Title"),
        ("Title\n=====\n\nbody", "# Title\n\nbody"),
        ("* one\n* two", "- one\n- two"),
        ("• one\n• two", "- one\n- two"),
        ("* a single star may be a footnote", "* a single star may be a footnote"),
    ],
)
def test_headings_and_lists_have_one_form(given_text: str, kept: str) -> None:
    assert clean(given_text) == kept


@pytest.mark.req("MESH-122")
def test_a_paragraph_that_repeats_is_kept_once() -> None:
    paragraph = "The build takes nine minutes on the small machine."
    assert (
        clean(f"{paragraph}\n\nThanks\n\n{paragraph}\n\nThanks")
        == f"{paragraph}\n\nThanks\n\nThanks"
    )


@pytest.mark.req("MESH-122")
def test_a_page_loses_its_boilerplate_and_its_ornaments() -> None:
    page = (
        "Skip to content\n\nThe release is on Friday.\n\n=-=-=-=-=-=-=-=-=-=-=-=-\n\n"
        "It has two parts.\n\n© 2026 Acme Ltd."
    )
    assert clean(page) == "The release is on Friday.\n\nIt has two parts."


@pytest.mark.req("MESH-014")
@pytest.mark.parametrize(
    "text",
    [
        "We use cookies to track sessions",
        "All rights reserved",
        "-----------------------",
        "Back to top\n\nBack to top",
    ],
)
def test_cleaning_never_removes_everything(text: str) -> None:
    assert clean(text).strip()


def test_what_nobody_sees_is_removed() -> None:
    assert clean("pay \u202egnp.exe\u202c now\ufeff") == "pay gnp.exe now"
    assert clean("👩\u200d👩\u200d👧") == "👩\u200d👩\u200d👧"  # joiners within an emoji are seen


@pytest.mark.req("MESH-121")
@pytest.mark.parametrize(
    "text",
    [
        "<p>&lt;p&gt;x&lt;/p&gt;</p>",
        "<<b></b>b>x</b>",
        "**bold *and* slanted**",
        "<p>&amp;amp;lt;b&amp;amp;gt;</p>",
        "***x***",
    ],
)
def test_what_cleaning_uncovers_is_cleaned_too(text: str) -> None:
    assert clean(clean(text)) == clean(text)


INGREDIENTS = """<p> </p> <b> </b> <br> <script> </script> <!-- --> <pre> </pre> <code> </code> </a>
&lt; &gt; &amp; &amp;lt; * ** _ __ # ## ` `` ``` ~~~ [ ] ( ) ](https://x.y) > - + | |---|---| === •
“ ” ’ … word 12 a_b <T> © cookies
Subscribe""".split()  # noqa: SIM905  (a list of words reads best as words)
INGREDIENTS += [
    "\n",
    "\n\n",
    " ",
    "  ",
    "\t",
    "\r\n",
    "\u202e",
    "\u00a0",
    "We use cookies.",
    "* item\n",
    '<a href="https://x.y">',
]
INGREDIENTS += ["\x0b", "é", "e\u0301", "字"]
SOUP = st.lists(st.sampled_from(INGREDIENTS), max_size=40).map("".join)


@pytest.mark.req("MESH-121")
@given(SOUP | st.text(max_size=200) | st.lists(SOUP | st.text(max_size=20)).map("\n\n".join))
def test_scrubbing_scrubbed_text_changes_nothing(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    assert clean(text) == once


@given(SOUP)
def test_prose_and_code_together_are_the_text(text: str) -> None:
    assert "".join(piece for piece, _ in pieces(text)) == text


@pytest.mark.req("MESH-121")
def test_the_stages_come_in_the_order_of_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(
        scrubbing,
        "_STAGES",
        [
            lambda text, rules, stage=stage: (seen.append(stage.__name__), stage(text, rules))[1]
            for stage in scrubbing._STAGES
        ],
    )
    for name in ("split_chunks", "annotate", "validate"):
        real = getattr(scrubbing, name)
        monkeypatch.setattr(
            scrubbing, name, lambda *args, name=name, real=real: (seen.append(name), real(*args))[1]
        )
    scrub("<p>x</p>", MESH)
    cleaned = ["clean_structure", "filter_noise", "normalise"]
    assert list(dict.fromkeys(seen)) == [*cleaned, "split_chunks", "annotate", "validate"]


# --- chunks ---


@pytest.mark.req("MESH-125")
def test_each_chunk_knows_where_it_comes_from() -> None:
    text = "# Guide\n\nIntro here.\n\n## Setup\n\nInstall it.\n\n# Other\n\nMore."
    chunks = scrub(text, MESH, source="guide.md", at="2026-01-01T00:00:00.000Z").chunks
    assert [chunk.section for chunk in chunks] == [("Guide",), ("Guide", "Setup"), ("Other",)]
    assert all(
        (chunk.source, chunk.timestamp) == ("guide.md", "2026-01-01T00:00:00.000Z")
        for chunk in chunks
    )
    assert len({chunk.content_hash for chunk in chunks}) == 3
    assert chunks[0].content_hash == scrub("# Guide\n\nIntro here.", MESH).chunks[0].content_hash


def test_a_heading_within_code_begins_no_section() -> None:
    assert [chunk.section for chunk in scrub("# A\n\n```\n# not one\n```\n\nend", MESH).chunks] == [
        ("A",)
    ]


@pytest.mark.req("MESH-124")
def test_chunks_hold_at_most_500_tokens_where_the_text_can_be_cut() -> None:
    text = "\n\n".join(f"Paragraph {n}. " + "It has some words. " * (n % 40) for n in range(200))
    chunks = scrub(text, MESH).chunks
    assert len(chunks) > 5
    assert all(estimate(chunk.text) <= 500 for chunk in chunks)


@pytest.mark.req("MESH-124")
def test_a_piece_that_cannot_be_cut_may_reach_the_hard_maximum_and_no_more() -> None:
    assert [chunk.tokens for chunk in scrub("x" * 4000, MESH).chunks] == [1000]
    assert all(chunk.tokens <= 2000 for chunk in scrub("x" * 40_000, MESH).chunks)


@pytest.mark.req("MESH-124")
def test_a_piece_below_the_minimum_joins_the_one_before_it() -> None:
    text = "word " * 399 + "end.\n\nTail."
    assert [chunk.text[-5:] for chunk in scrub(text, DEFAULT).chunks] == ["Tail."]
    full = "x" * 2000 + "\n\nTail."
    assert [len(scrub(full, settings).chunks) for settings in (DEFAULT, MESH)] == [1, 2]


@given(st.lists(st.text("ab .\n#", max_size=60), max_size=30).map("\n\n".join))
def test_no_word_is_lost_between_chunks(text: str) -> None:
    small = DEFAULT.merged(
        {
            "chunking": {"maxTokens": 5, "hardMaxTokens": 8, "minTokens": 1},
            "validation": {"enforceMinLength": False},
        }
    )
    result = scrub(text, small)
    assert re.findall(r"\S", " ".join(chunk.text for chunk in result.chunks)) == re.findall(
        r"\S", result.text
    )
    assert all(result.text[chunk.start : chunk.end] == chunk.text for chunk in result.chunks)


@pytest.mark.req("MESH-125")
def test_validation_rejects_what_is_empty_or_too_short() -> None:
    assert scrub("Hi", DEFAULT).chunks == ()
    assert scrub("   ", MESH).chunks == ()
    assert [chunk.text for chunk in scrub("Hi", MESH).chunks] == ["Hi"]


# --- settings ---


@pytest.mark.req("MESH-126")
def test_the_meshs_overrides_leave_the_other_settings_as_they_were() -> None:
    assert (MESH.enabled, MESH.chunking.min_tokens, MESH.validation.enforce_min_length) == (
        True,
        1,
        False,
    )
    assert (
        MESH.chunking.max_tokens,
        MESH.chunking.hard_max_tokens,
        MESH.chunking.heading_aware,
    ) == (500, 2000, True)
    assert (DEFAULT.chunking.min_tokens, DEFAULT.validation.enforce_min_length) == (10, True)
    # A user's override comes on top of the mesh's.
    own = MESH.merged({"chunking": {"maxTokens": 300}})
    assert (
        own.chunking.max_tokens,
        own.chunking.min_tokens,
        own.validation.enforce_min_length,
    ) == (300, 1, False)


@pytest.mark.parametrize(
    "overrides",
    [
        {"chunkin": {}},
        {"chunking": {"minToken": 1}},
        {"chunking": 3},
        {"enabled": "yes"},
        {"chunking": {"minTokens": -1}},
        {"chunking": {"minTokens": 1.5}},
    ],
)
def test_a_setting_that_cannot_be_used_is_refused(overrides: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        DEFAULT.merged(overrides)


def test_a_scrubber_that_is_off_changes_nothing() -> None:
    assert scrub("<p>**x**</p>", MESH.merged({"enabled": False})).text == "<p>**x**</p>"


@pytest.mark.parametrize(
    ("group", "name", "text"),
    [
        ("structural", "strip_html", "<p>x</p>"),
        ("structural", "strip_markdown", "**x**"),
        ("structural", "collapse_whitespace", "x   y"),
        ("normalisation", "headings", "##  x ##"),
        ("normalisation", "lists", "• x"),
        ("normalisation", "punctuation", "“x”"),
    ],
)
def test_each_rule_can_be_switched_off(group: str, name: str, text: str) -> None:
    keep_space = {"structural": {"collapse_whitespace": False}} if name == "headings" else {}
    assert clean(text) != text
    assert scrub(text, MESH.merged(keep_space).merged({group: {name: False}})).text == text


@pytest.mark.req("MESH-018")
def test_tokens_are_estimated_at_four_characters_each() -> None:
    assert [estimate(text) for text in ("", "a", "abcd", "abcde", "hello world")] == [0, 1, 1, 2, 3]


# --- hostile input ---

HOSTILE = {
    "brackets": "[" * 200_000,
    "stars": "*" * 200_000,
    "backticks": "`" * 200_000,
    "angles": "<" * 200_000,
    "open tags": "<a " * 60_000,
    "nested tags": "<div>" * 10_000 + "x" + "</div>" * 10_000,
    "open scripts": "<script>" * 25_000,
    "open comments": "<!--" * 50_000,
    "spaces": "a" + " " * 200_000 + "b",
    "heading and spaces": "# a" + " \t" * 100_000 + "b",
    "quotes in tags": '<a "' * 50_000,
    "underscores": "_a " * 60_000,
    "lone surrogate": "a\ud800b <p>c</p>",
    "nul": "a\0b <p>c</p>",
    "lines": "\n" * 200_000 + "x",
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_about_once(name: str) -> None:
    # Anything quadratic would meet the suite's time limit: 200,000 squared steps take hours.
    result = scrub(HOSTILE[name], MESH)
    assert scrub(result.text, MESH).text == result.text


def test_a_text_in_too_many_wrappings_is_refused() -> None:
    text = "x"
    for _ in range(60):
        text = "<p>" + text.replace("&", "&amp;").replace("<", "&lt;") + "</p>"
    with pytest.raises(InvalidInput, match="layers of markup"):
        clean(text)


CUT = MESH.merged(
    {"chunking": {"max_tokens": 8, "hard_max_tokens": 12}, "validation": {"max_length": 24}}
)


@given(
    st.lists(st.sampled_from(["# A\n", "word ", "\n", "#", "x" * 9, " ", "\t"]), max_size=9).map(
        "".join
    )
)
def test_a_text_is_valid_if_it_has_a_valid_chunk(text: str) -> None:
    for settings in (
        DEFAULT,
        MESH,
        CUT,
        CUT.merged({"enabled": False}),
        CUT.merged({"validation": {"reject_empty": False}}),
    ):
        clean = scrubbing.cleaned(text, settings)
        assert not clean.strip() or scrubbing.has_valid_chunk(clean, settings) == bool(
            scrub(clean, settings).chunks
        )
