"""The bounds on false selections, against published numbers and laws built here."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog

from keepers.tuning.false_selections import (
    FalseSelections,
    _r_concave_tail,
    bound_false_selections,
)

# Printed by the R package stabs (hofnerb/stabs, tests/regtest-inference.Rout.save):
# stabsel_parameters(cutoff = 0.6, q = 1 ... 10, p = 100, sampling.type = "SS"), B = 50.
STABS_UNIMODAL = [
    0.02631579, 0.1052632, 0.2368421, 0.4210526, 0.6578947,
    0.9473684, 1.289474, 1.684211, 2.131579, 2.631579,
]  # fmt: skip
STABS_R_CONCAVE = [
    0.006971364, 0.03342845, 0.08691176, 0.1637231, 0.2605329,
    0.3820466, 0.5295188, 0.7042719, 0.9077127, 1.141338,
]  # fmt: skip


@pytest.mark.parametrize("q", range(1, 11))
def test_the_worst_case_is_meinshausen_and_buhlmanns_closed_form(q):
    assert bound_false_selections(q, 100, 0.6, 50).worst_case == pytest.approx(q**2 / 0.2 / 100)


@pytest.mark.parametrize("q", range(1, 11))
def test_the_unimodal_bound_is_the_one_stabs_prints(q):
    bound = bound_false_selections(q, 100, 0.6, 50)
    assert bound.unimodal == pytest.approx(STABS_UNIMODAL[q - 1], rel=1e-6)


@pytest.mark.parametrize(
    ("q", "d", "threshold", "printed"),
    [(q + 1, 100, 0.6, value) for q, value in enumerate(STABS_R_CONCAVE)]
    + [(30, 100, 0.6, 16.24975), (10, 100, 0.61, 1.005863), (10, 100, 0.62, 0.8971682)]
    + [(6, 200, 0.6, 0.174), (7, 200, 0.6, 0.248), (7, 200, 0.62, 0.196), (7, 200, 0.61, 0.219)],
)
def test_the_r_concave_bound_is_the_one_stabs_prints(q, d, threshold, printed):
    """The line search of stabs stops a little short of the maximum, by up to 0.3 % at q = 1."""
    found = bound_false_selections(q, d, threshold, 50).r_concave
    rounding = 0.0005 if printed == round(printed, 3) else 1e-6 * printed
    assert printed - rounding <= found <= 1.004 * printed + rounding


def test_at_threshold_one_the_bound_is_reached_by_a_law_on_all_points():
    """Where stabs prints 0.005185 a law with the right mean and shape has 6 % more."""
    points, mean = np.arange(101), 10.0  # of 2B = 100 halves, for q / d = 0.1

    def law(a):
        weights = (a + points) ** -4.0  # its power -1/4 is linear
        return weights / weights.sum()

    offset = brentq(lambda a: law(a) @ points - mean, 1e-6, 1e4)
    joint_points = np.arange(51)

    def joint_law(a):
        weights = (a + joint_points) ** -2.0
        return weights / weights.sum()

    joint_offset = brentq(lambda a: joint_law(a) @ joint_points - 0.5, 1e-6, 1e4)
    smaller = min(law(offset)[-1], joint_law(joint_offset)[-1])
    found = bound_false_selections(10, 100, 1.0, 50).r_concave
    assert found == pytest.approx(100 * smaller, rel=1e-6)
    assert found >= 0.005184816


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=19, max_size=19),
    st.floats(1e-4, 1.0),
    st.integers(11, 20),
)
def test_no_law_of_the_assumed_shapes_has_more_probability_beyond(bends, slope, n_halves):
    """Random -1/4-concave laws of the frequency: their power -1/4 is any convex sequence."""
    curve = 0.01 + np.cumsum(np.concatenate([[0], slope + np.cumsum([0, *bends])]))
    law = curve**-4.0
    law /= law.sum()
    points = np.arange(21) / 20
    theta = float(law @ points)
    assert law[n_halves:].sum() <= _r_concave_tail(theta, n_halves, 20, -1 / 4) + 1e-9


@pytest.mark.parametrize("theta", [0.05, 0.2, 0.5, 0.57])
@pytest.mark.parametrize("threshold", [0.6, 0.7, 0.75, 0.8, 0.95, 1.0])
def test_the_unimodal_bound_is_above_the_most_any_unimodal_law_can_have(theta, threshold):
    """A linear programme for each place of the peak; tight where the bound's formula is."""
    n_pairs = 10
    points = np.arange(n_pairs + 1) / n_pairs
    beyond = points >= 2 * threshold - 1 - 1e-9
    most = 0.0
    for peak in range(n_pairs + 1):
        steps = np.zeros((n_pairs, n_pairs + 1))
        for i in range(n_pairs):
            rising = 1.0 if i < peak else -1.0
            steps[i, i], steps[i, i + 1] = rising, -rising
        solution = linprog(
            -beyond.astype(float),
            A_ub=np.vstack([steps, points]),
            b_ub=np.append(np.zeros(n_pairs), theta**2),
            A_eq=np.ones((1, n_pairs + 1)),
            b_eq=[1.0],
        )
        if solution.status == 0:
            most = max(most, -solution.fun)
    bound = bound_false_selections(100 * theta, 100, threshold, n_pairs)
    assert bound.unimodal >= 100 * most - 1e-9
    assert bound.unimodal <= max(3 * 100 * most, 1e-9) or bound.unimodal == bound.worst_case


@given(
    st.integers(1, 300),
    st.integers(1, 300),
    st.floats(0.501, 1.0),
    st.integers(1, 60),
)
@settings(max_examples=60, deadline=None)
def test_more_assumptions_never_loosen_and_no_bound_exceeds_the_features(q, d, threshold, n_pairs):
    bound = bound_false_selections(min(q, d), d, threshold, n_pairs)
    assert 0 <= bound.r_concave <= bound.unimodal <= bound.worst_case <= d
    assert threshold - 1e-9 <= bound.threshold <= threshold + 0.5 / n_pairs


def test_a_threshold_between_two_frequencies_means_the_next_one_up():
    assert bound_false_selections(5, 100, 0.701, 10).threshold == 0.75
    assert bound_false_selections(5, 100, 0.7, 50).threshold == 0.7  # 0.7 * 100 is above 70


def test_nothing_selected_means_nothing_false():
    assert bound_false_selections(0, 100, 0.75, 50) == FalseSelections(
        0.0, 0.0, 0.0, 0, 100, 0.75, 50
    )


def test_it_reads_as_a_number_and_as_a_sentence():
    bound = bound_false_selections(10, 100, 0.6, 50)
    assert float(bound) == bound.worst_case
    assert str(bound).startswith("at most 5 of 100 features by chance at threshold 0.6 with 10")
