"""Data sets by name: those that come with keepers, and benchmark sets that the user provides."""

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
from keepers.data.wording import closest
from keepers.exceptions import DataError, ParameterError, shorten


class Dataset(NamedTuple):
    """A table, the names of its columns, and (for judging a selection only) its labels.

    Attributes
    ----------
    X : array of shape (n_samples, n_features)
        The values.
    feature_names : array of str, length n_features
        Names of the columns.
    y : array of length n_samples
        Classes; no method looks at them.
    """

    X: FloatArray
    feature_names: NDArray[np.object_]
    y: NDArray[np.object_]


def load(name: str) -> Dataset:
    """Load a bundled data set.

    Parameters
    ----------
    name : {"srbct", "digits"}
        "srbct": 83 tumour samples x 2308 gene expression ratios, 4 kinds of small round blue cell
        tumours (Khan et al. 2001); what the paper calls SRBCTML. "digits": 1797 hand-written
        digits x 64 pixels, 10 classes (scikit-learn's copy of the UCI set).

    Returns
    -------
    Dataset
        ``X, feature_names, y``; unpack it or use the names.

    Examples
    --------
    >>> from keepers import datasets
    >>> X, feature_names, y = datasets.load("srbct")
    >>> X.shape
    (83, 2308)
    """
    if name not in _LOADERS:
        known = ", ".join(repr(known) for known in _LOADERS)
        raise ParameterError(f"The bundled data sets are {known}; got {shorten(name)}.")
    return _LOADERS[name]()


def names() -> list[str]:
    """Names that `load` knows."""
    return list(BUNDLED)


def _srbct() -> Dataset:
    with (files("keepers.data") / "files" / "srbct.npz").open("rb") as stream:
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
"""Names of the data sets that come with keepers."""


FOLDER_VARIABLE = "KEEPERS_DATA"


@dataclass(frozen=True)
class CatalogueEntry:
    """What is known about one benchmark set; the file itself is the user's."""

    name: str
    """What `load_catalogued` and the command line know it by."""
    n_samples: int
    """Rows."""
    n_features: int
    """Columns."""
    n_classes: int
    """Different labels."""
    values: str
    """What the numbers are."""
    source: str
    """Where it comes from."""
    licence_remark: str
    """What is known about the right to pass it on."""
    sha256: str
    """Checksum of the file."""
    scaling: str
    """Recommended before a selection: "raw" or "unit-samples"."""
    kind: str
    """What the table holds: "genes", "images", "text" ..."""
    in_paper: bool
    """Whether it is one of the six sets of the SPCAFS paper."""
    transform: str = ""
    """What brings the stored values into their usual form: "log2", "log-counts" or nothing."""

    @property
    def file_name(self) -> str:
        """NumPy archive with X (samples x features) and y (labels)."""
        return f"{self.name}.npz"


@lru_cache(maxsize=1)
def catalogue() -> tuple[CatalogueEntry, ...]:
    """Return all catalogued sets, those of the paper first."""
    text = (files("keepers.data") / "files" / "catalogue.toml").read_text(encoding="utf-8")
    return tuple(CatalogueEntry(**entry) for entry in tomllib.loads(text)["set"])


def entry_named(name: str) -> CatalogueEntry:
    """Return the entry of that name; upper and lower case do not matter."""
    for entry in catalogue():
        if entry.name.casefold() == name.casefold():
            return entry
    known = ", ".join(entry.name for entry in catalogue())
    hint = closest(name, [entry.name for entry in catalogue()])
    raise DataError(f"The catalogue holds {known}; got {shorten(name)}.{hint}")


def data_folder() -> Path:
    """Return the folder in which catalogued sets are looked for.

    It is the one that the environment variable ``KEEPERS_DATA`` names; without it,
    ``../shared/data`` beside the working folder if that exists, else ``data`` inside it.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named).expanduser()
    beside = Path("..", "shared", "data")
    return beside if beside.is_dir() else Path("data")


def present(entry: CatalogueEntry) -> bool:
    """Whether the set's file is in the data folder; its checksum is not looked at."""
    return (data_folder() / entry.file_name).is_file()


def find(name: str) -> Path:
    """Return the file of a catalogued set, or say where it was expected and where it comes from."""
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
