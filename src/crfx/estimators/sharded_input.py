"""Shards as input: a batch whose features stay on disk."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from crfx.batch import Batch
from crfx.features.columns import Columns
from crfx.features.matrix import Matrix, first_infinite, is_on_disk, stacked
from crfx.io.shards import ShardFeatures, ShardLabels, Shards


def sharded_batch(
    X: ShardFeatures, beside: dict[str, Any], columns: Columns | None, training: bool
) -> tuple[Batch, Columns]:
    """The instances of shards and their columns; ``columns`` are those of a fitted model.

    ``beside`` X there may be nothing that shards have themselves.
    """
    shards = X.shards
    check_beside(beside)
    matrix = shards.matrix().mapped(stacked)
    if columns is None:
        columns = Columns.of(matrix.no_rows)
    else:
        columns.check_numbers()
        matrix = matrix.mapped(partial(columns.matched, training=training))
    batch = Batch.from_lengths(
        shards.lengths,
        parents=shards.numbers("parents"),
        edge_types=shards.numbers("edge_types"),
        X=matrix,
    )
    return replace(batch, X=_finite(matrix, batch)), columns


def check_beside(arguments: dict[str, Any]) -> None:
    """Raise ValueError where one is given, by name, that shards have themselves."""
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(f"{name} is given beside shards, which have their own: leave it out")


def _finite(matrix: Matrix, batch: Batch) -> Matrix:
    """Return the matrix with a check, when a chunk is read first, that no number is infinite."""

    def check(rows: slice, chunk: Any) -> None:
        if (at := first_infinite(chunk)) is not None:
            raise ValueError(f"{batch.place(rows.start + at[0])}: {infinite_feature(at[1])}")

    return matrix.checked(check)


def infinite_feature(column: int) -> str:
    """What is wrong with a number that is none of float32."""
    return f"feature {column} is infinite, or too large for float32; NaN marks a missing value"


def check_handles(value: Any, name: str) -> None:
    """Raise ValueError where shards are given for X or y that are not their features, or labels."""
    other = ShardLabels if name == "X" else ShardFeatures
    if isinstance(value, Shards | other):
        raise ValueError(f"{name} is {value!r}: pass shards.X as X, and shards.y as y")


def check_in_memory(X: Any, why: str) -> None:
    """Raise ValueError where features stay on disk, for what needs them all at once."""
    if is_on_disk(X) or isinstance(X, ShardFeatures):
        raise ValueError(f"{why} in memory, and these are shards: pass what shards.load() gives")
