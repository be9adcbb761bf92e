"""SPCAFS against Algorithm 1 as printed and against scikit-learn's PCA and TruncatedSVD."""

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA, TruncatedSVD

from keepers import SPCAFS, datasets
from measure import benchmark_data, peak_over_data, seconds, side_by_side

# Where the dense iteration would take minutes it is stopped after this many steps; its time, and
# so the ratio, is then a lower bound.
DENSE_STEPS = 40


def gamma_of(X: np.ndarray, ratio: float) -> float:
    """``ratio`` times the leading eigenvalue of the scatter."""
    centred = X - X.mean(axis=0)
    gram = centred @ centred.T if len(X) < X.shape[1] else centred.T @ centred
    return ratio * float(np.linalg.norm(gram, 2))


def against_dense(X: np.ndarray, m: int, ratio: float, max_iter: int) -> dict[str, object]:
    """Seconds of ``solver="block"`` and ``solver="dense"``, and the overlap of the top 100."""
    settings = {"n_components": m, "gamma": gamma_of(X, ratio)}
    block = SPCAFS(solver="block", **settings)
    dense = SPCAFS(solver="dense", max_iter=max_iter, **settings)
    block.fit(X)
    ours = float(np.median([seconds(lambda: block.fit(X)) for _ in range(5)]))
    theirs = seconds(lambda: dense.fit(X))
    overlap = len(set(block.top(100).indices) & set(dense.top(100).indices))
    return {
        "ours_s": ours,
        "theirs_s": theirs,
        "faster": theirs / ours,
        "dense_converged": bool(dense.converged_),
        "dense_steps": dense.n_iter_,
        "block_steps": block.n_iter_,
        "same_top_100": overlap if dense.converged_ else None,
    }


def wide_planted(n: int, d: int, informative: int) -> np.ndarray:
    """Noise with eleven groups of samples in the first features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X[:, :informative] += 2 * rng.standard_normal((11, informative))[rng.integers(0, 11, n)]
    return X


def topics(n: int, d: int, density: float) -> sp.csr_array:
    """A sparse table of counts: every row draws from one of eleven topics."""
    rng = np.random.default_rng(0)
    per_row = int(d * density)
    favourites = [rng.permutation(d)[: d // 20] for _ in range(11)]
    rows = np.repeat(np.arange(n), per_row)
    common = rng.integers(0, d, (n, per_row))
    topical = np.array([rng.choice(favourites[k], per_row) for k in rng.integers(0, 11, n)])
    columns = np.where(rng.random((n, per_row)) < 0.3, topical, common)
    values = 1.0 + rng.poisson(1.0, n * per_row)
    return sp.csr_array((values, (rows, columns.ravel())), shape=(n, d))


def srbct() -> dict[str, object]:
    """83 x 2308, m = 3, gamma = 0.03 lambda_1: at least 200 times faster, same top 100."""
    return against_dense(datasets.load("srbct").X, 3, 0.03, max_iter=1000)


def leukaemia(m: int) -> dict[str, object]:
    """72 x 3571: at least 100 times faster."""
    X = benchmark_data("LEUML")
    rng = np.random.default_rng(1)
    synthetic = rng.standard_normal((72, 3571)) * rng.lognormal(0, 0.5, 3571)
    synthetic[:, :200] += 2 * rng.standard_normal((6, 200))[rng.integers(0, 6, 72)]
    cases = {"synthetic": against_dense(synthetic, m, 0.03, DENSE_STEPS)}
    if X is not None:
        cases["LEUML"] = against_dense(X, m, 0.03, DENSE_STEPS)
    return cases


def faces(ratio: float) -> dict[str, object]:
    """2600 x 2200, m = 99: at least 3 times faster than dense, at most 3 times PCA(99)."""
    X = benchmark_data("AR")
    name = "AR"
    if X is None:
        name = "synthetic"
        rng = np.random.default_rng(2)
        X = rng.standard_normal((2600, 150)) * np.geomspace(30, 1, 150)
        X = X @ rng.standard_normal((150, 2200)) + rng.standard_normal((2600, 2200))
    settings = {"n_components": 99, "gamma": gamma_of(X, ratio)}
    dense = SPCAFS(solver="dense", max_iter=300, **settings)
    result: dict[str, object] = side_by_side(
        lambda: SPCAFS(**settings).fit(X), lambda: PCA(99, random_state=0).fit(X), repeats=3
    )
    dense_s = seconds(lambda: dense.fit(X))
    result |= {
        "data": name,
        "gamma/lambda_1": ratio,
        "times_pca": result["ours_s"] / result["theirs_s"],
        "dense_s": dense_s,
        "faster_than_dense": dense_s / result["ours_s"],
        "dense_converged": bool(dense.converged_),
        "dense_steps": dense.n_iter_,
    }
    return result


def wide() -> dict[str, object]:
    """300 x 200,000, m = 10: at most 3 times PCA(10); peak memory at most twice the data."""
    X = wide_planted(300, 200_000, 2000)
    result: dict[str, object] = side_by_side(
        lambda: SPCAFS(n_components=10).fit(X), lambda: PCA(10, random_state=0).fit(X), repeats=3
    )
    result["times_pca"] = result["ours_s"] / result["theirs_s"]
    result["peak_over_data"] = peak_over_data(
        "import numpy as np\nfrom keepers import SPCAFS\n"
        "def build():\n"
        "    rng = np.random.default_rng(0)\n"
        "    X = rng.standard_normal((300, 200_000))\n"
        "    X[:, :2000] += 2 * rng.standard_normal((11, 2000))[rng.integers(0, 11, 300)]\n"
        "    return X\n"
        "def fit(X):\n    SPCAFS(n_components=10).fit(X)\n"
    )
    return result


def sparse() -> dict[str, object]:
    """CSR 20,000 x 20,000 with 1 % stored, m = 10: at most 4 times TruncatedSVD(10)."""
    X = topics(20_000, 20_000, 0.01)
    result: dict[str, object] = side_by_side(
        lambda: SPCAFS(n_components=10, random_state=0).fit(X),
        lambda: TruncatedSVD(10, random_state=0).fit(X),
        repeats=3,
    )
    result["times_svd"] = result["ours_s"] / result["theirs_s"]
    result["stored_share"] = X.nnz / (X.shape[0] * X.shape[1])
    return result


CASES = {
    "SRBCT 83 x 2308, m = 3": srbct,
    "72 x 3571, m = 1": lambda: leukaemia(1),
    "72 x 3571, m = 10": lambda: leukaemia(10),
    "2600 x 2200, m = 99, gamma/lambda_1 = 0.01": lambda: faces(0.01),
    "2600 x 2200, m = 99, gamma/lambda_1 = 0.03": lambda: faces(0.03),
    "300 x 200,000, m = 10": wide,
    "CSR 20,000 x 20,000, m = 10": sparse,
}
