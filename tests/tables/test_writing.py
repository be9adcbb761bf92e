"""Written tables are read back the same by other programs and by us; whole or not at all."""

import gc
import os
import sys
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import anndata
import h5py
import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keepers.exceptions import DataError, ParameterError
from keepers.tables import writing
from keepers.tables.opening import open_table, scan_table
from keepers.tables.table import Table
from keepers.tables.writing import check_suffix, write_table

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4)) * 10.0 ** RNG.integers(-300, 300, size=(30, 4))
X[RNG.random(X.shape) < 0.4] = 0
X[:3, 0] = np.nan, np.inf, -np.inf
NAMES = ["b,c", 'quo"te', "=1+1", "ünï"]
IDS, LABELS = [f"{at:03}" for at in range(30)], ["x", "-y", "=z"] * 10
ROLES = {"identifier": "sample", "labels": "label"}


def table_of(values, names, ids=None, labels=None, **rest):
    texts = [None if part is None else np.array(part, dtype=object) for part in (ids, labels)]
    values = values if sp.issparse(values) else np.asarray(values)
    return Table(values, np.array(names, dtype=object), *texts, **rest)


WHEN = pl.Series([datetime(2024, 1, 2, 3, 4, 5, 500_000), None], dtype=pl.Datetime("ms", "UTC"))
FRAME = pl.DataFrame(
    {
        "town": ["Oslo", None],
        "day": [date(2024, 1, 2), None],
        "when": WHEN.dt.convert_time_zone("Europe/Oslo"),
        "at": [time(1, 2, 3), None],
        "took": [timedelta(days=1, seconds=3), None],
    }
)
MIXED = replace(
    table_of([[1, 1, 0.5], [12_345_678_901, 0, np.nan]], ["count", "flag", "height"], ["s1", "s2"]),
    labels=np.array([7, 8]),
    frame=FRAME,
    features=["count", "town", "flag", "day", "height", "when", "at", "took"],
    types={"count": pl.Int64, "flag": pl.Boolean},
)


READERS = {
    "csv": pd.read_csv,
    "tsv": lambda path, **options: pd.read_csv(path, sep="\t", **options),
    "parquet": lambda path, **_: pd.read_parquet(path),
    "feather": lambda path, **_: pd.read_feather(path),
}


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_others_read_the_same_table(tmp_path, suffix, container):
    path = tmp_path / f"a.{suffix}"
    assert write_table(path, table_of(container(X), NAMES, IDS, LABELS)) == path
    frame = READERS[suffix](path, dtype=str)  # older pandas rounds numbers, but not text
    assert list(frame.columns) == ["sample", "label", *NAMES]
    np.testing.assert_array_equal(frame[NAMES].to_numpy(float), X)
    assert [list(frame["sample"]), list(frame["label"])] == [IDS, LABELS]


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_anndata_reads_the_same_values(tmp_path, container):
    table = table_of(container(X), NAMES, IDS, LABELS)
    write_table(tmp_path / "a.h5ad", table, label_name="kind")
    cells = anndata.read_h5ad(tmp_path / "a.h5ad")
    np.testing.assert_array_equal(cells.X.toarray() if table.is_sparse else cells.X, X)
    assert [list(cells.var_names), list(cells.obs_names)] == [NAMES, IDS]
    assert list(cells.obs["kind"]) == LABELS


@pytest.mark.parametrize("suffix", [*READERS, "h5ad", "xlsx"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_we_read_what_we_write(tmp_path, suffix, dtype):
    values = RNG.normal(scale=50, size=(9, 4)).astype(dtype)
    values[2], values[:, 1] = 0, np.arange(9)
    values[4, :2] = np.nan
    path = tmp_path / f"a.{suffix}"
    write_table(path, table_of(values, NAMES, IDS[:9], LABELS[:9]))
    options = {"labels": "label"} if suffix == "h5ad" else ROLES
    table = open_table(path, **options)
    digits = 1e-15 if suffix == "xlsx" else 0  # workbooks hold 16 digits
    np.testing.assert_allclose(table.values.astype(dtype), values, rtol=digits, atol=0)
    assert table.columns == NAMES
    assert [list(table.ids), list(table.labels)] == [IDS[:9], LABELS[:9]]


@pytest.mark.parametrize(
    ("values", "dtype", "text", "kept"),
    [
        ([1, 0.5], pl.Boolean, "1.0\n0.5", pl.Float64),
        ([1, np.nan], pl.Boolean, 'true\n""', pl.Boolean),
        ([255, np.nan], pl.UInt8, '255\n""', pl.UInt8),
        ([255, 256], pl.UInt8, "255\n256", pl.Float64),
        ([1.5, 2.25], pl.Decimal(10, 2), "1.50\n2.25", pl.Decimal(10, 2)),
        ([np.float32(0.1), 3], pl.Float32, "0.1\n3.0", pl.Float32),
        ([np.nan, np.nan], pl.Null, '""\n""', pl.Null),
        ([-(2.0**53), 1e10], None, "-9007199254740992\n10000000000", pl.Float64),
        ([1e16, 0], None, "1e+16\n0.0", pl.Float64),
    ],
)
def test_numbers_have_the_type_of_the_source_if_it_holds_them(tmp_path, values, dtype, text, kept):
    table = table_of(np.array([values], dtype=float).T, ["a"], types={"a": dtype} if dtype else {})
    assert write_table(tmp_path / "a.csv", table).read_text() == f"a\n{text}\n"
    frame = pl.read_parquet(write_table(tmp_path / "a.parquet", table))
    assert frame.schema == {"a": kept}
    expected = [Decimal(f"{value}") if kept == pl.Decimal else value for value in values]
    assert frame["a"].to_list() == [None if value != value else value for value in expected]


# Lone surrogates are not text, and pandas takes a null byte for the end of a cell.
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(WORDS, st.floats()), min_size=1, max_size=6))
def test_pandas_reads_the_same_words_and_numbers(tmp_path, rows):
    words, numbers = (list(column) for column in zip(*rows, strict=True))
    table = table_of(np.array([numbers]).T, ["n"], frame=pl.DataFrame({"t": words}))
    path = write_table(tmp_path / "a.tsv", replace(table, features=["t", "n"]), force=True)
    frame = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False, engine="python")
    assert frame["t"].tolist() == words
    np.testing.assert_array_equal([float(cell or "nan") for cell in frame["n"]], numbers)


N_ROWS = 1200


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The same table in three formats; only its last row shows that classes are text."""
    folder, rng = tmp_path_factory.mktemp("sources"), np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "who": [f"r{at}" for at in range(N_ROWS)],
            "count": rng.integers(0, 100, N_ROWS),
            "town": rng.choice(np.array(["Oslo", "=x", 'a,"b', None], dtype=object), N_ROWS),
            "flag": rng.random(N_ROWS) < 0.5,
            "when": pl.datetime_range(
                datetime(2020, 1, 1), interval="1m", eager=True, end=datetime(2020, 1, 1, 19, 59)
            ),
            "class": ["1"] * (N_ROWS - 1) + ["b"],
            "gap": [None if at % 7 == 0 else at % 5 for at in range(N_ROWS)],
            "single": rng.normal(size=N_ROWS).astype(np.float32),
        },
        schema_overrides={"town": pl.String, "gap": pl.Int16},
    )
    frame.write_parquet(folder / "a.parquet", row_group_size=300)
    frame.write_ipc(folder / "a.feather", record_batch_size=200)
    frame.write_csv(folder / "a.csv")
    return folder, frame


KEPT = ["single", "flag", "count", "town", "when", "gap"]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("keepers.tables.columnar.rows_at_once", lambda *_, **__: 150)


@pytest.mark.parametrize(
    ("source", "suffix"),
    [("csv", "csv"), ("parquet", "tsv"), ("feather", "parquet"), ("parquet", "feather")],
)
def test_blocks_give_what_the_whole_table_gives(tmp_path, sources, small_blocks, source, suffix):
    path, roles = sources[0] / f"a.{source}", {"identifier": "who", "labels": "class"}
    scan, titles = scan_table(path, **roles), {"identifier_name": "who"}
    write_table(tmp_path / f"a.{suffix}", open_table(path, **roles), KEPT, **titles)
    write_table(tmp_path / f"b.{suffix}", scan, KEPT, **titles)
    if suffix in ("csv", "tsv"):
        assert len({(tmp_path / f"{name}.{suffix}").read_bytes() for name in "ab"}) == 1
        return
    read = pl.read_parquet if suffix == "parquet" else pl.read_ipc
    whole, found = (read(tmp_path / f"{name}.{suffix}") for name in "ab")
    assert found.schema == whole.schema
    assert found.equals(whole)
    kinds = [whole.schema[name] for name in ("flag", "count", "gap", "single")]
    if source != "csv":
        assert kinds == [pl.Boolean, pl.Int64, pl.Int16, pl.Float32]
        assert whole.equals(sources[1].rename({"class": "label"}).select(whole.columns))


def full_cells(layout):
    """An AnnData object with something in every place."""
    counts = np.random.default_rng(0).poisson(0.8, size=(30, 12))
    stored = counts if layout == "array" else sp.csr_matrix(counts).asformat(layout)
    kind = pd.Categorical(["t", "b", "t"] * 10, categories=["b", "t", "unused"])
    obs = pd.DataFrame({"kind": kind, "word": IDS}, index=[f"cell{at}" for at in range(30)])
    var = pd.DataFrame({"length": np.arange(12)}, index=[f"g{at}" for at in range(12)])
    full = anndata.AnnData(stored, obs=obs, var=var)
    full.raw = full.copy()
    full.layers["doubled"], full.obsm["pca"] = 2 * stored, counts[:, :3] / 3
    full.varm["PCs"], full.varp["near"] = counts[:12, :2] / 2, sp.csr_matrix(np.eye(12))
    full.obsp["near"], full.uns["note"] = sp.csr_matrix(np.eye(30)), {"text": "kept", "n": 3}
    return full


@pytest.mark.parametrize("layout", ["array", "csr", "csc"])
def test_an_anndata_file_keeps_all_but_the_other_variables(tmp_path, layout):
    path, names = tmp_path / "a.h5ad", ["g1", "g4", "g11"]
    full = full_cells(layout)
    full.write_h5ad(path, convert_strings_to_categoricals=False)
    write_table(path, open_table(path, drop=["g0"]), names[::-1], source=path, force=True)
    found, expected = anndata.read_h5ad(path), full[:, names].copy()
    pd.testing.assert_frame_equal(found.obs, full.obs)  # with a category that does not occur
    pd.testing.assert_frame_equal(found.var, expected.var)
    assert (found.raw.shape, found.uns["note"]["text"], found.uns["note"]["n"]) == (
        (30, 12),
        "kept",
        3,
    )
    for place in ("X", "layers/doubled", "obsm/pca", "varm/PCs", "varp/near", "obsp/near"):
        holder, _, name = place.partition("/")
        ours, theirs = (getattr(each, holder) for each in (found, expected))
        ours, theirs = (ours[name], theirs[name]) if name else (ours, theirs)
        assert (type(ours), ours.dtype) == (type(theirs), theirs.dtype)
        assert abs(ours - theirs).max() == 0
    table = open_table(path)
    with h5py.File(path, "r+") as file:
        file["uns/elsewhere"] = h5py.ExternalLink("b.h5ad", "/X")
    with pytest.raises(DataError, match="points to another file"):
        write_table(tmp_path / "c.h5ad", table, ["g1"], source=path)
    assert not (tmp_path / "c.h5ad").exists()


@pytest.mark.parametrize("name", ["a.docx", "a", "a.csv.gz", "a.mtx", "a.npz"])
def test_a_format_that_is_not_written_is_noticed_early(tmp_path, name):
    for write in (check_suffix, lambda path: write_table(path, MIXED, force=True)):
        with pytest.raises(ParameterError, match="suffix"):
            write(tmp_path / name)


def test_numbers_stored_as_text_and_formulas_are_read_back_as_they_were(tmp_path):
    words = ["-5", "+3", "=1+1", "-cmd|x", "@a"]
    frame = pl.DataFrame({"a": words})
    table = table_of(np.ones((5, 1)), ["x"], frame=frame, features=["x", "a"])
    for suffix in ("csv", "xlsx"):
        path = write_table(tmp_path / f"t.{suffix}", table)
        assert list(open_table(path).frame["a"]) == words
    cells = openpyxl.load_workbook(tmp_path / "t.xlsx").active["B"]
    assert {cell.data_type for cell in cells} == {"s"}, "text, not a formula"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
def test_a_full_disk_is_one_error_without_a_traceback(tmp_path, monkeypatch):
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: ignored.append(found.exc_value))
    frame = pl.DataFrame({"a": np.random.default_rng(0).normal(size=3000)})
    with pytest.raises(OSError, match="No space left on device"):
        writing._write_excel(frame, Path("/dev/full"))
    gc.collect()
    assert not ignored
