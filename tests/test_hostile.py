"""The hostile trials find nothing in a few of each kind."""

import runpy
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent / "tools"


@pytest.mark.slow
def test_a_few_trials_of_every_kind_find_no_fault(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(TOOLS))
    hostile = runpy.run_path(str(TOOLS / "hostile.py"))
    assert hostile["main"](["--trials", "0.05", "--seed", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == list(hostile["KINDS"])
