"""Laws that inference obeys whatever the scores are."""

import numpy as np
import pytest
from hypothesis import given, settings

from crfx import inference
from crfx.testing import (
    assert_same,
    central_differences,
    enumerate_instances,
    make_problem,
    problems,
)

EXACT = {"rtol": 1e-9, "atol": 1e-9}
DIFFERENCES = {"rtol": 1e-5, "atol": 1e-7}
SLACK = 1e-9
"""By how much rounding may lift a quantity above its bound."""

ROUNDING = {np.float64: SLACK, np.float32: 1e-5}
NOTABLE = 1e-15
"""Less probable events are left out: near what counts as impossible, bounds may not hold."""

CHAINS_AND_FORESTS = [
    pytest.param({"order": 1, "lengths": (5, 3)}, id="chain"),
    pytest.param({"order": 2, "lengths": (5, 1)}, id="order 2"),
    pytest.param({"order": 3, "lengths": (5,), "n_labels": 2}, id="order 3"),
    pytest.param({"shape": "random", "lengths": (6, 2)}, id="forest"),
]


@pytest.mark.parametrize("n_labels", [1, 2, 7])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_equal_scores_count_the_labellings(n_labels, order):
    lengths = np.array([0, 1, 2, 3, 5])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    edge = np.zeros((n_labels,) * (order + 1))
    result = inference.sum_product(np.zeros((offsets[-1], n_labels)), edge, offsets, order=order)
    np.testing.assert_allclose(np.exp(result.log_z), float(n_labels) ** lengths, rtol=1e-12)


@pytest.mark.parametrize("sharing", ["shared", "typed", "each"])
@pytest.mark.parametrize("structure", CHAINS_AND_FORESTS)
def test_marginals_are_the_gradient_of_log_z(structure, sharing):
    problem = make_problem(0, sharing=sharing, **structure)
    how = "each" if sharing == "each" else "sum"
    result = inference.sum_product(**problem.arguments(), edge_marginals=how)

    def log_z(**arrays):
        return inference.sum_product(**problem.with_arrays(**arrays).arguments()).log_z.sum()

    for name, marginal in (("node", result.node), ("edge", result.edge)):
        at = getattr(problem, name)
        slope = central_differences(lambda x, name=name: log_z(**{name: x}), at, step=1e-5)
        np.testing.assert_allclose(marginal, slope, **DIFFERENCES)


@pytest.mark.parametrize("structure", CHAINS_AND_FORESTS)
def test_gradient_of_the_expected_cost(structure):
    problem = make_problem(0, **structure)
    cost = np.random.default_rng(1).normal(size=problem.node.shape)
    result = inference.expectation(**problem.arguments(), cost=cost)

    def value(**arrays):
        changed = problem.with_arrays(**arrays).arguments()
        return inference.expectation(**changed, cost=cost).value.sum()

    for name, gradient in (("node", result.node), ("edge", result.edge)):
        at = getattr(problem, name)
        slope = central_differences(lambda x, name=name: value(**{name: x}), at, step=1e-5)
        np.testing.assert_allclose(gradient, slope, **DIFFERENCES)


@settings(max_examples=100, deadline=None)
@given(problems(shapes=("chain",), orders=(1,), max_length=6, dtypes=(np.float64,)))
def test_a_chain_given_as_a_forest(chain):
    parents = np.concatenate([np.arange(n) - 1 for n in np.diff(chain.offsets)] or [[]])
    chain = chain.with_arrays(end=None)
    forest = chain.with_arrays(parents=parents.astype(np.int64))
    for curvature in ("mixing", "dobrushin", "exact", "length"):
        found, expected = (
            inference.sum_product(**p.arguments(), curvature=curvature) for p in (forest, chain)
        )
        assert_same(found, expected, **EXACT)
    best = inference.max_product(**forest.arguments())
    np.testing.assert_array_equal(best.labels, inference.max_product(**chain.arguments()).labels)
    np.testing.assert_array_equal(
        inference.sample(**forest.arguments(), n=3), inference.sample(**chain.arguments(), n=3)
    )


@settings(max_examples=150, deadline=None)
@given(problems(max_length=5, dtypes=(np.float64,)))
def test_gammas_are_ordered(problem):
    exact, tight, mixing, length = (
        inference.sum_product(**problem.arguments(), curvature=kind)
        for kind in ("exact", "dobrushin", "mixing", "length")
    )
    seen = (exact.node > NOTABLE) & (exact.node < 1 - 1e-12)
    rows = np.nonzero(seen)[0]
    assert (exact.node_gamma[seen] <= tight.node_gamma[rows] * (1 + SLACK)).all()
    assert (tight.node_gamma <= mixing.node_gamma * (1 + SLACK)).all()
    assert (mixing.node_gamma <= length.node_gamma * (1 + SLACK)).all()
    if problem.edge is not None:
        edge = inference.sum_product(**problem.arguments(), edge_marginals="each").edge
        seen = (edge > NOTABLE) & (edge < 1 - 1e-12)
        rows = np.nonzero(seen)[0]
        assert (exact.edge_gamma[seen] <= tight.edge_gamma[rows] * (1 + SLACK)).all()
        assert (tight.edge_gamma <= mixing.edge_gamma * (1 + SLACK)).all()
        assert (mixing.edge_gamma <= length.edge_gamma * (1 + SLACK)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["mixing", "dobrushin"])
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    "structure",
    [
        {"lengths": (5,)},
        {"order": 2, "lengths": (5,), "n_labels": 2},
        {"shape": "star", "lengths": (7,), "n_labels": 2},
        {"shape": "random", "lengths": (5,)},
    ],
)
def test_gamma_times_the_diagonal_dominates_the_hessian(structure, seed, kind, dtype):
    problem = make_problem(seed, scale=2.0, dtype=dtype, **structure)
    result = inference.sum_product(**problem.arguments(), curvature=kind)
    (instance,) = enumerate_instances(**problem.arguments())
    n_labels = problem.node.shape[1]
    with_edge = result.edge_gamma > 0
    for events, gamma, width in (
        (instance.node_events, result.node_gamma, n_labels),
        (instance.edge_events, result.edge_gamma[with_edge], problem.edge.size),
    ):
        hessian = instance.hessian(events)
        bound = np.diag(np.repeat(gamma, width) * np.diag(hessian)) - hessian
        assert np.linalg.eigvalsh(bound).min() > -ROUNDING[dtype]


def test_a_quarter_of_gamma_does_not_dominate():
    """The companion: the check above can fail, for nodes and for edges."""
    problem = make_problem(0, lengths=(5,))
    result = inference.sum_product(**problem.arguments(), curvature="mixing")
    (instance,) = enumerate_instances(**problem.arguments())
    for events, gamma, width in (
        (instance.node_events, result.node_gamma, 3),
        (instance.edge_events, result.edge_gamma[1:], 9),
    ):
        hessian = instance.hessian(events)
        bound = np.diag(np.repeat(gamma / 4.0, width) * np.diag(hessian)) - hessian
        assert np.linalg.eigvalsh(bound).min() < -1e-3


def test_order_of_instances_is_irrelevant():
    problem = make_problem(0, lengths=(4, 2, 7, 1))
    result = inference.sum_product(**problem.arguments(), curvature="mixing")
    blocks = np.split(np.arange(14), problem.offsets[1:-1])
    rows = np.concatenate([blocks[i] for i in (2, 0, 3, 1)])
    turned = problem.with_arrays(node=problem.node[rows], offsets=np.array([0, 7, 11, 12, 14]))
    found = inference.sum_product(**turned.arguments(), curvature="mixing")
    np.testing.assert_allclose(found.node, result.node[rows], **EXACT)
    np.testing.assert_allclose(found.node_gamma, result.node_gamma[rows], **EXACT)
    np.testing.assert_allclose(found.edge, result.edge, **EXACT)


def test_equal_scores_go_to_the_smaller_labels():
    node = np.zeros((5, 4), np.float32)
    for arguments in ({"offsets": [0, 5]}, {"offsets": [0, 5], "parents": [-1, 0, 0, 1, 1]}):
        for k in (1, 3):
            found = inference.max_product(node, np.zeros((4, 4)), k=k, **arguments)
            labels = found.labels if k == 1 else found.labels[0][0][0]
            np.testing.assert_array_equal(labels, np.zeros(5))
    found = inference.max_product(node, np.zeros((4, 4)), [0, 5], k=4)
    again = inference.max_product(node, np.zeros((4, 4)), [0, 5], k=4)
    for (labels, score), (same, _) in zip(found.labels[0], again.labels[0], strict=True):
        np.testing.assert_array_equal(labels, same)
        assert score == 0.0


def test_more_draws_leave_the_first_ones():
    problem = make_problem(0, lengths=(6, 3))
    few, many = (inference.sample(**problem.arguments(), n=n, seed=9) for n in (2, 5))
    np.testing.assert_array_equal(few, many[:2])
    assert (inference.sample(**problem.arguments(), n=5, seed=10) != many).any()
