"""A shard as a table in a Parquet file: one row per position.

One column names the instance of each row: equal consecutive values are one instance.  Others may
hold the label, the parent, the edge type and the weight; the rest are features, read as a data
frame.  Needs pandas and PyArrow (``crfx[parquet]``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.errors import about
from crfx.features.matrix import is_categorical, is_frame
from crfx.io.shard_layout import OPTIONAL, PER_ROW, Layout, check_parents
from crfx.io.whole_file import whole_file
from crfx.messages import shown

CATEGORIES = "categories"
_KINDS = {
    "is_string": "text",
    "is_large_string": "text",
    "is_integer": "whole numbers",
    "is_floating": "fractions",
    "is_boolean": "truth values",
    "is_null": "",
}
"""Kinds of values in words, by the function of PyArrow that recognises their type."""
_ROW_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")
"""Names of the index of rows in pandas and Dask, if it has none."""


@dataclass(frozen=True)
class ColumnNames:
    """Names of the columns that hold no feature."""

    instance: str
    label: str
    parent: str
    edge_type: str
    weight: str

    def __post_init__(self) -> None:
        names = list(vars(self).values())
        for name in names:
            if not isinstance(name, str):
                raise ValueError(f"the name of a column is {shown(name)}, not text")
            if names.count(name) > 1:
                raise ValueError(f"two columns that mean different things are called {name!r}")

    @property
    def by_argument(self) -> dict[str, str]:
        """Columns by arguments of `fit`: y, parents, edge_types and sample_weight."""
        names = (self.label, self.parent, self.edge_type, self.weight)
        return dict(zip(OPTIONAL, names, strict=True))

    def check(self, columns: list[str]) -> None:
        """Raise ValueError if a required column is missing, or a column would be misread."""
        if len(set(columns)) != len(columns):
            twice = next(name for name in columns if columns.count(name) > 1)
            raise ValueError(f"there are two columns {twice!r}")
        if self.instance not in columns:
            raise ValueError(
                f"there is no column {self.instance!r}, whose equal values that follow each other "
                "make an instance"
            )
        for usual, name in vars(self).items():
            if name not in columns and usual in columns:
                raise ValueError(
                    f"there is no column {name!r}, but {usual!r}, which would be a feature"
                )


class ParquetShard:
    """One file, whose schema and column of instances have been read."""

    def __init__(self, path: Path, names: ColumnNames) -> None:
        self.path, self._names = path, names
        with self._opened() as file:
            self._schema = file.schema_arrow
            columns = self._schema.names
            names.check(columns)
            self.kinds = _feature_kinds(self._schema, names)
            has = frozenset(n for n, column in names.by_argument.items() if column in columns)
            labels = _label_kind(self._schema.field(names.label).type) if "y" in has else None
            values = file.read(columns=[names.instance]).column(0).combine_chunks()
            if values.null_count:
                raise ValueError(f"column {names.instance!r} has rows without a value")
        codes = _encoded(values).indices.to_numpy(zero_copy_only=False)
        is_first = np.append(True, codes[1:] != codes[:-1])[: len(codes)]
        self._starts = np.flatnonzero(is_first)
        self.ends = [values[at].as_py() for at in (0, -1)] if len(values) else []
        self.lengths = np.diff(np.append(self._starts, len(values)))
        self.layout = Layout(
            "Parquet",
            False,
            tuple(self.kinds),
            has,
            labels if len(values) else None,
            tuple(self.kinds.values()),
        )
        self.categories: dict[str, list[Any]] = {}

    def read_categories(self, name: str) -> list[Any]:
        """Read the categories of a feature in this shard, also those that do not occur."""
        categories: list[Any] = (
            self._table([name]).to_pandas(ignore_metadata=True)[name].cat.categories.tolist()
        )
        return categories

    @property
    def like(self) -> Any:
        """No rows, with all categories."""
        return self._framed(self._schema.empty_table().select(list(self.kinds)))

    def features(self) -> Any:
        """Read (rows, features), a data frame."""
        return self._framed(self._table(list(self.kinds)))

    def labels(self) -> list[Any]:
        """Read the labels of all rows, None for missing values."""
        encoded = _encoded(self._table([self._names.label]).column(0).combine_chunks())
        distinct = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
        codes = encoded.indices.fill_null(len(distinct) - 1).to_numpy(zero_copy_only=False)
        labels: list[Any] = distinct[codes].tolist()
        return labels

    def numbers(self, name: str) -> npt.NDArray[Any]:
        """Read parents or edge types of all rows, or weights of all instances."""
        column = self._names.by_argument[name]
        values = self._table([column]).column(0)
        with about(self.path):
            if values.null_count:
                raise ValueError(f"column {column!r} has rows without a value")
            numbers: npt.NDArray[Any] = values.to_numpy()
            kinds, words = ("iu", "whole numbers") if name in PER_ROW else ("iuf", "numbers")
            if numbers.dtype.kind not in kinds:
                raise ValueError(f"column {column!r} holds no {words}")
            if name == "parents":
                check_parents(numbers.astype(np.int64), self.lengths)
            if name in PER_ROW:
                return numbers
            weights = numbers[self._starts]
            other = np.flatnonzero(numbers != np.repeat(weights, self.lengths))
            if len(other):
                raise ValueError(
                    f"column {column!r} has {numbers[other[0]]} in row {other[0]}, and another "
                    "weight before in the same instance: a weight is of a whole instance"
                )
            return weights

    def _framed(self, table: Any) -> Any:
        pandas, pyarrow, _ = _libraries(self.path)
        # Truth values may be missing; NumPy would make objects of them in some shards only.
        types = {pyarrow.bool_(): pandas.BooleanDtype()}
        frame = table.to_pandas(ignore_metadata=True, types_mapper=types.get)
        recoded = {
            name: frame[name].cat.set_categories(categories, ordered=False)
            for name, categories in self.categories.items()
        }
        return frame.assign(**recoded)

    def _table(self, columns: list[str]) -> Any:
        """Read columns; raise ValueError if the number of rows has changed."""
        with self._opened() as file:
            table = file.read(columns=columns)
            if table.num_rows != self.lengths.sum():
                raise ValueError("its rows have changed since the shard was looked at")
            return table.select(columns)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        _, pyarrow, parquet = _libraries(self.path)
        try:
            with parquet.ParquetFile(self.path) as file:
                yield file
        except FileNotFoundError:
            raise ValueError(f"{self.path}: there is no such file") from None
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise ValueError(f"{self.path}: {' '.join(str(error).split())}") from None


def unite_categories(shards: Sequence[ParquetShard]) -> None:
    """Give all shards the same categories; raise ValueError if an instance is in two shards."""
    for before, after in pairwise([shard for shard in shards if len(shard.lengths)]):
        if before.ends[1] == after.ends[0]:
            raise ValueError(
                f"{after.path}: it begins with the instance {shown(after.ends[0])} that "
                f"{before.path} ends with: a shard holds whole instances"
            )
    for name, kind in shards[0].kinds.items() if shards else ():
        if kind == CATEGORIES:
            union = dict.fromkeys(chain(*(shard.read_categories(name) for shard in shards)))
            for shard in shards:
                shard.categories[name] = list(union)


def write_shard(path: Path, columns: dict[str, Any], X: Any) -> None:
    """Write a shard, whole or not at all: ``columns`` that are not features, then the features.

    X is a data frame, or an array, whose columns are called f0, f1, ...
    """
    pandas, _, _ = _libraries(path)
    if is_frame(X):
        frame = X.rename(columns=str).reset_index(drop=True)
    else:
        frame = pandas.DataFrame(X, columns=[f"f{column}" for column in range(X.shape[1])])
    for field in fields(ColumnNames):
        if field.name in frame.columns:
            raise ValueError(
                f"X has a column {field.name!r}, which has a meaning in shards: rename it"
            )
    for name in filter(lambda name: is_categorical(frame[name]), frame.columns):
        kind = pandas.api.types.infer_dtype(frame[name].cat.categories)
        if kind != "string":
            raise ValueError(
                f"X: column {name!r} has categories that are not text ({kind}), which Parquet does "
                f"not keep: make them text, X[{name!r}].cat.rename_categories(str)"
            )
    with whole_file(path) as file:
        whole = pandas.concat([pandas.DataFrame(columns), frame], axis=1)
        whole.to_parquet(file, engine="pyarrow", index=False)


def _libraries(path: Path) -> tuple[Any, Any, Any]:
    """Return pandas, PyArrow and its reader of Parquet; raise ImportError if one is missing."""
    try:
        import pandas
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            f"{path}: Parquet files need pandas and pyarrow: pip install 'crfx[parquet]'"
        ) from None
    return pandas, pyarrow, parquet


def _encoded(values: Any) -> Any:
    """Return an Arrow array as distinct values and their numbers."""
    return values if hasattr(values, "dictionary") else values.dictionary_encode()


# Kinds of columns, by Arrow's schema and pandas' metadata -----------------------------------------


def _feature_kinds(schema: Any, names: ColumnNames) -> dict[str, str]:
    """Return the kinds of features by their names, in order: numbers, truth values or categories.

    The index of a data frame is not a feature, since it gives away the place of rows in the corpus.
    """
    index, were_categories = _pandas_metadata(schema)
    others = {names.instance, *names.by_argument.values(), *index}
    return {
        field.name: _feature_kind(field, field.name in were_categories)
        for field in schema
        if field.name not in others and not _ROW_INDEX.fullmatch(field.name)
    }


def _feature_kind(field: Any, was_category: bool) -> str:
    name, value_type = field.name, _value_type(field.type)
    kind, is_dictionary = _kind(value_type), value_type is not field.type
    if is_dictionary and kind == "text":
        return CATEGORIES
    if was_category:
        raise ValueError(
            f"column {name!r} had categories that are not text, of which Parquet has made "
            f"{field.type}: write it with frame[{name!r}].cat.rename_categories(str)"
        )
    if is_dictionary or kind not in ("whole numbers", "fractions", "truth values"):
        raise ValueError(
            f"column {name!r} holds {shown(str(field.type))}: a feature is numbers, truth values "
            f"or categories, frame.astype({{{name!r}: 'category'}})"
        )
    return kind if kind == "truth values" else "numbers"


def _label_kind(arrow_type: Any) -> str | None:
    """Return the kind of labels of an Arrow type, None if all are missing."""
    value_type = _value_type(arrow_type)
    kind = _kind(value_type)
    if kind is None:
        raise ValueError(f"its labels are {value_type}: they may be text, numbers or truth values")
    return kind or None


def _value_type(arrow_type: Any) -> Any:
    """Return the type of the values of a dictionary; other types are returned as they are."""
    import pyarrow.types as kinds

    return arrow_type.value_type if kinds.is_dictionary(arrow_type) else arrow_type


def _kind(arrow_type: Any) -> str | None:
    """Return the kind of values of an Arrow type, "" for no values, None for other types."""
    import pyarrow.types

    kinds = (words for name, words in _KINDS.items() if getattr(pyarrow.types, name)(arrow_type))
    return next(kinds, None)


def _pandas_metadata(schema: Any) -> tuple[set[str], set[str]]:
    """Return the columns that were the index of rows, and those that were categories.

    Files may hold anything: metadata that pandas would not write are ignored.
    """
    metadata = schema.pandas_metadata
    metadata = metadata if isinstance(metadata, dict) else {}
    index, columns = (
        entries if isinstance(entries := metadata.get(key), list) else []
        for key in ("index_columns", "columns")
    )
    # A default index is stored as a range, not as a column.
    were_index = {name for name in index if isinstance(name, str)}
    were_categories = {
        str(column.get("field_name", column.get("name")))
        for column in columns
        if isinstance(column, dict) and column.get("pandas_type") == "categorical"
    }
    return were_index, were_categories
