"""The columns a model was fitted on, and whether other features have the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from crfx.features.matrix import is_categorical, is_frame
from crfx.features.words import HashedVocabulary, Vocabulary

_KINDS = ("categories", "numbers")


@dataclass(frozen=True)
class Columns:
    """The columns a model was fitted on: their number, and names if they have any.

    Data frames have names and categories; dicts and texts have a vocabulary.
    """

    n: int
    names: list[str] | None = None
    categories: dict[str, list[Any]] = field(default_factory=dict)
    vocabulary: Vocabulary | None = None

    @classmethod
    def of(cls, X: Any) -> Columns:
        """Return the columns of a stacked matrix."""
        if not X.shape[1]:
            raise ValueError(
                f"X has no features: it has 0 feature(s) (shape={X.shape}) while a minimum of 1 is "
                "required."
            )
        if not is_frame(X):
            return cls(X.shape[1])
        categories = {
            str(name): X[name].cat.categories.tolist()
            for name in X.columns
            if is_categorical(X[name])
        }
        return cls(X.shape[1], [str(name) for name in X.columns], categories)

    @classmethod
    def of_words(cls, vocabulary: Vocabulary) -> Columns:
        """Return the columns of dicts or texts."""
        if not len(vocabulary):
            raise ValueError("X has no features: its positions are all empty")
        return cls(len(vocabulary), vocabulary=vocabulary)

    def known_names(self) -> list[str] | None:
        """Return their names; None if they have none, or names were hashed."""
        if isinstance(self.vocabulary, HashedVocabulary):
            return None
        return self.names if self.vocabulary is None else self.vocabulary.names()

    def name_of(self) -> Callable[[int], str]:
        """Return a function from a number to a name: f0, f1, ... if there are no names."""
        known = self.known_names()
        return lambda column: f"f{column}" if known is None else str(known[column])

    def category_counts(self) -> dict[int, int]:
        """Return the number of categories by column, without columns of numbers."""
        return {
            place: len(self.categories[name])
            for place, name in enumerate(self.names or ())
            if name in self.categories
        }

    def check_numbers(self) -> None:
        """Raise ValueError if the model was fitted on dicts or texts, as X holds numbers."""
        if self.vocabulary is not None:
            raise ValueError(
                "X holds numbers, but the model was fitted on dicts or texts: only their names "
                "tell which column is which"
            )

    def matched(self, X: Any, *, training: bool = False) -> Any:
        """Return X, with categories numbered as in training; raise if its columns differ.

        A category that training has not seen is missing; when training continues it is an error.
        """
        if X.shape[1] != self.n:
            raise ValueError(
                f"X has {X.shape[1]} features, but crfx is expecting {self.n} features as input, "
                "which the model was fitted with"
            )
        if not is_frame(X):
            if self.categories:
                name = next(iter(self.categories))
                raise ValueError(
                    f"X is no data frame, but the model was fitted on one with categories "
                    f"(column {name!r}): pass a data frame"
                )
            return X
        names = [str(name) for name in X.columns]
        for place, (fitted, name) in enumerate(zip(self.names or names, names, strict=True)):
            if fitted != name:
                raise ValueError(
                    f"column {place} of X is {name!r}, the model was fitted with {fitted!r} there"
                )
        changed = {
            name: self._recoded(X[name], training)
            for name in X.columns
            if str(name) in self.categories or is_categorical(X[name])
        }
        return X.assign(**changed) if changed else X

    def _recoded(self, column: Any, training: bool) -> Any:
        name = str(column.name)
        if (name in self.categories) != is_categorical(column):
            fitted, now = _KINDS if name in self.categories else _KINDS[::-1]
            raise ValueError(
                f"column {name!r} of X holds {now}, the model was fitted with {fitted} there"
            )
        known = self.categories[name]
        if column.cat.categories.tolist() == known:
            return column
        recoded = column.cat.set_categories(known)
        new = column[recoded.isna() & column.notna()]
        if training and len(new):
            raise ValueError(
                f"column {name!r} of X has the category {new.iloc[0]!r}, which the model that is "
                "trained further has not seen"
            )
        return recoded


def united(parts: Mapping[str, Columns]) -> Columns:
    """Return the columns of a matrix whose rows are parts, each with a name for messages.

    They must have the same number and names.  Categories are those of all parts: unchanged if all
    parts agree, otherwise sorted, as those of one column would be.
    """
    (first, columns), *others = parts.items()
    for name, other in others:
        _check_same(first, columns, name, other)
    categories = {
        column: _united_lists([part.categories[column] for part in parts.values()])
        for column in columns.categories
    }
    return replace(columns, categories=categories)


def _check_same(first: str, one: Columns, name: str, other: Columns) -> None:
    if one.n != other.n:
        raise ValueError(f"X has {one.n} features at {first} and {other.n} at {name}")
    pairs = zip(one.names or (), other.names or (), strict=True)
    for place, (left, right) in enumerate(pairs):
        if left != right:
            raise ValueError(f"column {place} of X is {left!r} at {first} and {right!r} at {name}")
        if (left in one.categories) != (left in other.categories):
            kinds = _KINDS if left in one.categories else _KINDS[::-1]
            raise ValueError(
                f"column {left!r} of X holds {kinds[0]} at {first} and {kinds[1]} at {name}"
            )


def _united_lists(lists: list[list[Any]]) -> list[Any]:
    if all(values == lists[0] for values in lists):
        return lists[0]
    union = list(dict.fromkeys(chain.from_iterable(lists)))
    try:
        return sorted(union)
    except TypeError:  # values of several types: in the order in which they come
        return union
