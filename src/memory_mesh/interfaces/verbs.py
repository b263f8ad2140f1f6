"""Every operation that an interface offers: what the signature of its method does not say.

The command line and the servers are generated from this table. An entry names the method of the
mesh that it calls and the view of `render` that renders the result, or a function of
`cli.handlers` that does all of it. Which of its parameters are required, their types and their
defaults come from the signatures of the methods: `tools/signatures.py` writes them to a file, so
that help needs no mesh. It is over 700 lines because it is the one table of all operations.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from memory_mesh.interfaces.operation import Effect, Extent, Interface, Kind, Operation, Parameter

STORE, READ, LEARN, CHANGE, REVIEW, DELETE, MAINTAIN, SETUP = (
    "Store", "Search and read", "Learn", "Change", "Review", "Delete", "Maintain", "Set up",
)  # fmt: skip
WRITE, DESTRUCTIVE = Effect.WRITE, Effect.DESTRUCTIVE
USER, SERVER = Extent.USER, Extent.SERVER
CLI, REST, MCP = Interface
INPUT, WORDS, INTEGER, FRACTION, OBJECT, DURATION, TIME, HEAD, SWITCH, PATH, URL = (
    kind for kind in Kind if kind is not Kind.TEXT
)
EVERYWHERE = frozenset(Interface)
REMOTE = frozenset({REST, MCP})
CLI_AND_REST = frozenset({CLI, REST})  # for people; an agent has no use for it

# Commands that only group other commands.
GROUPS = {
    "audit": "Verify, show and export the audit chains: a signed block for every change.",
    "host": "Answer the hooks of coding agents, and show or end the process that does.",
    "hooks": "Show and deliver what waits for the hooks of the setting writethrough.",
    "lane": "The lane: what was learnt, by type, such as a decision or a correction.",
    "notes": "Read and write the notes of a folder, and find those that a task needs.",
    "trace": "Record executions, and find what was done for similar goals.",
    "token": "Create, list and revoke the tokens of the server.",
    "postgres": "Create the tables of a PostgreSQL store, and let roles use them.",
    "config": "Show the settings in force, and trust the file of a project.",
    "model": "Fetch the local model, and check every model in use.",
}

TARGET = {
    "store": Parameter(
        "store",
        "a file such as memory.db, or a URL",
        kind=URL,
        default_help="as configured, else memory.db in the home folder",
    ),
    "none": Parameter("store", "accepted by every command; this command uses no store", kind=URL),
    "agent": Parameter(
        "agent",
        "read and write as this agent",
        metavar="NAME",
        default_help="as configured, else YAMO_AGENT, the agent without a name",
    ),
    "user": Parameter("user", "the user whose memory it is", metavar="NAME"),
    "session": Parameter("session", "the current session", metavar="NAME"),
    "project": Parameter(
        "project",
        "store in this project, and show its memories and those without a project",
        metavar="NAME",
    ),
    "preset": Parameter(
        "preset",
        "lane: use the database and the embedding model of Memory Lane, an older memory of coding "
        "agents",
        metavar="NAME",
    ),
}


JSON = Parameter("json", "print the answer as JSON, and an error too", kind=SWITCH, default=False)
JSONL = Parameter(
    "jsonl", "print JSON lines: one object for each item of a list", kind=SWITCH, default=False
)
YES = Parameter("yes", "do not ask for confirmation", kind=SWITCH, default=False)


def _words(*words: str) -> Mapping[str, object]:
    return {word: word for word in words}


# fmt: off
_HOSTS = {"claude-code": "Claude Code", "opencode": "opencode"}
_SAMPLE = "mem_1760000000000_3fa9c2"
_ID = Parameter("id", "the id of the memory", metavar="ID", bare=True)
_KEY = Parameter("key", "its key, instead of the id", metavar="KEY", max_=500, blank=False)
_ID_OR_KEY = (replace(_ID, blank=False), _KEY)
_FILES = Parameter("files", "also take a note that people wrote out of its file", extent=SERVER)
_CONFIRM = "Erase {what} of {scope} for good?"
_SCOPE = (
    Parameter("user_id", "everything of this user; narrowed by what else is given", scope=True,
              flag="--user", metavar="NAME", blank=False),
    Parameter("agent_id", "what this agent stored", flag="--agent", metavar="NAME", scope=True,
              blank=False),
    Parameter("session_id", "what belongs to this session", flag="--session", metavar="NAME",
              scope=True, blank=False),
    Parameter("project", "what belongs to this project", metavar="NAME", scope=True, blank=False),
    Parameter("memory_type", "memories of this type", flag="--type", metavar="TYPE", scope=True,
              choices=_words("global", "session", "agent", "lesson", "reflection")))
_MEMORY = replace(_ID, name="memory_id", flag="--id")
_SAMPLE_CONFLICT = "conflict_1760000000000_3fa9c2"
_REASON = Parameter("reason", "why, for the history")
_LIMIT = Parameter("limit", "the maximum number", max_=10_000)
_ANY_LIMIT = replace(_LIMIT, max_=None)
_METADATA = Parameter("metadata", "further metadata, as a JSON object", kind=OBJECT)
_REPEATABLE = Parameter(
    "idempotency_key", "a repeated call with this key stores once", metavar="KEY", blank=False)
_DEDUPLICATE = Parameter(
    "deduplicate", "whether a text that is stored already is counted instead of stored again",
    metavar="YES_NO", choices={"yes": True, "no": False}, default_help="as configured")
_LINK = (
    Parameter("source_id", "the id of the memory that the link starts from"),
    Parameter("target_id", "the id of the other memory"),
    Parameter("type", "related, cause, or a name of yours"))
_OLDER = Parameter(
    "older", "the id of the older memory", positional=True, metavar="OLDER",
    cli_help="with --confirm or --undo: the id of the older memory")
_TYPE_HELP = "global, agent, session …, or a word of yours"
_SAMPLE_SKILL = "skill_1760000000000_3fa9c2"
_SKILL = replace(_ID, help="the id of the skill")
_SKILL_METADATA = (
    Parameter("type", _TYPE_HELP, metavar="TYPE", into="metadata"),
    _METADATA, _REPEATABLE)
_STATUS = Parameter(
    "status", "only memories of this status", metavar="STATUS",
    choices=_words("active", "superseded", "disputed", "quarantined", "archived"))
_FILTER = Parameter(
    "filter", "an expression such as: memory_type = 'global' AND tags = 'ops'", metavar="EXPR",
    max_=10_000, blank=False)
_CHAIN = Parameter(
    "recalls", "the chains of memories or those of searches", flag="--chain", metavar="KIND",
    default_help="both", choices={"main": False, "recalls": True})
_CHAIN_AGENT = Parameter(
    "agent_id", "only the chains of this agent", flag="--agent", metavar="NAME")
_LOG = (
    _CHAIN_AGENT, _ANY_LIMIT,
    Parameter("operation", "only blocks of this operation", metavar="NAME",
              choices=_words("retain", "recall", "reflect", "synthesize", "lesson")),
    _CHAIN)
_EXPORT = (
    _CHAIN_AGENT,
    Parameter("out", "a new file", kind=PATH, metavar="FILE", option=True,
              default_help="standard output"),
    Parameter("as_json", "json can be verified; wire is the text of YAMO, for its programs",
              flag="--format", metavar="NAME", choices={"json": True, "wire": False}),
    _CHAIN)
# It shows the texts of every scope, so operations with it are separate entries that no server
# exposes.
_AUDITOR = Parameter(
    "auditor", "show the texts of every agent and session; a block records this name",
    metavar="NAME")
_MODE = Parameter(
    "mode", "precise leaves out what is probably irrelevant, recall very little", metavar="MODE",
    choices=_words("recall", "precise"))
_SEARCH = (
    Parameter("query", "words to search for", kind=WORDS, metavar="QUERY", positional=True,
              max_=100_000, blank=False),
    _LIMIT, _FILTER, replace(_MODE, default_help="as configured"),
    Parameter("min_score", "the lowest score to show, whatever the mode",
              default_help="set by the mode"),
    Parameter("ranker", "how to rank", metavar="NAME", choices=_words("learnt", "rrf"),
              default_help="as configured"),
    _STATUS,
    Parameter("as_of", "what was valid at this time, as is known now; such as 2026-03-01"),
    Parameter("known_at", "what was stored and believed at this time"))
_LANE_STORE = (
    Parameter("content", "the text", kind=INPUT, bare=True, blank=False),
    Parameter("memory_type", "what kind of learning it is", flag="--type", metavar="TYPE",
              choices=_words("correction", "decision", "commitment", "insight", "learning",
                             "confidence", "pattern_seed", "cross_agent", "workflow_note", "gap")),
    Parameter("confidence_score", "how sure it is, from 0 to 100", flag="--confidence",
              kind=INTEGER, min_=0, max_=100),
    Parameter("entity_slugs", "what it is about, such as project:atlas", flag="--entity",
              metavar="ENTITY", default_help="found in the text"),
    Parameter("tags", "a tag", flag="--tag", metavar="TAG"),
    Parameter("collection", "the collection to store it in", metavar="NAME", blank=False,
              default_help="the project, else memory-lane"),
    Parameter("source_chunk", "the text that it was learnt from"),
    Parameter("valid_from", "the time from which it holds"),
    Parameter("valid_until", "the time until which it holds"),
    Parameter("supersedes", "a memory that it takes the place of", metavar="ID"),
    _METADATA, _REPEATABLE)
_LANE_FIND = (
    _SEARCH[0], _LIMIT,
    Parameter("collection", "search this collection only", metavar="NAME", blank=False),
    Parameter("entities", "only what is about it, such as project:atlas or atlas", flag="--entity",
              metavar="ENTITY"),
    Parameter("min_score", "the lowest similarity to show", default_help="0.2, with --entity 0.15"),
    Parameter("memory_types", "only memories of this type", flag="--type", metavar="TYPE"),
    Parameter("include_superseded", "also show superseded memories"),
    Parameter("include_expired", "also show what is not valid any more, or not yet"),
    Parameter("as_of", "what was valid at this time, such as 2026-03-01"))
# The parameters of a method of the graph that name its reader.
_AGENT = {"agent": "agent_id"}
_AGENT_SESSION = {**_AGENT, "session_id": "session_id"}
_MAX_CHARS = Parameter(
    "max_chars", "show results while their texts have at most so many characters together",
    default_help="no limit")
_MAX_TOKENS = Parameter(
    "max_tokens", "the maximum number of tokens of the whole text", kind=INTEGER, option=True,
    cli_help="with --for-model: the maximum number of tokens of the whole text")
_IDS = Parameter("ids", "show the id of each memory", kind=SWITCH, default=False, option=True,
    cli_help="with --for-model: show the id of each memory")
_TOPIC = (
    Parameter("topic", "what it is about", default_help="the newest memories", max_=1000,
              blank=False),
    Parameter("include_reflections", "also read earlier reflections"),
    _REPEATABLE)
_VERIFY = Parameter(
    "verify", "look for it everywhere before and after; exits with 1 if something is left")
_APPLY = Parameter(
    "dry_run", "do it; without this it is only shown", flag="--apply", cli_default=True)
# Of `stores.imports`.
_FORMATS = _words(
    "memories", "archive", "store", "mem0", "mcp", "memory-lane", "neolata", "yamo", "chatgpt")
_DRY_RUN = Parameter(
    "dry_run", "show what would be done, and change nothing", kind=SWITCH, default=False)
_JOBS = (
    Parameter("jobs", "run this job only", flag="--job", metavar="NAME", repeated=True,
              choices=_words("guard", "anchor", "hooks", "changes", "distillation", "decay",
                             "consolidation", "traces", "retention", "reembedding",
                             "compaction")),
    Parameter("force", "run also what is not due", kind=SWITCH, default=False))
_IMPORTANCE = _words("low", "medium", "high", "critical")
_TASK = (
    Parameter("task", "what the agent is about to do", kind=WORDS, metavar="TASK", positional=True),
    Parameter("agent_name", "the agent that does it", metavar="NAME"),
    Parameter("current_plan", "its plan", flag="--plan"))
_INJECTED = (
    Parameter("max_memories", "the maximum number of notes", flag="--limit", min_=0,
              default_help="that of the agent"),
    Parameter("min_importance", "leave out less important notes", metavar="WORD",
              choices=_IMPORTANCE, default_help="that of the agent"))
_EPISODES = (
    Parameter("gap", "the pause that ends an episode", kind=DURATION),
    Parameter("min_similarity",
              "end an episode also where the topic changes: below this similarity",
              default_help="off"))
TABLE = (
    Operation("store", "Store a text as a memory. A text that is stored already, in the same "
        "scope, is counted instead.",
        method="add", view="stored", heading=STORE, effect=WRITE, exposed=EVERYWHERE,
        parameters=(
            Parameter("content", "the text", kind=INPUT, bare=True, blank=False),
            Parameter("messages",
                      "the messages of a conversation, each with role and content; only those "
                      "after the stored turns are added",
                      kind=OBJECT, repeated=True, instead_of=("content", "key")),
            Parameter("type", _TYPE_HELP, metavar="TYPE", into="metadata"),
            Parameter("rationale", "why it is worth keeping", into="metadata"),
            Parameter("hypothesis", "what it was expected to show", into="metadata"),
            Parameter("tags", "a tag", flag="--tag", metavar="TAG", repeated=True, into="metadata"),
            _METADATA,
            Parameter("key", "a key of yours: what is stored under it is replaced", metavar="KEY",
                      max_=500, blank=False),
            _DEDUPLICATE, _REPEATABLE),
        examples=('store "The deploy key rotates on Mondays."',
                  'store "Ana prefers tea." --type agent --tag people --agent concierge',
                  "store - --metadata '{\"source\": \"minutes\"}' < minutes.txt",
                  'store "Ana is on holiday." --key ana/status',
                  "store --messages chat.jsonl --session trip")),
    Operation("store-messages", "store the messages of a conversation; only those after the "
        "stored turns are added",
        handler="store_messages", aliases={CLI: "store --messages"}, effect=WRITE,
        parameters=(
            Parameter("file",
                      "store chat messages: a file with a JSON list or JSON lines; - reads "
                      "standard input",
                      flag="--messages", kind=PATH, metavar="FILE"),
            _METADATA, _REPEATABLE)),
    Operation("ingest-dir", "Store each file of a folder as a memory. A second run stores what is "
        "new or changed and lists what is gone.",
        method="ingest_dir", view="ingested", heading=STORE, effect=WRITE, progress="lines",
        parameters=(
            Parameter("path", "the folder", positional=True),
            Parameter("extension", "read files with this ending", metavar="EXT"),
            Parameter("type", _TYPE_HELP, metavar="TYPE"),
            Parameter("recursive", "also read sub-folders")),
        examples=("ingest-dir notes",
                  "ingest-dir notes --recursive --extension md --extension txt --type agent")),
    Operation("extract", "Extract memories from a text with the language model. Without one, or "
        "when it fails, the text is stored whole.",
        method="extract", view="extracted", heading=STORE, effect=WRITE, progress="bar",
        exposed=EVERYWHERE,
        parameters=(
            Parameter("text", "the text", kind=INPUT, flag="--content", bare=True, blank=False),
            Parameter("min_importance", "drop memories of lower importance"),
            _METADATA, _REPEATABLE),
        examples=("extract - < conversation.txt",
                  "extract - --min-importance 0.6 --session s42 < notes.txt")),
    Operation("search", "Find the memories that answer a query, highest score first.",
        method="search", formatter="format_results", view="found", heading=READ, exposed=EVERYWHERE,
        parameters=(*_SEARCH, replace(_MAX_CHARS, shared=True)),
        examples=('search "when does the deploy key rotate?"',
                  "search deploy key --limit 3 --filter \"tags = 'ops'\"",
                  "search deploy key --explain")),
    Operation("explain", "show why: the rank and score by words and by meaning, and what "
        "was left out",
        method="explain", view="explained", aliases={CLI: "search --explain"}, exposed=EVERYWHERE,
        parameters=_SEARCH),
    Operation("search-for-model", "print the relevant memories as data for a prompt: between "
        "random tags, with a notice to the model",
        method="search", formatter="format_for_model", view="fenced", exposed=EVERYWHERE,
        aliases={CLI: "search --for-model"},
        parameters=(
            *_SEARCH[:3], replace(_MODE, cli_default="precise"), *_SEARCH[4:],
            _MAX_CHARS, _MAX_TOKENS, _IDS)),
    Operation("lane store", "Store what was learnt, by type. What is known already is counted as "
        "observed again.",
        method="lane.store", view="lane_stored", heading=STORE, effect=WRITE, exposed=EVERYWHERE,
        aliases={MCP: "memory_lane_store"}, parameters=_LANE_STORE,
        examples=(
            'lane store "Use pnpm, not npm." --type correction --entity project:atlas',
            'lane store "The cache lives in Redis." --type decision --confidence 90 --tag infra')),
    Operation("lane find", "Find what was learnt. The score is similarity × weight of the type × "
        "decay × feedback.",
        method="lane.find", view="lane_found", heading=READ, exposed=EVERYWHERE,
        aliases={MCP: "memory_lane_find"}, parameters=_LANE_FIND,
        examples=('lane find "which package manager?"',
                  "lane find deploy --type decision --as-of 2026-03-01 --json")),
    Operation("lane feedback", "Rate a memory: helpful raises its rank in `lane find` by a tenth, "
        "harmful halves it.",
        method="lane.feedback", view="lane_rated", heading=REVIEW, effect=WRITE, exposed=EVERYWHERE,
        aliases={MCP: "memory_lane_feedback"},
        parameters=(
            replace(_ID, positional=True, bare=False),
            Parameter("signal", "helpful or harmful", positional=True,
                      choices=_words("helpful", "harmful"), metavar="SIGNAL")),
        examples=(f"lane feedback {_SAMPLE} helpful", f"lane feedback {_SAMPLE} harmful --json")),
    Operation("context", "Print what is relevant to a query as one text for a prompt, packed into "
        "a budget of tokens.",
        method="graph.context", view="context", reader=_AGENT, heading=READ, exposed=EVERYWHERE,
        parameters=(
            _SEARCH[0],
            Parameter("max_tokens", "the maximum size of the whole text", default_help="no limit"),
            Parameter("max_memories", "the maximum number of memories", max_=1000,
                      default_help="15, with --max-tokens 100"),
            Parameter("min_score", "the lowest chance of being relevant",
                      default_help="as measured"),
            Parameter("packing",
                      "what is divided by the tokens: the chance that it is relevant and the "
                      "score, or only the score",
                      metavar="NAME", choices=_words("relevance", "composite")),
            Parameter("before", "only what happened until this time"),
            Parameter("after", "only what happened since this time"),
            *_SEARCH[-2:],
            Parameter("explain", "show each candidate and why it was left out")),
        examples=("context deploy key --max-tokens 400",
                  "context deploy key --max-tokens 400 --explain")),
    Operation("episodes", "List the conversations and stretches of work that the memories belong "
        "to, newest first.",
        method="graph.episodes", view="episodes", reader=_AGENT_SESSION, heading=READ,
        exposed=EVERYWHERE,
        parameters=(
            *_EPISODES,
            Parameter("since", "only what goes on at or after this time"),
            Parameter("until", "only what began until this time"),
            Parameter("limit", "the maximum number of episodes")),
        examples=("episodes --gap 2h", "episodes --summarize episode_1760000000000_3fa9c2",
                  "episodes --session s1 --json")),
    Operation("episode-summary", "show what this episode says, with the source of each sentence",
        method="graph.summarize_episode", view="episode_summary", reader=_AGENT,
        aliases={CLI: "episodes --summarize"}, exposed=EVERYWHERE,
        parameters=(
            Parameter("episode", "show what this episode says", flag="--summarize",
                      metavar="EPISODE"),
            *_EPISODES)),
    Operation("episode-digest", "show what this episode says, and store that as a memory "
        "(a digest)",
        method="graph.summarize_episode", view="episode_summary", reader=_AGENT,
        fixed={"store": True}, aliases={CLI: "episodes --digest"}, effect=WRITE, exposed=EVERYWHERE,
        parameters=(
            Parameter("episode", "the same, and store it as a digest", flag="--digest",
                      metavar="EPISODE"),
            *_EPISODES)),
    Operation("links", "Show the memories that a memory is linked to, most similar first.",
        method="graph.links", view="links", heading=READ, exposed=EVERYWHERE, extent=USER,
        parameters=(_MEMORY,), examples=(f"links {_SAMPLE}", f"links {_SAMPLE} --json")),
    Operation("get", "Show one memory or skill, whatever its status.",
        method="get", view="record", heading=READ, exposed=EVERYWHERE, parameters=(_ID, _KEY),
        examples=(f"get {_SAMPLE}", "get --key ana/status")),
    Operation("list", "List memories, newest first.",
        method="get_all", view="listed", heading=READ, exposed=EVERYWHERE,
        parameters=(
            replace(_LIMIT, cli_default=20),
            _FILTER, _STATUS,
            Parameter("after", "continue behind this memory, the last one of a page",
                      metavar="ID")),
        examples=("list --limit 5", f"list --after {_SAMPLE}",
                  "list --filter \"memory_type = 'agent'\" --agent planner")),
    Operation("history", "Show the revisions of a memory or skill, oldest first.",
        method="history", view="history", heading=READ, exposed=EVERYWHERE, parameters=(_ID,),
        examples=(f"history {_SAMPLE}", f"history {_SAMPLE} --sightings")),
    Operation("sightings", "show the agents and sessions that stored the same text",
        method="sightings", view="sightings", aliases={CLI: "history --sightings"},
        exposed=EVERYWHERE, parameters=(_ID,)),
    Operation("lessons", "Show the lessons that are relevant to a query; without a query all "
        "lessons, most severe first.",
        method="query_lessons", view="lessons", heading=LEARN, exposed=EVERYWHERE,
        parameters=(
            Parameter("query", "what they should be relevant to", kind=WORDS, metavar="QUERY",
                      positional=True, max_=100_000),
            _LIMIT,
            Parameter("order_by", "the order", metavar="ORDER",
                      choices=_words("relevance", "severity DESC")),
            _MODE),
        examples=("lessons", "lessons deploying to production --limit 5",
                  'lessons deploy --order-by "severity DESC"')),
    Operation("distill", "Derive lessons from the failures of the last day; or, with flags, store "
        "one lesson.",
        method="distill", view="distilled", heading=LEARN, effect=WRITE, exposed=EVERYWHERE,
        extent=USER,
        examples=(
            "distill",
            'distill --pattern token_expired --rule "Refresh the token before a deploy." '
            '--situation "The deploy failed." --oversight "Nobody looked at the expiry." --fix '
            '"A new token." --severity high --scope deploys')),
    Operation("distill-lesson", "Store one lesson.",
        method="distill_lesson", view="lesson", aliases={CLI: "distill"}, effect=WRITE,
        exposed=EVERYWHERE,
        parameters=(
            Parameter("error_pattern", "a stable name of the error", flag="--pattern",
                      metavar="NAME", max_=4000, blank=False, into="context", required=True),
            Parameter("preventative_rule", "what to do or avoid in future", flag="--rule",
                      max_=4000, blank=False, into="context", required=True),
            Parameter("situation", "what happened", max_=4000, blank=False, into="context",
                      required=True),
            Parameter("oversight", "what was missed", max_=4000, blank=False, into="context",
                      required=True),
            Parameter("fix", "how it was resolved", max_=4000, blank=False, into="context",
                      required=True),
            Parameter("severity", "how bad it was", metavar="LEVEL", into="context", required=True,
                      choices=_words("critical", "high", "medium", "low")),
            Parameter("applicable_scope", "when and where the rule applies", flag="--scope",
                      max_=4000, blank=False, into="context", required=True),
            Parameter("inverse_lesson", "what succeeds instead", flag="--inverse", into="context",
                      max_=4000, blank=False),
            Parameter("confidence", "how sure the rule is", kind=FRACTION, into="context",
                      default_help="0.7"),
            _REPEATABLE)),
    Operation("reflect", "Store the main statements of recent memories, with their sources, as a "
        "reflection.",
        method="reflect", view="reflection", heading=LEARN, effect=WRITE, exposed=EVERYWHERE,
        parameters=(
            *_TOPIC[:1],
            Parameter("lookback", "how many memories to read", max_=1000),
            *_TOPIC[1:]),
        examples=("reflect", "reflect --topic deploys --lookback 20")),
    Operation("synthesize", "Store the main statements of up to 100 memories, on a topic or the "
        "newest.",
        method="synthesize", view="reflection", heading=LEARN, effect=WRITE, exposed=EVERYWHERE,
        parameters=_TOPIC, examples=("synthesize --topic deploys",)),
    Operation("ingest-skill", "Store a skill. One of the same file or name gets a new revision, "
        "and keeps its reliability.",
        method="ingest_skill", view="skill_ingested", heading=LEARN, effect=WRITE,
        exposed=EVERYWHERE,
        parameters=(
            Parameter("yamo_text", "the text", kind=INPUT, flag="--content", bare=True,
                      blank=False),
            *_SKILL_METADATA),
        examples=("ingest-skill --file skills/deploy.yamo",
                  "ingest-skill --file skills/pdf --type agent", "ingest-skill - < deploy.yamo")),
    Operation("ingest-skill-file", "read the text from a file",
        handler="ingest_skill", aliases={CLI: "ingest-skill --file"}, effect=WRITE,
        parameters=(
            Parameter("file", "read the text from this file, or from SKILL.md in this folder",
                      kind=PATH, metavar="FILE"),
            *_SKILL_METADATA)),
    Operation("search-skills", "Find the skills that fit a task, highest score first.",
        method="search_skills", view="skills_found", heading=LEARN, exposed=EVERYWHERE,
        parameters=(_SEARCH[0], _LIMIT, Parameter("min_score", "the lowest score to show")),
        examples=("search-skills deploy the site", "search-skills fill a form --limit 1")),
    Operation("list-skills", "List the active skills, newest first.",
        method="list_skills", view="skills_listed", heading=LEARN, exposed=EVERYWHERE,
        parameters=(replace(_LIMIT, default_help="all"),),
        examples=("list-skills", "list-skills --limit 5")),
    Operation("skill-feedback", "Record that a skill was used: success adds 0.1 to its "
        "reliability, failure takes 0.2.",
        method="update_skill_reliability", view="skill_used", heading=LEARN, effect=WRITE,
        exposed=EVERYWHERE,
        parameters=(
            _SKILL,
            Parameter("success", "whether it worked", metavar="TRUE|FALSE",
                      choices={"true": True, "false": False}),
            _REPEATABLE),
        examples=(f"skill-feedback --id {_SAMPLE_SKILL} --success true",)),
    Operation("skill-prune", "Archive the skills that are less reliable than a threshold. None is "
        "erased.",
        method="prune_skills", view="skills_pruned", heading=LEARN, effect=WRITE,
        exposed=EVERYWHERE,
        parameters=(Parameter("threshold", "the lowest reliability to keep, 0.0-1.0"),),
        examples=("skill-prune", "skill-prune --threshold 0.5")),
    Operation("lesson-to-skill", "Store a lesson as a skill. Deleting the lesson deletes the "
        "skill.",
        method="lesson_to_skill", view="skill_ingested", heading=LEARN, effect=WRITE,
        exposed=EVERYWHERE,
        parameters=(
            Parameter("lesson_id", "the id of the lesson or of its memory", flag="--id",
                      metavar="ID", bare=True),),
        examples=("lesson-to-skill lesson_1760000000000_3fa9c2",)),
    Operation("sync-skills", "Read the skill files of the settings. Exits with 1 when one cannot "
        "be read.",
        method="sync_skills", view="skills_synced", heading=LEARN, effect=WRITE,
        examples=("sync-skills",)),
    Operation("heritage", "Set what led to a memory, oldest first; get shows it. The lists "
        "replace an earlier heritage.",
        method="insert_heritage", view="heritage", heading=CHANGE, effect=WRITE, exposed=EVERYWHERE,
        parameters=(
            _MEMORY,
            Parameter("intent_chain", "an intent", flag="--intent", repeated=True, max_=4000,
                      blank=False, into="heritage"),
            Parameter("hypotheses", "what was expected", flag="--hypothesis", repeated=True,
                      max_=4000, blank=False, into="heritage"),
            Parameter("rationales", "why it was decided", flag="--rationale", repeated=True,
                      max_=4000, blank=False, into="heritage")),
        examples=(
            f'heritage {_SAMPLE} --intent "ship 1.2" --hypothesis "the cache is stale" '
                   '--rationale "two reports"',)),
    Operation("update", "Write a new revision of a memory; the old one stays in its history.",
        method="update", view="updated", heading=CHANGE, effect=WRITE, exposed=EVERYWHERE,
        parameters=(
            _ID,
            Parameter("content", "the new text", kind=INPUT, bare=True, blank=False),
            Parameter("metadata", "keys to set, as a JSON object; null removes a key"),
            Parameter("why", "the reason, for the history"),
            _REPEATABLE),
        examples=(f'update {_SAMPLE} "The key rotates on Fridays." --why "new plan"',
                  f"update {_SAMPLE} --metadata '{{\"source\": null}}'")),
    Operation("pin", "Pin a memory, so that it never decays: it is not archived as weak.",
        method="pin", view="pinned", heading=CHANGE, effect=WRITE, exposed=EVERYWHERE,
        parameters=(_ID, Parameter("pinned", "unpin it: let it decay again", flag="--off")),
        examples=(f"pin {_SAMPLE}", f"pin {_SAMPLE} --off")),
    Operation("end-session", "End a session: archive the memories of type session that this agent "
        "stored in it.",
        method="end_session", view="ended_session", heading=CHANGE, effect=WRITE,
        exposed=EVERYWHERE, target=("store", "agent", "user"),
        parameters=(
            Parameter("session_id", "the session to end", flag="--session", metavar="NAME",
                      bare=True),),
        examples=("end-session s42", "end-session --session s42 --agent planner")),
    Operation("review", "Decide about quarantined memories, one after another, at a terminal. "
        "Elsewhere it lists them.",
        handler="review", heading=REVIEW, effect=WRITE,
        examples=("review", f'review --activate {_SAMPLE} --reason "checked by phone"',
                  f"review --undo {_SAMPLE}")),
    Operation("review-activate", "make a memory active",
        method="graph.review_quarantine", view="reviewed", fixed={"action": "activate"},
        aliases={CLI: "review --activate"}, effect=WRITE, exposed=EVERYWHERE, extent=USER,
        parameters=(
            replace(_MEMORY, flag="--activate",
                    help="make it active, and supersede the claims that exclude it", bare=False),
            _REASON)),
    Operation("review-reject", "archive a memory",
        method="graph.review_quarantine", view="reviewed", fixed={"action": "reject"},
        aliases={CLI: "review --reject"}, effect=WRITE, exposed=EVERYWHERE, extent=USER,
        parameters=(
            replace(_MEMORY, flag="--reject",
                    help="archive it, and keep the claims that exclude it", bare=False),
            _REASON)),
    Operation("review-keep-both", "make a memory active beside others",
        method="graph.review_quarantine", view="reviewed", fixed={"action": "keep_both"},
        aliases={CLI: "review --keep-both"}, effect=WRITE, exposed=EVERYWHERE, extent=USER,
        parameters=(
            replace(_MEMORY, flag="--keep-both",
                    help="make it active beside the claims that exclude it", bare=False),
            _REASON)),
    Operation("review-undo", "take back a decision",
        method="graph.undo_review", view="reviewed", aliases={CLI: "review --undo"},
        exposed=EVERYWHERE, extent=USER, effect=WRITE,
        parameters=(
            replace(_MEMORY, flag="--undo", help="take back the last decision about it",
                    bare=False),)),
    Operation("quarantined", "List the memories of every agent that wait for a review, newest "
        "first.",
        method="graph.list_quarantined", view="quarantined", heading=REVIEW, exposed=EVERYWHERE,
        extent=USER,
        parameters=(Parameter("agent", "only those of this agent", metavar="NAME"), _ANY_LIMIT),
        examples=("quarantined", "quarantined --agent planner --limit 5")),
    Operation("conflicts", "List the claims that exclude each other and wait for a decision.",
        method="graph.conflicts", view="conflicts", heading=REVIEW, exposed=EVERYWHERE, extent=USER,
        parameters=(
            Parameter("status", "pending or resolved ones", metavar="STATUS",
                      choices=_words("pending", "resolved")),),
        examples=("conflicts", "conflicts --status resolved",
                  f"conflicts --resolve {_SAMPLE_CONFLICT} --keep new")),
    Operation("resolve-conflict", "resolve a conflict",
        method="graph.resolve_conflict", view="reviewed", exposed=EVERYWHERE, extent=USER,
        aliases={CLI: "conflicts --resolve"}, effect=WRITE,
        parameters=(
            Parameter("conflict_id", "resolve this conflict", flag="--resolve", metavar="CONFLICT"),
            Parameter("keep", "what stays", cli_help="with --resolve: what stays", metavar="WHICH",
                      choices=_words("new", "existing", "both")),
            _REASON)),
    Operation("changes", "Show which newer memories replace or end what older ones say, newest "
        "first.",
        method="changes", view="changes", heading=REVIEW, exposed=EVERYWHERE,
        parameters=(
            Parameter("about", "a subject in words, or the id of a memory", kind=WORDS,
                      positional=True, metavar="SUBJECT_OR_ID", default_help="all changes",
                      max_=100_000, blank=False),
            _LIMIT),
        examples=("changes", "changes where do I live", f"changes {_SAMPLE} --json",
                  f"changes --confirm {_SAMPLE} mem_1750000000000_81b7e0",
                  f"changes --undo {_SAMPLE} mem_1750000000000_81b7e0")),
    Operation("confirm-change", "say that a newer memory replaces or ends what an older one says",
        method="confirm_change", view="change_decided", aliases={CLI: "changes --confirm"},
        effect=WRITE, exposed=EVERYWHERE,
        parameters=(
            Parameter("newer", "the id of the newer memory", flag="--confirm", metavar="NEWER",
                      cli_help="say that this memory changes what the memory OLDER says"),
            _OLDER)),
    Operation("undo-change", "say that both memories hold; the change is not recognised again",
        method="undo_change", view="change_decided", aliases={CLI: "changes --undo"},
        effect=WRITE, exposed=EVERYWHERE,
        parameters=(
            Parameter("newer", "the id of the newer memory", flag="--undo", metavar="NEWER",
                      cli_help="say that this memory and the memory OLDER both hold"),
            _OLDER)),
    Operation("explain-memory", "Show why a memory is trusted, its claim and status, and what it "
        "supersedes, links to and excludes.",
        method="graph.explain_memory", view="explained_memory", heading=REVIEW, exposed=EVERYWHERE,
        extent=USER, aliases={CLI: "explain"},
        parameters=(
            _MEMORY,
            Parameter("as_of", "say whether it was valid at this time", default_help="now"),
            Parameter("known_at", "explain it as it was known at this time", default_help="now")),
        examples=(f"explain {_SAMPLE}", f"explain {_SAMPLE} --known-at 2026-01-31 --json")),
    Operation("reinforce", "Confirm a memory: it is trusted more, and more important.",
        method="graph.reinforce", view="feedback", heading=REVIEW, effect=WRITE, exposed=EVERYWHERE,
        extent=USER, parameters=(_MEMORY, Parameter("boost", "how much more important")),
        examples=(f"reinforce {_SAMPLE}", f"reinforce {_SAMPLE} --boost 0.3")),
    Operation("dispute", "Dispute a memory: it is trusted less, and hidden when disputes "
        "outnumber reinforcements.",
        method="graph.dispute", view="feedback", heading=REVIEW, effect=WRITE, exposed=EVERYWHERE,
        extent=USER, parameters=(_MEMORY, _REASON),
        examples=(f'dispute {_SAMPLE} --reason "the invoice says 650"',)),
    Operation("forget", "Erase a memory for good, with its history and everything derived from it "
        "alone, or everything of a scope: a user, an agent, a session, a project.",
        method="forget", view="forgotten", heading=DELETE, effect=DESTRUCTIVE, exposed=EVERYWHERE,
        confirm=_CONFIRM, parameters=(
            *_ID_OR_KEY,
            *(replace(one, cli_help=f"{one.help}; with an ID or a key, whose memory it is")
              for one in _SCOPE[:4]),
            _SCOPE[4], _FILES, _VERIFY),
        examples=(
            f"forget {_SAMPLE}", "forget --key ana/status --verify", "forget --user ana",
            "forget --user ana --session s42 --yes")),
    Operation("delete", "Call forget with an id or a key.",
        method="erase", view="forgotten", heading=DELETE, effect=DESTRUCTIVE, exposed=CLI_AND_REST,
        parameters=(*_ID_OR_KEY, _FILES, _VERIFY), examples=(f"delete {_SAMPLE}",)),
    Operation("delete-all", "Call forget with a scope.",
        method="delete_all", view="forgotten", heading=DELETE, effect=DESTRUCTIVE,
        exposed=CLI_AND_REST, extent=USER, target=("store", "user"), confirm=_CONFIRM,
        parameters=_SCOPE, examples=("delete-all --agent planner",)),
    Operation("compact", "Free the bytes that deleted memories left in the files.",
        method="compact", view="compacted", heading=DELETE, effect=WRITE,
        examples=("compact", "compact --store sqlite:///memory.db")),
    Operation("stats", "Show how many memories there are, and where.",
        method="stats", view="stats", heading=MAINTAIN, exposed=EVERYWHERE,
        examples=("stats", "stats --store sqlite:///memory.db --json")),
    Operation("users", "List the users of the store with the number of their memories.",
        method="users", view="users", heading=MAINTAIN, target=("store", "user"),
        examples=("users", "users --json")),
    Operation("heartbeat", "Run the maintenance jobs that are due. Exits with 1 when a job failed.",
        method="heartbeat", view="heartbeat", heading=MAINTAIN, effect=WRITE, parameters=_JOBS,
        examples=("heartbeat", "heartbeat --force --job distillation", "heartbeat --log")),
    Operation("heartbeat-log", "show earlier runs instead",
        method="heartbeat_log", view="runs", aliases={CLI: "heartbeat --log"}, exposed=CLI_AND_REST,
        extent=USER),
    Operation("heartbeat-watch", "repeat until interrupted",
        handler="watch", aliases={CLI: "heartbeat --watch"}, effect=WRITE,
        parameters=(
            *_JOBS,
            Parameter("every", "the pause between two runs, with --watch", kind=DURATION,
                      default=28_800))),
    Operation("junk", "Show memories that should not be there, such as logs, questions and "
        "repetitions; with --archive archive them.",
        method="lane.junk", view="junk_found", heading=MAINTAIN, effect=WRITE, exposed=EVERYWHERE,
        parameters=(
            Parameter("archive", "archive them; `unarchive` brings one back"),
            Parameter("limit", "the maximum number of memories"),
            Parameter("newest", "judge only so many of the newest memories", default_help="all")),
        examples=("junk", "junk --archive")),
    Operation("decay", "Show which memories of the user have become weak; with --apply archive "
        "them. Pinned ones and lessons stay.",
        method="graph.decay", view="decayed", heading=MAINTAIN, effect=DESTRUCTIVE, progress="bar",
        exposed=EVERYWHERE, extent=USER,
        parameters=(_APPLY, Parameter("delete", "erase the weakest for good instead")),
        examples=("decay", "decay --apply", "decay --apply --delete")),
    Operation("consolidate", "Show what to tidy up: duplicates, contradictions, old groups, "
        "outdated memories; with --apply do it.",
        method="graph.consolidate", view="consolidated", heading=MAINTAIN, effect=WRITE,
        exposed=EVERYWHERE, extent=USER, progress="bar",
        parameters=(
            _APPLY,
            Parameter("max_digests", "the maximum number of digests"),
            Parameter("min_cluster_size", "the smallest group that gets a digest", min_=2)),
        examples=("consolidate", "consolidate --apply")),
    Operation("compress", "Store digests of the largest groups of linked memories: their main "
        "sentences, with links to the originals.",
        method="graph.auto_compress", view="compressed", heading=MAINTAIN, effect=WRITE,
        progress="bar", exposed=EVERYWHERE, extent=USER,
        parameters=(
            Parameter("max_digests", "the maximum number of digests"),
            Parameter("min_cluster_size", "the smallest group", min_=2),
            Parameter("archive_originals", "archive what has a digest, except pinned ones"),
            Parameter("agent", "only memories of this agent", metavar="NAME")),
        examples=("compress", "compress --max-digests 20 --archive-originals")),
    Operation("archive", "Archive a memory: it is kept, and searches no longer find it.",
        method="graph.archive", view="unarchived", heading=CHANGE, effect=WRITE, exposed=EVERYWHERE,
        extent=USER, parameters=(_MEMORY, _REASON), examples=(f"archive {_SAMPLE}",)),
    Operation("unarchive", "Make an archived memory active again.",
        method="graph.unarchive", view="unarchived", heading=CHANGE, effect=WRITE,
        exposed=EVERYWHERE, extent=USER, parameters=(_MEMORY,), examples=(f"unarchive {_SAMPLE}",)),
    Operation("notes add", "Add a note to the Markdown file of its title. What is in the file "
        "stays as it is.",
        method="notes.append", view="note_added", heading=STORE, effect=WRITE, exposed=EVERYWHERE,
        extent=SERVER,
        parameters=(
            Parameter("title", "the title; it gives the file its name", bare=True, blank=False),
            Parameter("content", "the text", kind=INPUT, blank=False),
            Parameter("when_to_use", "a pattern of tasks that need it, such as auth|login",
                      flag="--when", metavar="PATTERN", default_help="the title", blank=False),
            Parameter("tags", "a tag", flag="--tag", metavar="TAG", blank=False),
            Parameter("importance", "how much it matters", metavar="WORD", choices=_IMPORTANCE),
            Parameter("discovered_by", "who found it out", metavar="NAME",
                      default_help="the agent of the memory", blank=False),
            Parameter("discovered_at", "when, such as 2026-03-01", default_help="now"),
            Parameter("discovered_in", "in which task", blank=False),
            Parameter("source", "where it is from", blank=False),
            Parameter("related_memories", "the file of a related note", flag="--related",
                      metavar="FILE", blank=False),
            Parameter("valid_from", "not used before this time"),
            Parameter("valid_until", "not used after this time"),
            Parameter("claim", "what it claims, as JSON with subject, predicate and value")),
        examples=(
            'notes add "Login rules" --content "Sessions end after 15 minutes."',
            'notes add "Login rules" --content "Sessions end after 15 minutes." --when '
            '"login|session" --importance high')),
    Operation("notes extract", "Add a note of an agent's finished run, if its report is worth one.",
        method="notes.extract_and_save", view="note_extracted", heading=STORE, effect=WRITE,
        exposed=EVERYWHERE, extent=SERVER,
        parameters=(
            Parameter("agent_output", "the report of the agent", kind=INPUT, flag="--report",
                      bare=True, max_=1_000_000),
            Parameter("task", "what the agent did", max_=100_000, blank=False),
            Parameter("agent", "the agent", flag="--agent-name", metavar="NAME", max_=1000,
                      blank=False),
            Parameter("result", "how the run ended", metavar="WORD",
                      choices=_words("success", "failure", "partial")),
            Parameter("error", "the error that it ended with", max_=1_000_000),
            Parameter("dry_run", "only show the note")),
        examples=('notes extract - --task "fix the import" --agent-name developer < report.md',)),
    Operation("notes list", "List the notes of the folder.",
        method="notes.load", view="notes_listed", heading=READ, exposed=EVERYWHERE, extent=SERVER,
        examples=("notes list", "notes list --json")),
    Operation("notes match", "Show which notes a task needs, and why: the pattern that matched "
        "and the points of each part.",
        method="notes.match", view="notes_matched", heading=READ, exposed=EVERYWHERE, extent=SERVER,
        parameters=_TASK,
        examples=('notes match "add a login page"',
                  'notes match "add a login page" --agent-name developer')),
    Operation("notes inject", "Print the notes that a task needs as a part of a prompt; nothing "
        "if it needs none.",
        method="notes.build_agent_prompt", view="notes_injected", heading=READ, exposed=EVERYWHERE,
        extent=SERVER,
        parameters=(
            _TASK[0],
            replace(_TASK[1], name="agent", flag="--agent-name"),
            _TASK[2], *_INJECTED,
            Parameter("system_prompt", "a text to begin with"),
            Parameter("max_tokens", "the maximum number of tokens of the notes",
                      default_help="no limit")),
        examples=('notes inject "add a login page" --agent-name developer --max-tokens 800',)),
    Operation("notes lint", "Show what is wrong in the files of notes, with file and line. Exits "
        "with 1 when a note cannot be used.",
        method="notes.lint", view="notes_linted", heading=MAINTAIN, exposed=EVERYWHERE,
        extent=SERVER, examples=("notes lint",)),
    Operation("notes sync", "Bring the memories of the notes up to date with the files, so that "
        "searches find them.",
        method="notes.sync", view="notes_synced", heading=MAINTAIN, effect=WRITE,
        exposed=EVERYWHERE, extent=SERVER, examples=("notes sync",)),
    Operation("notes import", "Store the sections of CLAUDE.md, AGENTS.md and .cursor/rules, and "
        "skills. The files are only read; a second run takes over what changed.",
        method="notes.import_files", view="notes_imported", heading=STORE, effect=WRITE,
        parameters=(
            Parameter("paths", "a file or a folder of the project; may be repeated", kind=PATH,
                      positional=True, default_help="the usual files of the working folder"),),
        examples=("notes import", "notes import packages/api docs/conventions.md")),
    Operation("notes watch", "Take over what people change in the files of notes, until "
        "interrupted. Each change is one line.",
        handler="watch_notes", heading=MAINTAIN, effect=WRITE,
        parameters=(
            Parameter("every", "the pause between two looks at the folder", kind=DURATION,
                      default=2),),
        examples=("notes watch", "notes watch --every 10s --json")),
    Operation("trace record", "Record an execution. With a command behind --, run it, pass its "
        "output and exit code through, and record it.",
        handler="record_trace", heading=STORE, effect=WRITE,
        parameters=(
            Parameter("goal", "what was to be done; the first sentence is kept", required=True),
            Parameter("command", "the command to run, behind --", metavar="COMMAND",
                      positional=True, repeated=True),
            Parameter("status", "how it ended, without a command",
                      choices={"success": "success", "failure": "failure"}),
            Parameter("duration_ms", "how long it took, without a command", kind=INTEGER),
            Parameter("plan", "what was planned"),
            Parameter("results", "what came of it, without a command"),
            Parameter("steps", "a step", flag="--step", metavar="TEXT", repeated=True),
            Parameter("learnings", "what was learnt", flag="--learning", metavar="TEXT",
                      repeated=True),
            Parameter("decisions", "a decision and why", flag="--decision", metavar="TEXT",
                      repeated=True),
            Parameter("tools_used", "a tool", flag="--tool", metavar="NAME", repeated=True),
            Parameter("files_created", "a file that was created", flag="--file", metavar="PATH",
                      repeated=True)),
        examples=(
            'trace record --goal "Run the tests" --project shop -- make test',
            'trace record --goal "Deploy the shop" --status failure --learning "The token had '
            'expired"')),
    Operation("trace list", "List traces, the newest first; with --project those of one project.",
        method="traces.get_all", view="traces_listed", heading=READ, exposed=EVERYWHERE,
        extent=SERVER,
        parameters=(
            Parameter("limit", "the maximum number of traces", max_=10_000),
            Parameter("archived", "show archived ones too")),
        examples=("trace list", "trace list --project shop --json")),
    Operation("trace show", "Show a trace.",
        method="traces.get", view="trace_shown", heading=READ, exposed=EVERYWHERE, extent=SERVER,
        parameters=(
            Parameter("trace_id", "the id of the trace", flag="--id", metavar="ID", bare=True),),
        examples=("trace show trace-1760000000000-3fa9c2",)),
    Operation("trace similar", "Find earlier executions with a similar goal, of all projects: how "
        "they went, and what is recommended.",
        handler="similar_traces", heading=READ,
        parameters=(
            Parameter("goal", "what is to be done", kind=WORDS, required=True, positional=True),
            Parameter("limit", "the maximum number of traces", kind=INTEGER, default=3),
            Parameter("min_similarity", "leave out less similar ones", kind=FRACTION, default=0.3),
            Parameter("since", "not before this time", kind=TIME),
            Parameter("until", "not after this time; a day is included", kind=TIME)),
        examples=('trace similar "deploy the shop"',
                  "trace similar run the tests --since 2026-01-01 --json")),
    Operation("trace plan", "Print what memory knows about a goal, for the prompt of a planner: "
        "what worked, what failed, and learnings.",
        method="traces.plan_context", view="trace_planned", heading=READ, exposed=EVERYWHERE,
        extent=SERVER,
        parameters=(
            Parameter("goal", "what is to be done", kind=WORDS, positional=True),
            Parameter("limit", "the maximum number of each kind", max_=10_000),
            Parameter("max_tokens", "the maximum number of tokens of the text",
                      default_help="no limit")),
        examples=('trace plan "deploy the shop"',
                  "trace plan deploy the shop --project shop --max-tokens 400")),
    Operation("trace consolidate", "Draw learnings from runs of a project with similar goals, and "
        "skills from those that mostly succeed.",
        method="traces.consolidate", view="traces_consolidated", heading=MAINTAIN, effect=WRITE,
        exposed=EVERYWHERE, extent=SERVER,
        parameters=(_DRY_RUN, Parameter("skills", "make no skills", flag="--no-skills")),
        examples=("trace consolidate --project shop", "trace consolidate --dry-run --json")),
    Operation("trace retention", "Move what is old to compressed archives, of all projects, and "
        "show what moved and why. Nothing is deleted.",
        method="traces.retention", view="traces_retained", heading=MAINTAIN, effect=WRITE,
        exposed=EVERYWHERE, extent=SERVER, parameters=(_DRY_RUN,),
        examples=("trace retention --dry-run", "trace retention")),
    Operation("trace archive", "Consolidate a project, and move its short-term memory to its "
        "archive.",
        method="traces.archive", view="traces_archived", heading=MAINTAIN, effect=WRITE,
        exposed=EVERYWHERE, extent=SERVER, examples=("trace archive --project shop",)),
    Operation("trace decisions", "Store the decisions of a trace as memories.",
        method="traces.keep_decisions", view="decisions_kept", heading=STORE, effect=WRITE,
        exposed=EVERYWHERE, extent=SERVER,
        parameters=(
            Parameter("trace_id", "the id of the trace", flag="--id", metavar="ID", bare=True),),
        examples=("trace decisions trace-1760000000000-3fa9c2",)),
    Operation("hooks status", "Show the hooks on the store: how many events wait for each, and "
        "how many could not be delivered.",
        method="hooks_status", view="hooks", heading=MAINTAIN,
        examples=("hooks status", "hooks status --json")),
    Operation("hooks retry", "Deliver what waits for the configured hooks now, also what was "
        "given up (dead letters). Exits with 1 when something still waits.",
        method="retry_hooks", view="hooks", heading=MAINTAIN, effect=WRITE,
        examples=("hooks retry",)),
    Operation("reembed", "Compute the vectors that are missing or belong to another model. An "
        "interrupted run continues where it stopped.",
        method="reembed", view="reembedded", heading=MAINTAIN, effect=WRITE, progress="bar",
        examples=("reembed", "reembed --store sqlite:///memory.db")),
    Operation("export", "Write the memories that this agent and session can see as lines of JSON, "
        "which import reads.",
        method="export", view="memories_exported", heading=MAINTAIN, progress="bar",
        parameters=(
            Parameter("out", "a new file", kind=PATH, metavar="FILE", option=True,
                      default_help="standard output"),),
        examples=("export --out memories.jsonl", "export --user ana > ana.jsonl",
                  "export --server-memory --out memory.jsonl")),
    Operation("export-graph", "write the knowledge graph of mcp --compat server-memory, as the "
        "official memory server of MCP does",
        handler="export_graph", aliases={CLI: "export --server-memory"},
        parameters=(
            Parameter("out", "a new file", kind=PATH, metavar="FILE", option=True,
                      default_help="standard output"),)),
    Operation("export-all", "write the whole store: all users, audit chains and history",
        method="export_store", view="store_exported", progress="bar", aliases={CLI: "export --all"},
        parameters=(
            Parameter("vectors", "leave out the vectors; the import computes them",
                      flag="--no-vectors"),
            Parameter("out", "a new file", kind=PATH, metavar="FILE", option=True,
                      default_help="standard output"))),
    Operation("import", "Store the memories of an export, a backup or another program. Memories "
        "that are stored already are skipped.",
        handler="import_file", heading=MAINTAIN, effect=WRITE,
        parameters=(
            Parameter("file", "the file or folder; - reads an export from standard input",
                      kind=PATH, metavar="FILE", positional=True, required=True),
            Parameter("format",
                      "the format that is expected; archive is a file of export --all, mcp of the "
                      "official memory server of MCP, memory-lane and neolata of other memory "
                      "programs, yamo has blocks of lessons",
                      choices=_FORMATS, default_help="detected")),
        examples=("import memories.jsonl",
                  "import - --store sqlite:///new.db --user ana < ana.jsonl",
                  "import mem0.json --user ana", "import conversations.json",
                  "import lessons.yamo")),
    Operation("copy", "Copy a whole store to an empty one of any kind, and verify the copy. A "
        "copy that was stopped continues.",
        handler="copy", heading=MAINTAIN, effect=WRITE, target=("store",),
        parameters=(
            Parameter("from_store", "the store to copy", flag="--from", kind=URL,
                      default_help="that of --store"),
            Parameter("to_store", "the new store", flag="--to", kind=URL, required=True)),
        examples=("copy --from memory.db --to json:///folder",
                  "copy --from sqlite:///memory.db --to sqlite:///new.db")),
    Operation("backup", "Copy the store to a new file or folder, while it is in use.",
        method="backup", view="backed_up", heading=MAINTAIN, progress="bar",
        parameters=(Parameter("file", "the new file", metavar="FILE", positional=True),),
        examples=("backup memory-2026-01-31.db", "backup copy.db --store sqlite:///memory.db")),
    Operation("restore", "Copy a backup, or a file of export --all, into an empty store, and "
        "verify it.",
        method="restore", view="store_copied", heading=MAINTAIN, effect=WRITE, progress="bar",
        parameters=(Parameter("file", "the backup", metavar="FILE", positional=True),),
        examples=("restore memory-2026-01-31.db --store sqlite:///new.db",
                  "restore all.jsonl --store json:///new")),
    Operation("migrate", "Bring the memories in an older LanceDB folder from schema V1 of RFC-0011 "
        "to V2. The V1 table is kept for 30 days.",
        handler="migrate", heading=MAINTAIN, effect=WRITE, target=("store",),
        parameters=(
            Parameter("rollback", "restore the V1 table instead", kind=SWITCH, default=False),
            _DRY_RUN),
        examples=("migrate --store lancedb:///yamo --dry-run",
                  "migrate --store lancedb:///yamo --rollback")),
    Operation("postgres prepare", "Create the tables of a PostgreSQL store. The first write does "
        "that too, if its role may create tables.",
        handler="postgres_prepare", heading=SETUP, effect=WRITE, target=("store",),
        examples=("postgres prepare --store postgresql://owner@host/memory",)),
    Operation("postgres grant", "Let a role of PostgreSQL use the tables for one user, for all "
        "users, or for the user of a verified token.",
        handler="postgres_grant", heading=SETUP, effect=WRITE, target=("store",),
        parameters=(
            Parameter("role", "the name of the role", metavar="ROLE", required=True, bare=True),
            Parameter("scope",
                      "user: rows of one user; server: of all users; token: of the user that "
                      "PostgREST has verified",
                      metavar="SCOPE", default="user", choices=_words("user", "server", "token")),
            Parameter("user_id", "the user; rows without a user if it is left out", flag="--user",
                      metavar="NAME"),
            Parameter("agent_id", "only this agent of the user", flag="--agent", metavar="NAME")),
        examples=("postgres grant ann_program --user ann", "postgres grant api --scope server")),
    Operation("postgres distribute", "Distribute the tables of a PostgreSQL store by user over "
        "several servers, with the extension Citus.",
        handler="postgres_distribute", heading=SETUP, effect=WRITE, target=("store",),
        examples=("postgres distribute --store postgresql://owner@host/memory",)),
    Operation("audit verify", "Verify every audit chain, or those of --agent. Exits with 1 on a "
        "break and names the block.",
        method="verify", view="verdicts", heading=MAINTAIN, progress="bar",
        parameters=(
            _CHAIN_AGENT,
            Parameter("head", "a head noted earlier, as audit head prints it", kind=HEAD),
            Parameter("anchor", "compare with every head in this file of audit anchor",
                      metavar="FILE"),
            _CHAIN),
        examples=("audit verify", "audit verify --agent planner --head 12:9ca0…",
                  "audit verify --file trail.jsonl")),
    Operation("audit verify-file", "verify an export instead of the store",
        handler="verify_file", aliases={CLI: "audit verify --file"},
        parameters=(
            Parameter("file", "verify this export instead of the store", kind=PATH, metavar="FILE"),
            Parameter("head", "a head noted earlier, as audit head prints it", kind=HEAD))),
    Operation("audit head", "Show the last block of each chain. Note it elsewhere: audit verify "
        "--head checks it later.",
        method="audit_heads", view="heads", heading=MAINTAIN, exposed=CLI_AND_REST, extent=SERVER,
        parameters=(_CHAIN_AGENT, _CHAIN),
        examples=("audit head", "audit head --agent planner --chain main")),
    Operation("audit anchor", "Append the last block of each chain to a file, or send it to a "
        "URL. audit verify --anchor compares it later.",
        method="audit_anchor", view="anchored", heading=MAINTAIN, effect=WRITE,
        parameters=(
            Parameter("to", "a file, or a URL", metavar="FILE_OR_URL",
                      default_help="as configured"),),
        examples=("audit anchor --to anchors.jsonl",)),
    Operation("audit rekey", "Sign the chains with a new key; a block in each chain records it. "
        "The old key stays in the key file.",
        method="audit_rekey", view="rekeyed", heading=MAINTAIN, effect=WRITE,
        examples=("audit rekey",)),
    Operation("audit log", "Show the latest audit blocks, newest first. Texts of other agents and "
        "sessions are withheld.",
        method="audit_log", view="blocks", heading=MAINTAIN, exposed=CLI_AND_REST, extent=SERVER,
        parameters=_LOG,
        examples=("audit log --limit 5", "audit log --operation recall --agent planner",
                  'audit log --auditor "Eve Miller"')),
    Operation("audit log-all", "show the texts of every agent and session",
        method="audit_log", view="blocks", aliases={CLI: "audit log --auditor"}, effect=WRITE,
        parameters=(*_LOG, _AUDITOR)),
    Operation("audit export", "Write the audit chains to a file, each from its first block. Texts "
        "of other agents and sessions are withheld.",
        method="audit_export", view="exported", heading=MAINTAIN, progress="bar",
        parameters=_EXPORT,
        examples=("audit export --out trail.jsonl",
                  "audit export --format wire --chain main > trail.yamo")),
    Operation("audit export-all", "write the texts of every scope",
        method="audit_export", view="exported", aliases={CLI: "audit export --auditor"},
        effect=WRITE, progress="bar", parameters=(*_EXPORT, _AUDITOR)),
    Operation("doctor", "Check the installation, the settings, the store and every audit chain. "
        "Exits with 1 when a check fails.",
        handler="doctor", heading=SETUP, examples=("doctor", "doctor --store sqlite:///memory.db")),
    Operation("doctor-repair", "save what can be read of a damaged store into a new one",
        handler="repair", aliases={CLI: "doctor --repair"}, effect=WRITE, target=("store",),
        parameters=(
            Parameter("to_file", "the new file or folder", flag="--to", kind=PATH, metavar="FILE",
                      default_help="beside it, named .repaired"),)),
    Operation("eval", "Measure what questions find in your own memories, and check what is "
        "stored. Nothing is changed.",
        handler="evaluate", heading=MAINTAIN,
        parameters=(
            Parameter("questions",
                      "a file of questions, one JSON object a line; - reads standard input",
                      kind=PATH, metavar="FILE", default_help="made from the memories"),
            Parameter("count", "how many questions are made at most", kind=INTEGER, default=50),
            Parameter("seed", "another seed makes other questions", kind=INTEGER, default=0),
            Parameter("min_recall",
                      "exit with 1 if recall@10, the fraction found in ten results, is lower or "
                      "not measured", kind=FRACTION, option=True),
            Parameter("min_mrr",
                      "exit with 1 if the mean reciprocal rank, 1 if all come first, is lower or "
                      "not measured",
                      kind=FRACTION, option=True),
            Parameter("min_nothing",
                      "exit with 1 if fewer questions about nothing are answered by nothing",
                      kind=FRACTION, option=True),
            Parameter("html", "also write the report to this new file, with charts", kind=PATH,
                      metavar="FILE", option=True)),
        examples=("eval", "eval --questions questions.jsonl --min-recall 0.8",
                  "eval --count 100 --json")),
    Operation("config show", "Show every setting, its value and its origin. Secrets are not shown.",
        handler="config_show", heading=SETUP,
        examples=("config show", "config show --agent planner --json")),
    Operation("config trust", "Trust the memory-mesh.toml of a project, as it is now, to set "
        "every option. Changing the file ends the trust.",
        handler="config_trust", heading=SETUP, target=(), effect=WRITE,
        parameters=(Parameter("path", "the file, or its folder", kind=PATH, positional=True),),
        examples=("config trust .", "config trust ./memory-mesh.toml", "config trust --list")),
    Operation("config trusted", "show every file that was trusted instead",
        handler="config_trusted", aliases={CLI: "config trust --list"}, target=()),
    Operation("config untrust", "End the trust in the memory-mesh.toml of a project.",
        handler="config_untrust", heading=SETUP, target=(), effect=WRITE,
        parameters=(
            Parameter("path", "the file, or its folder", kind=PATH, positional=True,
                      required=True),),
        examples=("config untrust .",)),
    Operation("model status", "Show where the local model is and whether it is ready. Exits with "
        "1 when it is not.",
        handler="model_status", heading=SETUP, target=(),
        examples=("model status", "model status --json")),
    Operation("model fetch", "Download the local model and make it ready. Does nothing when it is.",
        handler="model_fetch", heading=SETUP, target=(), effect=WRITE, examples=("model fetch",)),
    Operation("model check", "Send one short request to the language model and the embedder. "
        "Exits with 1 when one that is configured fails.",
        method="check_models", view="models", heading=SETUP, effect=WRITE,
        examples=("model check", "model check --json")),
    Operation("init", "Connect the coding agents of a project to this memory: write hooks, "
        "commands that they run by themselves; --remove takes them out again.",
        handler="init", heading=SETUP, target=("store",), effect=WRITE,
        parameters=(
            Parameter("path", "the folder of the project", kind=PATH, positional=True, default="."),
            Parameter("host", "only the hooks of this one", metavar="NAME", default="all",
                      choices=_words(*_HOSTS, "all")),
            Parameter("remove", "remove what init wrote", kind=SWITCH, default=False),
            _DRY_RUN),
        examples=("init", "init --host claude-code --dry-run", "init --remove")),
    *(Operation(f"host {host}", f"Answer a hook of {name}, whose JSON is read from standard input; "
        "init writes these commands.",
        handler="host", heading=SETUP, effect=WRITE, fixed={"host": host},
        parameters=(
            Parameter("event", "its event", metavar="EVENT", positional=True, required=True,
                      choices=_words("session-start", "user-prompt-submit", "stop", "session-end")),
            Parameter("wait", "capture a session before answering, not in the background",
                      kind=SWITCH, default=False)),
        examples=(f"host {host} session-start", f"host {host} stop --wait"))
      for host, name in _HOSTS.items()),
    Operation("host status", "Show the process that answers the hooks of coding agents. Exits with "
        "1 when it does not run.",
        handler="host_status", heading=SETUP, target=(), examples=("host status",)),
    Operation("host stop", "End the process that answers the hooks of coding agents. The next hook "
        "starts it again.",
        handler="host_stop", heading=SETUP, target=(), effect=WRITE, examples=("host stop",)),
    Operation("mcp", "Serve the memory to an agent by the Model Context Protocol, over standard "
        "input and output, or with --http.",
        handler="mcp", heading=SETUP, effect=WRITE,
        parameters=(
            Parameter("toolset", "offer these tools too", metavar="NAME", repeated=True,
                      choices=_words("lane", "graph", "notes", "traces", "review", "all"),
                      default_help="remember, recall, forget, context, learn, feedback"),
            Parameter("compat", "offer the tools of the official memory server of MCP instead",
                      metavar="NAME", choices=_words("server-memory")),
            Parameter("read_only", "offer only tools that change nothing", kind=SWITCH,
                      default=False),
            Parameter("http", "serve over HTTP, at /mcp", kind=SWITCH, default=False),
            Parameter("host", "the address to listen on, with --http", metavar="ADDRESS",
                      default="127.0.0.1"),
            Parameter("port", "the port to listen on, with --http", kind=INTEGER, default=8711)),
        examples=("mcp", "mcp --toolset lane --agent planner", "mcp --http --port 8711",
                  "mcp --compat server-memory")),
    Operation("serve", "Run the REST server until it is interrupted. It listens on this machine "
        "only, unless --host says otherwise.",
        handler="serve", heading=SETUP, effect=WRITE,
        parameters=(
            Parameter("server_host",
                      "the address to listen on; one that others can reach needs a token",
                      flag="--host", metavar="ADDRESS",
                      default_help="as configured, else 127.0.0.1"),
            Parameter("server_port", "the port to listen on", flag="--port", kind=INTEGER,
                      default_help="as configured, else 8710")),
        examples=("serve", "serve --port 8080 --store sqlite:///memory.db")),
    Operation("console", "Open the web console in a browser: a server for this machine only, "
        "until it is interrupted.",
        handler="console", heading=SETUP, effect=WRITE,
        parameters=(
            Parameter("port", "the port to listen on", kind=INTEGER, default=0,
                      default_help="one that is free"),
            Parameter("browser", "only print the link", flag="--no-browser", kind=SWITCH,
                      default=True)),
        examples=("console", "console --no-browser --port 8712 --store sqlite:///memory.db")),
    Operation("token create", "Create a token of the server, and show it once. As soon as there "
        "is one, every request needs a token.",
        handler="token_create", heading=SETUP, target=(), effect=WRITE,
        parameters=(
            Parameter("name", "what it is for", positional=True, required=True, metavar="NAME"),
            Parameter("user", "the user whose memory it opens", metavar="NAME",
                      default_help="as configured"),
            Parameter("agent", "only as this agent", metavar="NAME", default_help="any"),
            Parameter("project", "only in this project", metavar="NAME", default_help="any"),
            Parameter("read_only", "only for reading", kind=SWITCH, default=False),
            Parameter("expires", "how long it is valid", kind=DURATION, metavar="DURATION",
                      default=7_776_000)),
        examples=("token create laptop",
                  "token create dashboard --user ana --agent planner --read-only --expires 30d")),
    Operation("token list", "List the tokens of the server, without their secrets.",
        handler="token_list", heading=SETUP, target=(), examples=("token list",)),
    Operation("token revoke", "End a token of the server at once.",
        handler="token_revoke", heading=SETUP, target=(), effect=WRITE,
        parameters=(
            Parameter("id", "the id of the token", positional=True, required=True, metavar="ID"),),
        examples=("token revoke 3fa9c2d1",)),
    Operation("completion", "Print the completion script of a shell. Load it with: eval "
        '"$(memory-mesh completion bash)"',
        handler="completion", heading=SETUP, target=(),
        parameters=(
            Parameter("shell", "one of", metavar="SHELL", positional=True, required=True,
                      choices=_words("bash", "zsh", "fish")),
            Parameter("line", "print the completions of the last of these words", metavar="WORD",
                      positional=True, repeated=True)),
        examples=("completion bash", "completion zsh", "completion fish")),
    Operation("demo", "Run a short tour in a temporary memory: store, search, change, forget, "
        "prove.",
        handler="demo", heading=SETUP, target=(), examples=("demo",)),
    # --- for servers only: their arguments are lists and objects, or a command does more ---
    Operation("store-many", "Store many memories or chat messages, all or none. Of messages, only "
        "those after the stored turns are added.",
        method="add_many", view="stored_many", heading=STORE, effect=WRITE, exposed=REMOTE,
        progress="bar",
        parameters=(
            Parameter("items",
                      "each with content, and optionally metadata and key; or messages with role "
                      "and content",
                      kind=OBJECT),
            _METADATA, _DEDUPLICATE, _REPEATABLE)),
    Operation("lane judge", "Show what capture would keep of some messages, and what it would not "
        "keep and why. Nothing is stored.",
        method="lane.judge", view="judged", heading=READ, exposed=REMOTE,
        parameters=(Parameter("messages", "each with role and content", kind=OBJECT),)),
    Operation("junk-list", "Show memories that should not be there, such as logs, questions and "
        "repetitions, and change nothing.",
        method="lane.junk", view="junk_found", heading=MAINTAIN, exposed=frozenset({REST}),
        fixed={"archive": False},
        parameters=(
            Parameter("limit", "the maximum number of memories"),
            Parameter("newest", "judge only so many of the newest memories", default_help="all"))),
    Operation("graph store", "Store a memory with a claim: it corroborates or supersedes stored "
        "claims, or waits in quarantine for a review.",
        method="graph.store", view="graph_stored", heading=STORE, reader=_AGENT, effect=WRITE,
        exposed=REMOTE,
        parameters=(
            Parameter("text", "the text", blank=False),
            Parameter("category", "what kind of memory it is", blank=False),
            Parameter("importance", "how much it matters"),
            Parameter("tags", "tags"),
            Parameter("event_time", "when it happened"),
            Parameter("claim",
                      "what it states: subject, predicate, value; optionally exclusive, scope, "
                      "session_id, valid_from and valid_until"),
            Parameter("claims", "auto: find the claim in the text", choices=_words("off", "auto")),
            Parameter("provenance",
                      "its source: user_explicit, system, tool_output, user_implicit, document "
                      "or inference"),
            Parameter("quarantine", "store it quarantined in any case"),
            Parameter("on_conflict", "what happens if stored claims exclude it",
                      choices=_words("quarantine", "keep_active")),
            _METADATA, _REPEATABLE)),
    Operation("graph search", "Find memories, ranked by relevance, trust, recency and importance.",
        method="graph.search", view="graph_found", heading=READ, reader=_AGENT, exposed=REMOTE,
        parameters=(
            _SEARCH[0], _LIMIT,
            Parameter("min_similarity", "the lowest similarity to show"),
            Parameter("before", "only what happened until this time"),
            Parameter("after", "only what happened since this time"),
            Parameter("include_superseded", "also show superseded memories"),
            Parameter("include_disputed", "also show disputed memories"),
            Parameter("include_quarantined", "also show quarantined memories"),
            Parameter("include_all", "also show all but archived memories"),
            Parameter("explain", "show how each was found and ranked"),
            *_SEARCH[-2:])),
    Operation("graph traverse", "Show the memories within some links of a memory, nearest first.",
        method="graph.traverse", view="reached", heading=READ, exposed=REMOTE, extent=USER,
        parameters=(
            Parameter("start_id", "the id of the memory to start from"),
            Parameter("max_hops", "the maximum number of links", max_=20),
            Parameter("types", "follow links of these types only"))),
    Operation("graph link", "Link two memories.",
        method="graph.link", view="linked", heading=CHANGE, effect=WRITE, exposed=REMOTE,
        extent=USER,
        parameters=_LINK),
    Operation("graph unlink", "Remove a link that graph link added.",
        method="graph.unlink", view="unlinked", heading=CHANGE, effect=WRITE, exposed=REMOTE,
        extent=USER,
        parameters=_LINK),
    Operation("audit-verify", "Verify every audit chain, or those of an agent.",
        method="verify", view="verdicts", heading=MAINTAIN, exposed=frozenset({REST}),
        extent=SERVER,
        aliases={REST: "audit verify"}, progress="bar",
        parameters=(
            _CHAIN_AGENT,
            Parameter("head", "a head noted earlier, as audit head prints it", kind=HEAD),
            _CHAIN)),
    Operation("trace-record", "Record an execution.",
        method="traces.record", view="trace_recorded", heading=STORE, effect=WRITE, exposed=REMOTE,
        aliases={REST: "trace record"}, extent=SERVER,
        parameters=(
            Parameter("goal", "what was to be done; the first sentence is kept",
                      max_=100_000, blank=False),
            Parameter("status", "how it ended", choices=_words("success", "failure")),
            Parameter("duration_ms", "how long it took", min_=0, max_=10**15),
            Parameter("plan", "what was planned"),
            Parameter("results", "what came of it"),
            Parameter("steps", "the steps", blank=False),
            Parameter("learnings", "what was learnt", blank=False),
            Parameter("decisions", "the decisions, and why", blank=False),
            Parameter("tools_used", "the tools", blank=False),
            Parameter("files_created", "the files that were created", blank=False))),
    Operation("trace-similar", "Find earlier executions with a similar goal, of all projects: how "
        "they went, and what is recommended.",
        method="traces.similar", view="traces_similar", heading=READ, exposed=REMOTE, extent=SERVER,
        aliases={REST: "trace similar"},
        parameters=(
            Parameter("goal", "what is to be done"),
            Parameter("limit", "the maximum number of traces", max_=10_000),
            Parameter("min_similarity", "leave out less similar ones"))),
)
# fmt: on


def completed(operation: Operation) -> Operation:
    """Return an entry with what the signature of its method says about its parameters."""
    signature = _signatures().get(operation.method, {})
    parameters = []
    for one in operation.parameters:
        declared = dict(signature.get(one.name, ())) if not (one.into or one.option) else {}
        kind = declared.pop("kind", None)
        if kind and one.kind is Kind.TEXT and not one.choices:
            declared["kind"] = Kind(kind)
        if isinstance(declared.get("default"), list):
            declared["default"] = tuple(declared["default"])
        parameters.append(replace(one, **declared))
    return replace(operation, parameters=tuple(parameters))


@cache
def _signatures() -> dict[str, dict[str, dict[str, Any]]]:
    """Return the parameters of each method by name, with fields of `Parameter`."""
    file = Path(__file__).with_name("data") / "signatures.json"
    return json.loads(file.read_bytes())  # type: ignore[no-any-return]


def _commands() -> dict[str, tuple[Operation, ...]]:
    by_command: dict[str, tuple[Operation, ...]] = {}
    for operation in TABLE:
        if CLI in operation.exposed:
            by_command[operation.command] = (*by_command.get(operation.command, ()), operation)
    return by_command


# Each command with its entries: first the operation itself, then its variants.
COMMANDS = _commands()


@cache
def entries_of(command: str) -> tuple[Operation, ...]:
    """Return the entries of a command, complete."""
    return tuple(completed(one).variants[0] for one in COMMANDS[command])


def parameters(command: str) -> list[Parameter]:
    """Return every parameter that a command accepts: its own and those of its variants, each
    once, and the common ones."""
    entries = entries_of(command)
    known = {one.word: one for entry in entries for one in entry.parameters}
    for word, one in known.items():
        # What a variant does not require, the command does not.
        without = [
            entry
            for entry in entries
            if not any(own.word == word and own.required for own in entry.parameters)
        ]
        if one.required and without:
            hint = "" if entries[0] in without else f"; required without {without[0].switch}"
            known[word] = replace(one, required=False, cli_help=one.shown_help + hint)
    for entry in entries:
        if entry.switch and entry.switch not in known:
            known[entry.switch] = Parameter(
                entry.switch.removeprefix("--"), entry.summary, kind=Kind.SWITCH, default=False
            )
    common = [
        *([YES] if entries[0].confirm else []),
        JSON,
        JSONL,
        *(TARGET[name] for name in entries[0].target or ("none",)),
    ]
    return [*known.values(), *(one for one in common if one.word not in known)]
