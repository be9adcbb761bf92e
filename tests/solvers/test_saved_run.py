"""The arrays a run resumes from: those of a solver are accepted, damaged ones are refused."""

import numpy as np
import pytest

from keepers.linalg.scatter import DenseScatter
from keepers.linalg.spectrum import principal_subspace
from keepers.solvers.penalty import RowPenalty
from keepers.solvers.saved_run import refuse_damaged
from keepers.solvers.spcafs import solve_block, solve_dense

SIZE, WIDTH = 30, 2
SOLVERS = {"dense": solve_dense, "block": solve_block}


@pytest.fixture(params=sorted(SOLVERS))
def saved(request):
    X = np.random.default_rng(0).standard_normal((60, SIZE)) * np.linspace(3, 1, SIZE)
    operator = DenseScatter(X.T @ X)
    start = principal_subspace(operator, WIDTH, np.random.default_rng(0))
    penalty = RowPenalty(0.1 * start.values[0], 1.0, 1e-12)
    runs = []
    SOLVERS[request.param](operator, start, penalty, max_iter=9, tol=1e-8, keep=runs.append)
    return request.param, penalty, operator, runs


def test_every_state_that_a_solver_hands_out_is_accepted(saved):
    solver, penalty, _, runs = saved
    assert len(runs) > 3
    for run in runs:
        refuse_damaged(run, solver, penalty, SIZE, WIDTH)


def test_a_run_resumes_where_it_was(saved):
    solver, penalty, operator, runs = saved
    options = {"max_iter": 100, "tol": 1e-8}
    first = SOLVERS[solver](operator, runs[0], penalty, **options)
    later = SOLVERS[solver](operator, runs[3], penalty, **options)
    np.testing.assert_allclose(later.objective, first.objective, rtol=1e-12)
    np.testing.assert_allclose(later.W, first.W, atol=1e-10)


@pytest.mark.parametrize(
    "damage",
    [
        lambda run: {**run, "more": np.zeros(1)},
        lambda run: {name: array for name, array in run.items() if name != "history"},
        lambda run: {**run, "vectors": run["vectors"][:-1]},
        lambda run: {**run, "vectors": 2.0 * run["vectors"]},
        lambda run: {**run, "vectors": run["vectors"].astype(object)},
        lambda run: {**run, "history": np.full_like(run["history"], np.nan)},
        lambda run: {**run, "history": np.zeros(1000)},
    ],
    ids=["more", "less", "shape", "scale", "type", "not finite", "too long"],
)
def test_damaged_arrays_are_refused(saved, damage):
    solver, penalty, _, runs = saved
    with pytest.raises(ValueError):
        refuse_damaged(damage(runs[-1]), solver, penalty, SIZE, WIDTH)
