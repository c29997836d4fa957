"""Every instance is in one fold, and none on both sides."""

import pytest

from crfx.datasets.folds import held_out
from reproduce.datasets.folds import random_folds


def test_train_and_test_are_all_and_apart():
    folds = random_folds(17, n_folds=4, seed=0)
    tested = []
    for k in range(4):
        train, test = held_out(folds, k)
        assert sorted([*train, *test]) == list(range(17))
        tested.extend(test)
    assert sorted(tested) == list(range(17))
    for k in (-1, 4):
        with pytest.raises(ValueError, match=rf"no fold {k}: folds are \[0, 1, 2, 3\]"):
            held_out(folds, k)
