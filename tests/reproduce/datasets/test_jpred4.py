"""JPred4: counts, classes and folds as documented; the blind set stays blind."""

from collections import Counter

import numpy as np
import pytest

from reproduce.datasets import load_jpred4


@pytest.fixture(scope="module")
def jpred4(load_or_skip):
    return load_or_skip(load_jpred4)


def counts(labels, rows):
    return Counter(np.concatenate([labels[row] for row in rows]).tolist())


def test_sizes(jpred4):
    lengths = [len(residues) for residues in jpred4.residues]
    assert len(lengths) == len(jpred4.names) == len(jpred4.folds) == 1498
    assert sum(lengths) == 241217
    assert [x.shape for x in jpred4.X] == [(length, 44) for length in lengths]
    assert [len(q3) for q3 in jpred4.q3] == [len(q8) for q8 in jpred4.q8] == lengths
    assert len(set(jpred4.names)) == 1498
    assert set("".join(jpred4.residues)) == set("ARNDCQEGHILKMFPSTWYVX")
    assert "150 of 22,796 blind" in jpred4.description


def test_profiles(jpred4):
    profile = np.concatenate(jpred4.X)
    assert profile.dtype == np.float32
    assert profile.min() >= 0
    assert profile.max() <= 1
    # Integer scores of -9 to 15 come back through the inverse of the logistic function.
    score = np.log(profile[:, :20].astype(float) / (1 - profile[:, :20].astype(float)))
    assert (score.min().round(), score.max().round()) == (-9, 15)
    # Each amino acid stands out in its own column, of either profile, in either order.
    letters = np.array(list("".join(jpred4.residues)))
    for start, order in ((0, "ARNDCQEGHILKMFPSTWYV"), (20, "ACDEFGHIKLMNPQRSTVWY")):
        for column, letter in enumerate(order):
            values = profile[:, start + column]
            assert values[letters == letter].mean() > 2 * values[letters != letter].mean()


def test_folds(jpred4):
    assert sorted(np.bincount(jpred4.folds)) == [150, 190, 193, 193, 193, 193, 193, 193]
    train, blind = jpred4.fold(0)
    assert (len(train), len(blind)) == (1348, 150)
    assert not set(train) & set(blind)
    fit, held = jpred4.fold(2)
    assert sorted([*fit, *held]) == train.tolist()
    assert set(jpred4.folds[held]) == {2}
    with pytest.raises(ValueError, match="no fold 8"):
        jpred4.fold(8)


def test_three_classes(jpred4):
    train, blind = jpred4.fold(0)
    assert counts(jpred4.q3, train) == {"H": 77742, "E": 48588, "-": 92091}
    assert counts(jpred4.q3, blind).total() == 22796


def test_eight_classes_agree_with_three_classes(jpred4):
    to_three = {letter: letter if letter in "HE" else "-" for letter in "-EGIHST"} | {"B": "E"}
    unknown = [i for i, q8 in enumerate(jpred4.q8) if None in q8]
    assert len(unknown) == 10
    assert set(unknown) <= set(jpred4.fold(0)[0])
    assert counts(jpred4.q8, unknown) == {None: 1976}
    known = [i for i in range(1498) if i not in set(unknown)]
    assert counts(jpred4.q8, known).keys() == to_three.keys()
    for i in known:
        assert [to_three[label] for label in jpred4.q8[i]] == jpred4.q3[i].tolist()
