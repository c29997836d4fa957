"""The objective of flat parameters, in single and in double precision."""

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
WORDS = [[{"w": str(row.argmax()), "size": float(row.sum())} for row in own] for own in X]
TYPES = [np.arange(len(own)) % 2 for own in X]
PARENTS = [(np.arange(len(own)) + 1) // 2 - 1 for own in X]
WEIGHTS = [0.1, 2.5] * 4
NEVER_FALL = Constraints(forbidden=[("L2", "L0"), ("L2", "L1")])
RISING = [sorted(own) for own in Y]
UNKNOWN = [[None if k % 4 == 3 else label for k, label in enumerate(own)] for own in Y]

HALF_STEP = 1e-5
SLOPE = 1e-7
"""Of central differences in double precision; in single precision they would be off by 1e-2."""
SINGLE = 1e-5

LINEAR, HIDDEN = LinearCRF(max_iter=3, tol=0.0), HiddenUnitCRF(3, "lbfgs", max_iter=3, tol=0.0)
HIDDEN.set_params(random_state=0, skip=True)
CASES = {
    "dense": (LINEAR, {}),
    "CSR": (LINEAR, {"X": [sparse.csr_matrix(own) for own in X]}),
    "names": (LINEAR, {"X": WORDS}),
    "linear edges": (clone(LINEAR).set_params(edges="linear"), {"edge_types": TYPES}),
    "second order": (clone(LINEAR).set_params(order=2), {}),
    "forest": (LINEAR, {"parents": PARENTS, "edge_types": TYPES}),
    "constraints": (clone(LINEAR).set_params(constraints=NEVER_FALL), {"y": RISING}),
    "unknown labels": (LINEAR, {"y": UNKNOWN}),
    "weights": (LINEAR, {"sample_weight": WEIGHTS}),
    "class weights": (clone(LINEAR).set_params(class_weight="balanced"), {}),
    "hidden": (HIDDEN, {}),
    "hidden, names": (HIDDEN, {"X": WORDS}),
    **{
        name: (clone(LINEAR).set_params(objective=name), {})
        for name in (
            "pseudo_likelihood",
            "labelwise_likelihood",
            "loss_augmented",
            "loss_scaled",
            "expected_loss",
            "kl",
        )
    },
    "candidates": (
        clone(LINEAR).set_params(objective=ExpectedLoss("kbest", 4), task_loss="zero_one"),
        {},
    ),
}


def objective(crf, X=X, y=Y, parents=None, edge_types=None, sample_weight=None):
    """Of a model that was trained a little, and where it stands."""
    structure = {"parents": parents, "edge_types": edge_types, "sample_weight": sample_weight}
    crf = clone(crf).set_params(n_jobs=1)
    crf.fit(X, y, **structure)
    given = read_training_set(
        Passed(X, y, None, parents, edge_types, sample_weight),
        crf._input_settings(Numbering(), None),
        Start(),
    )
    return crf._task(given.truth).objective(crf.model_), get_weights(crf.model_)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:L-BFGS stopped")
def test_double_precision_is_all_the_way(case):
    """From the scores to the gradient: central differences find it to their own precision."""
    crf, data = CASES[case]
    single, at = objective(crf, **data)
    double = single.finer()
    random = np.random.default_rng(0)
    is_free = at != 0
    at = at + 0.1 * random.normal(size=len(at)) * is_free
    value, gradient = double(at)
    for _ in range(3):
        direction = random.normal(size=len(at)) * is_free
        steps = at + HALF_STEP * direction, at - HALF_STEP * direction
        slope = (double(steps[0])[0] - double(steps[1])[0]) / (2 * HALF_STEP)
        assert slope == pytest.approx(gradient @ direction, rel=SLOPE, abs=SLOPE)
    assert single(at)[0] == pytest.approx(value, rel=SINGLE)
    scale = np.abs(gradient).max()
    np.testing.assert_allclose(single(at)[1], gradient, rtol=0, atol=SINGLE * scale)


@pytest.mark.parametrize("case", ["dense", "CSR", "hidden"])
@pytest.mark.filterwarnings("ignore:L-BFGS stopped")
def test_scores_are_of_single_precision_unless_asked(case):
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
