"""A fit that can be killed: what it takes to resume, in a file that is whole at any moment."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from keepers.data.replacing import whole_file
from keepers.exceptions import ParameterError, shorten
from keepers.linalg.moments import ColumnMoments
from keepers.linalg.sketch import TableSketch
from keepers.linalg.subspace import Subspace
from keepers.selectors.saved_passes import SavedPasses, read_arrays
from keepers.solvers.penalty import RowPenalty
from keepers.solvers.saved_run import SavedRun, refuse_damaged

LAYOUT = 3
# Sums over the same rows may differ in their last digits, by the number of threads for example.
SAME = 1e-8
_OF_DATA = ("mean", "sum_of_squares", "products", "penalised")
_WAY_OUT = "Delete the file, or give another name."


@dataclass(frozen=True)
class SavedFit:
    """How far a fit has come."""

    gamma: float
    width: int
    solver: str
    run: Subspace | SavedRun
    """Where the iteration starts: from PCA, or from what a file holds."""


def check_checkpoint(path: Any, settings: dict[str, Any]) -> None:
    """Raise, before any data are read, if no fit with these settings can keep its state there."""
    path = check_checkpoint_path(path)
    if path.exists():
        header, _ = _read(path)
        _refuse_other_settings(path, header, settings)


def check_checkpoint_path(path: Any) -> Path:
    """The path of a file that is there, or can be written; raise if it cannot be."""
    if not isinstance(path, (str, os.PathLike)) or "\0" in os.fspath(path):
        raise ParameterError(
            f"checkpoint must be the path of a file, or None; got {shorten(path)}."
        )
    path = Path(path)
    if path.is_dir():
        raise ParameterError(f"checkpoint must be a file; {path} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise ParameterError(f"There is no folder {path.parent} for checkpoint. Make it first.")
    if not os.access(path.resolve().parent, os.W_OK | os.X_OK):
        raise ParameterError(
            f"checkpoint must be in a folder that can be written; {path.parent} cannot. Name "
            "another one."
        )
    return path


@dataclass(frozen=True)
class Checkpoint:
    """A file for one fit: these settings on these data."""

    path: Path
    settings: dict[str, Any]
    sketch: TableSketch
    """By which the data are recognised."""
    penalised: np.ndarray
    """Penalty weight (and group) of every column."""
    passes: SavedPasses | None = None
    """The passes since the last step, which are not needed once the next one is saved."""

    def load(self, penalty: RowPenalty, size: int) -> SavedFit | None:
        """What the file holds, for rows of W with this penalty; None if there is none."""
        if not self.path.exists():
            return None
        header, arrays = _read(self.path)
        _refuse_other_settings(self.path, header, self.settings)
        of_data = {name: arrays.pop(name) for name in _OF_DATA}
        if not np.array_equal(of_data["penalised"], self.penalised):
            raise _of_other_settings(self.path)
        if not self._is_of_these_data(header, of_data):
            raise ParameterError(
                f"checkpoint must belong to this fit; {self.path} was written by one on other "
                f"data. {_WAY_OUT}"
            )
        saved = SavedFit(header["gamma"], header["width"], header["solver"], arrays)
        try:
            if not 1 <= saved.width <= min(header["n_samples"] - 1, size):
                raise ValueError("width")
            of_fit = replace(penalty, gamma=saved.gamma)
            with np.errstate(all="ignore"):
                refuse_damaged(arrays, saved.solver, of_fit, size, saved.width)
        except ValueError as error:
            raise _not_a_checkpoint(self.path) from error
        return saved

    def _is_of_these_data(self, header: dict[str, Any], of_data: dict[str, np.ndarray]) -> bool:
        moments = ColumnMoments(header["n_samples"], of_data["mean"], of_data["sum_of_squares"])
        stored = TableSketch(moments, self.sketch.columns, of_data["products"])
        with np.errstate(all="ignore"):
            return self.sketch.same_as(stored, SAME)

    def save(self, fit: SavedFit, run: SavedRun) -> None:
        """Replace the file, as a whole, by what it takes to resume the fit from here."""
        moments = self.sketch.moments
        header = {
            "layout": LAYOUT,
            "settings": self.settings,
            "n_samples": moments.n_samples,
            "gamma": fit.gamma,
            "width": fit.width,
            "solver": fit.solver,
        }
        with whole_file(self.path, force=True) as temporary, temporary.open("wb") as stream:
            arrays: dict[str, Any] = {
                "header": np.array(json.dumps(header)),
                "mean": moments.mean,
                "sum_of_squares": moments.sum_of_squares,
                "products": self.sketch.products,
                "penalised": self.penalised,
                **run,
            }
            np.savez(stream, **arrays)
        if self.passes is not None:
            self.passes.forget_step()


def _refuse_other_settings(path: Path, header: dict[str, Any], settings: dict[str, Any]) -> None:
    if header["settings"] != json.loads(json.dumps(settings)):
        raise _of_other_settings(path)
    if not isinstance(settings["gamma"], str) and header["gamma"] != settings["gamma"]:
        raise _not_a_checkpoint(path)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a sound file; whatever else it is, one sentence says so."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise ParameterError(
            f"checkpoint {path} cannot be read: {error.strerror or error}. {_WAY_OUT}"
        ) from error
    with stream:
        try:
            arrays = read_arrays(stream)
            header = json.loads(arrays.pop("header").item())
            layout = header["layout"]
        except Exception as error:  # a damaged archive raises anything
            raise _not_a_checkpoint(path) from error
    if layout != LAYOUT:
        raise ParameterError(
            f"checkpoint must be of this version of keepers; {path} was written by another one "
            f"(layout {str(layout)[:20]}; this one reads {LAYOUT}). {_WAY_OUT}"
        )
    if not _is_sound(header) or not all(_is_float(arrays.get(name)) for name in _OF_DATA):
        raise _not_a_checkpoint(path)
    return header, arrays


def _is_sound(header: Any) -> bool:
    """Whether every entry of the header is what a fit wrote there."""
    return (
        isinstance(header.get("settings"), dict)
        and all(type(header.get(name)) is int for name in ("n_samples", "width"))
        and type(header.get("gamma")) is float
        and 0.0 < header["gamma"] < float("inf")
        and header.get("solver") in ("block", "dense")
    )


def _is_float(array: np.ndarray | None) -> bool:
    return array is not None and array.dtype == np.float64


def _not_a_checkpoint(path: Path) -> ParameterError:
    return ParameterError(f"{path} is not a checkpoint of keepers, or is damaged. {_WAY_OUT}")


def _of_other_settings(path: Path) -> ParameterError:
    return ParameterError(
        f"checkpoint must belong to this fit; {path} was written by one with other settings. "
        f"{_WAY_OUT}"
    )
