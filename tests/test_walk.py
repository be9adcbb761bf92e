"""The walk through a command: what it counts, and what it may cost."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.slow

TOOL = Path(__file__).parent.parent / "tools" / "walk.py"

# What the standard command may cost at most; lower these with the code, never raise them.
MOST_FILES = 29
MOST_FRAMES = 7
MOST_TIMES = {
    "column moments of the whole table": 2,
    "correlations of the kept features": 1,
    "finiteness of the values": 2,
    "as_scatter": 1,
    "existence of one target": 3,
}


@pytest.fixture(scope="module")
def tool():
    return SimpleNamespace(**runpy.run_path(str(TOOL)))


def test_the_standard_command_stays_within_its_limits(tool):
    walk = tool.walk_standard_command()
    assert len(walk.files) <= MOST_FILES, tool.as_text(walk)
    assert 0 < len(walk.frames) <= MOST_FRAMES, walk.frames
    assert all(0 < walk.times[label] <= most for label, most in MOST_TIMES.items()), walk.times
    assert set(walk.times) == set(MOST_TIMES)
