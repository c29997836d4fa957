"""From what users pass to RankingCRF to a batch of queries with their relevance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.features import matrices
from crfx.features.columns import Columns
from crfx.ndcg import Gain, gain_of
from crfx.trainers.communicator import ALONE, Communicator, count
from crfx.trainers.ranking_task import Before

Array64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Queries:
    """Documents of one query after another: features, relevance and weights of the queries.

    ``before`` are those that other workers have, where several train together.
    """

    batch: Batch
    columns: Columns
    relevance: Array64
    weights: Array64
    before: Before

    def gains(self, gain: Gain) -> Array64:
        """What a document adds at the first rank."""
        return gain_of(self.relevance, gain)


def read_documents(
    X: Any, columns: Columns | None, *, training: bool = False
) -> tuple[Any, list[int] | None]:
    """X as a matrix of documents, with the columns of a fitted model; and how many each query has,
    where X is a list with one matrix per query.
    """
    matrix, sizes = _stacked(X, columns, training=training)
    _check_finite(matrix)
    return matrix, sizes


def _stacked(X: Any, columns: Columns | None, *, training: bool) -> tuple[Any, list[int] | None]:
    X, sizes = matrices.unwrapped(X), None
    if isinstance(X, list | tuple) and X and len(getattr(X[0], "shape", ())) == 2:
        matrix, sizes = matrices.stack(X)
    elif _is_nested(X):
        raise ValueError(
            "X is a list of queries written as plain lists: pass a list of arrays, "
            "[np.array(query) for query in X]"
        )
    else:
        matrix = matrices.stacked(X)
    if columns is not None:
        matrix = columns.matched(matrix, training=training)
    return matrix, sizes


def _check_finite(matrix: Any, first: int = 0) -> None:
    infinite = matrices.first_infinite(matrix)
    if infinite is not None:
        raise ValueError(
            f"document {first + infinite[0]}: feature {infinite[1]} is infinite, or too large for "
            "float32; NaN marks a missing value"
        )


def _is_nested(X: Any) -> bool:
    """Whether it is a list of lists of lists."""
    for _ in range(2):
        if not isinstance(X, list | tuple) or not X:
            return False
        X = X[0]
    return isinstance(X, list | tuple)


def read_group(group: Any, n_documents: int, own_sizes: list[int] | None = None) -> Batch:
    """``group``, the number of documents of each query, as a batch; a list X has its own."""
    if own_sizes is not None:
        if group is not None:
            raise ValueError("group is given, but X is a list of queries: a list has its own sizes")
        group = own_sizes
    if group is None:
        raise ValueError(
            "group is missing: pass the number of documents of each query, as in fit(X, relevance, "
            "group=[5, 3]), or a list with one matrix per query, which cross-validation needs"
        )
    try:
        sizes = np.asarray(group)
    except ValueError:  # lists of unequal lengths
        sizes = np.zeros((0, 0))
    if sizes.ndim != 1 or (sizes.size and sizes.dtype.kind not in "iu"):
        raise ValueError("group must list whole numbers, how many documents each query has")
    empty = np.flatnonzero(sizes < 1)
    if empty.size:
        raise ValueError(f"group[{empty[0]}] is {sizes[empty[0]]}: a query has 1 document or more")
    if sizes.sum() != n_documents:
        raise ValueError(
            f"group adds up to {int(sizes.sum())} documents, but X has {n_documents}: it lists how "
            "many documents each query has, in the order of X; cross-validation splits documents "
            "and leaves group whole: pass it a list with one matrix per query"
        )
    return Batch.from_lengths(sizes.astype(np.int64))


def read_queries(
    X: Any,
    relevance: Any,
    group: Any,
    sample_weight: Any = None,
    *,
    columns: Columns | None = None,
    training: bool = False,
    workers: Communicator = ALONE,
) -> Queries:
    """Read and check what is learned from, or judged on, by one or several ``workers``.

    Errors count queries and documents over all workers.
    """
    matrix, sizes = _stacked(X, columns, training=training)
    batch = read_group(group, matrix.shape[0], sizes)
    batch = Batch(batch.offsets, X=matrix)
    if not count(workers, batch.n_rows):
        raise ValueError("X has no documents")
    before = Before.of(workers, batch)
    _check_finite(matrix, before.documents)
    return Queries(
        batch,
        Columns.of(matrix) if columns is None else columns,
        _relevance(_joined(relevance, sizes, before.queries), batch, before.queries),
        _weights(sample_weight, batch, before.queries),
        before,
    )


def read_eval_set(eval_set: Any, columns: Columns, workers: Communicator) -> Queries:
    """The argument ``eval_set``: (X, relevance, group), or a dict of these; a list X of queries
    has no group.
    """
    names = ("X", "relevance", "group")
    if isinstance(eval_set, dict):
        if not {"X", "relevance"} <= set(eval_set) <= set(names):
            raise ValueError(f"eval_set has {sorted(eval_set)}: its keys are {', '.join(names)}")
        given = dict(eval_set)
    elif isinstance(eval_set, tuple | list) and len(eval_set) in (2, 3):
        given = dict(zip(names, eval_set, strict=False))
    else:
        raise ValueError("eval_set is not (X, relevance, group), nor a dict of these")
    try:
        return read_queries(**{"group": None, **given}, columns=columns, workers=workers)
    except ValueError as error:
        raise ValueError(f"eval_set: {error}") from None


def _joined(relevance: Any, sizes: list[int] | None, first: int) -> Any:
    """One list for all documents, where there is one for each query."""
    if sizes is None:
        return relevance
    if not hasattr(relevance, "__len__") or len(relevance) != len(sizes):
        count = len(relevance) if hasattr(relevance, "__len__") else "no"
        raise ValueError(f"relevance has {count} lists, but X has {len(sizes)} queries")
    for query, (own, size) in enumerate(zip(relevance, sizes, strict=True), first):
        if np.shape(own) != (size,):
            raise ValueError(
                f"query {query}: relevance has shape {np.shape(own)}: pass one number per "
                f"document, {size}"
            )
    return np.concatenate([np.asarray(own) for own in relevance])


def _relevance(relevance: Any, batch: Batch, first: int) -> Array64:
    if relevance is None:
        raise ValueError(
            "relevance is missing: crfx requires y to be passed, but the target y is None"
        )
    relevance = matrices.unwrapped(relevance)
    try:
        found = np.array(relevance, np.float64)
    except (TypeError, ValueError):
        raise ValueError("relevance is not a list of numbers: pass one per document") from None
    if found.shape != (batch.n_rows,):
        raise ValueError(
            f"relevance has shape {found.shape}: pass one number per document, {batch.n_rows}"
        )
    bad = ~((found >= 0) & np.isfinite(found))
    if bad.any():
        query, document = batch.locate(int(np.argmax(bad)))
        raise ValueError(
            f"query {first + query}, document {document}: relevance is {found[bad][0]:g}; it must "
            "be finite and 0 or more"
        )
    return found


def _weights(sample_weight: Any, batch: Batch, first: int) -> Array64:
    if sample_weight is None:
        return np.ones(batch.n_instances)
    try:
        found = np.array(sample_weight, np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight is not a list of numbers: pass one per query") from None
    if found.shape != (batch.n_instances,):
        raise ValueError(
            f"sample_weight has shape {found.shape}: pass one weight per query, {batch.n_instances}"
        )
    bad = ~((found >= 0) & np.isfinite(found))
    if bad.any():
        raise ValueError(
            f"query {first + int(np.argmax(bad))}: its weight {found[bad][0]} is not 0 or more"
        )
    return found
