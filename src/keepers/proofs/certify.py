"""Certificates: how close a set of features is to the best one of its size.

The variance that k features hold is what PCA of these columns alone explains with m components: the
sum of the m largest eigenvalues of their covariance. Which k features hold the most is an NP-hard
question, but an upper bound on the answer is cheap (`keepers.proofs.bounds`).
"""

import math
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from keepers._blas_threads import one_blas_thread_for
from keepers._protocols import IndexArray, SymmetricOperator
from keepers._wording import some_of
from keepers.exceptions import ParameterError
from keepers.linalg.spectrum import leading_spectrum
from keepers.methods.fspca import AllowedSets, FoundSet, improve_by_projection, variance_held
from keepers.methods.parameters import (
    COMPONENTS,
    FLAG,
    SEED,
    Seed,
    check_value,
    expected_width,
    feature_indices,
    is_whole,
    one_of,
    positive,
)
from keepers.methods.reading import FittedTable, read_any_table
from keepers.proofs import bounds

_BOUNDS = {
    "spectrum": "the bound from the spectrum",
    "variances": "the sum of the largest variances",
    "tight": "the tight bound",
}


@dataclass(frozen=True, eq=False)
class Certificate:
    """The variance of a set of features, compared with the most that any such set could hold.

    ``print`` shows it as a sentence, ``as_dict`` is plain enough for JSON.
    """

    value: float
    """Variance that the features hold in the components (divisor n)."""
    upper_bound: float
    """No set of as many features holds more, in the same components and units."""
    bound: str
    """Name of the bound: "spectrum", "variances" (the k largest) or "tight"."""
    n_features: int
    """Number of features in the set, k."""
    n_components: int
    """Number of components, m."""
    best_known: float
    """The largest value found of any set of k features; single features are proved with it."""
    features: IndexArray
    """The set."""
    best_features: IndexArray
    """The set that holds ``best_known``."""
    proved_in: IndexArray
    """Features that are in every best set."""
    proved_out: IndexArray
    """Features that are in no best set."""
    seconds: float = 0.0
    feature_names: Any = field(default=None, repr=False)
    """Names of all columns, if they have any."""

    @property
    def share(self) -> float:
        """``value / upper_bound``: the set reaches at least this share of the optimum."""
        share = min(self.value / self.upper_bound, 1.0)
        return 1.0 if share > 1.0 - 1e-9 else share  # 1 but for rounding

    def as_dict(self) -> dict[str, Any]:
        """The certificate as numbers, words and lists, for JSON.

        Returns
        -------
        dict
            Features by index, and by name where they have one.
        """
        plain = {"sentence": str(self), "share": self.share, **vars(self)}
        names = plain.pop("feature_names")
        for name in ("features", "best_features", "proved_in", "proved_out"):
            plain[name] = plain[name].tolist()
            if names is not None:
                plain[f"{name}_names"] = [str(names[at]) for at in plain[name]]
        return plain

    def __str__(self) -> str:
        k = self.n_features
        these = "This feature holds" if k == 1 else f"These {k:,} features hold"
        any_k = "any one feature" if k == 1 else f"any {k:,} features"
        if self.share == 1.0:
            statement = f"{these} as much variance as {any_k} could hold"
        else:
            # Rounded down: it is a guarantee.
            percent = math.floor(1000.0 * self.share) / 10.0
            statement = f"{these} at least {percent:.1f} % of the variance that {any_k} could hold"
        m = self.n_components
        details = [f"{m} component{'' if m == 1 else 's'}", *self._proved()]
        return f"{statement} ({'; '.join(details)})."

    def details(self) -> list[str]:
        """The numbers behind the sentence, and the names of single features, one sentence each.

        Returns
        -------
        list of str
            At most three sentences. Long lists of names are cut.
        """
        k = self.n_features
        none = "No feature holds" if k == 1 else f"No {k:,} features hold"
        lines = [
            f"Variance held: {self.value:.6g}. {none} more than {self.upper_bound:.6g} "
            f"({_BOUNDS[self.bound]}); {self.best_known:.6g} is the most that is known. Computed "
            f"in {self.seconds:.1f} s."
        ]
        if len(self.proved_in):
            lines.append(f"In every best set: {some_of(self._names(self.proved_in))}.")
        outside = np.intersect1d(self.features, self.proved_out)
        if len(outside):
            lines.append(f"In the list, but in no best set: {some_of(self._names(outside))}.")
        return lines

    def _names(self, columns: IndexArray) -> list[str]:
        if self.feature_names is None:
            return [str(column) for column in columns]
        return [repr(str(self.feature_names[column])) for column in columns]

    def _proved(self) -> list[str]:
        """The proofs about single features, as one clause if there are any."""
        clauses: list[str] = []
        for of_set, who in ((True, "of them"), (False, "other")):
            for proved, where in ((self.proved_in, "every"), (self.proved_out, "no")):
                count = int(np.sum(np.isin(proved, self.features) == of_set))
                if count:
                    subject = f"{count:,} {who}{'s' if count > 1 and not of_set else ''}"
                    subject = "it" if of_set and self.n_features == 1 else subject
                    verb = "is" if count == 1 else "are"
                    shorter = clauses and where == "no"
                    ending = "in none" if shorter else f"{verb} in {where} best set"
                    clauses.append(f"{subject} {ending}")
        return [", ".join(clauses)] if clauses else []


def certify(
    X: Any,
    features: Any,
    n_components: int | float | str = "auto",
    *,
    tight: bool | str = "auto",
    scaling: float = 0.0,
    missing: str = "error",
    random_state: Seed = None,
) -> Certificate:
    """Prove how close k features are to the k features that hold the most variance.

    The variance that features hold is what PCA of their columns explains with ``n_components``
    components. The answer is a proved lower bound on its share of the largest possible variance,
    found at about the cost of one PCA. See the page "Certificates".

    Parameters
    ----------
    X : table of shape (n_samples, n_features), path or blocks
        What `SPCAFS.fit` or `SPCAFS.fit_blocks` takes. Constant columns hold nothing.
    features : sequence of names or indices, or boolean mask
        The k features. Names need a table with column names.
    n_components : int, float in (0, 1) or "auto", default="auto"
        The number of components m, at most k. A float uses enough components to explain that share
        of the variance of X; "auto" counts them as `SPCAFS` does. Both use at most k.
    tight : bool or "auto", default="auto"
        Whether to compute a second, tighter bound. It takes about r^2 d operations per step, where
        r is the smaller of the numbers of rows and columns. "auto" computes it if that takes a
        second or two.
    scaling : float in [0, 1], default=0.0
        Every column is divided by its standard deviation to this power first, as by `SPCAFS`.
    missing : {"error", "mean", "median", "model"}, default="error"
        What to do about NaN, as in `SPCAFS`.
    random_state : int, RandomState or None, default=None
        Seeds the eigenvectors of tables with both sides above 3000, and of streamed tables.

    Returns
    -------
    Certificate
        The value, the bound, their share, and features proved to be in every best set or in none.

    Examples
    --------
    >>> from keepers import VarianceScore, certify, datasets
    >>> X = datasets.load("srbct").X
    >>> selector = VarianceScore(50).fit(X)
    >>> certificate = certify(X, selector.get_support(indices=True), 3)
    >>> certificate.share > 0.9
    True
    """
    begun = time.perf_counter()
    check_value("n_components", n_components, COMPONENTS)
    check_value("tight", tight, one_of("auto") | FLAG)
    check_value("scaling", scaling, positive(at_most=1.0, zero=True))
    check_value("missing", missing, one_of("error", "mean", "median", "model"))
    check_value("random_state", random_state, SEED)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    if hasattr(features, "__next__"):
        features = list(features)
    chosen: IndexArray = np.empty(0, dtype=np.intp)

    def find(n_columns: int, names: Any) -> None:
        nonlocal chosen
        chosen = feature_indices(features, n_columns, names, distinct=True)
        if is_whole(n_components) and n_components > len(chosen):
            raise ParameterError(
                f"n_components must be at most the number of features in the set, {len(chosen)}; "
                f"got {n_components}. Give fewer components, or more features."
            )

    read = read_any_table(X, n_components=n_components, missing=missing, check=find)
    table = read.table.scale(float(scaling))
    width, n_usable = expected_width(n_components), len(table.usable)
    with one_blas_thread_for(2.0 * width * n_usable * min(2 * table.n_samples, n_usable)):
        operator = read.scatter or table.scatter(width)
        if tight != "auto" and tight and operator.small_side() is None:
            raise ParameterError(
                "tight=True needs a table in memory with at most 3000 rows or 3000 columns that "
                f"vary; this one has {table.n_samples} rows and {n_usable} such columns, or is "
                "streamed. Use tight='auto'."
            )
        if not is_whole(n_components):
            squares = table.moments.sum_of_squares
            spectrum = leading_spectrum(
                operator, n_components, n_samples=table.n_samples, sum_of_squares=squares, rng=rng
            )
            n_components = min(len(spectrum.values), len(chosen))
        found = _compare_with_bounds(table, operator, chosen, int(n_components), tight, rng)
    return replace(found, feature_names=read.names, seconds=time.perf_counter() - begun)


def _compare_with_bounds(
    table: FittedTable,
    operator: SymmetricOperator,
    chosen: IndexArray,
    m: int,
    tight: bool | str,
    rng: np.random.Generator,
) -> Certificate:
    """The variance that the chosen columns hold, the least bound, and the proofs."""
    precision, size = bounds.allowance(table.working_dtype), operator.size
    k = min(len(chosen), size)
    spectrum = bounds.spectral_bound(operator, m, rng, precision)
    of_terms = spectrum.bound(k, m)
    upper = of_terms.value
    name = "variances" if of_terms.terms is spectrum.variances else "spectrum"
    features = np.flatnonzero(np.isin(table.usable, chosen))
    best = value = variance_held(operator, features, m)
    best_set, found = features, find_good_set(operator, spectrum, of_terms, m, features)
    if found.variance > value:
        best, best_set = found.variance, found.features
    # For all columns: the term of constant ones is 0.
    proofs = replace(
        of_terms,
        terms=table.to_all_columns(of_terms.terms),
        n_features=len(chosen),
        forced=np.zeros(table.n_features, dtype=bool),
    ).proofs(best)
    left = np.flatnonzero(~proofs.outside[table.usable])
    rank = min(spectrum.rank or 0, len(left))
    # r^2 d operations a step: up to this it takes a second or two.
    cheap = 0 < rank <= 500 and float(rank) ** 2 * len(left) <= 6e7
    if cheap if tight == "auto" else tight:
        part = operator if len(left) == size else operator.restrict(left)
        least = bounds.tight_bound(part, k, m, enough=best, precision=precision)
        proofs.inside[table.usable[left]] |= least.proofs.inside
        proofs.outside[table.usable[left]] |= least.proofs.outside
        if least.value < upper:
            upper, name = least.value, "tight"
    return Certificate(
        value=value / table.n_samples,
        upper_bound=max(upper, best) / table.n_samples,  # rounding is not a contradiction
        bound=name,
        n_features=len(chosen),
        n_components=m,
        best_known=best / table.n_samples,
        features=chosen,
        best_features=_fill_up(table.usable[best_set], chosen, table),
        proved_in=np.flatnonzero(proofs.inside),
        proved_out=np.flatnonzero(proofs.outside),
    )


def _fill_up(columns: IndexArray, chosen: IndexArray, table: FittedTable) -> IndexArray:
    """Add columns that hold nothing, those of the chosen set first, up to its size."""
    spare = np.concatenate([columns, chosen, np.flatnonzero(table.unusable)])
    first = np.sort(np.unique(spare, return_index=True)[1])[: len(chosen)]
    return np.sort(spare[first])


def find_good_set(
    operator: SymmetricOperator,
    spectrum: bounds.SpectralBound,
    bound: bounds.TermBound,
    m: int,
    known: IndexArray | None = None,
) -> FoundSet:
    """The best set that projections find from a few starts, one of them ``known``."""
    k = bound.n_features
    allowed = AllowedSets.of_count(operator.size, k, bound.forced)
    starts, max_iter = [allowed.choose(bound.terms)], 2
    if spectrum.rank is not None:  # otherwise every product is a pass over the table
        starts += [allowed.choose(spectrum.leading_terms(m)), allowed.choose(spectrum.variances)]
        starts += [known] if known is not None and len(known) == k else []
        max_iter = 20
    distinct = {start.tobytes(): start for start in starts}.values()
    found = [improve_by_projection(operator, start, m, allowed, max_iter) for start in distinct]
    return max(found, key=lambda each: each.variance)
