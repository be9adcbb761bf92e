"""The recipe that the study of the default selector compares with."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import false_discovery_control

TOOLS = Path(__file__).parent.parent / "tools"


@pytest.fixture
def recipe(monkeypatch):
    """The module."""
    monkeypatch.syspath_prepend(str(TOOLS))
    import published_recipe

    return published_recipe


@pytest.fixture
def clusters():
    """Four clusters in the first 20 of 400 columns."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((90, 400))
    X[:, :20] += 2.5 * rng.standard_normal((4, 20))[rng.integers(4, size=90)]
    return X


def test_smoothness_is_one_minus_the_laplacian_score(recipe):
    rng = np.random.default_rng(0)
    adjacency = np.triu(rng.integers(0, 3, size=(12, 12)), 1)
    adjacency = (adjacency + adjacency.T).astype(float)
    X = rng.standard_normal((12, 5))
    D = np.diag(adjacency.sum(axis=1))
    ones = np.ones(12)
    scores = []
    for f in X.T:
        f = f - (f @ D @ ones) / (ones @ D @ ones)
        scores.append((f @ (D - adjacency) @ f) / (f @ D @ f))
    found = recipe.smoothness(sp.csr_array(adjacency), X)
    np.testing.assert_allclose(found, 1 - np.array(scores), rtol=1e-10)


def test_discoveries_are_those_of_benjamini_and_hochberg(recipe):
    rng = np.random.default_rng(1)
    pool = rng.standard_normal(5000)
    smooth = np.concatenate([rng.standard_normal(80), rng.normal(4, 1, size=20)])
    p = np.array([(1 + np.sum(pool >= value)) / 5001 for value in smooth])
    expected = false_discovery_control(p, method="bh") <= recipe.LEVEL
    assert expected.any()
    np.testing.assert_array_equal(recipe.discoveries(smooth, pool), expected)


def test_planted_columns_come_first_whatever_their_unit(recipe, clusters):
    rng = np.random.default_rng(4)
    fitted = recipe.PublishedRecipe(20, random_state=0).fit(clusters * np.exp(rng.normal(size=400)))
    assert fitted.structure_found_
    assert fitted.used_folds_
    assert np.mean(fitted.top(20).indices < 20) >= 0.9


def test_a_copy_of_a_column_is_not_taken_beside_it(recipe, clusters):
    X = np.hstack([clusters[:, :20], 2 * clusters[:, :20]])
    kept = recipe.PublishedRecipe(20, random_state=0).fit(X).top(20).indices
    assert len(set(kept % 20)) == 20


def test_noise_has_no_structure(recipe):
    X = np.random.default_rng(5).standard_normal((100, 300))
    assert not recipe.PublishedRecipe(10, random_state=0).fit(X).structure_found_


def test_sparse_and_long_tables_are_ranked_and_constant_columns_come_last(
    recipe, clusters, monkeypatch
):
    clusters = np.maximum(clusters, 0)
    clusters[:, 7] = 0
    with pytest.warns(match="do not vary"):
        dense = recipe.PublishedRecipe(30, random_state=0).fit(clusters)
    with pytest.warns(match="do not vary"):
        sparse = recipe.PublishedRecipe(30, random_state=0).fit(sp.csr_array(clusters))
    np.testing.assert_array_equal(dense.ranking_, sparse.ranking_)  # the same rows and columns
    assert dense.ranking_[7] == 400
    monkeypatch.setattr(recipe, "MOST_ROWS", 60)
    with pytest.warns(match="do not vary"):
        drawn = recipe.PublishedRecipe(30, random_state=0).fit(clusters)
    assert sorted(drawn.ranking_) == list(range(1, 401))
