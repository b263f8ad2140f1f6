"""Every operation that an interface offers, written once as plain data.

The command line and the servers are generated from this table. An entry names the method of the
mesh that it calls and the view of `render` that renders the result, or a function of
`cli.handlers` that does all of it. It is over 700 lines because it is the one table of all
operations.
"""

from collections.abc import Mapping
from dataclasses import replace

from memory_mesh.interfaces.operation import Effect, Extent, Interface, Kind, Operation, Parameter

STORE, READ, LEARN, CHANGE, REVIEW, DELETE, MAINTAIN, SETUP = (
    "Store", "Search and read", "Learn", "Change", "Review", "Delete", "Maintain", "Set up",
)  # fmt: skip
EVERYWHERE = frozenset(Interface)
REMOTE = frozenset({Interface.REST, Interface.MCP})
CLI_AND_REST = frozenset({Interface.CLI, Interface.REST})  # for people; an agent has no use for it

# Commands that only group other commands.
GROUPS = {
    "audit": "Verify, show and export the audit chains.",
    "hooks": "Show what waits for the hooks of writethrough, and deliver it.",
    "lane": "Store, find and rate what was learnt, by type.",
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
        kind=Kind.URL,
        default_help="as configured, else memory.db in the home folder",
    ),
    "none": Parameter(
        "store", "accepted by every command; this command uses no store", kind=Kind.URL
    ),
    "agent": Parameter("agent", "read and write as this agent", metavar="NAME"),
    "user": Parameter("user", "the user whose memory it is", metavar="NAME"),
    "session": Parameter("session", "the current session", metavar="NAME"),
    "project": Parameter(
        "project",
        "store in this project, and show its memories and those without a project",
        metavar="NAME",
    ),
    "preset": Parameter(
        "preset", "lane: use the database and the embedding model of Memory Lane", metavar="NAME"
    ),
}


JSON = Parameter(
    "json", "print the answer as JSON, and an error too", kind=Kind.SWITCH, default=False
)
JSONL = Parameter(
    "jsonl", "print JSON lines: one object for each item of a list", kind=Kind.SWITCH, default=False
)
YES = Parameter("yes", "do not ask for confirmation", kind=Kind.SWITCH, default=False)


def _words(*words: str) -> Mapping[str, object]:
    return {word: word for word in words}


_HOSTS = _words("claude-code", "opencode")
_SAMPLE = "mem_1760000000000_3fa9c2"
_ID = Parameter("id", "the id of the memory", metavar="ID", required=True, bare=True)
_ID_OR_KEY = (
    replace(_ID, required=False),
    Parameter("key", "its key, instead of the id", metavar="KEY"),
)
_MEMORY = replace(_ID, name="memory_id", flag="--id")
_SAMPLE_CONFLICT = "conflict_1760000000000_3fa9c2"
_REASON = Parameter("reason", "why, for the history")
_LIMIT = Parameter("limit", "the maximum number", kind=Kind.INTEGER, default=10)
_METADATA = Parameter("metadata", "further metadata, as a JSON object", kind=Kind.OBJECT)
_REPEATABLE = Parameter(
    "idempotency_key", "a repeated call with this key stores once", metavar="KEY"
)
_DEDUPLICATE = Parameter(
    "deduplicate", "whether a text that is stored already is counted instead of stored again",
    metavar="YES_NO", choices={"yes": True, "no": False}, default_help="as configured",
)  # fmt: skip
_LINK = (
    Parameter("source_id", "the id of the memory that the link starts from", required=True),
    Parameter("target_id", "the id of the other memory", required=True),
    Parameter("type", "related, cause, or a name of yours", required=True),
)
_TYPE_HELP = "global, agent, session …, or a word of yours"
_SAMPLE_SKILL = "skill_1760000000000_3fa9c2"
_SKILL = replace(_ID, help="the id of the skill")
_SKILL_METADATA = (
    Parameter("type", _TYPE_HELP, metavar="TYPE", into="metadata"),
    _METADATA,
    _REPEATABLE,
)
_STATUS = Parameter(
    "status", "only memories of this status; may be repeated", metavar="STATUS", repeated=True,
    default=("active",),
    choices=_words("active", "superseded", "disputed", "quarantined", "archived"),
)  # fmt: skip
_FILTER = Parameter(
    "filter", "an expression such as: memory_type = 'global' AND tags = 'ops'", metavar="EXPR"
)
_CHAIN = Parameter(
    "recalls", "the chains of memories or those of searches", flag="--chain", metavar="KIND",
    default_help="both", choices={"main": False, "recalls": True},
)  # fmt: skip
_CHAIN_AGENT = Parameter(
    "agent_id", "only the chains of this agent", flag="--agent", metavar="NAME"
)
_LOG = (
    _CHAIN_AGENT, Parameter("limit", _LIMIT.help, kind=Kind.INTEGER, default=20),
    Parameter(
        "operation", "only blocks of this operation", metavar="NAME",
        choices=_words("retain", "recall", "reflect", "synthesize", "lesson"),
    ),
    _CHAIN,
)  # fmt: skip
_EXPORT = (
    _CHAIN_AGENT,
    Parameter("out", "a new file", kind=Kind.PATH, metavar="FILE", option=True,
              default_help="standard output"),
    Parameter(
        "as_json", "json can be verified; wire is the YAMO format", flag="--format", metavar="NAME",
        default=True, choices={"json": True, "wire": False},
    ),
    _CHAIN,
)  # fmt: skip
# It shows the texts of every scope, so operations with it are separate entries that no server
# exposes.
_AUDITOR = Parameter(
    "auditor",
    "show the texts of every agent and session; a block records this name",
    metavar="NAME",
)
_MODE = Parameter(
    "mode", "precise leaves out what is probably irrelevant, recall very little", metavar="MODE",
    choices=_words("recall", "precise"), cli_default="precise",
)  # fmt: skip
_SEARCH = (
    Parameter(
        "query",
        "words to search for",
        kind=Kind.WORDS,
        metavar="QUERY",
        positional=True,
        required=True,
    ),
    _LIMIT,
    _FILTER,
    _MODE,
    Parameter(
        "min_score",
        "the lowest score to show, whatever the mode",
        kind=Kind.FRACTION,
        default_help="set by the mode",
    ),
    Parameter(
        "ranker",
        "how to rank",
        metavar="NAME",
        choices=_words("learnt", "deep", "rrf"),
        default_help="as configured",
    ),
    _STATUS,
    Parameter(
        "as_of", "what was valid at this time, as is known now; such as 2026-03-01", metavar="TIME"
    ),
    Parameter("known_at", "what was stored and believed at this time", metavar="TIME"),
)
_LANE_STORE = (
    Parameter("content", "the text; - reads standard input", kind=Kind.INPUT, required=True,
              bare=True),
    Parameter(
        "memory_type", "what kind of learning it is", flag="--type", metavar="TYPE", required=True,
        choices=_words("correction", "decision", "commitment", "insight", "learning", "confidence",
                       "pattern_seed", "cross_agent", "workflow_note", "gap"),
    ),
    Parameter("confidence_score", "how sure it is, from 0 to 100", flag="--confidence",
              kind=Kind.INTEGER, default=70),
    Parameter("entity_slugs", "what it is about, such as project:atlas; may be repeated",
              flag="--entity", metavar="ENTITY", repeated=True, default_help="found in the text"),
    Parameter("tags", "a tag; may be repeated", flag="--tag", metavar="TAG", repeated=True,
              default=()),
    Parameter("collection", "the collection to store it in", metavar="NAME",
              default_help="the project, else memory-lane"),
    Parameter("source_chunk", "the text that it was learnt from"),
    Parameter("valid_from", "the time from which it holds", metavar="TIME"),
    Parameter("valid_until", "the time until which it holds", metavar="TIME"),
    Parameter("supersedes", "a memory that it takes the place of; may be repeated", metavar="ID",
              repeated=True, default=()),
    _METADATA, _REPEATABLE,
)  # fmt: skip
_LANE_FIND = (
    _SEARCH[0], _LIMIT,
    Parameter("collection", "search this collection only", metavar="NAME"),
    Parameter("entities", "only what is about it, such as project:atlas or atlas; may be repeated",
              flag="--entity", metavar="ENTITY", repeated=True, default=()),
    Parameter("min_score", "the lowest similarity to show", kind=Kind.FRACTION,
              default_help="0.2, with --entity 0.15"),
    Parameter("memory_types", "only memories of this type; may be repeated", flag="--type",
              metavar="TYPE", repeated=True, default=()),
    Parameter("include_superseded", "also show superseded memories", kind=Kind.SWITCH,
              default=False),
    Parameter("include_expired", "also show what is not valid any more, or not yet",
              kind=Kind.SWITCH, default=False),
    Parameter("as_of", "what was valid at this time, such as 2026-03-01", metavar="TIME"),
)  # fmt: skip
# The parameters of a method of the graph that name its reader.
_AGENT = {"agent": "agent_id"}
_AGENT_SESSION = {**_AGENT, "session_id": "session_id"}
_MAX_CHARS = Parameter(
    "max_chars",
    "show results while their texts have at most so many characters together",
    kind=Kind.INTEGER,
    default_help="no limit",
)
_MAX_TOKENS = Parameter(
    "max_tokens",
    "with --for-model: the maximum number of tokens of the whole text",
    kind=Kind.INTEGER,
    option=True,
)
_TOPIC = (
    Parameter("topic", "what it is about", default_help="the newest memories"),
    Parameter(
        "include_reflections", "also read earlier reflections", kind=Kind.SWITCH, default=False
    ),
    _REPEATABLE,
)
_VERIFY = Parameter(
    "verify",
    "look for it everywhere before and after; exits with 1 if something is left",
    kind=Kind.SWITCH,
    default=False,
)
_APPLY = Parameter(
    "dry_run",
    "do it; without this it is only shown",
    kind=Kind.SWITCH,
    flag="--apply",
    default=False,
    cli_default=True,
)
# Of `stores.imports`.
_FORMATS = {
    name: name
    for name in ("memories", "archive", "store", "mem0", "mcp", "memory-lane", "neolata", "yamo")
}
_DRY_RUN = Parameter(
    "dry_run", "show what would be done, and change nothing", kind=Kind.SWITCH, default=False
)
_JOBS = (
    Parameter(
        "jobs", "run this job only; may be repeated", flag="--job", metavar="NAME", repeated=True,
        choices=_words(
            "guard", "anchor", "hooks", "distillation", "decay", "consolidation", "traces",
            "retention", "reembedding", "compaction",
        ),
    ),
    Parameter("force", "run also what is not due", kind=Kind.SWITCH, default=False),
)  # fmt: skip

_IMPORTANCE = _words("low", "medium", "high", "critical")
_TASK = (
    Parameter(
        "task",
        "what the agent is about to do",
        kind=Kind.WORDS,
        metavar="TASK",
        positional=True,
        required=True,
    ),
    Parameter("agent_name", "the agent that does it", metavar="NAME", default=""),
    Parameter("current_plan", "its plan", flag="--plan"),
)
_INJECTED = (
    Parameter("max_memories", "the maximum number of notes", kind=Kind.INTEGER, flag="--limit",
              default_help="that of the agent"),
    Parameter("min_importance", "leave out less important notes", metavar="WORD",
              choices=_IMPORTANCE, default_help="that of the agent"),
)  # fmt: skip
# fmt: off
_EPISODES = (
    Parameter("gap", "the pause that ends an episode", kind=Kind.DURATION, default=1800),
    Parameter("min_similarity", "end an episode also where the topic changes: below this cosine",
              kind=Kind.FRACTION, default_help="off"),
)
OPERATIONS = (
    Operation(
        name="store", method="add", view="stored", heading=STORE, effect=Effect.WRITE,
        exposed=EVERYWHERE,
        summary="Store a text as a memory. A text that is stored already, in the same scope, is "
                "counted instead.",
        parameters=(
            Parameter("content", "the text; - reads standard input", kind=Kind.INPUT, required=True,
                      bare=True),
            Parameter("type", _TYPE_HELP, metavar="TYPE", into="metadata"),
            Parameter("rationale", "why it is worth keeping", into="metadata"),
            Parameter("hypothesis", "what it was expected to show", into="metadata"),
            Parameter("tags", "a tag; may be repeated", flag="--tag", metavar="TAG", repeated=True,
                      into="metadata"),
            _METADATA,
            Parameter("key", "a key of yours: what is stored under it is replaced", metavar="KEY"),
            _DEDUPLICATE, _REPEATABLE,
        ),
        examples=(
            'store "The deploy key rotates on Mondays."',
            'store "Ana prefers tea." --type agent --tag people --agent concierge',
            'store - --metadata \'{"source": "minutes"}\' < minutes.txt',
            'store "Ana is on holiday." --key ana/status',
            "store --messages chat.jsonl --session trip",
        ),
    ),
    Operation(
        name="store-messages", handler="store_messages",
        aliases={Interface.CLI: "store --messages"}, effect=Effect.WRITE,
        summary="store the messages of a conversation; only those after the stored turns are added",
        parameters=(
            Parameter("file",
                      "store chat messages: a file with a JSON list or JSON lines; - reads "
                      "standard input",
                      flag="--messages", kind=Kind.PATH, metavar="FILE"),
            _METADATA, _REPEATABLE,
        ),
    ),
    Operation(
        name="ingest-dir", method="ingest_dir", view="ingested", heading=STORE, effect=Effect.WRITE,
        progress="lines",
        summary="Store each file of a folder as a memory. A second run stores what is new or "
                "changed and lists what is gone.",
        parameters=(
            Parameter("path", "the folder", kind=Kind.PATH, positional=True, required=True),
            Parameter("extension", "read files with this ending; may be repeated", metavar="EXT",
                      default=".md", repeated=True),
            Parameter("type", _TYPE_HELP, metavar="TYPE"),
            Parameter("recursive", "also read sub-folders", kind=Kind.SWITCH, default=False),
        ),
        examples=("ingest-dir notes",
                  "ingest-dir notes --recursive --extension md --extension txt --type agent"),
    ),
    Operation(
        name="extract", method="extract", view="extracted", heading=STORE, effect=Effect.WRITE,
        progress="bar", exposed=EVERYWHERE,
        summary="Extract memories from a text with the language model. Without one, or when it "
                "fails, the text is stored whole.",
        parameters=(
            Parameter("text", "the text; - reads standard input", kind=Kind.INPUT, flag="--content",
                      required=True, bare=True),
            Parameter("min_importance", "drop memories of lower importance", kind=Kind.FRACTION,
                      default=0.4),
            _METADATA, _REPEATABLE,
        ),
        examples=("extract - < conversation.txt",
                  "extract - --min-importance 0.6 --session s42 < notes.txt"),
    ),
    Operation(
        name="search", method="search", formatter="format_results", view="found", heading=READ,
        exposed=EVERYWHERE, parameters=(*_SEARCH, replace(_MAX_CHARS, shared=True)),
        summary="Find the memories that answer a query, highest score first.",
        examples=(
            'search "when does the deploy key rotate?"',
            "search deploy key --limit 3 --filter \"tags = 'ops'\"", "search deploy key --explain",
        ),
    ),
    Operation(
        name="explain", method="explain", view="explained",
        aliases={Interface.CLI: "search --explain"}, exposed=EVERYWHERE,
        summary="show why: the rank and score of each channel, and what was left out",
        parameters=_SEARCH,
    ),
    Operation(
        name="search-for-model", method="search", formatter="format_for_model", view="fenced",
        exposed=EVERYWHERE,
        aliases={Interface.CLI: "search --for-model"},
        summary="print the memories as data for a prompt: fenced, with a notice to the model",
        parameters=(*_SEARCH, _MAX_CHARS, _MAX_TOKENS),
    ),
    Operation(
        name="lane store", method="lane.store", view="lane_stored", heading=STORE,
        effect=Effect.WRITE, exposed=EVERYWHERE, aliases={Interface.MCP: "memory_lane_store"},
        summary="Store what was learnt, by type. What is known already is counted as "
                "observed again.",
        parameters=_LANE_STORE,
        examples=(
            'lane store "Use pnpm, not npm." --type correction --entity project:atlas',
            'lane store "The cache lives in Redis." --type decision --confidence 90 --tag infra',
        ),
    ),
    Operation(
        name="lane find", method="lane.find", view="lane_found", heading=READ, exposed=EVERYWHERE,
        parameters=_LANE_FIND, aliases={Interface.MCP: "memory_lane_find"},
        summary="Find what was learnt. The score is similarity × weight of the type × decay "
                "× feedback.",
        examples=('lane find "which package manager?"',
                  "lane find deploy --type decision --as-of 2026-03-01 --json"),
    ),
    Operation(
        name="lane feedback", method="lane.feedback", view="lane_rated", heading=REVIEW,
        effect=Effect.WRITE, exposed=EVERYWHERE, aliases={Interface.MCP: "memory_lane_feedback"},
        summary="Rate a memory: helpful raises its rank in `lane find` by a tenth, harmful "
                "halves it.",
        parameters=(
            replace(_ID, positional=True, bare=False),
            Parameter("signal", "helpful or harmful", positional=True, required=True,
                      choices=_words("helpful", "harmful"), metavar="SIGNAL"),
        ),
        examples=(f"lane feedback {_SAMPLE} helpful", f"lane feedback {_SAMPLE} harmful --json"),
    ),
    Operation(
        name="context", method="graph.context", view="context", reader=_AGENT, heading=READ,
        exposed=EVERYWHERE,
        summary="Print what is relevant to a query as one text for a prompt, packed into a budget "
                "of tokens.",
        parameters=(
            _SEARCH[0],
            Parameter("max_tokens", "the maximum size of the whole text", kind=Kind.INTEGER,
                      default_help="no limit"),
            Parameter("max_memories", "the maximum number of memories", kind=Kind.INTEGER,
                      default_help="15, with --max-tokens 100"),
            Parameter("min_score", "the lowest chance of being relevant", kind=Kind.FRACTION,
                      default_help="as measured"),
            Parameter("packing",
                      "what is divided by the tokens: the chance that it is relevant and the "
                      "score, or only the score",
                      metavar="NAME", choices=_words("relevance", "composite"),
                      default="relevance"),
            Parameter("before", "only what happened until this time", metavar="TIME"),
            Parameter("after", "only what happened since this time", metavar="TIME"),
            *_SEARCH[-2:],
            Parameter("explain", "show each candidate and why it was left out", kind=Kind.SWITCH,
                      default=False),
        ),
        examples=("context deploy key --max-tokens 400",
                  "context deploy key --max-tokens 400 --explain"),
    ),
    Operation(
        name="episodes", method="graph.episodes", view="episodes", reader=_AGENT_SESSION,
        heading=READ, exposed=EVERYWHERE,
        summary="List the conversations and stretches of work that the memories belong to, "
                "newest first.",
        parameters=(
            *_EPISODES,
            Parameter("since", "only what goes on at or after this time", metavar="TIME"),
            Parameter("until", "only what began until this time", metavar="TIME"),
            Parameter("limit", "the maximum number of episodes", kind=Kind.INTEGER, default=20),
        ),
        examples=("episodes --gap 2h", "episodes --summarize episode_1760000000000_3fa9c2",
                  "episodes --session s1 --json"),
    ),
    Operation(
        name="episode-summary", method="graph.summarize_episode", view="episode_summary",
        reader=_AGENT, aliases={Interface.CLI: "episodes --summarize"}, exposed=EVERYWHERE,
        summary="show what this episode says, with the source of each sentence",
        parameters=(Parameter("episode", "show what this episode says", flag="--summarize",
                              metavar="EPISODE", required=True),
                    *_EPISODES),
    ),
    Operation(
        name="episode-digest", method="graph.summarize_episode", view="episode_summary",
        reader=_AGENT, fixed={"store": True}, aliases={Interface.CLI: "episodes --digest"},
        effect=Effect.WRITE, exposed=EVERYWHERE,
        summary="show what this episode says, and store it as a digest",
        parameters=(
            Parameter("episode", "the same, and store it as a digest", flag="--digest",
                      metavar="EPISODE", required=True),
            *_EPISODES,
        ),
    ),
    Operation(
        name="links", method="graph.links", view="links", heading=READ, parameters=(_MEMORY,),
        exposed=EVERYWHERE, extent=Extent.USER,
        summary="Show the memories that a memory is linked to, most similar first.",
        examples=(f"links {_SAMPLE}", f"links {_SAMPLE} --json"),
    ),
    Operation(
        name="get", method="get", view="record", heading=READ, exposed=EVERYWHERE,
        parameters=_ID_OR_KEY, summary="Show one memory or skill, whatever its status.",
        examples=(f"get {_SAMPLE}", "get --key ana/status"),
    ),
    Operation(
        name="list", method="get_all", view="listed", heading=READ, exposed=EVERYWHERE,
        summary="List memories, newest first.",
        parameters=(Parameter("limit", _LIMIT.help, kind=Kind.INTEGER, cli_default=20), _FILTER,
                    _STATUS,
                    Parameter("after", "continue behind this memory, the last one of a page",
                              metavar="ID")),
        examples=("list --limit 5", f"list --after {_SAMPLE}",
                  "list --filter \"memory_type = 'agent'\" --agent planner"),
    ),
    Operation(
        name="history", method="history", view="history", heading=READ, exposed=EVERYWHERE,
        parameters=(_ID,), summary="Show the revisions of a memory or skill, oldest first.",
        examples=(f"history {_SAMPLE}", f"history {_SAMPLE} --sightings"),
    ),
    Operation(
        name="sightings", method="sightings", view="sightings",
        aliases={Interface.CLI: "history --sightings"}, exposed=EVERYWHERE,
        summary="show the agents and sessions that stored the same text", parameters=(_ID,),
    ),
    Operation(
        name="lessons", method="query_lessons", view="lessons", heading=LEARN, exposed=EVERYWHERE,
        summary="Show the lessons that are relevant to a query; without a query all lessons, most "
                "severe first.",
        parameters=(
            Parameter("query", "what they should be relevant to", kind=Kind.WORDS, metavar="QUERY",
                      positional=True, default=""),
            _LIMIT,
            Parameter("order_by", "the order", metavar="ORDER",
                      choices=_words("relevance", "severity DESC")),
            replace(_MODE, default="precise"),
        ),
        examples=("lessons", "lessons deploying to production --limit 5",
                  'lessons deploy --order-by "severity DESC"'),
    ),
    Operation(
        name="distill", method="distill", view="distilled", heading=LEARN, effect=Effect.WRITE,
        exposed=EVERYWHERE, extent=Extent.USER,
        summary="Derive lessons from the failures of the last day; or, with flags, store "
                "one lesson.",
        examples=(
            "distill",
            'distill --pattern token_expired --rule "Refresh the token before a deploy." '
            '--situation "The deploy failed." --oversight "Nobody looked at the expiry." --fix "A '
            'new token." --severity high --scope deploys',
        ),
    ),
    Operation(
        name="distill-lesson", method="distill_lesson", view="lesson",
        aliases={Interface.CLI: "distill"}, effect=Effect.WRITE, exposed=EVERYWHERE,
        summary="Store one lesson.",
        parameters=(
            Parameter("error_pattern", "a stable name of the error", flag="--pattern",
                      metavar="NAME", into="context", required=True),
            Parameter("preventative_rule", "what to do or avoid in future", flag="--rule",
                      into="context", required=True),
            Parameter("situation", "what happened", into="context", required=True),
            Parameter("oversight", "what was missed", into="context", required=True),
            Parameter("fix", "how it was resolved", into="context", required=True),
            Parameter("severity", "how bad it was", metavar="LEVEL", into="context", required=True,
                      choices=_words("critical", "high", "medium", "low")),
            Parameter("applicable_scope", "when and where the rule applies", flag="--scope",
                      into="context", required=True),
            Parameter("inverse_lesson", "what succeeds instead", flag="--inverse", into="context"),
            Parameter("confidence", "how sure the rule is", kind=Kind.FRACTION, into="context",
                      default_help="0.7"),
            _REPEATABLE,
        ),
    ),
    Operation(
        name="reflect", method="reflect", view="reflection", heading=LEARN, effect=Effect.WRITE,
        exposed=EVERYWHERE,
        summary="Store the main statements of recent memories, with their sources, as a "
                "reflection.",
        parameters=(
            *_TOPIC[:1],
            Parameter("lookback", "how many memories to read", kind=Kind.INTEGER, default=10),
            *_TOPIC[1:],
        ),
        examples=("reflect", "reflect --topic deploys --lookback 20"),
    ),
    Operation(
        name="synthesize", method="synthesize", view="reflection", heading=LEARN,
        effect=Effect.WRITE, exposed=EVERYWHERE,
        summary="Store the main statements of up to 100 memories, on a topic or the newest.",
        parameters=_TOPIC, examples=("synthesize --topic deploys",),
    ),
    Operation(
        name="ingest-skill", method="ingest_skill", view="skill_ingested", heading=LEARN,
        effect=Effect.WRITE, exposed=EVERYWHERE,
        summary="Store a skill. One of the same file or name gets a new revision, and keeps its "
                "reliability.",
        parameters=(
            Parameter("yamo_text", "the text; - reads standard input", kind=Kind.INPUT,
                      flag="--content", required=True, bare=True),
            *_SKILL_METADATA,
        ),
        examples=("ingest-skill --file skills/deploy.yamo",
                  "ingest-skill --file skills/pdf --type agent", "ingest-skill - < deploy.yamo"),
    ),
    Operation(
        name="ingest-skill-file", handler="ingest_skill",
        aliases={Interface.CLI: "ingest-skill --file"}, effect=Effect.WRITE,
        summary="read the text from a file",
        parameters=(
            Parameter("file", "read the text from this file, or from SKILL.md in this folder",
                      kind=Kind.PATH, metavar="FILE"),
            *_SKILL_METADATA,
        ),
    ),
    Operation(
        name="search-skills", method="search_skills", view="skills_found", heading=LEARN,
        exposed=EVERYWHERE, summary="Find the skills that fit a task, highest score first.",
        parameters=(
            _SEARCH[0], replace(_LIMIT, default=5),
            Parameter("min_score", "the lowest score to show", kind=Kind.FRACTION, default=0.0),
        ),
        examples=("search-skills deploy the site", "search-skills fill a form --limit 1"),
    ),
    Operation(
        name="list-skills", method="list_skills", view="skills_listed", heading=LEARN,
        exposed=EVERYWHERE, summary="List the active skills, newest first.",
        parameters=(replace(_LIMIT, default=None, default_help="all"),),
        examples=("list-skills", "list-skills --limit 5"),
    ),
    Operation(
        name="skill-feedback", method="update_skill_reliability", view="skill_used", heading=LEARN,
        effect=Effect.WRITE, exposed=EVERYWHERE,
        summary="Record that a skill was used: success adds 0.1 to its reliability, failure "
                "takes 0.2.",
        parameters=(
            _SKILL,
            Parameter("success", "whether it worked", metavar="TRUE|FALSE", required=True,
                      choices={"true": True, "false": False}),
            _REPEATABLE,
        ),
        examples=(f"skill-feedback --id {_SAMPLE_SKILL} --success true",),
    ),
    Operation(
        name="skill-prune", method="prune_skills", view="skills_pruned", heading=LEARN,
        effect=Effect.WRITE, exposed=EVERYWHERE,
        summary="Archive the skills that are less reliable than a threshold. None is erased.",
        parameters=(Parameter("threshold", "the lowest reliability to keep, 0.0-1.0",
                              kind=Kind.FRACTION, default=0.3),),
        examples=("skill-prune", "skill-prune --threshold 0.5"),
    ),
    Operation(
        name="lesson-to-skill", method="lesson_to_skill", view="skill_ingested", heading=LEARN,
        effect=Effect.WRITE, exposed=EVERYWHERE,
        summary="Store a lesson as a skill. Deleting the lesson deletes the skill.",
        parameters=(Parameter("lesson_id", "the id of the lesson or of its memory", flag="--id",
                              metavar="ID", required=True, bare=True),),
        examples=("lesson-to-skill lesson_1760000000000_3fa9c2",),
    ),
    Operation(
        name="sync-skills", method="sync_skills", view="skills_synced", heading=LEARN,
        effect=Effect.WRITE,
        summary="Read the skill files of the settings. Exits with 1 when one cannot be read.",
        examples=("sync-skills",),
    ),
    Operation(
        name="heritage", method="insert_heritage", view="heritage", heading=CHANGE,
        effect=Effect.WRITE, exposed=EVERYWHERE,
        summary="Set what led to a memory, oldest first; get shows it. The lists replace an "
                "earlier heritage.",
        parameters=(
            Parameter("memory_id", _ID.help, flag="--id", metavar="ID", required=True, bare=True),
            *(Parameter(name, f"{what}; may be repeated", flag=flag, repeated=True, into="heritage")
              for name,
              flag, what in (
                  ("intent_chain", "--intent", "an intent"),
                  ("hypotheses", "--hypothesis", "what was expected"),
                  ("rationales", "--rationale", "why it was decided"),
              )),
        ),
        examples=((f'heritage {_SAMPLE} --intent "ship 1.2" --hypothesis "the cache is stale" '
                   '--rationale "two reports"'),),
    ),
    Operation(
        name="update", method="update", view="updated", heading=CHANGE, effect=Effect.WRITE,
        exposed=EVERYWHERE,
        summary="Write a new revision of a memory; the old one stays in its history.",
        parameters=(
            _ID,
            Parameter("content", "the new text; - reads standard input", kind=Kind.INPUT,
                      bare=True),
            Parameter("metadata", "keys to set, as a JSON object; null removes a key",
                      kind=Kind.OBJECT),
            Parameter("why", "the reason, for the history"),
            _REPEATABLE,
        ),
        examples=(
            f'update {_SAMPLE} "The key rotates on Fridays." --why "new plan"',
            f"update {_SAMPLE} --metadata '{{\"source\": null}}'",
        ),
    ),
    Operation(
        name="pin", method="pin", view="pinned", heading=CHANGE, effect=Effect.WRITE,
        exposed=EVERYWHERE, summary="Pin a memory, so that it never decays.",
        parameters=(_ID,
                    Parameter("pinned", "unpin it: let it decay again", kind=Kind.SWITCH,
                              flag="--off", default=True)),
        examples=(f"pin {_SAMPLE}", f"pin {_SAMPLE} --off"),
    ),
    Operation(
        name="end-session", method="end_session", view="ended_session", heading=CHANGE,
        effect=Effect.WRITE, exposed=EVERYWHERE,
        summary="End a session: archive the memories of type session that this agent stored in it.",
        parameters=(
            Parameter("session_id", "the session to end", flag="--session", metavar="NAME",
                      required=True, bare=True),
        ),
        target=("store", "agent", "user"),
        examples=("end-session s42", "end-session --session s42 --agent planner"),
    ),
    Operation(
        name="review", handler="review", heading=REVIEW, effect=Effect.WRITE,
        summary="Decide about quarantined memories, one after another, at a terminal. Elsewhere it "
                "lists them.",
        examples=("review", f'review --activate {_SAMPLE} --reason "checked by phone"',
                  f"review --undo {_SAMPLE}"),
    ),
    Operation(
        name="review-activate", method="graph.review_quarantine", view="reviewed",
        fixed={"action": "activate"}, aliases={Interface.CLI: "review --activate"},
        effect=Effect.WRITE, exposed=EVERYWHERE, extent=Extent.USER, summary="make a memory active",
        parameters=(
            replace(_MEMORY, flag="--activate",
                    help="make it active, and supersede the claims that exclude it", bare=False),
            _REASON,
        ),
    ),
    Operation(
        name="review-reject", method="graph.review_quarantine", view="reviewed",
        fixed={"action": "reject"}, aliases={Interface.CLI: "review --reject"}, effect=Effect.WRITE,
        exposed=EVERYWHERE, extent=Extent.USER, summary="archive a memory",
        parameters=(
            replace(_MEMORY, flag="--reject",
                    help="archive it, and keep the claims that exclude it", bare=False),
            _REASON,
        ),
    ),
    Operation(
        name="review-keep-both", method="graph.review_quarantine", view="reviewed",
        fixed={"action": "keep_both"}, aliases={Interface.CLI: "review --keep-both"},
        effect=Effect.WRITE, exposed=EVERYWHERE, extent=Extent.USER,
        summary="make a memory active beside others",
        parameters=(
            replace(_MEMORY, flag="--keep-both",
                    help="make it active beside the claims that exclude it", bare=False),
            _REASON,
        ),
    ),
    Operation(
        name="review-undo", method="graph.undo_review", view="reviewed",
        aliases={Interface.CLI: "review --undo"}, exposed=EVERYWHERE, extent=Extent.USER,
        effect=Effect.WRITE, summary="take back a decision",
        parameters=(replace(_MEMORY, flag="--undo", help="take back the last decision about it",
                            bare=False),),
    ),
    Operation(
        name="quarantined", method="graph.list_quarantined", view="quarantined", heading=REVIEW,
        exposed=EVERYWHERE, extent=Extent.USER,
        summary="List the memories of every agent that wait for a review, newest first.",
        parameters=(
            Parameter("agent", "only those of this agent", metavar="NAME"),
            Parameter("limit", _LIMIT.help, kind=Kind.INTEGER, default=50),
        ),
        examples=("quarantined", "quarantined --agent planner --limit 5"),
    ),
    Operation(
        name="conflicts", method="graph.conflicts", view="conflicts", heading=REVIEW,
        exposed=EVERYWHERE, extent=Extent.USER,
        summary="List the claims that exclude each other and wait for a decision.",
        parameters=(
            Parameter("status", "pending or resolved ones", metavar="STATUS", default="pending",
                      choices=_words("pending", "resolved")),
        ),
        examples=("conflicts", "conflicts --status resolved",
                  f"conflicts --resolve {_SAMPLE_CONFLICT} --keep new"),
    ),
    Operation(
        name="resolve-conflict", method="graph.resolve_conflict", view="reviewed",
        exposed=EVERYWHERE, extent=Extent.USER,
        aliases={Interface.CLI: "conflicts --resolve"}, effect=Effect.WRITE,
        summary="resolve a conflict",
        parameters=(
            Parameter("conflict_id", "resolve this conflict", flag="--resolve", metavar="CONFLICT",
                      required=True),
            Parameter("keep", "with --resolve: what stays", metavar="WHICH", required=True,
                      choices=_words("new", "existing", "both")),
            _REASON,
        ),
    ),
    Operation(
        name="explain-memory", method="graph.explain_memory", view="explained_memory",
        heading=REVIEW, exposed=EVERYWHERE, extent=Extent.USER,
        aliases={Interface.CLI: "explain"},
        parameters=(
            _MEMORY,
            Parameter("as_of", "say whether it was valid at this time", metavar="TIME",
                      default_help="now"),
            Parameter("known_at", "explain it as it was known at this time", metavar="TIME",
                      default_help="now"),
        ),
        summary="Show why a memory is trusted, its claim and status, and what it supersedes, links "
                "to and excludes.",
        examples=(f"explain {_SAMPLE}", f"explain {_SAMPLE} --known-at 2026-01-31 --json"),
    ),
    Operation(
        name="reinforce", method="graph.reinforce", view="feedback", heading=REVIEW,
        effect=Effect.WRITE, exposed=EVERYWHERE, extent=Extent.USER,
        summary="Confirm a memory: it is trusted more, and more important.",
        parameters=(_MEMORY,
                    Parameter("boost", "how much more important", kind=Kind.FRACTION, default=0.1)),
        examples=(f"reinforce {_SAMPLE}", f"reinforce {_SAMPLE} --boost 0.3"),
    ),
    Operation(
        name="dispute", method="graph.dispute", view="feedback", heading=REVIEW,
        effect=Effect.WRITE, exposed=EVERYWHERE, extent=Extent.USER,
        summary="Dispute a memory: it is trusted less, and hidden when disputes outnumber "
                "reinforcements.",
        parameters=(_MEMORY, _REASON),
        examples=(f'dispute {_SAMPLE} --reason "the invoice says 650"',),
    ),
    Operation(
        name="delete", method="erase", view="deleted", heading=DELETE, effect=Effect.DESTRUCTIVE,
        exposed=EVERYWHERE,
        summary="Erase a memory for good: its text, its history, and everything derived from "
                "it alone.",
        parameters=(
            *_ID_OR_KEY,
            Parameter("files", "also take a note that people wrote out of its file",
                      kind=Kind.SWITCH, default=False),
            _VERIFY,
        ),
        examples=(f"delete {_SAMPLE}", "delete --key ana/status", f"delete {_SAMPLE} --verify"),
    ),
    Operation(
        name="delete-all", method="delete_all", view="deleted_all", heading=DELETE,
        effect=Effect.DESTRUCTIVE, exposed=EVERYWHERE, extent=Extent.USER,
        summary="Erase all memories of a scope for good, of every agent; each further flag narrows "
                "the scope.",
        parameters=(
            Parameter("user_id", "memories of this user; alone: all of them", flag="--user",
                      metavar="NAME"),
            Parameter("agent_id", "memories that this agent stored", flag="--agent",
                      metavar="NAME"),
            Parameter("session_id", "memories of this session", flag="--session", metavar="NAME"),
            Parameter("project", "memories of this project", metavar="NAME"),
            Parameter("memory_type", "memories of this type", flag="--type", metavar="TYPE",
                      choices=_words("global", "session", "agent", "lesson", "reflection")),
        ),
        target=("store", "user"), confirm="Erase every memory of {given} for good?",
        examples=("delete-all --agent planner", "delete-all --session s42 --yes"),
    ),
    Operation(
        name="forget", method="forget", view="forgotten", heading=DELETE, effect=Effect.DESTRUCTIVE,
        exposed=EVERYWHERE, extent=Extent.USER,
        summary="Erase everything of a user for good: memories of every agent, searches and "
                "idempotency keys.",
        parameters=(
            Parameter("user_id", "the user to forget", flag="--user", metavar="NAME",
                      required=True),
            _VERIFY,
        ),
        target=("store", "user"), confirm="Erase everything of user {user_id} for good?",
        examples=("forget --user ana", "forget --user ana --verify --yes"),
    ),
    Operation(
        name="compact", method="compact", view="compacted", heading=DELETE, effect=Effect.WRITE,
        summary="Free the bytes that deleted memories left in the files.",
        examples=("compact", "compact --store sqlite:///memory.db"),
    ),
    Operation(
        name="stats", method="stats", view="stats", heading=MAINTAIN, exposed=EVERYWHERE,
        summary="Show how many memories there are, and where.",
        examples=("stats", "stats --store sqlite:///memory.db --json"),
    ),
    Operation(
        name="heartbeat", method="heartbeat", view="heartbeat", heading=MAINTAIN,
        effect=Effect.WRITE, parameters=_JOBS,
        summary="Run the maintenance jobs that are due. Exits with 1 when a job failed.",
        examples=("heartbeat", "heartbeat --force --job distillation", "heartbeat --log"),
    ),
    Operation(
        name="heartbeat-log", method="heartbeat_log", view="runs",
        aliases={Interface.CLI: "heartbeat --log"}, exposed=CLI_AND_REST, extent=Extent.USER,
        summary="show earlier runs instead",
    ),
    Operation(
        name="heartbeat-watch", handler="watch", aliases={Interface.CLI: "heartbeat --watch"},
        effect=Effect.WRITE, summary="repeat until interrupted",
        parameters=(*_JOBS,
                    Parameter("every", "the pause between two runs, with --watch",
                              kind=Kind.DURATION, default=28_800)),
    ),
    Operation(
        name="junk", method="lane.junk", view="junk_found", heading=MAINTAIN, effect=Effect.WRITE,
        exposed=EVERYWHERE,
        summary="Show memories that should not be there, such as logs, questions and repetitions; "
                "with --archive archive them.",
        parameters=(
            Parameter("archive", "archive them; `unarchive` brings one back", kind=Kind.SWITCH,
                      default=False),
            Parameter("limit", "the maximum number of memories", kind=Kind.INTEGER, default=100),
            Parameter("newest", "judge only so many of the newest memories", kind=Kind.INTEGER,
                      default_help="all"),
        ),
        examples=("junk", "junk --archive"),
    ),
    Operation(
        name="decay", method="graph.decay", view="decayed", heading=MAINTAIN,
        effect=Effect.DESTRUCTIVE, progress="bar", exposed=EVERYWHERE, extent=Extent.USER,
        summary="Show which memories of the user have become weak; with --apply archive them. "
                "Pinned ones and lessons stay.",
        parameters=(
            _APPLY,
            Parameter("delete", "erase the weakest for good instead", kind=Kind.SWITCH,
                      default=False),
        ),
        examples=("decay", "decay --apply", "decay --apply --delete"),
    ),
    Operation(
        name="consolidate", method="graph.consolidate", view="consolidated", heading=MAINTAIN,
        effect=Effect.WRITE, exposed=EVERYWHERE, extent=Extent.USER,
        progress="bar",
        summary="Show what to tidy up: duplicates, contradictions, old groups, outdated memories; "
                "with --apply do it.",
        parameters=(
            _APPLY,
            Parameter("max_digests", "the maximum number of digests", kind=Kind.INTEGER, default=5),
            Parameter("min_cluster_size", "the smallest group that gets a digest",
                      kind=Kind.INTEGER, default=3),
        ),
        examples=("consolidate", "consolidate --apply"),
    ),
    Operation(
        name="compress", method="graph.auto_compress", view="compressed", heading=MAINTAIN,
        effect=Effect.WRITE, progress="bar", exposed=EVERYWHERE, extent=Extent.USER,
        summary="Store digests of the largest groups of linked memories: their main sentences, "
                "with links to the originals.",
        parameters=(
            Parameter("max_digests", "the maximum number of digests", kind=Kind.INTEGER, default=5),
            Parameter("min_cluster_size", "the smallest group", kind=Kind.INTEGER, default=3),
            Parameter("archive_originals", "archive what has a digest, except pinned ones",
                      kind=Kind.SWITCH, default=False),
            Parameter("agent", "only memories of this agent", metavar="NAME"),
        ),
        examples=("compress", "compress --max-digests 20 --archive-originals"),
    ),
    Operation(
        name="archive", method="graph.archive", view="unarchived", heading=CHANGE,
        effect=Effect.WRITE, exposed=EVERYWHERE, extent=Extent.USER,
        summary="Archive a memory: it is kept, and searches no longer find it.",
        parameters=(_MEMORY, _REASON), examples=(f"archive {_SAMPLE}",),
    ),
    Operation(
        name="unarchive", method="graph.unarchive", view="unarchived", heading=CHANGE,
        effect=Effect.WRITE, exposed=EVERYWHERE, extent=Extent.USER,
        summary="Make an archived memory active again.", parameters=(_MEMORY,),
        examples=(f"unarchive {_SAMPLE}",),
    ),
    Operation(
        name="notes add", method="notes.append", view="note_added", heading=STORE,
        effect=Effect.WRITE, exposed=EVERYWHERE, extent=Extent.SERVER,
        summary="Add a note to the Markdown file of its title. What is in the file stays as it is.",
        parameters=(
            Parameter("title", "the title; it gives the file its name", required=True, bare=True),
            Parameter("content", "the text; - reads standard input", kind=Kind.INPUT,
                      required=True),
            Parameter("when_to_use",
                      "a pattern of tasks that need it, such as auth|login; may be repeated",
                      flag="--when", metavar="PATTERN", repeated=True, required=True),
            Parameter("tags", "a tag; may be repeated", flag="--tag", metavar="TAG", repeated=True,
                      default=()),
            Parameter("importance", "how much it matters", metavar="WORD", choices=_IMPORTANCE,
                      default="medium"),
            Parameter("discovered_by", "who found it out", metavar="NAME",
                      default_help="the agent of the memory"),
            Parameter("discovered_at", "when, such as 2026-03-01", metavar="TIME",
                      default_help="now"),
            Parameter("discovered_in", "in which task"),
            Parameter("source", "where it is from"),
            Parameter("related_memories", "the file of a related note; may be repeated",
                      flag="--related", metavar="FILE", repeated=True, default=()),
            Parameter("valid_from", "not used before this time", metavar="TIME"),
            Parameter("valid_until", "not used after this time", metavar="TIME"),
            Parameter("claim", "what it claims, as JSON with subject, predicate and value",
                      kind=Kind.OBJECT),
        ),
        examples=(('notes add "Login rules" --content "Sessions end after 15 minutes." --when '
                   '"login|session" --importance high'),),
    ),
    Operation(
        name="notes extract", method="notes.extract_and_save", view="note_extracted", heading=STORE,
        effect=Effect.WRITE, exposed=EVERYWHERE, extent=Extent.SERVER,
        summary="Add a note of an agent's finished run, if its report is worth one.",
        parameters=(
            Parameter("agent_output", "the report of the agent; - reads standard input",
                      kind=Kind.INPUT, flag="--report", required=True, bare=True),
            Parameter("task", "what the agent did", required=True),
            Parameter("agent", "the agent", flag="--agent-name", metavar="NAME", required=True),
            Parameter("result", "how the run ended", metavar="WORD",
                      choices=_words("success", "failure", "partial"), default="success"),
            Parameter("error", "the error that it ended with"),
            Parameter("dry_run", "only show the note", kind=Kind.SWITCH, default=False),
        ),
        examples=('notes extract - --task "fix the import" --agent-name developer < report.md',),
    ),
    Operation(
        name="notes list", method="notes.load", view="notes_listed", heading=READ,
        exposed=EVERYWHERE, extent=Extent.SERVER,
        summary="List the notes of the folder.", examples=("notes list", "notes list --json"),
    ),
    Operation(
        name="notes match", method="notes.match", view="notes_matched", heading=READ,
        parameters=_TASK, exposed=EVERYWHERE, extent=Extent.SERVER,
        summary="Show which notes a task needs, and why: the pattern that matched and the points "
                "of each part.",
        examples=('notes match "add a login page"',
                  'notes match "add a login page" --agent-name developer'),
    ),
    Operation(
        name="notes inject", method="notes.build_agent_prompt", view="notes_injected", heading=READ,
        exposed=EVERYWHERE, extent=Extent.SERVER,
        summary="Print the notes that a task needs as a part of a prompt; nothing if it "
                "needs none.",
        parameters=(
            _TASK[0], replace(_TASK[1], name="agent", flag="--agent-name"), _TASK[2], *_INJECTED,
            Parameter("system_prompt", "a text to begin with", default=""),
            Parameter("max_tokens", "the maximum number of tokens of the notes", kind=Kind.INTEGER,
                      default_help="no limit"),
        ),
        examples=('notes inject "add a login page" --agent-name developer --max-tokens 800',),
    ),
    Operation(
        name="notes lint", method="notes.lint", view="notes_linted", heading=MAINTAIN,
        exposed=EVERYWHERE, extent=Extent.SERVER,
        summary="Show what is wrong in the files of notes, with file and line. Exits with 1 when a "
                "note cannot be used.",
        examples=("notes lint",),
    ),
    Operation(
        name="notes sync", method="notes.sync", view="notes_synced", heading=MAINTAIN,
        effect=Effect.WRITE, exposed=EVERYWHERE, extent=Extent.SERVER,
        summary="Bring the memories of the notes up to date with the files, so that searches "
                "find them.",
        examples=("notes sync",),
    ),
    Operation(
        name="notes import", method="notes.import_files", view="notes_imported", heading=STORE,
        effect=Effect.WRITE,
        summary="Store the sections of CLAUDE.md, AGENTS.md and .cursor/rules, and skills. The "
                "files are only read; a second run takes over what changed.",
        parameters=(
            Parameter("paths", "a file or a folder of the project; may be repeated", kind=Kind.PATH,
                      positional=True, repeated=True, default=(),
                      default_help="the usual files of the working folder"),
        ),
        examples=("notes import", "notes import packages/api docs/conventions.md"),
    ),
    Operation(
        name="notes watch", handler="watch_notes", heading=MAINTAIN, effect=Effect.WRITE,
        summary="Take over what people change in the files of notes, until interrupted. Each "
                "change is one line.",
        parameters=(Parameter("every", "the pause between two looks at the folder",
                              kind=Kind.DURATION, default=2),),
        examples=("notes watch", "notes watch --every 10s --json"),
    ),
    Operation(
        name="trace record", handler="record_trace", heading=STORE, effect=Effect.WRITE,
        summary="Record an execution. With a command behind --, run it, pass its output and exit "
                "code through, and record it.",
        parameters=(
            Parameter("goal", "what was to be done; the first sentence is kept", required=True),
            Parameter("command", "the command to run, behind --", metavar="COMMAND",
                      positional=True, repeated=True),
            Parameter("status", "how it ended, without a command",
                      choices={"success": "success", "failure": "failure"}),
            Parameter("duration_ms", "how long it took, without a command", kind=Kind.INTEGER),
            Parameter("plan", "what was planned"),
            Parameter("results", "what came of it, without a command"),
            Parameter("steps", "a step; may be repeated", flag="--step", metavar="TEXT",
                      repeated=True),
            Parameter("learnings", "what was learnt; may be repeated", flag="--learning",
                      metavar="TEXT", repeated=True),
            Parameter("decisions", "a decision and why; may be repeated", flag="--decision",
                      metavar="TEXT", repeated=True),
            Parameter("tools_used", "a tool; may be repeated", flag="--tool", metavar="NAME",
                      repeated=True),
            Parameter("files_created", "a file that was created; may be repeated", flag="--file",
                      metavar="PATH", repeated=True),
        ),
        examples=(
            'trace record --goal "Run the tests" --project shop -- make test',
            ('trace record --goal "Deploy the shop" --status failure --learning "The token '
             'had expired"'),
        ),
    ),
    Operation(
        name="trace list", method="traces.get_all", view="traces_listed", heading=READ,
        exposed=EVERYWHERE, extent=Extent.SERVER,
        summary="List traces, the newest first; with --project those of one project.",
        parameters=(
            Parameter("limit", "the maximum number of traces", kind=Kind.INTEGER, default=20),
            Parameter("archived", "show archived ones too", kind=Kind.SWITCH, default=False),
        ),
        examples=("trace list", "trace list --project shop --json"),
    ),
    Operation(
        name="trace show", method="traces.get", view="trace_shown", heading=READ,
        summary="Show a trace.", exposed=EVERYWHERE, extent=Extent.SERVER,
        parameters=(Parameter("trace_id", "the id of the trace", flag="--id", metavar="ID",
                              required=True, bare=True),),
        examples=("trace show trace-1760000000000-3fa9c2",),
    ),
    Operation(
        name="trace similar", handler="similar_traces", heading=READ,
        summary="Find earlier executions with a similar goal, of all projects: how they went, and "
                "what is recommended.",
        parameters=(
            Parameter("goal", "what is to be done", kind=Kind.WORDS, required=True,
                      positional=True),
            Parameter("limit", "the maximum number of traces", kind=Kind.INTEGER, default=3),
            Parameter("min_similarity", "leave out less similar ones", kind=Kind.FRACTION,
                      default=0.3),
            Parameter("since", "not before this time", metavar="TIME"),
            Parameter("until", "not after this time; a day is included", metavar="TIME"),
        ),
        examples=('trace similar "deploy the shop"',
                  "trace similar run the tests --since 2026-01-01 --json"),
    ),
    Operation(
        name="trace plan", method="traces.plan_context", view="trace_planned", heading=READ,
        exposed=EVERYWHERE, extent=Extent.SERVER,
        summary="Print what memory knows about a goal, for the prompt of a planner: what worked, "
                "what failed, and learnings.",
        parameters=(
            Parameter("goal", "what is to be done", kind=Kind.WORDS, required=True,
                      positional=True),
            Parameter("limit", "the maximum number of each kind", kind=Kind.INTEGER, default=3),
            Parameter("max_tokens", "the maximum number of tokens of the text", kind=Kind.INTEGER,
                      default_help="no limit"),
        ),
        examples=('trace plan "deploy the shop"',
                  "trace plan deploy the shop --project shop --max-tokens 400"),
    ),
    Operation(
        name="trace consolidate", method="traces.consolidate", view="traces_consolidated",
        heading=MAINTAIN, effect=Effect.WRITE, exposed=EVERYWHERE, extent=Extent.SERVER,
        summary="Draw learnings from runs of a project with similar goals, and skills from those "
                "that mostly succeed.",
        parameters=(_DRY_RUN,
                    Parameter("skills", "make no skills", kind=Kind.SWITCH, flag="--no-skills",
                              default=True)),
        examples=("trace consolidate --project shop", "trace consolidate --dry-run --json"),
    ),
    Operation(
        name="trace retention", method="traces.retention", view="traces_retained", heading=MAINTAIN,
        effect=Effect.WRITE, exposed=EVERYWHERE, extent=Extent.SERVER,
        summary="Move what is old to compressed archives, of all projects, and show what moved and "
                "why. Nothing is deleted.",
        parameters=(_DRY_RUN,), examples=("trace retention --dry-run", "trace retention"),
    ),
    Operation(
        name="trace archive", method="traces.archive", view="traces_archived", heading=MAINTAIN,
        effect=Effect.WRITE, exposed=EVERYWHERE, extent=Extent.SERVER,
        summary="Consolidate a project, and move its short-term memory to its archive.",
        examples=("trace archive --project shop",),
    ),
    Operation(
        name="trace decisions", method="traces.keep_decisions", view="decisions_kept",
        heading=STORE, effect=Effect.WRITE, exposed=EVERYWHERE, extent=Extent.SERVER,
        summary="Store the decisions of a trace as memories.",
        parameters=(Parameter("trace_id", "the id of the trace", flag="--id", metavar="ID",
                              required=True, bare=True),),
        examples=("trace decisions trace-1760000000000-3fa9c2",),
    ),
    Operation(
        name="hooks status", method="hooks_status", view="hooks", heading=MAINTAIN,
        summary="Show the hooks on the store: how many events wait for each, and how many could "
                "not be delivered.",
        examples=("hooks status", "hooks status --json"),
    ),
    Operation(
        name="hooks retry", method="retry_hooks", view="hooks", heading=MAINTAIN,
        effect=Effect.WRITE,
        summary="Deliver what waits for the configured hooks now, dead letters too. Exits with 1 "
                "when something still waits.",
        examples=("hooks retry",),
    ),
    Operation(
        name="reembed", method="reembed", view="reembedded", heading=MAINTAIN, effect=Effect.WRITE,
        progress="bar",
        summary="Compute the vectors that are missing or belong to another model. An interrupted "
                "run continues where it stopped.",
        examples=("reembed", "reembed --store sqlite:///memory.db"),
    ),
    Operation(
        name="export", method="export", view="memories_exported", heading=MAINTAIN, progress="bar",
        summary="Write the memories that this agent and session can see as lines of JSON, which "
                "import reads.",
        parameters=(
            Parameter("out", "a new file", kind=Kind.PATH, metavar="FILE", option=True,
                      default_help="standard output"),
        ),
        examples=("export --out memories.jsonl", "export --user ana > ana.jsonl",
                  "export --server-memory --out memory.jsonl"),
    ),
    Operation(
        name="export-graph", handler="export_graph",
        aliases={Interface.CLI: "export --server-memory"},
        summary="write the knowledge graph of mcp --compat server-memory, as the official memory "
                "server does",
        parameters=(
            Parameter("out", "a new file", kind=Kind.PATH, metavar="FILE", option=True,
                      default_help="standard output"),
        ),
    ),
    Operation(
        name="export-all", method="export_store", view="store_exported", progress="bar",
        aliases={Interface.CLI: "export --all"},
        summary="write the whole store: all users, audit chains and history",
        parameters=(
            Parameter(
                "vectors", "leave out the vectors; the import computes them", flag="--no-vectors",
                kind=Kind.SWITCH, default=True
            ),
            Parameter("out", "a new file", kind=Kind.PATH, metavar="FILE", option=True,
                      default_help="standard output"),
        ),
    ),
    Operation(
        name="import", handler="import_file", heading=MAINTAIN, effect=Effect.WRITE,
        summary="Store the memories of an export, a backup or another program. Memories that are "
                "stored already are skipped.",
        parameters=(
            Parameter(
                "file", "the file or folder; - reads an export from standard input", kind=Kind.PATH,
                metavar="FILE", positional=True, required=True,
            ),
            Parameter("format", "the format that is expected", choices=_FORMATS,
                      default_help="detected"),
        ),
        examples=(
            "import memories.jsonl", "import - --store sqlite:///new.db --user ana < ana.jsonl",
            "import mem0.json --user ana", "import lessons.yamo",
        ),
    ),
    Operation(
        name="copy", handler="copy", heading=MAINTAIN, effect=Effect.WRITE, target=("store",),
        summary="Copy a whole store to an empty one of any kind, and verify the copy. A copy that "
                "was stopped continues.",
        parameters=(
            Parameter("from_store", "the store to copy", flag="--from", kind=Kind.URL,
                      default_help="that of --store"),
            Parameter("to_store", "the new store", flag="--to", kind=Kind.URL, required=True),
        ),
        examples=("copy --from memory.db --to json:///folder",
                  "copy --from sqlite:///memory.db --to sqlite:///new.db"),
    ),
    Operation(
        name="backup", method="backup", view="backed_up", heading=MAINTAIN, progress="bar",
        summary="Copy the store to a new file or folder, while it is in use.",
        parameters=(Parameter("file", "the new file", kind=Kind.PATH, metavar="FILE",
                              positional=True, required=True),),
        examples=("backup memory-2026-01-31.db", "backup copy.db --store sqlite:///memory.db"),
    ),
    Operation(
        name="restore", method="restore", view="store_copied", heading=MAINTAIN,
        effect=Effect.WRITE, progress="bar",
        summary="Copy a backup, or a file of export --all, into an empty store, and verify it.",
        parameters=(Parameter("file", "the backup", kind=Kind.PATH, metavar="FILE", positional=True,
                              required=True),),
        examples=("restore memory-2026-01-31.db --store sqlite:///new.db",
                  "restore all.jsonl --store json:///new"),
    ),
    Operation(
        name="migrate", handler="migrate", heading=MAINTAIN, effect=Effect.WRITE, target=("store",),
        summary="Bring the memories in a LanceDB folder from schema V1 of RFC-0011 to V2. The V1 "
                "table is kept for 30 days.",
        parameters=(
            Parameter("rollback", "restore the V1 table instead", kind=Kind.SWITCH, default=False),
            _DRY_RUN,
        ),
        examples=("migrate --store lancedb:///yamo --dry-run",
                  "migrate --store lancedb:///yamo --rollback"),
    ),
    Operation(
        name="postgres prepare", handler="postgres_prepare", heading=SETUP, effect=Effect.WRITE,
        target=("store",),
        summary="Create the tables of a PostgreSQL store. The first write does that too, if its "
                "role may create tables.",
        examples=("postgres prepare --store postgresql://owner@host/memory",),
    ),
    Operation(
        name="postgres grant", handler="postgres_grant", heading=SETUP, effect=Effect.WRITE,
        target=("store",),
        summary="Let a role of PostgreSQL use the tables for one user, for all users, or for the "
                "user of a verified token.",
        parameters=(
            Parameter("role", "the name of the role", metavar="ROLE", required=True, bare=True),
            Parameter(
                "scope",
                "user: rows of one user; server: of all users; token: of the user that PostgREST "
                "has verified",
                metavar="SCOPE", default="user", choices=_words("user", "server", "token"),
            ),
            Parameter("user_id", "the user; rows without a user if it is left out", flag="--user",
                      metavar="NAME"),
            Parameter("agent_id", "only this agent of the user", flag="--agent", metavar="NAME"),
        ),
        examples=("postgres grant ann_program --user ann", "postgres grant api --scope server"),
    ),
    Operation(
        name="postgres distribute", handler="postgres_distribute", heading=SETUP,
        effect=Effect.WRITE, target=("store",),
        summary="Distribute the tables of a PostgreSQL store by user over several servers, with "
                "the extension Citus.",
        examples=("postgres distribute --store postgresql://owner@host/memory",),
    ),
    Operation(
        name="audit verify", method="verify", view="verdicts", heading=MAINTAIN, progress="bar",
        summary="Verify every audit chain, or those of --agent. Exits with 1 on a break and names "
                "the block.",
        parameters=(
            _CHAIN_AGENT,
            Parameter("head", "a head noted earlier, as audit head prints it", kind=Kind.HEAD),
            Parameter("anchor", "compare with every head in this file of audit anchor",
                      kind=Kind.PATH, metavar="FILE"),
            _CHAIN,
        ),
        examples=("audit verify", "audit verify --agent planner --head 12:9ca0…",
                  "audit verify --file trail.jsonl"),
    ),
    Operation(
        name="audit verify-file", handler="verify_file",
        aliases={Interface.CLI: "audit verify --file"},
        summary="verify an export instead of the store",
        parameters=(
            Parameter("file", "verify this export instead of the store", kind=Kind.PATH,
                      metavar="FILE"),
            Parameter("head", "a head noted earlier, as audit head prints it", kind=Kind.HEAD),
        ),
    ),
    Operation(
        name="audit head", method="audit_heads", view="heads", heading=MAINTAIN,
        exposed=CLI_AND_REST, extent=Extent.SERVER,
        summary="Show the last block of each chain. Note it elsewhere: audit verify --head "
                "checks it later.",
        parameters=(_CHAIN_AGENT, _CHAIN),
        examples=("audit head", "audit head --agent planner --chain main"),
    ),
    Operation(
        name="audit anchor", method="audit_anchor", view="anchored", heading=MAINTAIN,
        effect=Effect.WRITE,
        summary="Append the last block of each chain to a file, or send it to a URL. audit verify "
                "--anchor compares it later.",
        parameters=(Parameter("to", "a file, or a URL", kind=Kind.PATH, metavar="FILE_OR_URL",
                              default_help="as configured"),),
        examples=("audit anchor --to anchors.jsonl",),
    ),
    Operation(
        name="audit rekey", method="audit_rekey", view="rekeyed", heading=MAINTAIN,
        effect=Effect.WRITE,
        summary="Sign the chains with a new key; a block in each chain records it. The old key "
                "stays in the key file.",
        examples=("audit rekey",),
    ),
    Operation(
        name="audit log", method="audit_log", view="blocks", heading=MAINTAIN, exposed=CLI_AND_REST,
        extent=Extent.SERVER,
        summary="Show the latest audit blocks, newest first. Texts of other agents and sessions "
                "are withheld.",
        parameters=_LOG,
        examples=("audit log --limit 5", "audit log --operation recall --agent planner",
                  'audit log --auditor "Eve Miller"'),
    ),
    Operation(
        name="audit log-all", method="audit_log", view="blocks",
        aliases={Interface.CLI: "audit log --auditor"}, effect=Effect.WRITE,
        summary="show the texts of every agent and session", parameters=(*_LOG, _AUDITOR),
    ),
    Operation(
        name="audit export", method="audit_export", view="exported", heading=MAINTAIN,
        progress="bar",
        summary="Write the audit chains to a file, each from its first block. Texts of other "
                "agents and sessions are withheld.",
        parameters=_EXPORT,
        examples=("audit export --out trail.jsonl",
                  "audit export --format wire --chain main > trail.yamo"),
    ),
    Operation(
        name="audit export-all", method="audit_export", view="exported",
        aliases={Interface.CLI: "audit export --auditor"}, effect=Effect.WRITE, progress="bar",
        summary="write the texts of every scope", parameters=(*_EXPORT, _AUDITOR),
    ),
    Operation(
        name="doctor", handler="doctor", heading=SETUP,
        examples=("doctor", "doctor --store sqlite:///memory.db"),
        summary="Check the installation, the settings, the store and every audit chain. Exits with "
                "1 when a check fails.",
    ),
    Operation(
        name="doctor-repair", handler="repair", aliases={Interface.CLI: "doctor --repair"},
        effect=Effect.WRITE, target=("store",),
        summary="save what can be read of a damaged store into a new one",
        parameters=(
            Parameter(
                "to_file", "the new file or folder", flag="--to", kind=Kind.PATH, metavar="FILE",
                default_help="beside it, named .repaired",
            ),
        ),
    ),
    Operation(
        name="eval", handler="evaluate", heading=MAINTAIN,
        summary="Measure what questions find in your own memories, and check what is stored. "
                "Nothing is changed.",
        parameters=(
            Parameter("questions",
                      "a file of questions, one JSON object a line; - reads standard input",
                      kind=Kind.PATH, metavar="FILE", default_help="made from the memories"),
            Parameter("count", "how many questions are made at most", kind=Kind.INTEGER,
                      default=50),
            Parameter("seed", "another seed makes other questions", kind=Kind.INTEGER, default=0),
            Parameter("min_recall", "exit with 1 if recall@10 is lower", kind=Kind.FRACTION,
                      option=True),
            Parameter("min_mrr", "exit with 1 if the mean reciprocal rank is lower",
                      kind=Kind.FRACTION, option=True),
            Parameter("min_nothing",
                      "exit with 1 if fewer questions about nothing are answered by nothing",
                      kind=Kind.FRACTION, option=True),
            Parameter("html", "also write the report to this new file, with charts", kind=Kind.PATH,
                      metavar="FILE", option=True),
        ),
        examples=("eval", "eval --count 100 --min-recall 0.8",
                  "eval --questions questions.jsonl --json"),
    ),
    Operation(
        name="config show", handler="config_show", heading=SETUP,
        examples=("config show", "config show --agent planner --json"),
        summary="Show every setting, its value and its origin. Secrets are not shown.",
    ),
    Operation(
        name="config trust", handler="config_trust", heading=SETUP, target=(), effect=Effect.WRITE,
        summary="Trust the memory-mesh.toml of a project, as it is now, to set every option. "
                "Changing the file ends the trust.",
        parameters=(Parameter("path", "the file, or its folder", kind=Kind.PATH, positional=True),),
        examples=("config trust .", "config trust ./memory-mesh.toml", "config trust --list"),
    ),
    Operation(
        name="config trusted", handler="config_trusted",
        aliases={Interface.CLI: "config trust --list"}, target=(),
        summary="show every file that was trusted instead",
    ),
    Operation(
        name="config untrust", handler="config_untrust", heading=SETUP, target=(),
        effect=Effect.WRITE, summary="End the trust in the memory-mesh.toml of a project.",
        parameters=(Parameter("path", "the file, or its folder", kind=Kind.PATH, positional=True,
                              required=True),),
        examples=("config untrust .",),
    ),
    Operation(
        name="model status", handler="model_status", heading=SETUP, target=(),
        examples=("model status", "model status --json"),
        summary="Show where the local model is and whether it is ready. Exits with 1 when it "
                "is not.",
    ),
    Operation(
        name="model fetch", handler="model_fetch", heading=SETUP, target=(), effect=Effect.WRITE,
        examples=("model fetch",),
        summary="Download the local model and make it ready. Does nothing when it is.",
    ),
    Operation(
        name="model check", method="check_models", view="models", heading=SETUP,
        effect=Effect.WRITE, examples=("model check", "model check --json"),
        summary="Send one short request to the language model and the embedder. Exits with 1 when "
                "one that is configured fails.",
    ),
    Operation(
        name="init", handler="init", heading=SETUP, target=("store",), effect=Effect.WRITE,
        summary="Write the hooks of coding agents into a project, so that they use this memory; "
                "--remove takes them out again.",
        parameters=(
            Parameter("path", "the folder of the project", kind=Kind.PATH, positional=True,
                      default="."),
            Parameter(
                "host", "only the hooks of this one", metavar="NAME", default="all",
                choices={**_HOSTS, "all": "all"},
            ),
            Parameter("remove", "remove what init wrote", kind=Kind.SWITCH, default=False),
            _DRY_RUN,
        ),
        examples=("init", "init --host claude-code --dry-run", "init --remove"),
    ),
    Operation(
        name="host", handler="host", heading=SETUP, effect=Effect.WRITE,
        summary="Answer a hook of a coding agent, whose JSON is read from standard input; init "
                "writes these commands.",
        parameters=(
            Parameter("host", "the agent", metavar="HOST", positional=True, required=True,
                      choices=_HOSTS),
            Parameter(
                "event", "its event", metavar="EVENT", positional=True, required=True,
                choices=_words("session-start", "user-prompt-submit", "stop", "session-end"),
            ),
            Parameter("wait", "capture a session before answering, not in the background",
                      kind=Kind.SWITCH, default=False),
        ),
        examples=("host claude-code session-start", "host claude-code stop --wait"),
    ),
    Operation(
        name="mcp", handler="mcp", heading=SETUP, effect=Effect.WRITE,
        summary="Serve the memory to an agent by the Model Context Protocol, over standard input "
                "and output, or with --http.",
        parameters=(
            Parameter("toolset", "offer these tools too; may be repeated", metavar="NAME",
                      repeated=True,
                      choices=_words("lane", "graph", "notes", "traces", "review", "all"),
                      default_help="remember, recall, forget, context, learn, feedback"),
            Parameter("compat", "offer the tools of the official memory server instead",
                      metavar="NAME", choices=_words("server-memory")),
            Parameter("read_only", "offer only tools that change nothing", kind=Kind.SWITCH,
                      default=False),
            Parameter("http", "serve over HTTP, at /mcp", kind=Kind.SWITCH, default=False),
            Parameter("host", "the address to listen on, with --http", metavar="ADDRESS",
                      default="127.0.0.1"),
            Parameter("port", "the port to listen on, with --http", kind=Kind.INTEGER,
                      default=8711),
        ),
        examples=("mcp", "mcp --toolset lane --agent planner", "mcp --http --port 8711",
                  "mcp --compat server-memory"),
    ),
    Operation(
        name="serve", handler="serve", heading=SETUP, effect=Effect.WRITE,
        summary="Run the REST server until it is interrupted. It listens on this machine only, "
                "unless --host says otherwise.",
        parameters=(
            Parameter("server_host",
                      "the address to listen on; one that others can reach needs a token",
                      flag="--host", metavar="ADDRESS",
                      default_help="as configured, else 127.0.0.1"),
            Parameter("server_port", "the port to listen on", flag="--port", kind=Kind.INTEGER,
                      default_help="as configured, else 8710"),
        ),
        examples=("serve", "serve --port 8080 --store sqlite:///memory.db"),
    ),
    Operation(
        name="console", handler="console", heading=SETUP, effect=Effect.WRITE,
        summary="Open the web console in a browser: a server for this machine only, until it is "
                "interrupted.",
        parameters=(
            Parameter("port", "the port to listen on", kind=Kind.INTEGER, default=0,
                      default_help="one that is free"),
            Parameter("browser", "only print the link", flag="--no-browser", kind=Kind.SWITCH,
                      default=True),
        ),
        examples=("console", "console --no-browser --port 8712 --store sqlite:///memory.db"),
    ),
    Operation(
        name="token create", handler="token_create", heading=SETUP, target=(), effect=Effect.WRITE,
        summary="Create a token of the server, and show it once. As soon as there is one, every "
                "request needs a token.",
        parameters=(
            Parameter("name", "what it is for", positional=True, required=True, metavar="NAME"),
            Parameter("user", "the user whose memory it opens", metavar="NAME",
                      default_help="as configured"),
            Parameter("agent", "only as this agent", metavar="NAME", default_help="any"),
            Parameter("project", "only in this project", metavar="NAME", default_help="any"),
            Parameter("read_only", "only for reading", kind=Kind.SWITCH, default=False),
            Parameter("expires", "how long it is valid", kind=Kind.DURATION, metavar="DURATION",
                      default=7_776_000),
        ),
        examples=("token create laptop",
                  "token create dashboard --user ana --agent planner --read-only --expires 30d"),
    ),
    Operation(
        name="token list", handler="token_list", heading=SETUP, target=(), examples=("token list",),
        summary="List the tokens of the server, without their secrets.",
    ),
    Operation(
        name="token revoke", handler="token_revoke", heading=SETUP, target=(), effect=Effect.WRITE,
        summary="End a token of the server at once.",
        parameters=(
            Parameter("id", "the id of the token", positional=True, required=True, metavar="ID"),
        ),
        examples=("token revoke 3fa9c2d1",),
    ),
    Operation(
        name="completion", handler="completion", heading=SETUP, target=(),
        summary="Print the completion script of a shell. Load it with: eval \"$(memory-mesh "
                "completion bash)\"",
        parameters=(
            Parameter("shell", "one of", metavar="SHELL", positional=True, required=True,
                      choices=_words("bash", "zsh", "fish")),
            Parameter("line", "print the completions of the last of these words", metavar="WORD",
                      positional=True, repeated=True),
        ),
        examples=("completion bash", "completion zsh", "completion fish"),
    ),
    Operation(
        name="demo", handler="demo", heading=SETUP, target=(), examples=("demo",),
        summary="Run a short tour in a temporary memory: store, search, change, forget, prove.",
    ),
    # --- for servers only: their arguments are lists and objects, or a command does more ---
    Operation(
        name="store-many", method="add_many", view="stored_many", effect=Effect.WRITE,
        exposed=REMOTE, progress="bar",
        summary="Store many memories or chat messages, all or none. Of messages, only those after "
                "the stored turns are added.",
        parameters=(
            Parameter("items",
                      "each with content, and optionally metadata and key; or messages with role "
                      "and content",
                      kind=Kind.OBJECT, repeated=True, required=True),
            _METADATA, _DEDUPLICATE, _REPEATABLE,
        ),
    ),
    Operation(
        name="lane judge", method="lane.judge", view="judged", exposed=REMOTE,
        summary="Show what capture would keep of some messages, and what it would not keep and "
                "why. Nothing is stored.",
        parameters=(
            Parameter("messages", "each with role and content", kind=Kind.OBJECT, repeated=True,
                      required=True),
        ),
    ),
    Operation(
        name="junk-list", method="lane.junk", view="junk_found",
        exposed=frozenset({Interface.REST}), fixed={"archive": False},
        summary="Show memories that should not be there, such as logs, questions and repetitions, "
                "and change nothing.",
        parameters=(
            Parameter("limit", "the maximum number of memories", kind=Kind.INTEGER, default=100),
            Parameter("newest", "judge only so many of the newest memories", kind=Kind.INTEGER,
                      default_help="all"),
        ),
    ),
    Operation(
        name="graph store", method="graph.store", view="graph_stored", reader=_AGENT,
        effect=Effect.WRITE, exposed=REMOTE,
        summary="Store a memory with a claim: it corroborates or supersedes stored claims, or "
                "waits in quarantine for a review.",
        parameters=(
            Parameter("text", "the text", required=True),
            Parameter("category", "what kind of memory it is", default="fact"),
            Parameter("importance", "how much it matters", kind=Kind.FRACTION, default=0.7),
            Parameter("tags", "tags", repeated=True, default=()),
            Parameter("event_time", "when it happened", metavar="TIME"),
            Parameter("claim",
                                         "what it states: subject, predicate, value; optionally "
                                         "exclusive, scope, session_id, valid_from and valid_until",
                                         kind=Kind.OBJECT),
            Parameter("claims", "auto: find the claim in the text", choices=_words("off", "auto")),
            Parameter("provenance",
                      "its source: user_explicit, system, tool_output, user_implicit, document "
                      "or inference",
                      kind=Kind.OBJECT),
            Parameter("quarantine", "store it quarantined in any case", kind=Kind.SWITCH,
                      default=False),
            Parameter("on_conflict", "what happens if stored claims exclude it",
                      default="quarantine", choices=_words("quarantine", "keep_active")),
            _METADATA, _REPEATABLE,
        ),
    ),
    Operation(
        name="graph search", method="graph.search", view="graph_found", reader=_AGENT,
        exposed=REMOTE,
        summary="Find memories, ranked by relevance, trust, recency and importance.",
        parameters=(
            _SEARCH[0], _LIMIT,
            Parameter("min_similarity", "the lowest similarity to show", kind=Kind.FRACTION,
                      default=0.0),
            Parameter("before", "only what happened until this time", metavar="TIME"),
            Parameter("after", "only what happened since this time", metavar="TIME"),
            *(Parameter(f"include_{name}", f"also show {about} memories", kind=Kind.SWITCH,
                        default=False) for name,
              about in (
                  ("superseded", "superseded"), ("disputed", "disputed"),
                  ("quarantined", "quarantined"), ("all", "all but archived"),
              )),
            Parameter("explain", "show how each was found and ranked", kind=Kind.SWITCH,
                      default=False),
            *_SEARCH[-2:],
        ),
    ),
    Operation(
        name="graph traverse", method="graph.traverse", view="reached", exposed=REMOTE,
        extent=Extent.USER,
        summary="Show the memories within some links of a memory, nearest first.",
        parameters=(
            Parameter("start_id", "the id of the memory to start from", required=True),
            Parameter("max_hops", "the maximum number of links, at most 20", kind=Kind.INTEGER,
                      default=2),
            Parameter("types", "follow links of these types only", repeated=True),
        ),
    ),
    Operation(
        name="graph link", method="graph.link", view="linked", effect=Effect.WRITE, exposed=REMOTE,
        extent=Extent.USER, summary="Link two memories.", parameters=_LINK,
    ),
    Operation(
        name="graph unlink", method="graph.unlink", view="unlinked", effect=Effect.WRITE,
        exposed=REMOTE, extent=Extent.USER, summary="Remove a link that graph link added.",
        parameters=_LINK,
    ),
    Operation(
        name="audit-verify", method="verify", view="verdicts", exposed=frozenset({Interface.REST}),
        extent=Extent.SERVER, aliases={Interface.REST: "audit verify"}, progress="bar",
        summary="Verify every audit chain, or those of an agent.",
        parameters=(
            _CHAIN_AGENT,
            Parameter("head", "a head noted earlier, as audit head prints it", kind=Kind.HEAD),
            _CHAIN,
        ),
    ),
    Operation(
        name="trace-record", method="traces.record", view="trace_recorded", effect=Effect.WRITE,
        exposed=REMOTE, aliases={Interface.REST: "trace record"},
        extent=Extent.SERVER, summary="Record an execution.",
        parameters=(
            Parameter("goal", "what was to be done; the first sentence is kept", required=True),
            Parameter("status", "how it ended", choices=_words("success", "failure"),
                      default="success"),
            Parameter("duration_ms", "how long it took", kind=Kind.INTEGER, default=0),
            Parameter("plan", "what was planned", default=""),
            Parameter("results", "what came of it", default=""),
            *(Parameter(name, about, repeated=True, default=()) for name, about in (
                ("steps", "the steps"), ("learnings", "what was learnt"),
                ("decisions", "the decisions, and why"), ("tools_used", "the tools"),
                ("files_created", "the files that were created"),
            )),
        ),
    ),
    Operation(
        name="trace-similar", method="traces.similar", view="traces_similar", exposed=REMOTE,
        extent=Extent.SERVER, aliases={Interface.REST: "trace similar"},
        summary="Find earlier executions with a similar goal, of all projects: how they went, and "
                "what is recommended.",
        parameters=(
            Parameter("goal", "what is to be done", required=True),
            Parameter("limit", "the maximum number of traces", kind=Kind.INTEGER, default=3),
            Parameter("min_similarity", "leave out less similar ones", kind=Kind.FRACTION,
                      default=0.3),
        ),
    ),
)
# fmt: on


def _commands() -> dict[str, tuple[Operation, ...]]:
    by_command: dict[str, tuple[Operation, ...]] = {}
    for operation in OPERATIONS:
        if Interface.CLI in operation.exposed:
            by_command[operation.command] = (*by_command.get(operation.command, ()), operation)
    return by_command


# Each command with its entries: first the operation itself, then its variants.
COMMANDS = _commands()


def parameters(command: str) -> list[Parameter]:
    """Return every parameter that a command accepts: its own and those of its variants, each
    once, and the common ones."""
    entries = COMMANDS[command]
    known = {one.word: one for entry in entries for one in entry.parameters}
    for word, one in known.items():
        # What a variant does not require, the command does not.
        without = [
            entry
            for entry in entries
            if not any(own.word == word and own.required for own in entry.parameters)
        ]
        if one.required and without:
            about = (
                f"{one.help}; required without {without[0].switch}"
                if entries[0] not in without
                else one.help
            )
            known[word] = replace(one, required=False, help=about)
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
