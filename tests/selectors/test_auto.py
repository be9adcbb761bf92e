"""AutoSelector: is there structure, how many features, which; and in words."""

import numpy as np
import pytest

from keepers import AutoSelector, DenoisedLaplacian
from keepers.exceptions import DataWarning


@pytest.fixture(scope="module")
def X():
    """120 x 80: five groups of samples in the first 40 features, noise in the rest."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 80))
    X[:, :40] += 2.5 * rng.standard_normal((5, 40))[rng.integers(0, 5, 120)]
    return X


@pytest.fixture(scope="module")
def selector(X):
    return AutoSelector().fit(X)


def test_the_ranking_is_that_of_the_method(X, selector):
    # Exactly: the same computation twice.
    np.testing.assert_array_equal(selector.scores_, DenoisedLaplacian().fit(X).scores_)
    np.testing.assert_array_equal(selector.ranking_, DenoisedLaplacian().fit(X).ranking_)


def test_the_number_is_the_smallest_with_almost_the_best_agreement(selector):
    enough = selector.agreement_ >= 0.95 * selector.agreement_.max()
    assert selector.n_enough_ == selector.counts_[enough].min()
    assert selector.n_features_to_select_ == selector.n_enough_
    assert selector.support_.sum() == selector.n_enough_
    assert selector.support_[40:].sum() == 0


def test_the_kept_features_keep_neighbours_better_than_random_ones(selector):
    at = selector.counts_.tolist().index(selector.n_enough_)
    assert selector.random_agreement_.shape == (10,)
    assert selector.random_agreement_.max() < selector.agreement_[at] <= 1.0


def test_a_number_that_is_given_is_kept(X):
    selector = AutoSelector(11).fit(X)
    assert selector.support_.sum() == 11
    assert selector.n_enough_ > 0
    assert AutoSelector(0.25).fit(X).support_.sum() == 20
    assert len(AutoSelector(must_keep=[70], never_keep=[0]).fit(X).top()) >= 1


def test_the_summary_says_how_many_and_why(selector):
    n_carrying = int(selector.carries_structure_.sum())
    assert selector.summary_.startswith(
        f"80 features, {n_carrying} carry structure, {selector.n_enough_} are enough because "
    )
    level = selector.counts_[selector.agreement_ >= 0.95 * selector.agreement_.max()]
    assert selector.doubts_ == [
        f"Any number from {level[0]} to {level[-1]} keeps the neighbours about as well."
    ]


def test_on_noise_it_says_so_and_keeps_everything():
    X = np.random.default_rng(1).standard_normal((70, 90))
    with pytest.warns(DataWarning, match=r"No structure found: on none of the 90 features.*All "):
        selector = AutoSelector().fit(X)
    assert selector.summary_.startswith("No structure found")
    assert selector.n_enough_ == 0
    assert selector.support_.all()
    with pytest.warns(DataWarning, match="about as good as a random one"):
        assert AutoSelector(7).fit(X).support_.sum() == 7


def test_features_that_all_say_the_same_are_interchangeable():
    """Sixty noisy readings of the same two numbers: any few of them will do."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((150, 2))[:, rng.integers(0, 2, 60)]
    X = X + 0.3 * rng.standard_normal(X.shape)
    selector = AutoSelector(30).fit(X)
    assert any("interchangeable" in doubt for doubt in selector.doubts_)


def test_more_features_than_carry_structure_are_a_doubt(X):
    selector = AutoSelector(60).fit(X)
    n_without = int(60 - selector.carries_structure_.sum())
    assert f"{n_without} of the 60 kept features carry no structure." in selector.doubts_
