"""Draw docs/images/report.png: the top of the page that a selection gives, in a browser.

python tools/picture_report.py   (needs chromium and `pip install playwright`)
"""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import keepers

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "report.png"

X, names, tumours = keepers.datasets.load("srbct")
selector = keepers.AutoSelector().fit(X)
page = keepers.report(
    selector,
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
    view.screenshot(path=PICTURE)
    browser.close()
