"""From whatever the user hands in to a checked table: values, moments, usable columns.

A table in memory becomes a `MemoryTable`. `read_blocks` takes one of three routes to a table that
comes in blocks of rows, from files, functions or Dask:

======== =============================================== ===================================
route    what is held in memory                          passes over the table
======== =============================================== ===================================
scatter  S, d x d                                        one
memory   the rows                                        one
stream   a few d x m blocks                              one a product, until few rows are active
======== =============================================== ===================================
"""

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_array, validate_data

from keepers._protocols import (
    BlockTable,
    BoolArray,
    FloatArray,
    IndexArray,
    SymmetricOperator,
)
from keepers._wording import readable_size, some_of
from keepers.blocks.sources import as_blocks
from keepers.exceptions import DataError, DataWarning, UnitsWarning, shorten, warn_caller
from keepers.linalg.correlation import (
    ColumnCorrelations,
    Correlations,
    FetchedCorrelations,
    ScatterCorrelations,
)
from keepers.linalg.gaps import fill_rows, fit_gap_model, observed_columns
from keepers.linalg.scatter import (
    ColumnMoments,
    DenseScatter,
    as_scatter,
    column_moments,
    mixed_units,
    scale_columns,
)
from keepers.linalg.sums import (
    Budget,
    CountedPasses,
    MomentSum,
    NotFiniteError,
    RowCollection,
    ScatterSum,
    StreamedScatter,
)
from keepers.methods.parameters import expected_width, memory_budget
from keepers.tables.objects import (
    array_or_frame,
    comes_in_blocks,
    describe_missing,
    frame_columns,
    is_anndata,
    is_dask,
    is_frame,
    numeric_input,
    values_of,
)
from keepers.tables.table import NamedValues, canonical_sparse, refuse_beside

# Eigenvalues are squared once more on the way; these bounds on the scatter leave room for that.
SMALLEST_SCATTER, LARGEST_SCATTER = 1e-140, 1e140
# Up to this number, values of single precision are multiplied in double: they give what the same
# values in double give, and it costs next to nothing.
MOST_IN_DOUBLE = 1 << 24
# Values in a row up to which S is summed: about 20 passes of a fit, each with ten components, and
# the time of 60 multiplications to read a value.
CHEAP_TO_SUM = 2000
# Further columns whose correlations are fetched in one pass.
_AHEAD = 3000


@dataclass(frozen=True)
class FittedTable(ABC):
    """A table without its constant columns, however it is stored."""

    moments: ColumnMoments
    """Moments of the usable columns."""
    usable: IndexArray
    """Places of the usable columns in the table of the user."""
    mean: FloatArray
    """Means of all the user's columns."""
    dtype: np.dtype[Any]
    """Type of results: float32 if the user's values were, else float64."""

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

    @property
    def variances(self) -> FloatArray:
        """Variances of all columns of the user; 0 for constant ones."""
        return self.to_all_columns(self.moments.variance)

    def to_all_columns(self, values: NDArray[Any], fill: float = 0.0) -> NDArray[Any]:
        """Values per usable column (last axis) -> values per column the user gave."""
        shape = (*values.shape[:-1], self.n_features)
        full = np.full(shape, fill, dtype=values.dtype)
        full[..., self.usable] = values
        return full

    @property
    def working_dtype(self) -> np.dtype[Any]:
        """In which the values are multiplied."""
        return self.dtype

    def restrict(self, rows: IndexArray) -> Self:
        """The same with some of the usable columns."""
        moments, usable = self.moments.subset(rows), self.usable[rows]
        return replace(self, moments=moments, usable=usable, **self._values_of(rows))

    def scale(self, exponent: float) -> Self:
        """Every column divided by its standard deviation to the power ``exponent``."""
        if exponent == 0.0:
            return self
        factors = self.moments.variance ** (-exponent / 2)
        return replace(self, moments=self.moments.scaled(factors), **self._values_times(factors))

    @abstractmethod
    def _values_of(self, rows: IndexArray) -> dict[str, Any]:
        """Stored parts of some of the usable columns, by the names of the fields."""

    @abstractmethod
    def _values_times(self, factors: FloatArray) -> dict[str, Any]:
        """Stored parts of the columns times ``factors``, by the names of the fields."""

    @abstractmethod
    def scatter(self, block_width: int) -> SymmetricOperator:
        """The scatter of the usable columns, which will be multiplied with d x ``block_width``."""

    @abstractmethod
    def correlations(self, order: IndexArray) -> Correlations:
        """Correlations of the usable columns, which will be needed in this order."""


@dataclass(frozen=True)
class MemoryTable(FittedTable):
    """A numeric table in memory without its constant columns."""

    X: Any
    """Array or CSR/CSC matrix of the usable columns, float64 or float32."""

    @property
    def working_dtype(self) -> np.dtype[Any]:
        """In which the values are multiplied."""
        return np.dtype(self.X.dtype)

    def in_double(self) -> Any:
        """X in float64, as array or CSR/CSC matrix."""
        return self.X.astype(np.float64, copy=False)

    def _values_of(self, rows: IndexArray) -> dict[str, Any]:
        return {"X": self.X[:, rows]}

    def _values_times(self, factors: FloatArray) -> dict[str, Any]:
        return {"X": scale_columns(self.X, factors)}

    def scatter(self, block_width: int) -> SymmetricOperator:
        """The scatter, in the form whose products are cheapest."""
        return as_scatter(self.X, self.moments, block_width)

    def correlations(self, order: IndexArray) -> Correlations:
        """Correlations of the usable columns."""
        return ColumnCorrelations(self.X, self.moments)


@dataclass(frozen=True)
class ScatterTable(FittedTable):
    """A table whose scatter is known."""

    S: FloatArray
    """Scatter of the usable columns."""

    def _values_of(self, rows: IndexArray) -> dict[str, Any]:
        return {"S": self.S[np.ix_(rows, rows)]}

    def _values_times(self, factors: FloatArray) -> dict[str, Any]:
        return {"S": self.S * factors * factors[:, np.newaxis]}

    def scatter(self, block_width: int) -> SymmetricOperator:
        """S, as it is."""
        return DenseScatter(self.S)

    def correlations(self, order: IndexArray) -> Correlations:
        """Correlations of the usable columns."""
        return ScatterCorrelations(self.S)


@dataclass(frozen=True)
class StreamedTable(FittedTable):
    """A table that is read again for every product."""

    passes: CountedPasses
    budget: Budget
    factors: FloatArray
    """By which the usable columns are multiplied."""

    def _values_of(self, rows: IndexArray) -> dict[str, Any]:
        return {"factors": self.factors[rows]}

    def _values_times(self, factors: FloatArray) -> dict[str, Any]:
        return {"factors": self.factors * factors}

    def scatter(self, block_width: int) -> SymmetricOperator:
        """The scatter through its products, a pass each."""
        unscaled = self.moments.scaled(1.0 / self.factors)
        return StreamedScatter(self.passes, unscaled, self.usable, self.factors, self.budget)

    def correlations(self, order: IndexArray) -> Correlations:
        """Correlations of the usable columns, those next in order fetched together."""

        def scatter_of(columns: IndexArray) -> FloatArray:
            return self.restrict(columns).scatter(len(columns)).dense()

        return FetchedCorrelations(scatter_of, order, _AHEAD)


@dataclass(frozen=True)
class ReadTable:
    """A table as read, and the names of its columns."""

    table: FittedTable
    names: NDArray[Any] | None
    scatter: SymmetricOperator | None = None
    """Scatter of the table as a fit scaled it, if it is known."""


def scatter_of(selector: Any, table: FittedTable, everything: FittedTable) -> SymmetricOperator:
    """The scatter of a table, which is ``everything`` scaled, less columns never to be kept."""
    scatter = table.scatter(expected_width(selector.n_components))
    if selector.keeps_scatter and len(table.usable) == len(everything.usable):
        selector._read_ = ReadTable(everything, None, scatter)
    return scatter


# Reading


def is_plain(X: Any) -> bool:
    """True if X is an array of floats, which is read as it is."""
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype in (np.float64, np.float32)


def named_table(X: Any) -> Any:
    """The values of an AnnData object with the names of its columns; anything else as it is."""
    is_named = is_plain(X) or isinstance(X, NamedValues)
    return values_of(X) if not is_named and is_anndata(X) else X


def table_values(X: Any) -> Any:
    """The values of `NamedValues`, such as a `Table`; anything else as it is."""
    if not isinstance(X, NamedValues):
        return X
    refuse_beside(X)
    return X.values


def read_table(selector: Any, X: Any) -> MemoryTable:
    """Validate X for ``selector``, leave out constant columns, and measure the rest.

    ``fit`` calls it. The selector's ``n_features_in_`` and ``feature_names_in_`` are set; errors
    name the columns at fault.
    """
    return table_of_values(selector, validate_table(selector, named_table(X)))


def validate_table(selector: Any, X: Any) -> Any:
    """The values of X as array or CSR/CSC matrix; the names of its columns are set."""
    if not is_plain(values := table_values(X)):
        refuse_dask(values, type(selector).__name__, selector.why_not_dask)
        if selector.why_not_sparse is not None:
            _refuse_sparse(selector, values)
    return validate(selector, X)


def table_of_values(selector: Any, values: Any, rows: str = "") -> MemoryTable:
    """The table of valid values without its constant columns; ``rows``: which, in a warning.

    Gaps are filled in the way that the selector was set to (``missing``).
    """
    if fills_gaps(selector):
        values = fill_gaps(values, selector.missing)
    moments = column_moments(values)
    refuse_unrepresentable(values, moments)
    usable_columns(selector, moments, rows=rows)
    return table_of_moments(values, moments)


def table_of_moments(values: Any, moments: ColumnMoments) -> MemoryTable:
    """The table of values that a fit has checked and measured, without its constant columns."""
    usable = np.flatnonzero(~moments.constant)
    if len(usable) < values.shape[1]:
        values = values[:, usable]
    kept = moments.subset(usable)
    given = kept.precision_for(values.dtype)
    small = _stored(values).size <= MOST_IN_DOUBLE
    values = values.astype(np.float64 if small else given, copy=False)
    return MemoryTable(kept, usable, moments.mean, given, values)


def table_of_scatter(selector: Any, summed: ScatterSum, dtype: np.dtype[Any]) -> ScatterTable:
    """The table whose scatter was summed."""
    moments = summed.moments
    refuse_unrepresentable(None, moments)
    usable = usable_columns(selector, moments)
    S = summed.scatter
    if len(usable) < len(moments.mean):
        S = S[np.ix_(usable, usable)]
    return ScatterTable(moments.subset(usable), usable, moments.mean, dtype, S)


def usable_columns(selector: Any, moments: ColumnMoments, rows: str = "") -> IndexArray:
    """Columns that vary; it is an error if none does, and others are named in a warning.

    ``rows``: which rows were looked at, if not all.
    """
    usable = np.flatnonzero(~moments.constant)
    n_features = len(moments.mean)
    if len(usable) == 0:
        raise DataError(
            f"At least one column must vary; all {n_features} columns of X are constant over "
            f"{rows or f'its {moments.n_samples} samples'}. Check that samples are rows and "
            "features are columns."
        )
    if len(usable) < n_features:
        names = getattr(selector, "feature_names_in_", None)
        constant = np.flatnonzero(moments.constant)
        shown = some_of([str(j) if names is None else repr(str(names[j])) for j in constant])
        where = f" over {rows}" if rows else ""
        warn_caller(f"Columns that do not vary{where} are ranked last: {shown}.", DataWarning)
    return usable


def warn_of_units(selector: Any, table: FittedTable) -> None:
    """Warn that some columns will be kept for the size of their numbers alone."""
    span = mixed_units(table.variances)
    if span is None or selector.scaling > 0.0:
        return
    names = selector._names_of_columns()
    warn_caller(
        f"Variances span a factor of {span.ratio:.1g} ({shorten(str(names[span.low]))} to "
        f"{shorten(str(names[span.high]))}): {type(selector).__name__} keeps what has large "
        "numbers. If the columns have different units, use scaling=1, or AutoSelector, which does "
        "not depend on units.",
        UnitsWarning,
    )


def refuse_unrepresentable(values: Any, moments: ColumnMoments) -> None:
    """Raise if squares of the values leave the range of float64; ``values`` may be unknown."""
    total = float(np.sum(moments.sum_of_squares))
    if SMALLEST_SCATTER < total < LARGEST_SCATTER:
        return
    largest = float(np.abs(moments.mean).max(initial=0.0))
    if values is not None:
        largest = float(np.abs(_stored(values)).max(initial=0.0))
    if total == 0.0 and (largest == 0.0 or largest > 1e-100):
        return  # really constant
    advice = f" Multiply X by {1 / largest:.0e} first" if largest else " Rescale X first"
    raise DataError(
        "The squares of the values must stay between 1e-140 and 1e140 to be summed in float64; "
        f"the largest value here is {largest:.3g}.{advice}; a penalty given as an absolute number "
        "then changes by the square of that factor."
    )


# Tables in blocks


def read_blocks(
    selector: Any, source: BlockTable, budget: Budget, width: int
) -> tuple[FittedTable, str, CountedPasses]:
    """Read a table in blocks for ``selector``, by the cheapest route that fits into ``budget``.

    Returns the table, the route, and the count of passes, which goes on.
    """
    names = getattr(selector, "feature_names_in_", None)
    passes = CountedPasses(source)
    table: FittedTable
    route = choose_route(source, budget, width)
    try:
        if route == "scatter":
            summed = passes.total(partial(ScatterSum, source.n_features))
            table = table_of_scatter(selector, summed, source.dtype)
        elif route == "memory":
            rows = passes.total(RowCollection)
            table = read_table(selector, rows.stack())
            if names is not None:
                selector.feature_names_in_ = names
        else:  # the moments in a first pass, with which later passes are compared
            moments = passes.total(partial(MomentSum, source.n_features)).moments
            refuse_unrepresentable(None, moments)
            usable = usable_columns(selector, moments)
            kept, factors = moments.subset(usable), np.ones(len(usable))
            table = StreamedTable(kept, usable, moments.mean, source.dtype, passes, budget, factors)
    except NotFiniteError as error:
        raise explain_gaps_in_blocks(selector, error.with_names(names)) from error
    refuse_undeclared(source, table.n_samples)
    return table, route, passes


def choose_route(source: BlockTable, budget: Budget, width: int) -> str:
    """The cheapest of the routes that fit into the budget; an error gives what each one needs."""
    n_features = source.n_features
    scatter = budget.of_scatter(n_features)
    rows = budget.of_rows(source, source.n_samples, n_features)
    products = budget.of_products(n_features, width)
    if budget.holds(scatter) and _summing_is_cheap(source):
        return "scatter"
    for route, needed in (("memory", rows), ("stream", products), ("scatter", scatter)):
        if budget.holds(needed):
            return route
    needs = (
        (scatter, f"to sum the {n_features} x {n_features} scatter"),
        (products, f"for products with {width} components"),
        (rows, "to hold the rows"),
    )
    finite = [f"{readable_size(needed)} {what}" for needed, what in needs if np.isfinite(needed)]
    raise DataError(
        f"A fit must fit into memory_limit, {readable_size(budget.n_bytes)} here; this table needs "
        f"{' or '.join(finite)}. Raise memory_limit, or leave out columns first."
    )


def _summing_is_cheap(source: BlockTable) -> bool:
    """True if S takes less time to sum than the products of a fit.

    Summing takes a multiplication for every value in the row of each value, two if it is sparse.
    """
    if source.is_sparse and source.n_stored and source.n_samples:
        return 2 * source.n_stored / source.n_samples <= CHEAP_TO_SUM
    return source.n_features <= CHEAP_TO_SUM


def explain_gaps_in_blocks(selector: Any, explanation: str) -> DataError:
    """The error about gaps in blocks, also for a selector that fills those of a table in memory."""
    if fills_gaps(selector):
        explanation += (
            f" missing='{selector.missing}' fills those of a table in memory only; AutoSelector "
            "also fills those of the rows that it draws from blocks."
        )
    return DataError(explanation)


def refuse_undeclared(source: BlockTable, n_samples: int) -> None:
    """Raise if a table gave another number of rows than it declares."""
    if source.n_samples not in (None, n_samples):
        raise DataError(
            f"{source.name} must hold the rows it declares; it declares {source.n_samples} and "
            f"gave {n_samples}. Open it again, or copy it where nobody changes it."
        )


def open_blocks(selector: Any, X: Any) -> BlockTable:
    """A table in blocks, with the number and names of its columns set on ``selector``."""
    source = as_blocks(table_values(X))
    names = X.names if isinstance(X, NamedValues) else source.feature_names
    selector.n_features_in_ = source.n_features
    if names is not None:
        selector.feature_names_in_ = np.asarray(names, dtype=object)
    return source


# Gaps


def fills_gaps(selector: Any) -> bool:
    """True if a selector takes a table with gaps."""
    return getattr(selector, "missing", "error") != "error"


def fill_gaps(values: Any, way: str) -> Any:
    """Valid values without NaN; ``way`` is "mean", "median", "model", or "observed": as "model".

    Columns without any value become zero: they do not vary, and are ranked last.
    """
    gaps = np.isnan(_stored(values))
    if not gaps.any():
        return values
    if sp.issparse(values):
        raise DataError(
            f"missing='{way}' takes gaps of dense tables only; this sparse matrix stores NaN, "
            f"{int(gaps.sum())} in all. Set them to zero if that is what they mean, or pass "
            "X.toarray() if it fits in memory."
        )
    filled = values.astype(np.float64)
    filled[:, gaps.all(axis=0)] = 0.0
    if way in ("model", "observed"):
        filled = fill_rows(fit_gap_model(filled), filled)
    else:
        is_mean = way == "mean"
        of_columns = observed_columns(filled).means if is_mean else np.nanmedian(filled, axis=0)
        np.copyto(filled, of_columns, where=np.isnan(filled))
    return filled.astype(values.dtype, copy=False)


def _stored(values: Any) -> Any:
    """The values that are stored."""
    return values.data if sp.issparse(values) else values


# Validation


def validate(selector: Any, X: Any, *, reset: bool = True, fewest: int = 2) -> Any:
    """scikit-learn's checks and our own, with messages that name the columns at fault.

    The names of `NamedValues` are those of a data frame: a fit (``reset``) keeps them, and later
    tables are compared with them. NaN passes where the selector's tags allow it.
    """
    gaps_allowed = get_tags(selector).input_tags.allow_nan
    names = X.names if isinstance(X, NamedValues) else None
    if names is not None:
        X = table_values(X)
        if not reset:
            refuse_other_columns(selector, X.shape[1], names)
    if not is_plain(X):
        X = numeric_input(X)
    rules: dict[str, Any] = {
        "accept_sparse": ("csr", "csc"),
        "dtype": (np.float64, np.float32),
        "ensure_min_samples": fewest,
        "ensure_all_finite": "allow-nan" if gaps_allowed else True,
    }
    with naming_gaps(selector, X, names, fits=reset), np.errstate(all="ignore"):
        if names is not None and not reset:
            return check_array(X, **rules)  # names were compared, and scikit-learn sees none
        values = validate_data(selector, X, reset=reset, **rules)
    if names is not None:
        selector.feature_names_in_ = names
    return values


@contextmanager
def naming_gaps(selector: Any, X: Any, names: Any = None, *, fits: bool = False) -> Iterator[None]:
    """Name the columns in which values are missing, where scikit-learn only counts them."""
    gaps_allowed = get_tags(selector).input_tags.allow_nan
    try:
        yield
    except (ValueError, TypeError) as error:
        explanation = describe_missing(X, names, allow_nan=gaps_allowed)
        if explanation is None:
            raise
        if fits and not gaps_allowed and "missing" in selector.get_params(deep=False):
            explanation += " missing='model' fills NaN."
        raise DataError(explanation) from error


def sound_table(X: Any) -> Any:
    """X as an array, frame or sparse matrix, not checked for what its values are.

    Indices of a sparse matrix must lie inside, because SciPy would follow them anywhere; columns of
    a frame must be named once; a lazy or foreign frame becomes one with values.
    """
    if sp.issparse(X):
        return canonical_sparse(X)
    X = array_or_frame(X)
    if is_frame(X):
        frame_columns(X)
    return X


def _refuse_sparse(selector: Any, X: Any) -> None:
    is_sparse_frame = hasattr(X, "sparse") and all(
        str(dtype).startswith("Sparse") for dtype in X.dtypes
    )
    if sp.issparse(X) or is_sparse_frame:
        dense = "sparse.to_dense" if is_sparse_frame else "toarray"
        raise DataError(
            f"{type(selector).__name__} does not accept sparse tables: {selector.why_not_sparse} "
            f"Pass X.{dense}() if it fits in memory, or use a method that takes them, such as "
            "SPCAFS or MCFS."
        )


def refuse_dask(X: Any, what: str, reason: str) -> None:
    """Raise for a Dask collection; ``reason`` is a clause."""
    if is_dask(X):
        raise DataError(
            f"{what} does not accept a Dask collection: {reason} Use SPCAFS, which sums over the "
            "chunks, or X.compute() if it fits in memory."
        )


def refuse_other_columns(selector: Any, n_columns: int, names: Any = None) -> None:
    """Raise unless these are the columns of the fit, in their order, as far as names are known."""
    n_features = selector.n_features_in_
    if n_columns != n_features:
        raise DataError(f"X must have the {n_features} columns of the fit; it has {n_columns}.")
    fitted = getattr(selector, "feature_names_in_", None)
    if fitted is None or names is None:
        return
    for at, (name, expected) in enumerate(zip(names, fitted, strict=True)):
        if str(name) != str(expected):
            raise DataError(
                f"X must have the columns of the fit in the same order; column {at} is "
                f"{shorten(str(name))}, and {shorten(str(expected))} in the fit. Put "
                "them in the order of selector.feature_names_in_."
            )


# Tables of functions that are not selectors


@dataclass(eq=False, repr=False)
class TableReader(BaseEstimator):
    """Stands for a selector while a table is read; it keeps the names of the columns."""

    missing: str = "error"

    why_not_sparse = None
    why_not_dask = ""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = fills_gaps(self)
        tags.input_tags.sparse = True
        return tags


def read_any_table(
    X: Any,
    *,
    n_components: Any,
    missing: str = "error",
    check: Callable[[int, Any], object] = lambda n_columns, names: None,
) -> ReadTable:
    """Read a table, or one that comes in blocks, as `SPCAFS.fit` and ``fit_blocks`` do.

    A table that a fit has read is taken as it is. ``check`` is called with the number of the
    columns and their names, before rows of blocks are read.
    """
    if isinstance(X, FittedTable):
        X = ReadTable(X, None)
    if isinstance(X, ReadTable):
        check(X.table.n_features, X.names)
        return X
    reader = TableReader(missing=missing)
    X = named_table(X)
    values = table_values(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # constant columns hold nothing, that is all
        if comes_in_blocks(values) or is_block_source(values):
            source = open_blocks(reader, X)
            check(source.n_features, getattr(reader, "feature_names_in_", None))
            width, budget = expected_width(n_components), memory_budget(None)
            table = read_blocks(reader, source, budget, width)[0]
        else:
            table = read_table(reader, X)
            check(table.n_features, getattr(reader, "feature_names_in_", None))
    return ReadTable(table, getattr(reader, "feature_names_in_", None))


def is_block_source(values: Any) -> bool:
    """True if this is something that ``fit_blocks`` reads and ``fit`` does not."""
    if isinstance(values, (str, os.PathLike)) or is_dask(values):
        return True
    if hasattr(values, "total") and hasattr(values, "n_features"):
        return True
    if isinstance(values, (list, tuple)) and len(values):
        first = values[0]
        return isinstance(first, (str, os.PathLike)) or len(getattr(first, "shape", ())) == 2
    return isinstance(values, Iterator) or (callable(values) and not hasattr(values, "shape"))
