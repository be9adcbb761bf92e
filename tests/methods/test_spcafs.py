"""SPCAFS as a user meets it."""

import re
import signal
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from keepers import SPCAFS, SPCAFSCV, StabilitySelector, datasets
from keepers.exceptions import (
    ConvergenceWarning,
    DataError,
    DataWarning,
    InactiveRowsWarning,
    ParameterError,
)
from keepers.methods.baselines import VarianceScore
from keepers.methods.spcafs import InactiveRows, find_inactive_rows

# Results


def test_three_lines_find_the_planted_features(planted):
    selector = SPCAFS(8).fit(planted)
    assert set(np.flatnonzero(selector.support_)) == set(range(8))


def test_fitted_attributes_are_consistent(planted):
    selector = SPCAFS(8, n_components=3).fit(planted)
    W = selector.components_.T
    assert W.shape == (40, 3)
    np.testing.assert_allclose(W.T @ W, np.eye(3), atol=1e-10)
    norms = np.linalg.norm(W, axis=1)
    active = norms > 2e-6
    assert active.sum() == selector.n_active_
    np.testing.assert_allclose(selector.scores_[active], norms[active], atol=1e-14)
    np.testing.assert_allclose(selector.scores_[~active], norms[~active], rtol=1e-3)
    np.testing.assert_allclose(selector.mean_, planted.mean(axis=0), atol=1e-14)
    assert sorted(selector.ranking_) == list(range(1, 41))
    assert selector.ranking_[np.argmax(selector.scores_)] == 1
    assert np.all(np.diff(selector.objective_) <= 0)
    assert selector.converged_
    assert selector.n_iter_ >= 2
    leading = np.linalg.eigvalsh(np.cov(planted.T) * 59)[-1]
    assert selector.gamma_ == pytest.approx(0.1 * leading, rel=1e-9)


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_the_default_keeps_half_a_share_keeps_that_share(planted):
    assert SPCAFS().fit(planted).support_.sum() == 20
    assert SPCAFS(0.25).fit(planted).support_.sum() == 10
    assert SPCAFS(1.0).fit(planted).support_.sum() == 40
    assert SPCAFS(1).fit(planted).support_.sum() == 1


def test_top_gives_any_k_without_refitting(frame):
    selector = SPCAFS(5).fit(frame)
    top = selector.top(12)
    assert len(top) == 12
    assert np.all(np.diff(top.scores) <= 0)
    assert list(top.names) == [frame.columns[j] for j in top.indices]
    np.testing.assert_array_equal(top.indices[:5], selector.top().indices)
    assert set(selector.top().indices) == set(np.flatnonzero(selector.support_))
    assert "feature" in str(top).splitlines()[0]
    with pytest.raises(ParameterError, match="at most the number of features, 40; got 41"):
        selector.top(41)


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_recall_on_wide_planted_data_beats_variance_ranking():
    # 300 x 20,000; 50 informative features of the same variance as the noise around them.
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 20_000)) * rng.uniform(0.8, 1.6, 20_000)
    informative = rng.choice(20_000, 50, replace=False)
    groups = rng.integers(0, 5, 300)
    X[:, informative] = rng.standard_normal((5, 50))[groups] + 0.5 * rng.standard_normal((300, 50))
    default = SPCAFS(50, n_components=4).fit(X)
    where_rows_die = SPCAFS(50, n_components=4, gamma=0.3 * default.gamma_).fit(X)
    recall = {
        selector: np.isin(informative, selector.top().indices).mean()
        for selector in (default, where_rows_die, VarianceScore(50).fit(X))
    }
    by_variance = list(recall.values())[-1]
    assert recall[default] > by_variance + 0.3
    assert recall[where_rows_die] > 0.75


def test_auto_counts_the_components_of_a_planted_factor_model():
    rng = np.random.default_rng(2)
    factors = rng.standard_normal((200, 4)) @ (2 * rng.standard_normal((4, 100)))
    X = factors + rng.standard_normal((200, 100)) * rng.uniform(0.5, 2, 100)
    assert SPCAFS().fit(X).n_components_ == 4
    assert SPCAFS().fit(rng.standard_normal((200, 100))).n_components_ == 1


@pytest.mark.parametrize("share", [0.3, 0.8, 0.99])
def test_a_share_of_variance_counts_components_as_pca_does(planted, share):
    expected = PCA(share, svd_solver="full").fit(planted).n_components_
    assert SPCAFS(n_components=share).fit(planted).n_components_ == expected


@pytest.mark.parametrize("solver", ["dense", "block"])
def test_no_sparsity_at_a_vanishing_gamma_and_components_span_pca(planted, solver):
    selector = SPCAFS(n_components=2, gamma=1e-6, solver=solver).fit(planted)
    assert selector.solver_ == solver
    pca = PCA(2).fit(planted).components_
    np.testing.assert_allclose(
        selector.components_.T @ selector.components_, pca.T @ pca, atol=1e-5
    )


# Invariances


@given(
    seed=st.integers(0, 1000),
    ratio=st.sampled_from([1e-3, 0.03, 0.3]),
    p=st.sampled_from([1.0, 0.5]),
)
@settings(max_examples=25, deadline=None)
def test_permuting_features_permutes_scores(planted, seed, ratio, p):
    order = np.random.default_rng(seed).permutation(40)
    gamma = ratio * 1000
    plain = SPCAFS(n_components=3, gamma=gamma, p=p).fit(planted).scores_
    permuted = SPCAFS(n_components=3, gamma=gamma, p=p).fit(planted[:, order]).scores_
    np.testing.assert_allclose(permuted, plain[order], atol=1e-6)


@given(seed=st.integers(0, 1000), offset=st.floats(-1e3, 1e3))
@settings(max_examples=25, deadline=None)
def test_shifting_or_permuting_samples_changes_nothing(planted, seed, offset):
    rng = np.random.default_rng(seed)
    plain = SPCAFS(n_components=3).fit(planted).scores_
    moved = planted[rng.permutation(60)] + offset * rng.standard_normal(40)
    np.testing.assert_allclose(SPCAFS(n_components=3).fit(moved).scores_, plain, atol=1e-6)


@given(factor=st.sampled_from([1e-30, 1e-6, 3.0, 1e6, 1e30]))
@settings(max_examples=5, deadline=None)
def test_scaling_x_by_c_and_gamma_by_c_squared_gives_the_same_w(planted, factor):
    plain = SPCAFS(n_components=3, gamma=20.0).fit(planted)
    scaled = SPCAFS(n_components=3, gamma=20.0 * factor**2).fit(factor * planted)
    np.testing.assert_allclose(scaled.components_, plain.components_, atol=1e-7)
    relative = SPCAFS(n_components=3).fit(factor * planted)
    np.testing.assert_allclose(
        relative.scores_, SPCAFS(n_components=3).fit(planted).scores_, atol=1e-7
    )


# Storages


def test_sparse_stays_sparse_through_transform_and_back(planted):
    X = sp.csr_array(planted * (np.abs(planted) > 1))
    selector = SPCAFS(8).fit(X)
    reduced = selector.transform(X)
    assert sp.issparse(reduced)
    assert reduced.shape == (60, 8)
    restored = selector.inverse_transform(reduced)
    assert restored.shape == X.shape
    np.testing.assert_array_equal(
        restored.toarray()[:, selector.support_], X.toarray()[:, selector.support_]
    )


def test_float32_stays_float32(planted):
    X = planted.astype(np.float32)
    selector = SPCAFS(8, n_components=3).fit(X)
    assert selector.components_.dtype == np.float32
    assert selector.scores_.dtype == np.float32
    assert selector.transform(X).dtype == np.float32
    expected = SPCAFS(n_components=3).fit(planted).scores_
    np.testing.assert_allclose(selector.scores_, expected, atol=1e-3)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("solver", ["dense", "block"])
def test_a_mean_of_a_million_loses_nothing(planted, store, solver):
    options = {"n_components": 3, "solver": solver}
    expected = SPCAFS(**options).fit(planted).scores_
    selector = SPCAFS(**options).fit(store(planted + 1e6))
    np.testing.assert_allclose(selector.scores_, expected, atol=1e-6)


def test_the_same_seed_gives_the_same_bits_on_the_randomised_path(planted, monkeypatch):
    monkeypatch.setattr("keepers.linalg.scatter.SMALL_SIDE", 0)
    settings = {"n_components": 3, "tol": 1e-11}
    first, second = (SPCAFS(solver="block", random_state=7, **settings) for _ in range(2))
    # Exactly: the same computation twice.
    np.testing.assert_array_equal(first.fit(planted).scores_, second.fit(planted).scores_)
    exact = SPCAFS(solver="dense", **settings).fit(planted).scores_
    np.testing.assert_allclose(first.scores_, exact, atol=1e-4)


def test_ties_go_to_the_lowest_index():
    column = np.random.default_rng(0).standard_normal(30)
    X = np.column_stack([column, column, column])
    selector = SPCAFS(1, n_components=1).fit(X)
    np.testing.assert_allclose(selector.scores_, np.sqrt(1 / 3), atol=1e-6)
    tied = VarianceScore(1).fit(np.array([[0.0, 0.0, 1.0, 4.0], [1.0, 2.0, 2.0, 2.0]]))
    assert tied.ranking_.tolist() == [3, 1, 4, 2]


# Rows that are left out


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_were_left_out_come_back_where_the_others_pull_them(seed):
    """PCA follows 300 features; the penalty leaves one of them, whose second factor pulls six."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((200, 3))
    factors[:, 0] = 1.0  # the means
    common, own = np.sqrt(200) * np.linalg.qr(factors)[0][:, 1:].T
    X = 0.3 * rng.standard_normal((200, 307))
    X[:, :301] += np.outer(common, np.append(rng.uniform(0.8, 1.2, 300), 1.0))
    X[:, 300:] += np.outer(own, [6.0] + [3.0] * 6)
    gamma = 0.1 * np.linalg.eigvalsh(np.cov(X.T) * 199)[-1]
    steps = []
    fits = [
        SPCAFS(n_components=1, gamma=gamma, solver=solver, callback=steps.append).fit(X)
        for solver in ("block", "dense")
    ]
    rows = [step.n_rows for step in steps[: fits[0].n_iter_]]
    assert min(rows[1:]) < 300
    assert np.any(np.diff(rows[rows.index(min(rows)) :]) > 0)
    for fit in fits:
        np.testing.assert_array_equal(np.flatnonzero(fit.active_), np.arange(300, 307))
    assert fits[0].objective_[-1] == pytest.approx(fits[1].objective_[-1], rel=1e-6)
    np.testing.assert_allclose(fits[0].scores_, fits[1].scores_, atol=1e-4)


# Living in scikit-learn


def test_works_in_pipelines_column_transformers_and_searches(frame):
    pipeline = make_pipeline(SPCAFS(8), KMeans(4, n_init=2, random_state=0))
    search = GridSearchCV(pipeline, {"spcafs__gamma": ["scale", 1.0]}, cv=3).fit(frame)
    assert search.best_score_ < 0
    columns = ColumnTransformer(
        [("keep", SPCAFS(3), list(frame.columns[:10]))], remainder="passthrough"
    )
    assert columns.fit_transform(frame).shape == (60, 33)


def test_a_callback_is_told_of_every_step(planted):
    seen = []
    selector = SPCAFS(solver="block", callback=seen.append).fit(planted)
    assert len(seen) == selector.n_iter_
    assert seen[-1].objective == selector.objective_[-1]


def test_an_interrupted_fit_leaves_nothing_behind(planted):
    def interrupt(progress):
        if progress.n_iter == 3:
            signal.raise_signal(signal.SIGINT)

    selector = SPCAFS(8, n_components=3).fit(planted)
    selector.set_params(callback=interrupt)
    # A shell's background job starts with SIGINT ignored, and its children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            selector.fit(planted)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [name for name in vars(selector) if name.endswith("_")] == []
    with pytest.raises(NotFittedError):
        selector.transform(planted)


# Bad input: the rule, the value, the way out


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 0}, r"gamma must .*; got 0"),
        ({"gamma": -1.0}, r"gamma must be .* got -1.0"),
        ({"gamma": np.inf}, r"gamma must be .* got inf"),
        ({"gamma": np.nan}, r"gamma must be .* got nan"),
        ({"gamma": "auto"}, r"gamma must .*; got 'auto'"),
        ({"gamma": None}, r"gamma must be .* got None"),
        ({"p": 0}, r"p must .*; got 0"),
        ({"p": 1.5}, r"p must .*; got 1.5"),
        ({"p": True}, r"p must .*; got True"),
        ({"eps": 0}, r"eps must .*; got 0"),
        ({"tol": -1}, r"tol must .*; got -1"),
        ({"solver": "fast"}, r"solver must .*; got 'fast'"),
        ({"n_components": 0}, r"n_components must .*; got 0"),
        ({"n_components": 1.0}, r"n_components must .*; got 1.0"),
        ({"n_components": "mle"}, r"n_components must be .* got 'mle'"),
        ({"n_components": 41}, r"n_components must .*; got 41.*60 samples"),
        ({"n_features_to_select": 1.5}, r"share in \(0, 1\].* got 1.5"),
        ({"callback": 3}, r"callback must .*; got 3"),
    ],
)
def test_a_bad_setting_gets_the_rule_and_the_value(planted, settings, message):
    selector = SPCAFS(**settings)
    with pytest.raises(ParameterError, match=message):
        selector.fit(planted)
    assert not hasattr(selector, "n_features_in_")


def test_more_components_than_samples_allow_is_refused(planted):
    with pytest.raises(ParameterError, match="from 1 to 4; got 5"):
        SPCAFS(n_components=5).fit(planted[:5])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_missing_values_are_located(frame, value):
    broken = frame.copy()
    broken.iloc[3:5, 7] = value
    with pytest.raises(DataError, match=r"NaN or infinity.*'feature 7' \(2\).*SimpleImputer"):
        SPCAFS().fit(broken)
    with pytest.raises(DataError, match=r"7 \(2\)"):
        SPCAFS().fit(broken.to_numpy())
    with pytest.raises(DataError, match=r"7 \(2\)"):
        SPCAFS().fit(sp.csr_array(broken.to_numpy()))


def test_constant_columns_come_last_with_a_warning_that_names_them(frame):
    table = frame.copy()
    table["feature 2"] = 7.0
    table["feature 30"] = 0.0
    with pytest.warns(DataWarning, match="'feature 2', 'feature 30'"):
        selector = SPCAFS(n_components=3).fit(table)
    assert sorted(selector.ranking_[[2, 30]]) == [39, 40]
    assert selector.scores_[2] == selector.scores_[30] == 0
    without = SPCAFS(n_components=3).fit(table.drop(columns=["feature 2", "feature 30"]))
    np.testing.assert_allclose(np.delete(selector.scores_, [2, 30]), without.scores_, atol=1e-12)


def test_long_lists_of_constant_columns_are_shortened(planted):
    X = planted.copy()
    X[:, 10:30] = 1.0
    with pytest.warns(DataWarning, match="10, 11, 12, 13, 14 and 15 more"):
        SPCAFS(n_components=2).fit(X)


def test_all_constant_data_are_refused():
    with pytest.raises(DataError, match="all 3 columns of X are constant over its 5 samples"):
        SPCAFS().fit(np.ones((5, 3)))


@pytest.mark.parametrize("size", [1e300, 1e-300, 1e200, 1e-200])
def test_values_whose_squares_leave_float64_are_refused_with_the_factor(planted, size):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(DataError, match=r"between 1e-140 and 1e140.*Multiply X by"):
            SPCAFS().fit(planted * size)


def test_large_whole_numbers_are_refused_and_smaller_ones_are_exact(planted):
    counts = np.round(planted * 1000).astype(np.int64)
    with pytest.raises(DataError, match=r"at most 2\*\*53.*largest here is"):
        SPCAFS().fit(counts + 2**62)
    options = {"n_components": 3}
    np.testing.assert_allclose(
        SPCAFS(**options).fit(counts + 2**40).scores_,
        SPCAFS(**options).fit(counts.astype(float)).scores_,
        atol=1e-4,
    )


def test_a_scatter_past_memory_is_refused_with_the_number_and_the_other_solver():
    X = np.random.default_rng(0).standard_normal((5, 200_000))
    with pytest.raises(DataError, match=r"needs about 960.0 GB .*solver='block' needs none"):
        SPCAFS(n_components=2, solver="dense").fit(X)


@pytest.mark.parametrize("seed", range(2))
def test_a_plateau_is_told_and_counts_as_not_converged(seed):
    X = np.random.default_rng(seed).standard_normal((200, 1500))  # no structure at all
    leading = np.linalg.norm(X - X.mean(axis=0), 2) ** 2
    with pytest.warns(ConvergenceWarning, match="on a plateau: the 6 leading components"):
        selector = SPCAFS(50, n_components=6, gamma=0.01 * leading).fit(X)
    assert selector.stop_reason_ == "plateau"
    assert selector.converged_ is False
    assert selector.n_iter_ < 200
    assert np.all(np.diff(selector.objective_) <= 0)
    assert selector.support_.sum() == 50
    # What a plateau is: components of nearly the same variance.
    values = np.linalg.svd((X - X.mean(axis=0)) @ selector.components_.T, compute_uv=False) ** 2
    assert values[-1] > 0.8 * values[0]


def test_components_that_are_no_larger_than_noise_end_on_a_plateau_in_large_tables(monkeypatch):
    monkeypatch.setattr("keepers.linalg.scatter.SMALL_SIDE", 0)
    X = np.random.default_rng(0).standard_normal((400, 600))
    with pytest.warns(ConvergenceWarning, match="on a plateau: the 5 leading components"):
        assert SPCAFS(n_components=5, random_state=0).fit(X).stop_reason_ == "plateau"
    X[:, :30] += X[:, :1]  # one component stands out
    assert SPCAFS(n_components=5, random_state=0).fit(X).stop_reason_ == "converged"


@pytest.mark.parametrize("solver", ["dense", "block"])
@pytest.mark.parametrize("seed", range(4))
def test_of_identical_columns_the_first_goes_last(solver, seed):
    # Two components, a penalty that leaves two rows, and rounding added by hand. Either one of each
    # pair of copies goes, then the second, or both copies of the strongest column stay.
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 5)) * [5.0, 4.0, 1.0, 1.0, 1.0]
    X = np.hstack([X, X[:, :2]]) * (1 + 2e-16 * rng.choice([-1, 1], (40, 7)))
    selector = SPCAFS(2, n_components=2, gamma=1e4, solver=solver, random_state=0).fit(X)
    assert sorted(selector.top().indices) in ([0, 1], [0, 5])


def test_rows_of_equal_norm_are_ordered_by_variance():
    # Orthogonal columns: the two rows that are left have norm 1 but for rounding.
    X = np.kron(np.eye(4), [[1.0], [-1.0]]) * [2.0, 5.0, 3.0, 4.0]
    selector = SPCAFS(2, n_components=2, gamma=1e-3).fit(X)
    assert selector.top().indices.tolist() == [1, 3]


@pytest.mark.parametrize("solver", ["block", "dense"])
def test_more_features_than_active_rows_are_kept_with_a_warning(solver):
    """At an extreme penalty exactly m rows are active (Theorem 1: W'W = I has rank m)."""
    X = np.random.default_rng(0).standard_normal((60, 12)) * np.linspace(1, 3, 12)
    selector = SPCAFS(10, n_components=3, gamma=1e5, solver=solver)
    said = (
        r"Only 3 of the 10 kept features have active \(non-zero\) rows of W with gamma=1e\+05; the "
        r"others are ranked by how close .* Use a smaller gamma \(gamma=.* should be small "
        r"enough\), or keep at most 3 features\."
    )
    with pytest.warns(InactiveRowsWarning, match=said):
        selector.fit(X)
    assert selector.n_active_ == selector.active_.sum() == 3
    np.testing.assert_array_equal(np.sort(selector.scores_)[:-3] < 1e-4, True)
    assert selector.support_.sum() == 10


@pytest.mark.parametrize("solver", ["block", "dense"])
@pytest.mark.parametrize("gamma", [1e5, 400.0])
def test_inactive_rows_are_ranked_by_how_near_they_are_to_becoming_active(solver, gamma):
    """For p = 1 such a row has the norm sqrt(eps) r / sqrt(1 - r^2) with r = 2 |(SW)_i| / gamma."""
    X = np.random.default_rng(0).standard_normal((60, 8)) * np.linspace(1, 3, 8)
    selector = SPCAFS(n_components=1, gamma=gamma, eps=1e-12, solver=solver).fit(X)
    centred = X - X.mean(axis=0)
    pull = np.linalg.norm(centred.T @ (centred @ selector.components_.T), axis=1)
    inactive = selector.scores_ < 2e-6
    assert inactive.sum() == 8 - selector.n_active_ == 7
    r = 2 * pull[inactive] / selector.gamma_
    expected = 1e-6 * r / np.sqrt(1 - r**2)
    np.testing.assert_allclose(selector.scores_[inactive], expected, rtol=1e-9)
    np.testing.assert_array_equal(
        np.flatnonzero(inactive)[np.argsort(-pull[inactive])], selector.top(8).indices[1:]
    )


def stored(X):
    """The same samples, stored or listed in other ways."""
    return {
        "C order": np.ascontiguousarray(X),
        "Fortran order": np.asfortranarray(X),
        "CSR": sp.csr_array(X),
        "CSC": sp.csc_array(X),
        "rows reversed": X[::-1],
        "rows shuffled": X[np.random.default_rng(5).permutation(len(X))],
        "frame": pd.DataFrame(X).add_prefix("x"),
    }


@pytest.mark.parametrize("solver", ["block", "dense"])
@pytest.mark.parametrize("scaling", [0.0, 0.5, 1.0])
def test_with_exactly_m_active_rows_the_whole_order_is_known(solver, scaling):
    """W is then a rotation of m unit vectors: all norms are 1, and |(SW)_i| = |S_iA|.

    The m active rows go by variance, the others by |S_iA|, whatever the storage.
    """
    rng = np.random.default_rng(3)
    X = rng.standard_normal((70, 25)) @ (np.eye(25) + 0.2 * rng.standard_normal((25, 25)))
    X *= rng.uniform(1, 3, 25)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0) ** scaling
    S = scaled.T @ scaled
    orders = set()
    for name, table in stored(X).items():
        options = {"n_components": 5, "gamma": 1e4, "scaling": scaling, "solver": solver}
        selector = SPCAFS(5, **options).fit(table)
        assert selector.n_active_ == 5, name
        active = np.flatnonzero(selector.support_)
        np.testing.assert_allclose(selector.scores_[active], 1.0, rtol=1e-9)
        pull = np.linalg.norm(S[:, active], axis=1)
        pull[active] = np.inf
        expected = np.lexsort((-X.var(axis=0), -pull))
        np.testing.assert_array_equal(selector.top(25).indices, expected, err_msg=name)
        orders.add(tuple(expected))
    assert len(orders) == 1


@pytest.mark.parametrize(("k", "gamma"), [(None, 1e5), (3, 1e5), (10, 1e-3)])
def test_nothing_is_said_where_no_number_was_asked_for_or_enough_rows_are_active(k, gamma):
    X = np.random.default_rng(0).standard_normal((60, 12)) * np.linspace(1, 3, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector = SPCAFS(k, n_components=3, gamma=gamma).fit(X)
    assert selector.n_active_ == (3 if gamma > 1 else 12)


def test_halves_do_not_repeat_the_warning_about_inactive_rows():
    X = np.random.default_rng(0).standard_normal((60, 12)) * np.linspace(1, 3, 12)
    selector = SPCAFS(10, n_components=3, gamma=1e5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        StabilitySelector(selector, n_resamples=4, random_state=0).fit(X)
    assert [w.category for w in caught].count(InactiveRowsWarning) == 1


# More features kept than rows of W are active


def test_the_sentence_about_one_active_row_is_in_the_singular():
    assert str(InactiveRows(2, 1, 12.34, None)) == (
        "Only 1 of the 2 kept features has an active (non-zero) row of W with gamma=12.3; "
        "the others are ranked by how close they are to becoming active."
    )


def test_the_way_out_names_a_gamma_and_a_number_in_the_words_of_python_or_the_command():
    found = InactiveRows(50, 9, 12.34, 4.567)
    assert found.way_out() == (
        "Use a smaller gamma (gamma=4.6 should be small enough), or keep at most 9 features."
    )
    assert found.way_out("--set gamma=", "-k ") == (
        "Use a smaller gamma (--set gamma=4.6 should be small enough), or keep at most 9 features "
        "(-k 9)."
    )
    assert InactiveRows(5, 1, 1.0, None).way_out() == (
        "Use a smaller gamma, or keep at most 1 feature."
    )


@pytest.mark.parametrize(("n_components", "k"), [("auto", 100), (3, 300), (10, 40)])
def test_the_gamma_that_the_warning_names_is_small_enough(n_components, k):
    X = datasets.load("srbct").X
    with pytest.warns(InactiveRowsWarning) as caught:
        before = SPCAFS(k, n_components=n_components, gamma=2e3).fit(X)
    named = float(re.search(r"\(gamma=(\S+) should", str(caught[0].message)).group(1))
    # With W held fixed, row i leaves zero where gamma falls below 2 |(SW)_i|: here a tenth below.
    centred = X - X.mean(axis=0)
    pull = 2 * np.linalg.norm(centred.T @ (centred @ before.components_.T), axis=1)
    inactive = np.linalg.norm(before.components_, axis=0) < 2e-6
    assert named == pytest.approx(0.9 * pull[before.support_ & inactive].min(), rel=0.06)
    after = SPCAFS(k, n_components=n_components, gamma=named).fit(X)  # without a warning
    assert k <= after.n_active_ < X.shape[1]


def test_features_skipped_for_max_correlation_do_not_count_as_kept_active_rows():
    """Enough rows are active, but copies of them are skipped, so that inactive ones are kept."""
    rng = np.random.default_rng(0)
    base = rng.standard_normal((60, 3)) * 5
    X = np.hstack([base, base + 0.1 * rng.standard_normal((60, 3)), rng.standard_normal((60, 6))])
    gamma = 0.1 * np.linalg.eigvalsh(np.cov(X.T) * 59)[-1]
    plain = SPCAFS(6, n_components=3, gamma=gamma).fit(X)
    assert plain.n_active_ == 6
    with pytest.warns(InactiveRowsWarning, match="Only 3 of the 6 kept features have active"):
        SPCAFS(6, n_components=3, gamma=gamma, max_correlation=0.9).fit(X)


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_no_gamma_is_named_where_none_can_be_told():
    """Below p = 1, and where a column has nothing to do with the active ones."""
    X = np.kron(np.eye(4), [[1.0], [-1.0]]) * [2.0, 5.0, 3.0, 4.0]
    for changed in ({}, {"p": 0.5}):
        selector = SPCAFS(4, n_components=1, gamma=100.0, **changed).fit(X)
        found = find_inactive_rows(selector, np.arange(4))
        assert found.small_enough is None
        assert found.n_active == selector.n_active_


def test_a_selector_that_chose_its_settings_speaks_for_its_winner():
    X = np.random.default_rng(0).standard_normal((60, 12)) * np.linspace(1, 3, 12)
    with pytest.warns(InactiveRowsWarning):
        selector = SPCAFSCV(10, n_components=[3], gamma_shares=[10.0], random_state=0).fit(X)
    found = find_inactive_rows(selector, np.flatnonzero(selector.support_))
    assert (found.n_kept, found.n_active) == (10, 3)
    assert found.gamma == selector.best_params_["gamma"]


def test_a_constant_feature_that_must_stay_is_not_said_to_be_inactive():
    X = np.random.default_rng(0).standard_normal((30, 6))
    X[:, 4] = 7.0
    with pytest.warns(DataWarning, match="do not vary"):  # and no other warning
        selector = SPCAFS(3, gamma=1e-3, must_keep=[4]).fit(X)
    assert selector.support_[4]
    assert find_inactive_rows(selector, np.flatnonzero(selector.support_)) is None


def test_other_selectors_have_nothing_to_say():
    X = np.random.default_rng(0).standard_normal((20, 6))
    assert find_inactive_rows(VarianceScore(3).fit(X), np.arange(3)) is None
    assert find_inactive_rows(SPCAFS(3, gamma=1e-3).fit(X), np.arange(3)) is None
