"""Entities in texts and paths."""

import pytest

from memory_mesh import InvalidInput
from memory_mesh.core.lane.entities import find_entities, parse_entity

IN_TEXTS = [
    ("project: Atlas", ["project:atlas"]),
    ("Store it under project:atlas, please.", ["project:atlas"]),
    ('business: "Blue Harbor Ltd" pays late', ["business:blue-harbor-ltd"]),
    (
        "chore: rotate-keys. agent=planner is another form: agent = planner",
        ["chore:rotate-keys", "agent:planner"],
    ),
    ("The atlas project uses pnpm.", ["project:atlas"]),
    (
        "Ask the billing agent about the Night Mode feature.",
        ["agent:billing", "feature:night-mode"],
    ),
    ("We started Project Heron.", ["project:heron"]),
    ("@maria and @Li-Wei own it; mail bob@example.com", ["person:maria", "person:li-wei"]),
    ("@maria said that @Maria knows", ["person:maria"]),
    # what only looks like one
    ("The new project is the whole project.", []),
    ("the search feature flag, the user agent, this project, a project: plan", ["project:plan"]),
    ("@property and @types/node and pkg@latest and @app.route('/')", []),
    ("See https://example.com/docs/intro and https://github.com/org/packages/x", []),
    ("We discussed projects and features.", []),
    ("", []),
]


@pytest.mark.req("LANE-29")
@pytest.mark.parametrize(("text", "entities"), IN_TEXTS)
def test_entities_of_a_text_are_the_explicit_ones_in_lower_case(
    text: str, entities: list[str]
) -> None:
    assert find_entities(text) == entities


IN_PATHS = [
    ("src/features/checkout/form.ts", ["feature:checkout"]),
    ("feature/checkout", ["feature:checkout"]),
    ("src/components/UserMenu.tsx", ["feature:usermenu-component"]),
    ("component/menu/index.ts", ["feature:menu-component"]),
    ("packages/atlas/src/a.py", ["project:atlas"]),
    ("apps/web and services/mail-api/", ["project:web", "project:mail-api"]),
    ("docs/set_up.en.md", ["feature:set-up-docs"]),
    (
        "skill/review skills/deploy.md tool/lint tools/format.sh",
        ["agent:review", "agent:deploy", "agent:lint", "agent:format"],
    ),
    (r"C:\code\Packages\Atlas\components\Menu.vue", ["project:atlas", "feature:menu-component"]),
    ("`./packages/atlas/docs/README.md`", ["project:atlas"]),
    ("src/lib/packages.py, mydocs/intro.md, features", []),
]


@pytest.mark.req("LANE-30")
@pytest.mark.parametrize(("text", "entities"), IN_PATHS)
def test_entities_of_a_path_follow_its_folders(text: str, entities: list[str]) -> None:
    assert find_entities(f"I changed {text} today.") == entities


@pytest.mark.req("LANE-29")
def test_an_entity_is_given_with_or_without_its_type() -> None:
    assert parse_entity("Project: Blue Harbor") == ("project", "blue-harbor")
    assert parse_entity(" Atlas ") == (None, "atlas")


def test_of_a_list_of_files_only_the_first_entities_are_taken_and_no_long_ones() -> None:
    found = find_entities(
        " ".join(f"packages/{'a' * 100 if n == 1 else f'p{n}'}/src" for n in range(5000))
    )
    assert found == ["project:p0", *(f"project:p{n}" for n in range(2, 101))]


@pytest.mark.parametrize("given", ["", "project:", "ticket:5", ":atlas", "--", None])
def test_an_entity_that_cannot_be_one_is_refused(given: str) -> None:
    with pytest.raises(InvalidInput, match="project, agent, feature, person, business, chore"):
        parse_entity(given)


def test_a_long_text_made_to_keep_it_busy_comes_back() -> None:
    for unit in (
        "a/",
        "@a",
        "project:",
        "the A ",
        "./",
        "-",
        "project: a.",
        "The A B C ",
        "a.b-",
        "packages/a.",
    ):
        find_entities(f"packages/{unit * (20_000 // len(unit))}/:")
