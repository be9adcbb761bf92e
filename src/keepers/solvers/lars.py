"""The lasso path of least angle regression, knot by knot, from rows of a Gram matrix.

    minimise  1/2 a' G a - a' c + penalty * |a|_1,   G = X'X + ridge I,   c = X'y,

for every penalty from max |c| down to 0. Between two knots the active features A and their signs
s stay, and everything is linear in the penalty:

    a_A = b - penalty * w,           G_AA b = c_A,  G_AA w = s,
    correlations c - G a = p + penalty * slope,  p = c - G_.A b,  slope = G_.A w.

A segment ends where a feature's correlation reaches the penalty (it joins) or an active
coefficient reaches zero (it is dropped). `ActiveSet` carries b and w from one segment to the next,
without ever forming G: when feature j joins, with G_AA q = G_Aj and

    h = G_.j - G_.A q,     outside = h_j,

every solution changes along one line: b by (p_j / outside) * (-q, 1), and the correlations p by
the same multiple of h; likewise w and its slope. A drop is the same step taken back. So an event
costs one solve and one product; after some events everything is solved anew from the data.

While fewer features are active than there are samples, q comes from the inverse Cholesky factor
of G_AA, and h from the rows of G of the active features. From there on G_AA is singular but for
the ridge, and the same is smaller seen from the samples: with B = X_A X_A' + ridge I, B t = x_j,

    q = X_A' t,   h = ridge * X' t outside A,   outside = ridge * (1 + x_j' t).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.ordering import first_largest, first_smallest
from keepers.linalg.storage import as_array, by_columns

# Beside the largest coefficient of a knot, this is rounding noise.
_ZERO = 1e-10
# Correlations this small beside the first are rounding noise: the path has ended.
_END = 1e-13
# Rows of G that are formed together: at once they cost little more than one.
_ROWS_AT_ONCE = 64
_BYTES_AT_ONCE = 1 << 24
# A feature whose part outside the span of the active ones is below this is a copy of them.
_DEPENDENT = 1e-12
# Events after which b and w are solved anew, and how well.
_FRESH = 64
_EXACT = 1e-13
# An event that leaves less than this of a squared length is followed by a fresh solution.
_CANCELLED = 1e-5
# An answer of B^-1 that misses more than this of the right side is computed anew.
_FITS = 1e-8
# A knot whose correlations are off by more than this, beside the first, is not on the path.
_ON_PATH = 1e-3
# Below this share of the trace of B, a ridge is too small to divide by.
_SMALLEST_RIDGE = 1e-13


class Gram:
    """X'X + ridge I, known by its rows, which are formed when asked for and kept."""

    def __init__(self, X: Any, ridge: float) -> None:
        self.X = by_columns(X)
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

    def column_of_X(self, feature: int) -> FloatArray:
        """One feature, as a dense vector over the samples."""
        return as_array(self.X[:, [feature]]).ravel()

    def _together(self, feature: int, promise: FloatArray) -> IndexArray:
        wanted = min(_ROWS_AT_ONCE, max(1, _BYTES_AT_ONCE // (8 * self.size)), self.size)
        outlook = np.abs(promise)
        outlook[list(self._kept)] = -1.0
        outlook[feature] = np.inf
        likely = np.argpartition(outlook, self.size - wanted)[self.size - wanted :]
        return np.sort(likely[outlook[likely] >= 0.0])

    def _form(self, features: IndexArray) -> None:
        rows = as_array(self.X[:, features].T @ self.X)
        rows[np.arange(len(features)), features] += self.ridge
        self._kept.update(zip(features.tolist(), rows, strict=True))


@dataclass(frozen=True)
class Segment:
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


@dataclass(frozen=True)
class _Line:
    """Along which all solutions change when a feature joins or is dropped."""

    q: FloatArray
    """Over the other active features."""
    h: FloatArray
    """Over all features."""
    outside: float


class ActiveSet:
    """The active features in the order in which they joined, their signs, and b, w, p, slope."""

    def __init__(self, gram: Gram, covariance: FloatArray, room: int) -> None:
        self.gram = gram
        self.covariance = covariance
        self.features: IndexArray = np.empty(0, dtype=np.intp)
        self.signs: FloatArray = np.empty(0)
        self.newest: int | None = None
        """Position of the feature that joined in the last event."""
        self.barred_above = np.zeros(gram.size)
        """Infinite for features that may not join with a positive correlation, else 0."""
        self.barred_below = np.zeros(gram.size)
        self._just_dropped: int | None = None
        self._b = self._w = np.empty(0)
        self._p, self._slope = covariance.copy(), np.zeros(gram.size)
        self._equations: _Equations = _FeatureEquations(gram, min(room, gram.X.shape[0]))
        self._events = 0

    def segment(self, penalty: float) -> Segment:
        """The path from here to the next event."""
        return Segment(penalty, self._b, self._w, self._p, self._slope)

    def join(self, feature: int, sign: float, correlation: FloatArray) -> None:
        """Take a feature in; one that depends on those inside is shut out for good."""
        self._forgive_dropped()
        self.newest = None
        self.barred_above[feature] = self.barred_below[feature] = np.inf
        self._change_sides()
        line = self._equations.join(feature, self.features, correlation)
        if line is None:
            return
        b_step = self._p[feature] / line.outside
        w_step = (sign - self._slope[feature]) / line.outside
        self._b = np.append(self._b - b_step * line.q, b_step)
        self._w = np.append(self._w - w_step * line.q, w_step)
        self.newest = len(self.features)
        self.features = np.append(self.features, feature)
        self.signs = np.append(self.signs, sign)
        self._move(line.h, b_step, w_step)

    def drop(self, position: int) -> None:
        """Take a feature out; until the next event it cannot come back on the same side."""
        self._forgive_dropped()
        self.newest = None
        feature, sign = int(self.features[position]), self.signs[position]
        self.barred_above[feature] = np.inf if sign > 0 else 0.0
        self.barred_below[feature] = np.inf if sign < 0 else 0.0
        self._just_dropped = feature
        line = self._equations.drop(position, self.features)
        b_step, w_step = -self._b[position], -self._w[position]
        self._b = np.delete(self._b, position) - b_step * line.q
        self._w = np.delete(self._w, position) - w_step * line.q
        self.features = np.delete(self.features, position)
        self.signs = np.delete(self.signs, position)
        self._move(line.h, b_step, w_step)
        self._change_sides()

    def _move(self, h: FloatArray, b_step: float, w_step: float) -> None:
        self._events += 1
        if self._events % _FRESH and not self._equations.worn:
            self._p = self._p - b_step * h
            self._slope = self._slope + w_step * h
        else:
            targets = np.stack([self.covariance[self.features], self.signs])
            (self._b, self._w), images = self._equations.solve(targets, self.features)
            self._p, self._slope = self.covariance - images[0], images[1]

    def _change_sides(self) -> None:
        """Take the equations between samples where these are fewer, if the ridge bears it."""
        n_active, n_samples = len(self.features), self.gram.X.shape[0]
        between_features = isinstance(self._equations, _FeatureEquations)
        if between_features and n_active == n_samples and self.gram.ridge > 0:
            between_samples = _SampleEquations(self.gram, self.features)
            if between_samples.solvable:
                self._equations = between_samples
        elif not between_features and n_active < n_samples:  # B is singular but for the ridge
            equations = _FeatureEquations.of(self.gram, self.features, self._p)
            self._equations = equations or self._equations

    def _forgive_dropped(self) -> None:
        if self._just_dropped is not None:
            self.barred_above[self._just_dropped] = 0.0
            self.barred_below[self._just_dropped] = 0.0
            self._just_dropped = None


class _Equations(Protocol):
    """Keeps what is needed to solve with G_AA."""

    worn: bool
    """Whether it is to be solved anew at once: the last event cancelled most of the digits."""

    def join(self, feature: int, features: IndexArray, correlation: FloatArray) -> _Line | None:
        """Add a feature to those active; None, and no change, if it depends on them."""

    def drop(self, position: int, features: IndexArray) -> _Line:
        """Take one out."""

    def solve(self, targets: FloatArray, features: IndexArray) -> tuple[FloatArray, FloatArray]:
        """The rows v with G_AA v = target, for two targets, and their images G_.A v."""


class _FeatureEquations:
    """The inverse M of the Cholesky factor of G_AA, and the rows of G of the active features."""

    def __init__(self, gram: Gram, room: int) -> None:
        self.gram = gram
        room = min(room + 1, gram.size)
        self._rows = np.empty((room, gram.size))
        self._M = np.zeros((room, room))
        self._count = 0
        self.worn = False

    @classmethod
    def of(
        cls, gram: Gram, features: IndexArray, promise: FloatArray
    ) -> "_FeatureEquations | None":
        """Those of features that are active already; None if one depends on the others."""
        equations = cls(gram, len(features))
        for place, feature in enumerate(features):
            if equations.join(int(feature), features[:place], promise) is None:
                return None
        equations.worn = True  # nothing carries over from the equations between samples
        return equations

    def join(self, feature: int, features: IndexArray, correlation: FloatArray) -> _Line | None:
        """Border the factor."""
        row = self.gram.row(feature, correlation)
        m = self._count
        M = self._M[:m, :m]
        along = M @ row[features]
        outside = float(row[feature] - along @ along)
        if outside <= _DEPENDENT * row[feature]:
            return None
        q = along @ M
        line = _Line(q, row - q @ self._rows[:m], outside)
        self.worn = outside < _CANCELLED * row[feature]
        self._grow()
        height = np.sqrt(outside)
        self._M[m, :m] = q / -height
        self._M[m, m] = 1.0 / height
        self._rows[m] = row
        self._count = m + 1
        return line

    def drop(self, position: int, features: IndexArray) -> _Line:
        """Rotate the feature out of the factor."""
        m = self._count
        M = self._M[:m, :m]
        inverse_column = M[position:, position] @ M[position:]
        outside = 1.0 / inverse_column[position]
        h = (outside * inverse_column) @ self._rows[:m]
        self._M[: m - 1, : m - 1] = _without(M, position)
        self._M[m - 1] = 0.0
        self._rows[position : m - 1] = self._rows[position + 1 : m]
        self._count = m - 1
        return _Line(np.delete(inverse_column, position) * -outside, h, outside)

    def solve(self, targets: FloatArray, features: IndexArray) -> tuple[FloatArray, FloatArray]:
        """By v = M'M target, and again for what rounding left."""
        M, rows = self._M[: self._count, : self._count], self._rows[: self._count]
        solution = (targets @ M.T) @ M
        residual = targets - solution @ rows[:, features]
        solution += (residual @ M.T) @ M
        self.worn = False
        return solution, solution @ rows

    def _grow(self) -> None:
        if self._count < len(self._rows):
            return
        more = max(16, len(self._rows) // 2)
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


class _SampleEquations:
    """B = X_A X_A' + ridge I over the samples, and its inverse."""

    def __init__(self, gram: Gram, features: IndexArray) -> None:
        self.gram = gram
        self.worn = True  # nothing carries over from the equations between features
        self._B = self._between(self._inside(features))
        self.solvable = gram.ridge > _SMALLEST_RIDGE * np.trace(self._B)
        if self.solvable:
            self._inverse = np.linalg.inv(self._B)

    def join(self, feature: int, features: IndexArray, correlation: FloatArray) -> _Line | None:
        """Add x x' to B; with a ridge no feature depends on the others."""
        x = self.gram.column_of_X(feature)
        t = self._divide(x)
        rise = float(1.0 + x @ t)
        self.worn |= rise > 1.0 / _CANCELLED
        self._B += np.outer(x, x)
        self._inverse -= np.outer(t / rise, t)
        return self._line(feature, features, t, rise)

    def drop(self, position: int, features: IndexArray) -> _Line:
        """Subtract x x' from B."""
        feature = int(features[position])
        x = self.gram.column_of_X(feature)
        image = self._divide(x)
        fall = max(float(1.0 - x @ image), _DEPENDENT)
        self.worn |= fall < _CANCELLED
        self._B -= np.outer(x, x)
        self._inverse += np.outer(image / fall, image)
        return self._line(feature, np.delete(features, position), image / fall, 1.0 / fall)

    def _line(self, feature: int, others: IndexArray, t: FloatArray, rise: float) -> _Line:
        products = np.asarray(self.gram.X.T @ t)
        q = products[others]
        h = self.gram.ridge * products
        h[others] = 0.0
        h[feature] = outside = self.gram.ridge * rise
        return _Line(q, h, outside)

    def solve(self, targets: FloatArray, features: IndexArray) -> tuple[FloatArray, FloatArray]:
        """By v = (target - X_A' B^-1 X_A target) / ridge, and again for what rounding left."""
        inside = self._inside(features)
        self._B = self._between(inside)
        self._inverse = np.linalg.inv(self._B)
        self.worn = False
        scale = np.abs(targets).max(axis=1, keepdims=True)
        solution, residual, error = np.zeros_like(targets), targets, np.inf
        while error > _EXACT:
            u = self._divide((residual @ inside).T)
            solution += (residual - (inside @ u).T) / self.gram.ridge
            residual = targets - (solution @ inside) @ inside.T - self.gram.ridge * solution
            last_error, error = error, float(np.max(np.abs(residual) / scale))
            if error > 0.1 * last_error:  # this is as far as rounding lets it come
                break
        images = np.stack([self.gram.X.T @ image for image in solution @ inside])
        images[:, features] = targets  # where the ridge is part of G
        return solution, images

    def _inside(self, features: IndexArray) -> FloatArray:
        """X_A', as an array."""
        return np.ascontiguousarray(as_array(self.gram.X[:, features].T))

    def _divide(self, right_side: FloatArray) -> FloatArray:
        """B^-1 times a vector or two; B itself makes good what its inverse has lost."""
        u = self._refined(right_side)
        missed = np.abs(right_side - self._B @ u).max()
        if not missed <= _FITS * np.abs(right_side).max():  # changes have worn the inverse out
            self._inverse = np.linalg.inv(self._B)
            u = self._refined(right_side)
        return u

    def _refined(self, right_side: FloatArray) -> FloatArray:
        u = self._inverse @ right_side
        return np.asarray(u + self._inverse @ (right_side - self._B @ u))

    def _between(self, inside: FloatArray) -> FloatArray:
        B = inside.T @ inside
        B[np.diag_indices_from(B)] += self.gram.ridge
        return np.asarray(B)


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


def first_knots_of_sizes(
    gram: Gram, covariance: FloatArray, sizes: Sequence[int]
) -> list[SparseFit]:
    """For each size the first knot with so many non-zero coefficients, in one walk.

    A knot has more of them if features join in a tie.
    """
    found: dict[int, SparseFit] = {}
    waiting = sorted(set(sizes), reverse=True)
    knot = Knot(0.0, np.empty(0, dtype=np.intp), np.empty(0))
    n_knots = 0
    for knot in lasso_knots(gram, covariance, waiting[0]):
        n_knots += 1
        while waiting and (knot.n_nonzero >= waiting[-1] or n_knots >= _most_knots(waiting[-1])):
            size = waiting.pop()
            reached = knot.n_nonzero >= size and _is_on_path(gram, covariance, knot)
            found[size] = SparseFit(knot, n_knots, reached)
        if not waiting:
            break
    ended = {size: SparseFit(knot, n_knots, False) for size in waiting}
    return [(found | ended)[size] for size in sizes]


def _is_on_path(gram: Gram, covariance: FloatArray, knot: Knot) -> bool:
    """Whether the active features correlate with the residual as the penalty says.

    Columns that are all but dependent, beside a ridge that is all but zero, can end the path so.
    """
    active = as_array(gram.X[:, knot.features])
    left = covariance[knot.features] - active.T @ (active @ knot.values) - gram.ridge * knot.values
    missed = np.abs(np.abs(left) - knot.penalty).max(initial=0.0)
    return bool(missed <= _ON_PATH * np.abs(covariance).max())


def _most_knots(size: int) -> int:
    """Without a limit, a tie that rounding breaks now this way, now that, could go on forever."""
    return 50 * size + 1000


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
