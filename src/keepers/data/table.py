"""Tables that are read and written, and the roles of columns: features, labels, sample names."""

from bisect import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers.data.columns import OtherColumn
from keepers.data.limits import SizeLimit, refuse_columns
from keepers.data.values import as_floats, as_labels, as_matrix, as_names
from keepers.data.wording import closest, duplicates, some_of
from keepers.exceptions import DataError, ParameterError, shorten

Names = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class NamedValues:
    """Values of whatever kind, not looked at yet, with the names of their columns."""

    X: Any
    feature_names: Names


@dataclass(frozen=True, eq=False)
class LabelledTable(NamedValues):
    """A numeric table with the names of its columns and, where known, of its rows and classes.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        float64 or float32; NaN stands for a missing value.
    feature_names : object array of str, length n_features
        No two alike.
    sample_names : object array of str, length n_samples, or None
        Which sample each row is, where the source says so.
    labels : array of length n_samples or None
        Classes, for judging a selection; no method looks at them.
    name : str
        Short name for display.
    others : tuple of OtherColumn
        Columns that hold text or dates, which a `TablePreparer` turns into numbers or sets aside.
    types : mapping of str to Arrow type
        How the source stored the columns that are no plain float64, where it has types.
    """

    sample_names: Names | None = None
    labels: NDArray[Any] | None = None
    name: str = "table"
    others: tuple[OtherColumn, ...] = ()
    types: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a table whose parts do not fit together."""
        if self.X.ndim != 2 or 0 in self.X.shape[: 1 if self.others else 2]:
            shape = " x ".join(str(length) for length in self.X.shape)
            raise DataError(
                f"A table needs at least one row and one feature column; {shorten(self.name)} "
                f"has shape {shape}. Check that the right file, variable or columns were named."
            )
        if self.X.dtype not in (np.float64, np.float32):
            raise DataError(f"Values must be float64 or float32; got {self.X.dtype}.")
        self._refuse_wrong_length("feature_names", self.feature_names, self.n_features)
        self._refuse_wrong_length("sample_names", self.sample_names, self.n_samples)
        self._refuse_wrong_length("labels", self.labels, self.n_samples)
        if len(set(self.feature_names)) < self.n_features:
            raise DataError(
                "Feature names must differ; there are duplicates: "
                f"{some_of(duplicates(self.feature_names))}. Rename or drop all but one of each."
            )

    def _refuse_wrong_length(self, what: str, values: NDArray[Any] | None, expected: int) -> None:
        if values is not None and (values.ndim != 1 or len(values) != expected):
            raise DataError(
                f"{what} must have one entry each ({expected}); {shorten(self.name)} has an "
                f"array of shape {values.shape}. Check that samples are rows and features are "
                "columns."
            )

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether X is a CSR matrix."""
        return bool(sp.issparse(self.X))


@dataclass(frozen=True)
class WrittenTable:
    """A checked table on its way to a file."""

    X: Any
    feature_names: list[str]
    """Of the columns of X."""
    sample_names: list[str] | None
    labels: NDArray[Any] | None
    identifier_name: str
    label_name: str
    others: tuple[OtherColumn, ...] = ()
    """Columns of text and dates, each at its position among all features."""
    types: Mapping[str, Any] = field(default_factory=dict)
    """How the source stored columns, as in `LabelledTable`."""

    @classmethod
    def of(
        cls,
        X: Any,
        feature_names: Any,
        sample_names: Any = None,
        labels: Any = None,
        *,
        identifier_name: str,
        label_name: str,
        others: Sequence[OtherColumn] = (),
        types: Mapping[str, Any] | None = None,
    ) -> "WrittenTable":
        """Refuse parts that do not fit together, or names that occur twice."""
        X = sp.csr_matrix(X) if sp.issparse(X) else np.asarray(X)
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise DataError(
                f"A written table has two dimensions and real numbers; got {X.ndim} and {X.dtype}."
            )
        names = [str(name) for name in feature_names]
        samples = None if sample_names is None else [str(name) for name in sample_names]
        classes = None if labels is None else np.asarray(labels)
        for what, values, expected in (
            ("feature_names", names, X.shape[1]),
            ("sample_names", samples, X.shape[0]),
            ("labels", classes, X.shape[0]),
        ):
            if values is not None and len(values) != expected:
                raise DataError(f"{what} must have {expected} entries; got {len(values)}.")
        table = cls(
            X, names, samples, classes, identifier_name, label_name, tuple(others), types or {}
        )
        added, columns = table.leading_names, table.column_names
        if len(set(columns)) < len(columns):
            raise ParameterError(
                f"Column names must differ; with {', '.join(map(shorten, added)) or 'the features'}"
                " some are duplicates. Choose another identifier_name or label_name, or rename "
                "features."
            )
        return table

    @classmethod
    def of_features(
        cls,
        table: LabelledTable,
        names: Iterable[str],
        *,
        identifier_name: str,
        label_name: str,
    ) -> "WrittenTable":
        """The named features of a table, numbers or others, in the order of the source."""
        wanted = dict.fromkeys(map(str, names))
        places = range(table.n_features)
        ordered = in_source_order([*places], [(other.position, other) for other in table.others])
        known = {_name_in(table, column): column for column in ordered}
        refuse_absent(wanted, known)
        kept = {name: column for name, column in known.items() if name in wanted}
        numbers = [column for column in kept.values() if isinstance(column, int)]
        return cls.of(
            table.X if len(numbers) == table.n_features else table.X[:, numbers],
            table.feature_names[numbers],
            table.sample_names,
            table.labels,
            identifier_name=identifier_name,
            label_name=label_name,
            others=[
                replace(column, position=at)
                for at, column in enumerate(kept.values())
                if not isinstance(column, int)
            ],
            types={name: table.types[name] for name in kept if name in table.types},
        )

    @property
    def is_sparse(self) -> bool:
        """Whether X is a CSR matrix."""
        return bool(sp.issparse(self.X))

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def columns(self) -> list[int | OtherColumn]:
        """All features in order: a column of X by its position there, or one of the others."""
        places: list[int | OtherColumn] = [*range(len(self.feature_names))]
        return in_source_order(places, [(other.position, other) for other in self.others])

    @property
    def leading_names(self) -> list[str]:
        """Names of the columns before the features: of sample names and labels, if there."""
        names = [self.identifier_name] * (self.sample_names is not None)
        return names + [self.label_name] * (self.labels is not None)

    @property
    def column_names(self) -> list[str]:
        """Names of all columns as they stand in a file."""
        return [*self.leading_names, *(_name_in(self, column) for column in self.columns)]

    @property
    def has_numeric_labels(self) -> bool:
        """Whether there are labels, and they are numbers."""
        return self.labels is not None and self.labels.dtype.kind in "biuf"

    def text_labels(self) -> list[str]:
        """Labels as text."""
        return [] if self.labels is None else [str(label) for label in self.labels.tolist()]

    def truth_columns(self) -> set[str]:
        """Columns of X that the source stored as true and false, and that hold nothing else."""
        stored = {name for name, kind in self.types.items() if str(kind) == "bool"}
        return {
            name
            for at, name in enumerate(self.feature_names)
            if name in stored and _are_truths(_column(self.X, at))
        }

    def holds_days(self, column: OtherColumn) -> bool:
        """Whether the source stored dates without a time."""
        return str(self.types.get(column.name)).startswith("date")

    def dense(self) -> NDArray[Any]:
        """X as an array, if it fits in memory."""
        if not self.is_sparse:
            return np.asarray(self.X)
        shape = (int(self.X.shape[0]), int(self.X.shape[1]))
        SizeLimit.of(None).refuse_shape(shape, self.X.dtype.itemsize, "The table as dense columns")
        return np.asarray(self.X.toarray())


def _are_truths(values: NDArray[Any]) -> bool:
    return bool(np.all((values == 0) | (values == 1) | np.isnan(values)))


def _name_in(table: LabelledTable | WrittenTable, column: int | OtherColumn) -> str:
    """The name of a feature: a column of X, or one of the others."""
    return column.name if isinstance(column, OtherColumn) else str(table.feature_names[column])


Item = TypeVar("Item")


def in_source_order(numbers: Sequence[Item], others: Iterable[tuple[int, Item]]) -> list[Item]:
    """Columns in the order of the source: numbers fill the places that the others leave.

    Examples
    --------
    >>> in_source_order(["a", "b", "c"], [(1, "town"), (3, "date")])
    ['a', 'town', 'b', 'date', 'c']
    """
    ordered: list[Item] = []
    taken = 0
    for position, other in sorted(others, key=lambda pair: pair[0]):
        free = max(position - len(ordered), 0)
        ordered += numbers[taken : taken + free]
        taken += free
        ordered.append(other)
    return [*ordered, *numbers[taken:]]


def row_entries(X: Any, at: int) -> Iterator[tuple[int, float]]:
    """Column and value of the entries of a CSR row."""
    entries = slice(X.indptr[at], X.indptr[at + 1])
    return zip(X.indices[entries].tolist(), X.data[entries].tolist(), strict=True)


@dataclass(frozen=True)
class ReadRequest:
    """Roles of columns (or of the arrays of an archive), and the limit on size."""

    labels: str | None = None
    identifier: str | None = None
    drop: tuple[str, ...] = ()
    limit: SizeLimit = field(default_factory=lambda: SizeLimit.of(None))
    dataset: str | None = None
    """Which array of an HDF5 file holds the values."""
    header: bool | None = None
    """Whether the first line of a text table holds names; None: told by what it holds."""
    whole: bool = False
    """Whether all rows will be collected: what has no rows to seek may then be one block."""
    mixed: bool = False
    """Whether text and dates are handed over as `LabelledTable.others`, not refused."""
    make_unique: bool = False
    """Whether repeated column names are made unique (a, a.1, a.2), not refused."""
    format: str | None = None
    """The format, where the name of the file does not tell it."""
    delimiter: str | None = None
    """What separates the cells of a text table."""
    decimal: str | None = None
    """The decimal mark of a text table, "." or ","."""
    comment: str | None = None
    """Lines of a text table that begin with this are left out."""
    encoding: str | None = None
    """The encoding of a text table."""
    sheet: str | None = None
    """The sheet of a workbook, by name or by its number from 1."""


_ROWS_AT_A_TIME = 64


@dataclass(frozen=True)
class ColumnPlan:
    """Positions of the columns by role; what stands nowhere is dropped."""

    features: list[int]
    labels: int | None
    identifier: int | None
    others: tuple[int, ...] = ()
    """Columns of text and dates that are handed over beside the numbers."""

    @property
    def texts(self) -> list[int]:
        """Columns that are read as text."""
        return [at for at in (self.labels, self.identifier, *self.others) if at is not None]

    def with_texts(self, titles: Sequence[str], names: Collection[str]) -> "ColumnPlan":
        """The same, but columns of these names are no numbers; itself if none is a feature."""
        wanted = set(names)
        found = [at for at in self.features if titles[at] in wanted]
        if not found:
            return self
        features = [at for at in self.features if titles[at] not in wanted]
        return replace(self, features=features, others=tuple(sorted((*self.others, *found))))

    @property
    def other_places(self) -> list[int]:
        """Of every one of the others, how many features and others stand before it."""
        return [at + bisect(self.features, place) for at, place in enumerate(self.others)]


@dataclass(frozen=True)
class Matrix:
    """What a reader of numeric matrices found, before roles are given to its columns."""

    X: Any
    feature_names: Any = None
    sample_names: Any = None
    labels: Any = None


def numbered_names(count: int) -> list[str]:
    """x0, x1, ... for columns that have no names."""
    return [f"x{position}" for position in range(count)]


def unique_names(names: Sequence[str], *, make_unique: bool = False) -> list[str]:
    """Column names as they will be used: empty ones numbered from 1, repeated ones refused.

    Examples
    --------
    >>> unique_names(["a", "", "b", "a"], make_unique=True)
    ['a', 'column 2', 'b', 'a.1']
    """
    refuse_columns(len(names), "its header")
    used = [str(name).strip() or f"column {at}" for at, name in enumerate(names, 1)]
    if len(set(used)) == len(used):
        return used
    if not make_unique:
        raise DataError(
            f"Column names must differ; there are duplicates: {some_of(duplicates(used))}. Rename "
            "all but one of each in the file, or let them be numbered (make_unique=True, "
            "--make-unique)."
        )
    return number_repeated(used)


def number_repeated(names: Sequence[str], mark: str = ".") -> list[str]:
    """Names of which repeated ones get a number: a, a.1, a.2; ``mark`` stands before it."""
    taken, counts = set(names), dict.fromkeys(names, -1)
    unique = []
    for name in names:
        counts[name] += 1
        new = name
        while counts[name] and (new := f"{name}{mark}{counts[name]}") in taken:
            counts[name] += 1
        taken.add(new)
        unique.append(new)
    return unique


def plan_columns(
    names: Sequence[str],
    request: ReadRequest,
    *,
    index: int | None = None,
    levels: Sequence[int] = (),
    other_names: Collection[str] = (),
) -> ColumnPlan:
    """Give every column its role; refuse names that are not there or have two roles.

    ``index`` is a column that the writer of the file marked as row names: it names the samples
    unless the request says otherwise. ``levels`` are columns that name rows only together; like
    ``index``, they are no features. ``other_names`` are columns that hold no numbers, which a
    request for a mixed table takes as they are.
    """
    position = {name: at for at, name in enumerate(names)}
    request = replace(request, drop=tuple(matching_names(request.drop, names)))
    asked = [request.labels, request.identifier, *request.drop]
    refuse_absent([name for name in asked if name is not None], position)
    identifier = request.identifier
    if identifier is None and index is not None:
        free = names[index] not in (request.labels, *request.drop)
        identifier = names[index] if free else None
    taken = [name for name in (request.labels, identifier) if name is not None]
    if len(set(taken)) < len(taken) or set(taken) & set(request.drop):
        raise DataError(
            f"A column has one role; labels={shorten(request.labels)}, identifier="
            f"{shorten(request.identifier)} and drop={shorten(list(request.drop))} name one "
            "twice."
        )
    marked = [*levels] if index is None else [index, *levels]
    set_aside = {*taken, *request.drop, *(names[at] for at in marked)}
    left = [at for at, name in enumerate(names) if name not in set_aside]
    texts = set(other_names) if request.mixed else set()
    features = [at for at in left if names[at] not in texts]
    others = tuple(at for at in left if names[at] in texts)
    if not left:
        raise DataError(
            f"At least one feature column must remain; all {len(names)} columns are labels, "
            "identifier or dropped. Name fewer of them."
        )
    return ColumnPlan(
        features,
        None if request.labels is None else position[request.labels],
        None if identifier is None else position[identifier],
        others,
    )


def refuse_absent(asked: Iterable[str], known: Collection[str]) -> None:
    """Raise for a column that is not there."""
    absent = next((name for name in asked if name not in known), None)
    if absent is not None:
        raise DataError(
            f"There is no column {shorten(absent)}.{closest(absent, known)} The columns are "
            f"{some_of([repr(name) for name in known])}."
        )


def matching_names(asked: Iterable[str], names: Sequence[str]) -> list[str]:
    """Columns by name, by several names with commas between, or by a pattern such as "meta_*".

    What matches nothing is returned as it was written.

    Examples
    --------
    >>> matching_names(["b", "meta_*", "c,d"], ["a", "b", "c", "d", "meta_x"])
    ['b', 'meta_x', 'c', 'd']
    """
    known = set(names)
    found: dict[str, None] = {}
    for word in asked:
        parts = [word] if word in known else [part.strip() for part in word.split(",")]
        for part in parts:
            pattern = part not in known and any(mark in part for mark in "*?[")
            matches = [name for name in names if fnmatchcase(name, part)] if pattern else []
            found.update(dict.fromkeys(matches or [part]))
    return list(found)


class TextColumnsError(DataError):
    """Columns that were to be features hold something else than numbers."""

    names: tuple[str, ...] = ()


class ChangedTypeError(DataError):
    """Rows do not fit the types that the rows written before them have."""

    names: tuple[str, ...] = ()


def refuse_changed_types(names: Sequence[str]) -> None:
    """Raise for columns of rows that are to follow others, which are of another type."""
    if names:
        error = ChangedTypeError(
            "The rows of a column are of one type; further rows of these hold numbers that are not "
            f"of the type of the first: {some_of([repr(name) for name in names])}. Write the table "
            "whole, or leave their types out (LabelledTable.types)."
        )
        error.names = tuple(names)
        raise error


def refuse_text(names: Sequence[str]) -> None:
    """Raise for columns that were to be features but hold something else than numbers."""
    if names:
        error = TextColumnsError(
            "Feature columns must hold numbers; these do not: "
            f"{some_of([repr(name) for name in names])}. Say what they are: the classes "
            "(labels=, --labels), the sample names (identifier=, --id), or columns to leave out "
            "(drop=, --drop)."
        )
        error.names = tuple(names)
        raise error


def to_table(matrix: Matrix, request: ReadRequest, name: str) -> LabelledTable:
    """Turn a numeric matrix into a table; a column of it may be named as labels or dropped."""
    X = as_matrix(matrix.X, name)
    n_columns = X.shape[1]
    names = (
        numbered_names(n_columns)
        if matrix.feature_names is None
        else unique_names(
            list(as_names(matrix.feature_names, "feature names")), make_unique=request.make_unique
        )
    )
    sample_names, labels = matrix.sample_names, matrix.labels
    # A role that the file itself fills (an array named y, say) is no column.
    open_roles = ReadRequest(
        labels=request.labels if labels is None else None,
        identifier=request.identifier if sample_names is None else None,
        drop=request.drop,
        limit=request.limit,
    )
    if (open_roles.labels, open_roles.identifier, open_roles.drop) != (None, None, ()):
        plan = plan_columns(names, open_roles)
        labels = _column(X, plan.labels) if plan.labels is not None else labels
        if plan.identifier is not None:
            sample_names = as_labels(_column(X, plan.identifier), "identifier")
        X, names = X[:, plan.features], [names[at] for at in plan.features]
    return LabelledTable(
        as_floats(X, name, names),
        np.array(names, dtype=object),
        None if sample_names is None else as_names(sample_names, "sample names"),
        None if labels is None else as_labels(labels, request.labels or "labels"),
        name,
    )


def refuse_empty_columns(table: LabelledTable) -> None:
    """Raise for feature columns without a single value; gaps between values may stay."""
    if table.is_sparse:
        return
    empty = np.flatnonzero(np.isnan(table.X[0]))
    for start in range(1, table.n_samples, _ROWS_AT_A_TIME):
        if not len(empty):
            return
        empty = empty[np.isnan(table.X[start : start + _ROWS_AT_A_TIME, empty]).all(axis=0)]
    if len(empty):
        names = [repr(str(name)) for name in table.feature_names[empty]]
        raise DataError(
            f"Feature columns must hold at least one value; these hold none: {some_of(names)}. "
            "Leave them out (drop=, --drop)."
        )


def _column(X: Any, position: int) -> Any:
    column = X[:, [position]]
    return column.toarray().ravel() if sp.issparse(X) else column.ravel()
