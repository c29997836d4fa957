"""A shard as a table in a Parquet file: one row per position.

A column says to which instance a row belongs: equal values that follow each other are one.  Others
may hold the label, the parent, the edge type and the weight; all that are left are features.
pandas and PyArrow read them (``crfx[parquet]``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.features.matrix import is_categorical, is_frame
from crfx.io.arrays import check_parents
from crfx.io.parquet_columns import CATEGORIES, ColumnNames, feature_kinds, label_kind
from crfx.io.shard_layout import Layout, Shard, told_of
from crfx.io.whole_file import whole_file
from crfx.messages import shown


class ParquetShard:
    """One file, whose schema and column of instances have been read."""

    def __init__(self, path: Path, names: ColumnNames) -> None:
        self.path, self._names = path, names
        with self._opened() as file:
            self._schema = file.schema_arrow
            columns = self._schema.names
            if len(set(columns)) != len(columns):
                twice = next(name for name in columns if columns.count(name) > 1)
                raise ValueError(f"there are two columns {twice!r}")
            if names.instance not in columns:
                raise ValueError(
                    f"there is no column {names.instance!r}, whose equal values that follow each "
                    "other make an instance"
                )
            names.check(columns)
            kinds = feature_kinds(self._schema, names)
            special = names.by_argument
            has = frozenset(name for name, column in special.items() if column in columns)
            labels = label_kind(self._schema.field(names.label).type) if "y" in has else None
            values = file.read(columns=[names.instance]).column(0).combine_chunks()
        if values.null_count:
            raise ValueError(f"{path}: column {names.instance!r} has rows without a value")
        self._starts, self.ends = _runs(values)
        self.lengths = np.diff(np.append(self._starts, len(values)))
        self._features = list(kinds)
        self.layout = Layout(
            "Parquet",
            False,
            tuple(kinds),
            has,
            labels if len(values) else None,
            tuple(kinds.values()),
        )
        self.categories: dict[str, list[Any]] = {}

    @property
    def category_columns(self) -> list[str]:
        """The features that are categories."""
        pairs = zip(self._features, self.layout.kinds, strict=True)
        return [name for name, kind in pairs if kind == CATEGORIES]

    def own_categories(self, name: str) -> list[Any]:
        """Those of one feature, that occur or not; reads the column."""
        found: list[Any] = (
            self._table([name]).to_pandas(ignore_metadata=True)[name].cat.categories.tolist()
        )
        return found

    @property
    def like(self) -> Any:
        """No rows, with all categories."""
        return self._framed(self._schema.empty_table().select(self._features))

    def features(self) -> Any:
        """(rows, features), a data frame."""
        return self._framed(self._table(self._features))

    def labels(self) -> list[Any]:
        """Of all rows, None where the column has no value."""
        column = self._table([self._names.label]).column(0).combine_chunks()
        encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
        found = np.empty(len(encoded.dictionary) + 1, dtype=object)
        found[:-1], found[-1] = encoded.dictionary.to_pylist(), None
        codes = encoded.indices.fill_null(len(found) - 1).to_numpy(zero_copy_only=False)
        labels: list[Any] = found[codes].tolist()
        return labels

    def numbers(self, name: str) -> npt.NDArray[Any]:
        """Of all rows, or the weights of all instances."""
        called = self._names.by_argument[name]
        column = self._table([called]).column(0)
        if column.null_count:
            raise ValueError(f"{self.path}: column {called!r} has rows without a value")
        values: npt.NDArray[Any] = column.to_numpy()
        if name != "sample_weight":
            if values.dtype.kind not in "iu":
                raise ValueError(f"{self.path}: column {called!r} holds no whole numbers")
            if name == "parents":
                with told_of(self.path):
                    check_parents(values.astype(np.int64), self.lengths)
            return values
        if values.dtype.kind not in "iuf":
            raise ValueError(f"{self.path}: column {called!r} holds no numbers")
        weights = values[self._starts]
        other = np.flatnonzero(values != np.repeat(weights, self.lengths))
        if len(other):
            raise ValueError(
                f"{self.path}: column {called!r} has {values[other[0]]} in row {other[0]}, and "
                "another weight before in the same instance: a weight is of a whole instance"
            )
        return weights

    def _framed(self, table: Any) -> Any:
        pandas, pyarrow, _ = _libraries(self.path)
        # Truth values that may be missing, in all shards: NumPy's would be objects where some are.
        types = {pyarrow.bool_(): pandas.BooleanDtype()}
        frame = table.to_pandas(ignore_metadata=True, types_mapper=types.get)
        recoded = {
            name: frame[name].cat.set_categories(own, ordered=False)
            for name, own in self.categories.items()
        }
        return frame.assign(**recoded)

    def _table(self, columns: list[str]) -> Any:
        """Columns as they are now, of as many rows as when the shard was looked at."""
        with self._opened() as file:
            found = file.read(columns=columns)
            if found.num_rows != self.lengths.sum():
                raise ValueError("its rows have changed since the shard was looked at")
            return found.select(columns)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        _, pyarrow, parquet = _libraries(self.path)
        try:
            with parquet.ParquetFile(self.path) as file:
                yield file
        except FileNotFoundError:
            raise ValueError(f"{self.path}: there is no such file") from None
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            told = " ".join(str(error).split())
            raise ValueError(f"{self.path}: {told}") from None


def with_all_categories(shards: Sequence[Shard]) -> list[Shard]:
    """The shards, where instances do not go on from one to the next, and the same categories have
    the same numbers in all.
    """
    tables = [shard for shard in shards if isinstance(shard, ParquetShard)]
    full = [shard for shard in tables if shard.ends is not None]
    for before, after in pairwise(full):
        if before.ends is not None and after.ends is not None and before.ends[1] == after.ends[0]:
            raise ValueError(
                f"{after.path}: it begins with the instance {shown(after.ends[0])} that "
                f"{before.path} ends with: a shard holds whole instances"
            )
    for name in tables[0].category_columns if tables else ():
        known = dict.fromkeys(own for shard in tables for own in shard.own_categories(name))
        for shard in tables:
            shard.categories[name] = list(known)
    return list(shards)


def write(path: Path, own: dict[str, Any], X: Any) -> None:
    """Write a shard, whole or not at all: columns of its ``own``, and features, a data frame or an
    array, whose columns are called f0, f1, ...
    """
    pandas, _, _ = _libraries(path)
    frame = X.rename(columns=str).reset_index(drop=True) if is_frame(X) else pandas.DataFrame(X)
    if not is_frame(X):
        frame.columns = [f"f{column}" for column in frame.columns]
    for field in fields(ColumnNames):
        if field.name in frame.columns:
            raise ValueError(
                f"X has a column {field.name!r}, which has a meaning in shards: rename it"
            )
    _check_categories(frame, pandas.api.types.infer_dtype)
    with whole_file(path) as file:
        whole = pandas.concat([pandas.DataFrame(own), frame], axis=1)
        whole.to_parquet(file, engine="pyarrow", index=False)


def _check_categories(frame: Any, kind_of: Callable[[Any], str]) -> None:
    """Others than text are not categories any more when Parquet gives them back."""
    for name in frame.columns:
        if (
            is_categorical(frame[name])
            and (kind := kind_of(frame[name].cat.categories)) != "string"
        ):
            raise ValueError(
                f"X: column {name!r} has categories that are not text ({kind}), which Parquet does "
                f"not keep: make them text, X[{name!r}].cat.rename_categories(str)"
            )


def _libraries(path: Path) -> tuple[Any, Any, Any]:
    """pandas, PyArrow and its reader of Parquet; told how to be had where one is missing."""
    try:
        import pandas
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            f"{path}: Parquet files need pandas and pyarrow: pip install 'crfx[parquet]'"
        ) from None
    return pandas, pyarrow, parquet


def _runs(values: Any) -> tuple[npt.NDArray[np.int64], tuple[Any, Any] | None]:
    """Where equal values begin, and the first and last of them; None: there are no rows."""
    if not len(values):
        return np.zeros(0, np.int64), None
    encoded = values if hasattr(values, "dictionary") else values.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    starts = np.append(0, 1 + np.flatnonzero(codes[1:] != codes[:-1]))
    return starts, (values[0].as_py(), values[-1].as_py())
