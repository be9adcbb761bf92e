"""Rebuild every picture in docs/images that the README and the pages show.

python tools/make_pictures.py               all of them
python tools/make_pictures.py demo path     only these

The report is photographed in a browser (chromium and `pip install playwright`); the others need
`pip install -e ".[dev]"` only.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import matplotlib

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"


def picture_demo() -> None:
    """What `make demo` draws: run as a user would, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        _run("examples/demo.py", cwd=Path(folder))
        shutil.copyfile(Path(folder) / "demo-output" / "srbct.png", IMAGES / "demo.png")


def picture_path() -> None:
    """The call that docs/path.md shows."""
    import pandas as pd

    from keepers import datasets, spcafs_path

    matplotlib.use("Agg")
    X, names, _ = datasets.load("srbct")
    upper, _ = spcafs_path(pd.DataFrame(X, columns=names), n_components=3).plot()
    upper.figure.savefig(IMAGES / "path.png", dpi=110)


def picture_samples() -> None:
    """What docs/quick-start.md draws: its Python, as far as the line that saves the picture."""
    page = (ROOT / "docs" / "quick-start.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    last = next(number for number, block in enumerate(blocks) if "samples.png" in block)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "page.py"
        script.write_text("\n".join(blocks[: last + 1]), encoding="utf-8")
        _run(str(script), cwd=Path(folder))
        shutil.copyfile(Path(folder) / "samples.png", IMAGES / "samples.png")


def picture_report() -> None:
    """The top of the page that a selection gives, in a browser."""
    _run("tools/picture_report.py", cwd=ROOT)


PICTURES: dict[str, Callable[[], None]] = {
    "demo": picture_demo,
    "path": picture_path,
    "report": picture_report,
    "samples": picture_samples,
}


def _run(script: str, cwd: Path) -> None:
    subprocess.run([sys.executable, ROOT / script], cwd=cwd, check=True)


def main() -> None:
    """Rebuild the pictures named, or all."""
    parser = argparse.ArgumentParser(description="Rebuild the pictures in docs/images.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(PICTURES)}")
    names = parser.parse_args().names or list(PICTURES)
    unknown = sorted(set(names) - set(PICTURES))
    if unknown:
        parser.error(f"there is no picture {', '.join(unknown)}; known are {', '.join(PICTURES)}")
    for name in names:
        PICTURES[name]()
        print(f"docs/images/{name}.png")


if __name__ == "__main__":
    main()
