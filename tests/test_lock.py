"""The locked packages have exact versions and hashes, and fit what is asked for; each fault of
the file is found."""

import re

import pytest

import lock

TEXT = lock.FILE.read_text(encoding="utf-8")


def test_the_lock_file_is_complete_and_fits() -> None:
    assert list(lock.faults(TEXT)) == []
    assert TEXT.count("--hash=sha256:") > 500


@pytest.mark.parametrize(
    ("pattern", "new", "fault"),
    [
        (r"(?m)^numpy==\S+", "numpy>=2.0", "numpy has no exact version"),
        (r"(?m)^numpy==\S+", "numpy==1.9.0", "numpy is ==1.9.0, but constraints.txt has"),
        (r"(?m)^numpy==\S+", "numpy==1.9.0", "numpy==1.9.0 is not >=2.0"),
        (r"(?m)^(idna==\S+)( \\\n    --hash=\S+)+", r"\1", "idna has no valid hash"),
        (r"(?m)^(idna==\S+ \\\n    --hash=sha256:)\S+", r"\1abc", "idna has no valid hash"),
        (r"(?m)^rich==\S+( \\\n    --hash=\S+)+\n", "", "rich is missing"),
        (r"\A", "--index-url https://example.org/simple\n", None),
        (r"\A", "# https://example.org\n", "the file names an address"),
    ],
)
def test_each_fault_is_found(pattern: str, new: str, fault: str | None) -> None:
    changed, count = re.subn(pattern, new, TEXT, count=1)
    assert count == 1
    if fault is None:
        with pytest.raises(ValueError, match="index-url"):  # a line that is no requirement
            list(lock.faults(changed))
    else:
        assert any(fault in one for one in lock.faults(changed)), list(lock.faults(changed))
