"""From whatever the user hands in to a checked table: values, moments, usable columns."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers.data.dask_blocks import is_dask
from keepers.data.wording import listed
from keepers.exceptions import DataError, DataWarning, shortened, warn_caller
from keepers.linalg.moments import ColumnMoments, column_moments, scaled_columns
from keepers.linalg.redundancy import ColumnCorrelations, Correlations
from keepers.linalg.scatter import as_scatter

__all__ = [
    "FittedTable",
    "Table",
    "read_table",
    "refuse_dask",
    "refuse_unrepresentable",
    "usable_columns",
    "validated",
]

# Eigenvalues are squared once more on the way; these bounds on the scatter leave room for that.
SMALLEST_SCATTER, LARGEST_SCATTER = 1e-140, 1e140
LARGEST_EXACT_INTEGER = 2**53


@dataclass(frozen=True)
class FittedTable(ABC):
    """What a fit asks of a table, however it is stored; constant columns are set aside."""

    moments: ColumnMoments
    """Of the usable columns."""
    usable: IndexArray
    """Where the usable columns stood in the table the user gave."""
    mean: FloatArray
    """Means of all the user's columns."""

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.moments.n_samples

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

    def spread(self, values: Any, fill: float = 0.0) -> Any:
        """Values per usable column (last axis) -> values per column the user gave."""
        shape = (*values.shape[:-1], self.n_features)
        full = np.full(shape, fill, dtype=values.dtype)
        full[..., self.usable] = values
        return full

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """float64 or float32."""

    @abstractmethod
    def restricted(self, rows: IndexArray) -> "FittedTable":
        """The same with some of the usable columns."""

    @abstractmethod
    def scaled(self, exponent: float) -> "FittedTable":
        """Every column divided by its standard deviation to the power ``exponent``."""

    @abstractmethod
    def scatter(self, block_width: int) -> SymmetricOperator:
        """The scatter of the usable columns, which will be multiplied with d x ``block_width``."""

    @abstractmethod
    def correlations(self, order: IndexArray) -> Correlations:
        """Correlations of the usable columns, which will be asked for in this order."""


@dataclass(frozen=True)
class Table(FittedTable):
    """A numeric table in memory without its constant columns."""

    X: Any
    """Array or CSR/CSC matrix of the usable columns, float64 or float32."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 or float32."""
        return np.dtype(self.X.dtype)

    def restricted(self, rows: IndexArray) -> "Table":
        """The table with some of the usable columns."""
        return Table(self.moments.subset(rows), self.usable[rows], self.mean, self.X[:, rows])

    def scaled(self, exponent: float) -> "Table":
        """Every column divided by its standard deviation to the power ``exponent``."""
        if exponent == 0.0:
            return self
        factors = self.moments.variance ** (-exponent / 2)
        X = scaled_columns(self.X, factors)
        return Table(self.moments.scaled(factors), self.usable, self.mean, X)

    def scatter(self, block_width: int) -> SymmetricOperator:
        """The scatter, in the form whose products are cheapest."""
        return as_scatter(self.X, self.moments, block_width)

    def correlations(self, order: IndexArray) -> Correlations:
        """Correlations of the usable columns."""
        return ColumnCorrelations(self.X, self.moments)


def read_table(selector: Any, X: Any) -> Table:
    """Validate X for ``selector``, leave out constant columns, and measure the rest."""
    refuse_dask(X, type(selector).__name__, selector.why_not_dask)
    if sp.issparse(X) and selector.why_not_sparse is not None:
        raise DataError(
            f"{type(selector).__name__} does not accept a sparse matrix: {selector.why_not_sparse} "
            "Pass X.toarray() if it fits in memory."
        )
    _refuse_large_integers(X)
    values = validated(selector, X)
    moments = column_moments(values)
    refuse_unrepresentable(values, moments)
    usable = usable_columns(selector, moments)
    if len(usable) < values.shape[1]:
        values = values[:, usable]
    kept = moments.subset(usable)
    values = values.astype(kept.precision_for(values.dtype), copy=False)
    return Table(kept, usable, moments.mean, values)


def refuse_dask(X: Any, what: str, reason: str) -> None:
    """Raise for a Dask collection; ``reason`` is a clause."""
    if is_dask(X):
        raise DataError(
            f"{what} does not accept a Dask collection: {reason} Use SPCAFS, which sums over the "
            "chunks, or X.compute() if it fits in memory."
        )


def usable_columns(selector: Any, moments: ColumnMoments, *, quiet: bool = False) -> IndexArray:
    """Columns that vary; it is an error if none does. Others are named in a warning, or quietly
    left out.
    """
    usable = np.flatnonzero(~moments.constant)
    n_features = len(moments.mean)
    if len(usable) == 0:
        raise DataError(
            f"At least one column must vary; all {n_features} columns of X are constant over its "
            f"{moments.n_samples} samples. Check that samples are rows and features are columns."
        )
    if len(usable) < n_features and not quiet:
        constant = _listed(selector, np.flatnonzero(moments.constant))
        warn_caller(
            f"Columns that do not vary are set aside and ranked last: {constant}.", DataWarning
        )
    return usable


def validated(selector: Any, X: Any, *, reset: bool = True, fewest: int = 2) -> Any:
    """scikit-learn's checks, with messages that name the columns at fault."""
    names = getattr(selector, "_column_names", None)
    try:
        with np.errstate(all="ignore"):
            values = validate_data(
                selector,
                X,
                accept_sparse=("csr", "csc"),
                dtype=(np.float64, np.float32),
                ensure_min_samples=fewest,
                reset=reset,
            )
    except (ValueError, TypeError) as error:
        explanation = _text_columns(X) or _missing_values(X, names)
        if explanation is None:
            raise
        raise DataError(explanation) from error
    if reset and names is not None:
        selector.feature_names_in_ = names
    return values


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


def _missing_values(X: Any, names: Any = None) -> str | None:
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
    if names is None:
        names = list(getattr(X, "columns", range(values.shape[1])))
    at_fault = [f"{shortened(names[j])} ({counts[j]})" for j in np.flatnonzero(counts)]
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


def refuse_unrepresentable(values: Any, moments: ColumnMoments) -> None:
    """Raise if squares of the values leave the range of float64; ``values`` may be unknown."""
    total = float(np.sum(moments.sum_of_squares))
    if SMALLEST_SCATTER < total < LARGEST_SCATTER:
        return
    largest = float(np.abs(moments.mean).max(initial=0.0))
    if values is not None:
        data = values.data if sp.issparse(values) else values
        largest = float(np.max(np.abs(data))) if data.size else 0.0
    if total == 0.0 and (largest == 0.0 or largest > 1e-100):
        return  # really constant
    advice = f" Multiply X by {1 / largest:.0e} first" if largest else " Rescale X first"
    raise DataError(
        "The squares of the values must stay between 1e-140 and 1e140 to be summed in float64; "
        f"the largest value here is {largest:.3g}.{advice}; a penalty given as an absolute number "
        "then changes by the square of that factor."
    )


def _listed(selector: Any, columns: IndexArray) -> str:
    names = getattr(selector, "feature_names_in_", None)
    labels = [repr(str(names[j])) if names is not None else str(j) for j in columns]
    return _shortened(labels)


def _shortened(labels: list[str]) -> str:
    return listed(labels)
