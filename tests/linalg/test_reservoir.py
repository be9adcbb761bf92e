"""Rows drawn in one pass: uniformly, and the same ones however the rows come."""

import itertools
import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from keepers._protocols import RowBlock
from keepers.exceptions import DataError
from keepers.linalg.reservoir import RowReservoir, drawn_rows, largest_drawn_key, row_keys
from keepers.linalg.sums import NotFiniteError

N_SAMPLES = 1000
X = np.random.default_rng(0).standard_normal((N_SAMPLES, 3))


def blocks_of(values, cuts=()):
    edges = [0, *cuts, values.shape[0]]
    return [
        RowBlock(values[start:stop], f"rows {start + 1} to {stop}", start=start)
        for start, stop in itertools.pairwise(edges)
    ]


def drawn(blocks, n_rows=50, seed=0, **options):
    total = RowReservoir(n_rows, seed, **options)
    for block in blocks:
        total.add(block)
    return total


def the_same(found, expected):
    """Nothing was computed: equal to the last bit."""
    np.testing.assert_array_equal(found.numbers, expected.numbers)
    np.testing.assert_array_equal(found.rows(), expected.rows())
    assert found.n_samples == expected.n_samples


# Uniform


def test_every_row_is_drawn_as_often_as_any_other():
    n_samples, n_rows, n_draws = 60, 7, 3000
    counts = np.zeros(n_samples)
    for seed in range(n_draws):
        counts[drawn_rows(n_samples, n_rows, seed)] += 1
    # Of draws without replacement the statistic is smaller by (n - k) / (n - 1).
    expected = n_draws * n_rows / n_samples
    statistic = ((counts - expected) ** 2 / expected).sum() * (n_samples - 1) / (n_samples - n_rows)
    assert 0.001 < stats.chi2.sf(statistic, n_samples - 1) < 0.999


def test_every_set_of_rows_is_drawn_as_often_as_any_other():
    sets = dict.fromkeys(itertools.combinations(range(7), 3), 0)
    for seed in range(7000):
        sets[tuple(drawn_rows(7, 3, seed).tolist())] += 1
    assert stats.chisquare(list(sets.values())).pvalue > 0.001


def test_one_draw_spreads_over_a_long_table_like_uniform_numbers():
    rows = drawn_rows(3_000_000, 20_000, seed=1)
    assert stats.kstest((rows + 0.5) / 3_000_000, "uniform").pvalue > 0.001
    gaps = np.diff(rows)
    edges = np.append(0, stats.geom.ppf(np.arange(1, 10) / 10, 20_000 / 3_000_000))
    shares = np.diff(np.append(stats.geom.cdf(edges, 20_000 / 3_000_000), 1.0))
    counts = np.histogram(gaps, np.append(edges + 0.5, np.inf))[0]
    assert stats.chisquare(counts, shares * len(gaps)).pvalue > 0.001


def test_near_seeds_draw_unrelated_rows():
    first, second = (set(drawn_rows(10_000, 1000, seed).tolist()) for seed in (0, 1))
    # Rows in common of two independent draws: hypergeometric.
    common = stats.hypergeom(10_000, 1000, 1000)
    assert common.ppf(0.001) < len(first & second) < common.ppf(0.999)


def test_no_two_rows_have_the_same_key():
    assert len(np.unique(row_keys(np.arange(200_000), seed=5))) == 200_000


# The same rows


@settings(max_examples=60, deadline=None)
@given(
    cuts=st.sets(st.integers(1, N_SAMPLES - 1), max_size=30),
    n_rows=st.integers(1, N_SAMPLES + 5),
    seed=st.integers(0, 2**63),
    known=st.booleans(),
)
def test_blocks_of_any_size_give_the_rows_of_the_table(cuts, n_rows, seed, known):
    rows = drawn_rows(N_SAMPLES, n_rows, seed)
    largest_key = largest_drawn_key(N_SAMPLES, n_rows, seed) if known else None
    found = drawn(blocks_of(X, sorted(cuts)), n_rows, seed, largest_key=largest_key)
    np.testing.assert_array_equal(found.numbers, rows)
    np.testing.assert_array_equal(found.rows(), X[rows])
    assert found.n_samples == N_SAMPLES


def test_sums_are_merged_in_any_order_and_grouping():
    blocks = blocks_of(X, [1, 10, 200, 640, 641])
    expected = drawn(blocks)
    for order in itertools.permutations(range(3)):
        parts = [drawn(blocks[at::3]) for at in order]  # as threads share blocks
        total = RowReservoir(50, 0)
        for part in parts:
            total.merge(part)
        the_same(total, expected)


def test_merging_leaves_the_other_sum_as_it_was():
    halves = [drawn(blocks) for blocks in (blocks_of(X, [500])[:1], blocks_of(X, [500])[1:])]
    for _ in range(2):  # a task of Dask may run again
        total = RowReservoir(50, 0)
        for half in halves:
            total.merge(half)
        the_same(total, drawn(blocks_of(X)))


def test_blocks_without_a_start_follow_each_other():
    blocks = [RowBlock(block.values, block.origin) for block in blocks_of(X, [3, 700])]
    the_same(drawn(blocks), drawn(blocks_of(X)))


def test_a_block_without_a_start_follows_the_one_before():
    blocks = blocks_of(X, [300, 700])
    first = drawn(blocks[:1])
    rest = drawn([blocks[1], RowBlock(blocks[2].values, "rows")])
    first.merge(rest)
    the_same(first, drawn(blocks))


def test_sums_of_blocks_without_a_start_cannot_be_merged():
    halves = [drawn([RowBlock(half, "rows")]) for half in (X[:500], X[500:])]
    with pytest.raises(DataError, match=r"in order to one sum .* start="):
        halves[0].merge(halves[1])


def test_a_sum_that_travels_holds_no_more_than_the_rows_drawn():
    found = drawn(blocks_of(X, range(60, N_SAMPLES, 60)))
    pieces, held = found._pieces, len(found._pieces)
    copy = pickle.loads(pickle.dumps(found))
    assert found._pieces is pieces  # another thread may be merging them
    assert len(pieces) == held > 1
    the_same(copy, drawn(blocks_of(X)))
    assert len(pickle.dumps(found)) < 50 * (3 + 2) * 8 + 1500


# What is held


@pytest.mark.parametrize("n_rows", [N_SAMPLES, N_SAMPLES + 1, 5 * N_SAMPLES])
def test_a_short_table_is_drawn_whole_and_in_order(n_rows):
    found = drawn(blocks_of(X, [11, 500]), n_rows)
    np.testing.assert_array_equal(found.rows(), X)
    np.testing.assert_array_equal(drawn_rows(N_SAMPLES, n_rows, 3), np.arange(N_SAMPLES))


def test_a_table_without_rows_gives_none():
    assert len(drawn_rows(0, 5, 0)) == 0


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_sparse_rows_stay_sparse(kind):
    sparse = kind(X * (np.abs(X) > 1))
    found = drawn(blocks_of(sparse, [100, 900])).rows()
    assert sp.issparse(found)
    assert found.format == "csr"
    np.testing.assert_array_equal(found.toarray(), sparse.toarray()[drawn_rows(N_SAMPLES, 50, 0)])


def test_blocks_are_not_held_and_single_precision_stays():
    values = X.astype(np.float32)
    found = drawn(blocks_of(values, [40]), N_SAMPLES)
    assert found.rows().dtype == np.float32
    assert not any(np.shares_memory(piece, values) for piece in found._pieces)


def test_few_rows_are_copied_and_only_those_drawn_where_the_number_of_rows_is_known():
    copied = []

    class Rows(np.ndarray):
        def __getitem__(self, which):
            copied.append(len(which))
            return np.asarray(self)[which]

    values = np.zeros((1000, 1)).view(Rows)
    blocks = [RowBlock(values, "rows", start=start) for start in range(0, 200_000, 1000)]
    drawn(blocks, n_rows=100)
    assert sum(copied) < 1.5 * 100 * np.log2(200_000 / 100)
    copied.clear()
    drawn(blocks, n_rows=100, largest_key=largest_drawn_key(200_000, 100, 0))
    assert sum(copied) == 100


# Values that are not finite


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("store", [np.asarray, np.asfortranarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_value_that_is_not_finite_is_refused_in_a_row_that_is_not_drawn(bad, store, dtype):
    values = X.astype(dtype)
    row = np.setdiff1d(np.arange(500, N_SAMPLES), drawn_rows(N_SAMPLES, 50, 0))[0]
    values[row, 1] = bad
    with pytest.raises(NotFiniteError, match=r"rows 501 to 1000 holds NaN .*: 1 \(1\)"):
        drawn(blocks_of(store(values), [500]))


def test_large_finite_values_are_no_fault():
    values = np.full((100, 2), 3e38, dtype=np.float32)
    np.testing.assert_array_equal(drawn(blocks_of(values), 100).rows(), values)


def test_a_sum_is_made_by_name_on_a_worker():
    begin = pickle.loads(pickle.dumps(partial(RowReservoir, 5, 0)))
    assert begin().n_bytes == float("inf")
