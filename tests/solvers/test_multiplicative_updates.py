"""The two ways to update H against each other, and the parts of G against their definition."""

import numpy as np
import pytest

from keepers.solvers import multiplicative_updates
from keepers.solvers.multiplicative_updates import (
    Gradient,
    SplitGram,
    Updates,
    concentrated,
    everywhere,
)
from keepers.solvers.rne import solve_rne
from shared_material import fixture


def concentrated_problem(n_samples=12, n_features=40, width=4, seed=0):
    """H with each feature in one column and next to nothing in the others."""
    rng = np.random.default_rng(seed)
    gram = SplitGram(rng.normal(size=(n_samples, n_features)))
    Ht = 10.0 ** -rng.uniform(25, 60, size=(width, n_features))
    Ht[np.arange(n_features) % width, np.arange(n_features)] = rng.random(n_features)
    Ht[0, 5:9] = 0.0
    sides = rng.normal(size=(2, width, n_features))
    return gram, Ht, Gradient.of(*sides, alpha=1e3, penalty=10.0)


@pytest.mark.parametrize("n_samples", [12, 60], ids=["one square array", "two"])
def test_parts_of_g_are_its_positive_and_negative_entries_in_any_order_of_use(n_samples):
    A = np.random.default_rng(0).normal(size=(n_samples, 40))
    G = A.T @ A
    gram = SplitGram(A)
    rows, columns = np.array([3, 7, 30]), np.array([0, 39])
    Ht = np.random.default_rng(1).random((2, 40))
    magnitude, signed = np.empty_like(Ht), np.empty_like(Ht)
    for _ in range(2):
        positive, negative = gram.parts(rows, columns)
        block = G[np.ix_(rows, columns)]
        np.testing.assert_allclose(positive, np.maximum(block, 0), rtol=1e-12)
        np.testing.assert_allclose(negative, np.maximum(-block, 0), rtol=1e-12)
        gram.products(Ht, magnitude, signed)
        np.testing.assert_allclose(magnitude, Ht @ np.abs(G), rtol=1e-12)
        np.testing.assert_allclose(signed, Ht @ G, atol=1e-11)


@pytest.mark.parametrize("n_samples", [12, 60], ids=["one square array", "two"])
def test_entries_that_count_alone_give_the_updates_of_whole_products(n_samples):
    gram, Ht, gradient = concentrated_problem(n_samples)
    whole = Ht.copy()
    everywhere(whole, gram, gradient, 8)
    concentrated(Ht, Ht > 1e-20, gram, gradient, 8)
    # Also entries far below rounding: they may come back later.
    np.testing.assert_allclose(Ht, whole, rtol=1e-9)
    assert (Ht[0, 5:9] == 0.0).all()  # exactly: zero times something


def test_an_entry_that_grows_until_it_counts_is_noticed():
    gram, Ht, gradient = concentrated_problem()
    Ht[1, 0] = 1e-24
    gradient.gain[1, 0] = 1e9
    whole = Ht.copy()
    everywhere(whole, gram, gradient, 10)
    assert whole[1, 0] > 1e-3
    concentrated(Ht, Ht > 1e-20, gram, gradient, 10)
    # Beside an entry of one, |G| H - G H is rounding where G is positive: compare what counts.
    np.testing.assert_allclose(Ht, whole, rtol=1e-9, atol=1e-20)


def test_updates_in_portions_are_the_same_updates(monkeypatch):
    gram, Ht, gradient = concentrated_problem()
    in_portions = Ht.copy()
    monkeypatch.setattr(multiplicative_updates, "CALLS", 0.0)
    Updates(gram, Ht).apply(gradient, 12)
    monkeypatch.setattr(multiplicative_updates, "HISTORY_BYTES", 0)
    Updates(gram, in_portions).apply(gradient, 12)
    np.testing.assert_allclose(in_portions, Ht, rtol=1e-9)


@pytest.mark.parametrize("name", ["mix", "digits", "blobs", "wide"])
def test_the_authors_program_is_reproduced_where_only_counting_entries_are_multiplied(
    name, monkeypatch
):
    calls = []

    def counted(*problem):
        calls.append(problem[-1])
        concentrated(*problem)

    monkeypatch.setattr(multiplicative_updates, "concentrated", counted)
    monkeypatch.setattr(multiplicative_updates, "CALLS", -np.inf)
    stored = fixture(f"rne_authors_{name}")
    result = solve_rne(stored["A_authors"], [stored["H0"]], alpha=1e3, max_iter=50, tol=0.0)
    assert sum(calls) == 1500
    np.testing.assert_allclose(result.H, stored["H_it50"], rtol=0, atol=7e-13)
    np.testing.assert_allclose(result.objective, stored["obj_it50"], rtol=0, atol=2e-11)
