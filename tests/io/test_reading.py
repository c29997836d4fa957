"""Readings: how a model file records the format of its training files."""

import pytest

from crfx import LinearCRF, load
from crfx.features import Template
from crfx.io.conll import Conll
from crfx.io.conllu import Conllu
from crfx.io.crfsuite import Crfsuite
from crfx.io.reading import Reading

TEMPLATE = Template("word[0]", ["word", "c1"])
READINGS = {
    "conll (columns word, c1)": Reading(Conll(("word", "c1")), TEMPLATE, as_bio=True),
    "conllu (columns form)": Reading(Conllu("xpos"), Template("form[0]", ["form"])),
    "crfsuite": Reading(Crfsuite()),
}


def test_plain_values_and_back():
    for name, reading in READINGS.items():
        plain = reading.to_plain()
        assert Reading.from_plain(plain).to_plain() == plain
        assert str(Reading.from_plain(plain)) == name


def test_labels_in_bioes_are_written_as_bio():
    labels = ["S-X", "O", "B-Y", "I-Y", "E-Y", None, "B", "E"]
    expected = ["B-X", "O", "B-Y", "I-Y", "I-Y", None, "B", "I"]
    assert READINGS["conll (columns word, c1)"].labels(labels) == expected
    assert READINGS["crfsuite"].labels(labels) == labels


PLAIN = READINGS["conll (columns word, c1)"].to_plain()


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        (None, "it does not say how files are read"),
        ({}, "it does not say how files are read"),
        ({**PLAIN, "format": {"name": "none"}}, "its name is unknown"),
        ({**PLAIN, "template": None}, "its template does not suit its format"),
        ({**PLAIN, "template": 3}, "its template does not suit its format"),
        ({**PLAIN, "template": "shape("}, "template, line 1: 'shape\\(' is not like"),
        ({**PLAIN, "template": "other[0]"}, "there is no column 'other'"),
        ({**PLAIN, "as_bio": "yes"}, "'yes', which is neither true nor false"),
        ({**READINGS["crfsuite"].to_plain(), "template": "word[0]"}, "does not suit its format"),
    ],
    ids=str,
)
def test_from_plain_rejects_values_of_other_kinds(plain, message):
    with pytest.raises(ValueError, match=message):
        Reading.from_plain(plain)


def test_load_rejects_bio_for_labels_that_mark_no_spans(tmp_path):
    crf = LinearCRF(max_iter=2).fit([[["a"], ["b"]]], [[1, 2]])
    crf.reading_ = Reading(Crfsuite(), as_bio=True)
    crf.save(tmp_path / "m.crfx")
    with pytest.raises(ValueError, match=r"m\.crfx .* are to be written as BIO, but mark no spans"):
        load(tmp_path / "m.crfx")
