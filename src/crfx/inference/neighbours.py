"""What the neighbours of a position say about its label: the messages of sum-product, by side.

In float64 and log space, by the NumPy recursion: explanations are of one instance at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crfx.inference.problem import Problem
from crfx.inference.reference_windows import Tree, log_sum, pass_messages, window_trees
from crfx.inference.short_chains import pieces

Array64 = npt.NDArray[np.float64]


def side_messages(problem: Problem) -> tuple[Array64, Array64]:
    """(rows, K) twice: log messages from before (the parent), and from after (the children).

    The message from before is, up to a constant, the log of the sum over all labellings of what
    lies before, edges into the position included; the other likewise.  Start and end scores count
    as what comes from outside.  With the node scores they are the marginals, in chains of order 1
    and forests.  In a chain of order n "before" is the chain that ends with the position and
    "after" the one that begins with it; edges that reach over it are in neither.
    O(rows * K^(order+1)).
    """
    shape = problem.scores.node.shape
    before, after = np.zeros(shape), np.zeros(shape)
    apart = pieces(problem)
    if apart is not None:
        for piece in apart:
            before[piece.rows], after[piece.rows] = side_messages(piece.problem)
        return before, after
    structure, batch, scores = problem.structure, problem.batch, problem.scores
    unary = structure.unary(batch, scores)
    for _, tree in window_trees(problem):
        _fill(tree, unary, before, after)
    if scores.start is not None:
        before[structure.root_rows(batch)] += scores.start
    if scores.end is not None:
        after[structure.last_rows(batch)] += scores.end
    return before, after


def _fill(tree: Tree, unary: Array64, before: Array64, after: Array64) -> None:
    """Messages of one instance, without start and end scores."""
    messages = pass_messages(tree)
    for index, window in enumerate(tree):
        n_others = len(window.rows) - 1
        if window.table is not None:  # what is outside of the window that ends here
            outside = messages.outside[index]
            before[window.rows[-1]] = log_sum(np.moveaxis(outside, -1, 0), n_others)
        if window.children:  # what is below the window that begins here, and the rest of it
            below = sum(messages.up[child] for child in window.children)
            for axis, row in enumerate(window.rows[1:], start=1):
                below = below + unary[row].reshape((-1,) + (1,) * (n_others - axis))
            after[window.rows[0]] = log_sum(np.asarray(below), n_others)
