"""The rules that parameters obey."""

import numpy as np
import pytest

from keepers import RandomScore, all_selectors
from keepers.exceptions import DataWarning, ParameterError
from keepers.selectors.parameters import cap_neighbors, check_count, check_positive, check_seed


@pytest.mark.parametrize(
    "value", [0, -1, np.nan, np.inf, "1", None, True, 1j, [1.0], 1e308, 10**400]
)
def test_what_is_no_usable_number_is_refused_with_the_rule(value):
    with pytest.raises(
        ParameterError, match=r"gamma must (be a finite number > 0|lie in \(0, 1e\+150\])"
    ):
        check_positive("gamma", value)


@pytest.mark.parametrize("value", [0, -1, 1.0, np.nan, "1", None, True, 10**400, 2**63])
def test_what_is_no_usable_count_is_refused_with_the_rule(value):
    with pytest.raises(ParameterError, match=r"max_iter must be an integer (>= 1|from 1 to 92233)"):
        check_count("max_iter", value)


@pytest.mark.parametrize("value", [-1, 2**32, 10**400, 0.5, "abc", [1], np.nan, True])
def test_a_seed_that_numpy_cannot_start_from_is_refused_with_its_range(value):
    with pytest.raises(
        ParameterError, match="random_state must be an integer from 0 to 4294967295"
    ):
        check_seed(value)
    with pytest.raises(
        ParameterError, match="random_state must be an integer from 0 to 4294967295"
    ):
        RandomScore(1, random_state=value).fit(np.eye(3))


@pytest.mark.parametrize("value", [None, 0, 2**32 - 1, np.uint32(7), np.random.RandomState(0)])
def test_every_seed_that_numpy_can_start_from_is_taken(value):
    check_seed(value)
    assert RandomScore(1, random_state=value).fit(np.eye(3)).support_.sum() == 1


def test_every_selector_checks_its_settings_before_the_data():
    for selector in all_selectors().values():
        if "random_state" in selector().get_params():
            with pytest.raises(ParameterError, match="random_state"):
                selector(random_state=-1).fit("no table at all")
        with pytest.raises(ParameterError, match="n_features_to_select"):
            selector(n_features_to_select=0).check_parameters()


def test_the_cap_warns_with_both_numbers_and_only_when_it_binds():
    with pytest.warns(DataWarning, match=r"n_neighbors=5 needs at least 6 samples; X has 4, so 3"):
        assert cap_neighbors(5, 4) == 3
    assert cap_neighbors(3, 4) == 3
