"""The columns a model was fitted on, and whether other features have the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from crfx.features.matrix import is_categorical, is_frame
from crfx.features.words import HashedVocabulary, Vocabulary


@dataclass(frozen=True)
class Columns:
    """The columns a model was fitted on: their number, and what else is known of them.

    Of a data frame that is names and categories, of dicts and texts the vocabulary.
    """

    n: int
    names: list[str] | None = None
    categories: dict[str, list[Any]] = field(default_factory=dict)
    vocabulary: Vocabulary | None = None

    @classmethod
    def of(cls, X: Any) -> Columns:
        """Those of a stacked matrix."""
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
        """Those that dicts or texts gave."""
        if not len(vocabulary):
            raise ValueError("X has no features: its positions are all empty")
        return cls(len(vocabulary), vocabulary=vocabulary)

    def known_names(self) -> list[str] | None:
        """Their names; None where they have none, or none were kept."""
        if isinstance(self.vocabulary, HashedVocabulary):
            return None
        return self.names if self.vocabulary is None else self.vocabulary.names()

    def name_of(self) -> Callable[[int], str]:
        """A function that names a column by its number: f0, f1, ... where they have no names."""
        known = self.known_names()
        return lambda column: f"f{column}" if known is None else str(known[column])

    def category_counts(self) -> dict[int, int]:
        """How many categories there are, by column; columns of numbers are left out."""
        return {
            place: len(self.categories[name])
            for place, name in enumerate(self.names or ())
            if name in self.categories
        }

    def check_numbers(self) -> None:
        """Raise ValueError where X holds numbers, but dicts or texts were fitted on."""
        if self.vocabulary is not None:
            raise ValueError(
                "X holds numbers, but the model was fitted on dicts or texts: only their names "
                "tell which column is which"
            )

    def matched(self, X: Any, *, training: bool = False) -> Any:
        """X with the same columns, or an error; categories numbered as they were in training.

        A category that training has not seen is missing; where training goes on it is an error.
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
        self._check_names([str(name) for name in X.columns])
        changed = {
            name: self._recoded(X[name], training)
            for name in X.columns
            if str(name) in self.categories or is_categorical(X[name])
        }
        return X.assign(**changed) if changed else X

    def _check_names(self, names: list[str]) -> None:
        for place, (own, given) in enumerate(zip(self.names or names, names, strict=True)):
            if own != given:
                raise ValueError(
                    f"column {place} of X is {given!r}, the model was fitted with {own!r} there"
                )

    def _recoded(self, column: Any, training: bool) -> Any:
        name = str(column.name)
        if (name in self.categories) != is_categorical(column):
            kinds = ("categories", "numbers")
            was, now = kinds if name in self.categories else kinds[::-1]
            raise ValueError(
                f"column {name!r} of X holds {now}, the model was fitted with {was} there"
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
    """The columns of several matrices, of numbers, that are rows of one; by whose they are.

    They must have the same number and names.  Categories are those of all: as they are where all
    have the same, else sorted, as those of one column would be.
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
    for place, (own, given) in enumerate(pairs):
        if own != given:
            raise ValueError(f"column {place} of X is {own!r} at {first} and {given!r} at {name}")
        if (own in one.categories) != (own in other.categories):
            kinds = ("categories", "numbers")
            here, there = kinds if own in one.categories else kinds[::-1]
            raise ValueError(f"column {own!r} of X holds {here} at {first} and {there} at {name}")


def _united_lists(lists: list[list[Any]]) -> list[Any]:
    if all(own == lists[0] for own in lists):
        return lists[0]
    found = list(dict.fromkeys(value for own in lists for value in own))
    try:
        return sorted(found)
    except TypeError:  # of several kinds: as they come
        return found
