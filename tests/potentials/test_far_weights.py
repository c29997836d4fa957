"""Hidden units whose weights to labels are too large for a table of exp(V)."""

import numpy as np
import pytest

from crfx.potentials.hidden_unit import HiddenShape, HiddenUnitFunction

RTOL = 1e-5
FAR = 95.0  # exp(95) overflows in float32


@pytest.mark.parametrize("n_hidden", [3, 7, 16])  # fewer weights than a pack, a rest, whole packs
@pytest.mark.parametrize("far", [FAR, -FAR])
def test_a_large_weight_is_noticed_wherever_it_lies(n_hidden, far):
    shape = HiddenShape(n_features=2, n_hidden=n_hidden, n_labels=5)
    X = np.array([[0.5, -1.0], [1.0, 2.0], [90.0, 0.0]], np.float32)
    for place in np.ndindex(n_hidden, 5):
        function = HiddenUnitFunction.random(shape, 1.0, np.random.default_rng(0))
        parts = shape.split(function.weights)
        parts["to_label"][place] = far
        inputs = (X @ parts["weights"] + parts["bias"]).astype(np.float64)
        units = np.logaddexp(0, inputs[:, :, None] + parts["to_label"])
        expected = units.sum(axis=1) + parts["constant"]
        np.testing.assert_allclose(function.scores(X, 3), expected, rtol=RTOL)
