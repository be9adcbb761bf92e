"""The studies that come with keepers, by name."""

from pathlib import Path

from keepers.data.catalogue import catalogue, present
from keepers.exceptions import DataError, shortened
from keepers.studies.specification import StudySpec

__all__ = ["STUDIES", "absent_data", "find_study", "without_data"]

STUDIES = ("paper", "quick", "suite")

# In a wheel the files lie beside this module; in a checkout they are in experiments/.
_HERE = Path(__file__).resolve().parent
_FOLDERS = (_HERE / "study_files", _HERE.parents[2] / "experiments")


def find_study(spec: str) -> Path:
    """The file of a study: one of keepers' own by name, or a path."""
    if spec in STUDIES:
        for folder in _FOLDERS:
            if (folder / f"{spec}.toml").is_file():
                return folder / f"{spec}.toml"
    if not Path(spec).is_file():
        raise DataError(
            f"There is no study {shortened(spec)}. Give one of {', '.join(STUDIES)}, or the path "
            "of a TOML file."
        )
    return Path(spec)


def absent_data(study: StudySpec) -> list[str]:
    """Data sets of a study that are catalogued but not here."""
    absent = {entry.name.casefold() for entry in catalogue() if not present(entry)}
    return [
        choice.title
        for choice in study.data
        if choice.source.casefold() in absent and not Path(choice.source).exists()
    ]


def without_data(study: StudySpec, missing: list[str]) -> StudySpec:
    """The same study on the data sets that are here."""
    data = [choice for choice in study.data if choice.title not in missing]
    if not data:
        raise DataError("None of the data sets of this study is here; there is nothing to run.")
    here = [choice.title for choice in data]
    sweeps = []
    for sweep in study.sweeps:
        kept = [name for name in sweep.data if name in here]
        if kept:
            sweeps.append(sweep.model_copy(update={"data": kept}))
    return study.model_copy(update={"data": data, "sweeps": sweeps})
