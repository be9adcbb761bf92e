"""Measure the hot paths with asv and compare them with the saved baseline.

python benchmarks/asv/compare.py              measure, compare, end with 1 if something is slower
python benchmarks/asv/compare.py --save       measure, and keep the result as the baseline

`make asv` runs the first, `make asv ASV=--save` the second. Times are divided by that of a
reference that is NumPy and SciPy only, measured in the same run: so a baseline of one machine still
says something on another. Between two commits on one machine, `asv continuous` is more exact.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BASELINE = HERE / "baseline.json"
REFERENCE = "Reference"
# Slower than the baseline by more than this, and it is reported. Repeated runs of the same commit
# differ by up to a third on a busy machine.
FACTOR = 1.5

sys.path.insert(0, str(HERE.parent))  # benchmarks/measure.py


def measure() -> dict[str, float]:
    """Seconds of each benchmark, by its name and parameters, in this Python."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        settings = json.loads((HERE / "asv.conf.json").read_text(encoding="utf-8"))
        settings |= {
            "repo": str(ROOT),
            "benchmark_dir": str(HERE / "cases"),
            "results_dir": str(Path(name) / "results"),
            "env_dir": str(Path(name) / "env"),
        }
        config = Path(name) / "asv.conf.json"
        config.write_text(json.dumps(settings), encoding="utf-8")
        asv = [sys.executable, "-m", "asv"]
        machine = ["--machine", "here"]
        subprocess.run([*asv, "machine", "--yes", *machine, "--config", str(config)], check=True)
        command = [*asv, "run", "--config", str(config), *machine, "--set-commit-hash", "HEAD"]
        subprocess.run([*command, f"--environment=existing:{sys.executable}"], check=True)
        files = [
            path
            for path in (Path(name) / "results" / "here").glob("*.json")
            if path.name != "machine.json"
        ]
        return seconds_in(json.loads(files[0].read_text(encoding="utf-8")))


def seconds_in(results: dict) -> dict[str, float]:
    """Seconds by benchmark from a result file of asv; a benchmark that failed is left out."""
    columns = results["result_columns"]
    found = {}
    for name, row in results["results"].items():
        stored = dict(zip(columns, row, strict=False))
        combinations = list(product(*stored["params"])) if stored.get("params") else [()]
        for words, value in zip(combinations, stored["result"] or [], strict=False):
            if value is not None:
                found[f"{name}({', '.join(words)})" if words else name] = value
    return found


def relative(seconds: dict[str, float]) -> dict[str, float]:
    """Every time as a multiple of the reference's."""
    unit = next(value for name, value in seconds.items() if REFERENCE in name)
    return {name: value / unit for name, value in seconds.items() if REFERENCE not in name}


def compare(before: dict[str, float], now: dict[str, float]) -> tuple[list[str], list[str]]:
    """A table of both, and what is wrong: slower by more than `FACTOR`, or not measured."""
    old, new = relative(before), relative(now)
    rows = [f"{'benchmark':<50} {'baseline':>9} {'now':>9} {'ratio':>6}"]
    faults = []
    for name in sorted(old | new):
        if name not in new:
            faults.append(f"{name} was not measured")
        elif name in old:
            ratio = new[name] / old[name]
            rows.append(f"{name:<50} {old[name]:>9.2f} {new[name]:>9.2f} {ratio:>6.2f}")
            if ratio > FACTOR:
                faults.append(f"{name} takes {ratio:.2f} times as long")
    return rows, faults


def main(arguments: list[str] | None = None) -> int:
    """Measure and compare, or keep; 1 if something is slower."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true", help="Keep the result as the baseline.")
    options = parser.parse_args(arguments)
    seconds = measure()
    if options.save:
        from measure import machine

        kept = {
            "measured": datetime.now(UTC).date().isoformat(),
            "machine": machine(),
            "unit": "seconds of the processor, one BLAS thread",
            "seconds": {name: round(value, 6) for name, value in sorted(seconds.items())},
        }
        BASELINE.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
        print(f"{len(seconds)} benchmarks kept in {BASELINE.relative_to(ROOT)}")
        return 0
    kept = json.loads(BASELINE.read_text(encoding="utf-8"))
    rows, faults = compare(kept["seconds"], seconds)
    print(f"Times as multiples of the reference's. Baseline of {kept['measured']}.")
    print(*rows, *faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
