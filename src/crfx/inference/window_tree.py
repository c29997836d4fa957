"""One recursion for chains of every order and for forests: a tree of windows.

A *window* is the tuple of labels that an edge conditions on.  In a forest it is one node.  In a
chain of order n it is n neighbouring positions (y_{t-n+1}, ..., y_t); the first window holds the
first n positions, each later one forgets the oldest label and takes in a new one.  An edge table
joins a window to its parent: its first n axes are the parent's labels, its last n axes the
child's.  Hence all messages have n label axes, and nothing larger than a table is ever formed.

Everything is in log space.  Label axes come last; axes before them are independent copies of the
problem, which NumPy's broadcasting carries along (the exact curvature runs one copy per event).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from crfx.inference.problem import Problem
from crfx.scores import table_index

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Window:
    """One vertex of the tree.

    ``rows`` are the rows whose labels it holds, oldest first; ``parent`` and ``children`` are
    indices into the tree; ``local`` (K, ..., K) has the unary scores of the rows that are new in
    this window; ``table`` (K, ..., K) the edge scores, None at a root.
    """

    rows: tuple[int, ...]
    parent: int
    children: tuple[int, ...]
    local: Array
    table: Array | None

    @property
    def new_axes(self) -> range:
        """The axes of rows that no earlier window holds: all at a root, else the newest."""
        return range(0 if self.table is None else len(self.rows) - 1, len(self.rows))


Tree = tuple[Window, ...]
"""The windows of one instance, parents first; several roots are several trees."""


@dataclass(frozen=True, eq=False)
class Messages:
    """Unnormalised log messages, one entry per window.

    ``inside`` scores the window and all below it, ``up`` is that as seen from the parent,
    ``context`` scores the parent with all but this branch, ``outside`` is that as seen from here.
    """

    inside: list[Array]
    up: list[Array]
    context: list[Array]
    outside: list[Array]


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Log probabilities: of each window's labels, and of each edge's (None at roots)."""

    log_z: Array
    windows: list[Array]
    edges: list[Array | None]


def window_trees(problem: Problem) -> Iterator[tuple[int, Tree]]:
    """Yield (instance, tree) for every instance; the problem's structure must be checked."""
    batch, scores, structure = problem.batch, problem.scores, problem.structure
    unary = structure.unary(batch, scores)
    tables: dict[int, Array] = {}
    contexts: dict[int, tuple[int, ...]] = {}
    roots: dict[int, tuple[int, ...]] = {row: (row,) for row in range(batch.n_rows)}
    if scores.edge is not None:
        edge, rows = scores.edge.astype(np.float64), structure.edge_rows(batch)
        picks = table_index(problem.sharing, rows, batch.edge_types)
        tables = {int(row): edge[tuple(p[i] for p in picks)] for i, row in enumerate(rows)}
        before = structure.contexts(batch).tolist()
        contexts = {int(row): tuple(b) for row, b in zip(rows, before, strict=True)}
        ends = batch.offsets[batch.instance_of_row + 1]
        roots = {
            int(row): tuple(range(row, min(row + problem.order, ends[row])))
            for row in structure.root_rows(batch)
        }
    visit = structure.visit_order(batch).tolist()
    for instance in range(batch.n_instances):
        members = visit[batch.slice_of(instance)]
        yield instance, _build(members, roots, contexts, tables, unary)


def spread(values: Array, window: Window) -> Array:
    """Lay the values (rows, K) of a window's new rows out over its label axes, and add them."""
    n_axes, total = len(window.rows), np.zeros(())
    for axis in window.new_axes:
        shape = [1] * n_axes
        shape[axis] = -1
        total = total + values[window.rows[axis]].reshape(shape)
    return np.broadcast_to(total, (values.shape[1],) * n_axes)


def exchanged(tree: Tree, index: int, window: Window) -> Tree:
    """Return the tree with one window exchanged."""
    return (*tree[:index], window, *tree[index + 1 :])


def pass_messages(tree: Tree) -> Messages:
    """Run the upward and the downward pass.  O(windows * K^(n+1)) time."""
    empty = [np.zeros(())] * len(tree)
    messages = Messages(list(empty), list(empty), list(empty), list(empty))
    for index in reversed(range(len(tree))):
        _send_up(tree, index, messages)
    for index in range(len(tree)):
        _send_down(tree, index, messages)
    return messages


def log_partition(tree: Tree, messages: Messages) -> Array:
    """Return log Z: the sum over roots, since trees are independent; 0 without any."""
    total = np.zeros(())
    for window, inside in zip(tree, messages.inside, strict=True):
        if window.table is None:
            total = total + log_sum(inside, len(window.rows))
    return total


def beliefs(tree: Tree) -> Beliefs:
    """Return log Z and the log probability of every window and edge."""
    messages = pass_messages(tree)
    windows: list[Array] = []
    edges: list[Array | None] = []
    for index, window in enumerate(tree):
        belief = messages.inside[index] + messages.outside[index]
        windows.append(normalised(belief, len(window.rows)))
        edges.append(None)
        if window.table is not None:
            joint = window.table + messages.context[index][..., None]
            joint = joint + older_axis(messages.inside[index], window)
            edges[index] = normalised(joint, len(window.rows) + 1)
    return Beliefs(log_partition(tree, messages), windows, edges)


def side_messages(problem: Problem) -> tuple[Array, Array]:
    """Return (rows, K) log messages from before (the parent), and from after (the children).

    They are what the neighbours of a position say about its label, for explanations.  The message
    from before is, up to a constant, the log of the sum over all labellings of what lies before,
    edges into the position included; the other likewise.  Start and end scores belong to what comes
    from outside.  With the node scores they give the marginals, in chains of order 1 and forests.
    In a chain of order n "before" is the chain that ends with the position and "after" the one that
    begins with it; edges that reach over it are in neither.  O(rows * K^(order+1)).
    """
    shape = problem.scores.node.shape
    before, after = np.zeros(shape), np.zeros(shape)
    pieces = problem.pieces()
    for piece in pieces or ():
        before[piece.rows], after[piece.rows] = side_messages(piece.problem)
    if pieces is not None:
        return before, after
    structure, batch, scores = problem.structure, problem.batch, problem.scores
    unary = structure.unary(batch, scores)
    for _, tree in window_trees(problem):
        _fill_sides(tree, unary, before, after)
    if scores.start is not None:
        before[structure.root_rows(batch)] += scores.start
    if scores.end is not None:
        after[structure.last_rows(batch)] += scores.end
    return before, after


def _fill_sides(tree: Tree, unary: Array, before: Array, after: Array) -> None:
    """Write the messages of one instance, without start and end scores."""
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


def older_axis(message: Array, window: Window) -> Array:
    """Give a message of a window an axis for the label it forgets, the oldest of its edge."""
    return np.expand_dims(message, -len(window.rows) - 1)


def log_sum(values: Array, n_axes: int) -> Array:
    """Return the log of the sum of exponentials over the last ``n_axes`` axes."""
    return np.asarray(np.logaddexp.reduce(values, axis=tuple(range(-n_axes, 0))))


def normalised(values: Array, n_axes: int) -> Array:
    """Return log probabilities over the last ``n_axes`` axes; all -inf where nothing is allowed."""
    total = log_sum(values, n_axes)
    total = np.where(np.isneginf(total), 0.0, total)
    return values - total.reshape(total.shape + (1,) * n_axes)


def project(values: Array, axis: int, n_axes: int) -> Array:
    """Sum (..., K, ..., K) over all of the last ``n_axes`` axes but one: (..., K)."""
    others = tuple(a - n_axes for a in range(n_axes) if a != axis)
    return np.asarray(values.sum(axis=others))


def all_but_one(terms: Sequence[Array]) -> list[Array]:
    """Return for each term the sum of the others, by prefixes: -inf cannot be subtracted."""
    before, after = [np.zeros(())], [np.zeros(())]
    for term in terms:
        before.append(before[-1] + term)
    for term in reversed(terms):
        after.append(after[-1] + term)
    return [before[i] + after[len(terms) - 1 - i] for i in range(len(terms))]


def _send_up(tree: Tree, index: int, messages: Messages) -> None:
    window = tree[index]
    messages.inside[index] = window.local + sum(messages.up[child] for child in window.children)
    if window.table is not None:
        below = window.table + older_axis(messages.inside[index], window)
        messages.up[index] = np.logaddexp.reduce(below, axis=-1)


def _send_down(tree: Tree, index: int, messages: Messages) -> None:
    window = tree[index]
    siblings = all_but_one([messages.up[child] for child in window.children])
    for child, others in zip(window.children, siblings, strict=True):
        n_axes, table = len(tree[child].rows), tree[child].table
        assert table is not None
        messages.context[child] = window.local + messages.outside[index] + others
        above = table + messages.context[child][..., None]
        messages.outside[child] = np.logaddexp.reduce(above, axis=-n_axes - 1)


def _build(
    members: list[int],
    roots: dict[int, tuple[int, ...]],
    contexts: dict[int, tuple[int, ...]],
    tables: dict[int, Array],
    unary: Array,
) -> Tree:
    """Make the windows of the rows ``members``, which come parents first."""
    windows: list[Window] = []
    holder: dict[int, int] = {}  # newest row of a window: its index
    for row in members:
        if row in contexts:
            before = contexts[row]
            rows, parent = (*before[1:], row), holder[before[-1]]
        elif row in roots:
            rows, parent = roots[row], -1
        else:  # a chain's position below its order: the root window holds it
            continue
        holder[rows[-1]] = len(windows)
        bare = Window(rows, parent, (), np.zeros(()), tables.get(row))
        windows.append(replace(bare, local=spread(unary, bare)))
    children: list[list[int]] = [[] for _ in windows]
    for index, window in enumerate(windows):
        if window.parent >= 0:
            children[window.parent].append(index)
    return tuple(replace(w, children=tuple(c)) for w, c in zip(windows, children, strict=True))
