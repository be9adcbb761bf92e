"""Sums over blocks against NumPy on the whole table."""

import itertools
import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from keepers._protocols import RowBlock
from keepers.exceptions import DataError
from keepers.linalg.sums import (
    MomentSum,
    NotFiniteError,
    ProductSum,
    RowCollection,
    ScatterSum,
    shift_to_mean,
)


def blocks_of(X, cuts):
    edges = [0, *cuts, X.shape[0]]
    return [
        RowBlock(X[start:stop], f"rows {start + 1} to {stop}")
        for start, stop in itertools.pairwise(edges)
    ]


def scatter_of(X):
    X = X.toarray() if sp.issparse(X) else X
    return (len(X) - 1) * np.cov(X.astype(np.float64), rowvar=False)


def summed(make, blocks):
    total = make()
    for block in blocks:
        total.add(block)
    return total


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.standard_normal((200, 7)) @ rng.standard_normal((7, 7)) + rng.standard_normal(7)


@pytest.mark.parametrize("store", [np.asarray, np.asfortranarray, sp.csr_array, sp.csr_matrix])
def test_the_scatter_of_blocks_is_that_of_the_table(X, store):
    total = summed(lambda: ScatterSum(7), blocks_of(store(X), [50, 51, 130]))
    np.testing.assert_allclose(total.scatter, scatter_of(X), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(total.moments.mean, X.mean(axis=0), rtol=1e-12)
    assert total.n_samples == 200


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_a_large_mean_costs_no_digits(X, store, offset):
    # The values are rounded at the offset once; what follows must not lose more.
    shifted = X + offset
    expected = scatter_of(shifted - offset)
    total = summed(lambda: ScatterSum(7), blocks_of(store(shifted), [50, 130]))
    scale = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
    assert np.max(np.abs(total.scatter - expected) / scale) < 1e-11
    moments = summed(lambda: MomentSum(7), blocks_of(store(shifted), [50, 130])).moments
    np.testing.assert_allclose(moments.sum_of_squares, expected.diagonal(), rtol=1e-11)


def test_means_that_drift_from_block_to_block_cost_no_digits(X):
    drifting = X + np.repeat([0.0, 1e6, -1e6, 5e5], 50)[:, np.newaxis]
    total = summed(lambda: ScatterSum(7), blocks_of(drifting, [50, 100, 150]))
    expected = np.cov(drifting, rowvar=False) * 199
    np.testing.assert_allclose(total.scatter, expected, rtol=1e-12)


def test_single_precision_is_added_up_in_double(X):
    rng = np.random.default_rng(2)
    table = (rng.standard_normal((40_000, 5)) + 1000).astype(np.float32)
    total = summed(lambda: ScatterSum(5), blocks_of(table, range(2000, 40_000, 2000)))
    expected = scatter_of(table)
    scale = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
    assert total.scatter.dtype == np.float64
    assert np.max(np.abs(total.scatter - expected) / scale) < 5e-7


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
    st.integers(0, 10_000),
    st.sampled_from([MomentSum, ScatterSum]),
)
def test_sums_merge_in_any_grouping(lengths, seed, make):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((sum(lengths), 3)) * 10 ** rng.uniform(-3, 3, 3) + rng.normal(0, 100, 3)
    blocks = blocks_of(X, np.cumsum(lengths)[:-1].tolist())
    cut = int(rng.integers(0, len(blocks) + 1))
    begin = partial(make, 3)
    one = summed(begin, blocks)
    other = summed(begin, blocks[:cut])
    other.merge(summed(begin, blocks[cut:]))
    for total in (one, other):
        moments = total.moments
        assert moments.n_samples == len(X)
        np.testing.assert_allclose(moments.mean, X.mean(axis=0), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(moments.variance, X.var(axis=0), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_products_of_blocks_are_those_of_the_table(X, store, offset):
    V = np.random.default_rng(3).standard_normal((7, 2))
    mean = (X + offset).mean(axis=0)
    blocks = blocks_of(store(X + offset), [60, 61])
    halves = [summed(lambda: ProductSum(mean, V, float), part) for part in (blocks[:1], blocks[1:])]
    halves[0].merge(halves[1])
    expected = scatter_of(X) @ V
    np.testing.assert_allclose(halves[0].product, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_rows_are_collected_in_order(X, store):
    rows = summed(RowCollection, blocks_of(store(X), [3, 77]))
    further = summed(RowCollection, blocks_of(store(-X), [5]))
    rows.merge(further)
    found = rows.stack()
    found = found.toarray() if sp.issparse(found) else found
    np.testing.assert_array_equal(found, np.vstack([X, -X]))


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("make", [MomentSum, ScatterSum])
def test_a_value_that_is_no_number_is_found_with_its_block_and_column(X, store, bad, make):
    X[60, 4] = bad
    with pytest.raises(NotFiniteError, match=r"rows 51 to 200 .*4 \(1\)") as caught:
        summed(lambda: make(7), blocks_of(store(X), [50]))
    assert isinstance(caught.value, DataError)
    assert "'e' (1)" in caught.value.with_names(list("abcdefg"))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_single_precision_sums_past_its_range_are_no_error():
    rows = shift_to_mean(RowBlock(np.full((1000, 2), 3e38, dtype=np.float32), "block 1"))
    np.testing.assert_allclose(rows.shift + rows.column_sums() / 1000, 3e38, rtol=1e-6)
