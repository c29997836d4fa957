"""Bounds of curvature by the reference against their path formulas.

Theorems 4.1 and 4.2 sum a product of mixing rates along the path to each node and edge.  The
reference passes messages; here the sums are written out, with rates from enumerated labellings.
"""

import itertools
from itertools import combinations, product

import numpy as np
import pytest

from crfx.inference import reference
from crfx.inference.problem import prepare
from crfx.inference.reference_recursions import _chain_messages, _tree_messages, mixing_rate
from crfx.inference.window_tree import beliefs, window_trees
from crfx.testing import enumerate_instances, make_problem
from tests.pairwise import pairwise

EXACT = {"rtol": 1e-9, "atol": 1e-9}
"""Two float64 computations of the same number."""

KINDS = ("mixing", "dobrushin")


# The path formulas.


def rate(listed, condition, target, kind):
    """The rate from the labels at positions ``given`` to those at positions ``target``."""
    k, p = listed.n_labels, listed.probabilities
    rows = []
    for state in product(range(k), repeat=len(condition)):
        inside = p * (listed.labels[:, condition] == state).all(axis=1)
        if inside.sum() > 0.0:
            outcomes = product(range(k), repeat=len(target))
            hits = [(listed.labels[:, target] == outcome).all(axis=1) for outcome in outcomes]
            rows.append([inside[hit].sum() / inside.sum() for hit in hits])
    if kind == "mixing":
        return 1.0 - np.min(rows, axis=0).sum()
    return max((np.abs(np.subtract(a, b)).sum() / 2 for a, b in combinations(rows, 2)), default=0.0)


def path(parents, start, stop):
    """The nodes on the way from one node of a tree to another, both included; None if none."""

    def line(node):
        return [node, *(line(parents[node]) if parents[node] >= 0 else [])]

    up, down = line(start), line(stop)
    meeting = next((node for node in up if node in down), None)
    if meeting is None:
        return None
    return up[: up.index(meeting) + 1] + down[: down.index(meeting)][::-1]


def walked(listed, parents, start, stop, kind):
    """The product of rates along a path; 0 where there is none."""
    nodes = path(parents, start, stop)
    return (
        0.0
        if nodes is None
        else np.prod([rate(listed, [a], [b], kind) for a, b in itertools.pairwise(nodes)])
    )


@pytest.mark.parametrize(
    ("seed", "shape", "kind"), pairwise([0, 1, 2], ["star", "path", "random"], list(KINDS))
)
def test_forest_gammas_are_sums_over_paths(seed, shape, kind):
    problem = make_problem(seed, lengths=(6,), shape=shape, n_labels=2 + seed % 2, forbid=0.2)
    sums = reference.sum_product(**problem.arguments(), curvature=kind)
    (listed,) = enumerate_instances(**problem.arguments())
    up = problem.parents.tolist()
    for t in range(6):
        total = sum(walked(listed, up, t, s, kind) for s in range(6))
        np.testing.assert_allclose(sums.node_gamma[t], 2.0 * total, **EXACT)
    for here in listed.parts:
        # From the nearer end of one edge to the nearer end of the other.
        total = 0.0
        for there in listed.parts:
            ways = [p for a in here for b in there if (p := path(up, a, b)) is not None]
            if ways:
                nearest = min(ways, key=len)
                total += walked(listed, up, nearest[0], nearest[-1], kind)
        np.testing.assert_allclose(sums.edge_gamma[here[-1]], 2.0 * total, **EXACT)


def reach(listed, order, sign, t, kind):
    """Return how far y_t moves each later node, and the edge that ends at t each later edge.

    ``sign`` -1 looks at the chain from its other end.  With n the order and q whole turns of n
    steps, node t + qn + m moves by alpha^(n)_t alpha^(n)_{t+n} ... alpha^(m)_{t+qn}.
    """
    length = listed.labels.shape[1]
    at = range(length)[::sign]

    def alpha(s, m):
        window, ahead = range(s - order + 1, s + 1), range(s + 1, s + m + 1)
        return rate(listed, [at[i] for i in window], [at[i] for i in ahead], kind)

    first = max(t, order - 1)
    nodes, edges, carried = float(first - t), 0.0, 1.0
    for s in range(first, length, order):
        steps = min(order, length - 1 - s)
        nodes += carried * sum(alpha(s, m) for m in range(1, steps + 1))
        edges += carried * steps
        carried *= alpha(s, order) if steps == order else 0.0
    return nodes, edges


@pytest.mark.parametrize(("order", "forbid", "kind"), pairwise([1, 2, 3], [0.0, 0.2], list(KINDS)))
def test_chain_gammas_are_sums_over_turns_of_n_steps(order, forbid, kind):
    length = 8
    problem = make_problem(
        order, lengths=(length,), order=order, n_labels=2, forbid=forbid, sharing="each"
    )
    sums = reference.sum_product(**problem.arguments(), curvature=kind)
    (listed,) = enumerate_instances(**problem.arguments())
    for t in range(length):
        after, _ = reach(listed, order, 1, t, kind)
        before, _ = reach(listed, order, -1, length - 1 - t, kind)
        np.testing.assert_allclose(sums.node_gamma[t], 2.0 * (1.0 + after + before), **EXACT)
    for t in range(order, length):
        _, after = reach(listed, order, 1, t, kind)
        _, before = reach(listed, order, -1, length - 1 - t + order, kind)
        np.testing.assert_allclose(sums.edge_gamma[t], 2.0 * (1.0 + after + before), **EXACT)


# Known values.


def test_length_counts_the_nodes_and_edges_of_each_tree():
    arguments = {
        "node": np.zeros((5, 2)),
        "edge": np.zeros((2, 2)),
        "offsets": [0, 5],
        "parents": [-1, 0, 0, -1, 3],
    }
    sums = reference.sum_product(**arguments, curvature="length")
    assert sums.node_gamma.tolist() == [6, 6, 6, 4, 4]
    assert sums.edge_gamma.tolist() == [0, 4, 4, 0, 2]


@pytest.mark.parametrize(("order", "curvature"), [(1, "exact"), (2, "dobrushin"), (2, "mixing")])
def test_without_edge_scores_gamma_is_two(order, curvature):
    problem = make_problem(0, sharing="none", order=order)
    sums = reference.sum_product(**problem.arguments(), curvature=curvature)
    assert (sums.node_gamma == 2.0).all()
    assert sums.edge is None
    assert sums.edge_gamma is None


def test_window_messages_of_order_one_are_the_neighbour_messages():
    for seed in range(5):
        arguments = make_problem(seed, lengths=(6,), forbid=0.3, scale=2.0).arguments()
        ((_, tree),) = window_trees(prepare(**arguments))
        joints, results = beliefs(tree).edges, []
        for messages in (_tree_messages, _chain_messages):
            node, edge = np.zeros(6), np.zeros(6)
            messages(tree, joints, node, edge, lambda rows, states: mixing_rate(rows[states > 0]))
            results.append((node, edge))
        np.testing.assert_allclose(results[0], results[1], **EXACT)
