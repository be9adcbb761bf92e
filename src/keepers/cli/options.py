"""Options that several commands share, so that they read the same everywhere."""

import glob
import os
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from keepers.exceptions import ParameterError, shorten
from keepers.methods import METHODS

# Named here as well as where they are defined, so that help and completion do not import NumPy; a
# test holds the two together.
SCALINGS = (
    "raw",
    "unit-samples",
    "standardize-samples",
    "unit-features",
    "standardize-features",
    "min-max-features",
    "0-255",
)

METHOD_NAMES = tuple(method.name for method in METHODS if method.selects)

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file (CSV, Parquet, NPZ, MAT, ...), a bundled data set (srbct, digits) or a name "
        "that `keepers datasets` lists.",
        show_default=False,
    ),
]
CountOption = Annotated[
    str | None,
    typer.Option(
        "-k",
        "--features",
        metavar="N",
        help="Number of features to keep, or a share such as 10%; chosen if not given.",
    ),
]
IdOption = Annotated[
    str | None, typer.Option("--id", metavar="COLUMN", help="Column that names the samples.")
]
LabelsOption = Annotated[
    str | None,
    typer.Option("--labels", metavar="COLUMN", help="Column with classes; never used to select."),
]
DropOption = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="COLUMNS",
        help="Columns to leave out: names with commas between, or a pattern ('meta_*'); may be "
        "repeated.",
    ),
]
ScaleOption = Annotated[
    str, typer.Option("--scale", metavar="HOW", help=f"One of: {', '.join(SCALINGS)}.")
]
LARGEST_SEED = 2**32 - 1
LONGEST_NUMBER = 18
"""Digits of the longest number that counts something. Python refuses to read very long ones."""
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="Seed of all random numbers.")
]
ThreadsOption = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="Cores to use; all of them if not given."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
RetryOption = Annotated[
    bool, typer.Option("--retry-failed", help="Try failed and timed-out fits again.")
]
FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FOLDER",
        help="Where results go: a new or empty folder, or one of an earlier run, to resume it.",
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
MaxSizeOption = Annotated[
    str | None,
    typer.Option(
        "--max-size", metavar="SIZE", help="Refuse a larger table in memory (default 8G)."
    ),
]


def refuse_existing(paths: Sequence[Path | None], force: bool) -> None:
    """Refuse, before anything is computed, to replace a file or to write where it is impossible."""
    from keepers.data.replacing import check_target  # brings NumPy, for which help cannot wait

    for path in paths:
        if path is not None:
            check_target(path, force=force)


def reads_in_blocks(data: str, asked: Sequence[Any]) -> bool:
    """Whether a table is to be read in blocks: if one of the options is given, or it is several
    files.
    """
    if any(setting is not None for setting in asked):
        return True
    if os.path.isdir(data):
        from keepers.data.table_files import is_table_folder  # brings NumPy, as above

        return not is_table_folder(data)
    return not os.path.exists(data) and glob.has_magic(data)


def as_count(text: str | None) -> int | float | None:
    """Read "50" as a number of features and "10%" as a share of them."""
    if text is None:
        return None
    word = text.strip()
    if word.endswith("%"):
        try:
            share = float(word[:-1]) / 100
        except ValueError:
            share = 0.0
        if 0 < share <= 1:
            return share
    elif (number := as_whole(word)) is not None:
        return number
    raise ParameterError(f"-k must be an integer >= 1, or a share like 10%; got {shorten(text)}.")


def as_whole(word: str) -> int | None:
    """Read "50" as an integer >= 1; None if it is none."""
    is_number = word.isdecimal() and len(word) <= LONGEST_NUMBER
    return int(word) if is_number and int(word) >= 1 else None


def as_bytes(text: str | None) -> int | None:
    """Read "4G" as a number of bytes."""
    from keepers.data.limits import as_n_bytes  # brings NumPy and SciPy, for which help cannot wait

    return None if text is None else as_n_bytes(text, "--max-size")


def as_image_shape(text: str) -> tuple[int, int]:
    """Read "32x32" as (32, 32)."""
    match = re.fullmatch(r"(\d+)[xX](\d+)", text.strip())
    if match is None or not (int(match[1]) and int(match[2])):
        raise ParameterError(f"--image must be height x width, like 32x32; got {shorten(text)}.")
    return int(match[1]), int(match[2])


def check_scaling(scaling: str) -> str:
    """Refuse a scaling that does not exist. "none" is another word for "raw"."""
    scaling = "raw" if scaling == "none" else scaling
    if scaling not in SCALINGS:
        raise ParameterError(
            f"--scale must be one of {', '.join(SCALINGS)}; got {shorten(scaling)}."
        )
    return scaling


def as_numbers(text: str, option: str) -> list[int]:
    """Read "10,20,50" as integers >= 1."""
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise ParameterError(f"{option} must be integers >= 1, as in 10,20; got {shorten(text)}.")
    return numbers


def limit_threads(threads: int | None) -> AbstractContextManager[Any]:
    """Use so many threads of BLAS and OpenMP inside the block; None: as many as there are."""
    from threadpoolctl import threadpool_limits  # brings NumPy, as above

    return nullcontext() if threads is None else threadpool_limits(threads)


def available_cores() -> int:
    """Cores that this process may use."""
    import joblib

    return int(joblib.cpu_count())
