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


@pytest.mark.parametrize(
    ("name", "load", "labels", "expected"),
    [
        (
            "conll2003/eng.testa.gz",
            lambda: load_conll2003().testa,
            "y",
            Conll(("word", "c1", "c2"), separator=" "),
        ),
        (
            "conll2000/test.txt.gz",
            lambda: load_conll2000().test,
            "y",
            Conll(("word", "c1"), separator=" "),
        ),
        ("ud-ewt/en_ewt-ud-dev.conllu.gz", lambda: load_ud_ewt().dev, "upos", Conllu()),
    ],
)
def test_files_of_public_data_are_read_and_written_back(name, load, labels, expected):
    path = Path(os.environ.get("CRFX_DATA", "")) / name
    if "CRFX_DATA" not in os.environ or not path.exists():
        pytest.skip(f"{name} is not in $CRFX_DATA")
    with open_lines(path) as lines:
        format = format_of(lines.peek_block(), path)
        sentences = list(format.read(lines))
    assert format == expected
    part = load()
    if labels == "y":
        X = [[tuple(token) for token in sentence] for sentence in part.X]
    else:
        X = [[(word,) for word in sentence] for sentence in part.tokens]
    filled = [s for s in sentences if s.tokens]
    assert [s.tokens for s in filled] == X
    assert [s.labels for s in filled] == [label.tolist() for label in getattr(part, labels)]
    written = "\n\n".join("\n".join(format.written(s, s.labels)) for s in sentences)
    assert written.rstrip("\n") == gzip.decompress(path.read_bytes()).decode().rstrip("\n")
