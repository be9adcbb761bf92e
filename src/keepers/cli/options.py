"""The options of all commands, each declared once, and how their texts are read.

A command takes its options as one dataclass. NumPy is imported inside functions: help and
completion need the declarations only.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING as REQUIRED
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepers.catalogue import METHODS
from keepers.exceptions import DataError, ParameterError, shorten

if TYPE_CHECKING:
    from keepers.tables.table import ReadRequest

METHOD_NAMES = tuple(method.name for method in METHODS if method.selects)

Text = str | None
Texts = list[str] | None
Number = int | None
Switch = bool | None
File = Path | None


def _option(usage: str, help: str, default: Any = None, **more: Any) -> Any:
    """A field declared as help shows it: "-k --features N" has two names and takes an N."""
    words = usage.split()
    names = [word for word in words if word.startswith("-")]
    metavar = words[-1] if len(words) > len(names) else None
    more.setdefault("show_default", "/" not in usage)
    declared = typer.Option(*names, metavar=metavar, help=help, **more)
    return field(default=default, metadata={"option": declared})


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
_LEFT_OUT = "Samples to leave out, by name or row number from 1, with commas between."
_ANNOTATION = "Columns that describe the rows, as genes in rows have; written as in --drop."
_HEADER = "Whether the first line of a text table holds column names; guessed by default."
_LIST = "The list: a text with one name a line, a recipe (.json), or - for the standard input."
_TIGHT = "Compute the tighter, slower bound or not; by default where it takes a second or two."
_METHODS = "Names with commas between them, or all; the baselines are always added."
_CERTIFY = "Prove how close the kept features are to those that hold the most variance."
_COMPONENTS = "Components in which variance is counted: a number, a share such as 0.8, or auto."
_SCALING = "auto puts columns of different units on one scale; or as in `keepers select`."

DataArgument = Annotated[str, typer.Argument(metavar="DATA", help=_DATA, show_default=False)]
RecipeArgument = Annotated[
    Path, typer.Argument(metavar="RECIPE", help="Recipe written by `keepers select --save`.")
]


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How a table is read and prepared: the options of all commands."""

    identifier: Text = _option("--id COLUMN", "Column with the sample names.")
    labels: Text = _option("--labels COLUMN", "Column with classes; never used to select.")
    drop: Texts = _option("--drop COLUMNS", "Columns to leave out: a,b or 'meta_*'; repeatable.")
    kinds: Texts = _option("--as COLUMN=KIND", "Column type: number, category, date, drop, ...")
    missing: Text = _option("--missing HOW", "Gaps: keep (auto), mean, median, model, drop-rows.")
    log: bool = _option("--log", "Take log(1 + x), as for counts.", False)
    transpose: bool = _option("--transpose", "Features are rows in the file.", False)
    sample: Number = _option("--sample N", "Use N random rows.", min=2)
    quiet: bool = _option("--quiet -q", "Print results only.", False)
    make_unique: bool = _rare("--make-unique", "Number repeated column names: a, a.1, a.2.", False)
    drop_samples: Texts = _rare("--drop-samples NAMES", _LEFT_OUT)
    drop_zero_rows: bool = _rare("--drop-zero-rows", "Leave out rows that hold zeros only.", False)
    annotation: Texts = _rare("--annotation COLUMNS", _ANNOTATION)
    skip_rows: Number = _rare("--skip-rows N", "Lines above the column names (guessed).", min=0)
    header_rows: Number = _rare("--header-rows N", "Lines of column names (guessed).", min=1)
    header: Switch = _rare("--header/--no-header", _HEADER)
    format: Text = _rare("--format NAME", "Format of the file, if its name does not show it.")
    sep: Text = _rare("--sep MARK", "Separator of a text table.")
    decimal: Text = _rare("--decimal MARK", "Decimal mark, . or ,")
    comment: Text = _rare("--comment MARK", "Skip lines that begin with it.")
    encoding: Text = _rare("--encoding NAME", "Encoding of the text, such as latin-1.")
    sheet: Text = _rare("--sheet NAME", "Sheet: name, or number from 1.")
    layer: Text = _rare("--layer NAME", "Layer of an .h5ad to read, not X.")
    dataset: Text = _rare("--dataset NAME", "Array of an HDF5 file to read.")
    max_size: Text = _rare("--max-size SIZE", "Largest table in memory (8G).")
    debug: bool = _rare("--debug", "Show the traceback of an error.", False)
    help_all: bool = _option(
        "--help-all", "Show all options.", False, callback=_show_all_help, is_eager=True
    )

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

    json: bool = _option("--json", "Print the result as JSON.", False)


@dataclass(frozen=True, kw_only=True)
class ApplyOptions(ReadingOptions):
    """What `keepers apply` takes."""

    out: Path = _option("--out FILE", "Write the kept columns (.csv, .h5ad, ...).", REQUIRED)
    force: bool = _option("--force", "Replace files that exist.", False)


@dataclass(frozen=True, kw_only=True)
class FitOptions(CheckOptions):
    """What commands take that compute something."""

    scale: str = _option("--scale HOW", "Scale the values: unit-samples, ...", "raw")
    seed: int = _rare("--seed N", "Seed of all random numbers.", 0, min=0, max=2**32 - 1)
    threads: Number = _rare("--threads N", "Cores to use (all).", min=1)


@dataclass(frozen=True, kw_only=True)
class SelectOptions(FitOptions):
    """What `keepers select` takes."""

    k: Text = _option("-k --features N", "Features to keep, 50 or 10%; auto chooses it.")
    method: str = _option("--method NAME", _METHOD, "auto")
    settings: Texts = _option("--set NAME=VALUE", "Setting of the method; repeatable.")
    keep: Texts = _option("--keep COLUMN", "Feature to keep always; repeatable.")
    never: Texts = _option("--never COLUMN", "Feature never to keep; repeatable.")
    out: File = _option("--out FILE", "Write the kept columns (.csv, .h5ad, ...).")
    report: File = _option("--report FILE", "Write a report (HTML).")
    save: File = _option("--save FILE", "Write a recipe (JSON) for `keepers apply`.")
    scores: File = _option("--scores FILE", "Write rank, score and reason (CSV).")
    force: bool = _option("--force", "Replace files that exist.", False)
    memory: Text = _option("--memory SIZE", "Read in blocks, using at most SIZE (4G).")
    workers: Number = _rare("--workers N", "Read in blocks, with N local processes.", min=1)
    scheduler: Text = _rare("--scheduler ADDRESS", "Read in blocks, on a Dask cluster (tcp://...).")
    certify: Switch = _rare("--certify/--no-certify", _CERTIFY)


@dataclass(frozen=True, kw_only=True)
class CertifyOptions(FitOptions):
    """What `keepers certify` takes."""

    features: str = _option("--features FILE", _LIST, REQUIRED)
    components: str = _option("--components -m M", _COMPONENTS, "auto")
    tight: Switch = _option("--tight/--no-tight", _TIGHT)


@dataclass(frozen=True, kw_only=True)
class CompareOptions(FitOptions):
    """What `keepers compare` takes."""

    methods: str = _option("--methods NAMES", _METHODS, "auto,spcafs,fspca,lapscore,mcfs")
    ks: str = _option("--ks NUMBERS", "Numbers of features.", "10,20,50,100")
    repeats: int = _option("--repeats N", "Repeats of k-means.", 20, min=1)
    out: File = _option("--out FILE", "Write all numbers (CSV).")
    force: bool = _option("--force", "Replace files that exist.", False)
    scale: str = _option("--scale HOW", _SCALING, "auto")


def takes_options(app: typer.Typer, module: str) -> Callable[[Callable[..., None]], None]:
    """Declare a command by its arguments, its options (a dataclass) and its help.

    The function of the same name in ``keepers.cli.module`` runs it. Options of bases come last.
    """

    def declare(declared: Callable[..., None]) -> None:
        name, own = declared.__name__, inspect.signature(declared).parameters
        kind = own["options"].annotation
        order = dict.fromkeys(f for base in kind.__mro__ for f in inspect.get_annotations(base))
        listed = [kind.__dataclass_fields__[field] for field in order]

        def run(**given: Any) -> None:
            options = kind(**{each.name: given.pop(each.name) for each in listed})
            work = getattr(import_module(f"keepers.cli.{module}"), name)
            work(*(given[each] for each in own if each != "options"), options)

        parameters = [each for each in own.values() if each.name != "options"]
        for each in listed:
            default = inspect.Parameter.empty if each.default is REQUIRED else each.default
            annotation: Any = Annotated[each.type, each.metadata["option"]]
            keyword = inspect.Parameter.KEYWORD_ONLY
            new = inspect.Parameter(each.name, keyword, default=default, annotation=annotation)
            parameters.append(new)
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        epilog = f"keepers {name} --help-all shows the options for rare cases."
        app.command(name, help=inspect.getdoc(declared), epilog=epilog)(run)

    return declare


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
