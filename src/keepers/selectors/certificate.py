"""How near a set of features is to the best one of its size, with proof.

The yardstick is the variance that k features hold in m components: the sum of the m largest
eigenvalues of their covariance, which is what PCA of these columns alone explains with m
components. Which k features hold the most is an NP-hard question; an upper bound on the answer is
not, and any selection can be compared with it, however it was made.
"""

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from keepers._blas_threads import one_blas_thread_for
from keepers._protocols import FloatArray, IndexArray
from keepers.data.wording import some_of
from keepers.exceptions import ParameterError, shorten
from keepers.linalg.low_rank import LowRankScatter
from keepers.linalg.spectrum import leading_spectrum
from keepers.selectors.any_table import ReadTable, read_any_table, read_features
from keepers.selectors.block_tables import ROUTES
from keepers.selectors.fitted_table import FittedTable, refuse_other_columns
from keepers.selectors.parameters import (
    Seed,
    check_choice,
    check_count,
    check_missing,
    check_positive,
    check_seed,
    is_real,
    is_whole,
)
from keepers.solvers.variance_bounds import (
    DOUBLE_ROUNDING,
    SINGLE_ROUNDING,
    SpectralBound,
)
from keepers.solvers.variance_certificate import CertifiedValue, certify_value

_BOUNDS = {
    "spectrum": "the bound from the spectrum",
    "variances": "the sum of the largest variances",
    "row sums": "the bound from row sums",
    "tight": "the tight bound",
}
# A share that differs from 1 by less is 1 but for rounding.
_ALL_OF_IT = 1e-9
# Entries of V'V - I up to which eigenvectors count as orthonormal, and what the sum of lambda v^2
# may exceed a variance by.
_ORTHONORMAL = 1e-5
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class KnownSpectrum:
    """The leading eigenpairs of a covariance matrix, computed elsewhere.

    Parameters
    ----------
    eigenvalues : array of shape (n_values,)
        Largest first.
    eigenvectors : array of shape (n_features, n_values)
        Orthonormal columns; ``pca.components_.T`` of a scikit-learn PCA.
    variances : array of shape (n_features,)
        The diagonal of the matrix: variances with the divisor of the eigenvalues (n - 1 for those
        of scikit-learn's PCA).
    feature_names : sequence of str or None, default=None
        Names of the features.
    exact : bool, default=False
        Whether these are eigenpairs to rounding, so that no other eigenvalue exceeds the last one;
        bounds are tighter then. False asks less: that the matrix less ``V diag(lambda) V'`` is
        positive semi-definite, which holds for eigenpairs and for those of a randomized PCA.

    Examples
    --------
    >>> import numpy as np
    >>> from keepers import KnownSpectrum, certify
    >>> spectrum = KnownSpectrum([4.0, 1.0], np.eye(3)[:, :2], [4.0, 1.0, 0.5])
    >>> certify(spectrum, [0, 1], 1).share
    1.0
    """

    eigenvalues: FloatArray
    eigenvectors: FloatArray
    variances: FloatArray
    feature_names: Any = None
    exact: bool = False

    def __post_init__(self) -> None:
        for name in ("eigenvalues", "eigenvectors", "variances"):
            object.__setattr__(self, name, _finite_numbers(name, getattr(self, name)))
        _check_spectrum(self)
        order = np.argsort(-self.eigenvalues, kind="stable")
        object.__setattr__(self, "eigenvalues", self.eigenvalues[order])
        object.__setattr__(self, "eigenvectors", self.eigenvectors[:, order])


def _finite_numbers(name: str, given: Any) -> FloatArray:
    try:
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"{name} must be an array of numbers; got {shorten(given)}."
        ) from error
    n_faults = int(np.sum(~np.isfinite(values)))
    if n_faults:
        raise ParameterError(
            f"{name} must hold finite numbers; {n_faults} of {values.size} are NaN or infinite. "
            "Leave those pairs out, or compute them again."
        )
    values.setflags(write=False)
    return values


def _check_spectrum(given: KnownSpectrum) -> None:
    """Raise for what cannot be the spectrum of a covariance."""
    values, vectors, variances = given.eigenvalues, given.eigenvectors, given.variances
    if values.ndim != 1 or variances.ndim != 1 or not len(values) or not len(variances):
        raise ParameterError(
            "eigenvalues and variances must be arrays of one dimension; got shapes "
            f"{values.shape} and {variances.shape}."
        )
    expected = (len(variances), len(values))
    if vectors.shape != expected:
        hint = " Transpose it." if vectors.shape == expected[::-1] else ""
        raise ParameterError(
            f"eigenvectors must have a row for each of the {expected[0]} variances and a column "
            f"for each of the {expected[1]} eigenvalues; got shape {vectors.shape}.{hint}"
        )
    for name, numbers in (("eigenvalues", values), ("variances", variances)):
        lowest = float(numbers.min())
        if lowest < -_NEGLIGIBLE * max(float(numbers.max()), 0.0) or numbers.max() <= 0.0:
            raise ParameterError(
                f"{name} must be >= 0, and one of them above 0; the smallest is {lowest:.3g} and "
                f"the largest {float(numbers.max()):.3g}."
            )
    error = float(np.abs(vectors.T @ vectors - np.eye(len(values))).max())
    if error > _ORTHONORMAL:
        raise ParameterError(
            "The columns of eigenvectors must be orthonormal; their inner products differ from "
            f"those of such columns by up to {error:.2g}."
        )
    excess = float((np.square(vectors) @ values - variances).max())
    if excess > _ORTHONORMAL * float(values.max()):
        raise ParameterError(
            "variances must be those of the matrix with these eigenvalues, hence at least the sums "
            f"of eigenvalue times squared entry; one is smaller by {excess:.3g}. Use the same "
            "divisor (n or n - 1) for both."
        )
    if given.feature_names is not None and len(given.feature_names) != len(variances):
        raise ParameterError(
            f"feature_names must have one name for each of the {len(variances)} variances; got "
            f"{len(given.feature_names)}."
        )


@dataclass(frozen=True, eq=False)
class Certificate:
    """What a set of features holds, beside what any set of as many could hold.

    ``print`` shows it as a sentence, ``as_dict`` is plain enough for JSON.
    """

    value: float
    """Variance that the features hold in the components (divisor n; that of a `KnownSpectrum`)."""
    upper_bound: float
    """No set of as many features holds more, in the same components and units."""
    bound: str
    """Which bound it is: "spectrum", "variances" (the k largest), "row sums" or "tight"."""
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
    seconds: float
    feature_names: Any = field(default=None, repr=False)
    """Names of all columns, if they have any."""

    @property
    def share(self) -> float:
        """``value / upper_bound``, at most 1: at least so much of the optimum is reached."""
        if self.upper_bound <= 0.0:
            return 1.0
        share = min(self.value / self.upper_bound, 1.0)
        return 1.0 if share > 1.0 - _ALL_OF_IT else share

    @property
    def proved_in_names(self) -> Any:
        """Names of ``proved_in``; None if the columns have none."""
        return None if self.feature_names is None else self.feature_names[self.proved_in]

    @property
    def proved_out_names(self) -> Any:
        """Names of ``proved_out``; None if the columns have none."""
        return None if self.feature_names is None else self.feature_names[self.proved_out]

    def as_dict(self) -> dict[str, Any]:
        """The certificate as numbers, words and lists, for JSON.

        Returns
        -------
        dict
            Features by index, and by name where they have one.
        """
        plain: dict[str, Any] = {
            "sentence": str(self),
            "value": self.value,
            "upper_bound": self.upper_bound,
            "share": self.share,
            "bound": self.bound,
            "n_features": self.n_features,
            "n_components": self.n_components,
            "best_known": self.best_known,
            "features": self.features.tolist(),
            "best_features": self.best_features.tolist(),
            "proved_in": self.proved_in.tolist(),
            "proved_out": self.proved_out.tolist(),
            "seconds": self.seconds,
        }
        if self.feature_names is not None:
            for name in ("features", "best_features", "proved_in", "proved_out"):
                plain[f"{name}_names"] = [str(self.feature_names[at]) for at in plain[name]]
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
        """The numbers behind the sentence, and the names of single features, a sentence each.

        Returns
        -------
        list of str
            At most three sentences. Of long lists of names the first are given.
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
        """What is proved about single features, as one clause if anything is."""
        inside = np.isin(self.features, self.proved_in).sum()
        outside = np.isin(self.features, self.proved_out).sum()
        missing = len(self.proved_in) - inside
        others = len(self.proved_out) - outside
        clauses = []
        if self.n_features == 1 and (inside or outside):
            clauses.append(f"it is in {'every' if inside else 'no'} best set")
        elif inside:
            clauses.append(f"{inside:,} of them {_are(inside)} in every best set")
        if outside and self.n_features > 1:
            clauses.append(
                f"{outside:,} of them in none"
                if inside
                else f"{outside:,} of them {_are(outside)} in no best set"
            )
        if missing:
            clauses.append(f"{missing:,} other{_s(missing)} {_are(missing)} in every best set")
        if others:
            verb = "" if clauses else f" {_are(others)}"
            none = "none" if clauses else "no best set"
            clauses.append(f"{others:,} other{_s(others)}{verb} in {none}")
        return [", ".join(clauses)] if clauses else []


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def certify(
    X: Any,
    features: Any,
    n_components: int | float | str = "auto",
    *,
    tight: bool | str = "auto",
    scaling: float = 0.0,
    missing: str = "error",
    route: str = "auto",
    memory_limit: int | float | str | None = None,
    random_state: Seed = None,
) -> Certificate:
    """How much of the variance that any k features could hold these k features hold, with proof.

    The variance that features hold is what PCA of their columns explains with ``n_components``
    components. No selection is needed, and no best one is known: the answer is a lower bound,
    found at about the cost of one PCA. See the page "Proofs".

    Parameters
    ----------
    X : table of shape (n_samples, n_features), path, blocks, or KnownSpectrum
        What `SPCAFS.fit` or `SPCAFS.fit_blocks` takes, or a spectrum that is known. Constant
        columns hold nothing.
    features : sequence of names or indices, or boolean mask
        The set, k features of the table. Names need a table with column names.
    n_components : int, float in (0, 1) or "auto", default="auto"
        m, at most k. A float: as many as explain that share of the variance of X. "auto": as
        `SPCAFS` counts them. Of more than k, k are taken in both cases.
    tight : bool or "auto", default="auto"
        Whether to compute a second, tighter bound; it takes about r^2 d operations a step, r being
        the smaller of rows and columns. "auto": where that is a second or two.
    scaling : float in [0, 1], default=0.0
        Every column is divided by its standard deviation to this power first, as by `SPCAFS`.
    missing : {"error", "mean", "median", "model"}, default="error"
        What to do about NaN, as in `SPCAFS`.
    route : {"auto", "scatter", "memory", "stream"}, default="auto"
        What is held in memory of a table that is read in blocks, as in `SPCAFS`.
    memory_limit : int, str or None, default=None
        Memory for that, as in `SPCAFS`.
    random_state : int, RandomState or None, default=None
        Seeds the eigenvectors of tables of which both sides exceed 3000, or that are streamed.

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
    return certify_columns(
        None,
        X,
        features,
        n_components,
        tight=tight,
        scaling=scaling,
        missing=missing,
        route=route,
        memory_limit=memory_limit,
        random_state=random_state,
    )


def certify_columns(
    selector: Any,
    X: Any,
    features: Any,
    n_components: int | float | str,
    *,
    tight: bool | str = "auto",
    scaling: float = 0.0,
    missing: str = "error",
    route: str = "auto",
    memory_limit: int | float | str | None = None,
    random_state: Seed = None,
) -> Certificate:
    """The same for X with the columns that a selector was fitted to, unless that is None."""
    begun = time.perf_counter()
    _check_settings(n_components, tight, scaling, missing, route, random_state)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    check = _FeaturesOf(features, n_components, selector)
    if isinstance(X, KnownSpectrum):
        return _certify_spectrum(X, check, n_components, tight, rng, begun)
    read = read_any_table(
        X,
        n_components=n_components,
        route=route,
        memory_limit=memory_limit,
        missing=missing,
        check=check,
    )
    table = read.table.scale(float(scaling))
    return _certify_table(table, read, check.found, n_components, tight, rng, begun)


def _certify_table(
    table: FittedTable,
    read: ReadTable,
    chosen: IndexArray,
    n_components: Any,
    tight: bool | str,
    rng: np.random.Generator,
    begun: float,
) -> Certificate:
    n_usable = len(table.usable)
    width = n_components if is_whole(n_components) else 10
    position = np.full(table.n_features, -1)
    position[table.usable] = np.arange(n_usable)
    inner = position[chosen]
    inner = inner[inner >= 0]
    single = table.working_dtype == np.float32
    with one_blas_thread_for(2.0 * width * n_usable * min(2 * table.n_samples, n_usable)):
        operator = table.scatter(width)
        if tight is True and operator.small_side() is None:
            raise ParameterError(
                "tight=True needs a table in memory with at most 3000 rows or 3000 columns that "
                f"vary; this one has {table.n_samples} rows and {n_usable} such columns, or is "
                "streamed. Use tight='auto'."
            )
        if not is_whole(n_components):
            spectrum = leading_spectrum(
                operator,
                n_components,
                n_samples=table.n_samples,
                sum_of_squares=table.moments.sum_of_squares,
                rng=rng,
            )
            n_components = min(spectrum.width, len(chosen))
        found = certify_value(
            operator,
            inner,
            len(chosen),
            int(n_components),
            tight=_as_flag(tight),
            rng=rng,
            precision=SINGLE_ROUNDING if single else DOUBLE_ROUNDING,
        )
    return _certificate(
        found, chosen, table.usable, table.n_features, int(n_components), read.names,
        1.0 / table.n_samples, begun,
    )  # fmt: skip


def _certify_spectrum(
    given: KnownSpectrum,
    check: "_FeaturesOf",
    n_components: Any,
    tight: bool | str,
    rng: np.random.Generator,
    begun: float,
) -> Certificate:
    size = len(given.variances)
    if not is_whole(n_components):
        raise ParameterError(
            f"n_components must be an integer >= 1 for a KnownSpectrum; got {shorten(n_components)}"
            ", which needs the number of samples."
        )
    check(size, given.feature_names)
    values = np.maximum(given.eigenvalues, 0.0)
    bound = SpectralBound.from_pairs(
        values, given.eigenvectors, np.maximum(given.variances, 0.0), float(values[-1])
    )
    is_whole_matrix = bound.rest.sum() <= _NEGLIGIBLE * given.variances.sum()
    if not given.exact:
        bound = SpectralBound(values, bound.squares, bound.rest, None, bound.variances)
    operator = LowRankScatter(given.eigenvectors * np.sqrt(values))
    if tight is True and not is_whole_matrix:
        raise ParameterError(
            "tight=True needs all eigenpairs with an eigenvalue above 0; these leave "
            f"{bound.rest.sum() / given.variances.sum():.2g} of the variance out. Use tight='auto'."
        )
    wanted = _as_flag(tight)
    if wanted == "auto":
        # Not from a part of the matrix: what is left out would have to be bounded as well.
        wanted = bool(is_whole_matrix and len(values) <= 200 and size <= 2000)
    found = certify_value(
        operator, check.found, len(check.found), int(n_components), tight=wanted, rng=rng,
        spectrum=bound,
    )  # fmt: skip
    names = None if given.feature_names is None else np.asarray(given.feature_names, dtype=object)
    return _certificate(
        found, check.found, np.arange(size), size, int(n_components), names, 1.0, begun
    )


def _certificate(
    found: CertifiedValue,
    chosen: IndexArray,
    columns: IndexArray,
    n_columns: int,
    n_components: int,
    names: Any,
    unit: float,
    begun: float,
) -> Certificate:
    proofs = found.proofs(columns, n_columns, len(chosen))
    return Certificate(
        value=unit * found.value,
        upper_bound=unit * found.upper_bound,
        bound=found.bound,
        n_features=len(chosen),
        n_components=n_components,
        best_known=unit * found.best_known,
        features=chosen,
        best_features=columns[found.best_features],
        proved_in=np.flatnonzero(proofs.inside),
        proved_out=np.flatnonzero(proofs.outside),
        seconds=time.perf_counter() - begun,
        feature_names=names,
    )


class _FeaturesOf:
    """Reads the features once the columns are known."""

    def __init__(self, given: Any, n_components: Any, selector: Any = None) -> None:
        self._given, self._m, self._selector = given, n_components, selector
        if isinstance(given, np.ndarray):
            self._given = given.tolist()
        elif not isinstance(given, (str, bytes)) and hasattr(given, "__next__"):
            self._given = list(given)
        self.found: IndexArray = np.empty(0, dtype=np.intp)

    def __call__(self, n_columns: int, names: Any) -> None:
        if self._selector is not None:
            refuse_other_columns(self._selector, n_columns, names)
        faults: list[str] = []
        try:
            self.found = read_features(self._given, n_columns, names)
            size = len(self.found)
        except ParameterError as error:
            faults += error.args
            size = self._count_given() or n_columns
        if is_whole(self._m) and self._m > size:
            faults.append(
                f"n_components must be at most the number of features in the set, {size}; got "
                f"{self._m}. Give fewer components, or more features."
            )
        if faults:
            raise ParameterError(*faults)

    def _count_given(self) -> int:
        """How many features a list tells apart, if it is one; a mask tells no number."""
        given = self._given if isinstance(self._given, (list, tuple)) else ()
        return len({str(entry) for entry in given if not isinstance(entry, (bool, np.bool_))})


def _check_settings(
    n_components: Any, tight: Any, scaling: Any, missing: Any, route: Any, random_state: Any
) -> None:
    share = is_real(n_components) and not is_whole(n_components) and 0 < n_components < 1
    if not share and not (isinstance(n_components, str) and n_components == "auto"):
        check_count("n_components", n_components, hint="Or a share in (0, 1), or 'auto'.")
    if not isinstance(tight, (bool, np.bool_)):
        check_choice("tight", tight, ("auto",), "Or give True or False.")
    check_positive("scaling", scaling, at_most=1.0, zero=True)
    check_missing(missing)
    check_choice("route", route, ("auto", *ROUTES))
    check_seed(random_state)


def _as_flag(tight: bool | str) -> bool | str:
    return tight if isinstance(tight, str) else bool(tight)
