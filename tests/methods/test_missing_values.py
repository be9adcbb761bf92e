"""Selectors that fill gaps when they are asked to."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.impute import SimpleImputer
from sklearn.utils.estimator_checks import parametrize_with_checks

from keepers import SPCAFS, AutoSelector, certify
from keepers.exceptions import DataError, DataWarning, KeepersWarning
from keepers.linalg.gaps import fill_rows, fit_gap_model

SELECTORS = (SPCAFS, AutoSelector)
EVERY = pytest.mark.parametrize("cls", SELECTORS)
WAYS = ("mean", "median", "model")


@pytest.fixture(scope="module")
def complete():
    """60 x 16: four groups of samples in the first six features, noise in the rest."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 16))
    X[:, :6] += 3 * rng.standard_normal((4, 6))[rng.integers(0, 4, 60)]
    return X


@pytest.fixture(scope="module")
def table(complete):
    """The same with a tenth of the values missing."""
    return np.where(np.random.default_rng(1).random(complete.shape) < 0.1, np.nan, complete)


def fill(X, way):
    if way == "model":
        return fill_rows(fit_gap_model(X), X)
    return SimpleImputer(strategy=way).fit_transform(X)


def quietly(selector, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        return selector.fit(X)


@parametrize_with_checks([cls(missing="mean") for cls in SELECTORS])
def test_scikit_learn_accepts_it_with_gaps(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        warnings.filterwarnings("ignore", message=".*(Casting complex|overflow|invalid value).*")
        check(estimator)


@EVERY
@pytest.mark.parametrize("way", WAYS)
def test_a_fit_is_that_of_the_table_filled_before(cls, way, table):
    found = quietly(cls(6, missing=way), table)
    expected = quietly(cls(6), fill(table, way))
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(found.support_, expected.support_)
    np.testing.assert_allclose(found.mean_, expected.mean_, rtol=1e-9, atol=1e-12)


@EVERY
@pytest.mark.parametrize("way", WAYS)
def test_columns_without_values_come_last_with_a_warning_that_names_them(cls, way, table):
    X = table.copy()
    X[:, 2] = np.nan
    X[1:, 9] = np.nan
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selector = cls(missing=way).fit(X)
    assert any(
        issubclass(w.category, DataWarning) and "ranked last: 2, 9." in str(w.message)
        for w in caught
    )
    assert sorted(selector.ranking_[[2, 9]]) == [15, 16]
    assert np.all(np.isfinite(selector.scores_))


@EVERY
@pytest.mark.parametrize("way", WAYS)
def test_every_layout_of_the_same_table_gives_the_same(cls, way, table):
    expected = quietly(cls(6, missing=way), table)
    frame = pd.DataFrame(table)
    nullable = frame.astype("Float64")
    rows = [[None if np.isnan(v) else v for v in row] for row in table]
    for given in (np.asfortranarray(table), frame, nullable, np.array(rows, dtype=object)):
        found = quietly(cls(6, missing=way), given)
        np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-6, atol=1e-9)
    single = quietly(cls(6, missing=way), table.astype(np.float32))
    assert len(set(single.top(4).indices) & set(expected.top(4).indices)) >= 3


@EVERY
def test_sparse_tables_are_taken_without_nan_and_refused_with_it(cls, complete):
    X = complete * (np.abs(complete) > 0.8)
    found = quietly(cls(missing="mean"), sp.csr_array(X)).scores_
    np.testing.assert_allclose(found, quietly(cls(), sp.csr_array(X)).scores_, rtol=1e-9)
    X[3, 5] = np.nan
    with pytest.raises(DataError, match="missing='mean' takes gaps of dense tables only"):
        cls(missing="mean").fit(sp.csr_array(X))


def test_spcafs_refuses_gaps_in_what_it_reads_in_blocks(table, complete):
    blocks = [table[:30], table[30:]]
    for read, given in (
        (SPCAFS(missing="mean").fit_blocks, blocks),
        (SPCAFS(missing="mean").fit_blocks, lambda: iter(blocks)),
    ):
        with pytest.raises(DataError, match=r"columns \(how many\).*of a table in memory only"):
            read(given)
    expected = SPCAFS().fit(complete).scores_
    found = SPCAFS(missing="mean").fit_blocks([complete[:30], complete[30:]]).scores_
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_rows_drawn_from_blocks_are_filled_like_those_in_memory(way, complete):
    rng = np.random.default_rng(0)
    X = np.tile(complete, (20, 1)) + 0.5 * rng.standard_normal((1200, 16))
    X[rng.random(X.shape) < 0.1] = np.nan
    expected = quietly(AutoSelector(missing=way), X)
    assert expected.n_rows_used_ == 1000
    blocks = [X[start : start + 170] for start in range(0, 1200, 170)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        found = AutoSelector(missing=way).fit_blocks(blocks)
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-9, atol=1e-12)
    for stored in (blocks, [sp.csr_array(block) for block in blocks]):
        stored[1][2, 3] = np.inf
        with pytest.raises(DataError, match=r"infinity in these columns .*3 \(1\)"):
            AutoSelector(missing=way).fit_blocks(stored)


@pytest.mark.parametrize(
    ("selector", "way"),
    [(SPCAFS(4, missing="mean"), "mean"), (AutoSelector(4), "model")],
    ids=["SPCAFS", "AutoSelector"],
)
def test_a_certificate_is_about_the_table_with_its_gaps_filled(table, selector, way):
    quietly(selector, table)
    found = selector.certificate(table, n_components=2)
    expected = certify(fill(table, way), selector.top().indices, n_components=2)
    assert found.share == pytest.approx(expected.share, rel=1e-6)
