"""The path of SPCAFS, against single fits, scikit-learn's PCA and the formula in NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA

from keepers import SPCAFS, datasets
from keepers.exceptions import DataError, DataWarning, ParameterError
from keepers.methods.path import spcafs_path

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def srbct():
    return datasets.load("srbct").X


@pytest.fixture(scope="module")
def path(srbct):
    return spcafs_path(srbct, n_components=3)


def small(seed=0, n=40, d=30):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, :8] += 2.0 * rng.standard_normal((n, 1))
    return X


def test_it_runs_from_pca_to_as_many_rows_as_components(srbct, path):
    pca = PCA(3).fit(srbct).explained_variance_ratio_.sum()
    assert len(path) == 20
    assert 0.999 * pca <= path.explained_variance[0] <= 0.9999 * pca
    assert path.n_active[0] > 2000
    assert path.n_active[-1] == path.n_components == 3
    assert np.all(path.n_active[:-1] > 3)
    assert np.all(np.diff(path.gammas) > 0)
    assert np.ptp(np.diff(np.log(path.gammas[:-1]))) < 1e-9
    largest = np.linalg.norm(srbct - srbct.mean(axis=0), 2) ** 2
    shares = [row["gamma_share"] for row in path.rows()]
    np.testing.assert_allclose(shares, path.gammas / largest, rtol=1e-6)


def test_points_are_the_solutions_of_single_fits(srbct, path):
    """The objective to a thousandth; at jumps a single fit may find another minimum."""
    for i in range(0, 16, 3):
        fit = SPCAFS(n_components=3, gamma=path.gammas[i]).fit(srbct)
        assert path.objective[i] == pytest.approx(fit.objective_[-1], rel=1e-3)
        assert abs(int(path.n_active[i]) - fit.n_active_) <= 0.1 * fit.n_active_ + 5
        both = set(np.argsort(-path.scores[i])[:50]) & set(fit.top(50).indices)
        assert len(both) >= 45


def test_the_objective_is_the_formula(srbct, path):
    """Tr(W'SW) from the explained variance, the penalty from the scores: Eq. (23)."""
    total = ((srbct - srbct.mean(axis=0)) ** 2).sum()
    penalty = path.gammas * np.sqrt(path.scores**2 + 1e-12).sum(axis=1)
    expected = penalty - path.explained_variance * total
    scale = np.maximum(np.abs(path.objective), path.explained_variance * total)
    assert np.abs(path.objective - expected).max() <= 1e-6 * scale.max()


def test_the_objective_rises_and_variance_falls_with_gamma(path):
    """A minimum over W of functions that rise with gamma rises; what is kept can only shrink."""
    assert np.all(np.diff(path.objective) > -1e-4 * np.abs(path.objective[1:]))
    assert np.all(np.diff(path.explained_variance) < 1e-4)
    assert np.all(np.diff(path.n_active) <= 0)


def test_squared_scores_sum_to_the_number_of_components(path):
    assert np.allclose((path.scores**2).sum(axis=1), 3.0, atol=1e-6)


def test_entry_is_by_the_last_point_of_life_then_by_the_score_there(path):
    live = path.scores**2 > 4e-12
    last = np.array([np.flatnonzero(column).max(initial=-1) for column in live.T])
    along = last[path.entry]
    assert sorted(path.entry) == list(range(2308))
    assert np.all(np.diff(along) <= 0)
    there = path.scores[along, path.entry]
    same = np.diff(along) == 0
    assert np.all(np.diff(there)[same] <= 1e-7 * there[1:][same])  # ties go by index
    assert set(path.entry[:3]) == set(np.flatnonzero(live[-1]))


def test_a_sparse_table_has_the_path_of_the_dense_one():
    X = small(1)
    X[np.abs(X) < 0.5] = 0.0
    dense, sparse = spcafs_path(X, n_components=2), spcafs_path(sp.csr_array(X), n_components=2)
    assert np.allclose(dense.gammas, sparse.gammas, rtol=1e-6)
    assert np.allclose(dense.objective, sparse.objective, rtol=1e-5)
    assert np.allclose(dense.scores, sparse.scores, atol=1e-3)


def test_two_points_are_the_two_ends():
    path = spcafs_path(small(), n_components=2, n_gammas=2)
    assert path.n_active[0] > 20
    assert path.n_active[1] == 2


@pytest.mark.parametrize("p", [0.5, 0.1])
def test_below_one_the_ends_are_the_same(p):
    X = small(3)
    path = spcafs_path(X, n_components=2, p=p, n_gammas=8)
    pca = PCA(2).fit(X).explained_variance_ratio_.sum()
    assert path.explained_variance[0] >= 0.999 * pca
    assert path.n_active[-1] == 2
    total = ((X - X.mean(axis=0)) ** 2).sum()
    penalty = path.gammas * ((path.scores**2 + 1e-12) ** (p / 2)).sum(axis=1)
    assert np.allclose(path.objective, penalty - path.explained_variance * total, rtol=1e-5)


def test_constant_columns_score_zero_and_enter_last():
    X = small(4)
    X[:, 5] = 7.0
    with pytest.warns(DataWarning, match="do not vary"):
        path = spcafs_path(X, n_components=2, n_gammas=6)
    without = spcafs_path(np.delete(X, 5, axis=1), n_components=2, n_gammas=6)
    assert np.all(path.scores[:, 5] == 0.0)
    assert path.entry[-1] == 5
    assert np.allclose(np.delete(path.scores, 5, axis=1), without.scores)


def test_exact_copies_stay_together_until_one_row_is_left():
    X = small(5, d=3)
    path = spcafs_path(np.hstack([X, X]), n_components=1, n_gammas=6, tol=1e-9, max_iter=1000)
    # At the last gamma one copy alone has the lower objective, and rounding takes one or both.
    assert path.n_active[-1] <= 2
    assert np.allclose(path.scores[:-1, :3], path.scores[:-1, 3:], atol=1e-6)


def test_a_data_frame_gives_the_names():
    X = pd.DataFrame(small(6), columns=[f"gene {i}" for i in range(30)])
    path = spcafs_path(X, n_components=2, n_gammas=3)
    assert path.feature_names[3] == "gene 3"
    assert spcafs_path(X.to_numpy(), n_components=2, n_gammas=3).feature_names[3] == "x3"


def test_the_number_of_components_is_found_as_spcafs_finds_it():
    X = small(7)
    assert spcafs_path(X, n_gammas=2).n_components == SPCAFS().fit(X).n_components_
    assert spcafs_path(X, n_components=0.5, n_gammas=2).n_components == (
        SPCAFS(n_components=0.5).fit(X).n_components_
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_gammas": 1}, "n_gammas"),
        ({"p": 1.5}, "p must"),
        ({"tol": -1.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"n_components": 99}, "n_components"),
    ],
)
def test_what_cannot_be_is_refused_with_the_rule(settings, message):
    with pytest.raises(ParameterError, match=message):
        spcafs_path(small(), **{"n_components": 2, **settings})
    if settings != {"n_components": 99}:  # the one rule that needs the size of the table
        with pytest.raises(ParameterError, match=message):
            spcafs_path(object(), **{"n_components": 2, **settings})


def test_missing_values_are_refused():
    X = small()
    X[3, 4] = np.nan
    with pytest.raises(DataError, match="finite"):
        spcafs_path(X)


def test_it_introduces_itself(path):
    assert repr(path).startswith("<SPCAFSPath: 20 points, gamma from 0.00")
    assert repr(path).endswith("3 active rows of 2308; .to_frame() has them>")
