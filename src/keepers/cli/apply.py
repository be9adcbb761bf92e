"""`keepers apply`: a saved selection on new data."""

from pathlib import Path
from typing import Annotated

import typer

from keepers.cli.console import errors_in_one_sentence, note
from keepers.cli.options import (
    DataArgument,
    DebugOption,
    DropOption,
    ForceOption,
    HeaderOption,
    IdOption,
    LabelsOption,
    MaxSizeOption,
    QuietOption,
    as_bytes,
    open_data,
    read_roles,
)


@errors_in_one_sentence
def apply(
    recipe: Annotated[
        Path, typer.Argument(metavar="RECIPE", help="Recipe written by `keepers select --save`.")
    ],
    data: DataArgument,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Write the columns; the suffix sets the format.")
    ],
    id: IdOption = None,
    labels: LabelsOption = None,
    drop: DropOption = None,
    header: HeaderOption = None,
    force: ForceOption = False,
    max_size: MaxSizeOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Keep the features of a recipe in another table with the same column names.

    Example: keepers apply recipe.json new-samples.csv --id sample --out kept.csv
    """
    # Imported here, so that help and completion need not wait for NumPy.
    from keepers.data.table_files import check_writable, write_selected
    from keepers.recipe import Recipe

    check_writable(out, force=force)
    kept = Recipe.load(recipe)
    limit = as_bytes(max_size)
    table = open_data(data, read_roles(id, labels, drop, header), limit, quiet=quiet)
    columns = kept.columns_of(table.feature_names)
    names = {"identifier_name": id or "sample", "label_name": labels or "label"}
    write_selected(out, data, table, columns, force=force, **names)
    note(
        f"Kept {len(columns)} of {table.n_features} features of {table.name}; wrote {out}",
        quiet=quiet,
    )
