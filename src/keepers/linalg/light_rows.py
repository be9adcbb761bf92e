"""A jump for eigenproblems S - diag(shift) whose solution lies on a few light rows.

Where shifts spread over orders of magnitude, the leading eigenvectors live on the rows with the
smallest ones, and elsewhere they are small corrections, which the preconditioned iteration finds at
once. What it does not find soon is the way from a block spread over all rows to one that lives on a
few. There the principal submatrix on the lightest rows is decomposed instead, and its eigenvectors
are offered beside the block: the best of the space of both is never worse than the block.
"""

import numpy as np
from scipy.linalg import eigh

from keepers._protocols import FloatArray, SymmetricOperator
from keepers.linalg.subspace import Subspace, best_of_both

__all__ = ["with_light_rows"]

_FEWEST, _PER_COLUMN = 500, 4


def with_light_rows(
    operator: SymmetricOperator, shift: FloatArray, block: Subspace
) -> Subspace | None:
    """The best vectors in the span of a block and of the eigenvectors on the lightest rows.

    None where the operator is too small for that to be a short cut. Costs one product and a
    restriction.
    """
    width = block.vectors.shape[1]
    count = _FEWEST + _PER_COLUMN * width
    if 2 * count > operator.size:
        return None
    light = np.sort(np.argpartition(shift, count)[:count])
    part = operator.restrict(light).dense().copy()
    part[np.diag_indices(count)] -= shift[light]
    _, leading = eigh(part, subset_by_index=[count - width, count - 1])
    vectors = np.zeros((operator.size, width))
    vectors[light] = leading
    offered = Subspace(vectors, operator.matmat(vectors), np.zeros(width))
    return best_of_both(block, offered, shift)
