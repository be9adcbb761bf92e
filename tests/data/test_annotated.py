"""AnnData objects handed to selectors: the values of X, the names of the variables."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from keepers import (
    SPCAFS,
    AutoSelector,
    LaplacianScore,
    StabilitySelector,
    VarianceScore,
    all_selectors,
    describe_selection,
    select_settings,
)
from keepers.data.annotated import values_of
from keepers.data.in_memory import is_anndata, is_stored
from keepers.exceptions import DataError
from keepers.selectors.fitted_table import named_table

GENES = [f"gene{at}" for at in range(20)]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 20))
X[:, :6] += 3 * RNG.standard_normal((3, 6))[np.arange(60) % 3]


@pytest.fixture
def anndata():
    return pytest.importorskip("anndata")


@pytest.fixture
def cells(anndata):
    return anndata.AnnData(X.copy(), var=pd.DataFrame(index=GENES))


def test_a_data_frame_with_such_columns_is_none():
    frame = pd.DataFrame(np.eye(3), columns=["X", "var_names", "obs_names"])
    assert not is_anndata(frame)
    assert named_table(frame) is frame


@pytest.mark.parametrize("name", list(all_selectors()))
@pytest.mark.filterwarnings("ignore::keepers.exceptions.KeepersWarning")
def test_every_selector_fits_it_and_names_the_features(cells, name):
    selector = all_selectors()[name](3)
    if "random_state" in selector.get_params():
        selector.set_params(random_state=0)
    fitted = clone(selector).fit(pd.DataFrame(X, columns=GENES))
    selector.fit(cells)
    assert list(selector.feature_names_in_) == GENES
    np.testing.assert_array_equal(selector.ranking_, fitted.ranking_)  # the same numbers twice
    kept = selector.transform(cells)
    assert kept.is_view
    assert list(kept.var_names) == list(np.array(GENES)[selector.support_])


def test_transform_compares_the_names(cells):
    selector = VarianceScore(3).fit(cells)
    with pytest.raises(DataError, match="same order; column 0 is 'gene19', and 'gene0'"):
        selector.transform(cells[:, ::-1])
    with pytest.raises(DataError, match="the 20 columns of the fit; it has 19"):
        selector.transform(cells[:, 1:])


def test_raw_is_a_table_too(cells):
    cells.raw = cells.copy()
    cells.X[:] = 0
    selector = VarianceScore(3).fit(cells.raw)
    assert list(selector.feature_names_in_) == GENES
    np.testing.assert_allclose(selector.scores_, X.var(axis=0))
    assert selector.transform(cells.raw).shape == (60, 3)


def test_views_and_integers_are_taken_as_they_are(anndata):
    counts = np.rint(np.exp(X)).astype(np.int64)
    for values in (counts, sp.csr_matrix(counts), sp.csc_matrix(counts)):
        cells = anndata.AnnData(values, var=pd.DataFrame(index=GENES))
        view = cells[10:, ::2]
        table = values_of(view)
        assert view.is_view
        assert type(table.X) in (np.ndarray, sp.csr_matrix, sp.csc_matrix)
        assert list(table.feature_names) == GENES[::2]
        found = VarianceScore(4).fit(view).scores_
        np.testing.assert_allclose(found, counts[10:, ::2].var(axis=0))


@pytest.mark.parametrize("kind", [None, "csr", "csc"])
def test_a_backed_object_is_read_in_blocks_or_whole(anndata, tmp_path, kind):
    values = np.maximum(X, 0)
    stored = values if kind is None else sp.csr_matrix(values).asformat(kind)
    written = anndata.AnnData(stored, var=pd.DataFrame(index=GENES))
    written.write_h5ad(tmp_path / "a.h5ad")
    backed = anndata.read_h5ad(tmp_path / "a.h5ad", backed="r")
    assert is_stored(backed.X)
    for selector in (AutoSelector(5), SPCAFS(5, n_components=2), LaplacianScore(5)):
        expected = clone(selector).fit(values).scores_
        np.testing.assert_allclose(selector.fit(backed).scores_, expected, atol=1e-6)
        assert list(selector.feature_names_in_) == GENES
        assert selector.transform(backed).shape == (60, 5)
    backed.file.close()


def test_a_dask_array_inside_is_read_in_chunks_with_the_names(anndata):
    dask_array = pytest.importorskip("dask.array")
    chunked = anndata.AnnData(
        dask_array.from_array(X, chunks=(25, 20)), var=pd.DataFrame(index=GENES)
    )
    expected = AutoSelector(5).fit(X).scores_
    for found in (AutoSelector(5).fit(chunked), AutoSelector(5).fit_blocks(chunked)):
        np.testing.assert_allclose(found.scores_, expected, atol=1e-6)
        assert list(found.feature_names_in_) == GENES
    assert hasattr(AutoSelector(5).fit(chunked).transform(chunked).X, "dask")
    with pytest.raises(DataError, match="LaplacianScore does not accept a Dask collection"):
        LaplacianScore(5).fit(chunked)


def test_rows_may_be_added_and_blocks_may_be_objects(cells):
    expected = SPCAFS(5, n_components=2).fit(X).scores_
    added = SPCAFS(5, n_components=2).partial_fit(cells[:30]).partial_fit(cells[30:])
    blocks = SPCAFS(5, n_components=2).fit_blocks([cells[:30], cells[30:]])
    for selector in (added, blocks):
        np.testing.assert_allclose(selector.scores_, expected, atol=1e-6)
        assert list(selector.feature_names_in_) == GENES


def test_what_is_built_on_selectors_takes_it_too(cells):
    selection = describe_selection(VarianceScore(4).fit(cells), cells)
    assert selection.k == 4
    assert {feature.name for feature in selection.kept} <= set(GENES)
    stable = StabilitySelector(VarianceScore(4), n_resamples=4, random_state=0).fit(cells)
    assert list(stable.feature_names_in_) == GENES
    choice = select_settings(cells, 4, n_components=[2], random_state=0)
    assert choice.best.params == select_settings(X, 4, n_components=[2], random_state=0).best.params


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
def test_what_cannot_be_a_table_is_refused_in_a_sentence(anndata, cells):
    with pytest.raises(DataError, match=r"must hold values in X.*it has 'counts'"):
        AutoSelector().fit(anndata.AnnData(obs=cells.obs, var=cells.var, layers={"counts": X}))
    cells.var_names = ["a", "a", *GENES[2:]]
    with pytest.raises(DataError, match=r"duplicates: 'a'.*var_names_make_unique"):
        AutoSelector().fit(cells)
    cells.var_names = GENES
    cells.X[2, 3] = np.nan
    with pytest.raises(DataError, match=r"NaN or infinity .*'gene3' \(1\)"):
        AutoSelector().fit(cells)
