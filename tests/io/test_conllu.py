"""CoNLL-U: what is a token, labels of every field, heads, and all else written back."""

import pytest

from crfx.io.conllu import Conllu
from crfx.io.sentences import Line

TEXT = """\
# text = They didn't.
1	They	they	PRON	PRP	Case=Nom	2	nsubj	_	_
2-3	didn't	_	_	_	_	_	_	_	_
2	did	do	AUX	VBD	_	0	root	_	_
3	n't	not	PART	_	_	2	advmod	_	_
3.1	go	go	VERB	VB	_	_	_	2:conj	_

1	New York	New York	PROPN	NNP	_	0	root	_	_"""


def read(text, format=None, **options):
    lines = [Line(number, part) for number, part in enumerate(text.split("\n"), 1)]
    return list((format or Conllu()).read(lines, **options))


def test_sentences():
    first, second = read(TEXT)
    assert first.tokens == [("They",), ("did",), ("n't",)]
    assert first.labels == ["PRON", "AUX", "PART"]
    assert first.rows == [1, 3, 4]
    assert first.parents is None
    assert second.tokens == [("New York",)]
    assert second.number == 8


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("xpos", ["PRP", "VBD", None]),
        ("feats", ["Case=Nom", "_", "_"]),
        ("deprel", ["nsubj", "root", "advmod"]),
    ],
)
def test_labels(label, expected):
    format = Conllu(label)
    assert read(TEXT, format, labelled=False)[0].labels == expected
    assert Conllu(label).columns == ("form",)


def test_no_label_at_all():
    text = "1\ta" + 8 * "\t_"
    (found,) = read(text, labelled=False)
    assert found.labels is None
    assert Conllu().written(found, ["X"]) == ["1\ta\t_\tX" + 6 * "\t_"]


def test_more_columns():
    first, _ = read(TEXT, Conllu(columns=("lemma", "feats")))
    assert first.tokens == [("they", "Case=Nom"), ("do", "_"), ("not", "_")]


def test_parents():
    first, second = read(TEXT, Conllu(trees=True))
    assert first.parents == [1, -1, 1]
    assert second.parents == [-1]


def test_a_file_with_its_labels_written_back_is_the_same():
    parts = [Conllu().written(s, s.labels) for s in read(TEXT)]
    assert "\n\n".join("\n".join(part) for part in parts) == TEXT


def test_other_labels_change_their_field_only():
    first, _ = read(TEXT, Conllu("deprel"))
    found = Conllu("deprel").written(first, ["x", "y", "z"])
    assert found[1] == "1\tThey\tthey\tPRON\tPRP\tCase=Nom\t2\tx\t_\t_"
    assert found[2] == TEXT.split("\n")[2]
    assert found[5] == TEXT.split("\n")[5]


def test_comments_alone_are_a_sentence_without_tokens():
    (found,) = read("# newdoc\n\n")
    assert found.tokens == []
    assert found.labels == []
    assert Conllu().written(found, []) == ["# newdoc"]
