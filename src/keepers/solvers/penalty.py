"""The smoothed l2,p penalty and the weights of its quadratic majorant.

The paper penalises every row of W alike. Here rows may be pooled into groups G, and every group
may have its own cost c_G >= 0::

    gamma * sum_G c_G (|W_G|^2 + eps)^(p/2),    |W_G|^2 = sum of |w_i|^2 over the rows i of G

With groups of one row and costs of 1 this is Eq. (23). The function u -> u^(p/2) is concave, so its
tangent at the present |W_G|^2 + eps lies above it (the paper's Lemma 1, which asks nothing else of
u): the majorant gives each row of G the weight gamma c_G (p/2) (|W_G|^2 + eps)^((p-2)/2), and
Theorem 2 (f never rises) holds as before. Theorem 1 (at least m active rows) is about W'W = I
alone.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray

# A group whose norm has sunk to the smoothing is inactive. The optimality condition for p = 1, a
# share r < 1 of the force that would keep the group active, puts it at sqrt(eps) r / sqrt(1 - r^2).
_INACTIVE = 4.0
# Of the fixed point below p = 1. The share is of the size eps^((1 - p)/2), so few are needed.
_STEPS_BELOW_1 = 60


def group_costs(row_costs: FloatArray, groups: IndexArray, p: float) -> FloatArray:
    """c_G = k^(1 - p/2) times the mean cost of the k rows of G.

    With it, k rows of equal norm and cost are penalised as much together as one by one, so that
    neither large nor small groups are favoured; for p = 1 it is the sqrt(k) of the group lasso.
    """
    sizes = np.bincount(groups)
    return np.asarray(np.bincount(groups, row_costs) * sizes ** (-p / 2))


@dataclass(frozen=True)
class RowPenalty:
    """gamma * sum_G c_G (|W_G|^2 + eps)^(p/2), seen through the squared row norms of W."""

    gamma: float
    p: float
    eps: float
    costs: FloatArray | None = None
    """c_G of every group, finite and >= 0; None: all 1."""
    groups: IndexArray | None = None
    """The group of every row, counted from 0; None: every row is its own group."""

    def pool(self, squared_norms: FloatArray) -> FloatArray:
        """|W_G|^2 of every group."""
        if self.groups is None:
            return squared_norms
        return np.asarray(np.bincount(self.groups, squared_norms), dtype=np.float64)

    def to_rows(self, values: FloatArray) -> FloatArray:
        """A value of every group -> a value of every row."""
        return values if self.groups is None else values[self.groups]

    def value(self, squared_norms: FloatArray) -> float:
        """The penalty itself, the second term of Eq. (23)."""
        terms = (self.pool(squared_norms) + self.eps) ** (self.p / 2)
        return self.gamma * float(np.sum(terms if self.costs is None else self.costs * terms))

    def value_at_zero(self, n_rows: int) -> float:
        """The penalty of ``n_rows`` rows of zeros: what the smoothing leaves of it."""
        costs = n_rows if self.costs is None else float(np.sum(self.costs))
        if self.costs is None and self.groups is not None:
            costs = int(np.max(self.groups)) + 1
        return self.gamma * self.eps ** (self.p / 2) * costs

    def weights(self, squared_norms: FloatArray) -> FloatArray:
        """Gamma g_i of every row, with g_i = c_G (p/2) (|W_G|^2 + eps)^((p-2)/2), Eq. (26)."""
        return self.weights_at(self.pool(squared_norms))

    def weights_at(self, pooled: FloatArray) -> FloatArray:
        """The same, from the squared norms of the groups."""
        half = self.p / 2
        by_group = self.gamma * half * (pooled + self.eps) ** (half - 1.0)
        return self.to_rows(by_group if self.costs is None else self.costs * by_group)

    def inactive(self, squared_norms: FloatArray) -> BoolArray:
        """Rows the penalty has sent to zero: the norm of their group is of the smoothing's size.

        Rows that cost nothing are always active, however small.
        """
        inactive = self.pool(squared_norms) <= _INACTIVE * self.eps
        if self.costs is not None:
            inactive &= self.costs > 0.0
        return inactive if self.groups is None else inactive[self.groups]

    def count_active(self, squared_norms: FloatArray) -> int:
        """Rows that are not `inactive`."""
        return int(np.count_nonzero(~self.inactive(squared_norms)))

    def norms_near_zero(self, squared_pulls: FloatArray) -> FloatArray:
        """The norms that the smoothing leaves to inactive rows, given |F_i / gamma|^2, F = S W.

        An inactive row solves F_i = gamma g_i w_i with its own weight g_i, Eq. (26): the multiplier
        of W'W = I is nothing beside that weight. With u = |W_G| / sqrt(eps) of its group this says
        ``u = r (1 + u^2)^(1 - p/2)``, ``r = 2 eps^((1 - p)/2) |F_G| / (gamma c_G p)``; for p = 1,
        ``u = r / sqrt(1 - r^2)``. It rises with |F_G| / c_G, and for p = 1 the group becomes active
        at r = 1. u is at most 2, where rows begin to count as active.
        """
        pulls = np.sqrt(self.pool(squared_pulls))
        largest = np.sqrt(_INACTIVE)
        with np.errstate(divide="ignore", invalid="ignore"):  # rows that cost nothing are active
            share = 2.0 * self.eps ** ((1.0 - self.p) / 2) / self.p * pulls
            share = share if self.costs is None else share / self.costs
            if self.p == 1.0:
                capped = np.minimum(share, largest / np.sqrt(1.0 + _INACTIVE))
                size = capped / np.sqrt(1.0 - capped**2)
            else:
                size = np.zeros_like(share)
                for _ in range(_STEPS_BELOW_1):
                    grown = share * (1.0 + size**2) ** (1.0 - self.p / 2)
                    size = np.minimum(grown, largest)
            norms = np.sqrt(self.eps) * size
            if self.groups is None:
                return np.asarray(norms)
            per_pull = np.where(pulls > 0.0, norms / pulls, 0.0)
            return np.asarray(per_pull[self.groups] * np.sqrt(squared_pulls))

    def pulled_out(self, images: FloatArray) -> BoolArray:
        """Rows at zero that would leave it, given F = S W: `norms_near_zero` has no solution.

        With u = |W_G| / sqrt(eps) it asks for ``r = u / (1 + u^2)^(1 - p/2)``, which is at most
        what it is at ``u^2 = 1 / (1 - p)``, and 1 for p = 1: there, a row leaves zero if and only
        if 2 |F_G| > gamma c_G.
        """
        largest = 1.0
        if self.p < 1.0:
            largest = (1.0 - self.p) ** -0.5 * (1.0 + 1.0 / (1.0 - self.p)) ** (self.p / 2 - 1.0)
        pulls = np.sqrt(self.pool(np.einsum("ij,ij->i", images, images)))
        limit = largest * self.gamma * self.p / 2.0 * self.eps ** ((self.p - 1.0) / 2)
        pulled = pulls > (limit if self.costs is None else limit * self.costs)
        return pulled if self.groups is None else pulled[self.groups]

    def first_effects(
        self, squared_norms: FloatArray, images: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """What a plain step from W would do to every row, and what the row does to the others.

        With F = S W and the weights D, row i becomes about ``F_i / D_i``: |F_i| / (D_i |w_i|) times
        as long as it was. To the eigenproblem of the others it adds ``S_i' S_i / D_i``, which on W
        is |F_i|^2 / D_i. (The Ritz value beside D_i is left out: it is small where rows vanish.)
        """
        pulls = self.to_rows(self.pool(np.einsum("ij,ij->i", images, images)))
        norms = np.sqrt(self.to_rows(self.pool(squared_norms)) + self.eps)
        weights = self.weights(squared_norms)
        free = weights <= 0.0
        weights = np.where(free, 1.0, weights)
        rates = np.where(free, np.inf, np.sqrt(pulls) / (weights * norms))
        return rates, np.where(free, 0.0, pulls / weights)

    def whole_groups(self, rows: BoolArray) -> BoolArray:
        """These rows and those that must stay with them: their groups' and rows without cost."""
        if self.costs is None and self.groups is None:
            return rows
        by_group = rows if self.groups is None else np.bincount(self.groups, rows) > 0
        if self.costs is not None:
            by_group = by_group | (self.costs == 0.0)
        return by_group if self.groups is None else by_group[self.groups]

    def restrict(self, rows: IndexArray) -> "RowPenalty":
        """The penalty on some of the rows, which are those of whole groups."""
        if self.groups is None:
            return self if self.costs is None else replace(self, costs=self.costs[rows])
        kept, groups = np.unique(self.groups[rows], return_inverse=True)
        return replace(self, costs=None if self.costs is None else self.costs[kept], groups=groups)


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
