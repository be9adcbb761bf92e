"""Whatever a file holds, the command ends with a code and a sentence, and leaves no partial file.

`tests/tables/test_malformed_files.py` gives many such files to the readers; here the same
kinds go through the whole command.
"""

import os

import numpy as np
import pytest
from typer.testing import CliRunner

from keepers.app import app
from tables.test_malformed_files import DAMAGED as SOUND
from tables.test_malformed_files import REFUSED, mutated

PER_FORMAT = 8
OPTIONS = {"labels": "--labels", "identifier": "--id"}


def options_of(roles):
    chosen = [
        part for role, flag in OPTIONS.items() if role in roles for part in (flag, roles[role])
    ]
    for column in roles.get("drop", ()):
        chosen += ["--drop", column]
    return chosen


def ends_well(path, roles):
    """Run ``select`` on a file; the code, after checking what must hold whatever it is."""
    out = path.parent / "out" / "kept.csv"
    out.parent.mkdir(exist_ok=True)
    what = ["select", str(path), "-k", "1", "--method", "variance", "--out", str(out)]
    done = CliRunner().invoke(app, [*what, "--max-size", "5M", *options_of(roles)])
    assert done.exit_code in (0, 1, 2), done.output
    assert "Traceback" not in done.output
    assert "Unexpected error" not in done.output
    left = [file.name for file in out.parent.iterdir()]
    assert left == (["kept.csv"] if done.exit_code == 0 else [])
    out.unlink(missing_ok=True)
    return done.exit_code


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", SOUND)
def test_a_mutated_file_never_gives_a_traceback_or_a_partial_file(name, tmp_path):
    make, roles = SOUND[name]
    rng = np.random.default_rng(sum(map(ord, name)) + 1)
    path = tmp_path / name
    sound = make(rng)
    path.write_bytes(sound)
    assert ends_well(path, roles) == 0
    codes = set()
    for _ in range(PER_FORMAT):
        path.write_bytes(mutated(sound, rng))
        codes.add(ends_well(path, roles))
    assert 1 in codes


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", [*REFUSED][2::6])
def test_a_hopeless_file_is_refused_by_the_command_too(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(REFUSED[name])
    assert ends_well(path, {}) == 1


@pytest.mark.posix
@pytest.mark.parametrize("command", ["select", "check", "certify", "compare"])
def test_streams_are_not_tables_in_any_command(quick_keepers, tmp_path, command):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "list.txt").write_text("a\n")
    more = {"certify": ("--features", "list.txt"), "compare": ("--labels", "a")}.get(command, ())
    for stream in ("-", "pipe.csv", "/dev/null"):
        done = quick_keepers(command, stream, *more)
        assert done.returncode == 1
        assert "must be a regular file" in done.stderr
        assert stream in done.stderr
        assert "Did you mean" not in done.stderr
