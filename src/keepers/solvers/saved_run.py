"""A run of an iteration, as the arrays from which it can resume."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers.linalg.subspace import squared_row_norms
from keepers.solvers.penalty import RowPenalty

SavedRun = Mapping[str, NDArray[Any]]

_DENSE = {"vectors", "history", "n_iter", "converged"}
_BLOCK = {"vectors", "images", "values", "history", "counts", "reals"}
_IN_BLOCK_ONLY_SOMETIMES = {"rows", "shrinkage", "proposal", "points", "point_images"}
# What single precision makes of a product is below this.
_TOLERANCE = 1e-3


def refuse_damaged(run: SavedRun, solver: str, penalty: RowPenalty, size: int, width: int) -> None:
    """Raise ValueError unless the arrays are such as the solver wrote on a table of this size."""
    if solver == "dense":
        _demand(set(run) == _DENSE, "other arrays")
        n_rows = size
        _demand(run["converged"].dtype == np.bool_ and run["converged"].shape == (), "converged")
        n_iter = _integers(run["n_iter"], ()).item()
    else:
        _demand(_BLOCK <= set(run) <= _BLOCK | _IN_BLOCK_ONLY_SOMETIMES, "other arrays")
        n_rows = _n_rows(run, penalty, size)
        n_iter = int(_integers(run["counts"], (8,))[0])
        _demand(bool(np.all(_numbers(run["reals"], (2,)) >= 0.0)), "reals")
    vectors, history = _numbers(run["vectors"], (n_rows, width)), _numbers(run["history"], None)
    # A step may be turned down, and then adds nothing to the history.
    _demand(history.ndim == 1 and 1 <= len(history) <= n_iter, "history")
    overlap = vectors.T @ vectors - np.eye(width)
    _demand(bool(np.all(np.abs(overlap) < _TOLERANCE)), "vectors")
    if solver != "dense":
        _refuse_damaged_block(run, penalty, size, n_rows, width)


def _refuse_damaged_block(
    run: SavedRun, penalty: RowPenalty, size: int, n_rows: int, width: int
) -> None:
    images = _numbers(run["images"], (n_rows, width))
    _numbers(run["values"], (width,))
    here = penalty.restrict(run["rows"]) if "rows" in run else penalty
    n_groups = len(here.pool(np.zeros(n_rows)))
    for name in ("shrinkage", "proposal"):
        if name in run:
            _logarithms(run[name], (n_groups,))
    _demand(("points" in run) == ("point_images" in run), "points")
    if "points" in run:
        points = _logarithms(run["points"], None)
        _demand(points.ndim == 2 and len(points) > 0 and points.shape[1] == n_groups, "points")
        _logarithms(run["point_images"], points.shape)
    # The last objective is that of the vectors and their images: one of them cannot be another's.
    trace = float(np.vdot(run["vectors"], images))
    set_aside = penalty.value_at_zero(size) - here.value_at_zero(n_rows)
    price = here.value(squared_row_norms(run["vectors"])) + set_aside
    gap = abs(price - trace - run["history"][-1])
    _demand(bool(gap <= _TOLERANCE * (abs(price) + abs(trace))), "history")


def _n_rows(run: SavedRun, penalty: RowPenalty, size: int) -> int:
    """How many rows are in the work: all, or those in ``rows``, which are of whole groups."""
    if "rows" not in run:
        return size
    rows = _integers(run["rows"], None)
    _demand(rows.ndim == 1 and len(rows) > 0 and bool(np.all(np.diff(rows) > 0)), "rows")
    _demand(int(rows[-1]) < size, "rows")
    mask = np.zeros(size, dtype=bool)
    mask[rows] = True
    _demand(np.array_equal(penalty.whole_groups(mask), mask), "rows")
    return len(rows)


def _numbers(array: NDArray[Any], shape: tuple[int, ...] | None) -> NDArray[Any]:
    """Finite floating-point numbers."""
    _demand(array.dtype in (np.float64, np.float32), str(array.dtype))
    _demand(shape is None or array.shape == shape, str(array.shape))
    _demand(bool(np.isfinite(array).all()), "not finite")
    return array


def _logarithms(array: NDArray[Any], shape: tuple[int, ...] | None) -> NDArray[Any]:
    """Logarithms of squared norms, or differences of them: those of float64 end before 1500."""
    _demand(bool(np.all(np.abs(_numbers(array, shape)) < 1500.0)), "out of range")
    return array


def _integers(array: NDArray[Any], shape: tuple[int, ...] | None) -> NDArray[Any]:
    """Integers >= 0, far from overflow."""
    _demand(array.dtype.kind == "i" and array.dtype.isnative, str(array.dtype))
    _demand(shape is None or array.shape == shape, str(array.shape))
    _demand(bool(np.all((array >= 0) & (array < 2**31))), "out of range")
    return array


def _demand(fulfilled: bool, what: str) -> None:
    if not fulfilled:
        raise ValueError(what)
