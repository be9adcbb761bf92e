"""Putting samples or features on one scale before a selection."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers.data.wording import closest
from keepers.exceptions import DataError, ParameterError, shorten

SCALINGS = ("raw", "unit-samples", "unit-features", "standardize-features")


def scale_samples(X: Any, scaling: str) -> Any:
    """Return X on the scale that ``scaling`` names; X itself is never changed.

    Parameters
    ----------
    X : ndarray or CSR/CSC matrix of shape (n_samples, n_features)
        The table.
    scaling : {"raw", "unit-samples", "unit-features", "standardize-features"}
        "raw": as it is. "unit-samples": every row divided by its Euclidean norm.
        "unit-features": every column divided by its Euclidean norm. "standardize-features": every
        column to mean 0 and standard deviation 1 (divisor n). Rows and columns of zeros stay;
        constant columns become 0 when standardised. Standardising makes all variances equal, so
        it takes from the methods that read variance (SPCAFS, VarianceScore) what they read.

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
        return _standardize(X)
    known = ", ".join(repr(name) for name in SCALINGS)
    raise ParameterError(
        f"scaling must be one of {known}; got {shorten(scaling)}.{closest(str(scaling), SCALINGS)}"
    )


def _norms(X: Any, axis: int) -> Any:
    """Euclidean norms; scaled by the largest entry first, so that squares cannot overflow."""
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


def _standardize(X: Any) -> Any:
    if sp.issparse(X):
        raise DataError(
            "Standardising subtracts column means, which fills a sparse matrix; "
            "'standardize-features' needs a dense table. Use 'unit-features', or pass X.toarray() "
            "if it fits in memory."
        )
    centred = X - X.mean(axis=0)
    # A constant column whose mean is not exact would otherwise be blown up to +-1.
    constant = X.max(axis=0) == X.min(axis=0)
    centred[:, constant] = 0
    return _divide(centred, centred.std(axis=0), axis=0)
