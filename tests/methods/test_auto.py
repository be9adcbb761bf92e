"""AutoSelector: its steps against closed forms, NumPy and planted structure; storages; words."""

import itertools
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import false_discovery_control, kstest, rankdata

from keepers import AutoSelector
from keepers.blocks.sources import as_blocks
from keepers.exceptions import DataError, DataWarning, ParameterError
from keepers.linalg.ordering import drawn_rows, mean_ranks
from keepers.linalg.scatter import column_moments
from keepers.methods import auto, auto_steps
from keepers.methods.auto_steps import (
    Discount,
    HalfSampleStability,
    NeighbourAgreement,
    UnitFreeColumns,
    compare_halves,
    correlate,
    discoveries,
    excess_variance,
    first_grams,
    growing_counts,
    judge,
    measure_smoothness,
    neighbour_graph,
    smoothness,
    split_copies,
    sum_folds,
)
from keepers.methods.laplacian import laplacian_scores
from keepers.methods.neighbours import binary_graph


def columns_of(X):
    return UnitFreeColumns.of_table(X, column_moments(X))


def measure(X, seed=0):
    columns, rng = columns_of(X), np.random.default_rng(seed)
    return measure_smoothness(columns, first_grams(columns, rng), 7, rng)


def grouped(seed, n_samples, n_features, n_planted, n_groups, spread=2.5):
    """Groups of samples differ in the first features; the others are noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    groups = rng.integers(n_groups, size=n_samples)
    X[:, :n_planted] += (spread * rng.standard_normal((n_groups, n_planted)))[groups]
    return X


@pytest.fixture(scope="module")
def X():
    return grouped(0, 120, 80, 40, n_groups=5)


@pytest.fixture(scope="module")
def selector(X):
    return AutoSelector().fit(X)


# Clouds


@pytest.mark.parametrize(
    "storage", [np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array]
)
def test_products_of_columns_without_units_are_correlations(storage):
    rng = np.random.default_rng(0)
    X = 1e6 + rng.standard_normal((40, 30)) * np.exp(rng.standard_normal(30))
    X[:, 10:20] = rng.integers(0, 3, (40, 10))
    X[:, 20:] = rng.standard_normal((40, 10)) * (rng.random((40, 10)) < 0.2)
    X[0] += 1.0
    columns = columns_of(storage(X))
    some = np.array([3, 0, 15, 29])
    unit = columns.standardised(some)
    np.testing.assert_allclose(unit @ unit.T, np.corrcoef(X[:, some].T), atol=1e-9)
    ranked = columns.ranked(some)
    spearman = np.corrcoef(rankdata(X[:, some], axis=0).T)
    np.testing.assert_allclose(ranked @ ranked.T, spearman, atol=1e-9)
    np.testing.assert_allclose(ranked.sum(axis=1), 0.0, atol=1e-9)


def test_blocks_hold_every_column_once(X, monkeypatch):
    monkeypatch.setattr(auto_steps, "BLOCK_SIZE", 7 * 120)
    parts = list(columns_of(X).blocks(np.arange(80)))
    assert max(len(part) for part in parts) == 7
    assert np.concatenate(parts).tolist() == list(range(80))


@pytest.mark.parametrize("levels", [2, 5, 10**9])
def test_ranks_are_those_of_scipy(levels):
    rows = np.random.default_rng(levels).integers(0, levels, (20, 33)).astype(float)
    # Exactly: halves of whole numbers.
    np.testing.assert_array_equal(mean_ranks(rows), rankdata(rows, axis=1) - 1.0)


def test_rounding_does_not_break_ties():
    row = np.array([[0.1 + 0.2, 0.5, 0.3, 0.3 * (1 + 1e-15), -4.0]])
    assert mean_ranks(row).tolist() == [[2.0, 4.0, 2.0, 2.0, 0.0]]


def test_by_size_an_outlier_does_not_make_the_others_equal():
    row = np.array([[0.1 + 0.2, 0.3, 1e15, 0.5, -0.1]])  # 0.1 + 0.2 is not 0.3 in binary
    assert mean_ranks(row, by_size=True).tolist() == [[1.5, 1.5, 4.0, 3.0, 0.0]]
    assert mean_ranks(row).tolist() == [[1.5, 1.5, 4.0, 1.5, 1.5]]


# Smoothness and its test


@pytest.fixture
def graph():
    return binary_graph(np.random.default_rng(1).standard_normal((50, 3)), 6)


def test_smoothness_is_one_minus_the_laplacian_score(graph):
    X = np.random.default_rng(0).standard_normal((50, 12)) + 5.0
    found = smoothness(columns_of(X), np.arange(12), graph)[0]
    np.testing.assert_allclose(found, 1.0 - laplacian_scores(graph, X).scores, atol=1e-10)


def test_samples_in_another_order_are_columns_shuffled(graph):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 12))
    order = rng.permutation(50)
    found = smoothness(columns_of(X), np.arange(12), graph, [order])[1]
    expected = smoothness(columns_of(X[order]), np.arange(12), graph)[0]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_discoveries_are_those_of_benjamini_and_hochberg(seed):
    p_values = np.random.default_rng(seed).random(200) ** 3
    expected = false_discovery_control(p_values) <= 0.01
    np.testing.assert_array_equal(discoveries(p_values), expected)
    assert not discoveries(np.ones(10)).any()


def test_p_values_of_noise_are_uniform():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((100, 400)) * np.exp(rng.standard_normal(400))
    X[:, :200] = np.random.default_rng(4).standard_normal((4, 200))[rng.integers(4, size=100)]
    X[:, :200] += 0.1 * rng.standard_normal((100, 200))
    found = measure(X)
    assert found.carries[:200].mean() > 0.95
    assert kstest(found.p_values[200:], "uniform").pvalue > 0.01


@pytest.mark.parametrize("kind", ["gaussian", "rescaled", "heavy tails", "rare", "narrow"])
def test_nothing_is_found_in_noise(kind):
    n_found = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 10 if kind == "narrow" else 150))
        if kind == "rescaled":
            X *= np.exp(rng.standard_normal(150))
        elif kind == "heavy tails":
            X = rng.standard_t(2, X.shape)
        elif kind == "rare":
            X = (rng.random(X.shape) < 0.1) + 0.0
        n_found += measure(X, seed).carries.any()
    # One in a hundred is expected of a table.
    assert n_found <= 1


@pytest.mark.parametrize("rescaled", [False, True])
def test_few_planted_features_are_found_among_many(rescaled):
    X = grouped(5, 150, 1000, 40, n_groups=4, spread=1.5)
    if rescaled:
        X *= np.exp(np.random.default_rng(6).standard_normal(1000))
    found = measure(X)
    best = np.argsort(-found.values)[:40]
    assert np.sum(best < 40) >= 36
    by_variance = np.argsort(-X.var(axis=0))[:40]
    assert np.sum(best < 40) >= np.sum(by_variance < 40)
    assert not rescaled or np.sum(by_variance < 40) < 10


def test_units_change_nothing():
    X = grouped(7, 80, 120, 60, n_groups=4, spread=2.0)
    factors = np.exp(np.random.default_rng(8).normal(0, 3, 120))
    found, rescaled = measure(X), measure(X * factors + 10 * factors)
    np.testing.assert_allclose(rescaled.values, found.values, atol=1e-8)
    np.testing.assert_array_equal(rescaled.carries, found.carries)


def test_excess_variance_is_told_only_where_variances_agree():
    X = np.random.default_rng(0).standard_normal((100, 500))
    X[:, 0] *= 2.0
    variances = column_moments(X).variance
    excess = excess_variance(columns_of(X))
    # The logarithm of a variance of n normal values has a standard deviation of sqrt(2 / n).
    expected = np.log(variances[0] / np.median(variances)) / np.sqrt(2 / 100)
    np.testing.assert_allclose(excess[0], expected, rtol=0.1)
    factors = np.exp(np.random.default_rng(1).standard_normal(500))
    assert excess_variance(columns_of(X * factors)) is None


# Discount


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_first", [0, 3])
def test_the_lazy_search_takes_what_a_plain_one_takes(seed, n_first):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 6)) @ rng.standard_normal((6, 80)) + rng.standard_normal((30, 80))
    values = rng.random(80)
    r2 = np.corrcoef(X.T) ** 2
    first = np.sort(rng.choice(80, n_first, replace=False))
    taken, scores = list(first), []
    while len(taken) < 40:
        left = values * (1.0 - r2[:, taken].max(axis=1)) if taken else values.copy()
        left[taken] = -1.0
        taken.append(int(np.argmax(left)))
        scores.append(left[taken[-1]])
    found = Discount(columns_of(X), values, np.ones(80, dtype=bool), first).ranking(40)
    assert found.order[:40].tolist() == taken
    np.testing.assert_allclose(found.scores[taken[n_first:]], scores, atol=1e-9)
    assert found.nearest[taken[0]] == -1
    for place in range(1, 40):
        column, earlier = taken[place], taken[:place]
        assert found.nearest[column] == earlier[int(np.argmax(r2[column, earlier]))]
        r = found.correlations[column]
        np.testing.assert_allclose(r**2, r2[column, earlier].max(), atol=1e-9)
    rest = found.order[40:]
    assert np.all(np.diff(values[rest]) <= 0.0)
    assert found.scores[rest].max() <= min(scores) + 1e-9


def test_a_copy_is_taken_last_and_says_whose_it_is():
    X = np.random.default_rng(0).standard_normal((30, 5))
    X[:, 4] = -2.0 * X[:, 1] + 7.0
    values, none = np.array([0.5, 0.9, 0.4, 0.3, 0.9]), np.empty(0, dtype=int)
    found = Discount(columns_of(X), values, np.ones(5, dtype=bool), none).ranking(5)
    assert found.order[0] == 1
    assert found.order[-1] == 4
    assert found.nearest[4] == 1
    np.testing.assert_allclose(found.correlations[4], -1.0)
    np.testing.assert_allclose(found.scores[4], 0.0, atol=1e-9)


# How many


def test_a_graph_without_a_fold_is_that_of_the_other_columns():
    X = grouped(0, 60, 100, 100, n_groups=4)
    folds = np.where(np.arange(100) % 5, 0, 1)
    rest = columns_of(X[:, folds == 1])
    expected = neighbour_graph(sum_folds(rest, np.zeros(20, dtype=int), np.ones(20)), 7)
    found = neighbour_graph(sum_folds(columns_of(X), folds, np.ones(100)), 7, left_out=0)
    np.testing.assert_array_equal(found.toarray(), expected.toarray())


def test_columns_that_made_the_graph_agree_with_it_and_noise_does_not():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 8))
    X /= X.std(axis=0)
    columns = columns_of(X)
    graph = binary_graph(X[:, :3], 5)
    agreement = NeighbourAgreement(columns, graph.toarray(), 5)
    own, noise = agreement.of(np.arange(3), [3])[0], agreement.of(np.arange(3, 8), [5])[0]
    # Every sample has at least five neighbours of weight 1, and names five of them.
    assert own == 1.0
    # A pair of samples is joined with probability of about 1.5 * 5 / 119.
    assert noise < 0.15


def test_heavier_edges_count_more():
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    columns = columns_of(X)
    graph = binary_graph(X, 1)  # 0-1, 1-2, 2-3
    graph = graph + 2 * binary_graph(np.array([[0.0], [5.0], [4.0], [0.1]]), 1)
    # Sample 0 names 1 (weight 1 of 2, its best is 3), 1 names 0 (1 of 3), 2 names 1 (3 of 3),
    # 3 names 2 (1 of 2).
    found = NeighbourAgreement(columns, graph.toarray(), 1).of(np.array([0]), [1])
    np.testing.assert_allclose(found, [(1 + 1 + 3 + 1) / (2 + 3 + 3 + 2)])


def test_counts_grow_by_a_quarter_up_to_the_most():
    assert growing_counts(0).tolist() == []
    assert growing_counts(3).tolist() == [3]
    counts = growing_counts(200)
    assert counts[0] == 5
    assert counts[-1] == 200
    assert all(1 < later / earlier <= 1.34 for earlier, later in itertools.pairwise(counts))


@pytest.fixture(scope="module")
def of_wide():
    """Fitted to more columns than a narrow table has."""
    return AutoSelector().fit(grouped(0, 120, 140, 40, n_groups=5))


def test_the_number_is_the_smallest_with_almost_the_best_agreement(of_wide):
    selector = of_wide
    enough = selector.agreement_ >= 0.95 * selector.agreement_.max()
    assert selector.n_enough_ == selector.counts_[enough].min()
    assert selector.n_features_to_select_ == selector.n_enough_
    assert selector.support_.sum() == selector.n_enough_
    assert selector.support_[40:].sum() == 0


def test_the_kept_features_keep_neighbours_better_than_random_ones(selector):
    at = selector.counts_.tolist().index(selector.n_enough_)
    assert selector.random_agreement_.shape == (10,)
    assert selector.random_agreement_.max() < selector.agreement_[at] <= 1.0


def percent(share):
    return f"{100 * share:.0f}"


def test_the_summary_says_what_is_kept_and_what_that_preserves(of_wide):
    selector = of_wide
    kept, drawn = selector.n_enough_, selector.random_agreement_
    preserved = selector.agreement_[selector.counts_ == kept][0]
    assert selector.summary_ == (
        f"Keep {kept} of 140 features. They preserve {percent(preserved)} % of each sample's "
        f"nearest neighbours ({kept} random features: {percent(drawn.min())} to "
        f"{percent(drawn.max())} %). {selector.carries_structure_.sum()} features show structure "
        f"beyond chance. {selector.stability_}"
    )
    close = selector.counts_[selector.agreement_ >= 0.95 * selector.agreement_.max()]
    expected = f"Anything from {close[0]} to {close[-1]} features works about equally well."
    assert selector.doubts_ == [expected]


def test_a_number_that_is_given_is_described_as_such(X):
    selector = AutoSelector(7).fit(X)
    assert not any(doubt.startswith("Anything from") for doubt in selector.doubts_)
    assert selector.summary_.startswith("Keep 7 of 80 features. They preserve ")
    assert "(7 random features: " in selector.summary_
    assert "random" not in AutoSelector(1.0).fit(X).summary_
    assert AutoSelector(1).fit(X).summary_.startswith("Keep 1 of 80 features. It preserves ")


@pytest.fixture(scope="module")
def many_directions():
    """Samples that differ in 60 directions: every further feature adds something."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 60)) @ rng.standard_normal((60, 700))
    return X + rng.standard_normal(X.shape)


def test_the_search_goes_on_while_more_than_half_is_needed(many_directions, monkeypatch):
    monkeypatch.setattr(auto, "FIRST_TRIED", 20)
    selector = AutoSelector().fit(many_directions)
    most = selector.counts_[-1]
    assert most > 20
    assert 2 * selector.n_enough_ <= most
    assert np.all(np.diff(selector.counts_) > 0)
    graph = measure(many_directions, seed_of(selector)).graph
    agreement = NeighbourAgreement(columns_of(many_directions), graph.toarray(), 7)
    order = np.argsort(selector.ranking_)
    one_by_one = [agreement.of(order, [count])[0] for count in selector.counts_]
    np.testing.assert_allclose(selector.agreement_, one_by_one, atol=1e-12)
    monkeypatch.setattr(auto, "MOST_TRIED", 40)
    short = AutoSelector().fit(many_directions)
    assert short.counts_[-1] == 40
    share = f"{100 * short.agreement_[-1]:.0f} %"
    assert f" More features preserve more; the search stopped at 40 ({share})." in short.summary_
    # Exactly: the same computation twice.
    assert short.top(40).indices.tolist() == selector.top(40).indices.tolist()


def seed_of(selector):
    return np.random.RandomState(selector.random_state).randint(2**31 - 1)


@pytest.mark.parametrize("n_features", [3, 6, 9])
def test_narrow_tables_are_not_a_close_call_for_want_of_shuffled_columns(n_features):
    X = grouped(0, 120, n_features, n_features, n_groups=4, spread=4.0)
    selector = AutoSelector().fit(X)
    assert selector.p_values_.min() <= 1.01 / (1 + 100 * n_features)
    assert not any("close call" in doubt for doubt in selector.doubts_)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("change", ["rows", "signs", "columns"])
def test_the_order_of_rows_and_columns_and_the_signs_change_nothing(change, seed):
    rng = np.random.default_rng(seed)
    X = grouped(seed, 60, 25, 12, n_groups=3, spread=0.8)
    expected = AutoSelector().fit(X)
    columns, given = np.arange(25), X
    if change == "rows":
        given = X[rng.permutation(60)]
    elif change == "signs":
        given = X * rng.choice([-1.0, 1.0], 25)
    else:
        columns = rng.permutation(25)
        given = X[:, columns]
    found = AutoSelector().fit(given)
    assert found.ranking_.tolist() == expected.ranking_[columns].tolist()
    assert found.support_.tolist() == expected.support_[columns].tolist()
    assert found.summary_ == expected.summary_
    # Rounding only: the sums are those of other orders.
    np.testing.assert_allclose(found.scores_, expected.scores_[columns], atol=1e-9)


@pytest.mark.parametrize("n_samples", [14, 15, 16])
def test_few_samples_do_not_hide_few_features_far_apart(n_samples):
    n_found = 0
    for seed in range(10):
        X = np.random.default_rng(seed).standard_normal((n_samples, 80))
        X[::2, :6] += 20.0
        carrying = np.flatnonzero(AutoSelector(n_halves=0).fit(X).carries_structure_)
        n_found += len(carrying) > 0 and carrying.max() < 6
    assert n_found >= 9


def test_too_few_samples_are_said_to_be_too_few():
    X = grouped(0, 9, 30, 30, n_groups=2, spread=9.0)
    with pytest.warns(DataWarning, match=r"Too few samples.*9 .*10 "):
        selector = AutoSelector().fit(X)
    assert not selector.structure_found_
    assert selector.support_.all()
    with pytest.warns(DataWarning, match="Too few samples"):
        AutoSelector().fit(np.repeat(X, 3, axis=0))


def test_copies_of_rows_are_one_sample():
    noise = np.random.default_rng(1).standard_normal((40, 60))
    with pytest.warns(DataWarning, match="No structure found"):
        selector = AutoSelector().fit(np.repeat(noise, 2, axis=0))
    assert any("40 of 80 rows are copies" in doubt for doubt in selector.doubts_)
    X = grouped(2, 60, 30, 15, n_groups=3)
    once, twice = AutoSelector().fit(X), AutoSelector().fit(np.tile(X, (2, 1)))
    assert twice.ranking_.tolist() == once.ranking_.tolist()
    np.testing.assert_allclose(twice.p_values_, once.p_values_)


def test_noise_is_called_noise_and_kept_unless_a_number_is_given():
    X = np.random.default_rng(1).standard_normal((70, 90))
    with pytest.warns(DataWarning, match=r"No structure found.* all 90 are kept"):
        selector = AutoSelector().fit(X)
    assert selector.summary_.startswith("No structure found")
    assert selector.n_enough_ == 0
    assert selector.support_.all()
    assert not selector.structure_found_
    assert not selector.carries_structure_.any()
    assert np.all(selector.p_values_ == 1.0)
    with pytest.warns(DataWarning, match="random"):
        assert AutoSelector(7).fit(X).support_.sum() == 7


def test_a_choice_that_random_sets_match_is_called_no_better_than_chance():
    """Sixty noisy readings of the same two numbers: any few of them will do."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((150, 2))[:, rng.integers(0, 2, 60)]
    X = X + 0.3 * rng.standard_normal(X.shape)
    selector = AutoSelector(30).fit(X)
    doubt = next(doubt for doubt in selector.doubts_ if "no better than chance" in doubt)
    assert "of 10 random sets of 30 features" in doubt


@pytest.mark.parametrize(
    ("agreement", "said"),
    [(0.1, "every one of them preserves"), (0.25, "some preserve"), (0.31, None)],
)
def test_what_the_random_sets_decide_is_said_as_it_is(X, agreement, said):
    selector = AutoSelector(8).fit(X)
    selector.doubts_, selector.random_agreement_ = [], np.array([0.2, 0.25, 0.3])
    selector._describe(500, agreement)
    doubts = [doubt for doubt in selector.doubts_ if "no better than chance" in doubt]
    assert [said in doubt for doubt in doubts] == ([] if said is None else [True])


def test_more_features_than_carry_structure_are_a_doubt(X):
    selector = AutoSelector(60).fit(X)
    n_without = int(60 - selector.carries_structure_.sum())
    expected = f"{n_without} of the 60 kept features show no structure beyond chance."
    assert expected in selector.doubts_


# The ranking


def test_features_that_carry_structure_come_first_and_score_above_zero(X):
    selector = AutoSelector(10).fit(X)
    carries = selector.carries_structure_
    assert carries[:40].sum() >= 38
    assert carries[40:].sum() <= 2
    ranked = np.argsort(selector.ranking_)
    assert carries[ranked[: carries.sum()]].all()
    assert np.all(selector.scores_[carries] > 0.0)
    # Minus the Laplacian score: 0 or less.
    np.testing.assert_allclose(
        selector.scores_[~carries], selector.smoothness_[~carries] - 1.0, atol=1e-12
    )
    assert np.all(np.diff(selector.scores_[ranked]) <= 1e-9)


def test_scores_are_the_smoothness_less_what_a_better_feature_says(X):
    selector = AutoSelector(30).fit(X)
    r = np.corrcoef(X.T)
    ranked = selector.top(28).indices
    first = ranked[0]
    np.testing.assert_allclose(selector.scores_[first], selector.smoothness_[first], atol=1e-9)
    assert selector.represented_by_[first] == -1
    for place in range(1, 28):
        column, better = ranked[place], ranked[:place]
        nearest = better[np.argmax(np.abs(r[column, better]))]
        assert selector.represented_by_[column] == nearest
        np.testing.assert_allclose(selector.representation_[column], r[column, nearest], atol=1e-9)
        expected = selector.smoothness_[column] * (1.0 - r[column, nearest] ** 2)
        np.testing.assert_allclose(selector.scores_[column], expected, atol=1e-9)


def test_the_choice_is_nested_and_the_same_for_every_number(X):
    few, many = AutoSelector(5).fit(X), AutoSelector(25).fit(X)
    # Exactly: the same computation twice.
    np.testing.assert_array_equal(few.ranking_, many.ranking_)
    assert few.top(25).indices.tolist() == many.top().indices.tolist()


@pytest.mark.parametrize(
    "storage",
    [
        np.asfortranarray,
        sp.csr_array,
        sp.csc_array,
        pd.DataFrame,
        lambda X: da.from_array(X, chunks=(17, 30)),
    ],
)
def test_every_storage_gives_the_same_features(storage, X):
    expected = AutoSelector(12).fit(X)
    found = AutoSelector(12).fit(storage(X))
    assert found.top().indices.tolist() == expected.top().indices.tolist()
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-9)
    np.testing.assert_array_equal(found.stability_.shares, expected.stability_.shares)
    np.testing.assert_array_equal(found.stability_.stand_ins, expected.stability_.stand_ins)


def test_the_order_goes_as_far_as_the_number_however_few_are_tried(X, monkeypatch):
    expected = AutoSelector(40).fit(X).ranking_
    monkeypatch.setattr(auto, "FIRST_TRIED", 10)
    monkeypatch.setattr(auto, "MOST_TRIED", 10)
    found = AutoSelector(40).fit(X).ranking_
    np.testing.assert_array_equal(np.argsort(found)[:40], np.argsort(expected)[:40])


def test_what_must_stay_comes_first_and_what_must_go_has_no_say(X):
    selector = AutoSelector(6, must_keep=[45, 3], never_keep=[0, 1, 2]).fit(X)
    assert set(selector.top(2).indices) == {3, 45}
    assert sorted(selector.ranking_[[0, 1, 2]]) == [78, 79, 80]
    without = AutoSelector(6, must_keep=[42, 0]).fit(X[:, 3:])
    assert (selector.top(20).indices - 3).tolist() == without.top(20).indices.tolist()
    assert np.isnan(selector.smoothness_[0])
    with pytest.raises(ParameterError, match="at most 77"):
        AutoSelector(78, never_keep=[0, 1, 2]).fit(X)


def test_others_are_discounted_for_resembling_what_must_stay(X):
    best = AutoSelector(1).fit(X).top(1).indices[0]
    copied = np.column_stack([X, X[:, best] + 1.0])
    selector = AutoSelector(5, must_keep=[80]).fit(copied)
    assert selector.represented_by_[best] == 80
    np.testing.assert_allclose(selector.scores_[best], 0.0, atol=1e-9)


@pytest.mark.parametrize("shape", [(2, 2), (3, 1), (5, 4), (8, 4)])
def test_tiny_tables_are_ranked(shape):
    X = np.random.default_rng(0).standard_normal(shape)
    for given in (X, with_gaps(X, 0.2)) if len(X) > 5 else (X,):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            selector = AutoSelector(1).fit(given)
        assert sorted(selector.ranking_) == list(range(1, shape[1] + 1))


# How sure


def test_the_columns_of_some_samples_and_their_sums_are_those_of_numpy(X):
    columns, samples = columns_of(X), np.arange(0, 120, 2)
    Z = (X - X.mean(axis=0)) / (X.std(axis=0) * np.sqrt(120))
    half, kept = columns.of_samples(samples)
    assert kept.tolist() == list(range(80))
    r = np.corrcoef(X[samples].T)
    np.testing.assert_allclose(half.between(kept, kept), r, atol=1e-12)
    np.testing.assert_allclose(half.variances, X[samples].var(axis=0))
    sums = first_grams(columns, np.random.default_rng(0)).of_samples(samples, kept, half.shares)
    centred = Z[samples] - Z[samples].mean(axis=0)
    np.testing.assert_allclose(sums.sums[0].sum(axis=0), centred @ centred.T, atol=1e-12)
    np.testing.assert_allclose(sums.squares[0], (centred**2).sum(axis=0))
    constant = X.copy()
    constant[samples, 7] = 3.0
    assert columns_of(constant).of_samples(samples)[1].tolist() == [*range(7), *range(8, 80)]


def test_halves_are_compared_with_what_is_kept():
    X = np.random.default_rng(0).standard_normal((40, 6))
    X[:, 4] = -X[:, 1] + 0.1 * X[:, 5]
    names = np.arange(6) + 10
    kept, chosen = np.array([0, 1]), [np.array([0, 4]), np.array([1, 3]), np.array([0, 1])]
    found = compare_halves(columns_of(X), kept, names[kept], names, chosen)
    r = np.corrcoef(X.T)
    assert found.n_halves == 3
    np.testing.assert_allclose(found.shares, [2 / 3, 2 / 3])
    nearest = 1 if abs(r[0, 1]) > abs(r[0, 3]) else 3
    assert found.stand_ins.tolist() == [10 + nearest, 14]
    np.testing.assert_allclose(found.correlations, [r[0, nearest], r[1, 4]], atol=1e-12)
    assert found.n_same == pytest.approx(4 / 3)
    expected = (abs(r[0, nearest]) + abs(r[1, 4])) / 2
    assert found.mean_correlation == pytest.approx(expected)
    assert str(found) == (
        "With half of the samples, 1 of 2 features would be the same; the other would be replaced "
        f"by a correlated one (r = {expected:.2f} on average)."
    )
    same = compare_halves(columns_of(X), kept, names[kept], names, [kept, kept])
    assert str(same) == "With half of the samples, the same 2 features would be kept."
    assert same.stand_ins.tolist() == [-1, -1]
    assert np.isnan(same.correlations).all()


def test_stability_is_that_of_fits_to_halves(X, selector):
    found = selector.stability_
    assert isinstance(found, HalfSampleStability)
    assert found.n_halves == 4
    assert found.features.tolist() == selector.top().indices.tolist()
    assert set(found.shares) <= {0.0, 0.25, 0.5, 0.75, 1.0}
    assert found.n_same == pytest.approx(found.shares.sum())
    assert np.array_equal(found.stand_ins < 0, found.shares == 1.0)
    stood_in = found.stand_ins >= 0
    r = np.corrcoef(X.T)[found.features[stood_in], found.stand_ins[stood_in]]
    np.testing.assert_allclose(found.correlations[stood_in], r, atol=1e-9)
    assert selector.summary_.endswith(str(found))
    # By hand, with other halves.
    kept, rng, same = set(selector.top().indices), np.random.default_rng(0), []
    for _ in range(4):
        half = np.sort(rng.permutation(120)[:60])
        other = AutoSelector(len(kept), n_halves=0).fit(X[half])
        same.append(len(kept & set(other.top().indices)))
    assert found.n_same == pytest.approx(np.mean(same), abs=0.25 * len(kept))


def test_the_same_features_come_back_where_others_are_noise():
    X = grouped(3, 200, 60, 6, n_groups=5, spread=6.0)
    selector = AutoSelector(6).fit(X)
    assert selector.stability_.n_same == 6.0
    assert "the same 6 features would be kept" in selector.summary_


def test_rounding_does_not_decide_what_says_the_same():
    r = np.array([[1.0, 1.0 - 4e-16, 0.9], [1.0 - 4e-16, 1.0, 0.95 - 4e-16], [0.9, 0.95, 1.0]])
    for limit, kept in ((1.0, [0, 2]), (0.95, [0, 2]), (0.9, [0])):
        found, copies = split_copies(np.arange(3), r, np.zeros(3, dtype=bool), limit)
        assert found.tolist() == kept
        assert sorted([*found, *copies]) == [0, 1, 2]
    always = np.array([False, True, False])
    assert split_copies(np.arange(3), r, always, 0.95)[0].tolist() == [0, 1]


def test_halves_keep_the_number_that_was_asked_for_or_choose_their_own():
    # Two sets of k of d columns share at least 2k - d.
    X = grouped(0, 100, 10, 4, n_groups=4, spread=5.0)
    assert AutoSelector(8).fit(X).stability_.n_same >= 6
    # Half of the samples show fewer of the weak columns.
    rng = np.random.default_rng(2)
    groups, X = rng.integers(4, size=100), rng.standard_normal((100, 24))
    X[:, :22] += (rng.standard_normal((4, 22)) * np.repeat([4.0, 0.8], [4, 18]))[groups]
    found = AutoSelector().fit(X)
    assert found.n_features_to_select_ > 12
    assert found.stability_.n_same < 2 * found.n_features_to_select_ - 24


def test_copies_are_stand_ins_for_each_other():
    rng = np.random.default_rng(0)
    X = grouped(4, 100, 12, 12, n_groups=6, spread=3.0)
    X = np.repeat(X, 5, axis=1) + 0.05 * rng.standard_normal((100, 60))
    found = AutoSelector(12).fit(X).stability_
    assert found.n_same < 11
    assert found.mean_correlation > 0.9


def test_halves_change_nothing_else_and_can_be_left_out(X, selector):
    without = AutoSelector(n_halves=0).fit(X)
    assert without.stability_ is None
    assert "half" not in without.summary_
    np.testing.assert_array_equal(without.scores_, selector.scores_)  # exactly
    np.testing.assert_array_equal(without.random_agreement_, selector.random_agreement_)
    assert AutoSelector(n_halves=3).fit(X).stability_.n_halves == 3
    with pytest.raises(ParameterError, match="n_halves must be an integer >= 0"):
        AutoSelector(n_halves=-1).fit(X)


def test_stability_is_not_measured_where_it_would_say_nothing(X):
    assert AutoSelector(5).fit(X[:20]).stability_ is not None
    assert AutoSelector(5).fit(X[:19]).stability_ is None
    assert AutoSelector(1.0).fit(X).stability_ is None
    noise = np.random.default_rng(1).standard_normal((70, 90))
    with pytest.warns(DataWarning, match="No structure"):
        assert AutoSelector(7).fit(noise).stability_ is None


def test_halves_obey_the_same_rules(X):
    found = AutoSelector(8, must_keep=[45], never_keep=[0, 1, 2], max_correlation=0.8).fit(X)
    at = found.stability_.features.tolist().index(45)
    assert found.stability_.shares[at] == 1.0
    assert not set(found.stability_.stand_ins) & {0, 1, 2}


def test_halves_of_a_table_with_gaps(X):
    gaps = with_gaps(X, 0.1)
    gaps[12:, 3] = np.nan  # few values in a half
    found = AutoSelector(10).fit(gaps).stability_
    assert 0.0 < found.n_same < 10.0
    assert np.all(np.isfinite(found.correlations[found.stand_ins >= 0]))


# Gaps


def with_gaps(X, share, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def columns_with_gaps(X):
    observed = ~np.isnan(X)
    filled = np.where(observed, X, np.nanmean(X, axis=0) + 1.0)  # any value will do
    return UnitFreeColumns.of_table(filled, column_moments(filled), observed)


def test_smoothness_of_a_column_with_gaps_is_that_of_its_observed_rows(graph):
    X = with_gaps(np.random.default_rng(0).standard_normal((50, 6)) + 5.0, 0.4)
    order = np.random.default_rng(1).permutation(50)
    found, shuffled = smoothness(columns_with_gaps(X), np.arange(6), graph, [order])
    for column in range(6):
        there = np.flatnonzero(~np.isnan(X[:, column]))
        part, x = graph[there][:, there], X[there, column]
        expected = 1.0 - laplacian_scores(part, x[:, np.newaxis]).scores
        np.testing.assert_allclose(found[column], expected, atol=1e-10)
        x = X[order[np.isin(order, there)], column]
        expected = 1.0 - laplacian_scores(part, x[:, np.newaxis]).scores
        np.testing.assert_allclose(shuffled[column], expected, atol=1e-10)


def test_correlations_with_gaps_are_those_of_pandas():
    X = np.random.default_rng(0).standard_normal((80, 4)) @ np.random.default_rng(1).random((4, 9))
    X = with_gaps(X, 0.3)
    columns = columns_with_gaps(X)
    found = columns.between(np.arange(5), np.arange(9))
    np.testing.assert_allclose(found, pd.DataFrame(X).corr().to_numpy()[:5], atol=1e-10)
    apart = X.copy()
    apart[:40, 0], apart[35:, 1] = np.nan, np.nan  # no row has both
    assert columns_with_gaps(apart).between(np.array([0]), np.array([1])) == 0.0
    complete = columns.standardised(np.arange(2)), None
    assert correlate(complete, complete).max() <= 1.0


def test_complete_columns_are_judged_as_in_a_table_without_gaps(graph):
    X = np.random.default_rng(0).standard_normal((50, 6))
    gaps = X.copy()
    gaps[:20, 3] = np.nan
    orders = [np.random.default_rng(1).permutation(50)]
    expected = judge(columns_of(X), np.arange(6), graph, orders)
    found = judge(columns_with_gaps(gaps), np.arange(6), graph, orders)
    others = [0, 1, 2, 4, 5]
    np.testing.assert_allclose(found.values[others], expected.values[others], atol=1e-12)
    np.testing.assert_allclose(found.tested[:, others], expected.tested[:, others], atol=1e-12)
    assert found.values[3] < smoothness(columns_with_gaps(gaps), np.array([3]), graph)[0, 0]


@pytest.mark.parametrize("share", [0.3, 0.6, 0.8])
def test_shuffled_columns_with_gaps_are_as_smooth_as_complete_ones(graph, share):
    X = np.random.default_rng(0).standard_normal((50, 400))
    X[:, 200:] = with_gaps(X[:, 200:], share)
    rng = np.random.default_rng(1)
    orders = [rng.permutation(50) for _ in range(20)]
    shuffled = judge(columns_with_gaps(X), np.arange(400), graph, orders).tested[1:]
    complete, gaps = shuffled[:, :200], shuffled[:, 200:]
    np.testing.assert_allclose(gaps.mean(), complete.mean(), atol=0.1 * complete.std())
    np.testing.assert_allclose(gaps.std(), complete.std(), rtol=0.15)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.9])
def test_noise_is_not_kept_for_its_gaps(X, share):
    gaps = np.column_stack([X, with_gaps(np.random.default_rng(3).normal(size=(120, 20)), share)])
    selector = AutoSelector().fit(gaps)
    assert not selector.support_[80:].any()
    assert selector.carries_structure_[80:].sum() <= 1
    by_filling = AutoSelector(missing="model").fit(gaps)
    assert by_filling.carries_structure_[80:].sum() > 2


def test_a_feature_with_gaps_that_carries_structure_is_found(X):
    gaps = X.copy()
    gaps[:, :10] = with_gaps(X[:, :10], 0.4)
    selector = AutoSelector().fit(gaps)
    assert selector.carries_structure_[:10].mean() >= 0.9
    assert selector.n_missing_.tolist() == np.isnan(gaps).sum(axis=0).tolist()
    np.testing.assert_allclose(selector.mean_, np.nanmean(gaps, axis=0))
    np.testing.assert_allclose(selector.var_, np.nanvar(gaps, axis=0))


def test_gaps_are_counted_in_the_summary_and_stay_gaps(X):
    gaps = with_gaps(X, 0.05)
    selector = AutoSelector(8).fit(pd.DataFrame(gaps))
    assert f"{np.isnan(gaps).sum()} values are missing (" in selector.summary_
    assert "in 80 columns; only observed values were scored." in selector.summary_
    kept = selector.transform(pd.DataFrame(gaps))
    np.testing.assert_array_equal(kept, gaps[:, selector.support_])
    assert "missing" not in AutoSelector(8).fit(X).summary_
    assert "1 value is missing" in AutoSelector(8).fit(with_one_gap(X)).summary_


def with_one_gap(X):
    gaps = X.copy()
    gaps[0, 0] = np.nan
    return gaps


def test_gaps_of_large_tables_are_those_of_the_rows_drawn():
    X = np.random.default_rng(0).standard_normal((1500, 6)) + np.arange(1500)[:, None] / 100
    X[9:, 1] = np.nan
    selector = AutoSelector(3).fit(X)
    n_missing = selector.n_missing_.sum()
    assert n_missing < 1000
    assert f" In the 1,000 rows drawn, {n_missing} values are missing" in selector.summary_
    few = f"fewer than 10 values were observed in the rows drawn: 'x1' ({1000 - n_missing})."
    assert selector.doubts_[0].endswith(few)


def test_columns_with_too_few_values_come_last_and_are_named(X):
    gaps = X.copy()
    gaps[9:, 2] = np.nan
    gaps[10:, 5] = np.nan
    selector = AutoSelector().fit(gaps)
    assert selector.ranking_[2] == 80
    assert np.isnan(selector.smoothness_[2])
    assert np.isfinite(selector.smoothness_[5])
    expected = "1 feature was not used because fewer than 10 values were observed: 'x2' (9)."
    assert expected in selector.doubts_
    with pytest.raises(DataError, match="must have 10 observed values"):
        AutoSelector().fit(gaps[:, [2, 2]])


def test_a_limit_on_correlations_looks_at_observed_rows(X):
    """Two copies with gaps in different places, filled apart by the model."""
    gaps = np.column_stack([X, X[:, 0]])
    gaps[:30, 0], gaps[60:90, 80] = np.nan, np.nan
    selector = AutoSelector(20, max_correlation=0.95).fit(gaps)
    assert not (selector.support_[0] and selector.support_[80])
    assert max(selector.ranking_[0], selector.ranking_[80]) > 70


def test_gaps_may_be_refused(X):
    with pytest.raises(DataError, match="missing='model' fills NaN"):
        AutoSelector(missing="error").fit(with_gaps(X, 0.1))
    tags = AutoSelector().__sklearn_tags__().input_tags
    assert tags.allow_nan
    assert not AutoSelector(missing="error").__sklearn_tags__().input_tags.allow_nan


# Rows drawn from large tables

N_ROWS = 100
NAMES = [f"f{at}" for at in range(6)]


@pytest.fixture(scope="module")
def tall():
    """3000 rows, of which 100 are drawn."""
    X = grouped(1, 3000, 6, 5, n_groups=3, spread=6.0)
    X[np.abs(X) < 0.5] = 0.0
    return X


@pytest.fixture(autouse=True)
def few_rows(request, monkeypatch):
    if "tall" in request.fixturenames:
        monkeypatch.setattr(auto, "MOST_ROWS", N_ROWS)


def rows_of(n_samples):
    return drawn_rows(n_samples, N_ROWS, AutoSelector()._seed())


def cut(X, step):
    return [X[start : start + step] for start in range(0, X.shape[0], step)]


def frame(X):
    return pd.DataFrame(X, columns=NAMES)


def test_drawn_rows_are_halved(tall):
    in_memory, in_blocks = AutoSelector(2).fit(tall), fit(cut(tall, 77))
    assert in_memory.stability_.n_halves == 4
    np.testing.assert_array_equal(in_blocks.stability_.shares, in_memory.stability_.shares)


def draws_as_expected(found, X):
    """The moments are those of the rows drawn, which no other rows have."""
    rows = rows_of(len(X))
    assert found.n_samples_seen_ == len(X)
    assert found.n_rows_used_ == len(rows)
    np.testing.assert_allclose(found.mean_, X[rows].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.var_, X[rows].var(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.scores_, AutoSelector(2).fit(X).scores_, atol=1e-9)


def fit(source):
    return AutoSelector(2).fit_blocks(source)


@pytest.mark.parametrize(
    "store", [np.asarray, np.asfortranarray, frame, sp.csr_array, sp.csc_matrix, sp.coo_array]
)
def test_a_table_in_memory_in_every_storage(tall, store):
    found = AutoSelector(2).fit(store(tall))
    draws_as_expected(found, tall)
    assert found.n_features_in_ == 6
    assert hasattr(found, "feature_names_in_") == (store is frame)
    assert found.n_passes_ == 1


def test_another_seed_draws_other_rows(tall):
    other = AutoSelector(2, random_state=1).fit(tall)
    assert not np.allclose(other.mean_, AutoSelector(2).fit(tall).mean_)


SOURCES = {
    "array": lambda X: X,
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "list": lambda X: cut(X, 77),
    "one block": lambda X: [X],
    "function": lambda X: lambda: iter(cut(X, 1234)),
    "csr blocks": lambda X: [sp.csr_matrix(block) for block in cut(X, 500)],
    "frame": frame,
    "frames": lambda X: [frame(block) for block in cut(X, 500)],
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_source_gives_the_rows_of_the_table_in_memory(tall, source):
    found = fit(source(tall))
    draws_as_expected(found, tall)
    assert found.n_passes_ == 1


def test_every_file_gives_the_rows_of_the_table_in_memory(tall, tmp_path):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "parts"
    folder.mkdir()
    for number, part in enumerate(cut(frame(tall), 650)):
        part.to_parquet(folder / f"part-{number}.parquet", row_group_size=100)
    np.save(tmp_path / "table.npy", tall)
    frame(tall).to_csv(tmp_path / "table.csv", index=False)
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    for source in (folder, tmp_path / "table.npy", tmp_path / "table.csv", mapped):
        draws_as_expected(fit(source), tall)


def test_a_table_that_gives_other_rows_than_it_declares_is_refused(tall):
    source = as_blocks(tall)
    source.n_samples = 2999
    with pytest.raises(DataError, match=r"2999 .* 3000"):
        fit(source)


@pytest.fixture
def dask():
    dask = pytest.importorskip("dask")
    pytest.importorskip("dask.dataframe")
    with dask.config.set(scheduler="threads", num_workers=2):
        yield dask


@pytest.mark.parametrize("chunks", [(500, 6), (7, 3), ((1, 2000, 999), 6)])
def test_a_dask_array_gives_the_rows_of_the_table_in_memory(tall, dask, chunks):
    source = dask.array.from_array(tall, chunks=chunks)
    draws_as_expected(AutoSelector(2).fit(source), tall)
    sparse = source.rechunk((700, 6)).map_blocks(sp.csr_array)
    draws_as_expected(fit(sparse), tall)


def test_a_dask_dataframe_is_counted_first(tall, dask):
    source = dask.dataframe.from_pandas(frame(tall), npartitions=7)
    found = fit(source)
    draws_as_expected(found, tall)
    assert found.n_passes_ == 2
    assert list(found.feature_names_in_) == NAMES
    draws_as_expected(fit(source[source.f5 != 0]), tall[tall[:, 5] != 0])


def one_row_not_drawn(n_samples):
    return int(np.setdiff1d(np.arange(n_samples), rows_of(n_samples))[-1])


@pytest.mark.parametrize("source", [frame, lambda X: [frame(part) for part in cut(X, 1500)]])
def test_a_value_that_is_not_finite_is_refused_in_rows_that_are_not_drawn(tall, source):
    X = tall.copy()
    X[one_row_not_drawn(3000), 4] = np.inf
    with pytest.raises(DataError, match=r"'f4' \(1\)"):
        AutoSelector(2).fit_blocks(source(X))
    with pytest.raises(DataError, match=r"'f4' \(1\)"):
        AutoSelector(2).fit(frame(X))


def test_columns_constant_over_the_rows_drawn_are_set_aside_and_named(tall):
    X = tall.copy()
    X[:, 3] = 0.0
    X[one_row_not_drawn(3000), 3] = 1.0
    for method in (AutoSelector(2).fit, fit):
        with pytest.warns(DataWarning, match=r"100 rows drawn of 3000 .* 3\."):
            found = method(X)
        assert found.ranking_[3] == 6
        assert found.scores_[3] == -2.0
    X[:] = 0.0
    X[one_row_not_drawn(3000)] = 1.0
    with pytest.raises(DataError, match="100 rows drawn of 3000"):
        fit(X)
