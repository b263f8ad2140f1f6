"""What the parts of a mesh have in common: opening, closing and scope."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never, Self, TypeVar
from weakref import ref

from memory_mesh.core.errors import InvalidInput, SettingsError, shown
from memory_mesh.core.model import Filter, Reader
from memory_mesh.core.options import validate
from memory_mesh.flows.context import Context, SharedContext, Source
from memory_mesh.flows.search import usage

if TYPE_CHECKING:
    from memory_mesh.api.mesh_methods import Mesh

# Methods of other libraries, and what to call here.
_ELSEWHERE = {
    "upsert": "add(…, key=…)", "put": "add(…, key=…)", "store": "add", "remember": "add",
    "query": "search", "recall": "search", "count": "stats().total_memories",
    "clear": "forget", "reset": "forget", "remove": "forget", "purge": "forget",
}  # fmt: skip

AnyHandle = TypeVar("AnyHandle", bound="Handle")


class Handle:
    """A handle on a store: it opens the store on first use and knows who reads and writes."""

    _is_program_data = False  # inherited by the handles that are made from it

    def __init__(
        self, source: Source, scope: Mapping[str, Any], root: "ref[Handle] | None" = None
    ) -> None:
        self._source, self._scope = source, scope
        self._root = root or ref(self)  # the mesh that this handle was made from
        self._is_part = root is not None  # a part such as `mesh.lane`, and not a handle of its own
        self._shared: SharedContext | None = None
        # The shared context, and the same with the reader of this mesh.
        self._opened: tuple[Context, Context] | None = None
        self._closed = False

    def __repr__(self) -> str:
        scope = "".join(
            f", {name}={value!r}" for name, value in self._scope.items() if value is not None
        )
        return f"{type(self).__name__}({self._source.url!r}{scope})"

    @property
    def reader(self) -> Reader:
        """The user, agent, session and project that this handle reads and writes for."""
        return Reader(**self._scope)

    def scoped(
        self, *, user_id: str | None = None, agent_id: str | None = None,
        session_id: str | None = None, project: str | None = None, only_project: bool = False,
    ) -> Self:  # fmt: skip
        """Return a handle for another user, agent, session or project on the same store. What is
        not given is inherited.

        With `only_project` the handle sees no memory of another project, also not by its id; a
        handle made from it neither. A handle has all methods of a mesh, and takes a few
        microseconds to make. Closing one closes nothing that others use, and the store stays open
        until this mesh is closed too. Raises `SettingsError` for a blank name.
        """
        names = {
            "user_id": user_id,
            "agent_id": agent_id,
            "session_id": session_id,
            "project": project,
        }
        given: dict[str, Any] = {
            name: validate(name, value) for name, value in names.items() if value is not None
        }
        if self._scope.get("only_project") and project not in (None, self._scope["project"]):
            raise InvalidInput(
                f"the handle is of the project {self._scope['project']} only",
                expected="no other project",
            )
        given |= {"only_project": True} if only_project else {}
        handle = copy(self)  # also of a subclass, with what that adds
        Handle.__init__(handle, self._source, {**self._scope, **given}, self._root)
        handle._is_part = False
        return handle

    def init(self) -> None:
        """Open the store now instead of at the first use, create its file if there is none, and
        read `skill_directories`."""
        context = self._context()
        context.file.create_file()
        if context.options.skill_directories:
            from memory_mesh.flows.mirror.folders import read_again

            read_again(context)

    def close(self) -> None:
        """Write what is pending and close the store, unless other meshes use it. A later call opens
        it again.

        A store that was passed to the constructor as an object stays open.
        """
        shared, opened, self._opened, self._closed = self._shared, self._opened, None, True
        if shared and opened:
            try:
                if shared.value is opened[0]:
                    usage.flush(opened[1])
            finally:
                shared.release(self)

    def __enter__(self) -> Self:
        self._context()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- internals ---

    if not TYPE_CHECKING:  # otherwise type checkers would accept every misspelt method

        def __getattr__(self, name: str) -> Never:
            hint = f"; use {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def _context(self) -> Context:
        """Return the context; open it first if needed."""
        shared, opened = self._shared, self._opened
        # Not open, or not since a fork.
        if shared is None or opened is None or shared.value is not opened[0]:
            reader, root = Reader(**self._scope), self._root()
            if root is not None and root is not self and not root._closed:
                # So that closing this handle leaves the store open for the next one.
                root._context()
            self._shared = shared = self._source.find()
            # An error keeps the part that raised it alive; it must not keep the store open after
            # its mesh is closed.
            user = (
                root
                if root is not None
                and self._is_part
                and not root._closed
                and root._shared is shared
                else self
            )
            context = shared.use(user)
            own = replace(context, reader=reader)
            own = own.for_program_data() if self._is_program_data else own
            self._opened, self._closed = (context, own), False
            return self._opened[1]
        return opened[1]

    def _existing(self) -> Context:
        """Return the context, or raise `StoreMissing` if the store does not exist."""
        context = self._context()
        context.file.require_file()
        return context

    def _context_of(self, user_id: str | None, agent_id: str | None) -> Context:
        """Return the context of a call that names a user or an agent: that of a scoped handle. A
        handle of one user serves no other user."""
        context = self._context()
        if user_id is None and agent_id is None:
            return context
        if user_id is not None and context.reader.user_id not in (None, user_id):
            raise InvalidInput(
                f"the handle is of the user {shown(context.reader.user_id)}",
                expected="no other user; scoped() makes a handle for one",
            )
        reader = self.scoped(user_id=user_id, agent_id=agent_id).reader
        return replace(context, reader=reader)

    def _reading(self, user_id: str | None = None, agent_id: str | None = None) -> Context:
        """Return the context after the notes of `notes_dir` and the traces of `traces_dir` are
        indexed."""
        context = self._context_of(user_id, agent_id)
        if context.options.traces_dir:
            from memory_mesh.flows.traces import index as trace_index  # most meshes have no traces

            trace_index.refresh(context)
        if context.options.notes_dir:
            from memory_mesh.flows.notes.index import refresh  # most meshes have no notes

            refresh(context)
        return context

    def _flushed(self) -> Context:
        """Return the context after all audit blocks of earlier searches are written."""
        context = self._reading()
        if self._shared:
            self._shared.flush()
        return context

    def _in_session(
        self, session_id: str | None, user_id: str | None = None, agent_id: str | None = None
    ) -> Context:
        return with_session(self._reading(user_id, agent_id), session_id)


def with_session(context: Context, session_id: str | None) -> Context:
    """Return the context of a call that names a session."""
    if session_id is None:
        return context
    try:
        session_id = validate("session_id", session_id)
    except SettingsError as error:  # of a call, not of a setting
        raise InvalidInput(error.what, expected=error.expected) from None
    return replace(context, reader=replace(context.reader, session_id=session_id))


def for_program_data(handle: AnyHandle) -> AnyHandle:
    """Return a handle that stores what a program reads back as it was: the items of a session, the
    values of a store."""
    own = handle.scoped()
    own._is_program_data = True
    return own


def erase_expired(mesh: "Mesh", filter: Filter) -> int:
    """Erase the visible memories that have expired and meet the filter; return their number."""
    from memory_mesh.flows.search import filters, reads

    ids = reads.expired(mesh._reading(), filters.where_of(filter))
    for id_ in ids:
        mesh.delete(id_)
    return len(ids)
