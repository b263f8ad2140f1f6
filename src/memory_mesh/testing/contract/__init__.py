"""The contract that every store keeps, sentence by sentence of `core.ports.Store`. Run it on a store of your own:

```python
from memory_mesh.testing import StoreContract

class TestMyStore(StoreContract):
    def open(self, place):
        return MyStore(place / "rows")
```
It needs pytest and the extra `testing`. How many examples the property tests try is your Hypothesis profile's to say.
"""

from memory_mesh.testing.contract.changes import KnowsWhatMoved
from memory_mesh.testing.contract.handles import IsShared
from memory_mesh.testing.contract.keywords import RanksByKeywords
from memory_mesh.testing.contract.reads import FindsInOrder
from memory_mesh.testing.contract.rows import KeepsRows
from memory_mesh.testing.contract.vectors import RanksByCosine
from memory_mesh.testing.contract.where import MeansWhatItSays
from memory_mesh.testing.contract.writes import ChangesAsOne, CountsVersions


class StoreContract(
    KeepsRows,
    ChangesAsOne,
    CountsVersions,
    FindsInOrder,
    RanksByCosine,
    RanksByKeywords,
    KnowsWhatMoved,
    MeansWhatItSays,
    IsShared,
):
    """All of it. Say in `open` how the store is opened; set `durable = False` where nothing outlives `close`."""
