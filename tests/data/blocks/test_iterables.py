"""Blocks the user hands over: read from the first on or not at all, columns matched by name."""

import numpy as np
import pandas as pd
import pytest

from keepers.data.blocks.as_blocks import as_blocks
from keepers.exceptions import DataError
from recording import Recording

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((100, 4))


def stacked(source):
    return np.vstack([block.values for block in source.blocks()])


def parts(X):
    return [X[start : start + 20] for start in range(0, 100, 20)]


ITERATORS = {
    "an object": lambda X: Recording(parts(X)),
    "a generator": lambda X: (part for part in parts(X)),
    "of a list": lambda X: iter(parts(X)),
    "a map": lambda X: map(np.asarray, parts(X)),
}


@pytest.mark.parametrize("make", ITERATORS.values(), ids=ITERATORS)
def test_an_iterator_begun_before_is_refused_not_read_in_part(X, make):
    iterator = make(X)
    as_blocks(iterator)
    with pytest.raises(DataError, match=r"the iterator was already consumed.*new iterator"):
        as_blocks(iterator)


@pytest.mark.parametrize("make", ITERATORS.values(), ids=ITERATORS)
def test_a_function_that_returns_one_iterator_again_gives_all_rows_once(X, make):
    iterator = make(X)
    table = as_blocks(lambda: iterator)
    np.testing.assert_array_equal(stacked(table), X)
    assert list(table.blocks()) == []


def test_a_consumed_iterator_gives_no_blocks(X):
    iterator = iter(parts(X))
    stacked(as_blocks(iterator))
    with pytest.raises(DataError, match="at least one block"):
        as_blocks(iterator)


def test_an_iterator_the_user_began_is_taken_from_there(X):
    iterator = iter(parts(X))
    next(iterator)
    np.testing.assert_array_equal(stacked(as_blocks(iterator)), X[20:])


FRAMES = {
    "pandas": lambda X, names: pd.DataFrame(X, columns=names),
    "polars": lambda X, names: pl.DataFrame(X, schema=names),
    "arrow": lambda X, names: pa.table(dict(zip(names, X.T, strict=True))),
    "arrow batch": lambda X, names: pa.RecordBatch.from_pydict(dict(zip(names, X.T, strict=True))),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_columns_in_another_order_are_matched_by_name(X, frame):
    names, order = ["a", "b", "c", "d"], [2, 0, 3, 1]
    shuffled = frame(X[50:][:, order], [names[at] for at in order])
    table = as_blocks([frame(X[:50], names), shuffled])
    assert list(table.feature_names) == names
    np.testing.assert_array_equal(stacked(table), X)


@pytest.mark.parametrize("labels", [[3, 1, 2, 0], [0, 1, 2, 3], [(0, 1), (0, 2), (1, 1), (1, 2)]])
def test_columns_whose_labels_are_no_strings_are_matched_too(X, labels):
    frame = pd.DataFrame(X)
    frame.columns = pd.Index(labels, tupleize_cols=False)
    table = as_blocks([frame[:50], frame[50:][labels[::-1]]])
    assert table.feature_names is None
    np.testing.assert_array_equal(stacked(table), X)


@pytest.mark.parametrize("order", [["a", "b", "a"], ["b", "a", "a"]])
def test_duplicate_names_cannot_be_matched_and_are_refused(X, order):
    first = pd.DataFrame(X[:50, :3], columns=["a", "b", "a"])
    second = pd.DataFrame(X[50:, :3], columns=order)
    with pytest.raises(DataError, match=r"names must (be unique|differ).*'a'"):
        stacked(as_blocks([first, second]))


def test_one_frame_with_duplicate_names_is_refused_as_fit_refuses_it(X):
    frame = pd.DataFrame(X, columns=["a", "b", "a", "b"])
    with pytest.raises(DataError, match="names must be unique; these are not: 'a', 'b'"):
        stacked(as_blocks([frame]))


@pytest.mark.parametrize("named", [0, 1])
def test_frames_and_arrays_are_not_mixed_by_position(X, named):
    blocks = parts(X)[:2]
    blocks[named] = pd.DataFrame(blocks[named], columns=list("badc"))
    with pytest.raises(DataError, match=r"in all blocks or in none"):
        stacked(as_blocks(blocks))


def test_frames_with_numbered_columns_go_with_arrays(X):
    np.testing.assert_array_equal(stacked(as_blocks([pd.DataFrame(X[:50]), X[50:]])), X)
    np.testing.assert_array_equal(stacked(as_blocks([X[:50], pd.DataFrame(X[50:])])), X)
