"""What the selector adds to RSR."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import ConvergenceWarning, DataError, DataWarning, ParameterError
from keepers.selectors.rsr import RSR
from shared_material import fixture


def table(shape=(40, 12), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    X[:, :4] += 2 * rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, 4))
    return X


@pytest.mark.parametrize("i", range(3))
@pytest.mark.filterwarnings("ignore:12 features are wanted")
def test_the_whole_fit_has_the_scores_of_cvxpy(i):
    reference = fixture("rsr_cvxpy_mix")  # its table is centred
    share = float(reference[f"lambda_{i}"]) / float(reference["lambda_max"])
    selector = RSR(share=share).fit(reference["X"] + 3.0)
    active = reference[f"score_{i}"] > 1e-4
    expected = reference[f"score_{i}"][active]
    np.testing.assert_allclose(selector.scores_[active], expected, atol=1e-4)
    assert selector.scores_[~active].max(initial=0.0) < 1e-10
    assert selector.n_active_ == np.count_nonzero(active)
    assert selector.duality_gap_ <= 1e-6


def test_a_table_of_more_features_than_samples_is_certified():
    selector = RSR(1).fit(table((25, 80)))
    assert selector.converged_
    assert selector.duality_gap_ <= 1e-6
    assert selector.lambda_identity_ == 0.0
    assert selector.lambda_ == pytest.approx(0.3 * selector.lambda_max_)


def test_a_mean_of_1e6_and_another_unit_change_nothing_that_matters():
    X = table()
    near, far = RSR(2).fit(X), RSR(2).fit(X + 1e6)
    np.testing.assert_allclose(far.scores_, near.scores_, atol=1e-5)
    np.testing.assert_allclose(RSR(2).fit(50 * X).scores_, near.scores_, atol=1e-8)


def test_rows_at_zero_are_ordered_by_how_near_they_are_to_entering():
    X = table((60, 10))
    with pytest.warns(DataWarning, match=r"8 features are wanted, but only \d rows of W"):
        selector = RSR(8, share=0.8).fit(X)
    inactive = np.argsort(selector.ranking_)[selector.n_active_ :]
    centred = X - X.mean(axis=0)
    with pytest.warns(DataWarning, match="W = 0 is optimal with share=1"):
        every = RSR(8, share=1.0).fit(X)
    # At W = 0 that is the length of sum_i x_ij x_i / |x_i|.
    units = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    lengths = np.linalg.norm(centred.T @ units, axis=1)
    np.testing.assert_allclose(every.scores_, lengths / lengths.max(), rtol=1e-9)
    assert every.n_active_ == 0
    assert np.all(np.diff(selector.scores_[inactive]) <= 0)
    assert np.all(selector.scores_[inactive] > 0)


def test_a_share_below_the_identity_end_is_told_of():
    X = table((200, 5))
    X[:, :4] = np.random.default_rng(1).standard_normal((200, 4))
    with pytest.warns(DataWarning, match=r"W = I is optimal with share=0\.001"):
        selector = RSR(2, share=0.001).fit(X)
    np.testing.assert_array_equal(selector.scores_, 1.0)
    assert set(selector.top(2).indices) == set(np.argsort(-X.std(axis=0))[:2])
    assert selector.lambda_ < selector.lambda_identity_


def test_a_run_cut_short_warns_with_the_gap_it_proved():
    with pytest.warns(ConvergenceWarning, match="proved to be within .* Raise max_iter .now 1."):
        assert not RSR(3, max_iter=1).fit(table()).converged_


def test_sparse_input_is_refused_with_the_reason():
    with pytest.raises(DataError, match="centred columns"):
        RSR().fit(sp.csr_array(table()))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"share": 0.0}, r"share must lie in \(0, 1\]; got 0.0"),
        ({"share": 1.5}, r"share must lie in \(0, 1\]; got 1.5"),
        ({"tol": 0.0}, "tol must be a finite number > 0"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1"),
    ],
)
def test_settings_outside_their_rule_are_refused(setting, message):
    with pytest.raises(ParameterError, match=message):
        RSR(**setting).fit(table())
