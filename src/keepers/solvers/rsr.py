"""RSR: every feature a combination of few others (Zhu, Zuo, Zhang, Hu and Shiu, 2015).

    minimise  P(W) = sum_i |x_i - x_i W| + lambda sum_j |w_j|   over d x d matrices W,

x_i the samples, w_j the rows of W; the score of feature j is |w_j|. The problem is convex. Its dual
is to maximise <X, Y> over n x d matrices Y whose rows are no longer than 1 and for which the rows
of X'Y are no longer than lambda: any such Y proves how far a W is from the optimum at most.

Because |w| = min_r (|w|^2 / r + r) / 2, and likewise for the residuals with weights e,

    min_W P = min over r, e >= 0 of  J(r, e) = (lambda Tr(X'K^-1 X) + sum e + lambda sum r) / 2,
    K = X diag(r) X' + lambda diag(e),

where W = diag(r) X'K^-1 X is the best W for given weights. J is convex and smooth in d + n numbers.
With Y = lambda K^-1 X, which is also the residual X - XW divided by e, let q_j = |(X'Y)_j| / lambda
and p_i = |Y_i|; then |w_j| = r_j q_j, the residuals are e_i p_i, and the gradient of J is
lambda (1 - q^2) / 2 and (1 - p^2) / 2. Divided by the largest of 1, q and p, Y is feasible in the
dual: a step measures its own distance to the optimum.

Steps: Newton's, damped by lambda / r and 1 / e (the curvature of the usual reweighting, in which
r and e are replaced by r q and e p), with weights that the bound zero stops set there. Where a
Newton step does not lower J, the damping grows, and then the reweighting step is taken.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy.linalg

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.ordering import levels
from keepers.linalg.subspace import row_norms

# Weights do not fall below these: a row of W, and a residual in units of the mean sample.
_SMALLEST_ROW, _SMALLEST_RESIDUAL = 1e-10, 1e-10
# So many features and samples enter the matrix of a Newton step; the others are reweighted.
_MOST_FEATURES, _MOST_SAMPLES = 2000, 1000
# Damping of Newton's steps. The least keeps the matrix regular beside identical columns.
_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING, _CHANGE_OF_DAMPING = 1e-2, 1e-6, 10.0, 10.0
_TRIALS = 4
# A weight falls to this share of itself in one step at most, unless it is stopped at zero.
_SMALLEST_STEP = 0.05


@dataclass(frozen=True)
class RSRResult:
    """The rows of W, and the proof of how good they are.

    W itself is d x d and not kept: it is diag(r) X'(X diag(r) X' + lambda diag(e))^-1 X.
    """

    row_norms: FloatArray
    """|w_j|."""
    r: FloatArray
    e: FloatArray
    """0 for samples that are zero; for all where W = I."""
    pulls: FloatArray
    """|(X'Y)_j| / lambda of a feasible Y, at most 1: how near a row at zero is to entering."""
    value: float
    """P(W)."""
    bound: float
    """What the dual proves: no matrix has a smaller P."""
    objective: FloatArray
    """J after every step; it never rises, and ends above P(W) by less than the bound does below."""
    n_iter: int
    converged: bool

    @property
    def gap(self) -> float:
        """P(W) over the bound, less 1: W is within this of the optimum."""
        return max(self.value - self.bound, 0.0) / self.bound if self.bound > 0.0 else 0.0


def working_entries(n_samples: int, n_features: int) -> float:
    """How many numbers `solve_rsr` holds at once, X not counted."""
    newton = min(n_features, _MOST_FEATURES) + min(n_samples, _MOST_SAMPLES)
    return 6.0 * n_samples * n_features + 4.0 * min(n_samples, n_features) ** 2 + 4.0 * newton**2


def largest_penalty(X: FloatArray) -> float:
    """The least lambda for which W = 0 is optimal: max_j |sum_i x_ij x_i / |x_i||."""
    return float(_pulls_of_zero(X).max())


def _pulls_of_zero(X: FloatArray) -> FloatArray:
    """|sum_i x_ij x_i / |x_i|| of every feature, without a d x d matrix where d > n."""
    norms = row_norms(X)
    units = np.divide(X, norms[:, np.newaxis], out=np.zeros_like(X), where=norms[:, np.newaxis] > 0)
    if X.shape[1] <= X.shape[0]:
        return row_norms(X.T @ units)
    squares = np.einsum("ij,ij->j", X, (units @ units.T) @ X)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def identity_penalty(X: FloatArray) -> float:
    """A lambda up to which W = I is optimal: 1 / max_i |x_i (X'X)^-1|; 0 if X'X is singular."""
    n_samples, n_features = X.shape
    if n_features > n_samples:
        return 0.0
    U, spectrum, _ = scipy.linalg.svd(X, full_matrices=False)
    if spectrum[-1] <= n_samples * np.finfo(np.float64).eps * spectrum[0]:
        return 0.0
    return float(1.0 / row_norms(U / spectrum).max())


def solve_rsr(
    X: FloatArray,
    penalty: float,
    *,
    tol: float = 1e-6,
    max_iter: int = 200,
    _form: "type[_Form] | None" = None,
) -> RSRResult:
    """Minimise P until the dual proves it to ``tol``, relatively; at most ``max_iter`` steps.

    From `largest_penalty` on, and up to `identity_penalty`, the solution is known. ``_form`` is
    there to compare the two forms on one table: d x d for d <= n, n x n otherwise.
    """
    lengths, largest = row_norms(X), largest_penalty(X)
    if penalty >= largest:
        zeros, value = np.zeros(X.shape[1]), float(lengths.sum())
        return _known(zeros, lengths, _pulls_of_zero(X) / penalty, value)
    if penalty <= identity_penalty(X):
        ones = np.ones(X.shape[1])
        return _known(ones, np.zeros(len(X)), ones, penalty * len(ones))
    counts = lengths > 0.0  # zero samples cost nothing
    X, unit = X[counts], float(lengths[counts].mean())
    form = _form or (_BySamples if X.shape[1] > X.shape[0] else _ByFeatures)
    # No smaller P than this share of that of W = 0: the smallest weights cost a tenth of tol.
    smallest = max(0.1 * tol * penalty / largest, _SMALLEST_RESIDUAL)
    result = _Descent(form(X / unit, penalty / unit), smallest).run(tol, max_iter)
    e = np.zeros(len(counts))
    e[counts] = result.e * unit
    copies = _groups_of_copies(X)
    return replace(
        result,
        row_norms=_mean_in_groups(result.row_norms, copies),
        r=_mean_in_groups(result.r, copies),
        e=e,
        value=result.value * unit,
        bound=result.bound * unit,
        objective=result.objective * unit,
    )


def _groups_of_copies(X: FloatArray) -> IndexArray:
    """A number for every column, the same for columns that agree up to sign and rounding."""
    some_vector = np.cos(np.arange(1.0, len(X) + 1.0))
    marks = [levels(row_norms(np.ascontiguousarray(X.T))), levels(np.abs(some_vector @ X))]
    _, groups = np.unique(np.column_stack(marks), axis=0, return_inverse=True)
    return groups.ravel()


def _mean_in_groups(values: FloatArray, groups: IndexArray) -> FloatArray:
    """What copies share is theirs in equal parts: K, and so the objective, depends on sums only."""
    return np.asarray((np.bincount(groups, values) / np.bincount(groups))[groups])


def _known(r: FloatArray, e: FloatArray, pulls: FloatArray, value: float) -> RSRResult:
    """W = 0 or W = I: the row norms are r."""
    return RSRResult(r, r, e, pulls, value, value, np.array([value]), 0, True)


@dataclass(frozen=True)
class _Point:
    """J at some weights, and what a step from there needs."""

    weights: FloatArray
    """r, then e."""
    ratios: FloatArray
    """q, then p."""
    product: float
    """<X, Y>."""
    J: float
    parts: Any
    """What the form keeps for the curvature."""

    @property
    def bound(self) -> float:
        """The dual value of Y, made feasible."""
        return self.product / max(1.0, float(self.ratios.max()))


class _Form(Protocol):
    """Y at given weights, by way of a matrix of the smaller side."""

    n_features: int
    n_samples: int
    penalty: float

    def __init__(self, X: FloatArray, penalty: float) -> None: ...

    def ratios(self, r: FloatArray, e: FloatArray) -> tuple[FloatArray, float, Any]:
        """The ratios q and p, <X, Y>, and what the curvature is made of; or LinAlgError."""

    def curvature_diagonal(self, parts: Any, ratios: FloatArray) -> FloatArray:
        """The diagonal of the second derivatives of J."""

    def curvature(self, parts: Any, features: IndexArray, samples: IndexArray) -> FloatArray:
        """The second derivatives of J by some of the r and e."""


class _BySamples:
    """Through the Cholesky factor L of K (n x n), for d > n; no d x d matrix."""

    def __init__(self, X: FloatArray, penalty: float) -> None:
        self.X, self.penalty = X, penalty
        self.n_samples, self.n_features = X.shape

    def ratios(self, r: FloatArray, e: FloatArray) -> tuple[FloatArray, float, Any]:
        K = (self.X * r) @ self.X.T
        K[np.diag_indices_from(K)] += self.penalty * e
        inverse = _inverse_factor(K)
        F = inverse @ self.X  # K^-1 = L^-T L^-1, and F = L^-1 X
        A = F @ F.T
        AF = A @ F
        T = inverse.T @ A @ inverse  # K^-1 X X' K^-1
        q = np.sqrt(np.maximum(np.einsum("ij,ij->j", F, AF), 0.0))
        p = self.penalty * np.sqrt(np.maximum(T.diagonal(), 0.0))
        return np.concatenate([q, p]), self.penalty * float(A.trace()), (F, AF, inverse, T)

    def curvature_diagonal(self, parts: Any, ratios: FloatArray) -> FloatArray:
        F, _, inverse, _ = parts
        squares = [np.einsum("ij,ij->j", half, half) for half in (F, inverse)]
        return self.penalty * np.concatenate(squares) * ratios**2

    def curvature(self, parts: Any, features: IndexArray, samples: IndexArray) -> FloatArray:
        F, AF, inverse, T = parts
        F, AF, G = F[:, features], AF[:, features], inverse[:, samples]
        by_features = self.penalty * (F.T @ F) * (F.T @ AF)
        across = self.penalty**2 * (G.T @ F) * (G.T @ AF)
        by_samples = self.penalty**3 * (G.T @ G) * T[np.ix_(samples, samples)]
        return np.block([[by_features, across.T], [across, by_samples]])


class _ByFeatures:
    """Through M = lambda I + Z' diag(1/e) Z, Z = X diag(sqrt(r)), d x d, for d <= n."""

    def __init__(self, X: FloatArray, penalty: float) -> None:
        self.X, self.penalty = X, penalty
        self.n_samples, self.n_features = X.shape

    def ratios(self, r: FloatArray, e: FloatArray) -> tuple[FloatArray, float, Any]:
        roots = np.sqrt(r)
        Z = self.X * roots
        M = Z.T @ (Z / e[:, np.newaxis])
        M[np.diag_indices_from(M)] += self.penalty
        inverse = _inverse_factor(M)
        half = Z @ inverse.T
        # X - XW = lambda Z M^-1 diag(1 / sqrt(r)): nothing cancels where the residual is small.
        Y = (half @ inverse) * (self.penalty / roots)
        Y /= e[:, np.newaxis]
        C = self.X.T @ Y
        ratios = np.concatenate([row_norms(C) / self.penalty, row_norms(Y)])
        return ratios, float(np.vdot(self.X, Y)), (C, Y, half, e)

    def curvature_diagonal(self, parts: Any, ratios: FloatArray) -> FloatArray:
        C, _, half, e = parts
        of_samples = 1.0 / e - np.einsum("ij,ij->i", half, half) / e**2
        return np.maximum(np.concatenate([C.diagonal(), of_samples]), 0.0) * ratios**2

    def curvature(self, parts: Any, features: IndexArray, samples: IndexArray) -> FloatArray:
        C, Y, half, e = parts
        C, Y, half = C[features], Y[samples], half[samples] / e[samples, np.newaxis]
        by_features = C[:, features] * (C @ C.T) / self.penalty**2
        across = Y[:, features] * (Y @ C.T) / self.penalty
        by_samples = (np.diag(1.0 / e[samples]) - half @ half.T) * (Y @ Y.T)
        return np.block([[by_features, across.T], [across, by_samples]])


def _inverse_factor(matrix: FloatArray) -> FloatArray:
    """L^-1 of a Cholesky factor L. Of the smaller side: products with it are faster than solves."""
    factor = scipy.linalg.cholesky(matrix, lower=True)
    eye = np.eye(len(matrix))
    return np.asarray(scipy.linalg.solve_triangular(factor, eye, lower=True))


class _Descent:
    """Newton's steps on J, from weights 1; the mean sample has length 1."""

    def __init__(self, form: _Form, smallest_residual: float) -> None:
        self.form = form
        n_features, n_samples = form.n_features, form.n_samples
        self.prices = np.concatenate([np.full(n_features, form.penalty), np.ones(n_samples)])
        self.smallest = np.concatenate(
            [np.full(n_features, _SMALLEST_ROW), np.full(n_samples, smallest_residual)]
        )
        self.damping = _FIRST_DAMPING
        self.point = self._evaluate(np.ones(n_features + n_samples))

    def run(self, tol: float, max_iter: int) -> RSRResult:
        """Until the gap is at most ``tol``, or rounding or ``max_iter`` ends it."""
        bound, history = -np.inf, [self.point.J]
        value, converged = np.inf, False
        while True:
            value = float(self.prices @ (self.point.weights * self.point.ratios))
            bound = max(bound, self.point.bound)
            converged = value - bound <= tol * bound
            following = None
            if not converged and len(history) <= max_iter:
                following = self._newton_step() or self._reweighting_step()
            if following is None:
                break
            self.point = following
            history.append(following.J)
        d = self.form.n_features
        r, e, q = self.point.weights[:d], self.point.weights[d:], self.point.ratios[:d]
        return RSRResult(
            r * q,
            r,
            e,
            q / max(1.0, float(self.point.ratios.max())),
            value,
            bound,
            np.array(history),
            len(history) - 1,
            converged,
        )

    def _evaluate(self, weights: FloatArray) -> _Point:
        d = self.form.n_features
        ratios, product, parts = self.form.ratios(weights[:d], weights[d:])
        J = 0.5 * (product + float(self.prices @ weights))
        return _Point(weights, ratios, product, J, parts)

    def _lower(self, weights: FloatArray) -> _Point | None:
        """The point of these weights, if J is lower there."""
        try:
            point = self._evaluate(weights)
        except np.linalg.LinAlgError:
            return None
        return point if point.J < self.point.J else None

    def _reweighting_step(self) -> _Point | None:
        """To r q and e p, the least of a quadratic above J; None if only rounding is left."""
        weights = np.maximum(self.point.weights * self.point.ratios, self.smallest)
        return self._lower(weights)

    def _newton_step(self) -> _Point | None:
        """A damped Newton step that lowers J; None if there is none."""
        gradient = 0.5 * self.prices * (1.0 - self.point.ratios**2)
        diagonal = self.form.curvature_diagonal(self.point.parts, self.point.ratios)
        for _ in range(_TRIALS):
            following = self._try_step(gradient, diagonal)
            if following is not None:
                self.damping = max(self.damping / _CHANGE_OF_DAMPING, _LEAST_DAMPING)
                return following
            self.damping = min(self.damping * _CHANGE_OF_DAMPING, _MOST_DAMPING)
        return None

    def _try_step(self, gradient: FloatArray, diagonal: FloatArray) -> _Point | None:
        weights = self.point.weights
        damping = self.damping * self.prices / weights
        stopped = (gradient > 0.0) & ((weights - self.smallest) * (diagonal + damping) <= gradient)
        features, samples = self._free(stopped)
        curvature = self.form.curvature(self.point.parts, features, samples)
        free = np.concatenate([features, samples + self.form.n_features])
        curvature[np.diag_indices_from(curvature)] += damping[free]
        step = _solve_scaled(curvature, gradient[free])
        if step is None:
            return None
        moved = np.maximum(weights * self.point.ratios, self.smallest)
        moved[stopped] = self.smallest[stopped]
        lowest = np.maximum(self.smallest[free], _SMALLEST_STEP * weights[free])
        moved[free] = np.maximum(weights[free] - step, lowest)
        return self._lower(moved)

    def _free(self, stopped: BoolArray) -> tuple[IndexArray, IndexArray]:
        """Features and samples that enter the matrix: the heaviest, if there are many."""
        d = self.form.n_features
        features, samples = np.flatnonzero(~stopped[:d]), np.flatnonzero(~stopped[d:])
        if len(features) > _MOST_FEATURES:
            order = np.argsort(-self.point.weights[features], kind="stable")
            features = np.sort(features[order[:_MOST_FEATURES]])
        return features, samples if self.form.n_samples <= _MOST_SAMPLES else samples[:0]


def _solve_scaled(matrix: FloatArray, right: FloatArray) -> FloatArray | None:
    """Solve with a positive definite matrix of very unequal diagonal; None if rounding prevents."""
    if not len(right):  # SciPy 1.12 refuses an empty system
        return right
    scales = 1.0 / np.sqrt(matrix.diagonal())
    try:
        factor = scipy.linalg.cho_factor(matrix * scales[:, np.newaxis] * scales, lower=True)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(scales * scipy.linalg.cho_solve(factor, scales * right))
