"""How commands are declared and read: named flags only, shared flags said once, names that come later answered as such.

A verb is a function from its flags to an `Answer`. `verb` makes it a command and adds what all commands share.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.not_yet import NOT_YET, not_yet
from memory_mesh.interfaces.render import Answer

if TYPE_CHECKING:
    from memory_mesh.wiring.mesh import MemoryMesh

_WHO = "Whose memory, and where"


@dataclass(frozen=True, slots=True)
class Who:
    """Which memory a command works on, and as whom; what is not given comes from the settings."""

    store: str | None = None
    agent: str | None = None
    user: str | None = None
    session: str | None = None

    @property
    def arguments(self) -> dict[str, str | None]:
        return {"store": self.store, "agent_id": self.agent, "user_id": self.user, "session_id": self.session}

    def mesh(self) -> "MemoryMesh":
        from memory_mesh.wiring.mesh import MemoryMesh  # `--help` needs no store

        return MemoryMesh(store=self.store, agent_id=self.agent, user_id=self.user, session_id=self.session)


def option(flag: str, about: str, *, metavar: str | None = None, panel: str | None = None) -> Any:
    return typer.Option(flag, help=about, metavar=metavar, rich_help_panel=panel, show_default=False)


StoreFlag = Annotated[
    str | None,
    option("--store", "the store, e.g. sqlite:///memory.db; else the settings' or the home's", metavar="URL", panel=_WHO),
]
AgentFlag = Annotated[str | None, option("--agent", "read and write as this agent", metavar="NAME", panel=_WHO)]
UserFlag = Annotated[str | None, option("--user", "in the memory of this user", metavar="NAME", panel=_WHO)]
SessionFlag = Annotated[str | None, option("--session", "in this session", metavar="NAME", panel=_WHO)]
JsonFlag = Annotated[bool, option("--json", "answer as JSON")]

_SHARED = {"store": StoreFlag, "agent": AgentFlag, "user": UserFlag, "session": SessionFlag}


def verb(
    app: typer.Typer, name: str, *, panel: str, examples: Sequence[str]
) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Make a function a command. One that takes `who` gets the flags that say whose memory; all get `--json`."""

    def declared(act: Callable[..., Answer]) -> Callable[..., Answer]:
        shown = "\n".join(f"  memory-mesh {example}" for example in examples)
        about = f"{act.__doc__}\n\nExamples:\n\n{shown}"
        app.command(name, cls=Words, help=about, rich_help_panel=panel)(_command(act))
        return act

    return declared


def _command(act: Callable[..., Answer]) -> Callable[..., Answer]:
    own = dict(signature(act).parameters)
    scoped = own.pop("who", None) is not None

    def command(**given: Any) -> Answer:
        as_json = given.pop("as_json")
        if scoped:
            given["who"] = Who(**{name: given.pop(name) for name in _SHARED})
        return replace(act(**given), as_json=as_json)

    shared = {name: _flag(name, kind, None) for name, kind in _SHARED.items()} if scoped else {}
    flags = [*own.values(), *shared.values(), _flag("as_json", JsonFlag, False)]  # noqa: FBT003  (a default, not a switch)
    command.__signature__ = Signature(flags)  # type: ignore[attr-defined]
    command.__name__ = act.__name__
    return command


def _flag(name: str, kind: object, default: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


class Words(TyperCommand):
    """A command that reads its words as they are and takes no JSON but behind a flag."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for word in self._positional(args):
            self._refuse_json(word)
        _read_plainly(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def _positional(self, args: Sequence[str]) -> Iterator[str]:
        words = iter(args)
        for word in words:
            if word in self._taking_values():
                next(words, None)
            elif not word.startswith("-"):
                yield word

    def _taking_values(self) -> set[str]:
        return {opt for param in self.params if isinstance(param, TyperOption) and not param.is_flag for opt in param.opts}

    def _refuse_json(self, word: str) -> None:
        try:
            value = json.loads(word) if word.lstrip()[:1] in ("{", "[") else None
        except (ValueError, RecursionError):
            return
        if value is not None:
            keys = value if isinstance(value, dict) else ()
            flags = [f"--{key} …" for key in keys if f"--{key}" in self._taking_values()]
            remedy = f"write memory-mesh {self.name} {' '.join(flags or ['--help'])}"
            raise InvalidInput("JSON stands where a flag should", expected="named flags", remedy=remedy)


def _read_plainly(params: Sequence[Any]) -> None:
    """Take texts as they are. Typer's reader would load pydantic for the first of them: 70 ms of every command."""
    for param in params:
        param.process_value = partial(_as_given, param, param.process_value)


def _as_given(param: Any, read: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    if isinstance(value, str | tuple | list) or (value is None and not param.required):
        return param.callback(ctx, param, value) if param.callback else value
    return read(ctx, value)


class Commands(TyperGroup):
    """All commands; one that is named by the documents and not there yet says so."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _read_plainly(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in NOT_YET and args[0] not in self.commands:
            raise not_yet(args[0])
        return super().resolve_command(ctx, args)
