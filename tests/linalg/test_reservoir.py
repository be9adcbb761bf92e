"""Rows drawn in one pass: uniformly, and the same ones however the rows come."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from keepers._protocols import RowBlock
from keepers.linalg.ordering import (
    GOLDEN_RATIO,
    drawn_rows,
    largest_drawn_key,
    mix,
)
from keepers.linalg.sums import NotFiniteError, RowReservoir

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


def test_a_block_without_a_start_follows_the_one_before():
    blocks = blocks_of(X, [300, 700])
    first = drawn(blocks[:1])
    rest = drawn([blocks[1], RowBlock(blocks[2].values, "rows")])
    first.merge(rest)
    the_same(first, drawn(blocks))


# What is held


@pytest.mark.parametrize("n_rows", [N_SAMPLES, N_SAMPLES + 1, 5 * N_SAMPLES])
def test_a_short_table_is_drawn_whole_and_in_order(n_rows):
    found = drawn(blocks_of(X, [11, 500]), n_rows)
    np.testing.assert_array_equal(found.rows(), X)
    np.testing.assert_array_equal(drawn_rows(N_SAMPLES, n_rows, 3), np.arange(N_SAMPLES))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_sparse_rows_stay_sparse(kind):
    sparse = kind(X * (np.abs(X) > 1))
    found = drawn(blocks_of(sparse, [100, 900])).rows()
    assert sp.issparse(found)
    assert found.format == "csr"
    np.testing.assert_array_equal(found.toarray(), sparse.toarray()[drawn_rows(N_SAMPLES, 50, 0)])


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


def test_the_numbers_are_those_of_splitmix64():
    # Rosetta Code, "Pseudo-random numbers/Splitmix64", seed 1234567.
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    states = np.uint64(1234567) + np.arange(1, 6, dtype=np.uint64) * GOLDEN_RATIO
    assert mix(states).tolist() == expected
