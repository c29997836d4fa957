"""The slow twin of the core: plain NumPy in float64 and log space, for tests and for reading.

Same signatures as ``crfx.inference`` and the same results (samples: the same distribution, not the
same draws); clear before fast.  Chains of every order and
forests go through one recursion, on a tree of windows (`window_tree`).
"""

from __future__ import annotations

import operator
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from crfx.errors import BadInstance
from crfx.inference.problem import Problem, checked_cost, prepare
from crfx.inference.reference_recursions import (
    Curvature,
    conditional_costs,
    covariance,
    draw,
    expected_value,
    gammas,
    k_best,
)
from crfx.inference.results import Expectation, KBest, MaxProduct, SumProduct
from crfx.inference.window_tree import (
    Array,
    Tree,
    beliefs,
    log_partition,
    pass_messages,
    project,
    window_trees,
)
from crfx.scores import IntArray

EdgeMarginals = Literal["sum", "each"]


def sum_product(
    node: npt.ArrayLike,
    edge: npt.ArrayLike | None,
    offsets: npt.ArrayLike,
    *,
    parents: npt.ArrayLike | None = None,
    edge_types: npt.ArrayLike | None = None,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
    order: int = 1,
    edge_marginals: EdgeMarginals | None = "sum",
    curvature: Curvature | None = None,
    n_jobs: int | None = None,
) -> SumProduct:
    """Return log Z, marginals and, if requested, curvature factors.

    ``node`` (rows, K); ``edge`` None, (K, ..., K) with order + 1 axes, (types, K, ..., K) with
    ``edge_types`` or (rows, K, ..., K); ``offsets`` (instances + 1,).  One thread, whatever
    ``n_jobs``.  O(rows * K^(order+1)); see ``reference_recursions`` for the cost of curvature.
    """
    _check_options(edge_marginals, curvature, n_jobs)
    problem = _checked(prepare(node, edge, offsets, parents, edge_types, start, end, order))
    log_z = np.zeros(problem.batch.n_instances)
    out_node, out_edge = _empty_parts(problem)
    for instance, tree in window_trees(problem):
        log_p = beliefs(tree)
        log_z[instance] = _allowed(instance, float(log_p.log_z))
        windows = [np.exp(p) for p in log_p.windows]
        edges = [None if p is None else np.exp(p) for p in log_p.edges]
        _write(tree, windows, edges, out_node, out_edge)
    summed = _collected(problem, out_edge, edge_marginals)
    node_gamma, edge_gamma = gammas(problem, curvature) if curvature else (None, None)
    return SumProduct(log_z, out_node, summed, node_gamma, edge_gamma)


def max_product(
    node: npt.ArrayLike,
    edge: npt.ArrayLike | None,
    offsets: npt.ArrayLike,
    *,
    parents: npt.ArrayLike | None = None,
    edge_types: npt.ArrayLike | None = None,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
    order: int = 1,
    k: int = 1,
    n_jobs: int | None = None,
) -> MaxProduct:
    """Return the best labelling of every instance, or with k > 1 its k best.

    Labellings that constraints forbid are never listed, so there may be fewer than k.  Ties go to
    the smaller labels, read from the first position on (in a forest: root, then its branches).
    O(rows * K^(order+1) * k log k), in plain Python.
    """
    _check_options(None, None, n_jobs)
    if operator.index(k) < 1:
        raise ValueError(f"k must be 1 or more, got {k}")
    problem = _checked(prepare(node, edge, offsets, parents, edge_types, start, end, order))
    lists: KBest = []
    for instance, tree in window_trees(problem):
        lists.append(k_best(tree, k, problem.scores.n_labels))
        _allowed(instance, lists[-1][0][1] if lists[-1] else -np.inf)
    scores = np.array([best[0][1] for best in lists], dtype=np.float64)
    if k > 1:
        return MaxProduct(lists, scores)
    none = np.zeros(0, dtype=np.int32)
    return MaxProduct(np.concatenate([none, *(best[0][0] for best in lists)]), scores)


def sample(
    node: npt.ArrayLike,
    edge: npt.ArrayLike | None,
    offsets: npt.ArrayLike,
    *,
    n: int = 1,
    seed: int = 0,
    parents: npt.ArrayLike | None = None,
    edge_types: npt.ArrayLike | None = None,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
    order: int = 1,
    n_jobs: int | None = None,
) -> IntArray:
    """Return (n, rows) int32: independent labellings drawn from the model.

    Only the distribution is the core's: the random numbers are NumPy's.  O(n * rows * K).
    """
    _check_options(None, None, n_jobs)
    if operator.index(n) < 0:
        raise ValueError(f"n must be 0 or more, got {n}")
    problem = _checked(prepare(node, edge, offsets, parents, edge_types, start, end, order))
    labels = np.zeros((n, problem.batch.n_rows), dtype=np.int32)
    random = np.random.default_rng(seed)
    for instance, tree in window_trees(problem):
        messages = pass_messages(tree)
        _allowed(instance, float(log_partition(tree, messages)))
        draw(tree, messages, labels, random)
    return labels


def expectation(
    node: npt.ArrayLike,
    edge: npt.ArrayLike | None,
    offsets: npt.ArrayLike,
    cost: npt.ArrayLike,
    *,
    parents: npt.ArrayLike | None = None,
    edge_types: npt.ArrayLike | None = None,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
    order: int = 1,
    edge_marginals: EdgeMarginals | None = "sum",
    n_jobs: int | None = None,
) -> Expectation:
    """Return E[sum_t cost_t(y_t)] per instance and its gradient in node and edge scores.

    ``cost`` (rows, K), finite.  ``edge_marginals`` says how the gradient in ``edge`` is given:
    summed into one table (or one per type), or one per row.  O(rows * K^(order+1)).
    """
    _check_options(edge_marginals, None, n_jobs)
    problem = _checked(prepare(node, edge, offsets, parents, edge_types, start, end, order))
    costs: Array = checked_cost(cost, problem, np.float64).astype(np.float64, copy=False)
    value = np.zeros(problem.batch.n_instances)
    out_node, out_edge = _empty_parts(problem)
    for instance, tree in window_trees(problem):
        log_p, expected = beliefs(tree), conditional_costs(tree, pass_messages(tree), costs)
        _allowed(instance, float(log_p.log_z))
        value[instance] = expected_value(tree, log_p, expected)
        windows = [covariance(p, e) for p, e in zip(log_p.windows, expected.windows, strict=True)]
        edges = [
            None if p is None or e is None else covariance(p, e)
            for p, e in zip(log_p.edges, expected.edges, strict=True)
        ]
        _write(tree, windows, edges, out_node, out_edge)
    return Expectation(value, out_node, _collected(problem, out_edge, edge_marginals))


def _check_options(edge_marginals: str | None, curvature: str | None, n_jobs: int | None) -> None:
    for name, value, options in (
        ("edge_marginals", edge_marginals, get_args(EdgeMarginals)),
        ("curvature", curvature, get_args(Curvature)),
    ):
        if value is not None and value not in options:
            raise ValueError(f"{name} must be one of {options} or None, got {value!r}")
    if n_jobs is not None and operator.index(n_jobs) == 0:
        raise ValueError("n_jobs must be None or a number of threads other than 0")


def _checked(problem: Problem) -> Problem:
    """Run the checks that the core makes on its way: parents, NaN, +inf."""
    problem.structure.check(problem.batch)
    used = problem.structure.edge_rows(problem.batch) if problem.sharing == "each" else None
    problem.scores.check_finite(problem.batch, used)
    return problem


def _allowed(instance: int, value: float) -> float:
    if value == -np.inf:
        raise BadInstance(
            instance, "constraints (-inf scores) leave no allowed labelling; allow at least one"
        )
    return value


def _empty_parts(problem: Problem) -> tuple[Array, Array]:
    rows, k = problem.scores.node.shape
    return np.zeros((rows, k)), np.zeros((rows, *(k,) * problem.structure.n_label_axes))


def _write(
    tree: Tree, windows: list[Array], edges: list[Array | None], node: Array, edge: Array
) -> None:
    """Put values over window and edge labels where they belong: node and edge, by row."""
    for window, over_window, over_edge in zip(tree, windows, edges, strict=True):
        for axis in window.new_axes:
            node[window.rows[axis]] = project(over_window, axis, len(window.rows))
        if over_edge is not None:
            edge[window.rows[-1]] = over_edge


def _collected(problem: Problem, each: Array, how: str | None) -> Array | None:
    """Return edge values (rows, K, ..., K) as they are, or summed as the tables are shared."""
    if how is None or problem.scores.edge is None:
        return None
    if how == "each":
        return each
    if problem.sharing != "typed" or problem.batch.edge_types is None:
        return np.asarray(each.sum(axis=0))
    rows = problem.structure.edge_rows(problem.batch)
    summed = np.zeros(problem.scores.edge.shape)
    np.add.at(summed, problem.batch.edge_types[rows], each[rows])
    return summed
