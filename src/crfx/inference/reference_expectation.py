"""The first-order expectation pass over a tree of windows.

A first-order expectation semiring carries (weight, weight * expected cost); here the second
number is kept as a ratio, the conditional expectation, which does not grow or vanish.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crfx.inference.reference_windows import (
    Array,
    Beliefs,
    Messages,
    Tree,
    Window,
    all_but_one,
    older_axis,
    spread,
)


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
            outside[child] = _mean_outside(tree[child], messages.context[child], context[child])
    edges = [
        None if w.table is None else context[i][..., None] + older_axis(inside[i], w)
        for i, w in enumerate(tree)
    ]
    return ExpectedCost([a + b for a, b in zip(inside, outside, strict=True)], edges)


def covariance(log_probability: Array, expected: Array) -> Array:
    """Cov(cost, 1[event]) = P(event) (E[cost | event] - E[cost]) for a full set of events."""
    probability = np.exp(log_probability)
    return np.asarray(probability * (expected - (probability * expected).sum()))


def expected_value(tree: Tree, found: Beliefs, costs: ExpectedCost) -> float:
    """Return E[cost] of the instance, the sum over its trees."""
    return float(
        sum(
            (np.exp(found.windows[i]) * costs.windows[i]).sum()
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


def _mean_outside(child: Window, context: Array, cost: Array) -> Array:
    assert child.table is not None
    return _mean(child.table + context[..., None], cost[..., None], axis=0)


def _mean(log_weights: Array, values: Array, *, axis: int) -> Array:
    """Mean of values under softmax weights; 0 where nothing is allowed (its weight is 0 too)."""
    total = np.logaddexp.reduce(log_weights, axis=axis, keepdims=True)
    weights = np.exp(log_weights - np.where(np.isneginf(total), 0.0, total))
    return np.asarray((weights * values).sum(axis=axis))
