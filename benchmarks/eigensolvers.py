"""The block eigensolver against scipy's LOBPCG inside the same reweighting loop.

    python benchmarks/eigensolvers.py

Behind docs/decisions/0002-eigensolver.md. Both get the same start, the same tolerance and the same
diagonal preconditioner (LOBPCG takes one diagonal for all vectors: the mean Ritz value is used).
"""

import statistics
import warnings

import numpy as np
from scipy.sparse.linalg import lobpcg

import keepers.solvers.spcafs as solver
from keepers import datasets
from keepers.linalg.moments import column_moments
from keepers.linalg.scatter import as_scatter
from keepers.linalg.spectrum import principal_subspace
from keepers.linalg.subspace import Subspace, leading_subspace
from keepers.solvers.penalty import RowPenalty
from measure import benchmark_data, seconds
from spcafs import wide_planted


def by_lobpcg(operator, shift, start, *, tol=1e-2, max_iter=50):
    """`leading_subspace` with scipy's LOBPCG inside."""
    column = shift[:, np.newaxis]
    products = 0

    def apply(V):
        nonlocal products
        products += 1
        V = V.reshape(operator.size, -1)
        return operator.matmat(V) - column * V

    quotient = np.maximum(np.abs(shift + start.values.mean()), 1e-3 * np.abs(start.values).max())

    def precondition(V):
        return V.reshape(operator.size, -1) / quotient[:, np.newaxis]

    scale = np.sqrt((start.images**2).sum(axis=0).max())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values, vectors = lobpcg(
            apply,
            start.vectors.copy(),
            M=precondition,
            largest=True,
            tol=tol * scale,
            maxiter=max_iter,
        )
    images = operator.matmat(vectors)
    return Subspace(vectors, images, values, 0.0, products + 1)


def timed(inner, tol, operator, start, penalty):
    """Seconds and result of one fit with ``inner`` as its eigensolver."""
    solver.leading_subspace, solver.INNER_TOL = inner, tol
    results = []
    took = seconds(
        lambda: results.append(solver.solve_block(operator, start, penalty, max_iter=300, tol=1e-8))
    )
    return took, results[0]


def main() -> None:
    """Per data set: ours, then LOBPCG with the loosest tolerance that reaches our objective."""
    tables = {
        "SRBCT 83 x 2308": (datasets.load("srbct").X, 3),
        "LEUML 72 x 3571": (benchmark_data("LEUML"), 10),
        "AR 2600 x 2200": (benchmark_data("AR"), 99),
        "planted 300 x 50,000": (wide_planted(300, 50_000, 500), 10),
    }
    print(
        "data, gamma/lambda_1: ours s (products, f) | LOBPCG s (products, f, its tolerance) | ratio"
    )
    for name, (X, m) in tables.items():
        if X is None:
            continue
        operator = as_scatter(X, column_moments(X), m)
        start = principal_subspace(operator, m, np.random.default_rng(0))
        for ratio in (0.01, 0.03):
            penalty = RowPenalty(ratio * start.values[0], 1.0, 1e-12)
            repeats = 3 if m < 50 else 1
            runs = [timed(leading_subspace, 1e-2, operator, start, penalty) for _ in range(repeats)]
            ours, a = statistics.median(took for took, _ in runs), runs[-1][1]
            enough = a.objective[-1] + 1e-6 * abs(a.objective[-1])
            for tol in (1e-2, 1e-3, 1e-4, 1e-5):
                runs = [timed(by_lobpcg, tol, operator, start, penalty) for _ in range(repeats)]
                theirs, b = statistics.median(took for took, _ in runs), runs[-1][1]
                if b.objective[-1] <= enough:
                    break
            print(
                f"{name}, {ratio}: {ours:.2f} ({a.n_products}, {a.objective[-1]:.8g}) | "
                f"{theirs:.2f} ({b.n_products}, {b.objective[-1]:.8g}, {tol:g}) | "
                f"{theirs / ours:.1f}",
                flush=True,
            )


main()
