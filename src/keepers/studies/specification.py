"""A study written down: data sets, scalings, methods, grids, numbers of features, repeats, seeds.

A specification is a TOML file. It is checked whole before anything runs, and every error points at
the line. ``experiments/paper.toml`` is a full example.
"""

import inspect
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from keepers.data.scaling import SCALINGS
from keepers.exceptions import DataError, shortened
from keepers.studies.method_versions import find_selector
from keepers.studies.toml_lines import line_of

__all__ = [
    "COMPARISON",
    "DataChoice",
    "GrowthChoice",
    "MethodChoice",
    "Reduction",
    "StudySpec",
    "Sweep",
    "read_spec",
]

COMPARISON = "comparison"
"""Section of the entries that compare methods; every other section is a sweep of that name."""

Value = int | float | str | bool
Params = dict[str, Value]
Grid = dict[str, Annotated[list[Value], Field(min_length=1)]]
Counts = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataChoice(_Strict):
    """A table: a file, a bundled name or a name of the catalogue."""

    source: str
    name: str = ""
    """Shown in tables; the source's name if empty."""
    scaling: str = "raw"
    labels: str | None = None
    identifier: str | None = None
    drop: list[str] = []

    @model_validator(mode="after")
    def _known_scaling(self) -> "DataChoice":
        if self.scaling not in SCALINGS:
            raise ValueError(
                f"scaling must be one of {', '.join(SCALINGS)}; got {shortened(self.scaling)}"
            )
        return self

    @property
    def title(self) -> str:
        """Name of the table in the study."""
        return self.name or Path(self.source).stem


class Reduction(_Strict):
    """Another grid, or none, for some data sets; the reason is part of the results."""

    data: list[str]
    reason: Annotated[str, Field(min_length=1)]
    grid: Grid = {}
    skip: bool = False


class MethodChoice(_Strict):
    """A selector, the settings that stay, the grid that is searched, and its default."""

    name: str
    """A selector of keepers, or MODULE:CLASS."""
    label: str = ""
    """Shown in tables; the name if empty."""
    fixed: Params = {}
    grid: Grid = {}
    default: Params | None = None
    """Settings of the row that is not tuned, on top of ``fixed``; absent: no such row."""
    draws: Annotated[int, Field(ge=1)] = 1
    """For random rankings: how many seeds."""
    reduced: list[Reduction] = []

    @property
    def title(self) -> str:
        """Name of the method in the study."""
        return self.label or self.name

    @model_validator(mode="after")
    def _known_names(self) -> "MethodChoice":
        _check_params(self.name, self.fixed, self.grid, self.default or {})
        _check_params(self.name, *(reduction.grid for reduction in self.reduced))
        return self

    def reduction_for(self, data: str) -> Reduction | None:
        """The reduction that applies to a data set, if any."""
        return next((r for r in self.reduced if data in r.data), None)


class Sweep(_Strict):
    """One setting varied, for a figure; with ``grid``, each value is tuned over it."""

    name: str
    method: str
    data: list[str]
    vary: str
    values: Annotated[list[Value], Field(min_length=1)]
    fixed: Params = {}
    grid: Grid = {}
    judge: bool = True
    """False: only fit, for the sake of the objective."""

    @model_validator(mode="after")
    def _known_names(self) -> "Sweep":
        _check_params(self.method, self.fixed, self.grid, {self.vary: 0})
        if self.name == COMPARISON:
            raise ValueError(
                f"a sweep cannot be named {shortened(COMPARISON)}, as the main section is"
            )
        if self.vary in self.grid:
            raise ValueError(
                f"{shortened(self.vary)} is varied and cannot be in the grid of the sweep too"
            )
        return self


class GrowthChoice(_Strict):
    """Sizes at which the time of one fit is measured."""

    samples: Counts
    at_features: Annotated[int, Field(ge=2)]
    features: Counts
    at_samples: Annotated[int, Field(ge=10)]


class StudySpec(_Strict):
    """A whole study."""

    title: str
    ks: Counts
    repeats: Annotated[int, Field(ge=1)] = 20
    seed: Annotated[int, Field(ge=0)] = 0
    time_limit: Annotated[float, Field(gt=0)] = 3600.0
    """Seconds that one fit with its clusterings may take."""
    data: Annotated[list[DataChoice], Field(min_length=1)]
    methods: Annotated[list[MethodChoice], Field(min_length=1)]
    sweeps: list[Sweep] = []
    growth: GrowthChoice | None = None
    claims: Literal["spcafs"] | None = None
    """Name of the list of published claims that the results are held against."""

    @model_validator(mode="after")
    def _names_fit_together(self) -> "StudySpec":
        titles = [choice.title for choice in self.data]
        _refuse_twice("data sets", titles)
        _refuse_twice("methods", [method.title for method in self.methods])
        _refuse_twice("sweeps", [sweep.name for sweep in self.sweeps])
        places = [(f"method {shortened(m.title)}", r.data) for m in self.methods for r in m.reduced]
        places += [(f"sweep {shortened(sweep.name)}", sweep.data) for sweep in self.sweeps]
        for place, names in places:
            for name in names:
                if name not in titles:
                    raise ValueError(
                        f"{place} names the data set {shortened(name)}, which is not among {titles}"
                    )
        return self


def read_spec(path: Path) -> StudySpec:
    """Read and check a specification; an error names the file, the line and the rule."""
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except FileNotFoundError:
        raise DataError(f"There is no file {path}. Give the path of a study (TOML).") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as text: {error}.") from None
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path} is not valid TOML: {error}.") from None
    try:
        return StudySpec.model_validate(content)
    except ValidationError as error:
        raise DataError(*_describe(error, path, text)) from None


def _describe(error: ValidationError, path: Path, text: str) -> list[str]:
    """One line for each thing that is wrong."""
    found: dict[tuple[int, str], None] = {}  # a dict keeps order and drops repeats
    for problem in error.errors(include_url=False, include_input=True):
        where = tuple(part for part in problem["loc"] if not _names_a_type(part))
        rule = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            rule = "there is no such setting"
        elif problem["type"] not in ("value_error", "missing"):
            rule += f"; got {shortened(problem['input'])}"
        name = ".".join(str(part) for part in where)
        found[line_of(text, where), f"{name}: {rule}" if name else rule] = None
    return [f"{path}, line {line}: {message}." for line, message in sorted(found)]


def _names_a_type(part: str | int) -> bool:
    """Whether pydantic put the name of a union's member into a location."""
    return part in ("int", "float", "str", "bool")


def _check_params(method: str, *choices: Mapping[str, object]) -> None:
    signature = inspect.signature(find_selector(method))
    known = [name for name in signature.parameters if name != "n_features_to_select"]
    for name in (name for choice in choices for name in choice):
        if name not in known:
            raise ValueError(
                f"{method} has no setting {shortened(name)}; its settings are "
                f"{', '.join(known) or 'none'}"
            )


def _refuse_twice(what: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{what} must have different names; {shortened(twice[0])} stands twice")
