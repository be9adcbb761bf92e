"""Count turns of phrase that read as if translated, in pages, messages and docstrings.

python tools/plain_words.py            counts by kind and by folder
python tools/plain_words.py --list     every place, to rewrite it

A count is a hint and no verdict: some of these words are right where they stand.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATTERNS = {
    "is no / are no": r"\b(?:is|are) no (?!longer)\w",
    "so many, as many as": r"\b(?:so (?:many|much|few)|as many as)\b",
    "things that speak": r"\b(?:told|tells|says|said|asks|asked|vouch\w*|mind|knows)\b",
    "fragments": r'^\s*(?:r?"""|# )(?:Of|Whether|What|Which|Where)\b',
    "of it, of which": r"\b(?:those|that) of (?:it|them|which|the others)\b|\bof which\b",
    "private words": r"\b(?:front door|readings? of the values|floors?|the board)\b",
    "passive verdicts": r"\b(?:is|are) (?:refused|judged|set aside)\b",
    "glue": r"\b(?:in the mean|so that|beside)\b",
}
PLACES = ("README.md", "docs", "src", "studies/keepers_studies", "examples")


def lines() -> Iterator[tuple[Path, int, str]]:
    """Every line of text and code that people read; decisions are history."""
    for place in PLACES:
        path = ROOT / place
        files = [path] if path.is_file() else sorted([*path.rglob("*.md"), *path.rglob("*.py")])
        for file in files:
            parts = file.relative_to(ROOT).parts
            if not {"decisions", "_build", "_generated", "reference"} & set(parts):
                for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                    yield file.relative_to(ROOT), number, line


def main() -> None:
    """Print the counts, or the places."""
    counts: Counter[tuple[str, str]] = Counter()
    for file, number, line in lines():
        for kind, pattern in PATTERNS.items():
            found = len(re.findall(pattern, line, re.IGNORECASE))
            counts[kind, file.parts[0]] += found
            if found and "--list" in sys.argv[1:]:
                print(f"{file}:{number}: {kind}: {line.strip()}")
    folders = sorted({folder for _, folder in counts})
    print(f"{'':<22}" + "".join(f"{folder:>11}" for folder in [*folders, "all"]))
    for kind in PATTERNS:
        row = [counts[kind, folder] for folder in folders]
        print(f"{kind:<22}" + "".join(f"{count:>11}" for count in [*row, sum(row)]))


if __name__ == "__main__":
    main()
