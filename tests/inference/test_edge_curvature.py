"""Sums of gamma p (1 - p) over edges and weights of instances, against single edges."""

import numpy as np
import pytest

from crfx import inference
from crfx.inference.problem import prepare
from crfx.inference.sum_product import summed
from crfx.testing import enumeration, make_problem
from tests.pairwise import pairwise

TOLERANCE = {np.float64: {"rtol": 1e-9, "atol": 1e-10}, np.float32: {"rtol": 2e-4, "atol": 2e-5}}

STRUCTURES = {
    "bundles": {"lengths": tuple(range(24))},
    "chain": {"lengths": (7, 0, 3)},
    "order 2": {"lengths": (7, 4), "order": 2},
    "forest": {"lengths": (9, 5), "shape": "random"},
    "types": {"lengths": (9, 5), "sharing": "typed"},
    "redone": {"lengths": (9, 5, 8) * 8, "gap": 90.0, "forbid": 0.2},
}


def weighted_sums(problem, curvature, weights, each):
    """The same from one table per edge: (marginals, curvatures), summed per table."""
    detailed = inference.sum_product(
        **problem.arguments(), curvature=curvature, edge_marginals="each"
    )
    gamma = np.ones(1) if curvature is None else detailed.edge_gamma
    gamma = gamma.reshape(gamma.shape + (1,) * (each.ndim - gamma.ndim))
    rows = np.repeat(weights, np.diff(problem.offsets)).reshape((-1,) + (1,) * (each.ndim - 1))
    terms = rows * each, rows * gamma * each * (1.0 - each)
    if problem.edge_types is None:
        return tuple(term.sum(axis=0) for term in terms)
    tables = tuple(np.zeros(problem.edge.shape) for _ in terms)
    for table, term in zip(tables, terms, strict=True):
        np.add.at(table, problem.edge_types, term)
    return tables


@pytest.mark.parametrize(
    ("structure", "curvature", "dtype"),
    pairwise(
        list(STRUCTURES), [None, "mixing", "dobrushin", "exact", "length"], [np.float64, np.float32]
    ),
)
def test_sums_are_those_of_the_single_edges(structure, curvature, dtype):
    problem = make_problem(3, dtype=dtype, **STRUCTURES[structure])
    weights = np.random.default_rng(0).uniform(0.0, 3.0, len(problem.offsets) - 1)
    each = inference.sum_product(**problem.arguments(), edge_marginals="each").edge
    marginals, curvatures = weighted_sums(problem, curvature, weights, each.astype(np.float64))
    sums = summed(
        prepare(**problem.arguments()), "sum", curvature, edge_curvature=True, weights=weights
    )
    np.testing.assert_allclose(sums.edge, marginals, **TOLERANCE[dtype])
    np.testing.assert_allclose(sums.edge_curvature, curvatures, **TOLERANCE[dtype])


def test_sums_against_enumeration():
    problem = make_problem(0, lengths=(4, 3), n_labels=3)
    each = enumeration.sum_product(**problem.arguments(), edge_marginals="each").edge
    sums = summed(prepare(**problem.arguments()), "sum", None, edge_curvature=True)
    expected = (each * (1.0 - each)).sum(axis=0)
    np.testing.assert_allclose(sums.edge_curvature, expected, **TOLERANCE[np.float64])
    with pytest.raises(AssertionError):  # the companion: it can fail
        np.testing.assert_allclose(sums.edge_curvature.T, expected, **TOLERANCE[np.float64])
