"""Friedman and Nemenyi against SciPy and against the published tables."""

import numpy as np
import pytest
from scipy import stats

from keepers.studies.rank_tests import critical_difference, rank_test


def table(values: np.ndarray) -> dict[str, dict[str, float | None]]:
    """Rows are methods, columns data sets."""
    return {
        f"m{i}": {f"d{j}": float(value) for j, value in enumerate(row)}
        for i, row in enumerate(values)
    }


@pytest.mark.parametrize(
    ("n_methods", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (7, 2.949), (10, 3.164)]
)
def test_critical_values_are_those_of_demsar_2006(n_methods: int, q: float) -> None:
    unit = np.sqrt(n_methods * (n_methods + 1) / (6 * 12))
    assert critical_difference(n_methods, 12) / unit == pytest.approx(q, abs=1e-3)


def test_critical_values_at_ten_percent_are_those_of_demsar_2006() -> None:
    assert critical_difference(5, 20, 0.10) / np.sqrt(30 / 120) == pytest.approx(2.459, abs=1e-3)


@pytest.mark.parametrize("digits", [8, 1])
def test_the_statistic_is_scipys_with_and_without_ties(digits: int) -> None:
    values = np.random.default_rng(3).random((5, 9)).round(digits)
    found = rank_test(table(values))
    expected = stats.friedmanchisquare(*values)
    assert found.chi_squared == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)


def test_the_example_of_demsar_2006_comes_out() -> None:
    """Table 6 there: AUC of four variants of C4.5 on 14 data sets, and their average ranks.

    The last but one set has .975 twice in print, yet different ranks: a fourth digit parts them.
    """
    values = np.array(
        [
            [.763, .599, .954, .628, .882, .936, .661, .583, .775, 1.000, .940, .619, .972, .957],
            [.768, .591, .971, .661, .888, .931, .668, .583, .838, 1.000, .962, .666, .981, .978],
            [.771, .590, .968, .654, .886, .916, .609, .563, .866, 1.000, .965, .614, .9751, .946],
            [.798, .569, .967, .657, .898, .931, .685, .625, .875, 1.000, .962, .669, .975, .970],
        ]
    )  # fmt: skip
    found = rank_test(table(values))
    assert found.average_ranks == pytest.approx(
        {"m0": 3.143, "m1": 2.000, "m2": 2.893, "m3": 1.964}, abs=5e-4
    )
    assert found.critical_difference == pytest.approx(1.25, abs=5e-3)


def test_iman_and_davenports_form_follows_its_formula() -> None:
    values = np.random.default_rng(0).random((4, 6))
    found = rank_test(table(values))
    chi = stats.friedmanchisquare(*values).statistic
    f = 5 * chi / (6 * 3 - chi)
    assert found.f_statistic == pytest.approx(f)
    assert found.f_p_value == pytest.approx(stats.f.sf(f, 3, 15))


def test_equal_values_share_the_mean_of_their_ranks_and_higher_is_better() -> None:
    values = np.array([[0.9, 0.9, 0.9], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5], [0.1, 0.1, 0.1]])
    found = rank_test(table(values))
    assert found.average_ranks == {"m0": 1.0, "m1": 2.5, "m2": 2.5, "m3": 4.0}


def test_the_same_order_everywhere_has_no_doubt_left() -> None:
    found = rank_test(table(np.array([[0.9] * 4, [0.5] * 4, [0.1] * 4])))
    assert (found.f_statistic, found.f_p_value) == (float("inf"), 0.0)


def test_groups_are_the_longest_runs_within_the_critical_difference() -> None:
    order = np.repeat(np.linspace(0.9, 0.1, 5)[:, None], 12, axis=1)
    found = rank_test(table(order))  # ranks 1 to 5, critical difference 1.76
    assert found.critical_difference == pytest.approx(2.728 * np.sqrt(30 / 72), abs=1e-3)
    assert found.groups == (("m0", "m1"), ("m1", "m2"), ("m2", "m3"), ("m3", "m4"))


def test_methods_with_a_gap_are_left_out_and_named() -> None:
    values = table(np.random.default_rng(1).random((4, 5)))
    values["m2"]["d3"] = None
    found = rank_test(values)
    assert found.left_out == {"m2": ("d3",)}
    assert set(found.average_ranks) == {"m0", "m1", "m3"}
    others = [list(values[m].values()) for m in ("m0", "m1", "m3")]
    assert found.chi_squared == pytest.approx(stats.friedmanchisquare(*others).statistic)


def test_a_data_set_without_any_value_is_not_counted() -> None:
    values = table(np.random.default_rng(1).random((3, 4)))
    for row in values.values():
        row["empty"] = None
    found = rank_test(values)
    assert found.data == ("d0", "d1", "d2", "d3")
    assert not found.left_out


def test_two_data_sets_are_not_tested_and_the_reason_is_given() -> None:
    found = rank_test(table(np.array([[0.9, 0.8], [0.5, 0.4], [0.1, 0.3]])))
    assert found.chi_squared is None
    assert "at least 3" in found.not_tested
    assert found.average_ranks == {"m0": 1.0, "m1": 2.0, "m2": 3.0}


def test_methods_that_never_differ_are_not_tested() -> None:
    assert "equal" in rank_test(table(np.full((3, 4), 0.5))).not_tested
    assert rank_test({}).not_tested
