"""Data sets by name: those that come with keepers, and benchmark sets that the user provides."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import FloatArray
from keepers.data.wording import closest
from keepers.exceptions import DataError, ParameterError, shortened


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
        raise ParameterError(f"The bundled data sets are {known}; got {shortened(name)}.")
    return _LOADERS[name]()


def names() -> list[str]:
    """Names that `load` knows."""
    return list(_LOADERS)


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
    in_paper: bool
    """Whether it is one of the six sets of the SPCAFS paper."""

    @property
    def file_name(self) -> str:
        """NumPy archive with X (samples x features) and y (labels)."""
        return f"{self.name}.npz"


def catalogue() -> tuple[CatalogueEntry, ...]:
    """Return all catalogued sets, those of the paper first."""
    return _ENTRIES


def entry_named(name: str) -> CatalogueEntry:
    """Return the entry of that name; upper and lower case do not matter."""
    for entry in _ENTRIES:
        if entry.name.casefold() == name.casefold():
            return entry
    known = ", ".join(entry.name for entry in _ENTRIES)
    hint = closest(name, [entry.name for entry in _ENTRIES])
    raise DataError(f"The catalogue holds {known}; got {shortened(name)}.{hint}")


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
            f"is with load_catalogued({shortened(entry.name)}, verify=False)."
        )


_UNSTATED = "no licence is stated with the file"
_FACES = "photographs of people, released for research only"
_SCIKIT_FEATURE = "GitHub repository jundongl/scikit-feature, skfeature/data"

_ENTRIES = (
    CatalogueEntry(
        name="PalmData25",
        n_samples=2000,
        n_features=256,
        n_classes=100,
        values="grey levels of palm prints, resampled to 16 x 16",
        source="GitHub repository hyzhang98/AdaGAE, data/Palm.mat",
        licence_remark=_UNSTATED,
        sha256="9b4209518b4b9e2a0b9404eb490b20a6988c1e6d7e3b7e9ca49555d1c4822052",
        scaling="raw",
        in_paper=True,
    ),
    CatalogueEntry(
        name="Imm40",
        n_samples=240,
        n_features=1024,
        n_classes=40,
        values="grey levels of faces in k/255, 32 x 32, pixels column by column",
        source="GitHub repository zjj20212035/STPCA, data/Imm40.mat",
        licence_remark=_FACES,
        sha256="8f30a3af15ef7a5b3fa90a45880eaa0002de51f16f0c1702b1ab0efeeba5e48c",
        scaling="raw",
        in_paper=True,
    ),
    CatalogueEntry(
        name="PIE",
        n_samples=1166,
        n_features=1024,
        n_classes=53,
        values="grey levels of faces in k/255, 32 x 32",
        source="GitHub repository zjj20212035/SPCA-PSD, pie.mat",
        licence_remark=_FACES,
        sha256="f732fc8127f96dfbee266553961daf4410895acc6499cf0b4280d64c55be571c",
        scaling="raw",
        in_paper=True,
    ),
    CatalogueEntry(
        name="AR",
        n_samples=2600,
        n_features=2200,
        n_classes=100,
        values="grey levels of faces 0-255, 55 x 40, pixels column by column",
        source=(
            "GitHub repository XLearning-SCU/2017-TCYB-PCE, assembled from data/AR_55_40, "
            "AR_glass and AR_scarve"
        ),
        licence_remark=_FACES,
        sha256="c284969dd4325545643a8171b059692d6610b6daf86e6903251577fb26761397",
        scaling="raw",
        in_paper=True,
    ),
    CatalogueEntry(
        name="SRBCTML",
        n_samples=83,
        n_features=2308,
        n_classes=4,
        values="gene expression ratios of small round blue cell tumours",
        source="GitHub repository JIEdaydayUp/datasets",
        licence_remark=_UNSTATED + "; the bundled 'srbct' holds the same measurements",
        sha256="1e6226698abfe75ad6be3de46d7e2d5920172bd079eaad2eec3d1728f44b4f1f",
        scaling="unit-samples",
        in_paper=True,
    ),
    CatalogueEntry(
        name="LEUML",
        n_samples=72,
        n_features=3571,
        n_classes=2,
        values="log gene expression of leukaemias, each sample standardised",
        source="GitHub repository JIEdaydayUp/datasets",
        licence_remark=_UNSTATED,
        sha256="a60704483b292926ac222506e860b566530d17e394884f977d0a4f20d8b40771",
        scaling="raw",
        in_paper=True,
    ),
    CatalogueEntry(
        name="COIL20",
        n_samples=1440,
        n_features=1024,
        n_classes=20,
        values="grey levels of turning objects in 0-1, 32 x 32",
        source=_SCIKIT_FEATURE,
        licence_remark=_UNSTATED,
        sha256="b4e2b2f7edad3a7f53231e9fab71a0a3d9f07767e8f705f671e005b2601a7d5d",
        scaling="raw",
        in_paper=False,
    ),
    CatalogueEntry(
        name="Yale",
        n_samples=165,
        n_features=1024,
        n_classes=15,
        values="grey levels of faces 0-255, 32 x 32",
        source=_SCIKIT_FEATURE,
        licence_remark=_FACES,
        sha256="58867b3e812e0cca5369680555ee7c4a72a3438d915430817f57987333fe34f5",
        scaling="raw",
        in_paper=False,
    ),
    CatalogueEntry(
        name="warpPIE10P",
        n_samples=210,
        n_features=2420,
        n_classes=10,
        values="grey levels of faces 0-255, 55 x 44",
        source=_SCIKIT_FEATURE,
        licence_remark=_FACES,
        sha256="cb1bc1267bab2a4ea877a89c4af9e2b049b9f53a8c6d5bf147b7250d34e20384",
        scaling="raw",
        in_paper=False,
    ),
    CatalogueEntry(
        name="Isolet",
        n_samples=1560,
        n_features=617,
        n_classes=26,
        values="acoustic features of spoken letters in -1..1",
        source=_SCIKIT_FEATURE,
        licence_remark=_UNSTATED,
        sha256="a9c07c4b55be13d914bbb4be1737017bd47209751a57f87cc06e945bef1cd681",
        scaling="raw",
        in_paper=False,
    ),
    CatalogueEntry(
        name="GLIOMA",
        n_samples=50,
        n_features=4434,
        n_classes=4,
        values="log gene expression of gliomas",
        source=_SCIKIT_FEATURE,
        licence_remark=_UNSTATED,
        sha256="14c5212c9c76e069e0c759573bbe657768a43e8be7313f65090adc24275946af",
        scaling="raw",
        in_paper=False,
    ),
    CatalogueEntry(
        name="TOX_171",
        n_samples=171,
        n_features=5748,
        n_classes=4,
        values="gene expression, to 34,000",
        source=_SCIKIT_FEATURE,
        licence_remark=_UNSTATED,
        sha256="6c7b758a6caaab63f95af115b6b129e049c21b1a55ea0bf539728d8f750f1a97",
        scaling="raw",
        in_paper=False,
    ),
    CatalogueEntry(
        name="lung_discrete",
        n_samples=73,
        n_features=325,
        n_classes=7,
        values="gene expression of lung samples, discretised to -2..2",
        source=_SCIKIT_FEATURE,
        licence_remark=_UNSTATED,
        sha256="075104b4f2311f868cf2b65dc90c3c74aa1dfe9f8a833b664e56ae93e428fc44",
        scaling="raw",
        in_paper=False,
    ),
    CatalogueEntry(
        name="colon",
        n_samples=62,
        n_features=2000,
        n_classes=2,
        values="gene expression of colon tissue, discretised to -2..2",
        source=_SCIKIT_FEATURE,
        licence_remark=_UNSTATED,
        sha256="2626bef2ecbfbbdf757f7cb7da5c776514c71173d1458ae58953ed0a7c5185bf",
        scaling="raw",
        in_paper=False,
    ),
)
