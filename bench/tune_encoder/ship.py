"""Put a tuned change of the encoder into the package: python -m bench.tune_encoder.ship DELTA
WEIGHTS

DELTA is the encoder.npz of the tuning, WEIGHTS the model.safetensors of all-MiniLM-L6-v2. Writes
the package's encoder.npz, and the hashes of it and of the graph built from it into
memory_mesh/models/model_files.py.
"""

import hashlib
import re
import sys
from pathlib import Path

import numpy as np

from memory_mesh.models import model_files
from memory_mesh.models.onnx_graph import build


def main() -> None:
    given, weights = Path(sys.argv[1]), Path(sys.argv[2])
    with np.load(given) as change:
        graph = build(weights.read_bytes(), change=dict(change))
    change_hash, graph_hash = (
        hashlib.sha256(data).hexdigest() for data in (given.read_bytes(), graph)
    )
    values = {
        r'^    MODEL: "': f"everyday-{graph_hash[:12]}.onnx",
        r'^    CHANGE: "': change_hash,
        r'^    GRAPHS\[MODEL\]: "': graph_hash,
    }
    module = Path(str(model_files.__file__))
    text = module.read_text(encoding="utf-8")
    for before, value in values.items():
        text, count = re.subn(rf'({before})[^"]*', rf"\g<1>{value}", text, flags=re.MULTILINE)
        if count != 1:
            sys.exit(
                f"{module} has {count} lines that match {before}, expected 1: nothing was written"
            )
    (module.parent / "data" / "encoder.npz").write_bytes(given.read_bytes())
    module.write_text(text, encoding="utf-8")
    print(*values.values(), sep="\n")


if __name__ == "__main__":
    main()
