"""What decision 0017 chose: one direction for both halves of the rows, and halves by a hash."""

import numpy as np
import pandas as pd
import pytest

from keepers import TablePreparer
from keepers.preparation.categories import in_first_half, quantify

N = 400
ROWS = np.arange(N)


def column_of(numbers, codes):
    """The one category as numbers, as in the table of the fit."""
    (found,) = quantify(numbers, [codes], ROWS[: len(codes)])
    return found.of_rows(ROWS[: len(codes)], codes)


def standardise(values, counts):
    centred = values - np.average(values, weights=counts)
    return centred / np.sqrt(np.average(centred**2, weights=counts))


def test_beside_one_column_a_value_gets_its_mean_in_the_other_half():
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=N)
    x = rng.standard_normal(N) + codes
    (found,) = quantify(x[:, None], [codes], ROWS)
    first = in_first_half(ROWS)
    counts = np.bincount(codes)
    for given, there in ((found.second, first), (found.first, ~first), (found.both, ROWS >= 0)):
        means = pd.Series(x[there]).groupby(codes[there]).mean().to_numpy()
        expected = standardise(means, counts)
        np.testing.assert_allclose(np.abs(given @ expected), given @ given, rtol=1e-9)


def test_the_halves_are_drawn_and_about_equal():
    first = in_first_half(np.arange(10_000))
    assert abs(first.mean() - 0.5) < 0.03
    assert abs(np.corrcoef(first, np.arange(10_000) % 2)[0, 1]) < 0.05


def test_paired_samples_that_alternate_are_told_apart():
    rng = np.random.default_rng(0)
    group = ROWS % 2
    numbers = rng.standard_normal((N, 10)) + 2.0 * group[:, None]
    codes = rng.integers(2, size=N) + 2 * group
    assert abs(np.corrcoef(column_of(numbers, codes), group)[0, 1]) > 0.9


@pytest.mark.parametrize("seed", range(5))
def test_where_components_are_equally_strong_both_halves_follow_the_same_one(seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(4, size=N)
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])[codes]
    numbers = np.repeat(corners, 5, axis=1) + 0.5 * rng.standard_normal((N, 10))
    column = column_of(numbers, codes)
    # Of four corners of a square on a line the variance is that of one axis, in any direction.
    explained = np.linalg.lstsq(np.column_stack([corners, np.ones(N)]), column, rcond=None)[0]
    fitted = np.column_stack([corners, np.ones(N)]) @ explained
    assert np.var(fitted) / np.var(column) > 0.95


def test_a_category_that_has_nothing_to_do_with_the_table_follows_it_no_more_than_noise():
    rng = np.random.default_rng(0)
    correlations = []
    for _ in range(200):
        numbers = rng.standard_normal((100, 1)) + 0.1 * rng.standard_normal((100, 6))
        column = column_of(numbers, rng.integers(20, size=100))
        correlations.append(np.corrcoef(column, numbers.mean(axis=1))[0, 1])
    # Found on the same rows it would be about sqrt(19 / 100).
    assert np.mean(correlations) < 0.05


def test_a_category_beside_columns_that_do_not_vary_goes_by_frequency():
    table = pd.DataFrame({"town": ["a"] * 6 + ["b"] * 4 + ["c"] * 2, "same": 1.0})
    prepared = TablePreparer().fit_transform(table)["town"]
    by_town = prepared.groupby(table["town"]).first()
    assert by_town["a"] > by_town["b"] > by_town["c"]


def test_small_columns_count_beside_large_ones():
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=N)
    small = 1e-8 * (codes[:, None] + 0.1 * rng.standard_normal((N, 4)))
    large = 1e8 * rng.standard_normal((N, 1))
    column = column_of(np.hstack([small, large]), codes)
    assert abs(np.corrcoef(column, codes)[0, 1]) > 0.9


def test_the_first_components_of_a_wide_table_stand_for_all_its_columns(monkeypatch):
    rng = np.random.default_rng(0)
    codes = [rng.integers(3, size=N), rng.integers(5, size=N)]
    numbers = rng.standard_normal((N, 150)) + codes[0][:, None]
    found = quantify(numbers, codes, ROWS)
    monkeypatch.setattr("keepers.preparation.categories.MOST_DIRECTIONS", 150)
    for one, other in zip(found, quantify(numbers, codes, ROWS), strict=True):
        assert abs(np.corrcoef(one.both, other.both)[0, 1]) > 0.95
