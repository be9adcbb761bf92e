"""The page "Which genes, without labels?": its code runs, its table is that of the study."""

import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "genes-without-labels.md").read_text(encoding="utf-8")
SUMMARY = ROOT / "experiments" / "results" / "scanpy" / "summary.csv"


@pytest.mark.filterwarnings("ignore")  # of scanpy and its dependencies
def test_the_code_runs_from_top_to_bottom(capsys):
    pytest.importorskip("scanpy")
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    names = {}
    for block in blocks:
        exec(compile(block, "genes-without-labels.md", "exec"), names)
    printed = capsys.readouterr().out
    assert re.search(r"765 features, \d+ carry structure, \d+ are enough", printed)
    assert "(700, 100) {" in printed
    assert names["kept"].shape == (700, 50)
    assert names["kept"].is_view


def test_the_table_is_that_of_the_study():
    stored = pd.read_csv(SUMMARY).set_index(["data", "k", "method"])
    header, *lines = re.findall(r"^\| ((?:data|\w+ \| \d+) \|.*) \|$", PAGE, re.MULTILINE)
    methods = [cell.replace("`", "") for cell in header.split(" | ")[2:]]
    assert len(lines) == 9
    for line in lines:
        data, k, *cells = [cell.strip() for cell in line.split(" |")]
        for method, cell in zip(methods, cells, strict=True):
            if not cell:
                assert (data, int(k), method) not in stored.index
                continue
            found = stored.loc[(data, int(k), method), ["kmeans nmi", "leiden nmi"]]
            assert [float(value) for value in cell.split(" / ")] == pytest.approx(
                found.to_list(), abs=0.0051
            )
