"""The planes of the first two principal components, against scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA

from keepers.linalg.moments import column_moments
from keepers.reporting.sample_planes import classes_of, plane_of, planes_of


@pytest.mark.parametrize("shape", [(60, 8), (20, 90)])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_the_plane_is_that_of_scikit_learn(shape, storage):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) * np.linspace(3, 0.5, shape[1]) * (rng.random(shape) < 0.7)
    found = plane_of(storage(X))
    model = PCA(2, svd_solver="full").fit(X)
    np.testing.assert_allclose(np.abs(found.points), np.abs(model.transform(X)), atol=1e-8)
    np.testing.assert_allclose(found.shares, model.explained_variance_ratio_, atol=1e-10)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_the_plane_of_a_large_table_is_right_to_drawing_accuracy(storage):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 600))
    X[:, :9] += rng.standard_normal((700, 1)) * 8
    X[:, 20:25] += rng.standard_normal((700, 1)) * 6
    found = plane_of(storage(X))
    expected = PCA(2, svd_solver="full").fit_transform(X)
    error = np.abs(np.abs(found.points) - np.abs(expected)).max()
    assert error < 1e-3 * np.abs(expected).max()


def test_a_large_table_without_structure_has_a_plane_all_the_same():
    X = np.random.default_rng(0).standard_normal((600, 700))
    found = plane_of(X)
    expected = PCA(2, svd_solver="full").fit(X).explained_variance_ratio_
    np.testing.assert_allclose(found.shares, expected, rtol=0.02)


def test_a_single_kept_feature_is_drawn_on_a_line():
    X = np.random.default_rng(0).standard_normal((30, 5))
    planes = planes_of(X, column_moments(X), np.array([3]))
    np.testing.assert_allclose(np.abs(planes.after.points[:, 0]), np.abs(X[:, 3] - X[:, 3].mean()))
    assert not planes.after.points[:, 1].any()
    assert planes.after.shares == pytest.approx((1.0, 0.0))


def test_keeping_everything_leaves_the_plane_as_it_was():
    X = np.random.default_rng(0).standard_normal((30, 5)) * [5, 4, 3, 2, 1]
    planes = planes_of(X, column_moments(X), np.array([4, 3, 2, 1, 0]))
    np.testing.assert_allclose(planes.after.points, planes.before.points, atol=1e-8)


def test_at_most_two_thousand_samples_are_shown_and_always_the_same():
    X = np.random.default_rng(0).standard_normal((5000, 4))
    first = planes_of(X, column_moments(X), np.array([0, 1]))
    second = planes_of(X, column_moments(X), np.array([0, 1]))
    assert len(first.samples) == 2000
    assert len(set(first.samples.tolist())) == 2000
    np.testing.assert_array_equal(first.samples, second.samples)


def test_there_is_no_plane_of_constants():
    X = np.column_stack([np.ones(10), np.arange(10.0)])
    assert planes_of(X, column_moments(X), np.array([0])) is None


def test_up_to_ten_classes_have_a_colour_each_in_reading_order():
    classes = classes_of(["10", "9", "2", "10", "1"])
    assert classes.legend == ("1", "2", "9", "10")
    assert classes.sizes == (1, 1, 1, 2)
    assert classes.colour_of.tolist() == [3, 2, 1, 3, 0]
    assert classes.n_sharing == 0


def test_past_ten_classes_the_small_ones_share_a_colour():
    labels = [f"c{size:02d}" for size in range(1, 15) for _ in range(size)]
    classes = classes_of(labels)
    assert classes.legend == (*(f"c{size:02d}" for size in range(6, 15)), "5 other classes")
    assert classes.sizes[-1] == 1 + 2 + 3 + 4 + 5
    assert set(classes.colour_of[: classes.sizes[-1]]) == {9}
