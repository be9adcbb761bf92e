"""The description of a selection, against NumPy and against what the selector did."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from keepers import (
    FSPCA,
    SPCAFS,
    SPCAFSCV,
    AutoSelector,
    StabilitySelector,
    VarianceScore,
    describe_selection,
)
from keepers.exceptions import DataWarning
from keepers.linalg.scatter import FactoredScatter, column_moments
from keepers.reports.selection import Feature, correlation_matrix, describe_fit
from keepers.tables.table import Table


@pytest.fixture
def table():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 12))
    X[:, 3] = X[:, 0] + 0.3 * rng.standard_normal(40)
    X[:, 7] = -2 * X[:, 5] + 0.1 * rng.standard_normal(40)
    X[np.abs(X) < 0.3] = 0
    return X


def neighbours_by_numpy(X, order, k):
    """For every column in the order: the kept one with the largest |r|, and that r."""
    r = np.corrcoef(X[:, order], rowvar=False)
    strength = np.abs(r)
    np.fill_diagonal(strength, -1)
    place = strength[:, :k].argmax(axis=1)
    return place, r[np.arange(len(order)), place]


@pytest.mark.parametrize("storage", [np.asarray, pd.DataFrame, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("k", [2, 5, 12])
def test_the_neighbour_is_the_most_correlated_kept_feature(table, storage, k):
    X = storage(table)
    selection = describe_selection(VarianceScore(k).fit(X), X)
    place, r = neighbours_by_numpy(table, selection.order, k)
    names = [str(selection.feature_names[selection.order[at]]) for at in place]
    assert [feature.neighbour for feature in selection.features] == names
    assert [feature.correlation for feature in selection.features] == pytest.approx(list(r))


def test_a_large_offset_does_not_spoil_the_correlation(table):
    shifted = table + 1e8
    found = correlation_matrix(shifted, column_moments(shifted), np.arange(12))
    np.testing.assert_allclose(found, np.corrcoef(table, rowvar=False), atol=1e-6)


@pytest.mark.filterwarnings("ignore::keepers.exceptions.DataWarning")
def test_a_constant_column_has_no_neighbour_and_is_nobodys(table):
    table[:, 2] = 3.0
    selection = describe_selection(VarianceScore(12).fit(table), table)
    assert selection.order[-1] == 2
    assert (selection.kept[-1].neighbour, selection.kept[-1].variance) == (None, 0.0)
    assert np.isnan(selection.kept[-1].correlation)
    assert "x2" not in [feature.neighbour for feature in selection.kept]


def test_a_single_feature_has_no_neighbour(table):
    (only,) = describe_selection(VarianceScore(1).fit(table), table).kept
    assert only.neighbour is None
    assert np.isnan(only.correlation)


def test_exact_copies_are_told_apart_by_rank():
    column = np.random.default_rng(0).standard_normal(30)
    X = np.column_stack([column, 1e-3 * column, 7 * column, -column])
    selection = describe_selection(VarianceScore(4).fit(X), X)
    ranked = [feature.name for feature in selection.kept]
    assert [feature.neighbour for feature in selection.kept] == [ranked[1], *ranked[:1] * 3]


def test_every_feature_is_either_kept_or_dropped_with_a_reason(table):
    table[:, 11] = 1.0
    selector = SPCAFS(3, must_keep=[4], never_keep=[0, 1])
    with pytest.warns(match="do not vary"):
        selector.fit(table)
    selection = describe_selection(selector, table)
    reasons = {feature.column: feature.reason for feature in selection.dropped}
    assert {feature.column for feature in selection.kept} | set(reasons) == set(range(12))
    assert {feature.column for feature in selection.kept} == set(np.flatnonzero(selector.support_))
    assert (reasons[0], reasons[1], reasons[11]) == ("never_keep", "never_keep", "constant")
    assert selection.count_dropped() == {"ranked below k": 6, "constant": 1, "never_keep": 2}


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
@pytest.mark.parametrize("method", [VarianceScore, SPCAFS])
def test_features_skipped_for_their_correlation_are_named_with_the_one_kept_instead(table, method):
    limit, k = 0.25, 4
    table[:, 5] *= 1.9  # the copy of column 7 ranks high
    plain = describe_selection(method().fit(table), table)  # the order without the limit
    selection = describe_selection(method(k, max_correlation=limit).fit(table), table)
    r = np.abs(np.corrcoef(table, rowvar=False))
    kept, skipped = [], []
    for column in plain.order:  # down the ranking, by hand
        if len(kept) == k:
            break
        (skipped if (r[column, kept] > limit).any() else kept).append(int(column))
    assert [feature.column for feature in selection.kept] == kept
    dropped = [feature for feature in selection.dropped if feature.reason == "max_correlation"]
    assert sorted(feature.column for feature in dropped) == sorted(skipped)
    assert skipped
    for feature in dropped:
        nearest = kept[int(np.argmax(r[feature.column, kept]))]
        assert feature.neighbour == f"x{nearest}"
        assert abs(feature.correlation) == pytest.approx(r[feature.column, nearest])


def test_moments_are_those_that_the_fit_measured(table, monkeypatch):
    selector = SPCAFS(3).fit(table)

    def measured_again(_):
        raise AssertionError("the moments were measured again")

    monkeypatch.setattr("keepers.reports.selection.column_moments", measured_again)
    selection = describe_selection(selector, table)
    np.testing.assert_allclose(selection.moments.mean, table.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(selection.variances, table.var(axis=0))
    share = table.var(axis=0)[selector.support_].sum() / table.var(axis=0).sum()
    assert selection.variance_share == pytest.approx(share)
    assert selection.notes.active.sum() == selector.n_active_


def test_moments_of_single_precision_and_of_other_rows_are_measured(table):
    selector = SPCAFS(3).fit(table.astype(np.float32))
    np.testing.assert_allclose(
        describe_selection(selector, table[:30]).variances, table[:30].var(axis=0)
    )
    exact = describe_selection(selector, table.astype(np.float32)).moments.mean
    np.testing.assert_allclose(exact, table.astype(np.float32).mean(axis=0, dtype=np.float64))


def test_of_a_table_read_in_blocks_what_is_known_is_told(table):
    selector = SPCAFS(4, max_correlation=0.7).fit_blocks([table[:20], table[20:]])
    selection = describe_fit(selector, None, [f"x{j}" for j in range(12)])
    whole = describe_selection(SPCAFS(4, max_correlation=0.7).fit(table), table)
    assert [f.name for f in selection.kept] == [f.name for f in whole.kept]
    assert [f.reason for f in selection.dropped] == [f.reason for f in whole.dropped]
    assert all(feature.neighbour is None for feature in selection.kept)
    assert selection.variance_share == pytest.approx(whole.variance_share)


@pytest.mark.parametrize("method", [SPCAFS, FSPCA])
def test_variances_of_a_table_in_blocks_are_those_of_all_rows(table, method):
    X = table.copy()
    X[:30, 3] = 1.0  # constant in the rows that are described
    selector = method(4, n_components=2, max_correlation=0.9).fit_blocks([X[:30], X[30:]])
    selection = describe_fit(selector, X[:30], [f"x{j}" for j in range(12)], n_samples=len(X))
    np.testing.assert_allclose(selection.variances, X.var(axis=0))
    np.testing.assert_allclose(
        [feature.variance for feature in selection.kept], X.var(axis=0)[selection.order[:4]]
    )
    assert "constant" not in selection.count_dropped()


def test_names_come_from_a_labelled_table(table):
    names = np.array([f"gene {j}" for j in range(12)], dtype=object)
    selection = describe_selection(VarianceScore(2).fit(table), Table(table, names))
    assert [feature.name for feature in selection.kept] == list(names[selection.order[:2]])


def test_a_stability_selection_is_described_too(table):
    selector = StabilitySelector(VarianceScore(3), n_resamples=4, random_state=0).fit(table)
    selection = describe_selection(selector, table, k=2)
    assert len(selection.kept) == 2
    assert repr(selection).startswith("<Selection: 2 of 12 features by StabilitySelector")


@pytest.fixture
def grouped():
    """Three groups told by columns 0 to 5, two copies of column 0, and noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 20))
    X[:, :6] += 5 * rng.standard_normal((3, 6))[np.arange(90) % 3]
    X[:, [6, 7]] = X[:, :1] + 0.01 * rng.standard_normal((90, 2))
    return X


def test_redundant_features_and_those_without_structure_are_told_apart(grouped):
    selector = AutoSelector(3, never_keep=[19]).fit(grouped)
    selection = describe_selection(selector, grouped)
    kept = [feature.column for feature in selection.kept]
    r = np.corrcoef(grouped, rowvar=False)
    seen = set()
    for feature in selection.dropped:
        carries = selector.carries_structure_[feature.column]
        nearest = kept[int(np.argmax(np.abs(r[feature.column, kept])))]
        expected = "no structure"
        if feature.column == 19:
            expected = "never_keep"
        elif carries and abs(r[feature.column, nearest]) >= 0.95:
            expected = "redundant"
        elif carries:
            expected = "ranked below k"
        assert feature.reason == expected
        seen.add(expected)
        if feature.neighbour is not None:
            assert feature.neighbour == f"x{nearest}"
            assert feature.correlation == pytest.approx(r[feature.column, nearest])
        assert (feature.neighbour is not None) >= (expected == "redundant")
    assert {"redundant", "no structure", "never_keep"} <= seen
    assert selection.notes.carries_structure.sum() == selector.carries_structure_.sum()


def test_what_the_front_door_says_is_part_of_the_description(grouped):
    selector = AutoSelector().fit(grouped)
    selection = describe_selection(selector, grouped)
    notes = selection.notes
    assert (notes.summary, notes.doubts) == (selector.summary_, tuple(selector.doubts_))
    assert notes.structure_found is True
    other = describe_selection(VarianceScore(2).fit(grouped), grouped).notes
    assert (other.summary, other.doubts, other.structure_found) == (None, (), None)


def test_a_feature_that_must_stay_does_not_make_others_redundant(grouped):
    """Column 15 is noise and scores lowest of all kept, but was not compared with the rest."""
    free = describe_selection(AutoSelector(3, never_keep=[15]).fit(grouped), grouped)
    held = describe_selection(AutoSelector(4, must_keep=[15]).fit(grouped), grouped)
    assert {f.column for f in held.kept} == {15} | {f.column for f in free.kept}
    assert held.count_dropped()["redundant"] == free.count_dropped()["redundant"]


def test_moments_of_drawn_rows_are_used_only_where_the_table_is_gone():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1300, 6))
    X[:, :3] += 4 * rng.standard_normal((3, 3))[rng.integers(0, 3, 1300)]
    names = [f"x{j}" for j in range(6)]
    whole = describe_selection(AutoSelector(2).fit(X), X)
    np.testing.assert_allclose(whole.variances, X.var(axis=0))
    assert (whole.n_samples, whole.n_rows_used, whole.moments.n_samples) == (1300, 1000, 1300)
    selector = AutoSelector(2).fit_blocks([X[:700], X[700:]])
    blocks = describe_fit(selector, None, names)
    np.testing.assert_allclose(blocks.variances, selector.var_)
    assert (blocks.n_samples, blocks.n_rows_used, blocks.moments.n_samples) == (1300, 1000, 1000)
    assert [f.name for f in blocks.kept] == [f.name for f in whole.kept]
    assert blocks.count_dropped() == whole.count_dropped()


@pytest.mark.parametrize(
    "selector",
    [
        SPCAFS(4, n_components=2, scaling=0.5),
        FSPCA(4, n_components=2),
        VarianceScore(4),
        AutoSelector(4),
    ],
)
@pytest.mark.parametrize("storage", [np.asarray, np.float32, pd.DataFrame, sp.csr_matrix])
@pytest.mark.filterwarnings("ignore::keepers.exceptions.KeepersWarning")
def test_the_certificate_is_that_of_the_selector(table, selector, storage):
    table[:, 2] = 3.0  # does not vary
    if storage is pd.DataFrame:
        X = pd.DataFrame(table, columns=[f"c{j}" for j in range(12)])
    else:
        X = storage(table)
    fitted = clone(selector).fit(X)
    found, expected = describe_selection(fitted, X).certificate, fitted.certificate(X)
    for number in ("value", "upper_bound", "best_known", "share"):
        assert getattr(found, number) == pytest.approx(getattr(expected, number), rel=1e-6)
    for columns in ("features", "proved_in", "proved_out"):
        np.testing.assert_array_equal(getattr(found, columns), getattr(expected, columns))
    assert (found.n_features, found.n_components) == (4, expected.n_components)
    names = [f"c{j}" if storage is pd.DataFrame else f"x{j}" for j in found.features]
    assert found.as_dict()["features_names"] == names


def test_the_certificate_of_another_number_of_features_is_about_that(table):
    selection = describe_selection(VarianceScore(4).fit(table), table, k=2)
    first = table[:, np.argsort(-table.var(axis=0))[:2]]
    values = np.linalg.eigvalsh(np.cov(first, rowvar=False, bias=True))[::-1]
    assert selection.certificate.n_features == 2
    m = selection.certificate.n_components
    assert selection.certificate.value == pytest.approx(values[:m].sum())


def test_gaps_are_certified_as_they_were_filled(table):
    gaps = table.copy()
    gaps[3, 0] = np.nan
    filled = gaps.copy()
    filled[3, 0] = np.nanmean(gaps[:, 0])
    selector = SPCAFS(4, n_components=2, missing="mean").fit(gaps)
    found = describe_selection(selector, gaps).certificate
    kept = filled[:, selector.support_]
    values = np.linalg.eigvalsh(np.cov(kept, rowvar=False, bias=True))[::-1]
    assert found.value == pytest.approx(values[:2].sum())


def test_a_table_that_is_gone_has_no_certificate(table):
    selector = SPCAFS(4, n_components=2).fit_blocks([table[:20], table[20:]])
    names = [f"x{j}" for j in range(12)]
    assert describe_fit(selector, None, names).certificate is None
    assert describe_fit(selector, table[:30], names, n_samples=40).certificate is None


@pytest.mark.parametrize("method", [SPCAFS, FSPCA])
@pytest.mark.parametrize("settings", [{}, {"scaling": 1.0}, {"never_keep": [0, 5]}])
def test_a_certificate_shares_the_scatter_of_the_fit(monkeypatch, method, settings):
    X = np.random.default_rng(3).standard_normal((20, 60)) * np.linspace(1, 3, 60)
    X[:, 7] = 1.0
    names, formed = [f"x{j}" for j in range(60)], []
    form = FactoredScatter.sample_gram
    monkeypatch.setattr(
        FactoredScatter, "sample_gram", lambda self: (formed.append(self), form(self))[1]
    )
    found = []
    for keeps in (False, True):
        selector = method(4, n_components=2, **settings)
        selector.keeps_scatter = keeps
        with pytest.warns(DataWarning, match="do not vary"):
            selector.fit(X)
        formed.clear()
        found.append(describe_fit(selector, X, names).certificate)
        shares = keeps and "never_keep" not in settings
        assert len(formed) == (0 if shares else 1)
    without, shared = (vars(each) | {"seconds": 0.0} for each in found)
    np.testing.assert_equal(shared, without)


def test_a_certificate_is_the_same_every_time():
    """Both sides exceed what is decomposed exactly, so a random start is needed."""
    X = sp.random(3100, 3200, density=0.004, format="csr", random_state=0)
    selector = VarianceScore(5).fit(X)
    first, second = (describe_selection(selector, X).certificate for _ in range(2))
    # The same computation twice: exactly equal.
    assert (first.value, first.upper_bound) == (second.value, second.upper_bound)


def test_where_the_number_comes_from_is_known(table):
    assert describe_selection(VarianceScore(2).fit(table), table).how_many == "asked"
    assert describe_selection(VarianceScore().fit(table), table).how_many == "half"
    assert describe_selection(VarianceScore().fit(table), table, k=2).how_many == "asked"


def test_a_dropped_feature_is_called_the_same_only_if_it_is():
    told = {
        r: Feature(0, "a", 1.0, 1.0, reason, "b", r).why
        for reason, r in [("redundant", -0.98), ("max_correlation", 0.7), ("ranked below k", 0.3)]
    }
    assert told == {
        -0.98: "same as b, r = -0.98",
        0.7: "too similar to b, r = +0.70",
        0.3: "ranked lower; closest kept: b, r = +0.30",
    }
    alone = Feature(0, "a", 1.0, 1.0, "no structure", "b", 0.2)
    assert alone.why == "no structure beyond chance"


def test_correlations_of_categories_have_no_sign(grouped):
    frame = pd.DataFrame(grouped[:, :4], columns=list("abcd"))
    frame["kind"] = np.array(["low", "mid", "top"])[np.digitize(-frame["a"], [-1.0, 1.0])]
    selector = AutoSelector(4).fit(frame)
    selection = describe_selection(selector, frame)
    assert {feature.name for feature in selection.features if not feature.signed} >= {"kind"}
    for feature in selection.kept:
        assert feature.signed == ("kind" not in (feature.name, feature.neighbour))
        assert bool(re.search("r = [+-]", feature.why)) == feature.signed


def test_gaps_are_left_out_of_correlations(grouped):
    gaps = grouped.copy()
    gaps[np.random.default_rng(0).random(gaps.shape) < 0.2] = np.nan
    selection = describe_selection(AutoSelector(4).fit(gaps), gaps)
    r = pd.DataFrame(gaps).corr().to_numpy()
    for feature in selection.kept:
        near = int(feature.neighbour[1:])
        assert feature.correlation == pytest.approx(r[feature.column, near])


def test_what_halves_of_the_samples_keep_is_part_of_the_description(grouped):
    selector = AutoSelector(4).fit(grouped)
    selection = describe_selection(selector, grouped)
    halves = selector.stability_
    shares = dict(zip(halves.features.tolist(), halves.shares.tolist(), strict=True))
    assert {f.column: f.share_of_halves for f in selection.kept} == shares  # copied
    assert describe_selection(selector, grouped, k=2).kept[0].share_of_halves is None


def test_settings_that_were_chosen_tell_why_features_were_dropped(table):
    """`SPCAFSCV` has several limits to try; the winner's is the one that counts."""
    table[:, 5] = table[:, 0] + 1e-3
    chosen = SPCAFSCV(2, n_components=2, scaling=0.0, max_correlation=[0.8], random_state=0)
    selection = describe_selection(chosen.fit(table), table)
    assert (
        selection.count_dropped()
        == describe_selection(chosen.best_estimator_, table).count_dropped()
    )


@pytest.mark.parametrize(("scaling", "power"), [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)])
@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_shares_of_variance_are_those_that_the_method_weighs(table, scaling, power):
    selection = describe_selection(SPCAFS(3, scaling=scaling).fit(table), table)
    weighed = table.var(axis=0) ** (1.0 - power)
    share = weighed[selection.columns].sum() / weighed.sum()
    assert selection.variance_share == pytest.approx(share)
    assert selection.counts_columns_alike == (scaling == 1.0)
