"""The lasso path of least angle regression, knot by knot, from rows of a Gram matrix.

    minimise  1/2 a' G a - a' c + penalty * |a|_1,   G = X'X + ridge I,   c = X'y,

for every penalty from max |c| down to 0. Between two knots the active features A and their signs
s stay, and everything is linear in the penalty:

    a_A = b - penalty * w,           G_AA b = c_A,  G_AA w = s,
    correlations c - G a = p + penalty * slope,  p = c - G_.A b,  slope = G_.A w.

A segment ends where a feature's correlation reaches the penalty (it joins) or an active
coefficient reaches zero (it is dropped). b and w are solved anew on each segment, so that errors
do not add up along the path, and only rows of G of features that join are ever formed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray, IndexArray

__all__ = ["GramRows", "Knot", "SparseFit", "first_knot_of_size", "lasso_knots"]

# Rows of G that are formed together: at once they cost little more than one.
_ROWS_AT_ONCE = 64
_BYTES_AT_ONCE = 1 << 24
# A feature whose part outside the span of the active ones is below this is a copy of them.
_DEPENDENT = 1e-12
# Beside the largest coefficient of a knot, this is rounding noise.
_ZERO = 1e-10
# Correlations this small beside the first are rounding noise: the path has ended.
_END = 1e-13


class GramRows:
    """Rows of X'X + ridge I, formed when asked for and kept."""

    def __init__(self, X: Any, ridge: float) -> None:
        self.X = X.tocsc() if sp.issparse(X) else X
        self.ridge = ridge
        self._kept: dict[int, FloatArray] = {}

    @property
    def size(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def row(self, feature: int, promise: FloatArray) -> FloatArray:
        """Row ``feature``; with it come those not yet there that promise most to be next."""
        if feature not in self._kept:
            self._form(self._together(feature, promise))
        return self._kept[feature]

    def _together(self, feature: int, promise: FloatArray) -> IndexArray:
        wanted = min(_ROWS_AT_ONCE, max(1, _BYTES_AT_ONCE // (8 * self.size)), self.size)
        outlook = np.abs(promise)
        outlook[list(self._kept)] = -1.0
        outlook[feature] = np.inf
        likely = np.argpartition(outlook, self.size - wanted)[self.size - wanted :]
        return np.sort(likely[outlook[likely] >= 0.0])

    def _form(self, features: IndexArray) -> None:
        products = self.X[:, features].T @ self.X
        rows = products.toarray() if sp.issparse(products) else products
        rows[np.arange(len(features)), features] += self.ridge
        self._kept.update(zip(features.tolist(), rows, strict=True))


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


def first_knot_of_size(gram: GramRows, covariance: FloatArray, size: int) -> SparseFit:
    """The first knot with ``size`` non-zero coefficients; with more, if features join in a tie."""
    knot = Knot(0.0, np.empty(0, dtype=np.intp), np.empty(0))
    n_knots = 0
    # Without a limit, a tie that rounding breaks now this way, now that, could go round forever.
    for knot in islice(lasso_knots(gram, covariance, size), 50 * size + 1000):  # noqa: B007
        n_knots += 1
        if knot.n_nonzero >= size:
            return SparseFit(knot, n_knots, True)
    return SparseFit(knot, n_knots, False)


def lasso_knots(gram: GramRows, covariance: FloatArray, room: int = 64) -> Iterator[Knot]:
    """All knots from the first, where one feature is active, to the penalty 0.

    ``room`` is how many active features to expect; more are made room for.
    """
    active = _ActiveSet(gram, covariance, room)
    joins = int(np.argmax(np.abs(covariance)))
    penalty = highest = float(np.abs(covariance[joins]))
    if penalty == 0.0:
        return
    active.join(joins, float(np.sign(covariance[joins])), covariance)
    while penalty > 0.0:
        segment = active.segment(penalty)
        to_join, joins = segment.next_to_join(active.may_join_above, active.may_join_below)
        to_drop, drops = segment.next_to_drop(active.signs, active.newest)
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


@dataclass(frozen=True)
class _Segment:
    """A stretch of the path on which the same features are active; all is linear in the penalty."""

    penalty: float
    """Where it starts."""
    b: FloatArray
    w: FloatArray
    p: FloatArray
    slope: FloatArray

    def values_at(self, penalty: float) -> FloatArray:
        """Coefficients of the active features."""
        return self.b - penalty * self.w

    def correlation_at(self, penalty: float) -> FloatArray:
        """Correlations of all features with the residual."""
        return self.p + penalty * self.slope

    def next_to_join(self, above: FloatArray, below: FloatArray) -> tuple[float, int]:
        """How far the penalty falls until a correlation reaches plus or minus it, and whose.

        ``above`` and ``below`` are 0 for features that may do so, and infinite for others.
        """
        correlation = self.correlation_at(self.penalty)
        steps = np.minimum(
            _time_to_close(self.penalty - correlation, 1.0 - self.slope) + above,
            _time_to_close(self.penalty + correlation, 1.0 + self.slope) + below,
        )
        first = int(np.argmin(steps))
        return float(steps[first]), first

    def next_to_drop(self, signs: FloatArray, newest: int | None) -> tuple[float, int]:
        """How far the penalty falls until a coefficient reaches zero, and its position."""
        steps = _time_to_close(signs * self.values_at(self.penalty), -signs * self.w)
        if newest is not None:
            steps[newest] = np.inf  # it stands at zero and is about to leave it
        first = int(np.argmin(steps))
        return float(steps[first]), first


def _time_to_close(gap: FloatArray, speed: FloatArray) -> FloatArray:
    """Gap over speed where it closes, infinity where it does not; a gap below 0 is rounding."""
    time = np.full(gap.shape, np.inf)
    np.divide(np.maximum(gap, 0.0), speed, out=time, where=speed > _END)
    return time


class _ActiveSet:
    """The active features, their rows of G, and the inverse M of the Cholesky factor of G_AA."""

    def __init__(self, gram: GramRows, covariance: FloatArray, room: int) -> None:
        self.gram = gram
        self.covariance = covariance
        room = min(room + 1, gram.size)
        self._features = np.empty(room, dtype=np.intp)
        self._targets = np.empty((room, 2))  # columns c_A and s
        self._rows = np.empty((room, gram.size))
        self._M = np.zeros((room, room))
        self._count = 0
        self.newest: int | None = None
        self.may_join_above = np.zeros(gram.size)
        self.may_join_below = np.zeros(gram.size)
        self._just_dropped: int | None = None

    @property
    def features(self) -> IndexArray:
        """In the order in which they joined."""
        return self._features[: self._count]

    @property
    def signs(self) -> FloatArray:
        """Signs of their correlations with the residual."""
        return self._targets[: self._count, 1]

    def segment(self, penalty: float) -> _Segment:
        """Solve for b and w, and follow all correlations."""
        M = self._M[: self._count, : self._count]
        b, w = np.ascontiguousarray((M.T @ (M @ self._targets[: self._count])).T)
        rows = self._rows[: self._count]
        return _Segment(penalty, b, w, self.covariance - b @ rows, w @ rows)

    def join(self, feature: int, sign: float, correlation: FloatArray) -> None:
        """Take a feature in; one that depends on those inside is shut out for good."""
        self._forgive_dropped()
        self.may_join_above[feature] = self.may_join_below[feature] = np.inf
        row = self.gram.row(feature, correlation)
        m = self._count
        M = self._M[:m, :m]
        along = M @ row[self.features]
        outside = row[feature] - along @ along
        if outside <= _DEPENDENT * row[feature]:
            self.newest = None
            return
        self._make_room()
        height = np.sqrt(outside)
        self._M[m, :m] = -(along @ M) / height
        self._M[m, m] = 1.0 / height
        self._features[m] = feature
        self._targets[m] = self.covariance[feature], sign
        self._rows[m] = row
        self.newest = m
        self._count = m + 1

    def drop(self, position: int) -> None:
        """Take a feature out; until the next event it cannot come back on the same side."""
        self._forgive_dropped()
        feature, sign = int(self.features[position]), self.signs[position]
        self._just_dropped = feature
        self.may_join_above[feature] = np.inf if sign > 0 else 0.0
        self.may_join_below[feature] = np.inf if sign < 0 else 0.0
        m = self._count
        self._M[: m - 1, : m - 1] = _without(self._M[:m, :m], position)
        for kept in (self._features, self._targets, self._rows):
            kept[position : m - 1] = kept[position + 1 : m]
        self.newest = None
        self._count = m - 1

    def _forgive_dropped(self) -> None:
        if self._just_dropped is not None:
            self.may_join_above[self._just_dropped] = 0.0
            self.may_join_below[self._just_dropped] = 0.0
            self._just_dropped = None

    def _make_room(self) -> None:
        if self._count < len(self._features):
            return
        more = max(16, len(self._features) // 2)
        self._features = np.pad(self._features, (0, more))
        self._targets = np.pad(self._targets, ((0, more), (0, 0)))
        self._rows = np.pad(self._rows, ((0, more), (0, 0)))
        self._M = np.pad(self._M, (0, more))


def _without(M: FloatArray, position: int) -> FloatArray:
    """The inverse Cholesky factor after one feature is taken out.

    Rotations of neighbouring rows push column ``position`` into the last row, which then goes with
    it. After i rotations the row carried along is sum_(j <= i) v_j M_j / |v_(<= i)|, v that column.
    """
    v = M[position:, position]
    size = np.sqrt(np.cumsum(v * v))
    carried = np.cumsum(v[:-1, np.newaxis] * M[position:-1], axis=0) / size[:-1, np.newaxis]
    rotated = size[:-1, np.newaxis] * M[position + 1 :] - v[1:, np.newaxis] * carried
    rotated /= size[1:, np.newaxis]
    return np.delete(np.concatenate([M[:position], rotated]), position, axis=1)
