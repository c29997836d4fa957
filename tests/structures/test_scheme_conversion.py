"""One scheme from another: the spans stay, by conlleval's reading."""

from itertools import product

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.metrics import spans
from crfx.structures.label_schemes import allowed_pairs
from crfx.structures.scheme_conversion import converted

BIO = ["O", "B-X", "I-X", "B-Y", "I-Y"]
BIOES = ["O", *(f"{tag}-{kind}" for kind in "XY" for tag in "BIES")]


def one(labels):
    return Batch(np.array([0, len(labels)]))


@pytest.mark.parametrize("first", BIO)
def test_all_forms_have_the_spans_of_the_first(first):
    for rest in product(BIO, repeat=3):
        check_forms([first, *rest])


def check_forms(labels):
    """Read as IOB1, every sequence of these labels is one; conversions leave its spans."""
    iob2, bioes = (converted(scheme, labels, one(labels)) for scheme in ("bio", "bioes"))
    assert spans(iob2) == spans(bioes) == spans(labels)
    for scheme, classes, own in (("bio", BIO, iob2), ("bioes", BIOES, bioes)):
        pair, first, last = allowed_pairs(scheme, classes)
        codes = [classes.index(label) for label in own]
        assert pair[codes[:-1], codes[1:]].all()
        assert first[codes[0]]
        assert last[codes[-1]]
        assert converted(scheme, own, one(own)) == own  # as it is


def test_several_instances_do_not_touch():
    labels = ["B-X", "I-X", "I-X", "I-X"]
    batch = Batch(np.array([0, 2, 4]))
    assert converted("bio", labels, batch) == ["B-X", "I-X", "B-X", "I-X"]
    assert converted("bioes", labels, batch) == ["B-X", "E-X", "B-X", "E-X"]


def test_unknown_labels():
    labels = ["I-X", None, "I-X", "O"]
    assert converted("bio", labels, one(labels)) == ["B-X", None, "I-X", "O"]
    with pytest.raises(ValueError, match="instance 0, position 0: the label after 'B-X'"):
        converted("bioes", labels, one(labels))
    labels = ["S-X", None, "E-X", "O"]
    assert converted("bioes", labels, one(labels)) == labels


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_nothing_becomes_nothing(scheme):
    assert converted(scheme, [], Batch.from_lengths([0])) == []
