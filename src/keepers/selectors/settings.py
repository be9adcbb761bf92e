"""The rules that parameters obey, each with its message: the rule, the value, the way out."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from keepers.exceptions import ParameterError, shortened

__all__ = [
    "check_choice",
    "check_count",
    "check_feature_count",
    "check_max_correlation",
    "check_positive",
    "count_features",
]


def check_positive(
    name: str, value: Any, *, at_most: float = np.inf, hint: str = "", zero: bool = False
) -> float:
    """A finite number above zero (or from zero on), up to ``at_most``."""
    rule = f"{name} must be a finite number {'>= 0' if zero else '> 0'}"
    if np.isfinite(at_most):
        rule = f"{name} must lie in {'[' if zero else '('}0, {at_most:g}]"
    if not is_real(value) or not np.isfinite(value) or value < 0 or value > at_most:
        raise ParameterError(f"{rule}; got {shortened(value)}.{_spaced(hint)}")
    if value == 0 and not zero:
        raise ParameterError(f"{rule}; got {shortened(value)}.{_spaced(hint)}")
    return float(value)


def check_count(
    name: str, value: Any, *, at_least: int = 1, at_most: int | None = None, hint: str = ""
) -> int:
    """A whole number in a range."""
    bound = f"from {at_least} on" if at_most is None else f"from {at_least} to {at_most}"
    if not is_whole(value) or value < at_least or (at_most is not None and value > at_most):
        raise ParameterError(
            f"{name} must be a whole number {bound}; got {shortened(value)}.{_spaced(hint)}"
        )
    return int(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...], hint: str = "") -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        words = ", ".join(repr(choice) for choice in choices)
        raise ParameterError(
            f"{name} must be one of {words}; got {shortened(value)}.{_spaced(hint)}"
        )
    return value


def check_feature_count(value: Any, name: str = "n_features_to_select") -> None:
    """A whole number from 1 on, a share in (0, 1], or None."""
    if value is None or (is_whole(value) and value >= 1):
        return
    if is_real(value) and not is_whole(value) and 0 < value <= 1:
        return
    raise ParameterError(
        f"{name} must be a whole number from 1 on, a share in (0, 1], or None for half of the "
        f"features; got {shortened(value)}."
    )


def check_max_correlation(value: Any) -> None:
    """None, or a number in (0, 1]."""
    if value is not None:
        hint = "None passes no feature over."
        check_positive("max_correlation", value, at_most=1.0, hint=hint)


def count_features(value: Any, n_features: int, name: str = "n_features_to_select") -> int:
    """How many of ``n_features`` a (checked) number, share or None means."""
    if value is None:
        return max(1, n_features // 2)
    if is_whole(value):
        if value > n_features:
            raise ParameterError(
                f"{name} must be at most the number of features, {n_features}; got "
                f"{shortened(value)}. Ask for fewer, or give a share in (0, 1]."
            )
        return int(value)
    return max(1, int(value * n_features))


def is_whole(value: Any) -> bool:
    """Whether this is an integer (True and False are not)."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def is_real(value: Any) -> bool:
    """Whether this is a real number (True and False are not)."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def _spaced(hint: str) -> str:
    return f" {hint}" if hint else ""
