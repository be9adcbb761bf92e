"""What holds for every selector of the library."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

from keepers import all_selectors
from keepers.datasets import Table
from keepers.exceptions import DataError, DataWarning, KeepersWarning, ParameterError
from keepers.linalg.ordering import TIE_TOLERANCE

SELECTORS = all_selectors()
EVERY = pytest.mark.parametrize("name", SELECTORS)
FLOORS = {"RandomScore", "VarianceScore", "AllFeatures"}
# How well scores keep when the columns are reordered. EUFS amplifies rounding from step to step
# (1e-14, 3e-9, 6e-5 ... of the scores), so it is compared after two. RNE starts from a random
# block and RandomScore is random: neither can be equivariant, their own tests say what holds.
EQUIVARIANT = {
    "AutoSelector": ({}, 1e-9),
    "SPCAFS": ({}, 1e-6),
    "FSPCA": ({}, 1e-9),
    "ColumnSubset": ({}, 1e-9),
    "CUR": ({}, 1e-9),
    "LaplacianScore": ({}, 1e-10),
    "SPEC": ({}, 1e-10),
    "MCFS": ({}, 1e-6),
    "UDFS": ({}, 1e-6),
    "NDFS": ({}, 1e-9),
    "JELSR": ({}, 1e-9),
    "EUFS": ({"max_iter": 2}, 1e-6),
    "DGUFS": ({}, 1e-8),
    "SOGFS": ({}, 1e-6),
    "U2FS": ({}, 0),
    "InfFS": ({}, 1e-12),
    "RSR": ({}, 1e-8),
    "VarianceScore": ({}, 1e-12),
    "AllFeatures": ({}, 0),
}


def make(name, **settings):
    cls = SELECTORS[name]
    if "random_state" in cls().get_params():
        settings.setdefault("random_state", 0)
    return cls(**settings)


def make_strict(name):
    """A selector that raises for missing values and for text."""
    selector = make(name)
    if name == "AutoSelector":
        return selector.set_params(missing="error", prepare=False)
    takes_gaps = selector.__sklearn_tags__().input_tags.allow_nan
    return selector.set_params(missing="error") if takes_gaps else selector


def quietly(selector, X):
    """Fit without the warnings a method owes the user about its own convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        return selector.fit(X)


def accepts_sparse(name):
    return SELECTORS[name]().__sklearn_tags__().input_tags.sparse


@pytest.fixture(scope="module")
def table():
    """50 x 14: four groups of samples in the first six features, noise in the rest."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 14))
    X[:, :6] += 3 * rng.standard_normal((4, 6))[rng.integers(0, 4, 50)]
    return X


@parametrize_with_checks([selector() for selector in SELECTORS.values()])
def test_scikit_learn_accepts_it(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        warnings.filterwarnings("ignore", message=".*(Casting complex|overflow|invalid value).*")
        check(estimator)


@EVERY
def test_scores_ranking_and_support_tell_the_same_story(name, table):
    selector = quietly(make(name, n_features_to_select=6), table)
    kept = 14 if name == "AllFeatures" else 6
    assert selector.scores_.shape == (14,)
    assert np.all(np.isfinite(selector.scores_))
    assert sorted(selector.ranking_) == list(range(1, 15))
    best_first = selector.scores_[np.argsort(selector.ranking_)]
    assert np.all(np.diff(best_first) <= TIE_TOLERANCE * np.abs(best_first[1:]))
    np.testing.assert_array_equal(selector.support_, selector.ranking_ <= kept)
    np.testing.assert_array_equal(selector.transform(table), table[:, selector.support_])
    np.testing.assert_array_equal(selector.top(3).indices, np.argsort(selector.ranking_)[:3])


@EVERY
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_survive(name, frame, table):
    columns = [f"gene {j}" for j in range(14)]
    named = frame(dict(zip(columns, table.T, strict=True)))
    selector = quietly(make(name, n_features_to_select=6), named)
    kept = [columns[j] for j in np.flatnonzero(selector.support_)]
    assert list(selector.get_feature_names_out()) == kept
    best = columns[int(np.argmin(selector.ranking_))]
    assert selector.top(1).names.tolist() == [best]
    output = "pandas" if frame is pd.DataFrame else "polars"
    assert list(selector.set_output(transform=output).transform(named).columns) == kept


@EVERY
def test_a_labelled_table_is_fitted_and_transformed_by_its_values_and_names(name, table):
    names = np.array([f"gene {j}" for j in range(14)], dtype=object)
    labelled = Table(table, names)
    selector = quietly(make(name, n_features_to_select=6), labelled)
    plain = quietly(make(name, n_features_to_select=6), table)
    # Exactly: the same computation twice.
    np.testing.assert_array_equal(selector.scores_, plain.scores_)
    assert list(selector.feature_names_in_) == list(names)
    assert list(selector.top().names) == list(names[plain.top().indices])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(selector.transform(labelled), table[:, selector.support_])
    with pytest.raises(DataError, match="same order; column 0 is 'gene 13', and 'gene 0'"):
        selector.transform(Table(table[:, ::-1], names[::-1]))
    with pytest.raises(DataError, match="14 columns of the fit; it has 13"):
        selector.transform(Table(table[:, :13], names[:13]))


@EVERY
def test_a_labelled_table_with_gaps_is_refused_by_the_names_of_its_columns(name, table):
    names = np.array([f"gene {j}" for j in range(14)], dtype=object)
    X = table.copy()
    X[3, 5] = np.nan
    with pytest.raises(DataError, match="'gene 5'"):
        make_strict(name).fit(Table(X, names))


@EVERY
def test_the_same_seed_gives_the_same_scores(name, table):
    first, second = (quietly(make(name), table).scores_ for _ in range(2))
    # Exactly: the same computation twice.
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", EQUIVARIANT)
def test_reordering_the_features_reorders_the_scores(name, table):
    settings, tolerance = EQUIVARIANT[name]
    order = np.random.default_rng(1).permutation(14)
    plain = quietly(make(name, **settings), table).scores_
    reordered = quietly(make(name, **settings), table[:, order]).scores_
    np.testing.assert_allclose(reordered, plain[order], atol=tolerance * np.abs(plain).max())


@EVERY
@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array, sp.csr_matrix])
def test_sparse_storage_gives_the_same_scores_or_a_reason(name, container, table):
    X = table * (np.abs(table) > 0.8)
    selector = make(name)
    if not accepts_sparse(name):
        names = np.array([f"x{j}" for j in range(14)], dtype=object)
        for given in (container(X), Table(container(X), names)):
            with pytest.raises(DataError, match=r"does not accept sparse tables: .*toarray"):
                quietly(selector, given)
        return
    expected = quietly(make(name), X).scores_
    found = quietly(selector, container(X)).scores_
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


@EVERY
def test_constant_columns_come_last_with_a_warning_that_names_them(name, table):
    X = table.copy()
    X[:, 2] = 7.0
    X[:, 9] = 0.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selector = make(name).fit(X)
    assert any(
        issubclass(w.category, DataWarning) and "ranked last: 2, 9." in str(w.message)
        for w in caught
    )
    assert sorted(selector.ranking_[[2, 9]]) == [13, 14]


@EVERY
@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda X: np.where(X > 2, np.nan, X), DataError),
        (lambda X: np.where(X > 2, np.inf, X), DataError),
        (lambda X: X * 1e250, DataError),
        (lambda X: np.ones_like(X), DataError),
        (lambda X: X[:1], ValueError),
        (lambda X: X[:0], ValueError),
        (lambda X: X[:, :0], ValueError),
        (lambda X: pd.DataFrame(X).assign(colour="red"), DataError),
    ],
    ids=["nan", "inf", "1e250", "constant", "one sample", "no sample", "no feature", "text"],
)
def test_a_bad_table_is_refused_and_nothing_stays_behind(name, spoil, error, table):
    selector = make_strict(name)
    with np.errstate(all="ignore"), pytest.raises(error):
        selector.fit(spoil(table))
    assert [attribute for attribute in vars(selector) if attribute.endswith("_")] == []


@EVERY
def test_a_setting_of_another_kind_is_refused_by_name_before_the_table_is_looked_at(name):
    for setting in SELECTORS[name]().get_params():
        for value in (-1.5, "nonsense"):
            with pytest.raises(ParameterError, match=setting):
                SELECTORS[name](**{setting: value}).fit("no table at all")


@pytest.mark.parametrize(
    ("names", "setting", "values"),
    [
        (SELECTORS, "n_features_to_select", [0, 15, 1.5]),
        (["SPCAFS", "RSR", "VarianceScore"], "max_correlation", [0.0, 1.5]),
        (["CUR", "SPCAFS", "FSPCA"], "n_components", [0, 51]),
        (["LaplacianScore"], "self_loops", [1]),
        (["NDFS", "JELSR", "DGUFS", "EUFS", "UDFS", "MCFS", "U2FS"], "n_clusters", [0, 2.5]),
        (["NDFS", "JELSR", "EUFS", "MCFS", "U2FS", "LaplacianScore"], "bandwidth", [0.0]),
        (["NDFS", "JELSR", "EUFS", "DGUFS", "RNE", "RSR", "UDFS"], "max_iter", [0]),
        (["JELSR", "EUFS", "RNE"], "alpha", [0.0, np.inf]),
        (["NDFS", "DGUFS"], "beta", [0.0, 1.5]),
        (["NDFS", "UDFS", "SOGFS"], "gamma", [0.0]),
        (["RSR"], "share", [0.0, 1.5]),
        (["InfFS"], "alpha", [-0.1, 1.5]),
        (["InfFS"], "coupling", [1.0]),
        (["MCFS"], "cardinality", [0, 15]),
        (["SPEC"], "power", [0, 21]),
    ],
)
def test_a_number_past_the_edge_of_its_rule_is_refused_with_the_value(
    names, setting, values, table
):
    for name in names:
        for value in values:
            with pytest.raises(ParameterError, match=rf"{setting} .*got {value!r}"):
                make(name, **{setting: value}).fit(table)


@pytest.mark.parametrize("setting", ["n_clusters", "max_iter"])
def test_too_few_samples_or_steps_are_told_of_with_the_number(setting, table):
    for name, cls in SELECTORS.items():
        if setting in cls().get_params() and name not in {"SPEC", "FSPCA", "RNE"}:
            asked, X = (20, table[:9]) if setting == "n_clusters" else (1, table)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                selector = make(name, **{setting: asked}).fit(X)
            told = [str(w.message) for w in caught if issubclass(w.category, KeepersWarning)]
            assert any(str(asked) in message for message in told), name
            assert setting == "n_clusters" or not selector.converged_


@pytest.mark.parametrize(
    "name", [n for n in SELECTORS if "n_neighbors" in SELECTORS[n]().get_params()]
)
def test_few_samples_mean_few_neighbours_and_a_warning_with_both_numbers(name, table):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(name, n_neighbors=20).fit(table[:9])
    most = "7" if name == "SOGFS" else "8"  # SOGFS needs one more sample than its neighbours
    assert any("20" in str(w.message) and most in str(w.message) for w in caught)
    for bad in (0, -1, 2.5, "5"):
        with pytest.raises(ParameterError, match="n_neighbors"):
            make(name, n_neighbors=bad).fit(table)


@pytest.mark.parametrize(
    "name",
    [
        *("UDFS", "NDFS", "JELSR", "DGUFS", "SOGFS", "RNE"),
        *("U2FS", "CUR", "ColumnSubset", "InfFS", "RSR"),
    ],
)
def test_work_past_memory_is_refused_with_the_number_before_it_starts(name, table, monkeypatch):
    monkeypatch.setattr("keepers.methods.parameters.physical_memory", lambda: 1000.0)
    with pytest.raises(DataError, match=rf"{name} needs about \d+\.\d GB for .* more than the"):
        quietly(make(name), table)


@pytest.mark.parametrize("name", [n for n in SELECTORS if n not in FLOORS])
def test_every_parameter_and_attribute_is_documented(name, table):
    selector = quietly(make(name), table)
    entries = re.findall(r"^    (\w+(?:, \w+)*) : ", SELECTORS[name].__doc__, re.MULTILINE)
    documented = {each for names in entries for each in names.split(", ")}
    learned = {attribute for attribute in vars(selector) if attribute.endswith("_")}
    expected = {*selector.get_params(), *learned} - {"n_features_in_", "n_features_to_select_"}
    assert expected <= documented


@pytest.mark.parametrize("name", ["MCFS", "DGUFS", "RNE", "SOGFS", "FSPCA", "CUR", "ColumnSubset"])
def test_methods_whose_ranking_depends_on_k_say_so(name, table):
    few, many = (quietly(make(name, n_features_to_select=k), table) for k in (3, 9))
    assert few.depends_on_k
    assert not np.array_equal(few.scores_, many.scores_)
