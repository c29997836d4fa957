"""Sum-product: log Z, marginals, and the curvature multipliers of second-order boosting."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crfx import _core
from crfx.inference.native import EdgeOutput, check_option, native_problem
from crfx.inference.problem import Piece, Problem, prepare
from crfx.inference.results import SumProduct
from crfx.scores import LARGEST_SCORE, Array64, FloatArray, Room, empty_like
from crfx.threads import thread_count

CURVATURES = ("mixing", "dobrushin", "exact", "length", None)
ALONE_GAMMA = 2.0
"""Gamma of a label that depends on no other: its row of the Hessian holds p (1 - p), and -p p' for
the other labels, whose absolute values add up to 2 p (1 - p).  The bounds agree."""


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
    edge_marginals: Literal["sum", "each"] | None = "sum",
    curvature: Literal["mixing", "dobrushin", "exact", "length"] | None = None,
    n_jobs: int | None = None,
) -> SumProduct:
    """Sum over all labellings of every instance, exactly.

    Parameters
    ----------
    node : (rows, K) float32 or float64
        Score of every label at every position, instances stacked.
    edge : None, (K, ..., K), (types, K, ..., K) or (rows, K, ..., K)
        Score of every label after its ``order`` predecessors, oldest axis first; one table for all
        edges, one per edge type (with ``edge_types``), or one per row for the edge that ends there.
        A table applies from position ``order`` on.  None: positions are independent.  Rows at
        which no edge ends are not looked at.
    offsets : (instances + 1,)
        Instance i owns rows offsets[i] to offsets[i + 1].
    parents : (rows,), optional
        Makes instances forests: index of the parent within the instance, -1 at a root.  Forests
        have order 1 and no ``end``.
    edge_types : (rows,), optional
        Type of the edge that ends at the row.
    start, end : (K,), optional
        Added at the first and the last position; ``start`` at the roots of a forest.
    order : int
        Number of predecessors that a label depends on.
    edge_marginals : "sum", "each" or None
        One table of expected counts (float64; one per type where tables are typed), one table per
        row, or none.
    curvature : optional
        Multipliers gamma such that gamma * p * (1 - p) dominates the Hessian of log Z
        (Chen et al. 2015, section 4): "mixing" (O(K^2) per edge), "dobrushin" (tighter, O(K^3)),
        "exact" (row sums, Eq. 9 and 10; quadratic in the length), "length" (twice the length).
    n_jobs : int, optional
        Threads; None or -1: all cores, -2: all but one.  The result does not depend on it.  A
        process that was forked from one that used threads runs on one.

    Returns
    -------
    SumProduct
        ``log_z``, ``node``, ``edge``, ``node_gamma``, ``edge_gamma``.

    Cost: O(K^(order + 1)) per position in time, O(K^order) in scratch memory.

    >>> import numpy as np
    >>> result = sum_product(np.zeros((4, 3)), np.zeros((3, 3)), [0, 4])
    >>> round(float(np.exp(result.log_z[0])))      # equal scores: Z counts the labellings
    81
    """
    problem = prepare(node, edge, offsets, parents, edge_types, start, end, order)
    check_option("curvature", curvature, CURVATURES)
    return summed(problem, edge_marginals, curvature, n_jobs=n_jobs)


def summed(
    problem: Problem,
    edge_marginals: str | None,
    curvature: str | None,
    *,
    nodes: bool = True,
    edge_curvature: bool = False,
    weights: Array64 | None = None,
    n_jobs: int | None = None,
    room: Room | None = None,
) -> SumProduct:
    """Run sum-product over a prepared problem, with options for training.

    Without ``nodes`` the node marginals, which cost time and memory, may be an empty array.
    ``edge_curvature`` asks for sum_e gamma_e p (1 - p), shaped like summed edge marginals, which it
    requires; gamma is 1 where ``curvature`` is None.  ``weights`` (instances,) multiply both sums
    (and nothing else).  Costs a few operations more per table entry.  Node marginals lie in
    ``room`` if that is given.
    """
    pieces = problem.pieces()
    if pieces is not None:
        asked = {"nodes": nodes, "edge_curvature": edge_curvature, "n_jobs": n_jobs}
        return _joined(problem, pieces, edge_marginals, curvature, weights, asked)
    if curvature != "length" and _has_nodes_only(problem):
        sums = _independent(problem, curvature, thread_count(n_jobs))
        if sums is not None:
            return sums
    marginals = empty_like(problem.scores.node, "marginals", room) if nodes else None
    log_z = np.empty(problem.batch.n_instances)
    edges = EdgeOutput(problem, edge_marginals)
    curved = np.zeros_like(edges.sum) if edge_curvature and edges.sum is not None else None
    node_gamma, edge_gamma = _gamma_arrays(problem, curvature)
    _core.sum_product(
        native_problem(problem),
        log_z,
        marginals,
        edges.each,
        edges.sum,
        curved,
        weights,
        node_gamma,
        edge_gamma,
        curvature,
        thread_count(n_jobs),
    )
    if problem.scores.edge is None:
        edge_gamma = None
    if marginals is None:
        marginals = np.empty((0, problem.scores.n_labels), problem.scores.dtype)
    return SumProduct(log_z, marginals, edges.result, node_gamma, edge_gamma, curved)


def _joined(
    problem: Problem,
    pieces: list[Piece],
    edge_marginals: str | None,
    curvature: str | None,
    weights: Array64 | None,
    asked: dict[str, Any],
) -> SumProduct:
    """Sum over chains with edges and over those too short for one, and put the results together."""
    log_z, node = np.empty(problem.batch.n_instances), np.empty_like(problem.scores.node)
    edges, edge_curvature = EdgeOutput(problem, edge_marginals), None
    node_gamma, edge_gamma = _gamma_arrays(problem, curvature)
    edge_gamma = None if problem.scores.edge is None else edge_gamma
    for piece in pieces:
        piece_weights = None if weights is None else weights[piece.instances]
        how = None if piece.is_short else edge_marginals
        sums = summed(piece.problem, how, curvature, weights=piece_weights, **asked)
        log_z[piece.instances] = sums.log_z
        edges.add(piece, sums.edge)
        if asked["nodes"]:
            node[piece.rows] = sums.node
        if node_gamma is not None:
            node_gamma[piece.rows] = sums.node_gamma
        if not piece.is_short:
            edge_curvature = sums.edge_curvature
            if edge_gamma is not None:
                edge_gamma[piece.rows] = sums.edge_gamma
    return SumProduct(log_z, node, edges.result, node_gamma, edge_gamma, edge_curvature)


def _has_nodes_only(problem: Problem) -> bool:
    scores = problem.scores
    has_tables = any(table is not None for table in (scores.edge, scores.start, scores.end))
    return not has_tables and problem.batch.parents is None


def _independent(problem: Problem, curvature: str | None, n_threads: int) -> SumProduct | None:
    """Return sums without edges, a softmax per row; None if a row has no finite sum.

    The general way then distinguishes an impossible instance from a bad score, and locates it.
    """
    node, batch = problem.scores.node, problem.batch
    marginals, row_log_z = np.empty_like(node), np.empty(batch.n_rows)
    _core.softmax(node, marginals, row_log_z, n_threads)
    if not (np.abs(row_log_z) <= LARGEST_SCORE).all():  # NaN is not
        return None
    log_z = np.zeros(batch.n_instances)
    np.add.at(log_z, batch.instance_of_row, row_log_z)
    node_gamma, _ = _gamma_arrays(problem, curvature)
    if node_gamma is not None:
        node_gamma[:] = ALONE_GAMMA
    return SumProduct(log_z, marginals, None, node_gamma, None, None)


def _gamma_arrays(
    problem: Problem, curvature: str | None
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return empty arrays for the multipliers; exact ones have label axes."""
    if curvature is None:
        return None, None
    rows, labels, dtype = problem.batch.n_rows, problem.scores.n_labels, problem.scores.dtype
    if curvature != "exact":
        return np.zeros(rows, dtype), np.zeros(rows, dtype)
    n_axes = 2 if problem.scores.edge is None else problem.structure.n_label_axes
    table = (labels,) * n_axes
    return np.zeros((rows, labels), dtype), np.zeros((rows, *table), dtype)
