"""Tables that are read in blocks of rows: which way to go, and what each way then knows.

======== =============================================== ===================================
route    what is held in memory                          passes over the table
======== =============================================== ===================================
scatter  S, d x d                                        one
memory   the rows                                        one
stream   a few d x m blocks                              one a product, until few rows are active
======== =============================================== ===================================
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from keepers._protocols import BlockTable, FloatArray, IndexArray, RowBlock, SymmetricOperator
from keepers.data.blocks.as_blocks import ArrayBlocks
from keepers.data.wording import readable_size
from keepers.exceptions import DataError, ParameterError
from keepers.linalg.correlation import Correlations, FetchedCorrelations, ScatterCorrelations
from keepers.linalg.moments import ColumnMoments
from keepers.linalg.scatter import DenseScatter
from keepers.linalg.sketch import TableSketch
from keepers.linalg.storage import by_rows
from keepers.linalg.streamed import Budget, CountedPasses, StreamedScatter
from keepers.linalg.sums import (
    NotFiniteError,
    RowCollection,
    ScatterSum,
    SketchSum,
    SumWithSketch,
    refuse_not_finite,
)
from keepers.selectors.fitted_table import (
    FittedTable,
    fill_gaps,
    fills_gaps,
    read_table,
    refuse_unrepresentable,
    usable_columns,
    validate,
)
from keepers.selectors.saved_passes import SavedPasses

# A fit from streamed products reads the table about so many times, and reading a value takes about
# as long as so many multiplications.
_EXPECTED_PASSES = 20
_READING = 60
# Columns beyond those asked for whose correlations are fetched in one pass.
_AHEAD = 3000


@dataclass(frozen=True)
class ScatterTable(FittedTable):
    """A table of which the scatter is known."""

    S: FloatArray
    """Of the usable columns."""
    known: TableSketch | None = None
    """If it was asked for before the rows were read."""

    def _values_of(self, rows: IndexArray) -> dict[str, Any]:
        return {"S": self.S[np.ix_(rows, rows)], "known": None}

    def _values_times(self, factors: FloatArray) -> dict[str, Any]:
        return {"S": self.S * factors * factors[:, np.newaxis]}

    def scatter(self, block_width: int) -> SymmetricOperator:
        """S, as it is."""
        return DenseScatter(self.S)

    def correlations(self, order: IndexArray) -> Correlations:
        """Correlations of the usable columns."""
        return ScatterCorrelations(self.S)

    def sketch(self) -> TableSketch:
        """What was summed beside the scatter."""
        assert self.known is not None, "to be asked for before rows are read"
        return self.known


@dataclass(frozen=True)
class StreamedTable(FittedTable):
    """A table that is read again for every product."""

    passes: CountedPasses
    budget: Budget
    factors: FloatArray
    """By which the usable columns are multiplied."""
    known: TableSketch

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

    def sketch(self) -> TableSketch:
        """What was summed in the first pass."""
        return self.known


@dataclass(frozen=True)
class ReadBlocks:
    """A table as read, the way it was read, and the count of passes."""

    table: FittedTable
    route: str
    passes: CountedPasses


def read_blocks(
    selector: Any,
    source: BlockTable,
    budget: Budget,
    width: int,
    *,
    route: str = "auto",
    sketched: bool = False,
    files: SavedPasses | None = None,
) -> ReadBlocks:
    """Read a table in blocks for ``selector``: as much of it as the route asks for.

    ``route``: "auto", or the one that the user asks for. ``sketched``: whether
    `FittedTable.sketch` will be asked for; the rows may not come again. ``files``: where the sums
    of passes are saved.
    """
    names = getattr(selector, "feature_names_in_", None)
    passes = CountedPasses(source, files)
    table: FittedTable
    asked, route = route, choose_route(source, budget, width, route)
    try:
        if route == "scatter":
            table = read_by_scatter(selector, source, passes.total, sketched=sketched)
        elif route == "memory":
            begin = partial(_RowsWithin, budget.n_bytes, asked)
            table = read_table(selector, passes.total(begin).stack())
            if names is not None:
                selector.feature_names_in_ = names
        else:
            table = _read_by_stream(selector, passes, budget)
    except NotFiniteError as error:
        raise gaps_in_blocks(selector, error.with_names(names)) from error
    if files is not None and source.n_samples not in (None, table.n_samples):
        files.forget()  # sums of rows that are not there any more
    refuse_undeclared(source, table.n_samples)
    return ReadBlocks(table, route, passes)


def gaps_in_blocks(selector: Any, explanation: str) -> DataError:
    """The error about gaps in blocks; a selector that fills gaps says why not these."""
    if fills_gaps(selector):
        explanation += (
            f" missing='{selector.missing}' fills those of a table in memory only; AutoSelector "
            "also fills those of the rows that it draws from blocks."
        )
    return DataError(explanation)


def read_by_scatter(
    selector: Any, source: BlockTable, total: Callable[..., Any], *, sketched: bool
) -> ScatterTable:
    """The scatter in a single pass by ``total``, and the sketch beside it if it is asked for."""
    n_features = source.n_features
    begin = partial(ScatterSum, n_features)
    if not sketched:
        return table_of_scatter(selector, total(begin), source.dtype)
    both = total(partial(SumWithSketch, begin, n_features))
    table = table_of_scatter(selector, both.sum, source.dtype)
    return replace(table, known=both.sketch.subset(table.usable))


def read_tall_array(selector: Any, X: Any, *, sketched: bool) -> ScatterTable:
    """A large tall array by its scatter, from a single pass with all threads."""
    values = validate(selector, X)
    if fills_gaps(selector):
        values = fill_gaps(values, selector.missing)
    source = ArrayBlocks(values, "X")
    return read_by_scatter(selector, source, source.total, sketched=sketched)


def add_rows(so_far: ScatterSum | None, values: Any, budget: Budget) -> ScatterSum:
    """The scatter of rows, which are valid, and of those before them."""
    n_features = values.shape[1]
    needed = budget.of_scatter(n_features)
    if not budget.holds(needed):
        raise DataError(
            f"partial_fit keeps a {n_features} x {n_features} scatter, {readable_size(needed)} "
            f"with the work on it, which must fit into memory_limit, "
            f"{readable_size(budget.n_bytes)} here. Raise memory_limit, or give fit_blocks "
            "something that can be read again."
        )
    summed = ScatterSum(n_features) if so_far is None else so_far
    summed.add(RowBlock(by_rows(values), "X"))
    return summed


def _read_by_stream(selector: Any, passes: CountedPasses, budget: Budget) -> StreamedTable:
    """The moments in a first pass, and what later passes are compared with."""
    columns = np.arange(passes.table.n_features)
    sketch = passes.total(partial(SketchSum, columns)).sketch
    usable = _check_and_find_usable(selector, sketch.moments)
    known = sketch.subset(usable)
    passes.expect(usable, known.products.sum(axis=1))
    passes.know(sketch)
    return StreamedTable(
        known.moments,
        usable,
        sketch.moments.mean,
        passes.table.dtype,
        passes,
        budget,
        np.ones(len(usable)),
        known,
    )


def refuse_undeclared(source: BlockTable, n_samples: int) -> None:
    """Raise if a table gave another number of rows than it declares."""
    if source.n_samples not in (None, n_samples):
        raise DataError(
            f"{source.name} must hold the rows it declares; it declares {source.n_samples} and "
            f"gave {n_samples}. Open it again, or copy it where nobody changes it."
        )


def table_of_scatter(
    selector: Any, summed: ScatterSum, dtype: np.dtype[Any], *, quiet: bool = False
) -> ScatterTable:
    """The table of which a scatter was summed; ``quiet`` about columns that do not vary (yet)."""
    moments = summed.moments
    usable = _check_and_find_usable(selector, moments, quiet)
    S = summed.scatter
    if len(usable) < len(moments.mean):
        S = S[np.ix_(usable, usable)]
    return ScatterTable(moments.subset(usable), usable, moments.mean, dtype, S)


def _check_and_find_usable(
    selector: Any, moments: ColumnMoments, quiet: bool = False
) -> IndexArray:
    if moments.n_samples < 2:
        raise DataError(
            f"A fit needs at least 2 samples; the blocks hold {moments.n_samples}. Check that "
            "samples are rows and features are columns."
        )
    refuse_unrepresentable(None, moments)
    return usable_columns(selector, moments, quiet=quiet)


ROUTES = ("scatter", "memory", "stream")


def choose_route(source: BlockTable, budget: Budget, width: int, asked: str = "auto") -> str:
    """The cheapest of the routes that fit into the budget, or the one asked for if it does.

    An error says what each of them would need.
    """
    needs = _needs(source, budget, width)
    if asked != "auto":
        return _check_route(asked, source, budget, needs)
    if budget.holds(needs["scatter"].n_bytes) and _summing_is_cheap(source, width):
        return "scatter"
    for route in ("memory", "stream", "scatter"):
        if budget.holds(needs[route].n_bytes):
            return route
    if not source.rereadable and source.is_local:
        return "memory"  # the number of rows is unknown: they may fit
    told = [str(need) for need in needs.values() if np.isfinite(need.n_bytes)]
    raise DataError(
        f"A fit must fit into memory_limit, {readable_size(budget.n_bytes)} here; this table needs "
        f"{' or '.join(told)}. Raise memory_limit, or leave out columns first."
    )


@dataclass(frozen=True)
class _Need:
    """Memory that a route takes, and what for."""

    n_bytes: float
    """Infinite where the route cannot be taken, or where the memory is not known."""
    purpose: str

    def __str__(self) -> str:
        return f"{readable_size(self.n_bytes)} {self.purpose}"


def _needs(source: BlockTable, budget: Budget, width: int) -> dict[str, _Need]:
    n_features = source.n_features
    products = budget.of_products(n_features, width) if source.rereadable else float("inf")
    rows = budget.of_rows(source, source.n_samples, n_features)
    return {
        "scatter": _Need(
            budget.of_scatter(n_features), f"to sum the {n_features} x {n_features} scatter"
        ),
        "stream": _Need(products, f"for products with {width} components"),
        "memory": _Need(rows, "to hold the rows"),
    }


def _check_route(asked: str, source: BlockTable, budget: Budget, needs: dict[str, _Need]) -> str:
    """A route that the user asked for; an error if it cannot be taken."""
    # Of such rows the number or the size is not known: whether they fit shows while they are read.
    rows_may_fit = source.is_local and not np.isfinite(needs["memory"].n_bytes)
    fitting = [
        route
        for route in ROUTES
        if budget.holds(needs[route].n_bytes) or (route == "memory" and rows_may_fit)
    ]
    if asked in fitting:
        return asked
    limit = readable_size(budget.n_bytes)
    if asked == "stream" and not source.rereadable:
        fault = f"reads the table many times; {source.name} can be read only once"
    elif asked == "memory" and not source.is_local:
        fault = f"holds the rows in this process; those of {source.name} are not local"
    else:
        fault = f"must fit into memory_limit, {limit} here; it needs {needs[asked]}"
    others = [
        f"route={route!r} needs {needs[route]}"
        for route in ROUTES
        if route != asked and np.isfinite(needs[route].n_bytes)
    ]
    if rows_may_fit and asked != "memory":
        others.append("route='memory' needs what the rows take, which is not known beforehand")
    way_out = f"None fits into memory_limit, {limit}: raise it, or leave out columns first."
    if fitting:
        # Of rows whose size is not known it is only known that they may fit.
        some = " or ".join(f"route={route!r}" for route in fitting)
        way_out = f"Within {limit}, use {some}, or leave it to route='auto'."
    raise ParameterError(f"route={asked!r} {fault}. Of the others, {'; '.join(others)}. {way_out}")


def _summing_is_cheap(source: BlockTable, width: int) -> bool:
    """Whether S takes less time to sum than the products of a fit, reading included.

    Per value and pass a product takes 4 m additions; summing S takes one for each value in its row,
    which in a sparse row are few, but twenty times as slow.
    """
    streaming = _EXPECTED_PASSES * (4 * width + _READING)
    if source.is_sparse and source.n_stored and source.n_samples:
        return 20 * source.n_stored / source.n_samples <= 20 * streaming / 2
    return source.n_features <= streaming


class _RowsWithin(RowCollection):
    """Rows, as long as they fit."""

    def __init__(self, limit: float, asked: str) -> None:
        super().__init__()
        self.limit = limit
        self.asked = asked
        self.held = 0

    def add(self, block: RowBlock) -> None:
        """Take a block in; refuse it if the rows outgrow the limit."""
        values = block.values
        parts = [values.data, values.indices] if hasattr(values, "indptr") else [values]
        self.held += sum(part.nbytes for part in parts)
        if self.held > self.limit:
            reason = "route='memory' holds them"
            way_out = "leave the route to route='auto'"
            if self.asked == "auto":
                reason = "they can be read only once and have too many columns to be summed up"
                way_out = (
                    "pass something that can be read again: a file, an array, a list of blocks, "
                    "or a function that returns an iterator"
                )
            raise DataError(
                f"The rows must fit into memory_limit, {readable_size(self.limit)} here, because "
                f"{reason}; they do not ({block.origin}). Raise memory_limit, or {way_out}."
            )
        refuse_not_finite(block)
        super().add(block)
