"""`keepers apply`: a saved selection on new data."""

from pathlib import Path
from typing import Annotated

import typer

from keepers.cli.console import errors_in_one_sentence, note
from keepers.cli.options import (
    DataArgument,
    DebugOption,
    ForceOption,
    MaxSizeOption,
    QuietOption,
    as_bytes,
    reads_in_blocks,
)
from keepers.cli.reading import ReadingOptions, takes_reading_options


@errors_in_one_sentence
@takes_reading_options
def apply(
    recipe: Annotated[
        Path, typer.Argument(metavar="RECIPE", help="Recipe written by `keepers select --save`.")
    ],
    data: DataArgument,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Write the columns; the suffix sets the format.")
    ],
    reading: ReadingOptions,
    force: ForceOption = False,
    max_size: MaxSizeOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Keep the features of a recipe in another table with the same column names.

    Gaps are filled, and columns of sample names and classes taken along, as in the selection; the
    table need not have the columns that were dropped. A folder is read in blocks.
    Example: keepers apply recipe.json new-samples.csv --out kept.csv
    """
    # Imported here, so that help and completion need not wait for NumPy.
    from keepers.cli.application import apply_to_blocks, apply_to_table, refuse_decided
    from keepers.data.table_files import check_writable
    from keepers.recipe import Recipe

    refuse_decided(reading)
    in_blocks = reading.sample is None and reads_in_blocks(data, ())
    check_writable(out, force=force, in_blocks=in_blocks)
    kept = Recipe.load(recipe)
    if in_blocks:
        told = apply_to_blocks(kept, data, out, reading, force=force, quiet=quiet)
    else:
        limit = as_bytes(max_size)
        told = apply_to_table(kept, data, out, reading, limit, force=force, quiet=quiet)
    note(told, quiet=quiet)
