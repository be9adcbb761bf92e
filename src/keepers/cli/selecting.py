"""What `keepers select` does: fit, write, show."""

import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keepers.cli.fitting import fit_with_progress
from keepers.cli.shown import KeptFeature, printable
from keepers.data import scale_samples
from keepers.data.recipe import Recipe, checksum
from keepers.data.table import LabelledTable
from keepers.data.wording import listed
from keepers.evaluation.environment import package_versions
from keepers.exceptions import DataError
from keepers.linalg.moments import column_moments
from keepers.reporting.selection import make_report, nearest_neighbours

__all__ = [
    "Selection",
    "as_json",
    "in_words",
    "ready_to_select",
    "recipe_of",
    "selected",
    "write_report",
]

DEPTH = 500
"""How many of the kept features are compared with each other for the redundancy column."""


@dataclass(frozen=True)
class Selection:
    """A table, a fitted selector, and what it keeps."""

    table: LabelledTable
    X: Any
    """Its values as scaled for the selection."""
    scaling: str
    selector: Any
    kept: tuple[KeptFeature, ...]
    variance_share: float
    seconds: float

    @property
    def columns(self) -> np.ndarray:
        """Kept columns in the order of the table."""
        return np.sort([feature.column for feature in self.kept])


def ready_to_select(table: LabelledTable, scaling: str) -> Any:
    """The values of a table as a selector takes them: without gaps, scaled."""
    if table.n_samples < 2:
        raise DataError(
            f"A selection needs at least 2 samples; {table.name} has 1. Check that samples are "
            "rows and features are columns."
        )
    _refuse_gaps(table)
    return scale_samples(table.X, scaling)


def selected(
    table: LabelledTable, X: Any, scaling: str, selector: Any, threads: int | None, quiet: bool
) -> Selection:
    """Fit, and describe each kept feature."""
    began = time.perf_counter()
    fit_with_progress(selector, X, threads=threads, quiet=quiet)
    seconds = time.perf_counter() - began
    top = selector.top()
    spread = column_moments(X).sum_of_squares
    neighbour, correlation = nearest_neighbours(X, top.indices, DEPTH)
    kept = tuple(
        KeptFeature(
            column=int(column),
            name=str(table.feature_names[column]),
            score=float(top.scores[rank]),
            variance=float(spread[column] / table.n_samples),
            neighbour=_name_of(table, neighbour, rank),
            correlation=float(correlation[rank]) if rank < len(correlation) else float("nan"),
        )
        for rank, column in enumerate(top.indices)
    )
    share = float(spread[top.indices].sum() / spread.sum())
    return Selection(table, X, scaling, selector, kept, share, seconds)


def _refuse_gaps(table: LabelledTable) -> None:
    """Name the columns with missing values; the selector knows their numbers only."""
    values = table.X.data if table.is_sparse else table.X
    if np.isfinite(values.sum()) or np.isfinite(values).all():
        return
    if table.is_sparse:
        gaps = np.bincount(table.X.indices[~np.isfinite(values)], minlength=table.n_features)
    else:
        gaps = (~np.isfinite(values)).sum(axis=0)
    named = [f"{printable(str(table.feature_names[j]), 40)} ({gaps[j]})" for j in gaps.nonzero()[0]]
    raise DataError(
        f"Values must be finite numbers; NaN or infinity is in {len(named)} of {table.n_features} "
        f"columns (how often): {listed(named)}. Leave them out with --drop, or fill the gaps first."
    )


def _name_of(table: LabelledTable, neighbour: np.ndarray, rank: int) -> str | None:
    if rank >= len(neighbour) or neighbour[rank] < 0:
        return None
    return str(table.feature_names[neighbour[rank]])


def write_report(
    selection: Selection,
    path: Path,
    image_shape: tuple[int, int] | None,
    columns_first: bool,
    command: str,
    force: bool,
) -> None:
    """Write the page about the selection; ``command`` repeats it."""
    table = selection.table
    make_report(
        selection.selector,
        selection.X,
        feature_names=table.feature_names,
        sample_names=table.sample_names,
        labels=table.labels,
        image_shape=image_shape,
        image_order="F" if columns_first else "C",
        source=table.name,
        command=command,
        seconds=selection.seconds,
    ).save(path, force=force)


def recipe_of(selection: Selection) -> Recipe:
    """What it takes to keep the same features of another table."""
    table, selector = selection.table, selection.selector
    params = {name: value for name, value in selector.get_params().items() if name != "callback"}
    return Recipe(
        features=tuple(feature.name for feature in selection.kept),
        scores=tuple(feature.score for feature in selection.kept),
        method=type(selector).__name__,
        params=params,
        scaling=selection.scaling,
        source=table.name,
        shape=(table.n_samples, table.n_features),
        checksum=checksum(table.X, table.feature_names),
        versions={"python": platform.python_version(), **package_versions()},
    )


def as_json(selection: Selection, written: dict[str, Path | None]) -> dict[str, Any]:
    """The result for machines."""
    recipe = recipe_of(selection)
    return {
        "data": recipe.source,
        "n_samples": recipe.shape[0],
        "n_features": recipe.shape[1],
        "method": recipe.method,
        "params": recipe.params,
        "scaling": recipe.scaling,
        "k": len(selection.kept),
        "variance_share": selection.variance_share,
        "seconds": selection.seconds,
        "features": [
            {"rank": rank, **vars(feature)} for rank, feature in enumerate(selection.kept, 1)
        ],
        "written": {what: str(path) for what, path in written.items() if path is not None},
    }


def in_words(selection: Selection, written: dict[str, Path | None]) -> str:
    """The result in a sentence, and a line for each file."""
    table = selection.table
    sentences = [
        f"{type(selection.selector).__name__} kept {len(selection.kept)} of {table.n_features} "
        f"features of {table.name} ({table.n_samples} samples) in {selection.seconds:.1f} s; they "
        f"hold {selection.variance_share:.1%} of the variance."
    ]
    sentences += [f"{what}: {path}" for what, path in written.items() if path is not None]
    return "\n".join(sentences)
