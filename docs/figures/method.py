"""Figures of the page on SPCAFS: the penalty, the two solvers, the effect of gamma and p.

Everything is computed here, on the bundled table of 83 samples and 2308 genes.
"""

from pathlib import Path

import numpy as np

from figures.drawing import BLUE, GREEN, GREY, INK, ORANGE, board, keep_figure, keep_text
from keepers import SPCAFS, datasets

__all__ = ["write"]

COMPONENTS = 3
EXPONENTS = {1.0: BLUE, 0.5: GREEN, 0.1: ORANGE}
SHARES = 10.0 ** np.arange(-4.0, 0.51, 0.5)  # of the leading eigenvalue


def write(folder: Path) -> list[Path]:
    """Four figures and a table."""
    X, _, _ = datasets.load("srbct")
    leading = float(np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[0] ** 2)
    fits = {
        (share, p): SPCAFS(n_components=COMPONENTS, gamma=share * leading, p=p).fit(X)
        for p in EXPONENTS
        for share in SHARES
    }
    few = X[:, np.sort(np.argsort(-X.var(axis=0))[:300])]
    pair = {
        solver: SPCAFS(n_components=COMPONENTS, gamma=0.03 * leading, solver=solver).fit(few)
        for solver in ("dense", "block")
    }
    return [
        keep_figure(draw_penalty(), folder / "penalty.svg"),
        keep_figure(draw_gamma(fits), folder / "gamma.svg"),
        keep_figure(draw_solvers(pair), folder / "solvers.svg"),
        keep_text(folder / "solvers-summary.md", describe_solvers(pair)),
    ]


def draw_penalty():
    """Left: |w|^p. Right: for p = 1, the quadratic that touches it at the last |w|."""
    figure, (left, right) = board(1, 2, (9, 3.3))
    norms = np.linspace(0, 1, 400)
    for p, colour in EXPONENTS.items():
        left.plot(norms, norms**p, color=colour, label=f"p = {p:g}")
    left.step([0, 0, 1], [0, 1, 1], color=INK, ls=":", lw=1.2, label="counting rows")
    left.set(xlabel="norm of a row", title="Penalty of a row", ylim=(0, 1.15))
    left.legend(loc="lower right")
    right.plot(norms, norms, color=INK, lw=1.8, label="the penalty, p = 1")
    for touch, colour in ((0.5, BLUE), (0.15, ORANGE)):
        majorant = touch + (norms**2 - touch**2) / (2 * touch)
        shown = majorant < 1.15
        right.plot(norms[shown], majorant[shown], color=colour, label=f"majorant at {touch:g}")
        right.plot([touch], [touch], "o", color=colour, ms=5)
    right.set(xlabel="norm of a row", title="The quadratic that replaces it", ylim=(0, 1.15))
    right.legend(loc="lower right")
    return figure


def draw_gamma(fits):
    """Left: active rows. Right: the largest row norms for p = 1."""
    figure, (left, right) = board(1, 2, (9, 3.6))
    for p, colour in EXPONENTS.items():
        active = [fits[share, p].n_active_ for share in SHARES]
        left.loglog(SHARES, active, "o-", color=colour, ms=4, label=f"p = {p:g}")
    left.axhline(COMPONENTS, color=INK, lw=1, ls="--")
    left.text(SHARES[0], COMPONENTS * 1.15, f"m = {COMPONENTS}: the minimum", fontsize=8.5)
    left.axvline(0.1, color=GREY, lw=1, ls=":")
    left.text(0.115, 1400, 'gamma="scale"', fontsize=8.5)
    left.set(xlabel="gamma over the leading eigenvalue", title="Active rows, of 2308")
    left.legend(loc="lower left", bbox_to_anchor=(0, 0.12))
    shades = ("#9ecae1", "#4292c6", "#08519c", INK)
    for share, shade in zip(SHARES[[0, 5, 6, 8]], shades, strict=True):
        scores = np.sort(fits[share, 1.0].scores_)[::-1][:400]
        right.loglog(np.arange(1, 401), scores, color=shade, lw=1.8, label=f"{share:.2g}")
    right.legend(
        loc="center right", bbox_to_anchor=(1, 0.6), title="gamma over the\nleading eigenvalue"
    )
    right.set(xlabel="rank of the feature", ylim=(1e-9, 2), title="The 400 largest scores, p = 1")
    return figure


def draw_solvers(pair):
    """Left: how far f is above its minimum. Right: the scores of one solver against the other's."""
    figure, (left, right) = board(1, 2, (9, 3.6))
    marks = {"dense": (ORANGE, "s", "dense: Algorithm 1 as printed"), "block": (BLUE, "o", "block")}
    lowest = min(fit.objective_[-1] for fit in pair.values())
    scale = abs(lowest)
    for solver, (colour, mark, label) in marks.items():
        gap = (pair[solver].objective_ - lowest) / scale
        steps = np.arange(1, len(gap) + 1)
        shown = gap > 1e-12
        left.semilogy(steps[shown], gap[shown], color=colour, marker=mark, ms=3, label=label)
    left.set(xlabel="step", title="f above its minimum, relative")
    left.legend(loc="upper right")
    right.loglog(pair["dense"].scores_, pair["block"].scores_, "o", color=BLUE, ms=3, alpha=0.6)
    ends = [1e-9, 1]
    right.plot(ends, ends, color=INK, lw=0.8, zorder=0)
    right.set(xlabel="score, dense", ylabel="score, block", title="The same scores")
    return figure


def describe_solvers(pair) -> str:
    """The numbers behind the figure."""
    dense, block = pair["dense"], pair["block"]
    gap = abs(dense.objective_[-1] - block.objective_[-1]) / abs(dense.objective_[-1])
    same = len(set(dense.top(100).indices) & set(block.top(100).indices))
    return (
        f"On the 300 genes of largest variance, gamma = 0.03 times the leading eigenvalue: dense "
        f"{dense.n_iter_} steps, block {block.n_iter_}; the objectives differ by {gap:.0e} of "
        f"their size; {same} of the 100 best features are the same.\n"
    )
