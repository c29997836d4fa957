"""Shards: instances in many files, read one file at a time.

Each file holds whole instances; `crfx.io.arrays` and `crfx.io.parquet` read the formats, and
`crfx.write_shards` writes them.  Only this package, `features` and `batch` know that features may
stay on disk; other code uses `is_sharded` and the methods of `ShardFeatures`.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.errors import about
from crfx.features.matrix import (
    Matrix,
    first_infinite,
    infinite_feature,
    joined,
    stacked,
)
from crfx.io.arrays import NpzShard
from crfx.io.parquet import ColumnNames, ParquetShard, unite_categories
from crfx.io.shard_layout import OPTIONAL
from crfx.messages import shown

SUFFIXES = (".npz", ".parquet")

Shard = NpzShard | ParquetShard
"""A file of whole instances, whose headers have been read; the rest is read on demand."""
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class Shards:
    """Instances in files: ``fit(shards.X, shards.y)``, ``predict(shards.X)``.

    The headers of all files are read here: if a file is missing, cut off, or of another layout than
    the first, a ValueError names it before any training starts.  Features stay on disk; lengths are
    kept.  O(files + instances); of Parquet the column of instances is read, of npz the marks of
    unknown labels.

    Parameters
    ----------
    paths : str or path, or a list of them
        A pattern ("train/*.npz"), a folder, a file, or files in their order.  A pattern and a
        folder give files sorted by name.
    instance, label, parent, edge_type, weight : str
        Names of the columns of Parquet files that are not features.

    Attributes
    ----------
    X, y
        Features and labels for estimators.
    lengths : (instances,) int64
        Rows of each instance, over all files.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import crfx
    >>> X, y = np.array([[0.1, 2.0], [0.3, 1.0], [0.2, 5.0]]), ["A", "B", "A"]
    >>> folder = tempfile.TemporaryDirectory()
    >>> shards = crfx.write_shards(folder.name, X, y, lengths=[2, 1], positions=2)
    >>> len(shards), shards.n_rows, shards.lengths.tolist()
    (2, 3, [2, 1])
    >>> crf = crfx.LinearCRF(n_jobs=1).fit(shards.X, shards.y)
    >>> crf.predict(shards.X).shape
    (3,)
    >>> folder.cleanup()
    """

    def __init__(
        self,
        paths: Paths,
        *,
        instance: str = "instance",
        label: str = "label",
        parent: str = "parent",
        edge_type: str = "edge_type",
        weight: str = "weight",
    ) -> None:
        names = ColumnNames(instance, label, parent, edge_type, weight)
        self._shards = [_opened(path, names) for path in _files(paths)]
        first = self._shards[0]
        for shard in self._shards[1:]:
            with about(shard.path):
                shard.layout.check_same(first.layout, str(first.path))
        unite_categories([shard for shard in self._shards if isinstance(shard, ParquetShard)])

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self._shards)

    def __getitem__(self, some: slice) -> Shards:
        """Return some of the files, without opening them again."""
        if not isinstance(some, slice):
            raise TypeError("take some shards by a slice, shards[2:5]")
        if not self._shards[some]:
            raise ValueError(f"there are {len(self)} shards, and none of them was chosen")
        return _shards_of(self._shards[some])

    def absolute(self) -> Shards:
        """Return the same files with absolute paths."""
        shards = [copy.copy(shard) for shard in self._shards]
        for shard in shards:
            shard.path = shard.path.absolute()
        return _shards_of(shards)

    def __repr__(self) -> str:
        return (
            f"<Shards: {len(self)} files, {self.n_instances} instances, {self.n_rows} rows, "
            f"{self._shards[0].layout.n_columns} features>"
        )

    @property
    def paths(self) -> list[Path]:
        """The files, in their order."""
        return [shard.path for shard in self._shards]

    @property
    def X(self) -> ShardFeatures:
        """The features, for estimators."""
        return ShardFeatures(self)

    @property
    def y(self) -> ShardLabels:
        """The labels, for estimators."""
        if "y" not in self.has:
            raise ValueError(f"{self._shards[0].path}: the shards have no labels, y")
        return ShardLabels(self)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """(instances,) rows of each."""
        return np.concatenate([shard.lengths for shard in self._shards])

    @property
    def n_rows(self) -> int:
        """Positions, over all instances."""
        return sum(int(shard.lengths.sum()) for shard in self._shards)

    @property
    def n_instances(self) -> int:
        """Instances, over all files."""
        return sum(len(shard.lengths) for shard in self._shards)

    @property
    def has(self) -> frozenset[str]:
        """Those of y, parents, edge_types and sample_weight that there are."""
        return self._shards[0].layout.has

    def load(self) -> dict[str, Any]:
        """Read everything into memory, as arguments: ``fit(**shards.load())``."""
        values: dict[str, Any] = {"X": joined([shard.features() for shard in self._shards])}
        if "y" in self.has:
            values["y"] = self.labels()
        values["lengths"] = self.lengths
        return values | {name: self.numbers(name) for name in OPTIONAL[1:] if name in self.has}

    def matrix(self) -> Matrix:
        """Return the features on disk, one file after the other."""
        lengths = [int(shard.lengths.sum()) for shard in self._shards]
        return Matrix(
            lengths,
            self._shards[0].like,
            lambda number: self._shards[number].features(),
            [str(path) for path in self.paths],
        )

    def labels(self) -> list[Any]:
        """Return the labels of all rows; None where unknown.  Equal labels are one object."""
        return [label for shard in self._shards for label in shard.labels()]

    def numbers(self, name: str) -> npt.NDArray[Any] | None:
        """Return parents or edge types of all rows, or weights of all instances, or None."""
        if name not in self.has:
            return None
        parts = [shard.numbers(name) for shard in self._shards]
        if name == "sample_weight":
            for path, weights in zip(self.paths, parts, strict=True):
                _check_weights(weights, path)
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False, repr=False)
class ShardFeatures:
    """The features of shards, as X for estimators; structure and weights come with them."""

    shards: Shards

    def __repr__(self) -> str:
        return f"{self.shards!r}.X"

    @property
    def has(self) -> frozenset[str]:
        """Those of y, parents, edge_types and sample_weight that there are."""
        return self.shards.has

    def batch(self) -> Batch:
        """Return the instances with their structure; their features stay on disk.

        Reading features raises BadInstance at an infinite number.
        """
        matrix = self.shards.matrix().mapped(stacked)
        batch = Batch.from_lengths(
            self.shards.lengths,
            parents=self.shards.numbers("parents"),
            edge_types=self.shards.numbers("edge_types"),
            X=matrix,
        )

        def check(rows: slice, chunk: Any) -> None:
            if (at := first_infinite(chunk)) is not None:
                raise batch.bad_row(rows.start + at[0], infinite_feature(at[1]))

        return replace(batch, X=matrix.checked(check))

    def weights(self) -> npt.NDArray[Any] | None:
        """Return the weights of all instances; None if there are none."""
        return self.shards.numbers("sample_weight")


@dataclass(frozen=True, eq=False, repr=False)
class ShardLabels:
    """The labels of shards, as y for estimators."""

    shards: Shards

    def __repr__(self) -> str:
        return f"{self.shards!r}.y"


def is_sharded(X: Any) -> TypeGuard[ShardFeatures]:
    """Return whether X are the features of shards; raise ValueError for shards or labels."""
    if isinstance(X, Shards | ShardLabels):
        raise ValueError(f"X is {X!r}: pass shards.X as X, and shards.y as y")
    return isinstance(X, ShardFeatures)


def labels_in(y: Any) -> Any:
    """Read y from shards; return any other y as it is."""
    if isinstance(y, Shards | ShardFeatures):
        raise ValueError(f"y is {y!r}: pass shards.X as X, and shards.y as y")
    return y.shards.labels() if isinstance(y, ShardLabels) else y


def _shards_of(shards: list[Shard]) -> Shards:
    """Return shards whose files have been opened already."""
    result = object.__new__(Shards)
    result._shards = shards
    return result


def _check_weights(weights: npt.NDArray[Any], path: Path) -> None:
    """Raise ValueError, naming the file, if a weight is negative, infinite or NaN."""
    bad = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
    if bad.size:
        raise ValueError(
            f"{path}: instance {bad[0]} of this file: its weight {weights[bad[0]]} is not 0 or more"
        )


def _opened(path: Path, names: ColumnNames) -> Shard:
    if path.suffix == ".npz":
        return NpzShard(path)
    if path.suffix == ".parquet":
        return ParquetShard(path, names)
    raise ValueError(f"{path}: shards are files {' or '.join(SUFFIXES)}")


def _files(paths: Paths) -> list[Path]:
    """Return the files of a pattern, a folder or a list; no file may be there twice."""
    if isinstance(paths, str | os.PathLike):
        files = _matching(os.fspath(paths))
    elif isinstance(paths, list | tuple) and all(isinstance(p, str | os.PathLike) for p in paths):
        files = [Path(path) for path in paths]
    else:
        raise ValueError(f"shards are {shown(paths)}: pass a pattern, a folder or a list of files")
    if not files:
        raise ValueError("the list of shards is empty")
    seen: dict[tuple[int, int], Path] = {}
    for path in files:
        if not path.is_file():
            raise ValueError(f"{path}: there is no such file")
        status = path.stat()
        if (same := seen.setdefault((status.st_dev, status.st_ino), path)) is not path:
            raise ValueError(f"{path} is the same file as {same}: its instances would count twice")
    return files


def _matching(name: str) -> list[Path]:
    """Return the files of a pattern or a folder, sorted by name, or the one file."""
    folder = Path(name)
    if folder.is_dir():
        files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
        if not files:
            raise ValueError(f"{name}: the folder has no shards, files {' or '.join(SUFFIXES)}")
    elif not has_magic(name) or folder.is_file():
        files = [folder]
    else:
        files = sorted(map(Path, glob(name)))
        if not files:
            raise ValueError(f"no file is called {name}")
    return files
