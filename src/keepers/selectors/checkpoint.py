"""A fit that can be killed: what it takes to go on, in a file that is whole at any moment."""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keepers.data.writing import whole_file
from keepers.exceptions import ParameterError
from keepers.linalg.moments import ColumnMoments
from keepers.solvers.saved_run import SavedRun

__all__ = ["Checkpoint", "SavedFit"]

LAYOUT = 1
# Sums over the same rows may differ in their last digits, by the number of threads for example.
SAME = 1e-6


@dataclass(frozen=True)
class SavedFit:
    """How far a fit had come."""

    gamma: float
    width: int
    solver: str
    run: SavedRun


@dataclass(frozen=True)
class Checkpoint:
    """A file for one fit: these settings on these data."""

    path: Path
    settings: dict[str, Any]
    moments: ColumnMoments
    penalised: np.ndarray
    """Penalty weight (and group) of every column."""

    def load(self) -> SavedFit | None:
        """What the file holds; None if there is none."""
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                stored = dict(archive)
            header = json.loads(str(stored.pop("header")))
            of_data = [stored.pop(name) for name in ("mean", "sum_of_squares", "penalised")]
            told = (header["layout"], header["settings"], header["n_samples"])
            saved = SavedFit(header["gamma"], header["width"], header["solver"], stored)
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise ParameterError(
                f"{self.path} is not a checkpoint of keepers. Remove it, or give another path."
            ) from error
        self._refuse_another_fit(told, of_data)
        return saved

    def _refuse_another_fit(self, told: tuple[Any, ...], of_data: list[np.ndarray]) -> None:
        expected = (LAYOUT, json.loads(json.dumps(self.settings)), self.moments.n_samples)
        mean, squares, penalised = of_data
        spread = np.sqrt(self.moments.variance)
        same = (
            told == expected
            and mean.shape == self.moments.mean.shape
            and np.all(np.abs(mean - self.moments.mean) <= SAME * spread)
            and np.allclose(squares, self.moments.sum_of_squares, rtol=SAME, atol=0.0)
            and np.array_equal(penalised, self.penalised)
        )
        if not same:
            raise ParameterError(
                f"checkpoint must belong to this fit; {self.path} was written by one with other "
                "settings or data. Remove it, or give another path."
            )

    def save(self, fit: SavedFit) -> None:
        """Replace the file, as a whole."""
        header = {
            "layout": LAYOUT,
            "settings": self.settings,
            "n_samples": self.moments.n_samples,
            "gamma": fit.gamma,
            "width": fit.width,
            "solver": fit.solver,
        }
        with whole_file(self.path, force=True) as temporary, temporary.open("wb") as stream:
            arrays: dict[str, Any] = {
                "header": np.array(json.dumps(header)),
                "mean": self.moments.mean,
                "sum_of_squares": self.moments.sum_of_squares,
                "penalised": self.penalised,
                **fit.run,
            }
            np.savez(stream, **arrays)
