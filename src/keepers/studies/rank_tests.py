"""Do methods differ over data sets? Friedman's test, and Nemenyi's for pairs.

On every data set the methods are ranked (1 is the best, equal values share the mean of their
ranks). Friedman's test asks whether the average ranks could come from methods that are all alike;
two methods differ, after Nemenyi, if their average ranks are a critical difference or more apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from keepers.studies.scores import Comparison, Measure

LEAST_DATA = 3
LEAST_METHODS = 3


@dataclass(frozen=True)
class RankTest:
    """Average ranks and the tests on them; the numbers of a test that cannot be done are None."""

    data: tuple[str, ...]
    average_ranks: dict[str, float] = field(hash=False)
    """By method, best first."""
    left_out: dict[str, tuple[str, ...]] = field(hash=False)
    """Methods without a value on some data set, and those sets."""
    not_tested: str = ""
    """Why there is no test; empty if there is one."""
    chi_squared: float | None = None
    p_value: float | None = None
    f_statistic: float | None = None
    """Iman and Davenport's correction, which is less conservative."""
    f_p_value: float | None = None
    alpha: float = 0.05
    critical_difference: float | None = None
    groups: tuple[tuple[str, ...], ...] = ()
    """Largest sets of neighbours in rank whose members do not differ from each other."""


def compare_ranks(comparison: Comparison, measure: Measure, *, alpha: float = 0.05) -> RankTest:
    """Test the means over k of all methods that have them on every data set."""
    return rank_test(comparison.table(measure, "mean", complete=True), alpha=alpha)


def rank_test(table: Mapping[str, Mapping[str, float | None]], *, alpha: float = 0.05) -> RankTest:
    """Friedman and Nemenyi on method -> data set -> value, where higher is better.

    Data sets on which no method has a value are not counted. Methods that lack a value on one of
    the others are left out: ranks need the same methods everywhere.

    Examples
    --------
    >>> table = {
    ...     "a": {"one": 0.9, "two": 0.8, "three": 0.7},
    ...     "b": {"one": 0.5, "two": 0.9, "three": 0.6},
    ...     "c": {"one": 0.1, "two": 0.2, "three": 0.3},
    ... }
    >>> {method: round(rank, 2) for method, rank in rank_test(table).average_ranks.items()}
    {'a': 1.33, 'b': 1.67, 'c': 3.0}
    """
    data = _data_with_values(table)
    missing = {m: tuple(d for d in data if row.get(d) is None) for m, row in table.items()}
    left_out = {method: gaps for method, gaps in missing.items() if gaps}
    methods = [method for method in table if method not in left_out]
    if not data or not methods:
        return RankTest(data, {}, left_out, "No method has a value on every data set.")
    values = np.array([[table[m][d] for m in methods] for d in data], dtype=np.float64)
    ranks = stats.rankdata(-values, axis=1)
    averages = ranks.mean(axis=0)
    order = np.argsort(averages, kind="stable")
    by_method = {methods[j]: float(averages[j]) for j in order}
    reason = _reason_not_to_test(len(data), len(methods))
    if reason:
        return RankTest(data, by_method, left_out, reason)
    if np.all(ranks == ranks[0, 0]):
        return RankTest(data, by_method, left_out, "All methods are equal on every data set.")
    chi_squared, p_value = map(float, stats.friedmanchisquare(*values.T))
    f_statistic, f_p_value = _iman_davenport(chi_squared, len(data), len(methods))
    width = critical_difference(len(methods), len(data), alpha)
    return RankTest(
        data,
        by_method,
        left_out,
        chi_squared=chi_squared,
        p_value=p_value,
        f_statistic=f_statistic,
        f_p_value=f_p_value,
        alpha=alpha,
        critical_difference=width,
        groups=_groups(by_method, width),
    )


def critical_difference(n_methods: int, n_data: int, alpha: float = 0.05) -> float:
    """Nemenyi's: average ranks that far apart are different at level ``alpha``.

    Examples
    --------
    >>> round(critical_difference(5, 30), 2)
    1.11
    """
    q = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_data)))


def _data_with_values(table: Mapping[str, Mapping[str, float | None]]) -> tuple[str, ...]:
    names = dict.fromkeys(data for row in table.values() for data in row)
    return tuple(d for d in names if any(row.get(d) is not None for row in table.values()))


def _reason_not_to_test(n_data: int, n_methods: int) -> str:
    if n_data < LEAST_DATA:
        return (
            f"A test over data sets needs at least {LEAST_DATA} of them; this study has {n_data}. "
            "Differences on so few can be read, not tested."
        )
    if n_methods < LEAST_METHODS:
        return (
            f"The test needs at least {LEAST_METHODS} methods with a value on every data set; "
            f"there are {n_methods}."
        )
    return ""


def _iman_davenport(chi_squared: float, n_data: int, n_methods: int) -> tuple[float, float]:
    rest = n_data * (n_methods - 1) - chi_squared
    if rest <= 1e-12 * chi_squared:  # the same order on every data set
        return float("inf"), 0.0
    statistic = (n_data - 1) * chi_squared / rest
    degrees = (n_methods - 1, (n_methods - 1) * (n_data - 1))
    return float(statistic), float(stats.f.sf(statistic, *degrees))


def _groups(by_method: Mapping[str, float], width: float) -> tuple[tuple[str, ...], ...]:
    """Runs of methods less than ``width`` apart that no longer such run contains."""
    methods, ranks = list(by_method), list(by_method.values())
    found: list[tuple[int, int]] = []
    for start, rank in enumerate(ranks):
        end = max(j for j in range(start, len(ranks)) if ranks[j] - rank < width)
        if end > start and (not found or end > found[-1][1]):
            found.append((start, end))
    return tuple(tuple(methods[start : end + 1]) for start, end in found)
