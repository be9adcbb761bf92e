"""How many features pass the threshold of stability selection by chance: three upper bounds.

Shah and Samworth, "Variable selection with error control: another look at stability selection",
J. R. Statist. Soc. B 75 (2013). With B complementary pairs of halves, let a feature's frequency be
the share of the 2B halves in which it was selected, and its joint frequency the share of the B
pairs in which *both* halves selected it. A frequency of at least tau forces a joint frequency of
at least 2 tau - 1. The halves of a pair share no sample, so for a feature selected with
probability p_k the joint frequency has mean p_k^2. What follows is how much probability a
distribution with that mean can have beyond 2 tau - 1, for the features with p_k <= theta = q / d.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from keepers._protocols import FloatArray

# Exponents for which Shah and Samworth found r-concavity to hold in practice:
# of the joint frequency, and of the frequency itself.
R_JOINT, R_FREQUENCY = -1 / 2, -1 / 4
LARGEST_UNIMODAL_THETA = 1 / np.sqrt(3)
SMALLEST_OFFSET, LARGEST_OFFSET, N_OFFSETS = 1e-12, 1e6, 1000


@dataclass(frozen=True)
class FalseSelections:
    """Upper bounds on how many features of low selection probability reach the threshold.

    "Low" means at most q / d: no more often than a draw of q features out of d would. As a number
    (``float(...)``) this is the bound that assumes nothing.
    """

    worst_case: float
    """q^2 / ((2 threshold - 1) d), Meinshausen and Buhlmann's number. Needs no assumption on the
    selector or the data beyond samples drawn independently from one distribution."""
    unimodal: float
    """Holds if every such feature's joint frequency has a distribution with a single peak."""
    r_concave: float
    """Holds if, moreover, the joint frequency is -1/2-concave and the frequency -1/4-concave:
    tails that fall at least like a power law, as they do in practice."""
    q: float
    """Features selected in a half, on average."""
    n_features: int
    """d, the features there were to choose from (constant columns are none)."""
    threshold: float
    """The smallest frequency that counts as reaching the threshold: a whole number of halves."""
    n_pairs: int
    """Complementary pairs of halves, B."""

    def __float__(self) -> float:
        return self.worst_case

    def __str__(self) -> str:
        return (
            f"at most {self.worst_case:.3g} of {self.n_features} features by chance at threshold "
            f"{self.threshold:g} with {self.q:g} selected in each half; {self.unimodal:.3g} if "
            f"their joint frequencies are unimodal, {self.r_concave:.3g} if r-concave"
        )


def bound_false_selections(
    q: float, n_features: int, threshold: float, n_pairs: int
) -> FalseSelections:
    """Bound the expected number of features of low selection probability that are called stable.

    Parameters
    ----------
    q : float
        Features selected in a half, on average.
    n_features : int
        Features there were to choose from.
    threshold : float in (0.5, 1]
        Frequency from which a feature is called stable.
    n_pairs : int
        Complementary pairs of halves.

    Returns
    -------
    FalseSelections
        The bound that assumes nothing and two tighter ones, none larger than the one before it.

    Examples
    --------
    >>> from keepers.tuning.false_selections import bound_false_selections
    >>> bound = bound_false_selections(q=10, n_features=100, threshold=0.6, n_pairs=50)
    >>> round(bound.worst_case, 3), round(bound.unimodal, 3), round(bound.r_concave, 3)
    (5.0, 2.632, 1.141)
    """
    # 0.7 * 100 is 70.00000000000001 in binary: without the rounding it would need 71 halves.
    n_halves = int(np.ceil(round(threshold * 2 * n_pairs, 9)))
    reached = n_halves / (2 * n_pairs)
    theta = q / n_features
    worst_case = min(float(n_features), q * theta / (2 * reached - 1))
    unimodal = min(worst_case, q * theta * _unimodal_factor(reached, n_pairs, theta))
    tail = min(
        _r_concave_tail(theta**2, n_halves - n_pairs, n_pairs, R_JOINT),
        _r_concave_tail(theta, n_halves, 2 * n_pairs, R_FREQUENCY),
    )
    r_concave = min(unimodal, n_features * tail)
    return FalseSelections(worst_case, unimodal, r_concave, q, n_features, reached, n_pairs)


def _unimodal_factor(threshold: float, n_pairs: int, theta: float) -> float:
    """C(tau, B) of Shah and Samworth's Theorem 2; infinite where it does not apply."""
    step = 1 / (2 * n_pairs)
    lowest = 0.5 + min(theta**2, step + 0.75 * theta**2)
    if theta > LARGEST_UNIMODAL_THETA or threshold <= lowest or threshold < 0.5 + 2 * step:
        return np.inf
    if threshold <= 0.75:
        return 1 / (2 * (2 * threshold - 1 - step))
    return 4 * (1 - threshold + step) / (1 + 2 * step)


def _r_concave_tail(mean: float, start: int, n_points: int, r: float) -> float:
    """The most probability an r-concave law on 0, 1/n, ..., 1 with this mean has from start/n on.

    f is r-concave (r < 0) if f^r is convex. The heaviest tails have f^r linear: f_i proportional
    to (a + i)^(1/r) on 0 ... k, and at k + 1 whatever the mean still asks for (the paper's
    appendix). The offset a determines k, so this is a search along one line.
    """
    total = mean * n_points
    if start < np.ceil(2 * total) + 1 or total <= 0:
        return 0.0 if total <= 0 else 1.0

    def mean_excess(log_offset: float) -> float:
        values = np.arange(n_points + 1)
        weights = (np.exp(log_offset) + values) ** (1 / r)
        return float(weights @ values / weights.sum() - total)

    def tails(log_offsets: FloatArray) -> FloatArray:
        return _tails(np.exp(log_offsets), total, start, n_points, 1 / r)

    # Below this offset even the whole range has too small a mean.
    lowest = brentq(mean_excess, np.log(SMALLEST_OFFSET), np.log(LARGEST_OFFSET))
    grid = np.linspace(lowest, np.log(LARGEST_OFFSET), N_OFFSETS)
    on_grid = tails(grid)
    best = int(np.argmax(on_grid))
    refined = minimize_scalar(
        lambda log_offset: -tails(np.array([log_offset]))[0],
        bounds=(grid[max(best - 1, 0)], grid[min(best + 1, N_OFFSETS - 1)]),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return float(max(on_grid[best], -refined.fun))


def _tails(
    offsets: FloatArray, total: float, start: int, n_points: int, power: float
) -> FloatArray:
    """P(X >= start) for each member of the family with mean ``total``."""
    values = np.arange(n_points + 1)
    weights = (offsets[:, np.newaxis] + values) ** power
    mass = np.cumsum(weights, axis=1)
    moment = np.cumsum(weights * values, axis=1)
    # The mean over 0 ... k grows with k; the last k whose mean is too small takes a part of k + 1.
    k = np.minimum(np.sum(moment <= total * mass, axis=1), n_points) - 1
    rows = np.arange(len(offsets))
    scale = (k + 1 - total) / ((k + 1) * mass[rows, k] - moment[rows, k])
    tails: FloatArray = 1 - scale * mass[rows, np.minimum(start - 1, k)]
    return np.where(k + 1 >= start, tails, 0.0)
