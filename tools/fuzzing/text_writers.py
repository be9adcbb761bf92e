"""Writers of text: delimited tables, Matrix Market."""

import bz2
import csv
import gzip
import io
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.io
import scipy.sparse as sp
from numpy.random import Generator

from fuzzing.tables import Case, Odd, chance, choose, odd_table, sparse_values

MISSING = ("", "", "NA", "NaN", "nan", "NULL", "null", "None", "N/A", "#N/A", "<NA>")
LABELS, SAMPLES = "the class", "sample name"
Parts = tuple[Odd, list[str], list[Any], dict[str, Any]]


def packed(rng: Generator, path: Path, data: bytes) -> Path:
    """Write a text file, often compressed; the file's name says how."""
    kind = choose(rng, "", "", "", ".gz", ".bz2", ".xz")
    path = path.with_name(path.name + kind)
    path.write_bytes(pack(kind, data))
    return path


def pack(kind: str, data: bytes) -> bytes:
    """Compress, as the suffix says."""
    if kind == ".gz":
        return gzip.compress(data, mtime=0)
    if kind == ".bz2":
        return bz2.compress(data)
    return lzma.compress(data) if kind == ".xz" else data


def columns_of(rng: Generator, table: Odd) -> Parts:
    """Columns with labels and sample names among them, and what to ask for."""
    headers, columns = list(table.names), list(table.X.T)
    arguments: dict[str, Any] = {}
    for role, name, column in (
        ("labels", LABELS, table.labels),
        ("identifier", SAMPLES, np.array(table.samples, dtype=object)),
    ):
        if chance(rng, 0.5):
            at = int(rng.integers(len(headers) + 1))
            headers.insert(at, name)
            columns.insert(at, column)
            arguments[role] = name
    if not arguments and (chance(rng, 0.5) or all(map(_is_number, headers))):
        arguments["header"] = True  # names may be numbers, which only the caller can tell
    return table, headers, columns, arguments


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def case_of(writer: str, path: Path, parts: Parts, samples: list[str] | None = None) -> Case:
    """What was written, to be compared with what will be read."""
    table, _, _, arguments = parts
    return Case(
        writer,
        path,
        table.X,
        table.names,
        table.samples if "identifier" in arguments else samples,
        table.labels if "labels" in arguments else None,
        arguments,
    )


def pandas_csv(rng: Generator, path: Path) -> Case:
    """`pandas.DataFrame.to_csv`: delimiters, quoting, encodings, line ends, missing values."""
    parts = columns_of(rng, odd_table(rng))
    table, headers, columns, arguments = parts
    frame = pd.DataFrame(dict(enumerate(columns)))
    frame.columns = pd.Index(headers)
    has_index = "identifier" not in arguments and chance(rng, 0.3)
    if has_index:
        frame.index = pd.Index(table.samples)
    sep = choose(rng, ",", ",", ";", "\t")
    decimal = "," if sep != "," and chance(rng, 0.4) else "."
    encoding = choose(rng, "utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16")
    quoting = choose(rng, csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)
    # With CR as line end, Python's csv module leaves cells with a newline unquoted.
    has_newlines = any("\n" in str(cell) for cell in [*headers, *table.samples, *table.labels])
    text = frame.to_csv(
        index=has_index,
        sep=sep,
        decimal=decimal,
        quoting=quoting,
        na_rep=choose(rng, *MISSING),
        lineterminator=choose(rng, "\n", "\r\n", "\n" if has_newlines else "\r"),
    )
    suffix = ".tsv" if sep == "\t" and chance(rng, 0.7) else ".csv"
    where = packed(rng, path.with_suffix(suffix), text.encode(encoding))
    return case_of("pandas to_csv", where, parts, table.samples if has_index else None)


def pandas_packed_csv(rng: Generator, path: Path) -> Case:
    """`pandas.DataFrame.to_csv`, compressed by pandas; default names and index."""
    table = odd_table(rng)
    kind = choose(rng, "gzip", "bz2", "xz")
    where = path.with_suffix({"gzip": ".csv.gz", "bz2": ".csv.bz2", "xz": ".csv.xz"}[kind])
    packing = {"method": kind, "mtime": 1} if kind == "gzip" else {"method": kind}
    pd.DataFrame(table.X).to_csv(where, compression=packing)
    numbers = [str(at) for at in range(table.shape[1])]
    rows = [str(at) for at in range(table.shape[0])]
    return Case("pandas to_csv, packed", where, table.X, numbers, rows)


def excel_csv(rng: Generator, path: Path) -> Case:
    """Text as Excel saves it: a byte order mark, ``sep=``, decimal commas, trailing blank lines."""
    parts = columns_of(rng, odd_table(rng, kinds=("f8", "whole", "i8")))
    _, headers, columns, _ = parts
    sep = choose(rng, ";", ";", "\t", ",")
    decimal = "," if sep != "," else "."
    stream = io.StringIO()
    if chance(rng, 0.5):
        stream.write(f"sep={sep}\r\n")
    writer = csv.writer(stream, delimiter=sep, lineterminator="\r\n")
    writer.writerow(headers)
    for row in zip(*(column.tolist() for column in columns), strict=True):
        writer.writerow([_cell(value, decimal) for value in row])
    stream.write(choose(rng, "", "", "\r\n", "\r\n\r\n"))
    encoding = choose(rng, "utf-8-sig", "utf-16")
    where = path.with_suffix(".csv")
    where.write_bytes(stream.getvalue().encode(encoding))
    return case_of("Excel CSV", where, parts)


def _cell(value: Any, decimal: str) -> str:
    if isinstance(value, str):
        return value
    return "" if value != value else repr(value).replace(".", decimal)


def r_table(rng: Generator, path: Path) -> Case:
    """Text as R's write.table saves it: row names without a column name, quoted text, NA."""
    table = odd_table(rng)
    sep, suffix = choose(rng, ("\t", ".tsv"), (",", ".csv"), (";", ".csv"))

    def quoted(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    if table.shape[1] == 1:
        sep, suffix = ",", ".csv"  # nothing in the first line tells another delimiter
    lines = [sep.join(map(quoted, table.names))]
    for name, row in zip(table.samples, table.X.tolist(), strict=True):
        cells = ["NA" if value != value else repr(value) for value in row]
        lines.append(sep.join([quoted(name), *cells]).replace("True", "TRUE"))
    where = packed(rng, path.with_suffix(suffix), ("\n".join(lines) + "\n").encode())
    return Case("R write.table", where, table.X, table.names, table.samples)


def polars_csv(rng: Generator, path: Path) -> Case:
    """`polars.DataFrame.write_csv`: quote styles, null values, byte order marks."""
    parts = columns_of(rng, odd_table(rng))
    _, headers, columns, _ = parts
    frame = pl.DataFrame(
        [
            pl.Series(name, column.tolist(), nan_to_null=True)
            for name, column in zip(headers, columns, strict=True)
        ]
    )
    separator = choose(rng, ",", ";", "\t")
    stream = io.BytesIO()
    frame.write_csv(
        stream,
        separator=separator,
        include_bom=chance(rng, 0.3),
        line_terminator=choose(rng, "\n", "\r\n"),
        quote_style=choose(rng, "necessary", "always", "non_numeric"),
        null_value=choose(rng, None, *MISSING),
    )
    suffix = ".tsv" if separator == "\t" else ".csv"
    return case_of(
        "polars write_csv", packed(rng, path.with_suffix(suffix), stream.getvalue()), parts
    )


def csv_module(rng: Generator, path: Path) -> Case:
    """`csv.writer` in its dialects; cells padded with blanks, blank lines."""
    parts = columns_of(rng, odd_table(rng))
    _, headers, columns, _ = parts
    dialect = choose(rng, "excel", "unix", "excel-tab")
    padding = choose(rng, "", "", " ", "   ") if dialect != "unix" else ""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, dialect)
    writer.writerow(headers)
    for row in zip(*(column.tolist() for column in columns), strict=True):
        writer.writerow([value if isinstance(value, str) else f"{padding}{value}" for value in row])
        stream.write("\n" if chance(rng, 0.02) else "")
    suffix = ".tab" if dialect == "excel-tab" else ".csv"
    where = packed(rng, path.with_suffix(suffix), stream.getvalue().encode())
    return case_of("csv.writer", where, parts)


def numpy_text(rng: Generator, path: Path) -> Case:
    """`numpy.savetxt`, with a header in a comment, with one as a plain line, or with none."""
    table = odd_table(rng, kinds=("f8", "scales"))
    delimiter, suffix = choose(rng, (",", ".csv"), (";", ".csv"), ("\t", ".tsv"))
    plain = [f"g{at}" for at in range(table.shape[1])]
    header = choose(rng, "", delimiter.join(plain), "made up\n" + delimiter.join(plain))
    header = header if table.shape[1] > 1 else ""  # one word behind "#" may as well be a comment
    comments = choose(rng, "# ", "# ", "#", "")
    if "\n" in header:
        comments = "# "  # without a mark, what stands above the names is part of the table
    stream = io.BytesIO()
    np.savetxt(
        stream,
        table.X,
        delimiter=delimiter,
        header=header,
        comments=comments,
        fmt=choose(rng, "%.18e", "%30.20e"),  # %.17g writes long integers, which name something
        newline=choose(rng, "\n", "\r\n"),
    )
    where = packed(rng, path.with_suffix(suffix), stream.getvalue())
    expected = plain if header else [f"x{at}" for at in range(table.shape[1])]
    if header and comments == "#":
        expected[0] = "#g0"  # which may be a name: no blank tells them apart
    arguments = {} if header else {"header": False}
    return Case("numpy savetxt", where, table.X, expected, None, None, arguments)


def latin_1_csv(rng: Generator, path: Path) -> Case:
    """Text that is not UTF-8: may be refused, must not be misread."""
    table = odd_table(rng, kinds=("f8",))
    given = [f"größe {at}" for at in range(table.shape[1])]
    where = path.with_suffix(".csv")
    frame = pd.DataFrame(table.X, columns=given)
    frame.to_csv(where, index=False, encoding=choose(rng, "latin-1", "cp1252"))
    return Case("pandas to_csv, Latin-1", where, table.X, given)


def sparse_mtx(rng: Generator, path: Path) -> Case:
    """`scipy.io.mmwrite` of a sparse matrix: fields and symmetries."""
    field = choose(rng, "real", "integer", "pattern")
    X = sparse_values(rng, {"real": "f8", "integer": "i4", "pattern": "f8"}[field])
    symmetry = choose(rng, "general", "general", "symmetric", "skew-symmetric")
    if symmetry != "general":
        half = sp.tril(X[:, : X.shape[0]] if X.shape[0] < X.shape[1] else X[: X.shape[1]], -1)
        X = sp.csr_matrix(half + (half.T if symmetry == "symmetric" else -half.T))
    if field == "pattern":
        symmetry = "symmetric" if symmetry == "skew-symmetric" else symmetry
        X = sp.csr_matrix((X != 0).astype(float))
    stored = choose(rng, sp.coo_matrix, sp.csr_matrix, sp.csc_matrix)(X)
    stream = io.BytesIO()
    scipy.io.mmwrite(
        stream, stored, comment=choose(rng, "", "made up"), field=field, symmetry=symmetry
    )
    data = stream.getvalue()
    if symmetry == "symmetric" and field == "real" and chance(rng, 0.3):
        data = data.replace(b"symmetric", b"hermitian", 1)  # the same, where numbers are real
    return Case("scipy mmwrite, sparse", packed(rng, path.with_suffix(".mtx"), data), X)


def dense_mtx(rng: Generator, path: Path) -> Case:
    """`scipy.io.mmwrite` of an array: fields and symmetries."""
    X = odd_table(rng, missing=False, kinds=("f8", "i4", "whole")).X
    symmetry = choose(rng, "general", "general", "symmetric", "skew-symmetric")
    if symmetry != "general":
        side = min(X.shape)
        half = np.tril(X[:side, :side], -1)
        X = half + (half.T if symmetry == "symmetric" else -half.T) + 0
    stream = io.BytesIO()
    scipy.io.mmwrite(stream, X, symmetry=symmetry)
    return Case("scipy mmwrite, dense", packed(rng, path.with_suffix(".mtx"), stream.getvalue()), X)


TEXT_WRITERS = (
    pandas_csv,
    pandas_csv,
    pandas_packed_csv,
    excel_csv,
    r_table,
    polars_csv,
    csv_module,
    numpy_text,
    latin_1_csv,
    sparse_mtx,
    dense_mtx,
)
