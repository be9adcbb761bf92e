"""`keepers datasets`: what can be named instead of a file."""

from rich.table import Table

from keepers.cli.console import PlainConsole, errors_in_one_sentence, note
from keepers.cli.options import DebugOption

__all__ = ["datasets"]


@errors_in_one_sentence
def datasets(debug: DebugOption = False) -> None:
    """List the data sets that commands know by name, and which of them are here.

    Example: KEEPERS_DATA=~/benchmarks keepers datasets
    """
    # Imported here, so that help and completion are there at once.
    from keepers.data.catalogue import catalogue, data_folder, load, names, present

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "samples", "features", "classes", "scaling", "here", "source"):
        is_count = heading in ("samples", "features", "classes")
        table.add_column(heading, justify="right" if is_count else "left")
    for name in names():
        X, _, y = load(name)
        shape = (str(X.shape[0]), str(X.shape[1]), str(len(set(y))))
        scaling = "unit-samples" if name == "srbct" else "raw"
        table.add_row(name, *shape, scaling, "bundled", "comes with keepers")
    absent = 0
    for entry in catalogue():
        here = present(entry)
        absent += not here
        shape = (str(entry.n_samples), str(entry.n_features), str(entry.n_classes))
        table.add_row(entry.name, *shape, entry.scaling, "yes" if here else "no", entry.source)
    PlainConsole(soft_wrap=True).print(table)
    if absent:
        note(
            f"{absent} of {len(catalogue())} catalogued sets are not in {data_folder()}. keepers "
            "may not redistribute them: fetch each from its source, store it as NAME.npz with "
            "arrays X and y, and set KEEPERS_DATA to the folder."
        )
