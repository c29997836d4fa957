"""Files to learn from or to judge by, as arguments of estimators; text files and arrays alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

    from crfx.features import Template
    from crfx.io.lines import Lines
    from crfx.io.reading import Reading
    from crfx.io.sentences import Format, Sentence


TEXT_OPTIONS = ("template", "columns", "label", "comments", "trees")
"""Those that say how a file of text is read."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """What `fit` takes: X, perhaps lengths, parents and edge types, and the labels."""

    arguments: dict[str, Any]
    y: Any
    n_instances: int
    n_tokens: int
    labels: set[Any]

    @property
    def size(self) -> str:
        """In words."""
        return f"{self.n_instances:,} sequences, {self.n_tokens:,} positions"


def wants_arrays(path: str, name: str | None) -> bool:
    """Whether a file holds arrays; ``name`` is the format that was asked for, if any."""
    from crfx.io.formats import is_arrays

    return name == "npz" if name is not None else is_arrays(path)


def read_labelled_arrays(path: str) -> Labelled:
    """A file of arrays with labels, stacked as they are."""
    from crfx.io import arrays

    found = arrays.read(path, labelled=True)
    names = ("X", "lengths", "parents", "edge_types")
    labels = _plain(found.y, path)
    return Labelled(
        {name: getattr(found, name) for name in names},
        labels,
        len(found.lengths),
        len(labels),
        set(labels) - {None},
    )


def _plain(y: Any, path: str) -> list[Any]:
    """Labels of an array; NaN is one that is not known."""
    from crfx.inputs.label_codes import plain_labels

    if y.dtype.kind == "S":
        raise ValueError(f"{path}: y holds bytes: labels are text (dtype U) or numbers")
    return plain_labels(y)


def array_instances(path: str) -> tuple[dict[str, Any], list[list[Any]] | None]:
    """A file of arrays as lists with an entry per instance, and the labels, where it has any."""
    from crfx.io import arrays

    found = arrays.read(path)
    ends = found.lengths.cumsum().tolist()

    def parted(rows: Any) -> Any:
        places = zip([0, *ends], ends, strict=False)
        return None if rows is None else [rows[begin:end] for begin, end in places]

    given = {name: parted(getattr(found, name)) for name in ("X", "parents", "edge_types")}
    return given, None if found.y is None else parted(_plain(found.y, path))


@dataclass(frozen=True, eq=False)
class LabelledPart:
    """Some sequences of a file that is judged by: lists with an entry per instance.

    ``sentences`` are those of a text file, None where it holds arrays.
    """

    arguments: dict[str, Any]
    y: list[list[Any]]
    sentences: list[Sentence] | None = None
    reading: Reading | None = None

    def one(self, at: int) -> dict[str, Any]:
        """The arguments of `explain` for one sequence."""
        if self.reading is None or self.sentences is None:
            return arguments_of_one(self.arguments, at)
        return arguments_of_one(self.reading.arguments([self.sentences[at]]), 0)


def arguments_of_one(given: dict[str, Any], at: int) -> dict[str, Any]:
    """The arguments of `explain` for one of the instances that `predict` could be given."""
    rows = {"X_i" if name == "X" else name: own for name, own in given.items() if own is not None}
    return {name: next(islice(own, at, None)) for name, own in rows.items()}


def labelled_parts(model: Any, path: str) -> Iterator[LabelledPart]:
    """The sequences of a file with labels, as a model reads it, a few hundred at a time."""
    from crfx.cli.models import reading_of
    from crfx.cli.streaming import MOST_AT_ONCE, as_they_come
    from crfx.inputs.passed import Passed, read_input
    from crfx.io.lines import open_lines

    if wants_arrays(path, None):
        given, y = array_instances(path)
        if y is None:
            raise ValueError(f"{path} has no array y: the labels")
        read_input(Passed(**given), model.columns_)  # here, where instances have their numbers
        for begin in range(0, len(y), MOST_AT_ONCE):
            rows = slice(begin, begin + MOST_AT_ONCE)
            part = {name: None if own is None else own[rows] for name, own in given.items()}
            yield LabelledPart(part, y[rows])
        return
    reading = reading_of(model, path)
    with open_lines(path) as lines:
        for sentences in as_they_come(labelled_sentences(reading, lines), MOST_AT_ONCE):
            labels = [each.labels or [None] * len(each.tokens) for each in sentences]
            yield LabelledPart(reading.arguments(sentences), labels, sentences, reading)


def add_text_options(parser: argparse.ArgumentParser) -> None:
    """The options that say how a file of text is to be read."""
    parser.add_argument(
        "--columns",
        type=_names,
        metavar="NAME,NAME,...",
        help="of conll, the label's left out (word,c1,c2,...); of conllu, those to use (form)",
    )
    parser.add_argument(
        "--label",
        metavar="COLUMN",
        help="which has the label: of conll a number, 0 is the first, -1 the last (-1); of conllu "
        "upos, xpos, deprel or feats (upos)",
    )
    parser.add_argument(
        "--comments", metavar="SIGN", help="conll: lines that begin with it are skipped"
    )
    parser.add_argument(
        "--template",
        type=Path,
        metavar="FILE",
        help="which features the columns give (one that suits text)",
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def find_format(arguments: argparse.Namespace, lines: Lines, name: str | None) -> Format:
    """The format of a file: what the user says, and what its first lines tell."""
    from crfx.io import formats

    told = {option: getattr(arguments, option) for option in ("columns", "label", "comments")}
    first = lines.peek_block()
    if name is None:
        return formats.guess(first, lines.name, **told)
    return formats.by_name(name, first, lines.name, **told)


def read_template(path: Path | None, columns: tuple[str, ...]) -> Template:
    """The template of a file, or without one the template for text."""
    from crfx.features import Template
    from crfx.features.templates import text_template
    from crfx.io.lines import open_lines

    if path is None:
        return Template(text_template(columns), columns)
    with open_lines(path) as lines:
        text = "\n".join(line.text for line in lines)
    try:
        return Template(text, columns)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def new_reading(arguments: argparse.Namespace, lines: Lines) -> Reading:
    """How a file is to be read, by a model that is new."""
    from crfx.io.reading import Reading

    found = find_format(arguments, lines, arguments.format)
    if arguments.trees:
        found = _with_trees(found, lines.name)
    if found.columns is not None:
        return Reading(found, read_template(arguments.template, found.columns))
    if arguments.template is not None:
        raise ValueError(
            f"--template: {lines.name} is {found.name}, whose tokens have features already"
        )
    return Reading(found)


def _with_trees(found: Any, name: str) -> Any:
    from dataclasses import replace

    if found.name != "conllu":
        raise ValueError(f"--trees: {name} is {found.name}, which tells no trees; conllu does")
    return replace(found, trees=True)


def read_labelled(reading: Reading, lines: Lines) -> Labelled:
    """All sentences of a file that has labels."""
    found = list(labelled_sentences(reading, lines))
    if not found:
        raise ValueError(f"{lines.name} has no sentences")
    if not any(token for sentence in found for token in sentence.tokens):
        raise ValueError(f"{lines.name}, read as {reading.format.name}, has labels and no features")
    y = [sentence.labels or [None] * len(sentence.tokens) for sentence in found]
    known = {label for own in y for label in own if label is not None}
    if not known:
        raise ValueError(f"{lines.name} has no labels")
    n_tokens = sum(map(len, y))
    return Labelled(reading.arguments(found), y, len(found), n_tokens, known)


def labelled_sentences(reading: Reading, lines: Lines) -> Iterator[Sentence]:
    """Those with tokens; formats that can say so may leave some labels open."""
    must = not reading.format.has_unknown_labels
    return (each for each in reading.format.read(lines, labelled=must) if each.tokens)
