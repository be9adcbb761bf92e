"""RSR: every feature a combination of few others (Zhu, Zuo, Zhang, Hu and Shiu, 2015).

    minimise  P(W) = sum_i |x_i - x_i W| + lambda sum_j |w_j|   over d x d matrices W

is convex. Its dual is to maximise <X, Y> over n x d matrices Y whose rows are no longer than 1,
while the rows of X'Y are no longer than lambda. Any such Y bounds how far W is from the optimum.

Because |w| = min_r (|w|^2 / r + r) / 2, and likewise for the residuals with weights e,

    min_W P = min over r, e >= 0 of  J(r, e) = (lambda Tr(X'K^-1 X) + sum e + lambda sum r) / 2,
    K = X diag(r) X' + lambda diag(e),

where W = diag(r) X'K^-1 X is the best W for given weights. J is convex and smooth in d + n numbers.
With Y = lambda K^-1 X, which is also the residual X - XW divided by e, let q_j = |(X'Y)_j| / lambda
and p_i = |Y_i|; then |w_j| = r_j q_j, the residuals are e_i p_i, and the gradient of J is
lambda (1 - q^2) / 2 and (1 - p^2) / 2. Divided by the largest of 1, q and p, Y is feasible in the
dual: a step measures its own distance to the optimum.

Steps are Newton's, damped by lambda / r and 1 / e (the curvature of the usual reweighting, in which
r and e are replaced by r q and e p), with weights that the bound zero stops set there. Where a
Newton step does not lower J, the damping grows, and then the reweighting step is taken. On LEUML
12 such steps close the gap to 1e-6; 600 steps of reweighting alone leave 2e-5.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
import scipy.linalg

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray, IndexArray
from keepers.exceptions import ConvergenceWarning, DataWarning, warn_caller
from keepers.linalg.ordering import levels
from keepers.linalg.subspace import row_norms
from keepers.methods.base import RankingSelector
from keepers.methods.memory import refuse_past_memory
from keepers.methods.parameters import FeatureCount, positive, whole
from keepers.methods.reading import MemoryTable

# The weights of rows and residuals (of samples of mean length 1) do not fall below this.
SMALLEST_WEIGHT = 1e-10
# Beyond these numbers features and samples are reweighted: the matrix of a step stays below 72 MB.
MOST_FEATURES, MOST_SAMPLES = 2000, 1000


@dataclass(frozen=True)
class RSRResult:
    """The rows of W, and the proof of how good they are; W is diag(r) X'K^-1 X and not kept."""

    row_norms: FloatArray
    r: FloatArray
    e: FloatArray
    """0 for samples that are zero; for all where W = I."""
    pulls: FloatArray
    """|(X'Y)_j| / lambda of a feasible Y, at most 1: how near a row at zero is to entering."""
    value: float
    bound: float
    """The lower bound of P from the dual."""
    objective: FloatArray
    """J after every step; it never rises, and ends above P(W) by less than the bound does below."""
    n_iter: int
    converged: bool

    @property
    def gap(self) -> float:
        """P(W) over the bound, less 1: W is within this of the optimum."""
        return max(self.value - self.bound, 0.0) / self.bound if self.bound > 0.0 else 0.0


def pulls_of_zero(X: FloatArray) -> FloatArray:
    """|sum_i x_ij x_i / |x_i|| of every feature; from the largest of them on, W = 0 is optimal."""
    norms = row_norms(X)
    units = X / np.where(norms > 0.0, norms, 1.0)[:, np.newaxis]
    if X.shape[1] <= X.shape[0]:
        return row_norms(X.T @ units)
    squares = np.einsum("ij,ij->j", X, (units @ units.T) @ X)  # without a d x d matrix
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
    X: FloatArray, penalty: float, *, tol: float = 1e-6, max_iter: int = 200
) -> RSRResult:
    """Minimise P until the dual proves it to ``tol``, relatively; at most ``max_iter`` steps.

    From the largest of `pulls_of_zero` on, and up to `identity_penalty`, the solution is known.
    """
    lengths, pulls, ones = row_norms(X), pulls_of_zero(X), np.ones(X.shape[1])
    if penalty >= pulls.max():
        return _known(0.0 * ones, lengths, pulls / penalty, float(lengths.sum()))
    if penalty <= identity_penalty(X):
        return _known(ones, np.zeros(len(X)), ones, penalty * len(ones))
    counts = lengths > 0.0  # zero samples cost nothing
    X, unit = X[counts], float(lengths[counts].mean())
    # No smaller P than this share of that of W = 0: the smallest weights cost a tenth of tol.
    smallest = max(0.1 * tol * penalty / float(pulls.max()), SMALLEST_WEIGHT)
    point, bound, history = _descend(X / unit, penalty / unit, smallest, tol, max_iter)
    (r, residuals), (q, _) = _split(point.weights, X), _split(point.ratios, X)
    e = np.zeros(len(counts))
    e[counts] = unit * residuals
    copies = _groups_of_copies(X)
    return RSRResult(
        row_norms=_mean_in_groups(r * q, copies),
        r=_mean_in_groups(r, copies),
        e=e,
        pulls=q / max(1.0, float(point.ratios.max())),
        value=unit * point.value,
        bound=unit * bound,
        objective=unit * np.array(history),
        n_iter=len(history) - 1,
        converged=point.value - bound <= tol * bound,
    )


def _known(r: FloatArray, e: FloatArray, pulls: FloatArray, value: float) -> RSRResult:
    """W = 0 or W = I: the row norms are r."""
    return RSRResult(r, r, e, pulls, value, value, np.array([value]), 0, True)


def _split(values: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    return values[: X.shape[1]], values[X.shape[1] :]


def _groups_of_copies(X: FloatArray) -> IndexArray:
    """A number for every column, the same for columns that agree up to sign and rounding."""
    some_vector = np.cos(np.arange(1.0, len(X) + 1.0))
    marks = [levels(row_norms(np.ascontiguousarray(X.T))), levels(np.abs(some_vector @ X))]
    return np.unique(np.column_stack(marks), axis=0, return_inverse=True)[1].ravel()


def _mean_in_groups(values: FloatArray, groups: IndexArray) -> FloatArray:
    """Copies get equal parts: K, and so the objective, depends on sums only."""
    return np.asarray((np.bincount(groups, values) / np.bincount(groups))[groups])


Curvature = Callable[[IndexArray, IndexArray], FloatArray]
"""The second derivatives of J by some of the r and some of the e."""


@dataclass(frozen=True)
class _Point:
    """J at weights (r, then e) with prices (lambda, then 1), ratios (q, then p) and <X, Y>."""

    weights: FloatArray
    prices: FloatArray
    ratios: FloatArray
    product: float
    diagonal: FloatArray
    curvature: Curvature

    @property
    def J(self) -> float:
        """The function that steps lower."""
        return 0.5 * (self.product + float(self.prices @ self.weights))

    @property
    def value(self) -> float:
        """P(W)."""
        return float(self.prices @ (self.weights * self.ratios))

    @property
    def bound(self) -> float:
        """The dual value of Y, made feasible."""
        return self.product / max(1.0, float(self.ratios.max()))


def _evaluate(X: FloatArray, penalty: float, weights: FloatArray) -> _Point:
    """By way of a matrix of the smaller side; J is infinite where rounding prevents it."""
    r, e = _split(weights, X)
    prices = np.concatenate([np.full(len(r), penalty), np.ones(len(e))])
    form = _by_samples if len(r) > len(e) else _by_features
    try:
        return _Point(weights, prices, *form(X, penalty, r, e))
    except np.linalg.LinAlgError:
        return _Point(weights, prices, weights, np.inf, weights, lambda *_: np.empty((0, 0)))


def _by_samples(
    X: FloatArray, penalty: float, r: FloatArray, e: FloatArray
) -> tuple[FloatArray, float, FloatArray, Curvature]:
    """Ratios, <X, Y> and curvature through the Cholesky factor L of K (n x n)."""
    K = (X * r) @ X.T
    K[np.diag_indices_from(K)] += penalty * e
    inverse = _inverse_factor(K)
    F = inverse @ X  # K^-1 = L^-T L^-1, and F = L^-1 X
    A = F @ F.T
    AF = A @ F
    T = inverse.T @ A @ inverse  # K^-1 X X' K^-1
    q = np.sqrt(np.maximum(np.einsum("ij,ij->j", F, AF), 0.0))
    p = penalty * np.sqrt(np.maximum(T.diagonal(), 0.0))
    ratios = np.concatenate([q, p])
    squares = np.concatenate([np.einsum("ij,ij->j", half, half) for half in (F, inverse)])

    def curvature(features: IndexArray, samples: IndexArray) -> FloatArray:
        f, af, g = F[:, features], AF[:, features], inverse[:, samples]
        by_features = penalty * (f.T @ f) * (f.T @ af)
        across = penalty**2 * (g.T @ f) * (g.T @ af)
        by_samples = penalty**3 * (g.T @ g) * T[np.ix_(samples, samples)]
        return np.block([[by_features, across.T], [across, by_samples]])

    return ratios, penalty * float(A.trace()), penalty * squares * ratios**2, curvature


def _by_features(
    X: FloatArray, penalty: float, r: FloatArray, e: FloatArray
) -> tuple[FloatArray, float, FloatArray, Curvature]:
    """The same through M = lambda I + Z' diag(1/e) Z with Z = X diag(sqrt(r)), d x d."""
    roots, per_e = np.sqrt(r), 1.0 / e[:, np.newaxis]
    Z = X * roots
    M = Z.T @ (Z * per_e)
    M[np.diag_indices_from(M)] += penalty
    inverse = _inverse_factor(M)
    half = Z @ inverse.T * per_e
    # X - XW = lambda Z M^-1 diag(1 / sqrt(r)): nothing cancels where the residual is small.
    Y = (half @ inverse) * (penalty / roots)
    C = X.T @ Y
    ratios = np.concatenate([row_norms(C) / penalty, row_norms(Y)])
    of_samples = 1.0 / e - np.einsum("ij,ij->i", half, half)
    diagonal = np.maximum(np.concatenate([C.diagonal(), of_samples]), 0.0) * ratios**2

    def curvature(features: IndexArray, samples: IndexArray) -> FloatArray:
        c, y, h = C[features], Y[samples], half[samples]
        by_features = c[:, features] * (c @ c.T) / penalty**2
        across = y[:, features] * (y @ c.T) / penalty
        by_samples = (np.diag(1.0 / e[samples]) - h @ h.T) * (y @ y.T)
        return np.block([[by_features, across.T], [across, by_samples]])

    return ratios, float(np.vdot(X, Y)), diagonal, curvature


def _inverse_factor(matrix: FloatArray) -> FloatArray:
    """L^-1 of a Cholesky factor L: products with it are faster than solves."""
    factor = scipy.linalg.cholesky(matrix, lower=True)
    eye = np.eye(len(matrix))
    return np.asarray(scipy.linalg.solve_triangular(factor, eye, lower=True))


def _descend(
    X: FloatArray, penalty: float, smallest: float, tol: float, max_iter: int
) -> tuple[_Point, float, list[float]]:
    """Steps from weights 1 to a gap of ``tol``, or until rounding or ``max_iter`` ends them.

    Returns the last point, the best bound and J after every step. The damping goes by tens between
    1e-6, which keeps the matrix regular with identical columns, and 10.
    """
    n_samples, n_features = X.shape
    floor = np.concatenate([np.full(n_features, SMALLEST_WEIGHT), np.full(n_samples, smallest)])
    point = _evaluate(X, penalty, np.ones(n_features + n_samples))
    bound, history, damping = point.bound, [point.J], 1e-2
    while point.value - bound > tol * bound and len(history) <= max_iter:
        for _ in range(4):
            following = _evaluate(X, penalty, _newton_weights(point, X, damping, floor))
            if following.J < point.J:
                damping = max(damping / 10.0, 1e-6)
                break
            damping = min(damping * 10.0, 10.0)
        else:
            reweighted = np.maximum(point.weights * point.ratios, floor)
            following = _evaluate(X, penalty, reweighted)
        if not following.J < point.J:  # only rounding is left
            break
        point = following
        bound = max(bound, point.bound)
        history.append(point.J)
    return point, bound, history


def _newton_weights(point: _Point, X: FloatArray, damping: float, floor: FloatArray) -> FloatArray:
    """The weights after a damped Newton step; unchanged if rounding prevents it."""
    weights, n_features = point.weights, X.shape[1]
    gradient = 0.5 * point.prices * (1.0 - point.ratios**2)
    added = damping * point.prices / weights
    stopped = (gradient > 0.0) & ((weights - floor) * (point.diagonal + added) <= gradient)
    features = np.flatnonzero(~stopped[:n_features])
    samples = np.flatnonzero(~stopped[n_features:])
    if len(features) > MOST_FEATURES:  # the heaviest
        order = np.argsort(-weights[features], kind="stable")
        features = np.sort(features[order[:MOST_FEATURES]])
    if len(X) > MOST_SAMPLES:
        samples = samples[:0]
    free = np.concatenate([features, n_features + samples])
    moved = np.where(stopped, floor, np.maximum(weights * point.ratios, floor))
    if len(free):  # SciPy 1.12 refuses an empty system
        matrix = point.curvature(features, samples)
        matrix[np.diag_indices_from(matrix)] += added[free]
        try:
            step = scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix), gradient[free])
        except np.linalg.LinAlgError:
            return weights
        # A weight that is not stopped falls to a twentieth of itself at most.
        moved[free] = np.maximum(weights[free] - step, np.maximum(floor, 0.05 * weights)[free])
    return moved


@dataclass(eq=False, repr=False)
class RSR(RankingSelector):
    """Regularised self-representation: features that rebuild all others.

    Rebuilds every feature as a linear combination of features and lets few of them take part::

        minimise  sum_i |x_i - x_i W| + lambda sum_j |w_j|   over W (features x features),

    x_i the centred samples, w_j the rows of W. Residuals are not squared, so single samples that
    fit badly count little. A feature's score is the norm of its row. After "Unsupervised
    feature selection by regularized self-representation" (Zhu, Zuo, Zhang, Hu and Shiu, Pattern
    Recognition 2015).

    The problem is convex, and the fit ends with a proof: no W has an objective smaller than the
    one found by more than ``duality_gap_``.

    Parameters
    ----------
    {n_features_to_select}
    share : float in (0, 1], default=0.3
        lambda as a share of ``lambda_max_``, from which on W = 0 is optimal; it does not depend on
        the unit of X. Small shares end at W = I, where all scores are 1 (``lambda_identity_``).
    tol : float, default=1e-6
        The iteration ends when the objective is proved to be within this of the optimum,
        relatively.
    max_iter : int, default=200
        Steps at most; 10 to 30 are usual.
    {max_correlation}

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Row norms of W; higher is better. Rows at zero get up to 1e-12 of the smallest other norm,
        which orders them by how near they are to entering. If all rows are at zero, the scores are
        that order, in [0, 1].
    {fitted}
    duality_gap_ : float
        The objective is at most this above that of any W, relatively: a proof, not an estimate.
    objective_ : array
        An upper bound of the objective after every step; it never rises.
    n_iter_ : int
        Steps made; 0 where W = I is known to be optimal beforehand.
    converged_ : bool
        Whether the gap came down to ``tol``.
    n_active_ : int
        Rows of W that are not zero.
    lambda_ : float
        The weight of the penalty, in the unit of X.
    lambda_max_ : float
        The least lambda for which W = 0 is optimal.
    lambda_identity_ : float
        A lambda up to which W = I is optimal; 0 where features are linearly dependent.

    Examples
    --------
    >>> from keepers import RSR, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = RSR(20).fit(X)
    >>> selector.transform(X).shape
    (83, 20)
    >>> selector.duality_gap_ < 1e-6
    True
    """

    looks_for = "features from which the others can be computed"
    score_means = (
        "how much the feature counts in the fitted model (the length of its row of weights)"
    )

    why_not_sparse = "it works with centred columns, which have no zeros."
    parameter_rules: ClassVar = {
        "share": positive(1.0, hint="lambda as a share of the one where W = 0."),
        "tol": positive(),
        "max_iter": whole(),
    }

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    share: float = 0.3
    tol: float = 1e-6
    max_iter: int = 200
    max_correlation: float | None = None

    def score_features(self, table: MemoryTable) -> FloatArray:
        n, d = table.X.shape
        newton = min(d, MOST_FEATURES) + min(n, MOST_SAMPLES)
        entries = 7.0 * n * d + 4.0 * min(n, d) ** 2 + 4.0 * newton**2
        refuse_past_memory("RSR", f"seven {n} x {d} tables", 8.0 * entries)
        values = np.ascontiguousarray(table.in_double() - table.moments.mean)
        with one_blas_thread_if_small(min(values.shape)):
            self.lambda_max_ = float(pulls_of_zero(values).max())
            self.lambda_identity_ = identity_penalty(values)
            self.lambda_ = self.share * self.lambda_max_
            result = solve_rsr(values, self.lambda_, tol=self.tol, max_iter=self.max_iter)
        norms = result.row_norms
        if np.abs(norms - 1.0).max() <= 1e-5:  # the identity, up to what the gap leaves open
            norms = np.ones_like(norms)
        active = norms > max(1e-5 * norms.max(), 1e-8)  # shorter rows are zero but for rounding
        self.duality_gap_ = result.gap
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.n_active_ = int(np.count_nonzero(active))
        self._warn_of_outcome(is_identity=len(norms) > 1 and bool(np.all(norms == 1.0)))
        ceiling = 1e-12 * norms[active].min() if active.any() else 1.0
        return table.to_all_columns(np.where(active, norms, ceiling * result.pulls))

    def _warn_of_outcome(self, *, is_identity: bool) -> None:
        if not self.converged_:
            warn_caller(
                f"After {self.n_iter_} steps the objective is proved to be within "
                f"{self.duality_gap_:.2g} of the optimum, not within tol={self.tol:g}. Raise "
                f"max_iter (now {self.max_iter}), share or tol.",
                ConvergenceWarning,
            )
        elif is_identity:
            warn_caller(
                f"W = I is optimal with share={self.share:g}: every feature rebuilds itself, all "
                "scores are 1, and the features are ranked by variance. W = I is certain up to "
                f"share={self.lambda_identity_ / self.lambda_max_:.3g}; raise share.",
                DataWarning,
            )
        elif self.n_active_ == 0:
            warn_caller(
                f"W = 0 is optimal with share={self.share:g}: the features are ranked by how near "
                "they are to entering. Lower share.",
                DataWarning,
            )
        elif self.n_active_ < self.n_features_to_select_:
            warn_caller(
                f"{self.n_features_to_select_} features are wanted, but only {self.n_active_} rows "
                "of W are not zero; the others are ranked by how near they are to entering. "
                f"Lower share (now {self.share:g}).",
                DataWarning,
            )
