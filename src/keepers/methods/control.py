"""What a user may decide before the data do: features that stay, features that go, weights, groups.

All of it is one mechanism, a penalty weight per feature and a group per feature: weight 0 keeps a
feature, infinity never does. `read_control` turns what the user wrote, by name or by index, into
those two arrays, a `FeatureControl`, which orders and counts features accordingly.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from keepers._protocols import FloatArray, IndexArray
from keepers._wording import some_of
from keepers.exceptions import ParameterError, shorten
from keepers.methods.parameters import (
    FeatureControl as FeatureControl,
)
from keepers.methods.parameters import (
    Rule,
    check_length,
    check_value,
    feature_indices,
    is_labelled,
    is_real,
)

SETTINGS = ("penalty_weights", "groups", "must_keep", "never_keep")
"""Parameters of selectors that mean a weight or a group of features."""
WEIGHT = Rule(
    # Past 1e6 the eigenproblems of the dense solver lose the digits that tell other rows apart.
    "a number from 0 to 1e+06, or infinity for a feature never to be kept",
    lambda weight: is_real(weight) and (0 <= weight <= 1e6 or weight == np.inf),
)


def control_of(selector: Any, n_features: int) -> FeatureControl:
    """The weights and groups that the user of a selector decided."""
    given = {name: getattr(selector, name, None) for name in SETTINGS}
    return read_control(n_features, getattr(selector, "feature_names_in_", None), **given)


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

    def shown(columns: IndexArray) -> str:
        return some_of([str(at) if names is None else repr(str(names[at])) for at in columns])

    weights = _weights(penalty_weights, n_features, names)
    must, never = np.zeros((2, n_features), dtype=bool)
    marks = (("must_keep", must_keep, must, 0.0), ("never_keep", never_keep, never, np.inf))
    for setting, given, mark, _ in marks:
        if given is not None:
            mark[feature_indices(given, n_features, names, setting=setting)] = True
    both = np.flatnonzero(must & never)
    if len(both):
        raise ParameterError(
            "A feature cannot be in must_keep and in never_keep; these are in both: "
            f"{shown(both)}. Take them out of one."
        )
    for setting, _, mark, weight in marks:
        clash = np.flatnonzero(mark & (weights != 1.0) & (weights != weight))[:1]
        if len(clash):
            raise ParameterError(
                f"{setting} means a penalty weight of {weight:g}; penalty_weights gives "
                f"{weights[clash[0]]:g} to {shown(clash)}. Leave it out of one."
            )
        weights[mark] = weight
    labels = None if groups is None else _number_groups(_labels(groups, n_features, names))
    if labels is not None:
        free = np.bincount(labels, weights == 0.0) > 0
        paid = np.bincount(labels, (weights > 0.0) & np.isfinite(weights)) > 0
        split = np.flatnonzero((free & paid)[labels] & (weights == 0.0))[:1]
        if len(split):
            raise ParameterError(
                "The features of a group are kept together: all of them are always kept (weight "
                f"0) or none; only a part of its group is: {shown(split)}. Add the others to "
                "must_keep, or take this one out of the group."
            )
    return FeatureControl(weights, labels)


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
    labels: list[Any] = [None] * (n_features or 0)
    if is_labelled(given):
        given = given.to_dict()
        columns = feature_indices(list(given), n_features, names, setting="groups")
        found = dict(zip(columns.tolist(), given.values(), strict=True))
        return [found.get(column) for column in range(len(labels))]
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ParameterError(
            "groups must be an array with one label per feature, a list of lists of features, or "
            f"a dict of such lists; got {shorten(given)}."
        )
    members = list(given.values() if isinstance(given, Mapping) else given)
    lists = [isinstance(each, Iterable) and not isinstance(each, str) for each in members]
    if not isinstance(given, Mapping) and not any(lists):
        check_length("groups", members, n_features)
        return members
    if not all(lists):
        wrong = shorten(members[lists.index(False)])
        raise ParameterError(
            f"Each of groups must be a sequence of names or indices; got {wrong}. Write "
            f"[{wrong}] for one feature."
        )
    # One look-up for all groups: there may be thousands of them.
    flat = [feature for group in members for feature in group]
    numbers = [number for number, group in enumerate(members) for _ in group]
    columns = feature_indices(flat, n_features, names, setting="groups")
    if n_features is not None:
        for column, feature, number in zip(columns, flat, numbers, strict=True):
            if labels[column] not in (None, number):
                raise ParameterError(
                    f"Groups must not overlap; {shorten(feature)} is in more than one of them."
                )
            labels[column] = number
    return labels


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
