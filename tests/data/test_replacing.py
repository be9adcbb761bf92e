"""A file is replaced whole or not at all, and nothing but a regular file is replaced."""

import os
import signal
import socket
import stat
import subprocess
import sys

import pytest

from keepers.data.replacing import check_target, whole_file
from keepers.exceptions import KeepersError, ParameterError


def write(path, text="new", force=True):
    with whole_file(path, force=force) as temporary:
        temporary.write_text(text)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def entries(folder):
    return sorted(os.listdir(folder))


def make_node(path, kind):
    if kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    else:  # a terminal: nothing can be replaced in its folder, should the refusal ever fail
        path.symlink_to(os.ttyname(os.openpty()[1]))


@pytest.mark.posix
@pytest.mark.parametrize("kind", ["a named pipe", "a socket", "a device"])
@pytest.mark.parametrize("force", [True, False])
def test_force_does_not_replace_a_device_or_a_pipe(tmp_path, monkeypatch, kind, force):
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    make_node(tmp_path / "node", kind)
    before = os.stat("node")
    for refuse in (check_target, write):
        with pytest.raises(ParameterError, match=f"is {kind}; only a regular file"):
            refuse(tmp_path / "node", force=force)
    after = os.stat("node")
    assert (before.st_mode, before.st_ino) == (after.st_mode, after.st_ino)
    assert entries(tmp_path) == ["node"]


@pytest.mark.posix
def test_a_link_to_a_file_that_is_not_there_yet_makes_that_file(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link", force=False)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.posix
@pytest.mark.parametrize("where", ["link", "missing/real"])
def test_a_link_that_leads_nowhere_is_refused_with_a_sentence(tmp_path, where):
    (tmp_path / "link").symlink_to(tmp_path / where)
    for refuse in (check_target, write):
        with pytest.raises(ParameterError, match="cannot be written"):
            refuse(tmp_path / "link", force=True)


@pytest.mark.posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_a_replaced_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "a"
    path.touch()
    path.chmod(mode)
    with whole_file(path, force=True) as temporary:
        assert mode_of(temporary) & ~mode == 0, "readable by more than the file it becomes"
        temporary.write_text("new")
    assert mode_of(path) == mode
    assert path.read_text() == "new"


@pytest.mark.posix
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_follows_the_umask_from_the_beginning(tmp_path, mask):
    before = os.umask(mask)
    try:
        with whole_file(tmp_path / "a") as temporary:
            assert mode_of(temporary) == 0o666 & ~mask
        assert mode_of(tmp_path / "a") == 0o666 & ~mask
    finally:
        os.umask(before)


@pytest.mark.posix
def test_a_group_that_cannot_be_kept_gives_its_rights_to_no_other(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.touch()
    path.chmod(0o664)

    def refused(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refused)
    write(path)
    assert mode_of(path) == 0o604


KILLED = """
import os, signal, sys
from keepers.data.replacing import whole_file
with whole_file(sys.argv[1], force=True) as temporary:
    temporary.write_text("half a ta")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_while_writing(path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.posix
def test_what_a_killed_write_left_is_removed_by_the_next_write_of_the_same_file(tmp_path):
    kill_while_writing(tmp_path / "a")
    assert len(entries(tmp_path)) == 1  # the temporary file
    write(tmp_path / "b")
    assert len(entries(tmp_path)) == 2, "what was left for another file is not ours to judge"
    write(tmp_path / "a")
    assert entries(tmp_path) == ["a", "b"]


def test_a_temporary_file_of_a_living_process_is_kept(tmp_path):
    with whole_file(tmp_path / "a", force=True) as first:
        first.write_text("first")
        write(tmp_path / "a", "second")
        assert first.read_text() == "first"
    assert (tmp_path / "a").read_text() == "first"
    assert entries(tmp_path) == ["a"]


@pytest.mark.posix
def test_temporary_files_of_other_machines_are_kept(tmp_path, monkeypatch):
    kill_while_writing(tmp_path / "a")
    monkeypatch.setattr("keepers.data.replacing._machine", lambda: "0123456789")
    write(tmp_path / "a")
    assert len(entries(tmp_path)) == 2


@pytest.mark.posix
def test_a_target_under_a_file_or_in_a_folder_that_takes_no_files_is_noticed_early(tmp_path):
    (tmp_path / "file").touch()
    for name in ("file/a", "missing/a"):
        with pytest.raises(ParameterError, match="There is no folder"):
            check_target(tmp_path / name)
    with pytest.raises(KeepersError, match=r"a\.json cannot be written: .*Choose another place"):
        check_target("/proc/self/a.json")


def test_a_read_only_folder_or_file_is_noticed_early(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("mine")
    monkeypatch.setattr(os, "access", lambda *_: False)
    for refuse in (check_target, write):
        with pytest.raises(ParameterError, match="is read-only and is not overwritten"):
            refuse(tmp_path / "a", force=True)
    assert (tmp_path / "a").read_text() == "mine"

    def read_only(*_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(KeepersError, match="b cannot be written: Read-only file system"):
        check_target(tmp_path / "b")


def test_the_check_leaves_nothing_behind(tmp_path):
    check_target(tmp_path / "a")
    assert entries(tmp_path) == []
