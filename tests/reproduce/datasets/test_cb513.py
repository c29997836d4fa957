"""CB513: counts as documented; the join of its two sources is that of the prepared arrays."""

from collections import Counter

import numpy as np
import pytest

from crfx.datasets.files import find
from reproduce.datasets import load_cb513

ARRAYS_SHA256 = "b613f4c079e302081da7caec0659d5ced285745627383a778ba353bc1754df16"
TO_THREE = {"H": "H", "G": "H", "E": "E", "B": "E", "L": "C", "I": "C", "S": "C", "T": "C"}


@pytest.fixture(scope="module")
def cb513(load_or_skip):
    return load_or_skip(load_cb513)


def test_sizes(cb513):
    lengths = [len(residues) for residues in cb513.residues]
    assert len(lengths) == len(cb513.folds) == 513
    assert sum(lengths) == 84119
    assert max(lengths) == 754
    assert [x.shape for x in cb513.X] == [(length, 20) for length in lengths]
    assert [len(q3) for q3 in cb513.q3] == [len(q8) for q8 in cb513.q8] == lengths
    assert "84,119 residues" in cb513.description


def test_classes(cb513):
    q3, q8 = np.concatenate(cb513.q3), np.concatenate(cb513.q8)
    assert Counter(q3.tolist()) == {"H": 29067, "E": 19059, "C": 35993}
    letters, counts = np.unique(q8, return_counts=True)
    assert "".join(letters) == "BEGHILST"
    assert counts.tolist() == [1162, 17897, 3096, 25971, 30, 17779, 8256, 9928]
    assert [TO_THREE[label] for label in q8] == q3.tolist()


def test_profiles(cb513):
    profile = np.concatenate(cb513.X)
    assert profile.dtype == np.float32
    np.testing.assert_array_equal(np.unique(profile), np.arange(11, dtype=np.float32) / 10)
    letters = np.array(list("".join(cb513.residues)))
    for column, letter in enumerate("ARNDCQEGHILKMFPSTWYV"):
        values = profile[:, column]
        assert values[letters == letter].mean() > 1.5 * values[letters != letter].mean()


def test_the_prepared_arrays_hold_the_same(cb513, load_or_skip):
    path = load_or_skip(lambda: find("cb513", "cb513.npz", ARRAYS_SHA256, how_to_get=""))
    with np.load(path, allow_pickle=False) as arrays:
        assert np.cumsum([len(x) for x in cb513.X]).tolist() == arrays["offsets"][1:].tolist()
        pssm = (arrays["pssm"] / 10).astype(np.float32)
        np.testing.assert_array_equal(np.concatenate(cb513.X), pssm)
        for ours, name, alphabet in (
            (np.array(list("".join(cb513.residues))), "residues", "ARNDCQEGHILKMFPSTWYVX"),
            (np.concatenate(cb513.q3), "q3", "HEC"),
            (np.concatenate(cb513.q8), "q8", "LBEGIHST"),
        ):
            np.testing.assert_array_equal(ours, np.array(list(alphabet))[arrays[name]])


def test_folds(cb513, load_or_skip):
    assert sorted(np.bincount(cb513.folds)) == [51] * 7 + [52] * 3
    train, test = cb513.fold(9)
    assert sorted([*train, *test]) == list(range(513))
    other = load_or_skip(load_cb513, 5, 1)
    assert set(other.folds) == set(range(5))
