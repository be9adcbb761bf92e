"""Columns of Arrow schemas, which Parquet files have too: what each is for, and their values."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from keepers.data.columns import ColumnPlan, plan_columns, refuse_text, settled_names
from keepers.data.request import ReadRequest
from keepers.exceptions import DataError, MissingDependencyError, shortened

__all__ = ["ArrowColumns", "cast_exactly", "import_pyarrow", "validated"]


def import_pyarrow() -> Any:
    """pyarrow, if it is installed."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingDependencyError(
            'Parquet and Arrow files need pyarrow: pip install "keepers[io]".'
        ) from error
    return pa


def validated(batches: Iterable[Any]) -> Iterator[Any]:
    """Arrow trusts the offsets in a file; these are proven before anything follows them."""
    for batch in batches:
        batch.validate(full=True)
        yield batch


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
        plan = plan_columns(names, request, index=_pandas_index(schema))
        types = schema.types  # made anew at every access: slow in a wide table
        kinds = [types[at] for at in plan.features]
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


def _pandas_index(schema: Any) -> int | None:
    """Position of the column in which pandas stored the row index, if it did."""
    described = (schema.metadata or {}).get(b"pandas")
    if described is None:
        return None
    try:
        index = json.loads(described)["index_columns"]
    except (ValueError, KeyError, TypeError):
        return None
    if isinstance(index, list) and len(index) == 1 and isinstance(index[0], str):
        position = schema.get_field_index(index[0])
        return position if position >= 0 else None
    return None


def cast_exactly(array: Any, target: Any, name: str) -> Any:
    """A numeric column as float32 or float64; what that cannot hold is refused."""
    import pyarrow as pa

    if array.type == target:
        return array
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    try:
        return array.cast(target)  # refuses whole numbers past 2**53
    except pa.ArrowInvalid as error:
        raise DataError(
            f"Column {shortened(name)} holds numbers that float64 cannot hold exactly. If it is an "
            "identifier, name it so (identifier=, --id) or leave it out (drop=, --drop)."
        ) from error
