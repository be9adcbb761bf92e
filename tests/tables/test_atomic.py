"""A file is replaced whole or not at all, and nothing but a regular file is replaced."""

import os
import stat

import pytest

from keepers.exceptions import KeepersError, ParameterError
from keepers.tables.atomic import check_target, whole_file


def write(path, text="new", force=True):
    with whole_file(path, force=force) as temporary:
        temporary.write_text(text)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.posix
@pytest.mark.parametrize("force", [True, False])
def test_force_does_not_replace_a_device_or_a_pipe(tmp_path, force):
    os.mkfifo(tmp_path / "pipe")
    # A terminal: nothing can be replaced in its folder, should the refusal ever fail.
    (tmp_path / "device").symlink_to(os.ttyname(os.openpty()[1]))
    for name in ("pipe", "device"):
        before = (tmp_path / name).stat()
        for refuse in (check_target, write):
            with pytest.raises(ParameterError, match="only a regular file"):
                refuse(tmp_path / name, force=force)
        after = (tmp_path / name).stat()
        assert (before.st_mode, before.st_ino) == (after.st_mode, after.st_ino)
    assert sorted(os.listdir(tmp_path)) == ["device", "pipe"]


@pytest.mark.posix
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_followed_and_stays_a_link(tmp_path, exists):
    if exists:
        (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link", force=exists)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    for name, where in (("loop", "loop"), ("lost", "missing/real")):
        (tmp_path / name).symlink_to(tmp_path / where)
        for refuse in (check_target, write):
            with pytest.raises(ParameterError, match="cannot be written"):
                refuse(tmp_path / name, force=True)


@pytest.mark.posix
@pytest.mark.parametrize("mode", [0o600, 0o755])
def test_a_replaced_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "a"
    path.touch()
    path.chmod(mode)
    with whole_file(path, force=True) as temporary:
        assert mode_of(temporary) & ~mode == 0, "readable by more than the file it becomes"
        temporary.write_text("new")
    assert (mode_of(path), path.read_text()) == (mode, "new")


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_everything_as_it_was(tmp_path, error):
    (tmp_path / "a").write_text("mine")

    def interrupted():
        with whole_file(tmp_path / "a", force=True) as temporary:
            temporary.write_text("half a ta")
            raise error

    with pytest.raises(error):
        interrupted()
    for refuse in (check_target, write):
        with pytest.raises(ParameterError, match="--force"):
            refuse(tmp_path / "a", force=False)
    assert (tmp_path / "a").read_text() == "mine"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.posix
def test_a_place_that_takes_no_file_is_noticed_early_and_nothing_is_left(tmp_path):
    (tmp_path / "file").touch()
    for name, rule in (("file/a", "no folder"), ("no/a", "no folder")):
        with pytest.raises(ParameterError, match=rule):
            check_target(tmp_path / name)
    with pytest.raises(KeepersError, match=r"a\.json cannot be written"):
        check_target("/proc/self/a.json")
    check_target(tmp_path / "a")
    assert os.listdir(tmp_path) == ["file"]


def test_a_read_only_file_or_folder_is_noticed_early(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("mine")
    monkeypatch.setattr(os, "access", lambda *_: False)
    for refuse in (check_target, write):
        with pytest.raises(ParameterError, match="read-only"):
            refuse(tmp_path / "a", force=True)
    assert (tmp_path / "a").read_text() == "mine"

    def read_only(*_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(KeepersError, match="b cannot be written"):
        check_target(tmp_path / "b")
