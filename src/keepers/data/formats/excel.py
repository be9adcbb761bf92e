"""Excel workbooks (.xlsx; .xlsm is only read): one sheet is one table.

python-calamine reads: 0.4 s for 1,000 x 500 numbers, openpyxl takes 2.3 to 3.8 s. It sets memory
aside for the whole rectangle between the first and the last cell of a sheet, and ends the process
where that fails, so cells are located before it gets the file. In .ods and .xlsb they cannot be
located without a reader of our own, and a damaged .xls ended the process as well: these are not
offered. xlsxwriter writes in half of the time of openpyxl, with 16 significant digits.
"""

import datetime
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers._packages import optional
from keepers.data.columns import OtherColumn, as_texts
from keepers.data.formats.text import is_header
from keepers.data.formats.text_cells import as_classes, as_float, is_value
from keepers.data.limits import SizeLimit
from keepers.data.table import (
    LabelledTable,
    ReadRequest,
    WrittenTable,
    numbered_names,
    plan_columns,
    refuse_text,
    unique_names,
)
from keepers.data.values import as_labels, as_names
from keepers.data.wording import closest, some_of
from keepers.exceptions import DataError, DataWarning, ParameterError, shorten, warn_caller

_PIECE = 2**20
_CELL_BYTES = 40
"""Of a cell, empty or not: 32 in calamine, 8 for the reference to its value."""
_PLACE = re.compile(rb"""r\s*+=\s*+["']([A-Za-z]*+)([0-9]++)""")
_OPENED = re.compile(rb"<(?:c|row)[\s/>]")
_OPENED_WITH_PREFIX = re.compile(rb"<[\w.-]+:(?:c|row)[\s/>]")
_MOST_ROWS, _MOST_COLUMNS, _LONGEST_TEXT = 1_048_576, 16_384, 32_767
"""Of a sheet, and of a text in it."""
_FIRST_YEAR = 1900
"""Whose first two months Excel counts as if it were a leap year."""

Row = Sequence[Any]


def read_excel(path: Path, request: ReadRequest) -> LabelledTable:
    """Read a sheet; columns of text and dates go to ``others`` if the request is mixed."""
    calamine = optional("python_calamine", "Excel workbooks")
    if not zipfile.is_zipfile(path):
        raise DataError(
            "A workbook must be an .xlsx file without a password; this one is damaged, protected, "
            "or of another kind (.xls, say). Open it in a spreadsheet program and save it as .xlsx."
        )
    _refuse_too_large(path, request.limit)
    with _without_panics(), calamine.load_workbook(path) as book:
        title = _choose_sheet(book, request.sheet, path.name)
        sheet = book.get_sheet_by_name(title)
        shape = (sheet.total_height, sheet.total_width)
        request.limit.refuse_shape(shape, _CELL_BYTES, f"Sheet {shorten(title)}")
        rows = [row for row in sheet.to_python() if any(cell != "" for cell in row)]
    if not rows:
        raise DataError(
            f"A table needs names and at least one row; sheet {shorten(title)} is empty. Name "
            "another sheet (sheet=, --sheet)."
        )
    return _to_table(rows, request, path)


@contextmanager
def _without_panics() -> Iterator[None]:
    """Make an error of a panic of calamine, which is no `Exception`."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise DataError("It is damaged. Obtain or write it again.") from None
        raise


def _refuse_too_large(path: Path, limit: SizeLimit) -> None:
    """Raise if the parts of a workbook, or the rectangle of a sheet's cells, outgrow the limit."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        limit.refuse_past(sum(member.file_size for member in members), "The workbook, expanded,")
        for member in members:
            # Every part is expanded: the declared size is proven only by reading to the end.
            with archive.open(member) as stream:
                if "worksheets" in member.filename.lower():
                    limit.refuse_shape(_extent(stream), _CELL_BYTES, "A sheet of the workbook")
                else:
                    while stream.read(_PIECE):
                        pass


def _extent(stream: Any) -> tuple[int, int]:
    """Rows and columns that a sheet has at most, from the places of its cells."""
    last_row = untold = 0
    letters = {b""}
    rest = b""
    more = True
    while more:
        piece = stream.read(_PIECE)
        more = bool(piece)
        # What follows the last "<" may be half a tag: it waits for the next piece.
        text = rest + piece
        cut = max(0, text.rfind(b"<")) if more else len(text)
        text, rest = text[:cut], text[cut:]
        places = _PLACE.findall(text)
        letters.update({column[-4:] for column, _ in places})
        last_row = max([last_row, *(int(row) for row in {row[:9] for _, row in places})])
        # A cell or row that tells no place follows the one before it.
        untold += max(0, _count_opened(text) - len(places))
    return last_row + untold, max(map(_column_number, letters)) + untold


def _count_opened(text: bytes) -> int:
    """How many cells and rows begin."""
    prefixed = _OPENED_WITH_PREFIX.findall(text) if b":row" in text or b":c " in text else []
    return len(_OPENED.findall(text)) + len(prefixed)


def _column_number(letters: bytes) -> int:
    """Of "A", 1; of "AA", 27."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number


def _choose_sheet(book: Any, asked: str | None, file_name: str) -> str:
    """The name of the sheet that was asked for, else of the first."""
    titles = [sheet.name for sheet in book.sheets_metadata if str(sheet.typ).endswith("WorkSheet")]
    if not titles:
        raise DataError("A workbook holds at least one sheet with cells; this one has none.")
    if asked is None:
        if len(titles) > 1:
            shown = some_of([repr(title) for title in titles])
            warn_caller(
                f"{file_name} has {len(titles)} sheets ({shown}); the first is read. Name another "
                "with sheet= (--sheet).",
                DataWarning,
            )
        return str(titles[0])
    if asked in titles:
        return asked
    if asked.isdecimal() and 1 <= int(asked) <= len(titles):
        return str(titles[int(asked) - 1])
    raise DataError(
        f"A sheet is named by its name or its number from 1; there is no sheet {shorten(asked)}."
        f"{closest(asked, titles)} The sheets are {some_of([repr(title) for title in titles])}."
    )


def _to_table(rows: list[Row], request: ReadRequest, path: Path) -> LabelledTable:
    titles, index, body = _split_names(rows, request, path.name)
    columns: list[Row] = list(zip(*body, strict=True)) or [() for _ in titles]
    # A column with neither a name nor a value is a part of the rectangle, not of the table.
    used = [at for at, title in enumerate(titles) if title or any(c != "" for c in columns[at])]
    columns = [columns[at] for at in used]
    names = unique_names([titles[at] for at in used], make_unique=request.make_unique)
    plan = plan_columns(names, request, index=index if index in used else None)
    if not body:
        raise DataError("A table needs at least one row; this sheet has names only.")
    request.limit.refuse_shape((len(body), len(plan.features)), 8, "The table")
    numbers: list[int] = []
    others: list[OtherColumn] = []
    # Column by column, as they come.
    X = np.empty((len(body), len(plan.features)), order="F")
    for place, at in enumerate(plan.features):
        values = _as_numbers(columns[at])
        if values is None:
            others.append(_as_other(names[at], columns[at], place))
        else:
            X[:, len(numbers)] = values
            numbers.append(at)
    if not request.mixed:
        refuse_text([column.name for column in others])
    return LabelledTable(
        X[:, : len(numbers)],
        np.array([names[at] for at in numbers], dtype=object),
        None if plan.identifier is None else as_names(_words(columns[plan.identifier]), "names"),
        None
        if plan.labels is None
        else as_labels(as_classes(_words(columns[plan.labels])), str(request.labels)),
        path.stem,
        tuple(others),
    )


def _split_names(
    rows: list[Row], request: ReadRequest, file_name: str
) -> tuple[list[str], int | None, list[Row]]:
    """Names as written, the position of row names without a name, and the rows below."""
    words = [_words(row) for row in rows[:2]]
    first, second = words[0], words[1] if len(words) > 1 else []
    doubt = None
    has_header = request.header
    if has_header is None:
        has_header, doubt = is_header(first, second)
    if doubt is not None:
        warn_caller(f"{file_name}: {doubt}", DataWarning)
    if not has_header:
        return numbered_names(len(first)), None, rows
    return first, None if first[0] else 0, rows[1:]


def _words(cells: Sequence[Any]) -> list[str]:
    """Cells as text; whole numbers without a decimal point."""
    return [
        str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()
        for cell in cells
    ]


def _as_numbers(cells: Sequence[Any]) -> NDArray[np.float64] | None:
    """A column as numbers, NaN where nothing stands; None if it holds something else."""
    kinds = set(map(type, cells))
    if kinds <= {float, int, bool}:
        return np.array(cells, dtype=np.float64)
    if not kinds <= {float, int, bool, str}:
        return None
    words = {cell.strip() for cell in cells if isinstance(cell, str)}
    if not all(map(is_value, words)):
        return None
    values = {word: as_float(word) for word in words}
    return np.array([values[c.strip()] if isinstance(c, str) else c for c in cells], dtype=float)


def _as_other(name: str, cells: Sequence[Any], position: int) -> OtherColumn:
    """A column of dates, if nothing else stands in it, or of text."""
    filled = [cell for cell in cells if cell != ""]
    if all(isinstance(cell, datetime.date) for cell in filled):  # of which datetime is one
        dates = [None if cell == "" else cell for cell in cells]
        return OtherColumn(name, "date", np.array(dates, dtype="datetime64[us]"), position)
    return OtherColumn(name, "text", as_texts(_words(cells)), position)


def write_excel(path: Path, table: WrittenTable, name: str) -> None:
    """Write one sheet; every text is a text cell, also one that looks like a formula."""
    xlsxwriter = optional("xlsxwriter", "Excel workbooks")
    beside = {column.name: _other_cells(column) for column in table.others}
    leading = [cells for cells in (table.sample_names, _label_cells(table)) if cells is not None]
    _refuse_unwritable(table, [*leading, *beside.values()])
    # With a single pass over the rows no cell is kept.
    with xlsxwriter.Workbook(path, {"constant_memory": True}) as book:
        sheet = book.add_worksheet("table")
        formats = _formats(table, book)
        for at, title in enumerate(table.column_names):
            sheet.write_string(0, at, title)
        columns, truths = table.columns, table.truth_columns()
        for at in range(table.n_samples):
            values = table.X[[at]].toarray()[0] if table.is_sparse else table.X[at]
            numbers = [
                bool(number) if name in truths and number == number else number
                for name, number in zip(table.feature_names, values.tolist(), strict=True)
            ]
            cells = [vector[at] for vector in leading]
            cells += [
                beside[column.name][at] if isinstance(column, OtherColumn) else numbers[column]
                for column in columns
            ]
            for place, cell in enumerate(cells):
                _write_cell(sheet, at + 1, place, cell, formats)


def _other_cells(column: OtherColumn) -> list[Any]:
    """Text, or moments without a zone, in universal time; None for a gap.

    A day that no sheet holds (it counts from 1900 on) is text.
    """
    if column.kind != "date":
        return list(column.values.tolist())
    moments = column.values.astype("datetime64[us]")
    return [
        moment
        if moment is None or (isinstance(moment, datetime.datetime) and moment.year > _FIRST_YEAR)
        else word
        for moment, word in zip(
            moments.tolist(), np.datetime_as_string(moments).tolist(), strict=True
        )
    ]


def _formats(table: WrittenTable, book: Any) -> dict[int, Any]:
    """How moments are shown, by column."""
    formats = {True: "yyyy-mm-dd", False: "yyyy-mm-dd hh:mm:ss.000"}
    made = {days: book.add_format({"num_format": shown}) for days, shown in formats.items()}
    n_before = len(table.leading_names)
    return {column.position + n_before: made[table.holds_days(column)] for column in table.others}


def _write_cell(sheet: Any, row: int, column: int, cell: Any, formats: dict[int, Any]) -> None:
    if cell is None or cell != cell:
        return  # a gap stays an empty cell
    if isinstance(cell, str):
        sheet.write_string(row, column, cell)
    elif isinstance(cell, bool):
        sheet.write_boolean(row, column, cell)
    elif isinstance(cell, datetime.datetime):
        sheet.write_datetime(row, column, cell, formats[column])
    else:
        sheet.write_number(row, column, cell)


def _label_cells(table: WrittenTable) -> list[Any] | None:
    if table.labels is None:
        return None
    return table.labels.tolist() if table.has_numeric_labels else table.text_labels()


def _refuse_unwritable(table: WrittenTable, columns: Sequence[list[Any]]) -> None:
    """Raise for what no sheet holds; ``columns`` are those beside the numbers."""
    titles = table.column_names
    n_rows, n_columns = table.n_samples + 1, len(titles)
    if n_rows > _MOST_ROWS or n_columns > _MOST_COLUMNS:
        raise ParameterError(
            f"A sheet has at most {_MOST_ROWS} rows and {_MOST_COLUMNS} columns; this table needs "
            f"{n_rows} x {n_columns}. Choose another format (.csv, .parquet)."
        )
    if np.isinf(table.X.data if table.is_sparse else table.X).any():
        raise ParameterError(
            "A sheet holds finite numbers; this table holds infinity. Choose another format "
            "(.csv, .parquet)."
        )
    texts = [*titles, *(str(cell) for cells in columns for cell in cells)]
    longest = max(map(len, texts))
    if longest > _LONGEST_TEXT:
        raise ParameterError(
            f"A cell holds at most {_LONGEST_TEXT} characters; a text of this table has "
            f"{longest}. Choose another format (.csv, .parquet)."
        )
