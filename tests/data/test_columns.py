"""Every column has one role, names are told apart, and text beside the numbers is kept."""

import io

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers.data.columns import GAP_WORDS, OtherColumn, as_texts, join_columns, take_rows
from keepers.data.table import Matrix, ReadRequest, plan_columns, to_table, unique_names
from keepers.exceptions import DataError

NAMES = ["who", "a", "kind", "b"]


def test_roles_are_given_by_name_and_the_rest_are_features():
    plan = plan_columns(NAMES, ReadRequest(labels="kind", identifier="who", drop=("b",)))
    assert (plan.features, plan.labels, plan.identifier) == ([1], 2, 0)


def test_an_index_names_the_samples_unless_it_has_another_role():
    assert plan_columns(NAMES, ReadRequest(), index=0).identifier == 0
    assert plan_columns(NAMES, ReadRequest(identifier="kind"), index=0).features == [1, 3]
    dropped = plan_columns(NAMES, ReadRequest(drop=("who",)), index=0)
    assert (dropped.features, dropped.identifier) == ([1, 2, 3], None)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"labels": "kinds"}, "no column 'kinds'. Did you mean 'kind'"),
        ({"labels": "kind", "drop": ("kind",)}, "A column has one role"),
        ({"drop": tuple(NAMES)}, "At least one feature column must remain; all 4 columns"),
    ],
)
def test_roles_that_cannot_be_are_refused(roles, message):
    with pytest.raises(DataError, match=message):
        plan_columns(NAMES, ReadRequest(**roles))


def test_names_are_trimmed_and_numbered_where_they_are_empty():
    assert unique_names([" a", "", "b "]) == ["a", "column 2", "b"]
    with pytest.raises(DataError, match="there are duplicates: 'a'"):
        unique_names(["a", " a"])


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_a_column_of_a_matrix_can_be_labels_or_names(container):
    X = np.column_stack([np.arange(4), [7, 8, 7, 8], [0.5, 1.5, 2.5, 3.5]])
    table = to_table(Matrix(container(X)), ReadRequest(labels="x1", identifier="x0"), "t")
    assert table.labels.tolist() == [7, 8, 7, 8]
    assert table.sample_names.tolist() == ["0", "1", "2", "3"]
    found = table.X.toarray() if sp.issparse(table.X) else table.X
    np.testing.assert_array_equal(found, X[:, 2:])
    assert list(table.feature_names) == ["x2"]


def test_words_for_nothing_are_those_of_pandas():
    words = [*sorted(GAP_WORDS), "?", "x", "-"]
    lines = "\n".join(f"{word},1" for word in words)
    read = pd.read_csv(io.StringIO(f"word,n\n{lines}"))
    assert [word is None for word in as_texts(words)] == read["word"].isna().tolist()


def test_values_become_text_and_gaps_none():
    given = ["a", 3, 2.5, None, float("nan"), pd.NA, pd.NaT, " ", True]
    expected = ["a", "3", "2.5", None, None, None, None, None, "True"]
    assert as_texts(given).tolist() == expected


def other(name, words, position=0):
    return OtherColumn(name, "text", as_texts(words), position)


def test_columns_of_consecutive_rows_are_joined_by_name():
    first = (other("a", ["x"]), other("b", ["y", None], 1))
    second = (other("b", ["z"]), other("a", ["w", "v"]))
    joined = join_columns([first, second])
    assert [column.name for column in joined] == ["a", "b"]
    assert [column.position for column in joined] == [0, 1]
    assert joined[0].values.tolist() == ["x", "w", "v"]
    assert joined[1].values.tolist() == ["y", None, "z"]
    with pytest.raises(DataError, match="same columns that hold text"):
        join_columns([first, second[:1]])
    assert join_columns([]) == ()


def test_rows_are_taken_by_mask_or_number():
    dates = np.array(["2020-01-01", "NaT", "2021-01-01"], dtype="datetime64[us]")
    columns = [other("a", ["x", None, "z"]), OtherColumn("d", "date", dates, 1)]
    for rows in (np.array([True, True, False]), np.array([0, 1])):
        text, date = take_rows(columns, rows)
        assert text.values.tolist() == ["x", None]
        assert text.missing.tolist() == [False, True]
        assert date.missing.tolist() == [False, True]
