"""The leading eigenvectors of a matrix from which directions are taken out, to rounding.

M is symmetric and positive semi-definite, known by its products, and becomes (I - qq')M(I - qq')
again and again. The vectors kept from the last time, turned away from q, span almost all of the
next solution, so that a few products are enough: the residual of a vector that does not solve the
eigenproblem yet joins the space, and the best vectors of the space are taken (Rayleigh-Ritz).

A multiple eigenvalue has no eigenvectors of its own, only a space. If the last of the vectors
wanted is in such a group, all of the group is found.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from keepers._protocols import FloatArray

# Eigenvalues closer than this share of the largest are one.
_SAME = 1e-8
# Vectors kept beside those wanted, and room for others until the space is cut down to those.
_KEPT_BESIDE, _ROOM = 30, 30
_MOST_PRODUCTS = 2000
# A direction that is shorter than this after others were taken off it is rounding.
_DEPENDENT = 1e-9


@dataclass(frozen=True)
class LeadingPairs:
    """The leading eigenpairs, largest first: those wanted, and the rest of a group they cut."""

    values: FloatArray
    vectors: FloatArray
    """In columns."""
    converged: bool = True
    complete: bool = True
    """False if the group may be larger than what is known of it."""


class LeadingVectors:
    """A space (in rows) that holds the leading eigenvectors, and its image under M."""

    def __init__(self, product: Callable[[FloatArray], FloatArray], size: int, width: int) -> None:
        """``product`` multiplies M with vectors in rows; ``width`` of them will be wanted."""
        self._product = product
        self._width = width
        self._n_kept = min(width + _KEPT_BESIDE, size)
        room = min(self._n_kept + max(_ROOM, 2 * width), size)
        self._basis, self._images = np.empty((2, room, size))
        self._projected = np.empty((room, room))
        self._used = 0
        # Any start will do; always the same one gives the same digits.
        self._rng = np.random.default_rng(0)
        self._fill()

    def deflate(self, direction: FloatArray) -> None:
        """M was replaced by (I - qq')M(I - qq'), q being a vector of length 1."""
        basis, images = self._basis[: self._used], self._images[: self._used]
        toward = basis @ direction
        # Combinations of the basis that are orthogonal to q stay as they are.
        away = np.linalg.qr(toward[:, np.newaxis], mode="complete")[0][:, 1:].T
        turned = (toward @ basis)[np.newaxis] - (toward @ toward) * direction
        basis, images = away @ basis, away @ images
        images -= np.outer(images @ direction, direction)
        self._store(basis, images)
        if np.linalg.norm(turned) > _DEPENDENT:
            self._add(turned)
        self._fill()

    def restart(self) -> None:
        """M has changed by more than that: multiply it with all of the basis anew."""
        basis = self._basis[: self._used].copy()
        self._used = 0
        self._add(basis)

    def find(self, tol: float) -> LeadingPairs:
        """The pairs wanted, with residuals up to ``tol`` times the largest eigenvalue."""
        n_products = 0
        while True:
            values, mixing = np.linalg.eigh(self._projected[: self._used, : self._used])
            values, mixing = values[::-1], mixing[:, ::-1].T
            width = int(np.count_nonzero(parts_of_pairs(values, self._width)))
            seen = slice(0, width + 1)
            vectors = mixing[seen] @ self._basis[: self._used]
            residuals = mixing[seen] @ self._images[: self._used]
            residuals -= values[seen, np.newaxis] * vectors
            norms = np.linalg.norm(residuals, axis=1)
            # The next one has to be good enough to tell that it is not in the group.
            norms[width:] *= values[width : width + 1] + norms[width:] >= values[width - 1]
            wrong = norms > tol * values[0]
            converged = not wrong.any()
            if converged or n_products >= _MOST_PRODUCTS:
                break
            if self._used + np.count_nonzero(wrong) > len(self._basis):
                self._keep(mixing[: self._n_kept])
            n_added = self._add(residuals[wrong])
            n_products += n_added
            if n_added == 0:  # nothing new: the space is all there is
                converged = True
                break
        self._keep(mixing[: self._n_kept, : self._used])
        return LeadingPairs(values[:width], vectors[:width].T, converged, width < self._n_kept)

    def _fill(self) -> None:
        """As many vectors as are kept, if there are fewer."""
        missing = self._n_kept - self._used
        if missing > 0:
            start = self._rng.standard_normal((missing, self._basis.shape[1]))
            self._add(self._product(start))

    def _keep(self, mixing: FloatArray) -> None:
        self._store(mixing @ self._basis[: self._used], mixing @ self._images[: self._used])

    def _store(self, basis: FloatArray, images: FloatArray) -> None:
        self._used = len(basis)
        self._basis[: self._used], self._images[: self._used] = basis, images
        projected = basis @ images.T
        self._projected[: self._used, : self._used] = (projected + projected.T) / 2

    def _add(self, block: FloatArray) -> int:
        """Add the span of some vectors, as far as it is new and there is room; how many that is."""
        known = self._basis[: self._used]
        sizes = np.linalg.norm(block, axis=1)
        block = block[sizes > 0.0] / sizes[sizes > 0.0, np.newaxis]
        for _ in range(2):
            block = _orthonormal(block - (block @ known.T) @ known)
        block = block[: len(self._basis) - self._used]
        added = slice(self._used, self._used + len(block))
        self._used = added.stop
        self._basis[added] = block
        self._images[added] = self._product(block)
        beside = self._basis[: self._used] @ self._images[added].T
        self._projected[: self._used, added] = beside
        self._projected[added, : self._used] = beside.T
        return len(block)


def _orthonormal(block: FloatArray) -> FloatArray:
    """An orthonormal basis of the span of some vectors in rows, without what is rounding."""
    if len(block) == 1:  # nearly always, and a tenth of the time
        length = np.linalg.norm(block)
        return block / length if length > _DEPENDENT else block[:0]
    Q, R = np.linalg.qr(block.T)
    return np.asarray(Q.T[np.abs(np.diag(R)) > _DEPENDENT])


def parts_of_pairs(values: FloatArray, width: int) -> FloatArray:
    """How much each eigenpair (largest first) counts if ``width`` are wanted in all.

    1 for those above a group of equal values that would be cut, the same part for each of the
    group, 0 for those below.

    Examples
    --------
    >>> parts_of_pairs(np.array([3.0, 2.0, 2.0, 1.0]), 2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    width = min(width, len(values))
    apart = values - values[width - 1]
    above, tied = apart > _SAME * values[0], np.abs(apart) <= _SAME * values[0]
    return np.where(above, 1.0, tied * (width - np.count_nonzero(above)) / np.count_nonzero(tied))
