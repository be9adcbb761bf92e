"""The study of missing values: how values are taken out, what is measured, and its tables."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("fcntl")
TOOLS = Path(__file__).parent.parent / "tools"


@pytest.fixture
def study(monkeypatch):
    """The tool, as a module."""
    monkeypatch.syspath_prepend(str(TOOLS))
    import study_missing

    return study_missing


@pytest.mark.parametrize("pattern", ["random", "by column"])
@pytest.mark.parametrize("share", [0.05, 0.2, 0.4])
def test_as_many_values_are_taken_out_as_it_says(study, pattern, share):
    X = np.random.default_rng(0).standard_normal((200, 100))
    gaps = np.isnan(study.take_out(X, share, pattern, seed=0))
    assert abs(gaps.mean() - share) < 0.02
    by_column = np.sort(gaps.mean(axis=0))
    heavy = by_column[75:].mean() / by_column[:75].mean()
    assert heavy > 3 if pattern == "by column" else heavy < 3


def test_columns_keep_two_values(study):
    X = np.ones((4, 50))
    assert np.all((~np.isnan(study.take_out(X, 0.4, "by column", seed=0))).sum(axis=0) >= 2)


def test_the_scatter_of_a_complete_table_is_the_scatter(study):
    X = np.random.default_rng(0).standard_normal((30, 5))
    np.testing.assert_allclose(study.available_scatter(X).S, 30 * np.cov(X.T, ddof=0), rtol=1e-10)


def test_a_table_is_scored_once_and_summarised(study, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(study, "SHARES", (0.2,))
    monkeypatch.setattr(study, "DRAWS", 1)
    small = study.plant(3.0, 0)
    columns = np.r_[0:60]
    X = small.X[:, columns]
    monkeypatch.setattr(study, "plant", lambda *_: study.Complete(X, small.classes, 50, 50))
    name = "planted 1.5, choosing"
    for _ in range(2):
        study.main(["run", "--only", name, "--out", str(tmp_path)])
    assert capsys.readouterr().out.count(name) == 1
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert set(scores["way"]) == {
        *("complete", "random columns", study.AVAILABLE),
        *study.WAYS,
        *study.CANDIDATES,
    }
    complete = scores[scores["way"] == "complete"]
    assert (complete["overlap"] == 1).all()
    assert (complete["recall"] > 0.9).all()
    assert scores.loc[scores["way"] == "drop-rows", "recall"].isna().all()
    study.main(["tables", "--out", str(tmp_path)])
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "The choosing half: Share of the planted columns" in text
    assert "available scatter" in text
