"""`crfx eval`: the accuracy of a model on a labelled file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from crfx.cli.options import add_example, at_least

SUMMARY = "compare the labels of a model with those of a file"
EXAMPLE = """  crfx eval ner.crfx test.conll
  crfx eval ner.crfx test.conll --json"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_example(parser, SUMMARY, EXAMPLE)
    parser.add_argument("model", type=Path, metavar="M.crfx")
    parser.add_argument("file", metavar="FILE", help="with true labels; - is stdin; .gz too")
    parser.add_argument("--jobs", type=at_least(1), metavar="N", help="threads (all cores)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, no tables")


def run(arguments: argparse.Namespace) -> None:
    """Label the file and print a comparison with its labels."""
    from crfx.cli.models import load_labeller
    from crfx.cli.sources import labelled_parts
    from crfx.report.written_labels import WrittenLabels
    from crfx.tag_report import TagReport

    model = load_labeller(arguments.model, arguments.jobs)
    written = WrittenLabels(model)
    report = TagReport(map(str, written.names))
    for part in labelled_parts(model, arguments.file):
        for true, predicted in zip(part.y, model.predict(**part.arguments), strict=True):
            report.add(written.true(true), written.as_written(predicted))
    if not report.n_tokens:
        raise ValueError(f"{arguments.file} has no token with a label: there is nothing to compare")
    print(json.dumps(report.to_plain()) if arguments.json else report.to_text())
