"""What a user may decide before the data do: features that stay, features that go, costs, groups.

All of it is one mechanism, a penalty weight per feature and a group per feature: weight 0 keeps a
feature, infinity never does. `read_control` turns what the user wrote, by name or by index, into
those two arrays, a `FeatureControl`, which orders and counts features accordingly.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.data.wording import closest, some_of
from keepers.exceptions import ParameterError, shorten
from keepers.linalg.ordering import best_first, levels
from keepers.selectors.fitted_table import FittedTable
from keepers.selectors.parameters import count_features, is_real, is_whole
from keepers.solvers.penalty import RowPenalty, group_costs

# Past this the eigenproblems of the dense solver lose the digits that tell the other rows apart.
LARGEST_WEIGHT = 1e6

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

    def penalty(self, gamma: float, p: float, eps: float, columns: IndexArray) -> RowPenalty:
        """The penalty on the rows of W that belong to these columns."""
        costs = self.weights[columns]
        if self.groups is not None:
            _, groups = np.unique(self.groups[columns], return_inverse=True)
            if groups.max() + 1 < len(columns):
                return RowPenalty(gamma, p, eps, group_costs(costs, groups, p), groups)
        return RowPenalty(gamma, p, eps, None if np.all(costs == 1.0) else costs)

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
    if all(given is None for given in (penalty_weights, groups, must_keep, never_keep)):
        return FeatureControl(np.ones(n_features), None)
    columns = _Columns(n_features, names)
    weights = _read_weights(penalty_weights, columns)
    must = columns.mask("must_keep", must_keep)
    never = columns.mask("never_keep", never_keep)
    both = np.flatnonzero(must & never)
    if len(both):
        raise ParameterError(
            "A feature cannot be in must_keep and in never_keep; these are in both: "
            f"{columns.names_of(both)}. Take them out of one."
        )
    for name, mask, weight in (("must_keep", must, 0.0), ("never_keep", never, np.inf)):
        clash = np.flatnonzero(mask & (weights != 1.0) & (weights != weight))
        if len(clash):
            raise ParameterError(
                f"{name} means a penalty weight of {weight:g}; penalty_weights gives "
                f"{weights[clash[0]]:g} to {columns.names_of(clash[:1])}. Leave it out of one."
            )
        weights[mask] = weight
    labels = _read_groups(groups, columns)
    if labels is not None:
        _refuse_half_kept_groups(weights, labels, columns)
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
    columns = _UnknownColumns()
    given = {"penalty_weights": penalty_weights, "groups": groups}
    given |= {"must_keep": must_keep, "never_keep": never_keep}
    _refuse_iterators(given)
    _read_weights(penalty_weights, columns)
    _read_groups(groups, columns)
    for setting, value in (("must_keep", must_keep), ("never_keep", never_keep)):
        if value is not None:
            columns.find_all(setting, _features_of(value))


def _features_of(value: Any) -> Any:
    """The features that a mask or a sequence names; of a mask none, its length being unknown."""
    if _is_labelled(value) and value.dtype == bool:
        return []
    if isinstance(value, Iterable) and not isinstance(value, str):
        entries = list(value)
        return [] if all(isinstance(entry, (bool, np.bool_)) for entry in entries) else entries
    return value


class _Columns:
    """The columns of the user's table, by name or index."""

    def __init__(self, n_features: int, names: Any) -> None:
        self.n_features = n_features
        self.names = None if names is None else [str(name) for name in names]
        self._positions: dict[str, list[int]] = {}
        for position, name in enumerate(self.names or []):
            self._positions.setdefault(name, []).append(position)

    def find(self, setting: str, feature: Any) -> int:
        """The position of one feature; ``setting`` is named in what is raised."""
        if isinstance(feature, str):
            return self._find_name(setting, feature)
        if not is_whole(feature):
            raise ParameterError(
                f"{setting} must hold names or indices of features; got {shorten(feature)} among "
                "them."
            )
        if not 0 <= feature < self.n_features:
            raise ParameterError(
                f"Indices in {setting} must lie between 0 and {self.n_features - 1}, X having "
                f"{self.n_features} features; got {shorten(feature)}."
            )
        return int(feature)

    def _find_name(self, setting: str, name: str) -> int:
        if self.names is None:
            raise ParameterError(
                f"Names in {setting} need an X with column names, all of them strings; got "
                f"{shorten(name)}. Pass a data frame, or give indices from 0 to "
                f"{self.n_features - 1}."
            )
        positions = self._positions.get(name, [])
        if not positions:
            raise ParameterError(
                f"{setting} must name columns of X; {shorten(name)} is none of its "
                f"{self.n_features}."
                f"{closest(name, self.names)}"
            )
        if len(positions) > 1:
            raise ParameterError(
                f"Names in {setting} must be clear; {len(positions)} columns of X are called "
                f"{shorten(name)}. Give the index instead."
            )
        return positions[0]

    def find_all(self, setting: str, features: Any) -> list[int]:
        """The positions of a sequence of features."""
        if isinstance(features, str) or not isinstance(features, Iterable):
            raise ParameterError(
                f"{setting} must be a sequence of names or indices; got {shorten(features)}. "
                f"Write [{shorten(features)}] for one feature."
            )
        return [self.find(setting, feature) for feature in features]

    def mask(self, setting: str, features: Any) -> BoolArray:
        """A mask over the columns from a mask, a labelled mask, or a sequence of features."""
        mask = np.zeros(self.n_features, dtype=bool)
        if features is None:
            return mask
        if _is_labelled(features) and features.dtype == bool:
            features = [feature for feature, marked in features.to_dict().items() if marked]
        elif isinstance(features, Iterable) and not isinstance(features, str):
            features = list(features)
            if features and all(isinstance(entry, (bool, np.bool_)) for entry in features):
                self.check_length(setting, features)
                return np.array(features, dtype=bool)
        mask[self.find_all(setting, features)] = True
        return mask

    def check_length(self, setting: str, values: Any) -> None:
        """Refuse an array that is not as long as X is wide."""
        if len(values) != self.n_features:
            raise ParameterError(
                f"{setting} must have one entry per feature, {self.n_features}; got {len(values)}."
            )

    def names_of(self, positions: IndexArray) -> str:
        """Names, or else indices, for a message."""
        return some_of(
            [str(at) if self.names is None else repr(self.names[at]) for at in positions]
        )


class _UnknownColumns(_Columns):
    """Columns of which not even the number is known: any name, and any index from 0 on, may be."""

    def __init__(self) -> None:
        super().__init__(0, None)
        self._numbers: dict[Any, int] = {}

    def find(self, setting: str, feature: Any) -> int:
        """A number of its own for every feature."""
        if not isinstance(feature, str):
            if not is_whole(feature):
                return super().find(setting, feature)  # raises
            if feature < 0:
                raise ParameterError(f"Indices in {setting} must be >= 0; got {shorten(feature)}.")
        number = self._numbers.setdefault(feature, len(self._numbers))
        self.n_features = len(self._numbers)
        return number

    def check_length(self, setting: str, values: Any) -> None:
        """Any length may be right."""

    def names_of(self, positions: IndexArray) -> str:
        """Features as the user wrote them."""
        written = list(self._numbers)
        return some_of([repr(written[at]) for at in positions])


def _is_labelled(values: Any) -> bool:
    """Whether this is a pandas Series: it says itself which feature an entry belongs to."""
    return hasattr(values, "to_dict") and hasattr(values, "index") and hasattr(values, "dtype")


def _read_weights(given: Any, columns: _Columns) -> FloatArray:
    return _read_numbers("penalty_weights", "weight", given, columns, _read_weight)


def _read_numbers(
    setting: str, what: str, given: Any, columns: _Columns, read: Callable[[Any], float]
) -> FloatArray:
    """A number for every column, from an array or from a dict of some of them; 1 for the others."""
    if given is None:
        return np.ones(columns.n_features)
    entries = given.to_dict() if _is_labelled(given) else given
    if isinstance(entries, Mapping):
        found = {columns.find(setting, feature): read(value) for feature, value in entries.items()}
        numbers = np.ones(columns.n_features)
        numbers[list(found)] = list(found.values())
        return numbers
    if isinstance(entries, str) or not isinstance(entries, Iterable):
        raise ParameterError(
            f"{setting} must be an array with one {what} per feature, or a dict from names or "
            f"indices to {what}s; got {shorten(given)}."
        )
    entries = list(entries)
    columns.check_length(setting, entries)
    return np.array([read(value) for value in entries])


def _read_weight(weight: Any) -> float:
    if not is_real(weight) or not (0 <= weight <= LARGEST_WEIGHT or weight == np.inf):
        raise ParameterError(
            f"A penalty weight must be a number from 0 to {LARGEST_WEIGHT:g}, or infinity for a "
            f"feature never to be kept; got {shorten(weight)}."
        )
    return float(weight)


def read_costs(costs: Any, n_features: int, names: Any = None) -> FloatArray:
    """What every column costs; 1 for those that a dict leaves out."""
    return _read_numbers("costs", "cost", costs, _Columns(n_features, names), _read_cost)


def check_costs(costs: Any) -> None:
    """Raise for costs that are wrong whatever the columns are."""
    _refuse_iterators({"costs": costs})
    _read_numbers("costs", "cost", costs, _UnknownColumns(), _read_cost)


def _read_cost(cost: Any) -> float:
    if not is_real(cost) or not 0 < cost < np.inf:
        raise ParameterError(
            f"A cost must be a finite number > 0; got {shorten(cost)}. For a feature that is "
            "always kept use must_keep, and never_keep for one that never is."
        )
    return float(cost)


def _refuse_iterators(settings: dict[str, Any]) -> None:
    for setting, value in settings.items():
        if isinstance(value, Iterator):
            raise ParameterError(
                f"{setting} must be something that can be read more than once; got a "
                f"{type(value).__name__}. Write list(...)."
            )


def _read_groups(given: Any, columns: _Columns) -> IndexArray | None:
    """The group of every column, numbered by their first members; None if all stand alone."""
    if given is None:
        return None
    if _is_labelled(given):
        found = {columns.find("groups", name): label for name, label in given.to_dict().items()}
        given = [found.get(position) for position in range(columns.n_features)]
    if not isinstance(given, (Mapping, str)) and isinstance(given, Iterable):
        given = list(given)
        if not any(_is_collection(entry) for entry in given):
            columns.check_length("groups", given)
            return _number_groups(given)
    members = list(given.values()) if isinstance(given, Mapping) else given
    if not isinstance(members, list):
        raise ParameterError(
            "groups must be an array with one label per feature, a list of lists of features, or "
            f"a dict of such lists; got {shorten(given)}."
        )
    labels: dict[int, int] = {}
    for number, group in enumerate(members):
        for position in columns.find_all("groups", group):
            if labels.setdefault(position, number) != number:
                raise ParameterError(
                    f"Groups must not overlap; {columns.names_of(np.array([position]))} is in more "
                    "than one of them."
                )
    return _number_groups([labels.get(position) for position in range(columns.n_features)])


def _is_collection(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes))


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


def _refuse_half_kept_groups(weights: FloatArray, groups: IndexArray, columns: _Columns) -> None:
    """A group is kept as a whole: all of its members are always kept, or none."""
    free = np.bincount(groups, weights == 0.0) > 0
    paid = np.bincount(groups, (weights > 0.0) & np.isfinite(weights)) > 0
    split = np.flatnonzero((free & paid)[groups] & (weights == 0.0))
    if len(split):
        raise ParameterError(
            "The features of a group are kept together: all of them are always kept (weight 0) or "
            f"none; only a part of its group is: {columns.names_of(split[:1])}. Add the others to "
            "must_keep, or take this one out of the group."
        )
