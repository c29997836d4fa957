"""What users pass to a ranking model: queries of documents, with their relevance.

`agreed_queries` reads them for workers that train together: all of them get the same columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.features.columns import Columns
from crfx.features.matrix import first_infinite, is_on_disk, mapped, stack, stacked, unwrapped
from crfx.inputs.rows import Sample, common_sample, infinite_feature, sharded_batch
from crfx.io.shards import ShardFeatures, ShardLabels
from crfx.ndcg import Gain, gain_of
from crfx.trainers.ranking_task import Before
from crfx.workers import agreed, current

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
    before: Before = field(default_factory=Before)

    def gains(self, gain: Gain) -> Array64:
        """What a document adds at the first rank."""
        return gain_of(self.relevance, gain)


@dataclass(frozen=True, eq=False)
class Documents:
    """X as a matrix, and what came with it: how many documents each query has, where X is a list
    with one matrix per query, or shards; and the weights of queries that shards may have.
    """

    matrix: Any
    sizes: list[int] | None
    is_list: bool = False
    weights: npt.NDArray[Any] | None = None

    def split(self, scores: Array64) -> Any:
        """(documents,) as a list per query where X was one, else as it is."""
        if not self.is_list or self.sizes is None:
            return scores
        return np.split(scores, np.cumsum(self.sizes)[:-1])


def read_documents(X: Any, columns: Columns | None) -> Documents:
    """X with the columns of a fitted model.  The features of shards stay on disk."""
    found = documents_of(X, columns)
    infinite = _first_infinite(found.matrix)
    if infinite is not None:
        raise ValueError(f"document {infinite[0]}: {infinite_feature(infinite[1])}")
    return found


def documents_of(X: Any, columns: Columns | None, *, training: bool = False) -> Documents:
    """As `read_documents`; whether numbers are finite is not looked at."""
    if isinstance(X, ShardFeatures):
        return _of_shards(X, columns, training)
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
    if columns is not None:
        matrix = columns.matched(matrix, training=training)
    return Documents(matrix, sizes, sizes is not None)


def _of_shards(X: ShardFeatures, columns: Columns | None, training: bool) -> Documents:
    shards = X.shards
    if strange := shards.has & {"parents", "edge_types"}:
        raise ValueError(f"the shards have {min(strange)}: documents of a query have no edges")
    batch, _ = sharded_batch(X, {}, columns, training)
    return Documents(batch.X, shards.lengths.tolist(), False, shards.numbers("sample_weight"))


def _first_infinite(matrix: Any) -> tuple[int, int] | None:
    """Of what is in memory; the rest is looked at when it is read."""
    return None if is_on_disk(matrix) else first_infinite(matrix)


def _is_nested(X: Any) -> bool:
    """Whether it is a list of lists of lists."""
    for _ in range(2):
        if not isinstance(X, list | tuple) or not X:
            return False
        X = X[0]
    return isinstance(X, list | tuple)


def read_group(group: Any, documents: Documents) -> Batch:
    """``group``, the number of documents of each query, as a batch; a list X has its own, and so
    have shards.
    """
    n_documents = documents.matrix.shape[0]
    if documents.sizes is not None:
        if group is not None:
            what = "shards, which have their"
            if documents.is_list:
                what = "a list of queries: a list has its"
            raise ValueError(f"group is given, but X is {what} own sizes")
        group = documents.sizes
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
    columns: Columns,
) -> Queries:
    """Read and check what is judged on, with the columns of a fitted model."""
    found = as_queries(documents_of(X, columns), relevance, group, sample_weight, columns)
    if not found.batch.n_rows:
        raise ValueError("X has no documents")
    return found


def as_queries(
    documents: Documents, relevance: Any, group: Any, sample_weight: Any, columns: Columns
) -> Queries:
    """Documents, whose columns these are, with what goes with them, checked."""
    batch = Batch(read_group(group, documents).offsets, X=documents.matrix)
    infinite = _first_infinite(documents.matrix)
    if infinite is not None:
        query, document = batch.locate(infinite[0])
        raise ValueError(f"query {query}, document {document}: {infinite_feature(infinite[1])}")
    return Queries(
        batch,
        columns,
        _relevance(_joined(relevance, documents), batch),
        _weights(_given_once(sample_weight, documents), batch),
    )


def named_eval_set(eval_set: Any) -> dict[str, Any]:
    """The argument ``eval_set``: (X, relevance, group), or a dict of these, by name; a list X of
    queries has no group.
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
    if isinstance(given["X"], ShardFeatures) and "sample_weight" in given["X"].shards.has:
        raise ValueError("eval_set: its shards have sample_weight, which an eval_set has not")
    return {"group": None, **given}


def _given_once(sample_weight: Any, documents: Documents) -> Any:
    if sample_weight is not None and documents.weights is not None:
        raise ValueError("sample_weight is given beside shards, which have their own: leave it out")
    return documents.weights if sample_weight is None else sample_weight


def _joined(relevance: Any, documents: Documents) -> Any:
    """One list for all documents, where there is one for each query."""
    if isinstance(relevance, ShardLabels):
        return relevance.shards.labels()
    if not documents.is_list:
        return relevance
    sizes = documents.sizes or []
    if not hasattr(relevance, "__len__") or len(relevance) != len(sizes):
        count = len(relevance) if hasattr(relevance, "__len__") else "no"
        raise ValueError(f"relevance has {count} lists, but X has {len(sizes)} queries")
    for query, (own, size) in enumerate(zip(relevance, sizes, strict=True)):
        if np.shape(own) != (size,):
            raise ValueError(
                f"query {query}: relevance has shape {np.shape(own)}: pass one number per "
                f"document, {size}"
            )
    return np.concatenate([np.zeros(0), *(np.asarray(own) for own in relevance)])


def _relevance(relevance: Any, batch: Batch) -> Array64:
    if relevance is None:
        raise ValueError(
            "relevance is missing: crfx requires y to be passed, but the target y is None"
        )
    relevance = unwrapped(relevance)
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
        row = int(np.argmax(bad))
        query, document = batch.locate(row)
        raise ValueError(
            f"{batch.file_of(row)}query {query}, document {document}: relevance is "
            f"{found[bad][0]:g}; it must be finite and 0 or more"
        )
    return found


def _weights(sample_weight: Any, batch: Batch) -> Array64:
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
            f"query {int(np.argmax(bad))}: its weight {found[bad][0]} is not 0 or more"
        )
    return found


# Workers -----------------------------------------------------------------------------------------


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
    documents, common = _agreed_documents(X, columns, training)
    queries, counts = agreed(
        lambda: as_queries(documents, relevance, group, sample_weight, common),
        lambda own: (own.batch.n_instances, (own.batch.n_instances, own.batch.n_rows)),
    )
    if not sum(n_documents for _, n_documents in counts):
        raise ValueError("X has no documents")
    return replace(queries, before=Before.those_of(counts[: current().rank]))


def agreed_eval_set(eval_set: Any, columns: Columns) -> Queries:
    """Read the part of the argument ``eval_set`` that this worker has, which may be nothing."""
    passed, _ = agreed(lambda: named_eval_set(eval_set), lambda _: (0, None))
    try:
        return agreed_queries(**passed, columns=columns)
    except ValueError as error:
        raise ValueError(f"eval_set: {error}") from None


def _agreed_documents(X: Any, columns: Columns | None, training: bool) -> tuple[Documents, Columns]:
    def read() -> Documents:
        return documents_of(X, columns, training=training)

    if current().size == 1:
        documents = read()
        return documents, Sample.of(documents.matrix).columns if columns is None else columns
    is_nothing = isinstance(X, list | tuple) and not X  # no instance was left for this worker

    def tell(own: Documents | None) -> tuple[int, Sample | None]:
        return (0, None) if own is None else (len(own.sizes or ()), Sample.of(own.matrix))

    own, answers = agreed(lambda: None if is_nothing else read(), tell)
    if all(answer is None for answer in answers):
        raise ValueError("X has no documents")
    sample = common_sample(answers, columns)
    documents = Documents(sample.no_rows, [], is_list=True) if own is None else own
    if sample.columns.categories:  # numbered as all workers number them
        documents = replace(documents, matrix=mapped(documents.matrix, sample.columns.matched))
    return documents, sample.columns
