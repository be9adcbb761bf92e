"""Whatever a file holds, opening it gives a sound table or an error of ours, and soon."""

import gzip
import io
import time
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from keepers.datasets import LabelledTable, open_table
from keepers.exceptions import KeepersError

pa = pytest.importorskip("pyarrow")
h5py = pytest.importorskip("h5py")

PER_FORMAT = 125
LONGEST_SECONDS = 10.0
LIMIT = 50_000_000


def _table(rng):
    X = np.round(rng.normal(size=(12, 7)), 4) * (rng.random((12, 7)) < 0.7)
    return X, np.arange(12) % 3


def _csv(rng, delimiter=","):
    X, y = _table(rng)
    rows = [["sample", "kind", *(f"g{j}" for j in range(7))]]
    rows += [[f"s{i}", f"c{y[i]}", *map(repr, X[i].tolist())] for i in range(12)]
    return ("\n".join(delimiter.join(row) for row in rows) + "\n").encode()


def _quoted_csv(rng):
    return b'"a","b, and c",d\n' + b"".join(b'"%d","%.3f",2\n' % (i, i / 7) for i in range(12))


def _npy(rng):
    stream = io.BytesIO()
    np.save(stream, _table(rng)[0])
    return stream.getvalue()


def _npz(rng):
    stream = io.BytesIO()
    X, y = _table(rng)
    np.savez_compressed(stream, X=X, y=y)
    return stream.getvalue()


def _sparse_npz(rng):
    stream = io.BytesIO()
    sp.save_npz(stream, sp.csr_matrix(_table(rng)[0]))
    return stream.getvalue()


def _mat(rng, compressed=True, sparse=False):
    stream = io.BytesIO()
    X, y = _table(rng)
    values = sp.csc_matrix(X) if sparse else X
    scipy.io.savemat(stream, {"fea": values, "gnd": y}, do_compression=compressed)
    return stream.getvalue()


def _hdf5(fill):
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        fill(file)
    return stream.getvalue()


def _mat73(rng):
    def fill(file):
        X, y = _table(rng)
        file.create_dataset("X", data=X.T, chunks=(4, 4), compression="gzip")
        file["y"] = y[np.newaxis].astype(float)

    return _hdf5(fill)


def _plain_hdf5(rng):
    def fill(file):
        X, y = _table(rng)
        file.create_dataset("values/X", data=X, chunks=(5, 7))
        file["y"] = y

    return _hdf5(fill)


def _h5ad(rng):
    def fill(file):
        X = sp.csr_matrix(_table(rng)[0])
        group = file.create_group("X")
        group.attrs["encoding-type"] = "csr_matrix"
        group.attrs["shape"] = X.shape
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(X, part)
        for frame, count in (("obs", 12), ("var", 7)):
            file.create_group(frame).attrs["_index"] = "_index"
            file[frame]["_index"] = [f"{frame}{i}" for i in range(count)]

    return _hdf5(fill)


def _columns(rng):
    X, y = _table(rng)
    columns = {f"g{j}": X[:, j] for j in range(7)}
    return pa.table({"kind": pa.array([f"c{i}" for i in y]).dictionary_encode(), **columns})


def _parquet(rng):
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    pq.write_table(_columns(rng), stream)
    return stream.getvalue()


def _arrow(rng):
    stream = io.BytesIO()
    table = _columns(rng)
    options = pa.ipc.IpcWriteOptions(compression=str(rng.choice(["lz4", "zstd"])))
    with pa.ipc.new_file(stream, table.schema, options=options) as writer:
        writer.write_table(table)
    return stream.getvalue()


def _mtx(rng):
    X = _table(rng)[0]
    lines = [f"{i + 1} {j + 1} {X[i, j].item()!r}" for i, j in np.argwhere(X).tolist()]
    head = f"%%MatrixMarket matrix coordinate real general\n12 7 {len(lines)}\n"
    return (head + "\n".join(lines) + "\n").encode()


def _dense_mtx(rng):
    values = _table(rng)[0].T.ravel().tolist()
    head = "%%MatrixMarket matrix array real general\n12 7\n"
    return (head + "\n".join(map(repr, values)) + "\n").encode()


def _svmlight(rng):
    X, y = _table(rng)
    rows = [
        f"{y[i]} " + " ".join(f"{j + 1}:{X[i, j].item()!r}" for j in np.flatnonzero(X[i]))
        for i in range(12)
    ]
    return ("\n".join(rows) + "\n").encode()


def _gct(rng, version=3):
    X, y = _table(rng)
    told = "7\t12\t1\t1" if version == 3 else "7\t12"
    lines = [f"#1.{version}", told, "\t".join(["id", "text", *(f"s{i}" for i in range(12))])]
    lines += ["\t".join(["kind", "na", *(f"c{i}" for i in y)])] * (version == 3)
    lines += ["\t".join([f"g{j}", "na", *map(repr, X[:, j].tolist())]) for j in range(7)]
    return ("\n".join(lines) + "\n").encode()


def _geo(rng):
    X, y = _table(rng)
    lines = ['!Series_title\t"made up"', "", "\t".join(["!Sample_kind", *(f'"c{i}"' for i in y)])]
    lines += [
        "!series_matrix_table_begin",
        "\t".join(['"ID_REF"', *(f'"s{i}"' for i in range(12))]),
    ]
    lines += ["\t".join([f'"g{j}"', *map(repr, X[:, j].tolist())]) for j in range(7)]
    return ("\n".join([*lines, "!series_matrix_table_end"]) + "\n").encode()


def _commented(rng):
    return b"# made up\n# by nobody, in 2020\n" + _csv(rng, "|")


def _blanks(rng):
    X = _table(rng)[0]
    rows = [f'"s {i}" ' + "  ".join(map(repr, x)) for i, x in enumerate(X.tolist())]
    return ("\n".join([" ".join(f'"g{j}"' for j in range(7)), *rows]) + "\n").encode()


SOUND = {
    "plain.csv": (_csv, {"labels": "kind", "identifier": "sample"}),
    "quoted.csv": (_quoted_csv, {}),
    "plain.tsv": (lambda rng: _csv(rng, "\t"), {"labels": "kind", "identifier": "sample"}),
    "packed.csv.gz": (lambda rng: gzip.compress(_csv(rng)), {"drop": ["kind", "sample"]}),
    "array.npy": (_npy, {}),
    "archive.npz": (_npz, {}),
    "sparse.npz": (_sparse_npz, {}),
    "five.mat": (_mat, {}),
    "plain.mat": (lambda rng: _mat(rng, compressed=False), {}),
    "sparse.mat": (lambda rng: _mat(rng, compressed=False, sparse=True), {}),
    "seven.mat": (_mat73, {}),
    "plain.h5": (_plain_hdf5, {}),
    "cells.h5ad": (_h5ad, {}),
    "columns.parquet": (_parquet, {"labels": "kind"}),
    "columns.feather": (_arrow, {"labels": "kind"}),
    "sparse.mtx": (_mtx, {}),
    "dense.mtx": (_dense_mtx, {}),
    "packed.mtx.gz": (lambda rng: gzip.compress(_mtx(rng)), {}),
    "rows.svmlight": (_svmlight, {}),
    "two.gct": (lambda rng: _gct(rng, 2), {}),
    "three.gct": (_gct, {"labels": "kind"}),
    "a_series_matrix.txt": (_geo, {"labels": "!Sample_kind"}),
    "packed_series_matrix.txt.gz": (lambda rng: gzip.compress(_geo(rng)), {}),
    "commented.txt": (_commented, {"labels": "kind", "identifier": "sample"}),
    "blanks.dat": (_blanks, {}),
    "unnamed": (_csv, {"drop": ["kind", "sample"]}),
    "latin1.csv": (_csv, {"drop": ["kind", "sample"], "encoding": "latin-1"}),
    "sixteen.txt": (lambda rng: _blanks(rng).decode().encode("utf-16"), {"encoding": "utf-16"}),
}

OTHER_STARTS = (
    b"PK\x03\x04",
    b"\x89HDF\r\n\x1a\n",
    b"\x93NUMPY\x01\x00v\x00",
    b"PAR1",
    b"ARROW1\0\0",
    b"\x1f\x8b\x08\0",
    b"%%MatrixMarket matrix array real general\n",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"<html>",
    b"\x80\x04\x95",
    b"",
)
ODD_CELLS = (
    b"",
    b"nan",
    b"inf",
    b"-inf",
    b"1e999",
    b"abc",
    b"0x1p3",
    b"1_0",
    b"999999999999",
    b"-1",
)
ODD_CELLS += (b'"', b'"open', b"\0", b"\xff", b"true", b"2020-01-01", b"'", b"1,5", b"\r", b"\n\n")


def _mutated(sound: bytes, rng: np.random.Generator) -> bytes:
    """One of many ways in which a file goes wrong."""
    data = bytearray(sound)
    at = int(rng.integers(len(data)))
    span = int(rng.integers(1, 40))
    kind = rng.integers(9)
    if kind == 0:  # truncated
        return bytes(data[:at])
    if kind == 1:  # flipped bytes
        for place in rng.integers(len(data), size=rng.integers(1, 12)):
            data[place] ^= 1 << int(rng.integers(8))
    elif kind == 2:  # bytes replaced, near the start where headers stand
        place = int(rng.integers(min(300, len(data))))
        data[place : place + 8] = rng.bytes(8)
    elif kind == 3:  # a stretch lost
        del data[at : at + span]
    elif kind == 4:  # a stretch twice
        data[at:at] = data[at : at + span]
    elif kind == 5:  # lengths that claim everything
        data[at : at + 8] = rng.choice([b"\xff" * 8, b"\x7f" * 8, b"\0" * 8, b"\xff\xff\xff\x7f"])
    elif kind == 6:  # another format's beginning
        start = OTHER_STARTS[rng.integers(len(OTHER_STARTS))]
        data[: len(start)] = start
    elif kind == 7:  # an odd cell or number somewhere
        data[at : at + int(rng.integers(4))] = ODD_CELLS[rng.integers(len(ODD_CELLS))]
    else:  # noise at the end
        data += rng.bytes(span)
    return bytes(data)


def _verdict(path: Path, roles: dict) -> str:
    """'table' or 'error'; anything else that happens is a failure."""
    began = time.perf_counter()
    try:
        table = open_table(path, max_bytes=LIMIT, **roles)
        _assert_sound(table)
        verdict = "table"
    except KeepersError:
        verdict = "error"
    seconds = time.perf_counter() - began
    assert seconds < LONGEST_SECONDS, f"{path.name} took {seconds:.1f} s"
    return verdict


def _assert_sound(table: LabelledTable) -> None:
    assert table.X.shape == (table.n_samples, table.n_features)
    assert table.n_samples > 0
    assert table.n_features > 0
    assert table.X.dtype in (np.float64, np.float32)
    assert len(set(table.feature_names)) == table.n_features
    assert all(isinstance(name, str) for name in table.feature_names)
    assert table.labels is None or table.labels.shape == (table.n_samples,)
    assert table.sample_names is None or table.sample_names.shape == (table.n_samples,)
    if table.is_sparse:
        table.X.check_format(full_check=True)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", SOUND)
def test_a_mutated_file_gives_a_table_or_an_error_of_ours(name, tmp_path):
    make, roles = SOUND[name]
    rng = np.random.default_rng(sum(map(ord, name)))
    path = tmp_path / name
    path.write_bytes(make(rng))
    assert _verdict(path, roles) == "table"
    verdicts: Counter[str] = Counter()
    for _ in range(PER_FORMAT):
        path.write_bytes(_mutated(make(rng), rng))
        verdicts[_verdict(path, roles)] += 1
    assert verdicts["error"] > PER_FORMAT / 10


def _header(shape: str, descr: str = "<f8") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(64)


def _zipped(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return stream.getvalue()


MTX = b"%%MatrixMarket matrix coordinate real general\n"
REFUSED = {
    "nothing.csv": b"",
    "blank_lines.csv": b"\n\n\n",
    "no_rows.csv": b"a,b\n",
    "no_names.csv": b",,\n1,2,3\n",
    "ragged_long.csv": b"a,b\n1,2\n3,4,5\n6\n",
    "ragged_short.csv": b"a,b,c\n1,2,3\n4,5\n6,7,8,9\n",
    "ragged_quoted.csv": b'a,b\n"1",2\n3,4,5\n',
    "same_names.csv": b"a,b,a\n1,2,3\n4,5,6\n",
    "same_as_numbered.csv": b"a,column 3,\n1,2,3\n",
    "text.csv": b"a,b\n1,x\n2,y\n",
    "text_below.csv": b"a,b\n" + b"1,2\n" * 5000 + b"1,x\n",
    "dates.csv": b"a,b\n1,2020-01-01\n2,2020-01-02\n",
    "empty_column.csv": b"a,b\n1,\n2,\n",
    "nan_storm.csv": b"a,b\n" + b"nan,NaN\n" * 100,
    "utf16.csv": "a,b\n1,2\n".encode("utf-16")[:-1],
    "latin1.csv": "gr\xfcn,b\n1,2\n".encode("latin-1"),
    "nulls.csv": b"a,b\n\0,\0\n1,2\n",
    "open_quote.csv": b'a,b\n1,"2\n3,4\n' * 20000,
    "mixed_ends.csv": b"a,b\r1,2\n3,4\r",
    "no_gzip.csv.gz": b"a,b\n1,2\n",
    "no_zstd.csv.zst": b"a,b\n1,2\n",
    "huge.npy": _header("(1000000000000, 3)"),
    "wide.npy": _header("(0, 1000000000000)"),
    "negative.npy": _header("(-3, 4)"),
    "objects.npy": _header("(2, 4)", "|O"),
    "short.npy": _header("(100, 4)"),
    "cube.npy": _header("(2, 2, 2)"),
    "empty.npy": _header("(0, 4)"),
    "no_columns.npy": _header("(4, 0)"),
    "complex.npy": _header("(2, 2)", "<c16"),
    "structured.npy": _header("(2,)").replace(b"'<f8'", b"[('a','<f8')]"),
    "words.npy": _header("(2, 2)", "<U2"),
    "times.npy": _header("(2, 2)", "<M8[s]"),
    "long_header.npy": b"\x93NUMPY\x02\x00" + (2**31).to_bytes(4, "little") + b" " * 20000,
    "code.npy": _header("__import__('os')"),
    "huge.npz": _zipped(X=_header("(1000000000000, 3)")),
    "two.npz": _zipped(a=_header("(2, 4)"), b=_header("(2, 4)")),
    "none.npz": _zipped(),
    "objects.npz": _zipped(X=_header("(2, 4)", "|O")),
    "labels.npz": _zipped(X=_header("(2, 4)"), y=_header("(3,)")),
    "bomb.npz": _zipped(X=_header("(10000000, 1)") + bytes(80_000_000)),
    "bomb.csv.gz": gzip.compress(b"a,b\n" + b"1,2\n" * 20_000_000, 1),
    "long_line.csv.gz": gzip.compress(bytes(80_000_000), 1),
    "huge.mtx": MTX + b"1000000000000 3 0\n",
    "hollow.mtx": MTX + b"400000000 3 1\n1 1 1\n",
    "wide.mtx": MTX + b"3 2000000000 1\n1 1 1\n",
    "many.mtx": MTX + b"3 3 900000000000\n1 1 1\n",
    "outside.mtx": MTX + b"3 3 1\n7 7 1\n",
    "words.mtx": MTX + b"3 3 1\n1 1 one\n",
    "no_size.mtx": MTX,
    "dense.mtx": b"%%MatrixMarket matrix array real general\n99999999 99999999\n1\n",
    "imaginary.mtx": b"%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 1 1\n",
    "wide.svmlight": b"1 1:1 2000000000:1\n",
    "overflow.svmlight": b"1 99999999999999999999:1\n",
    "negative.svmlight": b"1 -4:1\n",
    "unsorted.svmlight": b"1 4:1 2:1\n",
    "words.svmlight": b"one 1:two\n",
    "empty.svmlight": b"",
    "labels_only.svmlight": b"1\n2\n",
    "feather_1.feather": b"FEA1" + bytes(40),
    "page.parquet": b"PAR1" + b"<html></html>" + b"PAR1",
    "short.mat": b"MATLAB 5.0 MAT-file" + bytes(30),
    "zeros.mat": bytes(400),
    "zeros.h5ad": bytes(400),
    "script.mat": b"function x = f()\n",
    "prose.txt": b"Nothing here\nbut words, in lines\n",
    "zeros.txt": bytes(400),
    "nothing.dat": b"",
    "page": b"<html>\n<body>no table</body>\n</html>\n",
    "pickle.pkl": b"\x80\x04\x95\x0b\0\0\0\0\0\0\0]",
    "long_line.txt.gz": gzip.compress(b"1" * 80_000_000, 1),
    "unpacked.txt.gz": b"a b\n1 2\n",
    "huge.gct": b"#1.2\n100000000000\t1\nName\tDescription\ts\n",
    "wide.gct": b"#1.2\n1\t100000000000\nName\tDescription\ts\n",
    "short.gct": b"#1.2\n2\t1\nName\tDescription\ts\ng\tx\t1\n",
    "long.gct": b"#1.2\n1\t1\nName\tDescription\ts\ng\tx\t1\nh\tx\t1\n",
    "no_sizes.gct": b"#1.3\n2\t1\nid\ts\ng\t1\n",
    "no_samples.gct": b"#1.2\n1\t0\nName\tDescription\ng\tx\n",
    "no_rows.gct": b"#1.2\n0\t1\nName\tDescription\ts\n",
    "much_told.gct": b"#1.3\n1\t1\t0\t999999999999\nid\ts\ng\t1\n",
    "version.gct": b"#1.1\n1\t1\n",
    "empty.gct": b"",
    "words.gct": b"#1.2\n1\t1\nName\tDescription\ts\ng\tx\tone\n",
    "same_names.gct": b"#1.2\n2\t1\nName\tDescription\ts\ng\tx\t1\ng\tx\t2\n",
    "no_table_series_matrix.txt": b"!Series_title\t1\n" * 1000,
    "no_values_series_matrix.txt": (
        b'!series_matrix_table_begin\n"ID_REF"\t"a"\n!series_matrix_table_end\n'
    ),
    "no_end_series_matrix.txt": b'!series_matrix_table_begin\n"ID_REF"\t"a"\n"g"\t1\n',
    "ragged_series_matrix.txt": (
        b"!series_matrix_table_begin\nID_REF\ta\ng\t1\t2\n!series_matrix_table_end\n"
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_no_table_is_refused_with_a_way_out(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(REFUSED[name])
    began = time.perf_counter()
    with pytest.raises(KeepersError) as refusal:
        open_table(path, max_bytes=LIMIT)
    assert time.perf_counter() - began < LONGEST_SECONDS
    assert str(path) in str(refusal.value)
    assert str(refusal.value).endswith((".", "?"))


def test_more_than_two_thousand_files_are_tried():
    assert len(SOUND) * PER_FORMAT + len(REFUSED) >= 2000
