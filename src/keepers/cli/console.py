"""Shared parts of all commands: options, printing, errors and exit codes.

A command takes its options as one dataclass. NumPy is imported inside functions: help and
completion need the declarations only.

Results go to stdout, everything else to stderr. Exit codes: 0 success; 1 failure, with one sentence
why and the way out; 2 wrong usage; 130 interrupted; 141 the reader of the output has left, as in
``keepers ... | head``. A traceback is shown only with ``--debug``.

Names of files, columns and cells come from others. Everything that is printed passes through
`printable`, which shows control characters as escapes, and none of it is read as markup.
"""

import functools
import inspect
import io
import json
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import MISSING as REQUIRED
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text as Shown
from typer.core import TyperGroup

from keepers.catalogue import METHODS
from keepers.exceptions import DataError, KeepersError, KeepersWarning, ParameterError, shorten

if TYPE_CHECKING:
    from keepers.tables.table import ReadRequest

FAILURE, MISUSE, INTERRUPTED, READER_LEFT = 1, 2, 130, 141
LONGEST_LINE = 2000


class PlainConsole(Console):
    """A console that prints text as it is: no markup, no emoji codes."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, highlight=False, emoji=False, **settings)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # as any other print does


stderr = PlainConsole(stderr=True, soft_wrap=True)
typed_words: list[str] = []
"""The command that is running, as it was typed, without "keepers"."""


class SafeCommands(TyperGroup):
    """Commands whose errors are one sentence and an exit code, and cannot steer the terminal."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **settings: Any) -> Any:
        typed_words[:] = sys.argv[1:] if args is None else args
        settings["standalone_mode"] = False
        with errors_in_words():
            make_streams_safe()
            code = super().main([*typed_words], *more, **settings)
        sys.exit(code)


@contextmanager
def errors_in_words() -> Iterator[None]:
    """End the process with a sentence about an error in the block, and its exit code.

    Around a command, and once more around the parser, which would end some of them its own way.
    """
    try:
        yield
        sys.stdout.flush()
    except (SystemExit, typer.Exit):
        raise
    except BaseException as error:  # a panic of polars is not an Exception
        code, lines = _describe(error)
        stderr.quiet = False
        if "--debug" in typed_words:
            lines = [*traceback.format_exc().splitlines(), *lines]
        with suppress(OSError):  # nobody reads the error stream either
            for line in lines:
                note(line)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:  # the interpreter would try once more, and show a traceback
                with suppress(OSError, ValueError):  # a stream without a file, as in tests
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise SystemExit(code) from None


def _describe(error: Any) -> tuple[int, list[str]]:
    """The exit code of an error, and what to print about it."""
    code, lines = FAILURE, [str(error)]
    match error:
        case KeepersError():
            code = MISUSE if isinstance(error, ParameterError) else FAILURE
            lines = [str(line) for line in error.args]
        case KeyboardInterrupt() | typer.Abort():
            code, lines = INTERRUPTED, [str(error) or "Interrupted."]
        case MemoryError():
            lines = ["Not enough memory for this table."]
        case BrokenPipeError():
            return READER_LEFT, []
        case OSError():
            lines = [f"{error.strerror or error}: {error.filename or ''}".rstrip(": ")]
        case _ if hasattr(error, "format_message"):  # of the parser
            shown = io.StringIO()
            error.show(shown)
            return error.exit_code, shown.getvalue().splitlines()
        case _:
            lines = [
                f"Unexpected error ({type(error).__name__}: {error}). Run the command again with "
                "--debug and report the traceback."
            ]
    return code, [f"keepers: {lines[0]}", *lines[1:]]


def make_streams_safe() -> None:
    """Make printing safe from a missing stream and from characters outside of its encoding.

    A stream that the shell closed (``>&-``) becomes the null device. Otherwise a file that is
    opened later would get its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def printable(text: str, width: int | None = None) -> str:
    """Text that cannot steer a terminal or break a line; shortened to ``width``."""
    safe = text
    if not text.isprintable():
        safe = "".join(c if c.isprintable() or c == "\u00a0" else ascii(c)[1:-1] for c in text)
    return safe if width is None or len(safe) <= width else safe[: width - 1] + "…"


def shell_command(words: Iterable[str]) -> str:
    """Words as a line for the shell, safe to print: control characters are shown as escapes."""
    return printable(shlex.join(words))


def say(*cells: str) -> None:
    """Print a line of the result: its cells, separated by tabs."""
    print(*map(printable, cells), sep="\t")


def note(text: str) -> None:
    """Print a line beside the result, unless --quiet silences ``stderr``."""
    stderr.print(printable(text, LONGEST_LINE))


def say_notes(notes: Iterable[str]) -> None:
    for each in notes:
        note(f"keepers: note: {each}")


def print_json(content: dict[str, Any]) -> None:
    """Print JSON; NaN and infinity become null, and objects the name of their type."""
    text = json.dumps(content, default=lambda value: repr(type(value)))
    plain = json.loads(text, parse_constant=lambda _: None)
    print(json.dumps(plain, indent=1))


@contextmanager
def progress_line(text: str) -> Iterator[Callable[[str], None]]:
    """Show a line inside the block, and afterwards its warnings.

    Yields a function that shows another text.
    """
    shown = stderr.is_terminal and not stderr.quiet
    with (
        warnings.catch_warnings(record=True) as caught,
        stderr.status(Shown(printable(text)), spinner="line") if shown else nullcontext() as status,
    ):
        warnings.simplefilter("always", KeepersWarning)
        yield lambda text: status.update(Shown(printable(text))) if status else None
    messages = [str(w.message) for w in caught if issubclass(w.category, KeepersWarning)]
    say_notes(dict.fromkeys(messages))


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


def _show_all_help(context: typer.Context, wanted: bool) -> None:
    if wanted:
        command: Any = context.command
        command.epilog = None
        for option in command.params:
            option.hidden = False
        typer.echo(context.get_help())
        raise typer.Exit


_DATA = (
    "A file (CSV, Parquet, h5ad, Excel, ...), a folder or pattern of files, or a bundled data set."
)
_METHOD = f"{', '.join(METHOD_NAMES)}, or MODULE:CLASS."

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
    missing: Text = _option("--missing HOW", "Gaps: keep, error, mean, median, model.")
    log: bool = _option("--log", "Take log(1 + x), as for counts.", False)
    transpose: bool = _option("--transpose", "Features are rows in the file.", False)
    sample: Number = _option("--sample N", "Use N random rows.", min=2)
    quiet: bool = _option("--quiet -q", "Print results only.", False)
    make_unique: bool = _rare("--make-unique", "Number repeated column names: a, a.1, a.2.", False)
    drop_samples: Texts = _rare(
        "--drop-samples NAMES", "Samples to leave out: names, or row numbers from 1."
    )
    annotation: Texts = _rare(
        "--annotation COLUMNS", "Columns that describe the rows, as in --drop."
    )
    skip_rows: Number = _rare("--skip-rows N", "Lines above the column names (guessed).", min=0)
    header_rows: Number = _rare("--header-rows N", "Lines of column names (guessed).", min=1)
    header: Switch = _rare("--header/--no-header", "Whether the first line holds names (guessed).")
    format: Text = _rare("--format NAME", "Format of the file, if its name does not show it.")
    sep: Text = _rare("--sep MARK", "Separator of a text table.")
    decimal: Text = _rare("--decimal MARK", "Decimal mark, . or ,")
    comment: Text = _rare("--comment MARK", "Skip lines that begin with this mark.")
    encoding: Text = _rare("--encoding NAME", "Encoding of the text, such as latin-1.")
    sheet: Text = _rare("--sheet NAME", "Sheet: name, or number from 1.")
    layer: Text = _rare("--layer NAME", "Layer of an .h5ad file to read instead of X.")
    dataset: Text = _rare("--dataset NAME", "Array of an HDF5 file to read.")
    max_size: Text = _rare("--max-size SIZE", "Largest table in memory (8G).")
    debug: bool = _rare("--debug", "Show the traceback of an error.", False)
    help_all: bool = _option(
        "--help-all", "Show all options.", False, callback=_show_all_help, is_eager=True
    )

    def __post_init__(self) -> None:
        """Raise for what is wrong with any table, before one is read."""
        from keepers.prepare.kinds import KINDS, MISSING

        one_of("--missing", self.missing or "error", MISSING)
        for word in self.kinds or []:
            name, _, kind = word.rpartition("=")
            if not name or kind not in KINDS:
                raise ParameterError(
                    f"--as takes COLUMN=KIND with one of {', '.join(KINDS)}; got {shorten(word)}."
                )

    @property
    def asked_kinds(self) -> dict[str, Any]:
        return {word.rpartition("=")[0]: word.rpartition("=")[2] for word in self.kinds or []}

    def request(self) -> "ReadRequest":
        from keepers.tables.table import REQUEST_FIELDS, ReadRequest, as_n_bytes

        own = {name: getattr(self, name) for name in REQUEST_FIELDS if hasattr(self, name)}
        own |= {"drop": tuple(self.drop or ()), "annotation": tuple(self.annotation or ())}
        if self.max_size is not None:
            own["max_bytes"] = as_n_bytes(self.max_size, "--max-size")
        return ReadRequest(**own)


@dataclass(frozen=True, kw_only=True)
class CheckOptions(ReadingOptions):
    json: bool = _option("--json", "Print the result as JSON.", False)


@dataclass(frozen=True, kw_only=True)
class ApplyOptions(ReadingOptions):
    out: Path = _option("--out FILE", "Write the kept columns (.csv, .h5ad, ...).", REQUIRED)
    force: bool = _option("--force", "Replace files that exist.", False)


@dataclass(frozen=True, kw_only=True)
class FitOptions(CheckOptions):
    """Options of the commands that fit something."""

    seed: int = _rare("--seed N", "Seed of all random numbers.", 0, min=0, max=2**32 - 1)
    threads: Number = _rare("--threads N", "Cores to use (all).", min=1)


@dataclass(frozen=True, kw_only=True)
class SelectOptions(FitOptions):
    k: Text = _option("-k --features N", "Number of features, 50 or 10%; method auto chooses it.")
    method: str = _option("--method NAME", _METHOD, "auto")
    settings: Texts = _option("--set NAME=VALUE", "Setting of the method; repeatable.")
    keep: Texts = _option("--keep COLUMN", "Feature to keep always; repeatable.")
    never: Texts = _option("--never COLUMN", "Feature never to keep; repeatable.")
    out: File = _option("--out FILE", "Write the kept columns (.csv, .h5ad, ...).")
    report: File = _option("--report FILE", "Write a report (HTML).")
    save: File = _option("--save FILE", "Write a recipe (JSON) for `keepers apply`.")
    scores: File = _option("--scores FILE", "Write rank, score and reason of every column (CSV).")
    scale: str = _option("--scale HOW", "Scale the values: unit-samples, ...", "raw")
    force: bool = _option("--force", "Replace files that exist.", False)
    memory: Text = _option("--memory SIZE", "Read in blocks, using at most SIZE (4G).")
    scheduler: Text = _rare("--scheduler ADDRESS", "Read in blocks, on a Dask cluster (tcp://...).")


@dataclass(frozen=True, kw_only=True)
class CertifyOptions(FitOptions):
    features: str = _option(
        "--features FILE",
        "Text file with one name per line, a recipe, or - (standard input).",
        REQUIRED,
    )
    components: str = _option(
        "--components -m M", "Number of components, a share (0.8), or auto.", "auto"
    )
    scale: str = _option("--scale HOW", "Scale the values: unit-samples, ...", "raw")


@dataclass(frozen=True, kw_only=True)
class CompareOptions(FitOptions):
    methods: str = _option(
        "--methods NAMES",
        "Names with commas, or all; baselines are added.",
        "auto,spcafs,fspca,lapscore,mcfs",
    )
    ks: str = _option("--ks NUMBERS", "Numbers of features.", "10,20,50,100")
    repeats: int = _option("--repeats N", "Repeats of k-means.", 20, min=1)


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
            with errors_in_words():
                options = kind(**{each.name: given.pop(each.name) for each in listed})
                stderr.quiet = options.quiet
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

    given = {option: path for option, path in outputs.items() if path is not None}
    taken: dict[str, Sequence[Path]] = {
        f"the input {source}": [*source_files(source)] for source in sources
    }
    for option, path in given.items():
        if str(path) == "-":
            raise ParameterError(
                f"{option} writes a file; - stands for the standard output, which is not one. "
                "Name a file, such as ./result, or use --json for results on the standard output."
            )
        check_target(path, force=force)
        for other, files in taken.items():
            if any(is_same_file(path, file) for file in files):
                raise ParameterError(
                    f"{option} must not replace {other}, also with --force; {path} is that file. "
                    "Choose another name."
                )
        taken[option] = [path]


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


def read_feature_list(path: str) -> list[str]:
    """The names in a file, one a line, or in the standard input if it is "-".

    Lines that begin with "#" do not count. From a recipe (.json) the kept features.
    """
    if Path(path).suffix.lower() == ".json":
        from keepers.reports.recipe import Recipe

        return list(Recipe.load(Path(path)).features)
    raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    name = "the standard input" if path == "-" else path
    lines = [line.strip() for line in raw.decode("utf-8-sig", errors="replace").splitlines()]
    features = [line for line in lines if line and not line.startswith("#")]
    if not features:
        raise DataError(f"A list must name at least one feature; {name} names none.")
    return features
