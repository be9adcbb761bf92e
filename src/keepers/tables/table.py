"""A table in memory: the request that it was read by, its limits, and the roles of its columns."""

import math
import os
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers._wording import closest, duplicates, readable_size, some_of
from keepers.exceptions import DataError, ParameterError, shorten

if TYPE_CHECKING:
    import polars as pl


DEFAULT_MAX_BYTES = 8 * 2**30

LARGEST_EXACT_INTEGER = 2**53
"""float64 holds every integer up to this one; larger ones are identifiers or an error."""

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def refuse_size(n_bytes: int, what: str, max_bytes: int | None = None) -> None:
    """Raise if ``what`` takes more memory than ``max_bytes`` or than the machine has."""
    limit = min(DEFAULT_MAX_BYTES if max_bytes is None else max_bytes, physical_memory() or 2**63)
    if n_bytes > limit:
        raise DataError(
            f"{what} needs {readable_size(n_bytes)}, more than the limit of "
            f"{readable_size(limit)}. Read a part of the table, or raise the limit (max_bytes=, "
            "--max-size), which is never more than the memory of this machine."
        )


def refuse_shape(
    shape: Sequence[int], what: str, max_bytes: int | None = None, itemsize: int = 8
) -> None:
    """Raise if an array of this shape does not fit in memory."""
    if any(length < 0 for length in shape):
        raise DataError(f"{what} declares a negative length ({shape}). It is damaged.")
    n_bytes = max(itemsize, 8) * math.prod(map(int, shape))
    refuse_size(n_bytes, f"{what} ({' x '.join(map(str, shape))})", max_bytes)


def as_n_bytes(size: int | float | str, name: str) -> int:
    """A number of bytes, or a text such as "500M" or "4GB"; ``name`` is for the message."""
    if isinstance(size, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", size.strip(), re.IGNORECASE)
        if match is not None and float(match[1]) > 0:
            return int(float(match[1]) * _UNITS[match[2].upper()])
    elif not isinstance(size, bool) and isinstance(size, (int, float)) and 1 <= size < 2**63:
        return int(size)
    raise ParameterError(f"{name} takes a size like 500M or 4G; got {shorten(size)}.")


def largest_inexact(values: Any) -> int | None:
    """The largest integer in size, if float64 does not hold all integers of that size."""
    is_long = values.dtype == object or (values.dtype.kind in "iu" and values.dtype.itemsize == 8)
    if not (values.size and is_long):
        return None
    largest = max(int(values.max()), -int(values.min()))
    return largest if largest > LARGEST_EXACT_INTEGER else None


def physical_memory() -> int | None:
    """The memory of this machine in bytes; None on a platform that does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


Names = NDArray[np.object_]

# fmt: off
GAP_WORDS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)
# fmt: on
"""Words that pandas takes for a missing value."""


@dataclass(frozen=True, eq=False)
class NamedValues:
    """Values of any kind, not checked yet, with the names of their columns."""

    values: Any
    names: Names


@dataclass(frozen=True, eq=False)
class Table(NamedValues):
    """Numbers with names, also text and dates, and where known sample names and classes.

    Parameters
    ----------
    values : ndarray or CSR matrix of shape (n_samples, n_features)
        float64 or float32; NaN is a missing value.
    names : object array of str, length n_features
        Names of the columns of ``values``, all different.
    ids : object array of str, length n_samples, or None
        Sample names, if the source has any.
    labels : array of length n_samples or None
        Classes, for judging a selection; no method looks at them.
    name : str
        Short name for messages.
    frame : polars.DataFrame or None
        Features that hold text or dates, in the types of the source. A `TablePreparer` turns them
        into numbers or sets them aside.
    features : sequence of str or None
        All features, of ``values`` and of ``frame``, in the order of the source. None: ``names``.
    types : mapping of str to polars type
        Source types of the columns of ``values`` that were not float64, for writing them back.
    """

    ids: Names | None = None
    labels: NDArray[Any] | None = None
    name: str = "table"
    frame: "pl.DataFrame | None" = None
    features: Sequence[str] | None = None
    types: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise for a table whose parts do not fit together."""
        if self.values.ndim != 2 or 0 in self.values.shape[: 1 if self.others else 2]:
            shape = " x ".join(map(str, self.values.shape))
            raise DataError(
                f"A table needs at least one row and one feature column; {shorten(self.name)} "
                f"has shape {shape}. Check the file or the columns that were named."
            )
        if self.values.dtype not in (np.float64, np.float32):
            raise DataError(f"Values must be float64 or float32; got {self.values.dtype}.")
        expected = {"names": self.n_features, "ids": self.n_samples, "labels": self.n_samples}
        for what, length in expected.items():
            entries = getattr(self, what)
            if entries is not None and entries.shape != (length,):
                raise DataError(
                    f"{what} must have {length} entries; {shorten(self.name)} has an array of "
                    f"shape {entries.shape}. Check that samples are rows."
                )
        refuse_repeated(self.names)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of numbers."""
        return int(self.values.shape[1])

    @property
    def is_sparse(self) -> bool:
        """True if ``values`` is a CSR matrix."""
        return bool(sp.issparse(self.values))

    @property
    def others(self) -> list[str]:
        """Features that hold text or dates."""
        return [] if self.frame is None else self.frame.columns

    @property
    def columns(self) -> list[str]:
        """All features in the order of the source."""
        known = self.names if self.features is None else self.features
        return [str(name) for name in known]

    def take(self, rows: Any) -> "Table":
        """Some rows, given by a mask or by their numbers."""
        rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
        return replace(
            self,
            values=self.values[rows],
            ids=None if self.ids is None else self.ids[rows],
            labels=None if self.labels is None else self.labels[rows],
            frame=None if self.frame is None else self.frame[rows.tolist()],
        )

    def tables(self, names: Sequence[str] | None = None) -> Iterator["Table"]:
        """All rows in one block: a table in memory is read like one in files."""
        yield self if names is None else self.select(names)

    def select(self, names: Iterable[str]) -> "Table":
        """Some features, in the order of the source."""
        chosen = set(names)
        refuse_absent(chosen, self.columns)
        places = [at for at, name in enumerate(self.names) if name in chosen]
        beside = [name for name in self.others if name in chosen]
        return replace(
            self,
            values=self.values[:, places],
            names=self.names[places],
            frame=self.frame[beside] if self.frame is not None and beside else None,
            features=[name for name in self.columns if name in chosen],
            types={name: kind for name, kind in self.types.items() if name in chosen},
        )


def refuse_beside(table: Any) -> None:
    """Raise for a table that has columns of text or dates."""
    others = [repr(name) for name in getattr(table, "others", ())]
    if others:
        raise DataError(
            f"Every column must be numeric; these hold text or dates: {some_of(others)}. Leave "
            "them out (drop=), or turn them into numbers with keepers.TablePreparer."
        )


def stack_tables(tables: Sequence[Table]) -> Table:
    """The rows of several tables with the same columns, one below the other."""
    first = tables[0]
    if len(tables) == 1:
        return first
    frames = [table.frame for table in tables if table.frame is not None]
    frame = None
    if frames:
        import polars as pl

        frame = pl.concat(frames, how="vertical_relaxed")

    def joined(vectors: list[Any]) -> Any:
        return None if vectors[0] is None else np.concatenate(vectors)

    values, labels = [table.values for table in tables], joined([t.labels for t in tables])
    return replace(
        first,
        values=sp.vstack(values, format="csr") if first.is_sparse else np.concatenate(values),
        ids=joined([table.ids for table in tables]),
        labels=None if labels is None else as_labels(labels, "labels"),
        frame=frame,
    )


@dataclass(frozen=True)
class ReadRequest:
    """How a table is read: the roles of its columns, its layout, and the limit on its size.

    Parameters
    ----------
    labels : str or None
        Column with the classes; also an array of a .npz or .h5 file, or a variable of a .mat file.
    identifier : str or None
        Column with the sample names.
    drop : sequence of str
        Columns to leave out: names, names with commas between, or patterns such as "meta_*".
    annotation : sequence of str
        Columns that describe the rows, named as in ``drop``. They are not features and, with
        ``transpose``, not samples.
    make_unique : bool
        Number repeated column names (a, a.1, a.2) instead of raising.
    transpose : bool
        Features are rows: the first text column, or ``identifier``, names them, and the header
        names the samples.
    format : str or None
        "csv", "parquet", ...; None: by the name of the file, for text by how it begins.
    max_bytes : int or None
        Raise for a table that takes more memory than this. None: 8 GiB. Never more than the
        memory of the machine.
    dataset : str or None
        Array of an HDF5 file that holds the values.
    layer : str or None
        Layer of an AnnData file to read instead of X.
    sheet : str, int or None
        Sheet of a workbook: its name, or its number from 1. None: the first.
    header : bool or None
        Whether the first line of a text table holds column names. None: guessed from the content.
    skip_rows : int or None
        Lines of a text table, or rows of a sheet, above the column names. None: a title is found.
    header_rows : int or None
        Lines of column names, as in exports of surveys. None: guessed.
    sep : str or None
        What separates the cells of a text table: one character, "tab", "space", or "whitespace"
        for runs of blanks. None: guessed.
    decimal : {".", ","} or None
        Decimal mark of a text table. None: guessed.
    comment : str or None
        Lines of a text table that begin with this are left out.
    encoding : str or None
        Encoding of a text table, such as "latin-1". None: guessed.
    """

    labels: str | None = None
    identifier: str | None = None
    drop: Sequence[str] = ()
    annotation: Sequence[str] = ()
    make_unique: bool = False
    transpose: bool = False
    format: str | None = None
    max_bytes: int | None = None
    dataset: str | None = None
    layer: str | None = None
    sheet: str | int | None = None
    header: bool | None = None
    skip_rows: int | None = None
    header_rows: int | None = None
    sep: str | None = None
    decimal: str | None = None
    comment: str | None = None
    encoding: str | None = None


REQUEST_FIELDS = tuple(each.name for each in fields(ReadRequest))


def split_roles(
    columns: Sequence[str], request: ReadRequest, index: str | None = None
) -> tuple[list[str], str | None, str | None]:
    """The features, and the columns with sample names and classes.

    Raises for names that are absent or have two roles. ``index`` is a column that the file itself
    marks as row names: it names the samples unless the request names another column.
    """
    taken = [name for name in (request.labels, request.identifier) if name is not None]
    described = matching_names(request.annotation, columns)
    dropped = matching_names(request.drop, columns)
    dropped += [name for name in described if name not in taken]
    refuse_absent([*taken, *dropped], columns)
    identifier = request.identifier
    if identifier is None and index not in (request.labels, *dropped):
        identifier = index
    if len(set(taken)) < len(taken) or set(taken) & set(dropped):
        raise DataError(
            f"A column has one role; got labels={shorten(request.labels)}, "
            f"identifier={shorten(request.identifier)}, drop={shorten(list(request.drop))}."
        )
    apart = {*taken, *dropped, identifier, index}
    features = [name for name in columns if name not in apart]
    if not features:
        raise DataError("At least one feature column must remain. Drop fewer.")
    return features, identifier, request.labels


def refuse_absent(asked: Iterable[str], known: Collection[str]) -> None:
    """Raise for a column that is not there."""
    names = set(known)
    absent = next((name for name in asked if name not in names), None)
    if absent is not None:
        raise DataError(
            f"There is no column {shorten(absent)}.{closest(absent, known)} The columns are "
            f"{some_of([repr(name) for name in known])}."
        )


def matching_names(asked: Iterable[str], names: Sequence[str]) -> list[str]:
    """Columns by name, by several names with commas between, or by a pattern such as "meta_*".

    What matches nothing is returned as it was written.
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


def numbered_names(count: int) -> list[str]:
    """x0, x1, ... for columns that have no names."""
    return [f"x{position}" for position in range(count)]


def unique_names(names: Iterable[Any], *, make_unique: bool = False) -> list[str]:
    """Column names as they will be used: an empty one is "column 2"; repeated ones raise."""
    used = [str(name).strip() or f"column {at}" for at, name in enumerate(names, 1)]
    if len(set(used)) == len(used):
        return used
    if not make_unique:
        refuse_repeated(used, "Rename them, or number them (make_unique=True, --make-unique).")
    return number_repeated(used)


def refuse_repeated(
    names: Sequence[Hashable] | NDArray[Any], way_out: str = "Rename or drop all but one of each."
) -> None:
    """Raise for names of columns that occur more than once."""
    if len(set(names)) < len(names):
        found = some_of(duplicates(names))
        raise DataError(f"Column names must differ; there are duplicates: {found}. {way_out}")


def number_repeated(names: Sequence[str], mark: str = ".") -> list[str]:
    """Names with a number for repeated ones: a, a.1, a.2; ``mark`` stands before it."""
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


def table_of_matrix(
    X: Any, request: ReadRequest, name: str, names: Any = None, ids: Any = None, labels: Any = None
) -> Table:
    """A table of a matrix; a role that no vector fills may be a column of the matrix."""
    X = checked_matrix(X, name)
    columns = numbered_names(X.shape[1])
    if names is not None:
        texts = as_texts(names, "feature names")
        columns = unique_names(texts, make_unique=request.make_unique)
    if len(columns) != X.shape[1]:
        raise DataError(
            f"Every column needs a name; {shorten(name)} has {len(columns)} names for "
            f"{X.shape[1]} columns. Check that samples are rows."
        )
    open_roles = replace(
        request,
        identifier=request.identifier if ids is None else None,
        labels=request.labels if labels is None else None,
    )
    features, identifier, label = split_roles(columns, open_roles)
    at = {column: place for place, column in enumerate(columns)}

    def column(name: str) -> Any:
        found = X[:, [at[name]]]
        return found.toarray() if sp.issparse(found) else found

    ids = ids if identifier is None else column(identifier)
    labels = labels if label is None else column(label)
    if len(features) < len(columns):
        X = X[:, [at[column] for column in features]]
    return Table(
        as_floats(X, name, features),
        np.array(features, dtype=object),
        None if ids is None else as_texts(ids, "sample names"),
        None if labels is None else as_labels(labels, request.labels or "labels"),
        name,
    )


def checked_matrix(X: Any, what: str) -> Any:
    """Raise unless X is a matrix of real numbers; sparse becomes CSR with checked indices."""
    refuse_complex(X.dtype)
    if X.dtype.kind not in "biuf":
        raise DataError(
            f"Values must be numbers; {shorten(what)} holds {X.dtype}. Store a plain numeric array."
        )
    refuse_dimensions(X)
    refuse_shape(X.shape[1:], "The names of the columns", itemsize=100)
    return sp.csr_matrix(canonical_sparse(X)) if sp.issparse(X) else X


def refuse_dimensions(X: Any) -> None:
    """Raise unless X has rows and columns."""
    if X.ndim != 2:
        raise DataError(f"A table has two dimensions; this one has {X.ndim}. Reshape your data.")


def refuse_complex(dtype: Any) -> None:
    """Raise if values of this kind are complex."""
    if str(dtype).startswith("complex"):
        raise DataError(f"Complex data not supported: values are {dtype}. Pass X.real or abs(X).")


def canonical_sparse(X: Any) -> Any:
    """CSR or CSC with sorted indices that lie inside and occur once; the arrays of X are shared.

    SciPy trusts indices, and reads outside of its arrays if they are wrong.
    """
    refuse_dimensions(X)
    try:
        if X.format == "coo":  # made anew, which checks every index
            X = type(X)((X.data, (X.row, X.col)), shape=X.shape)
        checked = X if X.format in ("csr", "csc") else X.tocsr()
        # Made anew: checks may trim the arrays, and remembered flags may be out of date.
        parts = (checked.data, checked.indices, checked.indptr)
        checked = type(checked)(parts, shape=X.shape)
        checked.check_format(full_check=True)
        if np.any(np.diff(checked.indptr) < 0):  # SciPy skips this where nothing is stored
            raise ValueError("indptr decreases")
    except (ValueError, IndexError, OverflowError) as error:
        raise DataError(
            f"The indices of a sparse matrix must lie inside its shape, {X.shape} here ({error}). "
            "Build it again: scipy.sparse.coo_array((values, (rows, columns)))."
        ) from error
    if not checked.has_canonical_format:
        checked = checked.copy()  # the arrays are the user's
        checked.sum_duplicates()
    return checked


def as_floats(X: Any, what: str, names: Sequence[str] | None = None) -> Any:
    """A checked matrix as float32 if it is in single precision, else as float64.

    Raises for integers that float64 would round; ``names`` of the columns are for the message.
    """
    data = X.data if sp.issparse(X) else X
    if largest_inexact(data) is not None:
        large = (data > LARGEST_EXACT_INTEGER) | (data < -LARGEST_EXACT_INTEGER)
        columns = np.unique(X.indices[large] if sp.issparse(X) else np.nonzero(large)[1])
        called = [f"column {at + 1}" if names is None else shorten(names[at]) for at in columns]
        raise DataError(
            f"Integers must be at most 2**53 = {LARGEST_EXACT_INTEGER} to be exact in float64; "
            f"{shorten(what)} holds larger ones in {some_of(called)}. Name identifiers "
            "(identifier=, --id), leave them out (drop=, --drop), or store floats."
        )
    kind = np.float32 if X.dtype.kind == "f" and X.dtype.itemsize <= 4 else np.float64
    if sp.issparse(X):
        return X.astype(kind, copy=False)
    X = np.asarray(X, dtype=kind)
    contiguous = X.flags.c_contiguous or X.flags.f_contiguous
    return X if contiguous and X.flags.writeable else X.copy(order="A")


def as_texts(values: Any, what: str) -> Names:
    """One str for each entry of a vector, or of a matrix with a single row or column."""
    entries = _whole(_as_vector(values, what)).tolist()
    texts = [each.decode(errors="replace") if isinstance(each, bytes) else each for each in entries]
    return np.array(["" if text is None else str(text) for text in texts], dtype=object)


def as_labels(values: Any, what: str) -> NDArray[Any]:
    """Classes: integers as int64, text as an object array of str; raise for a missing one."""
    values = _as_vector(values, what)
    if values.dtype.kind in "biu":
        return values if values.dtype == np.uint64 else values.astype(np.int64)
    is_float = values.dtype.kind == "f"
    n_missing = np.isnan(values).sum() if is_float else values.tolist().count(None)
    if n_missing:
        raise DataError(
            f"Every sample needs a label; {n_missing} of {shorten(what)} are missing. Fill them "
            "in, or leave the column out (drop=, --drop)."
        )
    return _whole(values) if is_float else as_texts(values, what)


def _whole(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers without a fraction as integers: names read 1, not 1.0."""
    is_small = values.dtype.kind == "f" and np.all(np.abs(values) < LARGEST_EXACT_INTEGER)
    return values.astype(np.int64) if is_small and np.all(np.rint(values) == values) else values


def _as_vector(values: Any, what: str) -> NDArray[Any]:
    values = np.asarray(values)
    if values.ndim == 2 and 1 in values.shape:
        values = values.ravel()
    if values.ndim != 1:
        raise DataError(
            f"{shorten(what)} must have one entry for each sample; it has shape {values.shape}. "
            "Name another array."
        )
    return values
