"""Run the comparisons and keep the figures with the facts of the machine.

python benchmarks/run.py [part of a case's name] ...
"""

import json
import sys
import time
import warnings
from pathlib import Path

import compared
import eight_methods
import files
import growth
import minima
import path
import peers
import row_sparse
import scale
import spcafs
import waits
from measure import machine

RESULTS = Path(__file__).parent / "results" / "latest.json"


def rounded(value: object) -> object:
    """Three significant digits are more than the machine gives."""
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [rounded(entry) for entry in value]
    return float(f"{value:.3g}") if isinstance(value, float) else value


def keep(name: str, outcome: object) -> None:
    """Add to the results as they are now: another run may have added to them meanwhile."""
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"cases": {}}
    kept["cases"][name] = outcome
    kept["machine"] = machine()
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(kept, indent=2) + "\n")


def main(wanted: list[str]) -> None:
    """Run every case whose name contains one of ``wanted`` (all of them, if none is given)."""
    warnings.simplefilter("ignore")  # the dense iteration is stopped on purpose
    every_day = spcafs.CASES | path.CASES | compared.CASES | files.CASES | waits.CASES
    every_day |= peers.CASES | minima.CASES | row_sparse.CASES
    every_day |= eight_methods.CASES
    for name, case in (every_day | growth.CASES | scale.CASES).items():
        if not any(part in name for part in wanted or every_day):
            continue
        started = time.perf_counter()
        outcome = rounded(case())
        print(f"{name}  ({time.perf_counter() - started:.0f} s)")
        print(json.dumps(outcome, indent=2), flush=True)
        keep(name, outcome)


main(sys.argv[1:])
