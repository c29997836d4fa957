"""Shards from what estimators take: instances cut into files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.batch import Batch
from crfx.features.matrix import is_frame
from crfx.inputs.label_codes import flat_labels
from crfx.inputs.passed import Input, Passed, read_input
from crfx.inputs.rows import check_in_memory
from crfx.inputs.weights import instance_weights
from crfx.io import arrays, parquet
from crfx.io.shards import SUFFIXES, Shards
from crfx.messages import shown

LABEL_TYPES = (str, bool, int, float)
"""What labels in files may be; all of one type."""


def write_shards(
    folder: str | os.PathLike[str],
    X: Any,
    y: Any = None,
    *,
    lengths: Any = None,
    parents: Any = None,
    edge_types: Any = None,
    sample_weight: Any = None,
    positions: int = 100_000,
    format: Literal["npz", "parquet"] = "npz",
) -> Shards:
    """Write instances into files of a folder, and return them as `crfx.Shards`.

    Every file appears whole or not at all; if one cannot be written, those before it are removed
    again.  A missing folder is made.  A folder that has shards already raises ValueError: they
    would be read with the new ones.

    Parameters
    ----------
    folder : str or path
    X, y, lengths, parents, edge_types, sample_weight
        As ``fit`` takes them, X as matrices: dicts and texts have no columns yet.  y may be missing
        (for tagging); its labels are text, whole numbers, fractions or truth values, all of one
        kind, and None where unknown.
    positions : int
        Rows of a file at most; an instance that has more gets a file of its own.
    format : "npz" or "parquet"
        Data frames, which have names and categories, go into Parquet, sparse matrices into npz.
        Parquet (``crfx[parquet]``) has no instances without positions.

    Examples
    --------
    >>> import tempfile
    >>> X, y = [np.array([[0.1], [0.3]]), np.array([[0.2]])], [["A", "B"], ["A"]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = write_shards(folder, X, y)
    >>> shards.n_instances, shards.n_rows
    (2, 3)
    """
    check_in_memory(X, "write_shards needs X")
    whole = isinstance(positions, int | np.integer) and not isinstance(positions, bool)
    if not whole or positions < 1:
        raise ValueError(f"positions is {shown(positions)}: pass a whole number, 1 or more")
    data = read_input(Passed(X, None, lengths, parents, edge_types))
    if data.columns.vocabulary is not None:
        raise ValueError("X holds dicts or texts, which have no columns yet: shards hold matrices")
    labels = None if y is None else _label_array(flat_labels(y, data))
    weights = instance_weights(sample_weight, data.batch.n_instances)
    _check_format(data, format)
    pieces = _pieces(data, labels, weights, int(positions))
    place = _new_folder(Path(folder))
    digits = max(5, len(str(len(pieces) - 1)))
    paths = [place / f"{number:0{digits}d}.{format}" for number in range(len(pieces))]
    try:
        for path, piece in zip(paths, pieces, strict=True):
            if format == "npz":
                arrays.write_shard(path, piece.members())
            else:
                parquet.write_shard(path, piece.table_columns(), piece.batch.X)
        return Shards(paths)
    except BaseException:  # some of the files would read as a whole corpus
        for path in paths:
            path.unlink(missing_ok=True)
        raise


class _Labels(NamedTuple):
    """Labels of rows in an array of their own type, and which of them are not known."""

    values: npt.NDArray[Any]
    is_unknown: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Piece:
    """The instances of one file, with what belongs to them; ``first`` numbers the first of all."""

    batch: Batch
    first: int
    labels: _Labels | None
    weights: npt.NDArray[np.float64] | None

    def members(self) -> dict[str, Any]:
        """Return the arrays of an npz shard by name; None is left out."""
        members = {"X": self.batch.X, "lengths": self.batch.lengths}
        if self.labels is not None:
            members["y"] = self.labels.values
            if self.labels.is_unknown.any():
                members["unknown"] = self.labels.is_unknown
        return members | {
            "parents": self.batch.parents,
            "edge_types": self.batch.edge_types,
            "sample_weight": self.weights,
        }

    def table_columns(self) -> dict[str, Any]:
        """Return the columns of a Parquet shard that hold no feature."""
        batch, labels, weights = self.batch, None, None
        if self.labels is not None:
            labels = self.labels.values.astype(object)
            labels[self.labels.is_unknown] = None
        if self.weights is not None:
            weights = np.repeat(self.weights, batch.lengths)
        columns = {
            "instance": self.first + batch.instance_of_row,
            "label": labels,
            "parent": batch.parents,
            "edge_type": batch.edge_types,
            "weight": weights,
        }
        return {name: values for name, values in columns.items() if values is not None}


def _label_array(labels: list[Any]) -> _Labels:
    kinds = {type(label) for label in labels if label is not None}
    if len(kinds) > 1 or not kinds <= set(LABEL_TYPES):
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"y has labels of {names}: in files they are all text, or all numbers")
    kind = kinds.pop() if kinds else str
    is_unknown = np.array([label is None for label in labels], bool)
    try:
        values = np.array([kind() if label is None else label for label in labels], dtype=kind)
    except OverflowError:
        large = max((label for label in labels if label is not None), key=abs)
        raise ValueError(
            f"y has the label {shown(large)}, too large for an array: make labels text"
        ) from None
    for value, label in zip(values.tolist(), labels, strict=True):
        if label is not None and value != label:
            raise ValueError(
                f"y has the label {shown(label)}, which an array does not give back as it is"
            )
    return _Labels(values, is_unknown)


def _pieces(
    data: Input, labels: _Labels | None, weights: npt.NDArray[np.float64] | None, positions: int
) -> list[_Piece]:
    pieces, instance, row = [], 0, 0
    for batch in data.batch.parts(positions):
        last, end = instance + batch.n_instances, row + batch.n_rows
        part_labels = None if labels is None else _Labels(*(part[row:end] for part in labels))
        own_weights = None if weights is None else weights[instance:last]
        pieces.append(_Piece(batch, instance, part_labels, own_weights))
        instance, row = last, end
    return pieces


def _check_format(data: Input, format: object) -> None:
    if not isinstance(format, str) or format not in ("npz", "parquet"):
        raise ValueError(f'format is {shown(format)}: choose "npz" or "parquet"')
    X, lengths = data.batch.X, data.batch.lengths
    if format == "npz" and is_frame(X):
        raise ValueError('X is a data frame, and npz keeps no names: pass format="parquet"')
    if format == "parquet" and sparse.issparse(X):
        raise ValueError('X is sparse, which Parquet is not: pass format="npz"')
    if format == "parquet" and not lengths.all():
        raise ValueError(
            f"instance {int(np.argmin(lengths))} is empty, and Parquet has rows alone: leave it "
            'out, or pass format="npz"'
        )


def _new_folder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.iterdir()):
        if path.suffix in SUFFIXES:
            raise ValueError(
                f"{folder} has shards already, {path.name} for one: use another folder"
            )
    return folder
