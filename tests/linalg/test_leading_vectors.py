"""Leading eigenvectors while directions are taken out, against full decompositions."""

import numpy as np
import pytest

from keepers.linalg.leading_vectors import LeadingVectors, parts_of_pairs


class Deflated:
    """A matrix from which directions are taken out, held as it is."""

    def __init__(self, matrix):
        self.matrix = matrix
        self.n_products = 0

    def take_out(self, q):
        P = np.eye(len(q)) - np.outer(q, q)
        self.matrix = P @ self.matrix @ P

    def product(self, rows):
        self.n_products += len(rows)
        return rows @ self.matrix


def with_spectrum(values, seed=0):
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values),) * 2))[0]
    return Q * values @ Q.T


@pytest.mark.parametrize("width", [1, 3, 7])
def test_pairs_are_those_of_a_full_decomposition_after_every_deflation(width):
    rng = np.random.default_rng(1)
    given = Deflated(with_spectrum(1.0 / np.arange(1, 201)))
    space = LeadingVectors(given.product, 200, width)
    for _ in range(12):
        values, vectors = np.linalg.eigh(given.matrix)
        found = space.find(1e-12)
        assert found.converged
        assert found.complete
        np.testing.assert_allclose(found.values, values[::-1][:width], rtol=1e-10)
        overlaps = np.abs(np.sum(found.vectors * vectors[:, ::-1][:, :width], axis=0))
        np.testing.assert_allclose(overlaps, 1.0, atol=1e-10)
        q = vectors[:, -1] + 0.5 * vectors[:, -2] + 0.05 * rng.standard_normal(200)
        q /= np.linalg.norm(q)
        given.take_out(q)
        space.deflate(q)


def test_a_deflation_costs_few_products():
    given = Deflated(with_spectrum(1.0 / np.arange(1, 401)))
    space = LeadingVectors(given.product, 400, 1)
    space.find(1e-12)
    given.n_products = 0
    for _ in range(5):
        q = np.linalg.eigh(given.matrix)[1][:, -3:].sum(axis=1) / np.sqrt(3)
        given.take_out(q)
        space.deflate(q)
        space.find(1e-12)
    assert given.n_products < 5 * 20


def test_eigenvectors_themselves_can_be_taken_out_until_little_is_left():
    given = Deflated(with_spectrum(np.r_[np.arange(60, 0, -1.0), np.zeros(20)]))
    space = LeadingVectors(given.product, 80, 2)
    for step in range(50):
        found = space.find(1e-12)
        np.testing.assert_allclose(found.values[:2], [60 - step, 59 - step], rtol=1e-9)
        q = found.vectors[:, 0] / np.linalg.norm(found.vectors[:, 0])
        given.take_out(q)
        space.deflate(q)


def test_all_of_a_group_of_equal_values_is_found():
    given = Deflated(with_spectrum(np.r_[5.0, 3.0, 3.0, 3.0, 3.0, np.linspace(1, 0, 95)]))
    found = LeadingVectors(given.product, 100, 2).find(1e-12)
    np.testing.assert_allclose(found.values, [5, 3, 3, 3, 3], rtol=1e-10)
    assert found.complete
    projector = np.linalg.eigh(given.matrix)[1][:, -5:]
    np.testing.assert_allclose(found.vectors @ found.vectors.T, projector @ projector.T, atol=1e-9)


def test_a_group_larger_than_the_space_is_said_to_be_incomplete():
    given = Deflated(with_spectrum(np.r_[np.ones(150), np.zeros(50)]))
    assert not LeadingVectors(given.product, 200, 1).find(1e-12).complete


def test_a_changed_matrix_is_multiplied_anew():
    given = Deflated(with_spectrum(1.0 / np.arange(1, 101)))
    space = LeadingVectors(given.product, 100, 1)
    space.find(1e-12)
    given.matrix = 4.0 * given.matrix
    space.restart()
    assert space.find(1e-12).values[0] == pytest.approx(4.0)


def test_parts_sum_to_the_number_wanted_whatever_is_equal():
    cases = {
        (3.0, 2.0, 1.0): [1, 1, 0],
        (3.0, 2.0, 2.0): [1, 0.5, 0.5],
        (2.0, 2.0, 2.0): [2 / 3, 2 / 3, 2 / 3],
        (2.0, 2.0, 1.0): [1, 1, 0],
    }
    for values, parts in cases.items():
        np.testing.assert_allclose(parts_of_pairs(np.array(values), 2), parts)
    np.testing.assert_allclose(parts_of_pairs(np.array([2.0]), 3), [1])
