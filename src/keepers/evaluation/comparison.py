"""The paper's protocol for one table of one's own."""

from collections.abc import Sequence
from typing import Any

from keepers.evaluation.methods import find_selector
from keepers.evaluation.spec import DataChoice, MethodChoice, StudySpec
from keepers.exceptions import ParameterError, shortened
from keepers.methods import all_selectors

__all__ = ["METHODS", "comparison_spec"]

_PAPERS_GRID = [10.0**power for power in range(-6, 7, 2)]

METHODS: dict[str, dict[str, Any]] = {
    "spcafs": {
        "name": "SPCAFS",
        "grid": {"n_components": ["classes - 1"], "gamma": _PAPERS_GRID},
        "default": {},
    },
    "lapscore": {"name": "LaplacianScore", "label": "LapScore", "default": {}},
    "mcfs": {"name": "MCFS", "fixed": {"n_clusters": "classes"}, "default": {}},
    "udfs": {
        "name": "UDFS",
        "fixed": {"n_clusters": "classes"},
        "grid": {"gamma": _PAPERS_GRID},
        "default": {},
    },
    "eufs": {
        "name": "EUFS",
        "fixed": {"n_clusters": "classes - 1"},
        "grid": {"alpha": _PAPERS_GRID, "beta": _PAPERS_GRID},
        "default": {},
    },
    "dgufs": {
        "name": "DGUFS",
        "fixed": {"n_clusters": "classes"},
        "grid": {"beta": [0.1, 0.3, 0.5, 0.7, 0.9]},
        "default": {},
    },
    "sogfs": {
        "name": "SOGFS",
        "fixed": {"n_clusters": "classes", "n_components": "classes - 1"},
        "grid": {"gamma": _PAPERS_GRID},
        "default": {},
    },
    "rne": {"name": "RNE", "grid": {"alpha": _PAPERS_GRID}, "default": {}},
    "random": {"name": "RandomScore", "label": "Random", "draws": 20},
    "variance": {"name": "VarianceScore", "label": "Variance", "default": {}},
    "all-features": {"name": "AllFeatures", "label": "All features", "default": {}},
}
"""What each name on the command line stands for, with the grid of the paper."""

_WITH_A_GRID = {choice["name"] for choice in METHODS.values()}
METHODS |= {
    name.lower(): {"name": name, "default": {}}
    for name in all_selectors()
    if name not in _WITH_A_GRID
}

BASELINES = ("random", "variance", "all-features")


def comparison_spec(
    source: str,
    *,
    labels: str | None,
    identifier: str | None,
    drop: Sequence[str],
    scaling: str,
    methods: str,
    ks: list[int],
    repeats: int,
    seed: int,
    time_limit: float,
    tune: bool,
) -> StudySpec:
    """A study of one table. The baselines (random, variance, all features) are always in it."""
    data = DataChoice(
        source=source, labels=labels, identifier=identifier, drop=list(drop), scaling=scaling
    )
    return StudySpec(
        title=f"Methods compared on {data.title}",
        ks=ks,
        repeats=repeats,
        seed=seed,
        time_limit=time_limit,
        data=[data],
        methods=[_choice(name, tune) for name in _chosen(methods)],
    )


def _chosen(methods: str) -> list[str]:
    given = [name.strip() for name in methods.split(",") if name.strip()]
    own = [name for name in dict.fromkeys(given) if ":" in name]
    names = [name.lower() for name in given if name not in own]
    for name in own:
        find_selector(name)  # before anything is read
    for name in names:
        if name not in METHODS and name != "all":
            raise ParameterError(
                f"There is no method {shortened(name)}; the methods are {', '.join(METHODS)}, all, "
                "or "
                "MODULE:CLASS for one of your own."
            )
    if "all" in names:
        names = list(METHODS)
    return [*(name for name in METHODS if name in names or name in BASELINES), *own]


def _choice(name: str, tune: bool) -> MethodChoice:
    choice = METHODS.get(name) or {"name": name, "default": {}}
    # An empty grid has one point, the default itself.
    return MethodChoice(**choice if tune else {**choice, "grid": {}})
