"""The methods of `MemoryMesh` that verify, show and export the audit chains, and evaluate a store."""

from collections.abc import Iterable, Iterator
from os import PathLike
from time import perf_counter

from memory_mesh.core import checks
from memory_mesh.core.audit import Anchored, Rekeyed, Verdict
from memory_mesh.core.evaluation import Evaluation
from memory_mesh.core.model import (
    Block,
    Head,
)
from memory_mesh.core.ports import Progress, as_progress
from memory_mesh.faces.handle import Handle


class Auditing(Handle):
    """A mesh whose audit chains can be read, and whose answers can be measured."""

    def verify(
        self, *, agent_id: str | None = None, recalls: bool | None = None, head: tuple[int, str] | None = None,
        anchor: str | PathLike[str] | None = None, progress: Progress | None = None,
    ) -> list[Verdict]:  # fmt: skip
        """Verify the audit chains of this user, and return `Sound` or `Broken` for each.

        A `Broken` names the first block that was changed. `agent_id` selects the chains of one agent; `recalls` selects only
        the chains of searches (True) or only the others (False). `head` is the number and the seal (or hash) of an earlier head,
        and `anchor` a file of `audit_anchor`, whose heads are all compared. `Sound.signature` says whether the signature of the
        chain was checked, and why not.
        """
        from memory_mesh.flows.anchor import verify
        from memory_mesh.flows.audit import ChainSelection

        selection = ChainSelection(agent_id=agent_id, recalls=recalls)
        file = None if anchor is None else checks.path("anchor", anchor)
        return verify(self._reading(), selection, noted=head, file=file, progress=as_progress(progress))

    def audit_heads(self, *, agent_id: str | None = None, recalls: bool | None = None) -> list[Head]:
        """Return the last block of each audit chain of this user.

        Store it elsewhere: `verify(head=…)` then detects if the end of the chain was removed.
        """
        from memory_mesh.flows.audit import ChainSelection, heads

        return heads(self._flushed(), ChainSelection(agent_id=agent_id, recalls=recalls))

    def audit_anchor(self, to: str | PathLike[str] | None = None) -> Anchored:
        """Append the heads of this user's chains to a file, or send them to a URL. The default is the option `audit_anchor`.

        `verify(anchor=…)` compares them later, and finds an older copy of the store. Raises `InvalidInput` for a file that cannot
        be used, and `CallError` if the URL cannot be called.
        """
        from memory_mesh.flows.anchor import anchor

        return anchor(self._flushed(), None if to is None else checks.path("to", to))

    def audit_rekey(self) -> Rekeyed:
        """Make a new key for the signatures of the audit chains, and move every chain of this user to it.

        The old key stays in the key file. Raises `SettingsError` if a chain is signed with a key that is not in the file.
        """
        from memory_mesh.flows.rekey import rekey

        return rekey(self._flushed())

    def audit_log(
        self, limit: int = 20, *, operation: str | None = None, agent_id: str | None = None, recalls: bool | None = None,
        auditor: str | None = None,
    ) -> list[Block]:  # fmt: skip
        """Return the latest audit blocks of this user, newest first.

        Texts of memories and queries that this agent and session may not see are `withheld`. `auditor`, the name of a person,
        shows all of them; an audit block records that first.
        """
        from memory_mesh.flows.audit import ChainSelection, log

        selection = ChainSelection(agent_id=agent_id, recalls=recalls)
        return log(self._flushed(), selection=selection, operation=operation, limit=limit, auditor=auditor)

    def audit_export(
        self, *, as_json: bool = True, agent_id: str | None = None, recalls: bool | None = None, auditor: str | None = None,
        progress: Progress | None = None,
    ) -> Iterator[str]:  # fmt: skip
        """Yield the audit chains of this user as lines of JSON, which can be verified without the store, or in wire format.

        Texts are withheld as in `audit_log`; the wire format leaves out such blocks. `auditor` shows all of them.
        """
        from memory_mesh.flows.audit import ChainSelection, export

        selection, update = ChainSelection(agent_id=agent_id, recalls=recalls), as_progress(progress)
        return export(self._flushed(), selection=selection, as_json=as_json, auditor=auditor, progress=update)

    def evaluate(
        self, questions: Iterable[str] | None = None, *, count: int = 50, seed: int = 0, progress: Progress | None = None
    ) -> Evaluation:
        """Measure what questions find in the memories that this agent sees, and check what is stored. Nothing is changed.

        `questions` are lines of JSON such as `{"question": "Who pays?", "expect": ["mem_…"]}`, with ids or texts, or with
        `"nothing": true`. Without them, at most `count` questions are made from the memories, by rules or by the language model
        if there is one, and as many about things that no memory mentions. By rules, the same `seed` makes the same questions.
        The searches are not counted as uses and not written to the audit chain. Raises `InvalidInput` with the number of a line
        that is not a question.
        """
        from memory_mesh.flows.evaluate import Request, evaluate

        lines = None if questions is None else checks.iterable("questions", questions, expected="lines of JSON")
        request = Request(lines=lines, count=count, seed=seed, timer=perf_counter, progress=as_progress(progress))
        return evaluate(self._existing(), request)
