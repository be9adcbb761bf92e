"""The first paragraph: what was done and what stands out, in plain sentences."""

from collections import Counter
from collections.abc import Sequence

from keepers.studies.formatting import short
from keepers.studies.runner import StudyRun
from keepers.studies.scores import FLOORS, Comparison, method_choices

__all__ = ["headline"]

_DIGITS = 6  # as in the tables: what is equal there shares the lead


def headline(run: StudyRun, best: Comparison, untuned: Comparison) -> tuple[str, ...]:
    """Sentences without markup, the protocol first."""
    choices = method_choices(run)
    methods = [title for title, method in choices.items() if method.name not in FLOORS]
    baselines = [title for title, method in choices.items() if method.name in FLOORS]
    sentences = [_protocol(run, len(methods))]
    random = next((t for t, m in choices.items() if m.name == "RandomScore"), None)
    for tuning, comparison in (("Tuned", best), ("With default settings", untuned)):
        sentences += _leaders(tuning, comparison, methods, baselines)
        if random is not None:
            sentences += _against_random(comparison, methods, random)
    return tuple(sentences)


def _protocol(run: StudyRun, n_methods: int) -> str:
    n_data, ks = len(run.tables), sorted(run.spec.ks)
    range_of_k = f"{ks[0]} to {ks[-1]}" if len(ks) > 1 else str(ks[0])
    return (
        f"{_count(n_methods, 'method')} and the baselines chose {range_of_k} features of "
        f"{_count(n_data, 'data set')}; k-means then clustered the samples by the chosen features "
        f"alone, {_count(run.spec.repeats, 'time')}, into as many clusters as there are classes, "
        "and the clusters were held against the classes (ACC, NMI)."
    )


def _leaders(
    tuning: str, comparison: Comparison, methods: Sequence[str], baselines: Sequence[str]
) -> list[str]:
    """Who has the highest mean ACC on how many data sets: of all, then of the methods alone."""
    of_all = _highest(comparison, [*methods, *baselines])
    if not of_all:
        return []
    sentences = [f"{tuning}, {_told(of_all, baselines)}."]
    if any(winner in baselines for winners in of_all for winner in winners):
        alone = _highest(comparison, methods)
        sentences += [f"Without the baselines, {_told(alone, ())}."] if alone else []
    return sentences


def _highest(comparison: Comparison, rows: Sequence[str]) -> list[tuple[str, ...]]:
    """The rows with the highest mean ACC, for each data set on which two or more have one."""
    found = []
    for data in comparison.data:
        means = {m: comparison.mean_over_k(data, m, "acc", complete=False) for m in rows}
        known = {m: round(mean, _DIGITS) for m, mean in means.items() if mean is not None}
        if len(known) >= 2:
            top = max(known.values())
            found.append(tuple(m for m, mean in known.items() if mean == top))
    return found


def _told(found: Sequence[tuple[str, ...]], baselines: Sequence[str]) -> str:
    wins = Counter(winner for winners in found for winner in winners)
    names = {m: short(m) + " (baseline)" * (m in baselines) for m in wins}
    n_data, what = len(found), "the highest ACC (mean over k)"
    if len(wins) == 1:
        (name,) = names.values()
        return f"{name} has {what}" + (f" on all {n_data} data sets" if n_data > 1 else "")
    if n_data == 1:
        return f"{' and '.join(names.values())} share {what}"
    told = ", ".join(f"to {names[m]} on {count}" for m, count in wins.most_common())
    ties = sum(len(winners) > 1 for winners in found)
    return f"{what} goes {told} of {n_data} data sets" + (f" (shared on {ties})" if ties else "")


def _against_random(comparison: Comparison, methods: Sequence[str], random: str) -> list[str]:
    """How often random selection does better."""
    pairs = [
        pair
        for data in comparison.data
        for method in methods
        if (pair := comparison.paired_means(data, method, random, "acc")) is not None
    ]
    if not pairs:
        return []
    lost = sum(own <= other for own, other in pairs)
    return [f"Random selection does as well or better in {lost} of {len(pairs)} cases."]


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
