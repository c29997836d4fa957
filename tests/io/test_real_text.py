"""Real files: guessed, read as the loaders of `crfx.datasets` do, and written back unchanged."""

import gzip
import os
from pathlib import Path

import pytest

from crfx.datasets import load_conll2003
from crfx.io.conll import Conll
from crfx.io.conllu import Conllu
from crfx.io.formats import format_of
from crfx.io.lines import open_lines
from reproduce.datasets import load_conll2000, load_ud_ewt


def entities():
    part = load_conll2003().testa
    return [[tuple(token) for token in s] for s in part.X], part.y


def chunks():
    part = load_conll2000().test
    return [[tuple(token) for token in s] for s in part.X], part.y


def tags():
    part = load_ud_ewt().dev
    return [[(word,) for word in s] for s in part.tokens], part.upos


@pytest.mark.parametrize(
    ("name", "load", "expected"),
    [
        ("conll2003/eng.testa.gz", entities, Conll(("word", "c1", "c2"), separator=" ")),
        ("conll2000/test.txt.gz", chunks, Conll(("word", "c1"), separator=" ")),
        ("ud-ewt/en_ewt-ud-dev.conllu.gz", tags, Conllu()),
    ],
)
def test_files_of_public_data(name, load, expected):
    path = Path(os.environ.get("CRFX_DATA", "")) / name
    if "CRFX_DATA" not in os.environ or not path.exists():
        pytest.skip(f"{name} is not in $CRFX_DATA")
    with open_lines(path) as lines:
        format = format_of(lines.peek_block(), path)
        sentences = list(format.read(lines))
    assert format == expected
    X, y = load()
    found = [s for s in sentences if s.tokens]
    assert [s.tokens for s in found] == X
    assert [s.labels for s in found] == [labels.tolist() for labels in y]
    written = "\n\n".join("\n".join(format.written(s, s.labels)) for s in sentences)
    assert written.rstrip("\n") == gzip.decompress(path.read_bytes()).decode().rstrip("\n")
