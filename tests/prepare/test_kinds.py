"""Kinds of columns: of well-known tables, of one column beside measurements, and as asked for."""

import uuid

import numpy as np
import pandas as pd
import pytest

from keepers.prepare.check import check_table
from keepers.prepare.kinds import ColumnKind, TableFacts, find_kinds
from keepers.prepare.preparer import TablePreparer
from keepers.tables.objects import table_of_object
from keepers.tables.opening import open_table
from people_tables import bikes, colleges, flights, gene_counts

N = 600
RNG = np.random.default_rng(0)


def kinds_of(frame, asked=None):
    return find_kinds(TableFacts.of(table_of_object(frame)), asked)


def names_by_kind(frame):
    found = {}
    for kind in kinds_of(frame).values():
        found.setdefault(kind.kind, []).append(kind.name)
    return {kind: sorted(names) for kind, names in found.items() if kind != "number"}


FLIGHTS = {"category": ["carrier", "origin"], "text": ["dest", "tailnum"], "date": ["time_hour"]}


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (flights(), FLIGHTS),
        (bikes(), {"identifier": ["instant"], "date": ["dteday"]}),
        (colleges(), {"identifier": ["Unnamed: 0"], "boolean": ["Private"]}),
    ],
)
def test_columns_of_well_known_tables(frame, expected):
    assert names_by_kind(frame) == expected
    aside = {name for kind in ("identifier", "date", "text") for name in expected.get(kind, ())}
    assert set(TablePreparer(missing="median").fit(frame).set_aside_) == aside
    said = str(check_table(frame))
    assert all(f"not used: {name!r} (" in said or f"), {name!r} (" in said for name in aside)


@pytest.mark.parametrize("order", ["as drawn", "rising"])
def test_genes_sensors_and_answers_are_numbers(order):
    counts = gene_counts(60, 1000)
    counts = np.sort(counts, axis=0) if order == "rising" else counts  # a time course
    names = [f"gene {at}" for at in range(counts.shape[1])]
    names[:5] = ["BID", "Grid1", "GRID", "HID", "NRKEY"]
    assert names_by_kind(pd.DataFrame(counts, columns=names)) == {}
    assert names_by_kind(pd.DataFrame(RNG.standard_normal((N, 8))).add_prefix("sensor ")) == {}
    assert names_by_kind(pd.DataFrame(RNG.integers(1, 6, (N, 10))).add_prefix("question ")) == {}


def moments(unit):
    times = pd.Timestamp("2019-05-01") + pd.to_timedelta(RNG.integers(0, 10**6, N), "s")
    return (times.to_numpy().astype(f"datetime64[{unit}]")).astype(np.int64)


DAYS = pd.Timestamp("2019-05-01") + pd.to_timedelta(RNG.integers(0, 500, N), "D")
CODES = [f"{code:05d}" for code in RNG.integers(501, 99950, N)]
SIZES = pd.Categorical(RNG.choice(["S", "M", "L"], N), ["S", "M", "L"], ordered=True)
COLUMNS = {
    # name: values, kind, part of a finding
    "account": (2**62 + RNG.permutation(N), "identifier", "beyond those that float64 holds"),
    "uuid": ([str(uuid.UUID(int=i * 7**30)) for i in range(N)], "identifier", "distinct text"),
    "zip": (RNG.integers(501, 99950, N), "identifier", "codes by name"),
    "postal_code": (CODES, "identifier", "leading zeros"),
    "customerId": (RNG.integers(10**6, 10**7, N), "identifier", "an identifier by name"),
    "order id": (RNG.integers(0, 5 * N, N), "identifier", "different integers, and an identifier"),
    "number": (RNG.permutation(N) + 1, "identifier", "distinct integers, 1 to 600, for 600 rows"),
    "steps": (np.arange(N) * 0.01, "identifier", "it counts the rows in even steps"),
    "falling": (np.arange(N) * -0.01, "identifier", "it counts the rows in even steps"),
    "millis": (moments("ms"), "date", "Unix time in ms, 2019-05-"),
    "nanos": (moments("ns"), "identifier", "beyond those that float64 holds"),
    "timestamp": (moments("s") + RNG.random(N), "date", "Unix time in s"),
    "digits": (DAYS.strftime("%Y%m%d").astype(int), "date", "YYYYMMDD"),
    "german": (DAYS.strftime("%d.%m.%Y"), "date", "dates as text"),
    "stamps": (DAYS, "date", "(dates)"),
    "spans": (DAYS - DAYS[0], "number", "Durations, read as seconds: 'spans'"),
    "free text": ([f"note {at % 400} of many" for at in range(N)], "text", "400 different values"),
    "prices": ([f"${v:,.2f}" for v in RNG.uniform(1, 9000, N)], "number", "stored as text"),
    "asks": ([str(v) if v % 9 else "?" for v in RNG.integers(1, 90, N)], "number", "'?' as miss"),
    "commas": ([f"{v:.1f}".replace(".", ",") for v in RNG.random(N)], "number", "decimal commas"),
    "answer": (RNG.choice(["yes", "no"], N), "boolean", "Yes or no, read as 1 and 0: 'answer'"),
    "size": (SIZES, "ordered", "Ordered, read as 0, 1, 2, ...: 'size'"),
    "colour": (RNG.choice(["red", "green", "blue"], N), "category", "text with 3 values"),
    "nothing": (np.full(N, np.nan), "empty", "Empty columns"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_one_column_beside_measurements(name):
    values, kind, said = COLUMNS[name]
    frame = pd.DataFrame({"a": RNG.standard_normal(N), name: values, "b": RNG.standard_normal(N)})
    assert kinds_of(frame)[name].kind == kind
    check = check_table(frame)
    sentences = [str(finding) for finding in check.findings if name in finding.columns]
    assert any(said in sentence for sentence in sentences), check
    if kind in ("identifier", "date", "text", "empty"):
        assert list(TablePreparer().fit(frame).set_aside_) == [name]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("population", np.unique(RNG.integers(10**4, 10**8, 4 * N))[: N // 2]),
        ("cumulated cases", np.cumsum(RNG.integers(1, 10**4, N))),
        *((name, RNG.permutation(np.arange(0, 60 * N, 60))) for name in ("uric acid", "valid")),
        ("intensity", RNG.uniform(1e9, 2e9, N)),
        ("few rows", np.arange(9)),
    ],
)
def test_distinct_integers_that_measure_stay_numbers(name, values):
    kind = kinds_of(pd.DataFrame({name: values, "b": RNG.standard_normal(len(values))}))[name]
    assert kind == ColumnKind(name, "number")


LONG = [10**17 + 1, 10**17 + 2, 10**17 + 3] * 14


@pytest.mark.parametrize("kind", [int, object, str])
def test_long_codes_with_few_values_are_categories(kind):
    frame = pd.DataFrame({"site": LONG, "x": RNG.normal(size=42)}).astype({"site": kind})
    assert kinds_of(frame)["site"].kind == "category"
    assert len(set(TablePreparer().fit(frame).transform(frame)["site"])) == 3


@pytest.mark.parametrize("suffix", ["csv", "parquet", "xlsx"])
def test_long_codes_of_files(tmp_path, suffix):
    frame = pd.DataFrame({"site": LONG, "x": RNG.normal(size=42)})
    path = tmp_path / f"t.{suffix}"
    if suffix == "xlsx":  # a number in a workbook has 15 digits
        frame.astype({"site": str}).to_excel(path, index=False)
    else:
        getattr(frame, f"to_{suffix}")(path, index=False)
    assert kinds_of(open_table(path))["site"].kind == "category"


@pytest.mark.parametrize(
    ("words", "numbers", "doubt"),
    [
        (["0,162", "2", "3", "-4"], [0.162, 2, 3, -4], ""),
        (["0,162", "1,234", "2", "3"], [0.162, 1.234, 2, 3], ""),
        (["1,234", "2", "3", "4"], [1234, 2, 3, 4], "'1,234' in 'a' as 1234"),
        (["1,234", "2.5", "3", "4"], [1234, 2.5, 3, 4], ""),
        (["1,234,567", "2", "3", "4"], [1234567, 2, 3, 4], ""),
    ],
)
def test_a_column_has_one_decimal_mark_and_doubt_is_said(words, numbers, doubt):
    frame = pd.DataFrame({"a": words * 5, "x": RNG.normal(size=20)})
    preparer = TablePreparer().fit(frame)
    np.testing.assert_allclose(preparer.transform(frame)["a"][:4], numbers)
    assert doubt in "".join(preparer.notes_)
    assert bool(doubt) == (" as 1234" in "".join(preparer.notes_))


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["At home", None, None, "At home"], "tick"),
        ([1.0, None, None, 1.0], "tick"),
        ([True, None, None, True], "tick"),
        (["yes", None, None, "yes"], "tick"),
        (["Atlantis"] * 4, "category"),
        ([2.5, None, None, 2.5], "number"),
        (["tea", "milk", "tea, milk", None], "choices"),
        (["tea; milk", "milk", "tea", "milk; sugar", "tea; sugar"], "choices"),
        (["1", "2,3", "1,2,3", "3"], "choices"),
        (["Rome, Italy", "Lima, Peru", "Oslo, Norway", "Rome, Italy"], "category"),
        (["1,5", "2,5", "3", "4"], "number"),
    ],
)
def test_tick_boxes_and_several_answers(cells, kind):
    column = pd.Series(cells * 10, dtype=object)
    frame = pd.DataFrame({"a": column, "x": RNG.normal(size=len(column))})
    assert kinds_of(frame)["a"].kind == kind
    if kind == "tick":
        preparer = TablePreparer().fit(frame)
        np.testing.assert_array_equal(preparer.transform(frame)["a"], column.notna())
        assert "blank is no: 'a'" in "".join(preparer.notes_)
        assert not [
            f for f in check_table(frame).findings if f.about in ("gaps", "constant columns")
        ]
