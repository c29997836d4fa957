"""`crfx convert`: conversion of labelled sequences from one format to another.

Columns (conll, conllu) become features (crfsuite, npz) by a template.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crfx.cli.options import add_example, check_output
from crfx.cli.sources import add_text_options, find_format, read_template

if TYPE_CHECKING:
    from crfx.features import Template
    from crfx.io.formats import Format
    from crfx.io.sentences import Sentence

SUMMARY = "convert files of labelled sequences, and models of CRFsuite"
EXAMPLE = """  crfx convert eng.train -o train.crfsuite.gz
  crfx convert en-ud-dev.conllu -o dev.txt --to conll --label xpos
  crfx convert model.crfsuite -o model.crfx

Columns become features (crfsuite, npz) by a template. In npz features are numbered by a hash, so
that files of one kind fit together. A model of CRFsuite becomes a LinearCRF."""
_FROM = ("conll", "crfsuite", "conllu")
_TO = ("conll", "crfsuite", "npz", "crfx")
_ENDINGS = {".conll": "conll", ".crfsuite": "crfsuite", ".npz": "npz", ".crfx": "crfx"}
_HASHED = 1 << 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_example(parser, SUMMARY, EXAMPLE)
    parser.add_argument("file", metavar="IN", help="file to convert, .gz too; - is standard input")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="OUT",
        help="output; .gz is compressed",
    )
    parser.add_argument(
        "--from", dest="source", choices=_FROM, help="format of IN (guessed from the file)"
    )
    parser.add_argument(
        "--to", dest="target", choices=_TO, help="format of OUT (by the ending of its name)"
    )
    add_text_options(parser)
    parser.add_argument(
        "--hashed", type=int, metavar="N", help=f"columns of X in npz ({_HASHED}, 2 to the 20th)"
    )


def run(arguments: argparse.Namespace) -> None:
    """Read, convert and write; OUT is written whole or not at all."""
    from crfx.io.lines import open_lines
    from crfx.io.whole_file import whole_text

    check_output(arguments.output, "OUT", [arguments.file, arguments.template])
    target = arguments.target or _target(arguments.output)
    if arguments.output.suffix == ".gz" and target in ("npz", "crfx"):
        raise ValueError(f"{arguments.output}: {target} is compressed already, leave out .gz")
    if target == "crfx":
        _convert_model(arguments)
        return
    with open_lines(arguments.file) as lines:
        format = find_format(arguments, lines, arguments.source)
        _check_options(arguments, format, target)
        sentences = (sentence for sentence in format.read(lines) if sentence.tokens)
        template = None
        if format.columns is not None and target != "conll":
            template = read_template(arguments.template, format.columns)
        if target == "npz":
            _write_arrays(arguments, template, sentences)
            return
        texts = _conll_lines(sentences)
        if template is not None:
            texts = _crfsuite_lines(template, sentences)
        with whole_text(arguments.output) as file:
            file.writelines(texts)


def _convert_model(arguments: argparse.Namespace) -> None:
    from crfx.estimators.crfsuite_models import from_crfsuite

    for name in ("source", "columns", "label", "comments", "template", "hashed"):
        if getattr(arguments, name) is not None:
            option = {"source": "from"}.get(name, name)
            raise ValueError(f"--{option} is for files of text, but OUT is a model")
    from_crfsuite(arguments.file).save(arguments.output)


def _target(path: Path) -> str:
    name = path.with_suffix("") if path.suffix == ".gz" else path
    if name.suffix not in _ENDINGS:
        endings = ", ".join(_ENDINGS)
        raise ValueError(f"{path} has none of the endings {endings}: pass --to, the format of it")
    return _ENDINGS[name.suffix]


def _check_options(arguments: argparse.Namespace, format: Format, target: str) -> None:
    if format.columns is None and target != "npz":
        raise ValueError(f"{arguments.file} has features, not columns: it can become npz only")
    if arguments.template is not None and (format.columns is None or target == "conll"):
        raise ValueError("--template turns columns into features, and there is nothing to turn")
    if arguments.hashed is not None and target != "npz":
        raise ValueError("--hashed is the number of columns in npz, and OUT is not one")
    if arguments.hashed is not None and not 1 <= arguments.hashed < 1 << 31:
        raise ValueError(f"--hashed is {arguments.hashed}: it must be from 1 to {(1 << 31) - 1}")


def _conll_lines(sentences: Iterable[Sentence]) -> Iterator[str]:
    """Yield lines of columns, separated by tabs, with the label last."""
    for sentence in sentences:
        for token, label in zip(sentence.tokens, sentence.labels or (), strict=True):
            yield "\t".join([*token, str(label)]) + "\n"
        yield "\n"


def _crfsuite_lines(template: Template, sentences: Iterable[Sentence]) -> Iterator[str]:
    """Yield the label and the features of every token."""
    from crfx.io.crfsuite import line_of

    for sentence in sentences:
        features = template.features(sentence.tokens)
        for names, label in zip(features, sentence.labels or (), strict=True):
            yield line_of(str(label), names) + "\n"
        yield "\n"


def _write_arrays(
    arguments: argparse.Namespace, template: Template | None, sentences: Iterable[Sentence]
) -> None:
    """Write X in CSR, of all sentences together: memory grows with the file."""
    import numpy as np

    from crfx.features import HashedVocabulary
    from crfx.io import arrays

    labels: list[str | None] = []

    def tokens() -> Iterator[list[Any]]:
        for sentence in sentences:
            labels.extend(sentence.labels or ())
            yield sentence.tokens

    vocabulary = HashedVocabulary(_HASHED if arguments.hashed is None else arguments.hashed)
    if template is None:
        X, lengths = vocabulary.encode(tokens())
    else:
        X, lengths = template.encode(tokens(), vocabulary)
    X.sum_duplicates()
    arrays.write(arguments.output, arrays.Arrays(X, np.array(lengths, np.int64), np.array(labels)))
