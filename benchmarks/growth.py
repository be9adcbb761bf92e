"""How time grows with rows, columns, components and stored entries: SPCAFS, and PCA beside it.

One process per size, one thread, both sides alternating on the same table. A table that is small
takes the time that every fit takes, whatever its size; such points would flatten the line, so that
only those past this fixed time count. Exponents have 95 % intervals, from the standard error of the
slope. A fit past the time limit ends its side's line, which then says at which size.
"""

import json
import os
import subprocess
import sys

import numpy as np
from scipy import stats

THREADS = 1
TIME_LIMIT = 20  # seconds for one fit
# A point counts from so many times the fixed time on: two thirds of it are then growth.
PAST = 3.0

TABLES = """
import json, signal, sys, time, warnings
import numpy as np, scipy.sparse as sp
from sklearn.decomposition import PCA, TruncatedSVD
from keepers import SPCAFS
warnings.simplefilter("ignore")
n, d, m = (int(a) for a in sys.argv[1:4])
def groups(n, d):
    '''Six groups of samples in one feature of twenty.'''
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    some = d // 20
    X[:, :some] += 2 * rng.standard_normal((6, some), dtype=np.float32)[rng.integers(0, 6, n)]
    return X
def factors(n, d, rank=300, each=40):
    '''Factors of decreasing strength, each in features of its own choice: no m is special.'''
    rng = np.random.default_rng(0)
    loadings = np.zeros((rank, d), dtype=np.float32)
    for row, strength in zip(loadings, np.geomspace(8, 1, rank)):
        row[rng.choice(d, each, replace=False)] = strength
    X = rng.standard_normal((n, rank), dtype=np.float32) @ loadings
    X += rng.standard_normal((n, d), dtype=np.float32)
    return X
def topics(n, d, per_row=50):
    '''Counts in CSR: three in ten of a row's words are from its topic, one of eleven.'''
    rng = np.random.default_rng(0)
    own = np.array([rng.permutation(d)[: d // 20] for _ in range(11)])
    topical = own[rng.integers(0, 11, n)[:, None], rng.integers(0, d // 20, (n, per_row))]
    anything = rng.integers(0, d, (n, per_row))
    words = np.where(rng.random((n, per_row)) < 0.3, topical, anything).astype(np.int32)
    starts = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    X = sp.csr_array((np.ones(n * per_row), words.ravel(), starts), shape=(n, d))
    X.sum_duplicates()
    return X
"""
SIDES = """
spcafs = lambda: SPCAFS(20, n_components=m, random_state=0)
SIDES = {
    "memory": lambda X: spcafs().fit(X),
    "blocks": lambda X: spcafs().fit_blocks(X),
    "PCA": lambda X: PCA(m, random_state=0).fit(X),
    "TruncatedSVD": lambda X: TruncatedSVD(m, random_state=0).fit(X),
}
X = globals()[sys.argv[4]](n, d)
taken = {side: [] for side in sys.argv[6:]}
def out_of_time(*_):
    raise TimeoutError
signal.signal(signal.SIGALRM, out_of_time)
for _ in range(8):  # the first one warms up, unless it is long: then it is the only one
    for side, times in list(taken.items()):
        signal.alarm(int(sys.argv[5]))
        began = time.perf_counter()
        try:
            SIDES[side](X)
        except TimeoutError:
            del taken[side]
        times.append(time.perf_counter() - began)
        signal.alarm(0)
    if sum(map(sum, taken.values())) > 5:
        break
medians = {side: float(np.median(times[1:] or times)) for side, times in taken.items()}
print(json.dumps({"seconds": medians, "stored": int(X.nnz if sp.issparse(X) else X.size)}))
"""


def at_size(shape: tuple[int, int, int], table: str, sides: list[str]) -> dict[str, object]:
    """Median seconds of every side on one table of (n, d, m), less those past the limit."""
    names = ("OMP", "OPENBLAS", "MKL")
    environment = dict(os.environ) | {f"{name}_NUM_THREADS": str(THREADS) for name in names}
    arguments = [*map(str, shape), table, str(TIME_LIMIT), *sides]
    command = [sys.executable, "-W", "ignore", "-c", TABLES + SIDES, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def line(sizes: list[int], seconds: list[float], fixed: float) -> dict[str, object]:
    """The exponent over the points past the fixed time, and half its 95 % interval."""
    past = [taken >= PAST * fixed for taken in seconds]
    first = len(past) - past[::-1].index(False) if False in past else 0
    outcome: dict[str, object] = {"seconds": seconds, "fixed_s": fixed}
    if len(seconds) < len(sizes):
        outcome["more_than_limit_at"] = sizes[len(seconds)]
    used = slice(first, len(seconds))
    x, y = np.log(sizes[used]), np.log(seconds[used])
    outcome["points"] = len(x)
    if len(x) >= 3:
        fit = stats.linregress(x, y)
        half = float(stats.t.ppf(0.975, len(x) - 2) * fit.stderr)
        outcome |= {"from": sizes[first], "to": sizes[len(seconds) - 1]}
        outcome |= {"exponent": float(fit.slope), "half_interval": half}
    return outcome


def growth(
    shapes: list[tuple[int, int, int]], fixed: tuple[int, int, int], table: str, sides: list[str]
) -> dict[str, object]:
    """Seconds along one axis (the one that changes), the fixed time, and the exponents."""
    small = at_size(fixed, table, sides)["seconds"]
    axis = int(np.argmax(np.ptp(np.array(shapes), axis=0)))
    sizes: list[int] = []
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    within = sides
    for shape in shapes:
        point = at_size(shape, table, within)
        sizes.append(point["stored"] if table == "topics" else shape[axis])
        # What is past the limit once would be again at every larger size.
        within = [side for side in within if side in point["seconds"]]
        for side in within:
            seconds[side].append(point["seconds"][side])
    lines = {side: line(sizes, seconds[side], small[side]) for side in sides}
    return {"sizes": sizes, "threads": THREADS, "limit_s": TIME_LIMIT, **lines}


def sizes_from(first: int, factor: float = 10**2.5, n_points: int = 8) -> list[int]:
    """Sizes up to ``factor`` times the first, in equal ratios."""
    return [round(size) for size in np.geomspace(first, factor * first, n_points)]


def in_n() -> dict[str, object]:
    """10^4 to 3 * 10^6 rows of 200 columns, in memory and in blocks, m = 5."""
    shapes = [(n, 200, 5) for n in sizes_from(10_000)]
    return growth(shapes, (1000, 200, 5), "groups", ["memory", "blocks", "PCA"])


def in_d() -> dict[str, object]:
    """1,500 to 470,000 columns at 200 rows, m = 5."""
    shapes = [(200, d, 5) for d in sizes_from(1500)]
    return growth(shapes, (200, 300, 5), "groups", ["memory", "PCA"])


def in_m() -> dict[str, object]:
    """1 to 200 components of 1,000 x 4,000."""
    shapes = [(1000, 4000, m) for m in (1, 2, 5, 10, 20, 50, 100, 200)]
    return growth(shapes, (1000, 100, 1), "factors", ["memory", "PCA"])


def in_stored() -> dict[str, object]:
    """5 * 10^4 to 1.6 * 10^7 stored entries, 50 in a row of 5,000 columns, m = 10."""
    shapes = [(n, 5000, 10) for n in sizes_from(1000)]
    return growth(shapes, (100, 5000, 10), "topics", ["memory", "TruncatedSVD"])


CASES = {
    "growth: rows": in_n,
    "growth: columns": in_d,
    "growth: components": in_m,
    "growth: stored entries": in_stored,
}
