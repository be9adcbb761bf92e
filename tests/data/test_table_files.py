"""From a path or a name to a table, and from a slip to a hint."""

import numpy as np
import pandas as pd
import pytest

from keepers import datasets
from keepers.datasets import open_table
from keepers.exceptions import DataError, ParameterError

pytest.importorskip("pyarrow")


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    pd.DataFrame(
        {
            "who": ["ann", "bob", "cyd"],
            "height": [1.5, 1.75, 2.0],
            "kind": ["x", "y", "x"],
            "age": [30, 40, 50],
            "note": ["p", "q", "r"],
        }
    ).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", ["srbct", "digits"])
def test_bundled_sets_open_by_name_with_their_labels(name):
    table = open_table(name.upper())
    X, feature_names, y = datasets.load(name)
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.labels, y)
    assert list(table.feature_names) == list(feature_names)
    assert table.name == name


def test_columns_of_a_bundled_set_can_be_dropped():
    table = open_table("digits", drop=["pixel_0_0", "pixel_7_7"])
    np.testing.assert_array_equal(table.X, datasets.load("digits").X[:, 1:63])
    assert table.feature_names[0] == "pixel_0_1"


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("srbtc", "Did you mean 'srbct'"),
        ("colonn", "Did you mean 'colon'"),
        ("nonsense", "Known: srbct, digits, PalmData25"),
        ("", "folder"),
        ("a\0b", "neither a file nor"),
        ("x" * 5000, "neither a file nor"),
    ],
)
def test_a_name_that_is_nothing_gets_a_hint(source, hint):
    with pytest.raises(DataError, match=hint):
        open_table(source)


def test_a_file_that_is_not_there_gets_its_nearest_neighbour(people):
    with pytest.raises(DataError, match=r"There is no file .* Did you mean 'people.csv'"):
        open_table(people.with_name("poeple.csv"))


def test_a_folder_is_no_table(tmp_path):
    with pytest.raises(DataError, match="is a folder"):
        open_table(tmp_path)


def test_an_unknown_suffix_is_met_with_the_known_ones(tmp_path):
    path = tmp_path / "table.docx"
    path.write_bytes(b"PK")
    with pytest.raises(DataError, match=r"one of \.csv.*got 'table\.docx'"):
        open_table(path)


def test_columns_get_the_roles_they_are_given(people):
    table = open_table(people, labels="kind", identifier="who", drop=["note"])
    assert list(table.feature_names) == ["height", "age"]
    np.testing.assert_array_equal(table.X, [[1.5, 30], [1.75, 40], [2.0, 50]])
    assert list(table.labels) == ["x", "y", "x"]
    assert list(table.sample_names) == ["ann", "bob", "cyd"]
    assert table.name == "people"


def test_text_columns_left_over_are_named_with_the_three_ways_out(people):
    with pytest.raises(DataError, match=r"do not: 'who', 'note'\. .*--labels.*--id.*--drop"):
        open_table(people, labels="kind")


def test_at_most_five_text_columns_are_named(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"t{j}" for j in range(9)) + "\n" + ",".join("abcdefghi") + "\n")
    with pytest.raises(DataError, match=r"'t3', 't4' and 4 more\."):
        open_table(path)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"labels": "kinds"}, "no column 'kinds'. Did you mean 'kind'"),
        ({"identifier": "zzz"}, "The columns are 'who', 'height', 'kind', 'age', 'note'"),
        ({"drop": ["kind", "nothing"]}, "no column 'nothing'"),
        ({"labels": "kind", "identifier": "kind"}, "one role"),
        ({"labels": "kind", "drop": ["kind"]}, "one role"),
        ({"drop": ["who", "height", "kind", "age", "note"]}, "At least one feature column"),
    ],
)
def test_roles_that_cannot_be_given_are_refused(people, roles, message):
    with pytest.raises(DataError, match=message):
        open_table(people, **roles)


def test_a_table_past_the_limit_names_the_option_that_lifts_it(people):
    roles = {"drop": ["who", "kind", "note"]}
    assert open_table(people, max_bytes=48, **roles).n_samples == 3
    with pytest.raises(DataError, match=r"max_bytes= \(--max-size\)"):
        open_table(people, max_bytes=47, **roles)


@pytest.mark.parametrize("max_bytes", [0, -1, 2.5, True, "8G"])
def test_a_limit_that_is_no_size_is_refused(people, max_bytes):
    with pytest.raises(ParameterError, match="integer >= 1, a number of bytes"):
        open_table(people, max_bytes=max_bytes)


def test_the_limit_is_never_more_than_the_memory_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr("keepers.data.limits.physical_memory", lambda: 1000)
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((50, 4)))
    with pytest.raises(DataError, match="memory of this machine"):
        open_table(path, max_bytes=10**12)


def test_memory_that_runs_out_is_an_error_of_ours(people, monkeypatch):
    def out_of_memory(*_):
        raise MemoryError

    monkeypatch.setattr("keepers.data.formats.text._read_start", out_of_memory)
    with pytest.raises(DataError, match="does not fit in memory"):
        open_table(people)


def test_gaps_stay_but_a_column_without_any_value_is_reported(tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("a,b,c\n1,,\n2,3,\n,4,\n")
    with pytest.raises(DataError, match=r"hold none: 'c'\. Leave them out"):
        open_table(path)
    table = open_table(path, drop=["c"])
    np.testing.assert_array_equal(table.X, [[1, np.nan], [2, 3], [np.nan, 4]])


def test_an_empty_column_below_many_rows_is_found(tmp_path):
    X = np.ones((500, 3))
    X[:, 1] = np.nan
    X[:499, 2] = np.nan
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(DataError, match=r"hold none: 'x1'\."):
        open_table(tmp_path / "a.npy")
