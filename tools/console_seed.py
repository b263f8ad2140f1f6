"""Make a store with every kind of record, for the tests and the pictures of the console.

    python tools/console_seed.py FOLDER            # a plausible memory
    python tools/console_seed.py FOLDER --hostile  # and texts that try to break a page

FOLDER becomes a home folder: `MEMORY_MESH_HOME=FOLDER memory-mesh console` shows it.
"""

import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memory_mesh import MemoryMesh

DAY = 86_400.0
AGENT, OTHER = "planner", "writer"
USER = {"source": "user_explicit"}
TOOL = {"source": "tool_output"}
SCRIPT = (
    '<script>window.broken = 1</script><img src=x onerror="window.broken = 2"><svg onload=alert(1)>'
)
BIDI = "Pay \u202e000,1\u202c euros to \u2066ecila\u2069 \u200b\x07 now"
LINK = "javascript:window.broken=3"
LONG_LINE = 999_900  # a memory has at most a million characters
PLAIN = (
    "The deploy key rotates on Mondays.", "Ana prefers tea in the afternoon.",
    "The staging server is called heron.",
    "Invoices are sent on the first working day of the month.",
    "The office in Berlin closes at six.", "Releases are cut from the branch main.",
    "The cache is cleared after every deploy.", "Bob is on leave in August.",
    "Backups are kept for thirty days.", "The design review is on Thursdays at ten.",
    "The API limits clients to 6000 requests a minute.",
    "Ana and Bob share the on-call duty.",
    "The logo is blue because the first customer sold boats.",
    "Tests run on every push and take four minutes.", "The database is PostgreSQL 16.",
)  # fmt: skip
LONG_TEXT = "\n\n".join(
    f"## Part {n}\nThe runbook of the shop, part {n}. First look at the queue, then at the "
    f"workers, then at the database. If the queue is longer than {n * 100}, start another worker. "
    "Write down what was done, and tell the people on call. A worker that does not answer within "
    "a minute is stopped and started again. The dashboard shows the queue by region."
    for n in range(1, 13)
)
TRANSCRIPT = (
    ("user", "Hi! Can you set the project up?"),
    ("assistant", "Sure. I'll install the dependencies with npm install and run the tests."),
    ("user", "No, use pnpm instead of npm here. The lockfile gets wrecked otherwise."),
    ("user", "We decided to go with Postgres for the ledger, MySQL is out."),
    ("assistant", "Understood: pnpm for packages, and Postgres for the ledger."),
)
JUNK = (("Traceback (most recent call last):\n  File \"app.py\", line 3, in <module>\n"
         "KeyError: 'shop'"),
        "Thanks a lot!", "What time is it in Lisbon?",
        "The Berlin office closes at six.")  # fmt: skip

LINKS = (("plain0", "plain6", "cause"), ("plain0", "plain2", "related"),
         ("plain2", "plain14", "related"), ("plain4", "plain9", "related"),
         ("plain7", "plain11", "related"))  # fmt: skip
MORE_LINKS = (
    ("plain13", "plain5", "cause"), ("plain5", "plain0", "related"),
    ("plain5", "plain2", "related"), ("plain14", "plain8", "related"),
    ("plain1", "plain11", "related"), ("plain11", "plain0", "related"),
    ("plain9", "plain12", "cause"), ("plain9", "plain5", "related"),
    ("plain2", "plain10", "related"), ("plain14", "plain3", "related"),
    ("long", "plain11", "related"), ("long", "plain2", "related"), ("current", "plain1", "related"),
    ("reflection", "plain0", "related"),
)  # fmt: skip


@dataclass(slots=True)
class Seeded:
    """The ids of some records of the store."""

    home: Path
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        """The variables of a process that uses the store."""
        given = {
            "HOME": str(self.home), "AGENT_ID": AGENT, "NOTES_DIR": str(self.home / "notes"),
            "TRACES_DIR": str(self.home / "traces"), "SERVER_HEARTBEAT_SECONDS": "0",
        }  # fmt: skip
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith("MEMORY_MESH_")
        }
        return {**kept, **{f"MEMORY_MESH_{name}": value for name, value in given.items()}}


def seed(
    home: Path, *, hostile: bool = False, linked: bool = False, embedder: str = "hash"
) -> Seeded:
    """Fill the store of a home folder, and return what is in it. `linked` adds links, so that
    the graph has a shape."""
    done = Seeded(home)
    clock = _Clock(time.time() - 45 * DAY)  # the last record is of yesterday
    with MemoryMesh(
        str(home / "memory.db"), agent_id=AGENT, embedder=embedder, clock=clock,
        notes_dir=str(home / "notes"), traces_dir=str(home / "traces"),
    ) as mesh:  # fmt: skip
        _memories(mesh, clock, done)
        for text in JUNK:
            mesh.add(text)
        _claims(mesh, clock, done)
        _learnt(mesh, clock, done)
        _links(mesh, done, LINKS)
        if linked:
            _links(mesh, done, MORE_LINKS)
        if hostile:
            _hostile(mesh, done)
    return done


class _Clock:
    """A clock that goes on by a second with every look, up to now."""

    def __init__(self, start: float) -> None:
        self._at = start

    def __call__(self) -> float:
        self._at = min(self._at + 0.01, time.time())
        return self._at

    def move(self, days: float) -> None:
        self._at += days * DAY


def _memories(mesh: MemoryMesh, clock: _Clock, done: Seeded) -> None:
    for n, text in enumerate(PLAIN):
        memory = mesh.add(
            text, {"tags": ["ops" if n % 2 else "people"], "importance": 0.3 + 0.04 * n}
        )
        done.ids[f"plain{n}"] = memory.id
        clock.move(2)
    mesh.add(PLAIN[0])
    mesh.scoped(agent_id=OTHER).add(PLAIN[0])
    first = done.ids["plain0"]
    mesh.update(first, content="The deploy key rotates on Fridays.", why="the plan of May")
    mesh.update(
        first,
        content="The deploy key rotates on Fridays at noon.",
        metadata={"source": "minutes"},
        why="made exact",
    )
    mesh.pin(done.ids["plain1"])
    mesh.insert_heritage(
        first,
        {
            "intent_chain": ["ship 1.2"],
            "hypotheses": ["the key is stale"],
            "rationales": ["two reports"],
        },
    )
    done.ids["long"] = mesh.add(LONG_TEXT, {"tags": ["runbook"]}).id
    done.ids["private"] = mesh.add(
        "The planner keeps its drafts in the folder plans.", {"type": "agent"}
    ).id
    mesh.scoped(session_id="trip").add([
        {"role": "user", "content": "I fly to Lisbon on Friday."},
        {"role": "assistant", "content": "Noted: Lisbon on Friday."},
    ])  # fmt: skip
    gone = mesh.add("The old office was in Hamburg.")
    mesh.graph.dispute(gone.id, reason="it was Bremen")
    done.ids["disputed"] = gone.id


def _claims(mesh: MemoryMesh, clock: _Clock, done: Seeded) -> None:
    graph = mesh.graph
    ana = {"subject": "Ana", "predicate": "works_at"}
    done.ids["superseded"] = graph.store(
        AGENT, "Ana works at Acme.", claim={**ana, "value": "Acme"}, provenance=USER
    ).id
    clock.move(10)
    done.ids["current"] = graph.store(
        AGENT, "Ana works at Bolt.", claim={**ana, "value": "Bolt"}, provenance=USER
    ).id
    graph.reinforce(done.ids["current"])
    price = {"subject": "the licence", "predicate": "costs"}
    graph.store(
        AGENT,
        "The licence costs 600 euros.",
        claim={**price, "value": "600 euros"},
        provenance=USER,
    )
    doubted = graph.store(
        AGENT,
        "The licence costs 650 euros.",
        claim={**price, "value": "650 euros"},
        provenance=TOOL,
    )
    done.ids["quarantined"] = doubted.id
    other = graph.store(
        OTHER, "Ana works at Globex.", claim={**ana, "value": "Globex"}, provenance=TOOL
    )
    done.ids["quarantined of another agent"] = other.id
    lies = {"subject": "the server", "predicate": "stands_in"}
    graph.store(
        AGENT, "The server stands in Oslo.", claim={**lies, "value": "Oslo"}, provenance=USER
    )
    graph.store(
        AGENT,
        "The server stands in Turin.",
        claim={**lies, "value": "Turin"},
        provenance=TOOL,
        on_conflict="keep_active",
    )


def _learnt(mesh: MemoryMesh, clock: _Clock, done: Seeded) -> None:
    lesson: dict[str, Any] = {
        "error_pattern": "token_expired",
        "preventative_rule": "Refresh the token before every deploy.",
        "situation": "The deploy failed.", "oversight": "Nobody looked at the expiry.",
        "fix": "A new token.", "severity": "high", "applicable_scope": "deploys",
    }  # fmt: skip
    kept = mesh.distill_lesson(lesson)
    mesh.distill_lesson({**lesson, "error_pattern": "disk_full",
                         "preventative_rule": "Rotate the logs every night.",
                         "situation": "The disk was full.", "severity": "critical",
                         "applicable_scope": "servers"})  # fmt: skip
    done.ids["lesson"] = str(kept.lesson_id)
    skill = mesh.ingest_skill(
        "name: deploy-site\nintent: Deploy the site without downtime.\nsteps:\n  - build\n"
        "  - switch\n"
    )
    mesh.update_skill_reliability(skill.id, success=True)
    done.ids["skill"] = skill.id
    done.ids["reflection"] = str(mesh.reflect(topic="deploys").memory_id)
    mesh.lane.store("Use pnpm, not npm.", memory_type="correction", entity_slugs=["project:atlas"])
    mesh.lane.on_session_event(
        "session.idle",
        [{"role": role, "content": text} for role, text in TRANSCRIPT],
        session_id="setup",
    )
    mesh.notes.append(
        title="Login rules",
        content="Sessions end after 15 minutes.",
        when_to_use=["login|session"],
        importance="high",
    )
    mesh.notes.append(
        title="Invoices",
        content="Invoices are in euros.",
        when_to_use=["invoice"],
        tags=["finance"],
    )
    for n in range(3):
        status = "failure" if n == 1 else "success"
        trace = mesh.traces.record(
            "Deploy the shop to staging", status=status, duration_ms=4200 + n,
            plan="build, test, switch", steps=["build", "test"],
            learnings=["The token had expired."], decisions=["Deploy at night: fewer customers."],
            tools_used=["make"],
        )  # fmt: skip
        clock.move(1)
    done.ids["trace"] = trace.trace_id


def _links(mesh: MemoryMesh, done: Seeded, links: Iterable[tuple[str, str, str]]) -> None:
    for one, other, kind in links:
        mesh.graph.link(done.ids[one], done.ids[other], kind)


def _hostile(mesh: MemoryMesh, done: Seeded) -> None:
    """Store texts that try to break a page, in every field that takes a text."""
    odd = {"tags": [SCRIPT, BIDI], "source": LINK, SCRIPT: SCRIPT, "url": LINK, "rationale": BIDI}
    done.ids["script"] = mesh.add(f"{SCRIPT} in a memory", odd).id
    done.ids["bidi"] = mesh.add(BIDI).id
    done.ids["long line"] = mesh.add("hostile line " + "x y " * (LONG_LINE // 4)).id
    done.ids["long word"] = mesh.add("hostile word " + "w" * LONG_LINE).id
    mesh.update(done.ids["script"], content=f"{SCRIPT} in a revision", why=SCRIPT)
    spy = mesh.scoped(agent_id=SCRIPT, project=BIDI.replace("\x07", ""))
    spy.add(f"{SCRIPT} of an agent with such a name")
    ana = {"subject": SCRIPT, "predicate": "works_at"}
    mesh.graph.store(
        AGENT,
        f"{SCRIPT} works at one place.",
        claim={**ana, "value": SCRIPT},
        provenance={**USER, "actor": SCRIPT},
    )
    mesh.graph.store(
        AGENT, f"{SCRIPT} works at another.", claim={**ana, "value": BIDI}, provenance=TOOL
    )
    mesh.distill_lesson({"error_pattern": "hostile", "preventative_rule": SCRIPT, "situation": BIDI,
                         "oversight": SCRIPT, "fix": SCRIPT, "severity": "low",
                         "applicable_scope": SCRIPT})  # fmt: skip
    mesh.ingest_skill(f"name: hostile-skill\nintent: '{SCRIPT}'\nsteps:\n  - '{BIDI}'\n")
    mesh.notes.append(
        title=SCRIPT, content=SCRIPT, when_to_use=["hostile"], tags=[SCRIPT], source=LINK
    )
    mesh.traces.record(
        SCRIPT,
        steps=[SCRIPT],
        learnings=[BIDI],
        decisions=[SCRIPT],
        tools_used=[SCRIPT],
        results=SCRIPT,
    )
    mesh.graph.dispute(done.ids["bidi"], reason=SCRIPT)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, id_ in seed(folder, hostile="--hostile" in sys.argv, embedder="local").ids.items():
        print(f"{name}: {id_}")
