"""Features of column data (word, part of speech, ...) from a small template language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from crfx.errors import BadInstance
from crfx.features.words import Vocabulary

_TERM = re.compile(
    r"\s*(?:(?P<function>[a-z]+)\(\s*)?(?P<column>[A-Za-z_]\w*)\[(?P<offsets>[^\]]+)\]"
    r"(?(function)\s*(?:,\s*(?P<sizes>[^)]+?)\s*)?\))\s*"
)
_RANGE = re.compile(r"([+-]?\d+)\s*\.\.\s*([+-]?\d+)|([+-]?\d+)")
SIZED = ("prefix", "suffix")
_MOST_VALUES = 100_000
_MOST_FEATURES = 10_000
_LARGEST_NUMBER = 100_000
"""The largest offset and size; a longer range would take much memory."""


def shape(word: str) -> str:
    """Return the word with letters as X and x, digits as 9, and the rest as it is.

    >>> shape("Bell-5a")
    'Xxxx-9x'
    """
    return "".join(
        "X" if c.isupper() else "x" if c.islower() else "9" if c.isdigit() else c for c in word
    )


def kind(word: str) -> str:
    """Return the shape with runs of a character cut down to one.

    >>> kind("Bell-500")
    'Xx-9'
    """
    return re.sub(r"(.)\1+", r"\1", shape(word))


def prefix(word: str, size: int) -> str | None:
    """Return the first letters; None if there are fewer.

    >>> prefix("cats", 2), prefix("a", 2)
    ('ca', None)
    """
    return word[:size] if len(word) >= size else None


def suffix(word: str, size: int) -> str | None:
    """Return the last letters; None if there are fewer.

    >>> suffix("cats", 2), suffix("a", 2)
    ('ts', None)
    """
    return word[-size:] if len(word) >= size else None


FUNCTIONS: dict[str, Callable[..., str | None]] = {
    "lower": str.lower,
    "shape": shape,
    "kind": kind,
    "prefix": prefix,
    "suffix": suffix,
}


Value: TypeAlias = tuple[int, str | None, int | None]
"""What a term looks at, its offset aside: a column, or a function of it and its size."""


class Template:
    """Features of column data, such as word and part of speech, in a small language.

    One line, one kind of feature::

        word[-2..2]                  # the words at offsets -2 to 2, a feature each
        lower(word[0])               # functions: lower, shape, kind, prefix(., n), suffix(., n)
        suffix(word[0], 1..4)        # the last letter, the last two, ...
        pos[-1..0] & pos[0..1]       # pairs: ranges on a line run side by side
        word[0] & pos[1]
        true                         # the same at every position

    Beyond the ends of an instance the value is <start> or <end>.  A prefix or suffix that is longer
    than its word gives no feature.  ``shape`` turns letters into X and x and digits into 9;
    ``kind`` is the shape with runs of a character cut down to one.  What follows # is a comment.

    A position is a tuple of columns, a dict with their names, or one text where there is one
    column.  From a file: ``Template(Path("template.txt").read_text(), columns)``.  In a pipeline:
    ``make_pipeline(FunctionTransformer(template), LinearCRF())``.

    >>> template = Template("word[-1..0]\\nsuffix(word[0], 2)", ("word", "pos"))
    >>> for position in template.features([("the", "DT"), ("cats", "NNS")]):
    ...     print(position)
    ['word[-1]=<start>', 'word[0]=the', 'suffix(word[0],2)=he']
    ['word[-1]=the', 'word[0]=cats', 'suffix(word[0],2)=ts']
    """

    def __init__(self, text: str, columns: Sequence[str]) -> None:
        if not isinstance(text, str):
            raise ValueError(f"the template is a {type(text).__name__}: pass its text")
        if isinstance(columns, str):
            raise ValueError(f"the columns are {columns!r}: pass a list of names, [{columns!r}]")
        self.text, self.columns = text, tuple(columns)
        if twice := [name for name in self.columns if self.columns.count(name) > 1]:
            raise ValueError(f"the column {twice[0]!r} is there twice")
        self._values: dict[Value, int] = {}
        self._lines: list[tuple[str, list[tuple[int, int]]]] = []
        for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
            content = line.split("#", 1)[0].strip()
            try:
                self._lines += self._expanded(content) if content else []
                if len(self._lines) > _MOST_FEATURES:
                    raise ValueError(f"there are more than {_MOST_FEATURES} features a position")
            except ValueError as error:
                raise ValueError(f"template, line {number}: {error}") from None
        if not self._lines:
            raise ValueError("the template has no line that gives features")
        for name, count in Counter(name for name, _ in self._lines).items():
            if count > 1:
                raise ValueError(f"template: the feature {name.rstrip('=')!r} is there twice")

    def _expanded(self, content: str) -> list[tuple[str, list[tuple[int, int]]]]:
        if content == "true":
            return [("true", [])]
        parts = [self._terms(part) for part in content.split("&")]
        count = max(map(len, parts))
        if any(len(part) not in (1, count) for part in parts):
            sizes = " and ".join(str(len(part)) for part in parts)
            raise ValueError(f"ranges on one line run side by side, but here they have {sizes}")
        lines = []
        for index in range(count):
            terms = [part[index if len(part) > 1 else 0] for part in parts]
            places = [
                (self._values.setdefault(value, len(self._values)), offset)
                for value, offset, _ in terms
            ]
            lines.append(("&".join(name for *_, name in terms) + "=", places))
        return lines

    def _terms(self, text: str) -> list[tuple[Value, int, str]]:
        """Return value, offset and name of each term, for every offset and size in the text."""
        match = _TERM.fullmatch(text)
        if match is None:
            raise ValueError(
                f"{text.strip()!r} is not like word[0], nor like one of {', '.join(FUNCTIONS)} of "
                "that, as suffix(word[0], 3); functions are not nested (nor is this CRF++'s "
                'language: edges="linear" is for its bigram lines)'
            )
        function, column = match["function"], match["column"]
        if function is not None and function not in FUNCTIONS:
            raise ValueError(f"there is no function {function!r}: use {', '.join(FUNCTIONS)}")
        if column not in self.columns:
            raise ValueError(f"there is no column {column!r}: there are {', '.join(self.columns)}")
        if (function in SIZED) != (match["sizes"] is not None):
            need = "needs" if function in SIZED else "takes no"
            raise ValueError(f"{function} {need} number of letters: {text.strip()!r}")
        sizes = [None] if match["sizes"] is None else _numbers(match["sizes"])
        if any(size is not None and size < 1 for size in sizes):
            raise ValueError(f"{function} takes 1 letter or more: {text.strip()!r}")
        offsets = _numbers(match["offsets"])
        if len(sizes) * len(offsets) > _MOST_FEATURES:
            raise ValueError(f"there are more than {_MOST_FEATURES} features a position")
        number, terms = self.columns.index(column), []
        for size in sizes:
            for offset in offsets:
                name = f"{column}[{offset}]"
                if function is not None:
                    name = f"{function}({name}{'' if size is None else f',{size}'})"
                terms.append(((number, function, size), offset, name))
        return terms

    def __call__(self, instances: Iterable[Sequence[Any]]) -> Templated:
        """Return instances with their features, for `fit` and `predict`.

        >>> from crfx import LinearCRF
        >>> template = Template("word[-1..1]", ["word"])
        >>> crf = LinearCRF().fit(template([["a", "cat"]]), [["D", "N"]])
        >>> crf.predict(template([["a", "dog"]]))[0].tolist()
        ['D', 'N']
        """
        return Templated(self, instances)

    def encode(
        self, instances: Iterable[Sequence[Any]], vocabulary: Vocabulary, *, learn: bool = False
    ) -> tuple[Any, list[int]]:
        """Encode instances as a sparse matrix, as `Vocabulary.encode` does.

        Parameters
        ----------
        instances : iterable of instances, as `features` takes them
        vocabulary : Vocabulary or HashedVocabulary
            The numbers of the names.
        learn : bool, default False
            Give numbers to new names, instead of leaving them out.

        Returns
        -------
        (rows, features) CSR matrix, and the lengths of the instances
        """
        return vocabulary.encode(self(instances), learn=learn)

    def features(self, instance: Sequence[Any]) -> list[list[str]]:
        """Return the names of the features of every position.

        Parameters
        ----------
        instance : list of tuples, dicts or texts, one per position
            Columns in their order, by name, or the only one.

        Returns
        -------
        list of lists of str
        """
        vocabulary = Vocabulary()
        X, _ = self.encode([instance], vocabulary, learn=True)
        names = vocabulary.names()
        return [
            [names[index] for index in X.indices[X.indptr[row] : X.indptr[row + 1]]]
            for row in range(X.shape[0])
        ]

    def _columns_of(self, instances: Iterable[Sequence[Any]]) -> Iterator[list[list[str | None]]]:
        """Yield for each instance the values that the lines look at, lists over positions."""
        known = [(column, _remembered(function, size)) for column, function, size in self._values]
        for number, instance in enumerate(instances):
            columns = self._read(instance, number)
            yield [
                columns[column] if function is None else list(map(function, columns[column]))
                for column, function in known
            ] or [[""] * len(instance)]

    def _read(self, instance: Sequence[Any], number: int) -> list[list[str | None]]:
        if isinstance(instance, str):
            raise BadInstance(number, "it is one text: it must be a list of positions")
        if not hasattr(instance, "__iter__"):
            raise BadInstance(number, f"it is {instance!r}: it must be a list of positions")
        if set(map(type, instance)) == {tuple} and set(map(len, instance)) == {len(self.columns)}:
            columns = [list(column) for column in zip(*instance, strict=True)]
            if all(set(map(type, column)) == {str} for column in columns):
                return columns  # as files give them: nothing to look at one by one
        rows = []
        for position, row in enumerate(instance):
            row = self._columns_of_row(row, number, position)
            if len(row) != len(self.columns):
                raise BadInstance(
                    number,
                    f"it has {len(row)} columns, the template {len(self.columns)} "
                    f"({', '.join(self.columns)})",
                    position,
                )
            if not all(isinstance(text, str) for text in row):
                raise BadInstance(number, f"{row!r} is not all text", position)
            rows.append(row)
        return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in self.columns]

    def _columns_of_row(self, row: Any, number: int, position: int) -> tuple[Any, ...]:
        """Read a position: a tuple of columns, a dict with their names, or one text."""
        if isinstance(row, str):
            return (row,)
        if not hasattr(row, "__iter__"):
            raise BadInstance(number, f"{row!r} has no columns", position)
        if not isinstance(row, dict):
            return tuple(row)
        if missing := [name for name in self.columns if name not in row]:
            raise BadInstance(number, f"it has no column {missing[0]!r}", position)
        return tuple(row[name] for name in self.columns)


@dataclass(frozen=True, eq=False)
class Templated:
    """Instances with the features of a template; a generator is read once."""

    template: Template
    instances: Iterable[Sequence[Any]]

    def __iter__(self) -> Iterator[list[list[str]]]:
        return (self.template.features(instance) for instance in self.instances)

    def encode_into(self, vocabulary: Vocabulary, *, learn: bool) -> tuple[Any, list[int]]:
        """Return what `Vocabulary.compact` does, without making the names of features."""
        columns = self.template._columns_of(self.instances)
        return vocabulary.encode_template(columns, self.template._lines, learn=learn)


def _numbers(text: str) -> list[int]:
    """Return the numbers of a text: "-1..1" and "-1, 0, 1" are three."""
    numbers: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part.strip()!r} is not a number, nor a range like -1..1")
        first, last = (_number(match[group] or match[3]) for group in (1, 2))
        if last < first:
            raise ValueError(f"the range {part.strip()!r} is empty")
        if len(numbers) + last - first >= _MOST_FEATURES:
            raise ValueError(f"{text[:20]!r} stands for more than {_MOST_FEATURES} numbers")
        numbers += range(first, last + 1)
    return numbers


def _number(text: str) -> int:
    number = int(text) if len(text) <= len(str(_LARGEST_NUMBER)) + 1 else _LARGEST_NUMBER + 1
    if abs(number) > _LARGEST_NUMBER:
        raise ValueError(f"{text[:20]} is too far: numbers go to {_LARGEST_NUMBER}")
    return number


def _remembered(name: str | None, size: int | None) -> Callable[[Any], str | None] | None:
    """Return a function, if any, that keeps its results: words come again and again."""
    if name is None:
        return None
    function = FUNCTIONS[name]
    if size is None:
        return lru_cache(_MOST_VALUES)(function)
    return lru_cache(_MOST_VALUES)(lambda text: function(text, size))


_OF_WORD = """\
{word}[-2..2]
lower({word}[-1..1])
{word}[-1..0] & {word}[0..1]
prefix({word}[0], 1..4)
suffix({word}[0], 1..4)
shape({word}[-1..1])
kind({word}[-2..2])
kind({word}[-1..0]) & kind({word}[0..1])
kind({word}[-1]) & kind({word}[0]) & kind({word}[1])
lower({word}[-1]) & kind({word}[0])
lower({word}[1]) & kind({word}[0])
"""
_OF_COLUMN = """\
{column}[-2..2]
{column}[-1..0] & {column}[0..1]
"""


def text_template(columns: Sequence[str]) -> str:
    """Return the text of the `Template` for text files that come without one.

    It is good for entities, chunks and tags alike: it was chosen on held-out data, see
    reports/text-template.md.

    Parameters
    ----------
    columns : list of str
        Names of the columns: the first is the word, others describe it.

    Returns
    -------
    str

    Examples
    --------
    >>> print(text_template(["word", "pos"]).splitlines()[-2])
    pos[-2..2]
    """
    if not columns:
        raise ValueError("there is no column to make features of")
    for name in columns:
        if re.fullmatch(r"[A-Za-z_]\w*", name) is None:
            raise ValueError(
                f"the column {name!r} cannot stand in a template: names have letters, digits and _"
            )
    word, *further = columns
    return _OF_WORD.format(word=word) + "".join(_OF_COLUMN.format(column=name) for name in further)
