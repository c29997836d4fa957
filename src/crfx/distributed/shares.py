"""What is learned from or labelled, shared out over workers: whole instances, in their order.

A share is a function that gives the arguments of a method, and what it is called with: it runs
where the instances are wanted, so that files are read there and what Dask holds goes there.
"""

from __future__ import annotations

import hashlib
import itertools
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from crfx.features.matrix import unwrapped

SIZES = ("lengths", "group")
"""Names of the argument that says how many rows each instance has, where they are stacked."""
BY_ROW = ("X", "y", "relevance", "parents", "edge_types", "allowed")
BY_INSTANCE = (*SIZES, "sample_weight")
NEEDED = ("X", "y", "relevance")
ARGUMENTS = (*BY_ROW, *BY_INSTANCE)
"""All arguments that tell of instances; the others are the same for all workers."""


class Share(NamedTuple):
    """``load(*given)`` gives arguments by name; ``given`` may hold futures of Dask.

    ``first`` is the number of the first instance among all.
    """

    load: Callable[..., dict[str, Any]]
    given: list[Any]
    first: int = 0


class Instances(Protocol):
    """Some instances, and what goes with them."""

    def shares(self, n_workers: int) -> list[Share]:
        """Share them out, to at most so many workers: fewer where there is too little."""
        ...

    def fingerprint(self) -> str:
        """The same for the same instances, as far as that is quickly told."""
        ...


def digest(told: Any) -> str:
    """A few letters that are others where something else is told."""
    return hashlib.sha256(pickle.dumps(told)).hexdigest()[:32]


def borders(sizes: npt.NDArray[Any], n_parts: int) -> npt.NDArray[np.int64]:
    """(parts + 1,) where to cut a row of things so that parts are of about equal size.

    No part is empty; there are at most as many as things.

    >>> borders(np.array([5, 1, 1, 1, 4]), 3).tolist()
    [0, 1, 4, 5]
    """
    n_parts = max(1, min(n_parts, len(sizes)))
    ends = np.cumsum(np.maximum(sizes, 1))
    wanted = ends[-1] * np.arange(1, n_parts) / n_parts if len(ends) else np.zeros(0)
    cuts = np.searchsorted(ends, wanted, side="left") + 1
    for k in range(len(cuts)):  # at least one thing each, on both sides
        least = cuts[k - 1] + 1 if k else 1
        cuts[k] = min(max(cuts[k], least), len(sizes) - (len(cuts) - k))
    return np.concatenate([[0], cuts, [len(sizes)]]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class InMemory:
    """Arguments of a method as the user passed them: lists, or stacked rows and their lengths."""

    arguments: dict[str, Any]

    def fingerprint(self) -> str:
        """Of labels, sizes and the shape of X; features are not looked at."""
        others = {name: value for name, value in self.arguments.items() if name != "X"}
        X = self.arguments.get("X")
        shape = getattr(X, "shape", None) or [_length(own) for own in X or ()]
        return digest((shape, others))

    def shares(self, n_workers: int) -> list[Share]:
        """Slices of them.  Where they do not fit together one worker gets all there is, and says
        what is wrong, as it is said without a cluster.
        """
        given = {name: value for name, value in self.arguments.items() if value is not None}
        if any(name in NEEDED and name not in given for name in self.arguments):
            return [Share(dict, [self.arguments])]
        name = next((name for name in SIZES if name in given), None)
        if name is None:
            return self._shares_of_lists(given, n_workers)
        sizes = _whole_numbers(given[name], least=1 if name == "group" else 0)
        if sizes is None or not _fit_together(given, sizes):
            return [Share(dict, [self.arguments])]
        rows = np.concatenate([[0], np.cumsum(sizes)])
        cuts = borders(np.diff(rows), n_workers)
        return [
            Share(
                dict,
                [
                    {
                        name: _cut(value, begin, end)
                        if name in BY_INSTANCE
                        else _cut(value, rows[begin], rows[end])
                        for name, value in given.items()
                    }
                ],
                int(begin),
            )
            for begin, end in itertools.pairwise(cuts)
        ]

    def _shares_of_lists(self, given: dict[str, Any], n_workers: int) -> list[Share]:
        X = unwrapped(given["X"])
        if isinstance(X, str) or not hasattr(X, "__iter__"):
            return [Share(dict, [self.arguments])]
        if len(getattr(X, "shape", ())) == 2:  # rows without lengths
            return [Share(dict, [given])]
        given = {name: _listed(value) for name, value in given.items()} | {"X": _listed(X)}
        lengths = [_length(own) for own in given["X"]]
        if any(_length(value) != len(lengths) for value in given.values()) or None in lengths:
            return [Share(dict, [self.arguments | given])]
        sizes = np.array(lengths, np.int64)
        cuts = borders(sizes, n_workers)
        return [
            Share(
                unpacked,
                [{name: packed(value[begin:end]) for name, value in given.items()}],
                int(begin),
            )
            for begin, end in itertools.pairwise(cuts)
        ]


def _listed(values: Any) -> Any:
    """Something that can be cut: lists and arrays as they are, others as lists; what is no list of
    anything stays as it is.
    """
    is_cut = isinstance(values, list | np.ndarray) or not hasattr(values, "__iter__")
    return values if is_cut else list(values)


def _length(values: Any) -> int | None:
    """How many there are, of rows or others; None where that cannot be told."""
    if shape := getattr(values, "shape", None):
        return int(shape[0])
    return len(values) if hasattr(values, "__len__") and shape is None else None


def _whole_numbers(sizes: Any, least: int) -> npt.NDArray[np.int64] | None:
    """As an array, where they are such numbers."""
    try:
        found = np.asarray(sizes)
    except ValueError:  # lists of unequal lengths
        return None
    if found.ndim != 1 or found.dtype.kind not in "iu" or (found < least).any():
        return None
    return found.astype(np.int64)


def _fit_together(given: dict[str, Any], sizes: npt.NDArray[np.int64]) -> bool:
    """Whether there is as much of everything as the sizes of instances say."""
    n_rows = int(sizes.sum())
    return all(
        _length(value) == (len(sizes) if name in BY_INSTANCE else n_rows)
        for name, value in given.items()
    )


def _cut(values: Any, begin: int, end: int) -> Any:
    return values.iloc[begin:end] if hasattr(values, "iloc") else values[begin:end]


class Packed(NamedTuple):
    """Arrays of one kind, joined: a million small ones would be sent one by one."""

    joined: npt.NDArray[Any]
    lengths: npt.NDArray[np.int64]


def packed(values: Sequence[Any]) -> Any:
    """The same, joined where it is a list of arrays of one kind and width."""
    if not isinstance(values, list) or len(values) < 2:
        return values
    first = values[0]
    if not isinstance(first, np.ndarray) or not first.ndim or first.dtype == object:
        return values
    kind = first.dtype, first.shape[1:]
    if not all(isinstance(own, np.ndarray) and own.ndim for own in values):
        return values
    if any((own.dtype, own.shape[1:]) != kind for own in values):
        return values
    return Packed(np.concatenate(values), np.array([len(own) for own in values], np.int64))


def unpacked(arguments: dict[str, Any]) -> dict[str, Any]:
    """What `packed` was made of; views, not copies."""
    return {name: _apart(value) for name, value in arguments.items()}


def _apart(value: Any) -> Any:
    if not isinstance(value, Packed):
        return value
    return np.split(value.joined, np.cumsum(value.lengths)[:-1])
