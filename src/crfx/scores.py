"""Scores: the one currency of the library, one table per kind of part.

Log-potentials, marginals, gradients and curvatures all have this shape.  ``rows`` are positions
stacked over instances and ``K`` is the number of labels.  An edge table of order ``n`` has
``n + 1`` label axes, oldest label first: ``edge[y_{t-n}, ..., y_{t-1}, y_t]``; in a forest
``edge[y_parent, y_node]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from crfx.errors import BadInstance

Array64 = npt.NDArray[np.float64]
FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]
Room = dict[str, FloatArray]
"""Arrays by name that may be overwritten: fresh memory costs more than a pass over it."""

Sharing = Literal["none", "shared", "typed", "each"]
"""The edges that share a table: none has one, all edges, the edges of one type, or no two."""

LARGEST_SCORE = np.float64(1e100)
"""Sums of larger finite scores could overflow.  float32 has none."""

SCORE_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


class Locates(Protocol):
    """What error messages need from a batch: where a row is.  (Scores sit below batches.)"""

    def locate(self, row: int) -> tuple[int, int]:
        """Return (instance, position) of a row."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class Scores:
    """Scores of the parts of a batch.  -inf forbids a part; NaN and +inf are errors.

    Parameters
    ----------
    node : (rows, K) float32 or float64
    edge : None, (K, ..., K), (types, K, ..., K) or (rows, K, ..., K)
        ``order + 1`` label axes; how the first axis is to be read is settled by `sharing`.
    start, end : None or (K,)
        Added at the first and last position of a chain; ``start`` at every root of a forest.
    pairs : None or (K, K)
        Of neighbours in chains of 2 to ``order`` positions, which have no edge of that order:
        constraints alone, 0 or -inf.

    Notes
    -----
    All tables are C-contiguous and of the dtype of ``node``: arrays that are not are copied once,
    here.  Construction makes no pass over ``node`` otherwise.
    """

    node: FloatArray
    edge: FloatArray | None = None
    start: FloatArray | None = None
    end: FloatArray | None = None
    pairs: FloatArray | None = None

    def __post_init__(self) -> None:
        node = _node_table(self.node)
        n_labels = node.shape[1]
        object.__setattr__(self, "node", node)
        if self.edge is not None:
            object.__setattr__(self, "edge", _edge_table(self.edge, n_labels, node.dtype))
        for name in ("start", "end"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _label_vector(name, value, n_labels, node.dtype))
        if self.pairs is not None:
            object.__setattr__(self, "pairs", _pair_table(self.pairs, n_labels, node.dtype))

    @property
    def n_rows(self) -> int:
        """Number of positions, over all instances."""
        return int(self.node.shape[0])

    @property
    def n_labels(self) -> int:
        """Number of labels, K."""
        return int(self.node.shape[1])

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """The one dtype of all tables: float32 or float64."""
        return self.node.dtype

    def sharing(self, order: int, *, typed: bool) -> Sharing:
        """Say how edges share tables, and check that the shape of ``edge`` agrees.

        ``typed`` is whether the batch has edge types.  O(1).
        """
        if self.edge is None:
            return "none"
        shape, table = self.edge.shape, (self.n_labels,) * (order + 1)
        if shape[-order - 1 :] != table or len(shape) not in (order + 1, order + 2):
            raise ValueError(
                f"edge has shape {shape}; with order {order} and {self.n_labels} labels it must be "
                f"{table}, or that with one more axis in front (types or rows)"
            )
        if len(shape) == order + 1:
            if typed:
                raise ValueError(
                    f"edge_types are given but edge has shape {shape}, one table for all edges: "
                    f"pass one table per type, (types, {str(table)[1:-1]}), or drop edge_types"
                )
            return "shared"
        if typed:
            return "typed"
        if shape[0] != self.n_rows:
            raise ValueError(
                f"edge has shape {shape}, with order {order} that is {shape[0]} tables for "
                f"{self.n_rows} rows: pass one table per row, edge_types if these are tables per "
                f"type, or order={order + 1} if it is one table"
            )
        return "each"

    def check_finite(self, batch: Locates, edge_rows: IntArray | None = None) -> None:
        """Raise where a score is NaN or +inf, naming the instance and the position.

        With ``edge_rows``, ``edge`` holds one table per row, and only those of these rows are
        checked.  O(size of all tables).
        """
        _check_rows("node", self.node, np.arange(self.n_rows), batch)
        if self.edge is not None and edge_rows is not None:
            _check_rows("edge", self.edge[edge_rows], edge_rows, batch)
        elif self.edge is not None:
            _check_table("edge", self.edge)
        for name, table in (("start", self.start), ("end", self.end)):
            if table is not None:
                _check_table(name, table)


def joined(parts: Sequence[Scores], sharing: Sharing) -> Scores:
    """Return the scores of a batch from those of its parts, which share tables."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    edge = first.edge
    if sharing == "each" and edge is not None:
        edge = np.concatenate([part.edge for part in parts if part.edge is not None])
    node = np.concatenate([part.node for part in parts])
    return Scores(node, edge, first.start, first.end, first.pairs)


def weighted_sum(weights: FloatArray | None, values: FloatArray) -> FloatArray:
    """Sum (n, ...) ``values`` over the first axis, times (n,) ``weights`` or 1, in float64.

    As ``weights @ values``, but without BLAS, whose idle threads spin for tens of milliseconds and
    occupy the cores.
    """
    wide = values.astype(np.float64)
    if weights is not None:
        wide *= weights.reshape(weights.shape + (1,) * (values.ndim - 1))
    return _column_sums(wide)


_ROWS_AT_ONCE = 64


def _column_sums(values: FloatArray) -> FloatArray:
    """Return ``values.sum(axis=0)``, faster where rows are short: NumPy has a cost per row."""
    whole = len(values) // _ROWS_AT_ONCE * _ROWS_AT_ONCE
    wide = values[:whole].reshape(-1, _ROWS_AT_ONCE, *values.shape[1:])
    return np.asarray(wide.sum(axis=0).sum(axis=0) + values[whole:].sum(axis=0))


def table_index(
    sharing: Sharing, rows: IntArray, edge_types: IntArray | None
) -> tuple[IntArray, ...]:
    """Return the leading index that picks the table of each of ``rows`` out of ``edge``.

    Follow it by ``order + 1`` label indices: ``edge[(*table_index(...), *labels)]``.
    """
    if sharing == "typed":
        assert edge_types is not None
        return (edge_types[rows],)
    return (rows,) if sharing == "each" else ()


def _node_table(value: npt.ArrayLike) -> FloatArray:
    node = _as_array("node scores", value)
    if node.dtype not in SCORE_DTYPES:
        raise ValueError(
            f"node scores have dtype {node.dtype}: pass float32 or float64 in the machine's byte "
            "order (for example np.asarray(node, dtype=np.float64))"
        )
    if node.ndim != 2 or node.shape[1] == 0:
        raise ValueError(
            f"node scores have shape {node.shape}: they must be (rows, labels), one label or more"
        )
    return np.ascontiguousarray(node)


def _edge_table(value: npt.ArrayLike, n_labels: int, dtype: np.dtype[Any]) -> FloatArray:
    edge = _cast("edge", value, dtype)
    if edge.ndim < 2 or edge.shape[-2:] != (n_labels, n_labels):
        raise ValueError(
            f"edge scores have shape {edge.shape}: the label axes come last and must have "
            f"{n_labels} entries each, as many as node has labels"
        )
    return edge


def _pair_table(value: npt.ArrayLike, n_labels: int, dtype: np.dtype[Any]) -> FloatArray:
    pairs = _cast("pairs", value, dtype)
    if pairs.shape != (n_labels, n_labels) or not ((pairs == 0) | np.isneginf(pairs)).all():
        raise ValueError(f"pairs must be ({n_labels}, {n_labels}), of 0 and -inf alone")
    return pairs


def _label_vector(
    name: str, value: npt.ArrayLike, n_labels: int, dtype: np.dtype[Any]
) -> FloatArray:
    vector = _cast(name, value, dtype)
    if vector.shape != (n_labels,):
        raise ValueError(f"{name} has shape {vector.shape}: it must be ({n_labels},), the labels")
    return vector


def _cast(name: str, value: npt.ArrayLike, dtype: np.dtype[Any]) -> FloatArray:
    array = _as_array(f"{name} scores", value)
    if array.dtype == dtype and array.flags.c_contiguous:
        return array
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} scores have dtype {array.dtype}: pass real numbers")
    # A finite score must not turn into a constraint (-inf) on the way to a narrower dtype.
    with np.errstate(over="raise"):
        try:
            return np.ascontiguousarray(array, dtype=dtype)
        except FloatingPointError:
            raise ValueError(
                f"{name} holds scores that do not fit into {dtype}, the dtype of node: "
                "pass node as float64, or -inf to forbid"
            ) from None


def _as_array(name: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{name} are a masked array: put -inf where a label is forbidden")
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(
            f"{name} are lists of unequal lengths: stack the instances into one rectangular array"
        ) from None


def _first_bad(table: FloatArray) -> tuple[int, ...] | None:
    bad = ~(np.abs(table) <= LARGEST_SCORE) & ~np.isneginf(table)
    return tuple(int(i) for i in np.argwhere(bad)[0]) if bad.any() else None


def _check_rows(name: str, table: FloatArray, rows: IntArray, batch: Locates) -> None:
    bad = _first_bad(table)
    if bad is not None:
        instance, position = batch.locate(int(rows[bad[0]]))
        labels = ", ".join(map(str, bad[1:]))
        raise BadInstance(
            instance,
            f"the {name} score of label {labels} is {table[bad]}; scores must be finite (within "
            f"±{LARGEST_SCORE:g}), or -inf to forbid",
            position,
        )


def _check_table(name: str, table: FloatArray) -> None:
    bad = _first_bad(table)
    if bad is not None:
        entry = ", ".join(map(str, bad))
        raise ValueError(
            f"{name}[{entry}] is {table[bad]}; scores must be finite (within ±{LARGEST_SCORE:g}), "
            "or -inf to forbid"
        )


def empty_like(array: FloatArray, name: str, room: Room | None) -> FloatArray:
    """Return an array of the same shape and dtype: that of the name in the room, if it fits."""
    if room is None:
        return np.empty_like(array)
    kept = room.get(name)
    if kept is None or (kept.shape, kept.dtype) != (array.shape, array.dtype):
        kept = room[name] = np.empty_like(array)
    return kept
