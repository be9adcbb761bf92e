"""The study of the default selector: its halves, its data, its store and its tables."""

import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers import LaplacianScore
from keepers.data.catalogue import data_folder

pytest.importorskip("fcntl")
TOOLS = Path(__file__).parent.parent / "tools"


@pytest.fixture
def study(monkeypatch):
    """The tool, as a module."""
    monkeypatch.syspath_prepend(str(TOOLS))
    import study_front_door

    return study_front_door


@pytest.fixture
def small_data(monkeypatch, tmp_path):
    """A data folder with two small sets under the names of real ones; returns where results go."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("KEEPERS_DATA", str(folder))
    rng = np.random.default_rng(0)
    for name, n_features in {"Libras": 16, "Yale": 24}.items():
        y = np.repeat([0, 1, 2], 10)
        X = rng.standard_normal((30, n_features)) + 3 * rng.standard_normal((3, n_features))[y]
        np.savez(folder / f"{name}.npz", X=X, y=y)
    return tmp_path / "results"


class CountingSelector(LaplacianScore):
    """Counts its fits."""

    fits = 0

    def fit(self, X, y=None):
        """Count, and fit."""
        type(self).fits += 1
        return super().fit(X)


class FailingSelector(LaplacianScore):
    """Never fits."""

    depends_on_k = True

    def fit(self, X, y=None):
        """Fail."""
        raise ArithmeticError("on\npurpose")


def test_the_halves_alternate_in_the_order_of_the_alphabet(study):
    assert list(study.NAMES) == sorted(study.NAMES, key=str.lower)
    halves = list(study.HALVES.values())
    assert halves.count("choosing") == halves.count("reporting") == 23
    assert study.HALVES["AR"] == "choosing"
    assert study.HALVES["BinAlpha"] == "reporting"


def test_every_set_of_the_data_folder_takes_part_but_one_that_is_there_twice(study):
    found = {path.stem for path in data_folder().glob("*.npz")}
    if not found:
        pytest.skip("the data folder is absent")
    assert found == {*study.NAMES, "golub_raw7129"}


def test_counts_are_scaled_to_the_mean_total_then_logged(study, monkeypatch, tmp_path):
    counts = sp.csr_array(np.array([[1, 3, 0], [0, 0, 0], [0, 4, 4]], dtype=np.uint8))
    parts = {name: getattr(counts, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "CNAE9.npz", **parts, y=np.array([7, 7, 9]))
    monkeypatch.setenv("KEEPERS_DATA", str(tmp_path))
    data = study.load("CNAE9")
    # Totals 4 and 8, mean 6: the first row times 1.5, the last times 0.75, the empty one stays.
    by_hand = np.log([[2.5, 5.5, 1.0], [1.0, 1.0, 1.0], [1.0, 4.0, 4.0]])
    assert data.X.format == "csr"
    np.testing.assert_allclose(data.X.toarray(), by_hand, rtol=1e-12, atol=1e-15)
    assert data.classes.tolist() == [0, 0, 1]


def test_raw_expression_is_clipped_and_logged_and_long_tables_are_drawn(
    study, monkeypatch, tmp_path
):
    X = np.arange(60, dtype=np.int32).reshape(30, 2) * 64
    np.savez(tmp_path / "DLBCL.npz", X=X, y=np.arange(30))
    monkeypatch.setenv("KEEPERS_DATA", str(tmp_path))
    assert study.load("DLBCL").X[0].tolist() == [4.0, 6.0]  # powers of two: exact
    monkeypatch.setattr(study, "MOST_ROWS", 12)
    drawn, again = study.load("DLBCL"), study.load("DLBCL")
    assert drawn.X.shape == (12, 2)
    np.testing.assert_array_equal(drawn.X, again.X)  # the same computation twice
    assert drawn.n_classes == 12


def test_a_second_run_fits_nothing_again_unless_told(study, small_data, capsys):
    CountingSelector.fits = 0
    command = ["run", "--out", str(small_data), "--only", "Random", "Counting"]
    command += ["--method", f"Counting={__name__}:CountingSelector"]
    study.main(command)
    table = pd.read_csv(small_data / "scores.csv")
    assert tuple(table.columns) == study.SCORES
    assert table["k"].tolist() == [2, 4, 8] * 2 + [3, 6, 12] * 2
    assert CountingSelector.fits == 2  # one serves every k
    study.main(command)
    assert CountingSelector.fits == 2
    study.main([*command, "--data", "Yale", "--redo"])
    assert CountingSelector.fits == 3
    scores = ["data", "method", "k", "acc", "nmi"]
    again = pd.read_csv(small_data / "scores.csv")
    pd.testing.assert_frame_equal(table[scores], again[scores])
    assert "AR is not in" in capsys.readouterr().out


def test_a_failure_is_a_row_with_its_reason(study, small_data):
    command = ["run", "--out", str(small_data), "--data", "Libras", "--only", "Failing"]
    study.main([*command, "--method", f"Failing={__name__}:FailingSelector"])
    table = pd.read_csv(small_data / "scores.csv")
    assert table["acc"].isna().all()
    assert table["note"].tolist() == ["ArithmeticError: on purpose"] * 3


def test_work_past_the_time_limit_is_stopped(study):
    def wait():
        while True:
            time.sleep(0.01)

    tried = study.attempt(wait, limit=0.1)
    assert tried.result is None
    assert tried.note == "stopped after 0.1 s"
    assert tried.seconds < 5


def test_the_best_gamma_is_taken_for_every_k(study, small_data):
    data = study.load("Yale")
    found = list(study.tuned_with_labels(data))
    width = data.n_classes - 1
    for row in found:
        fits = [
            study.SPCAFS(n_components=width, gamma=gamma, random_state=0).fit(data.X)
            for gamma in study.GAMMAS
        ]
        each = [data.judge(selector.top(row["k"]).indices)[0] for selector in fits]
        assert row["acc"] == max(each)  # the same computation twice


def test_tables_average_over_k_and_compare_with_random(study, tmp_path, capsys):
    acc = {
        ("AR", "Random"): (0.2, 0.3, 0.4),
        ("AR", "New"): (0.5, 0.5, 0.5),
        ("Yale", "Random"): (0.5, 0.5, 0.5),
        ("Yale", "New"): (0.3, 0.4, 0.5),
        ("AR", "UDFS, told the classes"): (0.4, 0.4, np.nan),
        ("Yale", "UDFS, told the classes"): (0.6, 0.6, 0.6),
    }
    rows = [
        (
            name,
            study.HALVES[name],
            method,
            k,
            value,
            value / 2,
            2.0,
            "",
            "slow" if np.isnan(value) else "",
        )
        for (name, method), values in acc.items()
        for k, value in zip((20, 50, 100), values, strict=True)
    ]
    pd.DataFrame(rows, columns=study.SCORES).to_csv(tmp_path / "scores.csv", index=False)
    study.main(["tables", "--out", str(tmp_path)])
    by_set = pd.read_csv(tmp_path / "by_set.csv", index_col="data")
    assert by_set["New"].to_dict() == pytest.approx({"AR": 0.5, "Yale": 0.4})
    assert by_set["half"].to_dict() == {"AR": "choosing", "Yale": "reporting"}
    assert np.isnan(by_set.loc["AR", "UDFS, told the classes"])
    nmi = pd.read_csv(tmp_path / "by_set_nmi.csv", index_col="data")
    assert nmi["New"].to_dict() == pytest.approx({"AR": 0.25, "Yale": 0.2})
    summary = pd.read_csv(tmp_path / "summary.csv", index_col=["half", "method"])
    new = summary.loc[("all", "New")]
    assert new["acc"] == pytest.approx(0.45)
    assert new["acc over random"] == pytest.approx(0.05)
    assert new["worst loss"] == pytest.approx(-0.1)
    assert (new["sets"], new["ahead in acc"], new["worst set"]) == (2, 1, "Yale")
    assert summary.loc[("all", "UDFS, told the classes"), "sets"] == 1
    assert ("choosing", "UDFS, told the classes") not in summary.index
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "| AR | UDFS, told the classes | slow | 100 |" in text
    assert "| New | 2 | 0.450 | 0.050 | 1 | -0.100 | Yale |" in text


def test_planted_columns_are_counted_among_the_first(study, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(study, "N_COLUMNS", 200)
    study.main(["planted", "--out", str(tmp_path), "--only", "Variance"])
    table = pd.read_csv(tmp_path / "planted.csv")
    assert len(table) == 2 * 4 * 2 * 5
    plain = table[(table["spread"] == 2.5) & ~table["rescaled"]]
    assert plain["recall"].min() > 0.9
    assert table[table["rescaled"]]["recall"].max() < 0.9
