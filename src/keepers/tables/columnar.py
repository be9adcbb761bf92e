"""Delimited text, Parquet and Arrow files as columns of polars: one engine for all three."""

import csv
import io
import json
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from keepers._packages import optional
from keepers._protocols import IndexArray, RowBlock
from keepers._wording import some_of
from keepers.exceptions import DataError, DataWarning, warn_caller
from keepers.tables.atomic import is_compressed, open_plain
from keepers.tables.scans import (
    BLOCK_BYTES,
    FileScan,
    MemoryScan,
    even_ranges,
    reading,
    rows_at_once,
)
from keepers.tables.sniffing import (
    BLANKS,
    Dialect,
    lacks_last,
    not_utf_8,
    padded,
    refuse_ragged,
    sniff,
    split_rows,
)
from keepers.tables.table import (
    GAP_WORDS,
    LARGEST_EXACT_INTEGER,
    ReadRequest,
    Table,
    as_labels,
    as_texts,
    refuse_shape,
    split_roles,
    stack_tables,
    unique_names,
)
from keepers.tables.wide import MANY, read_wide

Result = TypeVar("Result")

PURPOSE = "Text tables, Parquet and Arrow files"
_PIECE_BYTES = 16 << 20
"""Of text, converted at a time; numbers take about twice the bytes."""
_INDEX = re.compile(r"__index_level_\d+__")


def _polars() -> Any:
    return optional("polars", PURPOSE)


def named(names: Iterable[str]) -> Any:
    """Columns by their names; in plain names polars takes "*" and "^a$" for patterns."""
    return optional("polars.selectors", PURPOSE).by_name(*names)


class TextFile:
    """A delimited text file; kinds of columns come from its first rows, or from all if needed.

    Parameters
    ----------
    path : Path
        The file.
    request : ReadRequest
        What is known about it.
    separators : sequence of str
        Marks that may separate cells.
    folder : Path
        Where the text is rewritten if polars cannot read it as it is.
    """

    def __init__(
        self, path: Path, request: ReadRequest, separators: Sequence[str], folder: Path
    ) -> None:
        self.path, self.request, self._folder = path, request, folder
        self.dialect: Dialect = sniff(path, request, separators)
        unique = request.make_unique and not request.transpose
        self.names = unique_names(self.dialect.names, make_unique=unique)
        self.index = self.names[0] if self.dialect.index else None
        if request.identifier in self.names:  # "007" and "1.50" stay as they are
            self.dialect.kinds[self.names.index(request.identifier)] = "text"
        self.kinds = dict(zip(self.names, self.dialect.kinds, strict=True))
        self.source = path
        self._is_rewritten = False
        self._n_short, self._first_short = 0, (0, 0)
        if is_compressed(path) or not _is_utf_8(path):  # polars opens files by UTF-8 names
            self.source = folder / f"{len(list(folder.iterdir()))}.csv"
            with open_plain(path, request.max_bytes) as packed, self.source.open("wb") as out:
                shutil.copyfileobj(packed, out)
        # Polars compares every cell with every one of these: all of them double the time.
        self._gaps = [word for word in GAP_WORDS if word in self.dialect.gaps]
        for note in self.dialect.notes:
            warn_caller(f"{path.name}: {note}", DataWarning)

    @property
    def skip_lines(self) -> int:
        """Lines of ``source`` before the first row."""
        return 0 if self._is_rewritten else self.dialect.skip_lines

    @property
    def columns(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind != "nothing"]

    def lazy(self, lines: bytes | None = None, *, as_text: bool = False) -> Any:
        """The columns in the types that they seem to have, or all as text.

        ``lines``: some lines of the file, from `pieces`.
        """
        pl, dialect = _polars(), self.dialect
        types = {"number": pl.Float64, "truth": pl.Boolean}
        lazy = pl.scan_csv(
            self.source if lines is None else lines,
            has_header=False,
            schema={
                name: pl.String if as_text else types.get(kind, pl.String)
                for name, kind in self.kinds.items()
            },
            separator=dialect.sep,
            skip_lines=self.skip_lines if lines is None else 0,
            comment_prefix=None if self._is_rewritten else dialect.comment,
            null_values=list(GAP_WORDS) if as_text else self._gaps,
            decimal_comma=dialect.decimal == ",",
            glob=False,
        )
        texts = [name for name, kind in self.kinds.items() if as_text or kind == "text"]
        commas = [name for name, kind in self.kinds.items() if not as_text and kind == "comma"]
        stripped = named(texts).str.strip_chars()
        known = pl.when(~stripped.is_in(list(GAP_WORDS))).then(stripped)  # no otherwise: null
        changes = [known] if texts else []
        if commas:
            changes.append(named(commas).str.replace(",", ".", literal=True).cast(pl.Float64))
        return lazy.with_columns(changes).select(named(self.columns))

    def pieces(self) -> Iterator[bytes]:
        """The lines of the file, some at a time; a quoted cell is never cut."""
        with Path(self.source).open("rb") as stream:
            for _ in range(self.skip_lines):
                stream.readline()
            while piece := stream.read(_PIECE_BYTES):
                piece += stream.readline()
                while piece.count(b'"') % 2 and (line := stream.readline()):
                    piece += line
                yield piece

    def run(self, read: Callable[[Any], Result]) -> Result:
        """What ``read`` makes of the columns; again where the first rows were misleading."""
        pl = _polars()
        last = self.columns[-1]
        steps = [] if self.dialect.rewrite else [lambda: None, self._find_kinds]
        for prepare in [*steps, self._rewrite_and_find_kinds]:
            try:
                prepare()
                found = read(self.lazy())
                if not self._is_doubtful(found, last):
                    return found
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                failure = error
        raise failure

    def _is_doubtful(self, found: Any, last: str) -> bool:
        """Whether rows may be none: of blank or short lines, or swallowed by an open quote."""
        if self._is_rewritten:
            return False  # every row was checked
        lazy = found.lazy().select(named([last]))
        tail = lazy.tail(1).collect()
        if tail.height and "\n" in str(tail.item()):
            return True
        return bool(lazy.null_count().collect().item()) and self._has_blank_lines()

    def _rewrite_and_find_kinds(self) -> None:
        self.rewrite()
        self._find_kinds()

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

    def rewrite(self) -> None:
        """Write the text as UTF-8 with clean cells; raise for lines of another width."""
        target = self._folder / f"{len(list(self._folder.iterdir()))}.csv"
        try:
            self._write_rows(target)
        except UnicodeDecodeError:
            if self.request.encoding is not None or not self.dialect.encoding.startswith("utf-8"):
                raise DataError(
                    f"The text is not in the encoding {self.dialect.encoding}. Name the one that "
                    "it was saved in (encoding=, --encoding)."
                ) from None
            with open_plain(self.path, self.request.max_bytes) as stream:
                self.dialect.encoding, note = not_utf_8(stream.read())
            warn_caller(f"{self.path.name}: {note}", DataWarning)
            self._write_rows(target)
        self.source, self._is_rewritten = target, True
        self.dialect.sep = "\t" if self.dialect.sep == BLANKS else self.dialect.sep

    def _write_rows(self, target: Path) -> None:
        sep = "\t" if self.dialect.sep == BLANKS else self.dialect.sep
        with target.open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out, delimiter=sep, lineterminator="\n")
            self._n_short, line = 0, 0
            for line, row in self.rows():  # noqa: B007
                writer.writerow([cell.strip() for cell in row])
        self._warn_of_short_lines(line)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Line number and cells of every row, by Python's csv; raise for a ragged line."""
        dialect, width = self.dialect, len(self.names)
        encoding = "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding
        with open_plain(self.path, self.request.max_bytes) as stream:
            text = io.TextIOWrapper(stream, encoding, newline="")
            for _ in range(dialect.skip_lines):
                text.readline()
            line = dialect.skip_lines
            reader: Any = text
            if dialect.sep != BLANKS:
                reader = csv.reader(
                    text, delimiter=dialect.sep, skipinitialspace=dialect.sep != " ", strict=True
                )
            while True:
                begun = line + 1 if dialect.sep == BLANKS else line + reader.line_num + 1
                try:
                    row = next(reader, None)
                except csv.Error as error:
                    raise DataError(
                        "A quotation mark that opens a cell must be closed before the next "
                        f"separator, and doubled if it belongs to the text; line {begun}, or one "
                        f"below, breaks this ({error}). Correct it."
                    ) from error
                if row is None:
                    return
                if dialect.sep == BLANKS:
                    line += 1
                    row = (split_rows([row.rstrip("\r\n")], BLANKS) or [[]])[0]
                if not row or (dialect.comment and row[0].startswith(dialect.comment)):
                    continue
                if len(row) != width:
                    self._check_length(begun, len(row))
                yield begun, padded(row, width)

    def _has_blank_lines(self) -> bool:
        """Whether lines hold no cell; raise for one that is too short. Polars makes rows of both.

        Looked for only where the last column has gaps, as it has in such rows.
        """
        mark, width = self.dialect.sep.encode(), len(self.names)
        self._n_short, line = 0, 0
        with self.source.open("rb") as stream:
            for line, text in enumerate(stream, 1):
                if line <= self.dialect.skip_lines:
                    continue
                if b'"' in text or not text.strip(b"\r\n"):
                    return True  # rewriting checks every row by the rules of quoting
                comment = self.dialect.comment
                if comment and text.startswith(comment.encode()):
                    continue
                if text.count(mark) != width - 1:
                    self._check_length(line, text.count(mark) + 1)
        self._warn_of_short_lines(line)
        return False

    def _check_length(self, line: int, n_cells: int) -> None:
        """Count a line that lacks its last cells; raise for one of another length."""
        width = len(self.names)
        if not (self.dialect.may_be_short and lacks_last(n_cells, width)):
            refuse_ragged(line, n_cells, width)
        if not self._n_short:
            self._first_short = line, n_cells
        self._n_short += 1

    def _warn_of_short_lines(self, last: int) -> None:
        """Say how many lines are short; raise if only the last is, where a file was cut off."""
        first, n_cells = self._first_short
        if self._n_short == 1 and first == last:
            refuse_ragged(last, n_cells, len(self.names))
        if self._n_short:
            warn_caller(
                f"{self.path.name}: {self._n_short:,} lines, the first of them line {first}, "
                "end before the last column; the cells that are not there are missing values.",
                DataWarning,
            )

    def reads_codes(self, largest: Mapping[str, float]) -> bool:
        """Whether some columns hold integers that float64 rounds: these are read as text."""
        pl = _polars()
        large = [name for name, value in largest.items() if value >= LARGEST_EXACT_INTEGER]
        large = [name for name in large if self.kinds[name] == "number"]
        if large:
            cells = named(large)
            exact = cells.str.strip_chars().cast(pl.Int64, strict=False).abs()
            rounded = cells.str.contains(r"^\s*[+-]?\d{19,}\s*$") | (exact > LARGEST_EXACT_INTEGER)
            digits = rounded.any()
            found = self.lazy(as_text=True).select(digits).collect(engine="streaming").row(0)
            large = [name for name, has_digits in zip(large, found, strict=True) if has_digits]
            self.kinds |= dict.fromkeys(large, "text")
        return bool(large)


def _is_utf_8(path: Path) -> bool:
    """Whether polars can open a file by its name."""
    return str(path).encode(errors="replace").decode() == str(path)


def read_text(path: Path, request: ReadRequest, separators: Sequence[str]) -> Table:
    with tempfile.TemporaryDirectory(prefix="keepers-") as folder:
        file = TextFile(path, request, separators, Path(folder))
        if len(file.names) > MANY:
            return _read_wide(file, request)

        def read(lazy: Any) -> Any:
            return lazy.collect(engine="streaming")

        frame = file.run(read)
        if file.reads_codes(_extremes(frame)):
            frame = read(file.lazy())
        return table_of_frame(frame, request, file.path.name.split(".")[0], file.index)


def _extremes(frame: Any) -> dict[str, float]:
    """The largest size in every column of numbers."""
    names = [name for name, dtype in frame.lazy().collect_schema().items() if dtype.is_float()]
    if not names:
        return {}
    found = frame.lazy().select(named(names).abs().max()).collect(engine="streaming").row(0)
    return {name: value for name, value in zip(names, found, strict=True) if value is not None}


def _read_wide(file: TextFile, request: ReadRequest) -> Table:
    pl = _polars()
    if file.dialect.rewrite or file.dialect.comment:
        file.rewrite()
    X, texts = read_wide(file.source, file.dialect, file.skip_lines, request.max_bytes)
    words = {file.names[at]: pl.Series(cells, dtype=pl.String) for at, cells in texts.items()}
    columns = [name for at, name in enumerate(file.names) if file.dialect.kinds[at] != "nothing"]
    features, identifier, labels = split_roles(columns, request, file.index)
    at = {name: place for place, name in enumerate(n for n in file.names if n not in words)}

    def vector(name: str | None) -> Any:
        if name is None:
            return None
        return words[name].to_list() if name in words else X[:, at[name]]

    ids, classes = vector(identifier), vector(labels)
    numbers = [name for name in features if name not in words]
    X = X if len(numbers) == X.shape[1] else X[:, [at[name] for name in numbers]]
    others = {name: words[name] for name in features if name in words}
    return Table(
        X,
        np.array(numbers, dtype=object),
        None if ids is None else as_texts(_whole(ids), "sample names"),
        None if classes is None else as_labels(classes, str(labels)),
        file.path.name.split(".")[0],
        pl.DataFrame(others) if others else None,
        features,
    )


def _whole(values: Any) -> Any:
    """Numbers without a fraction as integers, so that names read 1 and not 1.0."""
    values = np.asarray(values)
    is_whole = values.dtype.kind == "f" and bool(np.all(np.isfinite(values)))
    is_whole = is_whole and bool(np.all(np.rint(values) == values))
    return values.astype(np.int64) if is_whole else values


def scan_columns(path: Path) -> tuple[Any, str | None]:
    """The columns of a Parquet or Arrow file, and the one that pandas marked as row names."""
    pl = _polars()
    with path.open("rb") as stream:
        is_parquet = stream.read(4) == b"PAR1"
    source: Any = path if _is_utf_8(path) else io.BytesIO(path.read_bytes())
    lazy = pl.scan_parquet(source, glob=False) if is_parquet else pl.scan_ipc(source, glob=False)
    index: list[Any] = []
    if is_parquet and (stored := pl.read_parquet_metadata(path).get("pandas")):
        found = json.loads(stored).get("index_columns", [])
        index = [name for name in found if isinstance(name, str)]
    names = lazy.collect_schema().names()
    marked = [name for name in names if name in index or _INDEX.fullmatch(name)]
    return lazy, marked[0] if len(marked) == 1 else None


def read_columns(path: Path, request: ReadRequest) -> Table:
    lazy, index = scan_columns(path)
    names = lazy.collect_schema().names()
    n_rows = lazy.select(_polars().len()).collect().item()
    refuse_shape((n_rows, len(names)), 8, "The table", request.max_bytes)
    unique_names(names, make_unique=request.make_unique)
    roles = split_roles(names, request, index)
    wanted = [*roles.features, *(name for name in roles[1:] if name is not None)]
    frame = lazy.select(named(dict.fromkeys(wanted))).collect(engine="streaming")
    request = replace(request, drop=(), annotation=())
    return table_of_frame(frame, request, path.name.split(".")[0], index)


def is_number(dtype: Any) -> bool:
    """Whether a column of this polars type holds numbers."""
    return bool(dtype.is_numeric() or str(dtype) in ("Boolean", "Null"))


def _usable(schema: Mapping[str, Any], features: Sequence[str], where: str) -> list[str]:
    """Features without nested and binary columns, which are left out with a warning."""
    pl = _polars()
    bytes_ = (pl.Binary, pl.Object)
    strange = {n for n in features if schema[n].is_nested() or schema[n] in bytes_}
    if strange:
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
    roles = split_roles(frame.columns, request, index)
    schema = dict(frame.schema)
    features = _usable(schema, roles.features, name)
    codes = _large_integers([frame.lazy()], features, schema)
    is_numeric = {n: is_number(schema[n]) and n not in codes for n in features}
    numbers = [n for n in features if is_numeric[n]]
    beside = [n for n in features if not is_numeric[n]]
    refuse_shape((frame.height, len(numbers)), 8, "The table", request.max_bytes)
    ids = None if roles.identifier is None else frame[roles.identifier]
    labels = None if roles.labels is None else frame[roles.labels]
    others = frame[beside].with_columns(named(codes).cast(_polars().String))
    return Table(
        matrix_of(frame, numbers, schema),
        np.array(numbers, dtype=object),
        None if ids is None else as_texts(_vector(ids), "sample names"),
        None if labels is None else as_labels(_vector(labels), str(roles.labels)),
        name,
        others if beside else None,
        features,
        _types(schema, numbers),
    )


def _types(schema: Mapping[str, Any], numbers: Sequence[str]) -> dict[str, Any]:
    double = _polars().Float64
    return {n: schema[n] for n in numbers if schema[n] != double}


def _vector(column: Any) -> Any:
    """A column of names or classes; whole numbers as integers, text and dates as text."""
    pl = _polars()
    if is_number(column.dtype):
        return _whole(column.to_numpy())
    return np.array(column.cast(pl.String).to_list(), dtype=object)


def _large_integers(
    parts: Iterable[Any], features: Sequence[str], schema: Mapping[str, Any]
) -> set[str]:
    """Columns of integers that float64 would round in one of the parts: they name something."""
    pl, limit = _polars(), LARGEST_EXACT_INTEGER
    integers = [name for name in features if schema[name] in (pl.Int64, pl.UInt64, pl.Int128)]
    column, found = named(integers), set()
    for lazy in parts if integers else ():
        large = lazy.select((column.max() > limit) | (column.min() < -limit))
        row = large.collect(engine="streaming").row(0)
        found |= {name for name, is_large in zip(integers, row, strict=True) if is_large}
    return found


def matrix_of(frame: Any, names: Sequence[str], schema: Mapping[str, Any]) -> Any:
    """Columns of numbers as one matrix; float32 if all of them are."""
    pl = _polars()
    if not names:
        return np.empty((frame.height, 0))
    single = all(schema[name] == pl.Float32 for name in names)
    target = pl.Float32 if single else pl.Float64
    chosen = frame[list(names)]
    if any(schema[name] != target for name in names):
        chosen = chosen.with_columns(
            named(name for name in names if schema[name] != target).cast(target)
        )
    values = chosen.to_numpy()
    return values if values.flags.writeable else values.copy(order="K")


class ColumnScan(FileScan):
    """Rows of columnar files in batches; text was turned into Arrow when it was opened."""

    def __init__(
        self,
        name: str,
        sources: Sequence[tuple[str, Any]],
        request: ReadRequest,
        index: str | None,
        folder: Any = None,
    ) -> None:
        """``sources``: a lazy frame a file with its name; ``folder`` lives as long as the scan."""
        self.name, self._folder = name, folder
        schema = _common_schema(sources)
        roles = split_roles(list(schema), request, index)
        self.features = _usable(schema, roles.features, name)
        self.identifier, self.labels = roles.identifier, roles.labels
        wanted = [*self.features, *(n for n in roles[1:] if n is not None)]
        sources = [(label, _cast(lazy.select(named(wanted)), schema)) for label, lazy in sources]
        codes = _large_integers([lazy for _, lazy in sources], self.features, schema)
        if codes:
            schema |= dict.fromkeys(codes, _polars().String)
            sources = [(label, _cast(lazy, schema)) for label, lazy in sources]
        self._schema = schema
        numbers = [n for n in self.features if is_number(schema[n])]
        self.others = [n for n in self.features if not is_number(schema[n])]
        self.feature_names = np.array(numbers, dtype=object)
        self.n_features = len(numbers)
        self.types = _types(schema, numbers)
        single = bool(numbers) and all(schema[n] == _polars().Float32 for n in numbers)
        self.dtype = np.dtype(np.float32 if single else np.float64)
        counts = [lazy.select(_polars().len()).collect().item() for _, lazy in sources]
        self._set_sources([(*source, range(n)) for source, n in zip(sources, counts, strict=True)])
        if not self.n_samples:
            raise DataError("It holds no rows. Leave it out, or write it again with rows.")

    def _set_sources(self, sources: list[tuple[str, Any, range]]) -> None:
        self._sources = sources
        self.n_samples = sum(len(rows) for _, _, rows in sources)
        self.n_stored = self.n_samples * self.n_features

    def _batches(self, names: Sequence[str]) -> Iterator[tuple[str, int, Any]]:
        """Name of the file, number of the first row from 1, and a frame, of every batch."""
        step = rows_at_once(len(names), n_bytes=BLOCK_BYTES)
        for label, lazy, rows in self._sources:
            chosen = lazy.select(named(names))
            whole = rows.start == 0
            chosen = chosen if whole else chosen.slice(rows.start, len(rows))
            chosen = chosen.head(len(rows)) if whole else chosen
            at = rows.start + 1
            with reading(Path(label), "table"):
                for batch in chosen.collect_batches(chunk_size=step, maintain_order=True):
                    if batch.height:
                        yield label, at, batch
                    at += batch.height

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        chosen = self.feature_names if columns is None else self.feature_names[columns]
        names = [str(name) for name in chosen]
        for label, at, batch in self._batches(names):
            origin = f"{label}, rows {at} to {at + batch.height - 1}"
            values = matrix_of(batch, names, self._schema).astype(self.dtype, copy=False)
            yield RowBlock(np.ascontiguousarray(values), origin)

    def tables(self, names: Sequence[str] | None = None) -> Iterator[Table]:
        chosen = None if names is None else set(names)
        features = [n for n in self.features if chosen is None or n in chosen]
        roles = [n for n in (self.identifier, self.labels) if n is not None]
        request = ReadRequest(labels=self.labels, identifier=self.identifier)
        for label, _, batch in self._batches(list(dict.fromkeys([*features, *roles]))):
            table = table_of_frame(batch, request, label)
            yield replace(table, values=table.values.astype(self.dtype, copy=False))

    def parts(self, n_parts: int) -> list["ColumnScan"]:
        """The same rows as about ``n_parts`` scans: ranges of rows of each file."""
        share = max(1, (self.n_samples or 1) // n_parts)
        found = []
        for label, lazy, rows in self._sources:
            for piece in even_ranges(rows, max(1, round(len(rows) / share))):
                part = ColumnScan.__new__(ColumnScan)
                part.__dict__.update(self.__dict__)
                part._set_sources([(label, lazy, piece)])
                found.append(part)
        return found

    def __getstate__(self) -> dict[str, Any]:
        """What travels to a worker: all but the temporary folder, which stays here."""
        return {**self.__dict__, "_folder": None}


def _common_schema(sources: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The type of every column over all files: text if one has text, else the wider number."""
    pl = _polars()
    first_label, first = sources[0]
    schema = dict(first.collect_schema())
    for label, lazy in sources[1:]:
        found = dict(lazy.collect_schema())
        if found.keys() != schema.keys():
            lacking = [repr(n) for n in schema if n not in found]
            more = [repr(n) for n in found if n not in schema]
            told = [f"lacks {some_of(lacking)}"] * bool(lacking) + [f"adds {some_of(more)}"] * bool(
                more
            )
            raise DataError(
                f"All files of a table must have the same columns; {first_label} has "
                f"{len(schema)}, and {label} {' and '.join(told)}. Leave it out, or write it "
                "again with the columns of the others."
            )
        for name, dtype in found.items():
            if dtype != schema[name]:
                both = is_number(dtype) and is_number(schema[name])
                schema[name] = pl.Float64 if both else pl.String
    return schema


def _cast(lazy: Any, schema: Mapping[str, Any]) -> Any:
    found = lazy.collect_schema()
    change = {n: schema[n] for n, dtype in found.items() if dtype != schema[n]}
    return lazy.cast(change) if change else lazy


def convert_text(
    path: Path, request: ReadRequest, separators: Sequence[str], folder: Path, texts: set[str]
) -> tuple[Any, str | None, set[str]]:
    """A text file as an Arrow file in ``folder``: columns, row names, and which hold text.

    ``texts``: columns that hold text in another file of the same table.
    """
    pl = _polars()
    file = TextFile(path, request, separators, folder)
    file.kinds |= {name: "text" for name in texts if name in file.kinds}
    target = Path(tempfile.mkdtemp(dir=folder))

    def convert(_: Any) -> Any:
        # Piece by piece: polars would hold most of a wide file at once.
        for old in target.iterdir():
            old.unlink()
        for number, piece in enumerate(file.pieces()):
            frame = file.lazy(piece).collect()
            frame.write_ipc(target / f"{number:06d}.arrow", compression="uncompressed")
        return pl.concat([pl.scan_ipc(part) for part in sorted(target.iterdir())])

    lazy = file.run(convert)
    if file.reads_codes(_extremes(lazy)):
        lazy = convert(None)
    kinds = {name for name, kind in file.kinds.items() if kind == "text"} - {file.index}
    return lazy, file.index, {name for name in kinds if name is not None}


class _Folder:
    """A temporary folder that is removed with the last scan that reads from it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="keepers-"))
        self._finalizer = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def scan_text(
    paths: Sequence[Path], request: ReadRequest, separators: Sequence[str], name: str
) -> FileScan:
    """Text files as one table in blocks; each is converted once. Very wide ones are read whole."""
    if len(sniff(paths[0], request, separators).names) > MANY:
        wide = [read_text(path, request, separators) for path in paths]
        return MemoryScan(replace(stack_tables(wide), name=name))
    folder = _Folder()
    texts: set[str] = set()
    sources: dict[Path, Any] = {}
    index: str | None = None
    while True:  # what is text in one file is text in all
        before = set(texts)
        for path in paths:
            if path in sources and sources[path][1] >= texts:
                continue
            with reading(path, "text"):
                lazy, index, found = convert_text(path, request, separators, folder.path, texts)
            sources[path] = (lazy, found)
            texts |= found
        if texts == before:
            break
    named = [(path.name, sources[path][0]) for path in paths]
    return ColumnScan(name, named, request, index, folder)
