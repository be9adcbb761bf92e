"""Measures of a selection beside the clustering: those of keepers, and functions of the user's own.

A metric is a function of the kept columns, the classes and a seed that returns a number, or several
(one a repeat); higher is better. "forest" names the one that comes with keepers.
"""

import importlib
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers.data.wording import closest, first_line
from keepers.exceptions import ParameterError, shorten

Metric = Callable[[Any, NDArray[Any], int], float | Sequence[float]]

N_TREES = 100
N_FOLDS = 5


def forest_accuracy(X: Any, classes: NDArray[Any], seed: int) -> float:
    """Accuracy of a random forest of 100 trees, mean over five stratified folds.

    A class with fewer samples than folds is missing from some of them.
    """
    from sklearn.ensemble import RandomForestClassifier  # slow to import, and only needed here
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    n_folds = max(2, min(N_FOLDS, int(np.bincount(classes).max())))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    forest = RandomForestClassifier(N_TREES, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        return float(cross_val_score(forest, X, classes, cv=folds).mean())


METRICS: dict[str, Metric] = {"forest": forest_accuracy}
"""The metrics that come with keepers."""


@lru_cache
def find_metric(target: str) -> Metric:
    """The metric of that name, or "module:function" from the current folder or installed."""
    if target in METRICS:
        return METRICS[target]
    module, colon, name = target.partition(":")
    if not colon:
        raise ParameterError(
            f"There is no metric {shorten(target)}.{closest(target, METRICS)} A metric is one of "
            f"{', '.join(METRICS)}, or MODULE:FUNCTION for one of your own."
        )
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # worker processes inherit it
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever the module does when it is imported
        raise ParameterError(
            f"A metric of your own is MODULE:FUNCTION, with the module in the current folder or "
            f"installed; {shorten(target)} cannot be imported ({type(error).__name__}: "
            f"{first_line(error)})."
        ) from error
    if not callable(found):
        raise ParameterError(
            f"A metric must be a function of the kept columns, the classes and a seed; "
            f"{shorten(target)} cannot be called."
        )
    metric: Metric = found
    return metric
