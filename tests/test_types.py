"""A type checker on code that uses keepers."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent

SNIPPET = """
import numpy as np
from keepers import SPCAFS, VarianceScore

X = np.zeros((10, 5))
reveal_type(SPCAFS(5).fit(X))
reveal_type(SPCAFS(5).fit_blocks(X))
reveal_type(VarianceScore(np.int64(2)).fit(X))
reveal_type(SPCAFS(5).fit(X).top(2))
SPCAFS(gamma=None)
"""


def test_a_fitted_selector_keeps_its_type_and_a_wrong_setting_is_an_error(tmp_path, monkeypatch):
    api = pytest.importorskip("mypy.api")
    file = tmp_path / "snippet.py"
    file.write_text(SNIPPET, encoding="utf-8")
    monkeypatch.chdir(ROOT)  # its settings, and what `make lint` keeps of the package
    output, errors, _ = api.run([str(file)])
    assert errors == ""
    revealed = re.findall(r'Revealed type is "keepers\.([\w.]+)"', output)
    assert revealed == [
        "methods.spcafs.SPCAFS",
        "methods.spcafs.SPCAFS",
        "methods.baselines.VarianceScore",
        "methods.base.TopFeatures",
    ]
    faults = [line for line in output.splitlines() if ": error:" in line]
    assert len(faults) == 1
    assert '"gamma" to "SPCAFS"' in faults[0]
