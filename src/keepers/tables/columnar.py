"""Files of named columns: delimited text, Parquet, Arrow, and workbooks, which are read as text.

Text with thousands of columns is parsed as one long column of cells: an engine spends its time on
starting columns, and 450,000 of them take it longer than their cells.
"""

import csv
import io
import json
import re
import shutil
import tempfile
import weakref
import zipfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from keepers._packages import optional
from keepers._protocols import FloatArray
from keepers._wording import closest, first_line, some_of
from keepers.exceptions import DataError, DataWarning, shorten, warn_caller
from keepers.tables.atomic import is_compressed, open_plain, reading
from keepers.tables.scans import (
    FileScan,
    MemoryScan,
    Source,
    refuse_other_columns,
    rows_at_once,
)
from keepers.tables.sniffing import (
    BLANKS,
    Dialect,
    lacks_last,
    not_utf_8,
    numbered_rows,
    padded,
    refuse_ragged,
    sniff,
)
from keepers.tables.table import (
    GAP_WORDS,
    LARGEST_EXACT_INTEGER,
    ReadRequest,
    Table,
    as_labels,
    as_texts,
    refuse_shape,
    refuse_size,
    split_roles,
    stack_tables,
    unique_names,
)

Words = dict[str, list[str | None]]

PURPOSE = "Text tables, Parquet and Arrow files"
_PIECE_BYTES = 16 << 20
"""Bytes of text that are converted at a time; numbers take about twice as many."""
MANY = 5_000
"""From this number of columns on, one long column takes less time and memory than polars."""
_WIDE_BYTES = 4 << 20
_INDEX = re.compile(r"__index_level_\d+__")
_CELL_BYTES = 40
"""Memory of a cell, empty or not: 32 in calamine, 8 for the reference to its value."""
_DIMENSION = re.compile(rb"<(?:\w+:)?dimension ref=\"[A-Z]+\d+:([A-Z]+)(\d+)\"")


def _polars() -> Any:
    return optional("polars", PURPOSE)


def named(names: Iterable[str]) -> Any:
    """Columns by their names; in plain names polars takes "*" and "^a$" for patterns."""
    return optional("polars.selectors", PURPOSE).by_name(*names)


def _known(words: Any) -> Any:
    """Text without blanks around it; words for missing values become null."""
    words = words.str.strip_chars()
    return _polars().when(~words.is_in(list(GAP_WORDS))).then(words)


class TextFile:
    """A delimited text file; kinds of columns come from its first rows, or from all if needed.

    Text that polars cannot read as it is, is rewritten in a folder in ``folder``.
    """

    def __init__(self, path: Path, request: ReadRequest, folder: Path) -> None:
        self.path, self.request = path, request
        self.dialect: Dialect = sniff(path, request)
        self.names = unique_names(self.dialect.names, make_unique=request.make_unique)
        self.index = self.names[0] if self.dialect.index else None
        self.kinds = dict(zip(self.names, self.dialect.kinds, strict=True))
        if request.identifier in self.names:  # "007" and "1.50" stay as they are
            self.kinds[request.identifier] = "text"
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        self.source, self._is_rewritten = path, False
        self.skip_lines, self.comment = self.dialect.skip_lines, request.comment
        if is_compressed(path):
            self.source = self.folder / "plain.csv"
            with open_plain(path, request.max_bytes) as packed, self.source.open("wb") as out:
                shutil.copyfileobj(packed, out)
        # Polars compares every cell with every one of these: all of them double the time.
        self._gaps = [word for word in GAP_WORDS if word in self.dialect.gaps]
        for note in self.dialect.notes:
            warn_caller(f"{path.name}: {note}", DataWarning)

    @property
    def columns(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind != "nothing"]

    def lazy(self, lines: bytes | None = None, *, as_text: bool = False) -> Any:
        """The columns in the types that they seem to have, or all as text.

        ``lines``: some lines of the file, from `pieces`.
        """
        pl, dialect = _polars(), self.dialect
        types = {} if as_text else {"number": pl.Float64, "truth": pl.Boolean}
        lazy = pl.scan_csv(
            self.source if lines is None else lines,
            has_header=False,
            schema={name: types.get(kind, pl.String) for name, kind in self.kinds.items()},
            separator=dialect.sep,
            skip_lines=self.skip_lines if lines is None else 0,
            comment_prefix=self.comment,
            null_values=list(GAP_WORDS) if as_text else self._gaps,
            decimal_comma=dialect.decimal == ",",
            glob=False,
        )
        if as_text:
            return lazy.with_columns(_known(pl.all())).select(named(self.columns))
        commas = named(self.of_kind("comma")).str.replace(",", ".", literal=True)
        return lazy.with_columns(commas.cast(pl.Float64)).select(named(self.columns))

    def collect(self, lazy: Any) -> Any:
        """The columns in memory, text without blanks around it and words for gaps."""
        words = named(self.of_kind("text"))
        return lazy.with_columns(_known(words)).collect(engine="streaming")

    def of_kind(self, kind: str) -> list[str]:
        return [name for name, found in self.kinds.items() if found == kind]

    def pieces(self, n_bytes: int = _PIECE_BYTES) -> Iterator[bytes]:
        """The lines of the file, some at a time; a quoted cell is never cut."""
        with Path(self.source).open("rb") as stream:
            for _ in range(self.skip_lines):
                stream.readline()
            while piece := stream.read(n_bytes):
                piece += stream.readline()
                while piece.count(b'"') % 2 and (line := stream.readline()):
                    piece += line
                yield piece

    def run(self, read: Callable[[Any], Any]) -> Any:
        """Columns as ``read`` returns them; again where the first rows were misleading."""
        pl = _polars()
        steps = [] if self.dialect.rewrite else [lambda: None, self._find_kinds]
        for prepare in [*steps, self.rewrite]:
            try:
                prepare()
                found = read(self.lazy())
                if self._is_rewritten or not self._is_doubtful(found):
                    return read(self.lazy()) if self._find_codes(found) else found
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                failure = error
        raise failure

    def _is_doubtful(self, found: Any) -> bool:
        """True if polars may have made rows of blank or short lines, or of an open quote.

        Lines are looked at only where the last column has gaps, as it has in such rows.
        """
        last = found.lazy().select(named([self.columns[-1]]))
        tail = last.tail(1).collect()
        if tail.height and "\n" in str(tail.item()):
            return True
        if not last.null_count().collect().item():
            return False
        mark, n_marks = self.dialect.sep.encode(), len(self.names) - 1
        return any(
            b'"' in line or not line.strip() or line.count(mark) != n_marks
            for piece in self.pieces()
            for line in piece.splitlines()
        )

    def _find_kinds(self) -> None:
        """Kinds of columns by every cell."""
        pl = _polars()
        self._gaps = list(GAP_WORDS)
        names = [name for name, kind in self.kinds.items() if kind not in ("text", "nothing")]
        if not names:
            return
        cells = named(names)
        with_points = cells.str.replace(",", ".", literal=True)
        usual = with_points if self.dialect.decimal == "," else cells

        def lost(numbers: Any) -> Any:
            return (numbers.cast(pl.Float64, strict=False).is_null() & cells.is_not_null()).any()

        lazy = self.lazy(as_text=True)
        words = (~cells.str.to_lowercase().is_in(["true", "false"])).any()
        tests = {"number": lost(usual), "truth": words, "comma": lost(with_points)}
        found = {
            kind: lazy.select(test).collect(engine="streaming").row(0)
            for kind, test in tests.items()
        }
        for at, name in enumerate(names):
            fitting = [kind for kind, failed in found.items() if not failed[at]]
            self.kinds[name] = fitting[0] if fitting else "text"

    def _find_codes(self, found: Any) -> bool:
        """True if columns are now text because float64 would round their integers."""
        pl, limit, names = _polars(), LARGEST_EXACT_INTEGER, self.of_kind("number")
        largest = found.lazy().select(named(names).abs().max()).collect(engine="streaming")
        large = named([name for name in names if (largest[name].item() or 0) >= limit])
        exact = large.str.strip_chars().cast(pl.Int64, strict=False).abs()
        digits = (large.str.contains(r"^\s*[+-]?\d{19,}\s*$") | (exact > limit)).any()
        is_code = self.lazy(as_text=True).select(digits).collect(engine="streaming")
        codes = [column.name for column in is_code if column.item()]
        self.kinds |= dict.fromkeys(codes, "text")
        return bool(codes)

    def rewrite(self) -> None:
        """Write the text as UTF-8 with clean cells; raise for lines of another width.

        Kinds of columns are found again.
        """
        try:
            self._write_rows()
        except UnicodeDecodeError:
            if self.request.encoding is not None or not self.dialect.encoding.startswith("utf-8"):
                told = f"The text is not {self.dialect.encoding}. Name its encoding (--encoding)."
                raise DataError(told) from None
            with open_plain(self.path, self.request.max_bytes) as stream:
                self.dialect.encoding, note = not_utf_8(stream.read())
            warn_caller(f"{self.path.name}: {note}", DataWarning)
            self._write_rows()
        self.source, self._is_rewritten = self.folder / "rewritten.csv", True
        self.skip_lines, self.comment = 0, None
        self.dialect.sep = "\t" if self.dialect.sep == BLANKS else self.dialect.sep
        self._find_kinds()

    def _write_rows(self) -> None:
        sep, width = "\t" if self.dialect.sep == BLANKS else self.dialect.sep, len(self.names)
        target, short, line = self.folder / "rewritten.csv", [], 0
        with target.open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out, delimiter=sep, lineterminator="\n")
            for line, row in self._rows():
                if len(row) != width:
                    if not (self.dialect.may_be_short and lacks_last(len(row), width)):
                        refuse_ragged(line, len(row), width)
                    short.append((line, len(row)))
                writer.writerow([cell.strip() for cell in padded(row, width)])
        if len(short) == 1 and short[0][0] == line:  # the last: a file was cut off there
            refuse_ragged(*short[0], width)
        if short:
            warn_caller(
                f"{self.path.name}: Lines that end before the last column: {len(short):,}, the "
                f"first of them line {short[0][0]}. Cells that are not there are missing values.",
                DataWarning,
            )

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Number of the last line, and cells, of every row, by Python's csv."""
        dialect, comment = self.dialect, self.request.comment
        encoding = "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding
        line = dialect.skip_lines
        with open_plain(self.path, self.request.max_bytes) as stream:
            text = io.TextIOWrapper(stream, encoding, newline="")
            for _ in range(dialect.skip_lines):
                text.readline()
            try:
                for number, row in numbered_rows(text, dialect.sep, strict=True):
                    line = dialect.skip_lines + number
                    if not (comment and row[0].startswith(comment)):
                        yield line, row
            except csv.Error as error:
                raise DataError(
                    "A quotation mark that opens a cell must be closed, and doubled if it belongs "
                    f"to the text; line {line + 1}, or one below, breaks this ({error})."
                ) from error


def read_text(path: Path, request: ReadRequest) -> Table:
    """A delimited text file."""
    with tempfile.TemporaryDirectory(prefix="keepers-") as folder:
        file = TextFile(path, request, Path(folder))
        table = _read_wide(file) if len(file.names) > MANY else None
        if table is not None:
            return table
        frame = file.run(file.collect)
        return table_of_frame(frame, request, path.name, file.index)


def _read_wide(file: TextFile) -> Table | None:
    """A table of thousands of columns, those of text at its ends; polars reads others: None."""
    mark, names, request = file.dialect.sep, file.names, file.request
    numbers = file.of_kind("number")
    words: Words = {name: [] for name in file.of_kind("text")}
    n_before = names.index(numbers[0]) if numbers else 0
    n_after = len(words) - n_before
    is_usual = numbers and names[n_before : len(names) - n_after] == numbers
    if not is_usual or file.dialect.rewrite or request.comment:
        return None
    values = array("d")  # grows in place: a list of parts would take their size twice
    for piece in file.pieces(_WIDE_BYTES):
        lines = piece.decode(errors="replace").replace("\r\n", "\n").split("\n")
        lines = [line for line in lines if line]
        begins = [line.split(mark, n_before) for line in lines]
        ends = [row[-1].rsplit(mark, n_after) for row in begins]
        X = _parse_numbers([row[0] for row in ends], file)
        if X is None or any(line.count(mark) != len(names) - 1 for line in lines):
            return None
        for begin, end in zip(begins, ends, strict=True):
            for held, cell in zip(words.values(), [*begin[:n_before], *end[1:]], strict=True):
                word = cell.strip()
                word = word[1:-1].replace('""', '"') if word.startswith('"') else word
                if "\ufffd" in word:  # not UTF-8
                    return None
                held.append(None if word in GAP_WORDS else word)
        values.frombytes(X.tobytes())
        shape = (len(values) // len(numbers), len(numbers))
        refuse_shape(shape, "The table", request.max_bytes)
    return _table_of_parts(np.frombuffer(values).reshape(shape), numbers, words, file)


def _parse_numbers(lines: Sequence[str], file: TextFile) -> FloatArray | None:
    """Lines of numbers as rows of a matrix, parsed as one column of cells."""
    pl, mark = _polars(), file.dialect.sep
    column = "\n".join(lines).replace(mark, "\n")
    if file.dialect.decimal == ",":
        column = column.replace(",", ".")
    options = {"schema": {"x": pl.Float64}, "null_values": sorted(file.dialect.gaps)}
    try:
        numbers = pl.read_csv(column.encode(), has_header=False, **options)["x"].to_numpy()
    except pl.exceptions.PolarsError:
        return None
    is_whole = len(numbers) == len(lines) + sum(line.count(mark) for line in lines)
    if not is_whole or np.nanmax(np.abs(numbers), initial=0) >= LARGEST_EXACT_INTEGER:
        return None
    return np.asarray(numbers.reshape(len(lines), -1))


def _table_of_parts(X: FloatArray, numbers: list[str], words: Words, file: TextFile) -> Table:
    """A table of the columns of numbers and those of text of a file."""
    pl, request = _polars(), file.request
    features, *roles = split_roles(file.names, request, file.index)
    place = {name: at for at, name in enumerate(numbers)}
    frame = pl.DataFrame(
        {**words, **{role: X[:, place[role]] for role in roles if role in place}},
        schema_overrides=dict.fromkeys(words, pl.String),
    )
    ids, labels = (None if role is None else _vector(frame[role]) for role in roles)
    kept = [name for name in features if name in place]
    beside = [name for name in features if name in words]
    return Table(
        X if kept == numbers else X[:, [place[name] for name in kept]],
        np.array(kept, dtype=object),
        None if ids is None else as_texts(ids, "sample names"),
        None if labels is None else as_labels(labels, str(request.labels)),
        file.path.name,
        frame[beside] if beside else None,
        features,
    )


def read_excel(path: Path, request: ReadRequest) -> Table:
    """The cells of a sheet, read as those of a text table are; error cells are gaps."""
    calamine = optional("python_calamine", "Excel workbooks")
    if zipfile.is_zipfile(path):
        _refuse_too_large(path, request)
    try:
        with calamine.load_workbook(path) as book:
            title = _choose_sheet(book, request.sheet, path.name)
            rows = book.get_sheet_by_name(title).to_python()
    except calamine.CalamineError as error:
        raise DataError(
            f"It cannot be read ({first_line(error)}): it is damaged, has a password, or is no "
            "workbook. Save it as .xlsx in a spreadsheet program."
        ) from error
    words = [[_word(cell) for cell in row] for row in rows[request.skip_rows or 0 :]]
    # Rows and columns without a value are parts of the rectangle, not of the table.
    used = [at for at, column in enumerate(zip(*words, strict=True)) if any(column)]
    if not used:
        raise DataError(f"Sheet {shorten(title)} is empty. Name another (sheet=, --sheet).")
    with tempfile.TemporaryDirectory(prefix="keepers-") as folder:
        text = Path(folder) / path.name
        with text.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([row[at] for at in used] for row in words if any(row))
        skipped = None if request.skip_rows is None else 0
        asked = replace(request, format="csv", sep=",", encoding="utf-8", skip_rows=skipped)
        return read_text(text, asked)


def _refuse_too_large(path: Path, request: ReadRequest) -> None:
    """Raise if a workbook, or the rectangle between the cells of a sheet, is beyond the limit."""
    with zipfile.ZipFile(path) as archive:
        n_bytes = sum(member.file_size for member in archive.infolist())
        refuse_size(n_bytes, "The workbook, expanded,", request.max_bytes)
        for name in archive.namelist():
            with archive.open(name) as stream:
                found = "worksheets/" in name and _DIMENSION.search(stream.read(2**12))
            if found:
                n_columns = 0
                for letter in found[1]:
                    n_columns = 26 * n_columns + letter - ord("A") + 1
                shape = (int(found[2][:9]), n_columns)
                refuse_shape(shape, shorten(name), request.max_bytes, _CELL_BYTES)


def _choose_sheet(book: Any, asked: str | int | None, file_name: str) -> str:
    """The name of the requested sheet, by name or number from 1, else of the first."""
    titles = [sheet.name for sheet in book.sheets_metadata if str(sheet.typ).endswith("WorkSheet")]
    shown = some_of([repr(title) for title in titles]) or "not there"
    wanted = "1" if asked is None else str(asked)
    if asked is None and len(titles) > 1:
        warn_caller(
            f"{file_name} has {len(titles)} sheets ({shown}); the first is read. Name another "
            "with sheet= (--sheet).",
            DataWarning,
        )
    if isinstance(asked, str) and asked in titles:
        return asked
    if wanted.isdecimal() and 1 <= int(wanted) <= len(titles):
        return str(titles[int(wanted) - 1])
    near = closest(wanted, titles)
    raise DataError(f"There is no sheet {shorten(wanted)}.{near} The sheets are {shown}.")


def _word(cell: Any) -> str:
    """A cell as a text table has it: whole numbers without a point, days without an hour."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


def _open_columns(path: Path) -> tuple[Any, str | None]:
    """The columns of a Parquet or Arrow file, and the one that pandas marked as row names."""
    pl = _polars()
    with path.open("rb") as stream:
        is_parquet = stream.read(4) == b"PAR1"
    lazy = pl.scan_parquet(path, glob=False) if is_parquet else pl.scan_ipc(path, glob=False)
    index: list[Any] = []
    if is_parquet and (stored := pl.read_parquet_metadata(path).get("pandas")):
        index = json.loads(stored).get("index_columns", [])
    names = lazy.collect_schema().names()
    marked = [name for name in names if name in index or _INDEX.fullmatch(name)]
    return lazy, marked[0] if len(marked) == 1 else None


def read_columns(path: Path, request: ReadRequest) -> Table:
    """A Parquet or Arrow file."""
    lazy, index = _open_columns(path)
    names = lazy.collect_schema().names()
    n_rows = lazy.select(_polars().len()).collect().item()
    refuse_shape((n_rows, len(names)), "The table", request.max_bytes)
    features, *roles = split_roles(names, request, index)
    wanted = dict.fromkeys([*features, *(name for name in roles if name is not None)])
    lazy = lazy if list(wanted) == names else lazy.select(named(wanted))
    frame = lazy.collect(engine="streaming")
    return table_of_frame(frame, replace(request, drop=(), annotation=()), path.name, index)


def is_number(dtype: Any) -> bool:
    """True if a column of this polars type holds numbers."""
    return bool(dtype.is_numeric() or str(dtype) in ("Boolean", "Null"))


def _that(schema: Mapping[str, Any], test: Callable[[Any], bool]) -> set[str]:
    """Columns whose type passes a test, which is made once a type: it is slow for thousands."""
    fitting = {dtype for dtype in set(schema.values()) if test(dtype)}
    return {name for name, dtype in schema.items() if dtype in fitting}


def _usable(schema: Mapping[str, Any], features: Sequence[str], where: str) -> list[str]:
    """Features without nested and binary columns, which are left out with a warning."""
    unusable = (_polars().Binary, _polars().Object)
    strange = _that(schema, lambda dtype: dtype.is_nested() or dtype in unusable)
    if strange.intersection(features):
        told = [f"{name!r} ({schema[name]})" for name in features if name in strange]
        warn_caller(
            f"{where}: columns that hold lists, structs or bytes are left out: {some_of(told)}.",
            DataWarning,
        )
    left = [name for name in features if name not in strange]
    if not left:
        raise DataError("At least one column must hold numbers, text or dates; none does.")
    return left


def table_of_frame(frame: Any, request: ReadRequest, name: str, index: str | None = None) -> Table:
    """A table of a polars frame; numbers go into one matrix, the rest stays in columns."""
    if not frame.height:
        raise DataError("It holds no rows. Leave it out, or write it again with rows.")
    features, *roles = split_roles(frame.columns, request, index)
    schema = dict(frame.schema)
    features = _usable(schema, features, name)
    codes = _large_integers([frame.lazy()], features, schema)
    known = _that(schema, is_number) - codes
    numbers = [name for name in features if name in known]
    beside = [name for name in features if name not in known]
    refuse_shape((frame.height, len(numbers)), "The table", request.max_bytes)
    ids, labels = (None if role is None else _vector(frame[role]) for role in roles)
    return Table(
        _matrix_of(frame, numbers, schema),
        np.array(numbers, dtype=object),
        None if ids is None else as_texts(ids, "sample names"),
        None if labels is None else as_labels(labels, str(request.labels)),
        name,
        frame[beside].with_columns(named(codes).cast(_polars().String)) if beside else None,
        features,
        _types(schema, numbers),
    )


def _types(schema: Mapping[str, Any], numbers: Sequence[str]) -> dict[str, Any]:
    others = _that(schema, lambda dtype: dtype != _polars().Float64)
    return {name: schema[name] for name in numbers if name in others}


def _vector(column: Any) -> Any:
    """A column of names or classes; text and dates as text."""
    if is_number(column.dtype):
        return column.to_numpy()
    return np.array(column.cast(_polars().String).to_list(), dtype=object)


def _large_integers(
    parts: Iterable[Any], features: Sequence[str], schema: Mapping[str, Any]
) -> set[str]:
    """Columns of integers that float64 would round in one of the parts: they name something."""
    pl, limit = _polars(), LARGEST_EXACT_INTEGER
    integers = list(_that(schema, (pl.Int64, pl.UInt64, pl.Int128).__contains__) & set(features))
    column, found = named(integers), set()
    for lazy in parts if integers else ():
        large = lazy.select((column.max() > limit) | (column.min() < -limit))
        row = large.collect(engine="streaming").row(0)
        found |= {name for name, is_large in zip(integers, row, strict=True) if is_large}
    return found


def _matrix_of(frame: Any, names: Sequence[str], schema: Mapping[str, Any]) -> Any:
    """Columns of numbers as one matrix; float32 if all of them are."""
    pl = _polars()
    if not names:
        return np.empty((frame.height, 0))
    single = _that(schema, lambda dtype: dtype == pl.Float32)
    target = pl.Float32 if single.issuperset(names) else pl.Float64
    others = _that(schema, lambda dtype: dtype != target).intersection(names)
    frame = frame if list(names) == frame.columns else frame[list(names)]
    values = (frame.with_columns(named(others).cast(target)) if others else frame).to_numpy()
    return values if values.flags.writeable else values.copy(order="K")


class ColumnScan(FileScan):
    """Rows of columnar files in batches; text was turned into Arrow when it was opened.

    ``frames`` holds a lazy frame for each path; ``folder`` lives as long as the scan.
    """

    def __init__(
        self,
        name: str,
        paths: Sequence[Path],
        frames: Sequence[Any],
        request: ReadRequest,
        index: str | None,
        folder: Any = None,
    ) -> None:
        self.name, self._folder = name, folder
        labels = [path.name for path in paths]
        schema = _common_schema(labels, frames)
        features, self.identifier, self.labels = split_roles(list(schema), request, index)
        self.features = _usable(schema, features, name)
        codes = _large_integers(frames, self.features, schema)
        schema |= dict.fromkeys(codes, _polars().String)
        self._schema = schema
        numbers = [n for n in self.features if is_number(schema[n])]
        self.others = [n for n in self.features if not is_number(schema[n])]
        self.feature_names, self.n_features = np.array(numbers, dtype=object), len(numbers)
        self.types = _types(schema, numbers)
        single = bool(numbers) and all(schema[n] == _polars().Float32 for n in numbers)
        self.dtype = np.dtype(np.float32 if single else np.float64)
        sources = []
        for label, lazy in zip(labels, frames, strict=True):
            rows = range(lazy.select(_polars().len()).collect().item())
            sources.append(Source(label, lazy, rows, len(numbers)))
        self._set_sources(sources)
        if not self.n_samples:
            raise DataError("It holds no rows. Leave it out, or write it again with rows.")

    def _read(self, names: list[str], *, roles: bool) -> Iterator[tuple[int, Table]]:
        request = ReadRequest(labels=self.labels, identifier=self.identifier)
        beside = [n for n in (self.labels, self.identifier) if n is not None] if roles else []
        wanted = list(dict.fromkeys([*names, *beside]))
        columns, step = np.array(names, dtype=object), rows_at_once(len(wanted))
        for label, lazy, rows, _ in self._sources:
            found = lazy.select(named(wanted)).slice(rows.start, len(rows))
            stored = found.collect_schema()
            found = found.cast({n: t for n, t in self._schema.items() if stored.get(n, t) != t})
            at = rows.start
            with reading(Path(label), "table"):
                for batch in found.collect_batches(chunk_size=step, maintain_order=True):
                    if batch.height and roles:
                        yield at, table_of_frame(batch, request, label)
                    elif batch.height:
                        yield at, Table(_matrix_of(batch, names, self._schema), columns, name=label)
                    at += batch.height


def _common_schema(labels: Sequence[str], frames: Sequence[Any]) -> dict[str, Any]:
    """The type of every column over all files, the widest where they differ."""
    names = frames[0].collect_schema().names()
    for label, lazy in zip(labels, frames, strict=True):
        refuse_other_columns(labels[0], names, label, lazy.collect_schema().names())
    in_order = [lazy.select(named(names)) for lazy in frames]
    return dict(_polars().concat(in_order, how="vertical_relaxed").collect_schema())


def scan_columns(paths: Sequence[Path], request: ReadRequest, name: str) -> FileScan:
    """Parquet or Arrow files as one table in blocks."""
    opened = []
    for path in paths:
        with reading(path, "table"):
            opened.append(_open_columns(path))
    return ColumnScan(name, paths, [lazy for lazy, _ in opened], request, opened[0][1])


def _convert(file: TextFile) -> Any:
    """The rows of a text file as a lazy frame of Arrow files.

    Piece by piece: polars would hold most of a wide file at once.
    """

    def convert(_: Any) -> Any:
        for old in file.folder.glob("*.arrow"):
            old.unlink()
        for number, piece in enumerate(file.pieces()):
            target = file.folder / f"{number:06d}.arrow"
            file.collect(file.lazy(piece)).write_ipc(target, compression="uncompressed")
        return _polars().concat(
            [_polars().scan_ipc(part) for part in sorted(file.folder.glob("*.arrow"))]
        )

    return file.run(convert)


class _Folder:
    """A temporary folder that is removed with the last scan that reads from it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="keepers-"))
        self._finalizer = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def __reduce__(self) -> Any:
        """On a worker it is None: the folder stays here."""
        return type(None), ()


def scan_text(paths: Sequence[Path], request: ReadRequest, name: str) -> FileScan:
    """Text files as one table in blocks; each is converted once. Very wide ones are read whole."""
    if len(sniff(paths[0], request).names) > MANY:
        wide = [read_text(path, request) for path in paths]
        return MemoryScan(replace(stack_tables(wide), name=name))
    folder, files = _Folder(), []
    frames: dict[Path, Any] = {}
    for path in paths:
        with reading(path, "text"):
            file = TextFile(path, request, folder.path)
            files.append(file)
            frames[path] = _convert(file)
    texts = {name for file in files for name in file.of_kind("text")}
    for file in files:  # what is text in one file is text in all
        texts_here = {n for n in texts if file.kinds.get(n, "text") != "text"}
        if texts_here:
            file.kinds |= dict.fromkeys(texts_here, "text")
            frames[file.path] = _convert(file)
    return ColumnScan(name, paths, list(frames.values()), request, files[0].index, folder)
