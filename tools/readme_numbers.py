"""Write the README's numbers and outputs from result files, or check that they are up to date.

python tools/readme_numbers.py            rewrite what stands between the marks, and the bar chart
python tools/readme_numbers.py --check    exit with 1 if that would change the text

A part of the README between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` is made by the
function of that name here.
"""

import contextlib
import io
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from figures.drawing import common_look  # noqa: E402
from figures.held_out import draw_gains, gain_sentence, held_out_scores, losses_sentence  # noqa: E402
from figures.kept_results import Results  # noqa: E402

README = ROOT / "README.md"
TIME = re.compile(r"Found in [\d.]+ s")
BASELINES = ("All features", "Variance", "Random")
WIDTH = 90  # characters of printed text that GitHub shows without scrolling
LINE = 120
PART = re.compile(r"(<!-- begin (?P<name>[\w-]+) -->\n).*?(<!-- end (?P=name) -->)", re.DOTALL)


def example() -> str:
    """What the first example prints, in lines that fit."""
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    if code is None:
        raise SystemExit("README.md has no example.")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code[1], {})
    lines = [
        textwrap.fill(line, WIDTH, break_on_hyphens=False) if len(line) > WIDTH else line
        for line in printed.getvalue().splitlines()
    ]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def command() -> str:
    """What the command prints to a terminal; the time is kept, as it differs from run to run."""
    before = README.read_text(encoding="utf-8")
    found = re.search(r"```\nkeepers (select .*?)\n```", before)
    if found is None:
        raise SystemExit("README.md has no command.")
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, "-m", "keepers", *found[1].split()]
        ran = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=True)
    took = re.search(TIME, before)
    answer = re.sub(TIME, took[0], ran.stderr) if took else ran.stderr
    lines = [
        textwrap.fill(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        for line in answer.splitlines()
    ]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def gain() -> str:
    """One sentence: the gain over the baselines on the held-out tables."""
    return wrapped(gain_sentence(Results()))


def held_out() -> str:
    """The losses, the stability, and the methods that come next on the leaderboard."""
    rows = [r for r in Results().leaderboard() if (r["tuning"], r["kind"]) == ("default", "all")]
    methods = [row for row in rows if row["method"] not in BASELINES]
    given = [row["method"] for row in methods[1:4] if row["told"]]
    given[-2:] = [" and ".join(given[-2:])]
    return wrapped(
        f"{losses_sentence(Results())} [The leaderboard](docs/leaderboard.md) compares "
        f"{len(methods)} methods on {rows[0]['sets_of_kind']} tables. {methods[0]['method']}, "
        f"developed on half of them, is first; {', '.join(given)}, given the true number of "
        "classes, come next."
    )


def paper() -> str:
    """What of the paper held in our repetition of its study."""
    verdicts = [row["verdict"] for row in Results().study("claims")]
    holds, fails = verdicts.count("holds"), verdicts.count("does not hold here")
    return wrapped(
        f"We repeated its study: {holds} of its {len(verdicts)} claims hold here, {fails} do not, "
        f"{len(verdicts) - holds - fails} cannot be tested. The objective never rises and most "
        "of the gain over all features is confirmed; SPCAFS is not first on every data set. "
        "[All claims](docs/evaluation.md)."
    )


PARTS: dict[str, Callable[[], str]] = {
    "example": example,
    "command": command,
    "gain": gain,
    "held-out": held_out,
    "paper": paper,
}


def wrapped(text: str) -> str:
    """Return a paragraph in lines of the README's length."""
    return textwrap.fill(text, LINE, break_on_hyphens=False, break_long_words=False) + "\n"


def with_numbers(text: str) -> str:
    """The text with every marked part made anew."""
    return PART.sub(lambda found: found[1] + PARTS[found["name"]]() + found[3], text)


def main() -> None:
    """Rewrite or check the README."""
    before = README.read_text(encoding="utf-8")
    after = with_numbers(before)
    if "--check" in sys.argv[1:]:
        if before != after:
            raise SystemExit("README.md is not up to date: run `make results`.")
        return
    README.write_text(after, encoding="utf-8")
    for name, dark in (("held-out.png", False), ("held-out-dark.png", True)):
        with common_look(dark):
            figure = draw_gains(held_out_scores(Results()))
            figure.savefig(ROOT / "docs" / "images" / name, dpi=130)


if __name__ == "__main__":
    main()
