"""Certificates: the same in every storage, right in every word."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import helmert

from brute_force_sets import case_of, scatter_of, small_cases
from keepers import (
    SPCAFS,
    SPCAFSCV,
    AutoSelector,
    Certificate,
    VarianceScore,
    all_selectors,
    certify,
    datasets,
)
from keepers.exceptions import DataError, ParameterError


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 12))
    X = X + 0.5 * rng.standard_normal(X.shape)
    X[X < -1.0] = 0.0
    return X


def covariance_case(X, k, m):
    return case_of(np.cov(X.T, bias=True), k, m)


def table_of(S):
    """A table whose scatter is S: a square root of it in a basis without the constant vector."""
    values, vectors = np.linalg.eigh(S)
    root = np.sqrt(np.maximum(values, 0.0))[:, np.newaxis] * vectors.T
    return helmert(len(S) + 1).T @ root


def test_the_optimum_lies_between_what_is_known_and_the_bound():
    rng = np.random.default_rng(51)
    n_proved = 0
    for case in small_cases(90, seed=52):
        at = int(rng.integers(len(case.sets)))
        found = certify(table_of(case.S), case.sets[at], case.m, tight=True)
        unit = len(case.S) + 1
        best = case.best
        assert unit * found.value == pytest.approx(case.values[at], rel=1e-9, abs=1e-12 * best)
        assert found.value <= found.best_known * (1 + 1e-12)
        assert unit * found.best_known <= best * (1 + 1e-12)
        assert unit * found.upper_bound >= best * (1 - 1e-13), case
        share = case.share_of_best_sets()
        assert np.all(share[found.proved_in] == 1.0)
        assert np.all(share[found.proved_out] == 0.0)
        n_proved += len(found.proved_in) + len(found.proved_out)
    assert n_proved > 90


def test_the_name_is_that_of_the_least_bound():
    flat = table_of(scatter_of("flat", 10, np.random.default_rng(53)))
    assert certify(flat, range(3), 3, tight=False).bound == "variances"
    assert certify(flat, range(10), 2, tight=False).bound == "spectrum"


def test_constant_columns_can_be_in_a_best_set_only_if_there_are_too_few_others():
    X = np.insert(table_of(np.diag([3.0, 2.0, 1.0])), 2, 5.0, axis=1)
    found = certify(X, [0, 1], 2)
    np.testing.assert_array_equal(found.proved_in, [0, 1])
    np.testing.assert_array_equal(found.proved_out, [2, 3])
    assert len(certify(X, range(4), 2).proved_in) == 4
    assert 2 not in certify(X, [0, 1, 2], 2).proved_in


def odd_table(rng):
    """A tiny table with constant, all-zero and duplicated columns."""
    n, d = rng.integers(3, 9), rng.integers(2, 8)
    X = rng.standard_normal((n, d)) * rng.choice([1, 1, 3], d)
    for j in range(d):
        kind = rng.choice(["as it is", "zero", "constant", "copy"], p=[0.5, 0.1, 0.2, 0.2])
        if kind == "copy":
            X[:, j] = rng.choice([-1, 1]) * X[:, rng.integers(d)]
        elif kind != "as it is":
            X[:, j] = 0.0 if kind == "zero" else rng.integers(-5, 6)
    X[:, rng.integers(d)] = rng.standard_normal(n)
    return X


@pytest.mark.parametrize("seed", range(4))
def test_with_constant_and_duplicated_columns_proofs_hold_for_every_best_set(seed):
    rng = np.random.default_rng(seed)
    n_proved = 0
    for _ in range(100):
        X = odd_table(rng)
        k = int(rng.integers(1, X.shape[1] + 1))
        m = int(rng.integers(1, k + 1))
        case = case_of(np.cov(X.T, bias=True).reshape(X.shape[1], -1), k, m)
        features = case.sets[rng.integers(len(case.sets))]
        found = certify(X, features, m, tight=bool(rng.integers(2)))
        share = case.share_of_best_sets()
        assert np.all(share[found.proved_in] == 1.0)
        assert np.all(share[found.proved_out] == 0.0)
        assert found.upper_bound >= case.best * (1 - 1e-12)
        assert len(set(found.best_features)) == k
        at = int(np.flatnonzero((case.sets == found.best_features).all(axis=1))[0])
        assert case.values[at] == pytest.approx(found.best_known, rel=1e-9)
        n_proved += len(found.proved_in) + len(found.proved_out)
    assert n_proved > 100


def test_every_storage_gives_the_same(X):
    features = [1, 5, 7, 2]
    expected = certify(X, features, 2, tight=False)
    frame = pytest.importorskip("pandas").DataFrame(X, columns=[f"c{i}" for i in range(12)])
    dask = pytest.importorskip("dask.array")
    tables = {
        "csr": sp.csr_array(X),
        "csc": sp.csc_array(X),
        "list": X.tolist(),
        "frame": frame,
        "float32": X.astype(np.float32),
        "blocks": [X[:20], X[20:]],
        "function": lambda: iter([X[:31], X[31:]]),
        "dask": dask.from_array(X, chunks=(20, 12)),
    }
    for name, table in tables.items():
        found = certify(table, features, 2, tight=False)
        tol = 1e-6 if name == "float32" else 1e-9
        assert found.value == pytest.approx(expected.value, rel=tol), name
        assert found.upper_bound == pytest.approx(expected.upper_bound, rel=10 * tol), name


@pytest.mark.parametrize("route", ["scatter", "memory", "stream"])
def test_every_route_gives_the_same(X, route, monkeypatch):
    monkeypatch.setattr("keepers.methods.reading.choose_route", lambda *_: route)
    features = [1, 5, 7]
    expected = certify(X, features, 2, tight=False)
    found = certify([X[:20], X[20:]], features, 2, tight=False, random_state=0)
    assert found.value == pytest.approx(expected.value, rel=1e-9)
    assert found.upper_bound >= expected.upper_bound * (1 - 1e-9)
    assert found.upper_bound <= expected.upper_bound * 1.1


def test_files_are_read(X, tmp_path):
    names = [f"c{i}" for i in range(12)]
    path = tmp_path / "table.csv"
    np.savetxt(path, X, delimiter=",", header=",".join(names), comments="")
    found = certify(path, ["c1", "c5", "c7"], 2)
    assert found.value == pytest.approx(certify(X, [1, 5, 7], 2).value, rel=1e-6)
    assert list(found.feature_names) == names


def test_single_precision_that_is_multiplied_as_such_is_still_bounded(X, monkeypatch):
    monkeypatch.setattr("keepers.methods.reading.MOST_IN_DOUBLE", 0)
    case = covariance_case(X.astype(np.float32).astype(float), 4, 2)
    found = certify(X.astype(np.float32), case.sets[0], 2)
    assert found.value == pytest.approx(case.values[0], rel=1e-5)
    assert found.upper_bound >= case.best
    share = case.share_of_best_sets()
    assert np.all(share[found.proved_in] == 1.0)
    assert np.all(share[found.proved_out] == 0.0)


def test_scaling_is_that_of_the_columns(X):
    Z = X / X.std(axis=0) ** 0.5
    found = certify(X, [0, 3, 4], 2, scaling=0.5)
    assert found.value == pytest.approx(certify(Z, [0, 3, 4], 2).value)
    assert found.upper_bound == pytest.approx(certify(Z, [0, 3, 4], 2).upper_bound)


def test_constant_columns_hold_nothing(X):
    with_constant = np.column_stack([X, np.full(60, 3.0)])
    found = certify(with_constant, [0, 3, 12], 1)
    assert found.value == pytest.approx(certify(X, [0, 3], 1).value)
    assert found.upper_bound == pytest.approx(certify(X, [0, 3, 4], 1).upper_bound)
    nothing = certify(with_constant, [12], 1)
    assert nothing.value == 0.0
    assert nothing.share == 0.0
    everything = certify(with_constant, np.ones(13, dtype=bool), 2)
    assert everything.share == 1.0


def test_all_features_are_the_best_set():
    X = np.random.default_rng(1).standard_normal((20, 6))
    found = certify(X, range(6), 2)
    assert found.share == 1.0
    assert len(found.proved_in) == 6
    assert str(found).startswith("These 6 features hold as much variance as any 6 features could")


def test_the_tight_bound_is_tighter_where_it_is_asked_for():
    X = datasets.load("srbct").X[:, :400]
    features = VarianceScore(20).fit(X).get_support(indices=True)
    loose, tight = certify(X, features, 3, tight=False), certify(X, features, 3)
    assert tight.bound == "tight"
    assert tight.upper_bound < 0.95 * loose.upper_bound
    assert tight.value == pytest.approx(loose.value, rel=1e-12)


def test_the_number_of_components_can_be_left_to_the_table(X):
    m = SPCAFS(4).fit(X).n_components_
    assert certify(X, [0, 1, 2, 3]).n_components == min(m, 4)
    assert certify(X, [0]).n_components == 1
    assert certify(X, range(12), 0.999).n_components > certify(X, range(12), 0.3).n_components


def sentence_of(**fields):
    known = {
        "value": 9.4237,
        "upper_bound": 10.0,
        "bound": "tight",
        "n_features": 3,
        "n_components": 3,
        "best_known": 9.5,
        "features": np.array([0, 1, 2]),
        "best_features": np.array([0, 1, 2]),
        "proved_in": np.array([], dtype=int),
        "proved_out": np.array([], dtype=int),
        "seconds": 0.1,
    }
    return str(Certificate(**{**known, **fields}))


def test_the_details_name_bound_and_features(X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"c{i}" for i in range(12)])
    least = [f"c{i}" for i in np.argsort(X.var(axis=0))[:1]]
    first, *others = certify(frame, least, 1).details()
    variances = X.var(axis=0)
    assert first.startswith(
        f"Variance held: {variances.min():.6g}. No feature holds more than {variances.max():.6g} ("
    )
    assert others == [
        f"In every best set: 'c{int(np.argmax(variances))}'.",
        f"In the list, but in no best set: '{least[0]}'.",
    ]
    many = certify(X, np.arange(12), 2).details()
    assert "No 12 features hold more than" in many[0]
    assert many[1] == "In every best set: 0, 1, 2, 3, 4 and 7 more."


def test_the_sentence_rounds_down_and_tells_what_is_proved():
    held = "hold at least 94.2 % of the variance that any 3 features could hold"
    assert sentence_of() == f"These 3 features {held} (3 components)."
    assert sentence_of(value=9.9999).count("99.9 %") == 1
    assert sentence_of(proved_in=np.array([0, 1]), proved_out=np.arange(5, 1805)) == (
        f"These 3 features {held} (3 components; 2 of them are in every best set, 1,800 others in "
        "none)."
    )
    assert "(1 component; 1 other is in no best set)" in sentence_of(
        n_components=1, proved_out=np.array([9])
    )
    assert "(3 components; 1 of them is in no best set, 1 other is in every best set)" in (
        sentence_of(proved_out=np.array([2]), proved_in=np.array([7]))
    )
    one = sentence_of(n_features=1, features=np.array([0]), n_components=1)
    assert one.startswith("This feature holds at least 94.2 % of the variance that any one feature")
    single = {"n_features": 1, "features": np.array([0]), "n_components": 1}
    assert "(1 component; it is in every best set, 2 others in none)" in sentence_of(
        **single, proved_in=np.array([0]), proved_out=np.array([1, 2])
    )
    assert "(1 component; it is in no best set, 1 other is in every best set)" in sentence_of(
        **single, proved_in=np.array([1]), proved_out=np.array([0])
    )


def test_it_goes_into_json(X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"c{i}" for i in range(12)])
    found = certify(frame, ["c3", "c1"], 1)
    plain = json.loads(json.dumps(found.as_dict()))
    assert plain["features"] == [3, 1]
    assert plain["features_names"] == ["c3", "c1"]
    assert plain["share"] == found.share
    assert plain["sentence"] == str(found)
    assert plain["proved_in_names"] == [frame.columns[at] for at in found.proved_in]
    assert plain["proved_out_names"] == [frame.columns[at] for at in found.proved_out]
    assert "features_names" not in json.loads(json.dumps(certify(X, [3, 1], 1).as_dict()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": [0, 0]}, "every feature once"),
        ({"features": [12]}, "indices from 0 to 11"),
        ({"features": []}, "at least one feature"),
        ({"features": [0, 1], "n_components": 3}, "at most the number of features in the set, 2"),
        ({"n_components": 0}, "n_components must be an integer >= 1"),
        ({"n_components": "two"}, "n_components"),
        ({"tight": "yes"}, "tight must be"),
        ({"scaling": 2.0}, "scaling must be"),
        ({"random_state": -1}, "random_state"),
        ({"X": iter([np.eye(3)])}, "new iterator for every pass.*got a list_iterator"),
    ],
)
def test_what_cannot_be_is_refused(X, settings, message):
    with pytest.raises(ParameterError, match=message):
        certify(**{"X": X, "features": [0, 1, 2], "n_components": 2, **settings})


def test_gaps_are_refused_or_filled(X):
    gaps = X.copy()
    gaps[3, 4] = np.nan
    with pytest.raises(DataError, match="missing"):
        certify(gaps, [0, 1], 1)
    filled = gaps.copy()
    filled[3, 4] = np.nanmean(gaps[:, 4])
    found = certify(gaps, [4, 1], 1, missing="mean")
    assert found.value == pytest.approx(certify(filled, [4, 1], 1).value)


@pytest.mark.filterwarnings("ignore::keepers.exceptions.KeepersWarning")
class TestOfASelector:
    @pytest.mark.parametrize("name", sorted(all_selectors()))
    def test_every_selector_has_one(self, X, name):
        selector = all_selectors()[name](4).fit(X)
        found = selector.certificate(X)
        expected = certify(X, selector.top().indices, found.n_components)
        assert found.n_features == selector.n_features_to_select_
        if not getattr(selector, "scaling", 0.0):
            assert found.value == pytest.approx(expected.value)

    def test_it_speaks_of_the_table_as_it_was_fitted(self, X):
        selector = SPCAFS(4, n_components=2, scaling=1.0).fit(X)
        found = selector.certificate(X)
        assert found.n_components == 2
        standardised = (X - X.mean(axis=0)) / X.std(axis=0)
        expected = certify(standardised, selector.top().indices, 2)
        assert found.value == pytest.approx(expected.value)
        assert found.upper_bound == pytest.approx(expected.upper_bound)

    def test_other_numbers_of_features_and_components(self, X):
        selector = SPCAFS(4, n_components=3).fit(X)
        assert selector.certificate(X, k=2).n_components == 2
        assert selector.certificate(X, k=6, n_components=1).n_features == 6

    def test_another_table_is_refused(self, X):
        selector = AutoSelector().fit(X)
        with pytest.raises(DataError, match="must have the 12 columns"):
            selector.certificate(X[:, :5])


def test_a_selector_that_chose_its_settings_is_certified_with_those(X):
    selector = SPCAFSCV(4, n_components=[2], scaling=[1.0], random_state=0).fit(X)
    found = selector.certificate(X)
    scaled = X / X.std(axis=0)
    kept = selector.get_support(indices=True)
    expected = np.linalg.eigvalsh(np.cov(scaled[:, kept].T, bias=True))[-2:].sum()
    assert found.n_components == 2
    assert found.value == pytest.approx(expected)


def test_a_tight_bound_of_a_table_without_a_small_side_is_refused(X, monkeypatch):
    monkeypatch.setattr("keepers.linalg.scatter.SMALL_SIDE", 5)
    with pytest.raises(ParameterError, match="tight=True needs a table in memory"):
        certify(X, [0, 1, 2], 2, tight=True)
    assert 0.0 < certify(X, [0, 1, 2], 2).share <= 1.0


def test_without_a_small_side_the_bound_is_that_of_the_spectrum_unless_asked(X, monkeypatch):
    monkeypatch.setattr("keepers.linalg.scatter.SMALL_SIDE", 0)
    found = certify(X, [0, 1, 2], 2, random_state=0)
    expected = certify(X, [0, 1, 2], 2, tight=False, random_state=0)
    assert found.bound == "spectrum"
    assert found.upper_bound == expected.upper_bound
