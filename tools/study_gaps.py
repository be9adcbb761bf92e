"""Does AutoSelector keep columns for their gaps, and what do gaps cost?

python tools/study_gaps.py noise      columns of noise, 50, 80 and 97 % of their values missing
python tools/study_gaps.py accuracy   5, 20 and 40 % of all values missing

"noise" adds three columns of noise with gaps to ten sets and counts the columns ranked above the
median and those that are kept when AutoSelector chooses the number. "accuracy" is that of k-means
(20 starts) on the complete values of the kept columns, mean of four draws of the gaps. The sets and
the number of columns to keep are those of study_missing.py.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from autoselector_tables import markdown
from keepers_studies.worker import judge_columns
from study_missing import CHOOSING, PATTERNS, REPORTING, SHARES, open_complete, take_out

from keepers import AutoSelector

SETS = (*CHOOSING, *REPORTING[:5])
WAYS = ("observed", "model")
STARTS, DRAWS, N_NOISE = 20, 4, 3


def add_noise(name: str, share: float, way: str) -> dict[str, object]:
    """Ranks of columns of noise with gaps, as shares of the number of columns; 1 is last."""
    X = open_complete(name, 0).X
    rng = np.random.default_rng(round(100 * share))
    noise = rng.standard_normal((len(X), N_NOISE))
    noise = take_out(noise, share, "random", seed=0)
    selector = AutoSelector(missing=way, n_halves=0).fit(np.column_stack([X, noise]))
    ranks = selector.ranking_[-N_NOISE:] / len(selector.ranking_)
    kept = int(selector.support_[-N_NOISE:].sum())
    above = int(np.sum(ranks <= 0.5))
    best = float(ranks.min())
    return {"set": name, "gaps": share, "way": way, "best": best, "above": above, "kept": kept}


def accuracy(name: str, share: float, pattern: str, way: str, draw: int) -> dict[str, object]:
    """Of k-means on the complete values of what is kept of a table with gaps."""
    table = open_complete(name, 0)
    gaps = take_out(table.X, share, pattern, seed=draw)
    kept = AutoSelector(table.k, missing=way, n_halves=0).fit(gaps).top().indices
    found = judge_columns(table.X, table.classes, np.asarray(kept), n_repeats=STARTS, seed=0)
    acc = float(np.mean(found.acc))
    return {"set": name, "gaps": share, "pattern": pattern, "way": way, "draw": draw, "acc": acc}


def main(given: list[str] | None = None) -> None:
    """Print a table of means, and every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("noise", "accuracy"))
    parser.add_argument("--only", nargs="+", default=SETS, metavar="SET")
    arguments = parser.parse_args(given)
    warnings.simplefilter("ignore")
    if arguments.command == "noise":
        cases = [
            add_noise(name, share, way)
            for name in arguments.only
            for share in (0.5, 0.8, 0.97)
            for way in WAYS
        ]
        rules = {"best": "min", "above": "sum", "kept": "sum"}
        means = pd.DataFrame(cases).groupby(["way", "gaps"]).agg(rules)
    else:
        cases = [
            accuracy(name, share, pattern, way, draw)
            for name in arguments.only
            for draw in range(DRAWS)
            for pattern in PATTERNS
            for share in SHARES
            for way in WAYS
        ]
        means = pd.DataFrame(cases).groupby(["pattern", "gaps", "way"])["acc"].mean().unstack()
    print(pd.DataFrame(cases).to_csv(index=False, float_format="%.3f"))
    print(markdown(means.reset_index()))


if __name__ == "__main__":
    main()
