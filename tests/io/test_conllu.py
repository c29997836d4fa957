"""CoNLL-U: what is a token, labels of every field, heads, and all else written back."""

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


def test_read_and_written():
    first, second = read(TEXT)
    assert first.tokens == [("They",), ("did",), ("n't",)]
    assert first.labels == ["PRON", "AUX", "PART"]
    assert first.rows == [1, 3, 4]
    assert first.parents is None
    assert second.tokens == [("New York",)]
    assert second.number == 8
    parts = [Conllu().written(s, s.labels) for s in (first, second)]
    assert "\n\n".join("\n".join(part) for part in parts) == TEXT


def test_labels_columns_and_parents_may_be_chosen():
    for label, expected in (
        ("xpos", ["PRP", "VBD", None]),
        ("feats", ["Case=Nom", "_", "_"]),
        ("deprel", ["nsubj", "root", "advmod"]),
    ):
        assert read(TEXT, Conllu(label), labelled=False)[0].labels == expected
    first, _ = read(TEXT, Conllu(columns=("lemma", "feats")))
    assert first.tokens == [("they", "Case=Nom"), ("do", "_"), ("not", "_")]
    first, second = read(TEXT, Conllu(trees=True))
    assert (first.parents, second.parents) == ([1, -1, 1], [-1])


def test_read_without_labels_or_tokens():
    text = "1\ta" + 8 * "\t_"
    (sentence,) = read(text, labelled=False)
    assert sentence.labels is None
    assert Conllu().written(sentence, ["X"]) == ["1\ta\t_\tX" + 6 * "\t_"]
    (sentence,) = read("# newdoc\n\n")
    assert (sentence.tokens, sentence.labels) == ([], [])
    assert Conllu().written(sentence, []) == ["# newdoc"]


def test_written_changes_only_the_field_of_the_label():
    first, _ = read(TEXT, Conllu("deprel"))
    written = Conllu("deprel").written(first, ["x", "y", "z"])
    assert written[1] == "1\tThey\tthey\tPRON\tPRP\tCase=Nom\t2\tx\t_\t_"
    assert [written[2], written[5]] == [TEXT.split("\n")[2], TEXT.split("\n")[5]]
