"""Laws that the core and the NumPy reference obey whatever the scores are."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings

from crfx import inference
from crfx.inference import reference
from crfx.inference.problem import prepare
from crfx.testing import (
    assert_same,
    central_differences,
    enumerate_instances,
    make_problem,
    problems,
)
from tests.pairwise import pairwise

EXACT = {"rtol": 1e-9, "atol": 1e-9}
DIFFERENCES = {"rtol": 1e-5, "atol": 1e-7}
SLACK = 1e-9
"""By how much rounding may lift a quantity above its bound."""

ROUNDING = {np.float64: SLACK, np.float32: 1e-5}
NOTABLE = 1e-15
"""Less probable events are left out: near what counts as impossible, bounds may not hold."""

MODULES = {"core": inference, "twin": reference}
STRUCTURES = {
    "chain": {"lengths": (5, 3)},
    "forbidden": {"lengths": (4,), "forbid": 0.4, "scale": 4.0},
    "order 2": {"order": 2, "lengths": (5, 1), "n_labels": 2},
    "order 3": {"order": 3, "lengths": (5,), "n_labels": 2},
    "forest": {"shape": "random", "lengths": (6, 2)},
    "star": {"shape": "star", "lengths": (7,), "n_labels": 2},
}
KINDS = ("exact", "dobrushin", "mixing", "length")
"""Multipliers of curvature, the smallest first."""


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_equal_scores_count_the_labellings(order, module):
    lengths = np.array([0, 1, 2, 3, 5])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    for n_labels in (1, 2, 7):
        node, edge = np.zeros((offsets[-1], n_labels)), np.zeros((n_labels,) * (order + 1))
        result = MODULES[module].sum_product(node, edge, offsets, order=order)
        np.testing.assert_allclose(np.exp(result.log_z), float(n_labels) ** lengths, rtol=1e-12)
        np.testing.assert_allclose(result.node, 1 / n_labels, **EXACT)


@pytest.mark.parametrize(
    ("module", "structure", "sharing"),
    pairwise(list(MODULES), list(STRUCTURES), ["shared", "typed", "each"]),
)
def test_marginals_and_covariances_are_gradients(module, structure, sharing):
    """Marginals are gradients of log Z, covariances are gradients of the expected cost."""
    arguments = make_problem(21, sharing=sharing, **STRUCTURES[structure]).arguments()
    cost = np.sin(np.arange(arguments["node"].size)).reshape(arguments["node"].shape)
    prepared = prepare(**arguments)
    roots = prepared.structure.root_rows(prepared.batch)
    for function, value_name in (
        (MODULES[module].sum_product, "log_z"),
        (partial(MODULES[module].expectation, cost=cost), "value"),
    ):
        how = "each" if sharing == "each" else "sum"
        result = function(**arguments, edge_marginals=how)
        for name in ("node", "edge", "start"):

            def value(table, name=name, function=function, value_name=value_name):
                return getattr(function(**{**arguments, name: table}), value_name).sum()

            gradient = result.node[roots].sum(axis=0) if name == "start" else getattr(result, name)
            slope = central_differences(value, arguments[name])
            np.testing.assert_allclose(gradient, slope, **DIFFERENCES, err_msg=name)


@pytest.mark.parametrize("module", MODULES)
@settings(max_examples=100, deadline=None)
@given(problems(shapes=("chain",), orders=(1,), max_length=6, dtypes=(np.float64,)))
def test_a_chain_given_as_a_forest(module, chain):
    parents = np.concatenate([np.arange(n) - 1 for n in np.diff(chain.offsets)] or [[]])
    chain = chain.with_arrays(end=None)
    forest = chain.with_arrays(parents=parents.astype(np.int64))
    module = MODULES[module]
    for curvature in KINDS:
        sums, expected = (
            module.sum_product(**p.arguments(), curvature=curvature) for p in (forest, chain)
        )
        assert_same(sums, expected, **EXACT)
    for k in (1, 5):
        sums, expected = (module.max_product(**p.arguments(), k=k) for p in (forest, chain))
        np.testing.assert_allclose(sums.scores, expected.scores, **EXACT)
    if module is inference:
        labels = (inference.max_product(**p.arguments()).labels for p in (forest, chain))
        np.testing.assert_array_equal(*labels)
        samples = (inference.sample(**p.arguments(), n=3) for p in (forest, chain))
        np.testing.assert_array_equal(*samples)


def check_order_of_gammas(module, problem):
    """Check Corollary 4.1 and the bounds behind it, for nodes and edges."""
    results = [
        MODULES[module].sum_product(**problem.arguments(), curvature=kind, edge_marginals="each")
        for kind in KINDS
    ]
    for name in ("node", "edge"):
        p, gammas = getattr(results[0], name), [getattr(r, f"{name}_gamma") for r in results]
        if p is None:
            continue
        notable = (p > NOTABLE) & (p < 1 - 1e-12)
        axes = tuple(range(1, p.ndim))
        gammas[0] = np.where(notable, gammas[0], 0.0).max(axis=axes, initial=0.0)
        for tighter, looser in itertools.pairwise(gammas):
            assert (tighter <= looser * (1 + SLACK)).all()


@pytest.mark.parametrize("module", MODULES)
@settings(max_examples=150, deadline=None)
@given(problems(max_length=5, dtypes=(np.float64,)))
def test_gammas_are_ordered(module, problem):
    check_order_of_gammas(module, problem)


@pytest.mark.parametrize("module", MODULES)
def test_gammas_are_ordered_on_stars(module):
    for seed, coupling in itertools.product(range(3), (0.0, 0.3, 1.0, 3.0, 10.0)):
        problem = make_problem(seed, lengths=(9,), n_labels=2, shape="star")
        check_order_of_gammas(module, problem.with_arrays(edge=problem.edge * coupling))


@pytest.mark.parametrize(
    ("structure", "kind", "module_and_dtype"),
    pairwise(
        list(STRUCTURES),
        list(KINDS),
        [("core", np.float32), ("core", np.float64), ("twin", np.float64)],
    ),
)
def test_gamma_times_the_diagonal_dominates_the_hessian(structure, kind, module_and_dtype):
    module, dtype = module_and_dtype
    for seed in range(6):
        options = {"scale": 2.0} | STRUCTURES[structure] | {"lengths": (5,), "dtype": dtype}
        problem = make_problem(seed, **options)
        result = MODULES[module].sum_product(**problem.arguments(), curvature=kind)
        (instance,) = enumerate_instances(**problem.arguments())
        ends = [part[-1] for part in instance.parts]
        for events, gamma in (
            (instance.node_events, result.node_gamma),
            (instance.edge_events, result.edge_gamma[ends]),
        ):
            hessian = instance.hessian(events)
            gamma = np.repeat(gamma.ravel(), len(hessian) // gamma.size)
            bound = gamma * np.diag(hessian)
            assert np.linalg.eigvalsh(np.diag(bound) - hessian).min() > -ROUNDING[dtype]


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


def test_results_do_not_depend_on_the_order_of_instances():
    problem = make_problem(0, lengths=(4, 2, 7, 1))
    result = inference.sum_product(**problem.arguments(), curvature="mixing")
    blocks = np.split(np.arange(14), problem.offsets[1:-1])
    rows = np.concatenate([blocks[i] for i in (2, 0, 3, 1)])
    turned = problem.with_arrays(node=problem.node[rows], offsets=np.array([0, 7, 11, 12, 14]))
    sums = inference.sum_product(**turned.arguments(), curvature="mixing")
    np.testing.assert_allclose(sums.node, result.node[rows], **EXACT)
    np.testing.assert_allclose(sums.node_gamma, result.node_gamma[rows], **EXACT)
    np.testing.assert_allclose(sums.edge, result.edge, **EXACT)


def test_equal_scores_go_to_the_smaller_labels():
    node = np.zeros((5, 4), np.float32)
    for arguments in ({"offsets": [0, 5]}, {"offsets": [0, 5], "parents": [-1, 0, 0, 1, 1]}):
        for k in (1, 3):
            best = inference.max_product(node, np.zeros((4, 4)), k=k, **arguments)
            labels = best.labels if k == 1 else best.labels[0][0][0]
            np.testing.assert_array_equal(labels, np.zeros(5))
    best = inference.max_product(node, np.zeros((4, 4)), [0, 5], k=4)
    again = inference.max_product(node, np.zeros((4, 4)), [0, 5], k=4)
    for (labels, score), (same, _) in zip(best.labels[0], again.labels[0], strict=True):
        np.testing.assert_array_equal(labels, same)
        assert score == 0.0


def test_more_draws_leave_the_first_ones():
    problem = make_problem(0, lengths=(6, 3))
    few, many = (inference.sample(**problem.arguments(), n=n, seed=9) for n in (2, 5))
    np.testing.assert_array_equal(few, many[:2])
    assert (inference.sample(**problem.arguments(), n=5, seed=10) != many).any()
