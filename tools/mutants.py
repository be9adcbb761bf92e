"""Change the source in one place at a time, and count the changes that the fast tests notice.

    make mutants

That records the tests that run each line, and their times (.coverage, .coverage-times.xml), then
runs this script as two processes. A mutant turns a comparison round, makes + a -, * a /, 0 a 1 or
`and` an `or`, negates a condition, drops a `not` or moves the bound of a slice by one. Places are
drawn with a seed, in proportion to the lines of a file; messages are left alone.

Each mutant runs in one process the tests of `make test` that run its line, until one fails: those
of files named after the module first, the quick ones first, up to --seconds in total. Tests that
would take longer are not run, so the share of killed mutants is a lower bound.
"""

import argparse
import ast
import compileall
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from py_compile import PycInvalidationMode as Mode

import pytest
from coverage import CoverageData

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
for package in ("pandas", "polars", "scipy.stats", "sklearn.utils.estimator_checks"):
    import_module(package)  # once, not in every child
ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("linalg", "methods", "proofs", "prepare")
SWAPS: dict[type, type] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Eq: ast.NotEq, ast.Is: ast.IsNot}
SWAPS |= {ast.In: ast.NotIn}  # codespell:ignore notin
SWAPS |= {ast.Add: ast.Sub, ast.Mult: ast.Div, ast.And: ast.Or}
SWAPS |= {new: old for old, new in SWAPS.items()}
MESSAGES = {"warn_caller", "warn", "ParameterError", "DataError", "__repr__", "__str__"}
Mutant = tuple[Path, int, int, int, str, str]  # a file, a line, first byte, last, old, new


def changes(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Expressions of a node that can be changed, and what they become."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPS:
        yield node, ast.Compare(node.left, [SWAPS[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPS and "'" not in ast.unparse(node):
        yield node, ast.BinOp(node.left, SWAPS[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield node, ast.BoolOp(SWAPS[type(node.op)](), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, node.operand
    elif isinstance(node, ast.Constant) and repr(node.value) in ("0", "1", "0.0", "1.0"):
        yield node, ast.Constant(type(node.value)(node.value == 0))
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        yield node.test, ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Slice):
        for bound in filter(None, (node.lower, node.upper)):
            yield bound, ast.BinOp(bound, ast.Add(), ast.Constant(1))


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, without messages and annotations."""
    called = node.func if isinstance(node, ast.Call) else node
    names = {getattr(called, part, "") for part in ("attr", "id", "name")}
    if isinstance(node, ast.Raise | ast.JoinedStr) or names & MESSAGES:
        return
    yield node
    aside = [getattr(node, part, None) for part in ("annotation", "returns")]
    for child in (child for child in ast.iter_child_nodes(node) if child not in aside):
        yield from inside(child)


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every change to a file."""
    lines = path.read_bytes().splitlines(keepends=True)
    for node in inside(ast.parse(b"".join(lines))):
        for old, new in changes(node):
            start = sum(map(len, lines[: old.lineno - 1])) + old.col_offset
            stop = sum(map(len, lines[: (old.end_lineno or 0) - 1])) + (old.end_col_offset or 0)
            yield path, old.lineno, start, stop, ast.unparse(old), f"({ast.unparse(new)})"


def draw(count: int, seed: int, folders: list[str]) -> list[Mutant]:
    """Different changes, more of them where there are more lines."""
    places = (ROOT / "src" / "keepers" / name for name in folders)
    paths = sorted(path for place in places for path in place.rglob("*.py"))
    every = {path: found for path in paths if (found := list(mutants_of(path)))}
    lines = [path.read_text().count("\n") for path in every]
    rng, drawn = random.Random(seed), set[Mutant]()
    while len(drawn) < count:
        drawn.add(rng.choice(every[rng.choices(list(every), lines)[0]]))
    return rng.sample(sorted(drawn), count)


class Tests:
    """The tests that run each line of the source, and their times."""

    def __init__(self, coverage: Path, times: Path) -> None:
        self._data = CoverageData(str(coverage))
        self._data.read()
        self._seconds: dict[str, float] = {}
        names = _collected()
        for case in ElementTree.parse(times).iter("testcase"):
            test = f"{case.attrib['classname'].replace('.', '/')}.py::{case.attrib['name']}"
            if test in names:
                self._seconds[test] = float(case.attrib["time"])

    def of(self, path: Path, line: int, limit: float) -> list[str]:
        """Tests that run a line, in the order to run them, within a limit of seconds.

        A line that runs at import, such as a constant, gets all tests of the module.
        """
        suffix = str(path.relative_to(ROOT))
        measured = next(name for name in self._data.measured_files() if name.endswith(suffix))
        contexts = self._data.contexts_by_lineno(measured)
        tests = _tests_in([contexts.get(line, [])]) or _tests_in(contexts.values())
        tests &= self._seconds.keys()
        order = sorted(tests, key=lambda t: (f"test_{path.stem}" not in t, self._seconds[t], t))
        chosen, total = [], 0.0
        for test in order:
            total += self._seconds[test]
            if total <= limit:
                chosen.append(test)
        return chosen


def _collected() -> set[str]:
    """The tests that pytest finds by their names."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-m", "not slow", "tests"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {line for line in ended.stdout.splitlines() if "::" in line}


def _tests_in(lines: Iterable[list[str]]) -> set[str]:
    return {context.split("|")[0] for line in lines for context in line if "::" in context}


def run_tests(tests: list[str], source: Path, limit: float) -> None:
    """End this process with the code of pytest, run on a copy of the source."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit),) * 2)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(source.parent / "hypothesis")
    sys.path[:0] = [str(source), str(ROOT / "studies"), str(ROOT / "tests")]
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    options = ["-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist"]
    os._exit(int(pytest.main([*options, "-m", "not slow", f"--rootdir={ROOT}", *tests])))


def outcome(mutant: Mutant, tests: list[str], copy: Path, limit: float) -> str:
    """'killed', 'killed by time', 'survived', or 'not run' if no test runs the line."""
    path, _, start, stop, _, new = mutant
    if not tests:
        return "not run"
    place = copy / path.relative_to(ROOT / "src")
    before = place.read_bytes()
    place.write_bytes(before[:start] + new.encode() + before[stop:])
    child = get_context("fork").Process(target=run_tests, args=(tests, copy, limit))
    child.start()
    child.join(10 * limit)  # the limit is of the processor, which others may use too
    child.kill()
    place.write_bytes(before)
    code = child.exitcode
    if code is None or code < 0:
        return "killed by time"
    return {0: "survived", 1: "killed", 2: "killed", 4: "killed"}.get(code, "not run")


def main() -> None:
    """Draw changes, run the tests, and write what became of each change."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for name, default in {"count": 300, "seed": 0, "part": 0, "parts": 1, "seconds": 20}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--folders", nargs="+", default=FOLDERS)
    asked = parser.parse_args()
    mutants = draw(asked.count, asked.seed, asked.folders)
    tests, counts = Tests(ROOT / ".coverage", ROOT / ".coverage-times.xml"), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(ROOT / "src", Path(folder, "src")))
        # By hash: a change of one character within the same second has the same date.
        compileall.compile_dir(copy, quiet=1, force=True, invalidation_mode=Mode.CHECKED_HASH)
        unchanged = (*mutants[0][:2], 0, 0, "", "")
        for mutant in [unchanged, *mutants[asked.part :: asked.parts]]:
            path, line, _, _, old, new = mutant
            chosen = tests.of(path, line, asked.seconds)
            found = outcome(mutant, chosen, copy, 4 * asked.seconds + 30)
            print(f"{found}: {path.relative_to(ROOT)}:{line}: {old} -> {new}", flush=True)
            if old == new and found != "survived":
                sys.exit("The tests fail on the source as it is.")
            counts[found] += old != new
    killed = counts["killed"] + counts["killed by time"]
    print(f"{killed} of {counts.total()} killed ({killed / counts.total():.0%}): {dict(counts)}")


if __name__ == "__main__":
    main()
