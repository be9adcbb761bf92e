"""The paths that most users wait for, at sizes of a fraction of a second to a few seconds.

asv calls ``setup`` and times ``time_*``. Time is that of the processor, with one BLAS thread (`make
asv` sets it), so that a busy machine does not look like a regression.
"""

import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.linalg
import scipy.sparse

import keepers
from keepers import datasets


class Case:
    """How asv measures: five calls after one that is not counted, whatever the machine is doing."""

    timer = time.process_time
    number = 1
    repeat = 5
    rounds = 1
    warmup_time = 0.0
    timeout = 900


def groups(n_samples: int, n_features: int) -> np.ndarray:
    """Five groups that differ in a tenth of the features; the rest is noise."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n_samples, n_features))
    centres = 3 * random.standard_normal((5, n_features // 10))
    X[:, : n_features // 10] += centres[np.arange(n_samples) % 5]
    return X


class Reference(Case):
    """Work of NumPy and SciPy only: how fast this machine is. No change of keepers moves it."""

    def setup(self) -> None:
        self.X = groups(1000, 400)
        self.time_covariance_and_its_eigenvectors()

    def time_covariance_and_its_eigenvectors(self) -> None:
        scipy.linalg.eigh(self.X.T @ self.X)


class SPCAFS(Case):
    """A fit with default settings, by shape and storage."""

    params = ("wide", "tall", "sparse")
    param_names = ("table",)

    def setup(self, table: str) -> None:
        warnings.simplefilter("ignore")  # "only m rows are active" is expected
        if table == "sparse":
            random = np.random.default_rng(0)
            self.X = scipy.sparse.random_array((600, 4000), density=0.02, format="csr", rng=random)
        else:
            self.X = groups(80, 4000) if table == "wide" else groups(20_000, 80)
        self.time_fit(table)

    def time_fit(self, table: str) -> None:
        keepers.SPCAFS(20).fit(self.X)


class AutoSelector(Case):
    """AutoSelector: no settings."""

    def setup(self) -> None:
        warnings.simplefilter("ignore")
        self.X = groups(150, 300)
        self.time_fit()

    def time_fit(self) -> None:
        keepers.AutoSelector().fit(self.X)


class Files(Case):
    """A CSV file of 2,000 rows and 200 columns."""

    def setup(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "table.csv"
        header = ",".join(f"feature{number}" for number in range(200))
        np.savetxt(self.path, groups(2000, 200), "%.6g", ",", header=header, comments="")
        self.time_read_csv()

    def teardown(self) -> None:
        self.folder.cleanup()

    def time_read_csv(self) -> None:
        datasets.open_table(self.path)


class Report(Case):
    """The HTML report of a fitted selection."""

    def setup(self) -> None:
        warnings.simplefilter("ignore")
        self.X = groups(150, 300)
        self.selector = keepers.SPCAFS(20).fit(self.X)
        self.time_report()

    def time_report(self) -> None:
        _ = keepers.report(self.selector, self.X).html
