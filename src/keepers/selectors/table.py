"""From whatever the user hands in to a checked table: values, moments, usable columns."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.exceptions import DataError, DataWarning
from keepers.linalg.moments import ColumnMoments, column_moments

__all__ = ["Table", "read_table"]

# Eigenvalues are squared once more on the way; these bounds on the scatter leave room for that.
SMALLEST_SCATTER, LARGEST_SCATTER = 1e-140, 1e140
LARGEST_EXACT_INTEGER = 2**53
_NAMED = 5


@dataclass(frozen=True)
class Table:
    """A numeric table without its constant columns."""

    X: Any
    """Array or CSR/CSC matrix of the usable columns, float64 or float32."""
    moments: ColumnMoments
    usable: IndexArray
    """Where the usable columns stood in the table the user gave."""
    mean: FloatArray
    """Means of all the user's columns."""

    @property
    def n_features(self) -> int:
        """Number of columns the user gave."""
        return len(self.mean)

    @property
    def unusable(self) -> BoolArray:
        """Mask over the user's columns: constant ones."""
        mask = np.ones(self.n_features, dtype=bool)
        mask[self.usable] = False
        return mask

    def scaled(self, exponent: float) -> "Table":
        """Every column divided by its standard deviation to the power ``exponent``."""
        if exponent == 0.0:
            return self
        factors = self.moments.variance ** (-exponent / 2)
        cast = factors.astype(self.X.dtype, copy=False)
        if sp.issparse(self.X):
            X = (self.X @ sp.diags(cast)).asformat(self.X.format)
        else:
            X = self.X * cast
        moments = ColumnMoments(
            self.moments.n_samples,
            self.moments.mean * factors,
            self.moments.sum_of_squares * factors**2,
        )
        return Table(X, moments, self.usable, self.mean)

    def spread(self, values: Any, fill: float = 0.0) -> Any:
        """Values per usable column (last axis) -> values per column the user gave."""
        shape = (*values.shape[:-1], self.n_features)
        full = np.full(shape, fill, dtype=values.dtype)
        full[..., self.usable] = values
        return full


def read_table(selector: Any, X: Any) -> Table:
    """Validate X for ``selector``, leave out constant columns, and measure the rest."""
    if sp.issparse(X) and selector.why_not_sparse is not None:
        raise DataError(
            f"{type(selector).__name__} does not accept a sparse matrix: {selector.why_not_sparse} "
            "Pass X.toarray() if it fits in memory."
        )
    _refuse_large_integers(X)
    values = _validated(selector, X)
    moments = column_moments(values)
    _refuse_unrepresentable(values, moments)
    mean = moments.mean
    usable = np.flatnonzero(~moments.constant)
    n_features = values.shape[1]
    if len(usable) == 0:
        raise DataError(
            f"At least one column must vary; all {n_features} columns of X are constant over its "
            f"{values.shape[0]} samples. Check that samples are rows and features are columns."
        )
    if len(usable) < n_features:
        constant = _listed(selector, np.flatnonzero(moments.constant))
        warnings.warn(
            f"Columns that do not vary are set aside and ranked last: {constant}.",
            DataWarning,
            stacklevel=4,
        )
        values, moments = values[:, usable], moments.subset(usable)
    return Table(values, moments, usable, mean)


def _validated(selector: Any, X: Any) -> Any:
    """scikit-learn's checks, with messages that name the columns at fault."""
    try:
        with np.errstate(all="ignore"):
            return validate_data(
                selector,
                X,
                accept_sparse=("csr", "csc"),
                dtype=(np.float64, np.float32),
                ensure_min_samples=2,
            )
    except (ValueError, TypeError) as error:
        explanation = _text_columns(X) or _missing_values(X)
        if explanation is None:
            raise
        raise DataError(explanation) from error


def _text_columns(X: Any) -> str | None:
    """For a data frame: which columns hold something else than numbers."""
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(X, "__getitem__"):
        return None
    named = []
    for name in columns:
        try:
            np.asarray(X[name]).astype(np.float64)
        except (TypeError, ValueError):
            named.append(repr(name))
    if not named:
        return None
    return (
        f"Every column must be numeric; these are not: {_shortened(named)}. Drop them, or encode "
        "them (for example with sklearn.preprocessing.OneHotEncoder)."
    )


def _missing_values(X: Any) -> str | None:
    """Where NaN or infinity stands."""
    try:
        values = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        if sp.issparse(X):
            finite = sp.csc_matrix(X)
            finite = sp.csc_matrix(
                (~np.isfinite(finite.data), finite.indices, finite.indptr), finite.shape
            )
            counts = np.asarray(finite.sum(axis=0)).ravel()
        else:
            counts = (~np.isfinite(values)).sum(axis=0)
    except (TypeError, ValueError):
        return None
    if values.ndim != 2 or not counts.any():
        return None
    names = list(getattr(X, "columns", range(values.shape[1])))
    at_fault = [f"{names[j]!r} ({counts[j]})" for j in np.flatnonzero(counts)]
    return (
        "Values must be finite numbers; NaN or infinity found in these columns (how many): "
        f"{_shortened(at_fault)}. Drop the columns or the rows, or fill the gaps (for example "
        "with sklearn.impute.SimpleImputer)."
    )


def _refuse_large_integers(X: Any) -> None:
    dtype = getattr(X, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.kind not in "iu" or dtype.itemsize < 8:
        return
    data = X.data if sp.issparse(X) else X
    if not getattr(data, "size", 0):
        return
    largest = max(int(data.max()), -int(data.min()))
    if largest > LARGEST_EXACT_INTEGER:
        raise DataError(
            f"Whole numbers must be at most 2**53 = {LARGEST_EXACT_INTEGER} in size to be exact "
            f"in float64; the largest here is {largest}. Subtract an offset from the column, or "
            "divide by its unit, before fitting."
        )


def _refuse_unrepresentable(values: Any, moments: ColumnMoments) -> None:
    data = values.data if sp.issparse(values) else values
    total = float(np.sum(moments.sum_of_squares))
    if SMALLEST_SCATTER < total < LARGEST_SCATTER or not data.size:
        return
    largest = float(np.max(np.abs(data)))
    if total == 0.0 and (largest == 0.0 or largest > 1e-100):
        return  # really constant
    raise DataError(
        "The squares of the values must stay between 1e-140 and 1e140 to be summed in float64; "
        f"the largest value here is {largest:.3g}. Multiply X by {1 / largest:.0e} first; a "
        "penalty given as an absolute number then changes by the square of that factor."
    )


def _listed(selector: Any, columns: IndexArray) -> str:
    names = getattr(selector, "feature_names_in_", None)
    labels = [repr(str(names[j])) if names is not None else str(j) for j in columns]
    return _shortened(labels)


def _shortened(labels: list[str]) -> str:
    shown = ", ".join(labels[:_NAMED])
    more = len(labels) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown
