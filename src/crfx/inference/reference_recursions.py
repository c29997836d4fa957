"""Recursions of the reference beyond sum-product: expected costs, decoding, curvature.

A first-order expectation semiring carries (weight, weight * expected cost).  Here the second number
is kept as a ratio, the conditional expectation, which neither grows nor vanishes.

Curvature: factors gamma with which gamma * diag(H) dominates H, the Hessian of log Z.
H over all node events (or all edge events) of an instance is the covariance of their indicators.
By diagonal dominance any gamma_i >= sum_j |H_ij| / H_ii will do (Chen et al. 2015, Eq. 6 to 10);
the four kinds trade tightness for time, exact <= dobrushin <= mixing <= length for nodes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np
import numpy.typing as npt

from crfx.inference.problem import Problem
from crfx.inference.results import IMPOSSIBLE
from crfx.inference.window_tree import (
    Array,
    Beliefs,
    Messages,
    Tree,
    Window,
    all_but_one,
    beliefs,
    exchanged,
    log_sum,
    normalised,
    older_axis,
    project,
    spread,
    window_trees,
)
from crfx.scores import IntArray

# Expected costs.


@dataclass(frozen=True, eq=False)
class ExpectedCost:
    """Expected cost of a tree given the labels of each window, and of each edge (None at roots)."""

    windows: list[Array]
    edges: list[Array | None]


def conditional_costs(tree: Tree, messages: Messages, cost: Array) -> ExpectedCost:
    """Return E[cost | window] and E[cost | edge] of each window's own tree.

    ``cost`` (rows, K).  The same two passes as for log Z: O(windows * K^(n+1)).
    """
    local = [spread(cost, window) for window in tree]
    inside, up = _upward(tree, messages, local)
    context: list[Array] = [np.zeros(())] * len(tree)
    outside: list[Array] = [np.zeros(())] * len(tree)
    for index, window in enumerate(tree):
        siblings = all_but_one([up[child] for child in window.children])
        for child, others in zip(window.children, siblings, strict=True):
            context[child] = local[index] + outside[index] + others
            table = tree[child].table
            assert table is not None
            weights = table + messages.context[child][..., None]
            outside[child] = _mean(weights, context[child][..., None], axis=0)
    edges = [
        None if w.table is None else context[i][..., None] + older_axis(inside[i], w)
        for i, w in enumerate(tree)
    ]
    return ExpectedCost([a + b for a, b in zip(inside, outside, strict=True)], edges)


def covariance(log_probability: Array, expected: Array) -> Array:
    """Return Cov(cost, 1[event]) = P(event) (E[cost | event] - E[cost]) of a full set of events."""
    probability = np.exp(log_probability)
    return np.asarray(probability * (expected - (probability * expected).sum()))


def expected_value(tree: Tree, log_p: Beliefs, costs: ExpectedCost) -> float:
    """Return E[cost] of the instance, the sum over its trees."""
    return float(
        sum(
            (np.exp(log_p.windows[i]) * costs.windows[i]).sum()
            for i, window in enumerate(tree)
            if window.table is None
        )
    )


def _upward(tree: Tree, messages: Messages, local: list[Array]) -> tuple[list[Array], list[Array]]:
    inside: list[Array] = list(local)
    up: list[Array] = [np.zeros(())] * len(tree)
    for index in reversed(range(len(tree))):
        window = tree[index]
        inside[index] = local[index] + sum(up[child] for child in window.children)
        if window.table is not None:
            weights = window.table + older_axis(messages.inside[index], window)
            up[index] = _mean(weights, older_axis(inside[index], window), axis=-1)
    return inside, up


def _mean(log_weights: Array, values: Array, *, axis: int) -> Array:
    """Return the mean of values under softmax weights; 0 where nothing is allowed."""
    total = np.logaddexp.reduce(log_weights, axis=axis, keepdims=True)
    weights = np.exp(log_weights - np.where(np.isneginf(total), 0.0, total))
    return np.asarray((weights * values).sum(axis=axis))


# Decoding: best labellings and samples.

Partial = tuple[float, tuple[int, ...]]
"""Score and labels of some rows: a window's new ones, then those of its branches in turn."""

Lists = dict[tuple[int, ...], list[Partial]]
"""For every state (labels) of a window, the best partial labellings below it, best first."""


def k_best(tree: Tree, k: int, n_labels: int) -> list[tuple[IntArray, float]]:
    """Return the k best allowed labellings as (labels in row order, score), best first.

    Each message holds the k best of its branch for each state of the parent: whatever is among
    the k best overall is among the k best of every branch.  Ties go to the smaller labels.
    O(windows * K^(n+1) * k log k), in plain Python.
    """
    messages: list[Lists] = [{} for _ in tree]
    best: list[Partial] = [(0.0, ())]
    for index in reversed(range(len(tree))):
        window = tree[index]
        inside = _inside_lists(window, messages, k, n_labels)
        if window.table is not None:
            messages[index] = _message_lists(window, inside, k, n_labels)
        else:  # roots come last to first, so each goes in front of those already joined
            of_tree = _top(k, (partial for partials in inside.values() for partial in partials))
            best = _joined(of_tree, best, k)
    rows = [row for i, w in enumerate(tree) if w.table is None for row in _subtree_rows(tree, i)]
    return [(np.array(labels, np.int32)[np.argsort(rows)], score) for score, labels in best]


def draw(tree: Tree, messages: Messages, labels: IntArray, random: np.random.Generator) -> None:
    """Fill the columns of ``labels`` (n, rows) that belong to the tree with samples.

    Root windows are drawn from their marginal, each later label given the window before it, by
    the Gumbel trick: the argmax of log weights plus Gumbel noise is a draw.
    O(n * windows * K), and K^n at roots.
    """
    n = len(labels)
    for index, window in enumerate(tree):
        inside = messages.inside[index]
        if window.table is None:
            noisy = inside.ravel() + random.gumbel(size=(n, inside.size))
            states = np.unravel_index(noisy.argmax(axis=1), inside.shape)
            labels[:, window.rows] = np.stack(states, axis=1)
        else:
            weights = window.table + older_axis(inside, window)
            weights = weights[tuple(labels[:, row] for row in tree[window.parent].rows)]
            noisy = weights + random.gumbel(size=weights.shape)
            labels[:, window.rows[-1]] = noisy.argmax(axis=1)


def _inside_lists(window: Window, messages: list[Lists], k: int, n_labels: int) -> Lists:
    lists: Lists = {}
    for state in product(range(n_labels), repeat=len(window.rows)):
        new = tuple(state[axis] for axis in window.new_axes)
        partials = _top(k, [(float(window.local[state]), new)])
        for child in window.children:
            partials = _joined(partials, messages[child][state], k)
        lists[state] = partials
    return lists


def _message_lists(window: Window, inside: Lists, k: int, n_labels: int) -> Lists:
    assert window.table is not None
    table = window.table
    return {
        before: _top(
            k,
            (
                (float(table[(*before, label)]) + score, labels)
                for label in range(n_labels)
                for score, labels in inside[(*before[1:], label)]
            ),
        )
        for before in product(range(n_labels), repeat=len(window.rows))
    }


def _joined(left: list[Partial], right: list[Partial], k: int) -> list[Partial]:
    return _top(k, ((a + b, first + second) for a, first in left for b, second in right))


def _top(k: int, partials: Iterable[Partial]) -> list[Partial]:
    allowed = (partial for partial in partials if partial[0] > -np.inf)
    return heapq.nsmallest(k, allowed, key=lambda partial: (-partial[0], partial[1]))


def _subtree_rows(tree: Tree, root: int) -> list[int]:
    """Return rows in the order in which partial labellings list labels, without recursion."""
    rows, pending = [], [root]
    while pending:
        window = tree[pending.pop()]
        rows += [window.rows[axis] for axis in window.new_axes]
        pending += reversed(window.children)
    return rows


# Curvature.

Curvature = Literal["mixing", "dobrushin", "exact", "length"]
Rate = Callable[[Array, Array], float]
"""How much of a total variation distance survives a step: from P(outcome | state), one row each,
and P(state)."""

NO_INTERACTION = 2.0
"""Gamma of an event on its own: ||P(y | k) - P(y | not k)||_1."""


def gammas(problem: Problem, kind: Curvature) -> tuple[Array, Array | None]:
    """Return node and edge gammas: (rows,) each, with label axes where ``kind`` is "exact".

    Edge gammas are None without edge scores, and 0 at rows where no edge ends.
    """
    rows, k = problem.scores.node.shape
    exact = kind == "exact"
    impossible = IMPOSSIBLE[problem.scores.dtype]
    node = np.full((rows, k) if exact else (rows,), NO_INTERACTION)
    edge = np.zeros((rows, *(k,) * problem.structure.n_label_axes) if exact else (rows,))
    if kind == "length":
        _length(problem, node, edge)
    else:
        for _, tree in window_trees(problem):
            if kind == "exact":
                _exact(tree, node, edge, impossible)
            else:
                _mixing(tree, node, edge, _among_possible(RATES[kind], impossible))
    return node, None if problem.sharing == "none" else edge


def mixing_rate(conditional: Array) -> float:
    """Return 1 - sum_j min_i P(j | i) (Theorem 4.1); ``conditional`` is (states, outcomes)."""
    return float(np.clip(1.0 - conditional.min(axis=0).sum(), 0.0, 1.0))


def dobrushin_rate(conditional: Array) -> float:
    """Return max_{i, i'} TV(P(. | i), P(. | i')), at most the mixing rate.  O(states * size)."""
    gaps = np.abs(conditional[:, None] - conditional[None]).sum(axis=-1) / 2.0
    return float(np.clip(gaps.max(), 0.0, 1.0))


RATES = {"mixing": mixing_rate, "dobrushin": dobrushin_rate}


def _among_possible(rate: Callable[[Array], float], impossible: float) -> Rate:
    """Leave out the states that no walk starts from."""
    return lambda conditional, states: rate(conditional[states > impossible])


def _length(problem: Problem, node: Array, edge: Array) -> None:
    """Fill in Corollary 4.1: every node (edge) of the tree moves by an L1 distance of 2 at most."""
    tree_of = problem.structure.tree_of(problem.batch)
    edge_rows = problem.structure.edge_rows(problem.batch)
    rows = problem.batch.n_rows
    node[:] = 2.0 * np.bincount(tree_of, minlength=rows)[tree_of]
    edges = np.bincount(tree_of[edge_rows], minlength=rows)
    edge[edge_rows] = 2.0 * edges[tree_of[edge_rows]]


def _mixing(tree: Tree, node: Array, edge: Array, rate: Rate) -> None:
    joints = beliefs(tree).edges
    if tree and len(tree[0].rows) > 1:
        _chain_messages(tree, joints, node, edge, rate)
    else:
        _tree_messages(tree, joints, node, edge, rate)


# Order 1: messages between neighbours (Theorem 4.1, Eq. 17, and Theorem 4.2 corrected).


def _tree_messages(
    tree: Tree, joints: list[Array | None], node: Array, edge: Array, rate: Rate
) -> None:
    """Fill the gammas of one instance.

    Theorem 4.2 as printed counts only two of the edges that touch an edge, whatever the degree;
    here each edge that touches it counts fully, and what lies beyond is reached through it.
    """
    down = [0.0 if j is None else _rate_given(j, rate) for j in joints]
    up = [0.0 if j is None else _rate_given(j.T, rate) for j in joints]
    # beta_{s->t} = alpha_{t,s} (1 + sum beta_{h->s}): nodes reached from t through s.
    _, beta_in = _neighbour_sums(tree, down, up, lambda alpha, s: alpha * (1.0 + s))
    # eps_{s->t} = 1 + alpha_{t,s} sum eps_{h->s}: edges reached from t through s, (s, t) included.
    eps_up, eps_in = _neighbour_sums(tree, down, up, lambda alpha, s: 1.0 + alpha * s)
    for i, window in enumerate(tree):
        node[window.rows[0]] = 2.0 * (1.0 + beta_in[i])
        if window.table is not None:
            below = sum(eps_up[child] for child in window.children)
            beside = eps_in[window.parent] - eps_up[i]
            edge[window.rows[0]] = 2.0 * (1.0 + below + beside)


def _neighbour_sums(
    tree: Tree, down: list[float], up: list[float], step: Callable[[float, float], float]
) -> tuple[list[float], list[float]]:
    """Return each window's message to its parent, and the sum of the messages it receives.

    ``down[v]`` is the rate of the walk from v's parent to v, ``up[v]`` that from v to its parent.
    """
    sent = [0.0] * len(tree)
    received = [0.0] * len(tree)
    for v in reversed(range(len(tree))):
        if tree[v].table is not None:
            sent[v] = step(down[v], received[v])
            received[tree[v].parent] += sent[v]
    for v, window in enumerate(tree):  # received[parent] is complete: parents come first
        if window.table is not None:
            received[v] += step(up[v], received[window.parent] - sent[v])
    return sent, received


# Order n: the same on windows, which mix over n steps and never over fewer.


def _chain_messages(
    tree: Tree, joints: list[Array | None], node: Array, edge: Array, rate: Rate
) -> None:
    """Fill the gammas of one chain of order 2 or more.

    The window S_t = (y_{t-n+1}, ..., y_t) is a Markov chain.  A change of y_t moves S_t by a
    total variation of 1 at most, y_{t+m} by alpha^(m)_t of that, and S_{t+n} by alpha^(n)_t.
    """
    rows = np.array([*tree[0].rows, *(w.rows[-1] for w in tree[1:])])
    order = len(tree[0].rows)  # less than the problem's where the chain is shorter than that
    tables = [j for j in joints if j is not None]
    node_after, edge_after = _walk_forward(tables, len(rows), order, rate)
    mirrored = [j.T for j in reversed(tables)]
    node_before, edge_before = _walk_forward(mirrored, len(rows), order, rate)
    node[rows] = 2.0 * (1.0 + node_after + node_before[::-1])
    edge[rows[order:]] = 2.0 * (1.0 + edge_after + edge_before[::-1])


def _walk_forward(joints: list[Array], length: int, order: int, rate: Rate) -> tuple[Array, Array]:
    """Return (length,) and (edges,): how much moves after each node, and after each edge.

    ``joints[t - order]`` is the log probability of the edge that ends at position t.
    O(length * K^(2n)) time for the mixing rate, K^(3n) for Dobrushin's.
    """
    last = length - 1
    beta, eps = np.zeros(length), np.zeros(length)
    for t in range(last - 1, order - 2, -1):
        reach = min(order, last - t)
        alphas = _window_rates(joints[t + 1 - order : t + 1 - order + reach], rate)
        beta[t], eps[t] = sum(alphas), reach
        if t + order <= last:
            beta[t] += alphas[-1] * beta[t + order]
            eps[t] += alphas[-1] * eps[t + order]
    # Before the first full window: up to its end everything may move, then as from there.
    beta[: order - 1] = np.arange(order - 1, 0, -1) + beta[order - 1]
    return beta, eps[order:]


def _window_rates(joints: list[Array], rate: Rate) -> list[float]:
    """Return alpha^(1), ..., alpha^(m) of a window from the edges that follow it.

    alpha^(m) is the rate from S_t to (y_{t+1}, ..., y_{t+m}): its conditional probability has the
    window's n axes, then m more; each step multiplies by P(y_{t+m} | the n labels before).
    """
    n = joints[0].ndim - 1
    states = np.exp(log_sum(joints[0], 1)).ravel()
    ahead = np.zeros((joints[0].shape[0],) * n)
    rates = []
    for joint in joints:
        ahead = ahead[..., None] + normalised(joint, 1)
        rates.append(rate(np.exp(ahead).reshape(len(states), -1), states))
    return rates


def _rate_given(joint: Array, rate: Rate) -> float:
    """Return the rate of the step from the first to the second label of a log joint (K, K)."""
    return _window_rates([joint], rate)[0]


# Exact: compare every event with its complement.


def _exact(tree: Tree, node: Array, edge: Array, impossible: float) -> None:
    """Fill sum_j |H_ij| / H_ii as sum_j |P(j | i) - P(j | not i)|, which never cancels.

    One run of the recursion per event and one per complement: O(N^2 K^(n+2)) for the nodes of a
    chain of N positions, O(N^2 K^(2n+2)) for its edges.
    """
    total = float(beliefs(tree).log_z)
    for index, window in enumerate(tree):
        n_axes, k = len(window.rows), node.shape[1]
        for axis in window.new_axes:
            shape = [k, *(k if a == axis else 1 for a in range(n_axes))]
            mask = _event_or_not(np.eye(k, dtype=bool).reshape(shape))
            clamped = beliefs(exchanged(tree, index, replace(window, local=window.local + mask)))
            distances = _node_distances(tree, clamped)
            node[window.rows[axis]] = _moved(clamped, total, distances, impossible)
        if window.table is not None:
            events = np.eye(window.table.size, dtype=bool).reshape(-1, *window.table.shape)
            table = window.table + _event_or_not(events)
            clamped = beliefs(exchanged(tree, index, replace(window, table=table)))
            moved = _moved(clamped, total, _edge_distances(tree, clamped), impossible)
            edge[window.rows[-1]] = moved.reshape(window.table.shape)


def _event_or_not(events: npt.NDArray[np.bool_]) -> Array:
    """Return (2, events, ...): log masks that allow only the event, and all but the event."""
    return np.where(np.stack([events, ~events]), 0.0, -np.inf)


def _moved(clamped: Beliefs, total: float, distances: Array, impossible: float) -> Array:
    """Return (events,) distances, or NO_INTERACTION where the event is impossible or certain."""
    probabilities = np.exp(clamped.log_z - total)
    return np.where((probabilities > impossible).all(axis=0), distances, NO_INTERACTION)


def _node_distances(tree: Tree, clamped: Beliefs) -> Array:
    """Return sum_s ||P(y_s | event) - P(y_s | not event)||_1, for all events at once."""
    total = np.zeros(())
    for window, belief in zip(tree, clamped.windows, strict=True):
        for axis in window.new_axes:
            total = total + _distance(project(np.exp(belief), axis, len(window.rows)), 1)
    return total


def _edge_distances(tree: Tree, clamped: Beliefs) -> Array:
    """Return the same sums over the label tuples of all edges."""
    total = np.zeros(())
    for window, joint in zip(tree, clamped.edges, strict=True):
        if joint is not None:
            total = total + _distance(np.exp(joint), len(window.rows) + 1)
    return total


def _distance(pair: Array, n_axes: int) -> Array:
    """Return (events,) distances of (2, events, labels...); 0 in trees without the clamp."""
    if pair.ndim == n_axes:
        return np.zeros(())
    return np.asarray(np.abs(pair[0] - pair[1]).sum(axis=tuple(range(-n_axes, 0))))
