"""`crfx convert` as a user meets it: every pair of formats, options, mistakes."""

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
    found = read_crfsuite(name)
    assert [s.labels for s in found] == [["B-ORG", "O"], ["B-PER"]]
    template = Template(text_template(["word", "c1"]), ["word", "c1"])
    assert [s.tokens for s in found] == [template.features(s) for s in TOKENS]
    assert (folder / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")


def test_a_template_of_the_users_own(folder):
    assert convert("a.txt", "-o", "o.x", "--to", "crfsuite", "--template", "t.txt") == 0
    first, _ = read_crfsuite("o.x")
    assert first.tokens[0] == ["word[0]=EU", "c1[-1]=<start>", "c1[0]=NNP", "c1[1]=VBZ"]


def test_conllu_to_conll(folder):
    assert convert("b.txt", "-o", "o.conll", "--label", "xpos", "--columns", "form,upos") == 0
    assert (folder / "o.conll").read_text() == "They\tPRON\tPRP\ndid\tAUX\tVBD\nn't\tPART\tRB\n\n"


def test_conll_to_conll_puts_the_label_last(folder):
    (folder / "c.txt").write_text("% x\nX a b\nY c d\n\n% the end\n")  # belongs to no sentence
    told = ["--label", "0", "--comments", "%", "--columns", "word,pos"]
    assert convert("c.txt", "-o", "o.conll", *told) == 0
    assert (folder / "o.conll").read_text() == "a\tb\tX\nc\td\tY\n\n"


@pytest.mark.parametrize("hashed", [None, 64])
def test_conll_to_npz(folder, hashed):
    told = [] if hashed is None else ["--hashed", str(hashed)]
    assert convert("a.txt", "-o", "o.npz", "--template", "t.txt", *told) == 0
    found = arrays.read("o.npz", labelled=True)
    template = Template("word[0]\nc1[-1..1]\n", ["word", "c1"])
    X, lengths = template.encode(TOKENS, HashedVocabulary(hashed or 1 << 20))
    assert found.X.shape == (3, hashed or 1 << 20)
    assert abs(found.X - X).nnz == 0
    assert found.X.has_canonical_format  # features that share a column are added up
    assert found.lengths.tolist() == lengths == [2, 1]
    assert found.y.tolist() == ["B-ORG", "O", "B-PER"]
    crf = LinearCRF().fit(found.X, found.y, lengths=found.lengths)
    assert crf.score(found.X, found.y, lengths=found.lengths) == 1


def test_crfsuite_to_npz_gives_the_same_as_from_columns(folder):
    told = ["--hashed", "4096"]
    assert convert("a.txt", "-o", "o.crfsuite") == 0
    assert convert("a.txt", "-o", "1.npz", *told) == 0
    assert convert("o.crfsuite", "-o", "2.npz", *told) == 0
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["a.txt", "-o", "o.txt"],
            "o.txt has none of the endings .conll, .crfsuite, .npz, .crfx: pass",
        ),
        (["none", "-o", "o.npz"], "there is no file none"),
        ([".", "-o", "o.npz"], ". is a folder: name a file in it"),
        (["a.txt", "-o", "none/o.npz"], "there is no folder none to write OUT in"),
        (["bad", "-o", "o.conll"], "bad:3: it has 1 column, line 1 has 2"),
        (["bad", "-o", "o.crfsuite"], "bad:3: it has 1 column, line 1 has 2"),
        (["bad", "-o", "o.npz"], "bad:3: it has 1 column, line 1 has 2"),
        (["empty", "-o", "o.npz"], "empty: there is no line with a token"),
        (["f", "-o", "o.conll"], "f has features, not columns: it can become npz only"),
        (["f", "-o", "o.npz", "--template", "t.txt"], "--template turns columns into features"),
        (["a.txt", "-o", "o.conll", "--template", "t.txt"], "--template turns columns into"),
        (["a.txt", "-o", "o.conll", "--hashed", "9"], "--hashed is the number of columns in npz"),
        (["a.txt", "-o", "o.npz", "--hashed", "0"], "--hashed is 0: it must be from 1 to"),
        (["a.txt", "-o", "o.npz", "--template", "none"], "none"),
        (["a.txt", "-o", "o.npz", "--template", "bad"], "template, line 1: 'a X' is not like"),
        (["a.txt", "-o", "o.npz", "--columns", "a"], "a.txt:3: it has 3 columns, and 1 are named"),
        (["a.txt", "-o", "o.npz", "--columns", "a,b-c"], "the column 'b-c' cannot stand in a temp"),
        (["a.txt", "-o", "o.npz", "--label", "7"], "a.txt:3: the label is column 7"),
        (["a.txt", "-o", "o.npz", "--from", "conllu"], "a.txt:1: it has 1 fields by tabs"),
        (["b.txt", "-o", "o.npz", "--label", "misc"], "label is 'misc': it must be one of"),
        (["at", "-o", "o.crfsuite"], "the label '@' cannot be written"),
    ],
)
def test_mistakes_are_one_line_and_leave_no_file(folder, capsys, arguments, message):
    (folder / "bad").write_text("a X\n\nb\n")
    (folder / "empty").write_text("\n")
    (folder / "f").write_text("O\tw=a\tw=b\n")
    (folder / "at").write_text("a @\n")
    before = set(folder.rglob("*"))
    assert convert(*arguments) == 2
    told = capsys.readouterr().err
    assert told.startswith("crfx convert: error: ")
    assert message in told
    assert told.count("\n") == 1
    assert set(folder.rglob("*")) == before


def test_help_shows_an_example(capsys):
    with pytest.raises(SystemExit) as left:
        convert("--help")
    assert left.value.code == 0
    assert "crfx convert eng.train -o train.crfsuite.gz" in capsys.readouterr().out
