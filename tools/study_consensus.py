"""Would a consensus of half-samples be a better, or a stabler, ranking than one fit?

python tools/study_consensus.py run       every set: consensus.csv, which resumes
python tools/study_consensus.py table     means over the choosing and the reporting half

"one fit" is AutoSelector. The others rank the columns that AutoSelector keeps on ten half-samples:
"share" by how many halves keep a column; "facility" by facility location over r^2, every column
weighted by its share; "facility, fit" counts the fit to all samples as five halves more.

The accuracy is that of k-means on 20, 50 and 100 columns, at most 1,000 rows. The stability
compares what a way keeps on one half of the samples with what it keeps on the other: the share of
columns that are the same, and the mean size of r with the nearest column of the other half.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp
from autoselector_tables import markdown
from study_autoselector import HALVES, KEPT, NAMES, DataSet, load

from keepers import AutoSelector

RESULTS = KEPT / "consensus.csv"
MOST_ROWS, N_HALVES = 1000, 10
WAYS = ("one fit", "share", "facility", "facility, fit")
FIT_WEIGHT = 5


def unit_columns(X: np.ndarray) -> np.ndarray:
    """Columns centred and of length 1; constant ones are zero."""
    centred = X - X.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    return centred / np.where(lengths > 0, lengths, 1.0)


def rank(X: np.ndarray, most: int) -> np.ndarray:
    """The best columns of one fit, best first."""
    fitted = AutoSelector(min(most, X.shape[1]), n_halves=0).fit(X)
    return np.asarray(fitted.top(min(most, X.shape[1])).indices)


def locate(weights: np.ndarray, columns: np.ndarray, k: int) -> np.ndarray:
    """Greedy facility location: every weighted column is near a kept one."""
    candidates = np.flatnonzero(weights)
    likeness = (columns[:, candidates].T @ columns[:, candidates]) ** 2
    weights, covered, kept = weights[candidates], np.zeros(len(candidates)), []
    for _ in range(min(k, len(candidates))):
        gains = np.maximum(likeness - covered[:, None], 0.0).T @ weights
        gains[kept] = -1.0
        kept.append(int(np.argmax(gains)))
        covered = np.maximum(covered, likeness[:, kept[-1]])
    return candidates[kept]


def select(X: np.ndarray, ks: tuple[int, ...], seed: int) -> dict[tuple[str, int], np.ndarray]:
    """What every way keeps, for every number of columns."""
    rng = np.random.default_rng(seed)
    whole, halves = rank(X, max(ks)), []
    while len(halves) < N_HALVES:
        rows = rng.permutation(len(X))
        half = len(X) // 2
        halves += [rank(X[np.sort(part)], max(ks)) for part in (rows[:half], rows[half:])]
    columns, kept = unit_columns(X), {}
    for k in ks:
        shares = np.zeros(X.shape[1])
        for order in halves:
            shares[order[:k]] += 1
        with_fit = shares.copy()
        with_fit[whole[:k]] += FIT_WEIGHT
        place = np.full(X.shape[1], len(whole))
        place[whole] = np.arange(len(whole))
        kept["one fit", k] = whole[:k]
        kept["share", k] = np.lexsort((place, -shares))[:k]
        kept["facility", k] = locate(shares, columns, k)
        kept["facility, fit", k] = locate(with_fit, columns, k)
    return kept


def run(name: str) -> list[dict[str, object]]:
    """Accuracy and stability of every way on one set."""
    data = load(name)
    rows = np.random.default_rng(0).permutation(data.X.shape[0])[:MOST_ROWS]
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    data = DataSet(name, X[rows], data.classes[rows])
    parts = np.arange(len(rows)) % 2 == 0
    whole = select(data.X, data.ks, seed=0)
    first, second = select(data.X[parts], data.ks, seed=1), select(data.X[~parts], data.ks, seed=2)
    columns = unit_columns(data.X)
    found = []
    for (way, k), kept in whole.items():
        acc, nmi = data.judge(kept)
        a, b = first[way, k], second[way, k]
        nearest = np.abs(columns[:, a].T @ columns[:, b]).max(axis=1).mean()
        same = np.isin(a, b).mean()
        scores = {"acc": acc, "nmi": nmi, "same": same, "r": nearest}
        found.append({"data": name, "half": HALVES[name], "way": way, "k": k, **scores})
    return found


def main(given: list[str] | None = None) -> None:
    """Run what is not there yet, or print the means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("run", "table"))
    arguments = parser.parse_args(given)
    warnings.simplefilter("ignore")
    table = pd.read_csv(RESULTS) if RESULTS.exists() else pd.DataFrame({"data": []})
    if arguments.command == "run":
        for name in sorted(set(NAMES) - set(table["data"]), key=NAMES.index):
            table = pd.concat([table, pd.DataFrame(run(name))])
            table.to_csv(RESULTS, index=False, float_format="%.6g")
    order = {way: at for at, way in enumerate(WAYS)}
    means = table.groupby(["half", "way"])[["acc", "nmi", "same", "r"]].mean().reset_index()
    means = means.sort_values(["half", "way"], key=lambda column: column.map(order).fillna(0))
    print(markdown(means.round(3)))


if __name__ == "__main__":
    main()
