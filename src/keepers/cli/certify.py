"""`keepers certify`: how near a list of features is to the best one of its length, with proof."""

from typing import Annotated, Any

import typer

from keepers.cli.console import errors_in_one_sentence, note, progress_line, say
from keepers.cli.options import (
    DataArgument,
    DebugOption,
    MaxSizeOption,
    QuietOption,
    ScaleOption,
    SeedOption,
    ThreadsOption,
    as_bytes,
    as_whole,
    check_scaling,
    limit_threads,
    reads_in_blocks,
)
from keepers.cli.reading import ReadingOptions, takes_reading_options
from keepers.exceptions import ParameterError, shorten


@errors_in_one_sentence
@takes_reading_options
def certify(
    data: DataArgument,
    features: Annotated[
        str,
        typer.Option(
            "--features",
            metavar="FILE",
            help="The features: a text with one name a line, a table with names in its first "
            "column (.csv, .tsv), a recipe (.json), or - for the standard input.",
        ),
    ],
    reading: ReadingOptions,
    components: Annotated[
        str,
        typer.Option(
            "--components",
            "-m",
            metavar="M",
            help="Components in which variance is counted: a number, a share of the variance such "
            "as 0.8, or auto.",
        ),
    ] = "auto",
    tight: Annotated[
        bool | None,
        typer.Option(
            "--tight/--no-tight",
            help="Whether to compute the tighter, slower bound; if not given, where it takes a "
            "second or two.",
            show_default=False,
        ),
    ] = None,
    scale: ScaleOption = "raw",
    json: Annotated[bool, typer.Option("--json", help="Print the certificate as JSON.")] = False,
    max_size: MaxSizeOption = None,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Say how much of the variance that any k features could hold a list of k features holds.

    The list may come from anywhere: a selection, a colleague, a paper. The answer is a guarantee,
    not an estimate; it also tells which features are in every best list, and which in none.
    Example: keepers certify genes.csv --features list.txt
    """
    # Imported here, so that help and completion need not wait for scikit-learn.
    from keepers.cli.feature_list import read_feature_list
    from keepers.cli.output import print_json
    from keepers.selectors.certificate import certify as certify_features

    scaling = check_scaling(scale)
    n_components = as_components(components)
    names = read_feature_list(features)
    table, label = _open(data, reading, scaling, as_bytes(max_size), quiet=quiet)
    settings: dict[str, Any] = {"tight": "auto" if tight is None else tight, "random_state": seed}
    what = f"certifying {len(names)} of the features of {label}"
    with progress_line(what, quiet=quiet), limit_threads(threads):
        certificate = certify_features(table, names, n_components, **settings)
    if json:
        print_json({"data": label, **certificate.as_dict()})
        return
    say(str(certificate))
    for line in certificate.details():
        note(line, quiet=quiet)


def as_components(text: str) -> int | float | str:
    """Read "3" as a number of components, "0.8" as a share of the variance, "auto" as it is."""
    word = text.strip()
    if word == "auto":
        return word
    number = as_whole(word)
    if number is not None:
        return number
    try:
        share = float(word)
    except ValueError:
        share = 0.0
    if 0.0 < share < 1.0:
        return share
    raise ParameterError(
        f"--components must be an integer >= 1, a share in (0, 1), or auto; got {shorten(text)}."
    )


def _open(
    data: str, reading: ReadingOptions, scaling: str, max_bytes: int | None, *, quiet: bool
) -> tuple[Any, str]:
    """The table as `keepers select` prepares it, and its name."""
    from keepers.cli.fit import scale_table
    from keepers.cli.prepared import prepare_data, say_notes

    if reading.sample is None and reads_in_blocks(data, ()):
        from keepers.cli.fit_blocks import prepare_blocks, refuse_other_rows, refuse_scaling

        refuse_scaling(scaling)
        refuse_other_rows(reading)
        prepared = prepare_blocks(data, reading, quiet=quiet)
        say_notes(prepared.notes(), quiet=quiet)
        return prepared.local, prepared.local.name
    in_memory = prepare_data(data, reading, max_bytes, quiet=quiet)
    say_notes(in_memory.notes(), quiet=quiet)
    return scale_table(in_memory.table, scaling), in_memory.table.name
