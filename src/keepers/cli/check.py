"""`keepers check`: one look at a table, all findings at once, each with the option that helps."""

from typing import Annotated

import typer

from keepers.cli.console import errors_in_one_sentence, say
from keepers.cli.options import DataArgument, DebugOption, MaxSizeOption, QuietOption, as_bytes
from keepers.cli.reading import ReadingOptions, takes_reading_options


@errors_in_one_sentence
@takes_reading_options
def check(
    data: DataArgument,
    reading: ReadingOptions,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    max_size: MaxSizeOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Look at a table before a selection: what its columns are, and what stands in the way.

    Every finding comes with the option of `keepers select` that acts on it; the last line is the
    command with all of them.
    Example: keepers check survey.csv
    """
    # Imported here, so that help and completion need not wait for NumPy.
    from keepers.cli.output import print_json
    from keepers.cli.prepared import check_data, ready_command

    found = check_data(data, reading, as_bytes(max_size), quiet=quiet)
    command = ready_command(found, data, reading)
    if json:
        print_json(
            {
                "data": found.name,
                "n_rows": found.n_rows,
                "n_columns": found.n_columns,
                "kinds": {name: kind.kind for name, kind in found.kinds.items()},
                "findings": [vars(finding) for finding in found.findings],
                "command": command,
            }
        )
        return
    say(found.summary)
    for finding in found.findings:
        say(f"- {finding}")
    if not found.findings:
        say("Nothing stands in the way of a selection.")
    say(command)
