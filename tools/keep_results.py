"""Keep the results of a study in the repository, and write the README's tables from them.

python tools/keep_results.py FOLDER NAME    FOLDER of a study; NAME: paper or suite

Copies the tables, the page and the packed results, from which the next run starts
(`keepers-studies reproduce NAME --earlier studies/results/NAME`), to studies/results/NAME. Files
that this run did not write are removed there; the store itself and most figures stay behind.
"""

import argparse
import shutil
from pathlib import Path

from readme_numbers import main as write_readme

RESULTS = Path(__file__).parents[1] / "studies" / "results"
TABLES = ("claims", "default", "leaderboard", "ranks", "readings", "reduced", "sets")
TABLES += ("steps", "table1", "table2", "timing", "tuned")
FILES = [f"{name}.csv" for name in TABLES]
FILES += ["environment.json", "index.html", "results.jsonl.xz", "results.parquet"]
FIGURES = {"suite": ("critical-differences.svg",), "paper": ()}
BESIDE = {"suite": (), "paper": ("figures/acc-tuned.png",)}
"""Files that are kept without their folder."""


def keep(folder: Path, name: str) -> Path:
    """Copy what is kept of a run; returns where to."""
    kept = RESULTS / name
    if kept.is_dir():
        shutil.rmtree(kept)
    kept.mkdir(parents=True)
    for file in (*FILES, *BESIDE[name]):
        if (folder / file).is_file():
            shutil.copyfile(folder / file, kept / Path(file).name)
    for file in FIGURES[name]:
        (kept / "figures").mkdir(exist_ok=True)
        shutil.copyfile(folder / "figures" / file, kept / "figures" / file)
    if (folder / "sets").is_dir():
        shutil.copytree(folder / "sets", kept / "sets")
    return kept


def main() -> None:
    """Keep a run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("name", choices=sorted(FIGURES))
    chosen = parser.parse_args()
    if not (chosen.folder / "index.html").is_file():
        parser.error(f"{chosen.folder} has no report; run the study to its end first")
    print(f"kept in {keep(chosen.folder, chosen.name)}")
    write_readme()


if __name__ == "__main__":
    main()
