"""Shards from what estimators take: instances cut into files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crfx.batch import Batch
from crfx.features.matrix import is_frame
from crfx.inputs.label_codes import flat_labels
from crfx.inputs.passed import Input, Passed, read_input
from crfx.inputs.rows import check_in_memory
from crfx.inputs.weights import instance_weights
from crfx.io import npz_shard, parquet_shard
from crfx.io.npz_shard import CSR
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

    Every file appears whole or not at all; where one cannot be written, those before it are removed
    again.  The folder is made where it is missing; one that has shards already is refused, as they
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
    pieces = _pieces(data, labels, weights, int(positions))
    writers: dict[str, Callable[[Path, _Piece], None]] = {"npz": _npz, "parquet": _parquet}
    if not isinstance(format, str) or format not in writers:
        raise ValueError(f'format is {shown(format)}: choose "npz" or "parquet"')
    _check_format(data, format)
    place = _new_folder(Path(folder))
    digits = max(5, len(str(len(pieces) - 1)))
    paths = [place / f"{number:0{digits}d}.{format}" for number in range(len(pieces))]
    try:
        for path, piece in zip(paths, pieces, strict=True):
            writers[format](path, piece)
        return Shards(paths)
    except BaseException:  # some of the files would read as a whole corpus
        for path in paths:
            path.unlink(missing_ok=True)
        raise


class _Piece:
    """The instances of one file, with what belongs to them."""

    def __init__(
        self,
        batch: Batch,
        first: int,
        labels: _Labels | None,
        weights: npt.NDArray[np.float64] | None,
    ) -> None:
        self.batch, self.first, self.labels, self.weights = batch, first, labels, weights


class _Labels:
    """Labels of rows in an array of their own type, and which of them are not known."""

    def __init__(self, values: npt.NDArray[Any], is_unknown: npt.NDArray[np.bool_]) -> None:
        self.values, self.is_unknown = values, is_unknown

    def take(self, rows: slice) -> _Labels:
        return _Labels(self.values[rows], self.is_unknown[rows])


def _label_array(labels: list[Any]) -> _Labels:
    kinds = {type(label) for label in labels if label is not None}
    if len(kinds) > 1 or not kinds <= set(LABEL_TYPES):
        told = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"y has labels of {told}: in files they are all text, or all numbers")
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
    found, instance, row = [], 0, 0
    for batch in data.batch.parts(positions):
        last, end = instance + batch.n_instances, row + batch.n_rows
        found.append(
            _Piece(
                batch,
                instance,
                None if labels is None else labels.take(slice(row, end)),
                None if weights is None else weights[instance:last],
            )
        )
        instance, row = last, end
    return found


def _check_format(data: Input, format: str) -> None:
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


def _npz(path: Path, piece: _Piece) -> None:
    X: Any = piece.batch.X
    parts = (X.data, X.indices, X.indptr, np.array(X.shape)) if sparse.issparse(X) else (X,)
    members: dict[str, Any] = dict(zip(CSR if len(parts) > 1 else ("X",), parts, strict=True))
    members["lengths"] = piece.batch.lengths
    if piece.labels is not None:
        members["y"] = piece.labels.values
        if piece.labels.is_unknown.any():
            members["unknown"] = piece.labels.is_unknown
    rest = {
        "parents": piece.batch.parents,
        "edge_types": piece.batch.edge_types,
        "sample_weight": piece.weights,
    }
    npz_shard.write(path, members | {name: own for name, own in rest.items() if own is not None})


def _parquet(path: Path, piece: _Piece) -> None:
    batch: Any = piece.batch
    own: dict[str, Any] = {"instance": piece.first + batch.instance_of_row}
    if piece.labels is not None:
        labels = piece.labels.values.astype(object)
        labels[piece.labels.is_unknown] = None
        own["label"] = labels
    if batch.parents is not None:
        own["parent"] = batch.parents
    if batch.edge_types is not None:
        own["edge_type"] = batch.edge_types
    if piece.weights is not None:
        own["weight"] = np.repeat(piece.weights, batch.lengths)
    parquet_shard.write(path, own, batch.X)
