"""Formats: guessed from a file, named by the user, kept in a model file."""

import gzip

import numpy as np
import pytest

from crfx.io import formats
from crfx.io.conll import Conll
from crfx.io.conllu import Conllu
from crfx.io.crfsuite import Crfsuite
from crfx.io.lines import open_lines
from crfx.io.sentences import Line

CONLLU = "1\tThey\tthey\tPRON\tPRP\tCase=Nom\t2\tnsubj\t_\t_"


def lines(text):
    return [Line(number, part) for number, part in enumerate(text.split("\n"), 1)]


def test_guess():
    cases = [
        ("EU NNP B-NP B-ORG\nsays VBZ B-VP O", "", Conll(("word", "c1", "c2"), separator=" ")),
        ("EU\tB-ORG", "", Conll(("word",))),
        ("-DOCSTART- O\n\nEU B-ORG\n", "", Conll(("word",), separator=" ")),
        ("# the word\tO\nEU\tB-ORG", "", Conll(("word",))),
        ("x=1\tO\nEU\tB-ORG", "", Conll(("word",))),  # a word may look like an attribute
        ("New York\tB-LOC", "a.txt", Conll(("word",))),
        ("EU\tCase=Nom\tNNP\tB-ORG", "", Conll(("word", "c1", "c2"))),
        ("--\t:\n;\t:", "", Conll(("word",))),  # tags of the Penn treebank
        (CONLLU, "", Conllu()),
        (f"# text = They\n{CONLLU}", "train.txt", Conllu()),
        ("1-2\tdidn't" + 8 * "\t_", "", Conllu()),
        ("10\ta\tb\tc\td\te\tf\tg\th", "", Conll(("word", *(f"c{n}" for n in range(1, 8))))),
        ("B-NP\tw[0]=An\tpos[0]=DT\nI-NP\tw[0]=old", "", Crfsuite()),
        ("B-NP\tBOS\tscale:0.5\tw=a", "", Crfsuite()),
        ("X\ta\tb\tc", "a.crfsuite", Crfsuite()),
        ("X\ta\tb\tc", "a.crfsuite.gz", Crfsuite()),
        ("a\tX", "en-ud-dev.conllu.gz", Conllu()),
    ]
    for text, name, expected in cases:
        assert formats.format_of(lines(text), name) == expected, text


def test_format_of_takes_user_options():
    text = lines("% all\nB-ORG EU NNP\nO rejects VBZ")
    format = formats.format_of(text, columns=("form", "pos"), label="0", comments="%")
    assert format == Conll(("form", "pos"), 0, "%", " ")
    assert next(format.read(text)).tokens == [("EU", "NNP"), ("rejects", "VBZ")]
    format = formats.format_of(lines(CONLLU), label="xpos", columns=["form", "lemma"])
    assert format == Conllu("xpos", ("form", "lemma"))
    assert formats.format_of(lines("B-NP\tw=An\tpos=DT"), name="conll") == Conll(("word", "c1"))
    assert formats.format_of(lines("a b"), name="crfsuite") == Crfsuite()
    assert formats.format_of([], name="conllu") == Conllu()
    with pytest.raises(ValueError, match="there is no format 'csv': there are conll, crfsuite, co"):
        formats.format_of([], name="csv")


def test_plain_values_give_the_same_format():
    for format in (
        Conll(("word",)),
        Conll(("form", "pos"), 0, "#", " "),
        Conllu(),
        Conllu("deprel", ("form", "upos"), trees=True),
        Crfsuite(),
    ):
        assert formats.from_plain(formats.to_plain(format)) == format
        assert formats.to_plain(format)["name"] == format.name


def test_from_plain_checks_values():
    word = formats.to_plain(Conll(("word",)))
    cases = [
        (None, "there is no format of text in None"),
        ({}, "its name is unknown"),
        ({"name": ["conll"]}, "its name is unknown"),
        ({"name": "crfsuite", "x": 1}, r"a format crfsuite has \[\], not \['x'\]"),
        ({"name": "conll"}, "a format conll has"),
        (word | {"columns": "word"}, "the columns of the format conll cannot be 'word'"),
        (word | {"columns": [1]}, "columns of the format conll must be texts"),
        (word | {"columns": []}, "there is no column beside the label"),
        (word | {"label": "0"}, "the label of the format conll cannot be '0'"),
        (word | {"label": True}, "the label of the format conll cannot be True"),
        (word | {"label": 7}, "the label is column 7: there are 2"),
        (word | {"comments": 1}, "the comments of the format conll cannot be 1"),
        (word | {"comments": " "}, "comments must begin with some sign"),
        (word | {"separator": ";"}, "separator is ';'"),
    ]
    for plain, message in cases:
        with pytest.raises(ValueError, match=message):
            formats.from_plain(plain)


def test_formats_of_files(tmp_path):
    np.savez(tmp_path / "a.txt", X=[[1.0]])
    assert formats.is_arrays(tmp_path / "a.txt.npz")
    (tmp_path / "b.npz").write_text("EU B-ORG\n")
    for other in (tmp_path / "b.npz", tmp_path, "-"):
        assert not formats.is_arrays(other)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"EU NNP B-ORG\n\nPeter NNP B-PER\n"))
    with open_lines(path) as opened:
        format = formats.format_of(opened.peek_block(), path)
        assert [s.tokens for s in format.read(opened)] == [[("EU", "NNP")], [("Peter", "NNP")]]
