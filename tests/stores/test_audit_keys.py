"""The file of the audit keys: created once and privately, never by a read, and refused with one
clear error if it is unusable."""

import os
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from memory_mesh.core.audit.chain import SigningKey
from memory_mesh.core.errors import SettingsError
from memory_mesh.stores.audit_files import AuditKeyFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "audit.key"


def test_a_read_creates_nothing(path: Path) -> None:
    assert AuditKeyFile(path).by_id() == {}
    assert not path.parent.exists()


def test_the_first_use_creates_one_private_key_of_32_bytes(path: Path) -> None:
    key = AuditKeyFile(path).current()
    assert re.fullmatch(r"[0-9a-f]{64}\n", path.read_text())
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [one.name for one in path.parent.iterdir()] == ["audit.key"]
    assert AuditKeyFile(path).current() == key
    assert bytes.fromhex(path.read_text()) == key.secret


def test_the_id_shows_nothing_of_the_key_and_no_text_shows_the_key(path: Path) -> None:
    key = AuditKeyFile(path).current()
    assert re.fullmatch(r"[0-9a-f]{16}", key.id)
    assert key.id in repr(key)
    for text in (repr(key), str(key), f"{key}"):
        assert key.secret.hex() not in text
        assert repr(key.secret) not in text


def test_a_new_key_is_appended_and_the_older_ones_stay(path: Path) -> None:
    keys = AuditKeyFile(path)
    first, other = keys.current(), AuditKeyFile(path)
    assert other.current() == first
    second = keys.add()
    path.write_text(path.read_text().rstrip("\n"))  # edited by hand
    third = other.add()  # notices what another process added
    assert [*keys.by_id().values()] == [first, second, third]
    assert keys.current() == other.current() == third
    assert len({first.id, second.id, third.id}) == 3


@pytest.mark.deep
def test_processes_that_create_it_at_once_agree_on_one_key(path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        ids = {*pool.map(_current, [str(path)] * 8)}
    assert ids == {AuditKeyFile(path).current().id}
    assert len(path.read_text().split()) == 1


def _current(path: str) -> str:
    return AuditKeyFile(Path(path)).current().id


def folder(path: Path) -> None:
    path.mkdir()


def link_to_nowhere(path: Path) -> None:
    path.symlink_to(path.with_name("gone"))


def pipe(path: Path) -> None:
    os.mkfifo(path)


def written(text: bytes, mode: int = 0o600) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(text)
        path.chmod(mode)

    return write


KEY = b"ab" * 32
UNUSABLE = {
    "a folder": (folder, "is not a regular file"),
    "a pipe": (pipe, "is not a regular file"),
    "a link to nowhere": (link_to_nowhere, "is a link to a file that does not exist"),
    "empty": (written(b""), "has no key"),
    "garbage": (written(b"\xff\x00 garbage"), "not a key"),
    "a short key": (written(KEY[:-2]), "not a key"),
    "one bad line": (written(KEY + b"\n# mine\n"), "not a key"),
    "readable by the group": (written(KEY, 0o640), "chmod 600"),
    "readable by the world": (written(KEY, 0o604), "chmod 600"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_unusable_file_is_one_clear_error_and_is_left_alone(path: Path, name: str) -> None:
    make, reason = UNUSABLE[name]
    path.parent.mkdir()
    make(path)
    before = os.lstat(path)
    for use in (AuditKeyFile(path).by_id, AuditKeyFile(path).current, AuditKeyFile(path).add):
        with pytest.raises(SettingsError, match=reason) as caught:
            use()
        assert str(path) in str(caught.value)
        assert KEY.decode() not in str(caught.value)
    assert os.lstat(path) == before


def test_a_folder_that_cannot_hold_it_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(SettingsError, match=r"audit\.key"):
        AuditKeyFile(tmp_path / "home" / "audit.key").current()


def test_a_signature_belongs_to_its_key_and_to_every_part() -> None:
    key, other = SigningKey(b"a" * 32), SigningKey(b"b" * 32)
    signed = key.sign(chain="c", number=1)
    assert signed == key.sign(number=1, chain="c")
    assert (
        len(
            {
                signed,
                other.sign(chain="c", number=1),
                key.sign(chain="c", number=2),
                key.sign(chain="d", number=1),
            }
        )
        == 4
    )
