"""`crfx tag`: label the tokens of a file, sentence by sentence as they come."""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from crfx.cli.options import (
    add_example,
    add_quiet,
    at_least,
    check_output,
    print_status,
    probability,
)

if TYPE_CHECKING:
    from crfx.io.reading import Reading
    from crfx.io.sentences import Sentence
    from crfx.report.written_labels import WrittenLabels

SUMMARY = "label the tokens of a file, in a pipe too"
EXAMPLE = """  crfx tag ner.crfx test.conll -o tagged.conll
  cat test.conll | crfx tag ner.crfx -  |  less"""
ABSTAINED = "_"
"""Written instead of labels below the minimum probability."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_example(parser, SUMMARY, EXAMPLE)
    parser.add_argument("model", type=Path, metavar="M.crfx", help="from crfx train")
    parser.add_argument("file", metavar="FILE", help="with or without labels; - is stdin; .gz too")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="(standard output)")
    parser.add_argument(
        "--write",
        choices=("file", "labels", "jsonl"),
        default="file",
        help="the file with labels in it, labels alone, or an object per sentence with the "
        "probabilities of labels, of the whole and of spans (%(default)s)",
    )
    parser.add_argument(
        "--min-probability",
        type=probability,
        metavar="P",
        help=f"write {ABSTAINED} for labels that are less probable",
    )
    parser.add_argument("--jobs", type=at_least(1), metavar="N", help="threads (all cores)")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> None:
    """Label sentences as they arrive, in batches of those that are available."""
    from crfx.cli.models import load_labeller

    if arguments.output is not None:
        check_output(arguments.output, "the labels", [arguments.model, arguments.file])
    model = load_labeller(arguments.model, arguments.jobs)
    begin, n_sentences, n_tokens = time.perf_counter(), 0, 0
    with opened_output(arguments.output) as out:
        for texts, n_new_sentences, n_new_tokens in _tagged(model, arguments):
            for text in texts:
                out.write(text)
            out.flush()
            n_sentences, n_tokens = n_sentences + n_new_sentences, n_tokens + n_new_tokens
    if arguments.output is not None:
        seconds = time.perf_counter() - begin
        counts = f"{n_sentences:,} sequences, {n_tokens:,} positions"
        print_status(arguments, f"{counts} in {seconds:.1f} s")


@contextmanager
def opened_output(path: Path | None) -> Iterator[TextIO]:
    """Open a file, written whole or not at all, or standard output; text is UTF-8 in both."""
    from crfx.io.whole_file import whole_text

    if path is not None:
        with whole_text(path) as file:
            yield file
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    yield sys.stdout


def _tagged(model: Any, arguments: argparse.Namespace) -> Iterator[tuple[list[str], int, int]]:
    """Yield texts to write, with the numbers of their sentences and tokens, as they arrive."""
    from crfx.cli import sources
    from crfx.io.formats import is_arrays

    path = arguments.file
    reading = None if is_arrays(path) else sources.reading_of(model, path)
    tagger = Tagger(model, reading, arguments.write, arguments.min_probability)
    tagger.check()
    if reading is None:
        instances, _ = sources.array_instances(path)
        X = instances["X"]
        yield tagger.texts(instances, ()), len(X), sum(x.shape[0] for x in X)
        return
    all_sentences = sources.sentences_of(reading, path)
    for sentences in sources.as_they_come(all_sentences, sources.MOST_AT_ONCE):
        filled = [sentence for sentence in sentences if sentence.tokens]
        # Lines without tokens, after the last sentence, are kept when the file is written.
        written = filled if arguments.write != "file" else sentences
        texts = tagger.texts(reading.arguments(written), written) if written else []
        yield texts, len(filled), sum(len(sentence.tokens) for sentence in filled)


@dataclass(frozen=True, eq=False)
class Tagger:
    """Labels of a model as text: in the format of the file, alone, or as objects of JSON.

    ``reading`` is how files are read for the model, None for arrays.  ``form`` is "file", "labels"
    or "jsonl".  Labels less probable than ``least`` are not written.
    """

    model: Any
    reading: Reading | None
    form: str
    least: float | None

    def texts(self, arguments: dict[str, Any], sentences: Sequence[Sentence]) -> list[str]:
        """Return one text per sentence; ``arguments`` are those of `predict`."""
        if self.form == "jsonl":
            objects = self._objects(arguments, sentences)
            return [f"{json.dumps(each, ensure_ascii=False)}\n" for each in objects]
        texts = [
            [ABSTAINED if label is None else str(label) for label in labels]
            for labels in self._labels(arguments)
        ]
        if self.form == "labels" or self.reading is None:
            return [_lines(labels) for labels in texts]
        written = self.reading.format.written
        return [
            # Lines without a token include their empty lines.
            _lines(written(sentence, labels), ends=bool(sentence.tokens))
            for sentence, labels in zip(sentences, texts, strict=True)
        ]

    def check(self) -> None:
        """Raise ValueError if labels that are not written would look like others."""
        clash = ABSTAINED in map(str, self.model.classes_)
        if self.least is not None and clash and self.form != "jsonl":
            raise ValueError(
                f"--min-probability: {ABSTAINED} is a label of the model, too: use --write jsonl"
            )

    def _labels(self, arguments: dict[str, Any]) -> list[list[Any]]:
        """Return labels as they are written, None for improbable ones."""
        if self.least is not None:
            return [self._probable(labels, p) for labels, _, p in self._instances(arguments)]
        return [self._written.as_written(labels) for labels in self.model.predict(**arguments)]

    def _instances(self, arguments: dict[str, Any]) -> Iterator[tuple[list[Any], Any, Any]]:
        from crfx.report.written_labels import predicted_instances

        return predicted_instances(self.model, arguments, self._written)

    def _probable(self, labels: list[Any], probabilities: Any) -> list[Any]:
        least = self.least or 0.0
        pairs = zip(labels, probabilities, strict=True)
        return [label if p >= least else None for label, p in pairs]

    @cached_property
    def _written(self) -> WrittenLabels:
        from crfx.report.written_labels import WrittenLabels

        return WrittenLabels(self.model)

    def _objects(
        self, arguments: dict[str, Any], sentences: Sequence[Sentence]
    ) -> list[dict[str, Any]]:
        from crfx.structures.label_schemes import scheme_of_labels

        whole = self.model.predict_confidence(**arguments)
        objects: list[dict[str, Any]] = [
            {
                "labels": self._probable(labels, p),
                "probabilities": p.tolist(),
                "probability": each.labelling,
            }
            for (labels, _, p), each in zip(self._instances(arguments), whole, strict=True)
        ]
        if self.reading is not None:
            for each, sentence in zip(objects, sentences, strict=True):
                each["tokens"] = sentence.tokens
        if scheme_of_labels(self.model.classes_.tolist()) is not None:
            for each, spans in zip(objects, self.model.predict_spans(**arguments), strict=True):
                each["spans"] = [span._asdict() for span in spans]
        return objects


def _lines(texts: Sequence[str], *, ends: bool = True) -> str:
    """Return the lines of a sentence and the empty line after it."""
    return "".join(f"{text}\n" for text in texts) + ("\n" if ends else "")
