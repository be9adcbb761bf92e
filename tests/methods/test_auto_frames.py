"""AutoSelector on data frames with text, categories, dates and gaps, as they are."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import keepers
from keepers import SPCAFS, AutoSelector, TablePreparer, describe_selection
from keepers.exceptions import DataError, ParameterError
from keepers.tables.objects import table_of_object
from people_tables import MEASURED, houses

NOT_USED = {"Id", "SaleDate", "PoolQC"}


@pytest.fixture(scope="module")
def frame():
    return houses()


@pytest.fixture(scope="module")
def selector(frame):
    return AutoSelector().fit(frame)


def column_numbers(frame, names):
    return [frame.columns.get_loc(name) for name in names]


def test_columns_that_are_mostly_gaps_and_noise_are_not_kept():
    # Where columns count the same in the graph however much of them was filled, columns of noise
    # are kept of each of these tables, complete ones among them.
    for seed in (0, 4, 6, 7):
        table = houses(seed=seed)
        kept = set(AutoSelector(n_halves=0).fit(table).get_feature_names_out())
        assert kept <= set(MEASURED)
        assert len(kept) >= 7


def test_everything_speaks_of_the_original_columns(frame, selector):
    kept = selector.get_feature_names_out().tolist()
    assert selector.n_features_in_ == frame.shape[1]
    assert selector.feature_names_in_.tolist() == frame.columns.tolist()
    pd.testing.assert_frame_equal(selector.transform(frame), frame[kept])
    assert set(selector.top().names) == set(kept)
    assert sorted(selector.ranking_) == list(range(1, frame.shape[1] + 1))
    assert set(selector.preparer_.set_aside_) == NOT_USED
    last = selector.ranking_[column_numbers(frame, NOT_USED)]
    assert last.min() > frame.shape[1] - len(NOT_USED)
    assert all(repr(name) in selector.summary_ for name in NOT_USED)
    assert any("'PoolArea' (6)" in doubt for doubt in selector.doubts_)
    assert selector.n_missing_[frame.columns.get_loc("LotFrontage")] == 108


def test_it_is_a_preparer_and_a_selector_of_numbers(frame, selector):
    steps = make_pipeline(TablePreparer(missing="keep"), AutoSelector()).fit(frame)
    at = column_numbers(frame, steps[0].get_feature_names_out())
    for name in ("scores_", "smoothness_", "p_values_", "support_", "var_", "n_missing_"):
        np.testing.assert_array_equal(getattr(selector, name)[at], getattr(steps[-1], name))
    assert selector.top().names.tolist() == steps[-1].top().names.tolist()
    nearest = selector.represented_by_[at]
    known = nearest >= 0
    assert known.any()
    np.testing.assert_array_equal(
        frame.columns[nearest[known]],
        steps[-1].feature_names_in_[steps[-1].represented_by_[known]],
    )
    names = steps[-1].feature_names_in_[steps[-1].stability_.features]
    assert frame.columns[selector.stability_.features].tolist() == names.tolist()


@pytest.mark.parametrize(
    "convert",
    [
        pl.from_pandas,
        lambda frame: pl.from_pandas(frame).lazy(),
        lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
        table_of_object,
    ],
    ids=["polars", "lazy", "arrow", "table"],
)
def test_frames_of_all_libraries_give_the_same(frame, selector, convert):
    other = AutoSelector().fit(convert(frame))
    np.testing.assert_array_equal(other.ranking_, selector.ranking_)
    np.testing.assert_array_equal(other.scores_, selector.scores_)
    assert other.feature_names_in_.tolist() == frame.columns.tolist()
    kept = other.transform(convert(frame))
    names = list(getattr(kept, "column_names", kept.columns))
    assert names == selector.get_feature_names_out().tolist()


def test_categories_dates_booleans_and_whole_numbers_are_taken(frame):
    typed = frame.assign(
        ExterQual=pd.Categorical(frame["ExterQual"], ["Po", "Fa", "TA", "Gd", "Ex"], ordered=True),
        Foundation=frame["Foundation"].astype("category"),
        SaleDate=pd.to_datetime(frame["SaleDate"]),
        CentralAir=frame["CentralAir"] == "Y",
        GarageCars=frame["GarageCars"].astype("Int64"),
    )
    typed.loc[3, "GarageCars"] = pd.NA
    selector = AutoSelector(n_halves=0).fit(typed)
    kept = selector.get_feature_names_out().tolist()
    pd.testing.assert_frame_equal(selector.transform(typed), typed[kept])
    assert set(kept) <= set(MEASURED)
    assert selector.preparer_.kinds_["ExterQual"].kind == "ordered"


def test_numbers_are_used_as_they_are(frame):
    numbers = frame[["GrLivArea", "TotalBsmtSF", "YearBuilt", "LotFrontage", "MoSold"]]
    by_frame, by_array = AutoSelector().fit(numbers), AutoSelector().fit(numbers.to_numpy())
    assert by_frame.preparer_ is by_frame.on_features_ is None
    np.testing.assert_array_equal(by_frame.scores_, by_array.scores_)
    assert by_frame.summary_ == by_array.summary_


def test_pickles_clones_and_output(frame, selector):
    again = pickle.loads(pickle.dumps(selector))
    pd.testing.assert_frame_equal(again.transform(frame), selector.transform(frame))
    assert clone(AutoSelector(prepare=False)).get_params()["prepare"] is False
    made = clone(selector).set_output(transform="polars").fit_transform(pl.from_pandas(frame))
    assert isinstance(made, pl.DataFrame)
    new = houses(seed=7).head(3)
    pd.testing.assert_frame_equal(
        selector.transform(new), new[selector.get_feature_names_out().tolist()]
    )
    with pytest.raises(ValueError, match="feature names"):
        selector.transform(new[new.columns[::-1]])
    selector_of_numbers = again.fit(frame[["GrLivArea", "YearBuilt", "TotalBsmtSF"]])
    assert selector_of_numbers.preparer_ is None


def test_columns_stay_and_go_by_their_places_in_the_frame(frame):
    stay = frame.columns.get_loc("MoSold")
    selector = AutoSelector(4, must_keep=[stay], never_keep=["YearBuilt"]).fit(frame)
    names = selector.get_feature_names_out().tolist()
    assert "MoSold" in names
    assert selector.ranking_[frame.columns.get_loc("YearBuilt")] > 16
    n_features = frame.shape[1] - len(NOT_USED)
    assert len(AutoSelector(1.0, n_halves=0).fit(frame).top()) == n_features
    with pytest.raises(ParameterError, match=r"must_keep.*'Id' \(identifier"):
        AutoSelector(must_keep=["Id"]).fit(frame)
    with pytest.raises(ParameterError, match="18"):
        AutoSelector(n_features + 1).fit(frame)
    with pytest.raises(ParameterError, match="k must be"):
        selector.top(n_features + 1)


def test_other_selectors_name_the_preparer(frame):
    for strict in (SPCAFS(3), AutoSelector(prepare=False)):
        with pytest.raises(DataError, match=r"'Foundation'.*keepers\.TablePreparer") as raised:
            strict.fit(frame)
        assert "OneHotEncoder" not in str(raised.value)


def test_a_selection_compares_columns_over_rows_observed_in_both(frame, selector):
    selection = describe_selection(selector, frame)
    numbers = pd.DataFrame(
        selector.preparer_.prepare(table_of_object(frame), first_row=0).values,
        columns=selector.preparer_.get_feature_names_out(),
    )
    expected = numbers.corr()  # pandas leaves out rows with a gap in either
    for kept in selection.kept:
        assert kept.correlation == pytest.approx(expected.loc[kept.name, kept.neighbour])
        assert kept.variance == pytest.approx(numbers[kept.name].var(ddof=0))
    few = {each.name: each.why for each in selection.dropped if each.reason == "few values"}
    assert few == {"PoolArea": "too few values: 6 observed"}


def test_reports_take_frames_and_pipelines(frame, selector):
    own = keepers.report(selector, frame)
    steps = make_pipeline(TablePreparer(missing="keep"), AutoSelector()).fit(frame)
    piped = keepers.report(steps, frame)
    kept = [each.name for each in own.selection.kept]
    assert kept == selector.top().names.tolist()
    assert [each.name for each in piped.selection.kept] == kept
    assert set(own.selection.preparer.set_aside_) == NOT_USED
    assert set(piped.selection.preparer.set_aside_) == NOT_USED
    complete = frame.dropna(axis=1)
    scaled = make_pipeline(TablePreparer(), StandardScaler(), SPCAFS(3)).fit(complete)
    names = {each.name for each in keepers.report(scaled, complete).selection.kept}
    assert names < set(MEASURED)
    with pytest.raises(ParameterError, match=r"last step.*KMeans"):
        keepers.report(make_pipeline(StandardScaler(), KMeans(2)).fit(np.eye(5)), np.eye(5))
