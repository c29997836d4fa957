"""Steps with hidden units that the core takes are those of Python, one mini-batch after the other.

Without dropout: which features are left out is drawn in different ways.
"""

import numpy as np
import pytest
from scipy import sparse

from crfx import HiddenUnitCRF
from crfx.model.flat_parameters import get_weights
from crfx.trainers import core_steps, epochs

ROUNDING = 2e-4
"""Of some hundred steps in float32, by the core, and in float64 otherwise."""
SWEEPING = ["sgd", "perceptron", "large_margin"]
rng = np.random.default_rng(0)
LENGTHS = [0, 1, 2, *rng.integers(3, 9, 20)]
TYPES = [rng.integers(0, 2, n) for n in LENGTHS]
Y = [rng.integers(0, 4, n) for n in LENGTHS]
X = [
    (rng.normal(size=(n, 5)) + np.eye(5)[y] * 2).astype(np.float32)
    for n, y in zip(LENGTHS, Y, strict=True)
]
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 0.7, 0, x)) for x in X]
ONES = [sparse.csr_matrix((x > 1).astype(np.float32)) for x in X]
WEIGHTS = rng.random(len(X)) * 2


def parameters(trainer="sgd", X=X, y=Y, fit=None, **arguments):
    """After three sweeps, averaged over the last two."""
    usual = {"n_hidden": 6, "sweeps": 3, "burn_in": 1, "step": 0.05, "dropout": 0.0}
    crf = HiddenUnitCRF(trainer=trainer, random_state=0, n_jobs=1, **(usual | arguments))
    return get_weights(crf.fit(X, y, **(fit or {})).model_)


def assert_both_ways_agree(monkeypatch, trainer, **arguments):
    quick = parameters(trainer, **arguments)
    monkeypatch.setattr(epochs, "can_take_steps", lambda *_: False)
    slow = parameters(trainer, **arguments)
    start = parameters(trainer, **(arguments | {"sweeps": 0}))
    assert np.abs(quick - start).max() > 0.01
    np.testing.assert_allclose(quick, slow, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("trainer", SWEEPING)
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"order": 2},
        {"order": 3, "start_end": False},
        {"edges": None},
        {"skip": True},
        {"skip": True, "n_hidden": 0},
        {"batch_size": 5},
        {"l2": 0.5},
        {"l2": 100.0, "step": 0.3},  # shrinks so much that counting begins anew
        {"l2": 100.0, "step": 0.3, "X": SPARSE},
        {"activation": "relu"},
        {"activation": "tanh"},
        {"activation": "sigmoid"},
        {"decode": "viterbi"},
        {"X": SPARSE, "skip": True},
        {"X": SPARSE, "l2": 0.5, "batch_size": 3},
        {"X": ONES},
        {"fit": {"sample_weight": WEIGHTS}},
        {"fit": {"edge_types": TYPES}},
        {"fit": {"edge_types": TYPES}, "order": 2},
    ],
    ids=lambda arguments: "-".join(f"{k}" for k in arguments) or "plain",
)
def test_the_same_parameters(monkeypatch, trainer, arguments):
    assert_both_ways_agree(monkeypatch, trainer, **arguments)


def test_shrinkage_is_counted_anew_in_the_test_above(monkeypatch):
    """The companion: shrinkage of all steps together passes the border."""
    seen = []
    run = core_steps.CoreParameters.run

    def spy(self, *arguments, **options):
        before = self._product
        run(self, *arguments, **options)
        seen.append(self._product > before)

    monkeypatch.setattr(core_steps, "STEPS_AT_ONCE", 1)
    monkeypatch.setattr(core_steps.CoreParameters, "run", spy)
    parameters(l2=100.0, step=0.3)
    assert any(seen)


@pytest.mark.parametrize("trainer", SWEEPING)
def test_a_difference_would_be_seen(trainer):
    """The companion: what the cases above vary moves the parameters by more than rounding."""
    plain = parameters(trainer)
    for other in (
        {"batch_size": 5},
        {"l2": 0.5},
        {"activation": "relu" if trainer == "sgd" else "tanh"},
        {"fit": {"sample_weight": WEIGHTS}},
        {"X": SPARSE},
    ):
        assert np.abs(parameters(trainer, **other) - plain).max() > 10 * ROUNDING


@pytest.mark.parametrize(
    ("arguments", "quick"),
    [
        ({}, True),
        ({"edges": None}, True),
        ({"X": SPARSE}, True),
        ({"objective": "expected_loss", "task_loss": "zero_one"}, False),
    ],
    ids=["plain", "no edges", "sparse", "candidates"],
)
def test_python_takes_steps_that_the_core_cannot(monkeypatch, arguments, quick):
    seen, whole = [], epochs.can_take_steps

    def spy(*given):
        seen.append(whole(*given))
        return seen[-1]

    monkeypatch.setattr(epochs, "can_take_steps", spy)
    parameters(**arguments, sweeps=1)
    assert seen == [quick]


@pytest.mark.parametrize("trainer", SWEEPING)
def test_a_chain_given_as_a_forest_is_the_same(trainer):
    """Forests have no score for the last label."""
    parents = [np.arange(n) - 1 for n in LENGTHS]
    forest = parameters(trainer, fit={"parents": parents}, start_end=False)
    chain = parameters(trainer, start_end=False)
    np.testing.assert_allclose(forest, chain, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("X", [X, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_sweep_in_parts_is_the_same(monkeypatch, X, dropout, batch_size):
    """Which features are left out, and how long a step is, depends on its number alone."""
    arguments = {"X": X, "dropout": dropout, "batch_size": batch_size}
    whole = parameters(**arguments)
    monkeypatch.setattr(core_steps, "STEPS_AT_ONCE", 2)
    np.testing.assert_array_equal(parameters(**arguments), whole)


@pytest.mark.parametrize("can", [True, False])
def test_steps_become_shorter_from_sweep_to_sweep(monkeypatch, can):
    """Half as long after so many sweeps: where those are few, parameters move less."""
    if not can:
        monkeypatch.setattr(epochs, "can_take_steps", lambda *_: False)
    arguments = {"trainer": "large_margin", "margin": 1e3, "burn_in": 99, "n_hidden": 0}

    def moves():
        at = [parameters(**arguments, skip=True, sweeps=n) for n in (0, 1, 8, 9)]
        return np.abs(at[1] - at[0]).sum(), np.abs(at[3] - at[2]).sum()

    first, ninth = moves()
    assert ninth > 0.7 * first
    monkeypatch.setattr(epochs, "HIDDEN_EPOCHS_TO_HALF", 1.0)
    first, ninth = moves()
    assert ninth < 0.4 * first


def test_dropout_is_for_dense_features_by_default():
    np.testing.assert_array_equal(parameters(dropout=None), parameters(dropout=0.2))
    sparse_ones = [parameters(dropout=share, X=SPARSE) for share in (None, 0.0)]
    np.testing.assert_array_equal(*sparse_ones)


def test_dropout_moves_parameters_and_follows_the_seed():
    plain, dropped = parameters(), parameters(dropout=0.4)
    assert not np.allclose(plain, dropped)
    np.testing.assert_array_equal(parameters(dropout=0.4), dropped)


@pytest.mark.parametrize("can", [True, False])
@pytest.mark.parametrize("trainer", SWEEPING)
@pytest.mark.parametrize("l2", [0.0, 100.0])
@pytest.mark.parametrize("X", [X, SPARSE], ids=["dense", "sparse"])
def test_parameters_are_averaged_over_the_ends_of_sweeps(monkeypatch, X, l2, trainer, can):
    """From burn_in on; without averaging, a run of n sweeps ends where sweep n does."""
    if not can:
        monkeypatch.setattr(epochs, "can_take_steps", lambda *_: False)
    ends = [parameters(trainer, X=X, l2=l2, sweeps=n, burn_in=9) for n in (2, 3, 4)]
    assert np.abs(ends[0] - ends[2]).max() > 10 * ROUNDING
    found = parameters(trainer, X=X, l2=l2, sweeps=4, burn_in=1)
    np.testing.assert_allclose(found, np.mean(ends, axis=0), rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("X", [X, SPARSE], ids=["dense", "sparse"])
def test_steps_may_be_longer_where_there_are_fewer_parameters(monkeypatch, X):
    """Of a kind, in the order W, b, V, c, U, edges, ends; five times longer for W."""
    seen, spread = [], epochs.block_rates
    monkeypatch.setattr(
        epochs, "block_rates", lambda *given: seen.append(spread(*given)) or seen[-1]
    )
    for block_steps in ("size", "equal"):
        parameters("perceptron", X=X, skip=True, sweeps=1, block_steps=block_steps)
    rows = sum(LENGTHS)
    active = 5 if isinstance(X[0], np.ndarray) else sum(x.nnz for x in X) / rows
    sizes = np.array([active * 6, 6, 6 * 4, 4, active * 4, 4 * 4, 4])
    expected = np.array([1.0, *(active * 6 / sizes / 5)[1:]])
    parameters("sgd", X=X, sweeps=1)
    ones = np.ones(7)
    for found, rates in zip(seen, (expected, ones, ones), strict=True):
        np.testing.assert_allclose(found, rates)
