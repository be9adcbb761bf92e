"""Sets of columns that a user allows, and a selection refined to hold more variance."""

from dataclasses import dataclass

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers.exceptions import ParameterError
from keepers.linalg.ordering import best_first
from keepers.selectors.block_tables import StreamedTable
from keepers.selectors.control import FeatureControl
from keepers.selectors.fitted_table import FittedTable
from keepers.solvers.row_sparse import (
    CANDIDATES_EACH,
    FEWEST_CANDIDATES,
    MOST_CANDIDATES,
    improve_by_projection,
)
from keepers.solvers.set_limit import SetLimit


@dataclass(frozen=True)
class Refinement:
    """What refining a selection has changed."""

    n_changed: int
    """Kept features that are others than before."""
    variance_before: float
    """That components made of the kept features held before, on the scale of the scatter."""
    variance_after: float
    """That they hold now."""


def allowed_sets(
    control: FeatureControl,
    table: FittedTable,
    capacity: float,
    costs: FloatArray | None = None,
) -> SetLimit:
    """Which sets of the usable columns may be kept; ``costs`` are of all columns.

    Constant columns that must be kept take their place, or their cost, without a choice.
    """
    fixed = control.must & ~_mask(table.usable, table.n_features)
    taken = float(np.sum(fixed)) if costs is None else float(np.sum(costs[fixed]))
    units = None
    if control.groups is not None:
        numbers = np.unique(control.groups[table.usable], return_inverse=True)[1]
        units = numbers.astype(np.intp) if numbers.max() + 1 < len(numbers) else None
    must, n_usable = control.must[table.usable], len(table.usable)
    left = capacity - taken if costs is not None else min(capacity - taken, float(n_usable))
    rows = None if costs is None else costs[table.usable]
    return SetLimit(n_usable, left, must, units, rows)


def refuse_nothing(limit: SetLimit) -> None:
    """Raise if not even one unit may be kept."""
    fits = limit.unit_costs <= limit.room_in(np.flatnonzero(limit.must))
    if limit.must.any() or fits.any():
        return
    least = float(np.min(limit.unit_costs))
    raise ParameterError(
        f"At least one feature or group must fit into what may be kept, {limit.capacity:g}; the "
        f"smallest takes {least:g}. Allow more, or split the groups."
    )


def candidate_count(table: FittedTable) -> int:
    """For how many columns a scatter may be held in memory during a search."""
    if not isinstance(table, StreamedTable):
        return MOST_CANDIDATES
    budget = table.budget
    fits = [count for count in _COUNTS if budget.holds(budget.of_scatter(count))]
    return max(fits, default=_COUNTS[0])


_COUNTS = (100, 250, 500, 1000, 2000, MOST_CANDIDATES)


def refine_order(
    scatter: SymmetricOperator,
    order: IndexArray,
    table: FittedTable,
    control: FeatureControl,
    count: int,
    width: int,
) -> tuple[IndexArray, Refinement]:
    """All columns in order, those first that hold more variance than the first ``count`` did."""
    place = np.full(table.n_features, -1)
    place[table.usable] = np.arange(len(table.usable))
    kept = place[order[:count]]
    kept = np.sort(kept[kept >= 0])
    limit = allowed_sets(control, table, float(count))
    within = kept if limit.units is None else _whole_groups(order, place, limit)
    if len(within) == 0:  # constant columns only, or no group fits
        return order, Refinement(0, 0.0, 0.0)
    found = improve_by_projection(
        scatter,
        within,
        width,
        limit=limit,
        candidates=_near_candidates(order, place, scatter.diagonal(), len(kept), table),
    )
    fixed = control.must & (place < 0)
    first = fixed | _mask(table.usable[found.features], table.n_features)
    before = set(kept.tolist())
    n_changed = sum(feature not in before for feature in found.features.tolist())
    changed = Refinement(n_changed, float(found.history[0]), found.variance)
    return np.concatenate([order[first[order]], order[~first[order]]]), changed


def _whole_groups(order: IndexArray, place: IndexArray, limit: SetLimit) -> IndexArray:
    """The groups that fit whole, the best first."""
    ranked = place[order]
    ranked = ranked[ranked >= 0]
    _, first = np.unique(limit.unit_of[ranked], return_index=True)
    return limit.fill(np.flatnonzero(limit.must), limit.unit_of[ranked[np.sort(first)]])


def _near_candidates(
    order: IndexArray,
    place: IndexArray,
    variances: FloatArray,
    count: int,
    table: FittedTable,
) -> IndexArray | None:
    """The best by the selector's own ranking and by variance; None if too many are kept."""
    wanted = min(max(CANDIDATES_EACH * count, FEWEST_CANDIDATES), candidate_count(table))
    if count > wanted // 2:
        return None
    ranked = place[order]
    by_score = ranked[ranked >= 0][: wanted // 2]
    return np.union1d(by_score, best_first(variances, variances)[: wanted // 2])


def _mask(columns: IndexArray, n_features: int) -> BoolArray:
    mask = np.zeros(n_features, dtype=bool)
    mask[columns] = True
    return mask
