"""Tables in one file or in many, read in blocks of rows or collected into memory."""

import copy
import hashlib
import pickle
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers._protocols import IndexArray, RowBlock
from keepers.data.blocks.local import LocalBlocks, drop_rows, even_ranges, known_sum, shares
from keepers.data.columns import OtherColumn, join_columns
from keepers.data.limits import SizeLimit
from keepers.data.table import (
    ColumnPlan,
    LabelledTable,
    ReadRequest,
    TextColumnsError,
    plan_columns,
)
from keepers.data.values import as_labels, as_names, as_values
from keepers.data.wording import first_line, some_of
from keepers.exceptions import DataError, KeepersError, shorten

_FIRST_ROWS = 64
_GROWTH = 1.2  # a larger factor would touch memory that the last rows never fill
_NO_ROWS = "It holds no rows. Leave it out, or write it again with rows."


Blocks = TypeVar("Blocks", "FileBlocks", "FileBlocks | FileSequence")
Result = TypeVar("Result")


class Rows(NamedTuple):
    """Some consecutive rows as a format reads them."""

    values: Any
    """Array or CSR matrix of the table's ``dtype``."""
    labels: Any = None
    """One entry a row, as stored; None unless asked for and there. Names likewise."""
    sample_names: Any = None
    others: tuple[OtherColumn, ...] = ()
    """Columns of text and dates, if the request was for a mixed table."""


class FileBlocks(LocalBlocks):
    """A table, or a range of its rows, in one file; a format implements ``_read``.

    No file stays open between calls, so that a table can be sent to another process.
    """

    title: str
    order: Literal["C", "F"] = "C"
    """How a matrix of all rows is best laid out."""
    types: Mapping[str, Any] = MappingProxyType({})
    """How columns are stored that are no plain float64: types of Arrow."""
    _layout: Any = None
    """What the format knows of the columns; equal for files that are laid out alike."""

    def __init__(
        self,
        path: Path,
        feature_names: Sequence[str],
        dtype: Any,
        rows: range | None,
        n_stored: int | None = None,
    ) -> None:
        if rows is not None and not len(rows):
            raise DataError(_NO_ROWS)
        self.path = path
        self.name = path.name
        self.feature_names: NDArray[np.object_] = np.array(feature_names, dtype=object)
        self.n_features = len(feature_names)
        self.dtype = np.dtype(dtype)
        self.rows = rows
        self.n_samples = None if rows is None else len(rows)
        self.n_stored = n_stored
        if n_stored is None and rows is not None:
            self.n_stored = len(rows) * self.n_features

    @abstractmethod
    def _read(self, columns: IndexArray | None, annotated: bool) -> Iterator[Rows]:
        """The rows, block after block; any exception may pass.

        Labels and sample names are read, and handed over, only if ``annotated``.
        """

    def class_labels(self, pieces: Sequence[Any]) -> NDArray[Any]:
        """The labels of all blocks as classes: integers, other numbers, or text."""
        return as_labels(np.concatenate(pieces), "labels")

    def row_names(self, pieces: Sequence[Any]) -> NDArray[np.object_]:
        """The sample names of all blocks as text."""
        return as_names(np.concatenate(pieces), "identifier")

    def blocks(
        self, columns: IndexArray | None = None, *, annotated: bool = False
    ) -> Iterator[RowBlock]:
        """The rows, block after block, each with the place where it stands in the file.

        With labels and sample names, where the table has them, if ``annotated``.
        """
        with reading(self.path, self.title) as progress:
            progress.rows = before = 0 if self.rows is None else self.rows.start
            for rows in self._read(columns, annotated):
                first = progress.rows + 1
                progress.rows += rows.values.shape[0]
                origin = f"{self.name}, rows {first} to {progress.rows}"
                yield RowBlock(
                    rows.values, origin, rows.labels, rows.sample_names, others=rows.others
                )
            self._refuse_incomplete(progress.rows - before)

    def blocks_after(
        self, n_rows: int, columns: IndexArray | None = None, *, annotated: bool = False
    ) -> Iterator[RowBlock] | None:
        """The blocks after the first ``n_rows`` rows; None if no block ends there."""
        return drop_rows(self.blocks(columns, annotated=annotated), n_rows)

    def identity(self) -> str | None:
        """Follows from how the file is read, and from what the system knows of it."""
        return _identity(self, [self.path])

    def _refuse_incomplete(self, n_rows: int) -> None:
        if self.n_samples is not None and n_rows != self.n_samples:
            raise DataError(
                f"It declares {self.n_samples} rows and gave {n_rows}: it is damaged, or was "
                "changed while it was read. Obtain or write it again."
            )
        if n_rows == 0:
            raise DataError(_NO_ROWS)

    def parts(self, n_parts: int) -> Sequence["FileBlocks"]:
        """The same rows as tables of their own, about ``n_parts``, for workers to share."""
        return [self]

    @property
    def first_file(self) -> "FileBlocks":
        """The file that tells kinds of columns: itself."""
        return self

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Columns that are handed over as text or dates."""
        return ()

    def with_texts(self, names: Sequence[str]) -> Self:
        """The same table, of which some columns proved to hold text; itself if it is not mixed."""
        return self

    def with_name(self, name: str) -> Self:
        """The same table by another name in messages."""
        return self._with(name=name)

    def in_precision(self, dtype: np.dtype[Any]) -> Self:
        """The same table with values of another kind."""
        return self._with(dtype=dtype)

    def of_rows(self, rows: range) -> Self:
        """Some consecutive rows of the same table, counted as in the file."""
        return self._with(rows=rows, n_samples=len(rows), n_stored=len(rows) * self.n_features)

    def sharing_with(self, other: "FileBlocks") -> Self:
        """The same table; what equals the other's is the other's.

        Thousands of files are then sent to a worker with the names of their columns once.
        """
        same_names = np.array_equal(self.feature_names, other.feature_names)
        return self._with(
            feature_names=other.feature_names if same_names else self.feature_names,
            _layout=other._layout if self._layout == other._layout else self._layout,
        )

    def _with(self, **changes: Any) -> Self:
        """A copy that differs in some attributes."""
        twin = copy.copy(self)
        twin.__dict__.update(changes)
        return twin


class MatrixBlocks(FileBlocks):
    """Rows of a matrix in a file; a format implements ``_raw``.

    Parameters
    ----------
    path : Path
        The file.
    names : sequence of str
        Names of all its columns.
    request : ReadRequest
        Which columns are no features.
    n_rows : int
        Rows of the matrix.
    stored : dtype
        Kind of the stored numbers.
    n_stored : int or None
        Stored values, if the matrix is sparse.
    """

    _read_vectors: Callable[[], tuple[Any, Any]] | None = None

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        request: ReadRequest,
        n_rows: int,
        stored: np.dtype[Any],
        n_stored: int | None = None,
    ) -> None:
        plan = plan_columns(names, request) if names else ColumnPlan([], None, None)
        if not plan.features:
            raise DataError(
                f"A table needs at least one feature column; this one has {n_rows} rows and none. "
                "Leave it out, or write it again."
            )
        none_yet = as_values(np.empty((0, len(names)), dtype=stored), path.name)
        super().__init__(
            path, [names[at] for at in plan.features], none_yet.dtype, range(n_rows), n_stored
        )
        self._layout = (len(names), plan)
        self._n_file_rows = n_rows
        self._label_name = request.labels or "labels"

    @abstractmethod
    def _raw(self, chosen: IndexArray | None) -> Iterator[Any]:
        """The rows ``rows``, all columns or the ``chosen`` ones of the file, as stored."""

    def annotate(self, read: Callable[[], tuple[Any, Any]], label_name: str | None) -> None:
        """Labels and sample names of all rows come from ``read``, not from columns of the matrix.

        Either may be None. ``read`` can be pickled and is called only where they are wanted.
        """
        self._read_vectors = read
        self._label_name = label_name or "labels"

    def _read(self, columns: IndexArray | None, annotated: bool) -> Iterator[Rows]:
        names = self.feature_names if columns is None else self.feature_names[columns]
        plan: ColumnPlan = self._layout[1]
        roles = [plan.labels, plan.identifier] if annotated else [None, None]
        read = self._read_vectors if annotated else None
        vectors = (None, None) if read is None else read()
        for what, vector in zip(("labels", "sample names"), vectors, strict=True):
            self._refuse_wrong_length(what, vector)
        beside = [at for at in roles if at is not None]
        start = self._here.start
        for raw in self._raw(self._chosen(columns, beside)):
            stop = start + raw.shape[0]
            notes = [None if vector is None else vector[start:stop] for vector in vectors]
            if beside:
                found = dict(zip(beside, _columns(raw, len(names)), strict=True))
                notes = [
                    note if at is None else found[at] for at, note in zip(roles, notes, strict=True)
                ]
                raw = raw[:, : len(names)]
            values = as_values(raw, self.name, names).astype(self.dtype, copy=False)
            yield Rows(values, notes[0], notes[1])
            start = stop

    def _refuse_wrong_length(self, what: str, vector: Any) -> None:
        if vector is not None and len(vector) != self._n_file_rows:
            raise DataError(
                f"{what} must have one entry each ({self._n_file_rows}); {shorten(self.name)} "
                f"has an array of shape {vector.shape}. Check that samples are rows."
            )

    def class_labels(self, pieces: Sequence[Any]) -> NDArray[Any]:
        """The labels of all blocks as classes."""
        return as_labels(np.concatenate(pieces), self._label_name)

    def row_names(self, pieces: Sequence[Any]) -> NDArray[np.object_]:
        """The sample names of all blocks as text; integers without a decimal point."""
        names = np.concatenate(pieces)
        if self._layout[1].identifier is not None:
            names = as_labels(names, "identifier")
        return as_names(names, "sample names")

    def _chosen(self, columns: IndexArray | None, beside: Sequence[int] = ()) -> IndexArray | None:
        """Positions in the file of the wanted features and other columns; None for all columns."""
        n_columns, plan = self._layout
        if not beside and len(plan.features) == n_columns:
            return columns
        features = np.array(plan.features, dtype=np.intp)
        wanted = features if columns is None else features[columns]
        return np.append(wanted, np.array(beside, dtype=np.intp)) if beside else wanted

    @property
    def _width(self) -> int:
        """Columns in the file."""
        return int(self._layout[0])

    @property
    def _here(self) -> range:
        assert self.rows is not None
        return self.rows

    def blocks_after(
        self, n_rows: int, columns: IndexArray | None = None, *, annotated: bool = False
    ) -> Iterator[RowBlock] | None:
        """The blocks after the first ``n_rows`` rows, which are not read."""
        here = self._here
        if n_rows >= len(here):
            return iter(()) if n_rows == len(here) else None
        rest = self.of_rows(range(here.start + n_rows, here.stop))
        return rest.blocks(columns, annotated=annotated)

    def parts(self, n_parts: int) -> list[Self]:
        """The same rows as ``n_parts`` ranges of them."""
        return [self.of_rows(rows) for rows in even_ranges(self._here, n_parts)]


def _columns(raw: Any, first: int) -> list[NDArray[Any]]:
    """The columns from ``first`` on, one by one."""
    beside = raw[:, first:]
    return list((beside.toarray() if sp.issparse(beside) else beside).T)


def collect(table: FileBlocks, limit: SizeLimit, name: str) -> LabelledTable:
    """All rows of a table, with labels and sample names where it has them.

    Raises `DataError` as soon as they are known to outgrow the limit.
    """
    return read_knowing_texts(table, lambda known: _collect_once(known, limit, name))


def _collect_once(table: FileBlocks, limit: SizeLimit, name: str) -> LabelledTable:
    X = GrowingSparse(limit) if table.is_sparse else GrowingMatrix(table, limit)
    labels: list[Any] = []
    sample_names: list[Any] = []
    others: list[tuple[OtherColumn, ...]] = []
    for block in table.blocks(annotated=True):
        X.append(block.values)
        if block.labels is not None:
            labels.append(block.labels)
        if block.sample_names is not None:
            sample_names.append(block.sample_names)
        if block.others:
            others.append(block.others)
    return LabelledTable(
        X.finish(),
        table.feature_names,
        table.row_names(sample_names) if sample_names else None,
        table.class_labels(labels) if labels else None,
        name,
        join_columns(others),
        table.types,
    )


def read_knowing_texts(source: Blocks, read: Callable[[Blocks], Result]) -> Result:
    """What ``read`` makes of a table; again if a column of a mixed one proves to hold text."""
    while True:
        try:
            return read(source)
        except TextColumnsError as error:
            known = source.with_texts(error.names)
            if known.n_features == source.n_features:
                raise
            source = known


class GrowingMatrix:
    """Rows of a table are appended; no two copies of the matrix are held.

    Memory is set aside at once if the number of rows is known, else extended, in place where the
    system can.
    """

    def __init__(self, table: FileBlocks, limit: SizeLimit) -> None:
        self._limit, self._expected = limit, table.n_samples
        self._order = table.order
        self._rows = 0
        shape = (table.n_samples or 0, table.n_features)
        limit.refuse_shape(shape, table.dtype.itemsize, "The table")
        first = (table.n_samples or _FIRST_ROWS, table.n_features)
        # Costs nothing before it is written to.
        self._values: NDArray[Any] = np.empty(first, dtype=table.dtype, order=table.order)

    def append(self, rows: NDArray[Any]) -> None:
        """Append a block of rows, which may be kept; refuse it if the table outgrows the limit."""
        n_columns = self._values.shape[1]
        end = self._rows + len(rows)
        if end == len(rows) == self._expected and rows.flags[self._order]:  # all in one block
            self._values, self._rows = rows, end
            return
        self._limit.refuse_shape((end, n_columns), self._values.itemsize, "The table")
        if end > len(self._values):
            capacity = max(end, int(_GROWTH * len(self._values)))
            # No other array looks at this memory, so it may move.
            self._values.resize((capacity, n_columns), refcheck=False)
        self._values[self._rows : end] = rows
        self._rows = end

    def finish(self) -> NDArray[Any]:
        """Return the matrix, cut to the rows that were appended."""
        if self._rows < len(self._values):
            self._values.resize((self._rows, self._values.shape[1]), refcheck=False)
        return self._values


class GrowingSparse:
    """CSR rows are appended."""

    def __init__(self, limit: SizeLimit) -> None:
        self._limit, self._n_bytes = limit, 0
        self._blocks: list[Any] = []

    def append(self, rows: Any) -> None:
        """Append a block of rows; refuse it if the table outgrows the limit."""
        self._n_bytes += rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
        self._limit.refuse_past(self._n_bytes, "The table")
        self._blocks.append(rows)

    def finish(self) -> Any:
        """Return the matrix."""
        one = len(self._blocks) == 1
        return self._blocks[0] if one else sp.vstack(self._blocks, format="csr")


class FileSequence(LocalBlocks):
    """The rows of several files, one after the other.

    Parameters
    ----------
    name : str
        What the table is called in messages.
    members : sequence of FileBlocks
        Tables with the same columns, in any order; the first tells the order of all.
    """

    def __init__(self, name: str, members: Sequence[FileBlocks]) -> None:
        first = members[0]
        self.name = name
        self.feature_names = first.feature_names
        self.n_features = first.n_features
        self.is_sparse = first.is_sparse
        self.dtype = np.result_type(*(member.dtype for member in members))
        self._orders = [_order(member, first) for member in members]
        self._members = [_match_kind(each, first, self.dtype) for each in members]
        self.n_samples = known_sum(member.n_samples for member in members)
        self.n_stored = known_sum(member.n_stored for member in members)

    def blocks(
        self, columns: IndexArray | None = None, *, annotated: bool = False
    ) -> Iterator[RowBlock]:
        """The rows of each file, block after block, with labels and names if ``annotated``."""
        for member, order in zip(self._members, self._orders, strict=True):
            yield from member.blocks(_reordered(columns, order), annotated=annotated)

    def blocks_after(
        self, n_rows: int, columns: IndexArray | None = None, *, annotated: bool = False
    ) -> Iterator[RowBlock] | None:
        """The blocks after the first ``n_rows`` rows; files before them are not opened."""
        left, at = n_rows, 0
        for member in self._members[:-1]:
            if member.n_samples is None or member.n_samples > left:
                break
            left -= member.n_samples
            at += 1
        member = self._members[at]
        if member.n_samples is None:
            rest = self._some(self._members[at:], at)
            return drop_rows(rest.blocks(columns, annotated=annotated), left)
        chosen = _reordered(columns, self._orders[at])
        first = member.blocks_after(left, chosen, annotated=annotated)
        rest = self._some(self._members[at + 1 :], at + 1)
        return None if first is None else chain(first, rest.blocks(columns, annotated=annotated))

    def identity(self) -> str | None:
        """Follows from how the files are read, and from what the system knows of them."""
        return _identity(self, [member.path for member in self._members])

    @property
    def first_file(self) -> FileBlocks:
        """The file that tells kinds and order of the columns."""
        return self._members[0]

    def with_texts(self, names: Sequence[str]) -> "FileSequence":
        """The same table, of which some columns proved to hold text in one of the files."""
        return FileSequence(self.name, [member.with_texts(names) for member in self._members])

    @property
    def types(self) -> Mapping[str, Any]:
        """How columns are stored that are no plain float64, where all files agree."""
        found = [member.types for member in self._members]
        return {
            name: kind
            for name, kind in found[0].items()
            if all(types.get(name) == kind for types in found[1:])
        }

    def parts(self, n_parts: int) -> list["FileSequence"]:
        """The same rows as about ``n_parts`` tables: groups of files, or parts of each file."""
        weights = [member.n_samples or 1 for member in self._members]
        if self.n_samples is None:
            weights = [1] * len(weights)
        if n_parts <= len(weights):
            chosen = shares(weights, n_parts)
            return [self._some(self._members[at.start : at.stop], at.start) for at in chosen]
        tables: list[FileSequence] = []
        for at, member in enumerate(self._members):
            pieces = member.parts(max(1, round(n_parts * weights[at] / sum(weights))))
            tables.extend(self._some([piece], at) for piece in pieces)
        return tables

    def _some(self, members: Sequence[FileBlocks], start: int) -> "FileSequence":
        """Consecutive members, or a piece of one, as a table of their own."""
        other = copy.copy(self)
        other._members = list(members)
        other._orders = self._orders[start : start + len(members)]
        other.n_samples = known_sum(member.n_samples for member in members)
        other.n_stored = known_sum(member.n_stored for member in members)
        return other


def _reordered(columns: IndexArray | None, order: IndexArray | None) -> IndexArray | None:
    """Where some columns stand in a file with its columns in another order."""
    if order is None:
        return columns
    return order if columns is None else order[columns]


def _identity(table: LocalBlocks, paths: Sequence[Path]) -> str | None:
    """A digest of a table in files that is another one after any of them was written to.

    Whoever writes to a file can set the time of its last change, but not that at which the system
    noted the change. What the table knows of its files is pickled to be digested, never read back.
    """
    try:
        stats = [path.stat() for path in paths]
        described = pickle.dumps(table)
    except Exception:  # an object that cannot be pickled raises anything
        return None
    facts = [(s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in stats]
    return hashlib.sha256(described + repr(facts).encode()).hexdigest()


def _order(member: FileBlocks, first: FileBlocks) -> IndexArray | None:
    """Where the columns of the first file stand in another; None if in the same places."""
    names, expected = member.feature_names, first.feature_names
    if len(names) == len(expected) and bool(np.all(names == expected)):
        return None
    if set(names) != set(expected):
        raise DataError(
            f"All files of a table must have the same feature columns; {first.path} has "
            f"{len(expected)}, and {member.path} {_difference(names, expected)}. Leave it out, or "
            "write it again with the columns of the others."
        )
    position = {name: at for at, name in enumerate(names)}
    return np.array([position[name] for name in expected], dtype=np.intp)


def _difference(names: NDArray[Any], expected: NDArray[Any]) -> str:
    """How the columns of a file differ from those of the first."""
    here, there = set(names), set(expected)
    told = [
        f"{what} {some_of([repr(name) for name in some])}"
        for what, some in (
            ("lacks", [name for name in expected if name not in here]),
            ("adds", [name for name in names if name not in there]),
        )
        if some
    ]
    return f"has {len(names)} and {' and '.join(told)}"


def _match_kind(member: FileBlocks, first: FileBlocks, dtype: np.dtype[Any]) -> FileBlocks:
    """A member that gives blocks of the same kind as all the others."""
    if member.is_sparse != first.is_sparse:
        kinds = ["dense", "sparse"]
        raise DataError(
            f"All files of a table must be sparse, or none; {member.path} is "
            f"{kinds[member.is_sparse]} and {first.path} is {kinds[first.is_sparse]}. Write one "
            "of them again."
        )
    return member.in_precision(dtype).sharing_with(first)


@dataclass
class RowsRead:
    """How far a reader has come."""

    rows: int = 0

    def __str__(self) -> str:
        """A piece of a message: nothing before the first row."""
        return f", after row {self.rows}" if self.rows else ""


@contextmanager
def reading(path: Path, title: str) -> Iterator[RowsRead]:
    """Put the path in front of errors of ours, once; make a `DataError` of every other one."""
    progress = RowsRead()
    try:
        yield progress
    except KeepersError as error:
        if str(error).startswith(str(path)):  # a reader inside this one has named it
            raise
        named = type(error)(f"{path}{progress}: {error}")
        named.__dict__.update(error.__dict__)  # which columns, for those that can go on
        raise named from error
    except MemoryError as error:
        raise DataError(
            f"{path} does not fit in memory. Read a part of the table, or use a larger machine."
        ) from error
    except Exception as error:
        raise DataError(
            f"{path} is not a readable {title} file{progress}: {first_line(error)}. Check that it "
            "is complete and that its suffix tells its format, or write it again."
        ) from error
