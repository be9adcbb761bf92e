"""A tighter upper bound on the variance that k features can hold in m components.

Let x_i be the columns of an r x d matrix Z with Z'Z = S. A set I holds ``max over projections Q of
rank m of sum_{i in I} |Q x_i|^2``. For t >= 0 and matrices Y_i >= 0 with Y_i >= x_i x_i' - t I::

    OPT <= k t + (sum of the m largest eigenvalues of M),   M = sum_i Y_i.

Proof: the sum of the k largest a_i is at most k t + sum (a_i - t)_+, and (|Q x_i|^2 - t)_+ is at
most Tr(Q Y_i). Features of a variance s_i <= t have Y_i = 0.

Y_i = c g g' is admissible for every vector g with (g'x_i)^2 > |g|^2 (s_i - t), the least c being
``t (s_i - t) / ((g'x_i)^2 - |g|^2 (s_i - t))``: then x_i x_i' - c g g' has no eigenvalue above t.
g = x_i gives (1 - t/s_i) x_i x_i', the chord. Better ones come from a positive definite Q0, taken
for the best projection: the Y_i of least Tr(Q0 Y_i) has ``g = (t Q0 + mu I)^-1 x_i``, where mu > 0
is the root of ``x_i' Q0^(1/2) (t Q0 + mu I)^-1 Q0^(1/2) x_i = 1``. Q0 is moved towards the
projector on the m leading eigenvectors of M (Frank and Wolfe). The bound is valid at every step,
whatever the accuracy of the root and of Q0.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar

from keepers._protocols import BoolArray, FloatArray, SymmetricOperator
from keepers.solvers.variance_bounds import DOUBLE_ROUNDING, Proofs

MOST_STEPS = 30
_STEP_SIZES = (0.05, 0.15, 0.4, 0.7)
_EVERY = 3
_NEWTON = 6
# Where (g'x)^2 - |g|^2 (s - t) is below this share of |g|^2 s it has lost digits: the chord then.
_CANCELLED = 1e-3
_ROUNDING_SHARE = 1e-11
# Features are looked at one by one as long as their number times r^3 is at most this.
_MOST_SINGLE = 3e8
# A step that gains less than this share ends the search, if two before it did not gain more.
_SETTLED = 2e-5


@dataclass(frozen=True)
class TightBound:
    """The bound, and what it says about single features."""

    value: float
    """With the allowance for rounding, ``precision * m * lambda_1``."""
    rounding: float
    """The allowance."""
    with_it: FloatArray
    """For every feature, a bound on the sets that have it."""
    without: FloatArray
    """For every feature, a bound on the sets that do not have it."""
    of_constant: float
    """A bound on the sets that have a feature without variance."""
    n_steps: int

    def proofs(self, reached: float) -> Proofs:
        """What follows from a value that some set reaches, with a margin for rounding."""
        below = reached - 2.0 * self.rounding
        return Proofs(self.without < below, self.with_it < below)


def tight_bound(
    operator: SymmetricOperator,
    n_features: int,
    n_components: int,
    *,
    forced: BoolArray | None = None,
    max_steps: int = MOST_STEPS,
    enough: float = -np.inf,
    precision: float = DOUBLE_ROUNDING,
    one_by_one: bool = False,
) -> TightBound:
    """The bound for an operator that has a small side, after at most ``max_steps`` steps.

    ``forced``: features that the sets contain. ``enough``: a bound at or below it ends the search.
    ``one_by_one``: look at single features beside it, the value of a set, where that is cheap: a
    set without feature i holds at most ``k t`` and the leading eigenvalues of M - Y_i, one with j
    at most ``(k - 1) t`` and those of M - Y_j + x_j x_j'.
    """
    columns, left_out = factor_columns(operator)
    search = _Search(columns, n_features, n_components, forced)
    search.run(max_steps, enough)
    # What was left out of S adds no more than m times its largest eigenvalue.
    rounding = n_components * (precision * search.largest + left_out)
    with_it, without = search.of_single_features(enough - 3.0 * rounding if one_by_one else -np.inf)
    return TightBound(
        search.best + rounding,
        rounding,
        with_it + rounding,
        without + rounding,
        search.best - search.best_t + rounding,
        search.n_steps,
    )


def factor_columns(operator: SymmetricOperator) -> tuple[FloatArray, float]:
    """Z with Z'Z = S, r x d, and a bound on the norm of what rounding leaves out."""
    side = operator.small_side()
    if side is None:
        raise ValueError("the tight bound needs an operator with a small side")
    found, vectors = eigh(side.matrix)
    kept = found > _ROUNDING_SHARE * found[-1]
    values, vectors = found[kept], vectors[:, kept]
    lifted = side.lift(np.ascontiguousarray(vectors), values)
    left_out = 0.0 if kept.all() else max(float(found[~kept].max()), 0.0)
    return np.ascontiguousarray((lifted * np.sqrt(values)).T), left_out


class _Search:
    """The bound as a function of t and Q0, and the steps."""

    def __init__(
        self, columns: FloatArray, n_features: int, n_components: int, forced: BoolArray | None
    ) -> None:
        size = columns.shape[1]
        forced = np.zeros(size, dtype=bool) if forced is None else forced
        self._k = n_features - int(forced.sum())
        self._m = min(n_components, len(columns))
        kept = columns[:, forced]
        self._constant = kept @ kept.T
        self._size, self._places = size, np.flatnonzero(~forced)
        free = columns[:, ~forced]
        squares = np.einsum("ij,ij->j", free, free)
        order = np.argsort(-squares)
        # Largest variance first: those above t stand in front.
        self._X, self._s = np.ascontiguousarray(free[:, order]), squares[order]
        self._places = self._places[order]
        self.largest = float(np.linalg.eigvalsh(columns @ columns.T)[-1])
        self.best, self.best_t, self.n_steps = np.inf, 0.0, 0
        self._weights: FloatArray = np.full(len(columns), self._m / len(columns))
        self._axes: FloatArray = np.eye(len(columns))
        self._best_at: tuple[FloatArray, FloatArray] = (self._weights, self._axes)

    def run(self, max_steps: int, enough: float) -> None:
        """Take steps until they gain nothing, or the bound is as small as is asked for."""
        if self._k <= 0 or not len(self._s):
            self._look(0.0, self._weights, self._axes)
            return
        t = self._choose_t(0.0, float(self._s[0]), 25)
        slow = 0
        for step in range(max_steps):
            self.n_steps = step + 1
            before = self.best
            self._move(t)
            if step % _EVERY == _EVERY - 1:
                t = self._choose_t(0.5 * t, min(2.0 * t, float(self._s[0])), 8)
            slow = slow + 1 if before - self.best <= _SETTLED * abs(before) else 0
            if slow >= _EVERY or self.best <= enough:
                break

    def of_single_features(self, reached: float) -> tuple[FloatArray, FloatArray]:
        """Bounds on the sets with, and on those without, each feature."""
        with_it: FloatArray = np.full(self._size, self.best)
        without: FloatArray = np.full(self._size, self.best)
        if self._k <= 0 or not len(self._s):
            return with_it, without
        t, (weights, axes) = self.best_t, self._best_at
        with_it[self._places] = self.best - np.maximum(t - self._s, 0.0)
        slack = self.best - reached
        room = int(_MOST_SINGLE // len(axes) ** 3)
        if not np.isfinite(slack) or room == 0:
            return with_it, without
        n_above = int(np.searchsorted(-self._s, -t, side="left"))
        Y = axes @ self._factors(t, weights, axes.T @ self._X[:, :n_above], self._s[:n_above])
        M = self._constant + Y @ Y.T
        # Leaving Y out lowers the bound by no more than its eigenvalue.
        sizes = np.einsum("ij,ij->j", Y, Y)
        worth = np.flatnonzero(sizes > slack)[: min(room, 2 * self._k)]
        for at in worth:
            y = Y[:, at]
            without[self._places[at]] = self._k * t + self._leading_sum(M - np.outer(y, y))
        # With j the bound falls by no more than t; those with little variance are the likely ones.
        if slack < t and len(self._s) <= room:
            for at in np.flatnonzero(with_it[self._places] >= reached):
                changed = M + np.outer(self._X[:, at], self._X[:, at])
                if at < n_above:
                    changed -= np.outer(Y[:, at], Y[:, at])
                found = (self._k - 1) * t + self._leading_sum(changed)
                with_it[self._places[at]] = min(with_it[self._places[at]], found)
        return with_it, without

    def _leading_sum(self, matrix: FloatArray) -> float:
        return float(np.linalg.eigvalsh(matrix)[-self._m :].sum())

    def _choose_t(self, low: float, high: float, n_looks: int) -> float:
        """The best t for the present Q0."""
        found = minimize_scalar(
            lambda t: self._look(float(t), self._weights, self._axes)[0],
            bounds=(low, high),
            method="bounded",
            options={"maxiter": n_looks, "xatol": 1e-4 * max(high, 1e-300)},
        )
        return float(found.x)

    def _move(self, t: float) -> None:
        """Q0 towards the projector on the leading eigenvectors of M."""
        _, leading = self._look(t, self._weights, self._axes)
        Q = (self._axes * self._weights) @ self._axes.T
        P = leading @ leading.T
        moved = []
        for size in _STEP_SIZES:
            weights, axes = np.linalg.eigh((1.0 - size) * Q + size * P)
            weights = np.maximum(weights, 1e-12)
            moved.append((self._look(t, weights, axes)[0], weights, axes))
            if len(moved) > 1 and moved[-1][0] > moved[-2][0]:
                break  # convex along the way, nearly
        _, self._weights, self._axes = min(moved, key=lambda found: found[0])

    def _look(self, t: float, weights: FloatArray, axes: FloatArray) -> tuple[float, FloatArray]:
        """The bound for t and Q0, and the leading eigenvectors of M."""
        n_above = int(np.searchsorted(-self._s, -t, side="left"))
        M = self._constant
        if n_above:
            Y = self._factors(t, weights, axes.T @ self._X[:, :n_above], self._s[:n_above])
            M = M + axes @ (Y @ Y.T) @ axes.T
        size = len(M)
        values, vectors = eigh(M, subset_by_index=[size - self._m, size - 1])
        value = self._k * t + float(values.sum())
        if value < self.best:
            self.best, self.best_t, self._best_at = value, t, (weights, axes)
        return value, vectors

    @staticmethod
    def _factors(t: float, q: FloatArray, z: FloatArray, s: FloatArray) -> FloatArray:
        """sqrt(c_i) g_i in the axes of Q0, for columns z_i of squared lengths s_i > t."""
        if t <= 0.0:
            return z
        squares = np.square(z)
        q = q[:, np.newaxis]
        weighted = q * squares
        mu = np.zeros(z.shape[1])
        for _ in range(_NEWTON):
            inverse = 1.0 / (t * q + mu)
            part = weighted * inverse
            f = part.sum(axis=0)
            slope = np.einsum("ij,ij->j", part, inverse)
            # Newton for 1/f = 1: concave, so that steps approach the root from below.
            mu = np.maximum(mu + (f - 1.0) * f / slope, 0.0)
        g = z / (t * q + mu)
        along = np.einsum("ij,ij->j", g, z) ** 2
        length = np.einsum("ij,ij->j", g, g)
        room = along - length * (s - t)
        chord = room <= _CANCELLED * length * s
        with np.errstate(divide="ignore", invalid="ignore"):
            c = np.where(chord, 0.0, t * (s - t) / room)
        if chord.any():
            g[:, chord], c[chord] = z[:, chord], 1.0 - t / s[chord]
        return g * np.sqrt(c)
