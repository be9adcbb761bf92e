"""The k features that hold the most variance, searched until that is proved."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import BoolArray, IndexArray, SymmetricOperator
from keepers.data.replacing import whole_file
from keepers.exceptions import ParameterError, shorten
from keepers.linalg.low_rank import LowRankScatter
from keepers.linalg.moments import ColumnMoments
from keepers.linalg.scatter import SMALL_SIDE, DenseScatter, as_scatter
from keepers.linalg.sketch import TableSketch
from keepers.selectors.any_table import ReadTable, read_any_table
from keepers.selectors.checkpoint import SAME, check_checkpoint_path
from keepers.selectors.control import check_control, read_control
from keepers.selectors.fitted_table import FittedTable, Table
from keepers.selectors.parameters import (
    Seed,
    check_callback,
    check_count,
    check_positive,
    check_seed,
    is_whole,
)
from keepers.selectors.saved_passes import read_arrays
from keepers.solvers.branch_and_bound import FeatureSearch, SearchProgress, SearchState
from keepers.solvers.tight_bound import factor_columns
from keepers.solvers.variance_bounds import (
    DOUBLE_ROUNDING,
    SINGLE_ROUNDING,
    Restriction,
    spectral_bound,
)

LAYOUT = 1
_KIND = "keepers.solve_exactly"
_WAY_OUT = "Delete the file, or give another name."
# Up to so many features are branched on: each node decomposes a matrix of their scatter.
MOST_SEARCHED = 20_000


@dataclass(frozen=True, eq=False)
class ExactSelection:
    """The best set of features found, and how near it is proved to be to the best of all."""

    features: IndexArray
    """The set, ascending."""
    value: float
    """Variance that it holds in the components (divisor n)."""
    upper_bound: float
    """No set of as many features holds more."""
    proved: bool
    """Whether the search ended: no set holds more, but for a share of 1e-10."""
    n_components: int
    n_nodes: int
    """Nodes of the search tree that were looked at."""
    seconds: float
    """Time of the search, that before an interruption included."""
    names: Any = field(default=None)
    """Names of the features, if the columns have any."""

    @property
    def gap(self) -> float:
        """The share of the bound that is not reached; 0 where the set is proved to be the best."""
        if self.proved or self.upper_bound <= 0.0:
            return 0.0
        return max(1.0 - self.value / self.upper_bound, 0.0)

    def as_dict(self) -> dict[str, Any]:
        """The result as numbers, words and lists, for JSON.

        Returns
        -------
        dict
            All attributes, and the sentence that ``print`` shows.
        """
        return {
            "sentence": str(self),
            "features": self.features.tolist(),
            "names": None if self.names is None else [str(name) for name in self.names],
            "value": self.value,
            "upper_bound": self.upper_bound,
            "gap": self.gap,
            "proved": self.proved,
            "n_components": self.n_components,
            "n_nodes": self.n_nodes,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        m = self.n_components
        these = f"These {len(self.features):,} features" if len(self.features) > 1 else "This one"
        inside = f"in {m} component{'' if m == 1 else 's'}"
        looked = f"{self.n_nodes:,} node{'' if self.n_nodes == 1 else 's'}, {self.seconds:.1f} s"
        if self.proved:
            hold = "hold" if len(self.features) > 1 else "holds"
            return f"{these} {hold} the most variance {inside} of all such sets: proved ({looked})."
        share = np.floor(1000.0 * (1.0 - self.gap)) / 10.0
        hold = "hold" if len(self.features) > 1 else "holds"
        return (
            f"{these} {hold} at least {share:.1f} % of the most variance {inside} that such a set "
            f"could hold; the search did not end ({looked})."
        )


def solve_exactly(
    X: Any,
    n_features_to_select: int,
    n_components: int,
    *,
    time_limit: float | None = 60.0,
    callback: Callable[[SearchProgress], object] | None = None,
    checkpoint: Any = None,
    must_keep: Any = None,
    never_keep: Any = None,
    random_state: Seed = None,
) -> ExactSelection:
    """The k features that hold the most variance in m components, with proof if time allows.

    Branch and bound: sets of features are ruled out by bounds until one is left, or until the time
    is over; then the gap says how near the best set found is to the best of all. Tables with up to
    a hundred columns are often solved in seconds, and much wider ones if k is small or few columns
    have most of the variance. Columns are taken as they are: scale those of different units first.

    Parameters
    ----------
    X : table of shape (n_samples, n_features), path or blocks
        What `SPCAFS.fit` or `SPCAFS.fit_blocks` takes.
    n_features_to_select : int
        k, at least ``n_components``.
    n_components : int
        m: the variance that features hold is the sum of the m largest eigenvalues of their
        covariance.
    time_limit : float or None, default=60
        Seconds for the search; None: until it ends. Reading the table is not counted.
    callback : callable or None, default=None
        Called after every node with an object that has ``value``, ``upper_bound``, ``gap``,
        ``n_nodes``, ``n_open`` and ``seconds``. An exception that it raises ends the search.
    checkpoint : path or None, default=None
        A file that holds the state of the search, every few seconds and at its end. A search that
        was interrupted, or that ran out of time, resumes from there if it is called again with the
        same table and settings. Nothing in it is ever unpickled.
    must_keep, never_keep : sequence of names or indices, boolean mask or None, default=None
        Features that the set has to contain, and those that it must not.
    random_state : int, RandomState or None, default=None
        Seeds the eigenvectors of tables of which both sides exceed 3000.

    Returns
    -------
    ExactSelection
        The set, its value, an upper bound on all values, and whether it is proved to be the best.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> found = solve_exactly(scale(load_wine().data), 5, 2)
    >>> found.features
    array([ 0,  5,  6,  9, 11])
    >>> found.proved
    True
    """
    check_count("n_features_to_select", n_features_to_select)
    k = int(n_features_to_select)
    hint = "A set of k features holds variance in at most k components."
    check_count("n_components", n_components, at_most=k, hint=hint)
    if time_limit is not None:
        check_positive("time_limit", time_limit, zero=True, hint="None searches to the end.")
    check_callback(callback)
    check_seed(random_state)
    check_control(must_keep=must_keep, never_keep=never_keep)
    path = None if checkpoint is None else check_checkpoint_path(checkpoint)
    problem = _Problem(k, int(n_components), must_keep, never_keep)
    read = read_any_table(
        X, n_components=n_components, sketched=path is not None, check=problem.check
    )
    rng = np.random.default_rng(random_state if is_whole(random_state) else 0)
    with one_blas_thread_if_small(min(read.table.n_samples, len(read.table.usable))):
        search = _Search(read, problem, rng)
        file = None if path is None else _SearchFile(path, problem, read.table.sketch())
        return search.run(time_limit, callback, file)


class _Problem:
    """What is asked for, once the columns are known."""

    def __init__(self, k: int, m: int, must_keep: Any, never_keep: Any) -> None:
        self.k, self.m = k, m
        self._must_keep, self._never_keep = must_keep, never_keep
        self.must: BoolArray = np.empty(0, dtype=bool)
        self.never: BoolArray = np.empty(0, dtype=bool)

    def check(self, n_columns: int, names: Any) -> None:
        """Refuse what does not go with the columns."""
        control = read_control(
            n_columns, names, must_keep=self._must_keep, never_keep=self._never_keep
        )
        control.count_to_select(self.k)
        self.must, self.never = control.must, control.never


@dataclass(frozen=True)
class _Reduced:
    """The problem on those columns that are not proved to be in no best set."""

    left: IndexArray
    """Which of the usable columns."""
    forced: BoolArray
    """Of those left."""


class _Search:
    """A search on the columns that vary; constant ones fill the set up if there are too few."""

    def __init__(self, read: ReadTable, problem: _Problem, rng: np.random.Generator) -> None:
        self._table, self._names, self._m = read.table, read.names, problem.m
        table: FittedTable = read.table
        usable = table.usable
        constant = table.unusable
        self._restriction = Restriction(~problem.never[usable], problem.must[usable])
        n_allowed = int(self._restriction.allowed.sum())
        forced_constant = np.flatnonzero(constant & problem.must)
        self._k = min(problem.k - len(forced_constant), n_allowed)
        spare = np.flatnonzero(constant & ~problem.must & ~problem.never)
        n_spare = problem.k - len(forced_constant) - self._k
        self._constant = np.concatenate([forced_constant, spare[:n_spare]])
        self._operator = table.scatter(problem.m)
        self._rng = rng
        self._precision = SINGLE_ROUNDING if table.working_dtype == np.float32 else DOUBLE_ROUNDING

    def run(
        self,
        time_limit: float | None,
        callback: Callable[[SearchProgress], object] | None,
        file: "_SearchFile | None",
    ) -> ExactSelection:
        """Bound, leave out what is proved to be out, and search what is left."""
        begun = time.perf_counter()
        if self._k == 0:
            return self._result(np.empty(0, dtype=np.intp), 0.0, 0.0, True, 0, 0.0)
        saved = None if file is None else file.load(len(self._table.usable))
        start: tuple[float, IndexArray] | None = None
        if saved is None:
            reduced, start, bound = self._reduce()
        else:
            reduced, bound = saved[0], np.inf
        operator = self._in_memory(reduced.left)
        if operator is None:
            if start is None:
                assert file is not None
                raise file.damaged()
            value, features = start
            seconds = time.perf_counter() - begun
            return self._result(features, value, max(bound, value), False, 0, seconds)
        everything = Restriction(np.ones(len(reduced.left), dtype=bool), reduced.forced)
        known = None
        if start is not None and np.isin(start[1], reduced.left).all():
            known = np.searchsorted(reduced.left, start[1])
        search = FeatureSearch(operator, self._k, self._m, everything, start=known, bound=bound)
        if saved is not None:
            _restore(search, saved[1], file)
        unit = 1.0 / self._table.n_samples
        told = None if callback is None else partial(_tell, callback, unit)
        keep = None if file is None else partial(file.save, reduced)
        found = search.run(time_limit, told, keep)
        return self._result(
            reduced.left[found.features],
            found.value,
            found.upper_bound,
            found.proved,
            found.n_nodes,
            found.seconds,
        )

    def _result(
        self,
        features: IndexArray,
        value: float,
        upper_bound: float,
        proved: bool,
        n_nodes: int,
        seconds: float,
    ) -> ExactSelection:
        columns = np.sort(np.concatenate([self._table.usable[features], self._constant]))
        unit = 1.0 / self._table.n_samples
        return ExactSelection(
            features=columns,
            value=unit * value,
            upper_bound=unit * upper_bound,
            proved=proved,
            n_components=self._m,
            n_nodes=n_nodes,
            seconds=seconds,
            names=None if self._names is None else self._names[columns],
        )

    def _reduce(self) -> "tuple[_Reduced, tuple[float, IndexArray], float]":
        """What the bound from the spectrum proves, with a good set and the bound."""
        spectrum = spectral_bound(self._operator, self._m, self._rng, self._precision)
        found = spectrum.bound(self._k, self._m, self._restriction)
        best, best_set = -np.inf, np.empty(0, dtype=np.intp)
        for scores in (found.terms, spectrum.leading_terms(self._m), spectrum.variances):
            start = self._restriction.choose(scores, self._k)
            reached = self._restriction.improve(self._operator, start, self._m)
            if reached.variance > best:
                best, best_set = reached.variance, reached.features
        proofs = found.proofs(best)
        left = np.flatnonzero(~proofs.outside)
        return _Reduced(left, proofs.inside[left]), (best, best_set), found.value

    def _in_memory(self, left: IndexArray) -> SymmetricOperator | None:
        """S on the features left, as a matrix or, where there are few rows, as a factor.

        None where there are too many of both to decompose it at every node.
        """
        if len(left) > MOST_SEARCHED:
            return None
        part = self._in_double(left)
        if len(left) <= min(self._table.n_samples, SMALL_SIDE):
            return DenseScatter(part.dense())
        if part.small_side() is None:
            return None
        return LowRankScatter(np.ascontiguousarray(factor_columns(part)[0].T))

    def _in_double(self, left: IndexArray) -> SymmetricOperator:
        """S on the features left, in double precision: nodes are compared to rounding."""
        table = self._table
        if isinstance(table, Table) and table.X.dtype == np.float32:
            moments = table.moments.subset(left)
            return as_scatter(table.X[:, left].astype(np.float64), moments, self._m)
        return self._operator if len(left) == self._operator.size else self._operator.restrict(left)


def _tell(
    callback: Callable[[SearchProgress], object], unit: float, progress: SearchProgress
) -> None:
    """The progress in the units of variances."""
    callback(
        replace(progress, value=unit * progress.value, upper_bound=unit * progress.upper_bound)
    )


def _restore(search: FeatureSearch, state: SearchState, file: "_SearchFile | None") -> None:
    try:
        search.restore(state)
    except (ValueError, KeyError) as error:
        assert file is not None
        raise file.damaged() from error


class _SearchFile:
    """The state of a search in a file, as plain arrays."""

    _OF_DATA = ("mean", "sum_of_squares", "products", "must", "never")

    def __init__(self, path: Path, problem: _Problem, sketch: TableSketch) -> None:
        self._path, self._problem, self._sketch = path, problem, sketch
        self._settings = {"n_features_to_select": problem.k, "n_components": problem.m}

    def save(self, reduced: _Reduced, state: SearchState) -> None:
        """Replace the file as a whole."""
        moments = self._sketch.moments
        header = {
            "kind": _KIND,
            "layout": LAYOUT,
            "settings": self._settings,
            "n_samples": moments.n_samples,
        }
        arrays: dict[str, Any] = {
            "header": np.array(json.dumps(header)),
            "mean": moments.mean,
            "sum_of_squares": moments.sum_of_squares,
            "products": self._sketch.products,
            "must": self._problem.must,
            "never": self._problem.never,
            "left": reduced.left,
            "forced": reduced.forced,
            **{f"search_{name}": array for name, array in state.items()},
        }
        with whole_file(self._path, force=True) as temporary, temporary.open("wb") as stream:
            np.savez(stream, **arrays)

    def load(self, n_usable: int) -> tuple[_Reduced, dict[str, NDArray[Any]]] | None:
        """What the file holds; None if there is none."""
        if not self._path.exists():
            return None
        header, arrays = self._read()
        if header.get("layout") != LAYOUT:
            raise ParameterError(
                f"checkpoint must be of this version of keepers; {self._path} was written by "
                f"another one (layout {shorten(header.get('layout'))}; this one reads {LAYOUT}). "
                f"{_WAY_OUT}"
            )
        same_sets = all(
            np.array_equal(arrays[name], getattr(self._problem, name)) for name in ("must", "never")
        )
        if header.get("settings") != self._settings or not same_sets:
            raise ParameterError(
                f"checkpoint must belong to this search; {self._path} was written by one with "
                f"other settings. {_WAY_OUT}"
            )
        if not self._is_of_these_data(header, arrays):
            raise ParameterError(
                f"checkpoint must belong to this search; {self._path} was written by one on other "
                f"data. {_WAY_OUT}"
            )
        left, forced = arrays["left"], arrays["forced"]
        sound = (
            left.ndim == 1
            and left.dtype.kind == "i"
            and forced.shape == left.shape
            and forced.dtype == bool
            and bool(np.all(np.diff(left) > 0))
            and bool(np.all((left >= 0) & (left < n_usable)))
        )
        if not sound:
            raise self.damaged()
        state = {
            name.removeprefix("search_"): array
            for name, array in arrays.items()
            if name.startswith("search_")
        }
        return _Reduced(left.astype(np.intp), forced), state

    def _read(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        try:
            with self._path.open("rb") as stream:
                arrays = read_arrays(stream)
            header = json.loads(arrays.pop("header").item())
            sound = header["kind"] == _KIND and isinstance(header["n_samples"], int)
            sound = sound and all(name in arrays for name in (*self._OF_DATA, "left", "forced"))
        except OSError as error:
            raise ParameterError(
                f"checkpoint {self._path} cannot be read: {error.strerror or error}. {_WAY_OUT}"
            ) from error
        except Exception as error:  # a damaged archive raises anything
            raise self.damaged() from error
        if not sound:
            raise self.damaged()
        return header, arrays

    def _is_of_these_data(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bool:
        try:
            moments = ColumnMoments(header["n_samples"], arrays["mean"], arrays["sum_of_squares"])
            stored = TableSketch(moments, self._sketch.columns, arrays["products"])
            with np.errstate(all="ignore"):
                return self._sketch.same_as(stored, SAME)
        except (TypeError, ValueError) as error:
            raise self.damaged() from error

    def damaged(self) -> ParameterError:
        """The error about a file that holds something else."""
        return ParameterError(
            f"{self._path} is not a checkpoint of solve_exactly, or is damaged. {_WAY_OUT}"
        )
