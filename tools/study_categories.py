"""How are categories turned into numbers, so that selectors keep the right ones and no others?

python tools/study_categories.py planted   recall of planted features, false findings: planted.csv
python tools/study_categories.py noise     structure found where there is none: noise.csv
python tools/study_categories.py real      numbers cut into categories, k-means on them: real.csv
python tools/study_categories.py values    what many values cost: values.csv
python tools/study_categories.py tables    summary.md

    --ways WAY ...   these ways only, by name
    --redo           compute again what is there

Every way turns a table of numbers and categories into columns, each owned by a feature; a feature
has the rank of its best column, or of the mean score of its columns. Columns are standardised.

Planted: three to five clusters. A fifth to a half of the numeric columns have their own mean in
every cluster; of the categories, of 3, 5, 10 or 20 values that are not equally frequent, every
second one has its own frequencies in every cluster, mixed with common ones. "few" tables have 5
numeric columns and 12 categories, "many" 20 to 60 and 6 to 12. Recall is the share of planted
features among as many first ones. Noise: the same without clusters, or categories alone.

Real: at most 400 rows and 120 columns of a set. Of the columns that differ most between the classes
and of those that differ least (a sixth each) the values are cut at quantiles into 4 or 8 classes
with names in random order. A sixth of the features are kept and judged by k-means on their values
before they were cut (accuracy, mean of 10 starts); also the share of the best and of the worst
columns that were cut among the kept.

Constants were chosen on the choosing tables; the others were looked at with what is in the library.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import scipy.sparse as sp
from autoselector_tables import markdown
from keepers_studies.worker import judge_columns
from study_autoselector import Store, load

from keepers import SPCAFS, AutoSelector
from keepers.prepare import categories
from keepers.tables.atomic import whole_file

KEPT = Path(__file__).parents[1] / "studies" / "results" / "categories"
CHOOSING = ("Libras", "SRBCTML", "Semeion")
REPORTING = ("GasDrift_batch1", "Isolet", "Mfeat649", "Waveform40", "christensen")
REPORTING += ("pbmc68k_reduced", "tissue_gene_expr")
# Rows, whether there are many numeric columns, weight of the clusters in a category, draws.
CASES = [
    (200, "many", 0.5, 8),
    (200, "many", 0.8, 8),
    (200, "few", 0.5, 8),
    (200, "few", 0.8, 8),
    (1000, "many", 0.3, 2),
    (1000, "few", 0.3, 2),
]
NOISE_CASES = [(200, "many"), (200, "alone"), (60, "alone")]
DRAWS, MORE_DRAWS = 20, 100  # more for the library and for the numbers that follow nothing
MOST_ROWS, MOST_COLUMNS, STARTS = 400, 120, 10
PLANTED = ("half", "samples", "numbers", "weight", "draw", "way", "selector")
PLANTED += ("recall", "recall_categories", "false_categories", "found_categories")
NOISE = ("samples", "numbers", "draw", "way", "structure_found")
VALUES = ("samples", "levels", "draw", "dependent", "independent")
REAL = ("table", "half", "levels", "way", "selector", "k", "acc", "kept_best", "kept_worst")


@dataclass(frozen=True)
class Mixed:
    """Numeric columns, categories as codes, and which features were planted, numbers first."""

    numbers: np.ndarray
    codes: list[np.ndarray]
    planted: np.ndarray

    @property
    def n_features(self) -> int:
        """Columns as people count them."""
        return self.numbers.shape[1] + len(self.codes)

    @property
    def is_category(self) -> np.ndarray:
        """Which features are categories."""
        return np.arange(self.n_features) >= self.numbers.shape[1]


@dataclass(frozen=True)
class Columns:
    """What a selector sees."""

    X: np.ndarray
    owners: np.ndarray
    """The feature of every column."""


Quantify = Callable[[np.ndarray, list[np.ndarray]], list[np.ndarray]]


def on_other_half(numbers: np.ndarray, codes: list[np.ndarray]) -> list[np.ndarray]:
    """As the library does."""
    rows = np.arange(len(numbers))
    chosen = [hot_columns(code) for code in codes]
    found = categories.quantify(numbers, chosen, rows)
    return [each.of(hot, rows, rows) for each, hot in zip(found, chosen, strict=True)]


def hot_columns(code: np.ndarray, n_levels: int | None = None) -> np.ndarray:
    """A column of 1 and 0 for each value."""
    return (code[:, None] == np.arange(n_levels or code.max() + 1)).astype(float)


def with_constants(numbers: np.ndarray, codes: list[np.ndarray], **constants: float) -> list:
    """As the library does, with other constants."""
    with mock.patch.multiple(categories, **constants):
        return on_other_half(numbers, codes)


def on_same_rows(numbers: np.ndarray, codes: list[np.ndarray]) -> list[np.ndarray]:
    """The numbers of all rows, found on all of them."""
    rows = np.arange(len(numbers))
    chosen = [hot_columns(code) for code in codes]
    found = categories.quantify(numbers, chosen, rows)
    return [each.of(hot, rows) for each, hot in zip(found, chosen, strict=True)]


def by_half(numbers: np.ndarray, codes: list[np.ndarray]) -> list[np.ndarray]:
    """A direction of its own for every half, found on the other; as the library did at first."""
    rows = np.arange(len(numbers))
    first = categories.in_first_half(rows)
    columns = [np.zeros(len(numbers)) for _ in codes]
    for of_half in (first, ~first):
        there = np.flatnonzero(~of_half)
        chosen = [hot_columns(code[there], code.max() + 1) for code in codes]
        found = categories.quantify(numbers[there], chosen, there)
        for column, each, code in zip(columns, found, codes, strict=True):
            same = np.sum(each.both[code] * column) >= 0  # as in the half that came before
            column[of_half] = (each.both if same else -each.both)[code[of_half]]
    return columns


def beside_numbers_only(numbers: np.ndarray, codes: list[np.ndarray]) -> list[np.ndarray]:
    """Other categories have no part in the components."""
    return [on_other_half(numbers, [code])[0] for code in codes]


def frequencies(numbers: np.ndarray, codes: list[np.ndarray]) -> list[np.ndarray]:
    """How often the value occurs."""
    return [np.bincount(code)[code].astype(float) for code in codes]


def alphabetical(numbers: np.ndarray, codes: list[np.ndarray]) -> list[np.ndarray]:
    """The place of the value among the names."""
    return [code.astype(float) for code in codes]


def one_column(table: Mixed, quantify: Quantify) -> Columns:
    """A number for every value."""
    columns = quantify(table.numbers, table.codes)
    X = np.column_stack([table.numbers, *columns])
    return Columns(X, np.arange(table.n_features))


def several_columns(table: Mixed, encode: Callable[[np.ndarray], np.ndarray]) -> Columns:
    """A block of columns for every category."""
    blocks = [encode(code) for code in table.codes]
    d = table.numbers.shape[1]
    widths = [1] * d + [block.shape[1] for block in blocks]
    owners = np.repeat(np.arange(table.n_features), widths)
    return Columns(np.hstack([table.numbers, *blocks]), owners)


def one_hot(codes: np.ndarray) -> np.ndarray:
    """A column for every value that occurs."""
    return (codes[:, None] == np.unique(codes)).astype(float)


def contrasts(codes: np.ndarray) -> np.ndarray:
    """One column fewer, of the same variance and uncorrelated; frequent values come first."""
    hot = one_hot(codes)
    hot = hot[:, np.argsort(-hot.sum(axis=0), kind="stable")][:, :-1]
    Q, _ = np.linalg.qr(hot - hot.mean(axis=0))
    return np.asarray(Q)


LIBRARY = "numbers, other half"
WAYS: dict[str, Callable[[Mixed], Columns]] = {
    LIBRARY: partial(one_column, quantify=on_other_half),
    "a direction each half": partial(one_column, quantify=by_half),
    "numbers, same rows": partial(one_column, quantify=on_same_rows),
    "one-hot, best": partial(several_columns, encode=one_hot),
    "contrasts, best": partial(several_columns, encode=contrasts),
    "frequency": partial(one_column, quantify=frequencies),
    "alphabetical": partial(one_column, quantify=alphabetical),
}
CANDIDATES: dict[str, Callable[[Mixed], Columns]] = {
    "beside numbers only": partial(one_column, quantify=beside_numbers_only),
}
CANDIDATES |= {
    f"{rank} components": partial(
        one_column, quantify=partial(with_constants, MOST_COMPONENTS=rank)
    )
    for rank in (1, 2, 3, 5, 10)
    if rank != categories.MOST_COMPONENTS
}


def draw_category(
    rng: np.random.Generator, cluster: np.ndarray, levels: int, weight: float
) -> np.ndarray:
    """Codes of which a share follows the clusters."""
    n_clusters = cluster.max() + 1
    share = np.tile(rng.dirichlet(np.full(levels, 3.0)), (n_clusters, 1))
    if weight:
        share = (1 - weight) * share + weight * rng.dirichlet(np.full(levels, 0.5), n_clusters)
    drawn = (rng.random(len(cluster))[:, None] > share.cumsum(axis=1)[cluster]).sum(axis=1)
    code = np.unique(drawn, return_inverse=True)[1]
    return np.asarray(rng.permutation(code.max() + 1)[code])


def plant(samples: int, numbers: str, weight: float, seed: int) -> Mixed:
    """A table with clusters; none if ``weight`` is 0."""
    rng = np.random.default_rng(seed)
    n_clusters = int(rng.integers(3, 6))
    cluster = rng.integers(n_clusters, size=samples)
    d = {"few": 5, "alone": 0}.get(numbers, int(rng.integers(20, 61)))
    n_categories = int(rng.integers(6, 13)) if numbers == "many" else 12
    n_planted = round(d * rng.uniform(0.2, 0.5)) if weight else 0
    X = rng.standard_normal((samples, d))
    X[:, :n_planted] += rng.standard_normal((n_clusters, n_planted))[cluster]
    codes = [
        draw_category(rng, cluster, (3, 5, 10, 20)[at // 2 % 4], weight if at % 2 == 0 else 0.0)
        for at in range(n_categories)
    ]
    planted = np.concatenate([np.arange(d) < n_planted, np.arange(n_categories) % 2 == 0])
    return Mixed(X, codes, planted if weight else np.zeros_like(planted))


def rank(selector: str, columns: Columns, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Features from best to worst, and which carry structure (all False for SPCAFS)."""
    X = columns.X - columns.X.mean(axis=0)
    scales = X.std(axis=0)
    X = X / np.where(scales > 1e-9, scales, 1.0)
    n_features = int(columns.owners.max()) + 1
    carries = np.zeros(n_features, dtype=bool)
    if selector == "SPCAFS":
        fitted = SPCAFS(min(k, X.shape[1]), random_state=0).fit(X)
    else:
        fitted = AutoSelector(k).fit(X)
        np.logical_or.at(carries, columns.owners, fitted.carries_structure_)
    owners = columns.owners[np.argsort(fitted.ranking_)]
    first = np.unique(owners, return_index=True)[1]
    return owners[np.sort(first)], carries


def planted(arguments: argparse.Namespace) -> None:
    """Recall, and independent categories that are said to carry structure."""
    keys = PLANTED[:6]
    store = Store(arguments.out / "planted.csv", PLANTED, keys)
    cases = [
        (half, n, numbers, weight, draw)
        for half in ("choosing", "reporting")
        for n, numbers, weight, draws in CASES
        for draw in range(draws if half == "reporting" else (draws + 1) // 2)
    ]
    for half, n, numbers, weight, draw in cases:
        table = plant(n, numbers, weight, 1000 * (half == "reporting") + draw)
        for way, encode in ways_of(half, arguments).items():
            key = (half, n, numbers, weight, draw, way)
            if store.has(*key) and not arguments.redo:
                continue
            rows = [
                dict(zip(keys, key, strict=True)) | {"selector": selector, **found}
                for selector, found in score_planted(table, encode(table))
            ]
            store.replace(key, rows)
        print(half, n, numbers, weight, draw, flush=True)


def score_planted(table: Mixed, columns: Columns) -> Iterator[tuple[str, dict[str, float]]]:
    """How good the first features are."""
    k = int(table.planted.sum())
    of_categories = table.planted & table.is_category
    independent = ~table.planted & table.is_category
    for selector in ("AutoSelector", "SPCAFS"):
        order, carries = rank(selector, columns, k)
        kept = np.isin(np.arange(table.n_features), order[:k])
        found = {"recall": float(kept[table.planted].mean())}
        found["recall_categories"] = float(kept[of_categories].mean())
        if selector == "AutoSelector":
            found["false_categories"] = float(carries[independent].mean())
            found["found_categories"] = float(carries[of_categories].mean())
        yield selector, found


def ways_of(half: str, arguments: argparse.Namespace) -> dict[str, Callable[[Mixed], Columns]]:
    """Candidates are tried on choosing tables only."""
    ways = WAYS | (CANDIDATES if half == "choosing" else {})
    return {k: v for k, v in ways.items() if arguments.ways is None or k in arguments.ways}


def noise(arguments: argparse.Namespace) -> None:
    """How often AutoSelector finds structure in tables without any."""
    keys = NOISE[:4]
    store = Store(arguments.out / "noise.csv", NOISE, keys)
    for n, numbers in NOISE_CASES:
        for draw in range(MORE_DRAWS):
            table = plant(n, numbers, 0.0, 5000 + draw)
            for way, encode in ways_of("reporting", arguments).items():
                key = (n, numbers, draw, way)
                enough = draw >= DRAWS and way not in (LIBRARY, "alphabetical")
                if enough or (store.has(*key) and not arguments.redo):
                    continue
                _, carries = rank("AutoSelector", encode(table), 5)
                store.replace(
                    key, [dict(zip(keys, key, strict=True)) | {"structure_found": carries.any()}]
                )
        print(n, numbers, flush=True)


def values(arguments: argparse.Namespace) -> None:
    """How much of a category's column the clusters explain, by the number of its values."""
    store = Store(arguments.out / "values.csv", VALUES, VALUES[:2])
    for n, levels in [(n, levels) for n in (200, 1000) for levels in (5, 10, 20, 30, 50, 100)]:
        rows = []
        for draw in range(20):
            rng = np.random.default_rng(draw)
            cluster = rng.integers(4, size=n)
            X = rng.standard_normal((n, 20))
            X[:, :8] += rng.standard_normal((4, 8))[cluster]
            codes = [draw_category(rng, cluster, levels, weight) for weight in (0.5, 0.0)]
            found = [share_explained(column, cluster) for column in on_other_half(X, codes)]
            facts = dict(zip(("dependent", "independent"), found, strict=True))
            rows.append({"samples": n, "levels": levels, "draw": draw} | facts)
        store.replace((n, levels), rows)
    means = store.read().groupby(["samples", "levels"])[["dependent", "independent"]].mean()
    print(means.round(3).to_string())


def share_explained(column: np.ndarray, cluster: np.ndarray) -> float:
    """The share of the variance between clusters, less what chance gives (adjusted R^2)."""
    within = sum(
        float(np.sum((column[cluster == c] - column[cluster == c].mean()) ** 2))
        for c in np.unique(cluster)
    )
    n, c = len(column), len(np.unique(cluster))
    return 1.0 - within / float(np.sum((column - column.mean()) ** 2)) * (n - 1) / (n - c)


def open_real(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Values and classes of a part of a set."""
    data = load(name)
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    rng = np.random.default_rng(1)
    rows, columns = (
        np.sort(rng.choice(size, min(size, most), replace=False))
        for size, most in zip(X.shape, (MOST_ROWS, MOST_COLUMNS), strict=True)
    )
    X = X[np.ix_(rows, columns)]
    return X[:, np.ptp(X, axis=0) > 0], data.classes[rows]


def cut(X: np.ndarray, classes: np.ndarray, levels: int) -> tuple[Mixed, np.ndarray]:
    """Some columns as categories, and where every feature stood in X."""
    rng = np.random.default_rng(levels)
    centred = X - X.mean(axis=0)
    between = sum(
        (classes == c).sum() * centred[classes == c].mean(axis=0) ** 2 for c in np.unique(classes)
    )
    order = np.argsort(between / (centred**2).sum(axis=0), kind="stable")
    count = max(2, X.shape[1] // 6)
    chosen = np.concatenate([order[:count], order[-count:]])
    codes = []
    for column in chosen:
        inner = np.unique(np.quantile(X[:, column], np.arange(1, levels) / levels))
        code = np.unique(np.searchsorted(inner, X[:, column]), return_inverse=True)[1]
        codes.append(rng.permutation(code.max() + 1)[code])
    rest = np.setdiff1d(np.arange(X.shape[1]), chosen)
    places = np.concatenate([rest, chosen])
    return Mixed(X[:, rest], codes, np.isin(places, order[-count:])), places


def real(arguments: argparse.Namespace) -> None:
    """Accuracy of k-means on the values of the kept features before they were cut."""
    store = Store(arguments.out / "real.csv", REAL, REAL[:4])
    halves = dict.fromkeys(CHOOSING, "choosing") | dict.fromkeys(REPORTING, "reporting")
    for name, half in halves.items():
        X, classes = open_real(name)
        k = max(4, X.shape[1] // 6)
        for levels in (4, 8):
            table, places = cut(X, classes, levels)
            as_numbers = {"not cut": lambda _: Columns(X[:, places], np.arange(X.shape[1]))}  # noqa: B023
            for way, encode in (as_numbers | ways_of(half, arguments)).items():
                key = (name, half, levels, way)
                if store.has(*key) and not arguments.redo:
                    continue
                rows = []
                for selector in ("AutoSelector", "SPCAFS"):
                    first = rank(selector, encode(table), k)[0][:k]
                    found = judge_columns(X, classes, places[first], n_repeats=STARTS, seed=0)
                    facts = {"selector": selector, "k": k, "acc": float(np.mean(found.acc))}
                    kept = np.isin(np.arange(table.n_features), first)
                    worst = table.is_category & ~table.planted
                    facts["kept_best"] = float(kept[table.planted].mean())
                    facts["kept_worst"] = float(kept[worst].mean())
                    rows.append(dict(zip(REAL[:4], key, strict=True)) | facts)
                store.replace(key, rows)
        print(name, flush=True)


PARTS = {"planted": planted, "noise": noise, "real": real, "values": values}


def write_tables(folder: Path) -> None:
    """summary.md: means over tables."""
    of_planted, noisy, of_real, by_values = (pd.read_csv(folder / f"{name}.csv") for name in PARTS)
    parts = ["# Categories as numbers\n\nMade by `python tools/study_categories.py tables`.\n"]
    measures = list(PLANTED[7:])
    for half in ("choosing", "reporting"):
        part = of_planted[of_planted["half"] == half]
        means = part.groupby(["selector", "way"])[measures].mean().reset_index()
        parts.append(f"## Planted tables, the {half} half\n\n{markdown(means.round(3))}")
    by_case = of_planted[of_planted["half"] == "reporting"].groupby(
        ["samples", "numbers", "weight", "selector", "way"]
    )
    wide = by_case["recall"].mean().unstack(["samples", "numbers", "weight"]).round(2)
    wide.columns = [", ".join(map(str, case)) for case in wide.columns]
    parts.append(f"## Recall by case, the reporting half\n\n{markdown(wide.reset_index())}")
    found = noisy.groupby(["way", "samples", "numbers"])["structure_found"]
    found = found.agg(tables="count", structure_found="sum").reset_index()
    parts.append(f"## Structure found in noise\n\n{markdown(found)}")
    means = by_values.groupby(["samples", "levels"])[["dependent", "independent"]].mean()
    parts.append(
        "## Share of a category's column that the clusters explain (adjusted R^2)\n\n"
        f"{markdown(means.round(3).reset_index())}"
    )
    for half in ("choosing", "reporting"):
        part = of_real[of_real["half"] == half]
        means = part.groupby(["selector", "way"])[["acc", "kept_best", "kept_worst"]].mean()
        parts.append(f"## Real tables, the {half} half\n\n{markdown(means.round(3).reset_index())}")
    with whole_file(folder / "summary.md", force=True) as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")


def main(given: list[str] | None = None) -> None:
    """Run a part, or assemble the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=(*PARTS, "tables"))
    parser.add_argument("--ways", nargs="+", choices=WAYS | CANDIDATES, metavar="WAY")
    parser.add_argument("--redo", action="store_true", help="compute again what is there")
    parser.add_argument("--out", type=Path, default=KEPT, help="folder of the results")
    arguments = parser.parse_args(given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if arguments.command == "tables":
            write_tables(arguments.out)
        else:
            PARTS[arguments.command](arguments)


if __name__ == "__main__":
    main()
