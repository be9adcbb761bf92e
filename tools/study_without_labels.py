"""How good are choices made without labels? Runs the study of docs/without-labels.md.

python tools/study_without_labels.py run DATA [DATA ...]   a CSV each; finished ones are kept
python tools/study_without_labels.py tables                regret.csv, floors.csv

Everything is judged by the protocol of the paper: k-means 20 times, mean accuracy. On the six data
sets of the paper, its grid and the compared methods are taken from the study of the paper, kept in
studies/results/paper; elsewhere they are computed here.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from keepers_studies.worker import judge_columns
from sklearn.datasets import load_digits

from keepers import MCFS, SPCAFS, LaplacianScore, VarianceScore, select_settings
from keepers.datasets import open_table
from keepers.exceptions import KeepersWarning
from keepers.tables.atomic import whole_file

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "studies" / "results" / "without-labels"
PAPER = ROOT / "studies" / "results" / "paper" / "results.parquet"

OF_THE_PAPER = ("Imm40", "SRBCTML", "LEUML", "PalmData25", "PIE", "AR")
HELD_OUT = ("TOX_171", "lung_discrete")
SUITE = ("Yale", "colon", "warpPIE10P", "GLIOMA", "COIL20", "Isolet", *HELD_OUT)
WITH_REGRET = (*OF_THE_PAPER, "digits", *HELD_OUT)
KS = tuple(range(10, 101, 10))
FLOOR_KS = (50, 100)
GAMMAS = (1e-6, 1e-4, 1e-2, 1e0, 1e2, 1e4, 1e6)
REPEATS, DRAWS, SEED = 20, 20, 0


def main(arguments: list[str]) -> None:
    """Run data sets, or assemble the tables."""
    KEPT.mkdir(parents=True, exist_ok=True)
    if arguments[:1] == ["tables"]:
        assemble()
        return
    for name in arguments[1:]:
        target = KEPT / f"{name}.csv"
        if not target.exists():
            run(name, target)


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Values, scaled as in the study of the paper, and classes."""
    if name == "digits":
        return load_digits(return_X_y=True)
    table = open_table(name)
    X = np.asarray(table.values, dtype=np.float64)
    if name == "SRBCTML":
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.asarray(table.labels)


def run(name: str, target: Path) -> None:
    """All the rows of one data set, written at once."""
    X, y = load(name)
    classes = np.unique(y, return_inverse=True)[1]
    ks = [k for k in KS if k < X.shape[1]]
    rows: list[dict[str, object]] = []

    def judge(
        method: str, columns: np.ndarray, k: int, repeats: int = REPEATS, **more: object
    ) -> None:
        judged = judge_columns(X, classes, columns, n_repeats=repeats, seed=SEED)
        rows.append(
            {"data": name, "method": method, "k": k, "acc": float(np.mean(judged.acc)), **more}
        )

    began = time.perf_counter()
    for k in ks:
        chosen = select_settings(X, k, random_state=SEED)
        took = chosen.seconds
        settings = json.dumps({key: chosen.params[key] for key in sorted(chosen.params)})
        judge("label-free", chosen.best.columns, k, settings=settings, seconds=took)
    plain = SPCAFS(random_state=SEED).fit(X)
    for k in ks:
        judge("default", plain.top(k).indices, k)
    if name in WITH_REGRET and name not in OF_THE_PAPER:
        for gamma in GAMMAS:
            width = len(np.unique(classes)) - 1
            fitted = SPCAFS(n_components=width, gamma=gamma, random_state=SEED).fit(X)
            for k in ks:
                judge(f"gamma {gamma:g}", fitted.top(k).indices, k)
    if name in SUITE:
        floors(X, classes, judge)
    print(name, f"judged in {time.perf_counter() - began:.1f} s", flush=True)
    with whole_file(target) as temporary:
        pd.DataFrame(rows).to_csv(temporary, index=False, float_format="%.6g")


def floors(X: np.ndarray, classes: np.ndarray, judge: object) -> None:
    """Random selection, variance, LapScore and MCFS."""
    usable = np.flatnonzero(X.var(axis=0) > 0)
    n_clusters = len(np.unique(classes))
    for k in (k for k in FLOOR_KS if k < X.shape[1]):
        for draw in range(DRAWS):
            columns = np.random.default_rng(draw).permutation(usable)[:k]
            judge("Random", columns, k, REPEATS // 4)
        for label, selector in {
            "Variance": VarianceScore(k),
            "LapScore": LaplacianScore(k, random_state=SEED),
            "MCFS": MCFS(k, n_clusters=n_clusters, random_state=SEED),
        }.items():
            judge(label, selector.fit(X).top(k).indices, k)


def of_the_paper() -> pd.DataFrame:
    """Rows of the study of the paper in the form of ours."""
    found = pd.read_parquet(PAPER)
    found = found[(found["section"] == "comparison") & (found["status"] == "ok")]
    gamma = found["params"].map(lambda text: json.loads(text).get("gamma"))
    grid = (found["method"] == "SPCAFS") & (found["role"] == "grid")
    compared = found["method"].isin(["Random", "Variance", "LapScore", "MCFS"])
    kept = found[grid | compared].copy()
    kept["method"] = np.where(
        grid[kept.index], [f"gamma {float(g or 0):g}" for g in gamma[kept.index]], kept["method"]
    )
    kept = kept.rename(columns={"acc_mean": "acc"})
    return kept.groupby(["data", "method", "k"], as_index=False)["acc"].mean()


def assemble() -> None:
    """The tables, from what is there."""
    files = [path for path in KEPT.glob("*.csv") if path.stem in (*OF_THE_PAPER, *SUITE, "digits")]
    rows = pd.concat([of_the_paper(), *(pd.read_csv(path) for path in files)])
    rows = rows[rows["data"].isin([path.stem for path in files])]
    mean = rows.groupby(["data", "method", "k"])["acc"].mean().unstack("method")
    regret = regrets(mean)
    regret.to_csv(KEPT / "regret.csv", float_format="%.4f")
    print(regret.round(3).to_string())
    floor = against_floors(mean)
    floor.to_csv(KEPT / "floors.csv", float_format="%.4f")
    print(floor.round(3).to_string())


def regrets(mean: pd.DataFrame) -> pd.DataFrame:
    """Accuracy over that of the best point of the paper's grid, mean over k, a row a data set."""
    grid = [column for column in mean.columns if column.startswith("gamma ")]
    kept = mean.loc[[name for name in WITH_REGRET if name in mean.index.get_level_values(0)]]
    ratios = kept[["label-free", "default", *grid]].div(kept[grid].max(axis=1), axis=0)
    by_data = ratios.groupby("data", sort=False).mean()
    tuned_on = [name for name in by_data.index if name not in HELD_OUT]
    by_data.loc["mean (without the held out)"] = by_data.loc[tuned_on].mean()
    return by_data


def against_floors(mean: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy at k = 50 and 100, a row a data set."""
    names = [name for name in (*OF_THE_PAPER, *SUITE) if name in mean.index.get_level_values(0)]
    methods = ["label-free", "Random", "Variance", "LapScore", "MCFS", "default"]
    table = mean.loc[names][methods].reset_index()
    table = table[table["k"].isin(FLOOR_KS)].groupby("data", sort=False)[methods].mean()
    table.insert(2, "over random", table["label-free"] - table["Random"])
    return table


if __name__ == "__main__":
    warnings.simplefilter("ignore", KeepersWarning)
    main(sys.argv[1:])
