"""The objective of flat parameters: slopes by differences, in single and in double precision, for
every potential, order and structure.
"""

import gc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from crfx import Constraints, HiddenUnitCRF, LinearCRF
from crfx.batch import Batch
from crfx.features.words import Numbering
from crfx.inputs.passed import Passed
from crfx.inputs.training_set import Start, read_training_set
from crfx.model.flat_parameters import get_weights
from crfx.objectives import ExpectedLoss
from crfx.testing import make_task

X, Y = make_task(n_instances=8)
WORDS = [[{"w": str(row.argmax()), "size": float(row.sum())} for row in x] for x in X]
TYPES = [np.arange(len(instance)) % 2 for instance in X]
PARENTS = [(np.arange(len(x)) + 1) // 2 - 1 for x in X]
WEIGHTS = [0.1, 2.5] * 4
NEVER_FALL = Constraints(forbidden=[("L2", "L0"), ("L2", "L1")])
RISING = [sorted(labels) for labels in Y]
UNKNOWN = [[None if k % 4 == 3 else label for k, label in enumerate(tags)] for tags in Y]

HALF_STEP = 1e-5
SLOPE = 1e-7
"""Of central differences in double precision; in single precision they would be off by 1e-2."""
SINGLE = 1e-5

LINEAR, HIDDEN = LinearCRF(max_iter=3, tol=0.0), HiddenUnitCRF(3, "lbfgs", max_iter=3, tol=0.0)
HIDDEN.set_params(random_state=0, skip=True)
CSR = [sparse.csr_matrix(np.where(np.abs(x) < 0.7, 0, x)) for x in X]


def linear(**arguments):
    return clone(LINEAR).set_params(**arguments)


def hidden(**arguments):
    return clone(HIDDEN).set_params(**arguments)


CASES = {
    "dense": (LINEAR, {}),
    "CSR": (LINEAR, {"X": CSR}),
    "names": (LINEAR, {"X": WORDS}),
    "linear edges": (linear(edges="linear"), {"edge_types": TYPES}),
    "linear edges, CSR, forest": (linear(edges="linear"), {"X": CSR, "parents": PARENTS}),
    "no edges": (linear(edges=None), {}),
    "order 2": (linear(order=2), {}),
    "order 3, linear edges": (linear(order=3, edges="linear"), {}),
    "forest": (LINEAR, {"parents": PARENTS, "edge_types": TYPES}),
    "constraints": (linear(constraints=NEVER_FALL), {"y": RISING}),
    "unknown labels, weights": (LINEAR, {"y": UNKNOWN, "sample_weight": WEIGHTS}),
    "class weights": (linear(class_weight="balanced"), {}),
    "hidden": (HIDDEN, {}),
    "hidden, names": (HIDDEN, {"X": WORDS}),
    "hidden, CSR, forest": (HIDDEN, {"X": CSR, "parents": PARENTS}),
    "hidden, types": (HIDDEN, {"edge_types": TYPES}),
    "hidden, no edges": (hidden(edges=None), {}),
    "hidden, order 2, tanh": (hidden(order=2, activation="tanh"), {}),
    "hidden, order 3, sigmoid": (hidden(order=3, activation="sigmoid"), {}),
    "hidden, unknown labels": (HIDDEN, {"y": UNKNOWN, "sample_weight": WEIGHTS}),
    **{
        name: (linear(objective=name), {})
        for name in (
            "pseudo_likelihood",
            "labelwise_likelihood",
            "loss_augmented",
            "loss_scaled",
            "expected_loss",
            "kl",
        )
    },
    "candidates": (linear(objective=ExpectedLoss("kbest", 4), task_loss="zero_one"), {}),
}


def objective(crf, X=X, y=Y, parents=None, edge_types=None, sample_weight=None):
    """Return the objective of a model that was trained a little, and its parameters."""
    structure = {"parents": parents, "edge_types": edge_types, "sample_weight": sample_weight}
    crf = clone(crf).set_params(n_jobs=1)
    crf.fit(X, y, **structure)
    training_set = read_training_set(
        Passed(X, y, None, parents, edge_types, sample_weight),
        crf._input_settings(Numbering(), None),
        Start(),
    )
    return crf._task(training_set.truth).objective(crf.model_), get_weights(crf.model_)


def check_slopes(function, at, gradient, is_free):
    """Compare a gradient with central differences in three directions."""
    random = np.random.default_rng(1)
    for _ in range(3):
        direction = random.normal(size=len(at)) * is_free
        above, below = (function(at + sign * HALF_STEP * direction)[0] for sign in (1, -1))
        slope = (above - below) / (2 * HALF_STEP)
        assert slope == pytest.approx(gradient @ direction, rel=SLOPE, abs=SLOPE)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:L-BFGS stopped")
def test_gradients_in_single_and_double_precision(case):
    """Central differences find that of double precision to their own precision."""
    crf, data = CASES[case]
    single, at = objective(crf, **data)
    double, is_free = single.finer(), at != 0
    assert is_free.mean() > 0.5  # the others are of features or pairs that do not occur
    at = at + 0.1 * np.random.default_rng(0).normal(size=len(at)) * is_free
    value, gradient = double(at)
    check_slopes(double, at, gradient, is_free)
    assert single(at)[0] == pytest.approx(value, rel=SINGLE)
    scale = np.abs(gradient).max()
    np.testing.assert_allclose(single(at)[1], gradient, rtol=0, atol=SINGLE * scale)


@pytest.mark.filterwarnings("ignore:L-BFGS stopped")
def test_a_wrong_gradient_is_seen():
    """The companion: with the parts of one parameter in another's place."""
    single, at = objective(HIDDEN)
    double = single.finer()
    for shift in (1, 6):
        with pytest.raises(AssertionError):
            check_slopes(double, at, np.roll(double(at)[1], shift), at != 0)


@pytest.mark.parametrize("case", ["dense", "CSR", "hidden"])
@pytest.mark.filterwarnings("ignore:L-BFGS stopped")
def test_scores_are_of_single_precision_by_default(case):
    crf, data = CASES[case]
    single, at = objective(crf, **data)
    assert single.problem(at).scores.dtype == np.float32
    assert single.finer().problem(at).scores.dtype == np.float64
    assert single.problem(at).scores.dtype == np.float32


@pytest.mark.parametrize(
    "crf",
    [
        LinearCRF(max_iter=2),
        LinearCRF("sgd", sweeps=2),
        HiddenUnitCRF(3, "lbfgs", max_iter=2),
        HiddenUnitCRF(3, sweeps=2),
        HiddenUnitCRF(3, "perceptron", sweeps=2, pretrain="discriminative", pretrain_sweeps=2),
    ],
    ids=["linear L-BFGS", "linear epochs", "hidden L-BFGS", "hidden epochs", "pretrained"],
)
@pytest.mark.filterwarnings("ignore:L-BFGS stopped")
def test_fit_frees_the_training_data(crf):
    """No circle of references holds it until the garbage collector looks for circles."""
    n_rows = 1237
    x = np.random.default_rng(0).normal(size=(n_rows, 2)).astype(np.float32)
    labels = np.where(x[:, 0] > 0, "a", "b")
    crf = clone(crf).set_params(random_state=0, n_jobs=1)
    gc.collect()
    gc.disable()
    try:
        crf.fit([x[:1000], x[1000:]], [labels[:1000], labels[1000:]])
        batches = [each for each in gc.get_objects() if type(each) is Batch]
    finally:
        gc.enable()
    assert n_rows not in [batch.n_rows for batch in batches]
