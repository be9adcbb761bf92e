"""What speaks for a set of features: against scikit-learn, and where the answer is known."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from keepers.tuning import search
from keepers.tuning.search import Judge, Trial


def weigh(X):
    """Fidelity and clumpiness of all columns."""
    return Judge(X, np.random.default_rng(0)).weigh(np.arange(X.shape[1]))


def test_fidelity_is_the_share_of_neighbours_in_the_standardised_table():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((70, 30)) * np.exp(rng.standard_normal(30)) + 5.0
    columns = np.array([0, 4, 9, 20])

    def neighbours(points):
        return NearestNeighbors(n_neighbors=5).fit(points).kneighbors_graph().toarray() > 0

    whole, kept = neighbours(StandardScaler().fit_transform(X)), neighbours(X[:, columns])
    expected = (whole & kept).sum() / whole.sum()
    fidelity, _ = Judge(X, np.random.default_rng(0)).weigh(columns)
    assert fidelity == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("decay", [0.0, 0.5, 1.5])
def test_gaussian_data_of_any_covariance_are_not_clumpy(decay):
    rng = np.random.default_rng(4)
    spread = np.arange(1, 31) ** -decay
    rotation = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    X = (rng.standard_normal((300, 30)) * spread) @ rotation
    assert abs(weigh(X)[1]) < 0.06


def test_the_score_is_fidelity_times_the_root_of_clumpiness_and_noise_cannot_make_it_vanish():
    trial = Trial({}, 1.0, 3, 3, 0.5, 0.64, np.arange(3))
    assert trial.score == pytest.approx(0.4)
    assert replace(trial, clumpiness=-0.2).score == pytest.approx(0.05)


def test_samples_at_the_same_place_share_the_places_among_the_nearest():
    X = np.repeat(np.eye(3), 10, axis=0)
    fidelity, clumpiness = weigh(X)
    # Each of nine at no distance has 5/9 of a place in the whole table, and so in the columns.
    assert fidelity == pytest.approx(9 * (5 / 9) ** 2 / 5)
    assert np.isfinite(clumpiness)


# Columns of few values


@pytest.mark.parametrize("share", [0.5, 0.1, 0.03])
@pytest.mark.parametrize("n_common", [0, 1, 3])
def test_gaussian_data_cut_into_yes_and_no_are_not_clumpy(share, n_common):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 30)) + rng.standard_normal((300, n_common)) @ (
        rng.standard_normal((n_common, 30))
    )
    limits = np.quantile(X, 1 - share, axis=0)
    cut = (limits < X).astype(float)
    assert abs(weigh(cut)[1]) < 0.1


@pytest.mark.parametrize("step", [0.1, 0.5, 1.0, 2.0])
def test_rounding_does_not_make_data_clumpy(step):
    X = np.random.default_rng(6).standard_normal((300, 20))
    rounded = weigh(np.round(X / step) * step)[1]
    assert abs(rounded - weigh(X)[1]) < 0.05


def test_values_that_occur_once_stay_where_they_are():
    X = np.random.default_rng(7).standard_normal((50, 3))
    assert search.spread_ties(X, np.random.default_rng(0)) is X
    mixed = np.column_stack([X[:, 0], np.repeat([0.0, 1.0], 25)])
    moved = search.spread_ties(mixed, np.random.default_rng(0))
    np.testing.assert_allclose(moved[:, 0] - moved[0, 0], X[:, 0] - X[0, 0], atol=1e-12)


def test_a_level_is_spread_as_the_part_of_a_gaussian_that_falls_on_it():
    """Half of a standard Gaussian has the standard deviation sqrt(1 - 2 / pi)."""
    coin = np.repeat([0.0, 1.0], 20_000)[:, np.newaxis]
    moved = search.spread_ties(coin, np.random.default_rng(0))[:, 0]
    for level in (moved[:20_000], moved[20_000:]):
        assert level.std() == pytest.approx(0.5 * np.sqrt(1 - 2 / np.pi), rel=0.02)
    assert moved[20_000:].mean() - moved[:20_000].mean() == pytest.approx(1.0, abs=0.02)
