"""Reading tables: keepers from this tree against polars, and against keepers as it was before.

python benchmarks/tables.py [--before FOLDER] [--folder FOLDER] [--large] [part of a case's name]

Every measurement is a process of its own, which reports its CPU seconds, wall seconds and highest
memory; the sides take turns. Imports are not timed, but count as memory. Rows show medians, and
ratios to polars and to the keepers of ``--before`` (its folder "src"). Only the ratios of one run
can be compared with those of another.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

# This process imports nothing large: a child's ru_maxrss begins at the memory of its parent.

SOURCE = Path(__file__).resolve().parents[1] / "src"
TIME_LIMIT = 900  # seconds for one process

START_MAKING = """
import sys
import numpy as np
import polars as pl
path, rng = sys.argv[1], np.random.default_rng(0)
def numbers(n_rows, n_columns):
    return {f"x{j}": rng.standard_normal(n_rows).round(4) for j in range(n_columns)}
def words(n_rows, n_words):
    return np.array([f"word {at}" for at in range(n_words)])[rng.integers(0, n_words, n_rows)]
def truths(n_rows):
    return np.where(rng.random(n_rows) < 0.5, "TRUE", "FALSE")
def days(n_rows, unit):
    return np.datetime64("2020-01-01", unit) + rng.integers(0, 1000, n_rows)
def write_wide(n_rows, n_columns):
    with open(path, "w") as file:
        print(*(f"g{j}" for j in range(n_columns)), sep=",", file=file)
        for _ in range(n_rows):
            print(*rng.standard_normal(n_columns).tolist(), sep=",", file=file)
"""
MAKERS = {
    "truth.csv": "n = 1_000_000\n"
    "pl.DataFrame({**numbers(n, 12), 'smoker': truths(n)}).write_csv(path)",
    "mixed.csv": "n = 1_000_000\n"
    "columns = {f't{j}': words(n, 10 ** (j + 1)) for j in range(3)}\n"
    "columns |= {f'b{j}': truths(n) for j in range(2)}\n"
    "columns |= {'day': days(n, 'D'), 'moment': days(n, 's').astype('M8[ms]')}\n"
    "columns |= {f'i{j}': rng.integers(0, 10 ** (j + 1), n) for j in range(5)}\n"
    "frame = pl.DataFrame(columns | numbers(n, 8)).with_columns(pl.col('day').cast(pl.Date))\n"
    "frame.write_csv(path)",
    "wide.csv": "write_wide(1_000, 20_000)",
    "widest.csv": "write_wide(60, 450_000)",
    "wide.parquet": "pl.DataFrame(numbers(1_000, 20_000)).write_parquet(path)",
    "tall.parquet": "pl.DataFrame(numbers(10_000_000, 10)).write_parquet(path)",
    "tall.csv": "pl.DataFrame(numbers(10_000_000, 10)).write_csv(path)",
}
"""How each file is made; `START_MAKING` runs before."""

START_MEASURING = """
import json, resource, sys, time, warnings
warnings.simplefilter("ignore")
path = sys.argv[1]
def spent():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, time.perf_counter()
marks = []
"""
END_MEASURING = """
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
(cpu, wall), (cpu_end, wall_end) = marks[-2:]
print(json.dumps([cpu_end - cpu, wall_end - wall, peak]))
"""
IMPORTS = {
    "polars": "import polars as pl, polars.selectors as cs\nNUMBERS = cs.numeric() | cs.boolean()",
    "now": "import polars, keepers.tables.columnar\n"
    "from keepers.tables.opening import open_table, scan_table",
}
WHOLE = {
    "polars": "frame = pl.read_{kind}(path)\nX = frame.select(NUMBERS.cast(pl.Float64)).to_numpy()",
    "now": "table = open_table(path)",
}
"""One float64 matrix of all columns of numbers and truth values."""
OPENED = {
    "polars": "lazy = pl.scan_{kind}(path)",
    "now": "source = scan_table(path)",
}
SUMMED = {
    "polars": "total = sum(batch.to_numpy().sum() for batch in lazy.collect_batches())",
    "now": "total = sum(block.values.sum() for block in source.blocks())",
}
for code in (IMPORTS, WHOLE, OPENED, SUMMED):
    code["before"] = code["now"]
"""One pass over all rows, a block in memory at a time."""
MARK = "marks.append(spent())"

CASES = {
    "CSV 1,000,000 x 13, one TRUE/FALSE": ("truth.csv", 0),
    "CSV 1,000,000 x 20 mixed": ("mixed.csv", 0),
    "CSV 1,000 x 20,000": ("wide.csv", 0),
    "CSV 60 x 450,000": ("widest.csv", 0),
    "Parquet 1,000 x 20,000": ("wide.parquet", 0),
    "Parquet 10,000,000 x 10, a pass": ("tall.parquet", 1),
    "CSV 10,000,000 x 10, first pass": ("tall.csv", 1),
    "CSV 10,000,000 x 10, second pass": ("tall.csv", 2),
}
"""The file of each case, and the pass that is timed; 0: the table is read whole."""
LARGE = "tall.csv"  # read only with --large


def run_child(script: str, path: Path, source: Path = SOURCE) -> str:
    """Run a script on a file in a process of its own, with keepers from ``source``."""
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RuntimeError(said[-1][:200])
    return done.stdout


def measure(side: str, path: Path, timed_pass: int, source: Path) -> list[float]:
    """CPU seconds, wall seconds and megabytes of one reading."""
    lines = [MARK, WHOLE[side], MARK]
    if timed_pass:
        lines = [MARK, OPENED[side], *[SUMMED[side], MARK] * timed_pass]
    work = "\n".join(lines).replace("{kind}", path.suffix[1:])
    script = "\n".join([START_MEASURING, IMPORTS[side], work, END_MEASURING])
    return json.loads(run_child(script, path, source).splitlines()[-1])


def compare(path: Path, timed_pass: int, sides: dict[str, Path], repeats: int) -> None:
    """Print the medians of every side, and their ratios to polars and to the side before."""
    runs: dict[str, list[list[float]]] = {side: [] for side in sides}
    failed: dict[str, str] = {}
    for _ in range(repeats):
        for side in [side for side in sides if side not in failed]:
            try:
                runs[side].append(measure(side, path, timed_pass, sides[side]))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed[side] = str(error)
    medians = {
        side: [statistics.median(column) for column in zip(*rows, strict=True)]
        for side, rows in runs.items()
        if side not in failed
    }
    for side in sides:
        if side in failed:
            print(f"    {side:8} failed: {failed[side]}")
            continue
        cpu, wall, peak = medians[side]
        line = f"    {side:8} {cpu:7.2f} s CPU {wall:7.2f} s wall {peak:6.0f} MB"
        for other in ("polars", "before"):
            if other in medians and side not in (other, "polars"):
                pairs = zip(medians[side], medians[other], strict=True)
                line += f"   of {other}: " + " / ".join(f"{a / b:.2f}" for a, b in pairs)
        print(line, flush=True)


def main() -> None:
    """Make the files that are not there, and print a row for every side of every case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("wanted", nargs="*", help="parts of the names of cases; all if none")
    parser.add_argument("--before", type=Path, help="folder 'src' of keepers as it was before")
    parser.add_argument("--folder", type=Path, help="where the files are made and stay")
    parser.add_argument("--large", action="store_true", help="the CSV of 10 million rows as well")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--without", choices=IMPORTS, nargs="*", default=[], metavar="SIDE")
    asked = parser.parse_args()
    sides = {"polars": SOURCE, "now": SOURCE}
    if asked.before is not None:
        sides["before"] = asked.before.resolve()
    sides = {side: source for side, source in sides.items() if side not in asked.without}
    print(f"{os.cpu_count()} cores, medians of {asked.repeats}; ratios: CPU / wall / memory")
    with tempfile.TemporaryDirectory(prefix="keepers-tables-") as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name, (file, timed_pass) in CASES.items():
            is_wanted = not asked.wanted or any(part in name for part in asked.wanted)
            if not is_wanted or (file == LARGE and not asked.large):
                continue
            path = folder / file
            if not path.exists():
                unfinished = folder / f"unfinished-{file}"
                run_child(START_MAKING + MAKERS[file], unfinished)
                unfinished.rename(path)
            print(f"{name}  ({path.stat().st_size / 1e6:.0f} MB)", flush=True)
            compare(path, timed_pass, sides, asked.repeats)


if __name__ == "__main__":
    main()
