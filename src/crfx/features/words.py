"""Features as users of CRF tools write them: a dict, or a list of texts, for every position.

``{"word": "the", "length": 3, "title": False}`` are the features ``word:the`` with value 1,
``length`` with value 3 and ``title`` with value 0; ``["word=the", "BOS"]`` are two features with
value 1.  Values of a dict may be lists of texts and dicts too.  So does CRFsuite read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

from crfx import _core


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
        if isinstance(instances, EncodesItself):
            return instances.encode_into(self, learn=learn)
        return self._matrix(self._table.encode(instances, learn))

    def encode_template(
        self,
        instances: Iterable[Any],
        lines: list[tuple[str, list[tuple[int, int]]]],
        *,
        learn: bool = False,
    ) -> tuple[Any, list[int]]:
        """As `encode`; instances are lists of columns, see `crfx.features.templates`."""
        return self._matrix(self._table.encode_template(instances, lines, learn))

    def _matrix(self, arrays: tuple[Any, Any, Any, Any, int]) -> tuple[Any, list[int]]:
        lengths, starts, indices, values, _ = arrays
        if values is None:
            values = np.ones(len(indices), np.float32)
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


def peek(instances: Iterable[Any]) -> tuple[bool, Iterable[Any]]:
    """Whether positions hold dicts or texts, and the same instances, none of them lost.

    Known from the first position that has a feature.
    """
    if isinstance(instances, EncodesItself):
        return True, instances
    if isinstance(instances, Sequence):
        return _is_text(instances), instances
    rest = iter(instances)
    first: list[Any] = []
    for instance in rest:
        first.append(instance)
        if hasattr(instance, "shape") or any(
            not hasattr(position, "__len__") or len(position) for position in instance
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
