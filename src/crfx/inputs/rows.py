"""X of any kind as one matrix, with the lengths of its instances and the columns that it has.

`agreed_rows` does so for workers that train together: all of them get the same columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.features.columns import Columns, united
from crfx.features.matrix import (
    Matrix,
    first_infinite,
    is_frame,
    is_on_disk,
    is_sparse,
    mapped,
    no_rows,
    stack,
    stacked,
    unwrapped,
)
from crfx.features.words import EncodesItself, Numbering, Total, peek
from crfx.inputs.hints import beside_lengths, without_lengths, wrong_shape
from crfx.io.shards import ShardFeatures, ShardLabels, Shards
from crfx.workers import agreed, current


@dataclass(frozen=True, eq=False)
class Rows:
    """A stacked matrix, the lengths of its instances, its columns, and whether X was a list.

    X of shards also has a batch, and perhaps weights of instances.
    """

    matrix: Any
    lengths: Any
    columns: Columns
    as_list: bool
    batch: Batch | None = None
    weights: npt.NDArray[Any] | None = None

    def frequent(
        self, min_count: int, known: Columns | None, total: Total = lambda counts: counts
    ) -> Rows:
        """Leave out names of rare features that were learned now; keep those of ``known`` columns.

        ``total`` as in `Vocabulary.frequent`.
        """
        vocabulary = self.columns.vocabulary
        if vocabulary is None or self.columns is known:
            return self
        n_known = 0 if known is None else known.n
        matrix, kept = vocabulary.frequent(self.matrix, min_count, n_known, total)
        if kept is vocabulary:
            return self
        return replace(self, matrix=matrix, columns=Columns.of_words(kept))

    def with_columns(self, columns: Columns) -> Rows:
        """Renumber names and categories as ``columns`` of all workers have them."""
        if self.columns.vocabulary is None:
            matrix = mapped(self.matrix, columns.matched)
        else:
            assert columns.vocabulary is not None
            matrix = self.matrix
            if self.columns is not columns:
                matrix = self.columns.vocabulary.renumbered(matrix, columns.vocabulary)
        return replace(self, matrix=matrix, columns=columns)


def read_rows(
    X: Any,
    lengths: Any = None,
    columns: Columns | None = None,
    *,
    training: bool = False,
    grows: bool = False,
    numbering: Numbering | None = None,
) -> Rows:
    """Stack X if it is a list of instances.

    ``columns`` are those of a fitted model, which X must have too.  If they are names of features
    and ``grows``, new names, rare ones included, are added to a copy of them; see `Rows.frequent`.
    """
    check_handles(X, "X")
    if isinstance(X, ShardFeatures):
        batch, columns = sharded_batch(X, {"lengths": lengths}, columns, training)
        if numbering is not None:
            numbering.check(columns.vocabulary)
        weights = X.shards.numbers("sample_weight")
        return Rows(batch.X, batch.lengths, columns, False, batch, weights)
    X = unwrapped(X)
    instances = _instances(X)
    if instances is None:
        if len(getattr(X, "shape", ())) != 2:
            raise ValueError(wrong_shape(X))
        if lengths is None:
            raise ValueError(without_lengths(X))
        if columns is not None:
            columns.check_numbers()
        matrix, counts = stacked(X), lengths
    elif lengths is not None:
        raise ValueError(beside_lengths(X))
    else:
        matrix, counts, columns = _stacked(instances, columns, grows, numbering or Numbering())
    if columns is None:
        columns = Columns.of(matrix)
    elif matrix.shape[0]:
        matrix = columns.matched(matrix, training=training)
    if numbering is not None:
        numbering.check(columns.vocabulary)
    return Rows(matrix, counts, columns, instances is not None)


def _stacked(
    instances: Iterable[Any],
    columns: Columns | None,
    grows: bool,
    numbering: Numbering,
) -> tuple[Any, list[int], Columns | None]:
    """Return instances as one matrix, their lengths, and the columns if X has names of features."""
    is_text, instances = peek(instances)
    if is_text:
        return _stacked_words(instances, columns, grows, numbering)
    listed = list(instances)
    of_words = columns is not None and columns.vocabulary is not None
    if of_words and not any(hasattr(instance, "shape") for instance in listed):
        return _stacked_words(listed, columns, grows, numbering)  # positions without any feature
    if listed:
        if columns is not None:
            columns.check_numbers()
        return *stack(listed), columns
    if columns is None:
        raise ValueError("X has no instances")
    return np.zeros((0, columns.n), np.float32), [], columns


def _stacked_words(
    instances: Iterable[Any],
    columns: Columns | None,
    grows: bool,
    numbering: Numbering,
) -> tuple[Any, list[int], Columns]:
    """Do the same for dicts or texts; leave out names that a fitted model has not seen."""
    known = None if columns is None else columns.vocabulary
    if columns is not None and known is None:
        raise ValueError("X holds dicts or texts, but the model was fitted on numbers")
    if columns is not None and known is not None and not grows:
        if numbering.min_count > 1:
            raise ValueError(
                f"min_count is {numbering.min_count}, but the model underneath, init_model, has "
                "its features already: they stay"
            )
        return *known.compact(instances), columns
    if known is None:
        known = numbering.empty()
    matrix, lengths, vocabulary = known.learned(instances)
    return matrix, lengths, Columns.of_words(vocabulary)


def _instances(X: Any) -> Iterable[Any] | None:
    """Return X as instances if it is a collection of them; None if it is one stacked matrix."""
    if isinstance(X, list | tuple):
        return X
    if isinstance(X, np.ndarray) and (X.ndim == 3 or (X.ndim == 1 and X.dtype == object)):
        return list(X)
    if hasattr(X, "shape") and len(X.shape) != 1:
        return None
    is_series = hasattr(X, "iloc") and not is_frame(X)
    if is_series or (hasattr(X, "__iter__") and not hasattr(X, "shape")):
        instances: Iterable[Any] = X
        return instances
    return None


# Shards ------------------------------------------------------------------------------------------


def sharded_batch(
    X: ShardFeatures, beside: dict[str, Any], columns: Columns | None, training: bool
) -> tuple[Batch, Columns]:
    """Return the instances of shards and their columns; ``columns`` are those of a fitted model.

    ``beside`` are arguments that shards have themselves, by name: each must be None.
    """
    shards = X.shards
    check_not_beside_shards(beside)
    matrix = shards.matrix().mapped(stacked)
    if columns is None:
        columns = Columns.of(matrix.no_rows)
    else:
        columns.check_numbers()
        matrix = matrix.mapped(partial(columns.matched, training=training))
    batch = Batch.from_lengths(
        shards.lengths,
        parents=shards.numbers("parents"),
        edge_types=shards.numbers("edge_types"),
        X=matrix,
    )
    return replace(batch, X=_checked_when_read(matrix, batch)), columns


def _checked_when_read(matrix: Matrix, batch: Batch) -> Matrix:
    """Return the matrix with a check, when a chunk is read first, that no number is infinite."""

    def check(rows: slice, chunk: Any) -> None:
        if (at := first_infinite(chunk)) is not None:
            raise ValueError(f"{batch.place(rows.start + at[0])}: {infinite_feature(at[1])}")

    return matrix.checked(check)


def infinite_feature(column: int) -> str:
    """Say what is wrong with a number that float32 does not have."""
    return f"feature {column} is infinite, or too large for float32; NaN marks a missing value"


def check_not_beside_shards(arguments: dict[str, Any]) -> None:
    """Raise ValueError if an argument, by name, is passed that shards have themselves."""
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(f"{name} is given beside shards, which have their own: leave it out")


def check_handles(value: Any, name: str) -> None:
    """Raise ValueError if shards are passed for X or y that are not their features or labels."""
    other = ShardLabels if name == "X" else ShardFeatures
    if isinstance(value, Shards | other):
        raise ValueError(f"{name} is {value!r}: pass shards.X as X, and shards.y as y")


def check_in_memory(X: Any, why: str) -> None:
    """Raise ValueError if features stay on disk, for what needs them all at once."""
    if is_on_disk(X) or isinstance(X, ShardFeatures):
        raise ValueError(f"{why} in memory, and these are shards: pass what shards.load() gives")


# Workers -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sample:
    """What a worker tells of its X: its kind, its columns, and such a matrix without rows."""

    kind: str
    columns: Columns
    no_rows: Any

    @classmethod
    def of(cls, matrix: Any, columns: Columns | None = None) -> Sample:
        """Describe a matrix, in memory or on disk; ``columns`` None: as the matrix has them."""
        empty = no_rows(matrix)
        columns = Columns.of(empty) if columns is None else columns
        kind = "dense arrays"
        if columns.vocabulary is not None:
            kind = "dicts or texts"
        elif is_frame(empty):
            kind = "data frames"
        elif is_sparse(empty):
            kind = "sparse matrices"
        return cls(kind, columns, empty)


def common_sample(answers: list[Sample | None], columns: Columns | None) -> Sample:
    """Return what the workers that have instances agree on, with the columns of all.

    ``columns`` None: those of the workers are united.  Raise if their X are of different kinds.
    """
    samples = {f"worker {rank}": own for rank, own in enumerate(answers) if own is not None}
    (first, sample), *others = samples.items()
    for name, other in others:
        if other.kind != sample.kind:
            raise ValueError(f"X holds {sample.kind} at {first} and {other.kind} at {name}")
    return replace(sample, columns=_united(samples) if columns is None else columns)


def _united(samples: dict[str, Sample]) -> Columns:
    columns = {name: sample.columns for name, sample in samples.items()}
    vocabularies = [own.vocabulary for own in columns.values() if own.vocabulary is not None]
    if vocabularies:
        return Columns.of_words(vocabularies[0].united(vocabularies[1:]))
    return united(columns)


def agreed_rows(
    X: Any,
    lengths: Any,
    columns: Columns | None,
    *,
    grows: bool = False,
    numbering: Numbering | None = None,
) -> Rows:
    """Read X of ``fit`` as one matrix with the columns of all workers; see `read_rows`.

    Names of features are numbered as if one worker had read all rows, and counted over all.
    """
    workers, min_count = current(), 1 if numbering is None else numbering.min_count

    def read() -> Rows:
        return read_rows(X, lengths, columns, training=True, grows=grows, numbering=numbering)

    if workers.size == 1:
        return read().frequent(min_count, columns)
    if not hasattr(X, "__len__") and not isinstance(X, EncodesItself | ShardFeatures):
        X = list(X)

    def tell(rows: Rows | None) -> tuple[int, Sample | None]:
        if rows is None:
            return len(X), None
        return np.size(rows.lengths), Sample.of(rows.matrix, rows.columns)

    has_none = lengths is None and _has_no_features(X)
    rows, answers = agreed(lambda: None if has_none else read(), tell)
    if all(answer is None for answer in answers):
        return read()  # raises the same error on all workers
    stays = columns is not None and (columns.vocabulary is None or not grows)
    sample = common_sample(answers, columns if stays else None)
    matched, _ = agreed(
        lambda: _of_nothing(X, sample) if rows is None else rows.with_columns(sample.columns),
        lambda _: (0, None),
    )
    return matched.frequent(min_count, columns, workers.sum)


def _has_no_features(X: Any) -> bool:
    """Return whether X is a list that does not say what features there are.

    Such a list has no matrix, and no position with a feature.
    """
    empty = (list, tuple, set, frozenset)
    return isinstance(X, list | tuple | np.ndarray) and all(
        isinstance(instance, list | tuple)
        and all(isinstance(position, empty) and not position for position in instance)
        for instance in X
    )


def _of_nothing(X: Any, sample: Sample) -> Rows:
    """Return the rows of a worker whose X does not say what features there are."""
    columns = sample.columns
    if columns.vocabulary is not None or any(len(instance) for instance in X):
        return read_rows(X, None, columns)
    return Rows(columns.matched(sample.no_rows), [0] * len(X), columns, as_list=True)
