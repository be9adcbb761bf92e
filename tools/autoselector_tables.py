"""The tables of `study_autoselector.py`: means by set, the summary of all methods, Markdown.

A method's score on a set is the mean over the numbers of columns kept; it has one only if none of
them failed. Methods are compared with random columns on the sets on which they have a score.
"""

from pathlib import Path

import pandas as pd

from keepers.tables.atomic import whole_file

RANDOM = "Random"
HALVES = ("all", "choosing", "reporting")
ORDER = (
    *(RANDOM, "Variance", "LapScore", "MCFS, 10 eigenvectors", "SPCAFS", "Label-free SPCAFS"),
    *("Recipe", "MCFS, told the classes", "UDFS, told the classes", "SPCAFS, tuned with labels"),
    "All features",
)
HEADER = """# Which columns to keep if nothing is known of the table

Made by `python tools/study_autoselector.py tables`; the protocol stands at the top of that file.
ACC and NMI are means over the numbers of columns kept (k), then over data sets; "over random" is
the mean difference to random columns on the sets that the method was run on. "Told the classes" is
told their number; "tuned with labels" takes, for every k, the penalty that turned out best.
Seconds are those of one fit (of all seven where tuned with labels), on a busy machine: they show
orders of magnitude.
"""


def write_tables(folder: Path) -> None:
    """by_set.csv, by_set_nmi.csv, summary.csv and summary.md, from what is there."""
    scores = pd.read_csv(folder / "scores.csv")
    acc, nmi = (mean_by_set(scores, measure) for measure in ("acc", "nmi"))
    summary = summarise(scores, acc, nmi)
    write_csv(acc, folder / "by_set.csv")
    write_csv(nmi, folder / "by_set_nmi.csv")
    write_csv(summary, folder / "summary.csv")
    parts = [HEADER]
    for half in HALVES:
        title = "All sets" if half == "all" else f"The {half} half"
        part = summary[summary["half"] == half].drop(columns="half")
        parts.append(f"## {title}\n\n{markdown(part)}")
    parts += [f"## ACC by set\n\n{markdown(acc)}", f"## NMI by set\n\n{markdown(nmi)}"]
    parts += [*planted_part(folder), *noise_part(folder), *failures_part(scores)]
    with whole_file(folder / "summary.md", force=True) as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")
    print(summary.to_string(index=False))


def in_order(methods: object) -> list[str]:
    """Methods as in the tables; those given on the command line first, by name."""
    found = set(methods)
    return sorted(found - set(ORDER)) + [label for label in ORDER if label in found]


def mean_by_set(scores: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One row a set, one column a method: the mean over k, empty if it failed at any."""
    grouped = scores.groupby(["data", "half", "method"])[measure]
    mean = grouped.agg(lambda values: values.mean(skipna=False)).unstack("method")
    mean = mean[in_order(mean.columns)].reset_index()
    mean.columns.name = None
    return mean.sort_values("data", key=lambda names: names.str.lower(), ignore_index=True)


def summarise(scores: pd.DataFrame, acc: pd.DataFrame, nmi: pd.DataFrame) -> pd.DataFrame:
    """A row for every half and method."""
    seconds = scores.groupby(["data", "method"])["seconds"].mean()
    rows = []
    for half in HALVES:
        inside = (acc["half"] == half) | (half == "all")
        A, N = (table[inside].set_index("data").drop(columns="half") for table in (acc, nmi))
        for method in A.columns:
            ran = A.index[A[method].notna() & A[RANDOM].notna()]
            if not len(ran):
                continue
            gain = A.loc[ran, method] - A.loc[ran, RANDOM]
            gain_nmi = N.loc[ran, method] - N.loc[ran, RANDOM]
            rows.append(
                {
                    "half": half,
                    "method": method,
                    "sets": len(ran),
                    "acc": A.loc[ran, method].mean(),
                    "acc over random": gain.mean(),
                    "ahead in acc": int((gain > 0).sum()),
                    "worst loss": gain.min(),
                    "worst set": gain.idxmin(),
                    "nmi": N.loc[ran, method].mean(),
                    "nmi over random": gain_nmi.mean(),
                    "ahead in nmi": int((gain_nmi > 0).sum()),
                    "seconds": seconds[[(name, method) for name in ran]].mean(),
                }
            )
    summary = pd.DataFrame(rows)
    baseline = summary["method"] == RANDOM
    summary["ahead in acc"] = summary["ahead in acc"].astype("Int64").mask(baseline)
    summary["ahead in nmi"] = summary["ahead in nmi"].astype("Int64").mask(baseline)
    summary["worst set"] = summary["worst set"].mask(baseline, "")
    return summary


def planted_part(folder: Path) -> list[str]:
    """Recall of planted columns, if that part was run."""
    path = folder / "planted.csv"
    if not path.exists():
        return []
    table = pd.read_csv(path)
    by_case = table.groupby(["rescaled", "samples", "spread", "method"])["recall"].mean()
    recall = by_case.unstack("method")
    recall = recall[in_order(recall.columns)].reset_index()
    recall["rescaled"] = recall["rescaled"].map({True: "yes", False: "no"})
    recall["spread"] = recall["spread"].map("{:g}".format)
    title = "## Planted columns: share of the 50 (of 5,000) among the first 50, mean of the draws"
    return [f"{title}\n\n{markdown(recall, digits=2)}"]


def noise_part(folder: Path) -> list[str]:
    """How often structure was found in noise, if that part was run."""
    path = folder / "noise.csv"
    if not path.exists():
        return []
    table = pd.read_csv(path).dropna(subset=["structure_found"])
    table["found"] = table["structure_found"].astype(bool)
    counts = table.groupby(["method", "kind"])["found"].agg(["size", "sum"]).reset_index()
    counts["no structure found"] = counts["size"] - counts["sum"]
    counts = counts.rename(columns={"size": "tables"}).drop(columns="sum")
    return [f"## Tables without structure\n\n{markdown(counts)}"]


def failures_part(scores: pd.DataFrame) -> list[str]:
    """What has a note: not run, stopped or failed."""
    noted = scores[scores["note"].notna()].groupby(["data", "method", "note"], as_index=False)
    noted = noted["k"].agg(lambda ks: ", ".join(str(k) for k in ks))
    return [f"## Not run, stopped or failed\n\n{markdown(noted)}"] if len(noted) else []


def markdown(table: pd.DataFrame, digits: int = 3) -> str:
    """A pipe table."""

    def cell(value: object) -> str:
        if pd.isna(value):
            return ""
        return f"{value:.{digits}f}" if isinstance(value, float) else str(value)

    lines = [[str(name) for name in table.columns], ["---"] * table.shape[1]]
    lines += [[cell(value) for value in values] for values in table.itertuples(index=False)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table whole, numbers to four digits."""
    with whole_file(path, force=True) as temporary:
        table.to_csv(temporary, index=False, float_format="%.4f")
