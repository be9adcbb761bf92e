"""DropUninformative: what is dropped and why, and that everything else is handed on as it was."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import VarianceThreshold
from sklearn.utils.estimator_checks import parametrize_with_checks

from keepers import DropUninformative
from keepers.datasets import LabelledTable
from keepers.exceptions import DataError

N_ROWS = 40


@parametrize_with_checks([DropUninformative()])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def people():
    """A table of many kinds of columns."""
    rng = np.random.default_rng(0)
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(N_ROWS)]
    return pd.DataFrame(
        {
            "row": np.arange(1, N_ROWS + 1),
            "passport": rng.permutation(10**6)[:N_ROWS],
            "name": [f"person {i}" for i in range(N_ROWS)],
            "height": rng.normal(170.0, 10.0, N_ROWS),
            "children": rng.integers(0, 4, N_ROWS),
            "born": pd.to_datetime(days),
            "colour": pd.Categorical(rng.choice(["red", "blue"], N_ROWS)),
            "planet": "earth",
            "remark": [None] * 30 + ["late"] * 5 + ["early"] * 5,
            "age": pd.array([None, *rng.integers(20, 60, N_ROWS - 1)], dtype="Int64"),
            "member": rng.integers(0, 2, N_ROWS).astype(bool),
        }
    )


DROPPED = {
    "row": "It counts the rows, in steps of 1.",
    "passport": "All its values are different integers, as those of an identifier.",
    "name": "It has another text in (nearly) every row, as a name has.",
    "planet": "All its values are the same, 'earth'.",
    "remark": "75% of its values are missing, more than 50%.",
}


@pytest.mark.parametrize(
    "as_frame",
    [lambda f: f, pl.from_pandas, lambda f: pa.Table.from_pandas(f, preserve_index=False)],
    ids=["pandas", "polars", "arrow"],
)
def test_a_frame_loses_columns_and_nothing_else(as_frame):
    given = as_frame(people())
    step = DropUninformative()
    out = step.fit_transform(given)
    assert step.reasons_ == DROPPED
    kept = [name for name in people().columns if name not in DROPPED]
    expected = given[kept] if isinstance(given, pd.DataFrame) else given.select(kept)
    assert type(out) is type(given)
    assert out.equals(expected)
    if isinstance(given, pd.DataFrame):
        pd.testing.assert_frame_equal(out, expected)
    assert list(step.get_feature_names_out()) == kept


def test_the_index_of_a_frame_survives_and_set_output_is_followed():
    given = people().set_index(pd.Index([f"r{i}" for i in range(N_ROWS)]))
    step = DropUninformative().fit(given)
    assert step.transform(given).index.equals(given.index)
    numbers = given[["row", "height", "children"]]
    step.set_output(transform="polars").fit(numbers)
    assert isinstance(step.transform(numbers), pl.DataFrame)
    step.set_output(transform="pandas").fit(numbers)
    pd.testing.assert_frame_equal(step.transform(numbers), numbers[["height", "children"]])
    out = step.transform(numbers.rename_axis(None))
    assert out.index.equals(given.index)


def test_rules_can_be_switched_off():
    frame = people()
    assert set(DropUninformative(all_distinct=False).fit(frame).reasons_) == {"planet", "remark"}
    assert "planet" not in DropUninformative(constant=False).fit(frame).reasons_
    assert "remark" not in DropUninformative(max_missing=0.75).fit(frame).reasons_
    assert "age" in DropUninformative(max_missing=0.0).fit(frame).reasons_


def test_constant_columns_are_those_that_scikit_learn_finds():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, size=(4, 200)) * rng.choice([1.0, 1e8, 1e-8], 200)
    expected = VarianceThreshold().fit(X).get_support()
    assert 0 < expected.sum() < 200
    for storage in (np.asarray, sp.csr_array, sp.csc_matrix):
        found = DropUninformative(all_distinct=False).fit(storage(X))
        np.testing.assert_array_equal(found.get_support(), expected)


def test_values_that_differ_by_rounding_are_the_same():
    X = np.column_stack([np.tile([0.3, 0.1 + 0.2], 10), np.linspace(0.0, 1.0, 20)])
    assert list(DropUninformative().fit(X).reasons_) == ["x0"]


@pytest.mark.parametrize(
    ("values", "dropped"),
    [
        (np.random.default_rng(0).normal(size=40), False),
        (np.linspace(0.0, 1.0, 40), False),
        (np.arange(100, 60, -1), True),
        (np.arange(0.0, 400.0, 10.0), True),
        (2**62 + np.arange(40, dtype=np.uint64), True),
        (np.random.default_rng(0).permutation(40), True),
        (np.append(np.random.default_rng(0).permutation(39), 0), False),
        (np.array([f"{i:03}" for i in range(40)]), True),
        (np.array([f"{i / 7:.4f}" for i in range(40)]), False),
        (np.array([b"%d" % i for i in range(40)]), True),
        (np.array([Decimal(i) / 7 for i in range(40)], dtype=object), False),
        (np.array([10**30 + i * i for i in range(40)], dtype=object), True),
        (np.array(["a", "b"] * 20), False),
        (np.array([[1], [2]] * 20 + [None], dtype=object)[:40], False),
        (np.arange("2024-01-01", "2024-02-10", dtype="datetime64[D]"), False),
        (np.array([True, False] * 20), False),
    ],
)
def test_what_is_an_identifier(values, dropped):
    frame = pd.DataFrame({"column": list(values), "other": np.sin(np.arange(40.0))})
    assert ("column" in DropUninformative().fit(frame).reasons_) == dropped


def test_texts_may_repeat_now_and_then_and_still_be_names():
    texts = [f"name {i}" for i in range(200)]
    other = np.sin(np.arange(200.0))
    for n_repeated, dropped in ((2, True), (5, False)):
        frame = pd.DataFrame({"a": texts[: 200 - n_repeated] + ["name 0"] * n_repeated, "b": other})
        assert ("a" in DropUninformative().fit(frame).reasons_) == dropped


def test_nothing_is_an_identifier_in_a_few_rows():
    frame = people()[:9]
    assert set(DropUninformative().fit(frame).reasons_) == {"planet", "remark"}


def test_in_a_table_of_counts_different_integers_are_no_identifiers():
    rng = np.random.default_rng(0)
    counts = np.array([rng.permutation(10**6)[:30] for _ in range(8)]).T
    X = np.column_stack([np.arange(30), counts])
    assert list(DropUninformative().fit(X).reasons_) == ["x0"]
    X = np.column_stack([counts[:, :2], rng.normal(size=(30, 2))])
    assert list(DropUninformative().fit(X).reasons_) == ["x0", "x1"]


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
def test_arrays_and_sparse_matrices_are_judged_alike(storage):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6)) * (rng.uniform(size=(30, 6)) < 0.4)
    X[:, 1], X[:, 2] = np.arange(30), 4.0
    X[:20, 3] = np.nan
    X[:, 4] = 0.0
    step = DropUninformative().fit(storage(X))
    assert list(step.reasons_) == ["x1", "x2", "x3", "x4"]
    out = step.transform(storage(X))
    assert type(out) is type(storage(X)) or sp.issparse(out)
    kept = out.toarray() if sp.issparse(out) else out
    np.testing.assert_array_equal(kept, X[:, [0, 5]])


def test_lists_of_mixed_rows_keep_their_numbers_apart_from_their_text():
    rows = [[i / 7, "red" if i % 2 else "blue", f"n{i}"] for i in range(20)]
    step = DropUninformative().fit(rows)
    assert list(step.reasons_) == ["x2"]
    assert step.transform(rows).tolist() == [row[:2] for row in rows]


def test_a_labelled_table_is_judged_by_its_names():
    X = np.column_stack([np.arange(20.0), np.sin(np.arange(20.0))])
    X[3, 1] = np.nan
    table = LabelledTable(X, np.array(["id", "wave"], dtype=object))
    step = DropUninformative().fit(table)
    assert list(step.reasons_) == ["id"]
    np.testing.assert_array_equal(step.transform(table), X[:, 1:])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: f[["planet", "row"]], "every column would be dropped"),
        (lambda f: f[:1], "at least two rows"),
        (lambda f: f[[]], "at least two rows and a column"),
        (lambda f: f.rename(columns={"row": "name"}), "must be unique"),
        (lambda f: np.ma.array(np.ones((3, 2)), mask=[[1, 0]] * 3), "masked entries"),
    ],
    ids=["nothing left", "one row", "no column", "names", "masked"],
)
def test_bad_tables_are_refused_in_a_sentence(spoil, message):
    step = DropUninformative()
    with pytest.raises(DataError, match=message):
        step.fit(spoil(people()))
    with pytest.raises(NotFittedError):
        step.transform(people())


def test_other_columns_are_refused():
    step = DropUninformative().fit(people())
    with pytest.raises(ValueError, match="feature names"):
        step.transform(people().rename(columns={"height": "weight"}))
    with pytest.raises(ValueError, match="feature"):
        step.transform(people().iloc[:, :3])
