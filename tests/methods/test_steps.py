"""What transformers that keep some columns share: nothing half fitted, every kind of table."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from keepers import DropCorrelated, VarianceScore
from keepers.exceptions import DataError, ParameterError

STEPS = pytest.mark.parametrize(
    "step",
    [DropCorrelated(), VarianceScore(2)],
    ids=lambda s: type(s).__name__,
)


def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    X[:, 3] = 2.0 * X[:, 0]
    return X


@STEPS
def test_a_fit_that_fails_leaves_nothing_behind(step):
    step.fit(table())
    with pytest.raises(DataError):
        step.fit(np.full((30, 4), np.inf))
    assert [name for name in vars(step) if name.endswith("_")] == []
    with pytest.raises(NotFittedError):
        step.transform(table())


def test_bad_settings_are_refused_before_the_data_are_touched():
    with pytest.raises(ParameterError, match=r"threshold must be a number in \(0, 1\]; got 0"):
        DropCorrelated(0).fit("no table")


@STEPS
def test_indices_that_lie_outside_a_sparse_matrix_are_refused(step):
    X = sp.csr_array(table())
    step.fit(X)
    X.indices[0] = 1000
    with pytest.raises(DataError, match="must lie inside its shape"):
        step.transform(X)


def test_a_dask_collection_is_refused_by_fit_and_transformed_lazily():
    dask = pytest.importorskip("dask.array")
    step, X = DropCorrelated(), table()
    lazy = dask.from_array(X, chunks=(10, 4))
    with pytest.raises(DataError, match="does not accept a Dask collection"):
        step.fit(lazy)
    step.fit(X)
    np.testing.assert_array_equal(step.transform(lazy).compute(), X[:, step.support_])


@STEPS
def test_an_anndata_object_is_fitted_by_its_names_and_gives_a_view(step):
    anndata = pytest.importorskip("anndata")
    X = table()
    cells = anndata.AnnData(X)
    cells.var_names = ["a", "b", "c", "d"]
    out = step.fit(cells).transform(cells)
    assert list(out.var_names) == list(step.get_feature_names_out())
    np.testing.assert_array_equal(out.X, X[:, step.support_])
