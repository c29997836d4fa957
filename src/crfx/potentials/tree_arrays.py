"""Trees that split on features and on the labels before, as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.scores import IntArray

LEAF = -1


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """Trees one after the other, and their nodes one after the other, children after parents.

    ``features`` is -1 at a leaf, the number of a column, or ``-2 - place`` where a node asks for
    the label at a place of the context, 0 being the oldest.  A number below ``thresholds`` goes
    left.  Where ``sets`` is not -1, the categories or labels in ``set_sizes`` words of 64 bits from
    there on go left (the bit after the last label stands for "none").
    """

    starts: npt.NDArray[np.int64]
    features: npt.NDArray[np.int32]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    thresholds: npt.NDArray[np.float32]
    missing_left: npt.NDArray[np.uint8]
    sets: npt.NDArray[np.int64]
    words: npt.NDArray[np.uint64]
    set_sizes: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    gains: npt.NDArray[np.float32]
    weights: npt.NDArray[np.float32]

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.starts) - 1

    def scaled(self, step: float) -> TreeArrays:
        """Return the trees with leaves times ``step``; with a step of 0 gains are 0 too."""
        gains = self.gains if step else np.zeros_like(self.gains)
        return replace(self, values=np.float32(step) * self.values, gains=gains)

    def between(self, begin: int, end: int) -> TreeArrays:
        """Return the trees ``begin`` to ``end``; the sets of other trees stay, unused."""
        starts = self.starts[begin : end + 1]
        nodes = slice(int(starts[0]), int(starts[-1]))
        cut = {name: getattr(self, name)[nodes] for name in PER_NODE}
        return replace(self, starts=starts - starts[0], **cut)

    def with_labels(self, places: IntArray, n_labels: int) -> TreeArrays:
        """Return the trees with more labels: label k becomes ``places[k]``.

        In every round there is one tree per label.  A new label has trees of one leaf, 0; as a
        label before it goes where "none" goes.
        """
        old = len(places)
        sizes = np.diff(self.starts).reshape(-1, old)
        wider = np.ones((len(sizes), n_labels), np.int64)
        wider[:, places] = sizes
        starts = np.concatenate([[0], np.cumsum(wider)]).astype(np.int64)
        source = np.full(int(starts[-1]), LEAF)
        trees = (np.arange(len(sizes))[:, None] * n_labels + places).reshape(-1)
        within = np.arange(int(self.starts[-1])) - np.repeat(self.starts[:-1], sizes.reshape(-1))
        source[np.repeat(starts[trees], sizes.reshape(-1)) + within] = np.arange(len(within))
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, (dtype, nothing) in PER_NODE.items():
            array = np.append(getattr(self, name), nothing)[source]
            arrays[name] = np.where(source >= 0, array, nothing).astype(dtype)
        return TreeArrays(starts=starts, words=self.words, **arrays)._recoded(places, n_labels)

    def _recoded(self, places: IntArray, n_labels: int) -> TreeArrays:
        """Return the trees with sets of labels in their new numbers."""
        old, n_words = len(places), n_labels // WORD + 1
        sets, set_sizes, words = self.sets.copy(), self.set_sizes.copy(), [self.words]
        for number, node in enumerate(np.flatnonzero(self.features < LEAF)):
            begin = self.sets[node]
            packed = self.words[begin : begin + self.set_sizes[node]]
            bits = np.unpackbits(packed.view(np.uint8), bitorder="little")
            bits = np.append(bits, np.zeros(old + 1, np.uint8))
            wider = np.full(n_words * WORD, bits[old])
            wider[n_labels + 1 :] = 0
            wider[places] = bits[:old]
            words.append(np.packbits(wider, bitorder="little").view(np.uint64))
            sets[node], set_sizes[node] = len(self.words) + number * n_words, n_words
        return replace(self, sets=sets, set_sizes=set_sizes, words=np.concatenate(words))

    def check(self, n_features: int, n_labels: int, order: int) -> None:
        """Raise ValueError unless walks end and stay inside the arrays, which a file held."""
        for name, dtype in DTYPES.items():
            array = getattr(self, name)
            if array.dtype != dtype or array.ndim != 1:
                raise ValueError(f"the {name} of its trees are of another type")
        n_nodes = len(self.features)
        if any(len(getattr(self, name)) != n_nodes for name in PER_NODE):
            raise ValueError("its trees are told in arrays of unequal lengths")
        starts, sizes = self.starts, np.diff(self.starts)
        inside = len(starts) and starts[0] == 0 and ((starts >= 0) & (starts <= n_nodes)).all()
        if not inside or starts[-1] != n_nodes or (sizes < 1).any():
            raise ValueError("its trees begin and end in wrong places")
        if self.n_trees % n_labels:
            raise ValueError("its trees are not one per label")
        roots, tree_sizes = np.repeat(starts[:-1], sizes), np.repeat(sizes, sizes)
        numbers = np.arange(n_nodes) - roots  # of nodes in their tree
        inner = self.features != LEAF
        for child in (self.left, self.right):
            if not ((child > numbers) & (child < tree_sizes))[inner].all():
                raise ValueError("a node of its trees has children that are not below it")
        children = np.concatenate([(roots + child)[inner] for child in (self.left, self.right)])
        if (np.bincount(children, minlength=n_nodes) != (numbers > 0)).any():
            raise ValueError("a node of its trees is the child of none or of two")
        if (self.features >= n_features).any() or (self.features < -1 - order).any():
            raise ValueError("its trees ask for features or labels that there are not")
        if not np.isfinite(self.values).all():
            raise ValueError("the leaves of its trees are not all finite")
        if not (np.isfinite(self.gains).all() and np.isfinite(self.weights).all()):
            raise ValueError("the gains or weights of its trees are not all finite")
        self._check_sets(inner)

    def _check_sets(self, inner: npt.NDArray[np.bool_]) -> None:
        by_set = self.sets >= 0
        left = len(self.words) - self.sets  # rather than a sum, which might overflow
        if (self.set_sizes < 0).any() or (left < self.set_sizes)[by_set].any():
            raise ValueError("its trees have sets that are not there")
        if (inner & (self.features < LEAF) & ~by_set).any():
            raise ValueError("a node of its trees asks for a label and has no set")
        if np.isnan(self.thresholds[inner & ~by_set]).any():
            raise ValueError("a node of its trees has no threshold")


PER_NODE: dict[str, tuple[type[np.generic], float]] = {
    "features": (np.int32, LEAF),
    "left": (np.int32, 0),
    "right": (np.int32, 0),
    "thresholds": (np.float32, np.nan),
    "missing_left": (np.uint8, 0),
    "sets": (np.int64, -1),
    "set_sizes": (np.int32, 0),
    "values": (np.float32, 0.0),
    "gains": (np.float32, 0.0),
    "weights": (np.float32, 0.0),
}
"""The arrays with an entry per node: their type, and their entry for a leaf of 0."""
DTYPES: dict[str, type[np.generic]] = {
    "starts": np.int64,
    "words": np.uint64,
    **{name: dtype for name, (dtype, _) in PER_NODE.items()},
}
WORD = 64
NAMES = tuple(field.name for field in fields(TreeArrays))


def join(parts: Sequence[TreeArrays]) -> TreeArrays:
    """Return the trees of all parts, one part after the other."""
    arrays = {
        name: np.concatenate([np.zeros(0, dtype), *(getattr(part, name) for part in parts)])
        for name, dtype in DTYPES.items()
    }
    nodes = np.cumsum([0, *(part.starts[-1] for part in parts)])
    words = np.cumsum([0, *(len(part.words) for part in parts)])
    arrays["starts"] = np.concatenate(
        [[0], *(part.starts[1:] + begin for part, begin in zip(parts, nodes, strict=False))]
    ).astype(np.int64)
    arrays["sets"] = np.concatenate(
        [arrays["sets"][:0]]
        + [
            np.where(part.sets < 0, -1, part.sets + begin)
            for part, begin in zip(parts, words, strict=False)
        ]
    ).astype(np.int64)
    return TreeArrays(**arrays)
