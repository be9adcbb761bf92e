"""Upper bounds on the variance that k features can hold in m components, and what they prove.

The problem is to choose k features I with the largest F(I), the sum of the m largest eigenvalues of
S_II; equivalently ``max Tr(W'SW)`` over ``W'W = I`` with m columns and at most k non-zero rows. It
is NP-hard, but good bounds are cheap.

**From the spectrum.** With S = V diag(lambda) V' and ``t_j(mu) = sum_i max(lambda_i - mu, 0)
v_ji^2``, for every mu >= 0::

    OPT <= m mu + (sum of the k largest t_j(mu)).

Proof: Tr(W'SW) = m mu + Tr(W'(S - mu I)W) <= m mu + Tr(W'(S - mu I)_+ W), and the last is at most
the sum of t_j over the non-zero rows of W, since W_I W_I' <= I. At mu = 0 these are the k largest
variances, for k = d the least of them over mu is the value of PCA, and it is exact if the rank of S
is at most m. It is convex in mu, and every mu gives a valid bound.

**From a part of the spectrum.** With K leading eigenpairs and the diagonal of S, let ``e_j = s_jj -
sum_{i<=K} lambda_i v_ji^2``. The other eigenvalues lie in [0, edge], edge = lambda_{K+1}, where
(lambda - mu)_+ <= lambda (1 - mu/edge)_+. Hence t_j(mu) is at most its sum over the K pairs plus
``e_j (1 - mu/edge)_+``.

**From any block.** For every V the matrix N = F (V'F)^-1 F', F = S V, leaves S - N positive
semi-definite, with diagonal e_j >= 0. As Tr(W'SW) = Tr(W'NW) + Tr(W'(S - N)W), the bound holds with
the eigenpairs of N and ``t_j + e_j`` in the place of t_j, however poor V is.

**Features.** Let U be such a bound, tau and tau' the k-th and the (k+1)-th largest term, and v a
value that some set reaches. A set with feature j has at most U - (tau - t_j), one without i at most
U - (t_i - tau'): where that is below v, j is in no best set, and i is in every one.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from keepers._protocols import BoolArray, FloatArray, IndexArray, SmallSide, SymmetricOperator
from keepers.linalg.spectrum import pairs_above
from keepers.solvers.row_sparse import RowSparseResult, improve_by_projection
from keepers.solvers.set_limit import SetLimit

# Added to every bound, as a share of m lambda_1. Eigenvalues of matrices formed in double precision
# are off by about 1e-14 of the largest, those formed in single precision by about 1e-6.
DOUBLE_ROUNDING = 1e-12
SINGLE_ROUNDING = 1e-5
# Eigenvalues below this share of the largest count as zero; see `pairs_above`.
_ROUNDING_SHARE = 1e-11
# Eigenvectors lifted beyond the components; the best mu is seldom below their eigenvalues.
_MORE_PAIRS = 50
# Up to so many numbers all eigenvectors are lifted.
_CHEAP = 1 << 20
# Without a small side: products made, and columns of a block beyond the components.
_N_BLOCKS, _OVERSAMPLING = 4, 8
# The memory of the blocks, in numbers; past it there are fewer of them.
_MOST_NUMBERS = 1 << 27
_MOST_STEPS = 60
_FLAT = 1e-13


@dataclass(frozen=True)
class Proofs:
    """Features about which it is known whether they are in the best sets."""

    inside: BoolArray
    """In every best set."""
    outside: BoolArray
    """In no best set."""


@dataclass(frozen=True)
class Restriction:
    """The features among which a set is chosen, and those that it has to contain."""

    allowed: BoolArray
    forced: BoolArray

    @classmethod
    def to_all(cls, size: int) -> "Restriction":
        """None."""
        return cls(np.ones(size, dtype=bool), np.zeros(size, dtype=bool))

    @property
    def free(self) -> IndexArray:
        """Features that may or may not be chosen."""
        return np.flatnonzero(self.allowed & ~self.forced)

    def choose(self, scores: FloatArray, n_features: int) -> IndexArray:
        """The set of so many features with the largest sum of scores; ties by index."""
        rows = np.flatnonzero(self.allowed)
        return rows[self._limit(rows, n_features).choose(scores[rows])]

    def improve(
        self, operator: SymmetricOperator, features: IndexArray, n_components: int
    ) -> RowSparseResult:
        """A set that holds no less, by steps of projection."""
        rows = np.flatnonzero(self.allowed)
        part = operator if len(rows) == operator.size else operator.restrict(rows)
        found = improve_by_projection(
            part,
            np.searchsorted(rows, features),
            n_components,
            limit=self._limit(rows, len(features)),
        )
        return replace(found, features=rows[found.features])

    def _limit(self, rows: IndexArray, n_features: int) -> SetLimit:
        return SetLimit(len(rows), float(n_features), self.forced[rows])


@dataclass(frozen=True)
class TermBound:
    """A bound that is a constant, plus one term for each of the k features of a set."""

    value: float
    """The constant, the k largest terms and the allowance for rounding."""
    terms: FloatArray
    """The term of every feature."""
    n_features: int
    """k."""
    rounding: float
    """The allowance."""
    restriction: Restriction

    def proofs(self, reached: float) -> Proofs:
        """What follows from a value that some set of the restricted problem reaches.

        Strictly, with a margin of twice the allowance for rounding: of features that can replace
        each other none is proved to be in every best set.
        """
        inside = self.restriction.forced.copy()
        outside = ~self.restriction.allowed
        free = self.restriction.free
        n_open = self.n_features - int(inside.sum())
        if n_open <= 0:
            outside[free] = True
        elif n_open >= len(free):
            inside[free] = True
        else:
            t = self.terms[free]
            next_best, edge = np.partition(t, (len(t) - n_open - 1, len(t) - n_open))[
                [len(t) - n_open - 1, len(t) - n_open]
            ]
            slack = max(self.value - reached, 0.0) + 2.0 * self.rounding
            outside[free[edge - t > slack]] = True
            inside[free[t - next_best > slack]] = True
        return Proofs(inside, outside)


@dataclass(frozen=True)
class SpectralBound:
    """The bound from (a part of) the spectrum of S, for every k and m.

    Bounds exceed the formula by ``precision * m * lambda_1``, so that they are not below the
    optimum by rounding.
    """

    values: FloatArray
    """Eigenvalues of S, or of a part N of it, largest first."""
    squares: FloatArray
    """Squared entries of their eigenvectors, features x values."""
    rest: FloatArray
    """Diagonal of what they leave of S, >= 0."""
    edge: float | None
    """The other eigenvalues of S are at most this; None if these are eigenpairs of a part only."""
    variances: FloatArray
    """The diagonal of S."""
    precision: float = DOUBLE_ROUNDING
    small_side: int | None = None
    """Rows of the small matrix that the pairs come from, if they do."""

    @classmethod
    def from_pairs(
        cls,
        values: FloatArray,
        vectors: FloatArray,
        variances: FloatArray,
        edge: float,
        precision: float = DOUBLE_ROUNDING,
    ) -> "SpectralBound":
        """From eigenpairs of S, largest first, the others being at most ``edge``."""
        squares = np.square(vectors)
        rest = np.maximum(variances - squares @ values, 0.0)
        return cls(values, squares, rest, max(edge, 0.0), variances, precision)

    @classmethod
    def from_block(
        cls,
        vectors: FloatArray,
        images: FloatArray,
        variances: FloatArray,
        precision: float = DOUBLE_ROUNDING,
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
        kept = values > _ROUNDING_SHARE * values.max(initial=0.0)
        squares = np.square((factor @ P[:, kept]) / np.sqrt(values[kept]))
        rest = np.maximum(variances - squares @ values[kept], 0.0)
        return cls(values[kept], squares, rest, None, variances, precision**0.75)

    @property
    def size(self) -> int:
        """Number of features, d."""
        return len(self.variances)

    def rounding(self, n_components: int) -> float:
        """The allowance in bounds for so many components."""
        largest = float(self.values[0]) if len(self.values) else float(self.variances.max())
        return self.precision * n_components * largest

    def terms(self, mu: float) -> FloatArray:
        """t_j(mu) of every feature, or what bounds it."""
        above = self.values > mu
        n_above = int(np.count_nonzero(above))
        found = self.squares[:, :n_above] @ (self.values[:n_above] - mu)
        share = self._share_of_rest(mu)
        return found + share * self.rest if share > 0.0 else found

    def _share_of_rest(self, mu: float) -> float:
        if self.edge is None or mu <= 0.0:
            return 1.0
        return 1.0 - mu / self.edge if mu < self.edge else 0.0

    def leading_terms(self, n_components: int) -> FloatArray:
        """sum_{i<=m} lambda_i v_ji^2: by these a set of features is begun (Tian et al. 2020)."""
        return np.asarray(self.squares[:, :n_components] @ self.values[:n_components])

    def bound(
        self, n_features: int, n_components: int, restriction: Restriction | None = None
    ) -> TermBound:
        """The least bound over mu on sets of ``n_features``.

        With a ``restriction``, on those sets that it admits.
        """
        restriction = restriction or Restriction.to_all(self.size)
        search = _Search(self, n_features, n_components, restriction)
        mu = search.run()
        terms = np.maximum(self.terms(mu), 0.0)
        if mu == 0.0:
            terms = self.variances
        value = n_components * mu + search.chosen_sum(terms)
        rounding = self.rounding(n_components)
        return TermBound(value + rounding, terms, n_features, rounding, restriction)


class _Search:
    """The least of a convex, piecewise linear function of mu, from values and slopes.

    Tangents from both sides meet below the function; where they meet is looked at next, or the
    middle if that does not bring the ends together.
    """

    def __init__(
        self, of: SpectralBound, n_features: int, n_components: int, restriction: Restriction
    ) -> None:
        self._of, self._m = of, n_components
        self._forced = np.flatnonzero(restriction.forced & restriction.allowed)
        self._free = restriction.free
        self._n_open = min(n_features - len(self._forced), len(self._free))

    def run(self) -> float:
        """The best mu."""
        largest = float(self._of.values[0]) if len(self._of.values) else 0.0
        low, high = (0.0, *self._at(0.0)), (largest, *self._at(largest))
        best = min(low, high, key=lambda at: at[1])
        flat = _FLAT * max(abs(best[1]), 1e-300)
        for step in range(_MOST_STEPS):
            (a, fa, ga), (b, fb, gb) = low, high
            if ga >= 0.0 or gb <= 0.0 or b - a <= _FLAT * largest:
                break
            meet = (fa - fb + gb * b - ga * a) / (gb - ga)
            if best[1] - (fa + ga * (meet - a)) <= flat:
                break
            inside = a < meet < b and step % 3 < 2
            mu = meet if inside else (a + b) / 2.0
            found = (mu, *self._at(mu))
            best = min(best, found, key=lambda at: at[1])
            if found[2] < 0.0:
                low = found
            else:
                high = found
        return best[0]

    def _chosen(self, terms: FloatArray) -> IndexArray:
        """The features that the bound is made of."""
        open_terms = terms[self._free]
        n_left = len(open_terms) - self._n_open
        best = self._free
        if n_left > 0:
            places = np.argpartition(open_terms, min(n_left, len(best) - 1))
            best = best[places[n_left:]]
        return np.concatenate([self._forced, best])

    def chosen_sum(self, terms: FloatArray) -> float:
        """The sum of their terms."""
        return float(terms[self._chosen(terms)].sum())

    def _at(self, mu: float) -> tuple[float, float]:
        """The bound, and a slope of it to the right of mu."""
        of = self._of
        terms = of.terms(mu)
        chosen = self._chosen(terms)
        n_above = int(np.count_nonzero(of.values > mu))
        slope = self._m - float(of.squares[chosen, :n_above].sum())
        if of.edge is not None and mu < of.edge:
            slope -= float(of.rest[chosen].sum()) / of.edge
        return self._m * mu + float(terms[chosen].sum()), slope


def spectral_bound(
    operator: SymmetricOperator,
    n_components: int,
    rng: np.random.Generator,
    precision: float = DOUBLE_ROUNDING,
) -> SpectralBound:
    """The bound for ``n_components`` (and fewer, and a few more) of an operator.

    From its small side, where it has one, exactly; else from a block Krylov space, a few products.
    """
    side = operator.small_side()
    variances = np.asarray(operator.diagonal(), dtype=np.float64)
    if side is not None:
        return _from_small_side(side, variances, n_components, precision)
    vectors, images = _krylov_block(operator, n_components + _OVERSAMPLING, rng)
    return SpectralBound.from_block(vectors, images, variances, precision)


def _from_small_side(
    side: SmallSide, variances: FloatArray, n_components: int, precision: float
) -> SpectralBound:
    size = len(side.matrix)
    wanted = min(n_components + _MORE_PAIRS, size)
    if size * len(variances) <= _CHEAP:
        wanted = size
    values, vectors = _pairs(side.matrix, min(wanted + 1, size))
    edge = _ROUNDING_SHARE * float(values[0]) if len(values) <= wanted else float(values[wanted])
    values, vectors = values[:wanted], vectors[:, :wanted]
    lifted = side.lift(np.ascontiguousarray(vectors), values)
    found = SpectralBound.from_pairs(values, lifted, variances, edge, precision)
    return replace(found, small_side=size)


def _pairs(matrix: FloatArray, width: int) -> tuple[FloatArray, FloatArray]:
    """The leading eigenpairs, largest first, without those that are rounding."""
    if width < len(matrix):
        beyond = 2.0 * float(np.trace(matrix))  # exactly so many are wanted
        return pairs_above(matrix, beyond, rank=len(matrix), at_least=width, at_most=width)
    values, vectors = eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1]
    n_real = max(1, int(np.sum(values > _ROUNDING_SHARE * values[0])))
    return values[:n_real], vectors[:, :n_real]


def _krylov_block(
    operator: SymmetricOperator, width: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """An orthonormal basis of [V, SV, S^2 V, ...] for a random V, and its images."""
    size = operator.size
    width = min(width, size)
    n_blocks = int(np.clip(_MOST_NUMBERS // (2 * size * width), 1, _N_BLOCKS))
    n_blocks = min(n_blocks, -(-size // width))
    block = operator.matmat(rng.standard_normal((size, width)))
    basis = np.empty((size, 0))
    images = np.empty((size, 0))
    for _ in range(n_blocks):
        for _ in range(2):  # once leaves rounding of an almost invariant block
            block = np.linalg.qr(block - basis @ (basis.T @ block))[0]
        block = block[:, : size - basis.shape[1]]
        image = operator.matmat(block)
        basis, images = np.hstack([basis, block]), np.hstack([images, image])
        block = image
    return basis, images


def row_sum_bound(
    matrix: FloatArray, n_features: int, restriction: Restriction | None = None
) -> float:
    """For one component: the largest sum of k sizes in a row of S, over rows that may be chosen.

    The largest eigenvalue of S_II is at most the largest row sum of |S_II|.
    """
    sizes = np.abs(matrix)
    restriction = restriction or Restriction.to_all(len(matrix))
    forced, free = np.flatnonzero(restriction.forced), restriction.free
    n_open = min(n_features - len(forced), len(free))
    of_forced = sizes[:, forced].sum(axis=1)
    best = -np.inf
    if len(forced):
        rows = sizes[np.ix_(forced, free)]
        best = float((of_forced[forced] + _largest_sum(rows, n_open)).max())
    if n_open > 0:
        rows = sizes[np.ix_(free, free)].copy()
        own = rows.diagonal().copy()
        np.fill_diagonal(rows, -np.inf)
        total = of_forced[free] + own + _largest_sum(rows, n_open - 1)
        best = max(best, float(total.max()))
    return best * (1.0 + DOUBLE_ROUNDING)


def _largest_sum(rows: FloatArray, count: int) -> FloatArray:
    """The sum of the ``count`` largest entries of every row."""
    if count <= 0:
        return np.zeros(len(rows))
    n_left = rows.shape[1] - count
    if n_left > 0:
        rows = np.partition(rows, n_left, axis=1)[:, n_left:]
    return np.asarray(rows.sum(axis=1))
