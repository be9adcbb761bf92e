"""Selectors that fill gaps when they are asked to."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.utils.estimator_checks import parametrize_with_checks

from keepers import SPCAFS, AutoSelector, DenoisedLaplacian, VarianceScore, describe_selection
from keepers.datasets import LabelledTable
from keepers.exceptions import DataError, DataWarning, KeepersWarning, ParameterError
from keepers.linalg.gaps import fill_by_model
from keepers.selectors import fitted_table

SELECTORS = (SPCAFS, DenoisedLaplacian, AutoSelector)
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
    return fill_by_model(X).X if way == "model" else SimpleImputer(strategy=way).fit_transform(X)


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
def test_the_tag_says_whether_nan_is_allowed(cls):
    assert not cls().__sklearn_tags__().input_tags.allow_nan
    assert cls(missing="model").__sklearn_tags__().input_tags.allow_nan
    assert clone(cls(missing="model")).missing == "model"


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
def test_without_gaps_nothing_changes(cls, way, complete):
    # Exactly: the same computation twice.
    found, expected = quietly(cls(missing=way), complete), quietly(cls(), complete)
    np.testing.assert_array_equal(found.scores_, expected.scores_)


@EVERY
def test_by_default_gaps_are_refused_with_the_way_out(cls, table):
    with pytest.raises(DataError, match="missing='model' fills NaN"):
        cls().fit(table)
    with pytest.raises(DataError, match=r"NaN or infinity found(?!.*missing=)"):
        VarianceScore().fit(table)


@EVERY
@pytest.mark.parametrize("value", ["drop", None, 0, np.nan, "Mean"])
def test_other_ways_are_refused(cls, value, table):
    with pytest.raises(ParameterError, match="missing must be one of 'error', 'mean'"):
        cls(missing=value).fit(table)


@EVERY
@pytest.mark.parametrize("way", WAYS)
def test_infinity_is_refused_all_the_same(cls, way, table):
    X = table.copy()
    X[4, 7] = -np.inf
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(16)])
    with pytest.raises(DataError, match=r"infinity found in these columns \(how many\): 7 \(1\)"):
        cls(missing=way).fit(X)
    with pytest.raises(DataError, match=r"infinity found .*: 'f7' \(1\)"):
        cls(missing=way).fit(frame)
    fitted = quietly(cls(missing=way), table)
    with pytest.raises(DataError, match=r"infinity found .*: 7 \(1\)"):
        fitted.transform(X)


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
def test_a_table_without_any_value_is_refused(cls, way, table):
    with pytest.raises(DataError, match="At least one column must vary"):
        cls(missing=way).fit(np.full_like(table, np.nan))


@EVERY
def test_a_row_without_any_value_is_filled_too(cls, table):
    X = table.copy()
    X[5] = np.nan
    assert np.all(np.isfinite(quietly(cls(missing="model"), X).scores_))


@EVERY
def test_transform_selects_and_does_not_fill(cls, table):
    selector = quietly(cls(6, missing="model"), table)
    expected = table[:, selector.support_]
    np.testing.assert_array_equal(selector.transform(table), expected)
    names = [f"f{j}" for j in range(16)]
    labelled = LabelledTable(table, np.array(names, dtype=object))
    named = quietly(cls(6, missing="model"), labelled)
    np.testing.assert_array_equal(named.transform(labelled), expected)
    frame = pd.DataFrame(table, columns=names)
    named = quietly(cls(6, missing="model"), frame).set_output(transform="pandas")
    np.testing.assert_array_equal(named.transform(frame).to_numpy(), expected)


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
@pytest.mark.parametrize("way", WAYS)
def test_reordering_the_features_reorders_the_scores(cls, way, table):
    order = np.random.default_rng(3).permutation(16)
    plain = quietly(cls(missing=way), table).scores_
    reordered = quietly(cls(missing=way), table[:, order]).scores_
    np.testing.assert_allclose(reordered, plain[order], atol=1e-5 * np.abs(plain).max())


@EVERY
def test_sparse_tables_are_taken_without_nan_and_refused_with_it(cls, complete):
    X = complete * (np.abs(complete) > 0.8)
    found = quietly(cls(missing="mean"), sp.csr_array(X)).scores_
    np.testing.assert_allclose(found, quietly(cls(), sp.csr_array(X)).scores_, rtol=1e-9)
    X[3, 5] = np.nan
    with pytest.raises(DataError, match="missing='mean' fills gaps of dense tables only"):
        cls(missing="mean").fit(sp.csr_array(X))


def test_spcafs_refuses_gaps_in_what_it_reads_in_blocks(table, complete):
    blocks = [table[:30], table[30:]]
    for read, given in (
        (SPCAFS(missing="mean").fit_blocks, blocks),
        (SPCAFS(missing="mean", memory_limit="10MB").fit_blocks, iter(blocks)),
        (SPCAFS(missing="mean").partial_fit, table),
    ):
        with pytest.raises(DataError, match=r"columns \(how many\).*of a table in memory only"):
            read(given)
    expected = SPCAFS().fit(complete).scores_
    found = SPCAFS(missing="mean").fit_blocks([complete[:30], complete[30:]]).scores_
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_a_tall_array_is_filled_before_its_scatter_is_summed(table, monkeypatch):
    expected = quietly(SPCAFS(6, missing="model"), table)
    monkeypatch.setattr(fitted_table, "TALL_SIZE", 100)
    found = quietly(SPCAFS(6, missing="model"), table)
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("cls", [DenoisedLaplacian, AutoSelector])
@pytest.mark.parametrize("way", WAYS)
def test_rows_drawn_from_blocks_are_filled_like_those_in_memory(cls, way, complete):
    rng = np.random.default_rng(0)
    X = np.tile(complete, (20, 1)) + 0.5 * rng.standard_normal((1200, 16))
    X[rng.random(X.shape) < 0.1] = np.nan
    expected = quietly(cls(missing=way), X)
    assert expected.n_rows_used_ == 1000
    blocks = [X[start : start + 170] for start in range(0, 1200, 170)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        found = cls(missing=way).fit_blocks(blocks)
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-9, atol=1e-12)
    for stored in (blocks, [sp.csr_array(block) for block in blocks]):
        stored[1][2, 3] = np.inf
        with pytest.raises(DataError, match=r"infinity in these columns .*3 \(1\)"):
            cls(missing=way).fit_blocks(stored)


@EVERY
def test_the_description_of_a_selection_fills_the_gaps_in_the_same_way(cls, table):
    selector = quietly(cls(6, missing="model"), table)
    described = describe_selection(selector, table)
    expected = describe_selection(quietly(cls(6), fill(table, "model")), fill(table, "model"))
    assert [kept.name for kept in described.kept] == [kept.name for kept in expected.kept]
