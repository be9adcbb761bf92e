"""The command ``keepers``: its subcommands, gathered."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any

from keepers import __version__

try:
    import typer
    from typer.core import TyperGroup

    from keepers.cli.compare import compare, datasets
    from keepers.cli.console import (
        INTERRUPTED,
        cut,
        end_with,
        flush_results,
        make_streams_safe,
        printable,
    )
    from keepers.cli.options import TableCommand
    from keepers.cli.table_commands import apply, certify, check, select
except KeyboardInterrupt:
    sys.exit(130)
except ModuleNotFoundError as error:
    if error.name not in ("typer", "rich"):
        raise
    sys.exit(
        f'keepers: the command needs {error.name}. Install it with: pip install "keepers[cli]"'
    )


class SafeCommands(TyperGroup):
    """The commands; messages of the parser cannot steer the terminal either."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **settings: Any) -> Any:
        """Run the command and end the process."""
        words = sys.argv[1:] if args is None else args
        settings["standalone_mode"] = False
        try:
            code = super().main(args, *more, **settings)
        except typer.Abort:  # Ctrl-C outside of a command
            code = INTERRUPTED
        except OSError as error:
            end_with(error)
        except Exception as raised:
            if not hasattr(raised, "format_message"):  # the parser's own errors have it
                raise
            problem: Any = raised
            # Line breaks are the parser's, unless some argument has one.
            keep = "" if any("\n" in word for word in words) else "\n"
            problem.message = printable(cut(str(problem.message)), keep=keep)
            problem.show()
            code = problem.exit_code
        flush_results()
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    name="keepers",
    cls=SafeCommands,
    help="Select the features of an unlabelled table that are worth keeping.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

for on_a_table in (check, select, apply, certify, compare):
    app.command(cls=TableCommand)(on_a_table)
app.command()(datasets)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"keepers {__version__}")
        raise typer.Exit


@app.callback()
def _global_options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Select the features of an unlabelled table that are worth keeping."""


def main() -> None:
    """Entry point of the command."""
    make_streams_safe()
    app()
