"""A HiddenUnitCRF that is asked for no sweep."""

import numpy as np

from crfx import HiddenUnitCRF
from crfx.model.flat_parameters import get_weights

ATOL = 1e-20


def words():
    random = np.random.default_rng(0)
    X = [random.normal(size=(length, 3)) for length in (4, 2, 5, 3) * 5]
    return X, [(x[:, 0] > 0).astype(int) for x in X]


def test_without_a_sweep_the_first_weights_stay():
    X, y = words()
    crf = HiddenUnitCRF(5, sweeps=0, step=0.1, random_state=0).fit(X, y)
    trained = HiddenUnitCRF(5, sweeps=1, step=1e-30, random_state=0).fit(X, y)
    first = get_weights(crf.model_)
    np.testing.assert_allclose(first, get_weights(trained.model_), atol=ATOL)
    assert np.abs(first).max() > 0


def test_training_goes_on_without_a_sweep_from_the_average():
    X, y = words()
    crf = HiddenUnitCRF(5, sweeps=4, step=0.1, random_state=0).fit(X, y)
    again = HiddenUnitCRF(5, sweeps=0, step=0.1, random_state=0).fit(X, y, init_model=crf)
    np.testing.assert_array_equal(get_weights(again.model_), get_weights(crf.model_))
