"""`crfx eval`: how well a model labels a file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crfx.cli.options import add_example, at_least

SUMMARY = "compare the labels of a model with those of a file"
EXAMPLE = """  crfx eval ner.crfx test.conll
  crfx eval ner.crfx test.conll --json"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_example(parser, SUMMARY, EXAMPLE)
    parser.add_argument("model", type=Path, metavar="M.crfx")
    parser.add_argument("file", metavar="FILE", help="with the right labels; - is stdin; .gz too")
    parser.add_argument("--jobs", type=at_least(1), metavar="N", help="threads (all cores)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, no tables")


def run(arguments: argparse.Namespace) -> None:
    """Label the file, compare, tell."""
    from crfx.cli.models import load_labeller
    from crfx.tag_report import TagReport

    model = load_labeller(arguments.model, arguments.jobs)
    known = model.classes_.tolist()
    if model.reading_ is not None:
        known = model.reading_.labels(known)
    report = TagReport(map(str, known))
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
    from crfx.cli.models import reading_of
    from crfx.cli.sources import array_instances, labelled_sentences, wants_arrays
    from crfx.cli.streaming import MOST_AT_ONCE, as_they_come
    from crfx.io.lines import open_lines

    if wants_arrays(path, None):
        given, y = array_instances(path)
        if y is None:
            raise ValueError(f"{path} has no array y: the labels")
        yield from _compared(model, given, y)
        return
    reading = reading_of(model, path)
    with open_lines(path) as lines:
        for sentences in as_they_come(labelled_sentences(reading, lines), MOST_AT_ONCE):
            labels = [each.labels or [None] * len(each.tokens) for each in sentences]
            yield from _compared(model, reading.arguments(sentences), labels)


def _compared(
    model: Any, given: dict[str, Any], y: list[list[Any]]
) -> Iterator[tuple[list[Any], list[Any]]]:
    """Labels that mark spans in another scheme than the model's (IOB1) are told in its own."""
    from crfx.batch import Batch
    from crfx.structures.constraints import scheme_of
    from crfx.structures.scheme_conversion import converted

    reading, scheme = model.reading_, scheme_of(model.constraints)
    as_bio = reading is not None and reading.as_bio
    for true, predicted in zip(y, model.predict(**given), strict=True):
        found = predicted.tolist()
        if as_bio:
            found = reading.labels(found)
        if scheme is not None:
            own = "bio" if as_bio else scheme
            true = converted(own, true, Batch.from_lengths([len(true)]))
        yield true, found
