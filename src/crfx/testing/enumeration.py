"""The first witness: every quantity of inference by listing all labellings of tiny problems.

Each number is written down from its definition.  Nothing is shared with the recursions or with
``structures``: an oracle that used their code would repeat their mistakes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise, product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crfx.inference.results import IMPOSSIBLE, Expectation, KBest, MaxProduct, SumProduct

Array = npt.NDArray[np.float64]

MAX_LABELLINGS = 200_000
NO_INTERACTION = 2.0


@dataclass(frozen=True, eq=False)
class Enumerated:
    """All labellings of one instance of N positions: M = K^N of them.

    Attributes
    ----------
    labels : (M, N) int64, in lexicographic order
    scores : (M,) float64, -inf where forbidden
    parts : list of tuples of positions
        The labels each edge looks at, oldest first; the last is the position it ends at.
    first_row : int
    n_labels : int
    n_axes : int
        Label axes of an edge table.
    impossible : float
        Probability below which an event is not conditioned on.
    """

    labels: npt.NDArray[np.int64]
    scores: Array
    parts: list[tuple[int, ...]]
    first_row: int
    n_labels: int
    n_axes: int
    impossible: float

    @property
    def log_z(self) -> float:
        """Log of the sum of exp(score)."""
        return _log_sum(self.scores)

    @property
    def probabilities(self) -> Array:
        """Return (M,) the probability of each labelling."""
        return np.exp(self.scores - self.log_z)

    @property
    def node_events(self) -> Array:
        """Return (M, N * K) indicators of y_t = k."""
        hot = np.asarray(self.labels[:, :, None] == np.arange(self.n_labels))
        return hot.reshape(len(self.labels), -1).astype(np.float64)

    @property
    def edge_events(self) -> Array:
        """Return (M, edges * K^(n+1)) indicators of the label tuples of each edge."""
        tuples = np.array(list(product(range(self.n_labels), repeat=self.n_axes)))
        hot = [(self.labels[:, None, positions] == tuples).all(axis=2) for positions in self.parts]
        none = np.zeros((len(self.labels), 0), dtype=bool)
        return np.concatenate([none, *hot], axis=1).astype(np.float64)

    def marginals(self, events: Array) -> Array:
        """Return (events,) the probability of each."""
        return np.asarray(self.probabilities @ events)

    def hessian(self, events: Array) -> Array:
        """Return (events, events) the Hessian of log Z, the covariance of indicators."""
        centred = events - self.marginals(events)
        return np.asarray((centred * self.probabilities[:, None]).T @ centred)

    def gammas(self, events: Array) -> Array:
        """Return (events,) sum_j |H_ij| / H_ii as sum_j |P(j | i) - P(j | not i)|.

        The two are equal, the second keeps its digits where P(i) is near 0 or 1.  An event that
        is impossible or certain has H_ii = 0; its gamma is 2 by convention.
        """
        result = np.full(events.shape[1], NO_INTERACTION)
        for i, event in enumerate(events.T > 0.5):
            inside, outside = (self._given(subset, events) for subset in (event, ~event))
            if inside is not None and outside is not None:
                result[i] = np.abs(inside - outside).sum()
        return result

    def k_best(self, k: int) -> list[tuple[npt.NDArray[np.int64], float]]:
        """Return the k best allowed labellings, best first; ties in lexicographic order."""
        order = np.argsort(-self.scores, kind="stable")[:k]
        return [(self.labels[i], float(self.scores[i])) for i in order if self.scores[i] > -np.inf]

    def score_of(self, labels: npt.ArrayLike) -> float:
        """Return the score of one labelling (N,)."""
        return float(self.scores[(self.labels == np.asarray(labels)).all(axis=1)].item())

    def cost(self, cost: Array) -> Array:
        """Return (M,) the total of ``cost`` (N, K) over the positions of each labelling."""
        total = np.zeros(len(self.labels))
        for position, row in enumerate(cost):
            total += row[self.labels[:, position]]
        return total

    def covariance(self, values: Array, events: Array) -> Array:
        """Return (events,) Cov(values, event), the gradient of E[values] in the scores."""
        weights = self.probabilities
        return np.asarray((weights * (values - weights @ values)) @ events)

    def _given(self, subset: npt.NDArray[np.bool_], events: Array) -> Array | None:
        """Return (events,) probabilities given a set of labellings; None if it is impossible."""
        total = _log_sum(self.scores[subset])
        if np.exp(total - self.log_z) <= self.impossible:
            return None
        return np.asarray(np.exp(self.scores[subset] - total) @ events[subset])


def enumerate_instances(
    node: npt.ArrayLike,
    edge: npt.ArrayLike | None,
    offsets: npt.ArrayLike,
    *,
    parents: npt.ArrayLike | None = None,
    edge_types: npt.ArrayLike | None = None,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
    order: int = 1,
) -> list[Enumerated]:
    """List and score all labellings of every instance, in O(N * K^N) each.

    Parameters
    ----------
    node, edge, offsets, parents, edge_types, start, end, order
        As in `crfx.inference.sum_product`.

    Returns
    -------
    list of Enumerated, one per instance

    Examples
    --------
    >>> (instance,) = enumerate_instances(np.zeros((2, 2)), None, [0, 2])
    >>> instance.labels.tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    tables = np.asarray(node, dtype=np.float64), _optional(edge)
    ends = _optional(start), _optional(end)
    bounds = np.asarray(offsets).tolist()
    up = None if parents is None else np.asarray(parents).tolist()
    types = None if edge_types is None else np.asarray(edge_types).tolist()
    limit = IMPOSSIBLE.get(np.asarray(node).dtype, IMPOSSIBLE[np.dtype(np.float64)])
    return [
        _enumerate(slice(a, b), tables, ends, up, types, order, limit) for a, b in pairwise(bounds)
    ]


def sum_product(
    *,
    edge_marginals: Literal["sum", "each"] | None = "sum",
    curvature: Literal["exact"] | None = None,
    **problem: Any,
) -> SumProduct:
    """Return what ``crfx.inference.sum_product`` should, for the same arguments by name."""
    listed = enumerate_instances(**problem)
    node = _node_rows(problem, [e.marginals(e.node_events) for e in listed])
    each = _edge_rows(problem, listed, [e.marginals(e.edge_events) for e in listed])
    edge = _collect(problem, each, listed, edge_marginals)
    log_z = np.array([e.log_z for e in listed])
    if curvature is None:
        return SumProduct(log_z, node, edge)
    node_gamma = _node_rows(problem, [e.gammas(e.node_events) for e in listed])
    edge_gamma = _edge_rows(problem, listed, [e.gammas(e.edge_events) for e in listed])
    return SumProduct(
        log_z, node, edge, node_gamma, None if problem["edge"] is None else edge_gamma
    )


def max_product(*, k: int = 1, **problem: Any) -> MaxProduct:
    """Return what ``crfx.inference.max_product`` should, for the same arguments by name."""
    lists: KBest = [list(e.k_best(k)) for e in enumerate_instances(**problem)]
    scores = np.array([best[0][1] for best in lists])
    if k > 1:
        return MaxProduct(lists, scores)
    none = np.zeros(0, dtype=np.int64)
    return MaxProduct(np.concatenate([none, *(best[0][0] for best in lists)]), scores)


def expectation(
    cost: npt.ArrayLike, *, edge_marginals: Literal["sum", "each"] | None = "sum", **problem: Any
) -> Expectation:
    """Return what ``crfx.inference.expectation`` should, for the same arguments by name."""
    table = np.asarray(cost, dtype=np.float64)
    listed = enumerate_instances(**problem)
    costs = [e.cost(table[e.first_row : e.first_row + e.labels.shape[1]]) for e in listed]
    pairs = list(zip(listed, costs, strict=True))
    value = np.array([e.probabilities @ c for e, c in pairs])
    node = _node_rows(problem, [e.covariance(c, e.node_events) for e, c in pairs])
    each = _edge_rows(problem, listed, [e.covariance(c, e.edge_events) for e, c in pairs])
    return Expectation(value, node, _collect(problem, each, listed, edge_marginals))


def assert_same(
    found: SumProduct | Expectation, expected: SumProduct | Expectation, *, rtol: float, atol: float
) -> None:
    """Raise an AssertionError unless all arrays of two records agree, in shape and in value.

    Parameters
    ----------
    found, expected : SumProduct or Expectation
    rtol, atol : float
        Tolerances, as in `numpy.testing.assert_allclose`.

    Examples
    --------
    >>> from crfx.inference import reference, sum_product
    >>> problem = {"node": np.zeros((2, 2)), "edge": None, "offsets": [0, 2]}
    >>> assert_same(sum_product(**problem), reference.sum_product(**problem), rtol=1e-9, atol=1e-9)
    """
    assert type(found) is type(expected), f"{type(found)} is not {type(expected)}"
    for field in fields(expected):
        ours, theirs = getattr(found, field.name), getattr(expected, field.name)
        assert (ours is None) == (theirs is None), f"{field.name}: only one of the two is None"
        if theirs is not None:
            # assert_allclose lets a scalar stand for an array; a shape is part of the answer.
            shapes = np.shape(ours), np.shape(theirs)
            assert shapes[0] == shapes[1], f"{field.name}: shapes {shapes[0]}, {shapes[1]}"
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=field.name)


def assert_best(found: MaxProduct, *, k: int = 1, rtol: float, atol: float, **problem: Any) -> None:
    """Raise an AssertionError unless ``found`` has the k best labellings and their scores.

    Labellings of equal score may come in any order, so it is their scores that are compared: those
    in ``found`` with the enumerated ones, and with what its labellings really score.

    Parameters
    ----------
    found : MaxProduct
    k : int, default 1
    rtol, atol : float
        Tolerances, as in `numpy.testing.assert_allclose`.
    **problem
        The arguments of `max_product`.

    Examples
    --------
    >>> from crfx.inference import max_product
    >>> problem = {"node": np.array([[0.0, 1.0], [2.0, 0.0]]), "edge": None, "offsets": [0, 2]}
    >>> assert_best(max_product(**problem, k=2), k=2, rtol=1e-9, atol=1e-9, **problem)
    """
    listed = enumerate_instances(**problem)
    claimed = found.labels
    if not isinstance(claimed, list):
        cuts = [e.first_row for e in listed[1:]]
        split = np.split(claimed, cuts)
        claimed = [[(y, float(s))] for y, s in zip(split, found.scores, strict=True)]
    for instance, ours, best in zip(listed, claimed, found.scores, strict=True):
        theirs = [score for _, score in instance.k_best(k)]
        assert len(ours) == len(theirs), f"{len(ours)} labellings, expected {len(theirs)}"
        assert len({tuple(y) for y, _ in ours}) == len(ours), "a labelling is listed twice"
        real = [instance.score_of(y) for y, _ in ours]
        for scores in ([s for _, s in ours], real, [float(best), *theirs[1:]]):
            np.testing.assert_allclose(scores, theirs, rtol=rtol, atol=atol)


def _enumerate(
    rows: slice,
    tables: tuple[Array, Array | None],
    ends: tuple[Array | None, Array | None],
    parents: list[int] | None,
    types: list[int] | None,
    order: int,
    impossible: float,
) -> Enumerated:
    node, edge = tables
    n_labels, length = node.shape[1], rows.stop - rows.start
    if n_labels**length > MAX_LABELLINGS:
        raise ValueError(
            f"{n_labels} labels at {length} positions make {n_labels**length} labellings, more "
            f"than {MAX_LABELLINGS}: enumerate smaller instances"
        )
    listed = np.array(list(product(range(n_labels), repeat=length)), dtype=np.int64)
    labels = listed.reshape(n_labels**length, length)
    up = list(range(-1, length - 1)) if parents is None else parents[rows]
    parts = [] if edge is None else _parts(up, None if parents else order)
    scores = np.zeros(len(labels))
    for t in range(length):
        scores += node[rows.start + t, labels[:, t]]
        if ends[0] is not None and up[t] == -1:
            scores += ends[0][labels[:, t]]
        if ends[1] is not None and t == length - 1:
            scores += ends[1][labels[:, t]]
    for part in parts:
        assert edge is not None
        table = _table_of(edge, rows.start + part[-1], types, order)
        scores += table[tuple(labels[:, t] for t in part)]
    return Enumerated(labels, scores, parts, rows.start, n_labels, order + 1, impossible)


def _parts(parents: list[int], chain_order: int | None) -> list[tuple[int, ...]]:
    """Return the positions each edge looks at: windows of a chain, or (parent, node) pairs."""
    if chain_order is None:
        return [(parent, t) for t, parent in enumerate(parents) if parent >= 0]
    return [tuple(range(t - chain_order, t + 1)) for t in range(chain_order, len(parents))]


def _table_of(edge: Array, row: int, types: list[int] | None, order: int) -> Array:
    if edge.ndim == order + 1:
        return edge
    return np.asarray(edge[row if types is None else types[row]])


def _node_rows(problem: dict[str, Any], per_instance: list[Array]) -> Array:
    flat = np.concatenate([np.zeros(0), *per_instance])
    return flat.reshape(np.shape(problem["node"]))


def _edge_rows(
    problem: dict[str, Any], listed: list[Enumerated], per_instance: list[Array]
) -> Array:
    """Put values over edge events at the rows where edges end: (rows, K, ..., K)."""
    rows, k = np.shape(problem["node"])
    each = np.zeros((rows, *(k,) * (problem.get("order", 1) + 1)))
    for instance, values in zip(listed, per_instance, strict=True):
        by_part = values.reshape(len(instance.parts), *each.shape[1:])
        for part, table in zip(instance.parts, by_part, strict=True):
            each[instance.first_row + part[-1]] = table
    return each


def _collect(
    problem: dict[str, Any], each: Array, listed: list[Enumerated], how: str | None
) -> Array | None:
    if how is None or problem["edge"] is None:
        return None
    if how == "each":
        return each
    if problem.get("edge_types") is None:
        return np.asarray(each.sum(axis=0))
    summed = np.zeros(np.shape(problem["edge"]))
    for instance in listed:
        for part in instance.parts:
            row = instance.first_row + part[-1]
            summed[problem["edge_types"][row]] += each[row]
    return summed


def _optional(value: npt.ArrayLike | None) -> Array | None:
    return None if value is None else np.asarray(value, dtype=np.float64)


def _log_sum(scores: Array) -> float:
    top = scores.max(initial=-np.inf)
    return float(top if top == -np.inf else top + np.log(np.exp(scores - top).sum()))
