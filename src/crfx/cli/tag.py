"""`crfx tag`: label the tokens of a file, sentence by sentence as they come."""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from crfx.cli.options import Log, add_example, add_quiet, at_least, check_output, probability
from crfx.cli.tagged_text import ABSTAINED, Tagger

SUMMARY = "label the tokens of a file, in a pipe too"
EXAMPLE = """  crfx tag ner.crfx test.conll -o tagged.conll
  cat test.conll | crfx tag ner.crfx -  |  less"""


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
        help="the file with labels in it, labels alone, or an object a sentence with the "
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
    """Label sentences as they come; those that are there together, together."""
    from crfx.cli.models import load_labeller

    if arguments.output is not None:
        check_output(arguments.output, "the labels", [arguments.model, arguments.file])
    model = load_labeller(arguments.model, arguments.jobs)
    begin, n_sentences, n_tokens = time.perf_counter(), 0, 0
    with _opened(arguments.output) as out:
        for texts, *counts in _tagged(model, arguments):
            for text in texts:
                out.write(text)
            out.flush()
            n_sentences, n_tokens = n_sentences + counts[0], n_tokens + counts[1]
    if arguments.output is not None:
        seconds = time.perf_counter() - begin
        log = Log(arguments.quiet)
        log(f"{n_sentences:,} sequences, {n_tokens:,} positions in {seconds:.1f} s")


@contextmanager
def _opened(path: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears whole; text is UTF-8, whatever the terminal has."""
    from crfx.io.whole_file import whole_text

    if path is not None:
        with whole_text(path) as file:
            yield file
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    yield sys.stdout


def _tagged(model: Any, arguments: argparse.Namespace) -> Iterator[tuple[list[str], int, int]]:
    """What is to be written, how many sentences it has and how many tokens, as they come."""
    from crfx.cli.models import reading_of, sentences_of
    from crfx.cli.sources import array_instances, wants_arrays
    from crfx.cli.streaming import MOST_AT_ONCE, as_they_come

    path, settings = arguments.file, (arguments.write, arguments.min_probability)
    if wants_arrays(path, None):
        given, _ = array_instances(path)
        tagger = Tagger(model, None, *settings)
        tagger.check()
        X = given["X"]
        yield tagger.texts(given, ()), len(X), sum(own.shape[0] for own in X)
        return
    reading = reading_of(model, path)
    tagger = Tagger(model, reading, *settings)
    tagger.check()
    comes = sentences_of(reading, path, labelled=False)
    for sentences in as_they_come(comes, MOST_AT_ONCE):
        filled = [sentence for sentence in sentences if sentence.tokens]
        # Lines without tokens, after the last sentence, are the file's own.
        told = filled if arguments.write != "file" else sentences
        n_tokens = sum(len(sentence.tokens) for sentence in filled)
        yield tagger.texts(reading.arguments(told), told) if told else [], len(filled), n_tokens
