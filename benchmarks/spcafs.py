"""SPCAFS against scikit-learn's PCA and TruncatedSVD, and against Algorithm 1 as printed.

A case against PCA keeps the medians of alternating runs in one process with equal threads, the
ratio ``times``, the ``aim`` that it has to stay below, and what the fit did. ``objective_apart``
and ``same_top_100`` say how far the result is from that of plain steps (plain_reference.py).
"""

from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA, TruncatedSVD
from threadpoolctl import threadpool_info, threadpool_limits

from keepers import SPCAFS, datasets
from measure import benchmark_data, peak_over_data, seconds, side_by_side
from plain_reference import LIMIT, apart, fidelity

# Where the dense iteration would take minutes it is stopped after this many steps; its time, and
# so the ratio, is then a lower bound.
DENSE_STEPS = 40
# Repeats: runs of milliseconds are repeated more often.
SHORT, SMALL, LARGE = 0.3, 15, 3
# Seconds for the reference of each gamma where there are many of them.
SHORT_LIMIT = 6.0
DEFAULT = "default"
SHARES_BELOW_1 = (0.001, 0.01, 0.03, 0.1, 1.0)
PASSES_AIM = 8


def gamma_of(X: np.ndarray, ratio: float) -> float:
    """``ratio`` times the leading eigenvalue of the scatter."""
    centred = X - X.mean(axis=0)
    gram = centred @ centred.T if len(X) < X.shape[1] else centred.T @ centred
    return ratio * float(np.linalg.eigvalsh(gram)[-1])


# Tables


def wide_planted(n: int, d: int, informative: int) -> np.ndarray:
    """Noise with eleven groups of samples in the first features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X[:, :informative] += 2 * rng.standard_normal((11, informative))[rng.integers(0, 11, n)]
    return X


def noise(n: int, d: int) -> np.ndarray:
    """No structure."""
    return np.random.default_rng(0).standard_normal((n, d))


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


def srbct_table() -> np.ndarray:
    """83 x 2308."""
    return datasets.load("srbct").X


def synthetic_leukaemia() -> np.ndarray:
    """72 x 3571 with six groups of samples."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((72, 3571)) * rng.lognormal(0, 0.5, 3571)
    X[:, :200] += 2 * rng.standard_normal((6, 200))[rng.integers(0, 6, 72)]
    return X


def synthetic_faces() -> np.ndarray:
    """2600 x 2200 with 150 directions."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((2600, 150)) * np.geomspace(30, 1, 150)
    return X @ rng.standard_normal((150, 2200)) + rng.standard_normal((2600, 2200))


def leukaemia_table() -> np.ndarray:
    """LEUML, or one like it where it is not there."""
    X = benchmark_data("LEUML")
    return synthetic_leukaemia() if X is None else X


def faces_table() -> np.ndarray:
    """AR, or one like it where it is not there."""
    X = benchmark_data("AR")
    return synthetic_faces() if X is None else X


# Against PCA


def blas_threads() -> int:
    """What BLAS may use now."""
    return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


def what_it_did(fitted: SPCAFS) -> dict[str, object]:
    """The counts of a fit."""
    return {
        "steps": fitted.n_iter_,
        "products": fitted.n_products_,
        "n_active": fitted.n_active_,
        "stop_reason": fitted.stop_reason_,
    }


def against_pca(
    X: np.ndarray | sp.csr_array,
    m: int,
    aim: float,
    *,
    share: float | None = None,
    p: float = 1.0,
    repeats: int = LARGE,
    one_thread: bool = False,
    reference: float = 0.0,
) -> dict[str, object]:
    """One table: ``share`` is gamma / lambda_1 (None: the default).

    ``reference``: seconds that the reference may take; 0 is none.
    """
    gamma = "scale" if share is None else gamma_of(X, share)
    ours = SPCAFS(n_components=m, gamma=gamma, p=p, random_state=0)
    theirs = (TruncatedSVD if sp.issparse(X) else PCA)(m, random_state=0)

    def timed() -> dict[str, object]:
        ours.fit(X)
        often = SMALL if seconds(lambda: ours.fit(X)) < SHORT else repeats
        measured = side_by_side(lambda: ours.fit(X), lambda: theirs.fit(X), repeats=often)
        times = measured["ours_s"] / measured["theirs_s"]
        return {**measured, "times": times, "threads": blas_threads()}

    result = timed() | {"aim": aim, "gamma/lambda_1": DEFAULT if share is None else share}
    result |= what_it_did(ours)
    if reference:
        result |= fidelity(ours, X, reference)
    if one_thread:
        with threadpool_limits(1):
            result["one_thread"] = timed()
    return result


def small(make: Callable[[], np.ndarray], m: int, aim: float, **settings: object) -> dict:
    """A table of genes, with all threads and with one."""
    return against_pca(
        make(), m, aim, one_thread=True, **{"reference": LIMIT, "repeats": 5} | settings
    )


def below_1(make: Callable[[], np.ndarray], m: int, aim: float = 15) -> dict[str, object]:
    """With p = 0.5, over the range of gamma; the largest ratio counts."""
    shares = {
        f"{share:g}": small(make, m, aim, p=0.5, share=share, reference=SHORT_LIMIT)
        for share in SHARES_BELOW_1
    }
    slowest = max(shares, key=lambda share: shares[share]["times"])
    ratios = [case["one_thread"]["times"] for case in shares.values()]
    return {
        **{key: shares[slowest][key] for key in ("ours_s", "theirs_s", "times", "aim", "threads")},
        "gamma/lambda_1": float(slowest),
        "steps": shares[slowest]["steps"],
        "products": shares[slowest]["products"],
        "one_thread": {"times": max(ratios)},
        "shares": shares,
    }


def very_wide() -> dict[str, object]:
    """Also: peak memory at most twice the data."""
    result = against_pca(wide_planted(300, 200_000, 2000), 10, aim=1)
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


def planted(share: float) -> dict[str, object]:
    """300 x 50,000."""
    X = wide_planted(300, 50_000, 500)
    return against_pca(X, 10, 0.7, share=share, repeats=5, reference=LIMIT * (share == 0.1))


def sparse(n: int, d: int) -> dict[str, object]:
    """Counts of words, 1 % stored."""
    X = topics(n, d, 0.01)
    result = against_pca(X, 10, aim=2, reference=LIMIT)
    return result | {"stored_share": X.nnz / (n * d)}


# Passes over a table that is streamed


def streamed(make: Callable[[], np.ndarray | sp.csr_array], m: int) -> dict[str, object]:
    """How often the table is read, and how far the result is from that of a fit in memory."""
    X = make()
    ours = SPCAFS(n_components=m, random_state=0)
    with patch("keepers.methods.reading.choose_route", lambda *_: "stream"):
        taken = seconds(lambda: ours.fit_blocks(X))
    in_memory = SPCAFS(n_components=m, random_state=0).fit(X)
    return {
        "ours_s": taken,
        "passes": ours.n_passes_,
        "aim": PASSES_AIM,
        **what_it_did(ours),
        **apart(ours, in_memory),
    }


# Against Algorithm 1


def against_dense(X: np.ndarray, m: int, ratio: float, max_iter: int) -> dict[str, object]:
    """Seconds of ``solver="block"`` and ``solver="dense"``, and how far apart they end."""
    settings = {"n_components": m, "gamma": gamma_of(X, ratio)}
    block = SPCAFS(solver="block", **settings)
    dense = SPCAFS(solver="dense", max_iter=max_iter, **settings)
    block.fit(X)
    ours = float(np.median([seconds(lambda: block.fit(X)) for _ in range(SMALL)]))
    theirs = seconds(lambda: dense.fit(X))
    ends = apart(block, dense) if dense.converged_ else {"same_top_100": None}
    return {
        "ours_s": ours,
        "theirs_s": theirs,
        "faster": theirs / ours,
        "dense_converged": bool(dense.converged_),
        "dense_steps": dense.n_iter_,
        "block_steps": block.n_iter_,
        **ends,
    }


def srbct() -> dict[str, object]:
    """83 x 2308, m = 3, gamma = 0.03 lambda_1: at least 200 times faster, same top 100."""
    return against_dense(srbct_table(), 3, 0.03, max_iter=1000)


def leukaemia(m: int) -> dict[str, object]:
    """72 x 3571: at least 100 times faster."""
    X = benchmark_data("LEUML")
    cases = {"synthetic": against_dense(synthetic_leukaemia(), m, 0.03, DENSE_STEPS)}
    if X is not None:
        cases["LEUML"] = against_dense(X, m, 0.03, DENSE_STEPS)
    return cases


def faces(ratio: float) -> dict[str, object]:
    """2600 x 2200, m = 99: at least 3 times faster than dense, at most 3 times PCA(99)."""
    X = faces_table()
    settings = {"n_components": 99, "gamma": gamma_of(X, ratio)}
    dense = SPCAFS(solver="dense", max_iter=300, **settings)
    result: dict[str, object] = side_by_side(
        lambda: SPCAFS(**settings).fit(X), lambda: PCA(99, random_state=0).fit(X), repeats=LARGE
    )
    dense_s = seconds(lambda: dense.fit(X))
    result |= {
        "data": "synthetic" if benchmark_data("AR") is None else "AR",
        "gamma/lambda_1": ratio,
        "times_pca": result["ours_s"] / result["theirs_s"],
        "dense_s": dense_s,
        "faster_than_dense": dense_s / result["ours_s"],
        "dense_converged": bool(dense.converged_),
        "dense_steps": dense.n_iter_,
    }
    return result


AGAINST_PCA = {
    "AR 2600 x 2200, m = 99": lambda: against_pca(faces_table(), 99, 2, reference=LIMIT),
    "AR 2600 x 2200, m = 99, 0.03 lambda_1": lambda: against_pca(faces_table(), 99, 8, share=0.03),
    "LEUML 72 x 3571, m = 10": partial(small, leukaemia_table, 10, 8),
    "LEUML 72 x 3571, m = 10, 0.03 lambda_1": partial(small, leukaemia_table, 10, 20, share=0.03),
    "planted 300 x 50,000, m = 10, 0.03 lambda_1": partial(planted, 0.03),
    "planted 300 x 50,000, m = 10, 0.1 lambda_1": partial(planted, 0.1),
    "planted 300 x 50,000, m = 10, 1 lambda_1": partial(planted, 1.0),
    "planted 300 x 200,000, m = 10": very_wide,
    "CSR 50,000 x 10,000, m = 10": partial(sparse, 50_000, 10_000),
    "CSR 20,000 x 20,000, m = 10": partial(sparse, 20_000, 20_000),
    "noise 300 x 50,000, m = 10, 0.01 lambda_1": lambda: against_pca(
        noise(300, 50_000), 10, 10, share=0.01
    ),
    "SRBCT 83 x 2308, m = 3, p = 0.5": partial(below_1, srbct_table, 3),
    "SRBCT 83 x 2308, m = 10, p = 0.5": partial(below_1, srbct_table, 10),
    "LEUML 72 x 3571, m = 10, p = 0.5": partial(below_1, leukaemia_table, 10),
}
STREAMED = {
    "topics 20,000 x 8,000, m = 10": partial(streamed, partial(topics, 20_000, 8000, 0.01), 10),
    "planted 300 x 50,000, m = 10": partial(streamed, partial(wide_planted, 300, 50_000, 500), 10),
    "LEUML 72 x 3571, m = 10": partial(streamed, leukaemia_table, 10),
    "SRBCT 83 x 2308, m = 3": partial(streamed, srbct_table, 3),
}
AGAINST_DENSE = {
    "SRBCT 83 x 2308, m = 3": srbct,
    "72 x 3571, m = 1": lambda: leukaemia(1),
    "72 x 3571, m = 10": lambda: leukaemia(10),
    "2600 x 2200, m = 99, gamma/lambda_1 = 0.01": lambda: faces(0.01),
    "2600 x 2200, m = 99, gamma/lambda_1 = 0.03": lambda: faces(0.03),
}
CASES = (
    {f"against PCA: {name}": case for name, case in AGAINST_PCA.items()}
    | {f"streamed: {name}": case for name, case in STREAMED.items()}
    | AGAINST_DENSE
)
