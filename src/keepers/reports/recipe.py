"""A selection to be applied to other tables: names, settings, versions and a checksum, as JSON."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keepers._wording import first_line, some_of
from keepers.exceptions import DataError, shorten
from keepers.prepare.kinds import KINDS, MISSING
from keepers.tables.atomic import whole_file

if TYPE_CHECKING:
    from keepers.reports.selection import Selection

__all__ = ["Recipe", "checksum", "moments_checksum"]

LAYOUT = 1
MOST_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Recipe:
    """What was selected, and from which table."""

    features: tuple[str, ...]
    """Names of the kept features, best first."""
    scores: tuple[float, ...]
    method: str
    params: Mapping[str, Any]
    scaling: str
    source: str
    """Name of the table the selection was made on."""
    shape: tuple[int, int]
    checksum: str
    """Of the values and names of that table, or of its moments if it was read in blocks."""
    versions: Mapping[str, str]
    preparation: Mapping[str, Any] | None = None
    """How the table was read and prepared; None if it was used as it is."""

    @classmethod
    def of(
        cls, selection: "Selection", checksum: str, preparation: Mapping[str, Any] | None = None
    ) -> "Recipe":
        """The recipe of a selection; ``checksum`` identifies the table it was made on."""
        return cls(
            features=tuple(feature.name for feature in selection.kept),
            scores=tuple(feature.score for feature in selection.kept),
            method=selection.method,
            params=selection.settings,
            scaling=selection.scaling,
            source=selection.source or "",
            shape=(selection.n_samples, selection.n_features),
            checksum=checksum,
            versions=selection.versions,
            preparation=preparation,
        )

    def refuse_absent(self, names: Iterable[str]) -> None:
        """Raise unless all kept features are among these names."""
        known = set(names)
        missing = [repr(name) for name in self.features if name not in known]
        if missing:
            raise DataError(
                f"The table lacks {len(missing)} of the {len(self.features)} features of the "
                f"recipe: {some_of(missing)}. Apply it to a table with the same column names."
            )

    def save(self, path: Path, *, force: bool = False) -> None:
        """Write the recipe whole or not at all."""
        content = {"keepers_recipe": LAYOUT, **asdict(self)}
        if self.preparation is None:
            del content["preparation"]
        # A method of the user's own may have settings that JSON does not know.
        text = json.dumps(
            content, indent=1, allow_nan=False, default=lambda value: repr(type(value))
        )
        with whole_file(path, force=force) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Recipe":
        """Read a recipe; anything else is refused with the reason."""
        try:
            if path.stat().st_size > MOST_BYTES:
                raise DataError(f"{path} is too large for a recipe of keepers.")
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(f"There is no file {path}.") from None
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{path} is not a recipe of keepers: {first_line(error)}.") from None
        return cls._check(content, path)

    @classmethod
    def _check(cls, content: Any, path: Path) -> "Recipe":
        if not isinstance(content, dict) or content.get("keepers_recipe") != LAYOUT:
            raise DataError(
                f"{path} is not a recipe of keepers (layout {LAYOUT}). `keepers select --save` "
                "writes one."
            )
        content.setdefault("preparation", None)
        values: dict[str, Any] = {each.name: content.get(each.name) for each in fields(cls)}
        damaged = next((name for name, check in _VALID.items() if not check(values[name])), None)
        if damaged is not None:
            raise DataError(
                f"{path} is a damaged recipe: {shorten(damaged)} is missing or not valid. Write "
                "it again with `keepers select --save`."
            )
        for name in ("features", "scores", "shape"):
            values[name] = tuple(values[name])
        return cls(**values)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any, check: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(check(each) for each in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_column(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and _is_text(value.get("name"))
        and value.get("kind") in KINDS
        and _is_list(value.get("levels", []), _is_text)
        and value.get("decimal", ".") in (".", ",")
        and _is_text(value.get("mark", ""))
    )


def _is_preparation(value: Any) -> bool:
    """Whether this says how a table was read; None if it was used as it is."""
    if not isinstance(value, dict):
        return value is None
    preparer = value.get("preparer")
    return (
        all(isinstance(value.get(name), str | None) for name in ("id", "labels"))
        and all(isinstance(value.get(name, False), bool) for name in ("transpose", "make_unique"))
        and (
            preparer is None
            or (
                isinstance(preparer, dict)
                and preparer.get("missing") in MISSING
                and _is_list(preparer.get("columns"), _is_column)
            )
        )
    )


_VALID: dict[str, Callable[[Any], bool]] = {
    "features": lambda value: bool(value) and _is_list(value, _is_text),
    "scores": lambda value: _is_list(value, _is_number),
    "method": _is_text,
    "params": lambda value: isinstance(value, dict),
    "scaling": _is_text,
    "source": _is_text,
    "shape": lambda value: _is_list(value, _is_number) and len(value) == 2,
    "checksum": _is_text,
    "versions": lambda value: isinstance(value, dict),
    "preparation": _is_preparation,
}
"""What every entry of a recipe must be."""


def checksum(X: Any, feature_names: Iterable[str]) -> str:
    """SHA-256 of the names and values of a table."""
    digest = hashlib.sha256(json.dumps([str(name) for name in feature_names]).encode())
    parts = (X.data, X.indices, X.indptr) if hasattr(X, "indptr") else (X,)
    digest.update(str(X.shape).encode())
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def moments_checksum(selection: "Selection") -> str:
    """SHA-256 of names, number of rows, means and variances: for a table read in blocks."""
    names = [str(name) for name in selection.feature_names]
    digest = hashlib.sha256(json.dumps([names, selection.n_samples]).encode())
    for values in (selection.selector.mean_, selection.selector.var_):
        digest.update(np.ascontiguousarray(values).data)
    return f"moments:{digest.hexdigest()}"
