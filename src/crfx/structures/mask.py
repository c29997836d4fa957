"""What constraints forbid, as scores of 0 and -inf that stand beside those of a model."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from crfx.scores import FloatArray, Scores

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Mask:
    """Which labels may follow each other, (K, K), be first, (K,), and be last, (K,); None: all.

    Kept apart from parameters: those of what is forbidden stay 0.
    """

    pair: BoolArray | None = None
    start: BoolArray | None = None
    end: BoolArray | None = None
    _made: dict[int, dict[str, FloatArray]] = field(default_factory=dict, init=False, repr=False)

    def tables(self, order: int) -> dict[str, FloatArray]:
        """Scores of 0 and -inf by name, as float32; what allows all is left out.  Made once.

        A table of order n holds n neighbouring pairs.  Chains of 2 to n positions have no edge of
        order n: their neighbours are in ``pairs``.
        """
        if order not in self._made:
            self._made[order] = self._tables(order)
        return dict(self._made[order])

    def _tables(self, order: int) -> dict[str, FloatArray]:
        found: dict[str, FloatArray] = {}
        if self.pair is not None:
            found["edge"] = _minus_infinity(~_windows(self.pair, order))
            if order > 1:
                found["pairs"] = _minus_infinity(~self.pair)
        for name, allowed in (("start", self.start), ("end", self.end)):
            if allowed is not None:
                found[name] = _minus_infinity(~allowed)
        return found


def masked(
    scores: Scores, mask: Mask | None, allowed: BoolArray | None, order: int, *, is_forest: bool
) -> Scores:
    """Scores with -inf for what a mask, and ``allowed`` (rows, K) labels, forbid.

    The one place where constraints are added.  A table of edges is added to all, however they share
    theirs: its label axes are the last.
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
        there = arrays[name]
        arrays[name] = table if there is None else there + table.astype(scores.dtype)
    return Scores(**arrays)


def _windows(pair: BoolArray, order: int) -> BoolArray:
    """(K, ..., K) whether all neighbours among order + 1 labels may follow each other."""
    found: BoolArray = pair
    for axis in range(1, order):
        found = found[..., None] & pair.reshape((1,) * axis + pair.shape)
    return found


def _minus_infinity(forbidden: BoolArray) -> npt.NDArray[np.float32]:
    return np.where(forbidden, np.float32(-np.inf), np.float32(0.0))
