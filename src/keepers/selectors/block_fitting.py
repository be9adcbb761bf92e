"""Fits on tables that are read in blocks: out of core, row by row, and on a cluster."""

import os
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from keepers._protocols import RowBlock
from keepers.data.blocks.as_blocks import (
    ArrayBlocks,
    as_blocks,
    column_labels,
    in_order,
    refuse_repeated,
)
from keepers.data.dask_blocks import is_dask, selected_columns
from keepers.data.wording import readable_size
from keepers.exceptions import DataError, ParameterError, shortened
from keepers.linalg.budget import Budget
from keepers.linalg.scatter import SMALL_SIDE
from keepers.linalg.sums import ScatterSum
from keepers.selectors.block_tables import (
    ScatterTable,
    read_blocks,
    read_by_scatter,
    table_of_scatter,
)
from keepers.selectors.checkpoint import check_checkpoint
from keepers.selectors.control import ControlledSelector, FeatureControl, check_control
from keepers.selectors.memory import memory_budget
from keepers.selectors.settings import check_count, check_feature_count, is_whole
from keepers.selectors.table import FittedTable, validated

__all__ = ["BlockFitting"]

# How many components to expect where the data decide.
TYPICAL_COMPONENTS = 10
# From this number of values on, one pass with all threads pays.
TALL_SIZE = 10_000_000


class BlockFitting(ControlledSelector):
    """A selector that learns all it needs from sums over blocks; ends its fit in `_fit_table`."""

    n_components: int | float | str
    memory_limit: int | float | str | None
    checkpoint: str | os.PathLike[str] | None
    _column_labels_: Any
    """Of the first rows given to ``partial_fit``."""

    def _check_parameters(self) -> None:
        """Refuse settings outside their rules: all that needs no data, before any are touched."""
        memory_budget(self.memory_limit)
        check_control(
            penalty_weights=self.penalty_weights,
            groups=self.groups,
            must_keep=self.must_keep,
            never_keep=self.never_keep,
        )
        if self.checkpoint is not None:
            check_checkpoint(self.checkpoint, self._settings())

    def _settings(self) -> dict[str, Any]:
        """The settings that the result depends on, as a checkpoint keeps them."""
        raise NotImplementedError

    def _read_control(self, n_features: int) -> FeatureControl:
        """What the user decided before the data do."""
        raise NotImplementedError

    def _fit_table(self, everything: FittedTable) -> None:
        """Fit, and store everything learned."""
        raise NotImplementedError

    def fit_blocks(self, source: Any, y: Any = None) -> Self:
        """Rank the features of a table that is read in blocks of rows.

        Scores are those of ``fit`` on the same numbers. What has to be held in memory, and how
        many times the table is read, follows from ``memory_limit``: see ``route_`` and
        ``n_passes_``, and the page "How it scales".

        Parameters
        ----------
        source : path, array, list, function, iterator, Dask collection or block table
            A file (Parquet, Arrow, CSV, NPY, HDF5, h5ad), a folder of files or a pattern such as
            ``"part-*.parquet"``; an array, memory map, sparse matrix or anything sliced like one; a
            list of blocks (arrays, sparse matrices or data frames); a function that
            returns an iterator of blocks; or such an iterator itself, which can be read only once.
            The columns of data frames are matched by name. An object of your own may be a block
            table, see the page "How it scales". Rows that change between passes are an error.
            `keepers.datasets.open_blocks` opens files with columns that are no features.
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
        return self._fitting(lambda: self._fit_in_blocks(source))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows, and rank the features by all rows so far.

        The scatter of the columns is kept, d x d, and solved anew at each call: the result is that
        of ``fit`` on all rows at once. For a long stream ``fit_blocks``, which solves once, is
        cheaper. Before the rows suffice (two, and more than ``n_components``) they are only added.
        Rows given to ``fit`` or ``fit_blocks`` before are not remembered. If X or a parameter is
        refused, nothing was added. There is no checkpoint of a stream.

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
        self._check_parameters()
        check_feature_count(self.n_features_to_select)
        self._check_limit()
        if self.checkpoint is not None:
            raise ParameterError(
                "partial_fit keeps no checkpoint, each call being a fit of its own; got "
                f"checkpoint={shortened(str(self.checkpoint))}. Leave it out, or use fit_blocks."
            )
        so_far = self._accumulated(X)
        fewest = self.n_components if is_whole(self.n_components) else 1
        n_varying = int((~so_far.moments.constant).sum())
        if so_far.n_samples > fewest and n_varying >= fewest:
            # Columns that do not vary so far may yet do so: no warning.
            self._fit_table(table_of_scatter(self, so_far, np.dtype(np.float64), quiet=True))
        return self

    def transform(self, X: Any) -> Any:
        """The columns kept of X; of a Dask collection lazily, as the same kind of collection.

        Parameters
        ----------
        X : array, data frame, sparse matrix or Dask collection of shape (n_samples, n_features)
            A table with the columns of the one fitted.

        Returns
        -------
        array, data frame, sparse matrix or Dask collection
            The kept columns, in the order of X.
        """
        if not is_dask(X):
            return super().transform(X)
        columns = np.flatnonzero(self.get_support())
        if X.shape[1] != self.n_features_in_:
            raise DataError(
                f"X must have the {self.n_features_in_} columns of the fit; it has {X.shape[1]}."
            )
        names = getattr(self, "feature_names_in_", None)
        if names is not None and hasattr(X, "columns"):
            found = [str(name) for name in X.columns]
            if found != list(names):
                at = next(i for i, name in enumerate(found) if name != names[i])
                raise DataError(
                    "X must have the columns of the fit in the same order; column "
                    f"{at} is {shortened(found[at])}, and {shortened(names[at])} in the fit. Pass "
                    "X[list(selector.feature_names_in_)]."
                )
        return selected_columns(X, columns)

    def _accumulated(self, X: Any) -> ScatterSum:
        so_far = getattr(self, "scatter_sum_", None)
        first = so_far is None
        if first:
            self._forget()  # fit and fit_blocks keep no sums to add to
            refuse_repeated(column_labels(X) or [], "X")
        else:
            X = in_order(X, self._column_labels_, "X", first="the first X")
        values = validated(self, X, reset=first, fewest=1)
        n_features = values.shape[1]
        self._check_columns(n_features)
        budget = self._budget()
        if not budget.holds(budget.of_scatter(n_features)):
            raise DataError(
                f"partial_fit keeps a {n_features} x {n_features} scatter, "
                f"{readable_size(budget.of_scatter(n_features))} with the work on it, which must "
                f"fit into memory_limit, {readable_size(budget.n_bytes)} here. Raise memory_limit, "
                "or give fit_blocks something that can be read again."
            )
        if so_far is None:
            so_far = ScatterSum(n_features)
            self._column_labels_ = column_labels(X)
        so_far.add(RowBlock(sp.csr_array(values) if sp.issparse(values) else values, "X"))
        self.scatter_sum_ = so_far
        return so_far

    def _read_summed(self, X: Any) -> ScatterTable | None:
        """A large tall array by its scatter, from a single pass with all threads; else None."""
        if not isinstance(X, np.ndarray) or X.dtype not in (np.float32, np.float64):
            return None
        if X.ndim != 2 or X.size < TALL_SIZE:
            return None
        n_samples, n_features = X.shape
        if n_features > min(SMALL_SIDE, n_samples // 2):
            return None
        source = ArrayBlocks(validated(self, X), "X")
        return read_by_scatter(self, source, source.total, sketched=self.checkpoint is not None)

    def _fit_in_blocks(self, given: Any) -> None:
        self._check_parameters()
        source = as_blocks(given)
        self.n_features_in_ = source.n_features
        if source.feature_names is not None:
            self.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
        self._check_columns(source.n_features)
        read = read_blocks(
            self,
            source,
            self._budget(),
            self._expected_components(),
            sketched=self.checkpoint is not None,
        )
        self._fit_table(read.table)
        self.n_passes_ = read.passes.n_passes
        self.route_ = read.route

    def _check_columns(self, n_features: int) -> None:
        """Refuse settings that do not go with the columns, before the rows are read."""
        self._read_control(n_features).count_to_select(self.n_features_to_select)
        if is_whole(self.n_components):
            hint = f"X has {n_features} columns."
            check_count("n_components", self.n_components, at_most=n_features, hint=hint)

    def _budget(self) -> Budget:
        return Budget(memory_budget(self.memory_limit))

    def _expected_components(self) -> int:
        return self.n_components if is_whole(self.n_components) else TYPICAL_COMPONENTS
