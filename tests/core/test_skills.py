"""The rules of skills: what a text says, which files are skills, reliability, and the weights of
a search."""

import pytest

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.learning import (
    default_name,
    final_score,
    first_sentence,
    first_use,
    is_skill_text,
    keyword_fractions,
    keyword_score,
    read_skill,
    reliability_of,
    skill_files,
    used,
)
from memory_mesh.core.learning.skills import SkillText
from memory_mesh.core.model import Skill

AT = "2026-01-01T00:00:00.000Z"
YAMO = (
    "name;deploy;\nintent;Deploy the site. Then look at it.;\ntags;ops, web;\ncontext:\n"
    "  host;web-1;\n"
)
SKILL_MD = """---
name: pdf-forms
description: >
  Fill PDF forms.
  Use when asked.
tags: [pdf]
---
# Forms
Name: no
""".replace("\n", "\r\n")


# A list of 2 to the power of 60 items, written with aliases.
BOMB = (
    "l0: &l0 [x, x]\n"
    + "".join(f"l{n}: &l{n} [*l{n - 1}, *l{n - 1}]\n" for n in range(1, 60))
    + "l60: &z [*l59]\n"
)


def skill(**metadata: object) -> Skill:
    return Skill(
        id="s", name="n", intent="i", content="c", created_at=AT, updated_at=AT, metadata=metadata
    )


@pytest.mark.req("MESH-093")
@pytest.mark.parametrize(
    ("text", "read"),
    [
        (YAMO,
         SkillText(name="deploy", intent="Deploy the site. Then look at it.", tags=("ops", "web"))),
        ("\ufeffagent: Deployer;\nintent: deploy_site;\n",
         SkillText(name="Deployer", intent="deploy_site")),
        ("meta:\n  NAME;tea;\n  description;Make tea.;\n",
         SkillText(name="tea", intent="Make tea.", description="Make tea.")),
        (
            SKILL_MD,
            SkillText(
                name="pdf-forms", intent="Fill PDF forms. Use when asked.",
                description="Fill PDF forms. Use when asked.", tags=("pdf",),
            ),
        ),
        ("---\nname: 7\ndescription: d\nintent: i\n---\n",
         SkillText(name="7", intent="i", description="d")),
        ("---\ndescription: d\n---\nname;later;\n",
         SkillText(name="later", intent="d", description="d")),
        ("---\nname: on\nintent: i\ndescription: null\n...\ntags;a;\n",
         SkillText(name="on", intent="i", tags=("a",))),
        ("---\nname: 2026-13-45\nintent: !!int x\n---\n", SkillText(name="2026-13-45", intent="x")),
    ],
    ids=["yamo", "a yamo block", "indented", "SKILL.md", "intent before description", "both forms",
         "dots", "only texts"],
)  # fmt: skip
def test_name_and_intent_come_from_yamo_keys_or_frontmatter(text: str, read: SkillText) -> None:
    assert read_skill(text, {}) == read


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("just a text", "the skill has no name"),
        ("name;deploy;\n", "the skill has no intent"),
        ("name;;\nintent;  ;\n", "the skill has no name"),
        ("---\nname: x\nbody", "the frontmatter has no end"),
        ("---\nname: [x\nsecret: hunter2\n---\n", "the frontmatter is not valid YAML, line 3"),
        ("---\nname: " + "[" * 9000 + "\n---\n", "the frontmatter is not valid YAML"),
        ('---\nname: "\\UFFFFFFFF"\ndescription: d\n---\n', "the frontmatter is not valid YAML"),
        (
            '---\nname: "x\\ud800"\ndescription: d\n---\n',
            "the name of the skill has NUL or half a surrogate pair",
        ),
        ('---\nname: x\ndescription: "\\0d"\n---\n', "the description of the skill has NUL"),
        ('---\nname: x\ndescription: d\ntags: ["\\udfff"]\n---\n', "the tags of the skill has NUL"),
        (
            f"---\n{BOMB}name: *z\ndescription: d\n---\n",
            "the frontmatter repeats its parts too often",
        ),
        (
            "---\nname: x\ndescription: d\ntags: [[x], y]\n---\n",
            "the tags of the skill are a list that has other items",
        ),
        ("---\n- name\n---\n", "the frontmatter has no keys"),
        ("---\nname: [a, b]\ndescription: d\n---\n", "the name of the skill is"),
        ("---\nname: x\ndescription: d\ntags: {a: 1}\n---\n", "the tags of the skill are"),
        (f"---\nname: x\ndescription: {'d' * 20_000}\n---\n", "the frontmatter has 20,0"),
        (f"name;{'n' * 201};\nintent;i;\n", "the name of the skill has 201 characters"),
    ],
)
def test_a_text_without_name_or_intent_is_refused_with_the_reason(text: str, wrong: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{wrong}") as refused:
        read_skill(text, {})
    assert "hunter2" not in str(refused.value)


def test_the_caller_has_the_last_word_and_a_file_gives_a_name() -> None:
    given = {"name": "ours", "intent": "Do it.", "tags": ["mine", "ops"]}
    assert read_skill(YAMO, given) == SkillText(
        name="ours", intent="Do it.", tags=("ops", "web", "mine")
    )
    assert read_skill("intent;Make tea.;\n", {}, "tea").name == "tea"
    assert [
        default_name(path) for path in ("/s/pdf/SKILL.md", "/s/tea.yamo", "SKILL.md", "/s/a.b.md")
    ] == [
        "pdf",
        "tea",
        "SKILL",
        "a.b",
    ]


def test_the_files_beside_and_below_a_skill_md_belong_to_it() -> None:
    files = [
        "deploy.yamo",
        "notes/x.md",
        "pdf/SKILL.md",
        "pdf/ref/inner/SKILL.md",
        "pdf/ref/y.md",
        "pdf/z.yamo",
        "pdfs/MYSKILL.md",
    ]
    assert skill_files(files) == [
        "deploy.yamo",
        "notes/x.md",
        "pdf/SKILL.md",
        "pdf/ref/inner/SKILL.md",
        "pdfs/MYSKILL.md",
    ]
    assert skill_files(["SKILL.md", "a.md", "b/c.yamo"]) == ["SKILL.md"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (YAMO, True), (SKILL_MD, True), ("agent: X;\n", True), ("meta:\n  name;x;\n", True),
        ("\n\nname;x;\n", True), ("# Skills\nname;x;\n", False), ("See: the other file\n", False),
        ("", False), ("Note: a; b\n", False),
    ],
)  # fmt: skip
def test_a_markdown_file_without_frontmatter_or_keys_is_documentation(
    text: str, expected: bool
) -> None:
    assert is_skill_text(text) is expected


@pytest.mark.req("MESH-093")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Deploy the site. Then look.", "Deploy the site."),
        ("Use e.g. rsync for v1.2 of it! Never scp.", "Use e.g. rsync for v1.2 of it!"),
        ("One\nline  of\ntext\n\nAnother paragraph", "One line of text"),
        ("网站部署。然后检查。", "网站部署。"),
        ("word " * 100, "word " * 58 + "word …"),
    ],
)
def test_an_intent_is_one_sentence_on_one_line(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


@pytest.mark.req("MESH-093", "MESH-094")
def test_a_new_skill_is_half_reliable_and_unused() -> None:
    assert first_use({}, AT) == {
        "reliability": 0.5,
        "use_count": 0,
        "last_used": None,
        "created_at": AT,
    }
    given = {"reliability": 0.9, "use_count": 4, "last_used": "2025-12-24"}
    assert first_use(given, AT) == {
        **given,
        "last_used": "2025-12-24T00:00:00.000Z",
        "created_at": AT,
    }
    for wrong in (
        {"reliability": 2},
        {"use_count": -1},
        {"use_count": True},
        {"last_used": "never"},
        {"created_at": AT},
    ):
        with pytest.raises(InvalidInput, match=f"metadata.{next(iter(wrong))}"):
            first_use(wrong, AT)


@pytest.mark.req("MESH-094")
@pytest.mark.parametrize(
    ("before", "uses", "after"),
    [
        (0.5, "s", 0.6), (0.5, "f", 0.3), (0.95, "s", 1.0), (1.0, "s", 1.0), (0.1, "f", 0.0),
        (0.0, "f", 0.0), (0.0, "s", 0.1), (0.7, "ff", 0.3), (0.5, "ffsss", 0.4), ("odd", "s", 0.6),
        (True, "f", 0.3), (7, "f", 0.3),
    ],
)  # fmt: skip
def test_success_adds_a_tenth_and_failure_takes_two(
    before: object, uses: str, after: float
) -> None:
    one = skill(reliability=before, kept="yes")
    for n, use in enumerate(uses, start=1):
        metadata = used(one, success=use == "s", at=AT)
        assert metadata == {
            "reliability": metadata["reliability"],
            "kept": "yes",
            "use_count": n,
            "last_used": AT,
        }
        one = skill(**metadata)
    assert reliability_of(one) == after


@pytest.mark.req("MESH-119")
@pytest.mark.parametrize(
    ("found_in", "keywords"),
    [
        ("name", 3 / 7),
        ("intent", 2 / 7),
        ("tags", 1 / 7),
        ("description", 1 / 7),
        ("name intent tags description", 1.0),
        ("", 0.0),
    ],
)
def test_the_name_weighs_three_the_intent_two_tags_and_description_one(
    found_in: str, keywords: float
) -> None:
    fractions = keyword_fractions(
        ["deploy", "site"], {name: ["site", "deploy", "more"] for name in found_in.split()}
    )
    assert keyword_score(fractions) == pytest.approx(keywords)


@pytest.mark.req("MESH-119")
def test_the_score_is_seven_tenths_keywords_and_three_tenths_vector() -> None:
    fractions = keyword_fractions(
        ["deploy", "site", "site"], {"name": ["deploy"], "intent": ["deploy", "site"]}
    )
    assert fractions == {"name": 0.5, "intent": 1.0, "tags": 0.0, "description": 0.0}
    assert keyword_score(fractions) == pytest.approx(3.5 / 7)
    assert final_score(0.5, 0.8) == pytest.approx(0.7 * 0.5 + 0.3 * 0.8)
    assert final_score(1.0, None) == 0.7
    assert keyword_fractions([], {"name": ["x"]}) == dict.fromkeys(
        ("name", "intent", "tags", "description"), 0.0
    )
