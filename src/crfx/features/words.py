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
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx import _core
from crfx.messages import warn

Total = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]
"""Returns the sums of the counts of all workers."""

NOTHING_KNOWN = (
    "none of the {} features in X is known to the model: is X made as it was for fit (the same "
    "template, the same names)?"
)


@dataclass(frozen=True)
class Numbering:
    """The way in which names of features become columns.

    Names that occur ``min_count`` times get a column each; or all are hashed to ``n_hashed``.
    """

    min_count: int = 1
    n_hashed: int | None = None

    def empty(self) -> Vocabulary:
        """Return a vocabulary without names."""
        return Vocabulary() if self.n_hashed is None else HashedVocabulary(self.n_hashed)

    def check(self, vocabulary: Vocabulary | None) -> None:
        """Raise ValueError if columns were made in another way; None: X holds numbers."""
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


def encodes_itself(instances: Any) -> bool:
    """Return whether instances have `encode_into`, a faster way into a matrix, as templates do."""
    return hasattr(instances, "encode_into")


class Vocabulary:
    """Names of features and their numbers; new names can be learned.

    Examples
    --------
    >>> vocabulary = Vocabulary()
    >>> X, lengths = vocabulary.encode([[{"word": "a"}, ["b", "c"]]], learn=True)
    >>> vocabulary.names(), X.toarray().tolist(), list(lengths)
    (['word:a', 'b', 'c'], [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]], [2])
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._table = _core.FeatureNames(list(names))

    def __len__(self) -> int:
        return len(self._table)

    def names(self) -> list[str]:
        """Return all names, in the order of their numbers."""
        return self._table.names()

    def encode(self, instances: Iterable[Any], *, learn: bool = False) -> tuple[Any, list[int]]:
        """Encode instances as a sparse matrix, in O(features that occur) time and memory.

        Parameters
        ----------
        instances : iterable of instances, lists of dicts or texts by position
            A generator is read once.
        learn : bool, default False
            Give numbers to new names, instead of leaving them out.

        Returns
        -------
        (rows, features) CSR matrix of float32, and the lengths of the instances
        """
        matrix, lengths = self.compact(instances, learn=learn)
        # Not matrix.astype: it adds doubles up first, as int8.
        values = matrix.data.astype(np.float32, copy=False)
        arrays = (values, matrix.indices, matrix.indptr)
        return sparse.csr_matrix(arrays, shape=matrix.shape), lengths

    def compact(self, instances: Any, *, learn: bool = False) -> tuple[Any, list[int]]:
        """Encode, with int8 if all values are 1: not to be added up or multiplied."""
        if encodes_itself(instances):
            encoded: tuple[Any, list[int]] = instances.encode_into(self, learn=learn)
            return encoded
        return self._matrix(self._table.encode(instances, learn))

    def encode_template(
        self,
        instances: Iterable[Any],
        lines: list[tuple[str, list[tuple[int, int]]]],
        *,
        learn: bool = False,
    ) -> tuple[Any, list[int]]:
        """Encode instances, lists of columns, as `compact` does; see `crfx.features.templates`."""
        return self._matrix(self._table.encode_template(instances, lines, learn))

    def learned(self, instances: Iterable[Any]) -> tuple[Any, list[int], Self]:
        """Encode as `compact` does; new names are numbered in a copy, which is returned too."""
        vocabulary = type(self)(self.names())
        return *vocabulary.compact(instances, learn=True), vocabulary

    def frequent(
        self, matrix: Any, min_count: int, n_known: int, total: Total = lambda counts: counts
    ) -> tuple[Any, Self]:
        """Return a matrix and the names without those that occur less than ``min_count`` times.

        The first ``n_known`` names stay.  Every mention of a name counts, twice at one position and
        with the value 0 too.  ``total`` adds the counts of other workers.
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
        """Return a vocabulary of these names, then of the names that only others have."""
        vocabulary = type(self)(self.names())
        for other in others:
            vocabulary._table.encode([[other.names()]], True)
        return vocabulary

    def renumbered(self, matrix: Any, other: Vocabulary) -> Any:
        """Return a matrix of these names with the columns of ``other``, which has all of them."""
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
        """Return how many of the features that occur have no number."""
        count: int = self._table.encode(instances, False)[-1]
        return count

    # The table belongs to the compiled core: copies and pickles are made from the names.

    def __getstate__(self) -> list[str]:
        return self.names()

    def __setstate__(self, names: list[str]) -> None:
        self._table = _core.FeatureNames(names)


class HashedVocabulary(Vocabulary):
    """Names numbered by their hash, below ``size``: none is kept or unknown, some collide."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._table = _core.FeatureNames([], size)

    def __len__(self) -> int:
        return self._size

    def names(self) -> list[str]:
        """Raise AttributeError: names are not kept."""
        raise AttributeError("features were hashed: their names are not kept")

    def learned(self, instances: Iterable[Any]) -> tuple[Any, list[int], Self]:
        """Encode as `compact` does: there is nothing to learn."""
        return *self.compact(instances), self

    def frequent(
        self, matrix: Any, min_count: int, n_known: int, total: Total = lambda counts: counts
    ) -> tuple[Any, Self]:
        """Return the same: there is nothing to count."""
        if min_count > 1:
            raise ValueError("hashed names are not counted: use min_count=1")
        return matrix, self

    def united(self, others: Iterable[Self]) -> Self:
        """Return itself: every name has its number."""
        return self

    def renumbered(self, matrix: Any, other: Vocabulary) -> Any:
        """Return the same matrix."""
        return matrix

    def __getstate__(self) -> int:  # type: ignore[override]
        return self._size

    def __setstate__(self, size: int) -> None:  # type: ignore[override]
        self.__init__(size)  # type: ignore[misc]


def peek(instances: Iterable[Any]) -> tuple[bool, Iterable[Any]]:
    """Return whether positions hold dicts or texts, and the same instances.

    The first position that has a feature decides.
    """
    if encodes_itself(instances):
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
