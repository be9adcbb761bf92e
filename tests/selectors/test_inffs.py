"""What the selector adds to Inf-FS."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import DataWarning, ParameterError
from keepers.selectors.inffs import InfFS
from shared_material import fixture


def table(shape=(40, 12), seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) * rng.uniform(0.5, 2.0, shape[1])


@pytest.mark.parametrize("name", ["mix", "digits", "blobs", "wide"])
@pytest.mark.parametrize("i", range(5))
def test_the_whole_fit_is_the_released_program(name, i):
    reference = fixture(f"inffs_u_authors_{name}")
    selector = InfFS(alpha=float(reference["alphas"][i])).fit(reference["X"])
    expected = reference[f"weight_{i}"].ravel() - 1.0
    np.testing.assert_allclose(selector.scores_, expected, rtol=0, atol=2e-13)
    np.testing.assert_array_equal(np.argsort(selector.ranking_), reference[f"ranking_{i}"].ravel())


def test_a_constant_column_which_the_release_ranks_first_comes_last():
    reference = fixture("inffs_u_authors_edge")
    with pytest.warns(DataWarning, match="do not vary"):
        selector = InfFS(alpha=0.0).fit(reference["X"])
    assert selector.ranking_[3] == 8
    assert selector.scores_[3] == 0.0


def test_a_number_as_coupling_is_a_share_of_the_largest_possible():
    X = table()
    low, high = InfFS(coupling=0.1).fit(X), InfFS(coupling=0.9).fit(X)
    assert high.coupling_ == pytest.approx(9 * low.coupling_, rel=1e-12)
    assert high.scores_.min() > low.scores_.max()


def test_sparse_storage_gives_the_same_scores():
    X = table() * (np.random.default_rng(1).uniform(size=(40, 12)) < 0.4)
    expected = InfFS().fit(X).scores_
    for storage in (sp.csr_array, sp.csc_matrix):
        np.testing.assert_allclose(InfFS().fit(storage(X)).scores_, expected, rtol=1e-12)


def test_where_the_matrix_does_not_fit_its_rows_are_made_again(monkeypatch):
    X = table((20, 300))
    expected = InfFS().fit(X).scores_
    # A quarter of it is less than 300 x 300 numbers.
    monkeypatch.setattr("keepers.selectors.memory.physical_memory", lambda: 2e6)
    np.testing.assert_allclose(InfFS().fit(X).scores_, expected, rtol=1e-12)


def test_features_that_say_the_same_are_told_of():
    X = np.repeat(table((20, 1)), 4, axis=1)
    with pytest.warns(DataWarning, match="no edge has any weight"):
        selector = InfFS().fit(X)
    assert selector.ranking_.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"alpha": 1.5}, r"alpha must lie in \[0, 1\]; got 1.5"),
        ({"alpha": -0.1}, "alpha"),
        ({"coupling": "paper"}, "coupling must be one of 'release'; got 'paper'. Or give a number"),
        ({"coupling": 1.0}, r"coupling must lie in \(0, 0.999\]; got 1.0. Or 'release'"),
    ],
)
def test_settings_outside_their_rule_are_refused(setting, message):
    with pytest.raises(ParameterError, match=message):
        InfFS(**setting).fit(table())
