"""The pieces of work of a study, each known by a key that depends on nothing but its content.

Two places of a study that ask for the same fit share one task, and a task that is already in the
store is never done again.
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

__all__ = ["Growth", "Outcome", "Task", "resolve_params"]

Params = dict[str, Any]

_CLASSES = re.compile(r"classes(?:\s*-\s*(\d+))?")


@dataclass(frozen=True)
class Task:
    """Fit one method with one setting on one table, then judge its best k features for each k."""

    data: str
    """Name of the table in the study, which stands for values and scaling together."""
    fingerprint: str
    """Checksum of its numbers and classes: other numbers, other task."""
    method: str
    params: Params = field(hash=False)
    ks: tuple[int, ...]
    repeats: int
    seed: int

    @cached_property
    def key(self) -> str:
        """Names the task in the store."""
        return _digest({"kind": "judge", **asdict(self)})


@dataclass(frozen=True)
class Growth:
    """Time one fit on made-up data of a stated size, to see how the cost of a method grows."""

    method: str
    params: Params = field(hash=False)
    n_samples: int
    n_features: int
    seed: int

    @cached_property
    def key(self) -> str:
        """Names the task in the store."""
        return _digest({"kind": "growth", **asdict(self)})


@dataclass(frozen=True)
class Outcome:
    """What became of a task. Failing and running out of time are outcomes like any other."""

    status: str
    """"ok", "failed", "timeout" or "killed"."""
    reason: str = ""
    fit_seconds: float = 0.0
    kmeans_seconds: float = 0.0
    judgements: tuple[dict[str, Any], ...] = ()
    """One a k: n_features, acc and nmi (a number per repeat)."""
    objective: tuple[float, ...] = ()
    """The method's objective after each step, where it has one."""
    n_iter: int | None = None
    top: tuple[int, ...] = ()
    """The best features, best first, up to the largest k."""
    warnings: tuple[str, ...] = ()


def resolve_params(params: Params, n_classes: int) -> Params:
    """Replace "classes" and "classes - 1" by numbers (at least 1)."""
    return {name: _resolve(value, n_classes) for name, value in params.items()}


def _resolve(value: Any, n_classes: int) -> Any:
    match = _CLASSES.fullmatch(value) if isinstance(value, str) else None
    return max(1, n_classes - int(match[1] or 0)) if match else value


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]
