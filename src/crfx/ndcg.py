"""A measure of orders of documents: normalised discounted cumulative gain (NDCG).

DCG@k is the sum of gain(relevance) * discount(rank) over the first k documents of a query, NDCG@k
that over the DCG@k of the best order.  Two definitions differ in the discount and in what counts:

=============  ==============================================  =================================
               "usual" (Järvelin and Kekäläinen 2002)          "letor" (evaluation of LETOR 4.0)
=============  ==============================================  =================================
discount       1 / log2(1 + rank)                              1 at ranks 1 and 2,
                                                               then 1 / log2(rank)
no relevant    the query is left out                           the query counts 0
k documents    those there are                                 NDCG@k of a shorter list counts 0
=============  ==============================================  =================================

The gain is 2^r - 1 ("exponential": 3, 1, 0 for LETOR's levels 2, 1, 0) or r ("linear").  Documents
of equal score keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array64 = npt.NDArray[np.float64]
Definition = Literal["usual", "letor"]
Gain = Literal["exponential", "linear"]

DEFINITIONS: tuple[Definition, ...] = ("usual", "letor")
GAINS: tuple[Gain, ...] = ("exponential", "linear")
LARGEST_GAIN = 1e290
"""Sums of larger ones would overflow."""


def ndcg(
    relevance: npt.ArrayLike,
    scores: npt.ArrayLike,
    group: npt.ArrayLike,
    *,
    cut: int | None = None,
    definition: Definition = "usual",
    gain: Gain = "exponential",
) -> float:
    """Return the mean NDCG@cut over the queries.

    Parameters
    ----------
    relevance : (documents,) numbers, 0 or more
        The documents of one query after another.
    scores : (documents,) numbers
        The larger the score, the better the rank; documents of equal score keep their order.
    group : (queries,) whole numbers
        How many documents each query has.
    cut : int, optional
        Count only the first documents of each query; None: the whole lists.
    definition : "usual" or "letor", default "usual"
        See the table above.
    gain : "exponential" or "linear", default "exponential"
        2^relevance - 1, or the relevance.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        If no query has a relevant document (of the usual definition).

    Examples
    --------
    >>> ndcg([0, 1, 0, 1], [0.9, 0.8, 0.1, 0.2], group=[2, 2], cut=1)
    0.5
    """
    by_query = ndcg_by_query(
        relevance, scores, group, cuts=(cut,), definition=definition, gain=gain
    )
    return float(mean_ndcg(by_query)[0])


def mean_ndcg(by_query: Array64, weights: Array64 | None = None) -> Array64:
    """Return the mean over the queries that count, for every cut.

    Parameters
    ----------
    by_query : (queries, cuts) array
        From `ndcg_by_query`; queries with NaN do not count.
    weights : (queries,) array, optional
        Weights in the mean.

    Returns
    -------
    (cuts,) array of float64

    Raises
    ------
    ValueError
        If no query counts.

    Examples
    --------
    >>> mean_ndcg(np.array([[0.5], [1.0], [np.nan]]))
    array([0.75])
    """
    counts = ~np.isnan(by_query).any(axis=1)
    if weights is not None:
        counts &= weights > 0
    if weights is not None and len(weights) and not (weights > 0).any():
        raise ValueError("the weights of all queries are 0: there is no NDCG to take the mean of")
    if not counts.any():
        raise ValueError("no query has a relevant document: there is no NDCG to take the mean of")
    if weights is not None:
        weights = weights[counts]
    return np.asarray(np.average(by_query[counts], axis=0, weights=weights))


def ndcg_by_query(
    relevance: npt.ArrayLike,
    scores: npt.ArrayLike,
    group: npt.ArrayLike,
    *,
    cuts: Sequence[int | None],
    definition: Definition = "usual",
    gain: Gain = "exponential",
) -> Array64:
    """Return the NDCG of every query at every cut, in O(n log n) for n documents.

    Parameters
    ----------
    relevance : (documents,) numbers, 0 or more
        The documents of one query after another.
    scores : (documents,) numbers
        The larger the score, the better the rank; documents of equal score keep their order.
    group : (queries,) whole numbers
        How many documents each query has.
    cuts : list of int or None
        Each counts only the first documents of a query; None: the whole list.
    definition, gain
        As in `ndcg`.

    Returns
    -------
    (queries, cuts) array of float64
        NaN for queries that are left out.

    Examples
    --------
    >>> ndcg_by_query([0, 1, 0, 1], [0.9, 0.8, 0.1, 0.2], group=[2, 2], cuts=[1, None]).round(2)
    array([[0.  , 0.63],
           [1.  , 1.  ]])
    """
    relevant, score, sizes = _checked(relevance, scores, group)
    if definition not in DEFINITIONS:
        raise ValueError(f"definition is {definition!r}: it must be one of {DEFINITIONS}")
    gains = gain_of(relevant, gain)
    query = np.repeat(np.arange(len(sizes)), sizes)
    rank = np.arange(1, len(query) + 1) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    discounted = _discount(rank, definition) * gains[np.lexsort((-score, query))]
    ideal = _discount(rank, definition) * gains[np.lexsort((-gains, query))]
    columns = []
    for cut in cuts:
        if cut is not None and cut < 1:
            raise ValueError(f"cut is {cut}: it must be 1 or more, or None for whole lists")
        inside = rank <= (len(rank) if cut is None else cut)
        dcg, best = (
            np.bincount(query, weights=part * inside, minlength=len(sizes))
            for part in (discounted, ideal)
        )
        if definition == "letor" and cut is not None:
            dcg[sizes < cut] = 0.0
        nothing = np.nan if definition == "usual" else 0.0
        columns.append(np.divide(dcg, best, out=np.full(len(sizes), nothing), where=best > 0))
    return np.stack(columns, axis=1) if columns else np.zeros((len(sizes), 0))


def gain_of(relevance: Array64, gain: Gain) -> Array64:
    """Return the gain of documents at the first rank.

    Parameters
    ----------
    relevance : array of float64, 0 or more
    gain : "exponential" or "linear"
        2^relevance - 1, or the relevance.

    Returns
    -------
    array like ``relevance``

    Examples
    --------
    >>> gain_of(np.array([0.0, 1.0, 2.0]), "exponential")
    array([0., 1., 3.])
    """
    if gain not in GAINS:
        raise ValueError(f"gain is {gain!r}: it must be one of {GAINS}")
    if gain == "linear":
        if relevance.max(initial=0.0) > LARGEST_GAIN:
            raise ValueError(f"relevance is {relevance.max():g}: at most {LARGEST_GAIN:g} is told")
        return relevance
    if relevance.max(initial=0.0) > 1000:
        raise ValueError(
            f"relevance is {relevance.max():g}: too much for 2^relevance; use gain='linear'"
        )
    return np.asarray(np.expm1(np.log(2.0) * relevance))  # exact where relevance is small


def _discount(rank: npt.NDArray[np.int64], definition: Definition) -> Array64:
    """Return the discounts of ranks from 1 on."""
    shifted = rank + 1 if definition == "usual" else np.maximum(rank, 2)
    return np.asarray(1.0 / np.log2(shifted))


def _checked(
    relevance: npt.ArrayLike, scores: npt.ArrayLike, group: npt.ArrayLike
) -> tuple[Array64, Array64, npt.NDArray[np.int64]]:
    relevant, score = (np.asarray(array, np.float64) for array in (relevance, scores))
    if relevant.ndim != 1 or relevant.shape != score.shape:
        raise ValueError(
            f"relevance has shape {relevant.shape}, scores {score.shape}: both must have one "
            "number per document"
        )
    if not (np.isfinite(relevant) & (relevant >= 0)).all():
        bad = int(np.argmin(np.isfinite(relevant) & (relevant >= 0)))
        raise ValueError(f"relevance[{bad}] is {relevant[bad]}: it must be finite and 0 or more")
    if np.isnan(score).any():
        raise ValueError(f"scores[{int(np.isnan(score).argmax())}] is NaN: it has no rank")
    return relevant, score, _sizes(group, len(relevant))


def _sizes(group: npt.ArrayLike, n_documents: int) -> npt.NDArray[np.int64]:
    sizes: npt.NDArray[Any] = np.asarray(group)
    if sizes.ndim != 1 or (len(sizes) and not np.issubdtype(sizes.dtype, np.integer)):
        raise ValueError("group must list whole numbers, how many documents each query has")
    if (sizes < 1).any():
        query = int(np.argmax(sizes < 1))
        raise ValueError(f"group[{query}] is {sizes[query]}: a query has one document or more")
    if sizes.sum() != n_documents:
        raise ValueError(f"group adds up to {sizes.sum()}, but there are {n_documents} documents")
    return sizes.astype(np.int64)
