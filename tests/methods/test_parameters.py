"""The rules that parameters obey."""

import numpy as np
import pytest

from keepers import RandomScore
from keepers.exceptions import ParameterError
from keepers.methods.parameters import (
    SEED,
    check_value,
    feature_indices,
    positive,
    whole,
)


@pytest.mark.parametrize("value", [0, np.nan, "1", None, True, 1j, [1.0], 1e308, 10**400])
def test_what_is_no_usable_number_is_refused_with_the_rule(value):
    with pytest.raises(ParameterError, match="gamma must be a finite number > 0; got"):
        check_value("gamma", value, positive())


@pytest.mark.parametrize("value", [0, -1, 1.0, np.nan, "1", None, True, 10**400, 2**63])
def test_what_is_no_usable_count_is_refused_with_the_rule(value):
    with pytest.raises(ParameterError, match="max_iter must be an integer >= 1; got"):
        check_value("max_iter", value, whole())


@pytest.mark.parametrize(("asked", "width"), [(None, 1), (0.01, 10), (0.1, 9)])
def test_at_least_one_feature_is_kept(asked, width):
    X = np.random.default_rng(0).normal(size=(20, width))
    assert RandomScore(asked, random_state=0).fit(X).support_.sum() == 1


@pytest.mark.parametrize("value", [-1, 2**32, 0.5, "abc", np.nan, True])
def test_a_seed_that_numpy_cannot_start_from_is_refused_with_its_range(value):
    with pytest.raises(
        ParameterError, match="random_state must be an integer from 0 to 4294967295"
    ):
        check_value("random_state", value, SEED)
    with pytest.raises(
        ParameterError, match="random_state must be an integer from 0 to 4294967295"
    ):
        RandomScore(1, random_state=value).fit(np.eye(3))


@pytest.mark.parametrize("value", [None, 0, 2**32 - 1, np.uint32(7), np.random.RandomState(0)])
def test_every_seed_that_numpy_can_start_from_is_taken(value):
    check_value("random_state", value, SEED)
    assert RandomScore(1, random_state=value).fit(np.eye(3)).support_.sum() == 1


NAMES = np.array(["alpha", "beta", "gamma", "delta"], dtype=object)


@pytest.mark.parametrize(
    "features",
    [
        ["gamma", "alpha"],
        [2, 0],
        np.array([2, 0], dtype=np.uint8),
        ["gamma", 0],
        np.array(["gamma", "alpha"]),
    ],
)
def test_features_are_found_in_their_order(features):
    np.testing.assert_array_equal(feature_indices(features, 4, NAMES), [2, 0])


def test_all_faults_are_told_at_once():
    with pytest.raises(ParameterError) as caught:
        feature_indices(["gama", "x" * 500, 7, 1, 1, 2.5], 4, NAMES)
    first, second, numbers = str(caught.value).splitlines()
    assert first.endswith("'gama' is not one of its 4. Did you mean 'gamma'?")
    assert len(second) < 200
    assert numbers.endswith("indices from 0 to 3; got 7, 2.5.")
    with pytest.raises(ParameterError, match=r"every feature once; .*: 1"):
        feature_indices(["beta", 0, 1], 4, NAMES, distinct=True)
    assert feature_indices(["beta", 0, 1], 4, NAMES).tolist() == [1, 0, 1]
