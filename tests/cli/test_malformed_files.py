"""Whatever a file holds, the command ends with a code and a sentence, and leaves no partial file.

`tests/data/test_malformed_files.py` feeds thousands of such files to the readers; here the same
kinds go through the whole command.
"""

import numpy as np
import pytest
from typer.testing import CliRunner

from data.test_malformed_files import REFUSED, SOUND
from data.test_malformed_files import _mutated as mutated
from keepers.app import app

PER_FORMAT = 20
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
    done = CliRunner().invoke(app, [*what, "--max-size", "50M", *options_of(roles)])
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
    path.write_bytes(make(rng))
    assert ends_well(path, roles) == 0
    codes = set()
    for _ in range(PER_FORMAT):
        path.write_bytes(mutated(make(rng), rng))
        codes.add(ends_well(path, roles))
    assert 1 in codes


# Text, dates, empty columns and gaps, which the command sets aside or fills.
PREPARED = ("text.csv", "dates.csv", "empty_column.csv", "nulls.csv")


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", [name for name in REFUSED if name not in PREPARED])
def test_a_hopeless_file_is_refused_by_the_command_too(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(REFUSED[name])
    assert ends_well(path, {}) == 1
