"""The studies that come with keepers, by name."""

from pathlib import Path

from keepers.exceptions import DataError

__all__ = ["STUDIES", "find_study"]

STUDIES = ("paper", "quick", "suite")

# In a wheel the files lie beside this module; in a checkout they are in experiments/.
_HERE = Path(__file__).resolve().parent
_FOLDERS = (_HERE / "studies", _HERE.parents[2] / "experiments")


def find_study(spec: str) -> Path:
    """The file of a study: one of keepers' own by name, or a path."""
    if spec in STUDIES:
        for folder in _FOLDERS:
            if (folder / f"{spec}.toml").is_file():
                return folder / f"{spec}.toml"
    if not Path(spec).is_file():
        raise DataError(
            f"There is no study {spec!r}. Give one of {', '.join(STUDIES)}, or the path of a TOML "
            "file."
        )
    return Path(spec)
