"""A made-up leaderboard with names that would run, or break a page, if they were not text."""

from typing import Any

from keepers.studies.results import StudyResults
from studies.made_up_study import study

SCRIPT = '</script><script>window.hacked = 1</script>"><img src=x onerror="window.hacked = 1">'
LONG = "x" * 400
TURNED = "right \u202e to left"
NAMES = ["plain", SCRIPT, LONG, TURNED]
KIND = "<b>genes</b> __proto__"
METHOD = "<i onclick=alert(1)>Mine</i>"
METHODS: list[dict[str, Any]] = [
    {"name": "SPCAFS", "grid": {"gamma": [1.0, 100.0]}, "default": {}},
    {"name": "LaplacianScore", "label": METHOD, "default": {}},
    {
        "name": "MCFS",
        "fixed": {"n_clusters": "classes"},
        "default": {},
        "reduced": [{"data": ["plain"], "skip": True, "reason": "needs <days>"}],
    },
    {"name": "RandomScore", "label": "Random", "draws": 2},
    {"name": "AllFeatures", "label": "All features", "default": {}},
]
CONTENT: dict[str, Any] = {
    "title": f"Compared {SCRIPT}",
    "page": "leaderboard",
    "highlight": "SPCAFS",
    "ks": [10, 20],
    "data": [
        {"source": name, "name": name, "kind": KIND if i % 2 else "images"}
        for i, name in enumerate(NAMES)
    ],
    "methods": METHODS,
}
SIZES = {name: (50 + i, 1000, 3) for i, name in enumerate(NAMES)}
# ACC above random columns, by method and data set.
GAINS = {
    "SPCAFS": [0.30, 0.20, -0.09, 0.10],
    METHOD: [0.16, 0.25, 0.05, 0.02],
    "MCFS": [0.00, None, 0.10, 0.20],
    "Random": [0.0, 0.0, 0.0, 0.0],
    "All features": [0.10, 0.10, -0.20, -0.01],
}


def judge(entry: Any, k: int) -> tuple[float, float] | None:
    """ACC of 0.5 and the gain; NMI of half as much."""
    gain = GAINS[entry.method][NAMES.index(entry.data)]
    return None if gain is None else (0.5 + gain, 0.25 + gain / 2)


def hostile_results(**changes: Any) -> StudyResults:
    """The study, with other settings if asked."""
    return StudyResults(study({**CONTENT, **changes}, judge, sizes=SIZES))
