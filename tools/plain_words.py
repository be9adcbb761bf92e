"""Count turns of phrase that read as if translated, in pages, messages and docstrings.

python tools/plain_words.py            counts by kind and by folder
python tools/plain_words.py --list     every place, to rewrite it

Of a program, only comments, docstrings and messages count, not the names of variables. A count is a
hint: some of these words are right where they stand.
"""

import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATTERNS = {
    "is no / are no": r"(?<!\bthere )\b(?:is|are) no (?!longer|more|better|other)\w",
    "so many, as many as": r"\b(?:so (?:many|much|few)|as many as)\b",
    "things that speak": r"\b(?:told|tells|says|said|asks|asked|vouch\w*|mind|knows)\b",
    "fragments": r'^\s*(?:r?"""(?:Of|Wh(?:ether|at|ich|ere))|(?-i:# (?:Of|Wh(?:ether|at|ich))))\b',
    "of it, of which": r"\b(?:those|that) of (?:it|them|which|the others)\b|\bof which\b",
    "private words": r"\b(?:front door|readings? of the values|floors?|the board|stand-ins?)\b",
    "passive verdicts": r"\b(?:is|are) (?:refused|judged|set aside)\b",
    "glue": r"\b(?:in the mean|so that|beside)\b",
    "a row a sample": r"\b(?:row|column|dict|name) a (?:row|column|sample|feature|table|line)\b",
    "size, relatively": r", in size\b|, relatively\b",
}
# Strings with an f in front are a kind of their own from Python 3.12 on.
TEXT = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
MADE_OR_HISTORY = {"auto_gallery", "auto_stories", "decisions", "_build", "_generated", "reference"}
PLACES = ("README.md", "docs", "src", "studies/keepers_studies", "examples")


def lines() -> Iterator[tuple[Path, int, str]]:
    """Every line that people read; decisions are history."""
    for place in PLACES:
        path = ROOT / place
        files = [path] if path.is_file() else sorted([*path.rglob("*.md"), *path.rglob("*.py")])
        for file in files:
            parts = file.relative_to(ROOT).parts
            if not MADE_OR_HISTORY & set(parts):
                for number, line in prose(file):
                    yield file.relative_to(ROOT), number, line


def prose(file: Path) -> Iterator[tuple[int, str]]:
    """Lines of a page, or of the comments and strings of a program, with their numbers."""
    if file.suffix == ".md":
        yield from enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        return
    with tokenize.open(file) as stream:
        for token in tokenize.generate_tokens(stream.readline):
            if token.type in TEXT and " " in token.string:
                yield from enumerate(token.string.splitlines(), token.start[0])


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
