"""Change the source in one place at a time, and count the changes that the fast tests notice.

A comparison is turned round, + is -, * is /, 0 is 1, `and` is `or`, a condition is negated, a `not`
dropped, the bound of a slice moved by one. Places are drawn with a seed, in proportion to the lines
of a file, not in messages. Tests that run the line are known from a run with contexts:

    python -m pytest -n 2 -m "not slow" --cov --cov-context=test --cov-report=
    python tools/mutants.py --count 300 --parts 2 --part 0 > part0.txt
"""

import argparse
import ast
import compileall
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from py_compile import PycInvalidationMode as Mode

import pytest
from coverage import CoverageData

for package in ("pandas", "polars", "scipy.stats", "sklearn.utils.estimator_checks"):
    import_module(package)  # once, not in every child
ROOT = Path(__file__).resolve().parents[1]
SWAPS: dict[type, type] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Eq: ast.NotEq, ast.Is: ast.IsNot}
SWAPS |= {ast.In: ast.NotIn}  # codespell:ignore notin
SWAPS |= {ast.Add: ast.Sub, ast.Mult: ast.Div, ast.And: ast.Or}
SWAPS |= {new: old for old, new in SWAPS.items()}
SAYING = {"warn_caller", "warn", "ParameterError", "DataError", "__repr__", "__str__"}
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
    """A node and what is below it, without messages and annotations."""
    called = node.func if isinstance(node, ast.Call) else node
    names = {getattr(called, part, "") for part in ("attr", "id", "name")}
    if isinstance(node, ast.Raise | ast.JoinedStr) or names & SAYING:
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


def draw(count: int, seed: int) -> list[Mutant]:
    """Different changes, more of them where there are more lines."""
    folders = (ROOT / "src/keepers" / name for name in ("linalg", "methods", "proofs", "prepare"))
    paths = sorted(path for folder in folders for path in folder.rglob("*.py"))
    every = {path: found for path in paths if (found := list(mutants_of(path)))}
    lines = [path.read_text().count("\n") for path in every]
    rng, drawn = random.Random(seed), set[Mutant]()
    while len(drawn) < count:
        drawn.add(rng.choice(every[rng.choices(list(every), lines)[0]]))
    return rng.sample(sorted(drawn), count)


def tests_of(path: Path, line: int, data: CoverageData) -> list[list[str]]:
    """Tests that run the line: thirty in the module's own file, then fifteen others."""
    measured = (f for f in data.measured_files() if f.endswith(str(path.relative_to(ROOT))))
    contexts = data.contexts_by_lineno(next(measured)).get(line, [])
    tests = sorted({context.split("|")[0] for context in contexts if "::" in context})
    if not tests:  # a constant of the module, which no test runs but many use
        tests = [str(found) for found in (ROOT / "tests").rglob(f"test_{path.stem}*.py")]
    random.Random(0).shuffle(tests)
    own = [test for test in tests if f"test_{path.stem}" in test][:30]
    others = [test for test in tests if f"test_{path.stem}" not in test][:15]
    return [stage for stage in (own, others) if stage]


def run_tests(tests: list[str], source: Path) -> None:
    """End this process with the code of pytest, run on a copy of the source."""
    sys.path[:0] = [str(source), str(ROOT / "studies"), str(ROOT / "tests")]
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    os._exit(int(pytest.main(["-x", "-q", "-p", "no:randomly", "-m", "not slow", *tests])))


def outcome(mutant: Mutant, stages: list[list[str]], copy: Path) -> str:
    """'killed', 'killed by time', 'survived', or 'not run' where no test runs the line."""
    path, _, start, stop, _, new = mutant
    place = copy / path.relative_to(ROOT / "src")
    before = place.read_bytes()
    place.write_bytes(before[:start] + new.encode() + before[stop:])
    code: int | None = 0 if stages else 5
    for tests in stages:
        if code == 0:
            child = get_context("fork").Process(target=run_tests, args=(tests, copy))
            child.start()
            child.join(120)
            code = child.exitcode
            child.kill()
    place.write_bytes(before)
    return {0: "survived", 1: "killed", 2: "killed", None: "killed by time"}.get(code, "not run")


def main() -> None:
    """Draw changes, run the tests, and write what became of each change."""
    parser = argparse.ArgumentParser()
    for name, default in {"count": 300, "seed": 0, "part": 0, "parts": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    mutants, data = draw(asked.count, asked.seed), CoverageData(".coverage")
    data.read()
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(ROOT / "src", Path(folder, "src"))
        # By hash: a change of one character within the same second has the same date.
        compileall.compile_dir(copy, quiet=1, force=True, invalidation_mode=Mode.CHECKED_HASH)
        unchanged = (mutants[0][0], mutants[0][1], 0, 0, "", "")  # which must survive
        for mutant in [unchanged, *mutants[asked.part :: asked.parts]]:
            path, line, _, _, old, new = mutant
            found = outcome(mutant, tests_of(path, line, data), copy)
            print(f"{found}: {path.relative_to(ROOT)}:{line}: {old} -> {new}", flush=True)


if __name__ == "__main__":
    main()
