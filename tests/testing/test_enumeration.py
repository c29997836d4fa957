"""The oracles themselves: small sums by hand, and each has been seen to fail.

An oracle is worth something only once it has caught a mistake.  Each test of the second half makes
one and expects the comparison to object.
"""

import numpy as np
import pytest

from crfx.inference import reference, reference_recursions
from crfx.inference.results import MaxProduct
from crfx.testing import (
    assert_best,
    assert_same,
    central_differences,
    enumerate_instances,
    enumeration,
    make_parents,
    make_problem,
)
from tests.pairwise import pairwise

EXACT = {"rtol": 1e-9, "atol": 1e-9}
DIFFERENCES = {"rtol": 1e-5, "atol": 1e-7}
SLACK = 1e-9
SLIP = 1e-3
"""The size of the mistakes made on purpose: small, but far above every tolerance."""


# Sanity.


def test_two_positions_by_hand():
    node = np.log([[1.0, 2.0], [3.0, 1.0]])
    edge = np.log([[1.0, 2.0], [1.0, 3.0]])
    arguments = {"node": node, "edge": edge, "offsets": [0, 2]}
    (listed,) = enumerate_instances(**arguments)
    # Weights: 00 -> 1*3*1, 01 -> 1*1*2, 10 -> 2*3*1, 11 -> 2*1*3; they sum to 17.
    assert listed.labels.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    np.testing.assert_allclose(np.exp(listed.scores), [3, 2, 6, 6], **EXACT)
    sums = enumeration.sum_product(**arguments)
    np.testing.assert_allclose(np.exp(sums.log_z), [17], **EXACT)
    np.testing.assert_allclose(sums.node, np.array([[5, 12], [9, 8]]) / 17, **EXACT)
    np.testing.assert_allclose(sums.edge, np.array([[3, 2], [6, 6]]) / 17, **EXACT)


def test_parts_of_every_structure_by_hand():
    node, ones = np.zeros((4, 2)), np.ones(4, dtype=int)
    chain = enumerate_instances(node, np.zeros((2, 2, 2)), [0, 1, 4], order=2)
    assert [e.parts for e in chain] == [[], [(0, 1, 2)]]
    forest = enumerate_instances(node, np.zeros((2, 2)), [0, 4], parents=[2, 0, -1, -1])
    assert forest[0].parts == [(2, 0), (0, 1)]
    tables = np.array([np.zeros((2, 2)), np.arange(4.0).reshape(2, 2)])
    typed = enumerate_instances(node, tables, [0, 4], edge_types=ones)[0]
    assert typed.score_of([0, 1, 1, 0]) == 1.0 + 3.0 + 2.0
    ends = enumerate_instances(node, None, [0, 4], start=[0.0, 5.0], end=[0.0, 7.0])[0]
    assert [ends.score_of(y) for y in ([1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 1, 0])] == [5, 7, 0]


def test_equal_scores_count_the_labellings():
    sums = enumeration.sum_product(node=np.zeros((6, 3)), edge=np.zeros((3, 3)), offsets=[0, 0, 6])
    np.testing.assert_allclose(np.exp(sums.log_z), [1.0, 3.0**6], **EXACT)


@pytest.mark.parametrize("order", [1, 2])
def test_the_hessian_is_the_derivative_of_the_marginals(order):
    arguments = make_problem(1, order=order, n_labels=2).arguments()
    (listed,) = enumerate_instances(**arguments)
    hessian = listed.hessian(listed.node_events)
    for i in range(hessian.shape[0]):

        def marginal(node, i=i):
            (moved,) = enumerate_instances(**{**arguments, "node": node})
            return moved.marginals(moved.node_events)[i]

        differences = central_differences(marginal, arguments["node"])
        np.testing.assert_allclose(hessian[i], differences.ravel(), **DIFFERENCES)


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_gammas_are_the_row_sums_of_the_hessian(shape):
    (listed,) = enumerate_instances(**make_problem(2, shape=shape).arguments())
    for events in (listed.node_events, listed.edge_events):
        hessian = listed.hessian(events)
        expected = np.abs(hessian).sum(axis=1) / np.diag(hessian)
        np.testing.assert_allclose(listed.gammas(events), expected, **EXACT)


def test_large_instances_raise():
    with pytest.raises(ValueError, match="enumerate smaller instances"):
        enumerate_instances(np.zeros((30, 2)), None, [0, 30])


def test_constraints_leave_a_labelling():
    for seed in range(30):
        shape = ("chain", "path", "star", "random")[seed % 4]
        problem = make_problem(seed, forbid=0.9, shape=shape, lengths=(3, 0, 4))
        assert np.isneginf(problem.node).any()
        assert np.isneginf(problem.edge).any()
        assert all(np.isfinite(e.log_z) for e in enumerate_instances(**problem.arguments()))


def test_problems_follow_their_seed():
    first, again, other = (make_problem(seed, shape="random").node for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_makers_of_parents():
    random = np.random.default_rng(0)
    star = make_parents(random, 6, "star")
    assert (star == -1).sum() == 1
    assert len(set(star[star >= 0])) == 1
    path = make_parents(random, 6, "path")
    assert sorted(path) == sorted({-1, *path})
    assert (path == -1).sum() == 1
    many = [(make_parents(random, 6, "random") == -1).sum() for _ in range(50)]
    assert min(many) == 1
    assert max(many) > 1


# Seen to fail: the comparison of sums.


MISTAKES = {
    "another node": lambda scores: scores | {"node": scores["node"] + SLIP * np.arange(1, 4)},
    "another start": lambda scores: scores | {"start": scores["start"] + SLIP * np.arange(1, 4)},
    "a missing end": lambda scores: scores | {"end": None},
    "a transposed table": lambda scores: scores | {"edge": np.ascontiguousarray(scores["edge"].T)},
    "shifted offsets": lambda scores: scores | {"offsets": scores["offsets"] + [0, 1, 0]},
}
ORDERS = [1, 2, 3]


@pytest.mark.parametrize(("mistake", "order"), pairwise(list(MISTAKES), ORDERS))
def test_a_mistake_in_the_scores_is_seen(mistake, order):
    arguments = make_problem(3, order=order, lengths=(4, 4)).arguments()
    cost = np.random.default_rng(0).normal(size=arguments["node"].shape)
    for function, options, fields in (
        ("sum_product", {"curvature": "exact"}, ("log_z", "node", "edge")),
        ("expectation", {"cost": cost}, ("value", "node", "edge")),
    ):
        expected = getattr(enumeration, function)(**arguments, **options)
        right, wrong = (
            getattr(reference, function)(**scores, **options)
            for scores in (arguments, MISTAKES[mistake](arguments))
        )
        assert_same(right, expected, **EXACT)
        with pytest.raises(AssertionError):
            assert_same(wrong, expected, **EXACT)
        for field in fields:
            with pytest.raises(AssertionError):
                np.testing.assert_allclose(getattr(wrong, field), getattr(expected, field), **EXACT)


def test_a_wrong_parent_and_a_wrong_type_are_seen():
    arguments = make_problem(5, shape="random", lengths=(5,), sharing="typed").arguments()
    expected = enumeration.sum_product(**arguments)
    other_types = {**arguments, "edge_types": 1 - arguments["edge_types"]}
    turned = {**arguments, "parents": np.array([-1, 0, 1, 2, 3])}
    for changed in (other_types, turned):
        with pytest.raises(AssertionError):
            assert_same(reference.sum_product(**changed), expected, **EXACT)


def test_a_missing_array_and_a_wrong_shape_are_seen():
    arguments = make_problem(6).arguments()
    expected = enumeration.sum_product(**arguments)
    for options in ({"edge_marginals": None}, {"edge_marginals": "each"}, {"curvature": "length"}):
        with pytest.raises(AssertionError):
            assert_same(reference.sum_product(**arguments, **options), expected, **EXACT)
    cost = np.zeros(arguments["node"].shape)
    with pytest.raises(AssertionError, match="is not"):
        assert_same(reference.expectation(**arguments, cost=cost), expected, **EXACT)


# Seen to fail: the comparison of best labellings.


def test_a_best_labelling_of_other_scores_is_seen():
    arguments = make_problem(7, lengths=(4, 4)).arguments()
    for k in (1, 4):
        assert_best(reference.max_product(**arguments, k=k), k=k, **arguments, **EXACT)
        for mistake in list(MISTAKES)[:4]:
            wrong = reference.max_product(**MISTAKES[mistake](arguments), k=k)
            with pytest.raises(AssertionError):
                assert_best(wrong, k=k, **arguments, **EXACT)


def test_bad_lists_of_best_labellings_are_seen():
    arguments = make_problem(8).arguments()
    good = reference.max_product(**arguments, k=3)
    (best,) = good.labels
    lists = {
        "one short": best[:2],
        "one twice": [best[0], best[0], best[2]],
        "second best first": [best[1], best[0], best[2]],
        "labels of another": [(best[1][0], best[0][1]), best[1], best[2]],
    }
    for listed in lists.values():
        with pytest.raises(AssertionError):
            assert_best(MaxProduct([listed], good.scores), k=3, **arguments, **EXACT)
    with pytest.raises(AssertionError):
        assert_best(MaxProduct([best], good.scores + SLIP), k=3, **arguments, **EXACT)
    with pytest.raises(AssertionError):
        assert_best(MaxProduct(best[1][0], good.scores), **arguments, **EXACT)


# Seen to fail: differences, and the bounds.


def test_a_wrong_gradient_is_seen():
    arguments = make_problem(9).arguments()

    def log_z(node):
        return reference.sum_product(**{**arguments, "node": node}).log_z.sum()

    differences = central_differences(log_z, arguments["node"])
    marginals = reference.sum_product(**arguments).node
    np.testing.assert_allclose(marginals, differences, **DIFFERENCES)
    for wrong in (-marginals, marginals * (1 + SLIP), marginals[::-1], np.zeros_like(marginals)):
        with pytest.raises(AssertionError):
            np.testing.assert_allclose(wrong, differences, **DIFFERENCES)


def star_of_nine():
    """Leaves that are nearly certain and nearly independent of the hub, whose label is open."""
    node = np.zeros((9, 2))
    node[1:, 0] = 3.0
    return {
        "node": node,
        "edge": np.array([[0.1, 0.0], [0.0, 0.1]]),
        "offsets": [0, 9],
        "parents": [-1] + [0] * 8,
    }


def printed_edge_gamma(listed):
    """Theorem 4.2 as printed, 2 (3 + sum beta + sum beta), on a star with node 0 as its hub.

    From an edge (hub, leaf) only the other leaves are reached: beta_{leaf -> hub} is the mixing
    rate alpha_{hub, leaf} itself.
    """
    edges = listed.marginals(listed.edge_events).reshape(-1, 2, 2)
    given_hub = edges / edges.sum(axis=2, keepdims=True)
    alpha = 1.0 - given_hub.min(axis=1).sum(axis=1)
    return 2.0 * (3.0 + alpha.sum() - alpha)


def test_theorem_4_2_as_printed_fails_on_a_star():
    """Its gammas lie below the exact ones, and do not dominate the Hessian."""
    (listed,) = enumerate_instances(**star_of_nine())
    exact = listed.gammas(listed.edge_events).reshape(8, -1).max(axis=1)
    hessian = listed.hessian(listed.edge_events)
    printed = printed_edge_gamma(listed)
    corrected = reference.sum_product(**star_of_nine(), curvature="mixing").edge_gamma[1:]
    assert (exact <= corrected + SLACK).all()
    assert (exact > 2.0 * printed).all()
    gaps = [
        np.linalg.eigvalsh(np.diag(np.repeat(gamma, 4) * np.diag(hessian)) - hessian).min()
        for gamma in (corrected, printed)
    ]
    assert gaps[0] > -SLACK
    assert gaps[1] < -SLIP


@pytest.mark.parametrize("order", ORDERS)
def test_a_bound_that_is_too_small_is_seen(order):
    """On chains that copy their labels everything moves together, so no smaller gamma is valid."""
    problem = make_problem(10, order=order, lengths=(5,), n_labels=2, ends=False, scale=0.1)
    copies = np.zeros((2,) * (order + 1))
    copies[(0,) * (order + 1)] = copies[(1,) * (order + 1)] = 6.0
    arguments = problem.with_arrays(edge=copies).arguments()
    (listed,) = enumerate_instances(**arguments)
    exact = listed.gammas(listed.node_events).reshape(5, 2).max(axis=1)
    mixing = reference.sum_product(**arguments, curvature="mixing").node_gamma
    assert (exact <= mixing + SLACK).all()
    assert (exact > 0.9 * mixing).any()
    hessian = listed.hessian(listed.node_events)
    gap = np.diag(np.repeat(0.9 * mixing, 2) * np.diag(hessian)) - hessian
    assert np.linalg.eigvalsh(gap).min() < -SLIP


def test_windows_that_mix_in_one_step_fail(monkeypatch):
    """In order 2, y_3 copies y_1 past an independent y_2: one step mixes fully, two do not."""
    edge = np.zeros((4, 2, 2, 2))
    edge[3] = 9.0 * np.eye(2)[:, None, :]
    arguments = {"node": np.zeros((4, 2)), "edge": edge, "offsets": [0, 4], "order": 2}
    (listed,) = enumerate_instances(**arguments)
    exact = listed.gammas(listed.node_events).reshape(4, 2).max(axis=1)

    def bound():
        return reference.sum_product(**arguments, curvature="mixing").node_gamma

    assert (exact <= bound() + SLACK).all()
    rates = reference_recursions._window_rates
    one_step = lambda joints, rate: rates(joints, rate)[:1] * len(joints)  # noqa: E731
    monkeypatch.setattr(reference_recursions, "_window_rates", one_step)
    assert (exact > bound() + SLACK).any()
