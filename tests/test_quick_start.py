"""The reader's test: pages that are followed line by line in an empty folder."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parent.parent / "docs"
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

# Reads blocks as lines of JSON; runs each statement by statement, as one types them at the prompt;
# answers with what was printed. What a notebook would draw is drawn.
SAID = "ignore:Only 11 of the 20 kept features"  # the page explains it
READER = """
import ast, contextlib, io, json, sys, traceback

def show(value):
    if value is not None:
        html = getattr(value, "_repr_html_", None)
        print(repr(value) if html is None else f"<{len(html())} characters of HTML>")

sys.displayhook = show
answers, names = sys.stdout, {"__name__": "__main__"}
for line in sys.stdin:
    printed, error = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        try:
            for statement in ast.parse(json.loads(line)).body:
                code = ast.Interactive([statement])
                exec(compile(code, "<the page>", "single"), names)
        except Exception:
            error = traceback.format_exc()
    answers.write(json.dumps({"printed": printed.getvalue(), "error": error}) + "\\n")
    answers.flush()
"""


@dataclass(frozen=True)
class Step:
    """A block to run, and what the page says it prints (None: the page does not say)."""

    language: str
    source: str
    shown: str | None
    line: int


def steps_of(page: str) -> list[Step]:
    """The blocks in order; a block of text right after one is what it prints."""
    blocks = list(FENCED.finditer(page))
    steps = []
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if block[1] == "text":
            continue
        follows = after is not None and not page[block.end() : after.start()].strip()
        shown = after[2] if after is not None and follows and after[1] == "text" else None
        steps.append(Step(block[1], block[2], shown, page[: block.start()].count("\n") + 2))
    return steps


def trimmed(text: str) -> list[str]:
    """Lines without blanks at the end; how long something took is never the same."""
    return [
        re.sub(r"\bin \d+\.\d s\b", "in ... s", line.rstrip()) for line in text.strip().splitlines()
    ]


@pytest.fixture
def reader(tmp_path):
    """One Python process for all Python blocks, in the folder in which the commands run too."""
    environment = {**os.environ, **ONE_THREAD, "COLUMNS": "100", "MPLBACKEND": "Agg"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-W", SAID, "-c", READER],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as python:

        def run(step: Step) -> tuple[str, ...]:
            """What was printed; of a command also what it said on the error stream."""
            if step.language == "python":
                python.stdin.write(json.dumps(step.source) + "\n")
                python.stdin.flush()
                answer = json.loads(python.stdout.readline())
                assert answer["error"] is None, f"line {step.line}: {answer['error']}"
                return (answer["printed"],)
            done = subprocess.run(
                ["bash", "-e", "-c", step.source],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert done.returncode == 0, f"line {step.line}: {done.stderr}"
            return done.stdout, done.stderr

        yield run
        python.stdin.close()


def follow(page: str, reader) -> None:
    steps = steps_of((DOCS / page).read_text(encoding="utf-8"))
    assert {step.language for step in steps} - {""} == {"python", "bash"}
    for step in steps:
        if step.language:  # others are commands for the reader's own table
            printed = reader(step)
            if step.shown is not None:
                streams = [trimmed(stream) for stream in printed]
                assert trimmed(step.shown) in streams, f"docs/{page}, line {step.line}: {printed}"


def test_quick_start_works_line_by_line_in_an_empty_folder(reader, tmp_path):
    follow("quick-start.md", reader)
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert len((tmp_path / "again-kept.csv").read_text().splitlines()) == 6
    assert (tmp_path / "samples.png").stat().st_size > 10_000  # the page shows it


def test_prepare_your_table_works_line_by_line_in_an_empty_folder(reader, tmp_path):
    follow("prepare-your-table.md", reader)
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_the_cheat_sheet_works_line_by_line_beside_a_table(reader, tmp_path):
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=90)
    names = ["age", "batch", "mri", "red", "green", "blue", *(f"q{i}" for i in range(8))]
    values = (rng.normal(size=(90, 14)) + np.outer(group, rng.normal(size=14))).round(3)
    lines = [[f"s{row}", *map(str, numbers)] for row, numbers in enumerate(values)]
    classes = [[*line, f"kind{kind}"] for line, kind in zip(lines, group, strict=True)]
    write_csv(tmp_path / "clean.csv", [*names, "group"], classes)
    write_csv(tmp_path / "part-1.csv", names, lines[:45])
    write_csv(tmp_path / "part-2.csv", names, lines[45:])
    write_csv(tmp_path / "later.csv", names, lines[:5])
    lines[3][2] = lines[7][5] = ""
    write_csv(tmp_path / "table.csv", names, lines)
    (tmp_path / "list.txt").write_text("age\nmri\n")
    follow("cheat-sheet.md", reader)
    assert len((tmp_path / "kept.csv").read_text().splitlines()) == 91
    assert len((tmp_path / "later-kept.csv").read_text().splitlines()) == 6
    assert (tmp_path / "page.html").stat().st_size > 10_000


def write_csv(path, names, lines):
    path.write_text("\n".join(",".join(line) for line in [["name", *names], *lines]) + "\n")
