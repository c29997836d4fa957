"""Shares of all workers add up to all data, and inconsistent data stay whole."""

import numpy as np
import pytest
from scipy import sparse

from crfx.distributed.shares import InMemory

LENGTHS = [3, 0, 2, 4, 1]
ROWS = np.arange(20.0).reshape(10, 2)


def shares(n_workers=3, **arguments):
    return [share.load(*share.data) for share in InMemory(arguments).shares(n_workers)]


@pytest.mark.parametrize("X", [ROWS, sparse.csr_matrix(ROWS)], ids=["dense", "sparse"])
def test_rows_are_cut_between_instances(X):
    parts = shares(X=X, y=list("abcdefghij"), lengths=LENGTHS, sample_weight=np.arange(5))
    assert len(parts) == 3
    assert [size for part in parts for size in part["lengths"]] == LENGTHS
    assert "".join("".join(part["y"]) for part in parts) == "abcdefghij"
    assert np.concatenate([part["sample_weight"] for part in parts]).tolist() == list(range(5))
    for part in parts:
        assert part["X"].shape[0] == sum(part["lengths"]) == len(part["y"])


def test_lists_are_cut_between_instances():
    X = np.split(ROWS, np.cumsum(LENGTHS)[:-1])
    parts = shares(X=X, y=[list(range(n)) for n in LENGTHS], parents=None)
    assert len(parts) == 3
    assert [len(labels) for part in parts for labels in part["y"]] == LENGTHS
    np.testing.assert_array_equal(
        np.concatenate([rows for part in parts for rows in part["X"]]), ROWS
    )


STACKED = {"X": ROWS, "relevance": np.ones(10), "group": [3, 7]}
LISTED = {"X": [ROWS, ROWS], "y": [[1] * 10, [2] * 10]}
MISFITS = {
    "rows that no size counts": STACKED | {"group": [3, 6]},
    "sizes that no row has": STACKED | {"group": [3, 7, 1]},
    "sizes of text": STACKED | {"group": "ab"},
    "ragged sizes": STACKED | {"group": [[3], [3, 4]]},
    "fractions": STACKED | {"group": [3.0, 7.0]},
    "a query of no document": STACKED | {"group": [3, 0, 7]},
    "little relevance": STACKED | {"relevance": np.ones(9)},
    "no relevance": STACKED | {"relevance": None},
    "one number": STACKED | {"relevance": 1.0},
    "few weights": STACKED | {"sample_weight": [1.0]},
    "no X": STACKED | {"X": None},
    "text": LISTED | {"X": "ab"},
    "a number": LISTED | {"X": 3},
    "instances of numbers": LISTED | {"X": [1, 2]},
    "few labels": LISTED | {"y": [[1]]},
}


def test_inconsistent_arguments_go_to_one_worker():
    """So that it is refused as it would be without a cluster, and nothing is left out."""
    for misfit, arguments in MISFITS.items():
        (first,) = shares(**arguments)
        assert first.keys() == arguments.keys(), misfit
        assert all(first[name] is arguments[name] for name in arguments), misfit
