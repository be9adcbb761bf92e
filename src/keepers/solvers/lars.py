"""The lasso path of least angle regression, knot by knot, from rows of a Gram matrix.

    minimise  1/2 a' G a - a' c + penalty * |a|_1,   G = X'X + ridge I,   c = X'y,

for every penalty from max |c| down to 0. Between two knots the active features A and their signs
s stay, and everything is linear in the penalty:

    a_A = b - penalty * w,           G_AA b = c_A,  G_AA w = s,
    correlations c - G a = p + penalty * slope,  p = c - G_.A b,  slope = G_.A w.

A segment ends where a feature's correlation reaches the penalty (it joins) or an active
coefficient reaches zero (it is dropped). `keepers.solvers.active_set` carries b and w from one
segment to the next, without ever forming G.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.ordering import first_largest, first_smallest
from keepers.solvers.active_set import ActiveSet, Gram, Segment


# Beside the largest coefficient of a knot, this is rounding noise.
_ZERO = 1e-10
# Correlations this small beside the first are rounding noise: the path has ended.
_END = 1e-13


@dataclass(frozen=True)
class Knot:
    """The solution where the path bends."""

    penalty: float
    features: IndexArray
    """Active features, in the order in which they joined."""
    values: FloatArray
    """Their coefficients; the one that is about to be dropped is exactly 0."""

    @property
    def n_nonzero(self) -> int:
        """Coefficients that are not rounding noise beside the largest."""
        size = np.abs(self.values)
        return int(np.sum(size > _ZERO * size.max(initial=0.0)))


@dataclass(frozen=True)
class SparseFit:
    """The knot that was asked for, or the last one there is."""

    knot: Knot
    n_knots: int
    """Knots walked, this one included."""
    reached: bool
    """Whether the knot has as many non-zero coefficients as asked for."""


def first_knot_of_size(gram: Gram, covariance: FloatArray, size: int) -> SparseFit:
    """The first knot with ``size`` non-zero coefficients; with more, if features join in a tie."""
    knot = Knot(0.0, np.empty(0, dtype=np.intp), np.empty(0))
    n_knots = 0
    # Without a limit, a tie that rounding breaks now this way, now that, could go round forever.
    for knot in islice(lasso_knots(gram, covariance, size), 50 * size + 1000):
        n_knots += 1
        if knot.n_nonzero >= size:
            return SparseFit(knot, n_knots, True)
    return SparseFit(knot, n_knots, False)


def lasso_knots(gram: Gram, covariance: FloatArray, room: int = 64) -> Iterator[Knot]:
    """All knots from the first, where one feature is active, to the penalty 0.

    ``room`` is how many active features to expect; more are made room for.
    """
    active = ActiveSet(gram, covariance, room)
    joins = first_largest(np.abs(covariance))
    penalty = highest = float(np.abs(covariance[joins]))
    if penalty == 0.0:
        return
    active.join(joins, float(np.sign(covariance[joins])), covariance)
    while penalty > 0.0:
        segment = active.segment(penalty)
        to_join, joins = _next_to_join(segment, active)
        to_drop, drops = _next_to_drop(segment, active)
        step = min(to_join, to_drop, penalty)
        penalty = penalty - step if penalty - step > _END * highest else 0.0
        values = segment.values_at(penalty)
        dropping = penalty > 0.0 and to_drop <= to_join
        if dropping:
            values[drops] = 0.0
        yield Knot(penalty, active.features.copy(), values)
        correlation = segment.correlation_at(penalty)
        if dropping:
            active.drop(drops)
        elif penalty > 0.0:
            active.join(joins, float(np.sign(correlation[joins])), correlation)


def _next_to_join(segment: Segment, active: ActiveSet) -> tuple[float, int]:
    """How far the penalty falls until a correlation reaches plus or minus it, and whose."""
    correlation = segment.correlation_at(segment.penalty)
    steps = np.minimum(
        _time_to_close(segment.penalty - correlation, 1.0 - segment.slope) + active.barred_above,
        _time_to_close(segment.penalty + correlation, 1.0 + segment.slope) + active.barred_below,
    )
    first = first_smallest(steps, segment.penalty)
    return float(steps[first]), first


def _next_to_drop(segment: Segment, active: ActiveSet) -> tuple[float, int]:
    """How far the penalty falls until a coefficient reaches zero, and its position."""
    values = segment.values_at(segment.penalty)
    steps = _time_to_close(active.signs * values, -active.signs * segment.w)
    if active.newest is not None:
        steps[active.newest] = np.inf  # it stands at zero and is about to leave it
    first = first_smallest(steps, segment.penalty)
    return float(steps[first]), first


def _time_to_close(gap: FloatArray, speed: FloatArray) -> FloatArray:
    """Gap over speed where it closes, infinity where it does not; a gap below 0 is rounding."""
    time = np.full(gap.shape, np.inf)
    np.divide(np.maximum(gap, 0.0), speed, out=time, where=speed > _END)
    return time
