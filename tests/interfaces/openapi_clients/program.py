"""Use every kind of operation through the client that openapi-python-client generates, and print
what came back as JSON. Arguments: the URL of the server, and a token."""

import json
import sys
from io import BytesIO
from typing import TypeVar

from memory_mesh_client import AuthenticatedClient, Client
from memory_mesh_client.api.change import pin, update
from memory_mesh_client.api.delete import delete, forget
from memory_mesh_client.api.maintain import audit_verify, stats
from memory_mesh_client.api.review import explain_memory
from memory_mesh_client.api.search_and_read import (
    context,
    explain,
    get,
    history,
    lane_find,
    lane_judge,
    list_by_query,
    search,
    search_by_query,
)
from memory_mesh_client.api.server import health, metrics
from memory_mesh_client.api.store import graph_store, ingest, lane_store, store, store_many
from memory_mesh_client.models import (
    AuditVerifyBody,
    ContextBody,
    DeleteBody,
    ExplainBody,
    ExplainMemoryBody,
    ForgetBody,
    GetBody,
    GraphStoreBody,
    GraphStoreBodyClaim,
    HistoryBody,
    JsonObject,
    LaneFindBody,
    LaneJudgeBody,
    LaneStoreBody,
    ListAnswer,
    MemoryRecord,
    PinBody,
    Problem,
    SearchBody,
    SearchResult,
    SoundChain,
    StatsBody,
    StoreBody,
    StoreManyBody,
    StoreManyBodyItemsItem,
    UpdateBody,
)
from memory_mesh_client.types import UNSET, File

Answer = TypeVar("Answer")


def answered(answer: Answer | Problem | None) -> Answer:
    """Return the answer of an operation, or raise its error."""
    if answer is None or isinstance(answer, Problem):
        raise RuntimeError(answer)
    return answer


def refused(answer: object) -> list[object]:
    """Return the kind of an error and its status."""
    if not isinstance(answer, Problem):
        raise TypeError(answer)
    return [answer.type_.rpartition(":")[2], answer.status, bool(answer.what)]


def one(answer: object) -> MemoryRecord:
    """Return the memory that was stored; of messages there would be a list."""
    if not isinstance(answer, MemoryRecord):
        raise TypeError(answer)
    return answer


def listed(answer: ListAnswer) -> list[MemoryRecord]:
    return answer.results


def contents(memories: list[MemoryRecord] | list[SearchResult]) -> list[str]:
    return sorted(memory.content for memory in memories)


def metadata(**values: object) -> JsonObject:
    return JsonObject.from_dict(values)


def item(content: str) -> StoreManyBodyItemsItem:
    return StoreManyBodyItemsItem.from_dict({"content": content})


def use(client: AuthenticatedClient) -> dict[str, object]:
    """Return what each operation answered, under its name."""
    key = one(
        store.sync(
            client=client,
            body=StoreBody(
                content="The deploy key rotates on Mondays.",
                tags=["ops"],
                metadata=metadata(source="runbook", depth=2),
            ),
            idempotency_key="once",
        )
    )
    tea = one(
        store.sync(client=client, body=StoreBody(content="Ana drinks green tea.", type_="global"))
    )
    found = answered(
        search.sync(client=client, body=SearchBody(query="when does the deploy key rotate?"))
    )
    best = found.results[0]
    filtered = answered(
        search.sync(
            client=client,
            body=SearchBody(
                query="deploy key",
                filter_="tags = 'ops'",
                mode="recall",
                status=["active"],
                limit=5,
            ),
        )
    )
    queried = answered(search_by_query.sync(client=client, query="green tea", limit=1))
    stored = answered(get.sync(client=client, body=GetBody(id=key.id)))
    changed = answered(
        update.sync(
            client=client,
            body=UpdateBody(
                id=key.id,
                content="The deploy key rotates on Fridays.",
                metadata=metadata(source="chat"),
                why="the team moved it",
            ),
        )
    )
    changes = answered(history.sync(client=client, body=HistoryBody(id=key.id))).results
    pinned = answered(pin.sync(client=client, body=PinBody(id=key.id)))
    page = answered(list_by_query.sync(client=client, limit=1))
    rest = answered(list_by_query.sync(client=client, limit=5, after=page.next_))
    both = answered(
        store_many.sync(
            client=client,
            body=StoreManyBody(items=[item("One of many."), item("Two.")]),
        )
    )
    lines = b'"A line of a stream."\n{"content": "Another line.", "key": "lines/2"}\n'
    events = answered(ingest.sync(client=client, body=File(BytesIO(lines))))
    claimed = answered(
        graph_store.sync(
            client=client,
            body=GraphStoreBody(
                text="The office is in Berlin.",
                claim=GraphStoreBodyClaim(subject="office", predicate="located_in", value="Berlin"),
            ),
        )
    )
    claim = answered(
        explain_memory.sync(client=client, body=ExplainMemoryBody(memory_id=claimed.id))
    )
    answered(
        lane_store.sync(
            client=client,
            body=LaneStoreBody(content="Use pnpm, not npm.", memory_type="correction"),
        )
    )
    hints = answered(lane_find.sync(client=client, body=LaneFindBody(query="pnpm or npm?")))
    message = metadata(role="user", content="What time is it?")
    judged = answered(lane_judge.sync(client=client, body=LaneJudgeBody(messages=[message])))
    prompt = answered(context.sync(client=client, body=ContextBody(query="deploy key")))
    why = answered(explain.sync(client=client, body=ExplainBody(query="deploy key")))
    verified = answered(audit_verify.sync(client=client, body=AuditVerifyBody()))
    counts = answered(stats.sync(client=client, body=StatsBody()))
    erased = answered(forget.sync(client=client, body=ForgetBody(id=tea.id, verify=True)))
    answered(delete.sync(client=client, body=DeleteBody(id=both.results[0].id)))
    left = answered(list_by_query.sync(client=client))
    return {
        "store": [
            key.content,
            key.tags,
            key.metadata["source"],
            key.metadata["depth"],
            key.revision,
        ],
        "search": [best.id == key.id, best.content, best.relevant, 0 < best.score <= 1],
        "filtered": contents(filtered.results),
        "queried": contents(queried.results),
        "get": [stored.id == key.id, stored.status, stored.valid_until is UNSET],
        "update": [changed.content, changed.metadata["source"], changed.revision > key.revision],
        "history": [[change.action, change.why or None] for change in changes],
        "pin": pinned.pinned,
        "pages": [len(listed(page)), bool(page.next_), len(listed(rest)), bool(rest.next_)],
        "store_many": contents(both.results),
        "ingest": [line for line in events.splitlines() if line.startswith("event:")],
        "graph_store": [claimed.is_new, claimed.memory.content, claimed.conflicts],
        "claim": [claim.claim.value if claim.claim else None, claim.trust.value > 0],
        "lane": hints.results[0].content,
        "judge": [len(judged.kept), judged.not_kept[0].text],
        "context": "Fridays" in prompt.text,
        "explain": "keywords" in why.answers[0].channels,
        "verify": [verified.ok, all(isinstance(chain, SoundChain) for chain in verified.results)],
        "stats": [counts.total_memories, counts.by_status["active"]],
        "forget": [
            len(erased.memories),
            erased.memories[0] == tea.id,
            erased.check.rows_left if erased.check else None,
        ],
        "left": contents(listed(left)),
        "missing": refused(get.sync(client=client, body=GetBody(id="mem_missing"))),
        "blank": refused(search.sync(client=client, body=SearchBody(query=" "))),
        "filter": refused(
            search.sync(client=client, body=SearchBody(query="tea", filter_="nothing = 1"))
        ),
        "metrics": "# HELP" in str(metrics.sync(client=client)),
    }


def main(url: str, token: str) -> None:
    with AuthenticatedClient(base_url=url, token=token) as client:
        done = use(client)
    with AuthenticatedClient(base_url=url, token="unknown") as client:
        done["unknown token"] = refused(stats.sync(client=client, body=StatsBody()))
    with Client(base_url=url) as client_without_token:
        done["health"] = answered(health.sync(client=client_without_token)).status
    print(json.dumps(done))


if __name__ == "__main__":
    main(*sys.argv[1:])
