"""Whatever a file holds, opening it gives a sound table or an error of ours, and soon.

Matrix Market and MATLAB files are not damaged here: the readers of SciPy can end the
process (SECURITY.md). `tools/fuzz_files.py` reads them in processes of their own.
"""

import gzip
import io
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from keepers.datasets import Table, open_table, scan_table, write_table
from keepers.exceptions import KeepersError, KeepersWarning

for package in ("anndata", "sklearn.datasets"):
    pytest.importorskip(package)  # now: the first test that needs it would count its time

PER_FORMAT = 25
LONGEST_SECONDS = 10.0
LIMIT = 5_000_000


def _table(rng):
    X = np.round(rng.normal(size=(12, 7)), 4) * (rng.random((12, 7)) < 0.7)
    return X, np.arange(12) % 3


def _lines(rows, mark):
    return ("\n".join(mark.join(map(str, row)) for row in rows) + "\n").encode()


def _csv(rng, mark=","):
    X, y = _table(rng)
    names = ["sample", "kind", *(f"g{j}" for j in range(7))]
    return _lines([names, *([f"s{i}", f"c{y[i]}", *X[i].tolist()] for i in range(12))], mark)


def _quoted_csv(rng):
    return b'"a","b, and c",d\n' + b"".join(b'"%d","%.3f",2\n' % (i, i / 7) for i in range(12))


def _stored(write, *content, **settings):
    stream = io.BytesIO()
    write(stream, *content, **settings)
    return stream.getvalue()


def _mat(rng, compressed=True, sparse=False):
    X, y = _table(rng)
    content = {"fea": sp.csc_matrix(X) if sparse else X, "gnd": y}
    return _stored(scipy.io.savemat, content, do_compression=compressed)


def _hdf5(fill, *parts):
    def write(stream):
        with h5py.File(stream, "w") as file:
            fill(file, *parts)

    return _stored(write)


def _fill_plain(file, X, y):
    file.create_dataset("values/X", data=X, chunks=(5, 7))
    file["y"] = y


MTX = b"%%MatrixMarket matrix coordinate real general\n"


def _mtx(rng):
    X = _table(rng)[0]
    rows = [(i + 1, j + 1, X[i, j]) for i, j in np.argwhere(X).tolist()]
    return MTX + _lines([(12, 7, len(rows)), *rows], " ")


def _dense_mtx(rng):
    head = b"%%MatrixMarket matrix array real general\n12 7\n"
    return head + _lines(_table(rng)[0].T.reshape(-1, 1), "")


def _geo(rng):
    X, y = _table(rng)
    rows = [["!Series_title", '"made up"'], [""], ["!Sample_kind", *(f'"c{i}"' for i in y)]]
    rows += [["!series_matrix_table_begin"], ['"ID_REF"', *(f'"s{i}"' for i in range(12))]]
    rows += [[f'"g{j}"', *X[:, j]] for j in range(7)]
    return _lines([*rows, ["!series_matrix_table_end"]], "\t")


def _blanks(rng):
    rows = [[f'"s {i}"', *x] for i, x in enumerate(_table(rng)[0])]
    return _lines([[f'"g{j}"' for j in range(7)], *rows], "  ")


def _ours(suffix):
    """A table as keepers writes it."""

    def write(rng):
        X, y = _table(rng)
        names = np.array([f"g{j}" for j in range(7)], dtype=object)
        with tempfile.TemporaryDirectory() as folder:
            table = Table(X, names, labels=y)
            return write_table(Path(folder) / f"a.{suffix}", table, label_name="kind").read_bytes()

    return write


def _archive(rng):
    X, y = _table(rng)
    names = np.array([f"g{j}" for j in range(7)])
    return _stored(lambda stream: np.savez_compressed(stream, X=X, y=y, feature_names=names))


ROLES = {"labels": "kind", "identifier": "sample"}
DROPPED = {"drop": ["kind", "sample"]}


SOUND = {
    "plain.csv": (_csv, ROLES),
    "quoted.csv": (_quoted_csv, {}),
    "plain.tsv": (lambda rng: _csv(rng, "\t"), ROLES),
    "packed.csv.gz": (lambda rng: gzip.compress(_csv(rng)), DROPPED),
    "array.npy": (lambda rng: _stored(np.save, _table(rng)[0]), {}),
    "archive.npz": (_archive, {}),
    "sparse.npz": (lambda rng: _stored(sp.save_npz, sp.csr_matrix(_table(rng)[0])), {}),
    "five.mat": (_mat, {}),
    "sparse.mat": (lambda rng: _mat(rng, compressed=False, sparse=True), {}),
    "plain.h5": (lambda rng: _hdf5(_fill_plain, *_table(rng)), {}),
    "cells.h5ad": (_ours("h5ad"), {"labels": "kind"}),
    "columns.parquet": (_ours("parquet"), {"labels": "kind"}),
    "columns.feather": (_ours("feather"), {"labels": "kind"}),
    "book.xlsx": (_ours("xlsx"), {"labels": "kind"}),
    "sparse.mtx": (_mtx, {}),
    "dense.mtx": (_dense_mtx, {}),
    "packed.mtx.gz": (lambda rng: gzip.compress(_mtx(rng)), {}),
    "a_series_matrix.txt": (_geo, {}),
    "packed_series_matrix.txt.gz": (lambda rng: gzip.compress(_geo(rng)), {}),
    "commented.txt": (lambda rng: b"# made up\n# in 2020\n" + _csv(rng, "|"), ROLES),
    "blanks.dat": (_blanks, {}),
    "unnamed": (_csv, DROPPED),
    "latin1.csv": (_csv, {**DROPPED, "encoding": "latin-1"}),
    "sixteen.txt": (lambda rng: _blanks(rng).decode().encode("utf-16"), {"encoding": "utf-16"}),
}
"""Name of a file -> what makes its bytes of a generator, and options of `open_table`."""
DAMAGED = {
    name: made
    for name, made in SOUND.items()
    if not name.removesuffix(".gz").endswith((".mat", ".mtx"))
}
"""The same without the files whose library can end the process when they are damaged."""

OTHER_STARTS = (
    *(b"PK\x03\x04", b"\x89HDF\r\n\x1a\n", b"\x93NUMPY\x01\x00v\x00", b"PAR1", b"ARROW1\0\0"),
    *(b"\x1f\x8b\x08\0", b"%%MatrixMarket matrix array real general\n", b"\xff\xfe"),
    *(b"\xef\xbb\xbf", b"<html>", b"\x80\x04\x95", b""),
)
ODD_CELLS = (
    *(b"", b"nan", b"inf", b"-inf", b"1e999", b"abc", b"0x1p3", b"1_0", b"999999999999", b"-1"),
    *(b'"', b'"open', b"\0", b"\xff", b"true", b"2020-01-01", b"'", b"1,5", b"\r", b"\n\n"),
)


def mutated(sound: bytes, rng: np.random.Generator) -> bytes:
    """One of many ways in which a file goes wrong."""
    data = bytearray(sound)
    at, span = int(rng.integers(len(data))), int(rng.integers(1, 40))
    kind = rng.integers(9)
    if kind == 0:  # truncated
        return bytes(data[:at])
    if kind == 1:  # flipped bits
        for place in rng.integers(len(data), size=rng.integers(1, 12)):
            data[place] ^= 1 << int(rng.integers(8))
    elif kind == 2:  # bytes replaced near the start, where headers are
        place = int(rng.integers(min(300, len(data))))
        data[place : place + 8] = rng.bytes(8)
    elif kind == 3:  # a stretch lost
        del data[at : at + span]
    elif kind == 4:  # a stretch twice
        data[at:at] = data[at : at + span]
    elif kind == 5:  # lengths that claim everything
        data[at : at + 8] = rng.choice([b"\xff" * 8, b"\x7f" * 8, b"\0" * 8, b"\xff\xff\xff\x7f"])
    elif kind == 6:  # the beginning of another format
        start = OTHER_STARTS[rng.integers(len(OTHER_STARTS))]
        data[: len(start)] = start
    elif kind == 7:  # an odd cell or number somewhere
        data[at : at + int(rng.integers(4))] = ODD_CELLS[rng.integers(len(ODD_CELLS))]
    else:  # noise at the end
        data += rng.bytes(span)
    return bytes(data)


def outcome(read, path, options):
    """'table' or 'error'; anything else that happens is a failure."""
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KeepersWarning)
            table = read(path, max_bytes=LIMIT, **options)
            for part in [table] if read is open_table else table.tables():
                assert_sound(part)
        found = "table"
    except KeepersError as error:
        told = str(error)
        assert str(path) in told or read is scan_table
        assert "\n" not in told
        assert told.endswith((".", "?"))
        found = "error"
    assert time.perf_counter() - began < LONGEST_SECONDS
    return found


def assert_sound(table):
    assert table.values.shape == (table.n_samples, table.n_features)
    assert table.values.dtype in (np.float64, np.float32)
    assert table.n_samples > 0
    assert len(table.columns) > 0
    assert len(set(table.columns)) == table.n_features + len(table.others)
    assert all(isinstance(name, str) for name in table.columns)
    for part in (table.labels, table.ids):
        assert part is None or part.shape == (table.n_samples,)
    if table.is_sparse:
        table.values.check_format(full_check=True)


SCANNED = [
    name for name in DAMAGED if name.endswith((".csv", "npy", "h5", "h5ad", "er", "parquet"))
]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("name", "read"),
    [*((name, open_table) for name in DAMAGED), *((name, scan_table) for name in SCANNED)],
)
def test_a_damaged_file_gives_a_table_or_an_error_of_ours(name, read, tmp_path):
    make, options = SOUND[name]
    rng, path = np.random.default_rng(sum(map(ord, name))), tmp_path / name
    counts = Counter()
    sound = make(rng)
    for _ in range(PER_FORMAT):
        path.write_bytes(mutated(sound, rng))
        counts[outcome(read, path, options)] += 1
    assert counts["error"] > PER_FORMAT / 10


def _header(shape, descr="<f8"):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(64)


def _zipped(**members):
    def write(stream):
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(f"{name}.npy", content)

    return _stored(write)


GEO_BEGIN, GEO_END = b"!series_matrix_table_begin\n", b"!series_matrix_table_end\n"
REFUSED = {
    "same_as_numbered.csv": b"a,column 3,\n1,2,3\n",
    "carriage_return.csv": b"a,b\n1,2\n3\r4,5\n",
    "huge.npy": _header("(1000000000000, 3)"),
    "negative.npy": _header("(-3, 4)"),
    "objects.npy": _header("(2, 4)", "|O"),
    "short.npy": _header("(100, 4)"),
    "empty.npy": _header("(0, 4)"),
    "complex.npy": _header("(2, 2)", "<c16"),
    "structured.npy": _header("(2,)").replace(b"'<f8'", b"[('a','<f8')]"),
    "long_header.npy": b"\x93NUMPY\x02\x00" + (2**31).to_bytes(4, "little") + b" " * 20000,
    "code.npy": _header("__import__('os')"),
    "huge.npz": _zipped(X=_header("(1000000000000, 3)")),
    "none.npz": _zipped(),
    "objects.npz": _zipped(X=_header("(2, 4)", "|O")),
    "labels.npz": _zipped(X=_header("(2, 4)"), y=_header("(3,)")),
    "bomb.npz": _zipped(X=_header("(1000000, 1)") + bytes(8_000_000)),
    "long_line.csv.gz": gzip.compress(bytes(8_000_000), 1),
    "long_line.txt.gz": gzip.compress(b"1" * 8_000_000, 1),
    "huge.mtx": MTX + b"1000000000000 3 0\n",
    "hollow.mtx": MTX + b"400000000 3 1\n1 1 1\n",
    "many.mtx": MTX + b"3 3 900000000000\n1 1 1\n",
    "outside.mtx": MTX + b"3 3 1\n7 7 1\n",
    "words.mtx": MTX + b"3 3 1\n1 1 one\n",
    "too_few.mtx": MTX + b"2 2 2\n1 1 1\n",
    "too_many.mtx": MTX + b"2 2 1\n1 1 1\n2 2 2\n",
    "cut.mtx": MTX + b"2 2 2\n1 1 1.5E",
    "nothing.mtx": MTX + b"0 0 0\n",
    "no_size.mtx": MTX,
    "dense.mtx": b"%%MatrixMarket matrix array real general\n99999999 99999999\n1\n",
    "imaginary.mtx": b"%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 1 1\n",
    "feather_1.feather": b"FEA1" + bytes(40),
    "page.parquet": b"PAR1" + b"<html></html>" + b"PAR1",
    "old.xlsx": bytes.fromhex("d0cf11e0a1b11ae1") + bytes(2000),
    "short.mat": b"MATLAB 5.0 MAT-file" + bytes(30),
    "zeros.mat": bytes(400),
    "script.mat": b"function x = f()\n",
    "nothing.dat": b"",
    "page": b"<html>\n<body>no table</body>\n</html>\n",
    "pickle.pkl": b"\x80\x04\x95\x0b\0\0\0\0\0\0\0]",
    "no_table_series_matrix.txt": b"!Series_title\t1\n" * 1000,
    "no_values_series_matrix.txt": GEO_BEGIN + b'"ID_REF"\t"a"\n' + GEO_END,
    "ragged_series_matrix.txt": GEO_BEGIN + b"ID_REF\ta\tb\ng\t1\t2\nh\t3\n" + GEO_END,
}
"""Name of a file -> bytes that are not a table, or one larger than `LIMIT`."""


@pytest.mark.parametrize("read", [open_table, scan_table])
@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_not_a_table_is_refused_in_a_sentence(name, tmp_path, read):
    (tmp_path / name).write_bytes(REFUSED[name])
    assert outcome(read, tmp_path / name, {}) == "error"
