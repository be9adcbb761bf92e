"""The path against single fits: its cost, and whether starting from a neighbour finds lower minima.

"Mid-range" is the point of the path at which about half of the rows live.
"""

from collections.abc import Iterable

import numpy as np

from keepers import SPCAFS, datasets
from keepers.linalg.scatter import as_scatter, column_moments
from keepers.linalg.spectrum import Subspace, orthonormal_subspace, principal_subspace
from keepers.methods.path import spcafs_path
from keepers.methods.spcafs import RowPenalty, solve_block
from measure import benchmark_data, side_by_side

# Objectives closer than this, relative to the variance held, count as equal.
EQUAL = 1e-6


def table(name: str) -> np.ndarray | None:
    """X; the samples of SRBCTML at unit length."""
    X = datasets.load("srbct").X if name == "srbct" else benchmark_data(name)
    if name == "SRBCTML" and X is not None:
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
    return X


def cost(name: str, m: object) -> dict[str, object] | None:
    """20 points against one fit at mid-range: at most 4 times its time."""
    X = table(name)
    if X is None:
        return None
    path = spcafs_path(X, n_components=m)
    middle = int(np.argmin(np.abs(path.n_active - X.shape[1] / 2)))
    fit = SPCAFS(n_components=m, gamma=path.gammas[middle])
    timed = side_by_side(lambda: spcafs_path(X, n_components=m), lambda: fit.fit(X))
    return {
        "components": path.n_components,
        "live_at_mid_range": int(path.n_active[middle]),
        "path_s": timed["ours_s"],
        "fit_s": timed["theirs_s"],
        "times_a_fit": timed["ours_s"] / timed["theirs_s"],
    }


def costs() -> dict[str, object]:
    """The six cases of the claim, as far as the data are there."""
    wanted = [("SRBCTML", 3), ("SRBCTML", "auto"), ("LEUML", 5), ("LEUML", "auto")]
    wanted += [("Imm40", 39), ("Imm40", "auto"), ("srbct", 3)]
    found = {f"{name}, m = {m}": cost(name, m) for name, m in wanted}
    return {name: outcome for name, outcome in found.items() if outcome is not None}


def homotopy(name: str, m: int) -> dict[str, object] | None:
    """Objectives at 20 gammas to 1e-8, from PCA and from the neighbour on either side."""
    X = table(name)
    if X is None:
        return None
    gammas = spcafs_path(X, n_components=m).gammas
    scatter = as_scatter(X, column_moments(X), m)
    pca = principal_subspace(scatter, m, np.random.default_rng(0))

    def solve(start: Subspace, gamma: float) -> tuple[Subspace, float]:
        penalty = RowPenalty(float(gamma), 1.0, 1e-12)
        result = solve_block(scatter, start, penalty, max_iter=2000, tol=1e-8)
        return orthonormal_subspace(scatter, result.W), float(result.objective[-1])

    def walk(along: Iterable[float]) -> np.ndarray:
        space, objectives = pca, []
        for gamma in along:
            space, objective = solve(space, gamma)
            objectives.append(objective)
        return np.array(objectives)

    cold, held = np.empty(len(gammas)), np.empty(len(gammas))
    for i, gamma in enumerate(gammas):
        space, cold[i] = solve(pca, gamma)
        held[i] = space.trace
    rising, falling = walk(gammas), walk(gammas[::-1])[::-1]
    scale = np.maximum(np.abs(cold), held)
    return {
        "rising": compared((rising - cold) / scale),
        "falling": compared((falling - cold) / scale),
    }


def compared(difference: np.ndarray) -> dict[str, object]:
    """At how many gammas it is lower than, equal to and higher than the start from PCA."""
    return {
        "lower": int(np.sum(difference < -EQUAL)),
        "equal": int(np.sum(np.abs(difference) <= EQUAL)),
        "higher": int(np.sum(difference > EQUAL)),
        "best": float(difference.min()),
        "worst": float(difference.max()),
        "last": float(difference[-1]),
    }


def minima() -> dict[str, object]:
    """Where a start from the neighbour ends lower than one from PCA."""
    wanted = [("SRBCTML", 3), ("SRBCTML", 7), ("LEUML", 5), ("LEUML", 10)]
    wanted += [("Imm40", 10), ("Imm40", 39), ("COIL20", 19)]
    found = {f"{name}, m = {m}": homotopy(name, m) for name, m in wanted}
    return {name: outcome for name, outcome in found.items() if outcome is not None}


CASES = {"path: cost": costs, "path: minima": minima}
