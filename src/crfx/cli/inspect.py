"""`crfx inspect`: what a model is, what it has learned and how."""

from __future__ import annotations

import argparse
from pathlib import Path

from crfx.cli.options import add_example, at_least

SUMMARY = "show labels, strongest transitions and features, and the training of a model"
EXAMPLE = """  crfx inspect ner.crfx --top 20
  crfx inspect ner.crfx --json"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_example(parser, SUMMARY, EXAMPLE)
    parser.add_argument("model", type=Path, metavar="M.crfx")
    parser.add_argument(
        "--top", type=at_least(0), default=10, metavar="N", help="entries a list (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, no text")


def run(arguments: argparse.Namespace) -> None:
    """Load, describe, print."""
    import json

    from crfx.estimators.loading import load
    from crfx.report.description import as_text, describe

    found = describe(load(arguments.model), arguments.top)
    found["file"] = {"name": str(arguments.model), "bytes": arguments.model.stat().st_size}
    if arguments.json:
        print(json.dumps(found))
        return
    print(f"{arguments.model}, {found['file']['bytes']:,} bytes\n\n{as_text(found)}")
