"""The README's few numbers are those of the result files; the site's pages read theirs."""

import csv
import runpy
import statistics
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


def test_the_readme_shows_the_numbers_of_the_result_files_and_what_its_example_prints():
    tool = runpy.run_path(str(ROOT / "tools" / "readme_numbers.py"), run_name="tool")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("<!-- begin ") == len(tool["PARTS"])
    assert tool["with_numbers"](text) == text


def test_planted_columns_are_found_as_often_as_by_variance_and_spcafs():
    """In every cell, less 0.02."""
    cells = {}
    path = ROOT / "studies" / "results" / "autoselector" / "planted.csv"
    with path.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            cell = (row["samples"], row["spread"], row["rescaled"])
            cells.setdefault(cell, {}).setdefault(row["method"], []).append(float(row["recall"]))
    assert len(cells) == 16
    for cell, found in cells.items():
        recall = {method: statistics.fmean(values) for method, values in found.items()}
        for rival in ("SPCAFS", "Variance"):
            assert recall["AutoSelector"] >= recall[rival] - 0.02 - 1e-9, (cell, rival)
