"""AnnData, 10x and GEO files, against what was written by anndata, h5py, SciPy or by hand."""

import gzip
import warnings

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

from keepers.datasets import open_table, scan_table
from keepers.exceptions import DataError, KeepersError
from tables.both_ways import dense

N, P = 7, 5
COUNTS = np.random.default_rng(0).poisson(0.7, size=(N, P)).astype(np.float32)
CELLS, GENES = [f"ACGT{at}-1" for at in range(N)], [f"GENE{at}" for at in range(P)]
IDS, KINDS = [f"ENSG{at}" for at in range(P)], ["b", "t", "b", "b", "t", "t", "b"]
LAYOUTS = {"dense": np.asarray, "csr": sp.csr_matrix, "csc": sp.csc_matrix}


@pytest.fixture
def stored(tmp_path):
    """A file that anndata wrote, with two layers."""

    def make(layout="csr"):
        columns = {
            "kind": pd.Categorical(KINDS),
            "word": [f"w{at}" for at in range(N)],
            "batch": np.arange(N) % 2,
            "holes": pd.array([1, None, 3, 4, 5, 6, 7], dtype="Int64"),
        }
        adata = anndata.AnnData(
            LAYOUTS[layout](COUNTS), pd.DataFrame(columns, CELLS), pd.DataFrame(index=GENES)
        )
        adata.layers["doubled"] = LAYOUTS[layout](2 * COUNTS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of anndata, about its own versions
            adata.write_h5ad(tmp_path / "a.h5ad", compression="lzf")
        return tmp_path / "a.h5ad"

    return make


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_anndata_wrote_is_read(stored, layout):
    path = stored(layout)
    table = open_table(path, labels="kind")
    assert table.is_sparse == (layout != "dense")
    assert table.values.dtype == np.float32
    np.testing.assert_array_equal(dense(table.values), COUNTS)
    assert table.names.tolist() == GENES
    assert table.ids.tolist() == CELLS
    assert table.labels.tolist() == KINDS
    table = open_table(path, labels="batch", identifier="word", drop=["GENE0"], layer="doubled")
    np.testing.assert_array_equal(dense(table.values), 2 * COUNTS[:, 1:])
    assert table.labels.tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert table.ids[0] == "w0"
    with pytest.raises(DataError, match="1 of 'holes' are missing"):
        open_table(path, labels="holes")
    for options, told in (
        ({"labels": "kinds"}, r"no column 'obs/kinds'\. Did you mean 'obs/kind'"),
        ({"drop": ["GENE9"]}, "no column 'GENE9'"),
        ({"layer": "double"}, r"no 'layers/double'\. Did you mean 'doubled'"),
        ({"max_bytes": 100}, "more than the limit"),
    ):
        with pytest.raises(DataError, match=told):
            open_table(path, **options)
    if layout == "csc":
        with pytest.raises(DataError, match=r"X must be stored by rows.*tocsr"):
            scan_table(path)
        return
    scan = scan_table(path, labels="kind", layer="doubled")
    [block] = scan.tables()
    np.testing.assert_array_equal(dense(block.values), 2 * COUNTS)
    assert (block.ids.tolist(), block.labels.tolist()) == (CELLS, KINDS)
    assert scan.labels == "kind"


@pytest.fixture
def tenx(tmp_path):
    """A folder with counts, genes and barcodes."""

    def make(*, packed=True, prefix="", genes="features.tsv", lines=None):
        place = tmp_path / "out"
        place.mkdir(exist_ok=True)
        scipy.io.mmwrite(tmp_path / "m.mtx", sp.coo_matrix(COUNTS.T.astype(int)))
        lines = lines or [f"{a}\t{b}\tGene Expression" for a, b in zip(IDS, GENES, strict=True)]
        contents = {
            "matrix.mtx": (tmp_path / "m.mtx").read_bytes(),
            genes: "\n".join([*lines, ""]).encode(),
            "barcodes.tsv": "\n".join([*CELLS, ""]).encode(),
        }
        for name, content in contents.items():
            path = place / f"{prefix}{name}{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(content) if packed else content)
        return place

    return make


@pytest.mark.parametrize(
    "layout", [{}, {"packed": False, "genes": "genes.tsv"}, {"prefix": "GSM123_sample_"}]
)
def test_a_10x_folder_is_read_as_cells_by_genes(tenx, layout):
    table = open_table(str(tenx(**layout)), drop=["GENE0"])
    assert table.values.format == "csr"
    np.testing.assert_array_equal(table.values.toarray(), COUNTS[:, 1:])
    assert table.names.tolist() == GENES[1:]
    assert table.ids.tolist() == CELLS
    assert table.name == "out"
    with pytest.raises(DataError, match=r"one matrix .* 'a_matrix\.mtx"):
        open_table(tenx(**(layout | {"prefix": "a_"})))


@pytest.fixture
def tenx_h5(tmp_path):
    """A file of version 3, or of version 2 with the name of a genome."""

    def make(group="matrix", **changes):
        path, by_cell = tmp_path / "cells.h5", sp.csc_matrix(COUNTS.T)
        parts = {part: getattr(by_cell, part) for part in ("data", "indices", "indptr")}
        parts |= {"shape": np.array(by_cell.shape), "barcodes": np.array(CELLS, "S18")}
        names = ("features/id", "features/name") if group == "matrix" else ("genes", "gene_names")
        parts |= {names[0]: np.array(IDS, "S"), names[1]: np.array(GENES, "S")}
        if group == "matrix":
            parts["features/feature_type"] = np.array(["Gene Expression"] * P, "S")
        with h5py.File(path, "w") as file:
            for part, values in (parts | changes).items():
                file[f"{group}/{part}"] = values
        return path

    return make


@pytest.mark.parametrize("group", ["matrix", "GRCh38"])
def test_a_10x_hdf5_file_is_read_whole_and_in_blocks(tenx_h5, group):
    path = tenx_h5(group)
    [block] = scan_table(path, drop=["GENE1"]).tables()
    np.testing.assert_array_equal(block.values.toarray(), COUNTS[:, [0, 2, 3, 4]])
    table = open_table(path)
    np.testing.assert_array_equal(table.values.toarray(), COUNTS)
    assert table.names.tolist() == GENES
    assert table.ids.tolist() == block.ids.tolist() == CELLS
    with pytest.raises(DataError, match="needs"):
        open_table(path, max_bytes=200)


VALUES = np.random.default_rng(0).gamma(1, 50, size=(4, P)).round(5)
SAMPLES = [f"GSM{at}" for at in range(4)]


def geo():
    lines = [
        '!Series_title\t"A title with "inner" marks and a ; semicolon, and "one open"',
        '!Sample_title\t"a, 1"\t"a, 2"\t"b, 1"\t"b, 2"',
        '!Sample_characteristics_ch1\t"tissue: lung"\t"tissue: lung"\t"age: 7"\t"tissue: skin"',
        '!Sample_characteristics_ch1\t"age: 5"\t"age: 6"\t"tissue: skin"\t"age: 8"',
        '!Sample_characteristics_ch1\t"sex: f"\t"sex: m"\t""\t"sex: f"',
        "!series_matrix_table_begin",
        "\t".join(['"ID_REF"', *(f'"{name}"' for name in SAMPLES)]),
    ]
    for gene, column in zip(GENES, VALUES.T, strict=True):
        lines.append("\t".join([f'"{gene}"', *map(repr, column.tolist())]))
    return "\n".join([*lines, "!series_matrix_table_end", ""])


@pytest.mark.parametrize("name", ["G", "G_series_matrix.txt", "G.txt.gz"])
def test_a_series_matrix_is_read_as_samples_by_genes(tmp_path, name):
    path, text = tmp_path / name, geo().replace(repr(VALUES[1, 2].item()), "null")
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    table = open_table(path, drop=[GENES[0]])
    expected = VALUES.copy()
    expected[1, 2] = np.nan
    np.testing.assert_array_equal(table.values, expected[:, 1:])
    assert (table.names.tolist(), table.ids.tolist()) == (GENES[1:], SAMPLES)
    for options, told in (({"labels": "tissue"}, "are samples"), ({"identifier": "x"}, "'x'")):
        with pytest.raises(KeepersError, match=told):
            open_table(path, **options)
    with pytest.raises(DataError, match="read whole only"):
        scan_table(path)


def test_probes_may_be_numbers_and_a_series_may_have_much_to_tell(tmp_path):
    path, text = tmp_path / "G_series_matrix.txt", geo().replace('"GENE', '"10')
    begin, told = "!series_matrix_table_begin", '!Sample_description\t"made, up"\n' * 60_000
    path.write_text(text.replace(begin, f"{told}\n{begin}"))
    table = open_table(path)
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.names.tolist() == [name.replace("GENE", "10") for name in GENES]
    path.write_text(text[: text.index('"100"')] + "!series_matrix_table_end\n")
    with pytest.raises(DataError, match="no rows"):
        open_table(path)
