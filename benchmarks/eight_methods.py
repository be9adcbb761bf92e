"""NDFS, SPEC, InfFS, JELSR, RSR, CUR, ColumnSubset and U2FS: beside packages, and their growth.

Every fit is timed in a process of its own with one thread, in seconds of the processor, which mean
the same on a busy machine; both sides of a comparison alternate. Packages come from the folders of
``make peers``, which only their own process sees. A package that takes longer than the limit is
stopped by a timer and stays in the results with the limit. (Python has no handler for that timer on
purpose: it ends the process also inside compiled code.)
"""

import json
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial

import numpy as np

from measure import benchmark_data
from peers import Peer, anonymous, environment, version_of, why_missing

PEER_LIMIT = 100  # seconds of the processor
GROWTH_LIMIT = 30
REPEATS = 3
LONG = 10.0  # seconds; a longer fit is not repeated

TABLES = '''
import json, signal, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
def blobs(n, d):
    """Five clusters, as in the comparisons of the other methods."""
    from sklearn.datasets import make_blobs
    return make_blobs(n, d, centers=5, cluster_std=20.0, random_state=0)[0]
def factors(n, d):
    """Thirty components in noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 30)) @ rng.standard_normal((30, d))
    X += 2 * rng.standard_normal((n, d))
    return X - X.mean(axis=0)
def groups(n, d):
    """Six groups of samples in one feature of twenty."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    some = d // 20
    X[:, :some] += 2 * rng.standard_normal((6, some))[rng.integers(0, 6, n)]
    return X
def stored(n, d):
    """A table that was saved."""
    return np.load(sys.argv[6])
'''
CHILD = """
def graph(X):
    from skfeature.utility.construct_W import construct_W
    # t scales with the squared distances, or all weights would be zero.
    t = 2 * float(X.var(axis=0).sum())
    options = {"neighbor_mode": "knn", "k": 5, "weight_mode": "heat_kernel", "t": t}
    return construct_W(X, metric="euclidean", **options)
def ours(text):
    import keepers
    return lambda X: eval(f"keepers.{text}", {"keepers": keepers}).fit(X)
def theirs(name):
    if name == "CUR":
        from skmatter.feature_selection import CUR
        return lambda X: CUR(n_to_select=100).fit(X)
    if name == "NDFS":
        from skfeature.function.sparse_learning_based.NDFS import ndfs
        return lambda X: ndfs(X, W=graph(X), n_clusters=5, mode="raw", verbose=True)
    from skfeature.function.similarity_based.SPEC import spec
    return lambda X: spec(X, W=graph(X), style=0 if name == "phi2" else 5, mode="raw")
table, side, limit, repeats, shapes = sys.argv[1:6]
work = theirs(side.removeprefix("package ")) if side.startswith("package ") else ours(side)
work(np.random.default_rng(0).standard_normal((60, 200)))  # what is loaded at first use
def timed(X):
    signal.setitimer(signal.ITIMER_PROF, float(limit))
    began = time.process_time()
    fitted = work(X)
    taken = time.process_time() - began
    signal.setitimer(signal.ITIMER_PROF, 0)
    return taken, fitted
for n, d in json.loads(shapes):
    X = globals()[table](n, d)
    print("begun", flush=True)
    taken = []
    while len(taken) < int(repeats) and sum(taken) < 3:
        seconds, fitted = timed(X)
        taken.append(seconds)
    found = {"seconds": float(np.median(taken)), "repeats": len(taken)}
    if getattr(fitted, "n_iter_", None) is not None:
        found["steps"] = int(fitted.n_iter_)
    if "CUR(" in side or side == "package CUR":
        order = getattr(fitted, "selected_idx_", None)
        kept = fitted.top(fitted.n_features_to_select_).indices if order is None else order
        found["kept"] = [int(i) for i in kept]
    print(json.dumps(found), flush=True)
"""


def run(
    side: str,
    table: str,
    shapes: list[tuple[int, int]],
    *,
    repeats: int = 1,
    limit: float = PEER_LIMIT,
    peer: Peer | None = None,
    path: str = "",
) -> list[dict[str, object]]:
    """Seconds of the processor for a fit of every shape, or what became of the last one."""
    peer = peer or Peer("", "keepers")
    missing = why_missing(peer)
    if missing is not None:
        return [{"failed": missing}]
    arguments = [table, side, str(limit), str(repeats), json.dumps(shapes), path]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TABLES + CHILD, *arguments],
        capture_output=True,
        text=True,
        env=environment(peer),
        check=False,
    )
    found: list[dict[str, object]] = []
    for said in done.stdout.split("begun\n")[1:]:
        steps = said.count("obj at iter ")  # what scikit-feature says
        counted = {"steps": steps} if steps else {}
        last = said.strip().splitlines()[-1:]
        if last and last[0].startswith("{"):
            found.append(counted | json.loads(last[0]))
        elif done.returncode == -signal.SIGPROF:
            found.append({"seconds_at_least": float(limit), **counted})
    if done.returncode not in (0, -signal.SIGPROF):
        found.append({"failed": anonymous(done.stderr)})
    return found


def median_run(runs: list[dict[str, object]]) -> dict[str, object]:
    """The last run, with the median of the seconds of all."""
    last = {key: value for key, value in runs[-1].items() if key != "kept"}
    if "seconds" in last:
        last["seconds"] = statistics.median(float(run["seconds"]) for run in runs)
    return last | {"repeats": len(runs)}


def may_repeat(runs: list[dict[str, object]]) -> bool:
    """Whether another run is worth its time."""
    return not runs or (len(runs) < REPEATS and float(runs[0].get("seconds", np.inf)) < LONG)


def against(
    side: str, package: str, folder: str, table: str, shape: tuple[int, int] = (2000, 1000)
) -> dict[str, object]:
    """Medians of alternating runs, ours and a package's, and how many times faster ours is."""
    peer = Peer("", folder, folder)
    ours: list[dict[str, object]] = []
    theirs: list[dict[str, object]] = []
    while may_repeat(ours) or may_repeat(theirs):
        if may_repeat(ours):
            ours += run(side, table, [shape])
        if may_repeat(theirs):
            theirs += run(f"package {package}", table, [shape], peer=peer)
    outcome: dict[str, object] = {
        "ours": median_run(ours),
        "package": f"{folder} {version_of(peer)}",
        "theirs": median_run(theirs),
        "limit_s": PEER_LIMIT,
        "threads": 1,
        "clock": "processor",
    }
    mine, other = outcome["ours"], outcome["theirs"]
    for key in ("seconds", "seconds_at_least"):
        if key in other:
            outcome[f"faster{key.removeprefix('seconds')}"] = other[key] / mine["seconds"]
    if "steps" in other and "seconds" not in other:
        mine["seconds_a_step"] = mine["seconds"] / mine["steps"]
        other["seconds_a_step"] = other["seconds_at_least"] / other["steps"]
    if "kept" in theirs[-1]:
        outcome["same_order"] = theirs[-1]["kept"] == ours[-1]["kept"]
    return outcome


OURS = {
    "NDFS": "NDFS(20, n_clusters=5, random_state=0)",
    "SPEC": "SPEC(20)",
    "InfFS": "InfFS(20)",
    "JELSR": "JELSR(20, n_clusters=5, random_state=0)",
    "RSR": "RSR(20)",
    "CUR": "CUR(20)",
    "ColumnSubset": "ColumnSubset(20)",
    "U2FS": "U2FS(20, n_clusters=5)",
}
# Sizes from which on the fixed time of a fit no longer counts, to what takes seconds:
# rows at a number of columns, and columns at a number of rows.
SIZES = {
    "NDFS": ((2000, 4000, 8000), 100, (1000, 2000, 4000), 200),
    "SPEC": ((4000, 8000, 16_000), 100, (5000, 10_000, 20_000), 500),
    "InfFS": ((4000, 8000, 16_000), 500, (1000, 2000, 4000, 8000), 200),
    "JELSR": ((1000, 2000, 4000), 100, (1000, 2000, 4000), 200),
    "RSR": ((2000, 4000, 8000), 100, (1000, 2000, 4000), 200),
    "CUR": ((4000, 8000, 16_000), 500, (5000, 10_000, 20_000), 500),
    "ColumnSubset": ((4000, 8000, 16_000), 500, (5000, 10_000, 20_000), 500),
    "U2FS": ((1000, 2000, 4000), 100, (1000, 2000, 4000), 200),
}


def along(method: str, shapes: list[tuple[int, int]], sizes: tuple[int, ...]) -> dict[str, object]:
    """Seconds at every size up to the limit, and the exponent."""
    points = run(OURS[method], "groups", shapes, repeats=REPEATS, limit=GROWTH_LIMIT)
    if "failed" in points[-1]:
        raise RuntimeError(f"{method}: {points[-1]['failed']}")
    within = [point for point in points if "seconds" in point]
    seconds = [float(point["seconds"]) for point in within]
    outcome: dict[str, object] = {"sizes": list(sizes), "seconds": seconds}
    if len(within) >= 3:
        outcome["exponent"] = exponent(sizes, seconds)
    if "steps" in points[0]:
        steps = [int(point["steps"]) for point in within]
        outcome["steps"] = steps
        if len(within) >= 3:
            outcome["exponent_a_step"] = exponent(sizes, np.divide(seconds, steps))
    return outcome


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of the logarithms."""
    return float(np.polyfit(np.log(sizes[: len(seconds)]), np.log(seconds), 1)[0])


def growth(method: str) -> dict[str, object]:
    """Along rows at a number of columns, and along columns at a number of rows."""
    rows, at_columns, columns, at_rows = SIZES[method]
    by_rows = along(method, [(n, at_columns) for n in rows], rows)
    by_columns = along(method, [(at_rows, d) for d in columns], columns)
    return {
        "rows": by_rows | {"columns": at_columns},
        "columns": by_columns | {"rows": at_rows},
        "limit_s": GROWTH_LIMIT,
        "threads": 1,
        "clock": "processor",
    }


def genes() -> dict[str, object]:
    """All eight on 72 x 3571, each within a minute: LEUML, or groups of its shape."""
    X = benchmark_data("LEUML")
    outcome: dict[str, object] = {"data": "groups" if X is None else "LEUML", "aim_s": 60}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/table.npy"
        if X is not None:
            np.save(path, X)
        table = "groups" if X is None else "stored"
        for method, side in OURS.items():
            # As many picks as 72 centred samples can tell apart, or nearly.
            wanted = side.replace("(20", "(70")
            found = run(wanted, table, [(72, 3571)], repeats=REPEATS, limit=60, path=path)[-1]
            outcome[method] = {key: value for key, value in found.items() if key != "kept"}
    return outcome | {"threads": 1, "clock": "processor"}


SIZE = "2000 x 1000"
CHAPPERS = "skfeature-chappers"
CASES = {
    f"eight: SPEC phi2 {SIZE} against packages": partial(
        against, "SPEC(100)", "phi2", CHAPPERS, "blobs"
    ),
    f"eight: SPEC phi3 {SIZE} against packages": partial(
        against, "SPEC(100, criterion='phi3', n_clusters=5)", "phi3", CHAPPERS, "blobs"
    ),
    f"eight: CUR {SIZE}, 100 picks, against packages": partial(
        against, "CUR(100)", "CUR", "skmatter", "factors"
    ),
    f"eight: NDFS {SIZE} against packages": partial(
        against, "NDFS(100, n_clusters=5, random_state=0)", "NDFS", CHAPPERS, "blobs"
    ),
    "eight: 72 x 3571": genes,
    **{f"eight: {method} growth": partial(growth, method) for method in OURS},
}
