"""A selection to be applied to other tables: names, settings, versions and a checksum, as JSON."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keepers._protocols import IndexArray
from keepers.data.replacing import whole_file
from keepers.data.wording import first_line, some_of
from keepers.exceptions import DataError, shorten

if TYPE_CHECKING:
    from keepers.selection import Selection

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
        cls,
        selection: "Selection",
        checksum: str,
        preparation: Mapping[str, Any] | None = None,
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

    def columns_of(self, feature_names: Iterable[str]) -> IndexArray:
        """The columns of the kept features in another table, in the order of that table."""
        places = {str(name): place for place, name in enumerate(feature_names)}
        self.refuse_absent(places)
        return np.array(sorted(places[name] for name in self.features), dtype=np.intp)

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
        expected: dict[str, type] = {
            "features": list,
            "scores": list,
            "method": str,
            "params": dict,
            "scaling": str,
            "source": str,
            "shape": list,
            "checksum": str,
            "versions": dict,
        }
        for name, kind in expected.items():
            if not isinstance(content.get(name), kind):
                raise DataError(
                    f"{path} is a damaged recipe: {shorten(name)} is missing or not valid."
                )
        features = content["features"]
        if not features or not all(isinstance(name, str) for name in features):
            raise DataError(f"{path} is a damaged recipe: 'features' must be names, at least one.")
        values = {name: content[name] for name in expected}
        values["preparation"] = content.get("preparation")
        if not isinstance(values["preparation"], dict | None):
            raise DataError(f"{path} is a damaged recipe: 'preparation' is not valid.")
        for name in ("features", "scores", "shape"):
            values[name] = tuple(values[name])
        return cls(**values)


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
