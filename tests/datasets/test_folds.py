"""Folds: every instance in one, sizes even, none on both sides."""

import numpy as np
import pytest

from crfx.datasets.folds import held_out, random_folds


def test_folds_are_even_and_dealt_by_the_seed():
    folds = random_folds(48, n_folds=10, seed=0)
    assert sorted(np.bincount(folds)) == [4, 4, 5, 5, 5, 5, 5, 5, 5, 5]
    np.testing.assert_array_equal(folds, random_folds(48, n_folds=10, seed=0))
    assert (folds != random_folds(48, n_folds=10, seed=1)).any()


def test_train_and_test_are_all_and_apart():
    folds = random_folds(17, n_folds=4, seed=0)
    tested = []
    for k in range(4):
        train, test = held_out(folds, k)
        assert sorted([*train, *test]) == list(range(17))
        tested.extend(test)
    assert sorted(tested) == list(range(17))


@pytest.mark.parametrize("k", [-1, 2])
def test_a_fold_that_is_not_there_is_refused(k):
    with pytest.raises(ValueError, match=rf"no fold {k}: folds are \[0, 1\]"):
        held_out(np.array([0, 1, 1]), k)


@pytest.mark.parametrize("n_folds", [1, 6])
def test_a_bad_number_of_folds_is_refused(n_folds):
    with pytest.raises(ValueError, match="n_folds must be 2 to 5"):
        random_folds(5, n_folds, seed=0)
