"""DenoisedLaplacian: storages, what must stay and go, scores that explain themselves."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers import DenoisedLaplacian
from keepers.exceptions import DataWarning, ParameterError


@pytest.fixture(scope="module")
def X():
    """90 x 60: four groups of samples in the first 30 features, noise in the rest."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 60))
    X[:, :30] += 2.5 * rng.standard_normal((4, 30))[rng.integers(0, 4, 90)]
    return X


@pytest.fixture(scope="module")
def tall(X):
    """2500 rows of the same kind: more than are looked at."""
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((2500, 20))
    Z[:, :10] += 3 * rng.standard_normal((4, 10))[rng.integers(0, 4, 2500)]
    return Z


def test_features_that_carry_structure_come_first_and_score_above_zero(X):
    selector = DenoisedLaplacian(10).fit(X)
    carries = selector.carries_structure_
    assert carries[:30].sum() >= 28
    assert carries[30:].sum() <= 2
    ranked = np.argsort(selector.ranking_)
    assert carries[ranked[: carries.sum()]].all()
    assert np.all(selector.scores_[carries] > 0.0)
    # Minus the Laplacian score: 0 or less.
    np.testing.assert_allclose(
        selector.scores_[~carries], selector.smoothness_[~carries] - 1.0, atol=1e-12
    )
    assert np.all(np.diff(selector.scores_[ranked]) <= 1e-9)


def test_scores_are_the_smoothness_less_what_a_better_feature_says(X):
    selector = DenoisedLaplacian(30).fit(X)
    r = np.corrcoef(X.T)
    ranked = selector.top(28).indices
    first = ranked[0]
    np.testing.assert_allclose(selector.scores_[first], selector.smoothness_[first], atol=1e-9)
    assert selector.represented_by_[first] == -1
    for place in range(1, 28):
        column, better = ranked[place], ranked[:place]
        nearest = better[np.argmax(np.abs(r[column, better]))]
        assert selector.represented_by_[column] == nearest
        np.testing.assert_allclose(selector.representation_[column], r[column, nearest], atol=1e-9)
        expected = selector.smoothness_[column] * (1.0 - r[column, nearest] ** 2)
        np.testing.assert_allclose(selector.scores_[column], expected, atol=1e-9)


def test_the_choice_is_nested_and_the_same_for_every_number(X):
    few, many = DenoisedLaplacian(5).fit(X), DenoisedLaplacian(25).fit(X)
    # Exactly: the same computation twice.
    np.testing.assert_array_equal(few.ranking_, many.ranking_)
    assert few.top(25).indices.tolist() == many.top().indices.tolist()


@pytest.mark.parametrize(
    "storage",
    [
        np.asfortranarray,
        sp.csr_array,
        sp.csc_array,
        pd.DataFrame,
        lambda X: da.from_array(X, chunks=(17, 30)),
    ],
)
def test_every_storage_gives_the_same_features(storage, X):
    expected = DenoisedLaplacian(12).fit(X)
    found = DenoisedLaplacian(12).fit(storage(X))
    assert found.top().indices.tolist() == expected.top().indices.tolist()
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-9)


def test_blocks_maps_and_memory_draw_the_same_rows(tall, tmp_path):
    expected = DenoisedLaplacian(6).fit(tall)
    assert expected.n_rows_used_ == 1000
    assert expected.n_samples_seen_ == 2500
    blocks = (tall[start : start + 333] for start in range(0, 2500, 333))
    np.save(tmp_path / "tall.npy", tall)
    for found in (
        DenoisedLaplacian(6).fit_blocks(blocks),
        DenoisedLaplacian(6).fit_blocks(tmp_path / "tall.npy"),
        DenoisedLaplacian(6).fit(da.from_array(tall, chunks=(400, 20))),
    ):
        assert found.n_passes_ == 1
        assert found.n_rows_used_ == 1000
        assert found.ranking_.tolist() == expected.ranking_.tolist()
    other = DenoisedLaplacian(6, random_state=1).fit(tall)
    assert not np.allclose(other.smoothness_, expected.smoothness_, atol=1e-6)


def test_what_must_stay_comes_first_and_what_must_go_has_no_say(X):
    selector = DenoisedLaplacian(6, must_keep=[45, 3], never_keep=[0, 1, 2]).fit(X)
    assert set(selector.top(2).indices) == {3, 45}
    assert sorted(selector.ranking_[[0, 1, 2]]) == [58, 59, 60]
    without = DenoisedLaplacian(6, must_keep=[42, 0]).fit(X[:, 3:])
    assert (selector.top(20).indices - 3).tolist() == without.top(20).indices.tolist()
    assert np.isnan(selector.smoothness_[0])
    with pytest.raises(ParameterError, match="at most 57"):
        DenoisedLaplacian(58, never_keep=[0, 1, 2]).fit(X)


def test_others_are_discounted_for_resembling_what_must_stay(X):
    best = DenoisedLaplacian(1).fit(X).top(1).indices[0]
    copied = np.column_stack([X, X[:, best] + 1.0])
    selector = DenoisedLaplacian(5, must_keep=[60]).fit(copied)
    assert selector.represented_by_[best] == 60
    np.testing.assert_allclose(selector.scores_[best], 0.0, atol=1e-9)


def test_noise_is_called_noise():
    X = np.random.default_rng(5).standard_normal((80, 100))
    with pytest.warns(DataWarning, match="No structure found"):
        selector = DenoisedLaplacian(10).fit(X)
    assert not selector.structure_found_
    assert not selector.carries_structure_.any()
    assert np.all(selector.p_values_ == 1.0)
    assert selector.transform(X).shape == (80, 10)


@pytest.mark.parametrize("shape", [(2, 2), (3, 1), (5, 4), (8, 3)])
def test_tiny_tables_are_ranked(shape):
    X = np.random.default_rng(0).standard_normal(shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector = DenoisedLaplacian(1).fit(X)
    assert sorted(selector.ranking_) == list(range(1, shape[1] + 1))


def test_duplicate_samples_and_columns_are_taken(X):
    twice = np.repeat(np.column_stack([X, X[:, :30]]), 2, axis=0)
    selector = DenoisedLaplacian(20).fit(twice)
    kept = selector.top(20).indices % 60
    assert len(set(kept)) == 20  # no feature and its copy
