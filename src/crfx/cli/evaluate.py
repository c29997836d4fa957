"""`crfx eval`: how well a model labels a file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crfx.cli.options import add_example, add_quiet, at_least

SUMMARY = "compare the labels of a model with those of a file"
EXAMPLE = """  crfx eval ner.crfx test.conll
  crfx eval ner.crfx test.conll --json"""

_MOST_AT_ONCE = 512


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_example(parser, SUMMARY, EXAMPLE)
    parser.add_argument("model", type=Path, metavar="M.crfx")
    parser.add_argument("file", metavar="FILE", help="with the right labels; - is stdin; .gz too")
    parser.add_argument("--jobs", type=at_least(1), metavar="N", help="threads (all cores)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, no tables")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> None:
    """Label the file, compare, tell."""
    from crfx.cli.models import load_labeller
    from crfx.tag_report import TagReport

    model = load_labeller(arguments.model, arguments.jobs)
    report = TagReport(map(str, model.classes_))
    for true, predicted in _pairs(model, arguments.file):
        report.add(true, predicted)
    if not report.n_tokens:
        raise ValueError(f"{arguments.file} has no token with a label: there is nothing to compare")
    if arguments.json:
        print(json.dumps(report.to_plain()))
        return
    print(report.to_text())


def _pairs(model: Any, path: str) -> Iterator[tuple[list[Any], list[Any]]]:
    """(true labels, predicted labels) of every sequence."""
    from crfx.cli.models import reading_of, sentences_of
    from crfx.cli.sources import array_instances, wants_arrays
    from crfx.cli.streaming import as_they_come

    if wants_arrays(path, None):
        given, y = array_instances(path)
        if y is None:
            raise ValueError(f"{path} has no array y: the labels")
        yield from _compared(model, given, y)
        return
    reading = reading_of(model, path)
    for sentences in as_they_come(sentences_of(reading, path, labelled=True), _MOST_AT_ONCE):
        labels = [sentence.labels or [] for sentence in sentences]
        yield from _compared(model, reading.arguments(sentences), labels)


def _compared(
    model: Any, given: dict[str, Any], y: list[list[Any]]
) -> Iterator[tuple[list[Any], list[Any]]]:
    """Labels that mark spans in another scheme than the model's (IOB1) are told in its own."""
    from crfx.batch import Batch
    from crfx.structures.constraints import scheme_of
    from crfx.structures.label_schemes import converted

    scheme, predicted = scheme_of(model.constraints), model.predict(**given)
    for true, found in zip(y, predicted, strict=True):
        if scheme is not None:
            true = converted(scheme, true, Batch.from_lengths([len(true)]))
        yield true, found.tolist()
