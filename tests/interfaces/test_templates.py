"""Templates: the values of a record in the words of a command."""

from dataclasses import dataclass, field

import pytest

from memory_mesh.interfaces.remote import OPERATIONS
from memory_mesh.interfaces.render.templates import each, fill, rows, view
from memory_mesh.interfaces.values import Call

CALL = Call(operation=OPERATIONS[0])


@dataclass(frozen=True)
class Session:
    name: str = "two\nlines"
    ids: tuple[str, ...] = ("a", "b")
    score: float | None = 0.0
    pinned: bool = True
    bytes: int = 2048
    agent: str | None = None
    inner: "Session | None" = None
    counts: dict[str, int] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{name}", "two lines"),
        ("{name:raw}", "two\nlines"),
        ("{name:~5}", "two …"),
        ("{name:cut 5}", "two l"),
        ("{counts:json}", "{}"),
        ("{score:.2f}", "0.00"),
        ("{ids:#} and {ids:#memory}", "2 and 2 memories"),
        ("{bytes:#row}", "2048 rows"),
        ("{ids:list}", "a, b"),
        ("{pinned:Pinned|Unpinned}", "Pinned"),
        ("{agent:or unknown}, {name:or unknown}", "unknown, two\nlines"),
        ("{bytes:size}", "2.0 KiB"),
        ("x<, agent {agent}><, {counts:#}>", "x"),
        ("x<, score {score:.1f}>", "x, score 0.0"),  # a number that is 0.0 is a value
        ("<pinned?yes><!pinned?no><agent?a><!agent?none>", "yesnone"),
    ],
)
def test_a_template_is_filled_with_the_fields_of_a_record(template: str, text: str) -> None:
    assert fill(template, Session()) == text


def test_a_field_of_a_field_and_the_record_itself_can_be_named() -> None:
    assert fill("{inner.name}", Session(inner=Session(name="n"))) == "n"
    assert fill("{:#note}<?, some><!?, none>", ["x"]) == "1 note, some"
    assert fill("{:#note}<?, some><!?, none>", []) == "0 notes, none"
    counted = Session(counts={"email": 1, "ip": 2})
    assert fill("{counts:counts}, {counts.ip}", counted) == "1 email, 2 ip, 2"


def test_a_view_shows_a_record_with_its_lists_and_leaves_out_what_is_empty() -> None:
    render = view(
        "Session {name}", "<by {agent}>", each("ids", "- {}"), failed=lambda session: session.agent
    )
    answer = render(Session(), CALL)
    assert answer.text == "[MemoryMesh] Session two lines\n- a\n- b"
    assert (answer.code, answer.data["name"], answer.draw) == (0, "two\nlines", None)
    assert render(Session(agent="x", ids=()), CALL).text.endswith("\nby x")
    assert render(Session(agent="x"), CALL).code == 1


def test_a_view_of_a_list_shows_columns_and_a_table_at_a_terminal() -> None:
    columns = {"name": "{name}", "n": "{ids:#}"}
    render = view("{:#session}.", "<?More>", key="sessions", columns=columns, with_heads=True)
    answer = render([Session()], CALL)
    assert answer.text == "[MemoryMesh] 1 session.\nname       n\ntwo lines  2\nMore"
    assert (answer.rows, answer.data["count"]) == ("sessions", 1)
    assert answer.draw is not None
    assert "name" in answer.draw()
    assert answer.draw().endswith("\nMore")
    assert render([], CALL).text == "[MemoryMesh] 0 sessions."
    assert view("x", rows("{name}", "{pinned:+|-}"), key="s")([Session()], CALL).text == (
        "[MemoryMesh] x\ntwo lines  +"
    )
