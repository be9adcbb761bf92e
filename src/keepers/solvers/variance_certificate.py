"""What a set of features holds, beside a bound on what any set of as many could hold."""

from dataclasses import dataclass, replace

import numpy as np

from keepers._protocols import FloatArray, IndexArray, SymmetricOperator
from keepers.linalg.held_variance import variance_held
from keepers.solvers.row_sparse import improve_by_projection
from keepers.solvers.tight_bound import TightBound, tight_bound
from keepers.solvers.variance_bounds import (
    DOUBLE_ROUNDING,
    Proofs,
    Restriction,
    SpectralBound,
    TermBound,
    row_sum_bound,
    spectral_bound,
)

# Work up to which the tight bound takes a second or two: r^2 d.
_CHEAP_TIGHT, _MOST_TIGHT_RANK = 6e7, 500
# Features up to which row sums of S are looked at.
_MOST_ROW_SUMS = 3000
# Steps of improvement where every product is a pass over a table.
_STEPS, _STEPS_BY_PRODUCTS = 20, 2


@dataclass(frozen=True)
class CertifiedValue:
    """A value, bounds on all values, and what they prove; in the units of S."""

    value: float
    """Held by the features given."""
    best_known: float
    """The largest value found on the way."""
    best_features: IndexArray
    """The set that holds it."""
    upper_bound: float
    """No set of as many features holds more."""
    bound: str
    """Which bound is the least: "spectrum", "variances", "row sums" or "tight"."""
    of_terms: TermBound
    of_tight: TightBound | None
    left: IndexArray
    """The features that the tight bound was computed for: no best set has others."""

    def proofs(self, columns: IndexArray, n_columns: int, n_features: int) -> Proofs:
        """What is proved about the columns of a table, of which S has ``columns``.

        The others are constant, and ``n_features`` of all are chosen.
        """
        terms = np.zeros(n_columns)
        terms[columns] = self.of_terms.terms
        of_all = replace(
            self.of_terms,
            terms=terms,
            n_features=n_features,
            restriction=Restriction.to_all(n_columns),
        )
        found = of_all.proofs(self.best_known)
        if self.of_tight is None:
            return found
        tight, left = self.of_tight, columns[self.left]
        # The columns that are not left are constant, or known to be outside.
        with_it = np.full(n_columns, tight.of_constant)
        without = np.full(n_columns, np.inf)
        with_it[columns] = np.inf
        with_it[left], without[left] = tight.with_it, tight.without
        more = replace(tight, with_it=with_it, without=without).proofs(self.best_known)
        return Proofs(found.inside | more.inside, found.outside | more.outside)


def certify_value(
    operator: SymmetricOperator,
    features: IndexArray,
    n_features: int,
    n_components: int,
    *,
    tight: bool | str,
    rng: np.random.Generator,
    precision: float = DOUBLE_ROUNDING,
    spectrum: SpectralBound | None = None,
) -> CertifiedValue:
    """The variance that ``features`` hold, and bounds on that of any ``n_features``.

    Parameters
    ----------
    operator : SymmetricOperator
        S.
    features : array of indices
        At most ``n_features`` of them.
    n_features, n_components : int
        k and m.
    tight : bool or "auto"
        Whether to compute the tight bound; it needs an operator with a small side. "auto": where it
        takes a second or two.
    rng : Generator
        For the start of a Krylov space, where S has no small side.
    precision : float
        The allowance for rounding, see `SpectralBound`.
    spectrum : SpectralBound or None
        If it is known.
    """
    if spectrum is None:
        spectrum = spectral_bound(operator, n_components, rng, precision)
    k = min(n_features, operator.size)
    of_terms, name = _least_of_terms(spectrum, k, n_components)
    value = variance_held(operator, features, n_components)
    best, best_set = value, np.sort(features)
    side_is_small = spectrum.small_side is not None
    steps = _STEPS if side_is_small else _STEPS_BY_PRODUCTS
    # What is proved about single features depends on the best set that is known.
    for start in _starts(spectrum, of_terms, features, k, n_components, side_is_small):
        found = improve_by_projection(operator, start, n_components, max_iter=steps)
        if found.variance > best:
            best, best_set = found.variance, found.features
    upper = of_terms.value
    if n_components == 1 and operator.size <= _MOST_ROW_SUMS:
        by_rows = row_sum_bound(operator.dense(), k) + of_terms.rounding
        if by_rows < upper:
            upper, name = by_rows, "row sums"
    left = np.flatnonzero(~of_terms.proofs(best).outside)
    of_tight = None
    if tight is True or (tight == "auto" and _is_cheap(spectrum.small_side, len(left))):
        part = operator if len(left) == operator.size else operator.restrict(left)
        of_tight = tight_bound(
            part, k, n_components, enough=best, precision=precision, one_by_one=True
        )
        if of_tight.value < upper:
            upper, name = of_tight.value, "tight"
    upper = max(upper, best)  # rounding is no contradiction
    return CertifiedValue(value, best, best_set, upper, name, of_terms, of_tight, left)


def _least_of_terms(spectrum: SpectralBound, k: int, m: int) -> tuple[TermBound, str]:
    """The better of the bound from the spectrum and that of the largest variances."""
    found = spectrum.bound(k, m)
    variances = spectrum.variances
    total = float(np.sort(variances)[-k:].sum())
    if total + found.rounding <= found.value * (1.0 + DOUBLE_ROUNDING):
        found = replace(found, value=total + found.rounding, terms=variances)
    return found, "variances" if found.terms is variances else "spectrum"


def _starts(
    spectrum: SpectralBound,
    of_terms: TermBound,
    features: IndexArray,
    k: int,
    m: int,
    several: bool,
) -> list[IndexArray]:
    anything = Restriction.to_all(len(spectrum.variances))
    scores: list[FloatArray] = [of_terms.terms]
    if several:
        scores += [spectrum.leading_terms(m), spectrum.variances]
    starts = [anything.choose(score, k) for score in scores]
    if several and len(features) == k:
        starts.append(np.sort(features))
    unique = {start.tobytes(): start for start in starts}
    return list(unique.values())


def _is_cheap(small_side: int | None, n_left: int) -> bool:
    if small_side is None:
        return False
    rank = min(small_side, n_left)
    return rank <= _MOST_TIGHT_RANK and float(rank) ** 2 * n_left <= _CHEAP_TIGHT
