"""X of any kind as one matrix, with the lengths of its instances and the columns that it has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.estimators.shape_hints import beside_lengths, without_lengths, wrong_shape
from crfx.estimators.sharded_input import check_handles, sharded_batch
from crfx.features.columns import Columns
from crfx.features.matrix import is_frame, stack, stacked, unwrapped
from crfx.features.words import Numbering, Total, peek
from crfx.io.shards import ShardFeatures


@dataclass(frozen=True, eq=False)
class Rows:
    """A stacked matrix, the lengths of its instances, its columns, and whether X was a list.

    Where X is of shards, which have a batch and perhaps weights of instances, these too.
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
        """Without names of features that are rare, where columns have names that were learned now;
        those of ``known`` columns stay.  ``total`` as in `Vocabulary.frequent`.
        """
        vocabulary = self.columns.vocabulary
        if vocabulary is None or self.columns is known:
            return self
        n_known = 0 if known is None else known.n
        matrix, kept = vocabulary.frequent(self.matrix, min_count, n_known, total)
        if kept is vocabulary:
            return self
        return replace(self, matrix=matrix, columns=Columns.of_words(kept))


def read_rows(
    X: Any,
    lengths: Any = None,
    columns: Columns | None = None,
    *,
    training: bool = False,
    grows: bool = False,
    numbering: Numbering | None = None,
) -> Rows:
    """Stack X where it is a list.

    ``columns`` are those of a fitted model, which X must have too; where they are words and
    ``grows``, new words are added to a copy of them; also rare ones, see `Rows.frequent`.
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
    """Instances as one matrix, their lengths, and the columns where words tell them."""
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
    """As `_stacked`, of dicts or texts; names that a fitted model has not seen are left out."""
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
    """X as instances, where it is some collection of them; None: one stacked matrix."""
    if isinstance(X, list | tuple):
        return X
    if isinstance(X, np.ndarray) and (X.ndim == 3 or (X.ndim == 1 and X.dtype == object)):
        return list(X)
    if hasattr(X, "shape") and len(X.shape) != 1:
        return None
    is_series = hasattr(X, "iloc") and not is_frame(X)
    if is_series or (hasattr(X, "__iter__") and not hasattr(X, "shape")):
        found: Iterable[Any] = X
        return found
    return None
