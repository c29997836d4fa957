"""Every potential that a model file can hold comes back from its state."""

import numpy as np
import pytest

from crfx.potentials.base import PotentialShape
from crfx.potentials.context_trees import ContextShape, ContextTrees
from crfx.potentials.hidden_unit import HiddenShape, HiddenUnitFunction
from crfx.potentials.linear import LinearFunction
from crfx.potentials.registry import POTENTIALS
from crfx.potentials.regressors import BoostedRegressors
from crfx.potentials.trees import BoostedTrees
from crfx.potentials.weight_pattern import WeightPattern
from crfx.potentials.xgboost_learner import XGBoostLearner
from crfx.state import State

N_FEATURES, N_LABELS = 4, 3
SHAPE = PotentialShape(N_LABELS, N_FEATURES, 0)
X = np.random.default_rng(0).normal(size=(5, N_FEATURES)).astype(np.float32)


def make(kind):
    random = np.random.default_rng(1)
    if kind == "trees":
        return BoostedTrees(XGBoostLearner(), N_LABELS)
    if kind == "context":
        return ContextTrees(ContextShape(N_LABELS, 1, (1, 1)))
    if kind == "linear":
        pattern = WeightPattern.all(N_FEATURES, N_LABELS)
        return LinearFunction(pattern, random.normal(size=pattern.n_weights))
    return HiddenUnitFunction.random(HiddenShape(N_FEATURES, 2, N_LABELS), 1.0, random)


@pytest.mark.parametrize("kind", POTENTIALS)
def test_potential_comes_back_from_its_state(kind):
    potential, state = make(kind), State()
    assert potential.kind == kind
    potential.to_state(state, "node")
    again = POTENTIALS[kind].from_state(state, "node", SHAPE)
    state.check_all_read()
    assert type(again) is type(potential)
    assert again.n_outputs == potential.n_outputs
    copied = State()
    again.to_state(copied, "node")
    assert copied.values == state.values
    assert list(copied.arrays) == list(state.arrays)
    for name, array in state.arrays.items():
        np.testing.assert_array_equal(copied.arrays[name], array)
    if not potential.takes_labels:
        np.testing.assert_array_equal(again.scores(X, len(X)), potential.scores(X, len(X)))


def test_potentials_of_other_shapes_and_kinds_are_rejected():
    for kind in ("linear", "hidden"):
        state = State()
        make(kind).to_state(state, "node")
        with pytest.raises(ValueError, match="node"):
            POTENTIALS[kind].from_state(state, "node", PotentialShape(N_LABELS, N_FEATURES + 1, 0))
    with pytest.raises(ValueError, match="a model with a base_learner cannot be saved"):
        BoostedRegressors(None, N_LABELS, 0).to_state(State(), "node")
    assert BoostedRegressors.kind not in POTENTIALS
