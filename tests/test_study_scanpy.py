"""The comparison with scanpy: every method keeps what it says, tables average over draws."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

scanpy = pytest.importorskip("scanpy")
pytest.importorskip("igraph")
ROOT = Path(__file__).parent.parent


@pytest.fixture
def study(monkeypatch):
    """The tool as a module, on few draws and sizes."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import study_scanpy

    monkeypatch.setattr(study_scanpy, "SIZES", (6,))
    monkeypatch.setattr(study_scanpy, "DRAWS", 2)
    monkeypatch.setattr(study_scanpy, "STARTS", 2)
    return study_scanpy


def _small(study):
    rng = np.random.default_rng(0)
    types = np.arange(80) % 2
    means = rng.gamma(2.0, 2.0, size=(2, 300))
    means[1, 30:] = means[0, 30:]
    cells = study.anndata.AnnData(study.sp.csr_matrix(rng.poisson(means[types]).astype(float)))
    cells.obs[study.LABELS] = types.astype(str)
    scanpy.pp.log1p(cells)
    return cells


@pytest.mark.slow  # scanpy compiles
def test_a_run_has_a_row_for_every_method_and_draw(study, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(study, "DATA", {"small": lambda: _small(study)})
    study.main(["run", "--out", str(tmp_path)])
    scores = pd.read_csv(tmp_path / "scores.csv")
    # Without counts flavor="seurat_v3" is left out.
    assert scores["method"].value_counts().to_dict() == {
        "random": 2,
        "keepers auto": 1,
        "keepers spcafs": 1,
        "scanpy seurat": 1,
        "scanpy cell_ranger": 1,
        "keepers auto, its own number": 1,
        "all genes": 1,
    }
    assert scores[list(study.SCORES)].to_numpy().max() <= 1.0
    study.main(["run", "--out", str(tmp_path)])
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "scores.csv"), scores)


def test_tables_average_over_draws(study, tmp_path, capsys):
    rows = [("a", "random", 5, 0, 0.2, 0.1, 0.4, 0.3), ("a", "random", 5, 1, 0.4, 0.3, 0.6, 0.5)]
    rows.append(("a", "keepers auto", 5, 0, 0.5, 0.5, 0.5, 0.5))
    columns = ["data", "method", "k", "draw", *study.SCORES]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "scores.csv", index=False)
    study.main(["tables", "--out", str(tmp_path)])
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    sd = f"{np.std([0.2, 0.4], ddof=1):.3f}"
    assert f"| a | 5 | random | 0.300 ± {sd} | 0.200 ± {sd} | 0.500 ± {sd} | 0.400 ± {sd} |" in text
    assert "| a | 5 | keepers auto | 0.500 | 0.500 | 0.500 | 0.500 |" in text


def test_the_stored_tables_are_made_of_the_stored_scores(study, tmp_path, capsys):
    kept = study.KEPT
    (tmp_path / "scores.csv").write_text((kept / "scores.csv").read_text(encoding="utf-8"))
    study.main(["tables", "--out", str(tmp_path)])
    for name in ("summary.csv", "summary.md"):
        assert (tmp_path / name).read_text(encoding="utf-8") == (kept / name).read_text(
            encoding="utf-8"
        )
