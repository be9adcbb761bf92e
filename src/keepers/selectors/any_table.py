"""A table of whatever kind, read for a statement about its variance."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import BoolArray, IndexArray
from keepers.data.blocks.as_blocks import as_blocks
from keepers.data.in_memory import comes_in_blocks, is_dask
from keepers.data.table import NamedValues
from keepers.data.wording import closest, some_of
from keepers.exceptions import DataWarning, ParameterError, shorten
from keepers.selectors.block_tables import read_blocks, read_tall_array
from keepers.selectors.fitted_table import (
    FittedTable,
    is_tall_array,
    named_table,
    read_table,
    table_values,
)
from keepers.selectors.memory import memory_budget
from keepers.selectors.parameters import FeatureCount, is_whole
from keepers.selectors.ranking import RankingSelector, TopFeatures

_NAMED_FAULTS = 5


@dataclass(eq=False, repr=False)
class TableReader(RankingSelector):
    """Stands for a selector while a table is read; it keeps the names of the columns."""

    n_features_to_select: FeatureCount = None
    missing: str = "error"


@dataclass(frozen=True)
class ReadTable:
    """A table as read, and the names of its columns."""

    table: FittedTable
    names: NDArray[Any] | None


def read_any_table(
    X: Any,
    *,
    n_components: Any,
    route: str = "auto",
    memory_limit: Any = None,
    missing: str = "error",
    sketched: bool = False,
    check: Callable[[int, Any], object] = lambda n_columns, names: None,
) -> ReadTable:
    """Read a table, or one that comes in blocks, as `SPCAFS.fit` and ``fit_blocks`` do.

    One that a fit has read is taken as it is.

    ``check`` is called with the number of the columns and their names, before rows of blocks are
    read.
    """
    if isinstance(X, FittedTable):
        check(X.n_features, None)
        return ReadTable(X, None)
    reader = TableReader(missing=missing)
    X = named_table(X)
    values = table_values(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # constant columns hold nothing, that is all
        if route != "auto" or comes_in_blocks(values) or is_block_source(values):
            source = as_blocks(values)
            names = X.feature_names if isinstance(X, NamedValues) else source.feature_names
            reader.n_features_in_ = source.n_features
            if names is not None:
                reader.feature_names_in_ = np.asarray(names, dtype=object)
            check(source.n_features, names)
            width = n_components if is_whole(n_components) else 10
            budget = memory_budget(memory_limit)
            read = read_blocks(reader, source, budget, width, route=route, sketched=sketched)
            table: FittedTable = read.table
        elif is_tall_array(values):
            table = read_tall_array(reader, X, sketched=sketched)
        else:
            table = read_table(reader, X)
    names = getattr(reader, "feature_names_in_", None)
    check(table.n_features, names)
    return ReadTable(table, None if names is None else np.asarray(names))


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


def read_features(
    features: Any, n_columns: int, names: Any = None, setting: str = "features"
) -> IndexArray:
    """The columns that names, indices or a mask stand for, in their order; all faults at once."""
    if isinstance(features, TopFeatures):
        return features.indices
    if hasattr(features, "to_dict") and np.dtype(bool) == getattr(features, "dtype", None):
        features = [feature for feature, marked in features.to_dict().items() if marked]
    if isinstance(features, (str, bytes)) or not isinstance(features, Iterable):
        raise ParameterError(
            f"{setting} must be a sequence of names or indices, or a boolean mask; got "
            f"{shorten(features)}. Write [{shorten(features)}] for one feature."
        )
    entries = list(features)
    if entries and all(isinstance(entry, (bool, np.bool_)) for entry in entries):
        if len(entries) != n_columns:
            raise ParameterError(
                f"{setting} as a mask must have one entry per column, {n_columns}; got "
                f"{len(entries)}."
            )
        entries = list(np.flatnonzero(entries))
    if not entries:
        raise ParameterError(f"{setting} must hold at least one feature; got none.")
    found = _find_entries(entries, n_columns, names, setting)
    return np.array(found, dtype=np.intp)


def _find_entries(entries: list[Any], n_columns: int, names: Any, setting: str) -> list[int]:
    known = None if names is None else {str(name): at for at, name in enumerate(names)}
    found: list[int] = []
    unknown, beyond, strange, twice = [], [], [], []
    taken: BoolArray = np.zeros(n_columns, dtype=bool)
    for entry in entries:
        if isinstance(entry, str):
            at = None if known is None else known.get(str(entry))
            if at is None:
                unknown.append(entry)
                continue
        elif is_whole(entry):
            if not 0 <= entry < n_columns:
                beyond.append(int(entry))
                continue
            at = int(entry)
        else:
            strange.append(entry)
            continue
        if taken[at]:
            twice.append(shorten(entry))
        taken[at] = True
        found.append(at)
    faults = []
    if unknown and known is None:
        faults.append(
            f"Names in {setting} need a table with column names, all of them strings; got "
            f"{some_of([shorten(name) for name in unknown])}. Pass a data frame, or give indices "
            f"from 0 to {n_columns - 1}."
        )
    elif unknown and known is not None:
        told = []
        for name in unknown[:_NAMED_FAULTS]:
            hint = closest(name, known).strip(" ?")
            told.append(shorten(name) + (f" (d{hint[1:]}?)" if hint else ""))
        more = f" and {len(unknown) - len(told)} more" if len(unknown) > len(told) else ""
        faults.append(
            f"{setting} must name columns of the table; none of its {n_columns} is called "
            f"{', '.join(told)}{more}."
        )
    if beyond:
        faults.append(
            f"Indices in {setting} must lie between 0 and {n_columns - 1}, the table having "
            f"{n_columns} columns; got {some_of([str(at) for at in beyond])}."
        )
    if strange:
        faults.append(
            f"{setting} must hold names or indices; got "
            f"{some_of([shorten(entry) for entry in strange])} among them."
        )
    if twice:
        faults.append(f"{setting} must hold every feature once; repeated: {some_of(twice)}.")
    if faults:
        raise ParameterError(*faults)
    return found
