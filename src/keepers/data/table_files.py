"""From a path or a name to a table, whole or in blocks, and from a table to a file."""

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from keepers.data.blocks.files import FileBlocks, FileSequence, read_knowing_texts
from keepers.data.catalogue import catalogue, entry_named, find, load, names, refuse_wrong_checksum
from keepers.data.columns import OtherColumn
from keepers.data.formats.registry import (
    FORMATS,
    RowWriter,
    block_format,
    block_suffixes,
    folder_format,
    format_of,
    format_to_write,
    has_blocks,
    is_plain_text,
    open_in_blocks,
    read_table,
)
from keepers.data.limits import SizeLimit
from keepers.data.replacing import check_target, leads_to_itself, whole_file
from keepers.data.table import (
    ChangedTypeError,
    LabelledTable,
    Matrix,
    ReadRequest,
    WrittenTable,
    in_source_order,
    matching_names,
    numbered_names,
    refuse_absent,
    to_table,
    unique_names,
)
from keepers.data.values import as_labels
from keepers.data.wording import closest, first_line, some_of
from keepers.exceptions import (
    DataError,
    DataWarning,
    KeepersError,
    ParameterError,
    shorten,
    warn_caller,
)


def open_table(
    source: str | Path,
    *,
    labels: str | None = None,
    identifier: str | None = None,
    drop: Sequence[str] = (),
    max_bytes: int | None = None,
    dataset: str | None = None,
    header: bool | None = None,
    mixed: bool = False,
    make_unique: bool = False,
    transpose: bool = False,
    format: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    comment: str | None = None,
    encoding: str | None = None,
    sheet: str | int | None = None,
) -> LabelledTable:
    """Read a table from a file, or a data set by its name.

    Parameters
    ----------
    source : str or Path
        A file, read by its suffix, or by what it holds where that is none that is known, or .txt,
        .dat or .data; a folder of Cell Ranger (matrix.mtx, features.tsv or genes.tsv,
        barcodes.tsv, compressed or not) or a folder .zarr of AnnData; else the name of a bundled
        data set ("srbct", "digits") or of a catalogued one (see `catalogue`), whose labels come
        with it.
    labels : str or None
        Column (or array of a .npz or .h5, variable of a .mat, what a .gct or a series matrix of GEO
        tells of its samples) that holds the classes.
    identifier : str or None
        Column that names the samples.
    drop : sequence of str
        Columns to leave out; with ``transpose`` columns or rows, by name.
    max_bytes : int or None
        Refuse a table that would take more memory than this, compressed files included.
        None: 8 GiB; never more than the memory of the machine.
    dataset : str or None
        Which array of an HDF5 file (.h5) holds the values, if there are several and none is "X".
    header : bool or None
        Whether the first line of a text table holds column names. None: it does unless it holds
        numbers only, other than 0, 1, 2, ...; a `DataWarning` says where that is doubtful.
    mixed : bool
        Hand over columns of text and dates as ``others`` of the table, for a `TablePreparer`;
        otherwise they are refused.
    make_unique : bool
        Number repeated column names (a, a.1, a.2); otherwise they are refused.
    transpose : bool
        Features are rows: the first column, or ``identifier``, names them, and the header names
        the samples.
    format : str or None
        "csv", "tsv", "parquet", ... where the name of the file does not tell it.
    sep, decimal, comment, encoding : str or None
        Of a text table: what separates cells (one character, "tab", "space", or "whitespace" for
        runs of blanks), the decimal mark ("." or ","), how lines begin that are left out ("#"),
        and the encoding ("latin-1", "cp1252", ...); told by what the file holds if None.
    sheet : str, int or None
        Sheet of a workbook, by its name or its number from 1; the first if None.

    Returns
    -------
    LabelledTable
        Values, names, and labels where there are any.

    Raises
    ------
    DataError
        The file cannot be read as a table; the message says why and what helps.

    Examples
    --------
    >>> from keepers.datasets import open_table
    >>> table = open_table("srbct")
    >>> table.n_samples, table.n_features, sorted(set(table.labels))
    (83, 2308, ['BL', 'EWS', 'NB', 'RMS'])
    """
    request = ReadRequest(
        labels,
        identifier,
        tuple(drop),
        SizeLimit.of(max_bytes),
        dataset=dataset,
        header=header,
        whole=True,
        mixed=mixed,
        make_unique=make_unique,
        format=format,
        delimiter=sep,
        decimal=decimal,
        comment=comment,
        encoding=encoding,
        sheet=None if sheet is None else str(sheet),
    )
    path = Path(source)
    if transpose:
        return _read_transposed(path, request)
    # Unlike Path.is_file, os.path.isfile is False for any name that cannot be one.
    if os.path.isfile(path) or is_table_folder(path):
        return read_table(path, request)
    name = str(source)
    if name.casefold() in names():
        return _with_roles(_load_bundled(name.casefold()), request)
    if name.casefold() in {entry.name.casefold() for entry in catalogue()}:
        return _with_roles(load_catalogued(name), request)
    raise DataError(_unknown(name, path))


def is_table_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a folder is one table, read whole: of Cell Ranger (10x), or Zarr.

    Any other folder is a table if its files are blocks of rows (`open_blocks`).
    """
    return os.path.isdir(path) and folder_format(Path(path)) is not None


def _read_transposed(path: Path, request: ReadRequest) -> LabelledTable:
    """A file in which features are rows."""
    if not os.path.isfile(path):
        raise DataError(f"A table to be transposed is read from a file; there is no {path}.")
    if request.labels is not None:
        raise ParameterError(
            "labels= (--labels) names a column, and the columns of a table to be transposed are "
            "samples. Leave it out."
        )
    # Columns to leave out may be samples, or rows, whose names are known only after reading.
    twice = request.identifier is not None and request.identifier in request.drop
    early = request.drop if twice else ()  # then reading refuses it
    table = read_table(path, replace(request, mixed=True, drop=early))
    columns = [*map(str, table.feature_names), *(column.name for column in table.others)]
    asked = matching_names(request.drop, columns)
    left_out = set(asked).intersection(columns)
    names = table.sample_names
    others = [column for column in table.others if column.name not in left_out]
    if names is None and others:
        first = min(others, key=lambda column: column.position)
        others.remove(first)
        names = np.array(["" if word is None else word for word in first.values], dtype=object)
    if others:
        told = some_of([repr(column.name) for column in others])
        warn_caller(
            f"{path.name}: columns that hold text are no samples and are left out: {told}.",
            DataWarning,
        )
    features = (
        numbered_names(table.n_samples)
        if names is None
        else unique_names(list(names), make_unique=request.make_unique)
    )
    rows_left_out = matching_names([name for name in asked if name not in left_out], features)
    refuse_absent(rows_left_out, dict.fromkeys([*columns, *features]))
    samples = [at for at, name in enumerate(table.feature_names) if str(name) not in left_out]
    absent = set(rows_left_out)
    rows = [at for at, name in enumerate(features) if name not in absent]
    if asked and not (samples and rows):
        raise DataError("At least one sample and one feature must remain. Leave out fewer.")
    X = table.X.T.tocsr() if table.is_sparse else table.X.T
    if asked:
        X = X[samples][:, rows]
    return LabelledTable(
        X if table.is_sparse else np.ascontiguousarray(X),
        np.array(features, dtype=object)[rows],
        np.array([str(table.feature_names[at]) for at in samples], dtype=object),
        None,
        table.name,
    )


def load_catalogued(name: str, *, verify: bool = True) -> LabelledTable:
    """Read a catalogued benchmark set from the data folder.

    Parameters
    ----------
    name : str
        Name in the catalogue; upper and lower case do not matter.
    verify : bool
        Refuse a file whose SHA-256 is not the catalogued one.

    Returns
    -------
    LabelledTable
        The raw values, with labels; the entry's ``scaling`` is not applied.
    """
    entry, path = entry_named(name), find(name)
    if verify:
        refuse_wrong_checksum(entry, path)
    table = read_table(path, ReadRequest(whole=True))
    return LabelledTable(table.X, table.feature_names, None, table.labels, entry.name)


def _load_bundled(name: str) -> LabelledTable:
    X, feature_names, y = load(name)
    X = np.ascontiguousarray(X, dtype=np.float64)
    return LabelledTable(X, feature_names, None, as_labels(y, "labels"), name)


def _with_roles(table: LabelledTable, request: ReadRequest) -> LabelledTable:
    """Drop columns of a named set; its labels are what they are."""
    stored = Matrix(table.X, table.feature_names, table.sample_names, table.labels)
    roles = ReadRequest(None, request.identifier, request.drop, request.limit)
    return to_table(stored, roles, table.name)


def _unknown(name: str, path: Path) -> str:
    known = [*names(), *(entry.name for entry in catalogue())]
    shown = shorten(name)
    if os.path.isdir(path):
        return (
            f"A table is read from a file, a 10x folder or a folder .zarr; {shown} is a folder of "
            "another kind. Name a file in it."
        )
    if leads_to_itself(path):
        return f"{shown} is a symbolic link that leads back to itself. Name another file."
    if path.suffix or len(path.parts) > 1:
        return (
            f"There is no file {shown}.{_nearest_file(path)} Give a file that "
            f"exists, or one of the known data sets: {', '.join(known)}."
        )
    return (
        f"{shown} is neither a file nor a known data set.{closest(name, known)} Known: "
        f"{', '.join(known)}."
    )


# Blocks come one at a time, so the size of the whole is no concern.
_ANY_SIZE = SizeLimit(2**62)


def open_blocks(
    source: str | Path | Sequence[str | Path],
    *,
    labels: str | None = None,
    identifier: str | None = None,
    drop: Sequence[str] = (),
    dataset: str | None = None,
    header: bool | None = None,
    mixed: bool = False,
    make_unique: bool = False,
    format: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    comment: str | None = None,
    encoding: str | None = None,
    sheet: str | int | None = None,
) -> FileBlocks | FileSequence:
    """Open a table that may be larger than memory, to be read in blocks of rows.

    Parameters
    ----------
    source : str, Path or list of them
        A file, read by its suffix; a folder, whose files of one format make one table, sorted by
        name with numbers by their value (folders in it are searched; names that begin with "."
        or "_" are left out); a pattern such as ``"part-*.parquet"``; or a list of files, read in
        that order. The files of a table have the same columns, in any order.
    labels, identifier : str or None
        Columns that hold classes and sample names: no features. They are read only by
        ``blocks(annotated=True)``, which hands them over with the rows, as they are stored.
    drop : sequence of str
        Further columns to leave out.
    dataset : str or None
        Which array of an HDF5 file holds the values, if there are several.
    header : bool or None
        Whether the first line of a text file holds column names, as in `open_table`.
    mixed, make_unique, format, sep, decimal, comment, encoding, sheet
        As in `open_table`.

    Returns
    -------
    FileBlocks or FileSequence
        Rows come from ``blocks()``; nothing but names and sizes is read before.

    Raises
    ------
    DataError
        A file cannot be read as a table, or does not fit the others; the message names it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from keepers.data.table_files import open_blocks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "part-1.npy", np.eye(3))
    ...     np.save(Path(folder) / "part-2.npy", np.ones((2, 3)))
    ...     table = open_blocks(folder, drop=["x1"])
    ...     for block in table.blocks():
    ...         print(block.origin, block.values.sum(axis=0))
    part-1.npy, rows 1 to 3 [1. 1.]
    part-2.npy, rows 1 to 2 [2. 2.]
    >>> table.n_samples, list(table.feature_names)
    (5, ['x0', 'x2'])
    """
    request = ReadRequest(
        labels,
        identifier,
        tuple(drop),
        _ANY_SIZE,
        dataset,
        header,
        mixed=mixed,
        make_unique=make_unique,
        format=format,
        delimiter=sep,
        decimal=decimal,
        comment=comment,
        encoding=encoding,
        sheet=None if sheet is None else str(sheet),
    )
    if not isinstance(source, (str, os.PathLike)):
        paths = [_absolute(path) for path in source]
        files, name = _all_there(paths, request), "the list of files"
    elif os.path.isfile(source) or is_table_folder(source):
        return open_in_blocks(_absolute(source), request)
    elif os.path.isdir(source):
        folder = _absolute(source)
        files = _block_files(files_below(folder), str(folder), request)
        members = _open_alike(files, request)
        named = [member.with_name(member.path.relative_to(folder).as_posix()) for member in members]
        return FileSequence(folder.name, named)
    elif glob.has_magic(os.fspath(source)):
        files, name = _files_matching(str(source), request), str(source)
    else:
        raise DataError(_absent(Path(source)))
    return FileSequence(name, _open_alike(files, request))


def _open_alike(files: Sequence[Path], request: ReadRequest) -> list[FileBlocks]:
    """The files of a table; what is text in one of them is text in all."""
    members = [open_in_blocks(path, request) for path in files]
    texts = sorted({name for member in members for name in member.text_columns})
    return [member.with_texts(texts) for member in members]


def _all_there(paths: list[Path], request: ReadRequest) -> list[Path]:
    if not paths:
        raise DataError("A table needs at least one file; the list of files is empty. Name one.")
    for path in paths:
        if not os.path.isfile(path):
            raise DataError(_absent(path))
        block_format(path, request)
    return _of_one_format(paths, "the list")


def _block_files(paths: Sequence[Path], where: str, request: ReadRequest) -> list[Path]:
    """The files whose suffix tells a format that is read in blocks; there may be others.

    All of them if the request tells the format. Files of plain text count only where there are
    no others: they may be notes.
    """
    if request.format is not None and paths:
        return list(paths)
    known = [path for path in paths if has_blocks(path)]
    known = [path for path in known if not is_plain_text(path)] or known
    if not known:
        found = some_of([path.name for path in paths]) or "nothing"
        raise DataError(
            "A table in blocks needs files whose names end in one of "
            f"{', '.join(block_suffixes())}; {where} holds {found}. Name another folder, or "
            "convert the files."
        )
    return _of_one_format(known, where)


def _of_one_format(paths: list[Path], where: str) -> list[Path]:
    examples: dict[str, Path] = {}
    for path in paths:
        if file_format := format_of(path):
            examples.setdefault(file_format.title, path)
    if len(examples) > 1:
        told = " and ".join(f"{title} ({path.name})" for title, path in examples.items())
        raise DataError(
            f"All files of a table must have one format; {where} holds {told}. Name those that "
            "are meant by a pattern, such as '*.parquet'."
        )
    return paths


def _files_matching(pattern: str, request: ReadRequest) -> list[Path]:
    """The files that a pattern matches, and those in folders that it matches."""
    found: list[Path] = []
    for match in sorted(glob.glob(pattern, recursive=True)):
        path = _absolute(match)
        if path.name.startswith("_"):
            continue
        found += files_below(path) if path.is_dir() else [path]
    if not found:
        raise DataError(
            f"A pattern must match at least one file; {shorten(pattern)} matches none, seen from "
            f"{Path.cwd()}. Check the folder and the pattern."
        )
    where = f"the pattern {shorten(pattern)}"
    paths = in_natural_order(list(dict.fromkeys(found)))
    return _block_files(paths, where, request)


def files_below(folder: Path) -> list[Path]:
    """All files in a folder and below it, but hidden ones and those whose names begin with "_"."""
    found = [
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    return in_natural_order(found)


def in_natural_order(paths: Sequence[Path]) -> list[Path]:
    """Sorted by name, numbers in names by their value: part-2 before part-10."""
    return sorted(paths, key=lambda path: [_by_value(part) for part in path.parts])


def _by_value(name: str) -> tuple[list[str | int], str]:
    pieces = re.split(r"([0-9]+)", name.casefold())
    return [int(piece) if at % 2 else piece for at, piece in enumerate(pieces)], name


def _absolute(path: str | os.PathLike[str]) -> Path:
    """Absolute, since another process may work in another folder."""
    return Path(os.path.abspath(path))


def _absent(path: Path) -> str:
    what = "is a folder" if os.path.isdir(path) else "is not there"
    if leads_to_itself(path):
        what = "is a symbolic link that leads back to itself"
    return (
        f"A table in blocks is read from a file, a folder, a pattern or a list of files; {path} "
        f"{what}.{_nearest_file(path)}"
    )


def _nearest_file(path: Path) -> str:
    """' Did you mean ...?' for a file in the same folder, or nothing."""
    try:
        return closest(path.name, [name for name in os.listdir(path.parent) if name != path.name])
    except (OSError, ValueError):
        return ""


def write_table(
    path: str | Path,
    X: Any,
    feature_names: Any,
    sample_names: Any = None,
    labels: Any = None,
    *,
    identifier_name: str = "sample",
    label_name: str = "label",
    force: bool = False,
) -> Path:
    """Write a table to a file whose suffix tells the format.

    Nothing is seen under ``path`` before all of it is written; if writing fails, what was there
    stays. In CSV, TSV and GCT, text that a spreadsheet could take for a formula (names and text
    labels that begin with ``= + - @``, tab or carriage return, and are no numbers) gets an
    apostrophe in front; in .xlsx every text is a text cell. Numbers are written with as many digits
    as it takes to read back the same number, in .xlsx with 16.

    Parameters
    ----------
    path : str or Path
        .csv, .tsv, .parquet, .feather, .npz, .h5ad, .xlsx and .gct (features as rows) hold all;
        .svmlight holds values and numeric labels; .npy and .mtx hold the values alone. Text
        formats may end in .gz, .bz2, .xz or .zst as well.
    X : array or sparse matrix of shape (n_samples, n_features)
        Values.
    feature_names, sample_names, labels : sequences or None
        Names of columns and rows, and classes.
    identifier_name, label_name : str
        What the columns of sample names and labels are called.
    force : bool
        Replace the file if it exists.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ParameterError
        The file exists, or is a folder or a device, or cannot be written in this format.
    KeepersError
        Writing failed: the disk is full, or the folder is read-only.
    """
    table = WrittenTable.of(
        X,
        feature_names,
        sample_names,
        labels,
        identifier_name=identifier_name,
        label_name=label_name,
    )
    return _write(Path(path), table, force)


def write_features(
    path: str | Path,
    table: LabelledTable,
    names: Iterable[str],
    *,
    identifier_name: str = "sample",
    label_name: str = "label",
    force: bool = False,
) -> Path:
    r"""Write some features of a table, of numbers, text or dates, in the order of the source.

    Columns keep their types. In .parquet and .feather integers, booleans, dates, time stamps and
    categories stay what they were, gaps are null, and numbers that no longer fit their type (a mean
    that fills a gap between integers) are written as float64. In .csv and .tsv whole numbers have
    no decimal point, booleans are true and false, dates and times are written as in ISO 8601, with
    "Z" for universal time if they have a zone, and gaps are empty cells. In .xlsx cells are of
    their kind; times with a zone are written in universal time.

    Parameters
    ----------
    path : str or Path
        As in `write_table`. Text and dates are written to .csv, .tsv, .parquet, .feather and .xlsx.
    table : LabelledTable
        What `open_table` returns, with or without ``mixed=True``.
    names : iterable of str
        Names of features, in any order.
    identifier_name, label_name : str
        What the columns of sample names and labels are called.
    force : bool
        Replace the file if it exists.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ParameterError
        As of `write_table`; or the format holds numbers only, and some columns hold text or dates.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from keepers.datasets import open_table, write_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source = Path(folder) / "towns.csv"
    ...     _ = source.write_text("town,people,height\nOslo,717710,23\nRome,2746984,21\n")
    ...     table = open_table(source, mixed=True)
    ...     kept = write_features(Path(folder) / "kept.csv", table, ["people", "town"])
    ...     print(kept.read_text())
    town,people
    Oslo,717710
    Rome,2746984
    <BLANKLINE>
    """
    chosen = WrittenTable.of_features(
        table, names, identifier_name=identifier_name, label_name=label_name
    )
    return _write(Path(path), chosen, force)


def _write(path: Path, table: WrittenTable, force: bool) -> Path:
    known = format_to_write(path)
    assert known.write is not None
    if table.others and not known.holds_text:
        able = ", ".join(kind.suffixes[0] for kind in FORMATS if kind.holds_text)
        named = some_of([repr(column.name) for column in table.others])
        raise ParameterError(
            f"{known.title} files hold numbers only; these columns hold text or dates: {named}. "
            f"Choose a format that holds both, one of {able}, or leave the columns out."
        )
    with whole_file(path, force=force) as temporary, writing(path, known.title):
        known.write(temporary, table, path.name)
    return path


@contextmanager
def writing(path: Path, title: str) -> Iterator[None]:
    """Make a `DataError` of what a library says while a file is written."""
    try:
        yield
    except (KeepersError, OSError):
        raise
    except Exception as error:
        raise DataError(
            f"{path.name} could not be written as {title}: {first_line(error)}. "
            "Choose another format."
        ) from error


def write_selected(
    path: str | Path,
    source: str | Path,
    table: LabelledTable,
    names: Iterable[str],
    *,
    identifier_name: str = "sample",
    label_name: str = "label",
    force: bool = False,
) -> Path:
    """Write some features, by their names, of a table that was read from ``source``.

    If the source is a file of the same format, and files of that format hold more than a table
    (.h5ad), all of it is kept; otherwise this is `write_features`.
    """
    path, source = Path(path), Path(source)
    known = format_of(path)
    copies = known is not None and known is format_of(source) and os.path.isfile(source)
    if known is None or known.copy_columns is None or not copies:
        return write_features(
            path,
            table,
            names,
            identifier_name=identifier_name,
            label_name=label_name,
            force=force,
        )
    with whole_file(path, force=force) as temporary:
        try:
            known.copy_columns(source, temporary, [str(name) for name in names])
        except KeepersError as error:
            raise type(error)(f"{source}: {error}") from error
        except Exception as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the system: a full disk, say; a damaged file gives errors without number
            raise DataError(
                f"{source} could not be copied to {path.name}: {first_line(error)}. Check that it "
                "is complete, or choose another format than that of the source."
            ) from error
    return path


class TableWriter:
    """Appends rows to a file; `open_writer` gives one."""

    def __init__(self, append: Callable[[WrittenTable], None], **settings: str) -> None:
        self._append = append
        self._settings = settings
        self._names: list[str] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was appended yet."""
        return self._names is None

    def append(self, table: LabelledTable, names: Iterable[str]) -> None:
        """Append the named features of further rows, in the order of the first rows.

        Raises `ChangedTypeError` if numbers do not fit the types that those have, and `DataError`
        if there are other columns.
        """
        rows = WrittenTable.of_features(table, names, **self._settings)
        if self._names is not None and rows.column_names != self._names:
            raise DataError(
                f"All rows of a table have the same columns; the first have {some_of(self._names)},"
                f" and others {some_of(rows.column_names)}."
            )
        self._append(rows)
        self._names = rows.column_names


@contextmanager
def open_writer(
    path: str | Path,
    *,
    identifier_name: str = "sample",
    label_name: str = "label",
    force: bool = False,
) -> Iterator[TableWriter]:
    """Open a file to which rows are appended, for tables that are never in memory as a whole.

    Nothing is seen under ``path`` before the block ends well. Columns are written as by
    `write_features`, in the types that the first rows have.

    Parameters
    ----------
    path : str or Path
        .parquet, .feather, .csv or .tsv; text may end in .gz, .bz2, .xz or .zst as well.
    identifier_name, label_name, force
        As in `write_features`.

    Yields
    ------
    TableWriter
        ``append(table, names)`` takes rows: a `LabelledTable`, and the features to be written.

    Raises
    ------
    ParameterError
        As of `write_table`; or files of this format are written whole only.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from keepers.datasets import LabelledTable, open_writer
    >>> rows = LabelledTable(np.eye(2), np.array(["a", "b"], dtype=object))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_writer(Path(folder) / "kept.csv") as writer:
    ...         writer.append(rows, ["b"])
    ...         writer.append(rows, ["b"])
    ...     print((Path(folder) / "kept.csv").read_text().split())
    ['b', '0', '1', '0', '1']
    """
    path = Path(path)
    title, open_rows = _row_writer(path)
    with whole_file(path, force=force) as temporary, ExitStack() as stack:
        with writing(path, title):
            append = stack.enter_context(open_rows(temporary, path.name))

        def write(rows: WrittenTable) -> None:
            with writing(path, title):
                append(rows)

        writer = TableWriter(write, identifier_name=identifier_name, label_name=label_name)
        yield writer
        if writer.is_empty:
            raise DataError(f"A table needs at least one row; none was written to {path.name}.")
        with writing(path, title):
            stack.close()


def _row_writer(path: Path) -> tuple[str, RowWriter]:
    """What the format of ``path`` is called, and what opens a file for rows to be appended."""
    known = format_to_write(path)
    if known.append is None:
        able = ", ".join(kind.suffixes[0] for kind in FORMATS if kind.append is not None)
        raise ParameterError(
            f"A table in blocks is written to one of {able}; {path.name} is written whole only "
            f"({known.title}). Choose another suffix."
        )
    return known.title, known.append


def copy_features(
    source: FileBlocks | FileSequence,
    path: str | Path,
    names: Iterable[str],
    *,
    change: Callable[[LabelledTable], LabelledTable | None] | None = None,
    identifier_name: str = "sample",
    label_name: str = "label",
    force: bool = False,
) -> Path:
    """Write some features of a table in blocks, with its sample names and labels.

    One block of rows is in memory at a time. Labels are read once before: which classes there are
    tells whether they are numbers.

    Parameters
    ----------
    source : FileBlocks or FileSequence
        What `open_blocks` returns, with ``mixed=True`` if text and dates are to be written.
    path : str or Path
        As in `open_writer`.
    names : iterable of str
        Names of features, in any order; they are written in the order of the source.
    change : callable or None
        Gets the rows of every block, all columns, and returns what is to be written instead; None
        for nothing. If it makes numbers that do not fit the type of a column, the source is read
        again, and that column is written as float64; so it is if a column of a text table proves to
        hold more than numbers.
    identifier_name, label_name, force
        As in `write_features`.

    Returns
    -------
    Path
        The file.
    """
    wanted = [str(name) for name in names]
    settings = {"identifier_name": identifier_name, "label_name": label_name}

    def copy(source: FileBlocks | FileSequence) -> Path:
        types = source.types
        while True:
            try:
                labels = _label_classes(source)
                with open_writer(path, force=force, **settings) as writer:
                    for block in _tables(source, None if change else wanted, types, labels):
                        rows = block if change is None else change(block)
                        if rows is not None:
                            writer.append(rows, wanted)
                return Path(path)
            except ChangedTypeError as error:
                # Rows further up are in a type that these do not fit: begin again without it.
                types = {name: kind for name, kind in types.items() if name not in error.names}

    return read_knowing_texts(source, copy)


def _label_classes(source: FileBlocks | FileSequence) -> dict[Any, Any] | None:
    """Every label as it is stored, and the class it is among all of them; None without labels."""
    first = np.arange(min(1, source.n_features))  # there may be text only
    found: dict[Any, None] = {}
    for block in source.blocks(first, annotated=True):
        if block.labels is None:
            return None
        found.update(dict.fromkeys(_listed(block.labels)))
    stored = list(found)
    return dict(zip(stored, source.first_file.class_labels([stored]), strict=True))


def _listed(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _tables(
    source: FileBlocks | FileSequence,
    wanted: Sequence[str] | None,
    types: Mapping[str, Any],
    classes: Mapping[Any, Any] | None,
) -> Iterator[LabelledTable]:
    """The blocks as tables, of some columns if ``wanted`` is given."""
    assert source.feature_names is not None  # files tell them
    feature_names = source.feature_names
    columns: Any = None
    if wanted is not None:
        chosen = set(wanted)
        columns = np.flatnonzero([name in chosen for name in feature_names])
    places: dict[str, int] | None = None
    for block in source.blocks(columns, annotated=True):
        others = block.others
        if wanted is not None:
            if places is None:
                places = _places(feature_names, others, wanted)
            others = tuple(
                replace(each, position=places[each.name]) for each in others if each.name in places
            )
        yield LabelledTable(
            block.values,
            feature_names if columns is None else feature_names[columns],
            None
            if block.sample_names is None
            else source.first_file.row_names([block.sample_names]),
            None
            if block.labels is None or classes is None
            else np.array([classes[label] for label in _listed(block.labels)]),
            source.name,
            others,
            types,
        )


def _places(
    feature_names: Any, others: Sequence[OtherColumn], wanted: Sequence[str]
) -> dict[str, int]:
    """Where wanted columns stand among each other."""
    beside = [(other.position, other.name) for other in others]
    ordered = in_source_order([str(name) for name in feature_names], beside)
    refuse_absent(wanted, dict.fromkeys(ordered))
    chosen = set(wanted)
    return {name: at for at, name in enumerate(name for name in ordered if name in chosen)}


def check_writable(path: str | Path, *, force: bool = True, in_blocks: bool = False) -> None:
    """Raise if `write_table` could not write to ``path`` now: before long work, not after it.

    An existing file is no obstacle unless ``force`` is False. ``in_blocks`` asks the same of
    `open_writer`.
    """
    if in_blocks:
        _row_writer(Path(path))
    format_to_write(Path(path))
    check_target(path, force=force)
