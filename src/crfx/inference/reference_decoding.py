"""Best labellings and samples over a tree of windows."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import product

import numpy as np

from crfx.inference.reference_windows import Messages, Tree, Window, older_axis
from crfx.scores import IntArray

Partial = tuple[float, tuple[int, ...]]
"""Score and labels of some rows: a window's new ones, then those of its branches in turn."""

Lists = dict[tuple[int, ...], list[Partial]]
"""For every state (labels) of a window, the best partial labellings below it, best first."""


def k_best(tree: Tree, k: int, n_labels: int) -> list[tuple[float, dict[int, int]]]:
    """Return the k best allowed labellings as (score, {row: label}), best first.

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
            own = _top(k, (partial for partials in inside.values() for partial in partials))
            best = _joined(own, best, k)
    rows = [row for i, w in enumerate(tree) if w.table is None for row in _subtree_rows(tree, i)]
    return [(score, dict(zip(rows, labels, strict=True))) for score, labels in best]


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
            given = weights[tuple(labels[:, row] for row in tree[window.parent].rows)]
            labels[:, window.rows[-1]] = (given + random.gumbel(size=given.shape)).argmax(axis=1)


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
    """Rows in the order in which partial labellings list their labels (no recursion: deep)."""
    rows, pending = [], [root]
    while pending:
        window = tree[pending.pop()]
        rows += [window.rows[axis] for axis in window.new_axes]
        pending += reversed(window.children)
    return rows
