"""Tables as people have them become numbers, and stay frames with their names."""

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from keepers import SPCAFS, AutoSelector, TablePreparer
from keepers.data.mixed import as_mixed_table
from keepers.exceptions import DataError, ParameterError
from people_tables import bikes, flights, gene_counts


@parametrize_with_checks(
    [TablePreparer(), TablePreparer(missing="median"), TablePreparer(missing="model")]
)
def test_scikit_learn_accepts_it(estimator, check):
    name = getattr(check, "func", check).__name__
    if name == "check_positive_only_tag_during_fit" and sklearn.__version__ == "1.6.0":
        pytest.skip("the check of scikit-learn 1.6.0 subtracts a float from an array of integers")
    check(estimator)


def survey(n=120, seed=0):
    """A category that follows two groups of rows, gaps, an id, yes and no, an order and a date."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    return pd.DataFrame(
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


def with_gaps(frame, share=0.1, seed=1):
    rng = np.random.default_rng(seed)
    holed = frame.copy()
    for name in ("age", "height", "weight"):
        holed.loc[rng.random(len(frame)) < share, name] = np.nan
    return holed


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
    assert all(kind == np.float64 for kind in prepared.dtypes)


@pytest.mark.parametrize("missing", ["mean", "median"])
def test_gaps_are_filled_as_simple_imputer_does(missing):
    X = np.random.default_rng(0).lognormal(size=(300, 7))
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    ours = TablePreparer(missing=missing)
    theirs = SimpleImputer(strategy=missing)
    np.testing.assert_allclose(ours.fit_transform(X), theirs.fit_transform(X), rtol=1e-10)
    new = np.full((2, 7), np.nan)
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), rtol=1e-10)
    np.testing.assert_array_equal(ours.n_filled_, np.isnan(X).sum(axis=0))


def test_the_model_fills_better_than_the_mean_where_columns_go_together():
    frame = survey()
    holed = with_gaps(frame)
    errors = {}
    for missing in ("mean", "model"):
        filled = TablePreparer(missing=missing).fit_transform(holed)
        errors[missing] = np.abs(filled["height"] - frame["height"]).mean()
    assert errors["model"] < 0.5 * errors["mean"]


@pytest.mark.parametrize("last", [AutoSelector(3), SPCAFS(3)])
def test_in_a_pipeline_names_are_kept(last):
    pipeline = make_pipeline(TablePreparer(missing="median"), last).set_output(transform="pandas")
    kept = pipeline.fit_transform(with_gaps(survey()))
    assert list(kept.columns) == list(pipeline.get_feature_names_out())
    assert set(kept.columns) < set(FEATURES)
    again = pickle.loads(pickle.dumps(pipeline)).transform(with_gaps(survey(seed=5)))
    assert list(again.columns) == list(kept.columns)


def test_a_polars_frame_gives_a_polars_frame():
    frame = survey()
    ours = TablePreparer().fit(frame)
    columns = {name: frame[name].astype(str).to_list() for name in ("id", "town", "member")}
    columns["size"] = pl.Series(frame["size"].astype(str).to_list(), dtype=pl.Enum(["S", "M", "L"]))
    columns |= {name: frame[name].to_numpy() for name in ("age", "height", "weight", "born")}
    for given in (pl.DataFrame(columns), pl.DataFrame(columns).lazy()):
        prepared = TablePreparer().fit_transform(given)
        assert isinstance(prepared, pl.DataFrame)
        assert prepared.columns == FEATURES
        np.testing.assert_allclose(prepared.to_numpy(), ours.fit_transform(frame).to_numpy())
    square = pl.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert TablePreparer().fit_transform(square).equals(square)


def test_set_output_asks_for_the_frames_of_scikit_learn():
    X = np.random.default_rng(0).standard_normal((20, 3))
    assert isinstance(TablePreparer().fit_transform(X), np.ndarray)
    for output, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        made = TablePreparer().set_output(transform=output).fit_transform(X)
        assert isinstance(made, kind)
        assert list(made.columns) == ["x0", "x1", "x2"]


def test_an_arrow_reader_is_read_once():
    table = pa.table({"a": [1.0, 2.5, 2.0], "b": ["yes", "no", "no"]})
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    X = TablePreparer().fit_transform(reader)
    np.testing.assert_array_equal(X, [[1, 1], [2.5, 0], [2, 0]])


def test_clone_parameters_and_pickles():
    preparer = TablePreparer(missing="model", kinds={"age": "category"}, log=False)
    assert clone(preparer).get_params() == preparer.get_params()
    with pytest.raises(NotFittedError):
        preparer.transform(survey())
    fitted = preparer.fit(survey())
    copied = pickle.loads(pickle.dumps(fitted))
    # Exactly: the same computation twice.
    pd.testing.assert_frame_equal(copied.transform(survey()), fitted.transform(survey()))


@pytest.mark.parametrize("missing", ["error", "mean", "median", "model"])
@pytest.mark.parametrize("log", [False, True])
def test_stored_as_json_it_does_the_same(missing, log):
    frame = survey() if missing == "error" else with_gaps(survey())
    fitted = TablePreparer(missing=missing, log=log, kinds={"born": "number"}).fit(frame)
    stored = TablePreparer.from_dict(json.loads(json.dumps(fitted.to_dict())))
    expected = fitted.transform(frame)
    pd.testing.assert_frame_equal(stored.transform(frame), expected, rtol=1e-12)
    some = TablePreparer.from_dict(json.loads(json.dumps(fitted.to_dict(["weight", "town"]))))
    found = some.transform(frame[["weight", "town"]])
    assert list(found.columns) == ["town", "weight"]
    np.testing.assert_allclose(found["town"], expected["town"])


def test_new_rows_need_the_features_only_in_any_order():
    frame = survey()
    fitted = TablePreparer().fit(frame)
    new = survey(seed=9)
    expected = fitted.transform(new)
    columns = [*reversed(FEATURES), "unheard of"]
    fewer = new.assign(**{"unheard of": "x"})[columns]
    pd.testing.assert_frame_equal(fitted.transform(fewer), expected)
    with pytest.raises(DataError, match=r"lacks 2 of the 6 columns .*: 'age', 'weight'"):
        fitted.transform(new.drop(columns=["age", "weight"]))


def test_values_that_the_fit_has_not_seen_are_gaps():
    frame, new = survey(), survey(seed=3)
    new.loc[[0, 4], "town"] = "Paris"
    new.loc[2, "member"] = "maybe"
    new.loc[1, "age"] = np.nan
    with pytest.raises(DataError, match=r"'town' \(2\), 'member' \(1\), 'age' \(1\)"):
        TablePreparer().fit(frame).transform(new)
    fitted = TablePreparer(missing="mean").fit(frame)
    prepared = fitted.transform(new)
    at = FEATURES.index("town")
    np.testing.assert_allclose(prepared["town"].iloc[[0, 4]], fitted.fill_values_[at])
    np.testing.assert_allclose(prepared["age"].iloc[1], frame["age"].mean())


def test_a_rare_value_outside_the_drawn_rows_has_a_number():
    n = 30_000
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(n), "k": rng.choice(["p", "q", "r"], n)})
    frame.loc[17, "k"] = "z"
    prepared = TablePreparer().fit_transform(frame)
    assert np.isfinite(prepared["k"]).all()
    assert prepared["k"].nunique() <= 2 * 4


def test_all_columns_with_gaps_are_named_at_once():
    holed = with_gaps(survey())
    counts = holed.isna().sum()
    rows = int(holed.isna().any(axis=1).sum())
    told = ", ".join(f"'{name}' ({counts[name]})" for name in ("age", "height", "weight"))
    with pytest.raises(DataError) as caught:
        TablePreparer().fit(holed)
    said = f"{rows} of 120 rows have gaps, in 3 of 6 columns (how many): {told}."
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "change", "message"),
    [
        ({}, {"age": np.inf, "height": -np.inf}, r"infinity.*'age' \(120\), 'height' \(120\)"),
        ({"log": True}, {"age": -1.0, "height": -2.5}, r"'age' \(-1\), 'height' \(-2.5\)"),
        ({"kinds": {"hight": "number", "ag": "drop"}}, {}, "no column 'hight', 'ag'. Did you"),
        ({"kinds": dict.fromkeys(survey(), "drop")}, {}, "all 8 are set aside"),
    ],
)
def test_faults_name_all_columns(settings, change, message):
    with pytest.raises(DataError, match=message):
        TablePreparer(**settings).fit(survey().assign(**change))


def test_a_column_that_is_dropped_may_hold_anything():
    frame = survey().assign(age=np.inf)
    prepared = TablePreparer(kinds={"age": "drop"}).fit_transform(frame)
    assert "age" not in prepared


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"missing": "medain"}, "got 'medain'. Did you mean 'median'"),
        ({"kinds": {"age": "numbr"}}, "got 'numbr' for 'age'. Did you mean 'number'"),
    ],
)
def test_settings_outside_their_rules_are_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        TablePreparer(**settings).fit(survey())


def test_a_failed_fit_leaves_nothing():
    preparer = TablePreparer().fit(survey())
    with pytest.raises(DataError):
        preparer.fit(with_gaps(survey()))
    assert not [name for name in vars(preparer) if name.endswith("_")]


def test_a_category_with_too_many_values_is_refused():
    words = [f"w{at}" for at in range(1500)] * 2
    frame = pd.DataFrame({"a": np.random.default_rng(0).standard_normal(3000), "k": words})
    with pytest.raises(DataError, match=r"at most 1,000 different values; these have more: 'k'"):
        TablePreparer(kinds={"k": "category"}).fit(frame)


def test_kinds_that_are_asked_for():
    frame = bikes()
    asked = {"dteday": "number", "instant": "number", "season": "category", "hr": "drop"}
    fitted = TablePreparer(kinds=asked).fit(frame)
    prepared = fitted.transform(frame)
    seconds = (pd.to_datetime(frame["dteday"]) - pd.Timestamp("1970-01-01")).dt.total_seconds()
    np.testing.assert_allclose(prepared["dteday"], seconds)
    np.testing.assert_array_equal(prepared["instant"], frame["instant"])
    assert prepared["season"].nunique() == 4
    assert fitted.set_aside_ == {"hr": "left out: as asked for"}


def test_dates_become_seconds_whatever_they_are_stored_as():
    frame = survey()
    expected = (frame["born"] - pd.Timestamp("1970-01-01")).dt.total_seconds()
    asked = {"born": "number"}
    for born in (frame["born"], frame["born"].dt.strftime("%Y/%m/%d"), frame["born"].dt.date):
        prepared = TablePreparer(kinds=asked).fit_transform(frame.assign(born=born))
        np.testing.assert_allclose(prepared["born"], expected)


def test_text_that_spells_numbers_is_read():
    prices = ["$1,234.50", "12 %", "?", "-3", "7"] * 20
    frame = pd.DataFrame({"a": np.random.default_rng(0).standard_normal(100), "price": prices})
    fitted = TablePreparer(missing="mean").fit(frame)
    expected = [1234.5, 12, np.nan, -3, 7]
    mean = np.nanmean(expected)
    np.testing.assert_allclose(
        fitted.transform(frame)["price"][:5], np.where(np.isnan(expected), mean, expected)
    )
    assert fitted.n_filled_.tolist() == [0, 20]
    assert "Read as numbers: 'price' ('?' as gaps)." in fitted.notes_


def test_words_that_come_after_a_thousand_numbers_are_not_let_through():
    words = [f"${at}.5" for at in range(1200)] + ["?"]
    frame = pd.DataFrame({"price": words, "a": np.random.default_rng(0).standard_normal(1201)})
    with pytest.raises(DataError, match=r"'price' \(1\)"):
        TablePreparer().fit_transform(frame)
    assert np.isfinite(TablePreparer(missing="median").fit_transform(frame)).all(axis=None)


def test_log_is_of_measurements_only():
    frame = survey()
    plain, logged = (TablePreparer(log=log).fit_transform(frame) for log in (False, True))
    np.testing.assert_allclose(logged["height"], np.log1p(plain["height"]))
    np.testing.assert_array_equal(logged["member"], plain["member"])
    with pytest.raises(DataError, match=r"'age' \(-2\)"):
        TablePreparer(log=True).fit(frame).transform(frame.assign(age=-2.0))


@pytest.mark.parametrize("log", [False, True])
def test_sparse_tables_stay_sparse(log):
    counts = sp.csr_matrix(gene_counts(40, 60) * (np.arange(60) % 3 > 0))
    prepared = TablePreparer(log=log, missing="mean").fit_transform(counts)
    assert sp.issparse(prepared)
    expected = np.log1p(counts.toarray()) if log else counts.toarray()
    np.testing.assert_allclose(prepared.toarray(), expected)


def test_gaps_in_sparse_tables_are_refused_by_name():
    X = sp.csr_matrix([[1.5, np.nan], [2.5, 1.0], [np.nan, 4.0]])
    with pytest.raises(DataError, match=r"2 of 3 rows have gaps.*'x0' \(1\), 'x1' \(1\)"):
        TablePreparer().fit(X)
    with pytest.raises(DataError, match="without making it dense"):
        TablePreparer(missing="mean").fit(X)
    whole = sp.csr_matrix([[1.5, 0.0], [2.5, 1.0], [0.0, 4.0]])
    for missing in ("error", "mean"):
        with pytest.raises(DataError, match=r"'x0' \(1\), 'x1' \(1\)"):
            TablePreparer(missing=missing).fit(whole).transform(X)


@pytest.mark.parametrize("missing", ["mean", "model"])
def test_single_precision_stays_single(missing):
    X = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
    assert TablePreparer(missing=missing).fit_transform(X).dtype == np.float32
    X[3, 2] = np.nan
    filled = TablePreparer(missing=missing).fit_transform(X)
    assert filled.dtype == np.float32
    assert np.isfinite(filled).all()


def test_rows_with_gaps_are_left_out_with_their_names():
    holed = with_gaps(survey())
    holed.index = [f"row {at}" for at in range(len(holed))]
    preparer = TablePreparer(missing="drop-rows").fit(holed)
    table = as_mixed_table(holed)
    prepared = preparer.prepare(table, first_row=0)
    complete = holed.dropna()
    assert prepared.sample_names.tolist() == complete.index.tolist()
    np.testing.assert_array_equal(prepared.X[:, FEATURES.index("age")], complete["age"])
    with pytest.raises(ParameterError, match="drop-rows"):
        preparer.transform(holed)
    with pytest.raises(DataError, match="leaves none of 120"):
        preparer.prepare(as_mixed_table(holed.assign(age=np.nan)))


def test_the_source_with_its_numbers_filled_keeps_its_text():
    holed = with_gaps(survey())
    preparer = TablePreparer(missing="median", log=True).fit(holed)
    filled = preparer.fill_source(as_mixed_table(holed))
    places = filled.feature_names.tolist()
    np.testing.assert_allclose(
        filled.X[:, places.index("age")], holed["age"].fillna(holed["age"].median()), rtol=1e-9
    )
    assert [column.name for column in filled.others] == ["id", "town", "member", "size", "born"]


def test_notes_say_what_was_done():
    notes = TablePreparer(missing="median").fit(flights()).notes_
    assert notes[0] == "Set aside as date: 'time_hour' (dates as text)."
    assert any(note.startswith("Taken as categories: 'carrier', 'origin'; if") for note in notes)
    assert any(note.startswith("Gaps filled (median) in 1 column: 'dep_time'") for note in notes)


def test_repeated_names_are_numbered_if_asked_to():
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((20, 2)), columns=["a", "a"])
    with pytest.raises(DataError, match="duplicates: 'a'"):
        TablePreparer().fit(frame)
    preparer = TablePreparer(make_unique=True).fit(frame)
    assert list(preparer.get_feature_names_out()) == ["a", "a.1"]


def test_an_array_of_another_width_is_refused():
    preparer = TablePreparer().fit(np.random.default_rng(0).standard_normal((20, 3)))
    with pytest.raises(DataError, match="X has 4 features, but TablePreparer is expecting 3"):
        preparer.transform(np.zeros((2, 4)))


def test_gaps_of_numbers_that_are_a_category_are_not_filled_with_its_numbers():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    frame["ward"] = rng.integers(1, 5, 60).astype(float)
    frame.loc[7, ["ward", "a"]] = np.nan
    preparer = TablePreparer(missing="mean", kinds={"ward": "category"}).fit(frame)
    filled = preparer.fill_source(as_mixed_table(frame))
    written = pd.DataFrame(filled.X, columns=filled.feature_names)
    assert np.isnan(written.loc[7, "ward"])
    assert written.loc[7, "a"] == pytest.approx(frame["a"].mean())
