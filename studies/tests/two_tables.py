"""A made-up study of two tables, with sweeps, a method that fails and one that is skipped."""

from typing import Any

SIZES = {"one": (50, 100, 3), "two": (60, 25, 2)}
CONTENT: dict[str, Any] = {
    "ks": [10, 20, 30],
    "data": [{"source": "one"}, {"source": "two", "scaling": "unit-samples"}],
    "methods": [
        {
            "name": "SPCAFS",
            "fixed": {"p": 1.0},
            "grid": {"gamma": [1.0, 2.0, 3.0]},
            "default": {"gamma": "scale"},
        },
        {
            "name": "RNE",
            "grid": {"alpha": [1.0, 2.0]},
            "reduced": [{"data": ["two"], "skip": True, "reason": "too slow"}],
        },
        {"name": "RandomScore", "label": "Random", "draws": 3},
        {"name": "AllFeatures", "label": "All features", "default": {}},
    ],
    "sweeps": [
        {
            "name": "power",
            "method": "SPCAFS",
            "data": ["one"],
            "vary": "p",
            "values": [0.25, 0.5],
            "grid": {"gamma": [1.0, 2.0]},
        },
        {
            "name": "convergence",
            "method": "SPCAFS",
            "data": ["one"],
            "vary": "gamma",
            "values": [5.0],
            "judge": False,
        },
    ],
}


def judge(entry: Any, k: int) -> tuple[float, float] | None:
    """SPCAFS peaks at gamma = 2, where NMI is worst; RNE fails for alpha = 1."""
    if entry.method == "RNE" and entry.params["alpha"] == 1.0:
        return None
    if entry.role == "draw":
        return 0.3 + 0.1 * entry.params["random_state"], 0.2
    if entry.method == "All features":
        return 0.9, 0.8
    gamma = entry.params.get("gamma", 0)
    acc = {1.0: 0.5, 2.0: 0.6, 3.0: 0.55}.get(gamma, 0.4) + k / 1000
    if entry.section == "power":
        acc += 0.1 * entry.params["p"]
    return acc, {2.0: 0.3}.get(gamma, 0.7)
