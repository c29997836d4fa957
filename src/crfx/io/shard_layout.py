"""The layout that all shards of a set must share."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from crfx.messages import shown

PER_ROW = ("parents", "edge_types")
OPTIONAL = ("y", *PER_ROW, "sample_weight")
"""Arguments of `fit` that a shard may have beside features and lengths."""


@dataclass(frozen=True)
class Layout:
    """The layout of a shard.

    ``columns`` are the names of the features, or their number; ``has`` is a part of `OPTIONAL`;
    ``labels`` is the kind of its labels, None if none is known; ``kinds`` says what each feature
    holds, in formats where features may differ.
    """

    format: str
    is_sparse: bool
    columns: int | tuple[str, ...]
    has: frozenset[str] = field(default_factory=frozenset)
    labels: str | None = None
    kinds: tuple[str, ...] = ()

    @property
    def n_columns(self) -> int:
        """The number of features."""
        return self.columns if isinstance(self.columns, int) else len(self.columns)

    def check_same(self, other: Layout, first: str) -> None:
        """Raise ValueError if the ``first`` shard has another layout, ``other``."""
        if self.format != other.format:
            raise ValueError(f"it is {self.format}, and {first} is {other.format}: use one format")
        if self.is_sparse != other.is_sparse:
            kinds = ("dense", "sparse")
            raise ValueError(
                f"X is {kinds[self.is_sparse]}, and {kinds[other.is_sparse]} in {first}, where "
                "absent entries mean something else: use one kind"
            )
        if self.n_columns != other.n_columns:
            raise ValueError(f"it has {self.n_columns} features, and {first} has {other.n_columns}")
        if isinstance(self.columns, tuple) and isinstance(other.columns, tuple):
            for place, names in enumerate(zip(self.columns, other.columns, strict=True)):
                if names[0] != names[1]:
                    raise ValueError(
                        f"feature {place} is {shown(names[0])}, and {shown(names[1])} in {first}"
                    )
            for name, kind, other_kind in zip(self.columns, self.kinds, other.kinds, strict=True):
                if kind != other_kind:
                    raise ValueError(f"column {name!r} holds {kind}, and {other_kind} in {first}")
        for name in OPTIONAL:
            if (name in self.has) != (name in other.has):
                have = ("has no", "has") if name in other.has else ("has", "has no")
                raise ValueError(f"it {have[0]} {name}, and {first} {have[1]}")
        # A shard without a single known label has no kind of its own.
        if None not in (self.labels, other.labels) and self.labels != other.labels:
            raise ValueError(
                f"its labels are {self.labels}, and {other.labels} in {first}: use one kind"
            )


def check_parents(parents: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> None:
    """Raise ValueError unless parents lie in their instances; the structure checks for cycles."""
    limits = np.repeat(lengths, lengths)
    wrong = np.flatnonzero((parents < -1) | (parents >= limits))
    if len(wrong):
        row = wrong[0]
        instance = int(np.searchsorted(np.cumsum(lengths), row, side="right"))
        raise ValueError(
            f"parents: row {row} has {parents[row]}, and its instance, {instance}, has "
            f"{limits[row]} rows: -1 at a root, else 0 or more"
        )
