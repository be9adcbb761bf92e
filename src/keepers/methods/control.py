"""What a user may decide before the data do: features that stay, features that go, weights, groups.

All of it is one mechanism, a penalty weight per feature and a group per feature: weight 0 keeps a
feature, infinity never does. `read_control` turns what the user wrote, by name or by index, into
those two arrays, a `FeatureControl`, which orders and counts features accordingly.
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
    # Past 1e6 the eigenproblems of the dense solver lose the digits that tell other rows apart.
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
        """Columns from best to worst.

        Those always kept, the rest, constant ones, those never kept; in each tier by the root mean
        square score of the group, so that its members stand together, then by score; ties by
        variance, then by index.
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
        """How many features a (checked) number, share or None means: of those not ruled out."""
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
        """The same for the selection itself, which has to hold every feature always kept."""
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
    """The weights and groups that the user's settings mean; ``names`` are the columns' or None."""

    def shown(column: Any) -> str:
        return str(column) if names is None else repr(str(names[column]))

    weights = _weights(penalty_weights, n_features, names)
    marked = {}
    for setting, given in (("must_keep", must_keep), ("never_keep", never_keep)):
        marked[setting] = np.zeros(n_features, dtype=bool)
        if given is not None:
            columns = feature_indices(given, n_features, names, setting=setting)
            marked[setting][columns] = True
    both = np.flatnonzero(marked["must_keep"] & marked["never_keep"])
    if len(both):
        raise ParameterError(
            "A feature cannot be in must_keep and in never_keep; these are in both: "
            f"{some_of([shown(column) for column in both])}. Take them out of one."
        )
    for setting, weight in (("must_keep", 0.0), ("never_keep", np.inf)):
        clash = np.flatnonzero(marked[setting] & (weights != 1.0) & (weights != weight))
        if len(clash):
            raise ParameterError(
                f"{setting} means a penalty weight of {weight:g}; penalty_weights gives "
                f"{weights[clash[0]]:g} to {shown(clash[0])}. Leave it out of one."
            )
        weights[marked[setting]] = weight
    labels = None if groups is None else _number_groups(_labels(groups, n_features, names))
    if labels is not None:
        free = np.bincount(labels, weights == 0.0) > 0
        paid = np.bincount(labels, (weights > 0.0) & np.isfinite(weights)) > 0
        split = np.flatnonzero((free & paid)[labels] & (weights == 0.0))
        if len(split):
            raise ParameterError(
                "The features of a group are kept together: all of them are always kept (weight "
                f"0) or none; only a part of its group is: {shown(split[0])}. Add the others to "
                "must_keep, or take this one out of the group."
            )
    return FeatureControl(weights, labels)


def control_of(selector: Any, n_features: int) -> FeatureControl:
    """What the user of a selector decided before the data do."""
    names = getattr(selector, "feature_names_in_", None)
    return read_control(n_features, names, **selector._user_control())


def check_control(
    *,
    penalty_weights: Any = None,
    groups: Any = None,
    must_keep: Any = None,
    never_keep: Any = None,
) -> None:
    """Raise for what is wrong whatever the columns are: before a table is opened or consumed."""
    given = {"penalty_weights": penalty_weights, "groups": groups}
    given |= {"must_keep": must_keep, "never_keep": never_keep}
    for setting, value in given.items():
        if isinstance(value, Iterator):
            raise ParameterError(
                f"{setting} must be something that can be read more than once; got a "
                f"{type(value).__name__}. Write list(...)."
            )
    _weights(penalty_weights)
    for setting in ("must_keep", "never_keep"):
        if given[setting] is not None:
            feature_indices(given[setting], setting=setting)
    if groups is not None:
        _labels(groups)


def _weights(given: Any, n_features: int | None = None, names: Any = None) -> FloatArray:
    """A weight for every column, from an array or from a dict of some of them; 1 for the others.

    Without ``n_features`` the weights are only checked.
    """
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
    """A label for every column; None for a column of no group. Empty if only checked."""
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
    # One look-up for all groups: there may be thousands of them.
    flat = [feature for group in members for feature in _features_of(group)]
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


def _features_of(group: Any) -> Any:
    if isinstance(group, str) or not isinstance(group, Iterable):
        raise ParameterError(
            f"Each of groups must be a sequence of names or indices; got {shorten(group)}. Write "
            f"[{shorten(group)}] for one feature."
        )
    return group


def _number_groups(labels: list[Any]) -> IndexArray | None:
    """Equal labels -> equal numbers; None and NaN stand for a feature of no group."""
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
