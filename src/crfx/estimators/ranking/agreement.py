"""What workers agree on that learn to rank together: columns, and whose queries come first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from crfx.estimators.ranking.inputs import (
    Documents,
    Queries,
    as_queries,
    documents_of,
    named_eval_set,
)
from crfx.features.columns import Columns, united
from crfx.features.matrix import is_frame, is_sparse, mapped, no_rows
from crfx.trainers.ranking_task import Before
from crfx.workers import Workers, agreed


@dataclass(frozen=True, eq=False)
class _Told:
    """What a worker tells of its X: the columns, and a matrix of that kind without rows."""

    columns: Columns
    no_rows: Any

    @classmethod
    def of(cls, documents: Documents) -> _Told:
        empty = no_rows(documents.matrix)
        return cls(Columns.of(empty), empty)

    @property
    def kind(self) -> str:
        if is_frame(self.no_rows):
            return "data frames"
        return "sparse matrices" if is_sparse(self.no_rows) else "dense arrays"


def agreed_queries(
    workers: Workers,
    X: Any,
    relevance: Any,
    group: Any,
    sample_weight: Any = None,
    *,
    columns: Columns | None = None,
    training: bool = False,
) -> Queries:
    """The queries of this worker, which may have none, with the columns of all workers.

    What is wrong with those of one is an error for all, in which queries are counted over all.
    """
    documents, common = _agreed_documents(workers, X, columns, training)
    queries, counts = agreed(
        lambda: as_queries(documents, relevance, group, sample_weight, common),
        lambda found: (found.batch.n_instances, (found.batch.n_instances, found.batch.n_rows)),
    )
    if not sum(n_documents for _, n_documents in counts):
        raise ValueError("X has no documents")
    return replace(queries, before=Before.those_of(counts[: workers.rank]))


def agreed_eval_set(workers: Workers, eval_set: Any, columns: Columns) -> Queries:
    """The part of the argument ``eval_set`` that this worker has, which may be nothing."""
    given, _ = agreed(lambda: named_eval_set(eval_set), lambda _: (0, None))
    try:
        return agreed_queries(workers, **given, columns=columns)
    except ValueError as error:
        raise ValueError(f"eval_set: {error}") from None


def _agreed_documents(
    workers: Workers, X: Any, columns: Columns | None, training: bool
) -> tuple[Documents, Columns]:
    def read() -> Documents:
        return documents_of(X, columns, training=training)

    if workers.size == 1:
        alone = read()
        return alone, _Told.of(alone).columns if columns is None else columns
    is_nothing = isinstance(X, list | tuple) and not X  # where nothing was left for a worker
    own, answers = agreed(
        lambda: None if is_nothing else read(),
        lambda found: (0, None) if found is None else (len(found.sizes or ()), _Told.of(found)),
    )
    told = {f"worker {rank}": each for rank, each in enumerate(answers) if each is not None}
    if not told:
        raise ValueError("X has no documents")
    (first, one), *others = told.items()
    for name, other in others:
        if other.kind != one.kind:
            raise ValueError(f"X holds {one.kind} at {first} and {other.kind} at {name}")
    if columns is None:
        columns = united({name: each.columns for name, each in told.items()})
    documents = Documents(one.no_rows, [], is_list=True) if own is None else own
    return replace(documents, matrix=_matched(documents.matrix, columns)), columns


def _matched(matrix: Any, columns: Columns) -> Any:
    """With categories numbered as all workers number them."""
    return mapped(matrix, columns.matched) if columns.categories else matrix
