"""Which files a command runs through, how many calls lead to the mathematics, and what it repeats.

python tools/walk.py                               the standard command, on a table made for it
python tools/walk.py --markdown                    the table of docs/architecture.md
python tools/walk.py select table.csv -k 20        another command, run as it is given

The command runs in this process. A file counts if one of its functions is called; what merely
happens at import (module and class bodies, decorators, registries) does not count, nor does code
that a library generates. Child processes are not seen.
"""

import argparse
import contextlib
import importlib
import inspect
import io
import os
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import keepers

ROOT = Path(__file__).parent.parent
PACKAGE = Path(keepers.__file__).parent
N_SAMPLES, N_FEATURES, K = 100, 2000, 50
METHOD = ("--method", "spcafs")
COMMAND = ("select", "genes.csv", "-k", str(K), *METHOD, "--out", "kept.csv", "--report", "r.html")
SOLVERS = ("keepers.methods.spcafs:solve_block", "keepers.methods.spcafs:solve_dense")
"""The mathematics: the functions that solve, of which the standard command calls one."""


@dataclass(frozen=True)
class Question:
    """Something that should be computed once a command.

    ``functions`` are written "module:function" or "module:Class.method". A name that does not
    exist is an error, so the list cannot go stale.
    """

    label: str
    functions: tuple[str, ...]
    counts: Callable[[dict[str, Any]], Any]
    """From the arguments of a call: None if it does not count, else what it was about. Calls
    about different things are counted apart, and the largest of the counts is reported."""


def of_the_whole_table(arguments: dict[str, Any]) -> str | None:
    """Calls that get all samples and all features."""
    for value in arguments.values():
        for candidate in (value, getattr(value, "X", None)):
            shape = getattr(candidate, "shape", None)
            if shape is not None and tuple(shape) == (N_SAMPLES, N_FEATURES):
                return "the whole table"
    return None


def every_call(arguments: dict[str, Any]) -> str:
    """Every call, whatever it gets."""
    return "all calls"


def of_one_path(arguments: dict[str, Any]) -> str:
    """Calls about one and the same file."""
    return os.path.abspath(next(iter(arguments.values())))


QUESTIONS = (
    Question(
        "column moments of the whole table",
        (
            "keepers.linalg.scatter:column_moments",
            "keepers.prepare.kinds:TableFacts._add_dense",
        ),
        of_the_whole_table,
    ),
    Question(
        "correlations of the kept features",
        ("keepers.reports.selection:correlation_matrix",),
        every_call,
    ),
    Question(
        "finiteness of the values",
        (
            "keepers.prepare.kinds:TableFacts._add_dense",
            "keepers.reports.selection:as_matrix",
            "sklearn.utils.validation:_assert_all_finite",
        ),
        of_the_whole_table,
    ),
    Question("as_scatter", ("keepers.linalg.scatter:as_scatter",), every_call),
    Question(
        "existence of one target",
        ("keepers.tables.atomic:_target_of",),
        of_one_path,
    ),
)


@dataclass
class Walk:
    """What was called: files in the order of their first call, calls to a solver, questions."""

    package: Path
    questions: Sequence[Question] = ()
    files: list[str] = field(default_factory=list)
    frames: list[str] = field(default_factory=list)
    """Functions of the package that led to the first call of a solver, outermost first."""
    _solvers: set[CodeType] = field(default_factory=lambda: {code_of(name) for name in SOLVERS})
    _seen: set[str] = field(default_factory=set)
    _asked: dict[CodeType, list[Question]] = field(default_factory=dict)
    _counters: dict[str, Counter[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for question in self.questions:
            self._counters[question.label] = Counter()
            for name in question.functions:
                self._asked.setdefault(code_of(name), []).append(question)

    @property
    def times(self) -> dict[str, int]:
        """How often each question was asked."""
        return {
            label: max(counter.values(), default=0) for label, counter in self._counters.items()
        }

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Record every call that is made in the block, by any thread that starts in it."""
        before = sys.getprofile()
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(before)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code in self._solvers and not self.frames:
            self.frames = [*self._callers(frame)][::-1]
        for question in self._asked.get(code, ()):
            about = question.counts(frame.f_locals)
            if about is not None:
                self._counters[question.label][about] += 1
        if code.co_filename in self._seen or not _is_function(code):
            return
        if not code.co_filename.startswith(f"{self.package}{os.sep}"):
            self._seen.add(code.co_filename)
        elif not self._is_importing(frame.f_back):
            self._seen.add(code.co_filename)
            self.files.append(Path(code.co_filename).relative_to(self.package).as_posix())

    def _callers(self, frame: FrameType) -> Iterator[str]:
        """The functions of the package above a frame, the nearest first."""
        while (frame := frame.f_back) is not None:
            code = frame.f_code
            if code.co_filename.startswith(f"{self.package}{os.sep}") and _is_function(code):
                yield f"{Path(code.co_filename).stem}.{code.co_name}"

    def _is_importing(self, frame: FrameType | None) -> bool:
        """Whether a module of the package is being executed for the first time."""
        while frame is not None:
            code = frame.f_code
            if code.co_name == "<module>" and code.co_filename.startswith(str(self.package)):
                return True
            frame = frame.f_back
        return False


def _is_function(code: CodeType) -> bool:
    """Not the body of a module or of a class."""
    return bool(code.co_flags & inspect.CO_OPTIMIZED)


def code_of(name: str) -> CodeType:
    """The code of "module:function" or "module:Class.method"."""
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise SystemExit(
            f"{name} does not exist any more ({error}). Correct QUESTIONS in tools/walk.py: name "
            "the function that computes this now, or drop the line."
        ) from error
    found = found.fget if isinstance(found, property) else inspect.unwrap(found)
    return found.__code__


def write_gene_table(path: Path) -> None:
    """Skewed positive values with a few groups of samples, as in an expression table."""
    rng = np.random.default_rng(0)
    groups = rng.normal(size=(4, N_FEATURES)) * (rng.random(N_FEATURES) < 0.1)
    noise = 0.3 * rng.normal(size=(N_SAMPLES, N_FEATURES))
    values = np.exp(groups[rng.integers(4, size=N_SAMPLES)] + noise)
    names = ",".join(f"gene{j}" for j in range(N_FEATURES))
    np.savetxt(path, values, fmt="%.5g", delimiter=",", header=names, comments="")


def walk_command(arguments: Sequence[str], questions: Sequence[Question] = QUESTIONS) -> Walk:
    """Run ``keepers`` with these arguments, here and quietly; raise if it fails."""
    walk = Walk(PACKAGE, questions)
    output, messages = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    given = sys.argv
    sys.argv = ["keepers", *arguments]
    try:
        with (
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(messages),
            walk.recording(),
        ):
            keepers_main()
    except SystemExit as end:
        if end.code:
            messages.seek(0)
            command = " ".join(["keepers", *arguments])
            raise RuntimeError(f"{command} ended with {end.code}: {messages.read()}") from end
    finally:
        sys.argv = given
    return walk


def keepers_main() -> None:
    """The entry point of the command, as pyproject.toml declares it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    module, _, function = project["project"]["scripts"]["keepers"].partition(":")
    getattr(importlib.import_module(module), function)()


def walk_standard_command() -> Walk:
    """The standard command, in a temporary folder."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.chdir(folder)
            write_gene_table(Path("genes.csv"))
            return walk_command(COMMAND)
        finally:
            os.chdir(before)


def steps_of(files: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Runs of files in the same package, in the order of the walk."""
    steps: list[tuple[str, list[str]]] = []
    for file in files:
        folder, _, name = file.rpartition("/")
        if not steps or steps[-1][0] != folder:
            steps.append((folder, []))
        steps[-1][1].append(name)
    return steps


def as_text(walk: Walk) -> str:
    """For a terminal."""
    lines = [f"{len(walk.files)} files"]
    lines += [f"{number:4d}  {file}" for number, file in enumerate(walk.files, 1)]
    lines += ["", f"{len(walk.frames)} frames above the solver: {', '.join(walk.frames)}"]
    lines += ["", *(f"{times:4d} x  {label}" for label, times in walk.times.items())]
    return "\n".join(lines)


def as_markdown(walk: Walk) -> str:
    """Two tables for docs/architecture.md, and between them the calls."""
    lines = ["| step | package | files |", "|---|---|---|"]
    for number, (folder, names) in enumerate(steps_of(walk.files), 1):
        package = f"`{folder}`" if folder else "`keepers`"
        lines.append(f"| {number} | {package} | {', '.join(f'`{name}`' for name in names)} |")
    calls = ", ".join(f"`{name}`" for name in walk.frames)
    lines += ["", f"{len(walk.files)} files. {len(walk.frames)} calls lead to the solver: {calls}."]
    lines += ["", "| computed | times |", "|---|---|"]
    lines += [f"| {label} | {times} |" for label, times in walk.times.items()]
    return "\n".join(lines)


def main() -> None:
    """Print the walk of the standard command, or of the one that is given."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--markdown", action="store_true", help="print tables for the docs")
    options, arguments = parser.parse_known_args()
    walk = walk_command(arguments) if arguments else walk_standard_command()
    print(as_markdown(walk) if options.markdown else as_text(walk))


if __name__ == "__main__":
    main()
