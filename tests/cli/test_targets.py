"""Where files are to be written is checked before anything is read or fitted."""

import os
import stat

import pytest

OPTIONS = {
    "--out": "a.csv",
    "--report": "a.html",
    "--save": "a.json",
    "--checkpoint": "a.npz",
    "--scores": "s.csv",
}


@pytest.mark.posix
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_named_pipe_is_refused_and_stays(quick_keepers, table, tmp_path, option, force):
    node = tmp_path / OPTIONS[option]
    os.mkfifo(node)
    done = quick_keepers("select", table, "--id", "sample", "-k", 2, option, node, *force)
    assert done.returncode == 2
    assert "is a named pipe; only a regular file is replaced. Name a file." in done.stderr
    assert stat.S_ISFIFO(node.stat().st_mode)


@pytest.mark.posix
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("place", ["table.csv", "/proc/self"])
def test_a_target_that_cannot_be_written_is_noticed_before_the_fit(
    quick_keepers, table, monkeypatch, option, place
):
    def fitted(*_, **__):
        raise AssertionError("the table was read")

    monkeypatch.setattr("keepers.cli.prepared.open_table", fitted)
    monkeypatch.setattr("keepers.cli.fit_blocks.open_blocks", fitted)
    target = f"{place}/{OPTIONS[option]}"
    done = quick_keepers("select", table, "--id", "sample", "-k", 2, option, target)
    assert done.returncode in (1, 2)
    assert f"{target} cannot be written" in done.stderr
    assert "Unexpected error" not in done.stderr


def test_a_read_only_file_is_noticed_before_the_fit_also_with_force(
    quick_keepers, table, tmp_path, monkeypatch
):
    (tmp_path / "a.json").write_text("mine")
    monkeypatch.setattr(os, "access", lambda path, mode, **_: mode != os.W_OK)
    done = quick_keepers("select", "absent.csv", "-k", 2, "--save", "a.json", "--force")
    assert done.returncode == 2
    assert "a.json is read-only and is not overwritten" in done.stderr
    assert (tmp_path / "a.json").read_text() == "mine"


def test_a_checkpoint_that_exists_is_no_obstacle(quick_keepers, table, tmp_path):
    for _ in range(2):
        arguments = ("-k", 2, "--checkpoint", "a.npz", "--labels", "class", "--method", "spcafs")
        done = quick_keepers("select", table, "--id", "sample", *arguments)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "a.npz").exists()
