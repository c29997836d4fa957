"""What the columns of a Parquet file mean: which are features, and what those hold.

All of it is told by the schema, which is Arrow's, and by what pandas notes beside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from crfx.io.shard_layout import OPTIONAL
from crfx.messages import shown

CATEGORIES = "categories"

_ROW_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")
"""What pandas and Dask call the index of rows where it has no name."""


@dataclass(frozen=True)
class ColumnNames:
    """What columns are called that hold no feature."""

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

    def check(self, columns: list[str]) -> None:
        """Raise ValueError where a column has its usual name, but was said to have another."""
        for usual, name in vars(self).items():
            if name not in columns and usual in columns:
                raise ValueError(
                    f"there is no column {name!r}, but {usual!r}, which would be a feature"
                )

    @property
    def by_argument(self) -> dict[str, str]:
        """The columns of what `fit` calls y, parents, edge_types and sample_weight."""
        return dict(
            zip(OPTIONAL, (self.label, self.parent, self.edge_type, self.weight), strict=True)
        )


def feature_kinds(schema: Any, names: ColumnNames) -> dict[str, str]:
    """What the features hold, by their names, in order: numbers, truth values or categories.

    The index of a data frame's rows is no feature: it would tell where in the corpus a row stands.
    """
    index, were_categories = _pandas_notes(schema)
    others = {names.instance, *names.by_argument.values(), *index}
    return {
        field.name: _feature_kind(field, field.name in were_categories)
        for field in schema
        if field.name not in others and not _ROW_INDEX.fullmatch(field.name)
    }


def label_kind(found: Any) -> str | None:
    """Which kind of labels a column of this type holds, in words; None where all are missing."""
    import pyarrow.types as kinds

    if kinds.is_dictionary(found):
        found = found.value_type
    told = {
        "text": _is_text(found),
        "whole numbers": kinds.is_integer(found),
        "fractions": kinds.is_floating(found),
        "truth values": kinds.is_boolean(found),
    }
    if kinds.is_null(found):  # a column without any value
        return None
    for name, is_this in told.items():
        if is_this:
            return name
    raise ValueError(f"its labels are {found}: they may be text, numbers or truth values")


def _feature_kind(field: Any, was_category: bool) -> str:
    import pyarrow.types as kinds

    found = field.type
    if kinds.is_dictionary(found) and _is_text(found.value_type):
        return CATEGORIES
    if was_category:
        raise ValueError(
            f"column {field.name!r} had categories that are not text, of which Parquet has made "
            f"{found}: write it with frame[{field.name!r}].cat.rename_categories(str)"
        )
    if kinds.is_integer(found) or kinds.is_floating(found):
        return "numbers"
    if kinds.is_boolean(found):
        return "truth values"
    raise ValueError(
        f"column {field.name!r} holds {shown(str(found))}: a feature is numbers, truth values or "
        f"categories, frame.astype({{{field.name!r}: 'category'}})"
    )


def _is_text(found: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_string(found) or kinds.is_large_string(found))


def _pandas_notes(schema: Any) -> tuple[set[str], set[str]]:
    """Columns that were the index of rows, and those that were categories.

    Anything may stand in a file: what is not as pandas writes it says nothing.
    """
    notes = schema.pandas_metadata
    notes = notes if isinstance(notes, dict) else {}
    index, columns = (
        own if isinstance(own := notes.get(key), list) else []
        for key in ("index_columns", "columns")
    )
    # An index that only counts is noted as a range, and is no column.
    were_index = {name for name in index if isinstance(name, str)}
    were_categories = {
        str(own.get("field_name", own.get("name")))
        for own in columns
        if isinstance(own, dict) and own.get("pandas_type") == "categorical"
    }
    return were_index, were_categories
