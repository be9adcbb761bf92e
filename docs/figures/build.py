"""Draw every figure and write every table that the pages include.

`build_all(docs)` fills docs/_generated/. Sphinx calls it before it reads the pages; by hand it is
``python -m figures.build`` in docs/.
"""

import os
import sys
import time
from pathlib import Path

from figures import (
    architecture,
    claims,
    held_out,
    landing,
    leaderboard,
    method,
    proofs,
    redundancy,
    scaling,
    speed,
    tables,
)
from figures.drawing import common_look

__all__ = ["build_all"]

PARTS = (
    tables,
    claims,
    held_out,
    architecture,
    method,
    proofs,
    scaling,
    speed,
    redundancy,
    landing,
    leaderboard,
)


def build_all(docs_dir: str | os.PathLike[str]) -> list[Path]:
    """Everything under ``docs_dir``/_generated, written anew where it changed."""
    folder = Path(docs_dir) / "_generated"
    with common_look():
        return [path for part in PARTS for path in part.write(folder)]


if __name__ == "__main__":
    for part in PARTS:
        begun = time.perf_counter()
        with common_look():
            written = part.write(Path(__file__).resolve().parents[1] / "_generated")
        names = ", ".join(path.name for path in written)
        sys.stdout.write(f"{time.perf_counter() - begun:6.1f} s  {names}\n")
