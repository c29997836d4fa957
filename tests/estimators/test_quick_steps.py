"""Steps that the core takes are those of Python, one mini-batch after the other."""

import numpy as np
import pytest

from crfx import FeatureInduction, LinearCRF
from crfx.objectives import LossScaled
from crfx.trainers import core_steps, epochs

ROUNDING = 1e-5
rng = np.random.default_rng(0)
LENGTHS = [0, 1, 2, *rng.integers(3, 9, 30)]
TYPES = [rng.integers(0, 2, n) for n in LENGTHS]
Y = [rng.choice(["a", "b", "c", "d"], n) for n in LENGTHS]
X = [[[f"w{label}{rng.integers(4)}", f"v{rng.integers(9)}"] for label in labels] for labels in Y]
X_NUMBERS = [[{"n": float(rng.normal()), "w": words[0]} for words in each] for each in X]
WEIGHTS = rng.random(len(X)) * 2
SGD = {"trainer": "sgd", "step": 0.1}


def both(monkeypatch, arguments, X=X, **fit):
    """The weights after three sweeps, by the core and by Python."""
    found = []
    for quick in (True, False):
        with monkeypatch.context() as patch:
            if not quick:
                patch.setattr(epochs, "can_take_steps", lambda *_: False)
            crf = LinearCRF(sweeps=3, random_state=0, n_jobs=1, **arguments).fit(X, Y, **fit)
        tables = [crf.transitions_] if crf.transitions_ is not None else []
        if crf.model_.ends is not None:
            tables += crf.model_.ends.tables.values()
        found.append([crf.model_.node.weights, *tables])
    return found


@pytest.mark.parametrize("trainer", ["sgd", "perceptron", "large_margin"])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"order": 2},
        {"order": 3, "start_end": False},
        {"edges": None},
        {"features": "all"},
        {"batch_size": 5, "burn_in": 1},
        {"l2": 60.0, "step": 0.5},  # shrinks so much that counting begins anew
    ],
    ids=str,
)
def test_the_same_weights(monkeypatch, trainer, arguments):
    quick, slow = both(monkeypatch, {"trainer": trainer, **arguments})
    assert any(part.any() for part in quick)
    for a, b in zip(quick, slow, strict=True):
        np.testing.assert_allclose(a, b, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("trainer", ["sgd", "perceptron", "large_margin"])
@pytest.mark.parametrize(
    "fit", [{"sample_weight": WEIGHTS}, {"edge_types": TYPES}, {"X": X_NUMBERS}], ids=list
)
def test_with_weights_types_and_numbers(monkeypatch, trainer, fit):
    quick, slow = both(monkeypatch, {"trainer": trainer}, **fit)
    for a, b in zip(quick, slow, strict=True):
        np.testing.assert_allclose(a, b, rtol=ROUNDING, atol=ROUNDING)


def test_from_a_model_that_has_conjunctions(monkeypatch):
    settings = FeatureInduction(rounds=1, min_count=1, min_gain=0.0, confidence=1.0)
    start = LinearCRF(feature_induction=settings, max_iter=5).fit(X, Y)
    assert start.induced_features_
    quick, slow = both(monkeypatch, {"trainer": "perceptron"}, init_model=start)
    assert len(quick[0]) == len(start.model_.node.weights)
    for a, b in zip(quick, slow, strict=True):
        np.testing.assert_allclose(a, b, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize(
    ("arguments", "quick"),
    [
        ({}, True),
        ({"edges": "linear"}, False),
        ({"objective": "expected_loss", "task_loss": "zero_one", **SGD}, False),
        ({"objective": LossScaled(longest=2), **SGD}, False),
    ],
    ids=["plain", "linear edges", "candidates", "samples"],
)
def test_python_takes_steps_that_the_core_cannot(monkeypatch, arguments, quick):
    taken = []
    whole = epochs.can_take_steps

    def spy(*given):
        taken.append(whole(*given))
        return taken[-1]

    monkeypatch.setattr(epochs, "can_take_steps", spy)
    usual = {"trainer": "perceptron", "sweeps": 1, "random_state": 0}
    LinearCRF(**(usual | arguments)).fit(X, Y)
    assert taken == [quick]


def test_a_base_is_not_forgotten(monkeypatch):
    """Its scores stay underneath: what it has right already moves no weight."""
    base = LinearCRF(edges=None, l2=1e-3).fit(X, Y)
    quick, slow = both(monkeypatch, {"trainer": "large_margin"}, init_model=base)
    for a, b in zip(quick, slow, strict=True):
        np.testing.assert_allclose(a, b, rtol=ROUNDING, atol=ROUNDING)
    alone, _ = both(monkeypatch, {"trainer": "large_margin"})
    assert not np.allclose(quick[0], alone[0])


def test_a_sweep_in_parts_is_the_same(monkeypatch):
    whole, _ = both(monkeypatch, {"trainer": "sgd"})
    monkeypatch.setattr(core_steps, "STEPS_AT_ONCE", 2)
    parts, _ = both(monkeypatch, {"trainer": "sgd"})
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a, b)
