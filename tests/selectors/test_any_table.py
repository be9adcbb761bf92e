"""Tables of any kind, and features by name, index or mask."""

import numpy as np
import pytest

from keepers.exceptions import ParameterError
from keepers.selectors.any_table import is_block_source, read_any_table, read_features

NAMES = np.array(["alpha", "beta", "gamma", "delta"], dtype=object)


@pytest.mark.parametrize(
    "features",
    [
        ["gamma", "alpha"],
        [2, 0],
        np.array([2, 0], dtype=np.uint8),
        ["gamma", 0],
        np.array(["gamma", "alpha"]),
    ],
)
def test_features_are_found_in_their_order(features):
    np.testing.assert_array_equal(read_features(features, 4, NAMES), [2, 0])


def test_masks_are_read():
    np.testing.assert_array_equal(read_features([True, False, True, False], 4), [0, 2])
    pandas = pytest.importorskip("pandas")
    marked = pandas.Series([False, True, False, True], index=NAMES)
    np.testing.assert_array_equal(read_features(marked, 4, NAMES), [1, 3])


def test_all_faults_are_told_at_once():
    with pytest.raises(ParameterError) as caught:
        read_features(["gama", "x" * 500, 7, 1, 1, 2.5], 4, NAMES)
    unknown, beyond, strange, twice = str(caught.value).splitlines()
    assert "'gama' (did you mean 'gamma'?)" in unknown
    assert "between 0 and 3" in beyond
    assert "7" in beyond
    assert "2.5" in strange
    assert twice.endswith("repeated: 1.")


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([], "at least one feature"),
        ("alpha", r"Write \['alpha'\]"),
        (3, "sequence of names"),
        ([True, False], "one entry per column, 4; got 2"),
        ([-1], "between 0 and 3"),
    ],
)
def test_what_is_no_set_of_features_is_refused(features, message):
    with pytest.raises(ParameterError, match=message):
        read_features(features, 4, NAMES)


def test_names_need_a_table_with_names():
    with pytest.raises(ParameterError, match="need a table with column names"):
        read_features(["alpha"], 4)


def test_blocks_are_recognised():
    block = np.zeros((2, 3))
    assert is_block_source("table.csv")
    assert is_block_source([block, block])
    assert is_block_source(iter([block]))
    assert is_block_source(lambda: iter([block]))
    assert not is_block_source(block)
    assert not is_block_source([[1.0, 2.0], [3.0, 4.0]])


def test_constant_columns_are_left_out_without_a_warning():
    X = np.random.default_rng(0).standard_normal((10, 3))
    X[:, 1] = 4.0
    read = read_any_table(X, n_components=1)
    np.testing.assert_array_equal(read.table.usable, [0, 2])
    assert read.names is None
