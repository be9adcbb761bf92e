"""SPEC: features that are smooth on a graph of the samples (Zhao and Liu, ICML 2007).

For a symmetric graph S >= 0 with degrees D, the normalised Laplacian is

    Ln = D^-1/2 (D - S) D^-1/2 = sum_i xi_i u_i u_i',    0 = xi_1 <= ... <= xi_n <= 2,

u_1 = D^1/2 1 / |D^1/2 1| being the trivial one. With fh = D^1/2 f / |D^1/2 f|, a_i = (fh' u_i)^2
and an increasing g, here g(xi) = xi^power, the three scores of a feature f are

    phi1 = sum_i a_i g(xi_i) = fh' g(Ln) fh                        small is good,
    phi2 = sum_{i >= 2} a_i g(xi_i) / (1 - a_1)                    small is good,
    phi3 = sum_{2 <= i <= k} a_i (g(2) - g(xi_i))                  large is good.

Features are freed of their degree-weighted mean first. Then a_1 = 0: nothing depends on an offset,
and phi1 = phi2. For power 1 that is the Laplacian score of the same graph, and computed as such;
other powers cost ``power`` products with Ln, and no eigenvector is needed. phi3 takes k - 1 of
them. On a graph in C pieces xi = 0 has C eigenvectors; with k >= C all of them count, and phi3 is
the same for every basis of them and every order of the samples, so that smaller k are raised to C.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BoolArray, FloatArray
from keepers.linalg.graph import Graph, degrees
from keepers.linalg.graph_spectrum import GraphSpectrum, leading_eigenvectors
from keepers.solvers.laplacian_score import (
    QuadraticForms,
    centred_blocks,
    quadratic_forms,
    quotients,
    weighted_moments,
)

LARGEST_EIGENVALUE = 2.0
SCORES = ("phi1", "phi2", "phi3")


@dataclass(frozen=True)
class SPECScores:
    """The score of every feature, and the eigenvectors it took."""

    scores: FloatArray
    """As published: small is good for phi1 and phi2, large for phi3."""
    flat: BoolArray
    """Features without variance under the degrees; they hold the worst score."""
    eigenvalues: FloatArray
    """xi_2, ..., xi_k of phi3, rising; empty for the others, which need none."""
    n_pieces: int | None
    """Connected components of the graph with an edge; None where they were not looked for."""
    converged: bool
    """Whether the eigenvectors reached their tolerance."""


def worst_score(score: str, power: int) -> float:
    """The end of the range of a score at which no feature is good."""
    return 0.0 if score == "phi3" else LARGEST_EIGENVALUE**power


def smoothness_scores(
    graph: Graph, X: Any, score: str = "phi2", *, power: int = 1, _centred: bool = True
) -> SPECScores:
    """phi1 or phi2 of the columns of X, an array or a CSR/CSC matrix.

    ``_centred=False`` is phi1 as published programs compute it, for features as they are: a large
    mean then makes any feature smooth.
    """
    _refuse_negative(graph)
    forms = quadratic_forms(graph, X)
    numerators = forms.across_edges if power == 1 else _power_forms(graph, X, power)
    as_they_are = score == "phi1" and not _centred
    denominators = forms.around_zero if as_they_are else forms.around_mean
    scores = quotients(numerators, denominators, forms.flat, worst_score(score, power))
    return SPECScores(scores, forms.flat, np.empty(0), None, converged=True)


def leading_energy(
    graph: Graph,
    X: Any,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    power: int = 1,
    _centred: bool = True,
) -> SPECScores:
    """phi3 with k = ``n_clusters``, or the number of pieces of the graph if that is larger.

    ``_centred=False`` divides by the length of the feature as it is, as published programs do.
    """
    _refuse_negative(graph)
    spectrum = leading_eigenvectors(graph, n_clusters - 1, rng, whole_pieces=True)
    xi = np.clip(1.0 - spectrum.mu, 0.0, LARGEST_EIGENVALUE)
    projections, forms = _project(spectrum, X)
    lengths = forms.around_mean if _centred else forms.around_zero
    energy = (projections**2) @ (LARGEST_EIGENVALUE**power - xi**power)
    scores = np.zeros(len(lengths))
    np.divide(energy, lengths, out=scores, where=~forms.flat)
    return SPECScores(scores, forms.flat, xi, spectrum.n_pieces, spectrum.converged)


def _refuse_negative(graph: Graph) -> None:
    least = float(graph.min()) if graph.shape[0] else 0.0
    if least < 0.0:
        raise ValueError(f"weights of a graph must be >= 0; the smallest is {least:.3g}")


def _power_forms(graph: Graph, X: Any, power: int) -> FloatArray:
    """The numbers y' Ln^power y, y = D^1/2 f for centred f and degrees that sum to one."""
    weight = degrees(graph)
    total = float(weight.sum())
    forms = np.zeros(X.shape[1])
    if total == 0.0:
        return forms
    inverse = np.zeros(len(weight))
    np.divide(1.0, weight, out=inverse, where=weight > 0)
    steps = power // 2
    columns_of = X.tocsc() if sp.issparse(X) else X
    for columns, F, _ in centred_blocks(weight / total, columns_of):
        # In f = D^-1/2 y the product with Ln is that with I - D^-1 S.
        for _ in range(steps):
            F = F - inverse[:, np.newaxis] * (graph @ F)
        image = F - inverse[:, np.newaxis] * (graph @ F) if power % 2 else F
        forms[columns] = np.einsum("i,ij,ij->j", weight / total, F, image)
    return forms


def _project(spectrum: GraphSpectrum, X: Any) -> tuple[FloatArray, QuadraticForms]:
    """u_i' D^1/2 f for centred f, a row a feature, and the lengths of D^1/2 f."""
    total = float(np.sum(spectrum.root_degrees**2))
    root = spectrum.root_degrees / np.sqrt(total if total > 0.0 else 1.0)
    axes = root[:, np.newaxis] * spectrum.vectors
    weight = root**2
    unused = np.zeros(X.shape[1])
    if sp.issparse(X):
        mean, around_mean, around_zero = weighted_moments(weight, X)
        # Nothing but rounding: the axes are orthogonal to a constant.
        projections = np.asarray(X.T @ axes) - np.outer(mean, axes.sum(axis=0))
        return projections, QuadraticForms(unused, around_mean, around_zero)
    projections = np.empty((X.shape[1], axes.shape[1]))
    around_mean, around_zero = np.empty((2, X.shape[1]))
    for columns, F, mean in centred_blocks(weight, X):
        projections[columns] = F.T @ axes
        around_mean[columns] = np.einsum("i,ij,ij->j", weight, F, F)
        around_zero[columns] = around_mean[columns] + mean * mean
    return projections, QuadraticForms(unused, around_mean, around_zero)
