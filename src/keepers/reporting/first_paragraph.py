"""The words a report begins with: the answer, why, how sure, and what to watch."""

from collections.abc import Sequence
from dataclasses import dataclass

from keepers.reporting.report_parts import count, duration, percent
from keepers.selection import Selection, fitted_selector
from keepers.selectors import AutoSelector
from keepers.selectors.certificate import Certificate
from keepers.tuning.stability import StabilitySelector

_VARIANCE = "features that together hold as much of the variance of the table as so few can"
_SMOOTH = "features on which samples that are alike agree"
_CLUSTERS = "features that tell groups of samples apart, found without labels"
_REBUILD = "features from which the others can be computed"
LOOKS_FOR = {
    "AutoSelector": _SMOOTH + ", and ranks lower what repeats a better one",
    "DenoisedLaplacian": _SMOOTH + ", and ranks lower what repeats a better one",
    "SPCAFS": _VARIANCE,
    "SPCAFSCV": _VARIANCE,
    "FSPCA": _VARIANCE,
    "VarianceScore": "the features with the largest variance, each for itself",
    "LaplacianScore": _SMOOTH,
    "SPEC": _SMOOTH,
    "MCFS": _CLUSTERS,
    "UDFS": _CLUSTERS,
    "NDFS": _CLUSTERS,
    "JELSR": _CLUSTERS,
    "EUFS": _CLUSTERS,
    "DGUFS": _CLUSTERS,
    "U2FS": _CLUSTERS,
    "SOGFS": "features in which the samples keep their neighbours",
    "RNE": "features in which the samples keep their neighbours",
    "ColumnSubset": _REBUILD,
    "CUR": _REBUILD,
    "RSR": _REBUILD,
    "InfFS": "features that vary much and repeat the others little",
    "RandomScore": "nothing: it draws features at random, for comparison",
    "StabilitySelector": "features that are selected again from other samples",
}
_ROWS = "how much the feature counts in the fitted model (the length of its row of weights)"
_AGREE = (
    "from 0 (noise, or a repetition of a better feature) to 1 (samples that are alike agree "
    "exactly, and no better feature says the same); below 0, neighbours agree no more than chance"
)
_PICKED = (
    "the share of the variance that was left to explain when the feature was picked: 1 for the "
    "first; of the others, what they would add"
)
SCORE_MEANS = {
    "AutoSelector": _AGREE,
    "DenoisedLaplacian": _AGREE,
    "SPCAFS": "how much the feature counts in the sparse components, from 0 (inactive: not used) "
    "to 1",
    "FSPCA": "how much of the feature's sum of squares the components of the selection hold",
    "VarianceScore": "the variance of the feature",
    "LaplacianScore": "from -2 (samples that are alike differ) to 0 (they agree exactly)",
    "SPEC": "how smooth the feature is over a graph of the samples",
    "MCFS": "the largest weight of the feature among those that predict the groups of samples",
    "UDFS": _ROWS,
    "NDFS": _ROWS,
    "JELSR": _ROWS,
    "EUFS": _ROWS,
    "SOGFS": _ROWS,
    "RNE": _ROWS,
    "RSR": _ROWS,
    "DGUFS": "how much the feature depends on the groups that were found",
    "ColumnSubset": _PICKED,
    "CUR": _PICKED,
    "U2FS": "the place in the order of removal: the longer a feature was needed, the more",
    "InfFS": "the weight of all paths through the feature in a graph of all features",
    "RandomScore": "a random number",
    "AllFeatures": "1 for every feature",
    "StabilitySelector": "the share of the halves of the samples in which the feature was selected",
}


@dataclass(frozen=True)
class FirstParagraph:
    """What a reader should know first."""

    answer: str
    """How many features, by what, and whether that was asked for; the names follow it."""
    why: tuple[str, ...]
    how_sure: tuple[str, ...]
    time: str
    watch: tuple[str, ...]
    """What speaks against relying on it, or was done to the table before."""
    score: str
    """What a score means."""


def first_paragraph(
    selection: Selection,
    *,
    certificate: Certificate | None,
    n_near_copies: int,
    notes: Sequence[str],
) -> FirstParagraph:
    """Put a selection into words; ``notes`` are what was found in the table and done to it."""
    return FirstParagraph(
        answer=answer_of(selection),
        why=_why(selection),
        how_sure=_how_sure(selection, certificate),
        time=_time(selection),
        watch=_watch(selection, n_near_copies, notes),
        score=score_in_words(selection),
    )


def answer_of(selection: Selection, called: str = "") -> str:
    """How many features are kept, and at whose wish; by the method, unless it is called so."""
    method, k, d = called or selection.method, count(selection.k), count(selection.n_features)
    if selection.k == selection.n_features:
        return f"{method} keeps all {d} features"
    if selection.how_many == "chosen":
        return f"{method} chose {k} of the {d} features"
    if selection.how_many == "half":
        return f"{method} keeps {k} of the {d} features, half of them, as no number was given"
    asked = "feature" if selection.k == 1 else "features"
    return f"{method} keeps the {k} {asked} asked for, of {d}"


def score_in_words(selection: Selection) -> str:
    """What a score means, as a clause; for methods of others only which end is the better."""
    name = type(fitted_selector(selection.selector)).__name__
    return SCORE_MEANS.get(name, f"as {name} defines it")


def _why(selection: Selection) -> tuple[str, ...]:
    sentences = []
    sought = LOOKS_FOR.get(selection.method)
    if sought is not None:
        sentences.append(f"It looks for {sought}.")
    if selection.summary:
        sentences.append(selection.summary)
    if selection.chosen:
        sentences.append(selection.chosen.replace("`", ""))
    choice = getattr(selection.selector, "choice_", None)
    if choice is not None and selection.how_many == "chosen" and not selection.chosen:
        sentences.append(
            f"The number and the settings were chosen without labels, from {len(choice.trials)} "
            "combinations."
        )
    if not selection.counts_columns_alike:
        verb = "holds" if selection.k == 1 else "hold"
        weighed = " as the method weighs the columns" if selection.column_power else ""
        share = percent(selection.variance_share)
        what = "The kept feature" if selection.k == 1 else "Together they"
        sentences.append(f"{what} {verb} {share} of the total variance{weighed}.")
    return tuple(sentences)


def _how_sure(selection: Selection, certificate: Certificate | None) -> tuple[str, ...]:
    sentences = []
    if certificate is not None:
        sentences.append(f"Proved: {str(certificate).replace(' %', chr(0xA0) + '%')}")
    selector = selection.selector
    if isinstance(selector, StabilitySelector) and selector.stability_.why_undefined is None:
        index = selector.stability_
        sentences.append(
            f"Selections from halves of the samples agree with a stability of {index.index:.2f} "
            f"(1: always the same features, 0: chance): {index.verdict}."
        )
    if isinstance(selector, AutoSelector) and selection.k == selector.n_features_to_select_:
        sentences += _against_random(selector, selection.k)
    if not sentences:
        sentences.append(
            "Whether other samples would give the same features was not measured: keepers tune, "
            "or StabilitySelector in Python, measures it."
        )
    return tuple(sentences)


def _against_random(selector: AutoSelector, k: int) -> list[str]:
    """How much better than random sets the features keep the neighbours, if that was measured."""
    at = [place for place, tried in enumerate(selector.counts_) if tried == k]
    if not at or not len(selector.random_agreement_):
        return []
    found, drawn = selector.agreement_[at[0]], selector.random_agreement_
    return [
        f"Neighbours of samples in these features agree with those in the whole table by "
        f"{found:.2f} (at most 1); in {len(drawn)} random sets of as many features, by "
        f"{drawn.min():.2f} to {drawn.max():.2f}."
    ]


def _time(selection: Selection) -> str:
    if selection.seconds is None:
        return ""
    if not selection.seconds_choosing:
        return f"It took {duration(selection.seconds)}."
    return (
        f"It took {duration(selection.seconds)} in all, of which "
        f"{duration(selection.seconds_choosing)} to choose the number and the settings."
    )


def _watch(selection: Selection, n_near_copies: int, notes: Sequence[str]) -> tuple[str, ...]:
    watch = list(selection.doubts)
    if selection.structure_found is False:
        watch.append("No structure was found: the ranking is about as good as a random one.")
    if selection.inactive is not None:
        watch.append(f"{selection.inactive} {selection.inactive.way_out()}")
    if getattr(fitted_selector(selection.selector), "converged_", None) is False:
        watch.append("The fit had not converged when it reached the largest number of steps.")
    if n_near_copies:
        watch.append(
            f"{count(n_near_copies)} of the kept features have a near copy among the other kept "
            "ones (|r| > 0.9); max_correlation skips those."
        )
    n_constant = int((selection.variances[selection.order[: selection.k]] == 0.0).sum())
    if n_constant:
        watch.append(f"{count(n_constant)} of the kept features do not vary.")
    if selection.n_rows_used < selection.n_samples:
        watch.append(
            f"{count(selection.n_rows_used)} of the {count(selection.n_samples)} samples were "
            "looked at, drawn at random."
        )
    return (*watch, *notes)
