"""How much memory each way to a fit takes, and which way to go with what there is."""

from dataclasses import dataclass

from keepers._protocols import BlockTable

__all__ = ["Budget"]

# Blocks in hand: four threads at most, each with one as read and less its mean; and the readers.
_BLOCKS = 12 * 8 * 2**20
# d x d arrays at the worst moment: S, the product of a block, a copy for the decomposition.
_SQUARES = 3
# d x m arrays: the block and its search direction, their images, and what is made of them; and the
# Krylov space of the start with its images.
_ITERATION, _KRYLOV = 14, 10
_OVERSAMPLING = 8


@dataclass(frozen=True)
class Budget:
    """A number of bytes, and what things take."""

    n_bytes: float

    def holds(self, n_bytes: float) -> bool:
        """Whether this fits."""
        return n_bytes <= self.n_bytes

    def of_scatter(self, n_columns: int) -> float:
        """S summed in one pass, and a fit from it."""
        return _BLOCKS + 8.0 * _SQUARES * n_columns**2

    def of_products(self, n_columns: int, width: int) -> float:
        """Products read from the table, pass after pass."""
        thin = _ITERATION * width + _KRYLOV * (width + _OVERSAMPLING)
        return _BLOCKS + 8.0 * n_columns * thin

    def of_rows(self, table: BlockTable, n_samples: int | None, n_columns: int) -> float:
        """The rows held in memory, and a fit on them; infinite where they cannot be."""
        if n_samples is None or not table.is_local:
            return float("inf")
        share = n_columns / max(table.n_features, 1)
        if table.is_sparse:
            if table.n_stored is None:
                return float("inf")
            held = table.n_stored * share * (table.dtype.itemsize + 4.0)
        else:
            held = float(n_samples) * n_columns * table.dtype.itemsize
        # A fit in memory needs up to as much again.
        return _BLOCKS + 2.0 * held
