"""The command line of RFC-0011 §9, line by line: the flags of every command, every line that it
prints, and errors."""

import json
import re
import shlex

import pytest

from memory_mesh.interfaces.operation import Kind
from memory_mesh.interfaces.remote import OPERATIONS
from memory_mesh.interfaces.verbs import COMMANDS, parameters

from .conftest import Cli

# §9.1: what stands in brackets may be left out.
REFERENCE = """
store --content <text> [--type <type>] [--rationale <text>] [--hypothesis <text>] [--metadata \
<json>]
search <query> [--limit <n>] [--filter <expr>]
ingest-dir <path> [--extension <ext>] [--type <type>] [--recursive]
stats
reflect [--topic <text>] [--lookback <n>]
get --id <id>
delete --id <id>
synthesize [--topic <text>]
ingest-skill --file <path> [--type <type>]
search-skills <query> [--limit <n>]
list-skills [--limit <n>]
skill-feedback --id <id> --success <true|false>
skill-prune [--threshold <0.0-1.0>]
""".strip().splitlines()
# §9.2: the lines that a command prints, with {} for what differs.
OUTPUT = {
    (
        "store --content 'The key rotates.' --type event --rationale 'asked twice' --hypothesis "
        "'on Mondays' --metadata '{}'"
    ): ("[MemoryMesh] Ingested record {MEMORY_ID}"),
    "search 'key rotates' --limit 1 --filter \"memory_type = 'global'\"": """\
[MemoryMesh] Found {N} matches.

[ATTENTION DIRECTIVE]
- ALIGN attention to entries with [IMPORTANCE >= 0.8]
- TREAT entries with [IMPORTANCE <= 0.4] as auxiliary

[MEMORY CONTEXT]
--- MEMORY 1: {id} [IMPORTANCE: {score}] ---
Type: {type} | Source: {source}
{content}""",
    "stats": """\
[MemoryMesh] Total Memories: {N}
[MemoryMesh] Total Skills: {N}
[MemoryMesh] DB Path: {uri}
[MemoryMesh] Status: connected""",
    "delete --id {id}": "[MemoryMesh] Deleted record {MEMORY_ID}",
}
PARTS = {
    "MEMORY_ID": r"mem_\d+_[0-9a-f]{6}", "id": r"mem_\d+_[0-9a-f]{6}", "N": r"\d+",
    "score": r"[01]\.\d\d", "type": "event", "source": "unknown", "content": r"The key rotates\.",
    "uri": r"sqlite:////.+/memory\.db",
}  # fmt: skip
# §9.3: commands that fail, and what they say.
ERRORS = {
    """store '{"content": \
"x"}'""": (
        "JSON is given instead of flags; expected named flags; write memory-mesh store --content …"
    ),
    """search \
'["x"]'""": "JSON is given instead of flags; expected named flags; write memory-mesh search --help",
    "store": "TEXT is missing; see memory-mesh store --help",
    "store x --metadata '{bad}'": (
        "--metadata is not valid JSON: Expecting property name enclosed in double quotes at"
    ),
    "store x --metadata '[1]'": "--metadata is not a JSON object; expected an object such as",
    "search": "QUERY is missing; see memory-mesh search --help",
    "search x --limit abc": "--limit is 'abc'; expected a whole number",
    "search x --limit 0": "limit is 0; expected a whole number from 1 to 10,000",
    "search x --filter 'content ='": (
        "the filter cannot be parsed: error at character 9; expected columns, literals, AND"
    ),
    "get --id mem_1_abcdef": "no memory 'mem_1_abcdef'",
    "delete --id mem_1_abcdef": "no memory 'mem_1_abcdef'",
    "ingest-dir nowhere": "the folder",
    "ingest-dir": "PATH is missing; see memory-mesh ingest-dir --help",
    "end-session": "NAME is missing; see memory-mesh end-session --help",
    "distill --pattern p --rule r --severity high": (
        "--situation TEXT, --oversight TEXT, --fix TEXT, --scope TEXT is missing; see "
        "memory-mesh distill --help"
    ),
    "distill --pattern p --rule r --situation s --oversight o --fix f --scope x --severity awful": (
        "unknown value 'awful' of --severity; expected one of critical, high, medium, low"
    ),
    "reflect --lookback 0": "lookback is 0; expected a whole number",
    "stats --nonsense": "unknown flag '--nonsense'",
    "statistics": "unknown command 'statistics'; did you mean stats?",
}


@pytest.mark.req("MESH-150", "MESH-151", "MESH-152", "MESH-154")
@pytest.mark.parametrize("line", REFERENCE, ids=lambda line: line.split()[0])
def test_a_command_takes_the_words_and_flags_of_the_document(line: str) -> None:
    command, *_ = line.split()
    known = {one.word: one for one in parameters(command)}
    rest = line.removeprefix(command)
    optional = re.findall(r"\[(--[\w-]+)(?: <([^>]+)>)?\]", rest)
    given = re.findall(r"(--[\w-]+) <([^>]+)>", re.sub(r"\[[^]]*\]", "", rest))
    chosen = next(
        (one for one in COMMANDS[command] if one.switch in dict(given)), COMMANDS[command][0]
    )
    required = {one.word for one in chosen.parameters if one.required}
    for flag, value in [*optional, *given]:
        assert (known[flag].kind is Kind.SWITCH) == (not value), flag
    assert not required & {flag for flag, _ in optional}
    assert required <= {flag for flag, _ in given} | {
        f"{word.upper()}" for word in re.findall(r"(?<!\S)<(\w+)>", rest)
    }


@pytest.mark.req("MESH-158", "MESH-159", "MESH-160", "MESH-162")
def test_commands_print_the_lines_of_the_document(cli: Cli) -> None:
    id_ = ""
    for line, shown in OUTPUT.items():
        words = [word.replace("{id}", id_) if word != "{}" else word for word in shlex.split(line)]
        said = cli(*words)
        pattern = re.sub(r"\\\{(\w+)\\\}", lambda part: PARTS[part[1]], re.escape(f"{shown}\n"))
        assert re.fullmatch(pattern, said.out), (line, said.out)
        assert (said.code, said.err) == (0, "")
        id_ = id_ or said.id


@pytest.mark.req("MESH-149", "MESH-150", "MESH-154", "MESH-164")
@pytest.mark.parametrize("line", ERRORS)
def test_an_error_is_one_line_on_standard_error_that_says_what_to_do(cli: Cli, line: str) -> None:
    cli("store", "The key rotates.")
    said = cli(*shlex.split(line))
    assert said.code != 0
    assert said.out == ""
    assert said.err.startswith(f"[MemoryMesh Error] {ERRORS[line]}")
    assert said.err.count("\n") == 1


@pytest.mark.req("MESH-149")
def test_json_is_refused_as_a_word_of_every_command_and_taken_by_its_flag(cli: Cli) -> None:
    for command in COMMANDS:
        said = cli(*command.split(), '{"content": "x"}')
        assert said.err.startswith("[MemoryMesh Error] JSON is given instead of flags"), command
    assert cli("store", "x", "--metadata", '{"source": "chat"}').code == 0


def test_every_command_that_prints_data_takes_json(cli: Cli) -> None:
    assert [
        command
        for command in COMMANDS
        if not {"--json", "--jsonl"} <= {one.word for one in parameters(command)}
    ] == []
    cli("store", "The key rotates.")
    for words in (
        ["search", "key"],
        ["stats"],
        ["list"],
        ["store", "more"],
        ["reflect"],
        ["end-session", "none"],
    ):
        said = cli(*words, "--json")
        assert isinstance(json.loads(said.out or said.err), dict), words
    assert len(OPERATIONS) > len(COMMANDS)
