"""The store for LangGraph, with the real library: it answers as LangGraph's own store does, except
where a comment says why not.

The library ships no conformance tests for stores, so its `InMemoryStore` is what this one is
compared with.
"""

import asyncio
import json
import random
from datetime import UTC, datetime

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import InvalidInput

pytestmark = pytest.mark.deep

ITEMS = {
    (("users", "ann"), "food"): {
        "text": "likes sushi",
        "stars": 3,
        "likes": {"raw": True},
        "tags": ["fish", 1],
    },
    (("users", "ann"), "drink"): {"text": "likes green tea", "stars": 5, "note": None},
    (("users", "annabel"), "food"): {"text": "likes pasta", "stars": 4.5, "likes": {"raw": False}},
    (("teams", "a", "v1"), "rule"): {"text": "meets on Mondays"},
}


@pytest.fixture
def mesh():
    with MemoryMesh("memory://", embedder="none") as opened:
        yield opened


@pytest.fixture
def stores(mesh):
    """LangGraph's own store and ours, with the same items."""
    from langgraph.store.memory import InMemoryStore

    from memory_mesh.integrations.langgraph import MemoryMeshStore

    both = InMemoryStore(), MemoryMeshStore(mesh)
    for one in both:
        for (namespace, key), value in ITEMS.items():
            one.put(namespace, key, value)
    return both


def values(found):
    return sorted((item.namespace, item.key, json.dumps(item.value)) for item in found)


@pytest.mark.parametrize(
    ("prefix", "where", "count"),
    [
        ((), None, 4),
        (("users",), None, 3),
        (("users", "ann"), None, 2),  # and not annabel
        (("users", "an"), None, 0),
        (("users",), {"stars": 3}, 1),
        (("users",), {"stars": {"$gt": 3}}, 2),
        (("users",), {"stars": {"$gte": 3, "$lt": 5}}, 2),
        (("users",), {"stars": {"$ne": 3}}, 2),
        ((), {"likes": {"raw": True}}, 1),
        ((), {"likes": {"raw": {"$eq": False}}}, 1),
        ((), {"tags": ["fish", 1]}, 1),
        ((), {"tags": ["fish"]}, 0),
        ((), {"text": {"$ne": "likes sushi"}}, 3),
        (("users",), {"note": None}, 3),
        (("users",), {"text": "likes pasta", "stars": 4.5}, 1),
        (("users",), {"text": "x' OR '1'='1"}, 0),
    ],
    ids=str,
)
def test_a_search_without_a_query_selects_what_the_library_selects(
    stores, prefix, where, count
) -> None:
    theirs, ours = (one.search(prefix, filter=where) for one in stores)
    assert values(ours) == values(theirs)
    assert len(ours) == count
    assert {item.score for item in ours} <= {None}


@pytest.mark.parametrize(
    "rule",
    [
        {}, {"prefix": ("users",)}, {"prefix": ("*", "ann")}, {"suffix": ("v1",)},
        {"suffix": ("a", "*")}, {"max_depth": 1}, {"limit": 1, "offset": 1},
        {"prefix": ("users", "ann", "deeper")},
        {"prefix": ("teams",), "suffix": ("v1",), "max_depth": 2},
    ],
    ids=str,
)  # fmt: skip
def test_namespaces_are_listed_as_the_library_lists_them(stores, rule) -> None:
    theirs, ours = (one.list_namespaces(**rule) for one in stores)
    assert ours == theirs


def test_an_item_is_read_replaced_and_deleted(stores) -> None:
    _, ours = stores
    namespace = ("users", "ann")
    first = ours.get(namespace, "food")
    assert (first.value, first.namespace, first.key) == (
        ITEMS[namespace, "food"],
        namespace,
        "food",
    )
    ours.put(namespace, "food", {"text": "likes ramen"})
    second = ours.get(namespace, "food")
    assert second.value == {"text": "likes ramen"}
    assert second.created_at == first.created_at <= second.updated_at
    assert ours.search((), filter={"stars": 3}) == []  # nothing of the old value is left
    ours.delete(namespace, "food")
    ours.delete(namespace, "food")
    assert ours.get(namespace, "food") is None
    assert ours.get(("users", "annabel"), "food").value == ITEMS[("users", "annabel"), "food"]


def test_a_search_with_a_query_scores_what_fits_and_then_lists_the_rest(stores, mesh) -> None:
    _, ours = stores
    ours.put(("users", "ann"), "hidden", {"text": "sushi sushi sushi"}, index=False)
    ours.put(
        ("users", "ann"), "part", {"text": "sushi", "title": "a river in Spain"}, index=["title"]
    )
    found = ours.search(("users", "ann"), query="sushi", limit=3)
    assert found[0].key == "food"
    assert found[0].score > 0
    assert [item.score for item in found[1:]] == [None, None]
    assert ours.search(("users", "ann"), query="which river is it?")[0].key == "part"
    assert ours.search(("users", "ann"), query="sushi", limit=1, offset=1)[0].key != "food"
    # Other faces find it.
    assert [hit.content for hit in mesh.search("green tea", limit=1)] == ["likes green tea"]


def test_the_reads_of_a_batch_see_what_was_stored_before_it_and_the_last_of_two_puts_counts(
    stores,
) -> None:
    from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

    ns = ("batch",)
    ops = [
        PutOp(ns, "a", {"n": 1}), GetOp(ns, "a"), SearchOp(ns), PutOp(ns, "a", {"n": 2}),
        PutOp(("users", "ann"), "food", None), GetOp(("users", "ann"), "food"),
        ListNamespacesOp(max_depth=1), PutOp(ns, "b", {"n": 3}),
    ]  # fmt: skip
    theirs, ours = (one.batch(ops) for one in stores)
    assert (
        [type(one) for one in ours[:3]]
        == [type(one) for one in theirs[:3]]
        == [type(None), type(None), list]
    )
    assert ours[5].value == theirs[5].value == ITEMS[("users", "ann"), "food"]
    assert ours[6] == [("teams",), ("users",)]  # theirs also lists a namespace that was only read
    for one in stores:
        assert values(one.search(ns)) == [(ns, "a", '{"n": 2}'), (ns, "b", '{"n": 3}')]
        assert one.get(("users", "ann"), "food") is None


def test_one_bad_put_of_a_batch_stores_none_of_it(stores) -> None:
    from langgraph.store.base import PutOp

    _, ours = stores
    with pytest.raises(InvalidInput, match="metadata"):
        ours.batch([PutOp(("x",), "good", {"n": 1}), PutOp(("x",), "bad", {"n": {1, 2}})])
    assert ours.search(("x",)) == []
    ours.batch([PutOp(("x",), "good", {"n": 1})])
    assert len(ours.search(("x",))) == 1


def test_it_is_used_from_async_code(stores) -> None:
    _, ours = stores

    async def use():
        await ours.aput(("async",), "k", {"text": "an asynchronous text"})
        await ours.adelete(("users", "ann"), "food")
        got, gone = await asyncio.gather(
            ours.aget(("async",), "k"), ours.aget(("users", "ann"), "food")
        )
        return (
            got.value,
            gone,
            await ours.asearch(("async",), query="asynchronous"),
            await ours.alist_namespaces(prefix=("async",)),
        )

    value, gone, found, namespaces = asyncio.run(use())
    assert value == {"text": "an asynchronous text"}
    assert gone is None
    assert [item.key for item in found] == ["k"]
    assert namespaces == [("async",)]


def test_an_item_expires_after_its_time_to_live() -> None:
    from memory_mesh.integrations.langgraph import MemoryMeshStore

    now = datetime.now(UTC)
    with MemoryMesh(
        "memory://", embedder="none", clock=lambda: now.timestamp() + later * 60
    ) as mesh:
        later, store = 0, MemoryMeshStore(mesh)
        store.put(("t",), "short", {"text": "soon gone"}, ttl=5)
        store.put(("t",), "long", {"text": "stays"})
        assert store.get(("t",), "short").value == {"text": "soon gone"}
        later = 6
        assert store.get(("t",), "short") is None
        assert [item.key for item in store.search(("t",))] == ["long"]
        store.put(("t",), "short", {"text": "again"})
        assert store.get(("t",), "short").value == {"text": "again"}


def test_reading_extends_the_time_to_live_and_a_sweep_erases_what_has_expired() -> None:
    from langgraph.store.base import GetOp

    from memory_mesh.integrations.langgraph import MemoryMeshStore

    later, start = 0, datetime.now(UTC).timestamp()

    def clock() -> float:
        return start + later * 60

    with MemoryMesh("memory://", embedder="none", clock=clock) as mesh:
        store = MemoryMeshStore(mesh, ttl={"default_ttl": 10}, clock=clock)
        for key in ("read", "found", "unread"):
            store.put(("t",), key, {"text": key})
        store.put(("t",), "always", {"text": "stays"}, ttl=None)
        first = store.get(("t",), "read")
        later = 8
        store.get(("t",), "read")
        store.search(("t",), filter={"text": "found"})
        store.get(("t",), "unread", refresh_ttl=False)
        assert store.sweep_ttl() == 0
        later = 12
        keys = sorted(item.key for item in store.search(("t",), refresh_ttl=False))
        assert keys == ["always", "found", "read"]
        [read] = store.batch([GetOp(("t",), "read", refresh_ttl=False)])
        assert (read.value, read.updated_at) == (first.value, first.updated_at)
        assert (store.sweep_ttl(), store.sweep_ttl()) == (1, 0)
        later = 30
        store.ttl_config = {"sweep_interval_minutes": 5}
        assert [item.key for item in store.search(("t",))] == ["always"]
        assert store.sweep_ttl() == 0  # the search swept


def test_what_cannot_be_stored_is_an_error(stores) -> None:
    from langgraph.store.base import InvalidNamespaceError, PutOp

    _, ours = stores
    for namespace in ((), ("a.b",), ("",), ("langgraph",)):
        with pytest.raises(InvalidNamespaceError):
            ours.put(namespace, "k", {"a": 1})
    with pytest.raises(InvalidNamespaceError):
        ours.batch([PutOp(("a.b",), "k", {"a": 1})])
    with pytest.raises(InvalidInput, match="unknown operation"):
        ours.batch([object()])
    secret = "AKIA" + "Q3EGRT7ZK2MWX5NB"
    with pytest.raises(InvalidInput, match="masked"):
        ours.put(("people",), secret, {"text": "a person"})
    assert ours.search(("people",)) == []
    with pytest.raises(InvalidInput, match="masked"):
        ours.batch([PutOp(("people",), key, {"text": key}) for key in ("ann", secret, "bob")])
    assert ours.search(("people",)) == []
    with pytest.raises(InvalidInput, match="unknown operator"):
        ours.search((), filter={"stars": {"$regex": "x"}})


def test_personal_data_of_a_program_stays_and_secrets_are_masked(stores) -> None:
    _, ours = stores
    secret = "AKIA" + "Q3EGRT7ZK2MWX5NB"
    value = {"text": "ann@example.org, +49 30 1234567", "token": secret}
    ours.put(("people",), "ann@example.org", value)
    stored = ours.get(("people",), "ann@example.org").value
    assert stored["text"] == value["text"]
    assert secret not in stored["token"]
    assert len(ours.search((), filter={"text": value["text"]})) == 1


PARTS = [
    None, True, False, 0, 1, 2.5, "a", "", "two\nlines", "long " * 300, [], ["a", 1],
    [{"x": 1}], {}, {"x": 1}, {"x": None}, {"x": {"y": "a"}},
]  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_any_filter_selects_what_the_library_selects(stores, seed) -> None:
    chance, names = random.Random(seed), ("p", "x-y", "a b")  # noqa: S311
    for number in range(40):
        value = {name: chance.choice(PARTS) for name in chance.sample(names, 2)}
        namespace = tuple(chance.choice("ab") for _ in range(chance.randrange(1, 4)))
        for store in stores:
            store.put(namespace, str(number % 20), value)
            assert store.get(namespace, str(number % 20)).value == value
    for part in PARTS:
        for where in ({"p": part}, {"x-y": {"$ne": part}}, {"p": {"x": part}, "a b": part}):
            theirs, ours = (one.search((), filter=where, limit=100) for one in stores)
            assert values(ours) == values(theirs), where


def test_a_filter_names_a_part_of_a_part_by_its_path(stores) -> None:
    """As the library's store in SQLite allows; a key with a dot comes first."""
    _, ours = stores
    ours.put(("p",), "deep", {"user": {"access-level": "admin", "age": 40, "team": {"id": "t"}}})
    ours.put(("p",), "flat", {"user.access-level": "admin", "user": {"access-level": "guest"}})
    for where, keys in (
        ({"user.access-level": "admin"}, ["deep", "flat"]), ({"user.age": {"$gte": 40}}, ["deep"]),
        ({"user.team.id": "t"}, ["deep"]), ({"user": {"team.id": "t"}}, ["deep"]),
        ({"user.access-level.x": "admin"}, []), ({"user.access-level": "guest"}, []),
    ):  # fmt: skip
        assert sorted(item.key for item in ours.search(("p",), filter=where)) == keys, where


class Letters:
    """An embedder of letters."""

    model, window = "letters", 1000

    def count(self, text):
        return len(text)

    def embed(self, texts):
        # Sums of directions, as vectors of a model are: a store keeps a byte of each number.
        directions = {each: random.Random(each) for each in "abcdefghijkl"}  # noqa: S311
        made = {each: [way.gauss() for _ in range(300)] for each, way in directions.items()}
        return [
            [sum(each) for each in zip(*(made[letter] for letter in text), strict=True)]
            for text in texts
        ]


@pytest.fixture
def compared():
    """LangGraph's own store and ours, with the same embedder and fields."""
    from langgraph.store.memory import InMemoryStore

    from memory_mesh.integrations.langgraph import MemoryMeshStore

    fields = ["title", "parts[*].text"]
    with MemoryMesh("memory://", embedder=Letters()) as mesh:
        index = {"dims": 300, "embed": Letters().embed, "fields": fields}
        yield InMemoryStore(index=index), MemoryMeshStore(mesh, fields=fields)


def test_the_score_is_the_cosine_of_the_best_of_several_texts(compared) -> None:
    """Twelve items, two of them with equal texts, and one with an index of its own."""
    chance = random.Random(1)  # noqa: S311
    texts = ["".join(chance.choices("abcdefghijkl", k=4)) for _ in range(40)]
    for store in compared:
        for number in range(10):
            parts = [{"text": texts[3 * number + at]} for at in range(number % 3 + 1)]
            store.put(("n",), str(number), {"title": texts[30 + number], "parts": parts})
        store.put(("n",), "same", {"title": texts[3], "parts": [{"text": texts[9]}]})
        store.put(("n",), "again", {"title": texts[3], "parts": [{"text": texts[9]}]})
        store.put(("n",), "own", {"title": "a", "body": "lll"}, index=["body"])
        store.delete(("n",), "1")  # the library keeps vectors of an item that is replaced
        store.put(("n",), "1", {"title": "kkkk"})
    for query in ["lll", "kk", texts[9], *texts[30:]]:
        scores = [
            {item.key: item.score for item in store.search(("n",), query=query, limit=20)}
            for store in compared
        ]
        assert scores[1] == pytest.approx(scores[0], abs=0.01)  # vectors are stored as bytes
        assert sorted(scores[1].values(), reverse=True) == [*scores[1].values()]


def test_a_key_with_dots_is_not_taken_for_a_longer_namespace(stores) -> None:
    for store in stores:
        store.put(("a",), "b.c", {"n": 1})
        store.put(("a", "b"), "c", {"n": 2})
        assert [store.get(("a",), "b.c").value, store.get(("a", "b"), "c").value] == [
            {"n": 1},
            {"n": 2},
        ]
        assert store.get(("a", "b", "c"), "") is None


def test_the_items_of_a_user_are_hidden_from_another_user(mesh) -> None:
    from memory_mesh.integrations.langgraph import MemoryMeshStore

    ann, bob = (MemoryMeshStore(mesh.scoped(user_id=user)) for user in ("ann", "bob"))
    ann.put(("n",), "k", {"text": "a secret wish"})
    assert ann.search(("n",), query="wish")[0].value == {"text": "a secret wish"}
    assert (bob.get(("n",), "k"), bob.search(("n",), query="wish"), bob.list_namespaces()) == (
        None,
        [],
        [],
    )


def test_a_compiled_graph_keeps_its_memory_in_the_store(mesh) -> None:
    from langgraph.graph import END, START, StateGraph
    from langgraph.runtime import Runtime
    from typing_extensions import TypedDict

    from memory_mesh.integrations.langgraph import MemoryMeshStore

    class State(TypedDict):
        text: str

    def node(state: State, runtime: Runtime) -> State:
        earlier = runtime.store.search(("notes",), query=state["text"])
        runtime.store.put(("notes",), state["text"], {"text": state["text"]})
        return {"text": ", ".join(item.value["text"] for item in earlier)}

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    graph = builder.compile(store=MemoryMeshStore(mesh))
    assert graph.invoke({"text": "tea at noon"}) == {"text": ""}
    assert graph.invoke({"text": "tea"}) == {"text": "tea at noon"}
