"""The options of all commands, each declared once, and how their texts are read.

A command takes its options as one dataclass. NumPy is imported inside functions: help and
completion need the declarations only.
"""

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepers.catalogue import METHODS
from keepers.exceptions import DataError, ParameterError, shorten

if TYPE_CHECKING:
    from keepers.tables.table import ReadRequest

METHOD_NAMES = tuple(method.name for method in METHODS if method.selects)


def _option(usage: str, help: str, **more: Any) -> Any:
    """An option declared as help shows it: "-k --features N" has two names and takes an N."""
    words = usage.split()
    names = [word for word in words if word.startswith("-")]
    metavar = words[-1] if len(words) > len(names) else None
    return typer.Option(*names, metavar=metavar, help=help, **more)


_rare = functools.partial(_option, hidden=True)
"""An option that --help leaves out and --help-all shows."""


def _show_all_help(context: typer.Context, asked: bool) -> None:
    if asked:
        command: Any = context.command
        command.epilog = None
        for option in command.params:
            option.hidden = False
        typer.echo(context.get_help())
        raise typer.Exit


_DATA = (
    "A file (CSV, Parquet, h5ad, Excel, ...), a folder or pattern of files, or a bundled data set "
    "(srbct, digits)."
)
_METHOD = f"{', '.join(METHOD_NAMES)}, or MODULE:CLASS."
_DROP = "Columns to leave out: a,b or 'meta_*'; repeatable."
_DROP_SAMPLES = "Samples to leave out, by name or row number from 1, with commas between."
_ANNOTATION = "Columns that describe the rows, as genes in rows have; written as in --drop."
_HEADER = "Whether the first line of a text table holds column names; guessed by default."
_LIST = "The list: a text with one name a line, a recipe (.json), or - for the standard input."
_TIGHT = "Compute the tighter, slower bound or not; by default where it takes a second or two."
_METHODS = "Names with commas between them, or all; the baselines are always added."
_CERTIFY = "Prove how close the kept features are to those that hold the most variance."
_COMPONENTS = "Components in which variance is counted: a number, a share such as 0.8, or auto."
_SCALING = "auto puts columns of different units on one scale; or as in `keepers select`."

Text = str | None
Texts = list[str] | None
File = Path | None
Switch = bool | None

DataArgument = Annotated[str, typer.Argument(metavar="DATA", help=_DATA, show_default=False)]
RecipeArgument = Annotated[
    Path, typer.Argument(metavar="RECIPE", help="Recipe written by `keepers select --save`.")
]
ScaleOption = Annotated[str, _option("--scale HOW", "Scale the values: unit-samples, ...")]
JsonOption = Annotated[bool, _option("--json", "Print the result as JSON.")]
ForceOption = Annotated[bool, _option("--force", "Replace files that exist.")]
SeedOption = Annotated[int, _rare("--seed N", "Seed of all random numbers.", min=0, max=2**32 - 1)]
ThreadsOption = Annotated[int | None, _rare("--threads N", "Cores to use (all).", min=1)]
QuietOption = Annotated[bool, _option("--quiet -q", "Print results only.")]
DebugOption = Annotated[bool, _rare("--debug", "Show the traceback of an error.")]


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How a table is read and prepared: the options of all commands."""

    identifier: Annotated[Text, _option("--id COLUMN", "Column with the sample names.")] = None
    labels: Annotated[
        Text, _option("--labels COLUMN", "Column with classes; never used to select.")
    ] = None
    drop: Annotated[Texts, _option("--drop COLUMNS", _DROP)] = None
    kinds: Annotated[
        Texts, _option("--as COLUMN=KIND", "Column type: number, category, date, drop, ...")
    ] = None
    missing: Annotated[
        Text, _option("--missing HOW", "Gaps: keep (auto), mean, median, model, drop-rows.")
    ] = None
    log: Annotated[bool, _option("--log", "Take log(1 + x), as for counts.")] = False
    transpose: Annotated[bool, _option("--transpose", "Features are rows in the file.")] = False
    sample: Annotated[int | None, _option("--sample N", "Use N random rows.", min=2)] = None
    quiet: QuietOption = False
    make_unique: Annotated[
        bool, _rare("--make-unique", "Number repeated column names: a, a.1, a.2.")
    ] = False
    drop_samples: Annotated[Texts, _rare("--drop-samples NAMES", _DROP_SAMPLES)] = None
    drop_zero_rows: Annotated[
        bool, _rare("--drop-zero-rows", "Leave out rows that hold zeros only.")
    ] = False
    annotation: Annotated[Texts, _rare("--annotation COLUMNS", _ANNOTATION)] = None
    skip_rows: Annotated[
        int | None,
        _rare("--skip-rows N", "Lines above the column names; found by default.", min=0),
    ] = None
    header_rows: Annotated[
        int | None, _rare("--header-rows N", "Lines of column names; found by default.", min=1)
    ] = None
    header: Annotated[Switch, _rare("--header/--no-header", _HEADER, show_default=False)] = None
    format: Annotated[
        Text, _rare("--format NAME", "Format of the file, if its name does not show it.")
    ] = None
    sep: Annotated[Text, _rare("--sep MARK", "Separator of a text table.")] = None
    decimal: Annotated[Text, _rare("--decimal MARK", "Decimal mark, . or ,")] = None
    comment: Annotated[Text, _rare("--comment MARK", "Skip lines that begin with it.")] = None
    encoding: Annotated[Text, _rare("--encoding NAME", "Of text, such as latin-1.")] = None
    sheet: Annotated[Text, _rare("--sheet NAME", "Sheet: name, or number from 1.")] = None
    layer: Annotated[Text, _rare("--layer NAME", "Layer of an .h5ad to read, not X.")] = None
    dataset: Annotated[Text, _rare("--dataset NAME", "Array of an HDF5 file to read.")] = None
    max_size: Annotated[Text, _rare("--max-size SIZE", "Largest table in memory (8G).")] = None
    debug: DebugOption = False
    help_all: Annotated[
        bool, _option("--help-all", "Show all options.", callback=_show_all_help, is_eager=True)
    ] = False

    def __post_init__(self) -> None:
        """Raise for what is wrong with any table, before one is read."""
        from keepers.prepare.kinds import MISSING

        if self.missing is not None:
            one_of("--missing", self.missing, MISSING)
        _ = self.asked_kinds

    @cached_property
    def asked_kinds(self) -> dict[str, Any]:
        """Kinds of columns by name."""
        from keepers.prepare.kinds import KINDS

        asked = {}
        for word in self.kinds or []:
            name, equals, kind = word.rpartition("=")
            if not equals or not name or kind not in KINDS:
                raise ParameterError(
                    f"--as takes COLUMN=KIND with one of {', '.join(KINDS)}; got {shorten(word)}."
                )
            asked[name] = kind
        return asked

    def request(self) -> "ReadRequest":
        """How the table is read."""
        from keepers.tables.table import REQUEST_FIELDS, ReadRequest

        own = {name: getattr(self, name) for name in REQUEST_FIELDS if hasattr(self, name)}
        own |= {"drop": tuple(self.drop or ()), "annotation": tuple(self.annotation or ())}
        return ReadRequest(**own, max_bytes=as_bytes(self.max_size, "--max-size"))


@dataclass(frozen=True, kw_only=True)
class CheckOptions(ReadingOptions):
    """What `keepers check` takes."""

    json: JsonOption = False


@dataclass(frozen=True, kw_only=True)
class SelectOptions(ReadingOptions):
    """What `keepers select` takes."""

    k: Annotated[
        Text, _option("-k --features N", "Features to keep, 50 or 10%; auto chooses it.")
    ] = None
    method: Annotated[str, _option("--method NAME", _METHOD)] = "auto"
    settings: Annotated[
        Texts, _option("--set NAME=VALUE", "Setting of the method; repeatable.")
    ] = None
    keep: Annotated[Texts, _option("--keep COLUMN", "Feature to keep always; repeatable.")] = None
    never: Annotated[Texts, _option("--never COLUMN", "Feature never to keep; repeatable.")] = None
    out: Annotated[File, _option("--out FILE", "Write the kept columns (.csv, .h5ad, ...).")] = None
    report: Annotated[File, _option("--report FILE", "Write a report (HTML).")] = None
    save: Annotated[
        File, _option("--save FILE", "Write a recipe (JSON) for `keepers apply`.")
    ] = None
    scores: Annotated[
        File, _option("--scores FILE", "Write rank, score and reason (CSV).")
    ] = None
    scale: ScaleOption = "raw"
    memory: Annotated[
        Text, _option("--memory SIZE", "Read in blocks, using at most SIZE (4G).")
    ] = None
    workers: Annotated[
        int | None, _rare("--workers N", "Read in blocks, with N local processes (Dask).", min=1)
    ] = None
    scheduler: Annotated[
        Text, _rare("--scheduler ADDRESS", "Read in blocks, on a Dask cluster (tcp://...).")
    ] = None
    certify: Annotated[Switch, _rare("--certify/--no-certify", _CERTIFY, show_default=False)] = None
    json: JsonOption = False
    force: ForceOption = False
    seed: SeedOption = 0
    threads: ThreadsOption = None


@dataclass(frozen=True, kw_only=True)
class ApplyOptions(ReadingOptions):
    """What `keepers apply` takes."""

    out: Annotated[Path, _option("--out FILE", "Write the kept columns (.csv, .h5ad, ...).")]
    force: ForceOption = False


@dataclass(frozen=True, kw_only=True)
class CertifyOptions(ReadingOptions):
    """What `keepers certify` takes."""

    features: Annotated[str, _option("--features FILE", _LIST)]
    components: Annotated[str, _option("--components -m M", _COMPONENTS)] = "auto"
    tight: Annotated[Switch, _option("--tight/--no-tight", _TIGHT, show_default=False)] = None
    scale: ScaleOption = "raw"
    json: JsonOption = False
    seed: SeedOption = 0
    threads: ThreadsOption = None


@dataclass(frozen=True, kw_only=True)
class CompareOptions(ReadingOptions):
    """What `keepers compare` takes."""

    methods: Annotated[str, _option("--methods NAMES", _METHODS)] = (
        "auto,spcafs,fspca,lapscore,mcfs"
    )
    ks: Annotated[str, _option("--ks NUMBERS", "Numbers of features.")] = "10,20,50,100"
    repeats: Annotated[int, _option("--repeats N", "Repeats of k-means.", min=1)] = 20
    out: Annotated[File, _option("--out FILE", "Write all numbers (CSV).")] = None
    scale: Annotated[str, _option("--scale HOW", _SCALING)] = "auto"
    json: JsonOption = False
    force: ForceOption = False
    seed: SeedOption = 0
    threads: ThreadsOption = None


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the fields of its parameter ``options``, a dataclass, as options.

    Help lists those of `ReadingOptions` last.
    """
    own = inspect.signature(command).parameters
    kind = own["options"].annotation
    names = set(ReadingOptions.__dataclass_fields__)
    listed = sorted(dataclasses.fields(kind), key=lambda each: each.name in names)

    @functools.wraps(command)
    def run(**given: Any) -> None:
        options = kind(**{each.name: given.pop(each.name) for each in listed})
        command(**given, options=options)

    parameters = [each for name, each in own.items() if name != "options"]
    for each in listed:
        parameters.append(
            inspect.Parameter(
                each.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=own["options"].empty
                if each.default is dataclasses.MISSING
                else each.default,
                annotation=each.type,
            )
        )
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def check_outputs(
    outputs: Mapping[str, Path | None], sources: Sequence[str], *, force: bool
) -> None:
    """Raise, before anything is read, if a file must not or cannot be written.

    ``outputs`` are files by their options. They must differ from each other and from every file
    that ``sources`` are read from, also where a link leads to it.
    """
    from keepers.tables.atomic import check_target, is_same_file
    from keepers.tables.opening import source_files

    checked: dict[str, Path] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        if str(path) == "-":
            raise ParameterError(
                f"{option} writes a file; - stands for the standard output, which is not one. "
                "Name a file, such as ./result, or use --json for results on the standard output."
            )
        check_target(path, force=force)
        for other, earlier in checked.items():
            if is_same_file(path, earlier):
                raise ParameterError(
                    f"{other} and {option} must be different files; both are {path}. Choose "
                    "another name for one of them."
                )
        for source in sources:
            if path.exists() and any(is_same_file(path, each) for each in source_files(source)):
                raise ParameterError(
                    f"{option} must not replace its input, also with --force; {path} belongs to "
                    f"{source}. Choose another name."
                )
        checked[option] = path


def one_of(option: str, word: str, allowed: Sequence[str]) -> str:
    """The word; raise unless it is allowed."""
    if word not in allowed:
        raise ParameterError(f"{option} must be one of {', '.join(allowed)}; got {shorten(word)}.")
    return word


def as_number(text: str, option: str) -> int | float:
    """Read "50" as a number, and "10%" or "0.1" as a share."""
    word = text.strip()
    with suppress(ValueError):
        if word.isdecimal() and int(word) >= 1:
            return int(word)
        share = float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
        if 0.0 < share < 1.0 or word == "100%":
            return share
    raise ParameterError(
        f"{option} must be an integer >= 1, or a share like 10% or 0.1; got {shorten(text)}."
    )


def as_bytes(text: str | None, option: str) -> int | None:
    """Read "4G" as a number of bytes."""
    from keepers.tables.table import as_n_bytes

    return None if text is None else as_n_bytes(text, option)


def read_feature_list(path: str) -> list[str]:
    """The names in a file, or in the standard input if it is "-".

    One name a line; blank lines, and lines that begin with "#", do not count. From a recipe
    (.json) the kept features.
    """
    if Path(path).suffix.lower() == ".json":
        from keepers.reports.recipe import Recipe

        return list(Recipe.load(Path(path)).features)
    name = "the standard input" if path == "-" else path
    with sys.stdin.buffer if path == "-" else open(path, "rb") as stream:
        raw = stream.read()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"A list of features is text in UTF-8; {name} is not, at byte {error.start}. Save it "
            "as text with one name a line."
        ) from error
    stripped = (line.strip() for line in text.splitlines())
    features = [line for line in stripped if line and not line.startswith("#")]
    if not features:
        raise DataError(f"A list must name at least one feature; {name} names none.")
    return features
