"""Write the README's numbers and outputs from result files, or check that they are up to date.

python tools/readme_numbers.py            rewrite what stands between the marks, and the bar chart
python tools/readme_numbers.py --check    exit with 1 if that would change the text

A part of the README between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` is made by the
function of that name here.
"""

import contextlib
import io
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from figures.drawing import common_look  # noqa: E402
from figures.held_out import draw_gains, gain_sentence, held_out_scores, losses_sentence  # noqa: E402
from figures.kept_results import Results  # noqa: E402

README = ROOT / "README.md"
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
        textwrap.fill(line, 100, break_on_hyphens=False) if len(line) > 100 else line
        for line in printed.getvalue().splitlines()
    ]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def gain() -> str:
    """One sentence: the gain over the baselines on the held-out tables."""
    return gain_sentence(Results()) + "\n"


def held_out() -> str:
    """The losses and the stability."""
    return losses_sentence(Results()) + "\n"


def paper() -> str:
    """What of the paper held in our repetition of its study."""
    verdicts = [row["verdict"] for row in Results().study("claims")]
    holds, fails = verdicts.count("holds"), verdicts.count("does not hold here")
    return (
        f"We repeated its study: of its {len(verdicts)} claims {holds} hold here, {fails} do not, "
        f"and {len(verdicts) - holds - fails} cannot be tested. The objective never rises and most "
        "of the gain over all features is confirmed; SPCAFS is not first on every data set.\n"
    )


PARTS: dict[str, Callable[[], str]] = {
    "example": example,
    "gain": gain,
    "held-out": held_out,
    "paper": paper,
}


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
    with common_look():
        figure = draw_gains(held_out_scores(Results()))
        figure.savefig(ROOT / "docs" / "images" / "held-out.png", dpi=130)


if __name__ == "__main__":
    main()
