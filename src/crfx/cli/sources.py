"""Files that commands read, as arguments of estimators: text, arrays and rankings.

Sentences of text are read as they arrive: one by one from a slow source, many at once from a fast
one.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import argparse

    from crfx.features import Template
    from crfx.io.formats import Format
    from crfx.io.lines import Lines
    from crfx.io.reading import Reading
    from crfx.io.sentences import Sentence

TEXT_OPTIONS = ("template", "columns", "label", "comments", "trees")
"""Options for reading files of text."""
MOST_AT_ONCE = 512
"""Limit for the sentences that are labelled together."""
Item = TypeVar("Item")
_END = object()


@dataclass(frozen=True, eq=False)
class Labelled:
    """Arguments of `fit`: X, perhaps lengths, parents and edge types, and the labels."""

    arguments: dict[str, Any]
    y: Any
    n_instances: int
    n_tokens: int
    labels: set[Any]

    @property
    def size(self) -> str:
        """The size in words."""
        return f"{self.n_instances:,} sequences, {self.n_tokens:,} positions"


def read_labelled_arrays(path: str) -> Labelled:
    """Read a file of arrays with labels, as stacked arrays."""
    from crfx.io import arrays

    stacked = arrays.read(path, labelled=True)
    names = ("X", "lengths", "parents", "edge_types")
    arguments, y = {name: getattr(stacked, name) for name in names}, _plain(stacked.y, path)
    return Labelled(arguments, y, len(stacked.lengths), len(y), set(y) - {None})


def _plain(y: Any, path: str) -> list[Any]:
    """Return the labels of an array; NaN is an unknown label."""
    from crfx.inputs.label_codes import plain_labels

    if y.dtype.kind == "S":
        raise ValueError(f"{path}: y holds bytes: labels are text (dtype U) or numbers")
    return plain_labels(y)


def array_instances(path: str) -> tuple[dict[str, Any], list[list[Any]] | None]:
    """Read a file of arrays as lists with an entry per instance, and labels if there are any."""
    from crfx.io import arrays
    from crfx.report.written_labels import by_instance

    stacked = arrays.read(path)
    ends = [0, *stacked.lengths.cumsum().tolist()]
    names = ("X", "parents", "edge_types")
    arguments = {name: by_instance(getattr(stacked, name), ends) for name in names}
    return arguments, None if stacked.y is None else by_instance(_plain(stacked.y, path), ends)


@dataclass(frozen=True, eq=False)
class LabelledPart:
    """Some sequences of a labelled file, as lists with an entry per instance.

    ``sentences`` and ``reading`` are None for arrays.
    """

    arguments: dict[str, Any]
    y: list[list[Any]]
    sentences: list[Sentence] | None = None
    reading: Reading | None = None

    def one(self, at: int) -> dict[str, Any]:
        """Return the arguments of `explain` for one sequence."""
        from crfx.report.written_labels import arguments_of_one

        if self.reading is None or self.sentences is None:
            return arguments_of_one(self.arguments, at)
        return arguments_of_one(self.reading.arguments([self.sentences[at]]), 0)


def labelled_parts(model: Any, path: str) -> Iterator[LabelledPart]:
    """Yield the sequences of a labelled file for a model, a few hundred at a time."""
    from crfx.inputs.passed import Passed, read_input
    from crfx.io.formats import is_arrays
    from crfx.io.lines import open_lines

    if is_arrays(path):
        arrays, y = array_instances(path)
        if y is None:
            raise ValueError(f"{path} has no array y: the labels")
        read_input(Passed(**arrays), model.columns_)  # errors number instances of the whole file
        for begin in range(0, len(y), MOST_AT_ONCE):
            rows = slice(begin, begin + MOST_AT_ONCE)
            part = {name: None if each is None else each[rows] for name, each in arrays.items()}
            yield LabelledPart(part, y[rows])
        return
    reading = reading_of(model, path)
    with open_lines(path) as lines:
        for sentences in as_they_come(_labelled_sentences(reading, lines), MOST_AT_ONCE):
            yield LabelledPart(reading.arguments(sentences), _labels(sentences), sentences, reading)


def add_text_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options for reading files of text."""
    parser.add_argument(
        "--columns",
        type=_names,
        metavar="NAME,NAME,...",
        help="columns of conll without the label (word,c1,c2,...); of conllu, those to use (form)",
    )
    parser.add_argument(
        "--label",
        metavar="COLUMN",
        help="column of the label: in conll a number, 0 is the first, -1 the last (-1); in conllu "
        "upos, xpos, deprel or feats (upos)",
    )
    parser.add_argument(
        "--comments", metavar="SIGN", help="conll: lines that begin with it are skipped"
    )
    parser.add_argument(
        "--template",
        type=Path,
        metavar="FILE",
        help="features of the columns (a template for text)",
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def find_format(arguments: argparse.Namespace, lines: Lines, name: str | None) -> Format:
    """Return the format of a file, from the options and its first lines."""
    from crfx.io import formats

    options = {option: getattr(arguments, option) for option in ("columns", "label", "comments")}
    return formats.format_of(lines.peek_block(), lines.name, name=name, **options)


def read_template(path: Path | None, columns: tuple[str, ...]) -> Template:
    """Read a template from a file; without a path return the template for text."""
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
    """Return how a file is read for a new model."""
    from crfx.io.reading import Reading

    format: Any = find_format(arguments, lines, arguments.format)
    if arguments.trees:
        if format.name != "conllu":
            raise ValueError(
                f"--trees: {lines.name} is {format.name}, which tells no trees; conllu does"
            )
        format = replace(format, trees=True)
    if format.columns is not None:
        return Reading(format, read_template(arguments.template, format.columns))
    if arguments.template is not None:
        raise ValueError(
            f"--template: {lines.name} is {format.name}, whose tokens have features already"
        )
    return Reading(format)


def reading_of(model: Any, path: str) -> Reading:
    """Return how a model reads text: as in training, or as CRFsuite's files if it got dicts."""
    from crfx.io.crfsuite import Crfsuite
    from crfx.io.reading import Reading

    if model.reading_ is None and model.columns_.vocabulary is None:
        raise ValueError(f"the model was trained on arrays: {path} must be a file .npz")
    return Reading(Crfsuite()) if model.reading_ is None else model.reading_


def read_labelled(reading: Reading, lines: Lines) -> Labelled:
    """Read all sentences of a labelled file."""
    sentences = list(_labelled_sentences(reading, lines))
    if not sentences:
        raise ValueError(f"{lines.name} has no sentences")
    if not any(token for sentence in sentences for token in sentence.tokens):
        raise ValueError(f"{lines.name}, read as {reading.format.name}, has labels and no features")
    y = _labels(sentences)
    known = {label for labels in y for label in labels} - {None}
    if not known:
        raise ValueError(f"{lines.name} has no labels")
    return Labelled(reading.arguments(sentences), y, len(y), sum(map(len, y)), known)


def _labels(sentences: list[Sentence]) -> list[list[Any]]:
    return [sentence.labels or [None] * len(sentence.tokens) for sentence in sentences]


def _labelled_sentences(reading: Reading, lines: Lines) -> Iterator[Sentence]:
    """Yield sentences with tokens; in some formats labels may be unknown."""
    labelled = not reading.format.has_unknown_labels
    return (each for each in reading.format.read(lines, labelled=labelled) if each.tokens)


def sentences_of(reading: Reading, path: str) -> Iterator[Sentence]:
    """Yield the sentences of a file with or without labels."""
    from crfx.io.lines import open_lines

    with open_lines(path) as lines:
        yield from reading.format.read(lines, labelled=False)


def as_they_come(items: Iterable[Item], most: int) -> Iterator[list[Item]]:
    """Yield lists of the available items, at least one and at most ``most``.

    A thread reads at most ``most`` items ahead: memory stays bounded, and the first sentence is
    labelled before the second arrives.
    """
    available: queue.Queue[Any] = queue.Queue(maxsize=most)
    errors: list[BaseException] = []

    def fill() -> None:
        try:
            for item in items:
                available.put(item)
        except BaseException as error:  # raised below, where the items are taken
            errors.append(error)
        available.put(_END)

    threading.Thread(target=fill, daemon=True).start()
    while True:
        batch = [available.get()]
        while batch[-1] is not _END and len(batch) < most and not available.empty():
            batch.append(available.get())  # does not block: there is no other reader
        is_last = batch[-1] is _END
        if ready := batch[:-1] if is_last else batch:
            yield ready
        if is_last:
            if errors:
                raise errors[0]
            return
