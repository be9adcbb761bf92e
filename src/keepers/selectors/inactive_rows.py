"""Kept features whose rows of W are inactive: how many, how they are ranked, and the way out."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from keepers._protocols import IndexArray

# Of the pull that just moves the last row; the message rounds it to two digits.
_BELOW = 0.9


@dataclass(frozen=True)
class InactiveRows:
    """A selection that reaches past the active rows of W."""

    n_kept: int
    n_active: int
    """Kept features with active rows."""
    gamma: float
    small_enough: float | None
    """A gamma at which about all kept features become active; None if there is no telling."""

    def __str__(self) -> str:
        rest = self.n_kept - self.n_active
        has = (
            "has an active (non-zero) row" if self.n_active == 1 else "have active (non-zero) rows"
        )
        others = "the other is" if rest == 1 else f"the other {rest} are"
        near = "it is" if rest == 1 else "they are"
        return (
            f"Only {self.n_active} of the {self.n_kept} kept features {has} of W with "
            f"gamma={self.gamma:.3g}; {others} ranked by how near {near} to becoming active."
        )

    def way_out(self, set_gamma: str = "gamma=", set_k: str = "") -> str:
        """What to do about it; a command writes its options before the numbers."""
        smaller = ""
        if self.small_enough is not None:
            smaller = f" ({set_gamma}{self.small_enough:.2g} should be small enough)"
        fewer = "1 feature" if self.n_active == 1 else f"{self.n_active} features"
        option = f" ({set_k}{self.n_active})" if set_k else ""
        return f"Use a smaller gamma{smaller}, or keep at most {fewer}{option}."


def find_inactive_rows(selector: Any, kept: IndexArray) -> InactiveRows | None:
    """What a fitted SPCAFS, or one that chose its settings, keeps past its active rows.

    None if every kept feature has an active row, and for selectors without active rows.
    """
    fitted = getattr(selector, "best_estimator_", selector)
    needed = ("active_", "gamma_", "penalty_weights_", "eps", "p", "groups")
    if not all(hasattr(fitted, name) for name in needed):
        return None
    # A constant column that the user wants kept has no row, and nobody ranks it.
    inactive = kept[~fitted.active_[kept] & (fitted.penalty_weights_[kept] != 0.0)]
    if len(inactive) == 0:
        return None
    small_enough = _gamma_for(fitted, inactive)
    return InactiveRows(len(kept), len(kept) - len(inactive), float(fitted.gamma_), small_enough)


def _gamma_for(selector: Any, inactive: IndexArray) -> float | None:
    """The least pull on these rows: with W held fixed, they leave zero where gamma falls below it.

    For p = 1 the pull is r gamma, and the score of an inactive row sqrt(eps) r / sqrt(1 - r^2).
    With the smaller gamma W spreads and pulls grow, so that more rows than these become active.
    """
    if selector.p != 1.0 or selector.groups is not None:
        return None
    size = float(np.min(selector.scores_[inactive])) / float(np.sqrt(selector.eps))
    pull = float(selector.gamma_) * size / float(np.hypot(1.0, size))
    return _BELOW * pull if pull > 0.0 else None
