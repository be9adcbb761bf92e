"""What is kept of a run in the repository."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def tool(monkeypatch, tmp_path):
    """The tool, with a place of its own for what it keeps."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    module = importlib.import_module("keep_results")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "kept")
    return module


def test_tables_page_and_packed_results_are_kept_and_the_store_is_not(tool, tmp_path):
    run = tmp_path / "run"
    (run / "figures").mkdir(parents=True)
    (run / "sets").mkdir()
    names = ["index.html", "default.csv", "results.jsonl.xz", "sets/a.html"]
    names += ["figures/critical-differences.svg", "results.sqlite", "seconds.csv"]
    for name in names:
        (run / name).write_text(name)
    (tmp_path / "kept" / "suite").mkdir(parents=True)
    (tmp_path / "kept" / "suite" / "tuned.csv").write_text("of an earlier run")
    kept = tool.keep(run, "suite")
    found = {p.relative_to(kept).as_posix() for p in kept.rglob("*") if p.is_file()}
    assert found == {*names} - {"results.sqlite", "seconds.csv"}


def test_the_picture_of_the_readme_is_kept_without_its_folder(tool, tmp_path):
    run = tmp_path / "run"
    (run / "figures").mkdir(parents=True)
    (run / "figures" / "acc-tuned.png").write_bytes(b"png")
    assert (tool.keep(run, "paper") / "acc-tuned.png").read_bytes() == b"png"


def test_a_run_without_a_report_is_refused(tool, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["keep_results.py", str(tmp_path), "suite"])
    with pytest.raises(SystemExit):
        tool.main()
    assert "has no report" in capsys.readouterr().err
