"""What the l2,0 problem is worth: how near selections come to the bound, and whether it helps.

python tools/study_row_sparse.py values    share of the bound by method: values.csv
python tools/study_row_sparse.py accuracy  k-means on what is kept, 46 sets: accuracy.csv
python tools/study_row_sparse.py exact     small tables solved with proof: exact.csv
python tools/study_row_sparse.py tables    summary.md

    --data NAME ...   these sets only

The 46 sets, k and the judgement by k-means are those of study_autoselector.py. Everything goes to
studies/results/row-sparse; what is there is not computed again, after a kill neither.
"""

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from keepers_studies.catalogue import data_folder
from scipy.linalg import qr
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import SparsePCA
from sklearn.preprocessing import scale
from study_autoselector import HALVES, NAMES, SEED, DataSet, Store, attempt, fit, load, work_of

from keepers import FSPCA, SPCAFS, VarianceScore, certify, solve_exactly

KEPT = Path(__file__).parents[1] / "studies" / "results" / "row-sparse"
VALUES = ("data", "components", "k", "method", "explained", "share", "bound", "seconds")
ACCURACY = ("data", "half", "method", "k", "acc", "nmi", "explained", "seconds", "note")
EXACT = ("data", "components", "k", "value", "upper_bound", "proved", "nodes", "seconds")
# Tables of `values`, with the number of components.
MEASURED = {"SRBCTML": 3, "Imm40": 10, "LEUML": 10, "digits": 10}
SHARES = (0.01, 0.03, 0.1)
# Penalties of SparsePCA from sparse to dense; the one whose support is nearest to k is taken, of
# those that take no longer than the limit.
ALPHAS = (8.0, 4.0, 2.0, 1.0)
SPARSE_PCA_LIMIT = 60.0


def measured_table(name: str) -> np.ndarray:
    """A table of `values` as it is."""
    if name == "digits":
        return np.asarray(load_digits().data)
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as archive:
        return np.asarray(archive["X"], dtype=np.float64)


def leading_eigenvalues(X: np.ndarray, m: int) -> np.ndarray:
    """Of the scatter, by NumPy."""
    centred = X - X.mean(axis=0)
    gram = centred @ centred.T if len(X) < X.shape[1] else centred.T @ centred
    return np.linalg.eigvalsh(gram)[::-1][:m]


def pivoted_qr(X: np.ndarray, m: int, k: int) -> np.ndarray:
    """The first k pivots of a QR decomposition of the centred columns."""
    return qr(X - X.mean(axis=0), mode="r", pivoting=True)[1][:k]


def sparse_pca(X: np.ndarray, m: int, k: int, fitted: dict[float, Any]) -> np.ndarray:
    """The k largest rows of scikit-learn's SparsePCA, of the fit whose support is nearest to k."""
    centred = X - X.mean(axis=0)
    scaled = centred / centred.std()
    for alpha in ALPHAS:
        if alpha not in fitted:
            model = SparsePCA(m, alpha=alpha, max_iter=100, random_state=SEED)
            tried = attempt(partial(model.fit, scaled), limit=SPARSE_PCA_LIMIT)
            found = tried.result
            fitted[alpha] = None if found is None else np.linalg.norm(found.components_, axis=0)
    norms = [found for found in fitted.values() if found is not None]
    best = min(norms, key=lambda found: abs(np.count_nonzero(found) - k))
    return np.argsort(-best, kind="stable")[:k]


def ways_to_choose(X: np.ndarray, m: int) -> dict[str, Callable[[int], np.ndarray]]:
    """Every method as a function from k to features."""
    largest = float(leading_eigenvalues(X, 1)[0])
    fitted: dict[float, Any] = {}
    ways: dict[str, Callable[[int], np.ndarray]] = {
        "FSPCA": lambda k: FSPCA(k, n_components=m, random_state=SEED).fit(X).top(k).indices,
        "Variance": lambda k: VarianceScore(k).fit(X).top(k).indices,
        "Pivoted QR": lambda k: pivoted_qr(X, m, k),
        "SparsePCA of scikit-learn": lambda k: sparse_pca(X, m, k, fitted),
    }
    for share in SHARES:
        selector = SPCAFS(n_components=m, gamma=share * largest, random_state=SEED)
        ways[f"SPCAFS, gamma = {share:g} lambda_1"] = partial(_first, selector, X)
    return ways


def _first(selector: Any, X: np.ndarray, k: int) -> np.ndarray:
    return selector.fit(X).top(k).indices


def values(arguments: argparse.Namespace) -> None:
    """What every method holds, beside the bound."""
    store = Store(arguments.out / "values.csv", VALUES, ("data", "components", "k", "method"))
    for name, m in MEASURED.items():
        if arguments.data and name not in arguments.data:
            continue
        X = measured_table(name)
        in_all = float(leading_eigenvalues(X, m).sum()) / len(X)
        ways = ways_to_choose(X, m)
        for k in (20, 50, 100):
            if k >= X.shape[1]:
                continue
            for method, choose in ways.items():
                if store.has(name, m, k, method):
                    continue
                tried = attempt(partial(choose, k))
                if tried.result is None:
                    print(f"{name} m={m} k={k} {method}: {tried.note}", flush=True)
                    continue
                found = certify(X, np.sort(tried.result), m, tight=True)
                seconds = tried.seconds
                row = (name, m, k, method, found.value / in_all, found.share, found.bound, seconds)
                store.replace((name, m, k, method), [dict(zip(VALUES, row, strict=True))])
                print(f"{name} m={m} k={k} {method}: {found.share:.3f}", flush=True)


def accuracy(arguments: argparse.Namespace) -> None:
    """K-means on what is kept: does more variance help?"""
    store = Store(arguments.out / "accuracy.csv", ACCURACY, ("data", "method"))
    present = [name for name in arguments.data or NAMES if (data_folder() / f"{name}.npz").exists()]
    methods: dict[str, Callable[[int], Any]] = {
        "Variance": VarianceScore,
        "SPCAFS": lambda k: SPCAFS(k, random_state=SEED),
        "FSPCA": lambda k: FSPCA(k, random_state=SEED),
    }
    for name in sorted(present, key=work_of):
        missing = [method for method in methods if not store.has(name, method)]
        data = load(name) if missing else None
        for method in missing:
            rows = [_judged(data, method, methods[method], k) for k in data.ks]
            store.replace((name, method), rows)
            print(name, method, " ".join(f"{row['acc']:.3f}" for row in rows), flush=True)


def _judged(data: DataSet, method: str, make: Callable[[int], Any], k: int) -> dict[str, object]:
    tried = attempt(lambda: fit(make(k), data.X))
    row = {"data": data.name, "half": HALVES[data.name], "method": method, "k": k}
    row |= {"seconds": tried.seconds, "note": tried.note}
    if tried.result is None:
        return row | {"acc": np.nan, "nmi": np.nan, "explained": np.nan}
    columns = tried.result.top(k).indices
    acc, nmi = data.judge(columns)
    spectrum = certify(data.X, np.sort(columns), "auto", tight=False)
    return row | {"acc": acc, "nmi": nmi, "explained": spectrum.share}


def exact(arguments: argparse.Namespace) -> None:
    """Small tables, solved with proof."""
    store = Store(arguments.out / "exact.csv", EXACT, ("data", "components", "k"))
    tables = {
        "wine": load_wine().data,
        "wine, standardised": scale(load_wine().data),
        "breast cancer": load_breast_cancer().data,
        "breast cancer, standardised": scale(load_breast_cancer().data),
        "digits": load_digits().data,
    }
    for name, X in tables.items():
        for m in (1, 2, 3):
            for k in (5, 10) if name != "digits" else (5,):
                if store.has(name, m, k):
                    continue
                found = solve_exactly(X, k, m, time_limit=60)
                row = (name, m, k, found.value, found.upper_bound, found.proved)
                row += (found.n_nodes, found.seconds)
                store.replace((name, m, k), [dict(zip(EXACT, row, strict=True))])
                print(f"{name} m={m} k={k}: {found.proved} in {found.seconds:.1f} s", flush=True)


def tables(arguments: argparse.Namespace) -> None:
    """summary.md, from what is there."""
    folder = arguments.out
    shares = pd.read_csv(folder / "values.csv")
    judged = pd.read_csv(folder / "accuracy.csv")
    proved = pd.read_csv(folder / "exact.csv")
    text = [
        "# What the l2,0 problem is worth",
        "Made by `python tools/study_row_sparse.py tables`; the protocol stands at the top of that "
        "file.",
        "## Variance held, as a share of the bound for any k features",
        _wide(shares, "share"),
        "## The same as a share of what PCA of all features explains",
        _wide(shares, "explained"),
        "## K-means on what is kept",
        f"Means over k, then over {judged.data.nunique()} sets. The bound is the one from the "
        'spectrum, with as many components as "auto" counts.',
        _by_method(judged),
        "## Solved with proof",
        _markdown(proved.round({"value": 4, "upper_bound": 4, "seconds": 1})),
    ]
    (folder / "summary.md").write_text("\n\n".join(text) + "\n")


def _wide(found: pd.DataFrame, column: str) -> str:
    table = found.pivot_table(index=["data", "components", "k"], columns="method", values=column)
    first = [name for name in ("FSPCA", "Variance") if name in table]
    table = table[[*first, *(name for name in table if name not in first)]]
    return _markdown(table.round(3).reset_index())


def _by_method(judged: pd.DataFrame) -> str:
    means = judged.groupby(["method", "data"])[["acc", "nmi", "explained"]].mean()
    base = means.loc["SPCAFS"]
    rows = []
    for method in means.index.unique("method"):
        of_method = means.loc[method]
        change = of_method.acc - base.acc
        rows.append(
            {
                "method": method,
                "sets": len(of_method),
                "share of the bound": of_method.explained.mean(),
                "acc": of_method.acc.mean(),
                "nmi": of_method.nmi.mean(),
                "acc over SPCAFS": change.mean(),
                "better than SPCAFS on": int((change > 0.005).sum()),
                "worse on": int((change < -0.005).sum()),
            }
        )
    return _markdown(pd.DataFrame(rows).round(3))


def _markdown(table: pd.DataFrame) -> str:
    lines = [list(map(str, table.columns)), ["---"] * table.shape[1]]
    lines += [["" if pd.isna(cell) else str(cell) for cell in row] for row in table.to_numpy()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    """Run one part."""
    parts = {"values": values, "accuracy": accuracy, "exact": exact, "tables": tables}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=parts)
    parser.add_argument("--data", nargs="*")
    parser.add_argument("--out", type=Path, default=KEPT)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    parts[arguments.part](arguments)


if __name__ == "__main__":
    main()
