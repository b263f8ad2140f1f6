"""Put a trained change of the model into the package: python -m bench.train_reader.ship DELTA
WEIGHTS

DELTA is a delta-SEED.npz of the training, WEIGHTS the model.safetensors of all-MiniLM-L6-v2. Writes
the package's reader.npz, and the hashes of it and of the graph built from it into
memory_mesh/models/onnx_graph.py.
"""

import hashlib
import re
import sys
from pathlib import Path

import numpy as np

from memory_mesh.models import onnx_graph
from memory_mesh.models.onnx_graph import build_reader


def main() -> None:
    given, weights = Path(sys.argv[1]), Path(sys.argv[2])
    with np.load(given) as change:
        graph = build_reader(weights.read_bytes(), dict(change))
    onnx_graph.DELTA.write_bytes(given.read_bytes())
    hashes = {
        "DELTA_HASH": hashlib.sha256(given.read_bytes()).hexdigest(),
        "GRAPH_HASH": hashlib.sha256(graph).hexdigest(),
    }
    module = Path(str(onnx_graph.__file__))
    text = module.read_text(encoding="utf-8")
    for name, value in hashes.items():
        text = re.sub(rf'^{name} = ".*"$', f'{name} = "{value}"', text, count=1, flags=re.MULTILINE)
    module.write_text(text, encoding="utf-8")
    print(hashes)


if __name__ == "__main__":
    main()
