"""The template for text files: it reads whatever columns there are, and its lines say enough."""

import pytest

from crfx import LinearCRF
from crfx.features import Template
from crfx.features.templates import text_template

SENTENCES = [
    [("Mr.", "NNP"), ("Smith", "NNP"), ("flew", "VBD"), ("to", "TO"), ("Paris", "NNP")],
    [("She", "PRP"), ("met", "VBD"), ("Mr.", "NNP"), ("Jones", "NNP"), ("in", "IN")],
]
TAGS = [["O", "B-PER", "O", "O", "B-LOC"], ["O", "O", "O", "B-PER", "O"]]


@pytest.mark.parametrize("columns", [["word"], ["form"], ["word", "c1"], ["word", "pos", "chunk"]])
def test_it_looks_at_every_column(columns):
    template = Template(text_template(columns), columns)
    instance = [tuple(f"{name}{place}" for name in columns) for place in "abc"]
    found = set(template.features(instance)[1])
    for name in columns:
        assert {f"{name}[-1]={name}a", f"{name}[0]={name}b", f"{name}[1]={name}c"} <= found


def test_words_that_were_never_seen_are_known_by_their_look():
    columns = ["word", "pos"]
    template = Template(text_template(columns), columns)
    crf = LinearCRF(l2=0.1).fit(template(SENTENCES), TAGS)
    new = [[("Mr.", "NNP"), ("Brown", "NNP"), ("left", "VBD")]]
    assert crf.predict(template(new))[0].tolist() == ["O", "B-PER", "O"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "there is no column to make features of"),
        (["word", "part-of-speech"], "the column 'part-of-speech' cannot stand in a template"),
        (["0"], "the column '0' cannot stand in a template"),
    ],
)
def test_bad_columns_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        text_template(columns)
