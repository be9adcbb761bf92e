"""Columns of Arrow schemas, which Parquet files have too: what each is for, and their values."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from keepers.data.columns import ColumnPlan, plan_columns, refuse_text, settled_names
from keepers.data.request import ReadRequest
from keepers.exceptions import DataError, MissingDependencyError, shortened

__all__ = ["ArrowColumns", "cast_exactly", "import_pyarrow"]

_UNNAMED_LEVEL = re.compile(r"__index_level_\d+__")


def import_pyarrow() -> Any:
    """pyarrow, if it is installed."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingDependencyError(
            'Parquet and Arrow files need pyarrow: pip install "keepers[io]".'
        ) from error
    return pa


@dataclass(frozen=True)
class ArrowColumns:
    """Columns as stored, as they will be named, and what each is for."""

    stored: list[str]
    names: list[str]
    plan: ColumnPlan
    dtype: type

    @classmethod
    def of(cls, schema: Any, request: ReadRequest) -> "ArrowColumns":
        """Give the columns of a schema their roles; refuse features that hold no numbers."""
        names = settled_names(schema.names)
        levels = _index_levels(schema)
        index = levels[0] if len(levels) == 1 else None
        plan = plan_columns(names, request, index=index, levels=levels)
        types = schema.types  # made anew at every access: slow in a wide table
        kinds = [_value_type(types[at]) for at in plan.features]
        refuse_text(
            [
                names[at]
                for at, kind in zip(plan.features, kinds, strict=True)
                if not _is_numeric(kind)
            ]
        )
        single = all(str(kind) in ("float", "halffloat") for kind in kinds)
        return cls(list(schema.names), names, plan, np.float32 if single else np.float64)

    @property
    def itemsize(self) -> int:
        """Bytes of a value."""
        return np.dtype(self.dtype).itemsize

    def needed(self) -> list[str] | None:
        """Stored names of the columns to read; None for all."""
        positions = {*self.plan.features, self.plan.labels, self.plan.identifier} - {None}
        if len(positions) == len(self.stored):
            return None
        return [name for at, name in enumerate(self.stored) if at in positions]

    def stored_features(self, positions: Iterable[int] | None = None) -> list[str]:
        """Stored names of the features, or of those at ``positions`` among them."""
        features = self.plan.features
        chosen = features if positions is None else [features[at] for at in positions]
        return [self.stored[at] for at in chosen]

    def features_of(self, arrays: Mapping[str, Any]) -> list[Any]:
        """The feature columns of some rows, given by their stored names, as ``dtype``."""
        import pyarrow as pa

        target = pa.float32() if self.dtype is np.float32 else pa.float64()
        return [
            cast_exactly(arrays[self.stored[at]], target, self.names[at])
            for at in self.plan.features
        ]


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


def _value_type(kind: Any) -> Any:
    """The type of the values, which may be stored once each in a dictionary."""
    from pyarrow import types

    return kind.value_type if types.is_dictionary(kind) else kind


def _index_levels(schema: Any) -> list[int]:
    """Positions of the columns in which pandas stored the row index, if it did.

    Without the metadata of pandas, which other programs do not pass on, the names tell that it
    gives to levels without one.
    """
    stored = _described_index(schema)
    names = schema.names
    return [at for at, name in enumerate(names) if name in stored or _UNNAMED_LEVEL.fullmatch(name)]


def _described_index(schema: Any) -> set[str]:
    described = (schema.metadata or {}).get(b"pandas")
    if described is None:
        return set()
    try:
        index = json.loads(described)["index_columns"]
    except (ValueError, KeyError, TypeError):
        return set()
    # An index that only counts is described, not stored.
    return {name for name in index if isinstance(name, str)} if isinstance(index, list) else set()


def cast_exactly(array: Any, target: Any, name: str) -> Any:
    """A numeric column as float32 or float64; what that cannot hold is refused."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if kind == target:
        return array
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    if pa.types.is_float16(kind):  # which older versions do not cast
        wider = array.to_numpy(zero_copy_only=False).astype(target.to_pandas_dtype())
        return pa.array(wider, from_pandas=True)
    try:
        if pa.types.is_decimal(kind) and kind.scale <= 0:  # a whole number: held to the same rule
            array = array.cast(pa.int64())
        return array.cast(target)  # refuses whole numbers past 2**53
    except pa.ArrowInvalid as error:
        raise DataError(
            f"Column {shortened(name)} holds numbers that float64 cannot hold exactly. If it is an "
            "identifier, name it so (identifier=, --id) or leave it out (drop=, --drop)."
        ) from error
