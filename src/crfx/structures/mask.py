"""What constraints forbid, as scores of 0 and -inf to be added to those of a model."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from crfx.scores import FloatArray, Scores

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Mask:
    """The labels that may follow each other, (K, K), be first, (K,), and be last, (K,); None: all.

    A mask is no part of the parameters: those of what is forbidden stay 0.
    """

    pair: BoolArray | None = None
    start: BoolArray | None = None
    end: BoolArray | None = None
    _made: dict[int, dict[str, FloatArray]] = field(default_factory=dict, init=False, repr=False)

    def tables(self, order: int) -> dict[str, FloatArray]:
        """Return scores of 0 and -inf by name, float32, without those that allow everything.

        A table of order n holds n neighbouring pairs.  Chains of 2 to n positions have no edge of
        order n: their neighbours are in ``pairs``.  Tables are made once.
        """
        if order not in self._made:
            allowed = {
                "edge": None if self.pair is None else _windows(self.pair, order),
                "pairs": self.pair if order > 1 else None,
                "start": self.start,
                "end": self.end,
            }
            self._made[order] = {
                name: np.where(table, np.float32(0.0), np.float32(-np.inf))
                for name, table in allowed.items()
                if table is not None
            }
        return dict(self._made[order])


def masked(
    scores: Scores, mask: Mask | None, allowed: BoolArray | None, order: int, *, is_forest: bool
) -> Scores:
    """Return scores with -inf for what a mask, and ``allowed`` (rows, K) labels, forbid.

    This is the one place where constraints are added.  A table of edges is added to all of them,
    however they share theirs: its label axes are the last.
    """
    tables = {} if mask is None else mask.tables(order)
    if is_forest:
        tables.pop("end", None)
    if allowed is not None:
        tables["node"] = np.where(allowed, scores.dtype.type(0), scores.dtype.type(-np.inf))
    if not tables:
        return scores
    arrays = {name: getattr(scores, name) for name in ("node", "edge", "start", "end", "pairs")}
    for name, table in tables.items():
        unmasked = arrays[name]
        arrays[name] = table if unmasked is None else unmasked + table.astype(scores.dtype)
    return Scores(**arrays)


def _windows(pair: BoolArray, order: int) -> BoolArray:
    """Return (K, ..., K) whether all neighbours among order + 1 labels may follow each other."""
    windows = pair
    for axis in range(1, order):
        windows = windows[..., None] & pair.reshape((1,) * axis + pair.shape)
    return windows
