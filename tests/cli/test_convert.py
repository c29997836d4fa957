"""`crfx convert` as a user meets it: every pair of formats, and options."""

import gzip

import numpy as np
import pytest

from crfx import LinearCRF
from crfx.cli import main
from crfx.features import HashedVocabulary, Template
from crfx.features.templates import text_template
from crfx.io import arrays
from crfx.io.crfsuite import Crfsuite
from crfx.io.lines import open_lines

CONLL = "-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\nPeter: NNP B-PER\n"
TOKENS = [[("EU", "NNP"), ("rejects", "VBZ")], [("Peter:", "NNP")]]
CONLLU = (
    "# text = They didn't\n1\tThey\tthey\tPRON\tPRP\t_\t2\tnsubj\t_\t_\n2-3\tdidn't"
    + 8 * "\t_"
    + "\n"
    "2\tdid\tdo\tAUX\tVBD\t_\t0\troot\t_\t_\n3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_\n"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text(CONLL)
    (tmp_path / "b.txt").write_text(CONLLU)
    (tmp_path / "t.txt").write_text("word[0]\nc1[-1..1]\n")
    return tmp_path


def convert(*arguments):
    return main(["convert", *arguments])


def read_crfsuite(path):
    with open_lines(path) as lines:
        return list(Crfsuite().read(lines))


@pytest.mark.parametrize("name", ["o.crfsuite", "o.crfsuite.gz"])
def test_conll_to_crfsuite(folder, name):
    assert convert("a.txt", "-o", name) == 0
    converted = read_crfsuite(name)
    assert [s.labels for s in converted] == [["B-ORG", "O"], ["B-PER"]]
    template = Template(text_template(["word", "c1"]), ["word", "c1"])
    assert [s.tokens for s in converted] == [template.features(s) for s in TOKENS]
    assert (folder / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    assert convert("a.txt", "-o", "o.x", "--to", "crfsuite", "--template", "t.txt") == 0
    first, _ = read_crfsuite("o.x")
    assert first.tokens[0] == ["word[0]=EU", "c1[-1]=<start>", "c1[0]=NNP", "c1[1]=VBZ"]


def test_conllu_to_conll(folder):
    assert convert("b.txt", "-o", "o.conll", "--label", "xpos", "--columns", "form,upos") == 0
    assert (folder / "o.conll").read_text() == "They\tPRON\tPRP\ndid\tAUX\tVBD\nn't\tPART\tRB\n\n"


def test_conll_to_conll_puts_the_label_last(folder):
    (folder / "c.txt").write_text("% x\nX a b\nY c d\n\n% the end\n")  # belongs to no sentence
    options = ["--label", "0", "--comments", "%", "--columns", "word,pos"]
    assert convert("c.txt", "-o", "o.conll", *options) == 0
    assert (folder / "o.conll").read_text() == "a\tb\tX\nc\td\tY\n\n"


@pytest.mark.parametrize("hashed", [None, 64])
def test_conll_to_npz(folder, hashed):
    options = [] if hashed is None else ["--hashed", str(hashed)]
    assert convert("a.txt", "-o", "o.npz", "--template", "t.txt", *options) == 0
    converted = arrays.read("o.npz", labelled=True)
    template = Template("word[0]\nc1[-1..1]\n", ["word", "c1"])
    X, lengths = template.encode(TOKENS, HashedVocabulary(hashed or 1 << 20))
    assert converted.X.shape == (3, hashed or 1 << 20)
    assert abs(converted.X - X).nnz == 0
    assert converted.X.has_canonical_format  # features that share a column are added up
    assert converted.lengths.tolist() == lengths == [2, 1]
    assert converted.y.tolist() == ["B-ORG", "O", "B-PER"]
    crf = LinearCRF().fit(converted.X, converted.y, lengths=converted.lengths)
    assert crf.score(converted.X, converted.y, lengths=converted.lengths) == 1


def test_crfsuite_to_npz_gives_the_same_as_from_columns(folder):
    options = ["--hashed", "4096"]
    assert convert("a.txt", "-o", "o.crfsuite") == 0
    assert convert("a.txt", "-o", "1.npz", *options) == 0
    assert convert("o.crfsuite", "-o", "2.npz", *options) == 0
    one, two = arrays.read("1.npz"), arrays.read("2.npz")
    assert abs(one.X - two.X).nnz == 0
    np.testing.assert_array_equal(one.y, two.y)


def test_packed_files_and_standard_input(folder, monkeypatch):
    (folder / "a.gz").write_bytes(gzip.compress(CONLL.encode()))
    assert convert("a.gz", "-o", "1.conll") == 0
    with open("a.txt") as file:
        monkeypatch.setattr("sys.stdin", file)
        assert convert("-", "-o", "2.conll", "--from", "conll") == 0
    assert (folder / "1.conll").read_text() == (folder / "2.conll").read_text()
    assert (folder / "1.conll").read_text().startswith("EU\tNNP\tB-ORG\n")
