"""`crfx tag`: label the tokens of a file, sentence by sentence as they come."""

from __future__ import annotations

import argparse
import gzip
import io
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO

from crfx.cli.options import Log, add_example, add_quiet, at_least, check_output, probability
from crfx.cli.tagged_text import ABSTAINED, Tagger

SUMMARY = "label the tokens of a file, in a pipe too"
EXAMPLE = """  crfx tag ner.crfx test.conll -o tagged.conll
  cat test.conll | crfx tag ner.crfx -  |  less"""

_MOST_AT_ONCE = 512
"""Sentences that are labelled together, where so many are there already."""


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
        check_output(arguments.output, "the labels")
    model = load_labeller(arguments.model, arguments.jobs)
    begin, n_sentences, n_tokens = time.perf_counter(), 0, 0
    with _opened(arguments.output) as out:
        for texts, count in _tagged(model, arguments):
            for text in texts:
                out.write(text)
            out.flush()
            n_sentences, n_tokens = n_sentences + len(texts), n_tokens + count
    if arguments.output is not None:
        seconds = time.perf_counter() - begin
        log = Log(arguments.quiet)
        log(f"{n_sentences:,} sequences, {n_tokens:,} positions in {seconds:.1f} s")


@contextmanager
def _opened(path: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears whole; .gz is compressed."""
    from crfx.io.whole_file import whole_file

    if path is None:
        yield sys.stdout
        return
    with whole_file(path) as raw, ExitStack() as open_files:
        packed: Any = raw
        if path.suffix == ".gz":
            packed = open_files.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="\n")
        yield text
        text.detach()  # flushes, and leaves the file to who opened it


def _tagged(model: Any, arguments: argparse.Namespace) -> Iterator[tuple[list[str], int]]:
    """What is to be written of each sentence, and how many tokens they have, as they come."""
    from crfx.cli.models import reading_of, sentences_of
    from crfx.cli.sources import array_instances, wants_arrays
    from crfx.cli.streaming import as_they_come

    path, settings = arguments.file, (arguments.write, arguments.min_probability)
    if wants_arrays(path, None):
        given, _ = array_instances(path)
        yield Tagger(model, None, *settings).texts(given, ()), sum(X.shape[0] for X in given["X"])
        return
    reading = reading_of(model, path)
    tagger = Tagger(model, reading, *settings)
    comes = sentences_of(reading, path, labelled=False)
    for sentences in as_they_come(comes, _MOST_AT_ONCE):
        texts = tagger.texts(reading.arguments(sentences), sentences)
        yield texts, sum(len(sentence.tokens) for sentence in sentences)
