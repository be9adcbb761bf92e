"""Do methods differ over data sets? Friedman's test, and Nemenyi's for pairs.

On every data set the methods are ranked (1 is the best, equal values share the mean of their
ranks). Friedman's test decides if equal methods could have such average ranks. By Nemenyi's test,
two methods differ if their average ranks are a critical difference or more apart.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy import stats

ALPHA = 0.05
LEAST = 3  # data sets, and methods, of a test


@dataclass(frozen=True)
class RankTest:
    """Average ranks and the tests on them; the numbers of a test that cannot be done are None."""

    n_data: int
    average_ranks: dict[str, float] = field(hash=False)
    """By method, best first."""
    left_out: dict[str, list[str]] = field(hash=False)
    """Methods without a value on some data set, and those sets."""
    not_tested: str = ""
    """The reason for not testing; empty if tested."""
    chi_squared: float | None = None
    p_value: float | None = None
    critical_difference: float | None = None
    groups: tuple[tuple[str, ...], ...] = ()
    """Largest sets of neighbours in rank whose members do not differ from each other."""


def rank_test(table: pd.DataFrame) -> RankTest:
    """Friedman and Nemenyi on methods x data sets, where higher is better.

    Data sets on which no method has a value are not counted. Methods that lack a value on one of
    the others are left out: ranks need the same methods everywhere.

    Examples
    --------
    >>> table = pd.DataFrame([[0.9, 0.8, 0.7], [0.5, 0.9, 0.6], [0.1, 0.2, 0.3]], index=[*"abc"])
    >>> {method: round(rank, 2) for method, rank in rank_test(table).average_ranks.items()}
    {'a': 1.33, 'b': 1.67, 'c': 3.0}
    """
    table = table.dropna(axis=1, how="all")
    gaps = table[table.isna().any(axis=1)]
    left_out = {str(m): [str(d) for d in row.index[row.isna()]] for m, row in gaps.iterrows()}
    table = table.dropna()
    n_methods, n_data = table.shape
    ranks = table.rank(ascending=False)
    averages = {str(m): float(r) for m, r in ranks.mean(axis=1).sort_values(kind="stable").items()}
    reason = ""
    if not n_data or not n_methods:
        reason = "No method has a value on every data set."
    elif n_data < LEAST:
        reason = f"A test over data sets needs at least {LEAST} of them; this study has {n_data}."
    elif n_methods < LEAST:
        reason = (
            f"The test needs at least {LEAST} methods with a value on every data set; there are "
            f"{n_methods}."
        )
    elif ranks.nunique().max() == 1:
        reason = "All methods are equal on every data set."
    if reason:
        return RankTest(n_data, averages, left_out, reason)
    chi_squared, p_value = map(float, stats.friedmanchisquare(*table.to_numpy()))
    width = critical_difference(n_methods, n_data)
    groups = _groups(averages, width)
    return RankTest(n_data, averages, left_out, "", chi_squared, p_value, width, groups)


def critical_difference(n_methods: int, n_data: int) -> float:
    """Nemenyi's: average ranks that far apart are different at level 0.05."""
    q = stats.studentized_range.ppf(1 - ALPHA, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_data)))


def _groups(averages: dict[str, float], width: float) -> tuple[tuple[str, ...], ...]:
    """Runs of methods less than ``width`` apart that no longer such run contains."""
    methods, ranks = list(averages), list(averages.values())
    found: list[tuple[int, int]] = []
    for start, rank in enumerate(ranks):
        end = max(j for j in range(start, len(ranks)) if ranks[j] - rank < width)
        if end > start and (not found or end > found[-1][1]):
            found.append((start, end))
    return tuple(tuple(methods[start : end + 1]) for start, end in found)
