"""What users pass to an estimator, and the input that it becomes: a batch of chains or forests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.errors import BadInstance
from crfx.features.columns import Columns
from crfx.inputs.rows import (
    Rows,
    check_finite,
    check_in_memory,
    check_not_beside_shards,
    has_entries,
    read_rows,
)
from crfx.messages import shown
from crfx.scores import IntArray
from crfx.workers import agreed, current


@dataclass(frozen=True, eq=False)
class Passed:
    """Instances as a user passes them; the arguments are those of ``GBCRF.fit``."""

    X: Any
    y: Any = None
    lengths: Any = None
    parents: Any = None
    edge_types: Any = None
    sample_weight: Any = None
    allowed: Any = None


@dataclass(frozen=True, eq=False)
class Input:
    """A batch with its features and their columns, and whether it came as a list of instances.

    ``weights`` are those of instances that came with X, as shards have them.
    """

    batch: Batch
    columns: Columns
    as_list: bool
    weights: npt.NDArray[Any] | None = None

    def split(self, values: npt.NDArray[Any], axis: int = 0) -> Any:
        """Return (rows, ...) as a list per instance if X was a list, otherwise as it is."""
        return self.by_instance(values, axis) if self.as_list else values

    def by_instance(self, values: npt.NDArray[Any], axis: int = 0) -> list[npt.NDArray[Any]]:
        """Return (rows, ...) as a list per instance."""
        parts = np.split(values, self.batch.offsets[1:-1], axis)
        return parts[: self.batch.n_instances]  # NumPy makes one part of nothing


def read_input(passed: Passed, columns: Columns | None = None) -> Input:
    """Read X with its structure; the features of shards stay on disk.

    ``columns`` are those of a fitted model, which X must have too.  Labels, weights and allowed
    labels are read by `label_codes` and `weights`.
    """
    rows = read_rows(passed.X, passed.lengths, columns)
    batch = _structured_batch(rows, passed.parents, passed.edge_types)
    return Input(batch, rows.columns, rows.as_list, rows.weights)


def one_instance(X_i: Any, method: str) -> list[Any]:
    """Return X for the one instance that a method takes; raise ValueError if it holds several."""
    check_in_memory(X_i, f"{method} takes one instance")
    first = X_i[0] if isinstance(X_i, list | tuple) and X_i else X_i
    position = first[0] if isinstance(first, list | tuple) and first else None
    n_axes = len(getattr(first, "shape", ())) + (first is not X_i)
    if n_axes > 2 or isinstance(position, list | tuple | dict):
        raise ValueError(f"X_i holds several: {method} takes one instance, for example X[0]")
    return [X_i]


def by_instance(
    name: str, values: Any, batch: Batch, hint: str = ""
) -> Iterator[tuple[int, Any, int]]:
    """Yield (instance, its values, its length); raise ValueError unless there are as many."""
    if len(values) != batch.n_instances:
        raise ValueError(f"{name} has {len(values)} instances but X has {batch.n_instances}{hint}")
    return zip(range(batch.n_instances), values, batch.lengths.tolist(), strict=True)


# Structure ----------------------------------------------------------------------------------------


def _structured_batch(rows: Rows, parents: Any, edge_types: Any) -> Batch:
    """Return the batch of X with what goes with it; check that its numbers are finite."""
    if rows.batch is not None:
        check_not_beside_shards({"parents": parents, "edge_types": edge_types})
        return replace(rows.batch, X=rows.matrix)
    batch = Batch.from_lengths(rows.lengths, X=rows.matrix)
    if batch.n_rows != rows.matrix.shape[0]:
        raise ValueError(
            f"lengths add up to {batch.n_rows} but X has {rows.matrix.shape[0]} rows; "
            "cross-validation splits rows and leaves lengths whole: pass it a list with one matrix "
            "per instance"
        )
    if parents is not None or edge_types is not None:
        batch = replace(
            batch,
            parents=_stacked_rows("parents", parents, batch),
            edge_types=_stacked_rows("edge_types", edge_types, batch),
        )
    check_finite(batch)
    return batch


def _stacked_rows(name: str, values: Any, batch: Batch) -> IntArray | None:
    """Return integers per row from one array, or from a list of arrays, one per instance."""
    if values is None:
        return None
    if not (isinstance(values, list | tuple) and len(values) and has_entries(values[0])):
        return values  # type: ignore[no-any-return]
    parts = []
    for instance, entries, length in by_instance(name, values, batch):
        if not has_entries(entries) or isinstance(entries, set | dict):
            raise BadInstance(instance, f"{name} holds {shown(entries)}, not a list")
        try:
            part = np.asarray(entries)
        except ValueError:
            raise BadInstance(instance, f"{name} holds lists within a list") from None
        if part.size and part.dtype.kind not in "iu":  # joined with others it might pass
            raise BadInstance(instance, f"{name} has dtype {part.dtype}: pass integers")
        if part.shape != (length,):
            raise BadInstance(instance, f"{name} has {len(part)} entries, X has {length} rows")
        parts.append(part)
    return np.concatenate([part.astype(np.int64) if not part.size else part for part in parts])


def agreed_batch(rows: Rows, parents: Any, edge_types: Any) -> Batch:
    """Return the batch of this worker, whose structure is of the kind that all workers have."""
    names = ("parents", "edge_types")
    batch, answers = agreed(
        lambda: _structured_batch(rows, parents, edge_types),
        lambda batch: (
            batch.n_instances,
            [getattr(batch, name) is not None for name in names] if batch.n_instances else None,
        ),
    )
    if current().size == 1:
        return batch
    has = {rank: answer for rank, answer in enumerate(answers) if answer is not None}
    for number, name in enumerate(names):
        ranks = {answer[number]: rank for rank, answer in reversed(has.items())}
        if len(ranks) > 1:
            raise ValueError(
                f"{name} are given at worker {ranks[True]} and not at worker {ranks[False]}: pass "
                "them to all or to none"
            )
    is_forest, is_typed = next(iter(has.values()), (False, False))
    return like_others(batch, is_forest=is_forest, is_typed=is_typed)


def like_others(batch: Batch, *, is_forest: bool, is_typed: bool) -> Batch:
    """Return a batch in which an empty one has the structure of the other workers."""
    if batch.n_instances:
        return batch
    nothing = np.zeros(0, np.int64)
    return replace(
        batch,
        parents=nothing if is_forest else None,
        edge_types=nothing if is_typed else None,
    )
