"""Folders and HDF5 files as Cell Ranger writes them, both layouts."""

import gzip

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from keepers.data.formats.tenx import is_10x_folder
from keepers.data.table_files import is_table_folder
from keepers.datasets import open_blocks, open_table
from keepers.exceptions import DataError, DataWarning, ParameterError

N_CELLS, N_GENES = 7, 5
IDS = [f"ENSG{at}" for at in range(N_GENES)]
SYMBOLS = [f"GENE{at}" for at in range(N_GENES)]
BARCODES = [f"ACGT{at}-1" for at in range(N_CELLS)]
COUNTS = sp.csr_matrix(np.random.default_rng(0).poisson(0.7, size=(N_CELLS, N_GENES)))


@pytest.fixture
def tenx(tmp_path):
    """A folder with counts, genes and barcodes."""

    def make(*, packed=True, prefix="", genes="features.tsv", lines=None, folder="out"):
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        scipy.io.mmwrite(tmp_path / "m.mtx", COUNTS.T, field="integer")
        rows = zip(IDS, SYMBOLS, strict=True)
        lines = lines or ["\t".join([*row, "Gene Expression"]) for row in rows]
        contents = {
            "matrix.mtx": (tmp_path / "m.mtx").read_bytes(),
            genes: "\n".join([*lines, ""]).encode(),
            "barcodes.tsv": "\n".join([*BARCODES, ""]).encode(),
        }
        for name, content in contents.items():
            path = place / f"{prefix}{name}{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(content) if packed else content)
        return place

    return make


@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"packed": False, "genes": "genes.tsv"},
        {"prefix": "GSM123_sample_"},
        {"lines": ["\t".join(pair) for pair in zip(IDS, SYMBOLS, strict=True)]},
    ],
)
def test_a_folder_is_read_as_cells_by_genes(tenx, layout):
    folder = tenx(**layout)
    assert is_10x_folder(folder)
    assert is_table_folder(str(folder))
    table = open_table(str(folder))
    assert table.is_sparse
    assert table.X.format == "csr"
    np.testing.assert_array_equal(table.X.toarray(), COUNTS.toarray())
    assert table.feature_names.tolist() == SYMBOLS
    assert table.sample_names.tolist() == BARCODES
    assert table.name == "out"


def test_genes_without_a_symbol_are_called_by_their_id(tenx):
    assert open_table(tenx(lines=IDS)).feature_names.tolist() == IDS
    lines = [f"{IDS[0]}\t\tGene Expression", *(f"{a}\t{a}x" for a in IDS[1:])]
    assert open_table(tenx(lines=lines)).feature_names[0] == IDS[0]


def test_repeated_symbols_are_numbered_as_scanpy_numbers_them(tenx):
    symbols = ["A", "A", "A-1", "B", "A"]
    lines = ["\t".join(pair) for pair in zip(IDS, symbols, strict=True)]
    with pytest.warns(DataWarning, match=r"1 gene symbols .*: 'A'"):
        table = open_table(tenx(lines=lines))
    assert table.feature_names.tolist() == ["A", "A-2", "A-1", "B", "A-3"]


def test_the_numbering_is_that_of_anndata(tenx):
    anndata = pytest.importorskip("anndata")
    pandas = pytest.importorskip("pandas")
    symbols = ["B", "A", "A", "B", "A"]
    expected = anndata.utils.make_index_unique(pandas.Index(symbols)).tolist()
    lines = ["\t".join(pair) for pair in zip(IDS, symbols, strict=True)]
    with pytest.warns(DataWarning, match="2 gene symbols"):
        assert open_table(tenx(lines=lines)).feature_names.tolist() == expected


def test_several_kinds_of_features_are_told(tenx):
    lines = [f"{a}\t{a}\tGene Expression" for a in IDS[:-1]] + ["CD3\tCD3\tAntibody Capture"]
    with pytest.warns(DataWarning, match="4 of 'Gene Expression', 1 of 'Antibody Capture'"):
        assert open_table(tenx(lines=lines)).n_features == N_GENES


def test_genes_are_left_out_by_name(tenx):
    table = open_table(tenx(), drop=["GENE0", "GENE3"])
    np.testing.assert_array_equal(table.X.toarray(), COUNTS.toarray()[:, [1, 2, 4]])


def test_files_that_do_not_fit_are_refused_with_the_counts(tenx):
    with pytest.raises(DataError, match="5 x 7, with 4 genes and 7 barcodes"):
        open_table(tenx(lines=IDS[:-1]))


def test_a_folder_with_several_samples_is_refused(tenx):
    tenx(prefix="a_")
    with pytest.raises(DataError, match="holds 'a_', 'b_'"):
        open_table(tenx(prefix="b_"))


@pytest.mark.parametrize("lost", ["matrix.mtx.gz", "features.tsv.gz", "barcodes.tsv.gz"])
def test_an_incomplete_folder_is_no_10x_folder(tenx, lost):
    folder = tenx()
    (folder / lost).unlink()
    assert not is_10x_folder(folder)
    with pytest.raises(DataError, match="folder of another kind"):
        open_table(folder)


def test_what_is_no_folder_is_no_10x_folder(tmp_path):
    assert not is_10x_folder(tmp_path / "absent")
    assert not is_10x_folder("a\0b")


@pytest.mark.parametrize("damaged", ["matrix.mtx.gz", "features.tsv.gz", "barcodes.tsv.gz"])
@pytest.mark.parametrize(
    "content", [b"", b"\x1f\x8bnonsense", gzip.compress(b"\xff\xfe\xff", mtime=0)]
)
def test_a_damaged_file_is_named(tenx, damaged, content):
    folder = tenx()
    (folder / damaged).write_bytes(content)
    with pytest.raises(DataError, match="out"):
        open_table(folder)


def test_a_file_that_expands_past_the_limit_is_refused(tenx):
    folder = tenx()
    (folder / "barcodes.tsv.gz").write_bytes(gzip.compress(b"\n" * 3_000_000))
    with pytest.raises(DataError, match="more than the limit"):
        open_table(folder, max_bytes=1_000_000)


def test_a_folder_is_read_whole_only(tenx):
    with pytest.raises(DataError, match="10x files are read whole only"):
        open_blocks(tenx())


@pytest.fixture
def tenx_h5(tmp_path):
    """A file of version 3, or of version 2 with the name of a genome."""

    def make(group="matrix", symbols=SYMBOLS):
        path = tmp_path / "filtered_feature_bc_matrix.h5"
        by_cell = sp.csc_matrix(COUNTS.T)
        with h5py.File(path, "w") as file:
            node = file.create_group(group)
            for part in ("data", "indices", "indptr"):
                node.create_dataset(part, data=getattr(by_cell, part), compression="gzip")
            node["shape"] = np.array(by_cell.shape, dtype=np.int32)
            node["barcodes"] = np.array(BARCODES, dtype="S18")
            if group == "matrix":
                features = node.create_group("features")
                features["id"], features["name"] = np.array(IDS, "S"), np.array(symbols, "S")
                features["feature_type"] = np.array(["Gene Expression"] * N_GENES, "S")
            else:
                node["genes"], node["gene_names"] = np.array(IDS, "S"), np.array(symbols, "S")
        return path

    return make


@pytest.mark.parametrize("group", ["matrix", "GRCh38"])
def test_an_hdf5_file_is_read_as_cells_by_genes(tenx_h5, group):
    table = open_table(tenx_h5(group))
    np.testing.assert_array_equal(table.X.toarray(), COUNTS.toarray())
    assert table.feature_names.tolist() == SYMBOLS
    assert table.sample_names.tolist() == BARCODES


def test_an_hdf5_file_is_read_in_blocks(tenx_h5):
    table = open_blocks(tenx_h5(), drop=["GENE1"])
    found = np.vstack([block.values.toarray() for block in table.blocks()])
    np.testing.assert_array_equal(found, COUNTS.toarray()[:, [0, 2, 3, 4]])
    assert table.n_stored == COUNTS.nnz


def test_repeated_symbols_of_an_hdf5_file_are_numbered(tenx_h5):
    with pytest.warns(DataWarning, match="stand for several genes"):
        table = open_table(tenx_h5(symbols=["A", "B", "A", "C", "D"]))
    assert table.feature_names.tolist() == ["A", "B", "A-1", "C", "D"]


def test_an_hdf5_file_has_no_labels(tenx_h5):
    with pytest.raises(ParameterError, match="holds no labels"):
        open_table(tenx_h5(), labels="y")


@pytest.mark.parametrize("part", ["indptr", "shape", "barcodes", "features/id", "features/name"])
def test_parts_of_another_length_are_refused(tenx_h5, part):
    path = tenx_h5()
    with h5py.File(path, "a") as file:
        values = file[f"matrix/{part}"][()]
        del file[f"matrix/{part}"]
        file[f"matrix/{part}"] = values[:-1]
    with pytest.raises(DataError, match="filtered_feature_bc_matrix"):
        open_table(path)


def test_a_link_to_another_file_is_not_followed(tenx_h5, tmp_path):
    path = tenx_h5()
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["matrix"] = h5py.ExternalLink(str(path), "matrix")
    with pytest.raises(DataError, match="holds none"):
        open_table(tmp_path / "other.h5")
