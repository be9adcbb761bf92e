"""Putting samples or features on one scale before a selection."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._wording import closest
from keepers.exceptions import DataError, ParameterError, shorten

SCALINGS = (
    "raw",
    "unit-samples",
    "standardize-samples",
    "unit-features",
    "standardize-features",
    "min-max-features",
    "0-255",
)


def scale_samples(X: Any, scaling: str) -> Any:
    """Return X on the scale that ``scaling`` names; X itself is never changed.

    Parameters
    ----------
    X : ndarray or CSR/CSC matrix of shape (n_samples, n_features)
        The table.
    scaling : str
        "raw": as it is. "unit-samples": every row divided by its Euclidean norm.
        "standardize-samples": every row to mean 0 and standard deviation 1 (divisor n).
        "unit-features": every column divided by its Euclidean norm. "standardize-features": every
        column to mean 0 and standard deviation 1 (divisor n). "min-max-features": every column to
        0 (its smallest value) to 1 (its largest). "0-255": the whole table by one shift and one
        factor, its smallest value to 0 and its largest to 255, as grey levels are stored. Rows and
        columns of zeros stay; constant ones become 0 when standardised or put between 0 and 1.
        Standardising features makes all variances equal, so it takes from the methods that read
        variance (SPCAFS, VarianceScore) what they read.

    Returns
    -------
    ndarray or sparse matrix
        Same kind and precision; X itself for "raw".

    Examples
    --------
    >>> import numpy as np
    >>> scale_samples(np.array([[3.0, 4.0], [0.0, 0.0]]), "unit-samples")
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    if scaling == "raw":
        return X
    if scaling == "unit-samples":
        return _divide(X, _norms(X, axis=1), axis=1)
    if scaling == "unit-features":
        return _divide(X, _norms(X, axis=0), axis=0)
    if scaling == "standardize-features":
        return _standardize(X, axis=0)
    if scaling == "standardize-samples":
        return _standardize(X, axis=1)
    if scaling == "min-max-features":
        _refuse_sparse(X, scaling, "Subtracting the smallest values", "unit-features")
        lowest = X.min(axis=0)
        return _divide(X - lowest, X.max(axis=0) - lowest, axis=0)
    if scaling == "0-255":
        return _to_grey_levels(X)
    known = ", ".join(repr(name) for name in SCALINGS)
    raise ParameterError(
        f"scaling must be one of {known}; got {shorten(scaling)}.{closest(str(scaling), SCALINGS)}"
    )


def transform_values(X: Any, transform: str) -> Any:
    """Return X in the form in which such values are usually compared; X itself is never changed.

    Parameters
    ----------
    X : ndarray or CSR/CSC matrix
        The table; a sparse one for "log-counts" stays sparse.
    transform : {"", "log2", "log-counts"}
        "": as it is. "log2": the logarithm of raw microarray values, those below 16 (noise) set to
        16. "log-counts": log(1 + x) of rows scaled to the same total, the mean of all that are not
        empty.
    """
    if transform == "log2":
        return np.log2(np.maximum(X, 16.0))
    if transform == "log-counts":
        totals = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
        filled = totals > 0
        mean = totals[filled].mean() if filled.any() else 1.0
        return np.log1p(_divide(X, np.where(filled, totals / mean, 1.0), axis=1))
    return X


def _norms(X: Any, axis: int) -> Any:
    """Euclidean norms. Divides by the largest entry first: squares cannot overflow."""
    absolute = abs(X)
    largest = absolute.max(axis=axis)
    largest = largest.toarray().ravel() if sp.issparse(X) else largest
    scale = np.where(largest > 0, largest, 1.0)
    relative = _divide(absolute, scale, axis)
    squares = relative.multiply(relative) if sp.issparse(X) else relative * relative
    return np.sqrt(np.asarray(squares.sum(axis=axis)).ravel()) * scale


def _divide(X: Any, by: Any, axis: int) -> Any:
    """Divide each row (axis 1) or column (axis 0) by its number; zeros divide nothing."""
    by = np.where(by == 0, 1.0, by).astype(X.dtype)
    if not sp.issparse(X):
        return X / (by[:, np.newaxis] if axis == 1 else by)
    rescaled = sp.csr_matrix(X, copy=True)
    if axis == 1:
        rescaled.data /= np.repeat(by, np.diff(rescaled.indptr))
    else:
        rescaled.data /= by[rescaled.indices]
    return rescaled.asformat(X.format)


def _standardize(X: Any, axis: int) -> Any:
    """Columns (axis 0) or rows (axis 1) to mean 0 and deviation 1."""
    names = ("standardize-features", "unit-features"), ("standardize-samples", "unit-samples")
    _refuse_sparse(X, names[axis][0], "Subtracting means", names[axis][1])
    means = X.mean(axis=axis, keepdims=True)
    centred = X - means
    # A constant column whose mean is not exact would otherwise be blown up to +-1.
    constant = X.max(axis=axis) == X.min(axis=axis)
    if axis == 0:
        centred[:, constant] = 0
    else:
        centred[constant] = 0
    return _divide(centred, centred.std(axis=axis), axis=axis)


def _to_grey_levels(X: Any) -> Any:
    lowest, highest = float(X.min()), float(X.max())
    if lowest != 0:
        _refuse_sparse(X, "0-255", "Subtracting the smallest value", "raw")
        X = X - X.dtype.type(lowest)
    factor = 255.0 / (highest - lowest) if highest > lowest else 1.0
    return X * (X.dtype.type(factor) if np.issubdtype(X.dtype, np.floating) else factor)


def _refuse_sparse(X: Any, scaling: str, what: str, instead: str) -> None:
    if sp.issparse(X):
        raise DataError(
            f"{what} fills a sparse matrix; {scaling!r} needs a dense table. Use {instead!r}, or "
            "pass X.toarray() if it fits in memory."
        )
