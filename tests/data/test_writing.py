"""What is written is read back by others, whole or not at all."""

import os
import stat

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from keepers.data.replacing import whole_file
from keepers.data.table_files import check_writable
from keepers.datasets import open_table, write_table
from keepers.exceptions import DataError, KeepersError, ParameterError

h5py = pytest.importorskip("h5py")

pytest.importorskip("pyarrow")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 5)) * 10.0 ** RNG.integers(-300, 300, size=(30, 5))
X[RNG.random(X.shape) < 0.4] = 0
X[0, 0], X[1, 1] = 0.1, 1 / 3
NAMES = ["g0", "b,c", 'quo"te', "plain", "ünï"]
SAMPLES = [f"s{i}" for i in range(30)]
LABELS = np.repeat(["x", "y", "z"], 10)

PANDAS_READERS = {
    # As text: older pandas is not exact in the last digits of numbers.
    **dict.fromkeys(
        ["csv", "csv.gz", "csv.bz2", "csv.xz"], lambda path: pd.read_csv(path, dtype=str)
    ),
    "tsv": lambda path: pd.read_csv(path, sep="\t", dtype=str),
    "parquet": pd.read_parquet,
    "feather": pd.read_feather,
}


@pytest.mark.parametrize("suffix", PANDAS_READERS)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_pandas_reads_the_same_table(tmp_path, suffix, container):
    path = tmp_path / f"a.{suffix}"
    assert write_table(path, container(X), NAMES, SAMPLES, LABELS) == path
    frame = PANDAS_READERS[suffix](path)
    assert list(frame.columns) == ["sample", "label", *NAMES]
    values = [[float(cell) for cell in row] for row in frame[NAMES].to_numpy()]
    np.testing.assert_array_equal(values, X)
    assert list(frame["sample"]) == SAMPLES
    assert list(frame["label"]) == list(LABELS)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_numpy_scipy_and_h5py_read_the_same_values(tmp_path, container):
    given = container(X)
    for suffix in ("npy", "npz", "mtx", "h5ad"):
        write_table(tmp_path / f"a.{suffix}", given, NAMES, SAMPLES, LABELS)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy", allow_pickle=False), X)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert archive["y"].tolist() == LABELS.tolist()
        assert archive["feature_names"].tolist() == NAMES
        assert archive["sample_names"].tolist() == SAMPLES
        if not sp.issparse(given):
            np.testing.assert_array_equal(archive["X"], X)
    matrix = scipy.io.mmread(tmp_path / "a.mtx")
    if sp.issparse(given):
        np.testing.assert_array_equal(sp.load_npz(tmp_path / "a.npz").toarray(), X)
        np.testing.assert_array_equal(matrix.toarray(), X)
    else:
        np.testing.assert_array_equal(matrix, X)
    with h5py.File(tmp_path / "a.h5ad") as file:
        assert file["obs"]["_index"].asstr()[()].tolist() == SAMPLES
        assert file["var"]["_index"].asstr()[()].tolist() == NAMES


def test_scikit_learn_reads_the_same_svmlight(tmp_path):
    y = np.arange(30) % 3
    X_with_empty_end = np.column_stack([X, np.zeros(30)])
    write_table(tmp_path / "a.svmlight", X_with_empty_end, [*NAMES, "end"], None, y)
    read, labels = load_svmlight_file(str(tmp_path / "a.svmlight"))
    np.testing.assert_array_equal(read.toarray(), X_with_empty_end)
    np.testing.assert_array_equal(labels, y)


@pytest.mark.parametrize(
    "suffix",
    ["csv", "csv.zst", "tsv.gz", "parquet", "arrow", "npz", "h5ad", "npy", "mtx.xz", "svm.gz"],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_we_read_what_we_write(tmp_path, suffix, dtype):
    values = RNG.normal(scale=50, size=(9, 4)).astype(dtype)
    values[2] = 0
    labels = np.arange(9) % 2
    path = tmp_path / f"a.{suffix}"
    write_table(path, values, list("abcd"), SAMPLES[:9], labels, label_name="kind")
    full = suffix.split(".")[0] in ("csv", "tsv", "parquet", "arrow")
    roles = {"labels": "kind", "identifier": "sample"} if full else {}
    table = open_table(path, **(roles or ({"labels": "kind"} if suffix == "h5ad" else {})))
    read = table.X.toarray() if table.is_sparse else table.X
    np.testing.assert_array_equal(read.astype(dtype), values)
    if suffix not in ("npy", "mtx.xz"):
        np.testing.assert_array_equal(table.labels, labels)


def test_missing_values_and_infinities_survive(tmp_path):
    values = np.array([[1.0, np.nan], [np.inf, 2.0], [-np.inf, 3.0]])
    for suffix in ("csv", "parquet", "npz", "mtx", "h5ad"):
        write_table(tmp_path / f"a.{suffix}", values, ["a", "b"])
        np.testing.assert_array_equal(open_table(tmp_path / f"a.{suffix}").X, values)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_text_that_a_spreadsheet_would_evaluate_is_made_harmless(tmp_path, start):
    evil = f"{start}cmd|' /C calc'!A0"
    path = tmp_path / "a.csv"
    write_table(path, np.array([[-1.5]]), [evil], [evil], [evil], identifier_name="id")
    frame = pd.read_csv(path, engine="python", keep_default_na=False)
    assert frame.columns[2] == "'" + evil
    assert frame["id"][0] == "'" + evil
    assert frame["label"][0] == "'" + evil
    assert frame.iloc[0, 2] == -1.5


def test_numbers_in_text_stay_numbers(tmp_path):
    write_table(tmp_path / "a.csv", np.ones((2, 1)), ["-1"], None, ["-1", "+2.5"])
    assert (tmp_path / "a.csv").read_text().splitlines() == ["label,-1", "-1,1", "+2.5,1"]


def test_the_same_table_gives_the_same_bytes(tmp_path):
    for suffix in ("csv", "csv.gz", "mtx", "svmlight"):
        for name in ("one", "two"):
            write_table(tmp_path / f"{name}.{suffix}", X, NAMES)
        assert (tmp_path / f"one.{suffix}").read_bytes() == (
            tmp_path / f"two.{suffix}"
        ).read_bytes()


def test_an_existing_file_is_kept_unless_forced(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("mine")
    with pytest.raises(ParameterError, match=r"exists .* force=True \(--force\)"):
        write_table(path, X, NAMES)
    assert path.read_text() == "mine"
    write_table(path, X, NAMES, force=True)
    np.testing.assert_array_equal(open_table(path).X, X)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_everything_as_it_was(tmp_path, error):
    path = tmp_path / "a.csv"
    path.write_text("mine")

    def interrupted():
        with whole_file(path, force=True) as temporary:
            temporary.write_text("half a ta")
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_text() == "mine"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_a_disk_that_fails_is_an_error_of_ours(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KeepersError, match=r"disk is full .*No space left on device.* make room"):
        write_table(tmp_path / "a.csv", X, NAMES)
    assert os.listdir(tmp_path) == []


@pytest.mark.posix
def test_a_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write_table(tmp_path / "link.csv", X, NAMES, force=True)
    assert (tmp_path / "link.csv").is_symlink()
    np.testing.assert_array_equal(open_table(tmp_path / "real.csv").X, X)


def test_a_written_file_has_ordinary_permissions(tmp_path):
    write_table(tmp_path / "a.csv", X, NAMES)
    (tmp_path / "ordinary").touch()
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a.csv", "ordinary")}
    assert len(modes) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.docx", "suffix of a written table"),
        ("a.mat", "suffix of a written table"),
        ("a", "suffix of a written table"),
        ("nowhere/a.csv", "no folder"),
        ("folder.csv", "is a folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_early(tmp_path, name, message):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ParameterError, match=message):
        check_writable(tmp_path / name)
    with pytest.raises(ParameterError, match=message):
        write_table(tmp_path / name, X, NAMES, force=True)


def test_a_place_that_can_be_written_is_let_pass(tmp_path):
    (tmp_path / "a.csv").touch()
    check_writable(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ({"feature_names": ["a"]}, DataError, "feature_names must have 5"),
        ({"sample_names": ["a"]}, DataError, "sample_names must have 30"),
        ({"labels": ["a"]}, DataError, "labels must have 30"),
        ({"X": X[0]}, DataError, "two dimensions"),
        ({"X": X.astype(str)}, DataError, "real numbers"),
        ({"feature_names": list("abcda")}, ParameterError, "must differ"),
        ({"feature_names": [*"abcd", "label"], "labels": LABELS}, ParameterError, "label_name"),
    ],
)
def test_parts_that_do_not_fit_are_refused(tmp_path, parts, error, message):
    with pytest.raises(error, match=message):
        write_table(tmp_path / "a.csv", **({"X": X, "feature_names": NAMES} | parts))
    assert os.listdir(tmp_path) == []


def test_text_labels_do_not_fit_into_svmlight(tmp_path):
    with pytest.raises(ParameterError, match="numeric labels"):
        write_table(tmp_path / "a.svmlight", X, NAMES, None, LABELS)
