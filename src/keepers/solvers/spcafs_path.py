"""The solutions of SPCAFS along gamma, each started from the one before.

The path runs from where PCA is recovered, the weakest penalty, to where exactly m rows are left.
Both ends are found from the data:

* A weak penalty takes from the variance a share that grows like gamma^2, so two or three short
  runs tell where the share is a thousandth.
* At the strong end W is a rotation of m unit vectors, on a set A of m features. For p = 1 it stays
  stationary as long as no other row gains from leaving zero: gamma >= 2 max |S_jA| over the rows j
  outside A. With the m largest variances for A this says where the end is to be expected. The
  points are spaced for it; where m rows are left is seen on the way.

What makes a point cheap: rows that are inactive in the solution before it are out of the work,
and one product with all of S shows whether any of them becomes active; the first weights are
extrapolated from the last two points.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers.linalg.subspace import Subspace, orthonormal_subspace
from keepers.solvers.pace import Pace
from keepers.solvers.penalty import RowPenalty
from keepers.solvers.spcafs import BlockRun

# PCA counts as recovered where the components explain this share of what PCA's do.
RECOVERED = 0.999
# The weak end is aimed at a little below it.
AIM = 0.8
TRIAL_STEPS = 4
MOST_TRIALS = 8
# The end is mostly found at 1.4 to 2.6 times 2 max |S_jA|; points left over go where rows vanish.
EXPECTED_END = 2.0
SMALLEST_END = 1e-3
BEYOND = 1.25
# Nothing but exact copies of a column share a row's place past this multiple of the largest
# eigenvalue: two equal rows cost 0.41 gamma more than one, and save its variance.
LARGEST_SHARE = 4.0
# A share of inactive rows that is worth a copy of the data without them.
WORTH_A_COPY = 0.15
STEPS_BETWEEN_COPIES = 5
# A row vanishes if its squared norm is below this share of the mean and its pull below this share
# of gamma. (With 0.95, rows that stay active in a single fit were dropped too: a tenth of them.)
SMALL = 1e-3
CERTAIN = 0.9
LONGEST_LOG_STEP = 3.0


@dataclass(frozen=True)
class PathPoint:
    """Where the iteration ended for one gamma."""

    gamma: float
    row_norms: FloatArray
    n_active: int
    objective: float
    trace: float
    """Tr(W'SW)."""
    n_iter: int
    converged: bool


class WarmRun(BlockRun):
    """From the solution for a slightly weaker penalty: no step is plain, inactive rows stay out."""

    def __init__(
        self,
        operator: SymmetricOperator,
        start: Subspace,
        penalty: RowPenalty,
        tol: float,
        expected: FloatArray | None = None,
    ) -> None:
        super().__init__(operator, start, penalty, tol)
        self.plain_steps = self.careful_steps = 0
        # There is no plateau to be crossed; longer steps would drive equal columns apart.
        self.pace = Pace(penalty, only_extrapolates=True)
        self._drop_inactive()
        if expected is not None and penalty.p == 1.0:
            # log(|w_i|^2 + eps) where the path seems to lead; turned down if it raises f.
            self.proposal = expected if self.rows is None else expected[self.rows]

    def run(self, max_iter: int) -> None:
        """Until f stops falling, and no inactive row becomes active."""
        for step in range(1, max_iter + 1):
            self.step()
            if self.calm and not self.on_all_rows:
                self.check_optimality()
            if self.finished:
                break
            if step % STEPS_BETWEEN_COPIES == 0:
                self._drop_inactive()
        if not self.on_all_rows:
            self.restore_rows()
        self._zero_inactive()

    def _drop_inactive(self) -> None:
        inactive = self._inactive()
        if inactive.sum() >= WORTH_A_COPY * len(inactive):
            self.restrict_to(np.flatnonzero(~inactive), self._slack)

    @property
    def _slack(self) -> float:
        """What f may rise by: next to nothing, so that a path keeps the rows of single fits."""
        return self.tol * max(abs(self.history[-1]), self.space.trace / 100)

    def _inactive(self) -> BoolArray:
        """Rows that are inactive, and small ones that will be.

        An active row, for p = 1, is pulled by |2 (SW - W Lambda)_j| = gamma, with the multiplier
        Lambda = W'(S - gamma diag(g))W of W'W = I. One that is pulled by less vanishes, though it
        may take long.
        """
        squared_norms = self.space.squared_row_norms
        inactive = self.penalty.inactive(squared_norms)
        if self.penalty.p < 1.0:
            return inactive
        W, SW = self.space.vectors, self.space.images
        weights = self.penalty.weights(squared_norms)
        multiplier = W.T @ SW - W.T @ (weights[:, np.newaxis] * W)
        pull = 2.0 * np.linalg.norm(SW - W @ multiplier, axis=1)
        small = squared_norms < SMALL * squared_norms.sum() / self.everything.size
        return np.asarray(inactive | (small & (pull < CERTAIN * self.penalty.gamma)))

    def _zero_inactive(self) -> None:
        """Set inactive rows to zero, if that does not raise f."""
        inactive = self._inactive()
        if not np.any(inactive & ~self.penalty.inactive(self.space.squared_row_norms)):
            return
        space = orthonormal_subspace(
            self.everything, np.where(inactive[:, np.newaxis], 0.0, self.space.vectors)
        )
        after = self.objective(space, self.penalty)
        if after <= self.history[-1] + self._slack:
            self.space = space
            self.history[-1] = after

    def point(self) -> PathPoint:
        """Freeze, without the block."""
        squared_norms = self.space.squared_row_norms
        return PathPoint(
            gamma=self.penalty.gamma,
            row_norms=np.sqrt(squared_norms),
            n_active=self.penalty.count_active(squared_norms),
            objective=float(self.history[-1]),
            trace=self.space.trace,
            n_iter=self.n_iter - 1,
            converged=self.finished,
        )


class _Follower:
    """Walks along gamma; what it has seen tells it where the next solution should lie."""

    def __init__(
        self,
        operator: SymmetricOperator,
        pca: Subspace,
        penalty: RowPenalty,
        max_iter: int,
        tol: float,
    ) -> None:
        self.operator = operator
        self.penalty = penalty
        self.max_iter = max_iter
        self.tol = tol
        self.space = pca
        self._seen: list[tuple[float, FloatArray]] = []

    def go_to(self, gamma: float) -> PathPoint:
        """Solve at gamma from where it stands, and stand there."""
        run = WarmRun(
            self.operator,
            self.space,
            replace(self.penalty, gamma=gamma),
            self.tol,
            self._expected_log_norms(gamma),
        )
        run.run(self.max_iter)
        self.space = run.space
        log_norms = np.log(run.space.squared_row_norms + self.penalty.eps)
        self._seen = [*self._seen[-1:], (np.log(gamma), log_norms)]
        return run.point()

    def start_from(self, space: Subspace) -> None:
        """Stand somewhere else."""
        self.space = space
        self._seen = []

    def _expected_log_norms(self, gamma: float) -> FloatArray | None:
        """Log norms, as straight lines over log(gamma) through the last two points."""
        if len(self._seen) < 2:
            return None
        (before, earlier), (now, later) = self._seen
        if now <= before:
            return None
        ahead = min((np.log(gamma) - now) / (now - before), 1.0)
        step = np.clip(ahead * (later - earlier), -LONGEST_LOG_STEP, LONGEST_LOG_STEP)
        return np.clip(later + step, np.log(self.penalty.eps), 0.0)


def follow_path(
    operator: SymmetricOperator,
    pca: Subspace,
    penalty: RowPenalty,
    gammas: FloatArray,
    *,
    max_iter: int,
    tol: float,
) -> Iterator[PathPoint]:
    """Solve for each gamma in turn, in rising order, from the solution before it."""
    follower = _Follower(operator, pca, penalty, max_iter, tol)
    for gamma in gammas:
        yield follower.go_to(float(gamma))


def find_path(
    operator: SymmetricOperator,
    pca: Subspace,
    penalty: RowPenalty,
    n_points: int,
    *,
    max_iter: int,
    tol: float,
) -> Iterator[PathPoint]:
    """``n_points`` from where PCA is recovered to where m rows are left.

    They come in rising order of gamma up to the first with m rows; what is left of ``n_points``
    then goes between the two with the largest fall in active rows, again and again.
    """
    width = pca.vectors.shape[1]
    follower = _Follower(operator, pca, penalty, max_iter, tol)
    expected_end = EXPECTED_END * _smallest_gamma_at_m_rows(operator, width)
    expected_end = max(expected_end, SMALLEST_END * float(pca.values[0]))
    point = _where_pca_is_recovered(follower, pca, expected_end)
    starts = [_ActiveRows.of(follower.space, penalty)]
    points = [point]
    yield point
    along = np.geomspace(point.gamma, max(expected_end, 10.0 * point.gamma), n_points)
    for gamma in along[1:]:
        point = follower.go_to(float(gamma))
        while gamma == along[-1] and point.n_active > width and _may_rise(point.gamma, pca):
            point = follower.go_to(BEYOND * point.gamma)
        points.append(point)
        starts.append(_ActiveRows.of(follower.space, penalty))
        yield point
        if point.n_active <= width < points[0].n_active:
            break
    while len(points) < n_points:
        place = _largest_fall(points)
        follower.start_from(starts[place].subspace(operator))
        point = follower.go_to(float(np.sqrt(points[place].gamma * points[place + 1].gamma)))
        points.insert(place + 1, point)
        starts.insert(place + 1, _ActiveRows.of(follower.space, penalty))
        yield point


def _may_rise(gamma: float, pca: Subspace) -> bool:
    return gamma < LARGEST_SHARE * float(pca.values[0])


def _largest_fall(points: list[PathPoint]) -> int:
    """Where the number of active rows falls by the largest factor; among equals, the widest gap."""
    counts = np.log([point.n_active for point in points])
    gaps = np.diff(np.log([point.gamma for point in points]))
    # A tenth of the logarithmic gap counts too: points must not pile up at one jump.
    return int(np.argmax(np.minimum(-np.diff(counts), 4.0 * gaps) + 0.1 * gaps))


def _where_pca_is_recovered(follower: _Follower, pca: Subspace, expected_end: float) -> PathPoint:
    """The weak end, from the law that the variance given up grows like gamma^2."""
    allowed = 1.0 - RECOVERED
    gamma = expected_end / 30.0
    for _ in range(MOST_TRIALS):
        trial = WarmRun(
            follower.operator, pca, replace(follower.penalty, gamma=gamma), follower.tol
        )
        trial.run(TRIAL_STEPS)
        lost = 1.0 - trial.space.trace / pca.trace
        if AIM**3 * allowed <= lost <= AIM * allowed:
            break
        gamma *= float(np.clip(np.sqrt(AIM**2 * allowed / max(lost, 1e-300)), 1e-2, 10.0))
        if gamma >= expected_end:  # hardly anything is lost anywhere
            gamma = expected_end / 10.0
            break
    for _ in range(MOST_TRIALS):
        follower.start_from(pca)
        point = follower.go_to(gamma)
        if point.trace >= RECOVERED * pca.trace:
            break
        gamma *= AIM
    return point


def _smallest_gamma_at_m_rows(operator: SymmetricOperator, width: int) -> float:
    """2 max |S_jA| for the m features A of largest variance."""
    largest = np.argsort(-operator.diagonal(), kind="stable")[:width]
    units = np.zeros((operator.size, width))
    units[largest, np.arange(width)] = 1.0
    pull = np.linalg.norm(operator.matmat(units), axis=1)
    pull[largest] = 0.0
    return 2.0 * float(pull.max())


@dataclass(frozen=True)
class _ActiveRows:
    """A solution without its zeros, kept to start from again."""

    rows: IndexArray
    vectors: FloatArray

    @classmethod
    def of(cls, space: Subspace, penalty: RowPenalty) -> "_ActiveRows":
        rows = np.flatnonzero(~penalty.inactive(space.squared_row_norms))
        return cls(rows, space.vectors[rows].astype(np.float32))

    def subspace(self, operator: SymmetricOperator) -> Subspace:
        vectors = np.zeros((operator.size, self.vectors.shape[1]))
        vectors[self.rows] = self.vectors
        return orthonormal_subspace(operator, vectors)
