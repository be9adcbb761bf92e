"""Tables as people have them become numbers, and stay frames with their names."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from keepers import AutoSelector
from keepers.exceptions import DataError, ParameterError
from keepers.prepare.preparer import TablePreparer
from people_tables import gene_counts


@parametrize_with_checks([TablePreparer(missing=how) for how in ("error", "median", "model")])
def test_scikit_learn_accepts_it(estimator, check):
    name = getattr(check, "func", check).__name__
    if name == "check_positive_only_tag_during_fit" and sklearn.__version__ == "1.6.0":
        pytest.skip("the check of scikit-learn 1.6.0 subtracts a float from an array of integers")
    check(estimator)


def survey(n=120, seed=0, gaps=0.0):
    """A category that follows groups of rows, an ID, yes and no, an order, a date, and gaps."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "id": [f"person {at}" for at in range(n)],
            "town": np.array(["Rome", "Oslo", "Lima"])[group],
            "member": rng.choice(["yes", "no"], n),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
            "age": rng.integers(18, 90, n).astype(float),
            "height": 170 + 20 * group + rng.standard_normal(n),
            "weight": 60 + 30 * group + rng.standard_normal(n),
            "born": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9999, n), "D"),
        }
    )
    for name in ("age", "height", "weight"):
        frame.loc[rng.random(n) < gaps, name] = np.nan
    return frame


FEATURES = ["town", "member", "size", "age", "height", "weight"]


def test_every_feature_is_one_column_under_its_name():
    frame = survey()
    frame.index = [f"row {at}" for at in range(len(frame))]
    prepared = TablePreparer().fit_transform(frame)
    assert list(prepared.columns) == FEATURES
    assert prepared.index.equals(frame.index)
    np.testing.assert_array_equal(prepared["member"], frame["member"] == "yes")
    np.testing.assert_array_equal(prepared["size"], frame["size"].cat.codes)
    np.testing.assert_array_equal(prepared["age"], frame["age"])
    assert abs(np.corrcoef(prepared["town"], frame["height"])[0, 1]) > 0.9
    columns = {name: frame[name].astype(str).to_list() for name in ("id", "town", "member")}
    columns["size"] = pl.Series(frame["size"].astype(str).to_list(), dtype=pl.Enum(["S", "M", "L"]))
    columns |= {name: frame[name].to_numpy() for name in ("age", "height", "weight", "born")}
    for given in (pl.DataFrame(columns), pl.DataFrame(columns).lazy()):
        again = TablePreparer().fit_transform(given)
        assert isinstance(again, pl.DataFrame)
        np.testing.assert_allclose(again.to_numpy(), prepared)


@pytest.mark.parametrize("missing", ["mean", "median"])
def test_gaps_are_filled_as_simple_imputer_does(missing):
    X = np.random.default_rng(0).lognormal(size=(300, 7))
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    ours, theirs = TablePreparer(missing=missing), SimpleImputer(strategy=missing)
    np.testing.assert_allclose(ours.fit_transform(X), theirs.fit_transform(X), rtol=1e-10)
    new = np.full((2, 7), np.nan)
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), rtol=1e-10)
    np.testing.assert_array_equal(ours.n_filled_, np.isnan(X).sum(axis=0))


def test_pipelines_pickles_clones_and_output():
    steps = make_pipeline(TablePreparer(missing="median"), AutoSelector(3))
    kept = steps.set_output(transform="pandas").fit_transform(survey(gaps=0.1))
    assert list(kept.columns) == list(steps.get_feature_names_out())
    again = pickle.loads(pickle.dumps(steps)).transform(survey(seed=5, gaps=0.1))
    assert list(again.columns) == list(kept.columns)
    preparer = TablePreparer(missing="model", kinds={"age": "category"})
    assert clone(preparer).get_params() == preparer.get_params()
    made = TablePreparer().set_output(transform="polars").fit_transform(np.eye(20)[:, :3])
    assert isinstance(made, pl.DataFrame)
    assert list(made.columns) == ["x0", "x1", "x2"]


def test_gaps_are_kept_and_counted():
    holed = survey(gaps=0.1)
    preparer = TablePreparer(missing="keep")
    made = preparer.fit_transform(holed)
    assert made.isna().equals(holed[made.columns].isna())
    expected = dict(holed[made.columns].isna().sum())
    assert dict(zip(made.columns, preparer.n_filled_, strict=True)) == expected
    assert any(f"'age' ({expected['age']})" in note for note in preparer.notes_)
    assert preparer.__sklearn_tags__().input_tags.allow_nan
    sparse = sp.csr_array([[0.0, np.nan], [1.0, 0.0], [0.0, 2.0]])
    with pytest.raises(DataError, match="--drop"):
        TablePreparer(missing="keep").fit(sparse)


def test_new_rows_need_the_features_only_and_unseen_values_are_gaps():
    frame, new = survey(), survey(seed=9)
    fitted = TablePreparer().fit(frame)
    fewer = new.assign(**{"unheard of": "x"})[[*reversed(FEATURES), "unheard of"]]
    pd.testing.assert_frame_equal(fitted.transform(fewer), fitted.transform(new))
    with pytest.raises(DataError, match="no column 'age'"):
        fitted.transform(new.drop(columns=["age", "weight"]))
    with pytest.raises(DataError, match=r"X has 4 features.* 3"):
        TablePreparer().fit(new[FEATURES[-3:]].to_numpy()).transform(np.zeros((2, 4)))
    new.loc[[0, 4], "town"], new.loc[2, "member"], new.loc[1, "age"] = "Paris", "maybe", np.nan
    with pytest.raises(DataError, match=r"'town' \(2\), 'member' \(1\), 'age' \(1\)"):
        fitted.transform(new)
    fitted = TablePreparer(missing="mean").fit(frame)
    prepared = fitted.transform(new)
    np.testing.assert_allclose(prepared["town"].iloc[[0, 4]], fitted.fill_values_[0])
    np.testing.assert_allclose(prepared["age"].iloc[1], frame["age"].mean())


MANY = {"k": [f"w{at % 1500}" for at in range(3000)], "a": np.sin(np.arange(3000))}


@pytest.mark.parametrize(
    ("settings", "frame", "message"),
    [
        ({}, survey().assign(age=np.inf, height=-np.inf), r"'age' \(120\), 'height' \(120\)"),
        ({"log": True}, survey().assign(age=-1.0, height=-2.5), r"\(-1\), 'height' \(-2.5\)"),
        ({"kinds": {"hight": "number"}}, survey(), "no column 'hight'. Did you mean 'height'"),
        ({"kinds": dict.fromkeys(survey(), "drop")}, survey(), "At least one column"),
        ({"kinds": {"k": "category"}}, pd.DataFrame(MANY), "at most 1,000 different values.* 'k'"),
        ({"missing": "medain"}, survey(), "Did you mean 'median'"),
        *(
            ({"kinds": {"born": kind}}, survey(), f"seconds, or not used; got '{kind}' for 'born'")
            for kind in ("category", "choices", "ordered", "boolean")
        ),
        ({"kinds": {"age": "numbr"}}, survey(), "got 'numbr'. Did you mean 'number'"),
        ({}, survey(gaps=0.1), r"Missing values .*'age' \(\d+\)"),
    ],
)
def test_faults_name_all_columns_and_a_failed_fit_leaves_nothing(settings, frame, message):
    preparer = TablePreparer().fit(survey()).set_params(**settings)
    with pytest.raises((DataError, ParameterError), match=message):
        preparer.fit(frame)
    assert not [name for name in vars(preparer) if name.endswith("_")]


def test_dates_and_durations_become_seconds_whatever_they_are_stored_as():
    frame = survey()
    since = frame["born"] - pd.Timestamp("1970-01-01")
    for born in (frame["born"].dt.strftime("%Y/%m/%d"), frame["born"].dt.date):
        prepared = TablePreparer(kinds={"born": "number"}).fit_transform(frame.assign(born=born))
        np.testing.assert_allclose(prepared["born"], since.dt.total_seconds())
    spans = pl.DataFrame({"a": np.sin(np.arange(120)), "span": since.to_numpy()})
    for unit in ("ms", "us", "ns"):
        prepared = TablePreparer().fit_transform(spans.cast({"span": pl.Duration(unit)}))
        np.testing.assert_allclose(prepared["span"], since.dt.total_seconds())


def test_text_that_spells_numbers_is_read():
    a = np.random.default_rng(0).standard_normal(100)
    frame = pd.DataFrame({"a": a, "price": ["$1,234.50", "12 %", "?", "-3", "7"] * 20})
    frame["comma"] = ["1,5", "2", "0,25", "1.000,5", "7"] * 20
    fitted = TablePreparer(missing="mean").fit(frame)
    prepared = fitted.transform(frame)
    np.testing.assert_allclose(prepared["price"][:5], [1234.5, 12, 1250.5 / 4, -3, 7])
    np.testing.assert_allclose(prepared["comma"][:5], [1.5, 2, 0.25, 1000.5, 7])
    assert fitted.n_filled_.tolist() == [0, 20, 0]
    assert any("'price', 'comma'; '?' as missing; decimal" in note for note in fitted.notes_)


def test_log_is_of_measurements_only():
    frame = survey().assign(truth=np.arange(120) % 2 == 0)
    plain, logged = (TablePreparer(log=log).fit_transform(frame) for log in (False, True))
    np.testing.assert_allclose(logged["height"], np.log1p(plain["height"]))
    np.testing.assert_array_equal(logged[["member", "truth"]], plain[["member", "truth"]])


@pytest.mark.parametrize("log", [False, True])
def test_sparse_tables_stay_sparse_and_their_gaps_raise(log):
    counts = sp.csr_matrix(gene_counts(40, 60) * (np.arange(60) % 3 > 0))
    prepared = TablePreparer(log=log, missing="mean").fit_transform(counts)
    assert sp.issparse(prepared)
    expected = np.log1p(counts.toarray()) if log else counts.toarray()
    np.testing.assert_allclose(prepared.toarray(), expected)
    X = sp.csr_matrix([[1.5, np.nan], [2.5, 1.0], [np.nan, 4.0]])
    with pytest.raises(DataError, match=r"NaN.*'x0' \(1\), 'x1' \(1\)"):
        TablePreparer().fit(X)
    with pytest.raises(DataError, match="which filling would make dense"):
        TablePreparer(missing="mean").fit(X)


@pytest.mark.parametrize("codes", [[1, 2, 3], [0.1, 0.5, 2.5], [10.0, 20.0, 3e20]])
def test_numbers_called_a_category_are_the_same_values_however_they_are_stored(codes):
    random = np.random.default_rng(0)
    chosen = random.integers(0, 3, 90)
    X = random.normal(size=(90, 3)) + 3 * chosen[:, None]
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(code=np.array(codes)[chosen])
    fitted = TablePreparer(kinds={"code": "category"}).fit(frame)
    expected = fitted.transform(frame)
    assert expected["code"].nunique() == 3
    words = frame["code"].map("{:g}".format)
    ways = [words, words.astype("category"), frame["code"].astype(np.float32)]
    ways += [frame["code"].astype(str), frame["code"].astype("category")]
    for way in ways:
        pd.testing.assert_frame_equal(fitted.transform(frame.assign(code=way)), expected)
    by_text = TablePreparer(kinds={"code": "category"}).fit(frame.assign(code=words))
    pd.testing.assert_frame_equal(by_text.transform(frame), expected)


def test_a_rare_code_is_known_wherever_it_stands():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"x": random.normal(size=5000), "code": random.integers(0, 3, 5000)})
    for row in random.choice(5000, 6, replace=False):  # at most 2,000 rows are drawn
        rare = frame.copy()
        rare.loc[row, "code"] = 77
        fitted = TablePreparer(kinds={"code": "category"}).fit(rare)
        assert next(c.levels for c in fitted.columns_ if c.name == "code") == ("0", "1", "2", "77")
        assert fitted.transform(rare)["code"].notna().all()
    many = pd.DataFrame({"x": random.normal(size=3000), "code": np.arange(3000) * 3})
    with pytest.raises(DataError, match=r"at most 1,000 different values.*'code'"):
        TablePreparer(kinds={"code": "category"}).fit(many)


def test_numbers_where_answers_were_expected_are_none_of_them():
    drinks = ["tea, milk", "milk", "tea", "tea, milk", "juice, tea", "milk, juice"] * 10
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"drinks": drinks, "a": random.normal(size=60)})
    fitted = TablePreparer(missing="keep").fit(frame)
    empty = fitted.transform(frame.assign(drinks=np.nan))
    assert empty["drinks"].isna().all()
    (column,) = (c for c in fitted.columns_ if c.name == "drinks")
    chosen, places = column.choose(np.array([1.0, np.nan]))
    np.testing.assert_array_equal(chosen[places, 0], [0.0, np.nan])


def test_numbers_called_answers_are_a_category():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(60, 2)), columns=["a", "b"])
    frame["drink"] = random.integers(1, 4, 60)
    as_category, as_choices = (
        TablePreparer(kinds={"drink": kind}).fit_transform(frame)
        for kind in ("category", "choices")
    )
    pd.testing.assert_frame_equal(as_choices, as_category)
