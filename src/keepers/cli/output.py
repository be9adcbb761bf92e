"""A selection on a terminal, in a pipe, and as JSON."""

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from keepers.cli.console import PlainConsole, as_unicode, note, printable, say
from keepers.selection import KeptFeature, Selection
from keepers.selectors.certificate import Certificate

ON_A_TERMINAL = 20
LONGEST_NAME = 48


def print_selection(
    selection: Selection,
    files: dict[str, Path | None],
    *,
    set_aside: Mapping[str, str],
    json: bool,
    quiet: bool,
    certificate: Certificate | None = None,
) -> None:
    """Print the kept features, and what was written; with ``json`` all of it for machines."""
    written = {what: str(path) for what, path in files.items() if path is not None}
    note_inactive_rows(selection, quiet=quiet)
    _note_findings(selection, quiet=quiet)
    if json:
        print_json(as_json(selection, written, set_aside, certificate))
        return
    _print_kept(selection, certificate)
    for line in _sentences(selection):
        note(line, quiet=quiet)
    if certificate is not None:
        note(str(certificate), quiet=quiet)
    for what, path in written.items():
        note(f"{what}: {path}", quiet=quiet)


def note_inactive_rows(
    selection: Selection, *, quiet: bool, set_gamma: str = "--set gamma="
) -> None:
    """Say on the error stream that more features are kept than are active, and what helps."""
    inactive = selection.inactive
    if inactive is not None:
        note(f"keepers: note: {inactive} {inactive.way_out(set_gamma, '-k ')}", quiet=quiet)


def _note_findings(selection: Selection, *, quiet: bool) -> None:
    """Say on the error stream what the selector found, and what it is unsure of."""
    if selection.summary is None:
        return
    note(selection.summary, quiet=quiet)
    doubts = list(selection.doubts)
    if not selection.structure_found:
        doubts.append("The ranking is about as good as a random one.")
    for doubt in doubts:
        note(f"keepers: note: {doubt}", quiet=quiet)


def as_json(
    selection: Selection,
    written: dict[str, str],
    set_aside: Mapping[str, str],
    certificate: Certificate | None = None,
) -> dict[str, Any]:
    """The result for machines."""
    others = [feature for feature in selection.dropped if feature.reason != "ranked below k"]
    return {
        "data": selection.source,
        "n_samples": selection.n_samples,
        "n_rows_used": selection.n_rows_used,
        "n_features": selection.n_features,
        "method": selection.method,
        "params": selection.settings,
        "scaling": selection.scaling,
        "k": selection.k,
        "summary": selection.summary,
        "doubts": selection.doubts,
        "structure_found": selection.structure_found,
        "n_carrying_structure": selection.n_carrying_structure,
        "variance_share": selection.variance_share,
        "certificate": None if certificate is None else certificate.as_dict(),
        "n_active": selection.n_active,
        "n_kept_inactive": 0
        if selection.inactive is None
        else selection.k - selection.inactive.n_active,
        "seconds": selection.seconds,
        "seconds_choosing": selection.seconds_choosing,
        "versions": selection.versions,
        "features": [
            {"rank": rank, **vars(feature)} for rank, feature in enumerate(selection.kept, 1)
        ],
        "dropped": selection.count_dropped(),
        "dropped_features": [vars(feature) for feature in others],
        "set_aside": dict(set_aside),
        "written": written,
    }


def _sentences(selection: Selection) -> list[str]:
    """The result in a sentence, and another if features were dropped for more than their rank."""
    choosing = ""
    if selection.seconds_choosing:
        choosing = f" ({selection.seconds_choosing:.1f} s of it to choose the settings)"
    drawn = ""
    if selection.n_rows_used < selection.n_samples:
        drawn = f", {selection.n_rows_used} of them drawn at random"
    held = f"; they hold {selection.variance_share:.1%} of the variance"
    if selection.counts_columns_alike:  # that would only be the share of columns
        held = ""
    lines = [
        f"{selection.method} kept {selection.k} of {selection.n_features} features of "
        f"{selection.source} ({selection.n_samples} samples{drawn}) in {selection.seconds:.1f} s"
        f"{choosing}{held}."
    ]
    dropped = selection.count_dropped()
    if dropped.keys() - {"ranked below k"}:
        words = {
            "ranked below k": f"ranked below {selection.k}",
            "constant": "constant",
            "never_keep": "excluded by --never",
            "no structure": "without structure",
            "redundant": "redundant with a kept one",
            "max_correlation": "too similar to a kept one "
            f"(max_correlation={selection.settings.get('max_correlation')})",
        }
        reasons = [f"{number} {words[reason]}" for reason, number in dropped.items()]
        lines.append(f"Not kept: {', '.join(reasons)}.")
    return lines


def _print_kept(selection: Selection, certificate: Certificate | None) -> None:
    """The best on a terminal, with what is proved of them; all of them, with tabs, in a pipe."""
    kept = selection.kept
    if not sys.stdout.isatty():
        say("rank", "feature", "score", "variance", "neighbour", "correlation")
        for rank, feature in enumerate(kept, 1):
            say(str(rank), *_cells(feature, width=None))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    shown = kept[:ON_A_TERMINAL]
    proofs = [proof_in_words(certificate, feature.column) for feature in shown]
    headings = ["rank", "feature", "score", "variance", "nearest kept", "r"]
    for heading in [*headings, "proved"] if any(proofs) else headings:
        is_text = heading in ("feature", "nearest kept", "proved")
        table.add_column(heading, justify="left" if is_text else "right")
    for rank, (feature, proof) in enumerate(zip(shown, proofs, strict=True), 1):
        cells = [*_cells(feature, LONGEST_NAME), *([proof] if any(proofs) else [])]
        table.add_row(str(rank), *(Text(cell) for cell in cells))
    console = PlainConsole()
    console.print(table)
    if len(kept) > ON_A_TERMINAL:
        console.print(f"... and {len(kept) - ON_A_TERMINAL} more", style="dim")


def proof_in_words(certificate: Certificate | None, column: int) -> str:
    """What is proved of a feature; nothing if nothing is."""
    if certificate is None:
        return ""
    if column in certificate.proved_in:
        return "in every best set"
    return "in no best set" if column in certificate.proved_out else ""


def _cells(feature: KeptFeature, width: int | None) -> tuple[str, ...]:
    known = not math.isnan(feature.correlation)
    return (
        printable(feature.name, width),
        f"{feature.score:.4g}",
        f"{feature.variance:.4g}",
        printable(feature.neighbour or "", width),
        f"{feature.correlation:+.2f}" if known else "",
    )


def print_json(content: dict[str, Any]) -> None:
    """Plain ASCII JSON; what is not a number becomes null, what is not Unicode an escape."""
    print(json.dumps(_as_plain(content), indent=1, allow_nan=False))


def _as_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _as_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float):
        return value
    return as_unicode(value if isinstance(value, str) else repr(type(value)))
