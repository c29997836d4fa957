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
def test_allowed_labellings_are_those_of_spans(scheme):
    """Exactly the labellings that some set of spans is written in, each in one way."""
    classes = BIO if scheme == "bio" else BIOES
    pair, first, last = allowed_pairs(scheme, classes)
    seen = {}
    for codes in product(range(len(classes)), repeat=3):
        labels = [classes[code] for code in codes]
        good = first[codes[0]] and last[codes[2]] and pair[codes[:-1], codes[1:]].all()
        result = frozenset(spans(labels))
        if good:
            assert result not in seen
            seen[result] = labels
    everything = {
        frozenset(spans([classes[code] for code in codes]))
        for codes in product(range(len(classes)), repeat=3)
    }
    assert set(seen) == everything


def test_continuing_spans_as_conlleval_reads_them():
    for before, label in product(BIOES, repeat=2):
        joined = {(0, 1, kind) for kind in "XY"} & spans([before, label])
        assert continuing([before, label])[0, 1] == bool(joined)


def test_labels_that_must_exist():
    assert completed("bio", ["O", "I-X", "B-Y"]) == {"B-X"}
    assert completed("bioes", ["O", "I-X", "S-Y"]) == {"B-X", "E-X"}
    assert completed("bioes", ["O", "B-X", "E-X"]) == {"I-X"}
    assert completed("bio", ["O", "B"]) == set()


def test_labels_that_do_not_fit_raise():
    for label in ("S-X", "NN", "B-", 3, "O-X", ""):
        with pytest.raises(ValueError, match=r"instance 0, position 1: label .* does not fit"):
            check_labels("bio", ["O", label], one("ab"))


def test_parts_of_labels():
    assert tag_and_type("B-A-B") == ("B", "A-B")
    assert tag_and_type("I") == ("I", "")


def test_conversions_keep_spans():
    """Read as IOB1, every sequence of these labels is one."""
    rules = {
        scheme: (classes, *allowed_pairs(scheme, classes))
        for scheme, classes in (("bio", BIO), ("bioes", BIOES))
    }
    for labels in map(list, product(BIO, repeat=4)):
        for scheme, (classes, pair, first, last) in rules.items():
            written = converted(scheme, labels, one(labels))
            assert spans(written) == spans(labels)
            codes = [classes.index(label) for label in written]
            assert pair[codes[:-1], codes[1:]].all()
            assert first[codes[0]]
            assert last[codes[-1]]
            assert converted(scheme, written, one(written)) == written


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


def test_no_labels_become_no_labels():
    for scheme in ("bio", "bioes"):
        assert converted(scheme, [], Batch.from_lengths([0])) == []
