"""Max-product: the best labelling of every instance, its k best, or the most labels right."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crfx import _core
from crfx.inference.native import native_problem
from crfx.inference.problem import Problem, prepare
from crfx.inference.results import KBest, MaxProduct
from crfx.scores import Array64, IntArray, Scores, Sharing
from crfx.structures import Chain, Forest, Mask
from crfx.structures.mask import masked
from crfx.threads import thread_count


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
    """Find the labellings of highest score (Viterbi).

    Time is O(K^(order + 1)) per position, and O(K) per position for each further labelling.

    Parameters
    ----------
    node, edge, offsets, parents, edge_types, start, end, order
        As in `sum_product`.
    k : int, default 1
        The number of labellings of each instance.
    n_jobs : int, optional
        Threads; None: all cores.

    Returns
    -------
    MaxProduct
        With ``k=1``, ``labels`` is one stacked array (rows,).  Equal scores go to the smaller
        label, earlier positions (in a forest: roots) first.  Sums run in the dtype of ``node``:
        float32 decides between labellings whose scores differ by less than its rounding.  With
        ``k`` > 1, ``labels`` is a list per instance of up to ``k`` pairs (label array, score):
        exact, distinct, best first, computed in float64.

    Examples
    --------
    >>> import numpy as np
    >>> node = np.array([[0.0, 1.0], [0.5, 0.0]])
    >>> for labels, score in max_product(node, None, [0, 2], k=3).labels[0]:
    ...     print(labels, score)
    [1 0] 1.5
    [1 1] 1.0
    [0 0] 0.5
    """
    problem = prepare(node, edge, offsets, parents, edge_types, start, end, order)
    if checked_k(k) > 1:
        lists = best_lists(problem, int(k), n_jobs)
        return MaxProduct(lists, np.array([best[0][1] for best in lists]))
    return MaxProduct(*best_labels(problem, n_jobs))


def checked_k(k: int) -> int:
    """Return the number of labellings to find, or raise ValueError."""
    whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
    if not whole or not 1 <= k < 2**31:
        raise ValueError(f"k is {k!r}: pass how many labellings you want, 1 to {2**31 - 1}")
    return int(k)


def best_labels(
    problem: Problem, n_jobs: int | None = None
) -> tuple[npt.NDArray[np.int32], Array64]:
    """Return the best labelling (rows,) of a prepared problem and its score (instances,)."""
    labels = np.empty(problem.batch.n_rows, np.int32)
    scores = np.empty(problem.batch.n_instances)
    pieces = problem.pieces()
    if pieces is None:
        _core.max_product(native_problem(problem), labels, scores, thread_count(n_jobs))
    for piece in pieces or ():
        labels[piece.rows], scores[piece.instances] = best_labels(piece.problem, n_jobs)
    return labels, scores


def best_lists(problem: Problem, k: int, n_jobs: int | None = None) -> KBest:
    """Return up to ``k`` best labellings of each instance of a prepared problem."""
    lists: KBest = [[] for _ in range(problem.batch.n_instances)]
    pieces = problem.pieces()
    for piece in pieces or ():
        best = best_lists(piece.problem, k, n_jobs)
        for instance, best_of_instance in zip(piece.instances, best, strict=True):
            lists[instance] = best_of_instance
    if pieces is not None:
        return lists
    counts, scores, labels = _core.k_best(native_problem(problem), k, thread_count(n_jobs))
    next_score = next_label = 0
    for best_of_instance, count, length in zip(lists, counts, problem.batch.lengths, strict=True):
        for _ in range(count):
            codes = labels[next_label : next_label + length]
            best_of_instance.append((codes, float(scores[next_score])))
            next_score, next_label = next_score + 1, next_label + length
    return lists


def most_together(
    shares: npt.NDArray[Any], problem: Problem, mask: Mask, n_jobs: int | None
) -> IntArray:
    """Return (rows,) the allowed labelling with the largest sum of ``shares`` (rows, K).

    With the probabilities of labels this is posterior decoding under constraints: the labelling
    with most labels right in expectation.  Constraints bind neighbours only, so order 1 suffices.
    """
    is_forest = problem.batch.parents is not None
    node = np.where(np.isneginf(problem.scores.node), problem.scores.node, shares)
    scores = masked(Scores(node), mask, None, 1, is_forest=is_forest)
    structure = Forest() if is_forest else Chain(1)
    sharing: Sharing = "none" if mask.pair is None else "shared"
    return best_labels(Problem(problem.batch, scores, structure, sharing), n_jobs)[0]
