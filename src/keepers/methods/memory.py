"""How much memory there is, and a refusal, with the number, of work that does not fit."""

from typing import Any

from keepers.exceptions import DataError
from keepers.linalg.sums import Budget
from keepers.tables.table import as_n_bytes, physical_memory

OTHERWISE = (
    "Fit it on a sample of the rows or a first selection of the columns, or use SPCAFS, whose "
    "memory is that of the data."
)


def refuse_past_memory(method: str, what: str, n_bytes: float, way_out: str = OTHERWISE) -> None:
    """Raise if ``n_bytes`` exceeds the memory of this machine; name the size and the use."""
    available = physical_memory()
    if available is not None and n_bytes > available:
        raise DataError(
            f"{method} needs about {n_bytes / 1e9:.1f} GB for {what}, more than the "
            f"{available / 1e9:.1f} GB of this machine. {way_out}"
        )


def refuse_quadratic_form(method: str, n_samples: int, n_features: int) -> None:
    """Raise if M does not fit in memory: with a factor, or as four thin factors for d > n."""
    if n_features <= n_samples:
        what = f"two {n_features} x {n_features} matrices"
        refuse_past_memory(method, what, 16.0 * n_features**2)
    else:
        what = f"four {n_samples} x {n_features} tables"
        refuse_past_memory(method, what, 32.0 * n_samples * n_features)


def refuse_weighted_ridge(method: str, n_samples: int, n_features: int) -> None:
    """Raise if regressions on X do not fit: the smaller Gram matrix, its factor, and X twice."""
    size = min(n_samples, n_features)
    what = f"two {size} x {size} matrices and two copies of the table"
    refuse_past_memory(method, what, 16.0 * size**2 + 16.0 * n_samples * n_features)


def memory_budget(limit: Any) -> Budget:
    """The user's limit; None is a quarter of the machine's memory, or 4 GB if that is unknown."""
    if limit is not None:
        return Budget(float(as_n_bytes(limit, "memory_limit")))
    return Budget((physical_memory() or 16e9) / 4)
