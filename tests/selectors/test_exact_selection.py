"""The best set of a table: right, restricted, interrupted, resumed."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from brute_force_sets import case_of
from keepers import datasets, solve_exactly
from keepers.exceptions import ParameterError


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((40, 11)) * np.linspace(1, 1.4, 11)


@pytest.fixture(scope="module")
def case(X):
    return case_of(np.cov(X.T, bias=True), 4, 2)


def hard_table():
    return np.random.default_rng(1).standard_normal((60, 30))


def test_it_is_the_best_of_all_sets(X, case):
    found = solve_exactly(X, 4, 2)
    assert found.proved
    assert found.gap == 0.0
    assert found.value == pytest.approx(case.best)
    assert found.upper_bound == pytest.approx(case.best)
    np.testing.assert_array_equal(found.features, case.sets[np.argmax(case.values)])
    assert found.names is None
    assert "the most variance in 2 components of all such sets: proved" in str(found)


@pytest.mark.parametrize("convert", [sp.csr_array, lambda X: [X[:15], X[15:]], np.float32])
def test_every_storage_gives_the_same(X, case, convert):
    found = solve_exactly(convert(X), 4, 2)
    assert found.value == pytest.approx(case.best, rel=1e-6)


def test_more_columns_than_rows_are_searched_by_a_factor():
    X = np.random.default_rng(2).standard_normal((7, 12))
    found = solve_exactly(X, 4, 2)
    assert found.proved
    assert found.value == pytest.approx(case_of(np.cov(X.T, bias=True), 4, 2).best)


def test_few_of_many_genes_are_found():
    """All sets of three of the seventy genes with the largest variances are looked at."""
    X = datasets.load("srbct").X
    S = np.cov(X.T, bias=True)
    largest = np.sort(np.argsort(-S.diagonal())[:70])
    case = case_of(S[np.ix_(largest, largest)], 3, 2)
    found = solve_exactly(X, 3, 2)
    assert found.proved
    assert found.value == pytest.approx(case.best)
    np.testing.assert_array_equal(found.features, largest[case.sets[np.argmax(case.values)]])


def test_of_what_is_too_large_to_search_the_first_bound_is_told(X, case, monkeypatch):
    monkeypatch.setattr("keepers.selectors.exact_selection.MOST_SEARCHED", 3)
    found = solve_exactly(X, 4, 2)
    assert not found.proved
    assert found.n_nodes == 0
    assert found.value <= case.best * (1 + 1e-12) <= found.upper_bound
    assert 0.0 < found.gap < 0.3


def test_features_can_be_forced_in_and_left_out(X, case):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdefghijk"))
    found = solve_exactly(frame, 4, 2, must_keep=["a"], never_keep=["k", "j"])
    allowed, forced = np.ones(11, dtype=bool), np.zeros(11, dtype=bool)
    forced[0], allowed[9:] = True, False
    assert found.value == pytest.approx(case.best_among(allowed, forced))
    assert list(found.names) == [frame.columns[at] for at in found.features]
    assert "a" in found.names
    plain = json.loads(json.dumps(found.as_dict()))
    assert plain["names"] == list(found.names)
    assert plain["proved"] is True


def test_constant_columns_fill_a_set_only_if_nothing_else_is_left(X):
    with_constant = np.column_stack([np.zeros(40), X[:, :3], np.ones(40)])
    found = solve_exactly(with_constant, 4, 2)
    np.testing.assert_array_equal(found.features, [0, 1, 2, 3])
    assert found.value == pytest.approx(solve_exactly(X[:, :3], 3, 2).value)
    forced = solve_exactly(with_constant, 3, 2, must_keep=[4])
    assert 4 in forced.features
    assert len(forced.features) == 3
    assert forced.value == pytest.approx(solve_exactly(X[:, :3], 2, 2).value)
    nothing = solve_exactly(with_constant, 1, 1, must_keep=[0])
    assert nothing.value == 0.0
    assert nothing.proved


def test_out_of_time_it_tells_the_gap():
    found = solve_exactly(hard_table(), 10, 3, time_limit=0.1)
    assert not found.proved
    assert found.gap == pytest.approx(1 - found.value / found.upper_bound)
    assert "the search did not end" in str(found)


def test_progress_is_told_in_the_units_of_the_result():
    told = []
    found = solve_exactly(hard_table(), 10, 3, time_limit=0.3, callback=told.append)
    assert told[-1].value == pytest.approx(found.value)
    assert told[-1].upper_bound == pytest.approx(found.upper_bound)
    assert told[-1].gap == pytest.approx(found.gap)


class StopError(Exception):
    pass


def stop_at(n_nodes):
    def stop(progress):
        if progress.n_nodes >= n_nodes:
            raise StopError

    return stop


@pytest.fixture
def saved(tmp_path):
    """A search that was interrupted."""
    path = tmp_path / "search.npz"
    with pytest.raises(StopError):
        solve_exactly(hard_table(), 4, 2, checkpoint=path, callback=stop_at(5))
    return path


def test_an_interrupted_search_resumes(saved):
    whole = solve_exactly(hard_table(), 4, 2)
    assert whole.n_nodes > 6
    told = []
    found = solve_exactly(hard_table(), 4, 2, checkpoint=saved, callback=told.append)
    assert told[0].n_nodes == 6
    assert found.proved
    assert found.value == pytest.approx(whole.value, rel=1e-12)
    np.testing.assert_array_equal(found.features, whole.features)
    again = solve_exactly(hard_table(), 4, 2, checkpoint=saved, callback=told.append)
    assert again.proved
    assert again.n_nodes == found.n_nodes


def test_rows_in_another_order_are_the_same_table(saved):
    assert solve_exactly(hard_table()[::-1], 4, 2, checkpoint=saved).proved


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_features_to_select": 5}, "other settings"),
        ({"n_components": 1}, "other settings"),
        ({"must_keep": [3]}, "other settings"),
        ({"X": hard_table() * 1.001}, "other data"),
        ({"X": hard_table()[:-1]}, "other data"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(saved, settings, message):
    given = {"X": hard_table(), "n_features_to_select": 4, "n_components": 2, **settings}
    with pytest.raises(ParameterError, match=message):
        solve_exactly(**given, checkpoint=saved)


def test_a_damaged_checkpoint_is_refused_in_one_sentence(saved):
    content = saved.read_bytes()
    damages = [b"", b"no archive", content[: len(content) // 2], content.replace(b"left", b"lost")]
    for damage in damages:
        saved.write_bytes(damage)
        with pytest.raises(ParameterError, match="is not a checkpoint of solve_exactly"):
            solve_exactly(hard_table(), 4, 2, checkpoint=saved)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("left", np.array([3, 2, 1])),
        ("left", np.array([0, 10**6])),
        ("forced", np.zeros(2, dtype=bool)),
        ("search_nodes", np.full((1, 30), 9, dtype=np.int8)),
        ("search_features", np.array([0, 0, 1, 2])),
        ("search_bounds", np.array(["x"])),
    ],
)
def test_arrays_that_no_search_writes_are_refused(saved, name, value):
    arrays = dict(np.load(saved))
    assert name in arrays
    with saved.open("wb") as stream:
        np.savez(stream, **{**arrays, name: value})
    with pytest.raises(ParameterError, match="is not a checkpoint of solve_exactly"):
        solve_exactly(hard_table(), 4, 2, checkpoint=saved)


def test_nothing_in_a_checkpoint_is_unpickled(saved):
    arrays = dict(np.load(saved))
    with saved.open("wb") as stream:
        np.savez(stream, **{**arrays, "left": np.array([print], dtype=object)})
    with pytest.raises(ParameterError, match="is not a checkpoint"):
        solve_exactly(hard_table(), 4, 2, checkpoint=saved)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 5}, "n_components must be an integer from 1 to 4; got 5"),
        ({"n_features_to_select": 0}, "n_features_to_select must be an integer >= 1"),
        ({"n_features_to_select": 12}, "at most the number of features, 11"),
        ({"time_limit": -1}, "time_limit"),
        ({"callback": 3}, "callback must be callable"),
        ({"must_keep": [0], "never_keep": [0]}, "in must_keep and in never_keep"),
        ({"never_keep": range(8)}, "at most 3"),
        ({"must_keep": range(5)}, "at least 5"),
        ({"checkpoint": 3}, "checkpoint must be the path"),
    ],
)
def test_what_cannot_be_is_refused(X, settings, message):
    with pytest.raises(ParameterError, match=message):
        solve_exactly(X, **{"n_features_to_select": 4, "n_components": 2, **settings})
