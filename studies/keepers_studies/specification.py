"""The specification of a study: data sets, methods, grids, numbers of features, repeats, seeds.

A specification is a TOML file, checked whole before anything runs; every error names the key.
``study_files/paper.toml`` is an example, docs/evaluation.md explains the settings.
"""

import inspect
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from keepers.catalogue import METHODS, find_method
from keepers.exceptions import DataError, shorten
from keepers_studies.catalogue import data_folder, entry_named
from keepers_studies.scaling import SCALINGS

STUDIES = ("paper", "quick", "suite", "fseval")
"""The studies that come with the package."""

COMPARISON = "comparison"
"""Section of the fits that compare methods; every other section is the sweep of that name."""

_FOLDER = Path(__file__).resolve().parent / "study_files"


def _method_name(name: str) -> str:
    """The class of a method of keepers; MODULE:CLASS for every other."""
    method = find_method(name)
    return method.class_name if method in METHODS else method.target


MethodName = Annotated[str, AfterValidator(_method_name)]
Scaling = Literal[SCALINGS]  # type: ignore[valid-type]
Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, le=1)]
Value = int | float | str | bool
Params = dict[str, Value]
Grid = dict[str, Annotated[list[Value], Field(min_length=1)]]


def share_of(share: float, n_features: int) -> int:
    """A share of the features as a number, rounded up."""
    return ceil(round(share * n_features, 9))  # 0.07 * 300 is 21.000000000000004


def _among(wanted: Sequence[int], ks: tuple[int, ...]) -> tuple[int, ...]:
    """The wanted members of ``ks``, or all of them if none is wanted."""
    return tuple(k for k in ks if k in wanted) or ks


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataChoice(_Strict):
    """A table: a file, a bundled name or a name of the catalogue."""

    source: str
    name: str = ""
    scaling: Scaling = "raw"
    transform: Literal["", "log2", "log-counts"] = ""
    kind: str = ""
    labels: str | None = None

    @property
    def title(self) -> str:
        """Name of the table in the study."""
        return self.name or Path(self.source).stem


class Reduction(_Strict):
    """Another grid, or none, for some data sets; the report gives the reason."""

    data: list[str]
    reason: Text
    grid: Grid = {}
    skip: bool = False


class MethodChoice(_Strict):
    """A method, its fixed settings, the grid to search, and its default settings."""

    name: MethodName
    label: str = ""
    fixed: Params = {}
    grid: Grid = {}
    default: Params | None = None
    """Settings of the untuned row, on top of ``fixed``; None: no such row."""
    draws: Positive = 1
    repeats: Positive | None = None
    """Repeats of k-means for this method, or for each of its draws; None: those of the study."""
    ks: list[Positive] = []
    reduced: list[Reduction] = []

    @property
    def title(self) -> str:
        """Name of the method in the study."""
        return self.label or self.name

    @model_validator(mode="after")
    def _known_names(self) -> "MethodChoice":
        grids = [reduction.grid for reduction in self.reduced]
        _check_params(self.name, self.fixed, self.grid, self.default or {}, *grids)
        return self

    def reduction_for(self, data: str) -> Reduction | None:
        """The reduction that applies to a data set, if any."""
        return next((r for r in self.reduced if data in r.data), None)


class MetricChoice(_Strict):
    """Also measure the accuracy of a random forest on the kept columns."""

    name: Literal["forest"] = "forest"
    ks: list[Positive] = []
    shares: list[Share] = []
    """Without ``ks`` and ``shares``, it is computed at every number of features."""
    draws: Positive = 5
    """Number of draws of a random ranking that are scored."""

    def ks_of(self, ks: Sequence[int], n_features: int) -> tuple[int, ...]:
        """The members of ``ks`` at which it is computed, for ``n_features`` features."""
        wanted = {*self.ks, *(share_of(share, n_features) for share in self.shares)}
        return tuple(k for k in ks if not wanted or k in wanted)


class ReadingReduction(Reduction):
    """The same for some methods in one reading."""

    methods: list[str]
    data: list[str] = []


class Reading(_Strict):
    """Another scaling of every data set; every claim has a verdict under each."""

    name: Text
    scaling: Scaling
    repeats: Positive | None = None
    reduced: list[ReadingReduction] = []
    sweep_data: dict[str, list[str]] = {}


class Sweep(_Strict):
    """One setting that varies, for a figure; with ``grid``, each value is tuned over it."""

    name: str
    method: MethodName
    data: list[str]
    vary: str
    values: Annotated[list[Value], Field(min_length=1)]
    fixed: Params = {}
    grid: Grid = {}
    judge: bool = True

    @model_validator(mode="after")
    def _known_names(self) -> "Sweep":
        _check_params(self.method, self.fixed, self.grid, {self.vary: 0})
        if self.name == COMPARISON:
            raise ValueError(f"a sweep cannot be named {shorten(COMPARISON)}, the main section")
        if self.vary in self.grid:
            raise ValueError(f"{shorten(self.vary)} is varied and cannot be in the grid too")
        return self


class GrowthChoice(_Strict):
    """Sizes at which the time of one fit is measured."""

    samples: Annotated[list[Positive], Field(min_length=1)]
    at_features: Annotated[int, Field(ge=2)]
    features: Annotated[list[Positive], Field(min_length=1)]
    at_samples: Annotated[int, Field(ge=10)]
    time_limit: Annotated[float, Field(gt=0)] | None = None


class StudySpec(_Strict):
    """A whole study."""

    title: str
    ks: list[Positive] = []
    shares: list[Share] = []
    tuned_ks: list[Positive] = []
    tune_from_default: bool = False
    max_samples: Annotated[int, Field(ge=10)] | None = None
    repeats: Positive = 20
    seed: Annotated[int, Field(ge=0)] = 0
    time_limit: Annotated[float, Field(gt=0)] = 3600.0
    """Seconds of the processor allowed for one fit and its clusterings."""
    data: Annotated[list[DataChoice], Field(min_length=1)]
    methods: Annotated[list[MethodChoice], Field(min_length=1)]
    sweeps: list[Sweep] = []
    growth: GrowthChoice | None = None
    metrics: Annotated[list[MetricChoice], Field(max_length=1)] = []
    stability_ks: list[Positive] = []
    readings: list[Reading] = []
    highlight: MethodName | None = None
    page: Literal["study", "leaderboard"] = "study"
    claims: Literal["spcafs"] | None = None

    @property
    def methods_by_title(self) -> dict[str, MethodChoice]:
        """The methods by their names in the study."""
        return {method.title: method for method in self.methods}

    @property
    def measures(self) -> tuple[str, ...]:
        """ACC, NMI, and what else the study measures of default settings."""
        further = [metric.name for metric in self.metrics]
        return ("acc", "nmi", *further, *(["stability"] if self.stability_ks else []))

    def ks_within(
        self, n_features: int, *, tuned: bool = False, among: Sequence[int] = ()
    ) -> tuple[int, ...]:
        """The numbers of features to keep of a table, or those at which grids are searched."""
        wanted = {*self.ks, *(share_of(share, n_features) for share in self.shares)}
        ks = tuple(sorted({k for k in wanted if k < n_features})) or (n_features,)
        return _among(among, _among(self.tuned_ks, ks) if tuned else ks)

    def under(self, reading: Reading) -> "StudySpec":
        """The study with another scaling of the values; its timed fits are the same."""
        repeats = reading.repeats or self.repeats
        changes: dict[str, Any] = {
            "data": [c.model_copy(update={"scaling": reading.scaling}) for c in self.data],
            "methods": [self._under(method, reading, repeats) for method in self.methods],
            "sweeps": [
                sweep.model_copy(update={"data": reading.sweep_data.get(sweep.name, sweep.data)})
                for sweep in self.sweeps
            ],
        }
        return self.model_copy(update={**changes, "repeats": repeats, "readings": []})

    def _under(self, method: MethodChoice, reading: Reading, repeats: int) -> MethodChoice:
        names = [choice.title for choice in self.data]
        mine = [
            Reduction(data=r.data or names, reason=r.reason, grid=r.grid, skip=r.skip)
            for r in reading.reduced
            if method.title in r.methods
        ]
        own = method.repeats and max(1, method.repeats * repeats // self.repeats)  # in proportion
        return method.model_copy(update={"reduced": [*mine, *method.reduced], "repeats": own})

    @model_validator(mode="after")
    def _names_fit_together(self) -> "StudySpec":
        if not self.ks and not self.shares:
            raise ValueError("a study needs numbers of features: ks, shares, or both")
        titles = [choice.title for choice in self.data]
        methods = [method.title for method in self.methods]
        sweeps = [sweep.name for sweep in self.sweeps]
        _refuse_twice("data sets", titles)
        _refuse_twice("methods", methods)
        _refuse_twice("sweeps", sweeps)
        _refuse_twice("readings", [reading.name for reading in self.readings])
        for method in self.methods:
            for reduction in method.reduced:
                _refuse_unknown(f"method {method.title!r}", "data set", reduction.data, titles)
        for sweep in self.sweeps:
            _refuse_unknown(f"sweep {sweep.name!r}", "data set", sweep.data, titles)
        for reading in self.readings:
            place = f"reading {reading.name!r}"
            _refuse_unknown(place, "sweep", reading.sweep_data, sweeps)
            for names in (*reading.sweep_data.values(), *(r.data for r in reading.reduced)):
                _refuse_unknown(place, "data set", names, titles)
            for cut in reading.reduced:
                _refuse_unknown(place, "method", cut.methods, methods)
        return self


def _refuse_unknown(place: str, what: str, names: Iterable[str], known: list[str]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(
                f"{place} names the {what} {shorten(name)}, which is not among {known}"
            )


def _refuse_twice(what: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{what} must have different names; {shorten(twice[0])} is used twice")


def _check_params(method: str, *choices: Mapping[str, object]) -> None:
    signature = inspect.signature(find_method(method).load())
    known = [name for name in signature.parameters if name != "n_features_to_select"]
    for name in (name for choice in choices for name in choice):
        if name not in known:
            raise ValueError(
                f"{method} has no setting {shorten(name)}; its settings are "
                f"{', '.join(known) or 'none'}"
            )


def as_spec(spec: "StudySpec | Mapping[str, Any] | str | PathLike[str]") -> StudySpec:
    """A specification from a mapping, the path of a TOML file, or the name of a study.

    An error lists every fault with the path of its key, as in "methods.2.grid.gamma".
    """
    if isinstance(spec, StudySpec):
        return spec
    where = ""
    if not isinstance(spec, Mapping):
        path = find_study(str(spec))
        where = f"{path}: "
        try:
            spec = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise DataError(f"{path} cannot be read as TOML: {error}.") from None
    try:
        return StudySpec.model_validate(dict(spec))
    except ValidationError as error:
        raise DataError(*dict.fromkeys(f"{where}{fault}." for fault in _faults(error))) from None


def _faults(error: ValidationError) -> Iterable[str]:
    """The key and the rule of each fault."""
    types = ("int", "float", "str", "bool")  # members of a union, which pydantic puts in the path
    for problem in error.errors(include_url=False):
        name = ".".join(str(part) for part in problem["loc"] if part not in types)
        rule = problem["msg"].removeprefix("Value error, ").rstrip(".")
        if problem["type"] == "extra_forbidden":
            rule = "unknown setting"
        elif problem["type"] not in ("value_error", "missing"):
            rule += f"; got {shorten(problem['input'])}"
        yield f"{name}: {rule}" if name else rule


def find_study(spec: str) -> Path:
    """The file of a study: a name in `STUDIES`, or a path."""
    if spec in STUDIES:
        return _FOLDER / f"{spec}.toml"
    if not Path(spec).is_file():
        raise DataError(
            f"Unknown study {shorten(spec)}. Give one of {', '.join(STUDIES)}, or the path "
            "of a TOML file."
        )
    return Path(spec)


def without_absent_data(study: StudySpec) -> tuple[StudySpec, list[str]]:
    """The study without the data sets that are not on this machine, and the names of these."""
    folder, here = data_folder(), []
    for choice in study.data:
        entry = entry_named(choice.source)
        if entry is None or (folder / f"{entry.name}.npz").is_file():
            here.append(choice)
    missing = [choice.title for choice in study.data if choice not in here]
    return study.model_copy(update={"data": here}), missing
