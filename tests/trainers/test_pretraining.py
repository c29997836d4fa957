"""Contrastive divergence: a trained machine reproduces features and predicts labels."""

import numpy as np
import pytest

from crfx.potentials.hidden_unit import HiddenShape
from crfx.trainers.pretraining import contrastive_divergence

N_ROWS, N_LABELS = 200, 2
random = np.random.default_rng(0)
CODES = random.integers(N_LABELS, size=N_ROWS)
PATTERNS = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], np.float32)
ROWS = {
    "binary": PATTERNS[CODES],
    "spins": 2 * PATTERNS[CODES] - 1,
    "normal": (2 * PATTERNS[CODES] + random.normal(size=(N_ROWS, 6))).astype(np.float32),
}
SHAPE = HiddenShape(6, 8, N_LABELS, skip=True)


def trained(kind, n_sweeps, seed=0, weights=None):
    values = (np.random.default_rng(seed).normal(size=SHAPE.size) * 0.01).astype(np.float32)
    before = values.copy()
    weights = np.ones(N_ROWS, np.float32) if weights is None else weights
    contrastive_divergence(ROWS[kind], CODES, weights, SHAPE, values, n_sweeps, seed)
    return SHAPE.split(before), SHAPE.split(values)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def agreement(parts, kind):
    """Return how well the features that the units reconstruct agree with the features."""
    y = np.eye(N_LABELS)[CODES]
    units = sigmoid(ROWS[kind] @ parts["weights"] + y @ parts["to_label"].T + parts["bias"])
    fancied = units @ parts["weights"].T
    centred = [x - x.mean(axis=0) for x in (fancied, ROWS[kind])]
    return float((centred[0] * centred[1]).mean())


@pytest.mark.parametrize("kind", ROWS)
def test_units_reproduce_features(kind):
    before, after = trained(kind, 150)
    assert abs(agreement(before, kind)) < 0.01
    assert agreement(after, kind) > 0.05


@pytest.mark.parametrize("kind", ROWS)
def test_labels_are_predicted_from_features(kind):
    """The marginal of the joint machine is the score of a hidden-unit CRF."""
    _, parts = trained(kind, 500)
    inputs = ROWS[kind] @ parts["weights"] + parts["bias"]
    both = inputs[:, :, None] + parts["to_label"]
    scores = parts["constant"] + np.logaddexp(0, both).sum(axis=1)
    assert np.mean(scores.argmax(axis=1) == CODES) > 0.9


def test_skip_weights_are_left_alone_and_the_seed_is_followed():
    before, after = trained("binary", 3)
    np.testing.assert_array_equal(after["skip"], before["skip"])
    for name, part in trained("binary", 3)[1].items():
        np.testing.assert_array_equal(part, after[name])
    assert not np.allclose(after["bias"], before["bias"])


def test_rows_count_by_their_weights():
    """Rows of weight 0 teach nothing; rows of double weight count twice in a step."""
    none = trained("binary", 5, weights=np.zeros(N_ROWS, np.float32))
    np.testing.assert_array_equal(none[1]["weights"], none[0]["weights"])
    once, twice = (
        trained("binary", 1, weights=np.full(N_ROWS, weight, np.float32)) for weight in (0.01, 0.02)
    )
    moves = [np.abs(after["bias"] - before["bias"]).sum() for before, after in (once, twice)]
    assert moves[1] > 1.5 * moves[0]
