"""Anderson extrapolation of a fixed-point iteration u -> G(u)."""

from collections import deque

import numpy as np

from keepers._protocols import FloatArray


_REGULARISATION = 1e-10


class Extrapolation:
    """Proposes a point ahead of the last iterate from the last few (u, G(u)) pairs.

    The proposal minimises, in a weighted norm, the linear model of G(u) - u over the affine hull
    of the remembered points. It carries no guarantee: whoever uses it compares objectives, and
    calls `forget` when a proposal was turned down.
    """

    def __init__(self, depth: int, longest_step: float) -> None:
        self._longest_step = longest_step
        self._points: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=depth + 1)

    def remember(self, point: FloatArray, image: FloatArray) -> None:
        """Add a pair; the oldest is dropped."""
        self._points.append((point, image))

    def remembered(self) -> tuple[FloatArray | None, FloatArray | None]:
        """All points, and all their images, oldest first."""
        if not self._points:
            return None, None
        points, images = zip(*self._points, strict=True)
        return np.array(points), np.array(images)

    def forget(self) -> None:
        """Drop all pairs."""
        self._points.clear()

    def propose(self, importance: FloatArray) -> FloatArray | None:
        """A point ahead, or None while fewer than two pairs are known."""
        if len(self._points) < 2:
            return None
        points = np.array([point for point, _ in self._points])
        images = np.array([image for _, image in self._points])
        gaps = (images - points) * np.sqrt(importance)
        gap_steps = np.diff(gaps, axis=0)
        normal = gap_steps @ gap_steps.T
        normal[np.diag_indices_from(normal)] += _REGULARISATION * np.trace(normal)
        if not normal.any():
            return None
        coefficients = np.linalg.solve(normal, gap_steps @ gaps[-1])
        step = -coefficients @ np.diff(images, axis=0)
        return np.asarray(images[-1] + np.clip(step, -self._longest_step, self._longest_step))
