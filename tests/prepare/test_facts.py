"""One pass finds what NumPy and pandas find, however the rows are divided."""

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keepers.linalg.ordering import drawn_rows
from keepers.prepare.kinds import MOST_LEVELS, MOST_ROWS, TableFacts
from keepers.tables.table import Table


def table_of(X, words=None):
    frame = None if words is None else pl.DataFrame({"t": pl.Series(words, dtype=pl.String)})
    names = np.array([f"x{j}" for j in range(X.shape[1])], dtype=object)
    features = [*names, *([] if words is None else ["t"])]
    return Table(X, names, frame=frame, features=features)


def facts_of(X, *cuts, words=None):
    """The facts of X, added in pieces."""
    facts = TableFacts("whole")
    for start, stop in pairwise([0, *sorted(cuts), X.shape[0]]):
        if stop > start:
            facts.add(table_of(X[start:stop], None if words is None else words[start:stop]))
    return facts


def assert_alike(found, expected):
    for name in ("n_missing", "n_infinite", "minimum", "maximum", "whole", "sample_rows"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.n_rows == expected.n_rows


def test_extremes_and_gaps_are_those_of_pandas():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 6)) * [1, 1e-3, 1e3, 5, 1, 1]
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:600, 3] = np.nan  # no value in the first blocks
    frame = pd.DataFrame(X)
    facts = facts_of(X, 100, 350)
    np.testing.assert_array_equal([facts.minimum, facts.maximum], [frame.min(), frame.max()])
    np.testing.assert_array_equal(facts.n_missing, frame.isna().sum())


numbers = st.one_of(
    st.sampled_from([0.0, np.nan, np.inf, -np.inf]),
    st.integers(-5, 5).map(float),
    st.floats(-1e6, 1e6, allow_subnormal=False),
)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4).flatmap(
        lambda d: st.lists(st.lists(numbers, min_size=d, max_size=d), min_size=1)
    ),
    st.lists(st.integers(0, 30), max_size=4),
)
@example([[-991383.476], [0.0], [0.0], [0.0], [991383.476]], [2])
def test_blocks_of_any_size_and_sparse_rows_give_the_same(rows, cuts):
    X = np.array(rows)
    cuts = [min(cut, len(X)) for cut in cuts]
    whole, divided = facts_of(X), facts_of(X, *cuts)
    assert_alike(divided, whole)
    assert_alike(facts_of(sp.csr_matrix(X), *cuts), whole)
    np.testing.assert_array_equal(whole.n_infinite, np.isinf(X).sum(axis=0))
    np.testing.assert_array_equal(whole.n_missing, np.isnan(X).sum(axis=0))


def test_words_are_counted_and_counting_stops_at_the_same_word():
    words = np.random.default_rng(3).choice(["a", "b", "c", "d"], 5000).tolist()
    text = facts_of(np.zeros((5000, 1)), 17, 2000, words=words).texts["t"]
    assert text.counts == pd.Series(words).value_counts().to_dict()
    assert not text.is_full
    words = [f"w{row % 1500}" for row in range(6000)]
    for cuts in ((), (7, 900, 1100), (4500,)):
        text = facts_of(np.zeros((6000, 1)), *cuts, words=words).texts["t"]
        assert text.is_full
        assert text.counts == dict(sorted((f"w{at}", 1) for at in range(MOST_LEVELS + 1)))


@pytest.mark.parametrize(
    ("step", "storage"), [(97, np.asarray), (1300, sp.csr_matrix), (9000, np.asarray)]
)
def test_the_same_rows_are_drawn_from_blocks(step, storage):
    n = MOST_ROWS + 3500
    X = np.arange(2.0 * n).reshape(n, 2)
    words = [f"w{row}" for row in range(n)]
    facts = facts_of(storage(X), *range(step, n, step), words=words)
    expected = drawn_rows(n, MOST_ROWS, 0)
    np.testing.assert_array_equal(facts.sample_rows, expected)
    values = facts.sample.values
    np.testing.assert_array_equal(values.toarray() if sp.issparse(values) else values, X[expected])
    assert facts.sample.frame["t"].to_list() == [words[row] for row in expected]


def test_the_drawn_rows_are_called_as_the_source_not_as_its_first_part():
    facts = facts_of(np.eye(3), 1)
    assert table_of(np.eye(3)).name != "whole"
    assert facts.sample.name == facts.name == "whole"
