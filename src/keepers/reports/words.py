"""The words of a selection: the answer, why, how sure, what to watch; names and numbers as shown.

The terminal and the report show the same lines.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keepers._wording import some_of
from keepers.methods.narrow import SAME
from keepers.proofs.certify import Certificate
from keepers.reports.selection import Selection

# Overrides and isolates can turn the text around them; marks (200E, 200F) only serve their own.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_NOT_MEASURED = (
    "We did not measure whether other samples would give the same features. StabilitySelector, in "
    "Python, measures it."
)


def display_name(text: str, longest: int = 60) -> str:
    """A name as shown: control and direction-changing characters replaced, long ones shortened."""
    if not text.strip():
        return "(unnamed)"
    shown = _UNSEEN.sub("\ufffd", text[: longest + 1])
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def count(number: int) -> str:
    """2308 -> 2,308."""
    return f"{number:,}"


@dataclass(frozen=True)
class Words:
    """What a reader should know first, a sentence each."""

    answer: str
    why: tuple[str, ...]
    how_sure: tuple[str, ...]
    watch: tuple[str, ...]
    """What speaks against relying on it."""
    table: tuple[str, ...]
    """How the columns were read."""


def put_into_words(
    selection: Selection, certificate: Certificate | None = None, notes: Sequence[str] = ()
) -> Words:
    """Describe a selection; ``notes`` are what was found in the table and done to it."""
    answer, found, sure = answer_of(selection), [], selection.notes.how_sure
    if selection.k == selection.selector.n_features_to_select_:  # what the method speaks of
        found = [line for line in as_sentences(selection.notes.summary or "") if line not in sure]
    if found and found[0].startswith("Keep "):
        answer = found[0] if selection.how_many == "chosen" else answer
        found = found[1:]
    proof = () if certificate is None else (f"Proved: {certificate}",)
    read = [] if selection.preparer is None else selection.preparer.notes_
    aside = [note for note in read if not note.startswith("Missing values filled")]
    notes = list(dict.fromkeys([*notes, *read, *_filled(selection)]))
    if selection.notes.nearest_better is not None:  # it keeps one of such columns
        notes = [note for note in notes if not note.startswith("Nearly duplicated columns")]
    return Words(
        answer=answer,
        why=(*found, *_share_of_variance(selection)),
        how_sure=(*proof, *sure) or (_NOT_MEASURED,),
        watch=(*_watch(selection), *(note for note in notes if note not in aside)),
        table=tuple(aside),
    )


def as_sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [part for part in re.split(r"(?<=\.) (?=[A-Z0-9])", text) if part]


def answer_of(selection: Selection) -> str:
    """How many features are kept, and who decided that."""
    method, k, d = selection.method, count(selection.k), count(selection.n_features)
    if selection.k == selection.n_features:
        return f"{method} keeps all {d} features."
    if selection.how_many == "chosen":
        return f"{method} chose {k} of the {d} features."
    if selection.how_many == "half":
        return f"{method} keeps {k} of the {d} features: half of them, as no number was given."
    asked = "feature" if selection.k == 1 else "features"
    return f"{method} keeps the {k} {asked} asked for, of {d}."


def _share_of_variance(selection: Selection) -> tuple[str, ...]:
    if selection.counts_columns_alike:  # that would only be the share of columns
        return ()
    what = "The kept feature holds" if selection.k == 1 else "Together they hold"
    weighed = " as the method weighs the columns" if selection.selector.column_power else ""
    share = f"{100 * selection.variance_share:.1f}\u00a0%"
    return (f"{what} {share} of the total variance{weighed}.",)


def _filled(selection: Selection) -> tuple[str, ...]:
    if selection.n_filled is None:
        return ()
    columns = np.flatnonzero(selection.n_filled)
    listed = [f"{selection.feature_names[at]!r} ({selection.n_filled[at]})" for at in columns]
    where = "1 column" if len(listed) == 1 else f"{len(listed)} columns"
    return (f"Gaps filled ({selection.selector.missing}) in {where}: {some_of(listed)}.",)


def _watch(selection: Selection) -> list[str]:
    watch = list(selection.notes.doubts)
    if selection.notes.structure_found is False:
        watch.append("No structure was found: the ranking is about as good as a random one.")
    if selection.inactive is not None:
        watch.append(f"{selection.inactive} {selection.inactive.way_out()}")
    n_copies = sum(abs(feature.correlation) >= SAME for feature in selection.kept)
    if n_copies:
        watch.append(
            f"{count(n_copies)} of the kept features repeat another kept one (|r| of {SAME} or "
            "more); max_correlation leaves such copies out."
        )
    n_constant = int((selection.variances[selection.order[: selection.k]] == 0.0).sum())
    if n_constant:
        watch.append(f"{count(n_constant)} of the kept features do not vary.")
    if selection.n_rows_used < selection.n_samples:
        watch.append(
            f"{count(selection.n_rows_used)} of the {count(selection.n_samples)} samples were "
            "used, drawn at random."
        )
    return watch
