"""RSR: every feature a combination of few others (Zhu, Zuo, Zhang, Hu and Shiu, 2015).

    minimise  P(W) = sum_i |x_i - x_i W| + lambda sum_j |w_j|   over d x d matrices W

is convex. Its dual is to maximise <X, Y> over n x d matrices Y whose rows are no longer than 1,
while the rows of X'Y are no longer than lambda. Any such Y bounds how far W is from the optimum.

Because |w| = min_r (|w|^2 / r + r) / 2, and likewise for the residuals with weights e,

    min_W P = min over r, e >= 0 of  J(r, e) = (lambda Tr(X'K^-1 X) + sum e + lambda sum r) / 2,
    K = X diag(r) X' + lambda diag(e),

where W = diag(r) X'K^-1 X is the best W for given weights. J is convex and smooth in d + n numbers.
With Y = lambda K^-1 X, which is also the residual X - XW divided by e, let q_j = |(X'Y)_j| / lambda
and p_i = |Y_i|. Then |w_j| = r_j q_j, the residuals are e_i p_i, and the gradient of J is
lambda (1 - q^2) / 2 and (1 - p^2) / 2. Divided by the largest of 1, q and p, Y is feasible in the
dual: every step measures its own distance to the optimum.

L-BFGS-B minimises J over the square roots of the weights (over the weights themselves it stops
early). Where weights near zero, which J hardly sees, still hold up the bound, r becomes r q and e
becomes e p.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import Bounds, minimize

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray
from keepers.exceptions import DataWarning, warn_caller
from keepers.linalg.spectrum import row_norms
from keepers.methods.parameters import positive
from keepers.methods.reading import MemoryTable
from keepers.methods.rivals import EPS, Rival

# The weights of rows and residuals (of samples of mean length 1) do not fall below this.
SMALLEST_WEIGHT = 1e-10


@dataclass(frozen=True)
class RSRResult:
    """The rows of W, and the proof of how good they are; W is diag(r) X'K^-1 X and not kept."""

    row_norms: FloatArray
    r: FloatArray
    e: FloatArray
    pulls: FloatArray
    """|(X'Y)_j| / lambda of a feasible Y, at most 1: how near a row at zero is to entering."""
    value: float
    bound: float
    """The lower bound of P from the dual."""
    objective: FloatArray
    """J after every step; it ends above P(W) by less than the bound ends below."""
    converged: bool = True

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


def solve_rsr(
    X: FloatArray, penalty: float, *, tol: float = 1e-6, max_iter: int = 1000
) -> RSRResult:
    """Minimise P until the dual proves it to the share ``tol``; at most ``max_iter`` steps."""
    lengths, pulls = row_norms(X), pulls_of_zero(X)
    if penalty >= pulls.max():  # W = 0 is known to be optimal
        zeros, value = np.zeros(X.shape[1]), float(lengths.sum())
        return RSRResult(zeros, zeros, lengths, pulls / penalty, value, value, np.empty(0))
    unit = float(lengths.mean())
    # No smaller P than this share of that of W = 0: the smallest weights cost a tenth of tol.
    smallest = max(0.1 * tol * penalty / float(pulls.max()), SMALLEST_WEIGHT)
    point, bound, history = _descend(X / unit, penalty / unit, smallest, tol, max_iter)
    r, e = np.split(point.weights, [X.shape[1]])
    q = point.ratios[: X.shape[1]]
    return RSRResult(
        row_norms=r * q,
        r=r,
        e=unit * e,
        pulls=q / max(1.0, float(point.ratios.max())),
        value=unit * point.value,
        bound=unit * bound,
        objective=unit * np.array(history),
        converged=point.value - bound <= tol * bound,
    )


@dataclass(frozen=True)
class _Point:
    """The weights (r, then e), the ratios (q, then p), J, P(W) and the bound of the dual."""

    weights: FloatArray
    ratios: FloatArray
    gradient: FloatArray
    """The derivatives of J by the weights."""
    J: float
    value: float
    bound: float


def _evaluate(X: FloatArray, penalty: float, weights: FloatArray) -> _Point:
    """By way of a matrix of the smaller side."""
    n_samples, n_features = X.shape
    prices = np.concatenate([np.full(n_features, penalty), np.ones(n_samples)])
    form = _by_samples if n_features > n_samples else _by_features
    ratios, product = form(X, penalty, weights[:n_features], weights[n_features:])
    return _Point(
        weights,
        ratios,
        gradient=0.5 * prices * (1.0 - ratios**2),
        J=0.5 * (product + float(prices @ weights)),
        value=float(prices @ (weights * ratios)),
        bound=product / max(1.0, float(ratios.max())),
    )


def _by_samples(
    X: FloatArray, penalty: float, r: FloatArray, e: FloatArray
) -> tuple[FloatArray, float]:
    """Ratios and <X, Y> through the Cholesky factor L of K (n x n)."""
    inverse = _inverse_factor((X * r) @ X.T, penalty * e)
    F = inverse @ X  # K^-1 = L^-T L^-1, and F = L^-1 X
    A = F @ F.T
    q = np.sqrt(np.maximum(np.einsum("ij,ij->j", F, A @ F), 0.0))
    p = np.sqrt(np.maximum(np.einsum("ij,ij->j", inverse, A @ inverse), 0.0))
    return np.concatenate([q, penalty * p]), penalty * float(A.trace())


def _by_features(
    X: FloatArray, penalty: float, r: FloatArray, e: FloatArray
) -> tuple[FloatArray, float]:
    """The same through M = lambda I + Z' diag(1/e) Z with Z = X diag(sqrt(r)), d x d."""
    roots = np.sqrt(r)
    Z = X * roots
    inverse = _inverse_factor(Z.T @ (Z / e[:, np.newaxis]), penalty)
    # X - XW = lambda Z M^-1 diag(1 / sqrt(r)): nothing cancels where the residual is small.
    Y = (Z @ inverse.T @ inverse) * (penalty / roots) / e[:, np.newaxis]
    ratios = np.concatenate([row_norms(X.T @ Y) / penalty, row_norms(Y)])
    return ratios, float(np.vdot(X, Y))


def _inverse_factor(matrix: FloatArray, added: FloatArray | float) -> FloatArray:
    """L^-1 of the Cholesky factor L of a matrix and a diagonal: products are faster than solves.

    Where rounding made the sum indefinite, the diagonal is raised by that much.
    """
    diagonal = np.diag_indices_from(matrix)
    matrix[diagonal] += added
    try:
        factor = cholesky(matrix, lower=True)
    except LinAlgError:
        matrix[diagonal] += len(matrix) * EPS * matrix[diagonal].max()
        factor = cholesky(matrix, lower=True)
    return np.asarray(solve_triangular(factor, np.eye(len(matrix)), lower=True))


def _descend(
    X: FloatArray, penalty: float, smallest: float, tol: float, max_iter: int
) -> tuple[_Point, float, list[float]]:
    """Steps from weights 1 to a gap of ``tol``: the last point, the best bound, J of every step."""
    n_samples, n_features = X.shape
    floor = np.concatenate([np.full(n_features, SMALLEST_WEIGHT), np.full(n_samples, smallest)])
    latest = point = _evaluate(X, penalty, np.ones(len(floor)))
    bound, n_reweighted = point.bound, 0
    history: list[float] = []

    def fall(roots: FloatArray) -> tuple[float, FloatArray]:
        nonlocal latest
        latest = _evaluate(X, penalty, roots**2)
        return latest.J, 2.0 * roots * latest.gradient

    def after_step(intermediate_result: Any) -> None:  # a name that SciPy looks for
        nonlocal point, bound
        point, bound = latest, max(bound, latest.bound)
        history.append(point.J)
        if point.value - bound <= tol * bound:
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 20 * max_iter, "maxcor": 30, "ftol": 0, "gtol": 0}
    settings: Any = {"jac": True, "bounds": Bounds(np.sqrt(floor)), "callback": after_step}
    minimize(fall, np.ones(len(floor)), method="L-BFGS-B", options=options, **settings)
    while point.value - bound > tol * bound and len(history) < max_iter and n_reweighted < 20:
        point = _evaluate(X, penalty, np.maximum(point.weights * point.ratios, floor))
        bound, n_reweighted = max(bound, point.bound), n_reweighted + 1
        history.append(point.J)
    return point, bound, history


@dataclass(eq=False, repr=False, kw_only=True)
class RSR(Rival):
    """Regularised self-representation: features that rebuild all others.

    Rebuilds every feature as a linear combination of features and lets few of them take part::

        minimise  sum_i |x_i - x_i W| + lambda sum_j |w_j|   over W (features x features),

    x_i the centred samples, w_j the rows of W. Residuals are not squared, so single samples that
    fit badly count little. A feature's score is the norm of its row. After "Unsupervised
    feature selection by regularized self-representation" (Zhu, Zuo, Zhang, Hu and Shiu, Pattern
    Recognition 2015).

    The problem is convex, and the fit ends with a proof, ``duality_gap_``.

    Parameters
    ----------
    {n_features_to_select}
    share : float in (0, 1], default=0.3
        lambda as a share of ``lambda_max_``; it does not depend on the unit of X. Small shares end
        at W = I, where all scores are 1.
    tol : float, default=1e-6
        The iteration ends when the objective is proved to exceed the optimum by at most this share.
    max_iter : int, default=1000
        Maximum number of steps; 20 to 700 are usual.
    {max_correlation}

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Row norms of W; higher is better. Rows at zero get up to 1e-12 of the smallest other norm,
        larger the closer they are to becoming active.
    {fitted}
    duality_gap_ : float
        The objective exceeds the minimum by at most this share: a proof, not an estimate.
    {run}
        It ends when the gap is down to ``tol``.
    n_active_ : int
        Rows of W that are not zero.
    lambda_ : float
        The weight of the penalty, in the unit of X.
    lambda_max_ : float
        The least lambda for which W = 0 is optimal.

    Examples
    --------
    >>> from keepers import RSR, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = RSR(20).fit(X)
    >>> selector.duality_gap_ < 1e-6
    True
    """

    looks_for = "features from which the others can be computed"

    why_not_sparse = "it works with centred columns, which have no zeros."
    parameter_rules: ClassVar = {
        "share": positive(1.0, hint="lambda as a share of the one where W = 0."),
        "tol": positive(),
    }

    share: float = 0.3
    tol: float = 1e-6
    max_iter: int = 1000

    def score_features(self, table: MemoryTable) -> FloatArray:
        self.refuse_past_memory(table, tables=6, of_side=4)
        values = np.ascontiguousarray(table.in_double() - table.moments.mean)
        with one_blas_thread_if_small(min(values.shape)):
            self.lambda_max_ = float(pulls_of_zero(values).max())
            self.lambda_ = self.share * self.lambda_max_
            result = solve_rsr(values, self.lambda_, tol=self.tol, max_iter=self.max_iter)
        norms = result.row_norms
        if np.abs(norms - 1.0).max() <= 1e-5:  # the identity, up to what the gap leaves open
            norms = np.ones_like(norms)
        active = norms > max(1e-5 * norms.max(), 1e-8)  # shorter rows are zero but for rounding
        self.store_run(
            result,
            f"After {len(result.objective)} steps the objective is proved to be within "
            f"{result.gap:.2g} of the optimum, not within tol={self.tol:g}. Raise "
            f"max_iter (now {self.max_iter}), share or tol.",
        )
        self.duality_gap_ = result.gap
        self.n_active_ = int(np.count_nonzero(active))
        if len(norms) > 1 and np.all(norms == 1.0):
            warn_caller(
                f"W = I is optimal with share={self.share:g}: every feature rebuilds itself, all "
                "scores are 1, and the features are ranked by variance. Raise share.",
                DataWarning,
            )
        elif result.converged and self.n_active_ < self.n_features_to_select_:
            warn_caller(
                f"{self.n_features_to_select_} features should be kept, but only {self.n_active_} "
                f"rows of W are not zero with share={self.share:g}; the others are ranked by how "
                "close they are to becoming active. Lower share.",
                DataWarning,
            )
        ceiling = 1e-12 * norms[active].min() if active.any() else 1.0
        return table.to_all_columns(np.where(active, norms, ceiling * result.pulls))
