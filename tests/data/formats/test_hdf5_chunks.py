"""Chunks of HDF5 arrays are whole before the library reads them."""

import zlib

import numpy as np
import pytest

from keepers.data.formats.hdf5 import refuse_short_chunks
from keepers.datasets import open_blocks, open_table
from keepers.exceptions import DataError

h5py = pytest.importorskip("h5py")


def _read_in_blocks(path):
    return np.vstack([block.values for block in open_blocks(path).blocks()])


def _read_whole(path):
    return open_table(path).X


BOTH_WAYS = pytest.mark.parametrize("read", [_read_whole, _read_in_blocks])
LZF_ONES = bytes([15]) + b"\1" * 16
"""What LZF makes of 16 bytes that do not repeat: their number less one, and they."""


def _with_first_chunk(path, stored, **options):
    """A file of two chunks, the first of which is replaced."""
    with h5py.File(path, "w") as file:
        values = np.random.default_rng(0).normal(size=(200, 4))
        dataset = file.create_dataset("X", data=values, chunks=(100, 4), **options)
        dataset.id.write_direct_chunk((0, 0), stored)
    return path


@BOTH_WAYS
@pytest.mark.parametrize(
    ("stored", "options"),
    [
        (b"\1" * 16, {}),
        (zlib.compress(b"\1" * 16), {"compression": "gzip"}),
        (zlib.compress(b"\1" * 16), {"compression": "gzip", "shuffle": True}),
        (zlib.compress(b"\1" * 4000), {"compression": "gzip"}),
        (LZF_ONES, {"compression": "lzf"}),
    ],
)
def test_a_chunk_that_expands_to_less_does_not_show_other_memory(tmp_path, read, stored, options):
    path = _with_first_chunk(tmp_path / "a.h5", stored, **options)
    with pytest.raises(DataError, match=r"A chunk of array '/X' must hold 3200 bytes; one holds"):
        read(path)


def test_short_chunks_of_a_sparse_matrix_are_refused_in_blocks(tmp_path):
    path = tmp_path / "a.h5ad"
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", (50, 2)
        for name, values in (
            ("data", np.ones(100)),
            ("indices", np.tile([0, 1], 50)),
            ("indptr", np.arange(0, 101, 2)),
        ):
            group.create_dataset(name, data=values, chunks=(10,), compression="gzip")
        group["data"].id.write_direct_chunk((50,), zlib.compress(b"short"))
        for frame, count in (("obs", 50), ("var", 2)):
            file.create_group(frame).attrs["_index"] = "_index"
            file[frame]["_index"] = [f"{frame}{at}" for at in range(count)]
    table = open_blocks(path)
    with pytest.raises(DataError, match="'/X/data' must hold 80 bytes; one holds 5"):
        list(table.blocks())
    first, second = table.parts(2)
    assert sum(block.values.sum() for block in first.blocks()) == 50
    with pytest.raises(DataError, match="'/X/data' must hold 80 bytes; one holds 5"):
        list(second.blocks())


TEXT = h5py.string_dtype()
VALUES = {
    "noise": np.random.default_rng(0).normal(size=(23, 7)),
    "zeros": np.zeros((1000, 7)),
    "counts": np.random.default_rng(0).integers(0, 3, size=(500, 30)),
    "vector": np.arange(300, dtype=np.int8),
    "text": np.array(["a", "bb"] * 20, dtype=object),
    "records": np.array([("x", 1), ("y", 2)] * 20, dtype=[("a", TEXT), ("b", "i1")]),
}


@pytest.mark.parametrize("compression", [None, "gzip", "lzf"])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("kind", VALUES)
def test_whole_chunks_pass_with_every_filter(tmp_path, compression, shuffle, kind):
    values = VALUES[kind]
    checksum = values.dtype.kind in "fi"  # the library takes none with text
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for fletcher32 in {False, checksum}:
            dataset = file.create_dataset(
                f"{fletcher32}",
                data=values,
                dtype=TEXT if kind == "text" else None,
                chunks=(10, 4)[: values.ndim],
                compression=compression,
                shuffle=shuffle,
                fletcher32=fletcher32,
            )
            refuse_short_chunks(dataset)
