"""Writers of columnar files: Parquet, Feather and other Arrow IPC."""

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
from numpy.random import Generator

from fuzzing.tables import Case, chance, choose, odd_table
from fuzzing.text_writers import Parts, case_of, columns_of

NULLABLE = {"float64": "Float64", "float32": "Float32", "int64": "Int64", "bool": "boolean"}


def pandas_frame(rng: Generator, parts: Parts) -> tuple[Any, list[str] | None]:
    """A data frame, perhaps with an index, categories and nullable columns; names of its rows."""
    table, headers, columns, arguments = parts
    frame = pd.DataFrame(dict(enumerate(columns)))
    if chance(rng, 0.3):
        kinds = {at: NULLABLE.get(str(kind), kind) for at, kind in frame.dtypes.items()}
        frame = frame.astype(kinds)
    frame.columns = pd.Index(headers)
    if "labels" in arguments and chance(rng, 0.5):
        frame[arguments["labels"]] = frame[arguments["labels"]].astype("category")
    if "identifier" not in arguments and chance(rng, 0.4):
        frame.index = pd.Index(table.samples, name=choose(rng, None, "which"))
        return frame, table.samples
    return frame, None


def pandas_parquet(rng: Generator, path: Path) -> Case:
    """`pandas.DataFrame.to_parquet`."""
    parts = columns_of(rng, odd_table(rng))
    frame, samples = pandas_frame(rng, parts)
    where = path.with_suffix(choose(rng, ".parquet", ".pq"))
    frame.to_parquet(
        where, compression=choose(rng, "snappy", "gzip", "brotli", "lz4", "zstd", None)
    )
    return _case("pandas to_parquet", where, parts, samples)


def pandas_feather(rng: Generator, path: Path) -> Case:
    """`pandas.DataFrame.to_feather`, which takes no index but one that counts."""
    parts = columns_of(rng, odd_table(rng))
    frame = pandas_frame(rng, parts)[0].reset_index(drop=True)
    where = path.with_suffix(choose(rng, ".feather", ".arrow"))
    frame.to_feather(where, compression=choose(rng, "lz4", "zstd", "uncompressed"))
    return _case("pandas to_feather", where, parts)


def polars_frame(rng: Generator, parts: Parts) -> Any:
    """A polars frame; missing values are NaN or null."""
    _, headers, columns, arguments = parts
    nulls = chance(rng, 0.5)
    frame = pl.DataFrame(
        [
            pl.Series(
                name, column.tolist() if column.dtype == object else column, nan_to_null=nulls
            )
            for name, column in zip(headers, columns, strict=True)
        ]
    )
    labels = arguments.get("labels")
    if labels is not None and frame[labels].dtype == pl.String and chance(rng, 0.5):
        frame = frame.with_columns(pl.col(labels).cast(pl.Categorical))
    return frame


def polars_parquet(rng: Generator, path: Path) -> Case:
    """`polars.DataFrame.write_parquet`."""
    parts = columns_of(rng, odd_table(rng))
    where = path.with_suffix(".parquet")
    polars_frame(rng, parts).write_parquet(
        where,
        compression=choose(rng, "zstd", "lz4", "snappy", "gzip", "brotli", "uncompressed"),
        row_group_size=choose(rng, None, 1, 7),
        statistics=chance(rng, 0.5),
    )
    return _case("polars write_parquet", where, parts)


def polars_ipc(rng: Generator, path: Path) -> Case:
    """`polars.DataFrame.write_ipc`."""
    parts = columns_of(rng, odd_table(rng))
    where = path.with_suffix(choose(rng, ".arrow", ".ipc", ".feather"))
    polars_frame(rng, parts).write_ipc(
        where, compression=choose(rng, "uncompressed", "lz4", "zstd")
    )
    return _case("polars write_ipc", where, parts)


def arrow_table(rng: Generator, parts: Parts) -> Any:
    """An Arrow table: dictionaries, decimals, long strings, nulls, several chunks."""
    _, headers, columns, _ = parts
    arrays = []
    for column in columns:
        array = pa.array(column, from_pandas=chance(rng, 0.5))
        if column.dtype.kind in "iu" and column.dtype.itemsize <= 4 and chance(rng, 0.2):
            array = array.cast(pa.decimal128(12, 2))
        if pa.types.is_string(array.type) and chance(rng, 0.3):
            array = array.cast(pa.large_string())
        if chance(rng, 0.3) and not pa.types.is_decimal(array.type):
            array = array.dictionary_encode()
        arrays.append(array)
    table = pa.table(arrays, names=headers)
    cut = int(rng.integers(table.num_rows + 1))
    if chance(rng, 0.5):
        return pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    return table


def arrow_parquet(rng: Generator, path: Path) -> Case:
    """`pyarrow.parquet.write_table`: codecs, row groups, page versions, dictionaries, checksums."""
    parts = columns_of(rng, odd_table(rng))
    where = path.with_suffix(".parquet")
    pq.write_table(
        arrow_table(rng, parts),
        where,
        compression=choose(rng, "none", "snappy", "gzip", "brotli", "lz4", "zstd"),
        row_group_size=choose(rng, None, 1, 5, 64),
        use_dictionary=chance(rng, 0.5),
        data_page_version=choose(rng, "1.0", "2.0"),
        version=choose(rng, "1.0", "2.4", "2.6"),
        write_page_checksum=chance(rng, 0.3),
        write_statistics=chance(rng, 0.5),
        data_page_size=choose(rng, None, 64),
        store_schema=chance(rng, 0.7),
    )
    return _case("pyarrow write_table", where, parts)


def arrow_feather(rng: Generator, path: Path) -> Case:
    """`pyarrow.feather.write_feather`."""
    parts = columns_of(rng, odd_table(rng))
    where = path.with_suffix(".feather")
    pyarrow.feather.write_feather(
        arrow_table(rng, parts),
        str(where),
        compression=choose(rng, "lz4", "zstd", "uncompressed"),
        chunksize=choose(rng, None, 1, 10),
    )
    return _case("pyarrow write_feather", where, parts)


def arrow_ipc(rng: Generator, path: Path) -> Case:
    """`pyarrow.ipc`: files of many batches, empty ones too."""
    parts = columns_of(rng, odd_table(rng))
    where = path.with_suffix(choose(rng, ".arrow", ".ipc"))
    table = arrow_table(rng, parts)
    options = pa.ipc.IpcWriteOptions(
        compression=choose(rng, None, "lz4", "zstd"), unify_dictionaries=True
    )
    with pa.ipc.new_file(str(where), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=choose(rng, None, 1, 7))
    return _case("pyarrow ipc", where, parts)


def _case(writer: str, where: Path, parts: Parts, samples: list[str] | None = None) -> Case:
    table, headers, columns, arguments = parts
    arguments.pop("header", None)  # of text only
    return case_of(writer, where, (table, headers, columns, arguments), samples)


COLUMN_WRITERS = (
    pandas_parquet,
    pandas_feather,
    polars_parquet,
    polars_ipc,
    arrow_parquet,
    arrow_feather,
    arrow_ipc,
)
