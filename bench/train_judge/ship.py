"""Put a trained judge into the package: python -m bench.train_judge.ship CHANGE WEIGHTS

CHANGE is the judge.npz of the training, WEIGHTS the model.safetensors of all-MiniLM-L6-v2. Writes
the package's judge.npz, and the hashes of it and of the graph built from it into
memory_mesh/models/model_files.py. A judge that replaces a released one needs another name there,
too (JUDGE).
"""

import hashlib
import io
import re
import sys
from pathlib import Path

import numpy as np

from memory_mesh.core.ports import RELATIONS
from memory_mesh.models import model_files
from memory_mesh.models.onnx_graph import WIDTH, build


def main() -> None:
    given, weights = Path(sys.argv[1]).read_bytes(), Path(sys.argv[2]).read_bytes()
    with np.load(io.BytesIO(given)) as arrays:
        change = dict(arrays)
    for name, shape in (
        ("head.weight", (len(RELATIONS), 2 * WIDTH)),
        ("head.bias", (len(RELATIONS),)),
    ):
        if change[name].shape != shape:
            sys.exit(f"{name} has the shape {change[name].shape}, expected {shape}")
    change_hash, graph_hash = (
        hashlib.sha256(data).hexdigest() for data in (given, build(weights, change=change))
    )
    values = {
        r'^    JUDGE: "': f"judge-{graph_hash[:12]}.onnx",
        r'^    JUDGE_CHANGE: "': change_hash,
        r'^    GRAPHS\[JUDGE\]: "': graph_hash,
    }
    module = Path(str(model_files.__file__))
    text = module.read_text(encoding="utf-8")
    for before, value in values.items():
        text, count = re.subn(rf'({before})[^"]*', rf"\g<1>{value}", text, flags=re.MULTILINE)
        if count != 1:
            sys.exit(
                f"{module} has {count} lines that match {before}, expected 1: nothing was written"
            )
    (module.parent / "data" / model_files.JUDGE_CHANGE).write_bytes(given)
    module.write_text(text, encoding="utf-8")
    print(*values.values(), sep="\n")


if __name__ == "__main__":
    main()
