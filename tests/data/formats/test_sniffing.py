"""Files whose names tell nothing are read by what they hold, as others wrote them."""

import bz2
import gzip
import lzma
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from keepers.data.formats.sniffing import sniff
from keepers.data.table import ReadRequest
from keepers.datasets import open_blocks, open_table, write_table
from keepers.exceptions import DataError

pa = pytest.importorskip("pyarrow")
h5py = pytest.importorskip("h5py")

X = np.random.default_rng(2).normal(size=(9, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


def _hdf5(path):
    with h5py.File(path, "w") as file:
        file["X"] = X


def _mat(path):
    scipy.io.savemat(path, {"X": X}, appendmat=False)


def _mtx(path):
    with path.open("wb") as stream:
        scipy.io.mmwrite(stream, sp.coo_matrix(X), precision=17)


def _npz(path):
    with path.open("wb") as stream:
        np.savez(stream, X=X)


def _npy(path):
    with path.open("wb") as stream:
        np.save(stream, X)


def _ours(suffix):
    def write(path):
        write_table(path.with_name(f"b{suffix}"), X, FRAME.columns).rename(path)

    return write


def _packed(pack):
    return lambda path: path.write_bytes(pack(FRAME.to_csv(index=False, sep="\t").encode()))


WRITERS = {
    "parquet": FRAME.to_parquet,
    "feather": FRAME.to_feather,
    "npy": _npy,
    "npz": _npz,
    "h5": _hdf5,
    "h5ad": _ours(".h5ad"),
    "gct": _ours(".gct"),
    "mat": _mat,
    "mtx": _mtx,
    "svmlight": lambda path: dump_svmlight_file(X, np.arange(9), str(path), zero_based=False),
}
PACKERS = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("name", ["a", "a.unknown", "a.txt", "a.dat"])
@pytest.mark.parametrize("kind", WRITERS)
def test_a_format_is_told_by_how_the_file_begins(tmp_path, kind, name):
    path = tmp_path / name
    WRITERS[kind](path)
    assert sniff(path, ReadRequest()) == kind
    values = open_table(path).X
    values = values.toarray() if sp.issparse(values) else values
    np.testing.assert_allclose(values, X, rtol=1e-15)


@pytest.mark.parametrize("name", ["a", "a.unknown", "a.txt", "a.csv"])
@pytest.mark.parametrize("kind", PACKERS)
def test_compressed_text_is_told_by_how_it_begins(tmp_path, kind, name):
    path = tmp_path / name
    path.write_bytes(PACKERS[kind](FRAME.to_csv(index=False, sep="\t").encode()))
    np.testing.assert_array_equal(open_table(path).X, X)
    blocks = np.concatenate([block.values for block in open_blocks(path).blocks()])
    np.testing.assert_array_equal(blocks, X)


def test_a_format_found_so_that_has_no_blocks_is_refused_as_such(tmp_path):
    _npz(tmp_path / "a")
    with pytest.raises(DataError, match="NumPy archive files are read whole only"):
        open_blocks(tmp_path / "a")


@pytest.mark.parametrize("member", ["word/document.xml", "a.csv"])
def test_another_archive_is_refused_with_what_it_holds(tmp_path, member):
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        archive.writestr(member, "x")
    with pytest.raises(DataError, match=f"zip archive.*this one holds {member}"):
        open_table(tmp_path / "a")


@pytest.mark.parametrize("content", [b"", bytes(50), b"\x89PNG\r\n\x1a\n\0\0", b"no table\nat all"])
def test_a_file_that_is_none_is_refused_with_what_was_tried(tmp_path, content):
    path = tmp_path / "a.unknown"
    path.write_bytes(content)
    for read in (open_table, open_blocks):
        with pytest.raises(DataError, match=r"one of \.csv.*got 'a\.unknown'.* It holds ") as told:
            read(path)
        assert "format=, --format" in str(told.value)
        assert str(told.value).startswith(str(path))


def test_an_encoding_that_is_given_lets_text_hold_zeros(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(FRAME.to_csv(index=False).encode("utf-16-le"))
    np.testing.assert_array_equal(open_table(path, encoding="utf-16-le").X, X)
