"""Workers that train together find the model of one who has all instances."""

import numpy as np
import pytest
from parts import fitted, fitted_together
from scipy import sparse

from crfx import GBCRF, Constraints, HiddenUnitCRF, LinearCRF
from crfx.distributed.collective import together
from crfx.inputs.label_codes import encode
from crfx.inputs.passed import Passed, read_input
from crfx.model.flat_parameters import get_weights
from crfx.objectives import KL, LossScaled
from crfx.objectives.registry import ObjectiveSettings
from crfx.objectives.truth import Truth
from crfx.structures import Chain
from crfx.testing import make_task

SAME_OBJECTIVE = 1e-5
"""In shares: sums are taken in another order, and scores are of single precision."""
SAME_PARAMETERS = 1e-4
CLOSE_OBJECTIVE = 1e-3
"""Of hidden units, whose objective has more than one valley, and of draws that differ."""

X, Y = make_task(n_instances=24)
X = [x.round() for x in X]  # few values: XGBoost cuts them alike, however they are shared out
DATA = {"X": X, "y": Y}
CLASSES = np.array(["L0", "L1", "L2"])
TYPES = [np.arange(len(x)) % 3 for x in X]
PARENTS = [(np.arange(len(instance)) + 1) // 2 - 1 for instance in X]
UNKNOWN = [
    [None if (k + place) % 4 == 0 else label for place, label in enumerate(labels)]
    for k, labels in enumerate(Y)
]
ALLOWED = [None] * 20 + [[{label, "L1"} for label in labels] for labels in Y[20:]]
VARIANTS = {
    "arrays": DATA,
    "CSR": DATA | {"X": [sparse.csr_matrix(np.maximum(x, 0)) for x in X]},
    "texts": DATA | {"X": [[[f"{v}" for v in row] for row in instance] for instance in X]},
    "edge types": DATA | {"edge_types": TYPES},
    "forests": DATA | {"parents": PARENTS},
    "forests with types": DATA | {"parents": PARENTS, "edge_types": TYPES},
    "unknown labels": DATA | {"y": UNKNOWN},
    "weights": DATA | {"sample_weight": [0.0] * 8 + [1.0, 2.5] * 8},
    "allowed labels": DATA | {"allowed": ALLOWED},
}
NEVER_FALL = Constraints(forbidden=[("L1", "L0"), ("L2", "L0"), ("L2", "L1")])


def linear(max_iter=8, **more):
    """It stops before steps become so small that rounding decides on them."""
    return LinearCRF(max_iter=max_iter, n_jobs=1, **more)


def boosted(**more):
    """Small trees: splits of few rows gain the same, and rounding would choose."""
    return GBCRF(3, max_depth=2, n_jobs=1, **more)


def check_same(crf, data, n_workers, tolerance):
    """Check that all workers get one model with the objective of a run alone; return both."""
    alone, models = fitted(crf, data), fitted_together(n_workers, crf, data)
    for model in models:
        assert model.history_["objective"] == models[0].history_["objective"]
        np.testing.assert_allclose(
            model.history_["objective"][-1], alone.history_["objective"][-1], rtol=tolerance
        )
    return alone, models


def check_same_weights(crf, data, n_workers):
    alone, models = check_same(crf, data, n_workers, SAME_OBJECTIVE)
    for model in models:
        weights = get_weights(model.model_)
        assert (weights == get_weights(models[0].model_)).all()
        np.testing.assert_allclose(weights, get_weights(alone.model_), rtol=0, atol=SAME_PARAMETERS)


LINEAR = {
    **{name: (name, {}) for name in VARIANTS},
    "CSR, linear edges": ("CSR", {"edges": "linear"}),
    "forests with types, linear edges": ("forests with types", {"edges": "linear"}),
    "texts, to the end": ("texts", {"max_iter": 1000, "tol": 1e-11}),
    "weights, to the end": ("weights", {"max_iter": 1000, "tol": 1e-11}),
}


@pytest.mark.parametrize(("data", "settings"), LINEAR.values(), ids=LINEAR)
def test_linear_weights_of_every_input(data, settings):
    check_same_weights(linear(**settings), VARIANTS[data], 3)


@pytest.mark.parametrize(
    "crf",
    [
        linear(l1=0.3),
        linear(features="observed"),
        linear(class_weight="balanced"),
        linear(constraints=NEVER_FALL),
        linear(constraints=NEVER_FALL, order=2),
        linear(objective="pseudo_likelihood"),
        linear(objective="labelwise_likelihood"),
        linear(objective="loss_augmented"),
        linear(objective="loss_scaled"),
        linear(objective="expected_loss"),
        linear(objective="kl"),
        linear(objective=KL(candidates="kbest", n_candidates=4), task_loss="zero_one"),
    ],
    ids=lambda crf: repr(crf)[10:-1],
)
def test_linear_weights_of_every_setting(crf):
    check_same_weights(crf, DATA, 2)


def test_one_worker_equals_plain_training():
    (model,), alone = fitted_together(1, linear(), DATA), fitted(linear(), DATA)
    assert (get_weights(model.model_) == get_weights(alone.model_)).all()


def test_every_worker_draws_samples_of_its_own():
    crf = LinearCRF(objective="kl", task_loss="zero_one", max_iter=5, n_jobs=1)
    check_same(crf, DATA, 2, 10 * CLOSE_OBJECTIVE)
    data = read_input(Passed(X))
    codes = encode([label for labels in Y for label in labels], CLASSES, data, "y")
    truth = Truth(data.batch, Chain(1), codes, None, CLASSES)
    seeds = together(3, lambda _: ObjectiveSettings.of(vars(crf)).bind(truth).seed)
    assert seeds[0] == ObjectiveSettings.of(vars(crf)).bind(truth).seed
    assert len(set(seeds)) == 3


@pytest.mark.filterwarnings("ignore:objective .loss_scaled. samples")
def test_notes_are_of_all_instances():
    crf = LinearCRF(objective=LossScaled(longest=5, n_samples=20), max_iter=3, n_jobs=1)
    alone, models = check_same(crf, DATA, 3, 100 * CLOSE_OBJECTIVE)
    for model in models:
        assert set(model.history_) == set(alone.history_)
        assert model.history_["sampled_instances"] == alone.history_["sampled_instances"]
        sizes = model.history_["effective_sample_size"]
        assert sizes == models[0].history_["effective_sample_size"]


@pytest.mark.parametrize("data", ["forests with types", "unknown labels"])
def test_hidden_units(data):
    crf = HiddenUnitCRF(4, trainer="lbfgs", max_iter=25, random_state=0, n_jobs=1)
    check_same(crf, VARIANTS[data], 3, CLOSE_OBJECTIVE)
    one, other = fitted_together(
        2, HiddenUnitCRF(4, trainer="lbfgs", max_iter=3, n_jobs=1), VARIANTS[data]
    )
    assert (get_weights(one.model_) == get_weights(other.model_)).all()


@pytest.mark.parametrize(
    ("data", "edges"),
    [
        ("CSR", "table"),
        ("texts", "trees"),
        ("edge types", "linear"),
        ("forests", "linear"),
        ("forests with types", "trees"),
        ("unknown labels", "table"),
        ("weights", "trees"),
        ("allowed labels", None),
    ],
)
def test_boosting(data, edges):
    data = VARIANTS[data]
    alone, models = check_same(boosted(edges=edges), data, 3, SAME_OBJECTIVE)
    structure = {name: data[name] for name in ("X", "parents", "edge_types") if name in data}
    for model in models:
        for predicted, expected in zip(
            model.predict(**structure), alone.predict(**structure), strict=True
        ):
            assert predicted.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "crf",
    [
        boosted(order=2),
        boosted(class_weight="balanced"),
        boosted(constraints=NEVER_FALL),
        boosted(objective="kl"),
        boosted(curvature=None),
    ],
    ids=lambda crf: repr(crf)[6:-1],
)
def test_boosting_of_every_kind(crf):
    check_same(crf, DATA, 2, SAME_OBJECTIVE)


def test_models_are_trained_further_together():
    start = linear().fit(X[:6], Y[:6])
    alone = linear().fit(X, Y, init_model=start)
    for model in fitted_together(3, linear(), DATA, init_model=start):
        np.testing.assert_allclose(
            get_weights(model.model_), get_weights(alone.model_), rtol=0, atol=SAME_PARAMETERS
        )
    start = boosted().fit(X, Y)
    alone = boosted().fit(X, Y, init_model=start)
    for model in fitted_together(3, boosted(), DATA, init_model=start):
        np.testing.assert_allclose(
            model.history_["objective"], alone.history_["objective"], rtol=SAME_OBJECTIVE
        )
        assert model.n_rounds_ == 6


def test_objectives_reject_missing_labels_on_all_workers():
    crf = LinearCRF(objective="kl")
    y = [*Y[:20], [Y[20][0], None, *Y[20][2:]], *Y[21:]]
    with pytest.raises(ValueError, match='instance 20, position 1: objective "kl" needs every'):
        fitted_together(2, crf, DATA | {"y": y})
