"""The contract of a store: every sentence of `core.ports.Store` as a test. Run it on your store:

```python
from memory_mesh.testing import StoreContract

class TestMyStore(StoreContract):
    def open(self, place):
        return MyStore(place / "rows")
```
It needs pytest and the extra `testing`. Your Hypothesis profile sets the number of examples.
"""

from memory_mesh.testing.contract.reads import FindsInOrder, IsShared, MeansWhatItSays
from memory_mesh.testing.contract.searches import RanksByCosine, RanksByKeywords
from memory_mesh.testing.contract.writes import ChangesAsOne, CountsMoves, KeepsRows


class StoreContract(
    KeepsRows,
    ChangesAsOne,
    CountsMoves,
    FindsInOrder,
    RanksByCosine,
    RanksByKeywords,
    MeansWhatItSays,
    IsShared,
):
    """The whole contract. Define `open`; set `durable = False` if the data ends with `close`."""
