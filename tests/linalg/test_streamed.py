"""The streamed scatter against the one formed from the whole table, and how often it reads."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.blocks.sources import ArrayBlocks
from keepers.exceptions import DataError
from keepers.linalg.scatter import column_moments
from keepers.linalg.sums import Budget, CountedPasses, StreamedScatter

ROOM, NO_ROOM = Budget(1e9), Budget(0.0)


def streamed(X, budget, factors=None):
    passes = CountedPasses(ArrayBlocks(X, "X"))
    d = X.shape[1]
    factors = np.ones(d) if factors is None else factors
    return StreamedScatter(passes, column_moments(X), np.arange(d), factors, budget)


@pytest.fixture(params=[np.asarray, sp.csr_array], ids=["array", "csr"])
def X(request):
    rng = np.random.default_rng(0)
    return request.param(rng.standard_normal((60, 12)) @ rng.standard_normal((12, 12)) + 3.0)


def expected_scatter(X, factors):
    X = (X.toarray() if sp.issparse(X) else X) * factors
    return np.cov(X, rowvar=False) * (len(X) - 1)


def test_products_diagonal_and_restriction_are_those_of_the_scatter(X):
    factors = np.linspace(0.5, 2.0, 12)
    S = expected_scatter(X, factors)
    operator = streamed(X, NO_ROOM, factors)
    V = np.random.default_rng(1).standard_normal((12, 3))
    np.testing.assert_allclose(operator.matmat(V), S @ V, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(operator.diagonal(), S.diagonal(), rtol=1e-10)
    np.testing.assert_allclose(operator.dense(), S, rtol=1e-10, atol=1e-9)
    assert operator.passes.n_passes == 2
    rows = np.array([7, 2, 5])
    part = operator.restrict(rows)
    assert isinstance(part, StreamedScatter)
    np.testing.assert_allclose(part.matmat(V[:3]), S[np.ix_(rows, rows)] @ V[:3], rtol=1e-10)
    assert operator.passes.n_passes == 3


def test_with_room_a_restriction_is_held_and_reads_no_more(X):
    operator = streamed(X, ROOM)
    rows = np.array([1, 4, 9])
    part = operator.restrict(rows)
    assert operator.passes.n_passes == 1
    S = expected_scatter(X, np.ones(12))
    np.testing.assert_allclose(part.matmat(np.eye(3)), S[np.ix_(rows, rows)], rtol=1e-10)
    assert operator.passes.n_passes == 1


def test_a_later_pass_may_differ_from_the_first_by_rounding_only():
    X = np.random.default_rng(0).standard_normal((200, 5))
    for shift, refused in ((1e-9, False), (1e-4, True)):
        operator = replace(streamed(X, NO_ROOM), passes=CountedPasses(ArrayBlocks(X + shift, "X")))
        for read in (operator.dense, partial(operator.matmat, np.eye(5))):
            if refused:
                with pytest.raises(DataError, match="but with other values"):
                    read()
            else:
                np.testing.assert_allclose(read(), np.cov(X.T) * 199, rtol=1e-6, atol=1e-6)


def test_the_rows_of_some_columns_need_their_share_of_the_memory(X):
    table = ArrayBlocks(X, "X")
    none, half, every = (Budget(1.0).of_rows(table, 60, n_columns) for n_columns in (0, 6, 12))
    assert every - none >= 60 * 12 * 8
    assert half - none == pytest.approx((every - none) / 2)
