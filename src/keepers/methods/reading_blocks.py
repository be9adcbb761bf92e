"""Tables for the methods that need the scatter of the columns only, however the rows arrive.

A `ScatterSelector` is fitted to a table in memory, to blocks of rows from files, iterators or Dask,
or row by row. `read_blocks` takes one of three routes to a table in blocks:

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from keepers._protocols import BlockTable, FloatArray, IndexArray, RowBlock, SymmetricOperator
from keepers._wording import readable_size
from keepers.blocks.sources import as_blocks, column_labels, in_order
from keepers.exceptions import DataError, DataWarning
from keepers.linalg.correlation import Correlations, FetchedCorrelations
from keepers.linalg.scatter import ColumnMoments, by_rows
from keepers.linalg.sums import (
    Budget,
    CountedPasses,
    MomentSum,
    NotFiniteError,
    RowCollection,
    ScatterSum,
    StreamedScatter,
    refuse_not_finite,
)
from keepers.methods.base import FitNotes, RankingSelector
from keepers.methods.parameters import (
    FeatureCount,
    check_value,
    expected_width,
    is_whole,
    memory_budget,
    whole,
)
from keepers.methods.reading import (
    FittedTable,
    ReadTable,
    fills_gaps,
    named_table,
    read_for_scatter,
    read_table,
    refuse_unrepresentable,
    table_of_scatter,
    table_values,
    usable_columns,
    validate,
)
from keepers.tables.objects import comes_in_blocks, describe_missing, is_dask
from keepers.tables.table import NamedValues, refuse_repeated

# The number of passes that a fit from streamed products makes, about, and the number of
# multiplications that take as long as reading a value.
_EXPECTED_PASSES = 20
_READING = 60
# Columns beyond those asked for whose correlations are fetched in one pass.
_AHEAD = 3000


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
        unscaled = self.moments.scaled(1.0 / self.factors)

        def scatter_of(columns: IndexArray) -> FloatArray:
            begin = partial(ScatterSum, len(columns))
            summed = self.passes.total(begin, self.usable[columns])
            moments = unscaled.subset(columns)
            change = summed.moments.mean - moments.mean
            self.passes.refuse_other_rows(summed.n_samples, change, moments)
            return summed.scatter

        return FetchedCorrelations(scatter_of, order, _AHEAD)


@dataclass(frozen=True)
class ReadBlocks:
    """A table as read, the way it was read, and the count of passes."""

    table: FittedTable
    route: str
    passes: CountedPasses


def read_blocks(selector: Any, source: BlockTable, budget: Budget, width: int) -> ReadBlocks:
    """Read a table in blocks for ``selector``, by the cheapest route that fits into ``budget``."""
    names = getattr(selector, "feature_names_in_", None)
    passes = CountedPasses(source)
    table: FittedTable
    route = choose_route(source, budget, width)
    try:
        if route == "scatter":
            summed = passes.total(partial(ScatterSum, source.n_features))
            table = table_of_scatter(selector, summed, source.dtype)
        elif route == "memory":
            rows = passes.total(partial(_RowsWithin, budget.n_bytes))
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
        raise _gaps_in_blocks(selector, error.with_names(names)) from error
    refuse_undeclared(source, table.n_samples)
    return ReadBlocks(table, route, passes)


def choose_route(source: BlockTable, budget: Budget, width: int) -> str:
    """The cheapest of the routes that fit into the budget; an error gives what each one needs."""
    n_features = source.n_features
    scatter = budget.of_scatter(n_features)
    rows = budget.of_rows(source, source.n_samples, n_features)
    products = budget.of_products(n_features, width) if source.rereadable else float("inf")
    if budget.holds(scatter) and _summing_is_cheap(source, width):
        return "scatter"
    for route, needed in (("memory", rows), ("stream", products), ("scatter", scatter)):
        if budget.holds(needed):
            return route
    if not source.rereadable and source.is_local:
        return "memory"  # the number of rows is unknown: they may fit
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


def _summing_is_cheap(source: BlockTable, width: int) -> bool:
    """Whether S takes less time to sum than the products of a fit, reading included.

    Per value and pass a product takes 4 m additions; summing S takes one for each value in its row,
    and two if the row is sparse.
    """
    streaming = _EXPECTED_PASSES * (4 * width + _READING)
    if source.is_sparse and source.n_stored and source.n_samples:
        return 2 * source.n_stored / source.n_samples <= streaming
    return source.n_features <= streaming


class _RowsWithin(RowCollection):
    """Rows, as long as they fit."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self.limit = limit
        self.held = 0

    def add(self, block: RowBlock) -> None:
        """Take a block in; raise if the rows outgrow the limit."""
        values = block.values
        parts = [values.data, values.indices] if hasattr(values, "indptr") else [values]
        self.held += sum(part.nbytes for part in parts)
        if self.held > self.limit:
            raise DataError(
                f"The rows must fit into memory_limit, {readable_size(self.limit)} here, because "
                "they can be read only once and have too many columns to be summed up; they do not "
                f"({block.origin}). Raise memory_limit, or pass something that can be read again: "
                "a file, an array, a list of blocks, or a function that returns an iterator."
            )
        refuse_not_finite(block)
        super().add(block)


def _gaps_in_blocks(selector: Any, explanation: str) -> DataError:
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


class ScatterSelector(RankingSelector):
    """A selector that needs the scatter of the columns only, through its products.

    A subclass implements ``_fit_table`` and has the parameters below.
    """

    needs_scatter_only = True
    seeks_variance = True
    n_components: int | float | str
    scaling: float
    memory_limit: int | float | str | None

    keeps_scatter: bool = False
    """Set to True before ``fit``, it keeps the table and its scatter for a certificate."""

    mean_: FloatArray
    var_: FloatArray
    n_samples_seen_: int

    def fit_notes(self) -> FitNotes:
        """What the fit has to report, with the moments that it measured."""
        n_samples = self.n_samples_seen_
        moments = ColumnMoments(n_samples, self.mean_, n_samples * self.var_)
        return replace(super().fit_notes(), moments=moments)

    def fit_blocks(self, source: Any, y: Any = None) -> Self:
        """Rank the features of a table that is read in blocks of rows.

        Scores are those of ``fit`` on the same numbers. What has to be held in memory, and how
        many times the table is read, follows from ``memory_limit``: see ``route_`` and
        ``n_passes_``, and the page "How it scales".

        Parameters
        ----------
        source : path, array, list, function, iterator or Dask collection
            A file (Parquet, Arrow, CSV, NPY, HDF5, h5ad), a folder of files or a pattern such as
            ``"part-*.parquet"``; an array, memory map, sparse matrix or anything sliced like one; a
            list of blocks (arrays, sparse matrices or data frames); a function that
            returns an iterator of blocks; or such an iterator itself, which can be read only once.
            The columns of data frames are matched by name. Rows that change between passes are an
            error.
            `keepers.datasets.scan_table` opens files with columns that are no features.
        y : ignored
            Present for API consistency.

        Returns
        -------
        self : object
            The fitted selector.

        Examples
        --------
        >>> from keepers import SPCAFS, datasets
        >>> X = datasets.load("srbct").X[:, :300]
        >>> blocks = (X[start : start + 20] for start in range(0, len(X), 20))
        >>> selector = SPCAFS(10).fit_blocks(blocks)
        >>> selector.n_passes_
        1
        """
        with self._fitting():
            self._fit_blocks(source)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows, and rank the features by all rows so far.

        The scatter of the columns is kept, d x d, and solved anew at each call: the result is that
        of ``fit`` on all rows at once. For a long stream ``fit_blocks``, which solves once, is
        cheaper. Before the rows suffice (two, and more than ``n_components``) they are only added.
        Rows given to ``fit`` or ``fit_blocks`` before are not remembered. If X or a parameter is
        refused, nothing was added.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            Rows to add. The columns of data frames are matched by name.
        y : ignored
            Present for API consistency.

        Returns
        -------
        self : object
            The selector, fitted once there are rows enough.
        """
        self.check_parameters()
        so_far = self._add_rows(X)
        fewest = self.n_components if is_whole(self.n_components) else 1
        n_varying = int((~so_far.moments.constant).sum())
        if so_far.n_samples > fewest and n_varying >= fewest:
            # Columns that do not vary so far may yet do so: no warning.
            self._fit_table(table_of_scatter(self, so_far, np.dtype(np.float64), quiet=True))
        return self

    def _fit_blocks(self, X: Any) -> None:
        source = open_blocks(self, X)
        self._check_columns(source.n_features)
        budget = memory_budget(self.memory_limit)
        read = read_blocks(self, source, budget, expected_width(self.n_components))
        self._fit_table(read.table)
        self.n_passes_ = read.passes.n_passes
        self.route_ = read.route

    def _add_rows(self, X: Any) -> ScatterSum:
        """Add rows to the sums of ``partial_fit``; nothing is added if X is refused."""
        summed: ScatterSum | None = getattr(self, "scatter_sum_", None)
        is_first = summed is None
        if is_first:
            self._forget()  # fit and fit_blocks keep no sums to add to
            refuse_repeated(column_labels(X) or [])
        else:
            X = in_order(X, self._column_labels_, "X", first="the first X")
        values = validate(self, named_table(X), reset=is_first, fewest=1)
        if fills_gaps(self):
            explanation = describe_missing(values, getattr(self, "feature_names_in_", None))
            if explanation is not None:
                raise _gaps_in_blocks(self, explanation)
        n_features = values.shape[1]
        self._check_columns(n_features)
        budget = memory_budget(self.memory_limit)
        needed = budget.of_scatter(n_features)
        if not budget.holds(needed):
            raise DataError(
                f"partial_fit keeps a {n_features} x {n_features} scatter, {readable_size(needed)} "
                f"with the work on it, which must fit into memory_limit, "
                f"{readable_size(budget.n_bytes)} here. Raise memory_limit, or give fit_blocks "
                "something that can be read again."
            )
        if summed is None:
            summed = ScatterSum(n_features)
            self._column_labels_: Any = column_labels(X)
        summed.add(RowBlock(by_rows(values), "X"))
        self.scatter_sum_ = summed
        return summed

    def _check_columns(self, n_features: int) -> None:
        """Raise for settings that do not go with the columns, before the rows are read."""
        self._control(n_features).count_to_select(self.n_features_to_select)
        if is_whole(self.n_components):
            rule = whole(at_most=n_features, hint=f"X has {n_features} columns.")
            check_value("n_components", self.n_components, rule)


# Tables of functions that are not selectors


@dataclass(eq=False, repr=False)
class TableReader(RankingSelector):
    """Stands for a selector while a table is read; it keeps the names of the columns."""

    n_features_to_select: FeatureCount = None
    missing: str = "error"


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
            table = read_blocks(reader, source, budget, width).table
            return ReadTable(table, getattr(reader, "feature_names_in_", None))
        table = read_for_scatter(reader, X)
    names = getattr(reader, "feature_names_in_", None)
    check(table.n_features, names)
    return ReadTable(table, names)


def is_block_source(values: Any) -> bool:
    """Whether this is something that ``fit_blocks`` reads and ``fit`` does not."""
    if isinstance(values, (str, os.PathLike, Iterator)) or is_dask(values):
        return True
    if hasattr(values, "total") and hasattr(values, "n_features"):
        return True
    if isinstance(values, (list, tuple)) and len(values):
        first = values[0]
        return isinstance(first, (str, os.PathLike)) or len(getattr(first, "shape", ())) == 2
    return callable(values) and not hasattr(values, "shape")
