"""The study of categories: its tables, the ways, and what is measured."""

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
    import study_categories

    return study_categories


def test_planted_categories_depend_on_the_clusters_and_noise_on_nothing(study):
    table = study.plant(1000, "few", 0.8, 0)
    assert table.planted[5:].sum() == 6
    assert not study.plant(200, "many", 0.0, 0).planted.any()
    assert study.plant(60, "alone", 0.0, 0).numbers.shape == (60, 0)


def test_contrasts_are_uncorrelated_and_one_fewer_than_values(study):
    codes = np.random.default_rng(0).integers(5, size=200)
    Q = study.contrasts(codes)
    assert Q.shape == (200, 4)
    np.testing.assert_allclose(Q.T @ Q, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(Q.sum(axis=0), 0.0, atol=1e-10)


@pytest.mark.filterwarnings("ignore::keepers.exceptions.KeepersWarning")
def test_every_way_ranks_every_feature_once(study):
    table = study.plant(100, "few", 0.8, 0)
    for encode in study.WAYS.values():
        for selector in ("AutoSelector", "SPCAFS"):
            order, _ = study.rank(selector, encode(table), 5)
            assert sorted(order) == list(range(table.n_features))


def test_columns_are_cut_at_quantiles(study):
    rng = np.random.default_rng(0)
    classes = rng.integers(3, size=200)
    X = rng.standard_normal((200, 12)) + classes[:, None] * (np.arange(12) < 2)
    table, places = study.cut(X, classes, 4)
    assert sorted(places) == list(range(12))
    assert set(places[table.planted]) == {0, 1}
    for code, column in zip(table.codes, places[8:], strict=True):
        means = pd.Series(X[:, column]).groupby(code).agg(["min", "max"]).sort_values("min")
        assert np.all(means["max"].to_numpy()[:-1] <= means["min"].to_numpy()[1:])
        assert set(np.bincount(code)) == {50}


@pytest.mark.slow
def test_what_is_there_is_not_computed_again_and_is_summarised(study, monkeypatch, tmp_path):
    monkeypatch.setattr(study, "CASES", [(60, "few", 0.8, 1)])
    monkeypatch.setattr(study, "NOISE_CASES", [(60, "alone")])
    monkeypatch.setattr(study, "DRAWS", 1)
    monkeypatch.setattr(study, "MORE_DRAWS", 1)
    monkeypatch.setattr(study, "CHOOSING", ("one",))
    monkeypatch.setattr(study, "REPORTING", ("two",))
    rng = np.random.default_rng(0)
    classes = rng.integers(3, size=60)
    X = rng.standard_normal((60, 24)) + classes[:, None] * (np.arange(24) < 6)
    monkeypatch.setattr(study, "open_real", lambda name: (X, classes))
    for command in ("planted", "planted", "noise", "real", "values", "tables"):
        study.main([command, "--out", str(tmp_path)])
    assert len(pd.read_csv(tmp_path / "planted.csv")) == 2 * (
        2 * len(study.WAYS) + len(study.CANDIDATES)
    )
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "Structure found in noise" in text
    assert study.LIBRARY in text
