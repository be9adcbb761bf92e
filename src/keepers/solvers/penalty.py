"""The smoothed l2,p penalty of the paper and the weights of its quadratic majorant."""

from dataclasses import dataclass

import numpy as np

from keepers._protocols import BoolArray, FloatArray

__all__ = ["RowPenalty"]

# A row whose norm has sunk to the smoothing is dead. The optimality condition for p = 1, a share
# r < 1 of the force that would keep the row alive, puts it at sqrt(eps) r / sqrt(1 - r^2).
_DEAD = 4.0


@dataclass(frozen=True)
class RowPenalty:
    """gamma * sum_i (|w_i|^2 + eps)^(p/2), seen through the squared row norms of W."""

    gamma: float
    p: float
    eps: float

    def value(self, squared_norms: FloatArray) -> float:
        """The penalty itself, the second term of Eq. (23)."""
        return self.gamma * float(np.sum((squared_norms + self.eps) ** (self.p / 2)))

    def weights(self, squared_norms: FloatArray) -> FloatArray:
        """Gamma g_i with g_i = (p/2) (|w_i|^2 + eps)^((p-2)/2), Eq. (26)."""
        half = self.p / 2
        return self.gamma * half * (squared_norms + self.eps) ** (half - 1.0)

    def dead(self, squared_norms: FloatArray) -> BoolArray:
        """Rows that count as zero: their norm is of the size of the smoothing."""
        return squared_norms <= _DEAD * self.eps
