"""Pairs of columns that say the same, against all pairs of `numpy.corrcoef`."""

import numpy as np
import pytest

from keepers.linalg.near_duplicates import COMPARED_ALL, similar_columns


def by_brute_force(X, least):
    """Every column with the first that it resembles and that resembles none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.nan_to_num(np.corrcoef(X.T))
    found = {}
    for first in range(X.shape[1]):
        for second in range(first + 1, X.shape[1]):
            alike = abs(r[first, second]) >= least
            if alike and first not in found and second not in found:
                found[second] = (first, r[first, second])
    return found


def plant(X, n_pairs, noise, rng):
    """Copies of columns with noise, in other units and with either sign; returns the pairs."""
    first, second = rng.permutation(X.shape[1])[: 2 * n_pairs].reshape(2, n_pairs)
    deviations = X[:, first].std(axis=0)
    copies = X[:, first] + noise * deviations * rng.standard_normal((len(X), n_pairs))
    X[:, second] = copies * rng.choice([-1.0, 1.0], n_pairs) * rng.uniform(0.01, 100, n_pairs)
    return list(zip(first.tolist(), second.tolist(), strict=True))


def tables():
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((80, 3))
    yield "noise", rng.standard_normal((80, 300))
    yield "factors", factor @ rng.standard_normal((3, 300)) + 0.1 * rng.standard_normal((80, 300))
    yield "far from zero", 1e7 + rng.standard_normal((80, 300))
    yield "counts", rng.poisson(0.3, (80, 300)).astype(float)
    yield "constant columns", rng.standard_normal((80, 300)) * (np.arange(300) % 5 > 0)


TABLES = dict(tables())


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("least", [0.9, 0.99])
def test_few_columns_are_all_compared(name, least):
    X = TABLES[name].copy()
    plant(X, 20, 0.05, np.random.default_rng(1))
    found, expected = similar_columns(X, least), by_brute_force(X, least)
    assert {column: first for column, (first, _) in found.items()} == {
        column: first for column, (first, _) in expected.items()
    }
    for column, (_, r) in found.items():
        assert r == pytest.approx(expected[column][1], abs=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["noise", "factors", "few rows"])
def test_of_many_columns_planted_pairs_are_found(seed, kind):
    rng = np.random.default_rng(seed)
    n, d = (15 if kind == "few rows" else 300), 5000
    assert d > COMPARED_ALL
    X = rng.standard_normal((n, d))
    if kind == "factors":
        X = 0.7 * X + rng.standard_normal((n, 5)) @ rng.standard_normal((5, d))
    pairs = plant(X, 200, 0.1, rng)
    found = similar_columns(X, 0.99)
    alike = {pair for pair in pairs if abs(np.corrcoef(X[:, list(pair)].T)[0, 1]) >= 0.99}
    assert len(alike) >= 150
    missed = [pair for pair in alike if max(pair) not in found]
    assert len(missed) <= 1
    for column, (first, r) in found.items():
        assert first < column
        assert first not in found
        assert abs(r) >= 0.99
        assert r == pytest.approx(np.corrcoef(X[:, [first, column]].T)[0, 1], abs=1e-9)


def test_copies_of_rare_events_among_many_columns_are_found():
    rng = np.random.default_rng(0)
    X = np.zeros((4000, 2500))
    X[rng.permutation(4000)[:2500], np.arange(2500)] = rng.uniform(1, 2, 2500)
    X[:, [7, 1900, 2400]] = X[:, [3, 3, 3]]
    found = similar_columns(X, 0.99)
    assert {column: first for column, (first, _) in found.items() if first == 3} == {
        7: 3,
        1900: 3,
        2400: 3,
    }


def test_where_all_columns_are_much_alike_most_pairs_are_found():
    rng = np.random.default_rng(0)
    X = 3.0 * rng.standard_normal((200, 1)) + rng.standard_normal((200, 3000))  # r = 0.9
    pairs = plant(X, 100, 0.1, rng)
    found = similar_columns(X, 0.99)
    assert sum(max(pair) in found for pair in pairs) >= 90


def test_extreme_values_and_constant_columns_are_no_trouble():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(30)
    X = np.column_stack([x * 1e200, np.full(30, 0.1), x * 1e-200, np.zeros(30), -x])
    assert {column: first for column, (first, _) in similar_columns(X, 0.99).items()} == {
        2: 0,
        4: 0,
    }


def test_a_table_without_variation_has_no_pairs():
    assert similar_columns(np.ones((5, 4)), 0.99) == {}
    assert similar_columns(np.ones((5, COMPARED_ALL + 1)), 0.99) == {}
