"""The points that are proposed, against roots, closed forms and the rules of the docstring."""

import numpy as np
import pytest
from scipy.optimize import brentq

from keepers.linalg.subspace import Subspace
from keepers.solvers.pace import Extrapolation, Pace, solve_rows_alone
from keepers.solvers.penalty import RowPenalty

EPS = 1e-12
GAMMA = 2.0
ROWS = 20
LIGHT, HEAVY = np.log(EPS), 0.0
"""The bounds of the logarithm of a squared row norm."""


def space_with(images, values):
    """Only images, values and the number of columns are looked at."""
    return Subspace(np.zeros_like(images), images, np.asarray(values, dtype=float))


def root_of_row(pulls, theta, price):
    """The r > 0 with sum_j F_j^2 / (price / 2 + theta_j r)^2 = 1."""

    def excess(r):
        return np.sum((pulls / (price / 2 + theta * r)) ** 2) - 1.0

    return brentq(excess, 0.0, np.linalg.norm(pulls) / theta.min(), xtol=1e-15, rtol=1e-14)


def pulled_rows(theta, costs, seed=0):
    """Images of rows that are active, and the norms that solve their equations."""
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((ROWS, len(theta)))
    price = GAMMA * costs
    images *= (price * rng.uniform(0.6, 2.0, ROWS) / np.linalg.norm(images, axis=1))[:, np.newaxis]
    roots = [root_of_row(*row, theta, c) for *row, c in zip(images, price, strict=True)]
    return images, np.array(roots)


def solved_from(norms, images, theta, penalty):
    """The norms that rows get, from these."""
    log_norms = np.log(norms**2 + penalty.eps)
    return np.exp(solve_rows_alone(log_norms, space_with(images, theta), penalty) / 2)


# Rows alone


@pytest.mark.parametrize("with_costs", [False, True])
@pytest.mark.parametrize("width", [1, 4])
def test_rows_alone_are_solved_in_one_step_where_all_ritz_values_are_equal(width, with_costs):
    rng = np.random.default_rng(1)
    costs = rng.uniform(0.3, 3.0, ROWS) if with_costs else np.ones(ROWS)
    theta = np.full(width, 7.0)
    images, roots = pulled_rows(theta, costs)
    penalty = RowPenalty(GAMMA, 1.0, EPS, costs if with_costs else None)
    # As far away as the clip allows: a squared norm grows to e^3 times itself, or falls to 1 / e.
    start = roots * np.exp(rng.uniform(-1.4, 0.45, ROWS))
    np.testing.assert_allclose(solved_from(start, images, theta, penalty), roots, rtol=1e-6)
    # The equation has a closed form there.
    by_hand = (np.linalg.norm(images, axis=1) - GAMMA * costs / 2) / 7.0
    np.testing.assert_allclose(roots, by_hand, rtol=1e-9)


@pytest.mark.parametrize("with_costs", [False, True])
def test_ten_times_nearer_to_its_solution_a_row_is_left_a_hundred_times_nearer(with_costs):
    theta = np.array([9.0, 4.0, 1.0])
    costs = np.random.default_rng(2).uniform(0.3, 3.0, ROWS) if with_costs else np.ones(ROWS)
    images, roots = pulled_rows(theta, costs)
    penalty = RowPenalty(GAMMA, 1.0, 1e-20, costs if with_costs else None)
    error = {
        share: np.abs(solved_from((1 + share) * roots, images, theta, penalty) / roots - 1)
        for share in (0.1, 0.01)
    }
    assert np.all(error[0.1] < 0.01)
    assert np.all(error[0.01] < 0.02 * error[0.1] + 1e-10)
    assert np.median(error[0.1]) > 1e-5  # or it would say nothing


@pytest.mark.parametrize("theta", [[5.0, 5.0, 5.0], [9.0, 4.0, 1.0]])
def test_a_row_that_is_not_pulled_out_of_zero_shrinks_by_as_much_as_a_row_may(theta):
    rng = np.random.default_rng(3)
    costs = rng.uniform(0.3, 3.0, ROWS)
    images = rng.standard_normal((ROWS, 3))
    share = np.linspace(0.0, 0.99, ROWS)  # 2 |F_i| of gamma c_i
    images *= (share * GAMMA * costs / 2 / np.linalg.norm(images, axis=1))[:, np.newaxis]
    log_norms = rng.uniform(-10.0, -1.0, ROWS)
    space, penalty = space_with(images, theta), RowPenalty(GAMMA, 1.0, EPS, costs)
    np.testing.assert_allclose(
        solve_rows_alone(log_norms, space, penalty), log_norms - 1.0, rtol=1e-12
    )


def test_a_row_that_is_far_too_short_grows_to_e_cubed_of_its_squared_norm():
    theta = np.array([5.0, 5.0])
    images, roots = pulled_rows(theta, np.ones(ROWS))
    start = 1e-3 * roots
    found = solved_from(start, images, theta, RowPenalty(GAMMA, 1.0, 1e-20))
    np.testing.assert_allclose(found, np.exp(1.5) * start, rtol=1e-9)


# Extrapolation


def linear_map():
    """The fixed point (I - A)^-1 b of u -> A u + b, and points of the iteration."""
    A = np.array([[0.1, -0.8], [0.7, 0.2]])
    b = np.array([0.3, -0.5])
    points = [np.array([1.0, 2.0])]
    for _ in range(6):
        points.append(A @ points[-1] + b)
    return np.linalg.solve(np.eye(2) - A, b), points


@pytest.mark.parametrize("importance", [[1.0, 1.0], [3.0, 0.2]])
@pytest.mark.parametrize("n_pairs", [3, 4, 6])
def test_a_linear_map_of_the_plane_is_solved_from_three_pairs_or_more(n_pairs, importance):
    solution, points = linear_map()
    ahead = Extrapolation(3)
    for k in range(n_pairs):
        ahead.remember(points[k], points[k + 1])
    np.testing.assert_allclose(ahead.propose(np.array(importance)), solution, atol=1e-7)


def secant(pairs, importance):
    """The point between two images at which the linear model of the gap is shortest."""
    (first, first_image), (last, last_image) = pairs
    gap, gap_before = last_image - last, first_image - first
    change = gap - gap_before
    share = np.sum(importance * change * gap) / np.sum(importance * change**2)
    return last_image - np.clip(share * (last_image - first_image), -3.0, 3.0)


def test_two_pairs_give_the_weighted_secant_and_fewer_give_nothing():
    _, points = linear_map()
    importance = np.array([3.0, 0.2])
    ahead = Extrapolation(3)
    assert ahead.propose(importance) is None
    assert ahead.pairs() == (None, None)
    ahead.remember(points[0], points[1])
    assert ahead.propose(importance) is None
    ahead.remember(points[1], points[2])
    expected = secant([(points[0], points[1]), (points[1], points[2])], importance)
    np.testing.assert_allclose(ahead.propose(importance), expected, atol=1e-7)


def test_what_was_forgotten_is_not_used():
    solution, points = linear_map()
    ahead = Extrapolation(3)
    for k in range(3):
        ahead.remember(np.array([100.0, k]), np.array([k, 7.0]))
    ahead.forget()
    assert ahead.pairs() == (None, None)
    assert ahead.propose(np.ones(2)) is None
    for k in range(3):
        ahead.remember(points[k], points[k + 1])
    np.testing.assert_allclose(ahead.propose(np.ones(2)), solution, atol=1e-7)


def test_only_the_last_pairs_are_kept():
    _, points = linear_map()
    ahead = Extrapolation(3)
    for k in range(6):
        ahead.remember(points[k], points[k + 1])
    kept, images = ahead.pairs()
    np.testing.assert_array_equal(kept, points[2:6])  # as they were handed in
    np.testing.assert_array_equal(images, points[3:7])


def test_pairs_that_say_nothing_propose_nothing():
    ahead = Extrapolation(3)
    for _ in range(3):
        ahead.remember(np.array([1.0, 2.0]), np.array([1.5, 1.0]))
    assert ahead.propose(np.ones(2)) is None


def test_an_extrapolation_is_no_longer_than_three():
    ahead = Extrapolation(3)
    for k in range(2):  # gaps of 1 and 0.99: the model has its end 99 further on
        ahead.remember(np.array([float(k)]), np.array([1.0 + 0.99 * k]))
    np.testing.assert_allclose(ahead.propose(np.ones(1)), [1.99 + 3.0])


# Pace


@pytest.fixture
def walk():
    """Points and images, well inside the bounds, and images of rows that are pulled."""
    rng = np.random.default_rng(4)
    points = rng.uniform(-6.0, -5.0, (8, ROWS))
    images = points + rng.uniform(-0.5, 0.5, (8, ROWS))
    pulls, _ = pulled_rows(np.ones(3), np.ones(ROWS))
    return list(zip(points, images, strict=True)), pulls


def test_with_positive_ritz_values_rows_are_alone_until_that_is_turned_down(walk):
    pairs, pulls = walk
    space, penalty = space_with(pulls, [4.0, 4.0, 4.0]), RowPenalty(GAMMA, 1.0, EPS)
    pace = Pace(penalty)
    for point, image in pairs[:3]:
        found = pace.propose(point, image, space, penalty, waiting=False)
        norms = (np.linalg.norm(pulls, axis=1) - GAMMA / 2) / 4.0
        step = np.clip(2 * np.log(norms) - image, -1.0, 3.0)
        np.testing.assert_allclose(found, image + step, rtol=1e-6)
    pace.turned_down(space)
    assert pace.propose(*pairs[3], space, penalty, waiting=False) is None
    found = pace.propose(*pairs[4], space, penalty, waiting=False)
    np.testing.assert_allclose(found, secant(pairs[3:5], np.exp(pairs[4][1] / 2)), atol=1e-7)


def test_costs_weigh_the_extrapolation(walk):
    pairs, pulls = walk
    costs = np.geomspace(0.1, 10.0, ROWS)
    space, penalty = space_with(pulls, [4.0, 4.0, 4.0]), RowPenalty(GAMMA, 1.0, EPS, costs)
    pace = Pace(penalty)
    pace.turned_down(space)
    assert pace.propose(*pairs[0], space, penalty, waiting=False) is None
    found = pace.propose(*pairs[1], space, penalty, waiting=False)
    importance = costs * np.exp(pairs[1][1] / 2)
    np.testing.assert_allclose(found, secant(pairs[:2], importance), atol=1e-7)


def test_with_a_negative_ritz_value_steps_are_lengthened_up_to_three_times(walk):
    pairs, pulls = walk
    space, penalty = space_with(pulls, [4.0, 1.0, -1.0]), RowPenalty(GAMMA, 1.0, EPS)
    pace = Pace(penalty)
    for (point, image), factor in zip(pairs, [1.5, 2.25, 3.0, 3.0], strict=False):
        found = pace.propose(point, image, space, penalty, waiting=False)
        np.testing.assert_allclose(found, image + factor * (image - point), rtol=1e-12)


def test_a_lengthened_step_that_is_turned_down_lets_extrapolation_take_its_turn(walk):
    pairs, pulls = walk
    space, penalty = space_with(pulls, [4.0, 1.0, -1.0]), RowPenalty(GAMMA, 1.0, EPS)
    pace = Pace(penalty)
    for _ in range(3):
        pace.propose(*pairs[0], space, penalty, waiting=False)
    pace.turned_down(space)
    assert pace.propose(*pairs[1], space, penalty, waiting=False) is None
    found = pace.propose(*pairs[2], space, penalty, waiting=False)
    np.testing.assert_allclose(found, secant(pairs[1:3], np.exp(pairs[2][1] / 2)), atol=1e-7)
    pace.turned_down(space)
    point, image = pairs[3]
    found = pace.propose(point, image, space, penalty, waiting=False)
    # 3 / 4 is what was left of the factor, and it grows again.
    np.testing.assert_allclose(found, image + 1.5 * 0.75 * (image - point), rtol=1e-12)


def test_rows_may_still_be_solved_alone_after_a_longer_step_was_turned_down(walk):
    pairs, pulls = walk
    penalty = RowPenalty(GAMMA, 1.0, EPS)
    pace = Pace(penalty)
    pace.turned_down(space_with(pulls, [4.0, 1.0, -1.0]))
    positive = space_with(pulls, [4.0, 3.0, 2.0])
    found = pace.propose(*pairs[0], positive, penalty, waiting=False)
    expected = solve_rows_alone(pairs[0][1], positive, penalty)
    np.testing.assert_array_equal(found, expected)  # the same computation


def test_below_p_1_nothing_is_proposed_but_longer_steps_while_waiting(walk):
    pairs, pulls = walk
    space, penalty = space_with(pulls, [4.0, 3.0, 2.0]), RowPenalty(GAMMA, 0.5, EPS)
    pace = Pace(penalty)
    point, image = pairs[0]
    assert pace.propose(point, image, space, penalty, waiting=False) is None
    for factor in (2.0, 4.0, 8.0, 16.0, 32.0, 32.0):
        found = pace.propose(point, image, space, penalty, waiting=True)
        step = np.clip(factor * (image - point), -1.0, 1.0)
        np.testing.assert_allclose(found, image + step, rtol=1e-12)
    pace.turned_down(space)
    found = pace.propose(point, image, space, penalty, waiting=True)
    np.testing.assert_allclose(found, image + np.clip(16.0 * (image - point), -1.0, 1.0))
    assert pace.propose(point, image, space, penalty, waiting=False) is None
    found = pace.propose(point, image, space, penalty, waiting=True)
    np.testing.assert_allclose(found, image + np.clip(2.0 * (image - point), -1.0, 1.0))


@pytest.mark.parametrize("p", [1.0, 0.5])
@pytest.mark.parametrize("values", [[4.0, 4.0, 4.0], [4.0, 1.0, -1.0]])
@pytest.mark.parametrize("n_turned_down", [0, 1])
def test_proposals_are_logarithms_of_norms_that_rows_can_have(p, values, n_turned_down, walk):
    _, pulls = walk
    space, penalty = space_with(1e3 * pulls, values), RowPenalty(GAMMA, p, EPS)
    pace = Pace(penalty)
    for _ in range(n_turned_down):
        pace.turned_down(space)
    rng = np.random.default_rng(5)
    n_made = 0
    for k in range(6):
        # Half of the rows near the upper end, half near the lower one.
        point = np.where(np.arange(ROWS) % 2, LIGHT + 0.5, HEAVY - 0.5)
        image = point + rng.uniform(-0.4, 0.4, ROWS)
        found = pace.propose(point + 0.01 * k, image, space, penalty, waiting=True)
        if found is not None:
            n_made += 1
            assert np.all((found >= LIGHT) & (found <= HEAVY))
    assert n_made >= 5


def test_groups_are_never_alone_and_may_weigh_as_much_as_all_columns(walk):
    _, pulls = walk
    penalty = RowPenalty(GAMMA, 1.0, EPS, None, np.arange(ROWS) // 2)
    pace = Pace(penalty)
    point, image = np.full(ROWS // 2, -0.5), np.full(ROWS // 2, 0.4)
    image[0] = -5.0
    found = pace.propose(point, image, space_with(pulls, [4.0, 1.0, -1.0]), penalty, waiting=False)
    # The squared norm of a group is at most that of W, which is the number of its columns.
    expected = np.full(ROWS // 2, np.log(3.0))
    expected[0] = -5.0 - 3.0
    np.testing.assert_allclose(found, expected)
    positive = space_with(pulls, [4.0, 3.0, 2.0])
    assert pace.propose(point, image, positive, penalty, waiting=False) is None  # no second pair
