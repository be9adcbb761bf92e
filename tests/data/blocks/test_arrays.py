"""Blocks of memory maps: the values of the map count, whatever its file holds."""

import os

import numpy as np
import pytest

from keepers import SPCAFS
from keepers.data.blocks.as_blocks import as_blocks


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((60, 8))


@pytest.fixture
def path(X, tmp_path):
    path = tmp_path / "table.raw"
    X.tofile(path)
    return path


def stacked(source, columns=None):
    return np.vstack([block.values for block in as_blocks(source).blocks(columns)])


def test_changes_to_a_copy_on_write_map_are_seen(X, path):
    mapped = np.memmap(path, dtype=float, mode="c", shape=X.shape)
    mapped[3:7] = 5.0
    expected = X.copy()
    expected[3:7] = 5.0
    for _ in range(2):  # reading gives no page back that holds a change
        np.testing.assert_array_equal(stacked(mapped), expected)
    np.testing.assert_array_equal(mapped, expected)
    found = SPCAFS(3, n_components=2).fit_blocks(mapped)
    np.testing.assert_allclose(found.mean_, expected.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("change", ["replaced", "deleted"])
def test_a_map_whose_file_is_gone_gives_the_values_of_the_map(X, path, tmp_path, change):
    mapped = np.memmap(path, dtype=float, mode="r", shape=X.shape)
    if change == "replaced":
        np.zeros_like(X).tofile(tmp_path / "other")
        os.replace(tmp_path / "other", path)
    else:
        path.unlink()
    np.testing.assert_array_equal(stacked(mapped), X)


def test_unsaved_changes_to_a_shared_map_are_seen_and_stay(X, path):
    mapped = np.memmap(path, dtype=float, mode="r+", shape=X.shape)
    mapped[0] = 7.0
    assert np.all(stacked(mapped)[0] == 7.0)
    assert np.all(mapped[0] == 7.0)
    mapped.flush()
    assert np.all(np.fromfile(path).reshape(X.shape)[0] == 7.0)


VIEWS = {
    "rows": lambda X: X[10:50],
    "every second row": lambda X: X[::2],
    "reversed": lambda X: X[::-1],
    "columns": lambda X: X[:, 2:5],
    "columns reversed": lambda X: X[:, ::-1],
    "transposed": lambda X: X.T,
    "a slice of a slice": lambda X: X[5:][3:, 1:],
    "chosen rows": lambda X: X[[3, 1, 2]],
    "another shape": lambda X: X.reshape(30, 16),
    "other numbers": lambda X: X.view(np.int64) % 1000,
}


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_of_a_map_are_read_as_they_are(X, path, view, mode):
    mapped = np.memmap(path, dtype=float, mode=mode, shape=X.shape)
    np.testing.assert_array_equal(stacked(view(mapped)), view(X))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("offset", [0, 8, 129, 5000])
@pytest.mark.parametrize("dtype", [">f8", "<f4", "int16"])
def test_a_map_from_the_middle_of_a_file_in_any_order_and_kind(X, tmp_path, order, offset, dtype):
    values = np.round(X * 100).astype(dtype)
    path = tmp_path / "table.raw"
    path.write_bytes(b"\1" * offset + values.tobytes(order=order))
    mapped = np.memmap(path, dtype=dtype, mode="r", shape=values.shape, offset=offset, order=order)
    np.testing.assert_array_equal(stacked(mapped), values)
    columns = np.array([5, 0])
    np.testing.assert_array_equal(stacked(mapped, columns), values[:, columns])


def test_an_open_file_without_a_name_can_be_mapped(X, tmp_path):
    with (tmp_path / "table.raw").open("w+b") as stream:
        stream.write(X.tobytes())
        stream.flush()
        descriptor = os.fdopen(os.dup(stream.fileno()), "r+b")
    with descriptor:
        mapped = np.memmap(descriptor, dtype=float, mode="r", shape=X.shape)
        np.testing.assert_array_equal(stacked(mapped), X)
