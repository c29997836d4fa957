"""Features as users of CRF tools write them: a dict, or a list of texts, for every position.

``{"word": "the", "length": 3, "title": False}`` are the features ``word:the`` with value 1,
``length`` with value 3 and ``title`` with value 0; ``["word=the", "BOS"]`` are two features with
value 1.  Values of a dict may be lists of texts and dicts too.  So does CRFsuite read them.  Beyond
that ``{"vector": [0.5, 2]}``, a list or array of numbers, are ``vector:0`` and ``vector:1``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx import _core
from crfx.messages import warn

Total = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]
"""Counts in, the sums of all workers' counts out."""

NOTHING_KNOWN = (
    "none of the {} features in X is known to the model: is X made as it was for fit (the same "
    "template, the same names)?"
)


@dataclass(frozen=True)
class Numbering:
    """How names of features become columns: those that occur ``min_count`` times, each its own;
    or by their hash, ``n_hashed`` columns in all.
    """

    min_count: int = 1
    n_hashed: int | None = None

    def empty(self) -> Vocabulary:
        """A vocabulary to begin with."""
        return Vocabulary() if self.n_hashed is None else HashedVocabulary(self.n_hashed)

    def check(self, vocabulary: Vocabulary | None) -> None:
        """Raise unless columns came about like that; None: they have no vocabulary."""
        if vocabulary is None and (self.min_count > 1 or self.n_hashed is not None):
            name = "min_count" if self.min_count > 1 else "n_hashed"
            raise ValueError(
                f"{name} is {getattr(self, name)}, but X holds numbers: it is for the names of "
                "features, in dicts, texts and templates"
            )
        n_hashed = len(vocabulary) if isinstance(vocabulary, HashedVocabulary) else None
        if vocabulary is not None and n_hashed != self.n_hashed:
            raise ValueError(
                f"n_hashed is {self.n_hashed}, but the model that is trained further has {n_hashed}"
            )


@runtime_checkable
class EncodesItself(Protocol):
    """Instances that know a shorter way into a matrix, as those of a template do."""

    def encode_into(self, vocabulary: Vocabulary, *, learn: bool) -> tuple[Any, list[int]]:
        """(rows, features) CSR, and the lengths of the instances."""
        ...


class Vocabulary:
    """Names of features and their numbers, which grow while they are learned."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._table = _core.FeatureNames(list(names))

    def __len__(self) -> int:
        return len(self._table)

    def names(self) -> list[str]:
        """All names, in the order of their numbers."""
        return self._table.names()

    def encode(self, instances: Iterable[Any], *, learn: bool = False) -> tuple[Any, list[int]]:
        """(rows, features) CSR of float32, and the lengths of the instances.

        ``learn`` numbers names that are new; otherwise they are left out.  ``instances`` are read
        once, one after the other: a generator does.  O(features that occur) in time and memory.
        """
        matrix, lengths = self.compact(instances, learn=learn)
        # Not matrix.astype: it adds doubles up first, as int8.
        values = matrix.data.astype(np.float32, copy=False)
        arrays = (values, matrix.indices, matrix.indptr)
        return sparse.csr_matrix(arrays, shape=matrix.shape), lengths

    def compact(self, instances: Iterable[Any], *, learn: bool = False) -> tuple[Any, list[int]]:
        """As `encode`, but ones are of int8 where all are: not to be added up or multiplied."""
        # Lists are told apart first: asking for a protocol takes longer than a short sentence.
        if not isinstance(instances, list | tuple) and isinstance(instances, EncodesItself):
            return instances.encode_into(self, learn=learn)
        return self._matrix(self._table.encode(instances, learn))

    def encode_template(
        self,
        instances: Iterable[Any],
        lines: list[tuple[str, list[tuple[int, int]]]],
        *,
        learn: bool = False,
    ) -> tuple[Any, list[int]]:
        """As `compact`; instances are lists of columns, see `crfx.features.templates`."""
        return self._matrix(self._table.encode_template(instances, lines, learn))

    def learned(self, instances: Iterable[Any]) -> tuple[Any, list[int], Self]:
        """As `compact` with new names, which are numbered in a vocabulary of its own."""
        found = type(self)(self.names())
        return *found.compact(instances, learn=True), found

    def frequent(
        self, matrix: Any, min_count: int, n_known: int, total: Total = lambda counts: counts
    ) -> tuple[Any, Self]:
        """A matrix of these names, and they, without those that occur less than ``min_count``
        times; the first ``n_known`` stay.

        A name occurs wherever it is written, twice at one position and with the value 0 too.
        ``total`` adds up the counts of all who have rows with these names.
        """
        if min_count == 1:
            return matrix, self
        counts = total(np.bincount(matrix.indices, minlength=len(self)))
        kept = np.flatnonzero((counts >= min_count) | (np.arange(len(self)) < n_known))
        if not len(kept):
            raise ValueError(f"min_count is {min_count}, and no feature occurs that often")
        if len(kept) == len(self):
            return matrix, self
        names = self.names()
        return matrix[:, kept], type(self)([names[number] for number in kept])

    def united(self, others: Iterable[Self]) -> Self:
        """A vocabulary of these names, then of those that others have beside them, as one would
        learn them from all rows one after the other.
        """
        found = type(self)(self.names())
        for other in others:
            found._table.encode([[other.names()]], True)
        return found

    def renumbered(self, matrix: Any, other: Vocabulary) -> Any:
        """A matrix of these names with the columns of ``other``, which has all of them."""
        numbers = other._table.encode([[self.names()]], False)[2]
        arrays = (matrix.data, numbers[matrix.indices], matrix.indptr)
        return sparse.csr_matrix(arrays, shape=(matrix.shape[0], len(other)))

    def _matrix(self, arrays: tuple[Any, Any, Any, Any, int]) -> tuple[Any, list[int]]:
        lengths, starts, indices, values, n_unknown = arrays
        if n_unknown and not len(indices):
            warn(NOTHING_KNOWN.format(n_unknown))
        if values is None:
            values = np.ones(len(indices), np.int8)  # scipy wants some; no more than it must
        shape = len(starts) - 1, len(self)
        return sparse.csr_matrix((values, indices, starts), shape=shape), lengths.tolist()

    def count_unknown(self, instances: Iterable[Any]) -> int:
        """How many of the features that occur have no number."""
        count: int = self._table.encode(instances, False)[-1]
        return count

    # Its table is of the compiled core: copies and pickles are made from the names.

    def __getstate__(self) -> list[str]:
        return self.names()

    def __setstate__(self, names: list[str]) -> None:
        self._table = _core.FeatureNames(names)


class HashedVocabulary(Vocabulary):
    """Names numbered by their hash, below ``size``: none is kept, none is unknown, some collide."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._table = _core.FeatureNames([], size)

    def __len__(self) -> int:
        return self._size

    def names(self) -> list[str]:
        """Not known."""
        raise AttributeError("features were hashed: their names are not kept")

    def learned(self, instances: Iterable[Any]) -> tuple[Any, list[int], Self]:
        """As `compact`: there is nothing to learn."""
        return *self.compact(instances), self

    def frequent(
        self, matrix: Any, min_count: int, n_known: int, total: Total = lambda counts: counts
    ) -> tuple[Any, Self]:
        """The same: there is nothing to count."""
        if min_count > 1:
            raise ValueError("hashed names are not counted: use min_count=1")
        return matrix, self

    def united(self, others: Iterable[Self]) -> Self:
        """Itself: every name has its number."""
        return self

    def renumbered(self, matrix: Any, other: Vocabulary) -> Any:
        """The same."""
        return matrix

    def __getstate__(self) -> int:  # type: ignore[override]
        return self._size

    def __setstate__(self, size: int) -> None:  # type: ignore[override]
        self.__init__(size)  # type: ignore[misc]


def peek(instances: Iterable[Any]) -> tuple[bool, Iterable[Any]]:
    """Whether positions hold dicts or texts, and the same instances, none of them lost.

    Known from the first position that has a feature.
    """
    if not isinstance(instances, list | tuple) and isinstance(instances, EncodesItself):
        return True, instances
    if isinstance(instances, Sequence):
        return _is_text(instances), instances
    rest = iter(instances)
    first: list[Any] = []
    for instance in rest:
        first.append(instance)
        if (
            hasattr(instance, "shape")
            or not hasattr(instance, "__iter__")
            or any(not hasattr(position, "__len__") or len(position) for position in instance)
        ):
            break
    return _is_text(first), chain(first, rest)


def _is_text(instances: Sequence[Any]) -> bool:
    for instance in instances:
        if not isinstance(instance, list | tuple):
            return False
        for position in instance:
            if isinstance(position, str | dict):
                return True
            if not isinstance(position, list | tuple | set | frozenset):
                return False
            if len(position):
                return isinstance(next(iter(position)), str)
    return False
