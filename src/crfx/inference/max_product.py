"""Max-product: the best labelling of every instance, or its k best."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crfx import _core
from crfx.inference.native import native_problem
from crfx.inference.problem import Problem, prepare
from crfx.inference.results import KBest, MaxProduct
from crfx.inference.short_chains import pieces
from crfx.scores import IntArray
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
    """Find the labellings of highest score (Viterbi).  Arguments as in `sum_product`.

    With ``k=1``, ``labels`` is one stacked array (rows,); equal scores go to the smaller label,
    earlier positions (in a forest: roots) first.  With ``k`` > 1 it is a list per instance of up to
    ``k`` pairs (label array, score): exact, distinct, best first, computed in float64.  (With
    ``k=1`` sums run in the dtype of ``node``: float32 decides between labellings whose scores
    differ by less than its rounding.)

    Cost: O(K^(order + 1)) per position; each further labelling O(K) per position.

    >>> import numpy as np
    >>> node = np.array([[0.0, 1.0], [0.5, 0.0]])
    >>> for labels, score in max_product(node, None, [0, 2], k=3).labels[0]:
    ...     print(labels, score)
    [1 0] 1.5
    [1 1] 1.0
    [0 0] 0.5
    """
    problem = prepare(
        node,
        edge,
        offsets,
        parents=parents,
        edge_types=edge_types,
        start=start,
        end=end,
        order=order,
    )
    if checked_k(k) > 1:
        lists = best_lists(problem, int(k), n_jobs)
        return MaxProduct(lists, np.array([found[0][1] for found in lists]))
    return MaxProduct(*best_labels(problem, n_jobs))


def checked_k(k: int) -> int:
    """How many labellings are asked for, or ValueError."""
    whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
    if not whole or not 1 <= k < 2**31:
        raise ValueError(f"k is {k!r}: pass how many labellings you want, 1 to {2**31 - 1}")
    return int(k)


def best_labels(
    problem: Problem, n_jobs: int | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """The best labelling (rows,) and its score (instances,), of a prepared problem."""
    labels = np.empty(problem.batch.n_rows, np.int32)
    scores = np.empty(problem.batch.n_instances)
    parts = pieces(problem)
    if parts is not None:
        for part in parts:
            labels[part.rows], scores[part.instances] = best_labels(part.problem, n_jobs)
        return labels, scores
    _core.max_product(native_problem(problem), labels, scores, thread_count(n_jobs))
    return labels, scores


def best_lists(problem: Problem, k: int, n_jobs: int | None = None) -> KBest:
    """Up to ``k`` best labellings of each instance, of a prepared problem."""
    parts = pieces(problem)
    if parts is not None:
        whole: KBest = [[] for _ in range(problem.batch.n_instances)]
        for part in parts:
            for instance, own in zip(
                part.instances, best_lists(part.problem, k, n_jobs), strict=True
            ):
                whole[instance] = own
        return whole
    counts, scores, labels = _core.k_best(native_problem(problem), k, thread_count(n_jobs))
    lists: KBest = []
    next_score = next_label = 0
    for count, length in zip(counts, problem.batch.lengths, strict=True):
        found: list[tuple[IntArray, float]] = []
        for _ in range(count):
            found.append((labels[next_label : next_label + length], float(scores[next_score])))
            next_score, next_label = next_score + 1, next_label + length
        lists.append(found)
    return lists
