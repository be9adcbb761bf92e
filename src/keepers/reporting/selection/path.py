"""The regularisation path in the report: checked, and drawn in the page's colours."""

from dataclasses import dataclass
from typing import Any

from keepers._protocols import IndexArray
from keepers.exceptions import DataError
from keepers.reporting.selection.svg import ACCENT, INK, LINE, MUTED, drawing_board, inline_svg
from keepers.tuning.gamma_path import COLOURS, SPCAFSPath, draw_counts, draw_scores

__all__ = ["ReportedPath", "draw_reported_path", "reported_path"]

MOST_NAMED = 8


@dataclass(frozen=True)
class ReportedPath:
    """A path, the names of its first features, and where the reported selection lies on it."""

    path: SPCAFSPath
    named: IndexArray
    names: tuple[str, ...]
    gamma: float | None
    """The penalty weight of the selection, if it is one on this path."""


def reported_path(path: Any, selector: Any, names: list[str]) -> ReportedPath | None:
    """The path with what the page needs beside it; refused if it is of another table."""
    if path is None:
        return None
    if not isinstance(path, SPCAFSPath):
        raise DataError(
            f"path must be what keepers.spcafs_path(X) returns, or None; got {type(path).__name__}."
        )
    if path.scores.shape[1] != len(names):
        raise DataError(
            f"path must be of the same table as the selection, with {len(names)} features; got one "
            f"with {path.scores.shape[1]}. Call keepers.spcafs_path with the X of the report."
        )
    gamma = getattr(selector, "gamma_", None)
    settings = (getattr(selector, "n_components_", None), getattr(selector, "p", None))
    if settings != (path.n_components, path.p) or not _within(path, gamma):
        gamma = None
    named = path.entry[:MOST_NAMED]
    return ReportedPath(path, named, tuple(names[feature] for feature in named), gamma)


def _within(path: SPCAFSPath, gamma: Any) -> bool:
    return gamma is not None and bool(path.gammas[0] <= gamma <= path.gammas[-1])


def draw_reported_path(reported: ReportedPath) -> str:
    """An ``<svg>`` of scores, live rows and variance along gamma; names stand beside it."""
    path = reported.path
    with drawing_board("path", 560, 400) as board:
        upper, lower = board.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        draw_scores(path, upper, reported.named, COLOURS, LINE)
        right = draw_counts(path, lower, (ACCENT, INK))
        upper.tick_params(labelbottom=False)
        for axes in (upper, lower, right):
            axes.tick_params(which="both", length=0)
        lower.tick_params(axis="y", labelcolor=ACCENT)
        if reported.gamma is not None:
            share = reported.gamma / path.largest_eigenvalue
            for axes in (upper, lower):
                axes.axvline(share, color=MUTED, linewidth=1.0, linestyle=":")
        return inline_svg(board, "Scores, live features and explained variance along gamma")
