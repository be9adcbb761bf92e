"""Upper bounds on the variance that k features can hold in m components, and what they prove.

The problem is to choose k features I with the largest F(I), the sum of the m largest eigenvalues of
S_II. It is NP-hard, but good bounds are cheap. The page docs/proofs.md derives all of them.

*From the spectrum.* With S = V diag(lambda) V' and ``t_j(mu) = sum_i (lambda_i - mu)_+ v_ji^2``,
for every mu >= 0: OPT <= m mu + (sum of the k largest t_j(mu)). With K leading pairs and ``e_j =
s_jj - sum_{i<=K} lambda_i v_ji^2``, t_j is at most its sum over the K pairs plus ``e_j (1 -
mu/edge)_+``, edge = lambda_{K+1}. For any block V instead, N = F (V'F)^-1 F' with F = S V leaves
S - N positive semi-definite: the bound holds with the eigenpairs of N and ``t_j + e_j``.

*The tight bound.* Let x_i be the columns of an r x d matrix Z with Z'Z = S. For t >= 0 and matrices
Y_i >= 0 with Y_i >= x_i x_i' - t I: OPT <= k t + (sum of the m largest eigenvalues of M), where M =
sum_i Y_i. Columns with s_i = |x_i|^2 <= t have Y_i = 0, the others c g g' (`admissible_vectors`)
for a positive definite Q0, taken for the best projection, which is moved towards the projector on
the m leading eigenvectors of M (Frank and Wolfe). The bound is valid for every t and Q0.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar

from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers.linalg.spectrum import KrylovSpace

# Added to every bound, as a share of m lambda_1. Eigenvalues of matrices formed in double precision
# are off by about 1e-14 of the largest, those formed in single precision by about 1e-6.
DOUBLE_ROUNDING = 1e-12
SINGLE_ROUNDING = 1e-5
# Eigenvalues below this share of the largest count as zero: their eigenvectors are rounding.
ROUNDING_SHARE = 1e-11
# Eigenvectors lifted beyond the components; the best mu is seldom below their eigenvalues. All are
# if they have no more numbers than the second.
MORE_PAIRS, CHEAP_PAIRS = 50, 1 << 20
# The tight bound: single features are examined while their number times r^3 is at most this.
MOST_SINGLE = 3e8


def allowance(dtype: np.dtype[Any]) -> float:
    """The share for matrices formed in this precision."""
    return SINGLE_ROUNDING if dtype == np.float32 else DOUBLE_ROUNDING


@dataclass(frozen=True)
class Proofs:
    """Masks of the features that are proved to be in the best sets, or not."""

    inside: BoolArray
    """In every best set."""
    outside: BoolArray
    """In no best set."""


@dataclass(frozen=True)
class TermBound:
    """A bound that is a constant, plus one term for each of the k features of a set."""

    value: float
    """The constant, the k largest terms and the allowance for ``rounding``."""
    terms: FloatArray
    n_features: int
    rounding: float
    forced: BoolArray
    """Features that the sets contain."""

    def proofs(self, reached: float) -> Proofs:
        """The features proved by a value that some set reaches.

        A set with feature j has at most ``value`` less the distance of t_j to the k-th largest
        term, one without i at most ``value`` less the distance of t_i to the next one. The margin
        is twice the allowance for rounding: of features that can replace each other none is proved.
        """
        inside, outside = self.forced.copy(), np.zeros(len(self.terms), dtype=bool)
        free = np.flatnonzero(~self.forced)
        n_open = self.n_features - int(inside.sum())
        if 0 < n_open < len(free):
            t = self.terms[free]
            next_best, edge = self.around_edge(free, n_open)
            slack = max(self.value - reached, 0.0) + 2.0 * self.rounding
            outside[free[edge - t > slack]] = True
            inside[free[t - next_best > slack]] = True
        else:
            (outside if n_open <= 0 else inside)[free] = True
        return Proofs(inside, outside)

    def around_edge(self, free: IndexArray, n_open: int) -> tuple[float, float]:
        """The largest term that the bound leaves out, and the smallest that it counts."""
        at = len(free) - n_open
        ordered = np.partition(self.terms[free], (at - 1, at))
        return float(ordered[at - 1]), float(ordered[at])


@dataclass(frozen=True)
class SpectralBound:
    """The bound from (a part of) the spectrum of S, for every k and m.

    Bounds exceed the formula by ``precision * m * lambda_1``: they are not below the
    optimum by rounding.
    """

    values: FloatArray
    """Eigenvalues of S, or of a part N of it, largest first."""
    squares: FloatArray
    """Squared entries of their eigenvectors, features x values."""
    rest: FloatArray
    """e: the diagonal of what they leave of S, >= 0."""
    edge: float
    """The other eigenvalues of S are at most this; inf if these are eigenpairs of a part only."""
    variances: FloatArray
    """The diagonal of S."""
    precision: float = DOUBLE_ROUNDING
    rank: int | None = None
    """Rows of the small matrix that the pairs come from, if they do."""

    @classmethod
    def from_block(
        cls, vectors: FloatArray, images: FloatArray, variances: FloatArray, precision: float
    ) -> "SpectralBound":
        """From any block V and its images S V.

        Quotients by small eigenvalues of V'SV enlarge rounding, and the allowance is larger.
        """
        scale = np.linalg.norm(vectors, axis=0)
        scale[scale == 0.0] = 1.0
        core = (vectors / scale).T @ (images / scale)
        c, Q = np.linalg.eigh((core + core.T) / 2.0)
        # A direction left out makes N that of a smaller block, which is as valid.
        kept = c > np.sqrt(precision) * max(float(c[-1]), 0.0)
        factor = (images / scale) @ (Q[:, kept] / np.sqrt(c[kept]))
        values, P = np.linalg.eigh(factor.T @ factor)
        values, P = values[::-1], P[:, ::-1]
        kept = values > ROUNDING_SHARE * values.max(initial=0.0)
        squares = np.square((factor @ P[:, kept]) / np.sqrt(values[kept]))
        rest = np.maximum(variances - squares @ values[kept], 0.0)
        return cls(values[kept], squares, rest, np.inf, variances, precision**0.75)

    def rounding(self, n_components: int) -> float:
        """The allowance in bounds for that many components."""
        largest = float(self.values[0]) if len(self.values) else float(self.variances.max())
        return self.precision * n_components * largest

    def terms(self, mu: float) -> FloatArray:
        """t_j(mu) of every feature, or a bound on it."""
        n_above = int(np.count_nonzero(self.values > mu))
        found = self.squares[:, :n_above] @ (self.values[:n_above] - mu)
        return np.asarray(found + (1.0 - mu / self.edge) * self.rest if mu < self.edge else found)

    def leading_terms(self, n_components: int) -> FloatArray:
        """sum_{i<=m} lambda_i v_ji^2: the largest make a first set (Tian et al. 2020)."""
        return np.asarray(self.squares[:, :n_components] @ self.values[:n_components])

    def bound(
        self, n_features: int, n_components: int, forced: BoolArray | None = None
    ) -> TermBound:
        """The least bound over mu on sets of ``n_features`` that contain the ``forced`` ones."""
        if forced is None:
            forced = np.zeros(len(self.variances), dtype=bool)
        mu = self._best_mu(n_features, n_components, forced)
        terms = np.maximum(self.terms(mu), 0.0) if mu > 0.0 else self.variances
        total = float(terms[_largest(terms, n_features, forced)].sum())
        rounding = self.rounding(n_components)
        return TermBound(n_components * mu + total + rounding, terms, n_features, rounding, forced)

    def _best_mu(self, n_features: int, n_components: int, forced: BoolArray) -> float:
        """The least of a convex, piecewise linear function of mu.

        Tangents from both sides meet below the function; where they meet is evaluated next.
        """

        def evaluate(mu: float) -> tuple[float, float, float]:
            """Mu, the bound, and a slope of it to the right of mu."""
            terms = self.terms(mu)
            chosen = _largest(terms, n_features, forced)
            n_above = int(np.count_nonzero(self.values > mu))
            slope = n_components - float(self.squares[chosen, :n_above].sum())
            if mu < self.edge:
                slope -= float(self.rest[chosen].sum()) / self.edge
            return mu, n_components * mu + float(terms[chosen].sum()), slope

        at_zero = low = evaluate(0.0)
        high = evaluate(float(self.values.max(initial=0.0)))
        best = min(low, high, key=lambda at: at[1])
        for _ in range(60):
            (a, fa, ga), (b, fb, gb) = low, high
            if ga >= 0.0 or gb <= 0.0:
                break
            meet = (fa - fb + gb * b - ga * a) / (gb - ga)
            if best[1] - (fa + ga * (meet - a)) <= 1e-13 * abs(best[1]):  # rounding
                break
            found = evaluate(meet)
            best = min(best, found, key=lambda at: at[1])
            low, high = (found, high) if found[2] < 0.0 else (low, found)
        return 0.0 if at_zero[1] <= best[1] * (1.0 + DOUBLE_ROUNDING) else best[0]


def _largest(terms: FloatArray, n_features: int, forced: BoolArray) -> IndexArray:
    """The forced features and those with the largest terms, ``n_features`` in all."""
    within, free = np.flatnonzero(forced), np.flatnonzero(~forced)
    n_left = len(free) - (n_features - len(within))
    if n_left > 0:
        free = free[np.argpartition(terms[free], min(n_left, len(free) - 1))[n_left:]]
    return np.concatenate([within, free])


def spectral_bound(
    operator: SymmetricOperator,
    n_components: int,
    rng: np.random.Generator,
    precision: float = DOUBLE_ROUNDING,
) -> SpectralBound:
    """The bound for about ``n_components`` of an operator: exactly from its small side.

    Where it has none, from a block Krylov space of four blocks, or fewer if these would take more
    than a gigabyte.
    """
    side = operator.small_side()
    variances = np.asarray(operator.diagonal(), dtype=np.float64)
    if side is None:
        size = operator.size
        width = min(n_components + 8, size)
        n_blocks = min(int(np.clip((1 << 27) // (2 * size * width), 1, 4)), -(-size // width))
        space = KrylovSpace(operator.matmat, size, min(n_blocks * width, size))
        block = operator.matmat(rng.standard_normal((size, width))).T
        for _ in range(n_blocks):
            block = space.add(block)
        return SpectralBound.from_block(space.basis.T, space.images.T, variances, precision)
    size = len(side.matrix)
    cheap = size * len(variances) <= CHEAP_PAIRS
    wanted = size if cheap else min(n_components + MORE_PAIRS, size)
    values, vectors = eigh(side.matrix, subset_by_index=[max(size - wanted - 1, 0), size - 1])
    values, vectors = values[::-1], vectors[:, ::-1]
    edge = ROUNDING_SHARE * float(values[0])
    if len(values) > wanted:
        edge = max(edge, float(values[wanted]))
    kept = min(max(1, int(np.sum(values > ROUNDING_SHARE * values[0]))), wanted)
    lifted = side.lift(np.ascontiguousarray(vectors[:, :kept]), values[:kept])
    squares = np.square(lifted)
    rest = np.maximum(variances - squares @ values[:kept], 0.0)
    return SpectralBound(values[:kept], squares, rest, max(edge, 0.0), variances, precision, size)


@dataclass(frozen=True)
class TightBound:
    """The tight bound, with its allowance for rounding, and what it proves about features."""

    value: float
    proofs: Proofs


def tight_bound(
    operator: SymmetricOperator,
    n_features: int,
    n_components: int,
    *,
    forced: BoolArray | None = None,
    max_steps: int = 30,
    enough: float = -np.inf,
    precision: float = DOUBLE_ROUNDING,
) -> TightBound:
    """The bound for an operator that has a small side, after at most ``max_steps`` steps.

    ``forced``: features that the sets contain. ``enough``: a value that some set reaches; a bound
    at or below it ends the search. The allowance for rounding is ``precision * m * lambda_1``.
    """
    columns, left_out = factor_columns(operator)
    if forced is None:
        forced = np.zeros(columns.shape[1], dtype=bool)
    problem = _TightProblem.of(columns, n_features, n_components, forced)
    # The part of S that was left out adds at most m times its largest eigenvalue.
    largest = float(np.linalg.eigvalsh(columns @ columns.T)[-1])
    rounding = n_components * (precision * largest + left_out)
    best = problem.solve(max_steps, enough)
    proofs = Proofs(forced.copy(), np.zeros(len(forced), dtype=bool))
    places = np.flatnonzero(~forced)[problem.order]
    proofs.inside[places], proofs.outside[places] = problem.proofs(best, enough - 3.0 * rounding)
    return TightBound(best.value + rounding, proofs)


def factor_columns(operator: SymmetricOperator) -> tuple[FloatArray, float]:
    """Z with Z'Z = S, r x d, and a bound on the norm of what rounding leaves out."""
    side = operator.small_side()
    assert side is not None
    found, vectors = eigh(side.matrix)
    kept = found > ROUNDING_SHARE * found[-1]
    values, vectors = found[kept], vectors[:, kept]
    lifted = side.lift(np.ascontiguousarray(vectors), values)
    left_out = 0.0 if kept.all() else max(float(found[~kept].max()), 0.0)
    return np.ascontiguousarray((lifted * np.sqrt(values)).T), left_out


@dataclass(frozen=True)
class _Point:
    """The bound at t and Q0."""

    value: float
    t: float
    weights: FloatArray
    """Eigenvalues of Q0."""
    axes: FloatArray
    """Its eigenvectors."""
    leading: FloatArray
    """The m leading eigenvectors of M."""


def _least(*points: _Point) -> _Point:
    return min(points, key=lambda point: point.value)


@dataclass(frozen=True)
class _TightProblem:
    """The columns that may be chosen, largest variance first: those above t stand in front."""

    X: FloatArray
    s: FloatArray
    """Squared lengths of the columns."""
    order: IndexArray
    """Their places among the columns that are not forced."""
    constant: FloatArray
    """The part of M that forced features have."""
    k: int
    m: int

    @classmethod
    def of(cls, columns: FloatArray, k: int, m: int, forced: BoolArray) -> "_TightProblem":
        """From the columns of Z."""
        kept, free = columns[:, forced], columns[:, ~forced]
        squares = np.einsum("ij,ij->j", free, free)
        order = np.argsort(-squares)
        X = np.ascontiguousarray(free[:, order])
        k, m = k - int(forced.sum()), min(m, len(columns))
        return cls(X, squares[order], order, kept @ kept.T, k, m)

    def solve(self, max_steps: int, enough: float) -> _Point:
        """The least bound found: from a good set, and, if that is not near ``enough``, the chord.

        At the best projection Q, t is the k-th largest |Q x_i|^2. A search over t that begins with
        the chord (Q0 = m/r I) can end far from there, near t = 0; on other tables it wins.
        """
        size = len(self.X)
        flat = np.full(size, self.m / size), np.eye(size)
        if self.k <= 0 or not len(self.s):
            return self.look_at(0.0, *flat)
        P, t = self._projector_of_a_set()
        begin = self.look_at(t, *np.linalg.eigh(0.6 * P @ P.T + 0.4 * np.diag(flat[0])))
        best = self._descend(begin, max_steps, enough)
        if best.value > 1.05 * enough:
            begin = self._best_t(*flat, 0.0, float(self.s[0]), 25)
            best = _least(best, self._descend(begin, max_steps, enough))
        return best

    def _projector_of_a_set(self) -> tuple[FloatArray, float]:
        """A basis of the components of a good set, and its t."""
        chosen = self.X
        for _ in range(4):
            P = np.linalg.eigh(self.constant + chosen @ chosen.T)[1][:, -self.m :]
            held = np.sum((P.T @ self.X) ** 2, axis=0)
            chosen = self.X[:, np.argsort(-held)[: self.k]]
        return P, float(np.sort(held)[-min(self.k, len(held))])

    def _descend(self, point: _Point, max_steps: int, enough: float) -> _Point:
        """Take steps until three in a row gain nothing, or the bound is small enough."""
        best, slow = point, 0
        for step in range(max_steps):
            point = self._move(point)
            least = _least(best, point)
            if step % 3 == 2:
                t, highest = point.t, float(self.s[0])
                point = self._best_t(point.weights, point.axes, 0.5 * t, min(2.0 * t, highest), 8)
                least = _least(least, point)
            slow = slow + 1 if best.value - least.value <= 2e-5 * abs(best.value) else 0
            best = least
            if slow >= 3 or best.value <= enough:
                break
        return best

    def _move(self, point: _Point) -> _Point:
        """Q0 towards the projector on the leading eigenvectors of M: the best of four steps."""
        Q = (point.axes * point.weights) @ point.axes.T
        P = point.leading @ point.leading.T
        moved: list[_Point] = []
        for size in (0.05, 0.15, 0.4, 0.7):
            weights, axes = np.linalg.eigh((1.0 - size) * Q + size * P)
            moved.append(self.look_at(point.t, np.maximum(weights, 1e-12), axes))
            if len(moved) > 1 and moved[-1].value > moved[-2].value:
                break  # convex along the way, nearly
        return _least(*moved)

    def _best_t(
        self, weights: FloatArray, axes: FloatArray, low: float, high: float, n_looks: int
    ) -> _Point:
        """The best t for this Q0."""
        found = minimize_scalar(
            lambda t: self.look_at(float(t), weights, axes).value,
            bounds=(low, high),
            method="bounded",
            options={"maxiter": n_looks, "xatol": 1e-4 * max(high, 1e-300)},
        )
        return self.look_at(float(found.x), weights, axes)

    def look_at(self, t: float, weights: FloatArray, axes: FloatArray) -> _Point:
        """The bound for t and Q0."""
        y, size = self.summands(t, weights, axes), len(self.X)
        M = self.constant + axes @ (y @ y.T) @ axes.T
        values, leading = eigh(M, subset_by_index=[size - self.m, size - 1])
        return _Point(self.k * t + float(values.sum()), t, weights, axes, leading)

    def summands(self, t: float, weights: FloatArray, axes: FloatArray) -> FloatArray:
        """y_i with Y_i = y_i y_i', in the axes of Q0, of the columns with s_i > t."""
        n_above = int(np.searchsorted(-self.s, -t, side="left"))
        return admissible_vectors(t, weights, axes.T @ self.X[:, :n_above], self.s[:n_above])

    def proofs(self, best: _Point, reached: float) -> tuple[BoolArray, BoolArray]:
        """The columns in every best set, and those in none, by a value that some set reaches.

        A column with s_j < t takes the place of a term t. Without i, M loses Y_i, and the bound
        falls by no more than the eigenvalue of Y_i.
        """
        inside, outside = np.zeros(len(self.s), dtype=bool), best.value - best.t + self.s < reached
        if self.k <= 0 or not len(self.s) or not np.isfinite(reached):
            return inside, outside
        Y = best.axes @ self.summands(best.t, best.weights, best.axes)
        M = self.constant + Y @ Y.T
        worth = np.flatnonzero(np.einsum("ij,ij->j", Y, Y) > best.value - reached)
        for i in worth[: min(int(MOST_SINGLE // len(self.X) ** 3), 2 * self.k)]:
            values = np.linalg.eigvalsh(M - np.outer(Y[:, i], Y[:, i]))
            inside[i] = self.k * best.t + float(values[-self.m :].sum()) < reached
        return inside, outside


def admissible_vectors(t: float, q: FloatArray, z: FloatArray, s: FloatArray) -> FloatArray:
    """sqrt(c_i) g_i in the axes of Q0, whose eigenvalues are q; columns z_i have s_i = |z_i|^2 > t.

    x_i x_i' - c_i g_i g_i' has no eigenvalue above t if (g'x)^2 > |g|^2 (s - t) and c is at least
    ``t (s - t) / ((g'x)^2 - |g|^2 (s - t))``. The best is g = (t Q0 + mu I)^-1 x, mu > 0 being the
    root of x' Q0 (t Q0 + mu I)^-1 x = 1; g = x gives the chord, c = 1 - t/s. Whatever the accuracy
    of the root, c is admissible.
    """
    if t <= 0.0:
        return z
    q = q[:, np.newaxis]
    weighted = q * np.square(z)
    mu = np.zeros(z.shape[1])
    for _ in range(6):
        inverse = 1.0 / (t * q + mu)
        part = weighted * inverse
        f = part.sum(axis=0)
        slope = np.einsum("ij,ij->j", part, inverse)
        # Newton for 1/f = 1: concave, so steps approach the root from below.
        mu = np.maximum(mu + (f - 1.0) * f / slope, 0.0)
    g = z / (t * q + mu)
    along = np.einsum("ij,ij->j", g, z) ** 2
    length = np.einsum("ij,ij->j", g, g)
    room = along - length * (s - t)
    chord = room <= 1e-3 * length * s  # the difference has lost digits
    with np.errstate(divide="ignore", invalid="ignore"):
        c = np.where(chord, 0.0, t * (s - t) / room)
    if chord.any():
        g[:, chord], c[chord] = z[:, chord], 1.0 - t / s[chord]
    return np.asarray(g * np.sqrt(c))
