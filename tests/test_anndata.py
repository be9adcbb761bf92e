"""Selection in AnnData objects: what is written, batches as in scanpy, every kind of values."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import keepers.anndata
from keepers import AutoSelector, LaplacianScore, VarianceScore
from keepers.exceptions import DataError, DataWarning, NoStructureWarning, ParameterError
from keepers.extending import RankingSelector

anndata = pytest.importorskip("anndata")

N_CELLS, N_GENES, N_MARKERS = 120, 60, 12
GENES = [f"gene{at}" for at in range(N_GENES)]


def _values(seed=0):
    """Three kinds of cells that differ in the first genes."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((N_CELLS, N_GENES))
    kinds = np.arange(N_CELLS) % 3
    values[:, :N_MARKERS] += 4 * rng.standard_normal((3, N_MARKERS))[kinds]
    return values


def _cells(values=None, **parts):
    values = _values() if values is None else values
    obs = pd.DataFrame(
        {"donor": pd.Categorical(np.repeat(["b", "a"], [70, 50]))},
        index=[f"cell{at}" for at in range(N_CELLS)],
    )
    return anndata.AnnData(values, obs=obs, var=pd.DataFrame(index=GENES), **parts)


class MeanValue(RankingSelector):
    """Scores columns by the mean of their values: easy to predict."""

    def __init__(self, n_features_to_select=None):
        self.n_features_to_select = n_features_to_select

    def score_features(self, table):
        """The means of all columns."""
        return table.mean


def test_scores_ranks_and_the_choice_are_those_of_the_selector():
    cells = _cells()
    assert keepers.anndata.select(cells) is None
    selector = AutoSelector(n_halves=2).fit(_values())
    np.testing.assert_array_equal(cells.var["keepers_selected"], selector.support_)
    np.testing.assert_array_equal(cells.var["keepers_rank"], selector.ranking_ - 1)
    np.testing.assert_allclose(cells.var["keepers_score"], selector.scores_)
    assert cells.var.dtypes.astype(str).to_dict() == {
        "keepers_score": "float64",
        "keepers_rank": "float64",
        "keepers_selected": "bool",
    }
    assert set(np.flatnonzero(selector.support_)) <= set(range(N_MARKERS))
    assert cells.uns["keepers"]["summary"] == selector.summary_
    np.testing.assert_array_equal(cells.X, _values())


def test_the_record_survives_a_file(tmp_path):
    cells = _cells()
    method = AutoSelector(must_keep=["gene40"], never_keep=np.arange(N_GENES) == 3)
    keepers.anndata.select(cells, 9, method=method, batch_key="donor")
    cells.write_h5ad(tmp_path / "cells.h5ad")
    read = anndata.read_h5ad(tmp_path / "cells.h5ad")
    pd.testing.assert_frame_equal(read.var, cells.var)
    record = read.uns["keepers"]
    assert (record["method"], record["n_features"], record["batch_key"]) == (
        "AutoSelector",
        9,
        "donor",
    )
    assert record["params"]["n_neighbors"] == 7
    assert record["params"]["n_features_to_select"] == 9
    assert list(record["params"]["must_keep"]) == ["gene40"]
    assert np.flatnonzero(record["params"]["never_keep"]).tolist() == [3]
    assert "max_correlation" not in record["params"]
    assert record["versions"]["numpy"] == np.__version__
    assert record["summary"].startswith("a: Keep 9 of 60 features. ")
    assert read.var.loc["gene40", "keepers_rank"] == 0
    assert not hasattr(method, "support_")


def test_a_layer_is_fitted_in_place_of_X():
    cells = _cells(np.zeros((N_CELLS, N_GENES)), layers={"logged": _values()})
    keepers.anndata.select(cells, 10, layer="logged", method="variance")
    expected = VarianceScore(10).fit(_values()).support_
    np.testing.assert_array_equal(cells.var["keepers_selected"], expected)
    assert cells.uns["keepers"]["layer"] == "logged"
    with pytest.raises(DataError, match=r"no layer 'loged'\. Did you mean 'logged'\?"):
        keepers.anndata.select(cells, layer="loged")


def test_without_inplace_nothing_is_written_and_a_view_stays_a_view():
    view = _cells()[:, 5:]
    found = keepers.anndata.select(view, 10, inplace=False)
    assert view.is_view
    assert list(view.var) == []
    assert "keepers" not in view.uns
    assert len(found) == N_GENES - 5
    assert found["keepers_selected"].sum() == 10
    assert list(found.index[found["keepers_selected"]]) == [
        name for name in GENES[5:] if found["keepers_selected"].get(name, False)
    ]


def test_the_parent_of_a_view_is_left_alone():
    cells = _cells()
    view = cells[:60]
    with pytest.warns(anndata.ImplicitModificationWarning):
        keepers.anndata.select(view, 10)
    assert list(cells.var) == []
    assert view.var["keepers_selected"].sum() == 10


@pytest.mark.filterwarnings("ignore:.*Counts with a long tail")
@pytest.mark.parametrize(
    ("storage", "batch_key"),
    [
        *(("csr", None), ("csc", "donor"), ("float32", None), ("int64", "donor")),
        *(("dask", None), ("sparse dask", "donor"), ("coo dask", None)),
    ],
)
def test_every_kind_of_values_gives_the_same(storage, batch_key):
    counts = np.rint(np.exp(_values())).clip(0, 1000)
    expected = keepers.anndata.select(_cells(counts), batch_key=batch_key, inplace=False)
    if storage in ("csr", "csc"):
        values = sp.csr_matrix(counts).asformat(storage)
    elif "dask" in storage:
        values = pytest.importorskip("dask.array").from_array(counts, chunks=(25, N_GENES))
        if storage != "dask":
            values = values.map_blocks(sp.csr_matrix if "sparse" in storage else sp.coo_matrix)
    else:
        values = counts.astype(storage)
    found = keepers.anndata.select(_cells(values), batch_key=batch_key, inplace=False)
    # float32 may round what is compared to decide, so the choice is compared, not every rank.
    pd.testing.assert_series_equal(found["keepers_selected"], expected["keepers_selected"])
    np.testing.assert_allclose(found["keepers_score"], expected["keepers_score"], atol=1e-5)


@pytest.mark.parametrize(
    ("storage", "batch_key", "method"),
    [
        *(("csr", None, "auto"), ("csc", "donor", "auto")),
        *(("dense", None, "lapscore"), ("csr", "donor", "lapscore")),
    ],
)
def test_a_backed_object_is_read_from_its_file(tmp_path, storage, batch_key, method):
    values = np.maximum(_values(), 0)
    cells = _cells(values if storage == "dense" else sp.csr_matrix(values).asformat(storage))
    cells.write_h5ad(tmp_path / "cells.h5ad")
    settings = {"n_features": 10, "batch_key": batch_key, "method": method}
    expected = keepers.anndata.select(cells, inplace=False, **settings)
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    keepers.anndata.select(backed, **settings)
    assert backed.isbacked
    pd.testing.assert_frame_equal(backed.var, expected, check_exact=False)
    backed.file.close()


@pytest.mark.slow
def test_batches_are_combined_as_in_scanpy():
    """By scanpy's own score, its choice, ranks and counts of batches come out."""
    sc = pytest.importorskip("scanpy")
    pytest.importorskip("skmisc")
    rng = np.random.default_rng(3)
    means = rng.gamma(2.0, 2.0, size=N_GENES)
    counts = rng.poisson(rng.gamma(2.0, means / 2, size=(N_CELLS, N_GENES))).astype(float)
    cells = _cells(counts)
    cells.obs["donor"] = np.arange(N_CELLS) % 3

    class NormalisedVariance(MeanValue):
        def score_features(self, table):
            found = sc.pp.highly_variable_genes(
                anndata.AnnData(table.X), flavor="seurat_v3", n_top_genes=20, inplace=False
            )
            return found["variances_norm"].to_numpy()

    keepers.anndata.select(cells, 20, batch_key="donor", method=NormalisedVariance())
    theirs = sc.pp.highly_variable_genes(
        cells, flavor="seurat_v3_paper", n_top_genes=20, batch_key="donor", inplace=False
    )
    np.testing.assert_array_equal(cells.var["keepers_selected"], theirs["highly_variable"])
    np.testing.assert_array_equal(
        cells.var["keepers_n_batches"], theirs["highly_variable_nbatches"]
    )
    np.testing.assert_array_equal(cells.var["keepers_rank"], theirs["highly_variable_rank"])
    np.testing.assert_allclose(cells.var["keepers_score"], theirs["variances_norm"])


def _batches(*means):
    """Ten cells of each of three donors, whose genes have these means."""
    donor = np.arange(30) % 3
    noise = np.random.default_rng(0).standard_normal((30, len(means[0])))
    cells = anndata.AnnData(np.array(means)[donor] + 1e-3 * noise)
    cells.obs["donor"] = donor
    return cells


def test_a_gene_that_leads_in_all_batches_is_kept():
    """Gene 0 is second everywhere; the first of every batch is last in the others."""
    cells = _batches([2.0, 3.0, 0.0, 0.0], [2.0, 0.0, 3.0, 0.0], [2.0, 0.0, 0.0, 3.0])
    keepers.anndata.select(cells, 2, batch_key="donor", method=MeanValue())
    assert cells.var["keepers_n_batches"].iloc[0] == 3
    assert cells.var["keepers_selected"].iloc[0]


def test_of_genes_in_as_many_batches_the_lower_median_rank_wins():
    """Ranks by hand: gene 0 is the first of one batch, gene 1 of the two others."""
    cells = _batches([3.0, 1.0, 2.0], [1.0, 3.0, 2.0], [0.0, 3.0, 2.0])
    keepers.anndata.select(cells, 1, batch_key="donor", method=MeanValue())
    assert cells.var["keepers_n_batches"].tolist() == [1, 2, 0]
    np.testing.assert_array_equal(cells.var["keepers_rank"], [0, 0, np.nan])
    assert cells.var["keepers_selected"].tolist() == [False, True, False]
    keepers.anndata.select(cells, 2, batch_key="donor", method=MeanValue())
    np.testing.assert_array_equal(cells.var["keepers_rank"], [0, 0, 1])
    keepers.anndata.select(cells, 2, method=MeanValue())
    assert "keepers_n_batches" not in cells.var


def test_without_a_number_the_batch_that_needs_most_decides():
    cells = _cells()
    keepers.anndata.select(cells, batch_key="donor")
    counts = [
        AutoSelector().fit(_values()[cells.obs["donor"] == name]).n_enough_ for name in ("a", "b")
    ]
    assert cells.var["keepers_selected"].sum() == max(counts)


@pytest.mark.parametrize("n_features", [None, 12])
def test_batches_without_structure_are_named_and_do_not_count(n_features):
    values = _values()
    values[70:] = np.random.default_rng(5).standard_normal((50, N_GENES))
    cells = _cells(values)
    with pytest.warns(NoStructureWarning, match="in 1 of 2 batches: 'a'.*not counted"):
        keepers.anndata.select(cells, n_features, batch_key="donor")
    alone = AutoSelector(n_features, n_halves=0).fit(values[:70])
    np.testing.assert_array_equal(cells.var["keepers_selected"], alone.support_)
    np.testing.assert_allclose(cells.var["keepers_score"], alone.scores_)
    assert cells.var["keepers_n_batches"].max() == 1
    assert cells.uns["keepers"]["batches_left_out"].tolist() == ["a"]


def test_where_no_batch_has_structure_all_of_them_count():
    cells = _cells(np.random.default_rng(5).standard_normal((N_CELLS, N_GENES)))
    with pytest.warns(NoStructureWarning, match="in 2 of 2 batches.*random"):
        keepers.anndata.select(cells, 6, batch_key="donor")
    assert cells.var["keepers_selected"].sum() == 6
    assert "batches_left_out" not in cells.uns["keepers"]


def test_large_batches_share_the_cells_that_are_looked_at(monkeypatch):
    monkeypatch.setattr("keepers.anndata.ROWS_OF_BATCHES", 80)
    monkeypatch.setattr("keepers.anndata.FEWEST_DRAWN", 30)
    cells = _cells()
    keepers.anndata.select(cells, 10, batch_key="donor")
    assert cells.uns["keepers"]["n_obs_used"] == 40 + 40
    monkeypatch.setattr("keepers.anndata.ROWS_OF_BATCHES", 10)
    keepers.anndata.select(cells, 10, batch_key="donor")
    assert cells.uns["keepers"]["n_obs_used"] == 30 + 30
    assert cells.var["keepers_selected"].iloc[:N_MARKERS].sum() == 10


def test_the_record_says_how_many_cells_were_looked_at(monkeypatch):
    cells = _cells()
    monkeypatch.setattr("keepers.methods.auto.MOST_ROWS", 90)
    keepers.anndata.select(cells, 10)
    assert (cells.uns["keepers"]["n_obs"], cells.uns["keepers"]["n_obs_used"]) == (N_CELLS, 90)
    keepers.anndata.select(cells, 10, method="variance", batch_key="donor")
    assert cells.uns["keepers"]["n_obs_used"] == N_CELLS


@pytest.mark.parametrize("batch_key", [None, "donor"])
@pytest.mark.parametrize("method", ["auto", "spcafs"])
@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_genes_whose_names_match_are_never_kept(method, batch_key):
    """The same genes as from an object without them."""
    cells = _cells()
    cells.var_names = ["MT-ND1", "MT-CO1", "RPS4X", "RPLP0", *GENES[4:]]
    pattern = r"^(MT-|RP[SL])"
    settings = {"batch_key": batch_key, "method": method}
    keepers.anndata.select(cells, 8, exclude=pattern, **settings)
    without = cells[:, 4:].copy()
    keepers.anndata.select(without, 8, **settings)
    assert not cells.var["keepers_selected"].iloc[:4].any()
    assert cells.uns["keepers"]["exclude"] == pattern
    kept = cells.var_names[cells.var["keepers_selected"]]
    assert list(kept) == list(without.var_names[without.var["keepers_selected"]])


def test_genes_excluded_by_the_selector_stay_excluded():
    cells = _cells()
    keepers.anndata.select(cells, 8, exclude="^gene1$", method=AutoSelector(never_keep=["gene2"]))
    assert not cells.var.loc[["gene1", "gene2"], "keepers_selected"].any()


def test_a_pattern_that_matches_nothing_is_mentioned():
    with pytest.warns(DataWarning, match=r"'\^mt-' matches none of the 60 variables.*'gene0'"):
        keepers.anndata.select(_cells(), 8, exclude="^mt-")


@pytest.mark.parametrize("storage", ["array", "csr", "file", "dask"])
def test_raw_counts_are_mentioned_and_logarithms_are_not(tmp_path, storage):
    counts = np.floor(np.exp(np.abs(_values()).clip(max=7)))
    counts[0, 0] = 5000
    for values, warns in ((counts, True), (np.log1p(counts), False)):
        cells = _cells(sp.csr_matrix(values) if storage in ("csr", "file") else values)
        if storage == "dask":
            cells.X = pytest.importorskip("dask.array").from_array(values, chunks=(50, N_GENES))
        elif storage == "file":
            cells.write_h5ad(tmp_path / f"{warns}.h5ad")
            cells = anndata.read_h5ad(tmp_path / f"{warns}.h5ad", backed="r")
        if warns:
            with pytest.warns(DataWarning, match=r"long tail: up to 5,000,.*log1p"):
                keepers.anndata.select(cells, 8, method=AutoSelector(n_halves=0))
        else:
            keepers.anndata.select(cells, 8, method=AutoSelector(n_halves=0))


def test_unused_categories_are_no_batches():
    cells = _cells()[:70].copy()
    keepers.anndata.select(cells, 10, batch_key="donor")
    assert cells.var["keepers_n_batches"].max() == 1


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (len, {"batch_key": "donr"}, r"no column 'donr'\. Did you mean 'donor'\?"),
        (
            lambda a: a.obs.__setitem__("donor", ["x", "y"] + ["z"] * (N_CELLS - 2)),
            {"batch_key": "donor"},
            r"at least 3 observations; these have fewer \(how many\): 'x' \(1\), 'y' \(1\)",
        ),
        (
            lambda a: a.obs.__setitem__("donor", [None] * 4 + ["z"] * (N_CELLS - 4)),
            {"batch_key": "donor"},
            r"4 of obs\['donor'\] are missing",
        ),
        (lambda a: a.X.__setitem__((3, 7), np.inf), {}, r"infinity.*'gene7' \(1\)"),
        (
            lambda a: a.X.__setitem__((3, 7), np.inf),
            {"batch_key": "donor"},
            r"In batch 'b': .*'gene7' \(1\)",
        ),
        (lambda a: setattr(a, "X", None), {}, r"must hold values in X.*it has none"),
        (
            lambda a: setattr(a, "var_names", ["p", "p", *GENES[2:]]),
            {},
            r"duplicates: 'p'\. Call adata\.var_names_make_unique\(\)",
        ),
        (len, {"n_features": 0}, r"n_features_to_select must"),
        (len, {"method": "autos"}, r"no method 'autos'\. Did you mean 'auto'"),
        (len, {"method": AutoSelector}, r"name of a method or a selector of keepers"),
        (len, {"exclude": "(MT"}, r"regular expression.*'\(MT'"),
        (len, {"exclude": "^MT-", "method": "variance"}, r"never_keep.*VarianceScore"),
        (len, {"exclude": "gene"}, r"never"),
    ],
)
@pytest.mark.filterwarnings("ignore:Variable names are not unique")
def test_bad_arguments_are_refused_in_a_sentence(change, settings, message):
    cells = _cells()
    change(cells)
    with pytest.raises((DataError, ParameterError), match=message):
        keepers.anndata.select(cells, **settings)


def test_other_tables_are_sent_to_the_selectors():
    with pytest.raises(ParameterError, match=r"got 'ndarray'.*AutoSelector\(\)\.fit"):
        keepers.anndata.select(_values())


def test_a_method_that_cannot_read_chunks_says_so_for_dask():
    dask_array = pytest.importorskip("dask.array")
    with pytest.raises(DataError, match="LaplacianScore does not accept a Dask collection"):
        keepers.anndata.select(_cells(dask_array.from_array(_values())), method=LaplacianScore(5))
