"""What users pass to a ranking model: queries of documents, with their relevance.

`agreed_queries` reads them for workers that train together: all of them get the same columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.errors import BadInstance, about
from crfx.features.columns import Columns
from crfx.features.matrix import (
    first_infinite,
    infinite_feature,
    stack,
    stacked,
    take_rows,
    unwrapped,
)
from crfx.inputs.rows import (
    Rows,
    check_finite,
    check_not_beside_shards,
    sharded_rows,
    with_common_columns,
)
from crfx.inputs.weights import instance_weights
from crfx.io.shards import is_sharded, labels_in
from crfx.ndcg import Gain, gain_of
from crfx.trainers.ranking_task import Before
from crfx.trainers.subsets import Subsets
from crfx.workers import agreed, count, current

Array64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Queries:
    """Documents of one query after another: features, relevance and weights of the queries.

    ``before`` counts the queries of the workers before this one.
    """

    batch: Batch
    columns: Columns
    relevance: Array64
    weights: Array64
    before: Before = field(default_factory=Before)

    def gains(self, gain: Gain) -> Array64:
        """Return what each document adds at the first rank."""
        return gain_of(self.relevance, gain)


def read_documents(X: Any, columns: Columns) -> Rows:
    """Read X with the columns of a fitted model; the features of shards stay on disk."""
    rows = _documents(X, columns)
    if (at := first_infinite(rows.matrix)) is not None:
        raise ValueError(f"document {at[0]}: {infinite_feature(at[1])}")
    return rows


def _documents(X: Any, columns: Columns | None, *, training: bool = False) -> Rows:
    """Do the same, without a check that numbers are finite."""
    if is_sharded(X):
        if structure := X.has & {"parents", "edge_types"}:
            raise ValueError(
                f"the shards have {min(structure)}: documents of a query have no edges"
            )
        return sharded_rows(X, {}, columns, training)
    X, sizes = unwrapped(X), None
    if isinstance(X, list | tuple) and X and len(getattr(X[0], "shape", ())) == 2:
        matrix, sizes = stack(X)
    elif _is_nested(X):
        raise ValueError(
            "X is a list of queries written as plain lists: pass a list of arrays, "
            "[np.array(query) for query in X]"
        )
    else:
        matrix = stacked(X)
    if columns is None:
        columns = Columns.of(matrix)
    else:
        matrix = columns.matched(matrix, training=training)
    return Rows(matrix, sizes, columns, sizes is not None)


def _is_nested(X: Any) -> bool:
    """Return whether it is a list of lists of lists."""
    for _ in range(2):
        if not isinstance(X, list | tuple) or not X:
            return False
        X = X[0]
    return isinstance(X, list | tuple)


def read_group(group: Any, documents: Rows) -> Batch:
    """Return ``group``, the number of documents of each query, as a batch.

    A list X has its own sizes, and so have shards.
    """
    n_documents = documents.matrix.shape[0]
    if documents.lengths is not None:
        if group is not None:
            what = "a list of queries: a list has its"
            if not documents.as_list:
                what = "shards, which have their"
            raise ValueError(f"group is given, but X is {what} own sizes")
        group = documents.lengths
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
    X: Any, relevance: Any, group: Any, sample_weight: Any = None, *, columns: Columns
) -> Queries:
    """Read and check what a fitted model is judged on."""
    queries = _queries(_documents(X, columns), relevance, group, sample_weight)
    if not queries.batch.n_rows:
        raise ValueError("X has no documents")
    return queries


def _queries(documents: Rows, relevance: Any, group: Any, sample_weight: Any) -> Queries:
    """Return documents with what goes with them, checked."""
    batch = Batch(read_group(group, documents).offsets, X=documents.matrix)
    check_finite(batch, "query")
    if documents.weights is not None:
        check_not_beside_shards({"sample_weight": sample_weight})
        sample_weight = documents.weights
    labels = _relevance(_joined(relevance, documents), batch)
    weights = instance_weights(sample_weight, batch.n_instances, "query")
    weights = np.ones(batch.n_instances) if weights is None else weights
    return Queries(batch, documents.columns, labels, weights)


def _joined(relevance: Any, documents: Rows) -> Any:
    """Return one list for all documents if there is one for each query."""
    if not documents.as_list:
        return relevance
    if not hasattr(relevance, "__len__") or len(relevance) != len(documents.lengths):
        count = len(relevance) if hasattr(relevance, "__len__") else "no"
        raise ValueError(f"relevance has {count} lists, but X has {len(documents.lengths)} queries")
    for query, (part, size) in enumerate(zip(relevance, documents.lengths, strict=True)):
        if np.shape(part) != (size,):
            reason = f"relevance has shape {np.shape(part)}: pass one number per document, {size}"
            raise BadInstance(query, reason, unit="query")
    return np.concatenate([np.zeros(0), *(np.asarray(part) for part in relevance)])


def _relevance(relevance: Any, batch: Batch) -> Array64:
    if relevance is None:
        raise ValueError(
            "relevance is missing: crfx requires y to be passed, but the target y is None"
        )
    relevance = unwrapped(labels_in(relevance))
    try:
        values = np.array(relevance, np.float64)
    except (TypeError, ValueError):
        raise ValueError("relevance is not a list of numbers: pass one per document") from None
    if values.shape != (batch.n_rows,):
        raise ValueError(
            f"relevance has shape {values.shape}: pass one number per document, {batch.n_rows}"
        )
    bad = np.flatnonzero(~((values >= 0) & np.isfinite(values)))
    if bad.size:
        reason = f"relevance is {values[bad[0]]:g}; it must be finite and 0 or more"
        raise batch.bad_row(bad[0], reason, "query")
    return values


# The training set and the evaluation set, of all workers ------------------------------------------


def agreed_queries(
    X: Any,
    relevance: Any,
    group: Any,
    sample_weight: Any = None,
    *,
    columns: Columns | None = None,
    training: bool = False,
) -> Queries:
    """Read the queries of this worker, which may have none, with the columns of all workers.

    An error of one worker is raised by all, with its query counted over all.
    """
    documents = with_common_columns(
        lambda: _documents(X, columns, training=training),
        columns,
        is_nothing=isinstance(X, list | tuple) and not X,
        n_instances=0,
        without_rows=lambda sample: Rows(sample.no_rows, [], sample.columns, as_list=True),
    )
    if documents is None:
        raise ValueError("X has no documents")
    queries, counts = agreed(
        lambda: _queries(documents, relevance, group, sample_weight),
        lambda own: (own.batch.n_instances, (own.batch.n_instances, own.batch.n_rows)),
    )
    if not sum(n_documents for _, n_documents in counts):
        raise ValueError("X has no documents")
    return replace(queries, before=Before.those_of(counts[: current().rank]))


def agreed_eval_set(eval_set: Any, columns: Columns) -> Queries:
    """Read the part of the argument ``eval_set`` that this worker has, which may be nothing."""
    passed, _ = agreed(lambda: _named_eval_set(eval_set), lambda _: (0, None))
    with about("eval_set"):
        return agreed_queries(**passed, columns=columns)


def _named_eval_set(eval_set: Any) -> dict[str, Any]:
    """Return the argument ``eval_set`` by names; a list X of queries has no group."""
    names = ("X", "relevance", "group")
    if isinstance(eval_set, dict):
        if not {"X", "relevance"} <= set(eval_set) <= set(names):
            raise ValueError(f"eval_set has {sorted(eval_set)}: its keys are {', '.join(names)}")
        passed = dict(eval_set)
    elif isinstance(eval_set, tuple | list) and len(eval_set) in (2, 3):
        passed = dict(zip(names, eval_set, strict=False))
    else:
        raise ValueError("eval_set is not (X, relevance, group), nor a dict of these")
    if is_sharded(passed["X"]) and "sample_weight" in passed["X"].has:
        raise ValueError("eval_set: its shards have sample_weight, which an eval_set has not")
    return {"group": None, **passed}


def learnable(queries: Queries, size: int) -> tuple[Queries, int]:
    """Return the queries to learn an order from, and how many others all workers have."""
    batch, workers = queries.batch, current()
    subsets, _ = agreed(
        lambda: Subsets(batch, queries.relevance, size),
        lambda _: (batch.n_instances, None),
    )
    kept = subsets.learnable[queries.weights[subsets.learnable] > 0]
    if not count(workers, len(kept)):
        raise ValueError(
            "no query has documents of two relevance levels, and a weight above 0: there is no "
            "order to learn"
        )
    is_kept = np.zeros(batch.n_instances, bool)
    is_kept[kept] = True
    rows = np.flatnonzero(is_kept[batch.instance_of_row])
    batch_kept = Batch.from_lengths(batch.lengths[kept], X=take_rows(batch.X, rows))
    kept_queries = Queries(
        batch_kept,
        queries.columns,
        queries.relevance[rows],
        queries.weights[kept],
        Before.of(workers, batch_kept),
    )
    return kept_queries, count(workers, batch.n_instances - len(subsets.learnable))
