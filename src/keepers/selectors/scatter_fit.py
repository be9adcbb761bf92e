"""Tables in blocks, for the selectors that rank by the scatter of the columns.

From files, iterators, Dask, or row by row with ``partial_fit``: a subclass is handed a
`FittedTable` and asks it for the scatter, as of a table in memory.
"""

import os
from pathlib import Path
from typing import Any, Self

import numpy as np

from keepers.data.blocks.as_blocks import (
    as_blocks,
    column_labels,
    in_order,
    refuse_repeated,
)
from keepers.data.in_memory import describe_missing
from keepers.data.table import NamedValues
from keepers.exceptions import ParameterError, shorten
from keepers.linalg.sums import ScatterSum
from keepers.selectors.block_tables import (
    add_rows,
    gaps_in_blocks,
    read_blocks,
    table_of_scatter,
)
from keepers.selectors.control import control_of
from keepers.selectors.fitted_table import (
    FittedTable,
    fills_gaps,
    named_table,
    table_values,
    validate,
)
from keepers.selectors.memory import memory_budget
from keepers.selectors.parameters import check_count, expected_width, is_whole
from keepers.selectors.ranking import RankingSelector
from keepers.selectors.saved_passes import SavedPasses


class ScatterSelector(RankingSelector):
    """A selector that needs the scatter of the columns only, through its products.

    A subclass implements ``_fit_table`` and has the parameters below.
    """

    seeks_variance = True
    n_components: int | float | str
    scaling: float
    memory_limit: int | float | str | None
    route: str
    checkpoint: str | os.PathLike[str] | None = None
    """A parameter of selectors that can resume a fit."""

    def _user_control(self) -> dict[str, Any]:
        """What the user decided before the data do, by the names of the parameters."""
        raise NotImplementedError

    def _fit_table(self, everything: FittedTable, files: SavedPasses | None = None) -> None:
        """Fit to a table, however it is stored; ``files``: where the sums of passes are kept."""
        raise NotImplementedError

    def fit_blocks(self, source: Any, y: Any = None) -> Self:
        """Rank the features of a table that is read in blocks of rows.

        Scores are those of ``fit`` on the same numbers. What has to be held in memory, and how
        many times the table is read, follows from ``memory_limit``, or from ``route``: see
        ``route_`` and ``n_passes_``, and the page "How it scales".

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
        with self._fitting():
            self._fit_blocks(source)
        return self

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
        self.check_parameters()
        if self.checkpoint is not None:
            raise ParameterError(
                "partial_fit keeps no checkpoint, each call being a fit of its own; got "
                f"checkpoint={shorten(str(self.checkpoint))}. Leave it out, or use fit_blocks."
            )
        so_far = self._add_rows(X)
        fewest = self.n_components if is_whole(self.n_components) else 1
        n_varying = int((~so_far.moments.constant).sum())
        if so_far.n_samples > fewest and n_varying >= fewest:
            # Columns that do not vary so far may yet do so: no warning.
            self._fit_table(table_of_scatter(self, so_far, np.dtype(np.float64), quiet=True))
        return self

    def _fit_blocks(self, given: Any) -> None:
        source = as_blocks(table_values(given))
        names = given.feature_names if isinstance(given, NamedValues) else source.feature_names
        self.n_features_in_ = source.n_features
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self._check_columns(source.n_features)
        files = None
        if self.checkpoint is not None:
            files = SavedPasses(Path(self.checkpoint), source)
        read = read_blocks(
            self,
            source,
            memory_budget(self.memory_limit),
            expected_width(self.n_components),
            route=self.route,
            sketched=self.checkpoint is not None,
            files=files,
        )
        self._fit_table(read.table, files)
        if files is not None:
            files.forget()
        self.n_passes_ = read.passes.n_passes
        self.route_ = read.route

    def _add_rows(self, X: Any) -> ScatterSum:
        """Add rows to the sums of ``partial_fit``; nothing is added if X is refused."""
        so_far: ScatterSum | None = getattr(self, "scatter_sum_", None)
        if so_far is None:
            self._forget()  # fit and fit_blocks keep no sums to add to
            refuse_repeated(column_labels(X) or [], "X")
        else:
            X = in_order(X, self._column_labels_, "X", first="the first X")
        values = validate(self, named_table(X), reset=so_far is None, fewest=1)
        names = getattr(self, "feature_names_in_", None)
        explanation = describe_missing(values, names) if fills_gaps(self) else None
        if explanation is not None:
            raise gaps_in_blocks(self, explanation)
        self._check_columns(values.shape[1])
        summed = add_rows(so_far, values, memory_budget(self.memory_limit))
        if so_far is None:
            self._column_labels_: Any = column_labels(X)
        self.scatter_sum_ = summed
        return summed

    def _check_columns(self, n_features: int) -> None:
        """Refuse settings that do not go with the columns, before the rows are read."""
        control_of(self, n_features).count_to_select(self.n_features_to_select)
        if is_whole(self.n_components):
            hint = f"X has {n_features} columns."
            check_count("n_components", self.n_components, at_most=n_features, hint=hint)
