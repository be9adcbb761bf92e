"""A selection to be applied to other tables: names, settings and versions, as JSON."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepers._wording import first_line, some_of
from keepers.exceptions import DataError, shorten
from keepers.tables.atomic import whole_file

if TYPE_CHECKING:
    from keepers.reports.selection import Selection

__all__ = ["Recipe"]

LAYOUT = 1
MOST_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Recipe:
    """A selection, and the table that it comes from."""

    features: tuple[str, ...]
    """Names of the kept features, best first."""
    scores: tuple[float, ...]
    method: str
    params: Mapping[str, Any]
    scaling: str
    source: str
    """Name of the table the selection was made on."""
    shape: tuple[int, int]
    versions: Mapping[str, str]
    preparation: Mapping[str, Any] | None = None
    """How the table was read and prepared; None if it was used as it is."""

    @classmethod
    def of(cls, selection: "Selection", preparation: Mapping[str, Any] | None = None) -> "Recipe":
        return cls(
            features=tuple(feature.name for feature in selection.kept),
            scores=tuple(feature.score for feature in selection.kept),
            method=selection.method,
            params=selection.settings,
            scaling=selection.scaling,
            source=selection.source or "",
            shape=(selection.n_samples, selection.n_features),
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
        """Read a recipe; raise DataError with the reason for anything else."""
        try:
            if path.stat().st_size > MOST_BYTES:
                raise DataError(f"{path} is too large for a recipe of keepers.")
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(f"There is no file {path}.") from None
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{path} is not a recipe of keepers: {first_line(error)}.") from None
        if not isinstance(content, dict) or content.get("keepers_recipe") != LAYOUT:
            raise DataError(
                f"{path} is not a recipe of keepers (layout {LAYOUT}). `keepers select --save` "
                "writes one."
            )
        for name, rule in _RULES.items():
            if not _fits(content.get(name), rule) or content.get(name) == []:
                raise DataError(
                    f"{path} is a damaged recipe: {shorten(name)} is missing or not valid. Write "
                    "it again with `keepers select --save`."
                )
        values: dict[str, Any] = {name: content.get(name) for name in _RULES}
        for name in ("features", "scores", "shape"):
            values[name] = tuple(values[name])
        return cls(**values)


_PREPARATION = {
    **dict.fromkeys(("id", "labels"), (None, str)),
    **dict.fromkeys(("transpose", "make_unique"), bool),
    "numbers": [str],
}
_RULES: dict[str, Any] = {
    **dict.fromkeys(("method", "scaling", "source"), str),
    **dict.fromkeys(("params", "versions"), dict),
    "features": [str],
    "scores": [(int, float)],
    "shape": [int],
    "preparation": (None, _PREPARATION),
}
"""Types of the entries: one type, a list or a dict of it, or one of several."""


def _fits(value: Any, rule: Any) -> bool:
    if isinstance(rule, tuple):
        return any(_fits(value, each) for each in rule)
    if isinstance(rule, list):
        return isinstance(value, list) and all(_fits(each, rule[0]) for each in value)
    if isinstance(rule, dict):
        return isinstance(value, dict) and all(
            name not in value or _fits(value[name], each) for name, each in rule.items()
        )
    return isinstance(value, rule) if isinstance(rule, type) else value == rule
