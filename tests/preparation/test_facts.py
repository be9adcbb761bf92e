"""What one pass tells is what NumPy and pandas tell, however the rows are divided."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from keepers.data.columns import OtherColumn
from keepers.preparation.facts import MOST_LEVELS, MOST_ROWS, TableFacts


def facts_of(X, *cuts, others=()):
    """The facts of X, added in pieces."""
    facts = TableFacts([f"x{j}" for j in range(X.shape[1])])
    edges = [0, *sorted(cuts), X.shape[0]]
    for start, stop in pairwise(edges):
        beside = [
            OtherColumn(each.name, each.kind, each.values[start:stop], each.position)
            for each in others
        ]
        facts.add(X[start:stop], beside)
    return facts


def assert_alike(found, expected):
    for name in ("n_missing", "n_infinite", "minimum", "maximum", "whole"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    for name in ("n_rows", "n_zero_rows", "n_rows_with_gaps"):
        assert getattr(found, name) == getattr(expected, name), name
    np.testing.assert_allclose(found.means, expected.means, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.variances, expected.variances, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.sample_rows, expected.sample_rows)


def text(words, position=0, name="t"):
    values = np.empty(len(words), dtype=object)
    values[:] = words
    return OtherColumn(name, "text", values, position)


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e12])
def test_moments_are_those_of_pandas(offset):
    rng = np.random.default_rng(0)
    X = offset + rng.standard_normal((700, 6)) * [1, 1e-3, 1e3, 5, 1, 1]
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:600, 3] = np.nan  # no value in the first blocks
    frame = pd.DataFrame(X)
    centred = frame - frame.iloc[-1].where(frame.iloc[-1].notna(), frame.mean())
    facts = facts_of(X, 100, 350)
    np.testing.assert_allclose(facts.means, frame.mean(), rtol=1e-10)
    np.testing.assert_allclose(facts.variances, centred.var(ddof=0), rtol=1e-9)
    np.testing.assert_array_equal(facts.minimum, frame.min())
    np.testing.assert_array_equal(facts.maximum, frame.max())
    np.testing.assert_array_equal(facts.n_missing, frame.isna().sum())
    assert facts.n_rows_with_gaps == int(frame.isna().any(axis=1).sum())


def test_the_first_value_may_be_far_from_all_others():
    X = np.random.default_rng(1).standard_normal((4000, 1)) + 1e6
    X[0] = -1e6
    facts = facts_of(X, 3000)
    np.testing.assert_allclose(facts.variances, X.var(axis=0), rtol=1e-10)


def test_infinity_is_counted_and_no_part_of_anything_else():
    X = np.array([[1.0, np.inf], [2.0, 3.0], [-np.inf, np.nan], [4.0, 5.0]])
    for values in (X, sp.csr_matrix(X)):
        facts = facts_of(values, 1)
        np.testing.assert_array_equal(facts.n_infinite, [1, 1])
        np.testing.assert_array_equal(facts.n_missing, [0, 1])
        np.testing.assert_array_equal(facts.minimum, [1, 3])
        np.testing.assert_array_equal(facts.maximum, [4, 5])
        np.testing.assert_allclose(facts.means, [7 / 3, 4])
        assert facts.n_zero_rows == 0


def test_a_column_without_values_has_mean_and_variance_zero():
    facts = facts_of(np.full((5, 2), np.nan), 2)
    np.testing.assert_array_equal(facts.n_present, [0, 0])
    np.testing.assert_array_equal(facts.means, [0, 0])
    np.testing.assert_array_equal(facts.variances, [0, 0])


numbers = st.one_of(
    st.just(0.0),
    st.just(np.nan),
    st.integers(-5, 5).map(float),
    st.floats(-1e6, 1e6, allow_subnormal=False),
)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 4).flatmap(lambda d: st.lists(st.lists(numbers, min_size=d, max_size=d))),
    st.lists(st.integers(0, 30), max_size=4),
)
def test_blocks_of_any_size_and_sparse_rows_tell_the_same(rows, cuts):
    if not rows:
        return
    X = np.array(rows)
    cuts = [min(cut, len(X)) for cut in cuts]
    whole = facts_of(X)
    divided = facts_of(X, *cuts)
    assert_alike(divided, whole)
    np.testing.assert_array_equal(divided.rising, whole.rising)
    np.testing.assert_array_equal(divided.falling, whole.falling)
    assert_alike(facts_of(sp.csr_matrix(X), *cuts), whole)
    for mask, compare in ((whole.rising, np.greater), (whole.falling, np.less)):
        np.testing.assert_array_equal(mask, np.all(compare(X[1:], X[:-1]), axis=0))
    assert whole.n_zero_rows == int(np.sum((X == 0).all(axis=1)))


def test_the_same_rows_are_drawn_from_blocks():
    n = MOST_ROWS + 3500
    X = np.arange(2.0 * n).reshape(n, 2)
    words = text([f"w{row}" for row in range(n)])
    whole, divided = facts_of(X, others=[words]), facts_of(X, 10, 2500, 2501, others=[words])
    assert len(whole.sample_rows) == MOST_ROWS
    for facts in (whole, divided):
        np.testing.assert_array_equal(facts.sample_rows, whole.sample_rows)
        np.testing.assert_array_equal(facts.sample, X[whole.sample_rows])
        told = [f"w{row}" for row in whole.sample_rows]
        assert facts.sample_others[0].values.tolist() == told


def test_single_precision_is_summed_in_double():
    X = (1e4 + np.random.default_rng(2).standard_normal((5000, 3))).astype(np.float32)
    facts = facts_of(X)
    np.testing.assert_allclose(facts.means, X.astype(np.float64).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(facts.variances, X.astype(np.float64).var(axis=0), rtol=1e-10)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_rows_with_gaps_are_counted_once_beside_numbers_and_among_them(storage):
    X = np.array([[1, np.nan], [np.nan, 2], [3, 4], [5, 6.0]])
    facts = facts_of(storage(X), 1, others=[text([None, "a", None, "b"])])
    assert facts.n_rows_with_gaps == 3
    assert facts.texts["t"].n_missing == 2


def test_words_are_counted_like_pandas_counts_them():
    words = np.random.default_rng(3).choice(["a", "b", "c", "d"], 5000).tolist()
    facts = facts_of(np.zeros((5000, 1)), 17, 2000, others=[text(words)])
    assert dict(facts.texts["t"].counts) == pd.Series(words).value_counts().to_dict()
    assert not facts.texts["t"].is_full


def test_counting_stops_at_the_same_word_however_rows_are_divided():
    words = [f"w{row % 1500}" for row in range(4000)]
    whole = facts_of(np.zeros((4000, 1)), others=[text(words)])
    divided = facts_of(np.zeros((4000, 1)), 7, 900, 1100, others=[text(words)])
    assert whole.texts["t"].is_full
    assert divided.texts["t"].is_full
    assert whole.texts["t"].counts == divided.texts["t"].counts
    assert len(whole.texts["t"].counts) == MOST_LEVELS + 1
