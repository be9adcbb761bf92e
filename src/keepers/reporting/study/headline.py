"""The first paragraph: what was done and what stands out, in plain sentences."""

from collections.abc import Sequence

from keepers.evaluation.runner import StudyRun
from keepers.evaluation.summary import FLOORS, Comparison, method_choices
from keepers.reporting.study.wording import short

__all__ = ["headline"]


def headline(run: StudyRun, best: Comparison, untuned: Comparison) -> tuple[str, ...]:
    """Sentences without markup, the protocol first."""
    choices = method_choices(run)
    methods = [title for title, method in choices.items() if method.name not in FLOORS]
    sentences = [_protocol(run, len(methods))]
    random = next((t for t, m in choices.items() if m.name == "RandomScore"), None)
    for tuning, comparison in (("Tuned", best), ("With default settings", untuned)):
        sentences += _leaders(tuning, comparison, methods)
        if random is not None:
            sentences += _against_random(comparison, methods, random)
    return tuple(sentences)


def _protocol(run: StudyRun, n_methods: int) -> str:
    n_data, ks = len(run.tables), sorted(run.spec.ks)
    range_of_k = f"{ks[0]} to {ks[-1]}" if len(ks) > 1 else str(ks[0])
    return (
        f"{_count(n_methods, 'method')} and the floors chose {range_of_k} features of "
        f"{_count(n_data, 'data set')}; k-means then clustered the samples by the chosen features "
        f"alone, {_count(run.spec.repeats, 'time')}, into as many clusters as there are classes, "
        "and the clusters were held against the classes (ACC, NMI)."
    )


def _leaders(tuning: str, comparison: Comparison, methods: Sequence[str]) -> list[str]:
    """Who has the highest mean ACC on how many data sets."""
    wins: dict[str, int] = {}
    n_data = 0
    for data in comparison.data:
        means = {m: comparison.mean_over_k(data, m, "acc", complete=False) for m in methods}
        known = {m: mean for m, mean in means.items() if mean is not None}
        if len(known) >= 2:
            n_data += 1
            winner = max(known, key=lambda m: known[m])
            wins[winner] = wins.get(winner, 0) + 1
    if not wins:
        return []
    what = "the highest ACC (mean over k)"
    ordered = sorted(wins, key=lambda m: -wins[m])
    if n_data == 1:
        return [f"{tuning}, {short(ordered[0])} has {what}."]
    if len(wins) == 1:
        return [f"{tuning}, {short(ordered[0])} has {what} on all {n_data} data sets."]
    told = ", ".join(f"to {short(m)} on {wins[m]}" for m in ordered)
    return [f"{tuning}, {what} goes {told} of {n_data} data sets."]


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
    lost = sum(own <= floor for own, floor in pairs)
    return [f"Random selection does as well or better in {lost} of {len(pairs)} cases."]


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
