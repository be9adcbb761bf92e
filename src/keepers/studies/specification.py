"""The specification of a study: data sets, methods, grids, numbers of features, repeats, seeds.

A specification is a TOML file, or made from the options of `keepers compare`. It is checked whole
before anything runs, and every error names the line. ``experiments/paper.toml`` is an example.
"""

import inspect
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from keepers.data.catalogue import catalogue, present
from keepers.data.scaling import SCALINGS
from keepers.exceptions import DataError, shorten
from keepers.methods import METHODS, Method, all_methods, find_method
from keepers.studies.study_metrics import find_metric

STUDIES = ("paper", "quick", "suite", "fseval")
"""The studies that come with keepers."""

# In a wheel the files lie beside this module; in a checkout they are in experiments/.
_HERE = Path(__file__).resolve().parent
_FOLDERS = (_HERE / "study_files", _HERE.parents[2] / "experiments")

COMPARISON = "comparison"
"""Section of the fits that compare methods; every other section is the sweep of that name."""


def _method_name(name: str) -> str:
    """The class of a method of keepers; MODULE:CLASS for every other."""
    method = find_method(name)
    return method.class_name if method in METHODS else method.target


def _known_scaling(scaling: str) -> str:
    if scaling not in SCALINGS:
        raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}; got {shorten(scaling)}")
    return scaling


def _known_metric(target: str) -> str:
    find_metric(target)
    return target


MethodName = Annotated[str, AfterValidator(_method_name)]
Scaling = Annotated[str, AfterValidator(_known_scaling)]
MetricTarget = Annotated[str, AfterValidator(_known_metric)]
Share = Annotated[float, Field(gt=0, le=1)]
Value = int | float | str | bool
Params = dict[str, Value]
Grid = dict[str, Annotated[list[Value], Field(min_length=1)]]
Counts = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]


def share_of(share: float, n_features: int) -> int:
    """A share of the features as a number, rounded up.

    Examples
    --------
    >>> share_of(0.07, 300), share_of(0.005, 64)
    (21, 1)
    """
    return ceil(round(share * n_features, 9))  # 0.07 * 300 is 21.000000000000004


def _among(wanted: Sequence[int], ks: tuple[int, ...]) -> tuple[int, ...]:
    """Those of ``ks`` that are wanted; all of them if none is."""
    return tuple(k for k in ks if k in wanted) or ks


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataChoice(_Strict):
    """A table: a file, a bundled name or a name of the catalogue."""

    source: str
    name: str = ""
    """Shown in tables; the source's name if empty."""
    scaling: Scaling = "raw"
    transform: Literal["", "log2", "log-counts"] = ""
    """Taken of the values before they are scaled: "log2" or "log-counts"."""
    kind: str = ""
    """What the table holds (genes, images, ...), for the leaderboard."""
    labels: str | None = None
    identifier: str | None = None
    drop: list[str] = []

    @property
    def title(self) -> str:
        """Name of the table in the study."""
        return self.name or Path(self.source).stem


class Reduction(_Strict):
    """Another grid, or none, for some data sets; the report gives the reason."""

    data: list[str]
    reason: Annotated[str, Field(min_length=1)]
    grid: Grid = {}
    skip: bool = False


class MethodChoice(_Strict):
    """A method, its fixed settings, the grid to search, and its default settings."""

    name: MethodName
    """The class of a method of keepers, or MODULE:CLASS."""
    label: str = ""
    """Shown in tables; the name if empty."""
    fixed: Params = {}
    grid: Grid = {}
    default: Params | None = None
    """Settings of the untuned row, on top of ``fixed``; None: no such row."""
    draws: Annotated[int, Field(ge=1)] = 1
    """Number of seeds of a random ranking."""
    repeats: Annotated[int, Field(ge=1)] | None = None
    """Repeats of k-means for this method, or for each of its draws; None: those of the study."""
    ks: list[Annotated[int, Field(ge=1)]] = []
    """For a method that is slow for every number of features: those at which it is run, of the
    study's; empty: all."""
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


class MetricChoice(_Strict):
    """A further measure of the kept columns, beside the clustering."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    """Its name in tables; the columns are ``name_mean`` and ``name_std``."""
    metric: MetricTarget
    """"forest", or "module:function" called with the kept columns, the classes and a seed."""
    label: str = ""
    """Shown in pages; the name if empty."""
    ks: list[Annotated[int, Field(ge=1)]] = []
    """The numbers of features at which it is taken, of those in the study."""
    shares: list[Share] = []
    """The same as shares; without either, it is taken at every number."""
    draws: Annotated[int, Field(ge=1)] = 5
    """Of a random ranking, how many draws are scored."""

    @property
    def title(self) -> str:
        """Name of the metric in pages."""
        return self.label or self.name

    def ks_of(self, ks: Sequence[int], n_features: int) -> tuple[int, ...]:
        """Those of ``ks`` at which it is taken, for a table of so many features."""
        wanted = {*self.ks, *(share_of(share, n_features) for share in self.shares)}
        return tuple(k for k in ks if not wanted or k in wanted)


class ReadingReduction(_Strict):
    """Another grid, or none, of some methods in one reading; the report gives the reason."""

    methods: list[str]
    data: list[str] = []
    """Empty: all data sets."""
    reason: Annotated[str, Field(min_length=1)]
    grid: Grid = {}
    skip: bool = False


class Reading(_Strict):
    """Another way to read the values of every data set; the claims are judged under each."""

    name: Annotated[str, Field(min_length=1)]
    scaling: Scaling
    repeats: Annotated[int, Field(ge=1)] | None = None
    """Repeats of k-means in this reading; None: those of the study."""
    reduced: list[ReadingReduction] = []
    sweep_data: dict[str, list[str]] = {}
    """The data sets of a sweep in this reading, by its name, where they are fewer."""


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
    """False: only fit, to record the objective."""

    @model_validator(mode="after")
    def _known_names(self) -> "Sweep":
        _check_params(self.method, self.fixed, self.grid, {self.vary: 0})
        if self.name == COMPARISON:
            raise ValueError(
                f"a sweep cannot be named {shorten(COMPARISON)}, as the main section is"
            )
        if self.vary in self.grid:
            raise ValueError(
                f"{shorten(self.vary)} is varied and cannot be in the grid of the sweep too"
            )
        return self


class GrowthChoice(_Strict):
    """Sizes at which the time of one fit is measured."""

    samples: Counts
    at_features: Annotated[int, Field(ge=2)]
    features: Counts
    at_samples: Annotated[int, Field(ge=10)]
    time_limit: Annotated[float, Field(gt=0)] | None = None
    """Seconds for one timed fit; None: those of the study. Past it, larger sizes are not tried."""


class StudySpec(_Strict):
    """A whole study."""

    title: str
    ks: list[Annotated[int, Field(ge=1)]] = []
    """Numbers of features to keep; with ``shares``, both."""
    shares: list[Share] = []
    """Numbers of features as shares of those of each table, rounded up."""
    tuned_ks: list[Annotated[int, Field(ge=1)]] = []
    """The numbers at which grids are searched; empty: all."""
    tune_from_default: bool = False
    """Whether the default is one of the settings that tuning tries, beside those of the grid."""
    max_samples: Annotated[int, Field(ge=10)] | None = None
    """Of a table with more samples, so many are drawn (by ``seed``); None: all."""
    repeats: Annotated[int, Field(ge=1)] = 20
    seed: Annotated[int, Field(ge=0)] = 0
    time_limit: Annotated[float, Field(gt=0)] = 3600.0
    """Seconds of the processor allowed for one fit and its clusterings."""
    data: Annotated[list[DataChoice], Field(min_length=1)]
    methods: Annotated[list[MethodChoice], Field(min_length=1)]
    sweeps: list[Sweep] = []
    growth: GrowthChoice | None = None
    metrics: list[MetricChoice] = []
    stability_ks: list[Annotated[int, Field(ge=1)]] = []
    """At these numbers, defaults are also fitted on two halves of the samples, and what the halves
    keep is compared."""
    readings: list[Reading] = []
    highlight: MethodName | None = None
    """The method that figures and tables bring out; None: none of them."""
    page: Literal["study", "leaderboard"] = "study"
    """What the report is: the page of a study, or a leaderboard with a page for each data set."""
    claims: Literal["spcafs"] | None = None
    """Name of the list of published claims to check against the results."""

    @property
    def methods_by_title(self) -> dict[str, MethodChoice]:
        """The methods by their names in the study."""
        return {method.title: method for method in self.methods}

    def ks_within(self, n_features: int) -> tuple[int, ...]:
        """The numbers of features to keep of a table; all of them if it has fewer than each."""
        asked = {*self.ks, *(share_of(share, n_features) for share in self.shares)}
        return tuple(sorted({k for k in asked if k < n_features})) or (n_features,)

    def tuned_ks_within(self, n_features: int) -> tuple[int, ...]:
        """Those at which grids are searched."""
        return _among(self.tuned_ks, self.ks_within(n_features))

    def ks_of(
        self, method: MethodChoice, n_features: int, *, tuned: bool = False
    ) -> tuple[int, ...]:
        """Those at which a method is run, or at which its grid is searched."""
        ks = (self.tuned_ks_within if tuned else self.ks_within)(n_features)
        return _among(method.ks, ks)

    def under(self, reading: Reading) -> "StudySpec":
        """The study with the values read that way; its timed fits are the same."""
        data = [c.model_copy(update={"scaling": reading.scaling}) for c in self.data]
        methods = [self._reduced(method, reading) for method in self.methods]
        repeats = reading.repeats or self.repeats
        for place, method in enumerate(methods):
            if method.repeats is not None:  # in proportion
                fewer = max(1, method.repeats * repeats // self.repeats)
                methods[place] = method.model_copy(update={"repeats": fewer})
        sweeps = [
            sweep.model_copy(update={"data": reading.sweep_data.get(sweep.name, sweep.data)})
            for sweep in self.sweeps
        ]
        changes = {"data": data, "methods": methods, "sweeps": sweeps}
        return self.model_copy(update={**changes, "repeats": repeats, "readings": []})

    def _reduced(self, method: MethodChoice, reading: Reading) -> MethodChoice:
        names = [choice.title for choice in self.data]
        mine = [
            Reduction(data=r.data or names, reason=r.reason, grid=r.grid, skip=r.skip)
            for r in reading.reduced
            if method.title in r.methods
        ]
        return method.model_copy(update={"reduced": [*mine, *method.reduced]})

    @model_validator(mode="after")
    def _names_fit_together(self) -> "StudySpec":
        if not self.ks and not self.shares:
            raise ValueError("a study needs numbers of features: ks, shares, or both")
        titles = [choice.title for choice in self.data]
        _refuse_twice("data sets", titles)
        _refuse_twice("metrics", [metric.name for metric in self.metrics])
        _refuse_twice("readings", [reading.name for reading in self.readings])
        _refuse_twice("methods", [method.title for method in self.methods])
        _refuse_twice("sweeps", [sweep.name for sweep in self.sweeps])
        places = [(f"method {shorten(m.title)}", r.data) for m in self.methods for r in m.reduced]
        places += [(f"sweep {shorten(sweep.name)}", sweep.data) for sweep in self.sweeps]
        reductions = [(reading, r) for reading in self.readings for r in reading.reduced]
        places += [(f"reading {shorten(reading.name)}", r.data) for reading, r in reductions]
        in_sweeps = [(r, name) for r in self.readings for name in r.sweep_data]
        places += [(f"reading {shorten(r.name)}", r.sweep_data[name]) for r, name in in_sweeps]
        for place, names in places:
            for name in names:
                if name not in titles:
                    raise ValueError(
                        f"{place} names the data set {shorten(name)}, which is not among {titles}"
                    )
        named = [("method", reading, name) for reading, r in reductions for name in r.methods]
        named += [("sweep", reading, name) for reading, name in in_sweeps]
        known = {"method": list(self.methods_by_title), "sweep": [s.name for s in self.sweeps]}
        for what, reading, name in named:
            if name not in known[what]:
                raise ValueError(
                    f"reading {shorten(reading.name)} names the {what} {shorten(name)}, which is "
                    f"not among {known[what]}"
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
    """One line for each thing that is wrong in a file."""
    found = {(line_of(text, where), message): None for where, message in _faults(error)}
    return [f"{path}, line {line}: {message}." for line, message in sorted(found)]


def describe_faults(error: ValidationError) -> list[str]:
    """One line for each thing that is wrong in a specification that is no file."""
    return [f"{message}." for message in dict.fromkeys(message for _, message in _faults(error))]


def _faults(error: ValidationError) -> "Iterator[tuple[Location, str]]":
    """Where each fault is, and what it is."""
    for problem in error.errors(include_url=False, include_input=True):
        where = tuple(part for part in problem["loc"] if not _names_a_type(part))
        rule = problem["msg"].removeprefix("Value error, ").rstrip(".")
        if problem["type"] == "extra_forbidden":
            rule = "there is no such setting"
        elif problem["type"] not in ("value_error", "missing"):
            rule += f"; got {shorten(problem['input'])}"
        name = ".".join(str(part) for part in where)
        yield where, f"{name}: {rule}" if name else rule


def _names_a_type(part: str | int) -> bool:
    """Whether pydantic put the name of a union's member into a location."""
    return part in ("int", "float", "str", "bool")


def _check_params(method: str, *choices: Mapping[str, object]) -> None:
    signature = inspect.signature(find_method(method).load())
    known = [name for name in signature.parameters if name != "n_features_to_select"]
    for name in (name for choice in choices for name in choice):
        if name not in known:
            raise ValueError(
                f"{method} has no setting {shorten(name)}; its settings are "
                f"{', '.join(known) or 'none'}"
            )


def _refuse_twice(what: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{what} must have different names; {shorten(twice[0])} is used twice")


def find_study(spec: str) -> Path:
    """The file of a study: a name in `STUDIES`, or a path."""
    if spec in STUDIES:
        for folder in _FOLDERS:
            if (folder / f"{spec}.toml").is_file():
                return folder / f"{spec}.toml"
    if not Path(spec).is_file():
        raise DataError(
            f"There is no study {shorten(spec)}. Give one of {', '.join(STUDIES)}, or the path "
            "of a TOML file."
        )
    return Path(spec)


def absent_data(study: StudySpec) -> list[str]:
    """Data sets of a study that are in the catalogue but not on this machine."""
    absent = {entry.name.casefold() for entry in catalogue() if not present(entry)}
    return [
        choice.title
        for choice in study.data
        if choice.source.casefold() in absent and not Path(choice.source).exists()
    ]


def without_data(study: StudySpec, missing: list[str]) -> StudySpec:
    """The same study without some of its data sets."""
    data = [choice for choice in study.data if choice.title not in missing]
    if not data:
        raise DataError(
            "None of the data sets of this study is on this machine; there is nothing to run."
        )
    here = [choice.title for choice in data]
    sweeps = []
    for sweep in study.sweeps:
        kept = [name for name in sweep.data if name in here]
        if kept:
            sweeps.append(sweep.model_copy(update={"data": kept}))
    readings = [_reading_here(reading, here) for reading in study.readings]
    return study.model_copy(update={"data": data, "sweeps": sweeps, "readings": readings})


def _reading_here(reading: Reading, here: list[str]) -> Reading:
    """A reading with what it says of data sets that are there."""

    def there(names: list[str]) -> list[str]:
        return [name for name in names if name in here]

    reduced = [
        r.model_copy(update={"data": there(r.data)})
        for r in reading.reduced
        if not r.data or there(r.data)
    ]
    sweep_data = {sweep: there(names) for sweep, names in reading.sweep_data.items()}
    return reading.model_copy(update={"reduced": reduced, "sweep_data": sweep_data})


def comparison_spec(
    source: str,
    *,
    labels: str | None,
    identifier: str | None,
    drop: Sequence[str],
    scaling: str,
    methods: str,
    ks: list[int],
    repeats: int,
    seed: int,
    time_limit: float,
    tune: bool,
) -> StudySpec:
    """The paper's protocol on one table, for these methods and the baselines."""
    data = DataChoice(
        source=source, labels=labels, identifier=identifier, drop=list(drop), scaling=scaling
    )
    return StudySpec(
        title=f"Methods compared on {data.title}",
        ks=ks,
        repeats=repeats,
        seed=seed,
        time_limit=time_limit,
        data=[data],
        methods=[_method_choice(method, tune) for method in _methods_to_compare(methods)],
    )


def _methods_to_compare(names: str) -> list[Method]:
    """The methods of a comma-separated list and the baselines, in the order of the registry."""
    given = [name.strip() for name in names.split(",") if name.strip()]
    everything = "all" in map(str.lower, given)
    asked = [find_method(name) for name in dict.fromkeys(given) if name.lower() != "all"]
    known = list(all_methods().values())
    named = [m for m in known if everything or m.is_baseline or m in asked]
    return [*named, *(method for method in asked if method not in known)]


def _method_choice(method: Method, tune: bool) -> MethodChoice:
    return MethodChoice(
        name=method.name,
        label=method.label or ("" if method in METHODS else method.name),
        fixed=dict(method.fixed),
        # An empty grid has one point, the default itself.
        grid=dict(method.grid) if tune else {},
        draws=method.draws or 1,
        default=None if method.draws else {},
    )


_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\-\"']+)\s*=")
_INLINE_KEY = r"(?:^|[{{,])\s*[\"']?{key}[\"']?\s*="

Location = tuple[str | int, ...]
"""Keys and positions, as in ``("methods", 2, "grid", "gamma")``."""


def line_of(text: str, path: Location) -> int:
    """The line of a TOML text (from 1) that holds the value at ``path``, or the part around it."""
    lines = text.splitlines()
    places = _lines_of_keys(lines)
    for length in range(len(path), 0, -1):
        if path[:length] in places:
            start = places[path[:length]]
            return _line_inside(lines, start, path[length:]) + 1
    return 1


def _lines_of_keys(lines: list[str]) -> dict[Location, int]:
    """Line of every table header and every key that begins a line."""
    places: dict[Location, int] = {}
    table: Location = ()
    counts: dict[Location, int] = {}
    for number, line in enumerate(lines):
        if header := _HEADER.match(line):
            table = _table_path(header[2], header[1] == "[[", counts)
            places.setdefault(table, number)
            if isinstance(table[-1], int):
                places.setdefault(table[:-1], number)
        elif key := _KEY.match(line):
            places.setdefault((*table, *_split(key[1])), number)
    return places


def _table_path(name: str, is_array: bool, counts: dict[Location, int]) -> Location:
    """Full path of a header; ``[[methods.reduced]]`` belongs to the last ``[[methods]]``."""
    path: Location = ()
    parts = _split(name)
    for position, part in enumerate(parts):
        path = (*path, part)
        is_last = position == len(parts) - 1
        if is_last and is_array:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _split(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def _line_inside(lines: list[str], start: int, rest: Location) -> int:
    """Look for the keys of an inline table, which may go on over several lines."""
    for part in rest:
        if not isinstance(part, str):
            break
        wanted = re.compile(_INLINE_KEY.format(key=re.escape(part)))
        found = [n for n in range(start, min(start + 20, len(lines))) if wanted.search(lines[n])]
        if not found:
            break
        start = found[0]
    return start
