"""Several meshes over one store, with a fixed clock and predictable ids."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace

from memory_mesh import MemoryMesh, MemoryRecord
from memory_mesh.core.audit import Sound, chain_name
from memory_mesh.core.model import Block, Ids, Kind, Memory, equals
from memory_mesh.core.ports import Store
from memory_mesh.testing.fakes import FakeClock, seeded_ids


@dataclass
class House:
    """One store and the meshes over it."""

    store: Store
    clock: FakeClock = field(default_factory=FakeClock)
    ids: Ids = field(default_factory=seeded_ids)

    def mesh(self, agent_id: str = "ann", **options: object) -> MemoryMesh:
        given = {"clock": self.clock.seconds, "ids": self.ids, **options}
        return MemoryMesh(store=self.store, agent_id=agent_id, **given)

    def memory(self, id_: str) -> Memory:
        return Memory.of(self.store.get(Kind.MEMORY, [id_])[id_])

    def memories(self) -> list[Memory]:
        return [Memory.of(row) for row in self.store.find(Kind.MEMORY)]

    def blocks(self, agent_id: str = "ann", user_id: str | None = None) -> list[Block]:
        found = self.store.find(Kind.BLOCK, equals("chain", chain_name(user_id, agent_id)))
        return sorted((Block.of(row) for row in found), key=lambda block: block.number)

    def change(self, id_: str, **columns: object) -> Memory:
        """Set columns of a memory (status, sources, reach) that no flow of this version sets."""
        memory = self.memory(id_)
        changed = replace(memory, **columns, revision=memory.revision + 1)
        self.store.apply([changed.row(replaces=memory.revision)])
        return changed

    def sound(self) -> bool:
        verdicts = self.mesh().verify()
        return bool(verdicts) and all(isinstance(verdict, Sound) for verdict in verdicts)


def texts(found: Iterable[MemoryRecord]) -> list[str]:
    return sorted(record.content for record in found)


def whole(*values: object) -> str:
    """Every field of records and of lists of them, uncut. Their `repr` is short: what it does
    not show may still be there."""
    return json.dumps(values, default=asdict, ensure_ascii=False)
