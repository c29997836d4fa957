"""BIO and BIOES: what may follow what, by conlleval's reading, and one from another."""

from itertools import product

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.metrics import spans
from crfx.structures.label_schemes import (
    allowed_pairs,
    check_labels,
    completed,
    continuing,
    converted,
    tag_and_type,
)

BIO = ["O", "B-X", "I-X", "B-Y", "I-Y"]
BIOES = ["O", *(f"{tag}-{kind}" for kind in "XY" for tag in "BIES")]


def one(labels):
    return Batch(np.array([0, len(labels)]))


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_what_is_allowed_is_what_spans_are_written_in(scheme):
    """Exactly the labellings that some set of spans is written in, each in one way."""
    classes = BIO if scheme == "bio" else BIOES
    pair, first, last = allowed_pairs(scheme, classes)
    seen = {}
    for codes in product(range(len(classes)), repeat=3):
        labels = [classes[code] for code in codes]
        good = first[codes[0]] and last[codes[2]] and pair[codes[:-1], codes[1:]].all()
        found = frozenset(spans(labels))
        if good:
            assert found not in seen
            seen[found] = labels
    everything = {
        frozenset(spans([classes[code] for code in codes]))
        for codes in product(range(len(classes)), repeat=3)
    }
    assert set(seen) == everything


def test_going_on_is_conllevals():
    for before, label in product(BIOES, repeat=2):
        joined = {(0, 1, kind) for kind in "XY"} & spans([before, label])
        assert continuing([before, label])[0, 1] == bool(joined)


def test_labels_that_must_exist():
    assert completed("bio", ["O", "I-X", "B-Y"]) == {"B-X"}
    assert completed("bioes", ["O", "I-X", "S-Y"]) == {"B-X", "E-X"}
    assert completed("bioes", ["O", "B-X", "E-X"]) == {"I-X"}
    assert completed("bio", ["O", "B"]) == set()


@pytest.mark.parametrize("label", ["S-X", "NN", "B-", 3, "O-X", ""])
def test_a_label_that_does_not_fit(label):
    with pytest.raises(ValueError, match=r"instance 0, position 1: label .* does not fit"):
        check_labels("bio", ["O", label], one("ab"))


def test_parts_of_labels():
    assert tag_and_type("B-A-B") == ("B", "A-B")
    assert tag_and_type("I") == ("I", "")


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
