"""Random folds are of even size, and the same for the same seed."""

import numpy as np
import pytest

from reproduce.datasets.folds import random_folds


def test_folds_are_even_and_dealt_by_the_seed():
    folds = random_folds(48, n_folds=10, seed=0)
    assert sorted(np.bincount(folds)) == [4, 4, 5, 5, 5, 5, 5, 5, 5, 5]
    np.testing.assert_array_equal(folds, random_folds(48, n_folds=10, seed=0))
    assert (folds != random_folds(48, n_folds=10, seed=1)).any()
    for n_folds in (1, 6):
        with pytest.raises(ValueError, match="n_folds must be 2 to 5"):
            random_folds(5, n_folds, seed=0)
