"""All options of the commands, declared once, and how their texts are read."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from keepers.catalogue import METHODS
from keepers.cli.console import errors_in_one_sentence
from keepers.exceptions import ParameterError, shorten

if TYPE_CHECKING:
    from keepers.tables.table import ReadRequest

# Repeated from where they are defined, because help and completion must not import NumPy. A test
# compares the two.
SCALINGS = (
    *("raw", "unit-samples", "standardize-samples", "unit-features"),
    *("standardize-features", "min-max-features", "0-255"),
)
MISSING = ("error", "keep", "mean", "median", "model", "drop-rows")
KINDS = (
    *("number", "boolean", "tick", "category", "choices", "ordered", "date"),
    *("identifier", "text", "empty", "drop"),
)
METHOD_NAMES = tuple(method.name for method in METHODS if method.selects)
LARGEST_SEED = 2**32 - 1
LONGEST_NUMBER = 18
"""Digits of the longest number of features. Python does not read very long ones."""

Command = TypeVar("Command", bound=Callable[..., None])


def _option(usage: str, help: str, **more: Any) -> Any:
    """An option declared as help shows it: "-k --features N" has two names and takes an N."""
    words = usage.split()
    names = [word for word in words if word.startswith("-")]
    metavar = words[-1] if len(words) > len(names) else None
    return typer.Option(*names, metavar=metavar, help=help, **more)


_DATA = (
    "A file (CSV, Parquet, h5ad, Excel, ...), a folder or pattern of files, a bundled data set "
    "(srbct, digits) or a name that `keepers datasets` lists."
)
_LIST = "The list: a text with one name a line, a recipe (.json), or - for the standard input."
_COMPONENTS = "Components in which variance is counted: a number, a share such as 0.8, or auto."
_CERTIFY = "Prove how close the kept features are to those that hold the most variance."
_TIGHT = "Compute the tighter, slower bound or not; by default where it takes a second or two."
_METHOD = f"{', '.join(METHOD_NAMES)}, or MODULE:CLASS."
_SCALE = "Scale the values: unit-samples, ..."
_DROP = "Columns to leave out: a,b or 'meta_*'; repeatable."
_ANNOTATION = "Columns that describe the rows, as genes in rows have; written as in --drop."
_SKIP = "Lines above the column names, such as a title; found by default."
_HEADER_ROWS = "Lines of column names; found by default."
_KIND = "Column type: number, category, date, drop, ..."
_MISSING = "Gaps: keep (auto), mean, median, model, drop-rows."
_HEADER = "Whether the first line of a text table holds column names; guessed by default."
_DROP_SAMPLES = "Samples to leave out, by name or row number from 1, with commas between."

Text = str | None
Texts = list[str] | None
File = Path | None

DataArgument = Annotated[str, typer.Argument(metavar="DATA", help=_DATA, show_default=False)]
RecipeArgument = Annotated[
    Path, typer.Argument(metavar="RECIPE", help="Recipe written by `keepers select --save`.")
]
# The order of a command's parameters is the order in its help.
CountOption = Annotated[
    Text, _option("-k --features N", "Features to keep, 50 or 10%; auto chooses it.")
]
MethodOption = Annotated[str, _option("--method NAME", _METHOD)]
SetOption = Annotated[Texts, _option("--set NAME=VALUE", "Setting of the method; repeatable.")]
KeepOption = Annotated[Texts, _option("--keep COLUMN", "Feature to keep always; repeatable.")]
NeverOption = Annotated[Texts, _option("--never COLUMN", "Feature never to keep; repeatable.")]
OutOption = Annotated[File, _option("--out FILE", "Write the kept columns (.csv, .h5ad, ...).")]
TargetOption = Annotated[Path, _option("--out FILE", "Write the kept columns (.csv, .h5ad, ...).")]
ReportOption = Annotated[File, _option("--report FILE", "Write a report (HTML).")]
SaveOption = Annotated[File, _option("--save FILE", "Write a recipe (JSON) for `keepers apply`.")]
ScoresOption = Annotated[File, _option("--scores FILE", "Write rank, score and reason (CSV).")]
MemoryOption = Annotated[Text, _option("--memory SIZE", "Read in blocks, using at most SIZE (4G).")]
WorkersOption = Annotated[
    int | None, _option("--workers N", "Read in blocks, with N local processes (Dask).", min=1)
]
SchedulerOption = Annotated[
    Text, _option("--scheduler ADDRESS", "Read in blocks, on a Dask cluster (tcp://...).")
]
ScaleOption = Annotated[str, _option("--scale HOW", _SCALE)]
CertifyOption = Annotated[
    bool | None, _option("--certify/--no-certify", _CERTIFY, show_default=False)
]
ListOption = Annotated[str, _option("--features FILE", _LIST)]
ComponentsOption = Annotated[str, _option("--components -m M", _COMPONENTS)]
TightOption = Annotated[bool | None, _option("--tight/--no-tight", _TIGHT, show_default=False)]
SeedOption = Annotated[
    int, _option("--seed N", "Seed of all random numbers.", min=0, max=LARGEST_SEED)
]
ThreadsOption = Annotated[int | None, _option("--threads N", "Cores to use (all).", min=1)]
JsonOption = Annotated[bool, _option("--json", "Print the result as JSON.")]
ForceOption = Annotated[bool, _option("--force", "Replace files that exist.")]
QuietOption = Annotated[bool, _option("--quiet -q", "Print results only.")]
DebugOption = Annotated[bool, _option("--debug", "Show the traceback of an error.")]
IdOption = Annotated[Text, _option("--id COLUMN", "Column with the sample names.")]
LabelsOption = Annotated[
    Text, _option("--labels COLUMN", "Column with classes; never used to select.")
]
DropOption = Annotated[Texts, _option("--drop COLUMNS", _DROP)]


@dataclass(frozen=True)
class ReadingOptions:
    """How a table is read and prepared: the options that all commands on a table share."""

    identifier: IdOption = None
    labels: LabelsOption = None
    drop: DropOption = None
    kinds: Annotated[Texts, _option("--as COLUMN=KIND", _KIND)] = None
    missing: Annotated[Text, _option("--missing HOW", _MISSING)] = None
    log: Annotated[bool, _option("--log", "Take log(1 + x), as for counts.")] = False
    transpose: Annotated[bool, _option("--transpose", "Features are rows in the file.")] = False
    sample: Annotated[int | None, _option("--sample N", "Use N rows, drawn at random.", min=2)] = (
        None
    )
    make_unique: Annotated[
        bool, _option("--make-unique", "Number repeated column names: a, a.1, a.2.")
    ] = False
    drop_samples: Annotated[Texts, _option("--drop-samples NAMES", _DROP_SAMPLES)] = None
    drop_zero_rows: Annotated[
        bool, _option("--drop-zero-rows", "Leave out rows that hold zeros only.")
    ] = False
    annotation: Annotated[Texts, _option("--annotation COLUMNS", _ANNOTATION)] = None
    skip_rows: Annotated[int | None, _option("--skip-rows N", _SKIP, min=0)] = None
    header_rows: Annotated[int | None, _option("--header-rows N", _HEADER_ROWS, min=1)] = None
    header: Annotated[bool | None, _option("--header/--no-header", _HEADER, show_default=False)] = (
        None
    )
    format: Annotated[
        Text, _option("--format NAME", "Format of the file, if its name does not show it.")
    ] = None
    sep: Annotated[Text, _option("--sep MARK", "Separator of a text table.")] = None
    decimal: Annotated[Text, _option("--decimal MARK", "Decimal mark, . or ,")] = None
    comment: Annotated[Text, _option("--comment MARK", "How lines begin that are left out.")] = None
    encoding: Annotated[Text, _option("--encoding NAME", "Of text, such as latin-1.")] = None
    sheet: Annotated[Text, _option("--sheet NAME", "Sheet: name, or number from 1.")] = None
    layer: Annotated[Text, _option("--layer NAME", "Layer of an .h5ad to read, not X.")] = None
    dataset: Annotated[Text, _option("--dataset NAME", "Array of an HDF5 file to read.")] = None
    max_size: Annotated[Text, _option("--max-size SIZE", "Largest table in memory (8G).")] = None
    quiet: QuietOption = False
    debug: DebugOption = False
    asked_kinds: dict[str, Any] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Raise for what is wrong with any table, before one is read."""
        if self.missing is not None and self.missing not in MISSING:
            raise ParameterError(
                f"--missing must be one of {', '.join(MISSING)}; got {shorten(self.missing)}."
            )
        for word in self.kinds or []:
            name, equals, kind = word.rpartition("=")
            if not equals or not name or kind not in KINDS:
                raise ParameterError(
                    f"--as takes COLUMN=KIND with one of {', '.join(KINDS)}; got {shorten(word)}."
                )
            self.asked_kinds[name] = kind

    def request(self) -> "ReadRequest":
        """How the table is read."""
        from keepers.tables.table import REQUEST_FIELDS, ReadRequest  # brings NumPy

        own = {name: getattr(self, name) for name in REQUEST_FIELDS if hasattr(self, name)}
        own |= {"drop": tuple(self.drop or ()), "annotation": tuple(self.annotation or ())}
        own |= {"max_bytes": as_bytes(self.max_size)}
        return ReadRequest(**own)

    def words(self) -> list[str]:
        """The options as they are written, without those left at their defaults."""
        words: list[str] = []
        for each in _reading_options():
            value = getattr(self, each.name)
            name = each.type.__metadata__[0].default  # typer keeps the first name there
            if value is None or value == each.default or each.name in ("quiet", "debug"):
                continue
            if isinstance(value, bool):
                words.append(name.split("/")[0 if value else -1])
            else:
                for item in value if isinstance(value, list) else [value]:
                    words += [name, str(item)]
        return words


def _reading_options() -> list[Any]:
    return [each for each in fields(ReadingOptions) if each.init]


RARE = frozenset(
    [
        *("make_unique", "drop_samples", "drop_zero_rows", "header", "format", "sep", "decimal"),
        *("annotation", "skip_rows", "header_rows"),
        *("comment", "encoding", "sheet", "layer", "dataset", "max_size", "workers", "scheduler"),
        *("certify", "seed", "threads", "debug"),
    ]
)
"""Parameters of commands on a table that --help leaves out and --help-all shows."""


class TableCommand(TyperCommand):
    """A command whose --help leaves out rare options, and whose --help-all shows them."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.epilog = f"keepers {self.name} --help-all shows the options for rare cases."
        for each in self.params:
            option: Any = each
            option.hidden = option.name in RARE


def _show_all_help(context: typer.Context, asked: bool) -> None:
    if not asked:
        return
    command: Any = context.command
    command.epilog = None
    for option in command.params:
        option.hidden = False
    typer.echo(context.get_help())
    raise typer.Exit


_HelpAllOption = Annotated[
    bool, _option("--help-all", "Show all options.", callback=_show_all_help, is_eager=True)
]


def on_a_table(command: Command) -> Command:
    """Give a command, whose parameter ``reading`` is `ReadingOptions`, all of these as options.

    Errors in it become a sentence and an exit code.
    """
    own = inspect.signature(command)
    shared = _reading_options()

    @functools.wraps(command)
    def run(*, help_all: bool = False, **given: Any) -> None:
        reading = ReadingOptions(**{each.name: given.pop(each.name) for each in shared})
        command(**given, reading=reading)

    parameters = []
    for parameter in own.parameters.values():
        if parameter.name == "reading":
            parameters += [_parameter(each.name, each.type, each.default) for each in shared]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    parameters.append(_parameter("help_all", _HelpAllOption, False))
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": None}
    return errors_in_one_sentence(run)  # type: ignore[return-value]


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def check_outputs(
    outputs: Mapping[str, Path | None], sources: Sequence[str], *, force: bool
) -> None:
    """Raise, before anything is read, if a file must not or cannot be written.

    ``outputs`` are files by their options. They must differ from each other and from every file
    that ``sources`` are read from, also where a link leads to it.
    """
    from keepers.tables.atomic import check_target, is_same_file
    from keepers.tables.opening import source_files  # brings NumPy, as everything imported below

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


def as_number(text: str, option: str) -> int | float:
    """Read "50" as a number, and "10%" or "0.1" as a share."""
    word = text.strip()
    if word.isdecimal() and len(word) <= LONGEST_NUMBER and int(word) >= 1:
        return int(word)
    try:
        share = float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if 0.0 < share < 1.0 or word == "100%":
        return share
    raise ParameterError(
        f"{option} must be an integer >= 1, or a share like 10% or 0.1; got {shorten(text)}."
    )


def as_bytes(text: str | None, option: str = "--max-size") -> int | None:
    """Read "4G" as a number of bytes."""
    from keepers.tables.table import as_n_bytes

    return None if text is None else as_n_bytes(text, option)


def check_scaling(scaling: str) -> str:
    """Return the scaling; raise if it does not exist."""
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
    """Use at most ``threads`` threads of BLAS and OpenMP inside the block; None: no limit."""
    from threadpoolctl import threadpool_limits

    return nullcontext() if threads is None else threadpool_limits(threads)
