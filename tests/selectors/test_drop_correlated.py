"""DropCorrelated against the same rule written with pandas, one pair at a time."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from keepers import DropCorrelated, VarianceScore
from keepers.exceptions import DataError, ParameterError


@parametrize_with_checks([DropCorrelated(), DropCorrelated(method="spearman")])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def slowly(frame, threshold, goodness, method="pearson", min_rows=3):
    """The rule with pandas: kept columns, and what was kept instead of the others."""
    correlation = frame.corr(method, min_periods=min_rows)
    kept, instead = [], {}
    for name in sorted(frame.columns, key=lambda name: -goodness[name]):
        theirs = correlation.loc[name, kept].abs()
        if len(theirs) and theirs.max() > threshold:
            other = theirs.idxmax()
            instead[name] = (other, correlation.loc[name, other])
        else:
            kept.append(name)
    return kept, instead


def frame_of(seed, n_rows, n_columns, gaps):
    """Columns in families, whose members are more or less alike."""
    rng = np.random.default_rng(seed)
    sources = rng.standard_normal((n_rows, max(1, n_columns // 4)))
    X = sources[:, rng.integers(sources.shape[1], size=n_columns)]
    X = X * rng.choice([-1.0, 1.0], n_columns) * rng.uniform(0.5, 20.0, n_columns)
    X = X + rng.uniform(0.0, 2.0, n_columns) * rng.standard_normal(X.shape) + 5.0
    X[rng.uniform(size=X.shape) < gaps] = np.nan
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(n_columns)])


def agrees(step, frame, goodness, **settings):
    kept, instead = slowly(frame, step.threshold, goodness, **settings)
    step.fit(frame)
    assert sorted(step.get_feature_names_out()) == sorted(kept)
    assert list(step.kept_instead_) == list(instead)
    for name, (other, r) in instead.items():
        assert step.kept_instead_[name][0] == other
        assert step.kept_instead_[name][1] == pytest.approx(r, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(5, 40),
    n_columns=st.integers(1, 30),
    gaps=st.sampled_from([0.0, 0.1, 0.5]),
    threshold=st.sampled_from([0.3, 0.6, 0.9, 0.95]),
)
def test_it_keeps_what_the_rule_keeps_and_names_what_is_kept_instead(
    seed, n_rows, n_columns, gaps, threshold
):
    frame = frame_of(seed, n_rows, n_columns, gaps)
    if frame.var().isna().any() or (frame.var() == 0).any():
        return  # ties in the order, which have a test of their own
    agrees(DropCorrelated(threshold), frame, frame.var(ddof=0))


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_it_does_the_same_past_one_block(gaps):
    frame = frame_of(1, 25, 700, gaps)
    agrees(DropCorrelated(0.8), frame, frame.var(ddof=0))


def test_the_column_with_fewest_gaps_stands_for_the_others():
    frame = frame_of(2, 60, 12, 0.0)
    rng = np.random.default_rng(0)
    for n_gaps, name in enumerate(rng.permutation(frame.columns)):
        frame.loc[rng.permutation(60)[:n_gaps], name] = np.nan
    agrees(DropCorrelated(0.6, representative="gaps"), frame, frame.count())


def test_the_column_with_the_highest_score_stands_for_the_others():
    frame = frame_of(3, 60, 12, 0.0)
    scores = np.random.default_rng(0).permutation(12)
    step = DropCorrelated(0.6, representative="score", scores=scores)
    agrees(step, frame, dict(zip(frame.columns, scores, strict=True)))


def test_correlations_of_ranks_are_those_of_pandas():
    frame = np.exp(frame_of(4, 40, 20, 0.0) / 4).round(2)  # with ties
    agrees(DropCorrelated(0.7, method="spearman"), frame, frame.var(ddof=0), method="spearman")


@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_matrix, np.float32, np.asfortranarray])
def test_the_storage_changes_nothing(storage):
    X = frame_of(5, 40, 60, 0.0).to_numpy().astype(np.float32).astype(np.float64)
    X[np.abs(X) < 2.0] = 0.0
    expected = DropCorrelated(0.6).fit(X)
    found = DropCorrelated(0.6).fit(storage(X))
    assert 0 < expected.support_.sum() < 60
    np.testing.assert_array_equal(found.support_, expected.support_)
    assert [to for to, _ in found.kept_instead_.values()] == [
        to for to, _ in expected.kept_instead_.values()
    ]


@pytest.mark.parametrize("gaps", [0.0, 0.1])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_order_of_the_columns_changes_nothing(seed, gaps):
    frame = frame_of(6, 40, 40, gaps)
    shuffled = frame.sample(frac=1.0, axis=1, random_state=seed)
    expected, found = DropCorrelated(0.7).fit(frame), DropCorrelated(0.7).fit(shuffled)
    assert set(found.get_feature_names_out()) == set(expected.get_feature_names_out())


def test_of_equal_columns_the_first_is_kept():
    x = np.random.default_rng(0).standard_normal(30)
    step = DropCorrelated().fit(np.column_stack([x, -x, x[::-1], x + 100.0]))
    assert step.get_support(indices=True).tolist() == [0, 2]
    assert {name: kept for name, (kept, _) in step.kept_instead_.items()} == {
        "x1": "x0",
        "x3": "x0",
    }
    assert [round(r, 9) for _, r in step.kept_instead_.values()] == [-1.0, 1.0]
    assert all(abs(r) <= 1.0 for _, r in step.kept_instead_.values())


def test_a_threshold_of_one_drops_nothing():
    x = np.random.default_rng(0).standard_normal(30)
    assert DropCorrelated(1.0).fit(np.column_stack([x, x, 3.0 * x])).support_.all()


def test_constant_columns_and_columns_without_values_stay():
    x = np.random.default_rng(0).standard_normal(30)
    X = np.column_stack([np.ones(30), x, np.ones(30), 2.0 * x])
    assert DropCorrelated().fit(X).get_support(indices=True).tolist() == [0, 2, 3]
    X = np.column_stack([X, np.full(30, np.nan), np.where(x > 0, np.nan, 5.0)])
    assert DropCorrelated().fit(X).get_support(indices=True).tolist() == [0, 2, 3, 4, 5]
    assert DropCorrelated().fit(np.ones((5, 2))).support_.all()


def test_columns_with_few_common_rows_are_not_compared():
    X = np.random.default_rng(0).standard_normal((40, 2))
    X[:, 1] = X[:, 0]
    X[:20, 0], X[22:, 1] = np.nan, np.nan
    assert DropCorrelated().fit(X).support_.all()
    X[:22, 1] = X[:22, 0] = np.arange(22.0)
    assert DropCorrelated().fit(X).support_.sum() == 1
    assert DropCorrelated(min_rows=23).fit(X).support_.all()
    assert DropCorrelated().fit(np.array([[1.0, 2.0], [3.0, 5.0]])).support_.all()


def test_frames_in_frames_out():
    frame = frame_of(7, 30, 10, 0.1)
    for library, table in (("pandas", frame), ("polars", pl.from_pandas(frame))):
        step = DropCorrelated(0.7).set_output(transform=library).fit(table)
        out = step.transform(table)
        assert type(out) is type(table)
        assert list(out.columns) == list(step.get_feature_names_out())
        assert 0 < out.shape[1] < 10


def test_what_was_dropped_is_a_table():
    step = DropCorrelated(0.7).fit(frame_of(8, 30, 10, 0.0))
    table = step.to_frame()
    assert list(table.columns) == ["feature", "kept_instead", "r"]
    assert table["feature"].tolist() == list(step.kept_instead_)
    assert (table["r"].abs() > 0.7).all()
    nothing = DropCorrelated(1.0).fit(frame_of(8, 30, 10, 0.0)).to_frame()
    assert list(nothing.columns) == ["feature", "kept_instead", "r"]
    assert len(nothing) == 0


def test_the_scores_of_a_selector_can_decide():
    X = frame_of(9, 60, 20, 0.0).to_numpy()
    scores = VarianceScore().fit(X).scores_
    by_score = DropCorrelated(0.7, representative="score", scores=scores).fit(X)
    np.testing.assert_array_equal(by_score.support_, DropCorrelated(0.7).fit(X).support_)


@pytest.mark.parametrize("scores", [[1.0, 2.0], [1.0, np.nan, 2.0], "abc", [[1.0, 2.0, 3.0]]])
def test_scores_are_one_finite_number_a_column(scores):
    X = np.random.default_rng(0).standard_normal((10, 3))
    with pytest.raises(ParameterError, match="finite number for each of the 3 columns"):
        DropCorrelated(representative="score", scores=scores).fit(X)


def test_infinity_is_refused_by_name_and_gaps_are_not_blamed():
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [1.0, np.inf, 2.0]})
    with pytest.raises(DataError, match=r"infinity found in these columns \(how many\): 'b' \(1\)"):
        DropCorrelated().fit(frame)


def test_what_the_mathematics_does_not_allow_is_refused_in_a_sentence():
    X = frame_of(10, 20, 4, 0.2).to_numpy()
    with pytest.raises(DataError, match="NaN or infinity found in these columns"):
        DropCorrelated(method="spearman").fit(X)
    with pytest.raises(DataError, match=r"does not accept a sparse matrix: .*spearman"):
        DropCorrelated(method="spearman").fit(sp.csr_array(np.nan_to_num(X)))
    with pytest.raises(DataError, match="may hold no NaN"):
        DropCorrelated().fit(sp.csr_array(X))
    with pytest.raises(DataError, match="between 1e-140 and 1e140"):
        DropCorrelated().fit(X * 1e250)
    with pytest.raises(DataError, match="these are not: 'colour'"):
        DropCorrelated().fit(pd.DataFrame(X).assign(colour="red").rename(columns=str))
