"""The benchmark sets of studies, whose files are not part of keepers."""

import hashlib
import os
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from keepers.exceptions import DataError

FOLDER_VARIABLE = "KEEPERS_DATA"


@lru_cache(maxsize=1)
def catalogue() -> pd.DataFrame:
    """A row for every set, by its name, those of the paper first: size, origin, licence, checksum.

    ``scaling`` is recommended before a selection; ``transform`` ("log2", "log-counts" or "") gives
    the stored values their usual form.
    """
    text = Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")
    return pd.DataFrame(tomllib.loads(text)["set"]).set_index("name").fillna({"transform": ""})


def data_folder() -> Path:
    """The folder of catalogued sets: ``KEEPERS_DATA``, ``../shared/data`` or ``data``."""
    if named := os.environ.get(FOLDER_VARIABLE):
        return Path(named).expanduser()
    beside = Path("..", "shared", "data")
    return beside if beside.is_dir() else Path("data")


def entry_named(source: str) -> Any:
    """The row of a set, in upper or lower case; None if ``source`` is something else."""
    names = {name.casefold(): name for name in catalogue().index}
    known = names.get(source.casefold())
    return None if known is None or Path(source).exists() else catalogue().loc[known]


def find(entry: Any) -> Path:
    """The file of a set; raise if it is absent, or is not the catalogued one."""
    path = data_folder() / f"{entry.name}.npz"
    if not path.is_file():
        raise DataError(
            f"{entry.name} does not come with keepers ({entry.licence_remark}). Its file "
            f"(arrays X and y) was looked for at {path.absolute()}. Obtain it from its source "
            f"({entry.source}), and set {FOLDER_VARIABLE} to the folder that holds it."
        )
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != entry.sha256:
        raise DataError(
            f"{path} is not the catalogued {entry.name}: its SHA-256 is {found}, not "
            f"{entry.sha256}. Obtain it again from its source ({entry.source}), or name its path."
        )
    return path
