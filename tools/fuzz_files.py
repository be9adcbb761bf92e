"""Write odd files, damage some of them, and read them all.

    python tools/fuzz_files.py                                    500 valid files, 10,000 damaged
    python tools/fuzz_files.py --valid 40 --mutated 100 --seed 7  fewer, and the same each time

Valid files are written by the libraries that people write files with, and must be read as what the
writer was given, or be refused with an error of keepers. Damaged ones are read by two child
processes with little memory and time, and must be read or refused. Anything else is a failure: the
exit code is 1 and the file is kept. Everything happens in a temporary folder.
"""

import argparse
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from fuzzing.array_writers import ARRAY_WRITERS, HAS_ANNDATA
from fuzzing.column_writers import COLUMN_WRITERS
from fuzzing.mutations import mutated
from fuzzing.reading import (
    CRASH,
    EXCEPTION,
    NO_MEMORY,
    OUTCOMES,
    READ,
    REFUSED,
    Reader,
    has_blocks,
)
from fuzzing.tables import Case, difference, stacked, strict_warnings, values_difference
from fuzzing.text_writers import TEXT_WRITERS
from threadpoolctl import threadpool_limits

from keepers import datasets
from keepers.exceptions import KeepersError

WRITERS = (*TEXT_WRITERS, *COLUMN_WRITERS, *ARRAY_WRITERS)
SAME, DIFFERENT = "same", "different"
VALID_OUTCOMES = (SAME, REFUSED, DIFFERENT, EXCEPTION)
FINE = (SAME, READ, REFUSED)
N_READERS = 2
SECONDS_BETWEEN_REPORTS = 5.0


@dataclass
class Tally:
    """How often each outcome was had, by kind of file, and what was said."""

    folder: Path
    """Where the files of failures are kept."""
    counts: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    reasons: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, kind: str, outcome: str, told: str, path: Path) -> None:
        """Count an outcome; keep the file if it is a failure."""
        self.counts[kind][outcome] += 1
        if outcome == REFUSED:
            self.reasons[f"{kind}: {generalised(told, path)}"] += 1
        # Readers of SciPy end the process on some damaged files (SECURITY.md).
        is_known = outcome == CRASH and {".mat", ".mtx"} & set(path.suffixes)
        if outcome not in FINE and not is_known:
            self.folder.mkdir(exist_ok=True)
            kept = self.folder / f"{len(self.failures)}-{path.name}"
            shutil.copy(path, kept)
            self.failures.append(f"{outcome}: {kept} ({kind}): {told}")

    def lines(self, outcomes: Sequence[str]) -> Iterable[str]:
        """A table of the counts."""
        width = max(map(len, self.counts), default=0)
        yield " ".join([" " * width, *(f"{outcome:>15}" for outcome in outcomes)])
        total: Counter[str] = Counter()
        for kind in sorted(self.counts):
            total.update(self.counts[kind])
            yield _row(kind.ljust(width), self.counts[kind], outcomes)
        yield _row("all".ljust(width), total, outcomes)


def _row(name: str, counts: Counter[str], outcomes: Sequence[str]) -> str:
    return " ".join([name, *(f"{counts[outcome]:>15}" for outcome in outcomes)])


def generalised(message: str, path: Path) -> str:
    """The first sentence of a message without what belongs to one file only."""
    message = message.replace(str(path), "").lstrip(":, ")
    message = re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", message)
    return re.split(r"[;.] ", re.sub(r"(?<!UTF-)\d[\d.,]*", "N", message))[0][:110]


def progress(title: str, total: int) -> Any:
    """A function that says now and then how far a part has come."""
    last = [time.monotonic()]

    def report(done: int) -> None:
        if time.monotonic() - last[0] > SECONDS_BETWEEN_REPORTS:
            last[0] = time.monotonic()
            print(f"{title}: {done} of {total}", file=sys.stderr, flush=True)

    return report


def judge(case: Case) -> list[tuple[str, str, str]]:
    """(kind, outcome, what to say) of a valid file, read as a table and in blocks."""
    outcomes = [(case.writer, *_judged(case, in_blocks=False))]
    if has_blocks(case.path):
        outcomes.append((f"{case.writer}, blocks", *_judged(case, in_blocks=True)))
    return outcomes


def _judged(case: Case, *, in_blocks: bool) -> tuple[str, str]:
    try:
        with strict_warnings():
            if not in_blocks:
                found = difference(case, datasets.open_table(case.path, **case.arguments))
            else:
                blocks = datasets.scan_table(case.path, **case.arguments)
                found = values_difference(case.X, stacked(blocks))
                names = np.asarray(blocks.feature_names).tolist()
                if found is None and case.names not in (None, names):
                    found = f"names {names}, not {case.names}"
        return (SAME, "") if found is None else (DIFFERENT, found)
    except KeepersError as error:
        foreseen = error.__cause__ is None or isinstance(error.__cause__, KeepersError)
        return REFUSED if foreseen else EXCEPTION, str(error)
    except Exception as error:
        return EXCEPTION, f"{type(error).__name__}: {error}"


def try_valid(count: int, seed: int, folder: Path, tally: Tally) -> list[Case]:
    """Write and read valid files; return those that were read as they should be."""
    folder.mkdir()
    report = progress("valid files", count)
    read = []
    for number in range(count):
        rng = np.random.default_rng([seed, 1, number])
        case = WRITERS[number % len(WRITERS)](rng, folder / f"{number:05d}")
        outcomes = judge(case)
        for kind, outcome, told in outcomes:
            tally.add(kind, outcome, told, case.path)
        if outcomes[0][1] == SAME:
            read.append(case)
        report(number + 1)
    return read


def try_mutated(count: int, seed: int, pool: list[Case], folder: Path, tally: Tally) -> None:
    """Damage files of the pool, and have child processes read them."""
    folders = [folder / str(number) for number in range(N_READERS)]
    for each in folders:
        each.mkdir(parents=True)
    readers = [Reader(each) for each in folders]
    busy: list[tuple[Case, Path] | None] = [None] * N_READERS
    paths = [case.path for case in pool]
    report = progress("mutated files", count)

    def collect(at: int) -> None:
        begun = busy[at]
        if begun is not None:
            case, path = begun
            outcome, told = readers[at].outcome(path, case.arguments)
            tally.add(case.writer, outcome, told, path)
            readers[at].rest()
            busy[at] = None

    for number in range(count):
        rng = np.random.default_rng([seed, 2, number])
        case = pool[int(rng.integers(len(pool)))]
        data = mutated(rng, case.path, paths)
        at = number % N_READERS
        collect(at)
        path = folders[at] / f"{number:05d}-{case.path.name}"
        path.write_bytes(data)
        readers[at].start(path, case.arguments)
        busy[at] = (case, path)
        report(number + 1)
    for at, reader in enumerate(readers):
        collect(at)
        reader.stop()


def summarise(title: str, tally: Tally, outcomes: Sequence[str]) -> None:
    """Print counts and failures."""
    print(f"\n{title}")
    for line in tally.lines(outcomes):
        print(line)
    for failure in tally.failures:
        print(f"FAILED {failure}")


def run(n_valid: int, n_mutated: int, seed: int, folder: Path) -> bool:
    """Both parts, with their tables; True if nothing failed."""
    print(f"seed {seed}, {n_valid} valid files, {n_mutated} mutated")
    if not HAS_ANNDATA:
        skipped = n_valid // (len(WRITERS) + 1)
        print(f"anndata is not installed: about {skipped} files of its own were not tried.")
    kept = folder / "failed"
    valid, damaged = Tally(kept), Tally(kept)
    with threadpool_limits(1):
        pool = try_valid(n_valid, seed, folder / "valid", valid)
        summarise("Valid files", valid, VALID_OUTCOMES)
        print("\nRefused valid files, by reason")
        for reason, count in valid.reasons.most_common():
            print(f"{count:>5}  {reason}")
        if pool and n_mutated:
            try_mutated(n_mutated, seed, pool, folder / "mutated", damaged)
            summarise("Mutated files", damaged, OUTCOMES)
            print("\nOf the refused ones, for lack of memory")
            for reason, count in damaged.reasons.most_common():
                if NO_MEMORY in reason:
                    print(f"{count:>5}  {reason}")
    for name in ("valid", "mutated"):
        shutil.rmtree(folder / name, ignore_errors=True)
    return not valid.failures and not damaged.failures


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and say what failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--valid", type=int, default=500, help="how many valid files to write")
    parser.add_argument("--mutated", type=int, default=10_000, help="how many damaged files")
    parser.add_argument("--seed", type=int, default=random.randrange(2**31), help="of all choices")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="keepers-fuzz-"))
    fine = run(options.valid, options.mutated, options.seed, folder)
    if fine:
        shutil.rmtree(folder)
    print(f"\n{'Nothing failed' if fine else 'FAILED'} with --seed {options.seed}.")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
