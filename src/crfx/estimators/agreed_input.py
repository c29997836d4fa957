"""X of workers that train together, with the columns and the structure that all of them have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from crfx.estimators.inputs import Input, as_input
from crfx.estimators.rows import Rows, read_rows
from crfx.features.columns import Columns, united
from crfx.features.matrix import is_frame, mapped, no_rows
from crfx.features.words import EncodesItself, Numbering
from crfx.io.shards import ShardFeatures
from crfx.workers import Workers, agreed


@dataclass(frozen=True, eq=False)
class _Told:
    """What a worker tells of X: its kind, its columns, and a matrix of that kind without rows."""

    kind: str
    columns: Columns
    no_rows: Any

    @classmethod
    def of(cls, rows: Rows) -> _Told:
        X = no_rows(rows.matrix)
        kind = "dense arrays"
        if rows.columns.vocabulary is not None:
            kind = "dicts or texts"
        elif is_frame(X):
            kind = "data frames"
        elif sparse.issparse(X):
            kind = "sparse matrices"
        return cls(kind, rows.columns, X)


def agreed_rows(
    workers: Workers,
    X: Any,
    lengths: Any,
    columns: Columns | None,
    *,
    grows: bool = False,
    numbering: Numbering | None = None,
) -> Rows:
    """X of ``fit`` as one matrix, whose columns are those of all workers; see `read_rows`.

    Names of features are numbered as if all rows had been read one after the other, and counted
    over all.  Names and categories are told once.
    """
    min_count = 1 if numbering is None else numbering.min_count

    def read() -> Rows:
        return read_rows(X, lengths, columns, training=True, grows=grows, numbering=numbering)

    if workers.size == 1:
        return read().frequent(min_count, columns)
    if not hasattr(X, "__len__") and not isinstance(X, EncodesItself | ShardFeatures):
        X = list(X)
    own, answers = agreed(
        lambda: None if lengths is None and _says_nothing(X) else read(),
        lambda rows: (len(X), None) if rows is None else (np.size(rows.lengths), _Told.of(rows)),
    )
    told = {f"worker {rank}": answer for rank, answer in enumerate(answers) if answer is not None}
    if not told:
        return read()  # the same error for all
    _check_kinds(told)
    stays = columns is not None and (columns.vocabulary is None or not grows)
    common = columns if columns is not None and stays else _united(told)
    sample = next(iter(told.values())).no_rows
    found, _ = agreed(lambda: _with_columns(own, X, common, sample), lambda _: (0, None))
    return found.frequent(min_count, columns, workers.sum)


def _says_nothing(X: Any) -> bool:
    """Whether X is a list that does not tell what features there are: it has no position with one,
    and no matrix.
    """
    empty = (list, tuple, set, frozenset)
    return isinstance(X, list | tuple | np.ndarray) and all(
        isinstance(own, list | tuple)
        and all(isinstance(position, empty) and not position for position in own)
        for own in X
    )


def _check_kinds(told: dict[str, _Told]) -> None:
    (first, one), *others = told.items()
    for name, other in others:
        if other.kind != one.kind:
            raise ValueError(f"X holds {one.kind} at {first} and {other.kind} at {name}")


def _united(told: dict[str, _Told]) -> Columns:
    found = [each.columns for each in told.values()]
    vocabularies = [each.vocabulary for each in found if each.vocabulary is not None]
    if vocabularies:
        return Columns.of_words(vocabularies[0].united(vocabularies[1:]))
    return united({name: each.columns for name, each in told.items()})


def _with_columns(rows: Rows | None, X: Any, columns: Columns, no_rows: Any) -> Rows:
    """The rows of this worker, whose X may say nothing of columns, with those of all."""
    if rows is None:
        if columns.vocabulary is not None or any(len(own) for own in X):
            return read_rows(X, None, columns)
        return Rows(columns.matched(no_rows), [0] * len(X), columns, as_list=True)
    if rows.columns.vocabulary is None:
        return replace(rows, matrix=mapped(rows.matrix, columns.matched), columns=columns)
    assert columns.vocabulary is not None
    matrix = rows.matrix
    if rows.columns is not columns:
        matrix = rows.columns.vocabulary.renumbered(matrix, columns.vocabulary)
    return replace(rows, matrix=matrix, columns=columns)


def agreed_input(workers: Workers, rows: Rows, parents: Any, edge_types: Any) -> Input:
    """The batch of this worker, of forests where those of all are; see `as_input`."""
    data, told = agreed(lambda: as_input(rows, parents, edge_types), _structure)
    if workers.size == 1:
        return data
    parents, edge_types = (_given_to_all(name, told) for name in ("parents", "edge_types"))
    return hung_together(data, forest=parents, typed=edge_types)


def hung_together(data: Input, *, forest: bool, typed: bool) -> Input:
    """Where there are no instances, let none of them hang together as others do."""
    if data.batch.n_instances:
        return data
    none = np.zeros(0, np.int64)
    parents, edge_types = (none if given else None for given in (forest, typed))
    return replace(data, batch=replace(data.batch, parents=parents, edge_types=edge_types))


def _given_to_all(name: str, told: list[dict[str, int]]) -> bool:
    """Whether workers that have instances have got an argument; raise unless all are alike."""
    given = {rank: bool(own[name]) for rank, own in enumerate(told) if own["n_instances"]}
    if len(set(given.values())) > 1:
        there, missing = (
            next(rank for rank in given if given[rank] == has) for has in (True, False)
        )
        raise ValueError(
            f"{name} are given at worker {there} and not at worker {missing}: pass them to all or "
            "to none"
        )
    return any(given.values())


def _structure(data: Input) -> tuple[int, dict[str, int]]:
    batch = data.batch
    return batch.n_instances, {
        "n_instances": batch.n_instances,
        "parents": batch.parents is not None,
        "edge_types": batch.edge_types is not None,
    }
