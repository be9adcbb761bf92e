"""The same rows are drawn from a table in every storage, and make the same table."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers import LaplacianScore
from keepers.data.blocks.as_blocks import as_blocks
from keepers.datasets import RowBlock
from keepers.exceptions import DataError, DataWarning
from keepers.linalg.reservoir import drawn_rows
from keepers.selectors.drawn_tables import draw_from_blocks, draw_from_memory

N_SAMPLES, N_FEATURES, N_ROWS, SEED = 3000, 6, 100, 7
NAMES = [f"f{at}" for at in range(N_FEATURES)]


@pytest.fixture(scope="module")
def X():
    X = np.random.default_rng(0).standard_normal((N_SAMPLES, N_FEATURES))
    X[np.abs(X) < 0.5] = 0.0
    return X


def cut(X, step):
    return [X[start : start + step] for start in range(0, X.shape[0], step)]


def frame(X):
    return pd.DataFrame(X, columns=NAMES)


def draw(source, n_rows=N_ROWS, seed=SEED):
    return draw_from_blocks(LaplacianScore(), as_blocks(source), n_rows, seed)


def is_expected(found, X, n_rows=N_ROWS, seed=SEED):
    """Copied values are equal to the last bit; moments are computed in another order."""
    rows = drawn_rows(len(X), n_rows, seed)
    np.testing.assert_array_equal(found.rows, rows)
    values = found.table.X
    np.testing.assert_array_equal(values.toarray() if sp.issparse(values) else values, X[rows])
    assert values.dtype == np.float64
    assert found.n_samples == len(X)
    np.testing.assert_allclose(found.table.mean, X[rows].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.table.variances, X[rows].var(axis=0), rtol=1e-12)


# In memory


@pytest.mark.parametrize(
    "store", [np.asarray, np.asfortranarray, frame, sp.csr_array, sp.csc_matrix, sp.coo_array]
)
def test_a_table_in_memory_in_every_storage(X, store):
    selector = LaplacianScore()
    found = draw_from_memory(selector, store(X), N_ROWS, SEED)
    is_expected(found, X)
    assert sp.issparse(found.table.X) == sp.issparse(store(X))
    assert selector.n_features_in_ == N_FEATURES
    assert hasattr(selector, "feature_names_in_") == (store is frame)
    assert found.n_passes == 1


def test_all_of_a_table_in_memory_is_validated(X):
    X = X.copy()
    X[np.setdiff1d(np.arange(N_SAMPLES), drawn_rows(N_SAMPLES, N_ROWS, SEED))[0], 2] = np.nan
    with pytest.raises(DataError, match=r"NaN or infinity found in these columns .*: 'f2' \(1\)"):
        draw_from_memory(LaplacianScore(), frame(X), N_ROWS, SEED)


# In blocks

SOURCES = {
    "array": lambda X: X,
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "list": lambda X: cut(X, 77),
    "rows": lambda X: cut(X, 1),
    "one block": lambda X: [X],
    "iterator": lambda X: iter(cut(X, 77)),
    "function": lambda X: lambda: iter(cut(X, 1234)),
    "csr blocks": lambda X: [sp.csr_matrix(block) for block in cut(X, 500)],
    "frame": frame,
    "frames": lambda X: [frame(block) for block in cut(X, 500)],
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_source_gives_the_rows_of_the_table_in_memory(X, source):
    found = draw(source(X))
    is_expected(found, X)
    assert found.n_passes == 1
    assert sp.issparse(found.table.X) == (source in [SOURCES[name] for name in SPARSE])


SPARSE = ("csr", "csc", "csr blocks")


def test_every_file_gives_the_rows_of_the_table_in_memory(X, tmp_path):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "parts"
    folder.mkdir()
    for number, part in enumerate(cut(frame(X), 650)):
        part.to_parquet(folder / f"part-{number}.parquet", row_group_size=100)
    np.save(tmp_path / "table.npy", X)
    frame(X).to_csv(tmp_path / "table.csv", index=False)
    for path in (folder, tmp_path / "table.npy", tmp_path / "table.csv"):
        is_expected(draw(path), X)


def test_a_memory_map_gives_the_rows_of_the_table_in_memory(X, tmp_path):
    mapped = np.memmap(tmp_path / "table.raw", dtype=np.float32, mode="w+", shape=X.shape)
    mapped[:] = X
    found = draw(mapped)
    is_expected(found, X.astype(np.float32).astype(np.float64))
    assert found.table.dtype == np.float32


class Readings:
    """A block table of a user."""

    name, dtype, is_sparse, rereadable, is_local = "readings", np.float64, False, True, True
    n_stored = n_samples = None

    def __init__(self, parts, with_start=False):
        self.parts, self.with_start = parts, with_start
        self.n_features = parts[0].shape[1]
        self.feature_names = NAMES

    def total(self, begin, columns=None):
        found = begin()
        for part in self.parts:
            found.add(RowBlock(part, "a part"))
        return found


class ReadingsInPieces(Readings):
    """A sum for each part, merged."""

    def total(self, begin, columns=None):
        found, start = begin(), 0
        for number, part in enumerate(self.parts, 1):
            piece = begin()
            piece.add(RowBlock(part, f"part {number}", start=start if self.with_start else None))
            found.merge(piece)
            start += len(part)
        return found


def test_a_block_table_of_the_user_gives_the_rows_of_the_table_in_memory(X):
    is_expected(draw(Readings(cut(X, 900))), X)
    is_expected(draw(ReadingsInPieces(cut(X, 900), with_start=True)), X)


def test_a_block_table_of_the_user_that_merges_sums_must_say_where_blocks_start(X):
    with pytest.raises(DataError, match=r"in order to one sum .* start="):
        draw(ReadingsInPieces(cut(X, 900)))


def test_a_short_table_is_drawn_whole_and_in_order(X):
    is_expected(draw(cut(X, 77), n_rows=N_SAMPLES), X, n_rows=N_SAMPLES)
    is_expected(draw(X, n_rows=10**9), X, n_rows=N_SAMPLES)


def test_an_iterator_is_read_once(X):
    given = []

    def blocks():
        for block in cut(X, 500):
            given.append(len(block))
            yield block

    is_expected(draw(blocks()), X)
    assert sum(given) == N_SAMPLES


# Dask


@pytest.fixture
def dask():
    dask = pytest.importorskip("dask")
    pytest.importorskip("dask.dataframe")
    with dask.config.set(scheduler="threads", num_workers=2):
        yield dask


@pytest.mark.parametrize("chunks", [(500, 6), (3000, 6), (7, 3), ((1, 2000, 999), 6)])
def test_a_dask_array_gives_the_rows_of_the_table_in_memory(X, dask, chunks):
    found = draw(dask.array.from_array(X, chunks=chunks))
    is_expected(found, X)
    assert found.n_passes == 1


def test_a_sparse_dask_array_stays_sparse(X, dask):
    chunks = dask.array.from_array(X, chunks=(700, 6)).map_blocks(sp.csr_array)
    found = draw(chunks)
    is_expected(found, X)
    assert sp.issparse(found.table.X)


def test_a_dask_array_with_chunks_of_unknown_length_is_counted_first(X, dask):
    whole = dask.array.from_array(X, chunks=(700, 6))
    found = draw(whole[whole[:, 0] > 0])
    is_expected(found, X[X[:, 0] > 0])
    assert found.n_passes == 2


def test_a_dask_dataframe_is_counted_first(X, dask):
    source = dask.dataframe.from_pandas(frame(X), npartitions=7)
    selector = LaplacianScore()
    found = draw_from_blocks(selector, as_blocks(source), N_ROWS, SEED)
    is_expected(found, X)
    assert found.n_passes == 2
    assert list(selector.feature_names_in_) == NAMES
    is_expected(draw(source[source.f0 > 0]), X[X[:, 0] > 0])


def test_a_dask_dataframe_whose_columns_are_read_in_other_partitions(X, dask, tmp_path):
    pytest.importorskip("pyarrow")
    wide = np.hstack([X] * 5)
    names = [f"f{at}" for at in range(wide.shape[1])]
    for number, part in enumerate(cut(wide, 250)):
        pd.DataFrame(part, columns=names).to_parquet(tmp_path / f"part-{number:02d}.parquet")
    source = dask.dataframe.read_parquet(tmp_path)
    source = source[source.f0 > -1]
    is_expected(draw(source), wide[wide[:, 0] > -1])


# Names and errors


def test_names_come_from_the_table_or_were_set_before(X):
    selector = LaplacianScore()
    draw_from_blocks(selector, as_blocks([frame(X)]), N_ROWS, SEED)
    assert list(selector.feature_names_in_) == NAMES
    assert selector.n_features_in_ == N_FEATURES
    selector = LaplacianScore()
    selector.feature_names_in_ = np.array(NAMES, dtype=object)  # of a LabelledTable
    draw_from_blocks(selector, as_blocks(X), N_ROWS, SEED)
    assert list(selector.feature_names_in_) == NAMES


def test_a_value_that_is_not_finite_is_refused_with_file_rows_and_column(X, tmp_path):
    pytest.importorskip("pyarrow")
    X = X.copy()
    X[np.setdiff1d(np.arange(2000, N_SAMPLES), drawn_rows(N_SAMPLES, N_ROWS, SEED))[0], 4] = np.inf
    for number, part in enumerate(cut(frame(X), 1500)):
        part.to_parquet(tmp_path / f"part-{number}.parquet")
    with pytest.raises(DataError, match=r"part-1.parquet, rows 1 to 1500 holds .*: 'f4' \(1\)"):
        draw(tmp_path)


def test_a_table_that_gives_other_rows_than_it_declares_is_refused(X):
    source = Readings(cut(X, 900))
    source.n_samples = 2999
    with pytest.raises(DataError, match="declares 2999 and gave 3000"):
        draw(source)


def test_columns_constant_over_the_rows_drawn_are_set_aside_and_named(X):
    X = X.copy()
    X[:, 3] = 0.0
    X[np.setdiff1d(np.arange(N_SAMPLES), drawn_rows(N_SAMPLES, N_ROWS, SEED))[0], 3] = 1.0
    for source in (draw, lambda X: draw_from_memory(LaplacianScore(), X, N_ROWS, SEED)):
        with pytest.warns(DataWarning, match=r"vary over the 100 rows drawn of 3000 .* last: 3\."):
            found = source(X)
        np.testing.assert_array_equal(found.table.usable, [0, 1, 2, 4, 5])
        assert found.table.n_features == N_FEATURES


def test_a_table_of_which_no_drawn_row_differs_is_refused():
    X = np.zeros((1000, 2))
    X[np.setdiff1d(np.arange(1000), drawn_rows(1000, 10, 0))[0]] = 1.0
    with pytest.raises(DataError, match="constant over the 10 rows drawn of 1000"):
        draw(X, n_rows=10, seed=0)


def test_a_method_that_takes_no_sparse_matrix_says_so(X):
    class Dense(LaplacianScore):
        why_not_sparse = "it cannot."

    with pytest.raises(DataError, match="Dense does not accept a sparse matrix: it cannot"):
        draw_from_blocks(Dense(), as_blocks(sp.csr_array(X)), N_ROWS, SEED)
