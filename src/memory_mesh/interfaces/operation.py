"""What an operation and its parameters are: plain values, from which every interface is generated.

This module imports nothing of memory-mesh.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import IntEnum, StrEnum


class Interface(StrEnum):
    """An interface that offers operations."""

    CLI = "cli"
    REST = "rest"
    MCP = "mcp"


class Effect(StrEnum):
    """The effect of an operation on stored data."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"


class Extent(IntEnum):
    """How far an operation reaches. A token that is limited to an agent or a project cannot call
    what reaches beyond it."""

    READER = 0  # what the reader can see
    PROJECTS = 1  # and what belongs to other projects of the user
    USER = 2  # and what belongs to other agents of the user
    SERVER = 3  # and what the users of the server share, such as a folder of notes


class Kind(StrEnum):
    """The type of a parameter."""

    TEXT = "text"
    # A text that may be long; on the command line, `-` reads it from standard input.
    INPUT = "input"
    WORDS = "words"  # positional words, joined by spaces
    INTEGER = "integer"
    FRACTION = "fraction"  # a number from 0 to 1
    OBJECT = "object"  # a JSON object
    DURATION = "duration"  # such as 8h or 30m; in seconds
    TIME = "time"  # such as 2026-03-01
    HEAD = "head"  # the end of an audit chain, as `audit head` prints it
    SWITCH = "switch"  # takes no value; giving it means the opposite of its default
    PATH = "path"
    URL = "url"


_METAVARS = {
    Kind.INPUT: "TEXT", Kind.WORDS: "WORD", Kind.INTEGER: "N", Kind.FRACTION: "X",
    Kind.OBJECT: "JSON", Kind.HEAD: "NUMBER:SEAL",
}  # fmt: skip
# Values that refer to this machine: a server must not accept them from its clients.
LOCAL_KINDS = frozenset({Kind.PATH, Kind.URL})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation. `name` is that of the method, whose signature says the rest."""

    name: str
    help: str
    _: KW_ONLY
    kind: Kind = Kind.TEXT
    flag: str = ""  # default: the name
    metavar: str = ""  # default: that of the kind
    default: object = None
    cli_default: object = None  # another default on the command line
    cli_help: str = ""  # another help on the command line
    default_help: str = ""  # what happens without it, if the default does not say it
    # Each word, and the value it stands for.
    choices: Mapping[str, object] = field(default_factory=dict)
    # What the method accepts: the smallest and the largest whole number, and the length of a text.
    min_: int = 1
    max_: int | None = None
    blank: bool = True  # whether a text may be blank
    required: bool = False
    repeated: bool = False
    positional: bool = False
    # On the command line its value may also stand without the flag: `get ID` is `get --id ID`.
    bare: bool = False
    into: str = ""  # the parameter of the method, an object, that takes this one as a key
    # Over REST: it is passed as the first of these parameters, and is given instead of all of them.
    instead_of: tuple[str, ...] = ()
    option: bool = False  # not passed to the method, but used by the formatter or the view
    shared: bool = False  # passed to the method and to the formatter
    # It selects all that belongs to an agent, a session …: a call with it reaches other agents of
    # the user, and the command line asks first. A flag that is one of `Operation.target` too names
    # the reader instead if a single memory is given.
    scope: bool = False
    extent: Extent = Extent.READER  # how far a call with it reaches

    @property
    def word(self) -> str:
        """Its name on the command line: `--min-score`, or `QUERY` for a positional parameter."""
        return (
            self.shown_metavar
            if self.positional
            else self.flag or f"--{self.name.replace('_', '-')}"
        )

    @property
    def label(self) -> str:
        """Its name where a value is missing: `--metadata JSON`, or `ID` for one that needs no
        flag."""
        return (
            self.shown_metavar
            if self.positional or self.bare
            else f"{self.word} {self.shown_metavar}"
        )

    @property
    def is_yes_no(self) -> bool:
        """Whether its value is true or false."""
        values = self.choices.values()
        return self.kind is Kind.SWITCH or (bool(values) and {*map(type, values)} == {bool})

    @property
    def shown_help(self) -> str:
        """Its help on the command line, with how to give it there."""
        if self.cli_help:
            return self.cli_help
        text = f"{self.help}; - reads standard input" if self.kind is Kind.INPUT else self.help
        return f"{text}; may be repeated" if self.repeated and not self.positional else text

    @property
    def shown_metavar(self) -> str:
        return self.metavar or _METAVARS.get(self.kind, self.kind.upper())

    @property
    def shown_default(self) -> str:
        """The default as help texts show it; empty when there is none."""
        default = self.cli_default or self.default
        if self.kind is Kind.SWITCH or default in (None, ""):
            return self.default_help
        if self.kind is Kind.DURATION and isinstance(default, int):
            units = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
            return next(
                f"{default // seconds}{unit}" for unit, seconds in units if default % seconds == 0
            )
        named = next((word for word, value in self.choices.items() if value == default), None)
        return named or (", ".join(default) if isinstance(default, tuple) else str(default))


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `aliases` gives it another name in an interface.

    On the command line an alias may end with a flag: `explain` is `search --explain` there. Such an
    entry is a variant of the command before the flag, chosen when the flag is given. A variant
    without a flag is chosen by its `into` parameters.
    """

    name: str
    summary: str
    _: KW_ONLY
    heading: str = ""
    method: str = ""  # of the mesh, or of one of its faces: `graph.reinforce`
    view: str = ""
    formatter: str = ""  # a method of the mesh that turns the result into text for the view
    handler: str = ""
    # Parameters of the method, and the field of the reader for each.
    reader: Mapping[str, str] = field(default_factory=dict)
    # Parameters of the method whose value the operation decides.
    fixed: Mapping[str, object] = field(default_factory=dict)
    effect: Effect = Effect.READ
    extent: Extent = Extent.READER
    exposed: frozenset[Interface] = frozenset({Interface.CLI})
    aliases: Mapping[Interface, str] = field(default_factory=dict)
    parameters: tuple[Parameter, ...] = ()
    # Flags of the command line.
    target: tuple[str, ...] = ("store", "agent", "user", "session", "project", "preset")
    # `bar`: a bar on a terminal only; `lines`: elsewhere one line for each batch.
    progress: str = ""
    # The question to ask before it runs on a scope, which stands for `{scope}`. `{what}` is what it
    # erases.
    confirm: str = ""
    examples: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.handler) == bool(self.method and self.view):
            raise ValueError(f"{self.name}: needs a method and a view, or a handler")
        if self.exposed - {Interface.CLI} and (
            self.handler or any(one.kind in LOCAL_KINDS for one in self.parameters)
        ):
            raise ValueError(
                f"{self.name}: a handler, a path or a URL of this machine cannot be exposed by "
                "a server"
            )

    @property
    def variants(self) -> tuple["Operation", ...]:
        """The operation without parameters that are given instead of others, and with each."""
        names = {one.name for one in self.parameters}
        others = [one for one in self.parameters if names.intersection(one.instead_of)]
        plain = tuple(one for one in self.parameters if one not in others)
        with_others = (
            (
                replace(other, required=True),
                *(one for one in plain if one.name not in other.instead_of),
            )
            for other in others
        )
        return tuple(replace(self, parameters=one) for one in (plain, *with_others))

    @property
    def command(self) -> str:
        """The words of its command, such as `audit verify`."""
        return self.aliases.get(Interface.CLI, self.name).partition(" --")[0]

    @property
    def switch(self) -> str:
        """The flag that chooses this variant of its command, or an empty text."""
        _, dashes, flag = self.aliases.get(Interface.CLI, self.name).partition(" --")
        return f"--{flag}" if dashes else ""
