"""B B' as an operator, against the matrix itself."""

import numpy as np
import pytest

from keepers.linalg.low_rank import LowRankScatter


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (5, 5)])
def test_it_is_the_matrix(shape):
    rng = np.random.default_rng(0)
    B = rng.standard_normal(shape)
    S, operator = B @ B.T, LowRankScatter(B)
    V = rng.standard_normal((shape[0], 3))
    assert operator.size == shape[0]
    np.testing.assert_allclose(operator.matmat(V), S @ V, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(operator.diagonal(), S.diagonal(), rtol=1e-12)
    np.testing.assert_allclose(operator.dense(), S, rtol=1e-12, atol=1e-12)
    rows = np.array([3, 0])
    np.testing.assert_allclose(
        operator.restrict(rows).dense(), S[np.ix_(rows, rows)], rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("shape", [(30, 4), (4, 9)])
def test_its_small_side_gives_its_eigenvectors(shape):
    B = np.random.default_rng(1).standard_normal(shape)
    side = LowRankScatter(B).small_side()
    assert len(side.matrix) == 4
    values, vectors = np.linalg.eigh(side.matrix)
    lifted = side.lift(vectors, values)
    np.testing.assert_allclose(lifted.T @ lifted, np.eye(4), atol=1e-10)
    np.testing.assert_allclose((lifted * values) @ lifted.T, B @ B.T, atol=1e-10)


def test_without_a_small_side_there_is_none(monkeypatch):
    monkeypatch.setattr("keepers.linalg.low_rank.SMALL_SIDE", 3)
    assert LowRankScatter(np.ones((5, 4))).small_side() is None
