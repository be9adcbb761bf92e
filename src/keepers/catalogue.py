"""The registry of methods: the command, comparisons, studies, docs and `all_selectors` read it.

A method of keepers is one entry in `METHODS`; "module:Class" works wherever a method is named.
Classes are imported when they are needed, so help and completion do not wait for scikit-learn.
"""

import importlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from keepers._wording import closest, first_line
from keepers.exceptions import ParameterError, shorten

if TYPE_CHECKING:
    from keepers.methods.base import RankingSelector

__all__ = ["METHODS", "Method", "all_selectors", "find_method"]


@dataclass(frozen=True)
class Method:
    """A method: its name on the command line, its class, and its part in a comparison."""

    name: str
    target: str
    """"module:Class"."""
    label: str = ""
    """Its name in tables and figures; the class's own where empty."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Settings that a comparison derives from the number of classes."""
    draws: int | None = None
    """How many times a random baseline is drawn in a comparison."""
    is_baseline: bool = False
    """Baselines are part of every comparison."""
    selects: bool = True
    """False for a baseline that keeps everything, which `keepers select` does not offer."""

    @property
    def class_name(self) -> str:
        """The name of the class."""
        return self.target.partition(":")[2]

    def load(self) -> "type[RankingSelector]":
        """Import the class."""
        from keepers.methods.base import RankingSelector

        if not self.target.startswith("keepers.") and os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())  # for a module there; worker processes inherit it
        try:
            found = getattr(importlib.import_module(self.target.partition(":")[0]), self.class_name)
        except Exception as error:  # whatever the module does when it is imported
            raise ParameterError(
                f"A method of your own is MODULE:CLASS, with the module in the current folder or "
                f"installed; {shorten(self.target)} cannot be imported ({type(error).__name__}: "
                f"{first_line(error)})."
            ) from error
        if not (isinstance(found, type) and issubclass(found, RankingSelector)):
            raise ParameterError(
                f"A method must be a subclass of RankingSelector (keepers.extending); "
                f"{shorten(self.target)} is not."
            )
        return found


METHODS = (
    Method("auto", "keepers.methods.auto:AutoSelector"),
    Method("spcafs", "keepers.methods.spcafs:SPCAFS"),
    Method("fspca", "keepers.methods.fspca:FSPCA"),
    Method("column-subset", "keepers.methods.rivals.columns:ColumnSubset"),
    Method("cur", "keepers.methods.rivals.columns:CUR"),
    Method("lapscore", "keepers.methods.laplacian:LaplacianScore", "LapScore"),
    Method("spec", "keepers.methods.laplacian:SPEC"),
    Method("mcfs", "keepers.methods.rivals.mcfs:MCFS", fixed={"n_clusters": "classes"}),
    Method("udfs", "keepers.methods.rivals.udfs:UDFS", fixed={"n_clusters": "classes"}),
    Method("ndfs", "keepers.methods.rivals.ndfs:NDFS", fixed={"n_clusters": "classes"}),
    Method("jelsr", "keepers.methods.rivals.jelsr:JELSR", fixed={"n_clusters": "classes"}),
    Method("eufs", "keepers.methods.rivals.eufs:EUFS", fixed={"n_clusters": "classes - 1"}),
    Method("dgufs", "keepers.methods.rivals.dgufs:DGUFS", fixed={"n_clusters": "classes"}),
    Method(
        "sogfs",
        "keepers.methods.rivals.sogfs:SOGFS",
        fixed={"n_clusters": "classes", "n_components": "classes - 1"},
    ),
    Method("rne", "keepers.methods.rivals.rne:RNE"),
    Method("u2fs", "keepers.methods.rivals.u2fs:U2FS", fixed={"n_clusters": "classes"}),
    Method("inffs", "keepers.methods.rivals.inffs:InfFS"),
    Method("rsr", "keepers.methods.rivals.rsr:RSR"),
    Method("variance", "keepers.methods.baselines:VarianceScore", "Variance", is_baseline=True),
    Method("random", "keepers.methods.baselines:RandomScore", "Random", draws=20, is_baseline=True),
    Method(
        "all-features",
        "keepers.methods.baselines:AllFeatures",
        "All features",
        is_baseline=True,
        selects=False,
    ),
)
"""Every method of keepers, AutoSelector first, baselines last."""


def find_method(name: str) -> Method:
    """The method of that name: on the command line, of its class, or "module:Class".

    It is not yet imported, unless it is "module:Class", which is checked at once.

    Examples
    --------
    >>> from keepers.catalogue import find_method
    >>> find_method("LaplacianScore").name, find_method("lapscore").class_name
    ('lapscore', 'LaplacianScore')
    """
    if ":" in name:
        method = Method(name, name)
        method.load()
        return method
    for method in METHODS:
        if name.lower() in (method.name, method.class_name.lower()):
            return method
    known = [method.name for method in METHODS]
    raise ParameterError(
        f"There is no method {shorten(name)}.{closest(name, known)} The methods are "
        f"{', '.join(known)}, or MODULE:CLASS for one of your own."
    )


def all_selectors() -> "dict[str, type[RankingSelector]]":
    """Every selector by the name of its class: AutoSelector, the other methods, baselines.

    Examples
    --------
    >>> from keepers import all_selectors
    >>> list(all_selectors())[:3]
    ['AutoSelector', 'SPCAFS', 'FSPCA']
    """
    return {method.class_name: method.load() for method in METHODS}
