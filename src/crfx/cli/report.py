"""`crfx report`: a page about a model and its labels for a file, to be read in a browser."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crfx.cli.options import add_example, add_quiet, at_least, check_output, print_status

if TYPE_CHECKING:
    from crfx.cli.sources import LabelledPart
    from crfx.report.page.sequences import Instance

SUMMARY = "write a page about a model: figures, mistakes, calibration, explanations"
EXAMPLE = """  crfx report ner.crfx test.conll -o page.html
  crfx report ranking.crfx test.txt -o page.html --worst 20

The page is one file of HTML and asks no network for anything. Needs pip install 'crfx[report]'."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_example(parser, SUMMARY, EXAMPLE)
    parser.add_argument("model", type=Path, metavar="M.crfx")
    parser.add_argument("file", metavar="FILE", help="with true labels; - is stdin; .gz too")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="PAGE.html", help="write the page there"
    )
    parser.add_argument(
        "--worst",
        type=at_least(0),
        default=5,
        metavar="N",
        help="number of sequences with most mistakes, and of uncertain ones (%(default)s)",
    )
    parser.add_argument("--title", help="title of the page (M.crfx on FILE)")
    parser.add_argument("--jobs", type=at_least(1), metavar="N", help="threads (all cores)")
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> None:
    """Load the model, evaluate it on the file, and write the page whole or not at all."""
    from crfx.cli.models import load_model
    from crfx.io.whole_file import whole_text
    from crfx.report.page.templating import check_library

    check_output(arguments.output, "the page", [arguments.model, arguments.file])
    check_library()
    model = load_model(arguments.model, arguments.jobs)
    page = _of_labelling if hasattr(model, "classes_") else _of_ranking
    text = page(model, arguments)
    with whole_text(arguments.output) as file:
        file.write(text)
    print_status(arguments, f"{arguments.output}: {len(text.encode()):,} bytes")


def _names(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the title of the page and the names of the files."""
    from crfx.report.page.labelling_page import page_names

    file = "standard input" if arguments.file == "-" else Path(arguments.file).name
    model = arguments.model.name
    return page_names(arguments.title or f"{model} on {file}", model, file)


def _of_ranking(model: Any, arguments: argparse.Namespace) -> str:
    from crfx.io import letor
    from crfx.report.page.ranking_page import ranking_page

    if arguments.file == "-":
        raise ValueError("documents are not read from standard input: name a file")
    part = letor.read(arguments.file, n_features=model.n_features_in_, comments=True)
    return ranking_page(model, part, arguments.worst, _names(arguments))


def _of_labelling(model: Any, arguments: argparse.Namespace) -> str:
    from crfx.cli.sources import labelled_parts
    from crfx.report.page.labelling_page import labelling_page
    from crfx.report.page.sequences import Judgement
    from crfx.report.written_labels import judged_instances

    judgement = Judgement(model, arguments.worst)
    for part in labelled_parts(model, arguments.file):
        judged = judged_instances(model, part.arguments, part.y, judgement.written)
        for at, sequence in enumerate(judged):
            judgement.add(sequence, partial(_instance, part, at))
    if not judgement.report.n_tokens:
        raise ValueError(f"{arguments.file} has no token with a label: there is nothing to report")
    return labelling_page(model, judgement, _names(arguments))


def _instance(part: LabelledPart, at: int) -> Instance:
    if part.sentences is None:
        return part.one(at), None, ""
    sentence = part.sentences[at]
    return part.one(at), list(map(_word, sentence.tokens)), f"line {sentence.number}"


def _word(token: Any) -> str:
    """Return the first column of a token, or its first feature."""
    if isinstance(token, str):
        return token
    first = next(iter(token), "")
    value = token[first] if isinstance(token, dict) and token else None
    return f"{first}:{value}" if isinstance(value, str) else str(first)
