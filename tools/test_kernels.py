"""Run the numerical tests as other machines would: other kernels, threads, loops and orders.

    python tools/test_kernels.py             every kernel that this CPU can run
    python tools/test_kernels.py --most 2    the first two of them

OpenBLAS chooses its kernels by the CPU; OPENBLAS_CORETYPE names others, and what rounds differently
there must not change a result. Each kernel runs once, with one and with two threads in turn, every
second time without NumPy's own vector loops, in a random order whose seed is printed.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("linalg", "methods", "proofs", "tuning")
# Of tables only what rounds: files and kinds of columns do not.
FOLDERS = [*(f"tests/{package}" for package in PACKAGES), "tests/prepare/test_preparer.py"]
# Processes: what they end with is compared on one kernel, and they take long.
LEFT_OUT = "tests/methods/test_spcafs_dask.py"
# The oldest kernel differs most from what recent CPUs take; the newest has the widest registers.
KERNELS = ("SkylakeX", "Sandybridge", "Haswell", "Zen")

ASK = """
import json, warnings
import numpy as np, scipy.linalg
from threadpoolctl import threadpool_info
try:
    from numpy._core import _multiarray_umath as umath
except ImportError:
    from numpy.core import _multiarray_umath as umath
A = np.ones((64, 64))
assert (A @ A == 64).all() and scipy.linalg.eigvalsh(A)[-1] > 63.9
blas = [pool["architecture"] for pool in threadpool_info() if pool["internal_api"] == "openblas"]
loops = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]
print(json.dumps([blas, loops]))
"""


def ask(kernel: str | None) -> tuple[list[str], list[str]] | None:
    """The kernels OpenBLAS loads when asked for one, and NumPy's loops; None if it cannot run."""
    env = dict(os.environ)
    if kernel is not None:
        env["OPENBLAS_CORETYPE"] = kernel
    ended = subprocess.run(
        [sys.executable, "-c", ASK], env=env, capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        return None
    blas, loops = json.loads(ended.stdout)
    return blas, loops


def runnable(kernel: str) -> bool:
    """Whether this CPU runs the kernel: OpenBLAS falls back to another one if it does not."""
    answer = ask(kernel)
    return answer is not None and bool(answer[0]) and set(answer[0]) == {kernel}


def run(kernel: str, n_threads: int, without: list[str], seed: int) -> bool:
    """One run of the numerical tests; True if all passed."""
    env = {**os.environ, "OPENBLAS_CORETYPE": kernel, "NPY_DISABLE_CPU_FEATURES": " ".join(without)}
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        env[name] = str(n_threads)
    loops = "none of its own" if without else "all"
    print(f"== {kernel}, {n_threads} thread(s), NumPy's loops: {loops}, order {seed}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"]
    # What scikit-learn asks of an estimator is no question of rounding.
    command += ["-m", "not slow", "-k", "not scikit_learn_accepts_it"]
    command += [f"--ignore={LEFT_OUT}"]
    command += ["-p", "no:cacheprovider", "-p", "randomly", f"--randomly-seed={seed}", *FOLDERS]
    return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode == 0


def main() -> int:
    """Run, and say which kernels passed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--most", type=int, default=len(KERNELS), help="how many kernels to run")
    parser.add_argument("--seed", type=int, default=random.randrange(2**31), help="of the order")
    options = parser.parse_args()
    plain = ask(None)
    if plain is None or not plain[0]:
        print("NumPy is not linked with OpenBLAS here: there are no kernels to choose from.")
        return 0
    usual = plain[0][0]
    can = [kernel for kernel in KERNELS if runnable(kernel)]
    print(f"OpenBLAS takes {usual} by itself; this CPU runs {', '.join(can)}.", flush=True)
    passed = {
        kernel: run(kernel, 1 + number % 2, plain[1] if number % 2 else [], options.seed + number)
        for number, kernel in enumerate(can[: options.most])
    }
    for kernel, fine in passed.items():
        print(f"{kernel}: {'passed' if fine else 'FAILED'}")
    return 0 if all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
