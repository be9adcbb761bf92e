"""RNE, SOGFS, EUFS and UDFS on the tables of the paper's study: another checkout against this one.

python benchmarks/slow_methods.py OTHER [part of a case's name] ...    OTHER: root of the other one

Settings are those of studies/keepers_studies/study_files/paper.toml, with a small, a middle and a
large weight. Every fit is a process of its own with one thread, the two checkouts in turn; times
are of the processor.
Environment variables: STEPS ends every fit after so many steps, SAMPLES draws so many samples,
WEIGHT is the only weight ("scale" for UDFS and EUFS), and a fit is given up after LIMIT seconds.
"""

import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

TABLES = ("SRBCTML", "LEUML", "PIE", "AR")
WEIGHTS = [os.environ["WEIGHT"]] if "WEIGHT" in os.environ else ["1e-4", "1", "1e3", "1e4"]
STEPS = int(os.environ.get("STEPS", "0"))
SAMPLES = int(os.environ.get("SAMPLES", "0"))
LIMIT = float(os.environ.get("LIMIT", "300"))


def fit(method: str, table: str, weight: float | str) -> None:
    """Print the seconds of one fit, and its last objective."""
    import keepers
    from measure import DATA

    with np.load(DATA / f"{table}.npz") as archive:
        X, classes = archive["X"].astype(np.float64), len(np.unique(archive["y"]))
    if 0 < SAMPLES < len(X):
        X = X[np.sort(np.random.default_rng(0).permutation(len(X))[:SAMPLES])]
    if table == "SRBCTML":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    settings = {
        "RNE": {"alpha": weight},
        "UDFS": {"n_clusters": classes, "gamma": weight},
        "SOGFS": {"n_clusters": classes, "n_components": classes - 1, "gamma": weight},
        "EUFS": {"n_clusters": classes - 1, "alpha": weight, "beta": 0.1},
    }[method]
    selector = getattr(keepers, method)(50, n_neighbors=5, random_state=0, **settings)
    if STEPS:
        selector.set_params(max_iter=STEPS)
    warnings.simplefilter("ignore")
    started = time.process_time()
    selector.fit(X)
    print(time.process_time() - started, selector.objective_[-1])


def measured(root: Path, case: tuple[str, str, str]) -> tuple[float, float]:
    """Seconds and objective with one checkout; NaN if the limit was passed."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment = {**os.environ, **threads, "PYTHONPATH": str(root / "src")}
    command = [sys.executable, __file__, "--fit", *map(str, case)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return np.nan, np.nan
    seconds, objective = map(float, done.stdout.split())
    return seconds, objective


def main(other: str, wanted: list[str]) -> None:
    """A line for every case: seconds of the other checkout, of this one, factor, objectives."""
    here = Path(__file__).resolve().parents[1]
    for method in ("RNE", "SOGFS", "EUFS", "UDFS"):
        for table in TABLES:
            for weight in WEIGHTS:
                name = f"{method} {table} {weight}"
                if wanted and not any(part in name for part in wanted):
                    continue
                theirs = measured(Path(other), (method, table, weight))
                ours = measured(here, (method, table, weight))
                factor = theirs[0] / ours[0]
                print(
                    f"{name}: {theirs[0]:.3g} s, {ours[0]:.3g} s, factor {factor:.2g}, "
                    f"objectives {theirs[1]:.8g} and {ours[1]:.8g}",
                    flush=True,
                )


if __name__ == "__main__":
    if sys.argv[1] == "--fit":
        value = sys.argv[4]
        fit(sys.argv[2], sys.argv[3], value if value == "scale" else float(value))
    else:
        main(sys.argv[1], sys.argv[2:])
