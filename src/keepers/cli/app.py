"""The commands, gathered."""

from typing import Annotated

import typer

from keepers import __version__
from keepers.cli.apply import apply
from keepers.cli.compare import compare
from keepers.cli.datasets import datasets
from keepers.cli.reproduce import reproduce
from keepers.cli.select import select
from keepers.cli.tune import tune

__all__ = ["app"]

app = typer.Typer(
    name="keepers",
    help="Which features of an unlabelled table are worth keeping.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

for command in (select, tune, apply, compare, reproduce, datasets):
    app.command()(command)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"keepers {__version__}")
        raise typer.Exit


@app.callback()
def _global_options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Which features of an unlabelled table are worth keeping."""
