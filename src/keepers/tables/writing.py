"""Tables to files, written whole or not at all; the suffix of the name sets the format."""

import csv
import io
import os
import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keepers._packages import optional
from keepers._wording import first_line, some_of
from keepers.exceptions import DataError, KeepersError, ParameterError, shorten
from keepers.tables.arrays import open_hdf5
from keepers.tables.atomic import raised_outside, whole_file
from keepers.tables.scans import FileScan
from keepers.tables.table import (
    LARGEST_EXACT_INTEGER,
    Table,
    refuse_absent,
    refuse_repeated,
    refuse_shape,
    refuse_size,
    unique_names,
)

TEXT = {".csv": "CSV", ".tsv": "TSV"}
IN_BLOCKS = {**TEXT, ".parquet": "Parquet", ".feather": "Arrow"}
HOLD_TEXT = {**IN_BLOCKS, ".xlsx": "Excel"}
WRITTEN = {**HOLD_TEXT, ".h5ad": "AnnData"}
"""Formats that are written, by suffix."""
_SAME = {".tab": ".tsv", ".pq": ".parquet", ".arrow": ".feather", ".ipc": ".feather"}


class _Target(NamedTuple):
    """A temporary file, the suffix it will have, and titles of ids and labels."""

    path: Path
    suffix: str
    titles: tuple[str, str]


def write_table(
    path: str | Path,
    table: Table | FileScan,
    names: Iterable[str] | None = None,
    *,
    identifier_name: str = "sample",
    label_name: str = "label",
    source: str | Path | None = None,
    force: bool = False,
) -> Path:
    r"""Write some features of a table, in the order and the types of the source.

    Missing values become empty cells. Integers whose gaps were filled by a fraction become floats.
    Names and text are written unchanged. In text files, whole numbers have no decimal point, and
    times follow ISO 8601, those with a time zone in UTC. In .xlsx every text is a text cell, and
    numbers have 16 digits.

    Parameters
    ----------
    path : str or Path
        .csv, .tsv, .parquet, .feather or .xlsx; for numbers only also .h5ad.
    table : Table or FileScan
        A scan is written to .csv, .tsv, .parquet or .feather, with few rows in memory at a time.
    names : iterable of str or None
        Features to write; None: all.
    identifier_name, label_name : str
        Names of the columns of sample names and labels.
    source : str, Path or None
        The file with just the rows of ``table``. From .h5ad to .h5ad, layers, annotations and
        embeddings are kept.
    force : bool
        Replace the file if it exists.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    KeepersError
        The file exists, its format cannot hold the table, or the disk is full.

    Examples
    --------
    >>> import tempfile
    >>> from keepers.tables.opening import open_table
    >>> from keepers.tables.writing import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(f"{folder}/kept.csv", open_table("digits"), ["pixel_3_3"]).read_text()[:21]
    'label,pixel_3_3\n0,0\n1'
    """
    path = Path(path)
    suffix = check_suffix(path, in_blocks=isinstance(table, FileScan))
    wanted = set(table.columns if names is None else map(str, names))
    refuse_absent(sorted(wanted), table.columns)
    kept = [name for name in table.columns if name in wanted]
    with whole_file(path, force=force) as temporary, _library_errors(path, WRITTEN[suffix]):
        target = _Target(temporary, suffix, (identifier_name, label_name))
        if not isinstance(table, Table):
            with _rows_of(table, kept, target) as rows:
                _sink(rows, target)
        elif source is not None and suffix == Path(source).suffix.casefold() == ".h5ad":
            _copy_h5ad(Path(source), temporary, kept)
        elif suffix in HOLD_TEXT:
            _sink(_frame_of(table.select(kept), target).lazy(), target)
        else:
            _write_h5ad(table.select(kept), target)
    return path


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows of cells as comma-separated text; None is an empty cell."""
    lines = []
    for row in rows:
        line = io.StringIO(newline="")
        csv.writer(line).writerow(row)  # only with \r\n as line end does it quote a lone \r
        lines.append(line.getvalue().removesuffix("\r\n") + "\n")
    return "".join(lines)


def check_suffix(path: Path, *, in_blocks: bool = False) -> str:
    """The suffix that stands for the format; raise if it is not written, or not in blocks."""
    end = path.suffix.casefold()
    suffix = _SAME.get(end, end)
    if suffix not in WRITTEN:
        raise ParameterError(
            f"The suffix of a written table must be one of {', '.join(WRITTEN)}; got "
            f"{shorten(path.name)}."
        )
    if in_blocks and suffix not in IN_BLOCKS:
        raise ParameterError(
            f"A table in blocks is written to one of {', '.join(IN_BLOCKS)}; {path.name} is "
            "written whole."
        )
    return suffix


@contextmanager
def _library_errors(path: Path, title: str) -> Iterator[None]:
    """Make an `OSError` or a `DataError` of what a library raises; panics of polars included."""
    try:
        yield
    except KeepersError:
        raise
    except BaseException as error:
        if not raised_outside(error):
            raise
        if number := re.search(r"(?:os error|errno =|\[Errno) (\d+)", str(error)):
            raise OSError(int(number[1]), os.strerror(int(number[1]))) from error
        raise DataError(
            f"{path.name} could not be written as {title}: {first_line(error)}. Choose another "
            "format."
        ) from error


def _polars() -> tuple[Any, Any]:
    return optional("polars", "Written tables"), optional("polars.selectors", "Written tables")


def _frame_of(table: Table, target: _Target) -> Any:
    """A polars frame in the types of the source; for text, whole numbers are integers."""
    pl, _ = _polars()
    beside = []
    for name, vector in zip(target.titles, (table.ids, table.labels), strict=True):
        if vector is not None and vector.dtype.kind in "biuf":
            beside.append(pl.Series(name, vector))
        elif vector is not None:
            beside.append(pl.Series(name, vector.tolist(), dtype=pl.String))
    names = [*(column.name for column in beside), *table.columns]
    refuse_repeated(names, "Choose another identifier_name or label_name, or rename features.")
    columns = {} if table.frame is None else {column.name: column for column in table.frame}
    # Named at the end: many methods of polars take a name such as "^a$" for a pattern.
    values = table.values
    if table.is_sparse:
        refuse_shape(values.shape, "The table as a dense array")
        values = values.toarray()
    plain = pl.DataFrame(values, orient="row", nan_to_null=True)
    for name, column in zip(map(str, table.names), plain, strict=True):
        typed = _cast(column, table.types.get(name, column.dtype))
        if target.suffix in TEXT and typed.dtype.is_float():
            is_exact = (typed.abs().max() or 0) <= LARGEST_EXACT_INTEGER
            typed = _cast(typed, pl.Int64) if is_exact else typed
        columns[name] = typed.alias(name)
    return pl.DataFrame([*beside, *(columns[name] for name in table.columns)])


def _cast(column: Any, dtype: Any) -> Any:
    """A column in another type, if that holds the same numbers."""
    found = column.cast(dtype, strict=False)
    return found if found.cast(column.dtype).equals(column) else column


@contextmanager
def _rows_of(scan: FileScan, names: list[str], target: _Target) -> Iterator[Any]:
    """The rows of a scan as a lazy frame.

    Blocks are kept in a folder until all are known: a later one may need another type.
    """
    pl, _ = _polars()
    blocks: list[Path] = []
    with tempfile.TemporaryDirectory(".part", ".keepers-", target.path.parent) as folder:
        for table in scan.tables(names):
            blocks.append(Path(folder) / f"{len(blocks)}.arrow")
            _frame_of(table.select(names), target).write_ipc(blocks[-1])
        yield pl.concat([pl.scan_ipc(each) for each in blocks], how="vertical_relaxed")


def _sink(lazy: Any, target: _Target) -> None:
    pl, _ = _polars()
    if target.suffix == ".parquet":
        lazy.sink_parquet(target.path)
    elif target.suffix == ".feather":  # oldest: other programs do not read all newer types
        lazy.sink_ipc(target.path, compression="lz4", compat_level=pl.CompatLevel.oldest())
    elif target.suffix == ".xlsx":
        _write_excel(lazy.collect(), target.path)
    else:
        _write_text(lazy, target)


def _write_text(lazy: Any, target: _Target) -> None:
    _, cs = _polars()
    moment = "%Y-%m-%dT%H:%M:%S%.f"
    lazy = lazy.with_columns(
        cs.datetime(time_zone=None).dt.to_string(moment),
        cs.datetime(time_zone="*").dt.convert_time_zone("UTC").dt.to_string(f"{moment}Z"),
        cs.time().dt.to_string("%H:%M:%S%.f"),
        cs.duration().dt.to_string("iso"),
    )
    settings: dict[str, Any] = {"separator": "," if target.suffix == ".csv" else "\t"}
    if len(lazy.collect_schema()) == 1:
        settings["null_value"] = '""'  # an empty line would not count as a row
    lazy.sink_csv(target.path, **settings)


def _write_excel(frame: Any, path: Path) -> None:
    """One sheet; times in UTC; text for days before 1901, hours and durations."""
    xlsxwriter, (_, cs) = optional("xlsxwriter", "Excel workbooks"), _polars()
    zoned, days = cs.datetime(time_zone="*"), cs.date() | cs.datetime()
    frame = frame.with_columns(zoned.dt.convert_time_zone("UTC").dt.replace_time_zone(None))
    early = frame.select((days.dt.year() < 1901).any())
    texts = cs.by_name(*(c.name for c in early if c[0])) | cs.time() | cs.duration()
    frame = frame.with_columns(texts.dt.to_string("iso"))
    options = {"strings_to_formulas": False, "strings_to_urls": False, "in_memory": True}
    # Written to memory first: on a full disk the archive of a workbook shows a traceback.
    packed = io.BytesIO()
    with xlsxwriter.Workbook(
        packed, {**options, "default_date_format": "yyyy-mm-dd hh:mm:ss"}
    ) as book:
        sheet = book.add_worksheet("table")
        for row, cells in enumerate(chain([frame.columns], frame.iter_rows())):
            filled = [(at, cell) for at, cell in enumerate(cells) if cell is not None]
            if any(sheet.write(row, at, cell) for at, cell in filled):
                raise ParameterError(
                    "A sheet holds at most 1048576 rows, 16384 columns and 32767 characters in a "
                    "cell. Choose another format (.csv, .parquet)."
                )
    path.write_bytes(packed.getbuffer())


def _write_h5ad(table: Table, target: _Target) -> None:
    """Numbers with what names their rows and columns; a sparse matrix stays sparse."""
    if table.others:
        raise ParameterError(
            f"AnnData files hold numbers only; these columns hold text or dates: "
            f"{some_of([repr(name) for name in table.others])}. Choose {', '.join(HOLD_TEXT)}."
        )
    ids, labels = (
        vector if vector is None or vector.dtype.kind in "biuf" else vector.astype(str)
        for vector in (table.ids, table.labels)
    )
    anndata, pd = optional("anndata", ".h5ad files"), optional("pandas", ".h5ad files")
    index = np.arange(table.n_samples).astype(str) if ids is None else ids
    obs = pd.DataFrame({} if labels is None else {target.titles[1]: labels}, index=index)
    var = pd.DataFrame(index=table.names.astype(str))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names of samples need not differ
        anndata.AnnData(table.values, obs, var).write_h5ad(target.path)


def _copy_h5ad(source: Path, path: Path, names: list[str]) -> None:
    """Write some variables of an AnnData file with all that belongs to them and to the samples."""
    anndata = optional("anndata", ".h5ad files")
    sizes: list[int] = []
    with open_hdf5(source) as file:
        file.visititems(lambda _, node: sizes.append(getattr(node, "nbytes", 0)))
    refuse_size(sum(sizes), f"{source.name} with all its layers", 2**62)
    with warnings.catch_warnings(), anndata.settings.override(remove_unused_categories=False):
        warnings.simplefilter("ignore")  # of repeated names, and of old versions of the format
        whole = anndata.read_h5ad(source)
        known = unique_names(whole.var_names, make_unique=True)  # as they are read
        refuse_absent(names, known)
        places = {name: at for at, name in enumerate(known)}
        kept = whole[:, [places[name] for name in names]].copy()
        kept.write_h5ad(path, convert_strings_to_categoricals=False)
