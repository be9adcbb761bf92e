"""The command ``keepers``: its subcommands and their help; the work is done in ``keepers.cli``."""

import sys

try:
    from typing import Annotated

    import typer

    from keepers import __version__
    from keepers.cli.console import (
        ApplyOptions,
        CertifyOptions,
        CheckOptions,
        CompareOptions,
        DataArgument,
        RecipeArgument,
        SafeCommands,
        SelectOptions,
        takes_options,
    )
except KeyboardInterrupt:
    sys.exit(130)
except ModuleNotFoundError as error:
    if error.name not in ("typer", "rich"):
        raise
    sys.exit(
        f'keepers: the command needs {error.name}. Install it with: pip install "keepers[cli]"'
    )

SUMMARY = "Select the features of an unlabelled table that are worth keeping."

app = typer.Typer(
    name="keepers",
    cls=SafeCommands,
    help=SUMMARY,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@takes_options(app, "prepared")
def check(data: DataArgument, options: CheckOptions) -> None:
    """Report column types, gaps, copies and outliers of a table.

    Run it before a selection. Every finding comes with the option of `keepers select` that acts on
    it. The last line is a command that you can run; it drops no usable row or column.
    Example: keepers check survey.csv
    """


@takes_options(app, "selections")
def select(data: DataArgument, options: SelectOptions) -> None:
    """Select the features of a table that are worth keeping.

    Labels are never used to select; IDs, dates and free text are not used either. If there is no
    structure, all columns are kept. The file of --out has the original values and gaps.
    Example: keepers select genes.csv --id sample --out kept.csv --report report.html
    """


@takes_options(app, "selections")
def apply(recipe: RecipeArgument, data: DataArgument, options: ApplyOptions) -> None:
    """Keep the features of a recipe in another table.

    The table needs the kept columns, under the same names. The output has their original values
    and gaps, with the sample names and classes if the selection had any. A folder is read in
    blocks.
    Example: keepers apply recipe.json new-samples.csv --out kept.csv
    """


@takes_options(app, "selections")
def certify(data: DataArgument, options: CertifyOptions) -> None:
    """Prove how close a list is to the best possible one.

    The list may come from a selection, a colleague or a paper. The answer is a guarantee, not an
    estimate: the list holds at least this share of the variance that any list of the same length
    could hold. It also shows which features are in every best list, and which are in none.
    Example: keepers certify genes.csv --features list.txt
    """


@takes_options(app, "compare")
def compare(data: DataArgument, options: CompareOptions) -> None:
    """Compare methods on a table whose classes are known (--labels).

    Every method selects with its default settings and without the classes; methods that need a
    number of clusters are given the number of classes. Then k-means groups the samples by the kept
    features, and the groups are compared with the classes.
    Example: keepers compare cells.csv --labels type --ks 50,100
    """


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"keepers {__version__}")
        raise typer.Exit


@app.callback(help=SUMMARY)
def _global_options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Options before the name of a command."""


main = typer.main.get_command(app)
"""Entry point of the command."""
