"""The model as it is run, kept in a folder: graph, tokenizer, and a manifest with their sums.

The manifest is written last and each file is moved into place whole. So a reader finds everything or nothing, and of two
processes that write at once the later one wins. What disagrees with its manifest does not count.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from memory_mesh.models.weights import SUMS, TOKENIZER, WEIGHTS

FORMAT = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Built:
    """Everything that the embedder loads, read and checked."""

    folder: Path
    graph: bytes
    tokenizer: bytes

    @property
    def size(self) -> int:
        return len(self.graph) + len(self.tokenizer)


def read(folder: Path) -> Built | None:
    """The model of a folder; None where there is none, or none that is whole."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        built = Built(folder, (folder / manifest["graph"]).read_bytes(), (folder / TOKENIZER).read_bytes())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return built if manifest == _manifest(built.graph) and _sum(built.tokenizer) == SUMS[TOKENIZER] else None


def write(built: Built) -> None:
    """Keep a model in its folder."""
    manifest = _manifest(built.graph)
    built.folder.mkdir(parents=True, exist_ok=True)
    _put(built.folder / str(manifest["graph"]), built.graph)
    _put(built.folder / TOKENIZER, built.tokenizer)
    _put(built.folder / MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")


def _manifest(graph: bytes) -> dict[str, object]:
    found = _sum(graph)
    # The graph's name tells what is in it: a manifest never speaks of a file that another process has replaced.
    return {"format": FORMAT, "source": SUMS[WEIGHTS], "graph": f"model-{found[:12]}.onnx", "sha256": found}


def _put(file: Path, data: bytes) -> None:
    from tempfile import NamedTemporaryFile  # readers need none

    with NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False) as part:
        part.write(data)
        part.flush()
        os.fsync(part.fileno())
    Path(part.name).chmod(0o644)  # a temporary file is its maker's alone; a cache may be shared
    Path(part.name).replace(file)


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
