"""Rebuild src/keepers/tables/files/srbct.npz from the wheel of the PyPI package ISLP.

pip download --no-deps -d /tmp/islp ISLP
python tools/build_srbct.py /tmp/islp/islp-*.whl
"""

import io
import sys
import zipfile
from pathlib import Path

import numpy as np

TARGET = Path(__file__).parent.parent / "src" / "keepers" / "data" / "files" / "srbct.npz"


def read(wheel: zipfile.ZipFile, name: str) -> np.ndarray:
    """The values of one of the package's tables."""
    text = wheel.read(f"ISLP/data/Khan_{name}.csv").decode()
    return np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1)


def write(target: Path, **arrays: np.ndarray) -> None:
    """As ``numpy.savez_compressed``, by LZMA: half the size, and ``numpy.load`` reads it."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as archive:
        for name, values in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, values, allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy")  # of 1980: the same bytes whenever it is written
            archive.writestr(entry, stream.getvalue(), zipfile.ZIP_LZMA)


def main(path: str) -> None:
    """Stack the training and test samples and write one compressed file."""
    with zipfile.ZipFile(path) as wheel:
        values = np.vstack([read(wheel, name) for name in ("xtrain", "xtest")])
        labels = np.concatenate([read(wheel, name).ravel() for name in ("ytrain", "ytest")])
    write(TARGET, log_ratio=values, y=labels.astype(np.int8))


if __name__ == "__main__":
    main(sys.argv[1])
