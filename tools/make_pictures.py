"""Rebuild the pictures in docs/images that the README and the pages show, except held-out*.png.

python tools/make_pictures.py               all of them
python tools/make_pictures.py demo path     only these

The report needs a browser (chromium and `pip install playwright`); the others only
`pip install -e ".[dev]"`.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from figures.drawing import DARK  # noqa: E402

IMAGES = ROOT / "docs" / "images"


def picture_demo() -> None:
    """The picture of `make demo`, in light and dark."""
    for name, style in (("demo.png", {}), ("demo-dark.png", DARK)):
        with tempfile.TemporaryDirectory() as folder:
            lines = [f'{key}: "{colour}"' for key, colour in style.items()]
            (Path(folder) / "matplotlibrc").write_text("\n".join(lines), encoding="utf-8")
            _run("examples/demo.py", cwd=Path(folder))
            shutil.copyfile(Path(folder) / "demo-output" / "srbct.png", IMAGES / name)


def picture_samples() -> None:
    """The picture of docs/quick-start.md: its Python up to the line that saves the picture."""
    page = (ROOT / "docs" / "quick-start.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    last = next(number for number, block in enumerate(blocks) if "samples.png" in block)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "page.py"
        script.write_text("\n".join(blocks[: last + 1]), encoding="utf-8")
        _run(str(script), cwd=Path(folder))
        shutil.copyfile(Path(folder) / "samples.png", IMAGES / "samples.png")


def picture_report() -> None:
    """The top of a report in a browser, in light and dark."""
    from playwright.sync_api import sync_playwright

    import keepers

    X, names, tumours = keepers.datasets.load("srbct")
    page = keepers.report(
        keepers.AutoSelector().fit(X),
        X,
        feature_names=names,
        labels=tumours,
        source="srbct",
        title="Small round blue cell tumours",
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        saved = page.save(Path(folder) / "report.html")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        view = browser.new_page(viewport={"width": 1180, "height": 1000})
        view.goto(saved.as_uri())
        view.screenshot(path=IMAGES / "report.png")
        view.emulate_media(color_scheme="dark")
        view.screenshot(path=IMAGES / "report-dark.png")
        browser.close()


PICTURES: dict[str, Callable[[], None]] = {
    "demo": picture_demo,
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
