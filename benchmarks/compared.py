"""LaplacianScore, MCFS and UDFS against the public packages, and their growth with n.

The packages are installed beside the environment (``make bench`` does it) because they pin old
dependencies. Each of their runs is a process of its own with a time limit: some never end.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs

from keepers import MCFS, UDFS, LaplacianScore
from keepers.methods.laplacian import laplacian_scores
from keepers.methods.neighbours import heat_graph
from measure import PEAK, seconds

RIVALS = Path(sys.prefix) / "rivals"
TIME_LIMIT = 240
N_SAMPLES, N_FEATURES, KEPT = 2000, 1000, 100

PREPARE = f"""
import sys, time, json
sys.path.insert(0, {str(RIVALS)!r})
import numpy as np
for name, kind in (("float", float), ("int", int), ("bool", bool)):
    setattr(np, name, kind) if not hasattr(np, name) else None
from sklearn.datasets import make_blobs
X, y = make_blobs({N_SAMPLES}, {N_FEATURES}, centers=5, cluster_std=20.0, random_state=0)
"""
GRAPH = (
    "from skfeature.utility.construct_W import construct_W\n"
    "W = construct_W(X, metric='euclidean', neighbor_mode='knn', k=5,"
    " weight_mode='heat_kernel', t=900.0)\n"
)
THEIRS = {
    "LaplacianScore": {
        "skfeature-chappers": "from skfeature.function.similarity_based import lap_score\n"
        "started = time.perf_counter()\n" + GRAPH + "lap_score.lap_score(X, W=W)",
    },
    "MCFS": {
        "skfeature-chappers": "from skfeature.function.sparse_learning_based import MCFS\n"
        "started = time.perf_counter()\n"
        + GRAPH
        + f"MCFS.mcfs(X, n_selected_features={KEPT}, W=W, n_clusters=5)",
        "ITMO_FS": "from ITMO_FS.filters.sparse import MCFS\n"
        f"started = time.perf_counter()\nMCFS({KEPT}, k=5, p=5).run(X, y)",
    },
    "UDFS": {
        "skfeature-chappers": "from skfeature.function.sparse_learning_based import UDFS\n"
        "started = time.perf_counter()\nUDFS.udfs(X, gamma=0.1, k=5, n_clusters=5)",
        "ITMO_FS": "from ITMO_FS.filters.sparse import UDFS\n"
        f"started = time.perf_counter()\nUDFS({KEPT}, c=5, k=5).run(X, y)",
    },
}
OURS = {
    "LaplacianScore": lambda: LaplacianScore(KEPT),
    "MCFS": lambda: MCFS(KEPT, n_clusters=5),
    "UDFS": lambda: UDFS(KEPT, n_clusters=5, random_state=0),
}


def their_seconds(code: str) -> dict[str, object]:
    """Seconds a package takes (graph included), or what became of it."""
    script = PREPARE + code + "\nprint(json.dumps(time.perf_counter() - started))"
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script],
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"seconds_at_least": TIME_LIMIT}
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1]
        return {"failed": reason.partition(" (/")[0][:160]}  # without the paths of this machine
    return {"seconds": float(json.loads(done.stdout.strip().splitlines()[-1]))}


def against_packages(method: str) -> dict[str, object]:
    """Our median of five fits against the best of three of every package, graphs included."""
    X, _ = make_blobs(N_SAMPLES, N_FEATURES, centers=5, cluster_std=20.0, random_state=0)
    selector = OURS[method]()
    selector.fit(X)
    ours = float(np.median([seconds(lambda: selector.fit(X)) for _ in range(5)]))
    outcome: dict[str, object] = {"ours_s": ours}
    best = []
    for package, code in THEIRS[method].items():
        runs = [their_seconds(code)]
        while "seconds" in runs[0] and len(runs) < 3:
            runs.append(their_seconds(code))
        outcome[package] = min(runs, key=lambda run: run.get("seconds", np.inf))
        best += [run.get("seconds", run.get("seconds_at_least")) for run in runs]
    finished = [taken for taken in best if taken is not None]
    outcome["faster_than_the_fastest"] = min(finished) / ours if finished else None
    return outcome


def scores_alone() -> dict[str, object]:
    """LaplacianScore with the graph handed in on both sides, so that only the scores are timed."""
    X, _ = make_blobs(N_SAMPLES, N_FEATURES, centers=5, cluster_std=20.0, random_state=0)
    graph = heat_graph(X, 5, None, np.random.default_rng(0))
    laplacian_scores(graph, X)
    ours = float(np.median([seconds(lambda: laplacian_scores(graph, X)) for _ in range(5)]))
    code = (
        "from skfeature.function.similarity_based import lap_score\n"
        + GRAPH
        + "started = time.perf_counter()\nlap_score.lap_score(X, W=W)"
    )
    theirs = min(float(their_seconds(code)["seconds"]) for _ in range(3))
    return {"ours_s": ours, "theirs_s": theirs, "faster": theirs / ours}


def growth(method: str) -> dict[str, object]:
    """Seconds and peak memory at n = 5,000, 10,000 and 20,000 (d = 100), and their exponents."""
    script = (
        PEAK + "import time, sys, json, warnings\nwarnings.simplefilter('ignore')\n"
        "from sklearn.datasets import make_blobs\nimport keepers\n"
        "n = int(sys.argv[1])\n"
        "X, _ = make_blobs(n, 100, centers=8, cluster_std=8.0, random_state=0)\n"
        f"make = lambda: keepers.{method}(20, random_state=0)\n"
        "make().fit(X[:500])\n"
        "before = peak_mb()\n"
        "started = time.perf_counter()\nmake().fit(X)\n"
        "print(json.dumps([time.perf_counter() - started, peak_mb() - before]))\n"
    )
    sizes = [5_000, 10_000, 20_000]
    times, memory = np.array([in_child(script, n) for n in sizes]).T
    logs = np.log(sizes)
    return {
        "n": sizes,
        "seconds": times.tolist(),
        "extra_memory_mb": memory.tolist(),
        "time_exponent": float(np.polyfit(logs, np.log(times), 1)[0]),
        "memory_exponent": float(np.polyfit(logs, np.log(memory), 1)[0]),
    }


def in_child(script: str, *arguments: object) -> list[float]:
    """The numbers that a script prints last, as JSON, run in a process of its own."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def large(method: str) -> dict[str, object]:
    """50,000 x 500 has to fit in 4 GB, X included."""
    script = (
        PEAK + "import json, time\nimport numpy as np, keepers\n"
        "X = np.random.default_rng(0).standard_normal((50_000, 500))\n"
        "X[:, :50] += 3 * np.random.default_rng(1).standard_normal((8, 50))"
        "[np.random.default_rng(2).integers(0, 8, 50_000)]\n"
        f"started = time.perf_counter()\nkeepers.{method}(50, random_state=0).fit(X)\n"
        "print(json.dumps([time.perf_counter() - started, peak_mb()]))\n"
    )
    taken, peak = in_child(script)
    return {"seconds": taken, "peak_mb": peak}


SIZE = f"{N_SAMPLES} x {N_FEATURES}"
CASES = {
    f"LaplacianScore {SIZE} against packages": lambda: against_packages("LaplacianScore"),
    f"LaplacianScore {SIZE}, graph given": scores_alone,
    f"MCFS {SIZE} against packages": lambda: against_packages("MCFS"),
    f"UDFS {SIZE} against packages": lambda: against_packages("UDFS"),
    "LaplacianScore growth with n": lambda: growth("LaplacianScore"),
    "MCFS growth with n": lambda: growth("MCFS"),
    "LaplacianScore 50,000 x 500": lambda: large("LaplacianScore"),
    "MCFS 50,000 x 500": lambda: large("MCFS"),
}
