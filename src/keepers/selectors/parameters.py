"""The rules that parameters obey, each with its message: the rule, the value, the way out.

``check_...`` needs no data. ``count_features`` and ``cap_...`` compare a setting with a table: what
the table is too small for is lowered, with a warning that names both numbers.
"""

from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np

from keepers.exceptions import DataWarning, ParameterError, shorten, warn_caller

FeatureCount = int | float | np.integer[Any] | None
"""A number of features, a share of them, or None."""
Seed = int | np.integer[Any] | np.random.RandomState | None

TYPICAL_COMPONENTS = 10
LARGEST_SEED = 2**32 - 1
LARGEST_COUNT = 2**63 - 1
LARGEST_NUMBER = 1e150
"""Its square is still a float64."""


def check_positive(
    name: str, value: Any, *, at_most: float = LARGEST_NUMBER, hint: str = "", zero: bool = False
) -> float:
    """A number above zero (or from zero on), up to ``at_most``."""
    number = _as_float(value)
    rule = f"{name} must be a finite number {'>= 0' if zero else '> 0'}"
    if at_most < LARGEST_NUMBER or LARGEST_NUMBER < number < np.inf:
        rule = f"{name} must lie in {'[' if zero else '('}0, {at_most:g}]"
    if not 0 <= number <= at_most or (number == 0 and not zero):
        raise ParameterError(f"{rule}; got {shorten(value)}.{_as_sentence(hint)}")
    return number


def check_positive_or_scale(name: str, value: Any) -> None:
    """A number above zero, or "scale"."""
    if isinstance(value, str):
        check_choice(name, value, ("scale",), "Or give a number > 0.")
    else:
        check_positive(name, value, hint=f"{name}='scale' adapts it to the data.")


def check_bandwidth(value: Any) -> None:
    """The width of a heat kernel: a number above zero, or None."""
    if value is not None:
        check_positive("bandwidth", value, hint="None takes the mean distance between samples.")


def check_count(
    name: str, value: Any, *, at_least: int = 1, at_most: int | None = None, hint: str = ""
) -> int:
    """An integer in a range."""
    top = LARGEST_COUNT if at_most is None else at_most
    if not is_whole(value) or not at_least <= value <= top:
        told = at_most is not None or (is_whole(value) and value > top)
        bound = f"from {at_least} to {top}" if told else f">= {at_least}"
        raise ParameterError(
            f"{name} must be an integer {bound}; got {shorten(value)}.{_as_sentence(hint)}"
        )
    return int(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...], hint: str = "") -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        words = ", ".join(repr(choice) for choice in choices)
        raise ParameterError(
            f"{name} must be one of {words}; got {shorten(value)}.{_as_sentence(hint)}"
        )
    return value


def check_choice_or_none(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """One of a few words, or None."""
    if value is not None:
        check_choice(name, value, choices, "Or None.")


def check_components(value: Any) -> None:
    """An integer >= 1, a share in (0, 1), or "auto"."""
    share = is_real(value) and not is_whole(value) and 0 < value < 1
    if not share and not (isinstance(value, str) and value == "auto"):
        check_count("n_components", value, hint="Or a share in (0, 1), or 'auto'.")


def check_component_count(n_components: Any, n_samples: int, n_usable: int) -> None:
    """Raise if more components are asked for than a table has."""
    limit = min(n_samples - 1, n_usable)
    if is_whole(n_components):
        check_count(
            "n_components",
            n_components,
            at_most=limit,
            hint=f"X has {n_samples} samples and {n_usable} columns that vary, hence at most "
            f"min(samples - 1, columns) = {limit} components.",
        )


def expected_width(n_components: Any) -> int:
    """The number of components, or one to expect where the data decide."""
    return n_components if is_whole(n_components) else TYPICAL_COMPONENTS


def check_flag(name: str, value: Any) -> None:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"{name} must be True or False; got {shorten(value)}.")


def check_callback(value: Any) -> None:
    """Something to call, or None."""
    if value is not None and not callable(value):
        raise ParameterError(f"callback must be callable or None; got {shorten(value)}.")


def check_feature_count(value: Any, name: str = "n_features_to_select") -> None:
    """An integer >= 1, a share in (0, 1], or None."""
    if value is None or (is_whole(value) and value >= 1):
        return
    if is_real(value) and not is_whole(value) and 0 < value <= 1:
        return
    raise ParameterError(
        f"{name} must be an integer >= 1, a share in (0, 1], or None for half of the features; "
        f"got {shorten(value)}."
    )


def check_max_correlation(value: Any) -> None:
    """None, or a number in (0, 1]."""
    if value is not None:
        hint = "None skips no feature."
        check_positive("max_correlation", value, at_most=1.0, hint=hint)


def check_missing(value: Any) -> None:
    """How gaps are filled, or that there must be none."""
    check_choice("missing", value, ("error", "mean", "median", "model"))


def check_seed(value: Any, name: str = "random_state") -> None:
    """None, an integer that NumPy can start from, or a RandomState."""
    if value is None or value is np.random or isinstance(value, np.random.RandomState):
        return
    if not is_whole(value) or not 0 <= value <= LARGEST_SEED:
        raise ParameterError(
            f"{name} must be an integer from 0 to {LARGEST_SEED}, a numpy.random.RandomState or "
            f"None; got {shorten(value)}."
        )


def check_verbose(value: Any) -> None:
    """An integer from 0 on, True or False."""
    if not isinstance(value, (bool, np.bool_)):
        check_count("verbose", value, at_least=0)


def count_features(value: Any, n_features: int, name: str = "n_features_to_select") -> int:
    """How many of ``n_features`` a (checked) number, share or None means."""
    if value is None:
        return max(1, n_features // 2)
    if is_whole(value):
        if value > n_features:
            raise ParameterError(
                f"{name} must be at most the number of features, {n_features}; got "
                f"{shorten(value)}. Ask for fewer, or give a share in (0, 1]."
            )
        return int(value)
    return max(1, int(value * n_features))


def cap_neighbors(n_neighbors: int, n_samples: int, *, spare: int = 1) -> int:
    """``n_neighbors``, or as many as the samples allow; ``spare`` of them are no neighbours."""
    if n_neighbors + spare <= n_samples:
        return n_neighbors
    return _lower(
        f"n_neighbors={n_neighbors} needs at least {n_neighbors + spare} samples; X has "
        f"{n_samples}, so {n_samples - spare} neighbours are used.",
        n_samples - spare,
    )


def cap_clusters(n_clusters: int, n_samples: int) -> int:
    """``n_clusters``, or one for every sample."""
    if n_clusters <= n_samples:
        return n_clusters
    return _lower(
        f"n_clusters={n_clusters} needs as many samples; X has {n_samples}, so {n_samples} are "
        "used.",
        n_samples,
    )


def cap_eigenvectors(n_clusters: int, n_samples: int) -> int:
    """``n_clusters``, or as many eigenvectors as a graph has beside the trivial one."""
    if n_clusters < n_samples:
        return n_clusters
    return _lower(
        f"n_clusters={n_clusters} needs at least {n_clusters + 1} samples; X has {n_samples}, so "
        f"{n_samples - 1} eigenvectors are used.",
        n_samples - 1,
    )


def cap_columns(name: str, wanted: int, n_usable: int) -> int:
    """Columns of a row-sparse W: fewer than features, or every score would be 1."""
    most = max(1, n_usable - 1)
    if wanted <= most:
        return wanted
    return _lower(
        f"{name}={wanted} has to be below the number of columns that vary, {n_usable}; {most} is "
        "used.",
        most,
    )


def warn_of_noise(n_active: int, n_wanted: int) -> None:
    """Warn if more features are wanted than have a score above rounding noise."""
    if n_active < n_wanted:
        warn_caller(
            f"{n_wanted} features are wanted, but only {n_active} have a score above rounding "
            "noise; the others are ordered by their cost in M alone. A smaller gamma or more "
            "columns of W keeps more rows active.",
            DataWarning,
        )


def _lower(message: str, to: int) -> int:
    warn_caller(message, DataWarning)
    return to


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether this is an integer (True and False are not)."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def is_real(value: Any) -> TypeGuard[float]:
    """Whether this is a real number (True and False are not)."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def _as_float(value: Any) -> float:
    """A real number as a float; NaN for what is none, infinity for what is too large for one."""
    try:
        return float(value) if is_real(value) else np.nan
    except OverflowError:
        return np.inf


def _as_sentence(hint: str) -> str:
    return f" {hint}" if hint else ""
