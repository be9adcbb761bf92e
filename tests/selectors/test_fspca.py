"""FSPCA as a selector: every storage, what the user decides, and SPCAFS refined by it."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA

from keepers import FSPCA, SPCAFS
from keepers.exceptions import KeepersWarning, ParameterError, UnitsWarning

pytestmark = pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")


@pytest.fixture(scope="module")
def X():
    """120 x 60: three components in the first 20 features; a third of the values is zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 60)) * rng.uniform(0.5, 1.5, 60)
    X[:, :20] += 2 * rng.standard_normal((120, 3)) @ rng.standard_normal((3, 20))
    X[rng.random(X.shape) < 0.3] = 0.0
    return X


@pytest.fixture(scope="module")
def wide():
    """200 x 1500, to be searched among candidates."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 1500)) * rng.uniform(0.5, 1.2, 1500)
    X[:, :60] += rng.standard_normal((200, 4)) @ rng.standard_normal((4, 60))
    return X + 3.0


def held(X, features, width):
    Xc = X - X.mean(axis=0)
    return float(np.sum(np.linalg.svd(Xc[:, features], compute_uv=False)[:width] ** 2))


def cut(X, n_rows):
    return [X[start : start + n_rows] for start in range(0, len(X), n_rows)]


def test_what_is_stored_is_what_the_kept_features_hold(X):
    selector = FSPCA(8, n_components=3).fit(X)
    kept = np.flatnonzero(selector.support_)
    assert len(kept) == selector.n_features_to_select_ == 8
    assert selector.value_ == pytest.approx(held(X, kept, 3), rel=1e-9)
    pca = PCA(3).fit(X[:, kept])
    np.testing.assert_allclose(selector.explained_variance_, pca.explained_variance_, rtol=1e-9)
    inside = np.abs(selector.components_[:, kept])
    np.testing.assert_allclose(inside, np.abs(pca.components_), atol=1e-8)
    assert not selector.components_[:, ~selector.support_].any()
    np.testing.assert_allclose(selector.mean_, X.mean(axis=0))
    np.testing.assert_allclose(selector.var_, X.var(axis=0))
    assert np.all(np.diff(selector.objective_) >= -1e-9 * selector.value_)
    assert selector.objective_[-1] == pytest.approx(selector.value_, rel=1e-9)
    # Scores are what the components hold of every feature, least squares of it on their scores.
    Xc = X - X.mean(axis=0)
    Q = np.linalg.qr(Xc @ selector.components_.T)[0]
    np.testing.assert_allclose(selector.scores_, np.sum((Q.T @ Xc) ** 2, axis=0), rtol=1e-7)
    assert selector.scores_[kept].sum() == pytest.approx(selector.value_, rel=1e-9)


def test_it_holds_more_than_variance_and_spcafs_and_less_than_pca(X):
    found = FSPCA(10, n_components=3).fit(X)
    by_variance = np.argsort(-X.var(axis=0))[:10]
    by_penalty = SPCAFS(10, n_components=3).fit(X).get_support(indices=True)
    assert found.value_ >= held(X, by_variance, 3) * (1 - 1e-9)
    assert found.value_ >= held(X, by_penalty, 3) * (1 - 1e-9)
    assert found.value_ <= held(X, range(60), 3)


def test_the_first_k_of_the_ranking_are_the_selection_and_scores_agree(X):
    selector = FSPCA(8, n_components=3).fit(X)
    assert set(selector.top(8).indices) == set(np.flatnonzero(selector.support_))
    assert (
        set(selector.top(5).indices) < set(selector.top(8).indices) < set(selector.top(20).indices)
    )
    scores = selector.scores_[np.argsort(selector.ranking_)]
    assert np.all(np.diff(scores) <= 1e-6 * scores[:-1])


@pytest.mark.parametrize(
    "change",
    [
        np.asfortranarray,
        lambda X: X.astype(np.float32),
        sp.csr_matrix,
        sp.csc_matrix,
        lambda X: pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])]),
    ],
    ids=["fortran", "float32", "csr", "csc", "frame"],
)
def test_every_storage_gives_the_same_features(X, wide, change):
    for table in (X, wide):
        expected = FSPCA(12, n_components=4).fit(table)
        found = FSPCA(12, n_components=4).fit(change(table))
        np.testing.assert_array_equal(found.support_, expected.support_)
        assert found.value_ == pytest.approx(expected.value_, rel=1e-5)
        assert found.start_ == expected.start_


@pytest.mark.parametrize("route", ["scatter", "memory", "stream"])
def test_blocks_give_the_same_features_by_every_route(wide, route):
    expected = FSPCA(12, n_components=4).fit(wide)
    found = FSPCA(12, n_components=4, route=route, random_state=0).fit_blocks(cut(wide, 64))
    np.testing.assert_array_equal(found.support_, expected.support_)
    assert found.value_ == pytest.approx(expected.value_, rel=1e-9)
    assert found.route_ == route
    # Moments, products for the components, the candidates, and one or two looks at the rest.
    assert found.n_passes_ == 1 if route != "stream" else found.n_passes_ <= 10


def test_streaming_with_little_memory_holds_fewer_candidates(wide):
    settings = {"n_components": 4, "random_state": 0, "route": "stream"}
    little = FSPCA(12, memory_limit="115M", **settings).fit_blocks(cut(wide, 64))
    expected = FSPCA(12, n_components=4).fit(wide)
    assert little.value_ == pytest.approx(expected.value_, rel=1e-3)


def test_dask_gives_the_same_features(X):
    da = pytest.importorskip("dask.array")
    expected = FSPCA(8, n_components=3).fit(X)
    found = FSPCA(8, n_components=3).fit(da.from_array(X, chunks=(50, 60)))
    np.testing.assert_array_equal(found.support_, expected.support_)
    assert found.value_ == pytest.approx(expected.value_, rel=1e-9)


def test_rows_can_be_added_one_part_after_the_other(X):
    selector = FSPCA(8, n_components=3)
    for part in cut(X, 50):
        selector.partial_fit(part)
    expected = FSPCA(8, n_components=3).fit(X)
    np.testing.assert_array_equal(selector.support_, expected.support_)
    assert selector.value_ == pytest.approx(expected.value_, rel=1e-9)
    assert selector.n_samples_seen_ == 120


def test_features_stay_and_go_as_the_user_says(X):
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(60)])
    plain = FSPCA(8, n_components=3).fit(frame)
    best = [str(name) for name in plain.top(2).names]
    told = FSPCA(8, n_components=3, must_keep=["f55"], never_keep=best).fit(frame)
    assert told.support_[55]
    assert not told.support_[plain.top(2).indices].any()
    assert told.ranking_[55] == 1
    assert told.value_ < plain.value_
    without = FSPCA(8, n_components=3, must_keep=["f55"]).fit(frame.drop(columns=best))
    assert set(without.get_feature_names_out()) == set(told.get_feature_names_out())
    assert len(told.top(1.0)) == 58


def test_groups_are_kept_as_a_whole(X):
    groups = np.repeat(np.arange(20), 3)
    selector = FSPCA(10, n_components=3, groups=groups).fit(X)
    assert selector.n_features_to_select_ == 9  # no fourth group fits
    counts = np.bincount(groups, selector.support_)
    assert set(counts) == {0, 3}
    best = max(
        held(X, np.flatnonzero(np.isin(groups, chosen)), 3)
        for chosen in itertools.combinations(range(20), 3)
    )
    assert 0.99 * best <= selector.value_ <= best * (1 + 1e-9)
    with pytest.raises(ParameterError, match="must fit into what may be kept, 2; the smallest"):
        FSPCA(2, groups=groups).fit(X)


def test_a_budget_decides_how_many_features_are_kept(X):
    small = X[:, 12:23]
    rng = np.random.default_rng(0)
    costs = rng.uniform(0.5, 3.0, size=11)
    selector = FSPCA(n_components=2, costs=costs, budget=6.0).fit(small)
    kept = np.flatnonzero(selector.support_)
    assert costs[kept].sum() <= 6.0
    assert selector.n_features_to_select_ == len(kept)
    sets = itertools.chain.from_iterable(itertools.combinations(range(11), r) for r in range(1, 11))
    best = max(held(small, list(s), 2) for s in sets if costs[list(s)].sum() <= 6.0)
    assert 0.97 * best <= selector.value_ <= best * (1 + 1e-9)
    # A price per feature is a number of features.
    counted = FSPCA(n_components=2, budget=4).fit(small)
    np.testing.assert_array_equal(counted.support_, FSPCA(4, n_components=2).fit(small).support_)
    dear = FSPCA(n_components=2, costs={int(kept[0]): 100.0}, budget=6).fit(small)
    assert not dear.support_[kept[0]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"costs": [1.0] * 60}, "costs must come with a budget"),
        ({"budget": 3, "n_features_to_select": 2}, "must not be given together"),
        ({"budget": 0}, "budget must be a finite number > 0"),
        ({"budget": 3, "costs": [0.0] * 60}, "A cost must be a finite number > 0; got 0.0"),
        ({"budget": 3, "costs": 2.0}, "costs must be an array with one cost per feature"),
        ({"budget": 3, "costs": [1.0]}, "costs must have one entry per feature, 60; got 1"),
        ({"budget": 3, "costs": iter([1.0])}, "can be read more than once"),
        ({"budget": 1, "must_keep": [0, 1]}, "budget must cover the features .* which cost 2"),
        ({"n_features_to_select": 2, "n_components": 3}, "at most the number of features kept, 2"),
        ({"n_features_to_select": 0.05, "n_components": 4}, "number of features kept, 3; got 4"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1"),
        ({"scaling": 2}, "scaling must lie in"),
        ({"route": "disk"}, "route must be one of"),
    ],
)
def test_settings_outside_the_rules_are_refused(X, settings, message):
    with pytest.raises(ParameterError, match=message):
        FSPCA(**settings).fit(X)


def test_components_that_the_data_count_are_lowered_to_the_features_kept(X):
    assert FSPCA(2).fit(X).n_components_ == 2
    assert FSPCA(1, n_components=0.9).fit(X).n_components_ == 1
    assert FSPCA(20).fit(X).n_components_ == SPCAFS().fit(X).n_components_


def test_constant_columns_come_last_and_large_numbers_are_warned_of(X):
    with_constant = np.hstack([np.ones((120, 1)), X])
    with pytest.warns(KeepersWarning, match="ranked last"):
        selector = FSPCA(8, n_components=3).fit(with_constant)
    np.testing.assert_array_equal(selector.support_[1:], FSPCA(8, n_components=3).fit(X).support_)
    assert selector.ranking_[0] == 61
    with pytest.warns(UnitsWarning, match="FSPCA keeps what has large numbers"):
        FSPCA(8).fit(X * np.where(np.arange(60) == 7, 1e5, 1.0))


def test_features_like_better_ones_are_skipped_and_the_rest_described(X):
    doubled = np.hstack([X, X[:, :20] + 1e-6])
    selector = FSPCA(8, n_components=3, max_correlation=0.95).fit(doubled)
    kept = np.flatnonzero(selector.support_)
    assert len(set(kept % 60)) == 8
    assert selector.value_ == pytest.approx(held(doubled, kept, 3), rel=1e-9)
    assert not selector.components_[:, ~selector.support_].any()


def test_scaling_is_a_fit_of_scaled_columns(X):
    scaled = FSPCA(8, n_components=3, scaling=1).fit(X)
    expected = FSPCA(8, n_components=3).fit(X / X.std(axis=0))
    np.testing.assert_array_equal(scaled.support_, expected.support_)
    assert scaled.value_ == pytest.approx(expected.value_, rel=1e-9)


@pytest.mark.parametrize("route", [None, "stream"])
def test_spcafs_refined_holds_more_and_says_how_much(wide, route):
    settings = {"n_components": 4, "random_state": 0}
    plain = SPCAFS(12, **settings).fit(wide)
    refined = SPCAFS(12, refine="l20", **settings)
    if route is None:
        refined.fit(wide)
    else:
        refined.set_params(route=route).fit_blocks(cut(wide, 64))
    np.testing.assert_allclose(refined.scores_, plain.scores_, rtol=1e-3, atol=1e-9)
    was, now = np.flatnonzero(plain.support_), np.flatnonzero(refined.support_)
    changed = refined.refined_from_
    assert len(now) == 12
    assert changed.n_changed == len(set(now) - set(was)) > 0
    assert changed.variance_before == pytest.approx(held(wide, was, 4), rel=1e-7)
    assert changed.variance_after == pytest.approx(held(wide, now, 4), rel=1e-7)
    assert changed.variance_after > changed.variance_before
    others = np.argsort(refined.ranking_)[12:]
    assert np.all(np.diff(plain.ranking_[others]) > 0) or route is not None
    assert not hasattr(plain, "refined_from_")


def test_a_refined_selection_keeps_to_what_the_user_decides(X):
    groups = np.repeat(np.arange(20), 3)
    told = SPCAFS(
        9, n_components=3, refine="l20", must_keep=[57, 58, 59], never_keep=[0], groups=groups
    ).fit(X)
    assert told.support_[57:].all()
    assert not told.support_[0]
    assert set(np.bincount(groups[3:], told.support_[3:])[1:]) <= {0, 3}
    with pytest.raises(ParameterError, match="must not be given together"):
        SPCAFS(refine="l20", max_correlation=0.9).fit(X)
    nothing = SPCAFS(2, n_components=2, refine="l20", groups=groups).fit(X)
    assert nothing.refined_from_.n_changed == 0
