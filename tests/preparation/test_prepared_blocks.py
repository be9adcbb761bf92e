"""A table in blocks, prepared on the way, is the table prepared in memory."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers import SPCAFS, AutoSelector, TablePreparer
from keepers.data.mixed import as_mixed_table
from keepers.data.table import LabelledTable
from keepers.data.table_files import open_blocks, open_table
from keepers.exceptions import DataError
from keepers.preparation.prepared_blocks import (
    PreparedBlocks,
    learn_from_blocks,
    learn_from_table,
)
from keepers.preparation.table_check import check_facts, check_table


def people(n=3000, seed=0):
    """Gaps, an id beyond 2**53, categories of text and of an order, yes and no, a date."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "account": 2**62 + np.arange(n) * 7,
            "name": [f"person {at}" for at in rng.permutation(n)],
            "town": np.array(["Rome", "Oslo", "Lima", "Bern"])[(group + (rng.random(n) < 0.1)) % 4],
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
            "member": rng.choice(["yes", "no"], n),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "count": rng.poisson(20, n),
        }
    )
    for j in range(8):
        signal = group * (2.0 if j < 4 else 0.0) * (-1) ** j
        frame[f"x{j}"] = 10.0 * j + signal + rng.standard_normal(n)
        frame.loc[rng.random(n) < 0.05, f"x{j}"] = np.nan
    frame.loc[rng.random(n) < 0.05, "town"] = None
    return frame


FEATURES = ["town", "size", "member", "count", *(f"x{j}" for j in range(8))]


def write_parts(frame, folder, suffix, n_parts=4):
    for part, rows in enumerate(np.array_split(np.arange(len(frame)), n_parts)):
        some = frame.iloc[rows]
        path = folder / f"part-{part}.{suffix}"
        if suffix == "parquet":
            some.to_parquet(path, index=False, row_group_size=200)
        else:
            some.to_csv(path, index=False)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parquet")
    write_parts(people(), folder, "parquet")
    return folder


def learn(folder):
    return learn_from_blocks(open_blocks(folder, mixed=True))


def stacked(blocks):
    return np.vstack([block.values for block in blocks.blocks()])


def both_ways(folder, frame, **settings):
    """Blocks of the folder and the frame, each prepared by a fit of its own."""
    learned = learn(folder)
    preparer = TablePreparer(**settings).fit_facts(learned.facts)
    blocks = PreparedBlocks(learned.source, preparer, is_fitted_table=True)
    in_memory = TablePreparer(**settings).fit(frame)
    return blocks, in_memory.prepare(as_mixed_table(frame), first_row=0)


@pytest.mark.parametrize("missing", ["mean", "median", "model", "drop-rows"])
def test_parquet_in_blocks_is_the_table_in_memory(parquet, missing):
    blocks, table = both_ways(parquet, people(), missing=missing)
    assert list(blocks.feature_names) == table.feature_names.tolist() == FEATURES
    np.testing.assert_allclose(stacked(blocks), table.X, rtol=1e-10, atol=1e-10)
    chosen = np.array([5, 0, 7])
    some = np.vstack([block.values for block in blocks.blocks(chosen)])
    np.testing.assert_allclose(some, table.X[:, chosen], rtol=1e-10, atol=1e-10)
    assert blocks.n_samples == (None if missing == "drop-rows" else 3000)


def test_the_same_is_said_of_blocks_and_of_the_table(parquet):
    learned = learn(parquet)
    found = check_facts(learned.facts, learned.sample)
    expected = check_table(people(), name=learned.source.name)
    assert str(found) == str(expected)
    assert set(learned.facts.texts) == {"account", "name", "town", "size", "member", "day"}


@pytest.mark.parametrize("n_parts", [1, 3, 20])
@pytest.mark.parametrize("missing", ["mean", "drop-rows"])
def test_parts_cover_all_rows_and_are_the_same_numbers(parquet, n_parts, missing):
    blocks, table = both_ways(parquet, people(), missing=missing)
    parts = [pickle.loads(pickle.dumps(part)) for part in blocks.parts(n_parts)]
    found = np.vstack([stacked(part) for part in parts])
    np.testing.assert_allclose(found, table.X, rtol=1e-10, atol=1e-10)
    again = stacked(pickle.loads(pickle.dumps(blocks)))
    np.testing.assert_allclose(again, table.X, rtol=1e-10, atol=1e-10)


def test_parts_of_text_files_keep_the_place_of_every_row(tmp_path):
    frame = people(400).drop(columns="size")
    write_parts(frame, tmp_path, "csv")
    blocks, table = both_ways(tmp_path, frame, missing="mean")
    found = np.vstack([stacked(part) for part in blocks.parts(4)])
    np.testing.assert_allclose(found, table.X, rtol=1e-10, atol=1e-10)
    plain = TablePreparer(missing="mean", kinds={"town": "drop"}).fit_facts(learn(tmp_path).facts)
    assert len(PreparedBlocks(learn(tmp_path).source, plain, is_fitted_table=True).parts(4)) == 4


def test_rows_that_were_not_fitted_get_the_numbers_of_new_rows(parquet):
    learned = learn(parquet)
    preparer = TablePreparer(missing="mean").fit_facts(learned.facts)
    found = stacked(PreparedBlocks(learned.source, preparer))
    np.testing.assert_allclose(found, preparer.transform(people()), rtol=1e-10, atol=1e-10)


def test_a_column_that_is_text_only_in_the_second_file(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(600), "b": rng.integers(0, 90, 600).astype(str)})
    frame["c"] = "7"
    frame.loc[300:, "b"] = np.where(np.arange(300) % 10, frame.loc[300:, "b"], "?")
    frame.loc[450:, "c"] = "seven"
    write_parts(frame, tmp_path, "csv", n_parts=2)
    blocks, table = both_ways(tmp_path, frame, missing="mean")
    np.testing.assert_allclose(stacked(blocks), table.X, rtol=1e-10)
    assert list(blocks.feature_names) == ["a", "b", "c"]


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_column_that_is_text_only_after_two_megabytes(tmp_path, in_parts):
    n = 120_000
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(n).round(12), "b": rng.integers(0, 90, n)})
    frame["b"] = frame["b"].astype(object)
    frame.loc[n - 5, "b"] = "?"
    write_parts(frame, tmp_path, "csv", n_parts=1 + in_parts)
    assert (tmp_path / "part-0.csv").stat().st_size > 2**20
    learned = learn(tmp_path)
    assert set(learned.facts.texts) == {"b"}
    preparer = TablePreparer(missing="mean").fit_facts(learned.facts)
    found = stacked(PreparedBlocks(learned.source, preparer, is_fitted_table=True))
    numbers = pd.to_numeric(frame["b"], errors="coerce")
    np.testing.assert_allclose(found[:, 1], numbers.fillna(numbers.mean()), rtol=1e-10)
    np.testing.assert_allclose(found[:, 0], frame["a"])
    if not in_parts:
        table = open_table(tmp_path / "part-0.csv", mixed=True)
        assert [column.name for column in table.others] == ["b"]


def test_a_column_without_values_in_one_parquet_file(tmp_path):
    frame = pd.DataFrame({"a": np.arange(40) % 7 * 1.5, "k": [None] * 20 + ["p", "q"] * 10})
    write_parts(frame, tmp_path, "parquet", n_parts=2)
    learned = learn(tmp_path)
    assert learned.facts.texts["k"].n_missing == 20
    assert dict(learned.facts.texts["k"].counts) == {"p": 10, "q": 10}


def test_files_may_have_their_columns_in_another_order(tmp_path):
    frame = people(400).drop(columns="size")
    write_parts(frame, tmp_path, "csv", n_parts=2)
    last = frame.iloc[200:][list(reversed(frame.columns))]
    last.to_csv(tmp_path / "part-1.csv", index=False)
    blocks, table = both_ways(tmp_path, frame, missing="mean")
    np.testing.assert_allclose(stacked(blocks), table.X, rtol=1e-10, atol=1e-10)


def test_a_table_in_memory_is_learned_from_like_blocks():
    frame = people(500)
    table = as_mixed_table(frame)
    learned = learn_from_table(table)
    preparer = TablePreparer(missing="mean").fit_facts(learned.facts)
    blocks = PreparedBlocks(learned.source, preparer, is_fitted_table=True)
    expected = preparer.prepare(table, first_row=0)
    np.testing.assert_allclose(stacked(blocks), expected.X)
    assert learned.sample.n_samples == 500


def test_sparse_blocks_stay_sparse_and_single_precision_single():
    names = np.array(["a", "b"], dtype=object)
    X = sp.csr_matrix([[1.5, 0.0], [0.0, 2.0], [3.0, 4.5]])
    for values in (X, X.toarray().astype(np.float32)):
        learned = learn_from_table(LabelledTable(values, names))
        preparer = TablePreparer(missing="mean").fit_facts(learned.facts)
        blocks = PreparedBlocks(learned.source, preparer)
        (block,) = blocks.blocks()
        assert sp.issparse(block.values) == blocks.is_sparse == sp.issparse(values)
        assert block.values.dtype == blocks.dtype == values.dtype


def test_leaving_out_all_rows_is_an_error(parquet):
    learned = learn(parquet)
    preparer = TablePreparer(missing="drop-rows", kinds={"day": "number"})
    preparer.fit_facts(learned.facts)
    table = as_mixed_table(people(50).assign(x0=np.nan))
    blocks = PreparedBlocks(learn_from_table(table).source, preparer)
    with pytest.raises(DataError, match="leaves none of 50"):
        stacked(blocks)


def test_gaps_that_nothing_was_learnt_to_fill_with_are_refused():
    frame = people(300).fillna({f"x{j}": 0.0 for j in range(8)} | {"town": "Rome"})
    preparer = TablePreparer().fit(frame)
    blocks = PreparedBlocks(learn_from_table(as_mixed_table(people(300))).source, preparer)
    with pytest.raises(DataError, match=r"'town' \(\d+\), 'x0' \(\d+\)"):
        stacked(blocks)


@pytest.mark.parametrize("selector", [AutoSelector(4), SPCAFS(4, scaling=1, random_state=0)])
@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_a_selection_from_blocks_is_that_of_the_table(parquet, selector):
    blocks, table = both_ways(parquet, people(), missing="mean")
    from_blocks = selector.fit_blocks(blocks).top().names.tolist()
    in_memory = selector.fit(table).top().names.tolist()
    assert sorted(from_blocks) == sorted(in_memory)
    assert len(from_blocks) == 4


@pytest.mark.parametrize("missing", ["mean", "drop-rows"])
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_prepared_blocks_after_some_rows_are_the_others(tmp_path, missing, suffix):
    """Numbers of categories depend on the place of a row, so it must be counted on."""
    write_parts(people(900), tmp_path, suffix)
    learned = learn_from_blocks(open_blocks(tmp_path, mixed=True))
    preparer = TablePreparer(missing=missing).fit_facts(learned.facts)
    table = PreparedBlocks(learned.source, preparer, is_fitted_table=True)
    blocks = [block.values for block in table.blocks()]
    assert len(blocks) >= 4
    for at in range(1, len(blocks)):
        n_rows = sum(len(block) for block in blocks[:at])
        rest = [block.values for block in table.blocks_after(n_rows)]
        np.testing.assert_array_equal(np.vstack(rest), np.vstack(blocks[at:]))
    assert table.blocks_after(10**6) is None
