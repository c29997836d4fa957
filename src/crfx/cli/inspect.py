"""`crfx inspect`: what a model is, what it has learned and how; why it labels as it does."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from crfx.cli.explaining import asked
from crfx.cli.options import add_example, at_least

SUMMARY = "show labels, strongest transitions and features, and the training of a model"
EXAMPLE = """  crfx inspect ner.crfx --top 20
  crfx inspect ner.crfx --json
  crfx inspect ner.crfx --explain test.conll:2
  crfx inspect ner.crfx --explain test.conll:2:1 --json"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_example(parser, SUMMARY, EXAMPLE)
    parser.add_argument("model", type=Path, metavar="M.crfx")
    parser.add_argument(
        "--explain",
        type=asked,
        metavar="FILE:N[:POSITION]",
        help="instead, why the N-th sequence (query) of a file is labelled (ordered) as it is, at "
        "all positions or one; both count from 1",
    )
    parser.add_argument(
        "--top", type=at_least(0), default=10, metavar="N", help="entries a list (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, no text")


def run(arguments: argparse.Namespace) -> None:
    """Load, describe or explain, print."""
    from crfx.estimators.registry import load

    model = load(arguments.model)
    if arguments.explain is not None:
        _explain(model, arguments)
        return
    from crfx.report.description import as_text, describe

    found = describe(model, arguments.top)
    found["file"] = {"name": str(arguments.model), "bytes": arguments.model.stat().st_size}
    if arguments.json:
        print(json.dumps(found))
        return
    print(f"{arguments.model}, {found['file']['bytes']:,} bytes\n\n{as_text(found)}")


def _explain(model: Any, arguments: argparse.Namespace) -> None:
    from crfx.cli.explaining import explained
    from crfx.report.written_labels import WrittenLabels

    found, tokens = explained(model, arguments.explain)
    note = WrittenLabels(model).note
    if arguments.json:
        told = {"file": arguments.explain.path, "number": arguments.explain.number}
        print(json.dumps({**told, "note": note, "tokens": tokens, **found.to_plain()}))
        return
    if note:
        print(f"{note}\n")
    print(found.as_text(arguments.top, tokens, first=1))
