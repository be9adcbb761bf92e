"""ColumnSubset and CUR: columns picked one after another to reconstruct the whole table.

Both pick a column of what is left of the table, A, and take it out with all that it explains:
q = a_j / |a_j|, A <- (I - qq')A. At first A = X, centred; n columns explain everything. With Q the
directions taken out, A = (I - QQ')X. It is never formed: X may be sparse or large.

**Greedy column subset selection** (Farahat, Ghodsi and Kamel, ICDM 2011) minimises |X - P_I X|^2,
P_I the projector on the picked columns I. It picks the column that explains most, the one with the
largest

    gain_j = |A'a_j|^2 / |a_j|^2 = f_j / g_j.

With w = A'q, a pick changes  f <- f - 2 w * (A'p) - |w|^2 w^2,  p = (I - qq') A w,  and
g <- g - w^2.

**CUR** picks the column with the largest leverage, its part in the k leading right singular vectors
(Mahoney and Drineas, PNAS 2009; recursively: Imbalzano et al., J. Chem. Phys. 2018),

    pi_j = sum_i (A'u_i)_j^2 / |A'u_i|^2,     u_i the k leading eigenvectors of AA'.

Where the k-th eigenvalue is multiple, rounding would choose among its vectors: all of them count
then, each with the same part, so that leverages still sum to k.

AA' is formed where X has few rows; else products with X replace it. Subtracting squares loses
digits. When a hundredth is left, everything is computed anew, in a new unit.
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray, IndexArray
from keepers.exceptions import ConvergenceWarning, DataWarning, warn_caller
from keepers.linalg.moments import ColumnMoments, row_blocks
from keepers.linalg.ordering import best_first, first_largest
from keepers.linalg.scatter import SMALL_SIDE, FactoredScatter, as_short_factor
from keepers.linalg.spectrum import principal_subspace
from keepers.methods.base import RankingSelector
from keepers.methods.memory import refuse_past_memory
from keepers.methods.parameters import FLAG, FeatureCount, check_component_count, whole
from keepers.methods.reading import MemoryTable

EPS = float(np.finfo(np.float64).eps)
# A column of which less than this share of its sum of squares is left is a combination of the
# picks: a millionth of its length. Rounding leaves 1e-14.
SPANNED = 1e-12
# Everything is computed anew when this share is left: two digits are lost at most.
LITTLE_LEFT = 0.01
# Up to this many rows all eigenvectors take less time than Lanczos steps.
DECOMPOSED = 150
MOST_RESTARTS = 100
# Eigenvalues closer than this share of the largest are one.
SAME_VALUE = 1e-8


@dataclass(frozen=True)
class PickedColumns:
    """The columns picked, in order, and what is left of the table after each of them."""

    order: IndexArray
    left: FloatArray
    """Share of the sum of squares that is not explained: before the first pick, after each."""
    values: FloatArray
    """Gains or leverages: when a column was picked, or at the end if it was not."""
    scores: FloatArray
    """Higher is better: falls along the order, and the columns that were not picked follow."""
    converged: bool = True

    @property
    def explained(self) -> FloatArray:
        """Share of the sum of squares that the first 1, 2, ... picks explain."""
        return 1.0 - self.left[1:]


class Residual:
    """A = (I - QQ')X, in a unit in which its sum of squares was 1 when it was last measured."""

    def __init__(self, X: FactoredScatter, most: int) -> None:
        """Nothing is taken out yet; at most ``most`` directions will be."""
        squares = X.moments.sum_of_squares
        self.X = X
        self._root = float(np.sqrt(np.sum(squares)))
        self.first = (np.sqrt(squares) / self._root) ** 2
        """Sum of squares of every column of X, in the present unit."""
        # Smaller shares of the whole have lost digits to the range of float64.
        self.squares = np.where(self.first > 1e-290, self.first, 0.0)
        """Sum of squares of every column of A; 0 for those that are spanned."""
        self._unit = 1.0
        self._basis = np.empty((most, X.n_rows))
        self._n_removed = 0

    @property
    def left(self) -> float:
        """The sum of squares of A, in the present unit."""
        return float(np.sum(self.squares))

    @property
    def share(self) -> float:
        """The sum of squares of A as a share of that of X."""
        return self._unit * self.left

    @property
    def noise(self) -> float:
        """Rounding in a product of A with a vector of length 1: that of X is the larger one."""
        return EPS / float(np.sqrt(self._unit))

    def take_out(self, column: int) -> tuple[FloatArray, FloatArray]:
        """Take out a column, and all that it explains; returns q and w = A'q."""
        q = self.columns(np.array([column]))
        q /= np.linalg.norm(q)
        w = self.back(q)[:, 0]
        self._basis[self._n_removed] = q[:, 0]
        self._n_removed += 1
        squares = self.squares - w**2
        squares[squares <= SPANNED * self.first] = 0.0
        squares[column] = 0.0
        self.squares = squares
        return q, w

    def remeasure(self) -> None:
        """Compute the sums of squares anew, and make their sum the unit."""
        for part in self._blocks():
            self.measured_columns(part)
        unit = self.left
        if unit > 0.0:
            self._root *= float(np.sqrt(unit))
            self.first, self.squares = self.first / unit, self.squares / unit
            self._unit *= unit

    def measured_columns(self, which: IndexArray) -> FloatArray:
        """Some of the columns of A, whose sums of squares are computed anew."""
        columns = self.columns(which)
        squares = np.sum(columns**2, axis=0)
        self.squares[which] = np.where(squares > SPANNED * self.first[which], squares, 0.0)
        return columns

    def project(self, block: FloatArray) -> FloatArray:
        """(I - QQ') times a block; twice, because the first time leaves rounding of the whole."""
        Q = self._basis[: self._n_removed]
        block = block - Q.T @ (Q @ block)
        return np.asarray(block - Q.T @ (Q @ block))

    def columns(self, which: IndexArray) -> FloatArray:
        return self.project(self.X.columns(which) / self._root)

    def times(self, V: FloatArray) -> FloatArray:
        return self.project(self.X.times(V) / self._root)

    def back(self, P: FloatArray) -> FloatArray:
        """A'P for P orthogonal to Q; spanned columns count as zero."""
        images = self.X.back(P) / self._root
        images[self.squares == 0.0] = 0.0
        return images

    def gram(self) -> FloatArray | None:
        """A A', if X has few rows."""
        if self.X.n_rows > SMALL_SIDE:
            return None
        if self._n_removed == 0:
            return self.X.sample_gram() / self._root**2
        gram = np.zeros((self.X.n_rows, self.X.n_rows))
        for part in self._blocks():
            columns = self.columns(part)
            gram += columns @ columns.T
        return gram

    def squared_images(self, gram: FloatArray | None) -> FloatArray:
        """|A'a|^2 for every column a of A; ``gram`` is A A', if it is known."""
        if self._n_removed == 0:
            known = None if gram is None else gram * self._root**2
            found = self.X.squared_columns(known) / self._root**4
            return np.where(self.squares > 0.0, found, 0.0)
        found = np.zeros(len(self.squares))
        for part in self._blocks():
            columns = self.columns(part)
            if gram is None:
                found[part] = np.sum(self.back(columns) ** 2, axis=0)
            else:
                found[part] = np.einsum("ij,ij->j", columns, gram @ columns)
        return found

    def _blocks(self) -> list[IndexArray]:
        active = np.flatnonzero(self.squares)
        return [active[part] for part in row_blocks(len(active), self.X.n_rows)]


def pick_columns(
    criterion: "Gains | Leverages", n_picks: int, recompute_every: int = 1
) -> PickedColumns:
    """Pick the largest value until ``n_picks`` columns are picked, or those explain everything.

    Values are computed anew after every ``recompute_every`` picks, and where those left have none.
    """
    residual = criterion.residual
    order: list[int] = []
    left, values = [1.0], criterion.values()
    picked = []
    while len(order) < n_picks and values.any():
        best = first_largest(values)
        order.append(best)
        picked.append(values[best])
        criterion.take_out(best)
        left.append(residual.share)
        values = np.where(residual.squares > 0.0, values, 0.0)
        is_due = len(order) % recompute_every == 0 or len(order) == n_picks
        if is_due or not values.any():
            if residual.left < LITTLE_LEFT:
                criterion.begin_anew()
            values = criterion.values()
    # What is left never grows, so these scores fall along the order, and the others follow.
    scores = left[-1] * np.minimum(values, 1.0)
    scores[order] = left[: len(order)]
    values[order] = picked
    return PickedColumns(np.array(order, dtype=np.intp), np.array(left), values, scores)


def solve_column_subset(X: FactoredScatter, n_picks: int) -> PickedColumns:
    """Pick ``n_picks`` columns, or fewer if they explain everything. ``values`` are the gains."""
    n_picks = min(n_picks, X.n_rows, X.size)
    found = pick_columns(Gains(Residual(X, n_picks)), n_picks)
    gains = found.scores.copy()
    gains[found.order] *= found.values[found.order]
    return replace(found, values=gains)


class Gains:
    """f of every column, kept up to date from pick to pick."""

    def __init__(self, residual: Residual) -> None:
        self.residual = residual
        self._form()

    def begin_anew(self) -> None:
        """Compute everything from A."""
        self.residual.remeasure()
        self._form()

    def _form(self) -> None:
        self._gram = self.residual.gram()
        self._f = self.residual.squared_images(self._gram)

    def values(self) -> FloatArray:
        """The share of what is left that every column would explain."""
        residual = self.residual
        gains = np.zeros(len(self._f))
        np.divide(self._f, residual.squares, out=gains, where=residual.squares > 0.0)
        return np.minimum(gains / (residual.left or 1.0), 1.0)

    def take_out(self, column: int) -> None:
        """Take a column out of A, and update f."""
        residual = self.residual
        q, w = residual.take_out(column)
        Aw = residual.times(w[:, np.newaxis]) if self._gram is None else self._gram @ q
        h = residual.back(residual.project(Aw))[:, 0]
        f = np.maximum(self._f - 2.0 * w * h - (w @ w) * w**2, 0.0)
        self._f = np.where(residual.squares > 0.0, f, 0.0)


def solve_cur(
    X: FactoredScatter, n_components: int, n_picks: int, recompute_every: int = 1
) -> PickedColumns:
    """Pick ``n_picks`` columns, or fewer if they explain everything. ``values`` are leverages.

    With ``recompute_every=0`` the leverages of the whole table rank, whatever they explain.
    """
    most = min(n_picks, X.n_rows, X.size)
    criterion = Leverages(Residual(X, most), n_components)
    if recompute_every:
        found = pick_columns(criterion, most, recompute_every)
    else:
        leverages, left = criterion.values(), [1.0]
        order = best_first(leverages, X.moments.sum_of_squares)[:n_picks]
        for column in order:
            if criterion.residual.squares[column] > 0.0:
                criterion.take_out(int(column))
            left.append(criterion.residual.share)
        found = PickedColumns(order, np.array(left), leverages, leverages)
    return replace(found, converged=criterion.converged)


class Leverages:
    """The leverages of the columns of A."""

    def __init__(self, residual: Residual, n_components: int) -> None:
        self.residual = residual
        self.converged = True
        self._n_components = n_components
        self._gram = residual.gram()

    def begin_anew(self) -> None:
        """Compute everything from A."""
        self.residual.remeasure()
        self._gram = self.residual.gram()

    def take_out(self, column: int) -> None:
        self.residual.take_out(column)

    def values(self) -> FloatArray:
        if self.residual.left == 0.0:
            return np.zeros(self.residual.X.size)
        values, squares = self._leading()
        if np.sum(squares[:, 0]) < values[0] / 2:
            # What is left of spanned columns is still in AA', and must not lead.
            self.begin_anew()
            if self.residual.left == 0.0:
                return np.zeros(self.residual.X.size)
            values, squares = self._leading()
        lengths = squares.sum(axis=0)
        # Eigenvalues below 1e-11 of the largest are rounding.
        real = lengths > np.maximum(values / 2, 1e-11 * values[0])
        parts = parts_of_pairs(values[real], self._n_components)
        return np.asarray(squares[:, real] / lengths[real] @ parts)

    def _leading(self) -> tuple[FloatArray, FloatArray]:
        """The leading eigenvalues of AA', largest first, and (A'u)^2 for their vectors u.

        One value more than wanted shows whether the last one is multiple: then AA' is decomposed,
        or a group of up to 30 is found.
        """
        n_rows, k = self.residual.X.n_rows, self._n_components
        n_found = k + 1
        if n_rows > max(DECOMPOSED, 10 * k):
            values, vectors = self._iterate(k + 1)
            n_found = int(np.count_nonzero(parts_of_pairs(values, k)))
        if n_found > k:
            is_small = self._gram is not None or n_rows <= max(k + 30, 10 * k)
            values, vectors = self._decompose() if is_small else self._iterate(k + 30)
            n_found = int(np.count_nonzero(parts_of_pairs(values, k)))
        return values[:n_found], self.residual.back(vectors[:, :n_found]) ** 2

    def _decompose(self) -> tuple[FloatArray, FloatArray]:
        values, vectors = np.linalg.eigh(self._product(np.eye(self.residual.X.n_rows)))
        return values[::-1], vectors[:, ::-1]

    def _iterate(self, count: int) -> tuple[FloatArray, FloatArray]:
        size = self.residual.X.n_rows
        operator = LinearOperator((size, size), matvec=self._product, dtype=np.float64)
        options = {
            "k": min(count, size - 1),
            "ncv": min(max(40, 2 * count), size),  # of 12, 20, 30 and 40 the fastest
            "v0": np.random.default_rng(0).standard_normal(size),  # the same digits every time
            "tol": max(1e-12, 50.0 * self.residual.noise),
        }
        try:
            values, vectors = eigsh(operator, maxiter=MOST_RESTARTS, **options)
        except ArpackNoConvergence:
            self.converged = False
            values, vectors = eigsh(operator, **{**options, "tol": 1e-2})
        order = np.argsort(-values, kind="stable")
        return values[order], vectors[:, order]

    def _product(self, block: FloatArray) -> FloatArray:
        """(I - QQ') AA' (I - QQ') times a block."""
        residual = self.residual
        block = residual.project(block.reshape(residual.X.n_rows, -1))
        if self._gram is None:
            return residual.times(residual.back(block))
        return residual.project(self._gram @ block)


def parts_of_pairs(values: FloatArray, width: int) -> FloatArray:
    """How much each eigenpair (largest first) counts if ``width`` are wanted in all.

    1 for those above a group of equal values that would be cut, the same part for each of the
    group, 0 for those below.

    Examples
    --------
    >>> parts_of_pairs(np.array([3.0, 2.0, 2.0, 1.0]), 2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    width = min(width, len(values))
    apart = values - values[width - 1]
    above, tied = apart > SAME_VALUE * values[0], np.abs(apart) <= SAME_VALUE * values[0]
    return np.where(above, 1.0, tied * (width - np.count_nonzero(above)) / np.count_nonzero(tied))


def best_shares(X: FactoredScatter, count: int) -> FloatArray:
    """Share of the sum of squares that 1, 2, ..., ``count`` directions explain at most: PCA.

    Right to about a thousandth if both sides of X exceed 3000, else exact.
    """
    if count == 0:
        return np.empty(0)
    side = X.small_side()
    if side is None:  # the same start gives the same digits every time
        values = principal_subspace(X, count, np.random.default_rng(0)).values
    else:
        last = len(side.matrix) - 1
        values = eigvalsh(side.matrix, subset_by_index=[last + 1 - count, last])[::-1]
    shares = np.maximum(values, 0.0) / float(np.sum(X.moments.sum_of_squares))
    return np.minimum(np.cumsum(shares), 1.0)


def read_columns(selector: Any, table: MemoryTable) -> FactoredScatter:
    """The columns of a table, centred unless the selector was given ``center=False``."""
    n_samples, n_features = table.X.shape
    is_sparse = sp.issparse(table.X)
    is_reduced = not is_sparse and n_features <= SMALL_SIDE
    n_rows = min(n_samples, n_features) if is_reduced else n_samples
    n_directions = min(selector.n_features_to_select_, n_samples, n_features)
    # The directions taken out, Lanczos vectors, AA' with its decomposition, and X.
    n_values = n_rows * (n_directions + 50.0) + 4.0 * min(n_rows, SMALL_SIDE) ** 2
    n_values += 3.0 * table.X.nnz if is_sparse else float(n_rows * n_features)
    what = f"{n_directions} directions of {n_rows} samples and a copy of the table"
    refuse_past_memory(type(selector).__name__, what, 8.0 * n_values)
    moments = table.moments
    if not selector.center:
        squares = moments.sum_of_squares + moments.n_samples * moments.mean**2
        moments = ColumnMoments(moments.n_samples, np.zeros(n_features), squares)
    return as_short_factor(table.X, moments)


def store_picks(selector: Any, X: FactoredScatter, picked: PickedColumns) -> None:
    """Store the shares that the picks, and the same number of directions, explain."""
    n_picked, n_wanted = len(picked.order), selector.n_features_to_select_
    selector.n_picked_ = n_picked
    selector.explained_share_ = picked.explained
    selector.best_share_ = np.maximum(best_shares(X, n_picked), picked.explained)
    if n_picked < n_wanted:
        warn_caller(
            f"{n_wanted} features are wanted, but {n_picked} explain all others. The others are "
            "combinations of these, and are ranked by variance.",
            DataWarning,
        )


@dataclass(eq=False, repr=False)
class ColumnSubset(RankingSelector):
    """The features from which all others are reconstructed best, picked one after another.

    Greedy column subset selection (Farahat, Ghodsi and Kamel, ICDM 2011): each pick explains as
    much as a single further feature can of what the picks before it leave of the table, in the
    sense of least squares::

        minimise  |X - P X|^2,   P the projector on the picked columns of X.

    It takes one of several similar features, and then features that resemble no other, noise among
    them: on a table with clusters most other methods keep more of the features that separate them.
    Use it to compress a table, to place sensors, or to drop columns that others determine. Features
    with large numbers win: standardise the table if its units differ. Nothing is random.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to pick, or which share of them; None picks half. Picks are nested:
        ``top(k)`` is that of a fit for k. For a larger k, fit again.
    center : bool, default=True
        Subtract the mean of every column first. Without it the picks reconstruct the values
        themselves, without an intercept. Constant columns are left out either way.
    {max_correlation}

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        For a pick, the share of the variance that was left to explain: 1 for the first. For the
        others, the share that they would explain as the next pick. Higher is better; 0 for features
        that the picks determine and for constant columns.
    {fitted}
    gains_ : array of shape (n_features,)
        Share of the variance that each pick added, and that each of the others would add as the
        next pick. It need not fall along the order.
    n_picked_ : int
        How many features were picked: fewer than wanted if those explain everything.
    explained_share_ : array of shape (``n_picked_``,)
        Share of the variance that the first 1, 2, ... picks explain (before ``max_correlation``).
    best_share_ : array of shape (``n_picked_``,)
        The share that the same number of principal components explains: the upper limit.

    Examples
    --------
    >>> from keepers import ColumnSubset, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = ColumnSubset(20).fit(X)
    >>> selector.transform(X).shape
    (83, 20)
    >>> f"{selector.explained_share_[-1]:.3f} of {selector.best_share_[-1]:.3f}"
    '0.691 of 0.768'
    """

    looks_for = "features from which the others can be computed"
    score_means = (
        "the share of the variance that was left to explain when the feature was picked: 1 "
        "for the first; of the others, what they would add"
    )

    depends_on_k = True
    picks_one_by_one = True
    why_not_dask = "it reads the whole table again for every pick."
    parameter_rules: ClassVar = {"center": FLAG}

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    center: bool = True
    max_correlation: float | None = None

    def score_features(self, table: MemoryTable) -> FloatArray:
        with one_blas_thread_if_small(min(table.X.shape)):
            X = read_columns(self, table)
            picked = solve_column_subset(X, self.n_features_to_select_)
            store_picks(self, X, picked)
        self.gains_ = table.to_all_columns(picked.values)
        return table.to_all_columns(picked.scores)


@dataclass(eq=False, repr=False)
class CUR(RankingSelector):
    """The features with the largest part in the leading singular vectors, picked one by one.

    The leverage of a feature is its part in the k leading right singular vectors of the centred
    table, ``pi_j = sum of v_ij^2 over i`` (Mahoney and Drineas, PNAS 2009). Picked is the feature
    with the largest leverage; it and all it explains are taken out of the table, and leverages are
    computed anew from the rest (Imbalzano et al., J. Chem. Phys. 2018). The picks are the C of a
    CUR decomposition. Nothing is random.

    Like `ColumnSubset` it takes one of several similar features. With ``recompute_every=0``
    features are ranked by their leverage in the whole table, which keeps similar features: the
    limit of `SPCAFS` as gamma goes to 0. Features with large numbers win: standardise the table if
    its units differ.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to pick, or which share of them; None picks half. Picks are nested, as in
        `ColumnSubset`.
    n_components : int, default=1
        The number k of singular vectors.
    recompute_every : int, default=1
        Leverages are computed anew after this number of picks; 0 ranks by the first ones.
    center : bool, default=True
        Subtract the mean of every column first. Constant columns are left out either way.
    {max_correlation}

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        For a pick, the share of the variance that was left to explain: 1 for the first. For the
        others, their leverage times the share left at the end. Higher is better. With
        ``recompute_every=0`` the leverages.
    {fitted}
    leverage_ : array of shape (n_features,)
        The leverage of each pick when it was picked, and the leverage of the others at the end.
    n_picked_ : int
        How many features were picked: fewer than wanted if those explain everything.
    explained_share_ : array of shape (``n_picked_``,)
        Share of the variance that the first 1, 2, ... picks explain, as in `ColumnSubset`.
    best_share_ : array of shape (``n_picked_``,)
        The share that the same number of principal components explains.
    converged_ : bool
        Whether all singular vectors were found to rounding.

    Examples
    --------
    >>> from keepers import CUR, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = CUR(20).fit(X)
    >>> selector.transform(X).shape
    (83, 20)
    >>> f"{selector.explained_share_[-1]:.3f} of {selector.best_share_[-1]:.3f}"
    '0.685 of 0.768'
    """

    looks_for = "features from which the others can be computed"
    score_means = (
        "the share of the variance that was left to explain when the feature was picked: 1 "
        "for the first; of the others, what they would add"
    )

    picks_one_by_one = True
    why_not_dask = "it reads the whole table again for every pick."
    parameter_rules: ClassVar = {
        "n_components": whole(),
        "recompute_every": whole(0),
        "center": FLAG,
    }

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_components: int = 1
    recompute_every: int = 1
    center: bool = True
    max_correlation: float | None = None

    @property
    def depends_on_k(self) -> bool:  # type: ignore[override]
        """True for picks; leverages of the whole table do not depend on k."""
        return self.recompute_every != 0

    def score_features(self, table: MemoryTable) -> FloatArray:
        check_component_count(self.n_components, table.n_samples, len(table.usable))
        n_picks, k = self.n_features_to_select_, int(self.n_components)
        with one_blas_thread_if_small(min(table.X.shape)):
            X = read_columns(self, table)
            picked = solve_cur(X, k, min(n_picks, X.size), int(self.recompute_every))
            store_picks(self, X, picked)
        self.leverage_ = table.to_all_columns(picked.values)
        self.converged_ = picked.converged
        if not picked.converged:
            warn_caller(
                "The singular vectors did not converge: the leading singular values are too close "
                "to each other. The picks are arbitrary from there on.",
                ConvergenceWarning,
            )
        return table.to_all_columns(picked.scores)
