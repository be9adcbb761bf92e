"""Genes kept by keepers and by scanpy's highly_variable_genes: are the cell types found in them?

python tools/study_scanpy.py run      every method on every set: scores.csv
python tools/study_scanpy.py tables   means over draws: summary.csv, summary.md

    --data NAME ...   these sets only
    --out FOLDER      where results go; studies/results/scanpy by default

pbmc68k_reduced comes with scanpy: 700 cells, 765 genes that were chosen as highly variable before,
labels from sorted cells (bulk_labels). Its raw.X is used, logarithms of normalised counts; its X is
scaled, and the counts are not there, so that flavor="seurat_v3" cannot be run. mouse_bladder_2100
(counts, 20,670 genes) and Pollen (logarithms, 6,982 genes) are read from the folder that
KEEPERS_DATA names, and left out where it is absent.

Every method keeps 50, 100 and 200 genes without seeing the labels. Cells are then clustered on the
logarithms of these genes, by k-means with the true number of types (10 starts, the mean) and by
Leiden (50 components, 15 neighbours, resolution 1), and compared with the types by normalised
mutual information and the adjusted Rand index. Random genes are drawn 20 times, with 3 starts each.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import scanpy as sc
import scipy.sparse as sp
from keepers_studies.catalogue import data_folder
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import keepers.anndata
from keepers.metrics import normalized_mutual_information
from keepers.tables.atomic import whole_file

KEPT = Path(__file__).parents[1] / "studies" / "results" / "scanpy"
SIZES, SEED = (50, 100, 200), 0
STARTS, DRAWS, STARTS_OF_DRAW = 10, 20, 3
LABELS, COUNTS = "cell_type", "counts"
SCORES = ("kmeans nmi", "kmeans ari", "leiden nmi", "leiden ari")


def load_pbmc() -> anndata.AnnData:
    """The logarithms that pbmc68k_reduced keeps in raw."""
    stored = sc.datasets.pbmc68k_reduced()
    cells = stored.raw.to_adata()
    return anndata.AnnData(
        sp.csr_matrix(cells.X),
        obs=pd.DataFrame({LABELS: cells.obs["bulk_labels"].astype(str)}),
        var=cells.var[[]],
    )


def load_archive(name: str) -> anndata.AnnData:
    """A set of the data folder; counts become logarithms, and stay as a layer."""
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as archive:
        labels = archive["y"].astype(str)
        if "X" in archive:
            values = sp.csr_matrix(archive["X"])
        else:
            parts = (archive["data"].astype(np.float64), archive["indices"], archive["indptr"])
            values = sp.csr_matrix(parts, shape=tuple(archive["shape"]))
    cells = anndata.AnnData(values)
    cells.obs[LABELS] = labels
    sc.pp.filter_genes(cells, min_cells=1)
    if name == "mouse_bladder_2100":
        cells.layers[COUNTS] = cells.X.copy()
        sc.pp.normalize_total(cells, target_sum=1e4)
        sc.pp.log1p(cells)
    else:
        cells.uns["log1p"] = {"base": 10}  # which flavor="seurat" undoes
    return cells


DATA: dict[str, Callable[[], anndata.AnnData]] = {
    "pbmc68k_reduced": load_pbmc,
    "mouse_bladder_2100": lambda: load_archive("mouse_bladder_2100"),
    "Pollen": lambda: load_archive("Pollen"),
}


def by_scanpy(cells: anndata.AnnData, k: int, flavor: str) -> np.ndarray:
    """Which genes highly_variable_genes keeps."""
    layer = COUNTS if flavor == "seurat_v3" else None
    settings = {"n_top_genes": k, "flavor": flavor, "layer": layer, "inplace": False}
    return sc.pp.highly_variable_genes(cells, **settings)["highly_variable"].to_numpy()


def by_keepers(cells: anndata.AnnData, k: int | None, method: str) -> np.ndarray:
    """Which genes keepers.anndata.select keeps."""
    found = keepers.anndata.select(cells, k, method=method, inplace=False)
    return found["keepers_selected"].to_numpy()


METHODS: dict[str, Callable[[anndata.AnnData, int], np.ndarray]] = {
    "keepers auto": lambda cells, k: by_keepers(cells, k, "auto"),
    "keepers spcafs": lambda cells, k: by_keepers(cells, k, "spcafs"),
    "scanpy seurat": lambda cells, k: by_scanpy(cells, k, "seurat"),
    "scanpy cell_ranger": lambda cells, k: by_scanpy(cells, k, "cell_ranger"),
    "scanpy seurat_v3": lambda cells, k: by_scanpy(cells, k, "seurat_v3"),
}


def judge(cells: anndata.AnnData, kept: np.ndarray, starts: int) -> dict[str, float]:
    """How well clusters of the kept genes agree with the types."""
    types = pd.factorize(cells.obs[LABELS])[0]
    values = cells.X[:, kept].toarray()
    n_types = len(np.unique(types))
    found = [
        KMeans(n_types, n_init=1, random_state=SEED + start).fit_predict(values)
        for start in range(starts)
    ]
    part = anndata.AnnData(values)
    sc.pp.pca(part, n_comps=min(50, min(values.shape) - 1), random_state=SEED)
    sc.pp.neighbors(part, n_neighbors=15, random_state=SEED)
    sc.tl.leiden(part, flavor="igraph", n_iterations=2, directed=False, random_state=SEED)
    communities = pd.factorize(part.obs["leiden"])[0]
    return {
        "kmeans nmi": float(np.mean([normalized_mutual_information(types, c) for c in found])),
        "kmeans ari": float(np.mean([adjusted_rand_score(types, c) for c in found])),
        "leiden nmi": normalized_mutual_information(types, communities),
        "leiden ari": adjusted_rand_score(types, communities),
    }


def compare(name: str, cells: anndata.AnnData) -> Iterator[dict[str, object]]:
    """A row for every method, number of genes and draw."""
    for k in SIZES:
        for method, keep in METHODS.items():
            if method.endswith("seurat_v3") and COUNTS not in cells.layers:
                continue
            yield row(name, method, k, cells, keep(cells, k), STARTS)
        for draw in range(DRAWS):
            kept = np.zeros(cells.n_vars, dtype=bool)
            kept[np.random.default_rng(draw).permutation(cells.n_vars)[:k]] = True
            yield row(name, "random", k, cells, kept, STARTS_OF_DRAW, draw=draw)
    kept = by_keepers(cells, None, "auto")
    yield row(name, "keepers auto, its own number", int(kept.sum()), cells, kept, STARTS)
    everything = np.ones(cells.n_vars, dtype=bool)
    yield row(name, "all genes", cells.n_vars, cells, everything, STARTS_OF_DRAW)


def row(
    name: str,
    method: str,
    k: int,
    cells: anndata.AnnData,
    kept: np.ndarray,
    starts: int,
    *,
    draw: int = 0,
) -> dict[str, object]:
    """One line of scores.csv."""
    if kept.sum() != k:
        raise ValueError(f"{method} kept {kept.sum()} genes of {name} instead of {k}")
    scores = {key: round(value, 4) for key, value in judge(cells, kept, starts).items()}
    return {"data": name, "method": method, "k": k, "draw": draw, **scores}


def write(path: Path, text: str) -> None:
    """Replace a file, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, force=True) as temporary:
        temporary.write_text(text, encoding="utf-8")
    print(path.name)


def run(names: list[str], out: Path) -> None:
    """Compute the rows of these sets; those of others stay."""
    path = out / "scores.csv"
    before = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["data"])
    for name in names:
        try:
            cells = DATA[name]()
        except FileNotFoundError:
            print(f"{name} is not in {data_folder()}: left out")
            continue
        rows = pd.DataFrame(compare(name, cells))
        others = before[before["data"] != name]
        before = pd.concat([others, rows], ignore_index=True) if len(others) else rows
        write(path, before.to_csv(index=False, lineterminator="\n"))


def write_tables(out: Path) -> None:
    """Means over draws, as CSV and as Markdown; random genes with their standard deviation."""
    scores = pd.read_csv(out / "scores.csv")
    grouped = scores.groupby(["data", "k", "method"], sort=False)[list(SCORES)]
    summary = grouped.mean().round(3)
    spread = grouped.std().round(3).add_suffix(" sd")
    joined = summary.join(spread).reset_index()
    write(out / "summary.csv", joined.to_csv(index=False, lineterminator="\n"))
    lines = ["| data | k | method | " + " | ".join(SCORES) + " |", "|---" * (3 + len(SCORES)) + "|"]
    for found in joined.to_dict("records"):
        spreads = [found[f"{key} sd"] for key in SCORES]
        told = ["" if np.isnan(spread) else f" ± {spread:.3f}" for spread in spreads]
        cells = [f"{found[key]:.3f}{more}" for key, more in zip(SCORES, told, strict=True)]
        row_of = [found["data"], str(found["k"]), found["method"], *cells]
        lines.append(f"| {' | '.join(row_of)} |")
    write(out / "summary.md", "\n".join(lines) + "\n")


def main(given: list[str] | None = None) -> None:
    """Run, or assemble the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("run", "tables"))
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA), metavar="NAME")
    parser.add_argument("--out", type=Path, default=KEPT, help="folder of the results")
    arguments = parser.parse_args(given)
    if arguments.command == "tables":
        write_tables(arguments.out)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(arguments.data, arguments.out)


if __name__ == "__main__":
    main()
