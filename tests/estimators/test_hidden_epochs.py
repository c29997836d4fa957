"""Epochs of HiddenUnitCRF: steps, dropout, averages, margins and values beyond all measure.

`test_core_steps.py` compares the steps of the core with those of Python.
"""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from crfx import HiddenUnitCRF
from crfx.model.flat_parameters import get_weights
from crfx.trainers import epochs
from tests.pairwise import pairwise

ROUNDING = 2e-4
"""Of some hundred steps in float32, by the core, and in float64 otherwise."""
TRAINERS = ["sgd", "perceptron", "large_margin"]
random = np.random.default_rng(0)
LENGTHS = [0, 1, 2, *random.integers(3, 9, 20)]
Y = [random.integers(0, 4, n) for n in LENGTHS]
X = [
    (random.normal(size=(n, 5)) + np.eye(5)[y] * 2).astype(np.float32)
    for n, y in zip(LENGTHS, Y, strict=True)
]
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 0.7, 0, x)) for x in X]
DATA = {"dense": X, "sparse": SPARSE}


def fitted(trainer="sgd", X=X, y=Y, fit=None, **arguments):
    """Train three epochs, averaged over the last two."""
    usual = {"n_hidden": 6, "sweeps": 3, "burn_in": 1, "step": 0.05, "dropout": 0.0}
    crf = HiddenUnitCRF(trainer=trainer, random_state=0, n_jobs=1, **(usual | arguments))
    return crf.fit(X, y, **(fit or {}))


def parameters(*data, **arguments):
    return get_weights(fitted(*data, **arguments).model_)


@pytest.fixture(params=["core", "python"])
def steps(request, monkeypatch):
    """Run the test with steps of the core and with steps of Python."""
    if request.param == "python":
        monkeypatch.setattr(epochs, "can_take_steps", lambda *_: False)


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize(
    ("trainer", "l2", "data"), pairwise(["sgd", "large_margin"], [0.0, 100.0], list(DATA))
)
def test_parameters_are_averaged_over_the_ends_of_epochs(trainer, l2, data):
    """Averaging starts at burn_in; without it, a run of n epochs ends where epoch n ends."""
    arguments = {"X": DATA[data], "l2": l2}
    ends = [parameters(trainer, sweeps=n, burn_in=9, **arguments) for n in (2, 3, 4)]
    assert np.abs(ends[0] - ends[2]).max() > 10 * ROUNDING
    average = parameters(trainer, sweeps=4, burn_in=1, **arguments)
    np.testing.assert_allclose(average, np.mean(ends, axis=0), rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.usefixtures("steps")
def test_steps_become_shorter_from_epoch_to_epoch(monkeypatch):
    """Half as long after so many epochs: where those are few, parameters move less."""
    arguments = {"trainer": "large_margin", "margin": 1e3, "burn_in": 99, "n_hidden": 0}

    def moves():
        at = [parameters(**arguments, skip=True, sweeps=n) for n in (0, 1, 8, 9)]
        return np.abs(at[1] - at[0]).sum(), np.abs(at[3] - at[2]).sum()

    first, ninth = moves()
    assert ninth > 0.7 * first
    monkeypatch.setattr(epochs, "HIDDEN_EPOCHS_TO_HALF", 1.0)
    first, ninth = moves()
    assert ninth < 0.4 * first


@pytest.mark.parametrize("data", DATA)
def test_block_rates_scale_with_block_size(monkeypatch, data):
    """Blocks are ordered W, b, V, c, U, edges, ends; the step for W is five times longer."""
    rates, spread, X = [], epochs.block_rates, DATA[data]
    monkeypatch.setattr(
        epochs, "block_rates", lambda *args: rates.append(spread(*args)) or rates[-1]
    )
    for block_steps in ("size", "equal"):
        parameters("perceptron", X=X, skip=True, sweeps=1, block_steps=block_steps)
    active = 5 if data == "dense" else sum(x.nnz for x in X) / sum(LENGTHS)
    sizes = np.array([active * 6, 6, 6 * 4, 4, active * 4, 4 * 4, 4])
    expected = np.array([1.0, *(active * 6 / sizes / 5)[1:]])
    parameters("sgd", X=X, sweeps=1)
    ones = np.ones(7)
    for rate, wanted in zip(rates, (expected, ones, ones), strict=True):
        np.testing.assert_allclose(rate, wanted)


def test_block_steps_leave_stored_zeros_out():
    stored = [sparse.csr_matrix(x) for x in X]
    for instance, other in zip(stored, SPARSE, strict=True):
        instance.data[:] = other.toarray().reshape(-1)
    arguments = {"trainer": "perceptron", "block_steps": "size"}
    with_zeros, without = (parameters(X=x, **arguments) for x in (stored, SPARSE))
    np.testing.assert_allclose(with_zeros, without, rtol=1e-5, atol=1e-5)


# Dropout.


def test_dropout_is_for_dense_features_by_default():
    usual = parameters(dropout=None)
    np.testing.assert_array_equal(usual, parameters(dropout=0.2))  # the seed is the same
    assert not np.allclose(usual, parameters(dropout=0.0))
    usual, none = (parameters(dropout=share, X=SPARSE) for share in (None, 0.0))
    np.testing.assert_array_equal(usual, none)


@pytest.mark.usefixtures("steps")
def test_dropout_rescales_kept_inputs():
    """Without hidden units scores are linear, so the mean step equals the step without dropout."""
    ones = [np.ones((50, 40), np.float32) for _ in range(40)]
    labels = [np.arange(50) % 2, *[np.zeros(50, int)] * 39]

    def step(dropout):
        arguments = {"n_hidden": 0, "skip": True, "edges": None, "sweeps": 4, "step": 1e-6}
        function = fitted(X=ones, y=labels, dropout=dropout, **arguments).model_.node
        return function.shape.split(function.weights)["skip"].mean(axis=0)

    np.testing.assert_allclose(step(0.5), step(0.0), rtol=0.05)


# Perceptrons and margins.


def easy(n=6):
    """Return labels that features tell."""
    labels = [np.arange(k + 2) % 3 for k in range(n)]
    return [np.eye(3, dtype=np.float32)[codes] for codes in labels], [
        codes.tolist() for codes in labels
    ]


def test_perceptron_stops_at_separation_and_large_margin_continues():
    """Parameters move while the margin is too small and stop once it is large enough."""
    x, y = easy()
    learned = fitted("perceptron", x, y, sweeps=40, burn_in=99)
    assert learned.score(x, y) == 1
    at, going_on = get_weights(learned.model_), {"burn_in": 99, "fit": {"init_model": learned}}
    rests = fitted("perceptron", x, y, margin=50.0, **going_on)  # it has no margin
    np.testing.assert_array_equal(get_weights(rests.model_), at)
    assert rests.history_["objective"][-3:] == [0.0] * 3
    inside, outside, none = (
        parameters("large_margin", x, y, margin=margin, **going_on) for margin in (50.0, 1e-6, 0.0)
    )
    assert not np.allclose(inside, at)
    np.testing.assert_array_equal(outside, at)
    np.testing.assert_array_equal(none, at)


def test_large_margin_without_margin_equals_perceptron():
    perceptron, margin = (
        parameters(trainer, margin=0.0) for trainer in ("perceptron", "large_margin")
    )
    np.testing.assert_array_equal(perceptron, margin)


# First steps, none, and those that are too long.


@pytest.mark.parametrize(
    ("trainer", "case", "place"), pairwise(TRAINERS, ["unknown", "empty", "weightless"], [0, 1])
)
def test_first_step_search_uses_informative_instances(trainer, case, place):
    """On others all steps look alike, and the smallest, which learns nothing, would win."""
    tells = [k == place for k in range(2)]
    x, y, fit = X[-2:], [labels.tolist() for labels in Y[-2:]], {}
    if case == "unknown":
        y = [
            labels if known else [None] * len(labels)
            for labels, known in zip(y, tells, strict=True)
        ]
    elif case == "empty":
        x = [instance if known else instance[:0] for instance, known in zip(x, tells, strict=True)]
        y = [labels if known else labels[:0] for labels, known in zip(y, tells, strict=True)]
    else:
        fit = {"sample_weight": np.array(tells, dtype=float)}
    crf = fitted(trainer, x, y, fit, step=None, sweeps=1)
    assert crf.training_.standing.numbers["step"] > 1e-6


def test_zero_epochs_keep_parameters():
    """The first ones, and the average of the model that is trained further."""
    first = parameters(sweeps=0)
    np.testing.assert_allclose(first, parameters(sweeps=1, step=1e-30), atol=1e-20)
    assert np.abs(first).max() > 0
    crf = fitted(sweeps=4)
    again = parameters(sweeps=0, fit={"init_model": crf})
    np.testing.assert_array_equal(again, get_weights(crf.model_))


def test_penalty_is_summed_in_float64():
    values = np.full(20_000_000, 0.01, np.float32)
    assert epochs.penalty(1.0, values) == pytest.approx(2000, rel=1e-6)
    assert epochs.penalty(0.0, np.array([np.inf], np.float32)) == 0


def test_training_raises_or_warns_on_huge_features():
    huge = [np.float32(1e30) * x for x in X]
    with pytest.raises(ValueError, match="no step"):
        fitted(X=huge, step=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted("lbfgs", X=huge)
    assert any(issubclass(each.category, ConvergenceWarning) for each in caught)
