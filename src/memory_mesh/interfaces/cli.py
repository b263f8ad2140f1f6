"""The commands: each reads its flags, calls the mesh once and answers.

The module is over 500 lines because it is the one list of all commands; what is more than flags and a call lives elsewhere.
"""

from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from memory_mesh.core.errors import InvalidInput, NotFound
from memory_mesh.core.model.scope import MemoryType
from memory_mesh.interfaces import flags, render
from memory_mesh.interfaces.grammar import Commands, StoreFlag, Who, option, verb
from memory_mesh.interfaces.render import NAME, Answer
from memory_mesh.settings import use_colour

if TYPE_CHECKING:
    from memory_mesh.faces.mesh import MemoryStats

_ABOUT = """Memory for AI agents: remember, recall, forget, with a sealed trail of every change.

Start with: memory-mesh demo"""
_CODES = (
    "Exit codes: 0 done, 1 failed, 2 not understood, 3 settings, 4 no such memory, 5 not in this version, 6 memory is switched "
    "off; of the store: 7 unavailable, 8 read-only, 9 busy, 10 full, 11 damaged, 12 too new; of the embedder: 13 no vector, 14 "
    "another model; of calls to other machines: 15 failed, 16 refused as unsafe, 17 over the budget, 18 called off; 130 "
    "interrupted."
)

WRITE, READ, LEARN, CHANGE, FORGET, CARE = "Remember", "Recall", "Learn", "Change", "Forget", "Look after"

app = typer.Typer(name="memory-mesh", cls=Commands, help=_ABOUT, epilog=_CODES, rich_markup_mode="rich")
config = typer.Typer(cls=Commands, help="The settings in force.")
app.add_typer(config, name="config", rich_help_panel=CARE)
audit = typer.Typer(cls=Commands, help="The audit trail: what was written and looked for, sealed.")
app.add_typer(audit, name="audit", rich_help_panel=CARE)
model = typer.Typer(cls=Commands, help="The models: the local one that makes the vectors, and whatever else is set.")
app.add_typer(model, name="model", rich_help_panel=CARE)

Id = Annotated[str, option("--id", "the memory's id", metavar="ID")]
Limit = Annotated[str, option("--limit", "how many at most", metavar="N")]
Filter = Annotated[
    str | None, option("--filter", "only where this holds, e.g. memory_type = 'global' AND tags = 'ops'", metavar="EXPR")
]
Statuses = Annotated[list[str] | None, option("--status", "of this status instead of active; may be repeated", metavar="STATUS")]
Metadata = Annotated[str | None, option("--metadata", "further notes as a JSON object", metavar="JSON")]
Key = Annotated[str | None, option("--key", "a repeated call with this key stores once", metavar="KEY")]


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Say the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an unexpected error came from.")] = False,
) -> None:
    if version:
        from memory_mesh import __version__

        typer.echo(f"{NAME} memory-mesh {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help(), nl=False)


@verb(
    app, "store", panel=WRITE,
    examples=[
        'store --content "The deploy key rotates on Mondays."',
        'store --content "Ana prefers tea." --type agent --tag people --agent concierge',
        'store --content - --metadata \'{"source": "minutes"}\' < minutes.txt',
    ],
)  # fmt: skip
def store(
    who: Who,
    *,
    content: Annotated[str, option("--content", "the text; - reads it from standard input", metavar="TEXT")],
    type: Annotated[str | None, option("--type", "global, agent, session, … or a word of yours", metavar="TYPE")] = None,
    rationale: Annotated[str | None, option("--rationale", "why it is worth keeping", metavar="TEXT")] = None,
    hypothesis: Annotated[str | None, option("--hypothesis", "what it was expected to show", metavar="TEXT")] = None,
    tag: Annotated[list[str] | None, option("--tag", "a tag; may be repeated", metavar="TAG")] = None,
    metadata: Metadata = None,
    key: Key = None,
) -> Answer:
    """Remember a text. The same text in the same scope is counted, not stored twice."""
    said = {"type": type, "rationale": rationale, "hypothesis": hypothesis, "tags": list(tag) if tag else None}
    notes = flags.together(flags.notes(metadata), said)
    text = flags.text(content)
    with who.mesh() as mesh:
        record = mesh.add(text, notes, idempotency_key=key)
    return Answer(text=f"{NAME} Ingested record {record.id}", data=render.plain(record))


@verb(
    app, "ingest-dir", panel=WRITE,
    examples=["ingest-dir notes", "ingest-dir notes --recursive --extension md --extension txt --type agent"],
)  # fmt: skip
def ingest_dir(
    who: Who,
    *,
    path: Annotated[str, typer.Argument(help="the folder", metavar="PATH")],
    extension: Annotated[
        list[str] | None, option("--extension", "of files with this ending instead of .md; may be repeated", metavar="EXT")
    ] = None,
    type: Annotated[str | None, option("--type", "global, agent, session, … or a word of yours", metavar="TYPE")] = None,
    recursive: Annotated[bool, option("--recursive", "of sub-folders too")] = False,
) -> Answer:
    """Remember each file of a folder. Run again, it takes up what is new or changed and names what is gone."""
    from memory_mesh.interfaces.ingesting import ingested

    return ingested(who, path, extension=extension or [".md"], type_=type, recursive=recursive)


@verb(
    app, "extract", panel=WRITE,
    examples=["extract --content - < conversation.txt", "extract --content - --min-importance 0.6 --session s42 < notes.txt"],
)  # fmt: skip
def extract(
    who: Who,
    *,
    content: Annotated[str, option("--content", "the text; - reads it from standard input", metavar="TEXT")],
    min_importance: Annotated[str, option("--min-importance", "drop what matters less, 0 to 1", metavar="X")] = "0.4",
    metadata: Metadata = None,
    key: Key = None,
) -> Answer:
    """Let the language model draw memories from a text. Without a model, or where it fails, the text is stored whole."""
    from memory_mesh.interfaces import extracting

    least, notes = flags.share(min_importance, "--min-importance"), flags.notes(metadata)
    text = flags.text(content)
    with who.mesh() as mesh:
        return extracting.answer(mesh.extract(text, min_importance=least, metadata=notes, idempotency_key=key))


@verb(
    app, "search", panel=READ,
    examples=[
        'search "when does the deploy key rotate?"',
        "search deploy key --limit 3 --filter \"tags = 'ops'\"",
        "search deploy key --explain",
    ],
)  # fmt: skip
def search(
    who: Who,
    *,
    query: Annotated[list[str], typer.Argument(help="words to look for", metavar="QUERY")],
    limit: Limit = "10",
    filter: Filter = None,
    min_score: Annotated[
        str | None, option("--min-score", "leave out what scores below, 0 to 1; else the ranker decides", metavar="X")
    ] = None,
    ranker: Annotated[str | None, option("--ranker", "learnt, or rrf as in RFC-0011", metavar="NAME")] = None,
    status: Statuses = None,
    explain: Annotated[bool, option("--explain", "say why: each channel's rank and score, what was left out")] = False,
    for_model: Annotated[bool, option("--for-model", "as data for a prompt: fenced, with a notice to the model")] = False,
) -> Answer:
    """Find the memories that answer best, highest score first."""
    most, least = flags.whole(limit, "--limit"), None if min_score is None else flags.share(min_score, "--min-score")
    words, statuses = " ".join(query), flags.statuses(status)
    if explain:
        from memory_mesh.interfaces import explaining

        with who.mesh() as mesh:
            return explaining.answer(mesh.explain(words, most, filter, min_score=least, status=statuses, ranker=ranker))
    with who.mesh() as mesh:
        found = mesh.search(words, most, filter, min_score=least, status=statuses, ranker=ranker)
        shown = mesh.format_for_model(found) if for_model else mesh.format_results(found) if found else ""
        text = shown if for_model else f"{NAME} Found {len(found)} matches." + (f"\n\n{shown}" if shown else "")
    return Answer(text=text, data={"count": len(found), "results": [render.plain(result) for result in found]})


@verb(app, "get", panel=READ, examples=["get --id mem_1760000000000_3fa9c2"])
def get(who: Who, *, id: Id) -> Answer:
    """Show one memory, of whatever status."""
    with who.mesh() as mesh:
        record = mesh.get(id)
    if record is None:
        raise _unknown(id)
    return Answer(text=render.record_text(record), data=render.plain(record))


@verb(app, "list", panel=READ, examples=["list --limit 5", "list --filter \"memory_type = 'agent'\" --agent planner"])
def list_(who: Who, *, limit: Limit = "20", filter: Filter = None, status: Statuses = None) -> Answer:
    """List memories, newest first."""
    most = flags.whole(limit, "--limit")
    with who.mesh() as mesh:
        records = mesh.get_all(most, filter=filter, status=flags.statuses(status))
    data = {"count": len(records), "memories": [render.plain(record) for record in records]}
    return Answer(text=render.list_text(records), data=data)


@verb(app, "history", panel=READ, examples=["history --id mem_1760000000000_3fa9c2"])
def history(who: Who, *, id: Id) -> Answer:
    """Show how a memory became what it is."""
    with who.mesh() as mesh:
        changes = mesh.history(id)
    return Answer(text=render.history_text(id, changes), data={"id": id, "changes": [render.plain(change) for change in changes]})


@verb(
    app, "update", panel=CHANGE,
    examples=[
        'update --id mem_1760000000000_3fa9c2 --content "The key rotates on Fridays." --why "new plan"',
        "update --id mem_1760000000000_3fa9c2 --metadata '{\"source\": null}'",
    ],
)  # fmt: skip
def update(
    who: Who,
    *,
    id: Id,
    content: Annotated[str | None, option("--content", "the new text; - reads it from standard input", metavar="TEXT")] = None,
    metadata: Annotated[
        str | None, option("--metadata", "keys to set, as a JSON object; null removes one", metavar="JSON")
    ] = None,
    why: Annotated[str | None, option("--why", "the reason, for the history", metavar="TEXT")] = None,
    key: Key = None,
) -> Answer:
    """Give a memory a new revision; the old one stays in its history."""
    text, notes = None if content is None else flags.text(content), flags.notes(metadata)
    with who.mesh() as mesh:
        record = mesh.update(id, content=text, metadata=notes, why=why, idempotency_key=key)
    return Answer(text=f"{NAME} Updated record {record.id} to revision {record.revision}", data=render.plain(record))


@verb(app, "pin", panel=CHANGE, examples=["pin --id mem_1760000000000_3fa9c2", "pin --id mem_1760000000000_3fa9c2 --off"])
def pin(who: Who, *, id: Id, off: Annotated[bool, option("--off", "let it decay again")] = False) -> Answer:
    """Pin a memory, so that it never decays."""
    with who.mesh() as mesh:
        record = mesh.pin(id, pinned=not off)
    return Answer(text=f"{NAME} {'Unpinned' if off else 'Pinned'} record {record.id}", data=render.plain(record))


@verb(app, "delete", panel=FORGET, examples=["delete --id mem_1760000000000_3fa9c2"])
def delete(who: Who, *, id: Id) -> Answer:
    """Erase a memory for good: its text, its history, and what was drawn from it alone."""
    with who.mesh() as mesh:
        proof = mesh.erase(id)
    if not proof.memories:
        raise _unknown(id)
    ids = sorted(proof.memories, key=lambda gone: gone != id)
    lines = [f"{NAME} Deleted record {gone}" for gone in ids]
    return Answer(text="\n".join([*lines, *_lingering(bytes_freed=proof.bytes_freed)]), data=asdict(proof))


@verb(app, "delete-all", panel=FORGET, examples=["delete-all --agent planner", "delete-all --session s42 --yes"])
def delete_all(
    *,
    agent: Annotated[str | None, option("--agent", "what this agent stored", metavar="NAME")] = None,
    session: Annotated[str | None, option("--session", "what was stored in this session", metavar="NAME")] = None,
    project: Annotated[str | None, option("--project", "what belongs to this project", metavar="NAME")] = None,
    type: Annotated[str | None, option("--type", "what is of this type", metavar="TYPE")] = None,
    user: Annotated[str | None, option("--user", "what is this user's; alone: all of it", metavar="NAME")] = None,
    yes: Annotated[bool, option("--yes", "do not ask")] = False,
    store: StoreFlag = None,
) -> Answer:
    """Erase all memories of a scope for good, of whatever agent; several flags narrow it down."""
    if type is not None and type not in list(MemoryType):
        raise InvalidInput(f"--type {type!r:.60} is unknown", expected=f"one of {', '.join(MemoryType)}")
    scope = {"user_id": user, "agent_id": agent, "session_id": session, "project": project, "memory_type": type}
    named = ", ".join(f"{name} {value}" for name, value in scope.items() if value is not None)
    if not named:
        raise InvalidInput("delete-all has no scope", expected="one of --agent, --session, --project, --type, --user")
    if not yes:
        flags.ask(f"Erase every memory of {render.one_line(named)} for good?")
    with Who(store=store, user=user).mesh() as mesh:
        proof = mesh.delete_all(**scope)
    lines = [f"{NAME} Deleted {len(proof.memories)} records", *_lingering(bytes_freed=proof.bytes_freed)]
    return Answer(text="\n".join(lines), data=asdict(proof))


@verb(app, "compact", panel=FORGET, examples=["compact", "compact --store sqlite:///memory.db"])
def compact(who: Who) -> Answer:
    """Free the bytes of deleted memories from the files of a large store."""
    with who.mesh() as mesh:
        freed = mesh.compact()
    told = "The store's files hold nothing of what was deleted" if freed else "Others are using the store: try again later"
    return Answer(text=f"{NAME} {told}", data={"bytes_freed": freed}, code=0 if freed else 1)


@verb(app, "reembed", panel=CARE, examples=["reembed", "reembed --store sqlite:///memory.db"])
def reembed(who: Who) -> Answer:
    """Give every memory a vector of the embedder's model; a run that was stopped goes on where it was."""
    from memory_mesh.interfaces.progress import bar

    with who.mesh() as mesh, bar() as progress:
        done = mesh.reembed(progress=progress)
    told = f"Embedded {done.embedded} memories with {done.model}"
    changed = f"; the store was of {done.changed_from} before" if done.changed_from else ""
    return Answer(text=f"{NAME} {told}{changed}", data=asdict(done))


@verb(
    app, "lessons", panel=LEARN,
    examples=["lessons", "lessons deploying to production --limit 5", 'lessons deploy --order-by "severity DESC"'],
)  # fmt: skip
def lessons(
    who: Who,
    *,
    query: Annotated[
        list[str] | None, typer.Argument(help="what they should bear on; nothing lists all", metavar="QUERY")
    ] = None,
    limit: Limit = "10",
    order_by: Annotated[str | None, option("--order-by", "relevance, or severity DESC", metavar="ORDER")] = None,
) -> Answer:
    """Tell the lessons that bear on something; without words all of them, the worst first."""
    from memory_mesh.interfaces import learning

    most = flags.whole(limit, "--limit")
    with who.mesh() as mesh:
        return learning.lessons(mesh.query_lessons(" ".join(query or []), limit=most, order_by=order_by))


@verb(
    app, "distill", panel=LEARN,
    examples=[
        "distill",
        'distill --pattern token_expired --rule "Refresh the token before a deploy." --situation "The deploy failed." '
        '--oversight "Nobody looked at the expiry." --fix "A new token." --severity high --scope deploys',
    ],
)  # fmt: skip
def distill(
    who: Who,
    *,
    pattern: Annotated[str | None, option("--pattern", "a name for the error that stays the same", metavar="NAME")] = None,
    rule: Annotated[str | None, option("--rule", "what to do or leave in future", metavar="TEXT")] = None,
    situation: Annotated[str | None, option("--situation", "what happened", metavar="TEXT")] = None,
    oversight: Annotated[str | None, option("--oversight", "what was missed", metavar="TEXT")] = None,
    fix: Annotated[str | None, option("--fix", "how it was resolved", metavar="TEXT")] = None,
    severity: Annotated[str | None, option("--severity", "critical, high, medium or low", metavar="LEVEL")] = None,
    scope: Annotated[str | None, option("--scope", "when and where the rule applies", metavar="TEXT")] = None,
    inverse: Annotated[str | None, option("--inverse", "what succeeds instead", metavar="TEXT")] = None,
    confidence: Annotated[str | None, option("--confidence", "how sure the rule is, 0 to 1; else 0.7", metavar="X")] = None,
    key: Key = None,
) -> Answer:
    """Draw lessons from the failures of the last day; or, with flags, keep one lesson."""
    from memory_mesh.interfaces import learning

    said: dict[str, object] = {
        "error_pattern": pattern, "preventative_rule": rule, "situation": situation, "oversight": oversight, "fix": fix,
        "severity": severity, "applicable_scope": scope, "inverse_lesson": inverse,
        "confidence": None if confidence is None else flags.share(confidence, "--confidence"),
    }  # fmt: skip
    given = {name: value for name, value in said.items() if value is not None}
    with who.mesh() as mesh:
        if given:
            return learning.learnt(mesh.distill_lesson(given, idempotency_key=key))
        return learning.cycle(mesh.distill())


@verb(
    app, "heartbeat", panel=CARE,
    examples=["heartbeat", "heartbeat --force --job distillation", "heartbeat --log"],
)  # fmt: skip
def heartbeat(
    who: Who,
    *,
    ctx: typer.Context,
    job: Annotated[list[str] | None, option("--job", "this job only; may be repeated", metavar="NAME")] = None,
    force: Annotated[bool, option("--force", "even if it is not due")] = False,
    watch: Annotated[bool, option("--watch", "go on, one beat after the other, until interrupted")] = False,
    every: Annotated[str, option("--every", "how long between two beats, with --watch", metavar="SPAN")] = "8h",
    log: Annotated[bool, option("--log", "show earlier runs instead")] = False,
) -> Answer:
    """Run the upkeep that is due: guard, distillation, retention, vectors, compaction. Exit 1 where a job failed."""
    from memory_mesh.interfaces import learning

    span = learning.seconds(every)
    with who.mesh() as mesh:
        if log:
            return learning.runs(mesh.heartbeat_log())
        if watch:
            learning.watch(mesh, span, partial(_show, as_json=bool(ctx.params["as_json"])), jobs=job, force=force)
        return learning.heartbeat(mesh.heartbeat(jobs=job, force=force))


@verb(app, "stats", panel=CARE, examples=["stats", "stats --store sqlite:///memory.db --json"])
def stats(who: Who) -> Answer:
    """Say how many memories there are, and where."""
    with who.mesh() as mesh:
        held = mesh.stats()
    data = {
        "total_memories": held.total_memories, "total_skills": held.total_skills,
        "db_path": render.unsecret(held.db_path), "status": held.status, "by_status": held.by_status,
        "spent_today": [asdict(spent) for spent in held.spent_today],
        "spent_in_all": [asdict(spent) for spent in held.spent_in_all],
    }  # fmt: skip
    lines = [
        f"{NAME} Total Memories: {data['total_memories']}",
        f"{NAME} Total Skills: {data['total_skills']}",
        f"{NAME} DB Path: {data['db_path']}",
        f"{NAME} Status: {data['status']}",
        *_spent(held),
    ]
    return Answer(text="\n".join(lines), data=data)


@verb(config, "show", panel=CARE, examples=["config show", "config show --agent planner --json"])
def config_show(who: Who) -> Answer:
    """Show every setting, its value and where it came from; secrets are not shown."""
    from memory_mesh.settings import load

    rows = [(name, render.unsecret(value), origin) for name, value, origin in load(who.arguments).displayed()]
    data = {"settings": [{"name": name, "value": value, "origin": origin} for name, value, origin in rows]}
    text = f"{NAME} {len(rows)} settings\n" + render.aligned(rows)
    return Answer(text=text, data=data, drawn=lambda: render.table("Settings", ("setting", "value", "from"), rows))


@verb(model, "status", panel=CARE, examples=["model status", "model status --json"])
def model_status() -> Answer:
    """Say where the local model is and whether it is ready; exit 1 if it is not."""
    from memory_mesh.interfaces.model import status

    return status()


@verb(model, "fetch", panel=CARE, examples=["model fetch"])
def model_fetch() -> Answer:
    """Fetch the local model and make it ready; where it is already, nothing is done."""
    from memory_mesh.interfaces.model import fetch

    return fetch()


@verb(model, "check", panel=CARE, examples=["model check", "model check --json"])
def model_check(who: Who) -> Answer:
    """Ask the language model and the embedder for one short answer each; exit 1 if one that is set gives none."""
    from memory_mesh.interfaces.model import checked

    return checked(who)


Chain = Annotated[str | None, option("--chain", "main (memories) or recalls (searches); else both", metavar="KIND")]


@verb(
    audit, "verify", panel=CARE,
    examples=["audit verify", "audit verify --agent planner --head 12:9ca0…", "audit verify --file trail.jsonl"],
)  # fmt: skip
def audit_verify(
    who: Who,
    *,
    head: Annotated[str | None, option("--head", "a head noted earlier, as audit head prints it", metavar="NUMBER:HASH")] = None,
    chain: Chain = None,
    file: Annotated[str | None, option("--file", "check this export instead of the store", metavar="FILE")] = None,
) -> Answer:
    """Walk every chain, or those of --agent; exit 1 on a break, and name the block."""
    from memory_mesh.interfaces import auditing

    noted, recalls = auditing.noted(head), auditing.kind(chain)
    if file is not None:
        return auditing.checked(file, noted)
    with who.mesh() as mesh:
        return auditing.verdicts(mesh.verify(agent_id=who.agent, recalls=recalls, head=noted))


@verb(audit, "head", panel=CARE, examples=["audit head", "audit head --agent planner --chain main"])
def audit_head(who: Who, *, chain: Chain = None) -> Answer:
    """Print where each chain ends. Note it elsewhere: audit verify --head tells later whether it still holds."""
    from memory_mesh.interfaces import auditing

    recalls = auditing.kind(chain)
    with who.mesh() as mesh:
        return auditing.heads(mesh.audit_heads(agent_id=who.agent, recalls=recalls))


@verb(audit, "log", panel=CARE, examples=["audit log --limit 5", "audit log --operation recall --agent planner"])
def audit_log(
    who: Who,
    *,
    limit: Limit = "20",
    operation: Annotated[
        str | None, option("--operation", "retain, recall, reflect, synthesize or lesson; else all", metavar="NAME")
    ] = None,
    chain: Chain = None,
) -> Answer:
    """Show the latest blocks, newest first."""
    from memory_mesh.interfaces import auditing

    most, recalls = flags.whole(limit, "--limit"), auditing.kind(chain)
    with who.mesh() as mesh:
        return auditing.log(mesh.audit_log(most, operation=operation, agent_id=who.agent, recalls=recalls))


@verb(
    audit,
    "export",
    panel=CARE,
    examples=["audit export --out trail.jsonl", "audit export --format wire --chain main > trail.yamo"],
)
def audit_export(
    who: Who,
    *,
    out: Annotated[str | None, option("--out", "a new file; else standard output", metavar="FILE")] = None,
    format: Annotated[str, option("--format", "json (one block a line, can be verified) or wire", metavar="NAME")] = "json",
    chain: Chain = None,
) -> Answer:
    """Write the chains out, each from its first block."""
    from memory_mesh.interfaces import auditing
    from memory_mesh.interfaces.progress import bar

    as_json, recalls = auditing.as_json(format), auditing.kind(chain)
    with who.mesh() as mesh, bar() as progress:
        pieces = mesh.audit_export(as_json=as_json, agent_id=who.agent, recalls=recalls, progress=progress)
        return auditing.export(pieces, out)


@verb(app, "doctor", panel=CARE, examples=["doctor", "doctor --store sqlite:///memory.db"])
def doctor(who: Who) -> Answer:
    """Check the installation, the settings, the store and every audit chain; exit 1 if something is wrong."""
    from memory_mesh.interfaces.doctor import examine

    return examine(who)


@verb(app, "demo", panel=CARE, examples=["demo"])
def demo() -> Answer:
    """Tell a short story in a throw-away memory: remember, recall, change, forget, prove."""
    from memory_mesh.interfaces.demo import play

    return play()


def _show(answer: Answer, *, as_json: bool) -> None:
    render.show(replace(answer, as_json=as_json), colour=use_colour())


def _spent(held: "MemoryStats") -> list[str]:
    if not held.spent_in_all:
        return []
    from memory_mesh.interfaces.extracting import spending_lines

    return spending_lines(held.spent_today, held.spent_in_all)


def _unknown(id: str) -> NotFound:
    return NotFound(f"no memory {id!r:.80}", remedy="check the id, the agent and the session")


def _lingering(*, bytes_freed: bool) -> list[str]:
    return [] if bytes_freed else ["Its bytes are still in the store's files: `memory-mesh compact` frees them."]
