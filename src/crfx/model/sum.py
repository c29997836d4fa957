"""Sums of scores whose edges share tables differently: a base model under a boosted one."""

from __future__ import annotations

import numpy as np

from crfx.batch import Batch
from crfx.scores import FloatArray, Scores, Sharing

_ORDER: dict[Sharing, int] = {"none": 0, "shared": 1, "typed": 2, "each": 3}


def wider(a: Sharing, b: Sharing) -> Sharing:
    """Return the sharing that can express both."""
    return a if _ORDER[a] >= _ORDER[b] else b


def add_scores(
    first: Scores, first_sharing: Sharing, second: Scores, second_sharing: Sharing, batch: Batch
) -> Scores:
    """Return the sum, with edges shared as the wider of the two shares them."""
    _check_orders(first, first_sharing, second, second_sharing)
    target = wider(first_sharing, second_sharing)
    if first_sharing == second_sharing == "typed":
        _check_types(first, second)
    n_types = next(
        (
            len(scores.edge)
            for scores, sharing in ((first, first_sharing), (second, second_sharing))
            if sharing == "typed" and scores.edge is not None
        ),
        None,
    )
    edges = [
        lifted(scores.edge, sharing, target, n_types, batch)
        for scores, sharing in ((first, first_sharing), (second, second_sharing))
    ]
    return Scores(
        first.node + second.node,
        _plus(*edges),
        _plus(first.start, second.start),
        _plus(first.end, second.end),
        _plus(first.pairs, second.pairs),
    )


def lifted(
    edge: FloatArray | None,
    sharing: Sharing,
    target: Sharing,
    n_types: int | None,
    batch: Batch,
) -> FloatArray | None:
    """Return the same edge scores, shared as ``target`` says, which must be as wide or wider."""
    if edge is None or sharing == target:
        return edge
    if target == "typed":
        assert n_types is not None
        return np.broadcast_to(edge, (n_types, *edge.shape))
    if sharing == "typed":
        assert batch.edge_types is not None
        return edge[np.clip(batch.edge_types, 0, len(edge) - 1)]  # clipped where no edge ends
    return np.broadcast_to(edge, (batch.n_rows, *edge.shape))


def _check_orders(
    first: Scores, first_sharing: Sharing, second: Scores, second_sharing: Sharing
) -> None:
    """Raise ValueError for different orders, whose tables NumPy would broadcast."""
    orders = {
        scores.edge.ndim - (2 if sharing == "shared" else 3) + 1
        for scores, sharing in ((first, first_sharing), (second, second_sharing))
        if scores.edge is not None
    }
    if len(orders) > 1:
        raise ValueError(f"edges of order {min(orders)} cannot be added to those of {max(orders)}")


def _check_types(first: Scores, second: Scores) -> None:
    """Raise ValueError for different numbers of types: NumPy would broadcast one table."""
    assert first.edge is not None
    assert second.edge is not None
    if len(first.edge) != len(second.edge):
        raise ValueError(
            f"edge tables of {len(first.edge)} types cannot be added to those of "
            f"{len(second.edge)}: train both on the same edge types"
        )


def _plus(a: FloatArray | None, b: FloatArray | None) -> FloatArray | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b
