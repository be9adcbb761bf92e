"""Whatever holds a table is seen as blocks: files, maps, iterators, frames."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from keepers.blocks.sources import as_blocks
from keepers.datasets import scan_table
from keepers.exceptions import DataError, ParameterError

X = np.random.default_rng(0).standard_normal((600, 4))


def stacked(source, columns=None):
    return np.vstack([block.values for block in as_blocks(source).blocks(columns)])


def write(path, values, names="abcd"):
    path.parent.mkdir(exist_ok=True, parents=True)
    pl.DataFrame(values, schema=list(names)).write_parquet(path, row_group_size=40)


@pytest.fixture
def folder(tmp_path):
    """Twelve files of 50 rows, numbered without leading zeros."""
    for number in range(12):
        write(tmp_path / "parts" / f"part-{number}.parquet", X[50 * number : 50 * number + 50])
    return tmp_path / "parts"


def test_a_folder_is_one_table_in_the_order_of_the_numbers_in_its_names(folder):
    table = as_blocks(folder)
    assert (table.name, table.n_samples, table.n_stored) == ("parts", 600, 2400)
    np.testing.assert_array_equal(stacked(table), X)
    origins = [block.origin for block in table.blocks()]
    assert (origins[2], origins[-1]) == (
        "part-2.parquet, rows 1 to 50",
        "part-11.parquet, rows 1 to 50",
    )
    seen = type("Seen", (list,), {"add": lambda self, block: self.append(block.origin)})
    assert scan_table(folder / "part-2.parquet").total(seen, np.array([1])) == [origins[2]]
    chosen = [str(folder / f"part-{number}.parquet") for number in (3, 1)]
    np.testing.assert_array_equal(stacked(chosen), np.vstack([X[150:200], X[50:100]]))


def test_text_and_dates_are_refused_with_the_ways_out(tmp_path):
    (tmp_path / "a.csv").write_text("town,size,day\nBern,3,2020-01-01\nBasel,4,2021-01-01\n")
    with pytest.raises(DataError, match=r"text or dates: 'town', 'day'.*drop=.*TablePreparer"):
        as_blocks(tmp_path / "a.csv")
    found = stacked(scan_table(tmp_path / "a.csv", drop=["town", "day"]))
    np.testing.assert_array_equal(found, [[3.0], [4.0]])


@pytest.mark.parametrize("n_parts", [1, 24])
def test_parts_cover_all_rows_once_and_in_order(folder, n_parts):
    parts = scan_table(folder).parts(n_parts)
    assert sum(part.n_samples for part in parts) == 600
    assert sum(part.n_stored for part in parts) == 2400
    assert max(part.n_samples for part in parts) <= max(600 // n_parts, 50)
    np.testing.assert_array_equal(np.vstack([stacked(part) for part in parts]), X)


@pytest.fixture
def path(tmp_path):
    X.tofile(tmp_path / "table.raw")
    return tmp_path / "table.raw"


def mapped(path, mode="r"):
    return np.memmap(path, dtype=float, mode=mode, shape=X.shape)


VIEWS = {
    "reversed": lambda X: X[::-1],
    "columns reversed": lambda X: X[:, 2:0:-1],
    "transposed": lambda X: X.T,
    "chosen rows": lambda X: X[[3, 1, 2]],
    "another shape": lambda X: X.reshape(150, 16),
    "other numbers": lambda X: X.view(np.int64) % 1000,
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_of_a_map_are_read_as_they_are(path, view):
    for mode in ("r", "r+", "c"):
        np.testing.assert_array_equal(stacked(view(mapped(path, mode))), view(X))
    changed, expected = mapped(path, "c"), X.copy()
    changed[3:7] = expected[3:7] = 5.0
    for _ in range(2):  # reading gives no page back that holds a change
        np.testing.assert_array_equal(stacked(view(changed)), view(expected))


def parts(X):
    return [X[start : start + 120] for start in range(0, 600, 120)]


def test_an_iterator_is_refused_since_it_gives_its_rows_once():
    with pytest.raises(ParameterError, match=r"new iterator for every pass.*generator"):
        as_blocks(part for part in parts(X))
    iterator = iter(parts(X))
    with pytest.raises(DataError, match="returned the same iterator twice"):
        stacked(lambda: iterator)


FRAMES = {
    "pandas": lambda X, names: pd.DataFrame(X, columns=names),
    "polars": lambda X, names: pl.DataFrame(X, schema=names),
    "arrow": lambda X, names: pa.table(dict(zip(names, X.T, strict=True))),
    "arrow batch": lambda X, names: pa.RecordBatch.from_pydict(dict(zip(names, X.T, strict=True))),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_columns_in_another_order_are_matched_by_name(frame):
    names, order = ["a", "b", "c", "d"], [2, 0, 3, 1]
    shuffled = frame(X[50:][:, order], [names[at] for at in order])
    table = as_blocks([frame(X[:50], names), shuffled])
    assert list(table.feature_names) == names
    np.testing.assert_array_equal(stacked(table), X)


@pytest.mark.parametrize("named", [0, 1])
def test_frames_and_arrays_are_not_mixed_by_position(named):
    blocks = parts(X)[:2]
    blocks[named] = pd.DataFrame(blocks[named], columns=list("badc"))
    with pytest.raises(DataError, match=r"in all blocks or in none"):
        stacked(blocks)


OTHERS = {
    "a dictionary": {"a": 1},
    "a word": "abc",
    "text in an object array": np.array([[1.0, "x"]], dtype=object),
    "objects": np.array([[1.0, object()]], dtype=object),
    "complex": np.ones((2, 2), dtype=complex),
    "three dimensions": np.ones((2, 2, 2)),
}


@pytest.mark.parametrize("block", OTHERS.values(), ids=OTHERS)
def test_what_is_not_a_block_of_numbers_is_refused(block):
    with pytest.raises((DataError, ParameterError), match=r"[Nn]umbers|numeric|real|dimensions"):
        stacked(lambda: iter([block]))
