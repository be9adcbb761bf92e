"""The hostile trials find nothing in a few of each kind, and see what is wrong."""

import sys
from pathlib import Path

import numpy as np
import pytest

TOOLS = Path(__file__).parent.parent / "tools"


@pytest.fixture
def hostile(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import hostile

    yield hostile
    del sys.modules["hostile"]


@pytest.mark.slow
def test_a_few_trials_of_every_kind_find_no_fault(hostile, capsys):
    assert hostile.main(["--trials", "0.05", "--seed", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == list(hostile.KINDS)


def test_a_wrong_bound_and_a_crash_are_faults(hostile, monkeypatch, capsys):
    class Wrong:
        value, proved, features = 1e9, True, np.arange(1)

    monkeypatch.setattr(hostile, "solve_exactly", lambda *_: Wrong())
    assert hostile.main(["--trials", "0.001", "--only", "exact searches"]) == 1
    monkeypatch.setattr(hostile, "fitted", lambda *_: 1 / 0)
    assert hostile.main(["--trials", "0.001", "--only", "odd tables"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().out
