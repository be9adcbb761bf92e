"""What `keepers select` does: fit, write, show."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keepers._versions import package_versions
from keepers.cli.console import as_unicode, note
from keepers.cli.fitting import fit_with_progress
from keepers.cli.output import KeptFeature, print_json, print_kept, printable
from keepers.data import scale_samples
from keepers.data.recipe import Recipe, checksum
from keepers.data.table import LabelledTable
from keepers.data.wording import listed
from keepers.exceptions import DataError
from keepers.linalg.moments import column_moments
from keepers.reporting.selection import make_report, nearest_neighbours

__all__ = [
    "Selection",
    "TableSelection",
    "as_json",
    "finish",
    "in_words",
    "ready_to_select",
    "recipe_of",
    "selected",
    "write_report",
]

DEPTH = 500
"""How many of the kept features are compared with each other for the redundancy column."""


@dataclass(frozen=True)
class Selection(ABC):
    """A fitted selector, what it keeps, and of what."""

    scaling: str
    selector: Any
    kept: tuple[KeptFeature, ...]
    variance_share: float
    seconds: float

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the table."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Samples and features."""

    @abstractmethod
    def checksum(self) -> str:
        """What tells the table from others."""

    @property
    def columns(self) -> np.ndarray:
        """Kept columns in the order of the table."""
        return np.sort([feature.column for feature in self.kept])


@dataclass(frozen=True)
class TableSelection(Selection):
    """From a table in memory."""

    table: LabelledTable
    X: Any
    """Its values as scaled for the selection."""

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.table.name

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        return self.table.n_samples, self.table.n_features

    def checksum(self) -> str:
        """Of names and values."""
        return checksum(self.table.X, self.table.feature_names)


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
) -> TableSelection:
    """Fit, and describe each kept feature."""
    began = time.perf_counter()
    fit_with_progress(selector, X, table.feature_names, threads=threads, quiet=quiet)
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
    return TableSelection(scaling, selector, kept, share, seconds, table, X)


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
    selection: TableSelection,
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
        source=as_unicode(selection.name),
        command=command,
        seconds=selection.seconds,
    ).save(path, force=force)


def recipe_of(selection: Selection) -> Recipe:
    """What it takes to keep the same features of another table."""
    selector = selection.selector
    left_out = ("callback", "checkpoint")
    params = {name: value for name, value in selector.get_params().items() if name not in left_out}
    return Recipe(
        features=tuple(feature.name for feature in selection.kept),
        scores=tuple(feature.score for feature in selection.kept),
        method=type(selector).__name__,
        params=params,
        scaling=selection.scaling,
        source=as_unicode(selection.name),
        shape=selection.shape,
        checksum=selection.checksum(),
        versions=package_versions(),
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


def in_words(selection: Selection, written: dict[str, Path | None]) -> list[str]:
    """The result in a sentence, and a line for each file."""
    n_samples, n_features = selection.shape
    lines = [
        f"{type(selection.selector).__name__} kept {len(selection.kept)} of {n_features} "
        f"features of {selection.name} ({n_samples} samples) in {selection.seconds:.1f} s; they "
        f"hold {selection.variance_share:.1%} of the variance."
    ]
    return lines + [f"{what}: {path}" for what, path in written.items() if path is not None]


def finish(
    selection: Selection,
    written: dict[str, Path | None],
    *,
    json: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Save the recipe if one is asked for, and show the result."""
    if written["recipe"] is not None:
        recipe_of(selection).save(written["recipe"], force=force)
    if json:
        print_json(as_json(selection, written))
    else:
        print_kept(selection.kept)
        for line in in_words(selection, written):
            note(line, quiet=quiet)
