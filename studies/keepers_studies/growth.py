"""Growth of the time of one fit with the size of the table (the paper's Table 1)."""

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from keepers_studies.plan import SYNTHETIC
from keepers_studies.specification import StudySpec

PRINTED = {
    "LaplacianScore": "O(dn² + d log₂ d)",
    "MCFS": "O(d³ + n²m + d²n)",
    "UDFS": "O(d³ + n²c)",
    "EUFS": "O(dn² + nc²)",
    "DGUFS": "O(n³ + dn)",
    "SOGFS": "O(d³ + n²p + n²c)",
    "RNE": "O(dn² + d²n + d²h)",
    "SPCAFS": "O(d²n + d³)",
}
"""Cost of one iteration as the paper's Table 1 prints it."""

QUICK = 0.005
"""Seconds below which a time is not compared."""
GREW = 2.0
"""A time counts if it is this many times that of the smallest size, which may hardly have grown."""
LEAST_POINTS = 3


def growth_table(spec: StudySpec, fits: pd.DataFrame) -> pd.DataFrame:
    """Exponents of n and d for each timed method, with 95 % intervals, or why there are none."""
    timed = fits[fits.section == SYNTHETIC]
    rows = []
    for method in spec.methods if spec.growth is not None else ():
        mine = timed[timed.method == method.title]
        size = pd.DataFrame(list(mine.params), index=mine.index)
        along_n = size.features == spec.growth.at_features  # type: ignore[union-attr]
        along_d = size.samples == spec.growth.at_samples  # type: ignore[union-attr]
        rows.append(
            {
                "method": method.title,
                "selector": method.name,
                "printed": PRINTED.get(method.name, ""),
                **_slope("samples", mine[along_n].assign(size=size.samples)),
                **_slope("features", mine[along_d].assign(size=size.features)),
            }
        )
    return pd.DataFrame(rows)


def _slope(name: str, found: pd.DataFrame) -> dict[str, Any]:
    """Least squares on logarithms, over sizes past the time that does not grow."""
    found = found.sort_values("size")
    seconds = found.fit_seconds.where(found.status == "ok")
    measured = pd.Series(seconds.to_numpy(), index=found["size"])
    bad = found[found.status != "ok"]
    gaps = ", ".join(f"{size}: {status}" for size, status in bad[["size", "status"]].to_numpy())
    known = measured.dropna()
    limit = max(QUICK, GREW * known.iloc[0]) if len(known) else QUICK
    short = known.index[known < limit]
    usable = known[known.index > short.max()] if len(short) else known
    exponent = half = None
    if len(usable) < LEAST_POINTS:
        remark = gaps if len(known) < LEAST_POINTS and gaps else "grows too little to measure"
    else:
        line = stats.linregress(np.log(usable.index.to_numpy(float)), np.log(usable))
        exponent = round(float(line.slope), 2)
        half = float(stats.t.ppf(0.975, len(usable) - 2) * line.stderr)
        n_short = len(known) - len(usable)
        left_out = f"{n_short} near the time that does not grow left out" if n_short else ""
        remark = "; ".join(filter(None, [left_out, gaps]))
    return {
        f"exponent_in_{name}": exponent,
        f"half_interval_{name}": half,
        f"remark_{name}": remark,
    }
