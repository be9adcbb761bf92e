"""The n x d unknowns of EUFS: arrays, or combinations of X and the last few fits U V'.

With B = X + W - E and Q = X - U V' + W, an iteration of `keepers.solvers.eufs` does to them

    B = U V' + k Q,  where k = min(1, 1 / (mu |q_i|)) in row i,
    V from U'B, U from B V,
    W = r (B - U V'),  where r = mu / (mu of the next iteration).

`StoredRows` keeps W and B. `CombinedRows` keeps neither: a row of either is a combination of the
same row of X and of earlier fits, and the share of a fit shrinks by r k in every iteration. As mu
grows k falls, and a few fits are all that rounding leaves. Products then need one with X and some
with matrices that are as narrow as U, and norms follow from scalar products between rows.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from keepers._protocols import FloatArray
from keepers.linalg.moments import row_blocks
from keepers.linalg.subspace import row_norms

# Rows are worked on in blocks that stay in a cache.
BLOCK_BYTES = 1 << 19
# A fit whose share of W is smaller in every row changes no digit.
FORGOTTEN = 1e-18
# What sweeps over stored arrays cost, in multiplications an entry; and a bound for small matrices,
# where every fit costs the overhead of some calls.
SWEEPS, MOST_FITS = 150.0, 12
# By what rounding in B may be amplified for combinations to begin, and to go on: |q_i|^2 from
# scalar products has an error of eps |x_i|^2, which enters row i of B times k / |q_i|.
BEGIN, CONTINUE = 1.0, 10.0


class Rows(Protocol):
    """What an iteration asks of W and B, for the U and V last handed over."""

    @property
    def W(self) -> FloatArray:
        """The multiplier of X - U V' - E, divided by mu."""

    @property
    def E(self) -> FloatArray:
        """X + W - B, between `shorten` and `move`."""

    def form_for(self, mu: float) -> "Rows":
        """These rows in the form that is cheapest for the iteration with ``mu``."""

    def shorten(self, mu: float) -> float:
        """Set B. Returns `loss`, which is known on the way."""

    def project(self, U: FloatArray) -> FloatArray:
        """U'B."""

    def multiply(self, Vt: FloatArray) -> FloatArray:
        """B V."""

    def move(self, U: FloatArray, Vt: FloatArray, ratio: float) -> None:
        """Take over U and V, and set W = ratio (B - U V')."""

    def loss(self) -> float:
        """Sum of the row norms of X - U V'."""

    def violation(self) -> float:
        """Largest entry of |X - U V' - E|, after `move`."""


def first_rows(X: FloatArray, U: FloatArray, Vt: FloatArray) -> Rows:
    """W = 0."""
    enough = most_fits(X, len(Vt)) >= 2
    return CombinedRows([X], U, Vt) if enough else StoredRows(X, np.zeros_like(X), U, Vt)


def most_fits(X: FloatArray, n_clusters: int) -> int:
    """With more fits than this, stored arrays cost less time or memory."""
    n_samples, n_features = X.shape
    stored = n_samples * n_features * (n_clusters + SWEEPS)
    fit = 2.0 * (n_samples + n_features) * n_clusters**2
    return int(min(stored / fit, n_features**0.5, MOST_FITS))


def kept_shares(norms: FloatArray, mu: float) -> FloatArray:
    """k: what `shrinkage` by 1/mu takes away, as a share of the row."""
    return np.asarray(1.0 / (mu * np.maximum(norms, 1.0 / mu)))


def _amplification(kept: FloatArray, mu: float, sizes: FloatArray) -> float:
    """Largest k |x_i| / |q_i| = k^2 mu |x_i| of rows that are shortened (see `BEGIN`)."""
    return float(np.where(kept < 1.0, kept**2 * mu * sizes, 0.0).max())


class StoredRows:
    """W and B as arrays; W follows from B in the next sweep."""

    def __init__(self, X: FloatArray, W: FloatArray, U: FloatArray, Vt: FloatArray) -> None:
        self._X = X
        self._sizes = row_norms(X)
        self._U, self._Vt = U, Vt
        self._W = W
        self._ratio: float | None = None  # of a move that W has not seen yet
        self._B = np.empty_like(X)
        self._kept = np.ones(len(X))
        self._blocks = _blocks(X)
        self._fit, self._rest = (np.empty((self._blocks[0].stop, X.shape[1])) for _ in range(2))

    @property
    def W(self) -> FloatArray:
        """The multiplier divided by mu."""
        if self._ratio is None:
            return self._W
        return np.asarray(self._ratio * (self._B - self._U @ self._Vt))

    @property
    def E(self) -> FloatArray:
        """X + W - B."""
        return self._X + self._W - self._B

    def form_for(self, mu: float) -> Rows:
        """Combinations, once few fits will do."""
        factor = float(self._kept.max())
        n_fits = np.log(FORGOTTEN) / np.log(factor) if factor < 1.0 else np.inf
        precise = _amplification(self._kept, mu, self._sizes) < BEGIN
        if precise and n_fits < most_fits(self._X, len(self._Vt)):
            return CombinedRows([self._X, self.W], self._U, self._Vt)
        return self

    def shorten(self, mu: float) -> float:
        """All that a block of rows needs, while it is in the cache."""
        loss = 0.0
        for rows in self._blocks:
            W, B = self._W[rows], self._B[rows]
            fit, rest = self._fit[: len(W)], self._rest[: len(W)]
            np.matmul(self._U[rows], self._Vt, out=fit)
            if self._ratio is not None:
                np.subtract(B, fit, out=W)
                W *= self._ratio
            np.subtract(self._X[rows], fit, out=rest)
            loss += float(row_norms(rest).sum())
            rest += W  # Q
            self._kept[rows] = kept_shares(row_norms(rest), mu)
            rest *= self._kept[rows, np.newaxis]
            np.add(fit, rest, out=B)
        self._ratio = None
        return loss

    def project(self, U: FloatArray) -> FloatArray:
        """U'B."""
        return np.asarray(U.T @ self._B)

    def multiply(self, Vt: FloatArray) -> FloatArray:
        """B V."""
        return _product(self._B, Vt)

    def move(self, U: FloatArray, Vt: FloatArray, ratio: float) -> None:
        """W = ratio (B - U V'), in the next sweep."""
        self._U, self._Vt, self._ratio = U, Vt, ratio

    def loss(self) -> float:
        """Sum of the row norms of X - U V'."""
        rests = (self._X[rows] - self._U[rows] @ self._Vt for rows in self._blocks)
        return sum(float(row_norms(rest).sum()) for rest in rests)

    def violation(self) -> float:
        """B - U V' - W, with the W before `move`."""
        changes = (
            self._B[rows] - self._W[rows] - self._U[rows] @ self._Vt for rows in self._blocks
        )
        return max(float(np.abs(change).max()) for change in changes)


class CombinedRows:
    """W and B by the coefficients of their rows in terms: arrays like X first, then fits."""

    def __init__(self, arrays: Sequence[FloatArray], U: FloatArray, Vt: FloatArray) -> None:
        """``arrays`` is X, and W if it is not zero; U V' is the only fit to begin with."""
        self._X = arrays[0]
        self._sizes = row_norms(self._X)
        self._arrays = list(arrays)
        self._fits: list[tuple[FloatArray, FloatArray]] = []
        # Of W, of B or what became of it, and of W before the last move: terms x samples.
        self._w = np.zeros((len(arrays), len(self._X)))
        self._w[1:] = 1.0
        self._b = self._w_before = self._w
        # Scalar products of row i of two terms: terms x terms x samples.
        self._products = np.array([[_dots(a, b) for a in arrays] for b in arrays])
        self._images: list[FloatArray] = [_product(array, Vt) for array in arrays]
        self._append(U, Vt, 0.0)

    @property
    def W(self) -> FloatArray:
        """The multiplier divided by mu."""
        return self._entries(self._w, slice(None))

    @property
    def E(self) -> FloatArray:
        """X + W - B."""
        return self._X + self._entries(self._w - self._b, slice(None))

    def form_for(self, mu: float) -> Rows:
        """Without forgotten fits; as arrays, if too many are left or norms would lose digits."""
        self._forget()
        U, Vt = self._fits[-1]
        precise = _amplification(self._shares(mu), mu, self._sizes) < CONTINUE
        if precise and len(self._fits) <= most_fits(self._X, len(Vt)):
            return self
        return StoredRows(self._X, self.W, U, Vt)

    def shorten(self, mu: float) -> float:
        """B = U V' + k Q."""
        self._b = self._shares(mu) * self._q
        self._b[-1] += 1.0
        return self.loss()

    def project(self, U: FloatArray) -> FloatArray:
        """U'B."""
        weighted = [coefficients[:, np.newaxis] * U for coefficients in self._b]
        n_arrays = len(self._arrays)
        of_arrays = zip(weighted[:n_arrays], self._arrays, strict=True)
        of_fits = zip(weighted[n_arrays:], self._fits, strict=True)
        projected = np.zeros((U.shape[1], self._X.shape[1]))
        for left, array in of_arrays:
            projected += left.T @ array
        for left, (fit_U, Vt) in of_fits:
            if Vt.any():
                projected += (left.T @ fit_U) @ Vt
        return projected

    def multiply(self, Vt: FloatArray) -> FloatArray:
        """B V; its terms are kept for `move`."""
        if Vt.any():
            self._images = [_product(array, Vt) for array in self._arrays]
            self._images += [U @ (Vt_before @ Vt.T) for U, Vt_before in self._fits]
        else:
            self._images = [np.zeros((len(self._X), len(Vt)))] * len(self._b)
        terms = zip(self._b, self._images, strict=True)
        return np.asarray(sum(coefficients[:, np.newaxis] * image for coefficients, image in terms))

    def move(self, U: FloatArray, Vt: FloatArray, ratio: float) -> None:
        """W = ratio (B - U V')."""
        self._append(U, Vt, -1.0)
        self._w_before, self._w = self._w, ratio * self._b

    def loss(self) -> float:
        """Sum of the row norms of X - U V'."""
        squares = self._products[0, 0] - 2.0 * self._products[0, -1] + self._products[-1, -1]
        return float(np.sqrt(np.maximum(squares, 0.0)).sum())

    def violation(self) -> float:
        """B - U V' - W, with the W before `move`."""
        blocks = _blocks(self._X)
        changes = (self._entries(self._b - self._w_before, rows) for rows in blocks)
        return max(float(np.abs(change).max()) for change in changes)

    @property
    def _q(self) -> FloatArray:
        """Coefficients of Q = X - U V' + W."""
        q = self._w.copy()
        q[0] += 1.0
        q[-1] -= 1.0
        return q

    def _shares(self, mu: float) -> FloatArray:
        q = self._q
        squares = np.einsum("ti,ti->i", q, np.einsum("tui,ui->ti", self._products, q))
        return kept_shares(np.sqrt(np.maximum(squares, 0.0)), mu)

    def _append(self, U: FloatArray, Vt: FloatArray, coefficient: float) -> None:
        """A fit as the last term, with this coefficient in B and none in W."""
        n_terms, n_samples = self._b.shape
        products = np.empty((n_terms + 1, n_terms + 1, n_samples))
        products[:-1, :-1] = self._products
        products[-1, :-1] = products[:-1, -1] = [_dots(image, U) for image in self._images]
        products[-1, -1] = _dots(U @ (Vt @ Vt.T), U)
        self._products = products
        self._fits.append((U, Vt))
        self._b = np.append(self._b, np.full((1, n_samples), coefficient), axis=0)
        self._w = np.append(self._w, np.zeros((1, n_samples)), axis=0)

    def _forget(self) -> None:
        """Drop terms without a share in W; X and the present fit stay."""
        matters = np.abs(self._w).max(axis=1) > FORGOTTEN
        n_arrays = len(self._arrays)
        matters[n_arrays:] &= [bool(Vt.any()) for _, Vt in self._fits]
        matters[[0, -1]] = True
        kept = np.flatnonzero(matters)
        self._arrays = [self._arrays[term] for term in kept if term < n_arrays]
        self._fits = [self._fits[term - n_arrays] for term in kept if term >= n_arrays]
        self._w = self._b = self._w_before = self._w[kept]
        self._products = self._products[np.ix_(kept, kept)]

    def _entries(self, coefficients: FloatArray, rows: slice) -> FloatArray:
        """Rows of the combination with these coefficients."""
        weights = coefficients[:, rows, np.newaxis]
        n_arrays = len(self._arrays)
        of_arrays = zip(weights[:n_arrays], self._arrays, strict=True)
        of_fits = zip(weights[n_arrays:], self._fits, strict=True)
        total = sum(weight * array[rows] for weight, array in of_arrays)
        total += sum((weight * U[rows]) @ Vt for weight, (U, Vt) in of_fits)
        return np.asarray(total)


def _blocks(X: FloatArray) -> list[slice]:
    return row_blocks(X.shape[0], X.shape[1], BLOCK_BYTES)


def _product(array: FloatArray, Vt: FloatArray) -> FloatArray:
    """Product of an array like X and V. In this order BLAS is half again as fast."""
    return np.asarray((Vt @ array.T).T)


def _dots(left: FloatArray, right: FloatArray) -> FloatArray:
    """Scalar products of rows."""
    return np.asarray(np.einsum("ij,ij->i", left, right))
