"""The commit that a benchmark was run at, for its result file."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def measured_at(root: Path = ROOT) -> dict[str, object]:
    """Return the commit, and whether the files were as it has them; both are None without a
    repository.

    Results do not count as changes: one benchmark writes its file before the next one starts.
    """
    commit = _git(root, "rev-parse", "HEAD")
    changes = _git(root, "status", "--porcelain", "--", ".", ":!bench/results")
    return {
        "commit": commit or None,
        "clean": None if commit is None or changes is None else not changes,
    }


def _git(root: Path, *words: str) -> str | None:
    """Return what a git command prints, or None if it fails."""
    try:
        done = subprocess.run(
            ["git", *words], cwd=root, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
