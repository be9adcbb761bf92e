"""Options about how a table is read and prepared, which several commands share."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, TypeVar

import typer

from keepers.cli.options import DropOption, IdOption, LabelsOption
from keepers.exceptions import ParameterError, shorten

# Named here as well as where they are defined, so that help and completion do not import NumPy; a
# test holds the two together.
MISSING = ("error", "mean", "median", "model", "drop-rows")
KINDS = (
    *("number", "boolean", "category", "ordered", "date"),
    *("identifier", "text", "empty", "drop"),
)

Command = TypeVar("Command", bound=Callable[..., None])


@dataclass(frozen=True)
class ReadingOptions:
    """How a table is read and prepared, as the options of a command say."""

    id: IdOption = None
    labels: LabelsOption = None
    drop: DropOption = None
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            metavar="COLUMN=KIND",
            help="What a column is: number, boolean, category, ordered, date, identifier, text, "
            "drop; may be repeated. A date as a feature: number.",
        ),
    ] = None
    missing: Annotated[
        str,
        typer.Option(
            "--missing", metavar="HOW", help=f"What to do with gaps: {', '.join(MISSING)}."
        ),
    ] = "error"
    log: Annotated[
        bool, typer.Option("--log", help="Take log(1 + x) of all numbers, as for counts.")
    ] = False
    transpose: Annotated[
        bool,
        typer.Option("--transpose", help="Features are rows, samples are columns."),
    ] = False
    make_unique: Annotated[
        bool, typer.Option("--make-unique", help="Number repeated column names: a, a.1, a.2.")
    ] = False
    drop_samples: Annotated[
        list[str] | None,
        typer.Option(
            "--drop-samples",
            metavar="NAMES",
            help="Samples to leave out, by name or row number from 1, with commas between.",
        ),
    ] = None
    drop_zero_rows: Annotated[
        bool, typer.Option("--drop-zero-rows", help="Leave out rows that hold zeros only.")
    ] = False
    sample: Annotated[
        int | None,
        typer.Option("--sample", min=2, metavar="N", help="Use N rows, drawn at random."),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first line of a text table holds column names; guessed if not given.",
            show_default=False,
        ),
    ] = None
    format: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="NAME", help="Format of the file, if its name does not tell it."
        ),
    ] = None
    sep: Annotated[
        str | None, typer.Option("--sep", metavar="MARK", help="What separates cells of text.")
    ] = None
    decimal: Annotated[
        str | None, typer.Option("--decimal", metavar="MARK", help="Decimal mark, . or ,")
    ] = None
    comment: Annotated[
        str | None,
        typer.Option("--comment", metavar="MARK", help="Lines that begin with it are left out."),
    ] = None
    encoding: Annotated[
        str | None, typer.Option("--encoding", metavar="NAME", help="Of text, such as latin-1.")
    ] = None
    sheet: Annotated[
        str | None,
        typer.Option(
            "--sheet", metavar="NAME", help="Sheet of a workbook: name, or number from 1."
        ),
    ] = None
    asked_kinds: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Refuse what is wrong whatever the table holds."""
        if self.missing not in MISSING:
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

    def roles(self) -> dict[str, Any]:
        """What `open_table` and `open_blocks` take."""
        return {
            "identifier": self.id,
            "labels": self.labels,
            "drop": self.drop or (),
            "header": self.header,
            "make_unique": self.make_unique,
            "format": self.format,
            "sep": self.sep,
            "decimal": self.decimal,
            "comment": self.comment,
            "encoding": self.encoding,
            "sheet": self.sheet,
        }

    def in_python(self, data: str, scaling: str) -> list[str] | None:
        """Lines of Python that make the same ``table``; None if rows are drawn or left out."""
        if self.sample or self.drop_samples or self.drop_zero_rows:
            return None
        roles = {**self.roles(), "transpose": self.transpose, "mixed": True}
        fills = None if self.missing == "error" else self.missing
        preparing = {"missing": fills, "kinds": self.asked_kinds, "log": self.log}
        lines = [
            f"table = keepers.datasets.open_table({_arguments([repr(data)], roles)})",
            f"preparer = keepers.TablePreparer({_arguments([], preparing)})",
            "table = preparer.fit(table).prepare(table, first_row=0)",
        ]
        if scaling != "raw":
            scaled = f"keepers.datasets.scale_samples(table.X, {scaling!r})"
            lines = ["import dataclasses", "", *lines]
            lines.append(f"table = dataclasses.replace(table, X={scaled})")
        return lines

    def words(self) -> list[str]:
        """The options as they are written, without those left at their defaults."""
        words: list[str] = []
        for each in _options():
            value = getattr(self, each.name)
            name = _metadata(each).default  # where typer holds the first name of an option
            if value is None or value == each.default:
                continue
            if isinstance(value, bool):
                words.append(name.split("/")[0 if value else -1])
            else:
                for item in value if isinstance(value, list) else [value]:
                    words += [name, str(item)]
        return words


def _arguments(first: list[str], named: dict[str, Any]) -> str:
    """Arguments of a call, without those that say nothing."""
    given = [
        f"{name}={value!r}"
        for name, value in named.items()
        if value or (name == "header" and value is False)
    ]
    return ", ".join([*first, *given])


def _options() -> list[Any]:
    return [each for each in fields(ReadingOptions) if each.init]


def _metadata(each: Any) -> Any:
    return each.type.__metadata__[0]


def takes_reading_options(command: Command) -> Command:
    """Give a command, whose parameter ``reading`` is `ReadingOptions`, all of these as options."""
    own = inspect.signature(command)

    @functools.wraps(command)
    def run(**given: Any) -> None:
        names = [each.name for each in _options()]
        reading = ReadingOptions(**{name: given.pop(name) for name in names})
        command(**given, reading=reading)

    parameters = []
    for parameter in own.parameters.values():
        if parameter.name == "reading":
            parameters += [
                inspect.Parameter(
                    each.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=each.default,
                    annotation=each.type,
                )
                for each in _options()
            ]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": None}
    return run  # type: ignore[return-value]
