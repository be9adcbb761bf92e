"""What columns of well-known tables are taken for, and what is said of it."""

import uuid

import numpy as np
import pandas as pd
import pytest

from keepers import TablePreparer, check_table
from keepers.data.mixed import as_mixed_table
from keepers.preparation.column_kinds import (
    ColumnKind,
    as_number,
    as_seconds,
    as_truth,
    count_gaps,
    find_kinds,
)
from keepers.preparation.facts import MOST_ROWS, TableFacts
from people_tables import bikes, colleges, flights, gene_counts

N = 600
RNG = np.random.default_rng(0)


def kinds_of(frame, asked=None):
    return {k.name: k for k in find_kinds(TableFacts.of(as_mixed_table(frame)), asked)}


def names_by_kind(frame):
    found = {}
    for kind in kinds_of(frame).values():
        found.setdefault(kind.kind, []).append(kind.name)
    return {kind: sorted(names) for kind, names in found.items() if kind != "number"}


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (
            flights(),
            {
                "category": ["carrier", "origin"],
                "text": ["dest", "tailnum"],
                "date": ["time_hour"],
            },
        ),
        (bikes(), {"identifier": ["instant"], "date": ["dteday"]}),
        (colleges(), {"identifier": ["Unnamed: 0"], "boolean": ["Private"]}),
    ],
)
def test_columns_of_well_known_tables(frame, expected):
    assert names_by_kind(frame) == expected
    said = str(check_table(frame))
    for kind in ("identifier", "date", "text"):
        for name in expected.get(kind, ()):
            assert f"set aside: {name!r} (" in said or f"), {name!r} (" in said
    preparer = TablePreparer(missing="median").fit(frame)
    aside = {*expected.get("identifier", ()), *expected.get("date", ()), *expected.get("text", ())}
    assert set(preparer.set_aside_) == aside


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("order", ["as drawn", "rising"])
def test_no_gene_is_an_identifier(seed, order):
    counts = gene_counts(seed=seed)
    if order == "rising":  # a time course
        counts = np.sort(counts, axis=0)
    names = [f"gene {at}" for at in range(counts.shape[1])]
    names[:5] = ["BID", "Grid1", "GRID", "HID", "NRKEY"]
    assert names_by_kind(pd.DataFrame(counts, columns=names)) == {}


def test_sensors_and_answers_are_numbers():
    sensors = pd.DataFrame(RNG.standard_normal((N, 8))).add_prefix("sensor ")
    answers = pd.DataFrame(RNG.integers(1, 6, (N, 10))).add_prefix("question ")
    assert names_by_kind(sensors) == {}
    assert names_by_kind(answers) == {}


def moments(unit):
    start = pd.Timestamp("2019-05-01")
    times = start + pd.to_timedelta(RNG.integers(0, 10**6, N), "s")
    return (times.to_numpy().astype(f"datetime64[{unit}]")).astype(np.int64)


DATES = pd.Timestamp("2019-05-01") + pd.to_timedelta(RNG.integers(0, 500, N), "D")
COLUMNS = {
    # name: values, kind, what is said
    "account": (2**62 + RNG.permutation(N), "identifier", "beyond those that float64 holds"),
    "uuid": ([str(uuid.UUID(int=i * 7**30)) for i in range(N)], "identifier", "distinct text"),
    "zip": (RNG.integers(501, 99950, N), "identifier", "codes, as its name says"),
    "postal_code": (
        [f"{code:05d}" for code in RNG.integers(501, 99950, N)],
        "identifier",
        "zeros in front",
    ),
    "customerId": (RNG.integers(10**6, 10**7, N), "identifier", "its name says so"),
    "order id": (RNG.integers(0, 5 * N, N), "identifier", "different integers, and its name"),
    "number": (RNG.permutation(N) + 1, "identifier", "distinct integers, 1 to 600, for 600 rows"),
    "seconds": (moments("s"), "date", "Unix time in s, 2019-05-"),
    "millis": (moments("ms"), "date", "Unix time in ms, 2019-05-"),
    "micros": (moments("us"), "date", "Unix time in us, 2019-05-"),
    "nanos": (moments("ns"), "date", "Unix time in ns, 2019-05-"),
    "timestamp": (moments("s") + RNG.random(N), "date", "Unix time in s"),
    "digits": (DATES.strftime("%Y%m%d").astype(int), "date", "YYYYMMDD"),
    "iso": (DATES.strftime("%Y-%m-%d"), "date", "dates as text"),
    "iso with time": (DATES.strftime("%Y-%m-%d %H:%M:%S+00:00"), "date", "dates as text"),
    "german": (DATES.strftime("%d.%m.%Y"), "date", "dates as text"),
    "american": (DATES.strftime("%m/%d/%y %I:%M %p"), "date", "dates as text"),
    "words": (DATES.strftime("%d-%b-%Y"), "date", "dates as text"),
    "long words": (DATES.strftime("%B %d, %Y"), "date", "dates as text"),
    "stamps": (DATES, "date", "(dates)"),
    "zoned": (DATES.tz_localize("Europe/Rome"), "date", "(dates)"),
    "free text": ([f"note {at % 400} of many" for at in range(N)], "text", "400 different values"),
    "prices": ([f"${v:,.2f}" for v in RNG.uniform(1, 9000, N)], "number", "stored as text"),
    "shares": ([f"{v} %" for v in RNG.integers(0, 100, N)], "number", "stored as text"),
    "questions": (
        [str(v) if v % 9 else "?" for v in RNG.integers(1, 90, N)],
        "number",
        "'?' as gaps",
    ),
    "answer": (RNG.choice(["yes", "no"], N), "boolean", "Yes or no, as 1 and 0: 'answer'"),
    "size": (
        pd.Categorical(RNG.choice(["S", "M", "L"], N), ["S", "M", "L"], ordered=True),
        "ordered",
        "Ordered, as 0, 1, 2, ...: 'size'",
    ),
    "colour": (RNG.choice(["red", "green", "blue"], N), "category", "text with 3 values"),
    "nothing": (np.full(N, np.nan), "empty", "without a value"),
    "no words": ([None] * N, "empty", "without a value"),
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
        ("population", RNG.permutation(np.unique(RNG.integers(10**4, 10**8, N)))),
        ("cumulated cases", np.cumsum(RNG.integers(1, 10**4, N))),
        ("uric acid", RNG.permutation(np.arange(0, 60 * N, 60))),
        ("heat index", RNG.permutation(np.arange(0, 60 * N, 60))),
        ("valid", RNG.permutation(np.arange(0, 60 * N, 60))),
        ("intensity", RNG.uniform(1e9, 2e9, N)),
    ],
)
def test_distinct_integers_that_measure_stay_numbers(name, values):
    kind = kinds_of(pd.DataFrame({name: values, "b": RNG.standard_normal(len(values))}))[name]
    assert kind == ColumnKind(name, "number")


@pytest.mark.parametrize("seed", range(8))
def test_of_many_rows_those_drawn_differ_by_chance(seed):
    n = 200 * MOST_ROWS
    rng = np.random.default_rng(seed)
    facts = TableFacts(["measured", "numbered"])
    facts.add(np.column_stack([rng.integers(0, n, n), rng.permutation(n)]).astype(float))
    measured, numbered = find_kinds(facts)
    assert measured.kind == "number"
    assert numbered.kind == "identifier"


def test_even_steps_count_the_rows():
    frame = pd.DataFrame({"t": np.arange(N) * 0.01, "x": RNG.standard_normal(N)})
    assert kinds_of(frame)["t"].why == "it counts the rows in even steps"


def test_few_rows_tell_nothing():
    frame = pd.DataFrame({"a": range(9), "b": np.linspace(0, 1, 9)})
    assert names_by_kind(frame) == {}


def test_what_the_user_says_overrules():
    frame = flights()
    asked = {"time_hour": "number", "flight": "category", "origin": "drop", "carrier": "boolean"}
    kinds = kinds_of(frame, asked)
    assert {name: kinds[name].kind for name in asked} == asked
    assert all(kinds[name].asked for name in asked)
    assert kinds["time_hour"].words_as_gaps == ()
    assert set(kinds["carrier"].words_as_gaps) == set(frame["carrier"])


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("$1,234.50", 1234.5),
        ("-$5", -5.0),
        ("12 %", 12.0),
        ("1 234 567", 1234567.0),
        ("1'000", 1000.0),
        ("5 €", 5.0),
        (" 1e3 ", 1000.0),
        ("1,23", None),
        ("about 3", None),
        ("1e999", None),
        ("$" + " " * 100_000 + "x", None),
        ("", None),
        ("٣", None),
    ],
)
def test_words_that_spell_numbers(word, number):
    assert as_number(word) == number


@pytest.mark.parametrize(
    "word", ["2013-01-01T05:00:00Z", "2013-01-01 05:00", "2013/01/01", "2013-01-01T05:00:00+02:00"]
)
def test_words_that_spell_moments_do_so_as_in_pandas(word):
    assert as_seconds(word) == pd.to_datetime(word, utc=True).timestamp()


@pytest.mark.parametrize("word", ["now", "today", "NaT", "2/1/1970", "2013", "2013-13-01", ""])
def test_other_words_spell_no_moment(word):
    assert as_seconds(word) is None


def test_words_that_say_yes_and_no():
    assert [as_truth(word) for word in ("Yes", " t", "NO", "f")] == [1, 1, 0, 0]
    assert np.isnan(as_truth("maybe"))


def test_gaps_are_counted_among_features_only():
    frame = pd.DataFrame(
        {
            "id": [f"name {at}" if at % 2 else None for at in range(100)],
            "a": np.where(np.arange(100) < 10, np.nan, 1.5 + np.arange(100) % 7),
            "b": ["?" if 5 <= at < 20 else str(at % 5) for at in range(100)],
        }
    )
    facts = TableFacts.of(as_mixed_table(frame))
    counts = count_gaps(facts, find_kinds(facts))
    assert dict(counts.by_column) == {"a": 10, "b": 15}
    assert counts.n_rows == 20
