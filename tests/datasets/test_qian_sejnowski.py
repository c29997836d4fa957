"""Qian and Sejnowski's proteins: chains, residues and classes as in the paper."""

from collections import Counter

import numpy as np
import pytest

from crfx.datasets import load_qian_sejnowski

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
SPLITS = {
    # chains, shortest, longest, classes
    "train": (111, 11, 498, {"h": 4601, "e": 3636, "_": 9868}),
    "test": (17, 35, 461, {"h": 849, "e": 748, "_": 1923}),
}


@pytest.fixture(scope="module")
def proteins(load_or_skip):
    return load_or_skip(load_qian_sejnowski)


def test_counts(proteins):
    for name in SPLITS:
        split = getattr(proteins, name)
        n_chains, shortest, longest, classes = SPLITS[name]
        lengths = [len(y) for y in split.y]
        assert len(lengths) == n_chains
        assert (min(lengths), max(lengths)) == (shortest, longest)
        assert Counter(np.concatenate(split.y).tolist()) == classes
        assert "non-commercial" in proteins.description
        assert set("".join(split.residues)) == set(AMINO_ACIDS)
        for x, y, residues in zip(split.X, split.y, split.residues, strict=True):
            assert x.shape == (len(y), 20)
            assert x.dtype == np.float32
            np.testing.assert_array_equal(x.sum(axis=1), 1)
            assert "".join(AMINO_ACIDS[code] for code in x.argmax(axis=1)) == residues


def test_the_first_residues_and_no_chain_in_both_halves(proteins):
    assert proteins.train.residues[0].startswith("GVGTVPMTDYGNDVEYYGQVTI")
    assert "".join(proteins.test.y[0][:10]) == "______eee_"
    assert not set(proteins.train.residues) & set(proteins.test.residues)
