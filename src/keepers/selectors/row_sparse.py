"""What the selectors with a row-sparse projection of a quadratic form (UDFS, SOGFS) share."""

import warnings

from keepers.exceptions import DataWarning
from keepers.selectors.memory import refuse_past_memory

__all__ = ["cap_columns", "refuse_quadratic_form", "warn_of_noise"]


def cap_columns(name: str, wanted: int, n_usable: int) -> int:
    """Columns of W: fewer than features, with a warning; else every score would be 1."""
    most = max(1, n_usable - 1)
    if wanted <= most:
        return wanted
    warnings.warn(
        f"{name}={wanted} has to be below the number of columns that vary, {n_usable}; {most} is "
        "used.",
        DataWarning,
        stacklevel=4,
    )
    return most


def refuse_quadratic_form(method: str, n_samples: int, n_features: int) -> None:
    """Refuse if M does not fit in memory: with a factor, or as four thin factors for d > n."""
    if n_features <= n_samples:
        what = f"two {n_features} x {n_features} matrices"
        refuse_past_memory(method, what, 16.0 * n_features**2)
    else:
        what = f"four {n_samples} x {n_features} tables"
        refuse_past_memory(method, what, 32.0 * n_samples * n_features)


def warn_of_noise(n_live: int, n_wanted: int) -> None:
    """Warn if more features are wanted than have a score above rounding noise."""
    if n_live < n_wanted:
        warnings.warn(
            f"{n_wanted} features are wanted, but only {n_live} have a score above rounding noise; "
            "the others are ordered by their cost in M alone. A smaller gamma or more columns of W "
            "keeps more features alive.",
            DataWarning,
            stacklevel=4,
        )
