"""Choices of the user: rules of parameters, features by name, those that stay or go.

A class declares its rules as ``parameter_rules``; `check_rules` needs no data. ``count_features``
and ``cap_...`` compare a setting with a table: what the table is too small for is lowered, with a
warning that names both numbers.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, TypeGuard

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers._wording import closest, some_of
from keepers.exceptions import DataError, DataWarning, ParameterError, shorten, warn_caller
from keepers.linalg.ordering import best_first
from keepers.linalg.sums import Budget
from keepers.tables.table import as_n_bytes, physical_memory

FeatureCount = int | float | np.integer[Any] | None
"""A number of features, a share of them, or None."""
Seed = int | np.integer[Any] | np.random.RandomState | None

LARGEST_SEED = 2**32 - 1
LARGEST_COUNT = 2**63 - 1
LARGEST_NUMBER = 1e150
"""Its square is still a float64."""
_MOST_HINTS = 5
"""Unknown names for which a known one is proposed."""


@dataclass(frozen=True)
class Rule:
    """The values that a parameter may have; ``one | other`` allows the values of both."""

    text: str
    """After "must be", such as "an integer >= 1"."""
    accepts: Callable[[Any], bool]
    hint: str = ""
    """A sentence: what to give instead."""

    def __or__(self, other: "Rule") -> "Rule":
        return Rule(
            f"{self.text} or {other.text}",
            lambda value: self.accepts(value) or other.accepts(value),
            self.hint or other.hint,
        )


def whole(at_least: int = 1, at_most: int | None = None, *, hint: str = "") -> Rule:
    """An integer in a range."""
    top = LARGEST_COUNT if at_most is None else at_most
    text = f">= {at_least}" if at_most is None else f"from {at_least} to {at_most}"
    return Rule(f"an integer {text}", lambda v: is_whole(v) and at_least <= v <= top, hint)


def positive(at_most: float = LARGEST_NUMBER, *, zero: bool = False, hint: str = "") -> Rule:
    """A number above zero (or from zero on), up to ``at_most``."""
    text = f"a number in {'[' if zero else '('}0, {at_most:g}]"
    if at_most == LARGEST_NUMBER:
        text = f"a finite number {'>= 0' if zero else '> 0'}"
    return Rule(text, lambda v: is_real(v) and (0 < v <= at_most or (zero and v == 0)), hint)


def one_of(*words: str | None, hint: str = "") -> Rule:
    """One of a few words, or None if it is among them."""
    text = ", ".join(repr(word) for word in words)
    return Rule(
        text if len(words) == 1 else f"one of {text}",
        lambda v: (v is None or isinstance(v, str)) and v in words,
        hint,
    )


def is_whole(value: Any) -> TypeGuard[int]:
    """True if this is an integer (True and False are not)."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def is_real(value: Any) -> TypeGuard[float]:
    """True if this is a real number (True and False are not)."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def _is_count(value: Any) -> bool:
    return is_whole(value) and value >= 1


def _is_share(value: Any) -> bool:
    return is_real(value) and not is_whole(value) and 0 < value <= 1


def _is_seed(value: Any) -> bool:
    if value is None or value is np.random or isinstance(value, np.random.RandomState):
        return True
    return is_whole(value) and 0 <= value <= LARGEST_SEED


FLAG = Rule("True or False", lambda v: isinstance(v, (bool, np.bool_)))
FUNCTION = Rule("callable or None", lambda v: v is None or callable(v))
SEED = Rule(f"an integer from 0 to {LARGEST_SEED}, a numpy.random.RandomState or None", _is_seed)
FEATURE_COUNT = Rule(
    "an integer >= 1, a share in (0, 1], or None for half of the features",
    lambda v: v is None or _is_count(v) or _is_share(v),
)
COMPONENTS = Rule(
    "an integer >= 1, a share in (0, 1), or 'auto'",
    lambda v: (isinstance(v, str) and v == "auto") or _is_count(v) or (_is_share(v) and v < 1),
)


def check_rules(owner: Any, rules: Mapping[str, Rule]) -> None:
    """Raise if settings of ``owner`` are against its rules; all of them in one message."""
    broken = [
        f"{name} must be {rule.text}; got {shorten(value)}. {rule.hint}".rstrip()
        for name, rule in rules.items()
        if not rule.accepts(value := getattr(owner, name))
    ]
    if broken:
        raise ParameterError(" ".join(broken))


def check_value(name: str, value: Any, rule: Rule) -> None:
    """Raise if a value that is not a setting of an estimator is against its rule."""
    check_rules(SimpleNamespace(**{name: value}), {name: rule})


def check_component_count(n_components: Any, n_samples: int, n_usable: int) -> None:
    """Raise if there are fewer columns or rows than components."""
    limit = min(n_samples - 1, n_usable)
    hint = f"X has {n_samples} samples and {n_usable} columns that vary, and components at most "
    if is_whole(n_components):
        hint += f"min(samples - 1, columns) = {limit}."
        check_value("n_components", n_components, whole(at_most=limit, hint=hint))


def expected_width(n_components: Any) -> int:
    """The number of components, or a typical one where the data decide."""
    return n_components if is_whole(n_components) else 10


# Names and indices of features


FEATURES = Rule(
    "a sequence of names or indices, or a boolean mask",
    lambda v: isinstance(v, Iterable) and not isinstance(v, (str, bytes, Iterator)),
    "Write a list, such as ['a'] for one feature.",
)


def feature_indices(
    features: Any,
    n_columns: int,
    names: Any = None,
    *,
    setting: str = "features",
    distinct: bool = False,
) -> IndexArray:
    """The columns that names, indices or a mask stand for, in their order; all faults at once.

    ``names`` are those of the columns, if they have any. With ``distinct``, there must be a
    feature, and none twice.
    """
    check_value(setting, features, FEATURES)
    is_series = hasattr(features, "to_dict") and hasattr(features, "dtype")  # of pandas
    if is_series and features.dtype == bool:
        features = [feature for feature, marked in features.to_dict().items() if marked]
    entries = list(features)
    if entries and all(isinstance(entry, (bool, np.bool_)) for entry in entries):
        if len(entries) != n_columns:
            raise ParameterError(
                f"{setting} must have one entry per feature, {n_columns}; got {len(entries)}."
            )
        entries = np.flatnonzero(entries).tolist()
    faults = _wrong_names(setting, [e for e in entries if isinstance(e, str)], n_columns, names)
    others = [entry for entry in entries if not isinstance(entry, str)]
    wrong = [entry for entry in others if not (is_whole(entry) and 0 <= entry < n_columns)]
    if wrong:
        rule = f"{setting} must hold names of features, or indices from 0 to {n_columns - 1}"
        faults.append(f"{rule}; got {_listed(wrong)}.")
    if distinct and not entries:
        faults.append(f"{setting} must hold at least one feature; got none.")
    if faults:
        raise ParameterError(*faults)
    places = {str(name): at for at, name in enumerate(() if names is None else names)}
    found = [places[entry] if isinstance(entry, str) else int(entry) for entry in entries]
    twice = [str(at) for at, count in Counter(found).items() if count > 1]
    if distinct and twice:
        raise ParameterError(
            f"{setting} must hold every feature once; columns that are repeated: {some_of(twice)}."
        )
    return np.array(found, dtype=np.intp)


def _wrong_names(setting: str, wanted: list[str], n_columns: int, names: Any) -> list[str]:
    """Faults of names of features, a sentence each."""
    if wanted and names is None:
        return [
            f"Names in {setting} need an X with column names, all of them strings; got "
            f"{_listed(wanted)}. Pass a data frame, or give indices from 0 to {n_columns - 1}."
        ]
    counts = Counter(map(str, () if names is None else names))
    unknown = [name for name in wanted if name not in counts]
    faults = [
        f"{setting} must name columns of X; {shorten(name)} is not one of its {n_columns}."
        f"{closest(name, counts)}"
        for name in unknown[:_MOST_HINTS]
    ]
    if len(unknown) > _MOST_HINTS:
        faults.append(f"{len(unknown) - _MOST_HINTS} more names in {setting} are unknown.")
    twice = [name for name in wanted if counts[name] > 1]
    if twice:
        faults.append(
            f"Names in {setting} must be clear; several columns of X are called {_listed(twice)}. "
            "Give the index instead."
        )
    return faults


def _listed(values: Sequence[Any]) -> str:
    return some_of([shorten(value) for value in values])


# Settings and the size of the table


def count_features(value: Any, n_features: int, name: str = "n_features_to_select") -> int:
    """Number of features that a (checked) number, share or None stands for."""
    if value is None:
        return max(1, n_features // 2)
    if is_whole(value):
        if value > n_features:
            raise ParameterError(
                f"{name} must be at most the number of features, {n_features}; got "
                f"{shorten(value)}. Use a smaller number, or a share in (0, 1]."
            )
        return int(value)
    return max(1, int(value * n_features))


@dataclass(frozen=True)
class FeatureControl:
    """Features always and never kept; `read_control` makes it from the user's settings."""

    must: BoolArray
    """Columns that are always kept."""
    never: BoolArray
    """Columns that are never kept."""

    def restrict(self, table: Any) -> Any:
        """The table without the columns that are never kept."""
        never = self.never
        if not never.any():
            return table
        rows = np.flatnonzero(~never[table.usable])
        if len(rows) == 0:
            raise ParameterError(
                "At least one column that varies must be left to choose from; never_keep names all "
                f"{len(table.usable)}. Remove some from never_keep."
            )
        return table.restrict(rows)

    def order(self, scores: FloatArray, table: Any) -> IndexArray:
        """Columns from best to worst: those always kept, the rest, constant ones, those never kept.

        Within each: by score, ties by variance, then by index.
        """
        tier = np.where(table.unusable, 2, 1)
        tier[self.must] = 0
        tier[self.never] = 3
        order = best_first(scores, table.variances)
        return order[np.argsort(tier[order], kind="stable")]

    def count(self, value: Any, name: str) -> int:
        """The same number, counting only features that may be kept."""
        n_features = len(self.never)
        n_allowed = n_features - int(self.never.sum())
        if is_whole(value) and n_allowed < value <= n_features:
            raise ParameterError(
                f"{name} must be at most {n_allowed}, the number of features that may be kept "
                f"(never_keep rules out {n_features - n_allowed} of {n_features}); got "
                f"{shorten(value)}."
            )
        return count_features(value, n_features if is_whole(value) else n_allowed, name)

    def count_to_select(self, value: Any) -> int:
        """The same for the selection itself, which has to hold every feature always kept."""
        n_must = int(self.must.sum())
        count = self.count(value, "n_features_to_select")
        if value is None:
            return max(count, n_must)
        if count < n_must:
            raise ParameterError(
                f"n_features_to_select must be at least {n_must}, the number of features that are "
                f"always kept; got {shorten(value)}. Use a larger number, or shorten must_keep."
            )
        return count


def control_of(selector: Any, n_features: int) -> FeatureControl:
    """The features that the user always or never keeps."""
    given = {name: getattr(selector, name, None) for name in ("must_keep", "never_keep")}
    return read_control(n_features, getattr(selector, "feature_names_in_", None), **given)


def read_control(
    n_features: int, names: Any = None, *, must_keep: Any = None, never_keep: Any = None
) -> FeatureControl:
    """The columns that the user's settings name; ``names`` are all column names, or None."""
    must, never = np.zeros((2, n_features), dtype=bool)
    for setting, given, mark in (("must_keep", must_keep, must), ("never_keep", never_keep, never)):
        if given is not None:
            mark[feature_indices(given, n_features, names, setting=setting)] = True
    both = np.flatnonzero(must & never)
    if len(both):
        shown = [str(at) if names is None else repr(str(names[at])) for at in both]
        raise ParameterError(
            "A feature cannot be in must_keep and in never_keep; these are in both: "
            f"{some_of(shown)}. Remove them from one of the two."
        )
    return FeatureControl(must, never)


# Limits of small tables


def cap_neighbors(n_neighbors: int, n_samples: int, *, spare: int = 1) -> int:
    """``n_neighbors``, lowered to the number of samples less the ``spare`` ones."""
    needs = f"{n_neighbors + spare} samples; X has {n_samples}"
    return _cap("n_neighbors", n_neighbors, n_samples - spare, needs)


def cap_clusters(n_clusters: int, n_samples: int, *, spare: int = 0) -> int:
    """``n_clusters``, lowered to the number of samples but ``spare`` if it is larger."""
    needs = f"{n_clusters + spare} samples; X has {n_samples}"
    return _cap("n_clusters", n_clusters, n_samples - spare, needs)


def cap_columns(name: str, wanted: int, n_usable: int) -> int:
    """Columns of a row-sparse W: fewer than features, or every score would be 1."""
    needs = f"{wanted + 1} columns that vary; X has {n_usable}"
    return _cap(name, wanted, max(1, n_usable - 1), needs)


def _cap(name: str, wanted: int, most: int, needs: str) -> int:
    if wanted > most:
        found = f"{name}={wanted} needs at least {needs}, so {name}={most} is used."
        warn_caller(found, DataWarning)
    return min(wanted, most)


# Memory

OTHERWISE = (
    "Fit it on a sample of the rows or a first selection of the columns, or use SPCAFS, which "
    "needs little more memory than the data."
)


def refuse_past_memory(method: str, what: str, n_bytes: float, way_out: str = OTHERWISE) -> None:
    """Raise if ``n_bytes`` exceeds the memory of this machine; name the size and the use."""
    available = physical_memory()
    if available is not None and n_bytes > available:
        raise DataError(
            f"{method} needs about {n_bytes / 1e9:.1f} GB for {what}, more than the "
            f"{available / 1e9:.1f} GB of this machine. {way_out}"
        )


def memory_budget(limit: Any) -> Budget:
    """The user's limit; None is a quarter of the machine's memory, or 4 GB if that is unknown."""
    if limit is not None:
        return Budget(float(as_n_bytes(limit, "memory_limit")))
    return Budget((physical_memory() or 16e9) / 4)
