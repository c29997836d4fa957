"""What users pass to an estimator, and the input that it becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.features.columns import Columns
from crfx.inputs.rows import check_in_memory, read_rows
from crfx.inputs.structure import structured_batch


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
    batch = structured_batch(rows, passed.parents, passed.edge_types)
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
