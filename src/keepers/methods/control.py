"""Control by the user: features that stay, features that go, weights, groups.

`read_control` turns names and indices into a `FeatureControl`: a penalty weight for each feature
(0 always keeps it, infinity never does) and a group.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers._wording import some_of
from keepers.exceptions import ParameterError, shorten
from keepers.linalg.ordering import best_first, levels
from keepers.methods.parameters import (
    Rule,
    check_length,
    check_value,
    count_features,
    feature_indices,
    is_labelled,
    is_real,
    is_whole,
)
from keepers.methods.reading import FittedTable

WEIGHT = Rule(
    # Beyond 1e6 the eigenproblems of the dense solver lose the digits of the other rows.
    "a number from 0 to 1e+06, or infinity for a feature never to be kept",
    lambda weight: is_real(weight) and (0 <= weight <= 1e6 or weight == np.inf),
)

AnyTable = TypeVar("AnyTable", bound=FittedTable)


@dataclass(frozen=True)
class FeatureControl:
    """A weight and a group for every column the user gave."""

    weights: FloatArray
    """0: always kept; infinity: never."""
    groups: IndexArray | None
    """The group of every column, counted from 0; None: every column stands alone."""

    @property
    def must(self) -> BoolArray:
        """Columns that are always kept."""
        return self.weights == 0.0

    @property
    def never(self) -> BoolArray:
        """Columns that are never kept."""
        return np.isinf(self.weights)

    def restrict(self, table: AnyTable) -> AnyTable:
        """The table without the columns that are never kept."""
        never = self.never
        if not never.any():
            return table
        rows = np.flatnonzero(~never[table.usable])
        if len(rows) == 0:
            raise ParameterError(
                f"At least one column that varies must be left to choose from; all "
                f"{len(table.usable)} of them are never to be kept. Take some out of never_keep."
            )
        return table.restrict(rows)

    def order(self, scores: FloatArray, table: FittedTable) -> IndexArray:
        """Columns from best to worst: always kept, others, constant, never kept.

        In each tier they go by the root mean square score of the group, so that its members stand
        together, then by score. Ties go by variance, then by index.
        """
        constant = table.unusable
        tier = np.where(constant, 2, 1)
        tier[self.must] = 0
        tier[self.never] = 3
        order = best_first(scores, table.variances)
        if self.groups is None:
            return order[np.argsort(tier[order], kind="stable")]
        counted = ~(constant | self.never)
        squares = np.bincount(self.groups, np.where(counted, scores.astype(float) ** 2, 0.0))
        typical = np.sqrt(squares / np.maximum(np.bincount(self.groups, counted), 1))
        place = np.argsort(order)
        return np.lexsort((place, self.groups, -levels(typical)[self.groups], tier))

    def count(self, value: Any, name: str) -> int:
        """The number of features that a (checked) number, share or None stands for."""
        n_features = len(self.weights)
        n_allowed = n_features - int(self.never.sum())
        if not is_whole(value):
            return count_features(value, n_allowed, name)
        if n_allowed < value <= n_features:
            raise ParameterError(
                f"{name} must be at most {n_allowed}, the number of features that may be kept "
                f"({n_features - n_allowed} of {n_features} are never to be); got "
                f"{shorten(value)}."
            )
        return count_features(value, n_features, name)

    def count_to_select(self, value: Any) -> int:
        """`count` for a selection, which must have room for every feature always kept."""
        n_must = int(self.must.sum())
        count = self.count(value, "n_features_to_select")
        if value is None:
            return max(count, n_must)
        if count < n_must:
            raise ParameterError(
                f"n_features_to_select must be at least {n_must}, the number of features that are "
                f"always kept; got {shorten(value)}. Ask for more, or shorten must_keep."
            )
        return count


def read_control(
    n_features: int,
    names: Any = None,
    *,
    penalty_weights: Any = None,
    groups: Any = None,
    must_keep: Any = None,
    never_keep: Any = None,
) -> FeatureControl:
    """The control that the settings give columns with these names (or None)."""

    def shown(column: Any) -> str:
        return str(column) if names is None else repr(str(names[column]))

    weights = _weights(penalty_weights, n_features, names)
    marked = {}
    for setting, given in (("must_keep", must_keep), ("never_keep", never_keep)):
        given = () if given is None else given
        marked[setting] = np.unique(feature_indices(given, n_features, names, setting=setting))
    both = np.intersect1d(marked["must_keep"], marked["never_keep"])
    if len(both):
        raise ParameterError(
            "A feature cannot be in must_keep and in never_keep; these are in both: "
            f"{some_of([shown(column) for column in both])}. Take them out of one."
        )
    for setting, weight in (("must_keep", 0.0), ("never_keep", np.inf)):
        columns = marked[setting]
        clash = columns[(weights[columns] != 1.0) & (weights[columns] != weight)]
        if len(clash):
            raise ParameterError(
                f"{setting} means a penalty weight of {weight:g}; penalty_weights gives "
                f"{weights[clash[0]]:g} to {shown(clash[0])}. Leave it out of one."
            )
        weights[columns] = weight
    labels = None if groups is None else _number_groups(_labels(groups, n_features, names))
    if labels is not None:
        free = np.bincount(labels, weights == 0.0) > 0
        paid = np.bincount(labels, (weights > 0.0) & np.isfinite(weights)) > 0
        split = np.flatnonzero((free & paid)[labels] & (weights == 0.0))
        if len(split):
            raise ParameterError(
                "The features of a group are kept together, so must_keep (weight 0) must hold all "
                f"of a group or none; it holds only a part with {shown(split[0])}. Add the others "
                "to must_keep, or take this one out of the group."
            )
    return FeatureControl(weights, labels)


def control_of(selector: Any, n_features: int) -> FeatureControl:
    """The control that the settings of a selector give its columns."""
    names = getattr(selector, "feature_names_in_", None)
    return read_control(n_features, names, **selector._user_control())


def check_control(**given: Any) -> None:
    """Raise for settings of `read_control` that are wrong for every table."""
    for setting, value in given.items():
        if isinstance(value, Iterator):
            raise ParameterError(
                f"{setting} must be something that can be read more than once; got a "
                f"{type(value).__name__}. Write list(...)."
            )
        if setting == "penalty_weights":
            _weights(value)
        elif setting == "groups":
            _labels(() if value is None else value)
        elif value is not None:
            feature_indices(value, setting=setting)


def _weights(given: Any, n_features: int | None = None, names: Any = None) -> FloatArray:
    """A weight for every column; without ``n_features`` the weights are only checked."""
    weights = np.ones(n_features or 0)
    if given is None:
        return weights
    entries = given.to_dict() if is_labelled(given) else given
    if isinstance(entries, str) or not isinstance(entries, Iterable):
        raise ParameterError(
            "penalty_weights must be an array with one weight per feature, or a dict from names or "
            f"indices to weights; got {shorten(given)}."
        )
    if isinstance(entries, Mapping):
        values = list(entries.values())
        columns = feature_indices(list(entries), n_features, names, setting="penalty_weights")
    else:
        values = list(entries)
        check_length("penalty_weights", values, n_features)
        columns = np.arange(len(values))
    for value in values:
        check_value("An entry of penalty_weights", value, WEIGHT)
    if n_features is not None:
        weights[columns] = values
    return weights


def _labels(given: Any, n_features: int | None = None, names: Any = None) -> list[Any]:
    """A label for every column, None outside of groups; without ``n_features`` only checked."""
    if is_labelled(given):
        given = given.to_dict()
        columns = feature_indices(list(given), n_features, names, setting="groups")
        found = dict(zip(columns.tolist(), given.values(), strict=True))
        return [found.get(column) for column in range(n_features or 0)]
    if isinstance(given, Mapping):
        members = list(given.values())
    elif isinstance(given, str) or not isinstance(given, Iterable):
        raise ParameterError(
            "groups must be an array with one label per feature, a list of lists of features, or "
            f"a dict of such lists; got {shorten(given)}."
        )
    else:
        members = list(given)
        if not any(isinstance(each, Iterable) and not isinstance(each, str) for each in members):
            check_length("groups", members, n_features)
            return members
    for group in members:
        feature_indices(group, setting="groups")
    # All names are looked up at once: there may be thousands of groups.
    flat = [feature for group in members for feature in group]
    numbers = [number for number, group in enumerate(members) for _ in group]
    columns = feature_indices(flat, n_features, names, setting="groups")
    labels: list[Any] = [None] * (n_features or 0)
    if n_features is not None:
        for column, feature, number in zip(columns, flat, numbers, strict=True):
            if labels[column] not in (None, number):
                raise ParameterError(
                    f"Groups must not overlap; {shorten(feature)} is in more than one of them."
                )
            labels[column] = number
    return labels


def _number_groups(labels: list[Any]) -> IndexArray | None:
    """A number for each label; every None or NaN has one of its own."""
    first: dict[Any, int] = {}
    numbers = []
    for position, label in enumerate(labels):
        key = ("alone", position) if _is_missing(label) else ("group", label)
        numbers.append(first.setdefault(key, len(first)))
    return None if len(first) == len(labels) else np.array(numbers, dtype=np.intp)


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA has no truth value
        return True
