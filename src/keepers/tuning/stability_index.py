"""How much sets of features selected from different samples agree, beyond chance.

Nogueira, Sechidis and Brown, "On the stability of feature selection algorithms", JMLR 18 (2018).
With M sets out of d features, p_f the share of sets that hold feature f and k the mean size::

    stability = 1 - mean_f s_f^2 / ((k / d)(1 - k / d)),   s_f^2 = M / (M - 1) p_f (1 - p_f).

It is 1 when all sets are the same and 0 on average when sets are drawn at random.
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keepers._protocols import BoolArray
from keepers._tables import AsTable
from keepers.exceptions import DataError

EXCELLENT, POOR = 0.75, 0.4
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Stability(AsTable):
    """Nogueira's index of some selections, with its 95 % interval; ``float(...)`` is the index."""

    index: float
    """1: always the same features. 0: as much agreement as chance gives. NaN: not defined."""
    variance: float
    """Estimated variance of the index."""
    interval: tuple[float, float]
    """Where the index of infinitely many sets lies with 95 % confidence, if the sets are
    independent draws (the normal approximation; not cut off at 1)."""
    n_sets: int
    """Sets of features compared, M."""
    why_undefined: str | None = None
    """The reason, where the index is NaN."""

    @property
    def verdict(self) -> str:
        """The benchmark the authors take over for such indices (Fleiss): a word."""
        if self.why_undefined is not None:
            return "undefined"
        if self.index > EXCELLENT:
            return "excellent"
        return "poor" if self.index < POOR else "intermediate to good"

    def rows(self) -> list[dict[str, Any]]:
        """The table: one row, a dict.

        Returns
        -------
        list of dict
            ``index``, ``lower`` and ``upper`` of its interval, ``n_sets`` and ``verdict``.
        """
        lower, upper = self.interval
        return [
            {
                "index": self.index,
                "lower": lower,
                "upper": upper,
                "n_sets": self.n_sets,
                "verdict": self.verdict,
            }
        ]

    def __float__(self) -> float:
        return self.index

    def __str__(self) -> str:
        if self.why_undefined is not None:
            return f"stability is not defined: {self.why_undefined}"
        low, high = self.interval
        return (
            f"stability {self.index:.3f} ({CONFIDENCE:.0%} interval {low:.3f} to {high:.3f}, "
            f"{self.n_sets} sets): {self.verdict}"
        )


def measure_stability(selections: ArrayLike) -> Stability:
    """Agreement of selected sets, corrected for chance, with a 95 % interval.

    Parameters
    ----------
    selections : boolean array of shape (n_sets, n_features)
        One row a set: which features it holds. Sets may differ in size.

    Returns
    -------
    Stability
        ``index``, ``variance``, ``interval``, ``verdict``; the index is NaN, with the reason in
        ``why_undefined``, when no set could have disagreed with another.

    Examples
    --------
    >>> from keepers.tuning.stability_index import measure_stability
    >>> print(measure_stability([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]]))
    stability 0.333 (95% interval -0.022 to 0.689, 3 sets): poor
    """
    Z = _check_selections(selections)
    n_sets, n_features = Z.shape
    shares = Z.mean(axis=0, dtype=np.float64)
    mean_share = float(shares.mean())
    if Z.all() or not Z.any():
        which = "every feature" if Z.any() else "no feature"
        return Stability(
            np.nan, np.nan, (np.nan, np.nan), n_sets, f"{which} was selected every time."
        )
    chance = mean_share * (1 - mean_share)
    observed = float(np.mean(shares * (1 - shares))) * n_sets / (n_sets - 1)
    index = 1 - observed / chance
    # What each set adds to the index (phi_i in their variance): its agreement with the shares
    # beyond that of its size. Twice its deviation is the derivative by the weight of that set.
    sizes = Z.mean(axis=1, dtype=np.float64)
    agreement = Z @ shares / n_features - sizes * mean_share
    by_size = sizes * mean_share - (sizes + mean_share) / 2 + 0.5
    contributions = (agreement + index * by_size) / chance
    variance = 4 * float(np.var(contributions)) / n_sets
    reach = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * np.sqrt(variance)
    return Stability(index, variance, (float(index - reach), float(index + reach)), n_sets)


def _check_selections(selections: ArrayLike) -> BoolArray:
    Z = np.asarray(selections)
    if Z.ndim != 2 or Z.shape[0] < 2 or Z.shape[1] < 1:
        raise DataError(
            "Stability compares at least two sets, the rows of a table with a column for each "
            f"feature; got an array of shape {Z.shape}."
        )
    if not np.isin(Z, (0, 1)).all():
        raise DataError(
            "A selection is True or False (or 1 or 0) for each feature; other values were found. "
            "Pass support masks, not scores or rankings."
        )
    return Z.astype(bool)
