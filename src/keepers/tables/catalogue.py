"""Data sets by name: two that come with keepers, and benchmark sets that the user provides."""

import hashlib
import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import FloatArray
from keepers._wording import closest
from keepers.exceptions import DataError, ParameterError, shorten


class Dataset(NamedTuple):
    """Values (samples x features), names of the columns, and classes, which no method uses."""

    X: FloatArray
    feature_names: NDArray[np.object_]
    y: NDArray[np.object_]


def load(name: str) -> Dataset:
    """Load a bundled data set.

    Parameters
    ----------
    name : {"srbct", "digits"}
        "srbct": 83 tumour samples x 2308 gene expression ratios, 4 kinds of small round blue cell
        tumours (Khan et al. 2001; SRBCTML in the SPCAFS paper). "digits": 1797 hand-written digits
        x 64 pixels, 10 classes (scikit-learn's copy of the UCI set).

    Examples
    --------
    >>> from keepers.tables.catalogue import load
    >>> X, feature_names, y = load("srbct")
    >>> X.shape
    (83, 2308)
    """
    if name not in _LOADERS:
        known = ", ".join(repr(known) for known in _LOADERS)
        raise ParameterError(f"The bundled data sets are {known}; got {shorten(name)}.")
    return _LOADERS[name]()


def names() -> list[str]:
    """Names of the bundled data sets."""
    return list(BUNDLED)


def _srbct() -> Dataset:
    with (files("keepers.tables") / "files" / "srbct.npz").open("rb") as stream:
        stored = np.load(stream, allow_pickle=False)
        ratios, labels = np.exp(stored["log_ratio"]), stored["y"]
    tumours = np.array(["", "BL", "EWS", "NB", "RMS"], dtype=object)
    genes = np.array([f"gene{j}" for j in range(1, ratios.shape[1] + 1)], dtype=object)
    return Dataset(ratios, genes, tumours[labels])


def _digits() -> Dataset:
    from sklearn.datasets import load_digits  # slow to import, and only needed here

    bunch = load_digits()
    return Dataset(bunch.data, np.array(bunch.feature_names, dtype=object), bunch.target)


_LOADERS: dict[str, Callable[[], Dataset]] = {"srbct": _srbct, "digits": _digits}
BUNDLED = tuple(_LOADERS)
FOLDER_VARIABLE = "KEEPERS_DATA"


@dataclass(frozen=True)
class CatalogueEntry:
    """A benchmark set; its file is not part of keepers.

    ``values`` and ``kind`` ("genes", "images", "text" ...) describe the numbers, ``source`` and
    ``licence_remark`` the origin and the right to pass the file on, ``sha256`` is its checksum.
    ``scaling`` ("raw" or "unit-samples") is recommended before a selection; ``transform`` ("log2",
    "log-counts" or "") gives the stored values their usual form. ``in_paper``: one of the six sets
    of the SPCAFS paper.
    """

    name: str
    n_samples: int
    n_features: int
    n_classes: int
    values: str
    source: str
    licence_remark: str
    sha256: str
    scaling: str
    kind: str
    in_paper: bool
    transform: str = ""

    @property
    def file_name(self) -> str:
        """NumPy archive with X (samples x features) and y (labels)."""
        return f"{self.name}.npz"


@lru_cache(maxsize=1)
def catalogue() -> tuple[CatalogueEntry, ...]:
    """Return all catalogued sets, those of the paper first."""
    text = (files("keepers.tables") / "files" / "catalogue.toml").read_text(encoding="utf-8")
    return tuple(CatalogueEntry(**entry) for entry in tomllib.loads(text)["set"])


def entry_named(name: str) -> CatalogueEntry:
    """Return the entry of that name; upper and lower case do not matter."""
    for entry in catalogue():
        if entry.name.casefold() == name.casefold():
            return entry
    known = [entry.name for entry in catalogue()]
    raise DataError(
        f"The catalogue holds {', '.join(known)}; got {shorten(name)}.{closest(name, known)}"
    )


def data_folder() -> Path:
    """Return the folder of catalogued sets.

    The environment variable ``KEEPERS_DATA`` names it. Without the variable it is
    ``../shared/data``, if that exists, else ``data`` in the working folder.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named).expanduser()
    beside = Path("..", "shared", "data")
    return beside if beside.is_dir() else Path("data")


def present(entry: CatalogueEntry) -> bool:
    """Whether the file of a set is in the data folder; its checksum is not compared."""
    return (data_folder() / entry.file_name).is_file()


def find(name: str) -> Path:
    """Return the file of a catalogued set; raise if it is not in the data folder."""
    entry = entry_named(name)
    folder = data_folder()
    path = folder / entry.file_name
    if not path.is_file():
        raise DataError(
            f"{entry.name} does not come with keepers ({entry.licence_remark}). Its file "
            f"{entry.file_name} (arrays X and y) was looked for in {folder.absolute()}. Obtain it "
            f"from its source ({entry.source}), and set {FOLDER_VARIABLE} to the folder that "
            "holds it."
        )
    return path


def refuse_wrong_checksum(entry: CatalogueEntry, path: Path) -> None:
    """Raise if the file is not, byte for byte, the catalogued one."""
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != entry.sha256:
        raise DataError(
            f"{path} is not the catalogued {entry.name}: its SHA-256 is {found}, not "
            f"{entry.sha256}. Obtain it again from its source ({entry.source}), or read it as it "
            f"is with load_catalogued({shorten(entry.name)}, verify=False)."
        )
