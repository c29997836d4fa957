"""`crfx inspect`: a description of a model, its training and its parameters; explanations."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from crfx.cli.options import add_example, at_least

SUMMARY = "show labels, strongest transitions and features, and the training of a model"
EXAMPLE = """  crfx inspect ner.crfx --top 20
  crfx inspect ner.crfx --json
  crfx inspect ner.crfx --explain test.conll:2
  crfx inspect ner.crfx --explain test.conll:2:1 --json"""
_PLACE = re.compile(r"(.+?):([0-9]{1,15})(?::([0-9]{1,15}))?")


Place = tuple[str, int, int | None]
"""A file, the number of a sequence, and perhaps a position; both count from 1, as editors do."""


def place(text: str) -> Place:
    """Read FILE:NUMBER or FILE:NUMBER:POSITION, the value of --explain."""
    match = _PLACE.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text} is not FILE:NUMBER: name the file and which sequence of it, from 1 on"
        )
    path, number, position = match[1], int(match[2]), match[3] and int(match[3])
    if number == 0 or position == 0:
        raise argparse.ArgumentTypeError(f"{text}: sequences and positions count from 1")
    return path, number, position or None


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_example(parser, SUMMARY, EXAMPLE)
    parser.add_argument("model", type=Path, metavar="M.crfx")
    parser.add_argument(
        "--explain",
        type=place,
        metavar="FILE:N[:POSITION]",
        help="instead, why the N-th sequence (query) of a file is labelled (ordered) as it is, at "
        "all positions or one; both count from 1",
    )
    parser.add_argument(
        "--top", type=at_least(0), default=10, metavar="N", help="entries per list (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, no text")


def run(arguments: argparse.Namespace) -> None:
    """Print the description of a model or an explanation."""
    from crfx.estimators.registry import load

    model = load(arguments.model)
    if arguments.explain is not None:
        _explain(model, arguments)
        return
    from crfx.report.description import as_text, describe

    described = describe(model, arguments.top)
    n_bytes = arguments.model.stat().st_size
    if arguments.json:
        print(json.dumps({**described, "file": {"name": str(arguments.model), "bytes": n_bytes}}))
        return
    print(f"{arguments.model}, {n_bytes:,} bytes\n\n{as_text(described)}")


def _explain(model: Any, arguments: argparse.Namespace) -> None:
    from crfx.report.written_labels import WrittenLabels

    path, number, position = arguments.explain
    instance, length, tokens = _instance(model, path, number)
    if position is not None and position > length:
        raise ValueError(f"{path}:{number} has {length} positions: there is no number {position}")
    positions = None if position is None else [position - 1]
    explanation = model.explain(**instance, positions=positions)
    note = WrittenLabels(model).note
    if arguments.json:
        about = {"file": path, "number": number, "note": note, "tokens": tokens}
        print(json.dumps({**about, **explanation.to_plain()}))
        return
    if note:
        print(f"{note}\n")
    print(explanation.as_text(arguments.top, tokens, first=1))


def _instance(model: Any, path: str, number: int) -> tuple[dict[str, Any], int, list[str] | None]:
    """Return arguments of `explain`, the number of positions, and their words if there are any."""
    from crfx.cli import sources
    from crfx.io import formats, letor
    from crfx.report.written_labels import arguments_of_one

    if not hasattr(model, "classes_"):
        rankings = letor.read(path, n_features=model.n_features_in_)
        _check_count(path, number, len(rankings.group))
        end = int(rankings.group[:number].sum())
        length = int(rankings.group[number - 1])
        return {"X_q": rankings.X[end - length : end]}, length, None
    if formats.is_arrays(path):
        arrays, _ = sources.array_instances(path)
        _check_count(path, number, len(arrays["X"]))
        instance = arguments_of_one(arrays, number - 1)
        return instance, instance["X_i"].shape[0], None
    reading = sources.reading_of(model, path)
    count, sentence = 0, None
    for sentence in sources.sentences_of(reading, path):
        count += bool(sentence.tokens)  # lines without tokens are not counted
        if count == number:
            break
    _check_count(path, number, count)
    assert sentence is not None
    instance = arguments_of_one(reading.arguments([sentence]), 0)
    tokens = None
    if reading.format.columns is not None:
        tokens = [str(columns[0]) for columns in sentence.tokens]
    return instance, len(sentence.tokens), tokens


def _check_count(path: str, number: int, count: int) -> None:
    if count < number:
        raise ValueError(f"{path} has {count} sequences: there is no number {number}")
