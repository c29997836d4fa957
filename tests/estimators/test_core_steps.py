"""Steps of the core: those of Python, one mini-batch after the other, with the same bits on any
number of threads. Without dropout: the core and Python draw features to leave out differently.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from crfx import Constraints, FeatureInduction, HiddenUnitCRF, LinearCRF
from crfx.model.flat_parameters import get_weights
from crfx.objectives import KL, CostMatrix, LossAugmented, LossScaled
from crfx.trainers import core_steps, epochs, sgd
from tests.pairwise import pairwise

FLOAT32_STEPS = 1e-4
"""Between some thirty steps in single precision, and of Python in double where it has it."""
random = np.random.default_rng(0)
LENGTHS = [0, 1, 2, 2, *random.integers(3, 8, 16)]
LABELS = ["a", "b", "c", "d"]
Y = [random.choice(LABELS, n) for n in LENGTHS]
X = [
    (random.normal(size=(n, 5)) + 2 * np.eye(5)[[LABELS.index(c) for c in y]]).astype(np.float32)
    for n, y in zip(LENGTHS, Y, strict=True)
]
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 0.7, 0, x)) for x in X]
ONES = [sparse.csr_matrix((x > 1).astype(np.float32)) for x in X]
WORDS = [[[f"w{label}{random.integers(4)}", f"v{random.integers(9)}"] for label in y] for y in Y]
NUMBERS = [
    [{"n": float(random.normal()), "w": words[0]} for words in sentence] for sentence in WORDS
]
UNKNOWN = [[None if random.random() < 0.3 else label for label in y] for y in Y]
UNKNOWN[-1] = [None] * LENGTHS[-1]
PARENTS = [np.array([-1, *(random.integers(-1, k) for k in range(1, n))][:n]) for n in LENGTHS]
TYPES = [random.integers(0, 3, n) for n in LENGTHS]
WEIGHTS = random.random(len(X)) * 2
HEAVY = {"a": 0.3, "b": 3.0, "c": 0.0}
COSTS = CostMatrix(
    1.5 * np.array([[0, 1, 2, 1], [2, 0, 1, 3], [1, 1, 0, 1], [2, 2, 1, 0]]), labels=LABELS
)
KINDS = [LinearCRF, HiddenUnitCRF]
TRAINERS = ["sgd", "perceptron", "large_margin"]
WAYS = {trainer: {"trainer": trainer} for trainer in TRAINERS} | {
    "augmented": {"objective": LossAugmented(0.7), "task_loss": COSTS},
    "expected": {"objective": "expected_loss", "task_loss": COSTS},
    "scaled": {"objective": "loss_scaled"},
    "kl": {"objective": KL(temperature=0.7), "task_loss": COSTS},
    "pseudo": {"objective": "pseudo_likelihood"},
    "labelwise": {"objective": "labelwise_likelihood"},
}
KNOWN_ONLY = ("scaled", "kl")
"""Objectives that take neither unknown labels nor class weights."""
TRUTHS = {
    "known": {},
    "unknown": {"y": UNKNOWN},
    "heavy": {"class_weight": HEAVY},
    "heavy unknown": {"y": UNKNOWN, "class_weight": HEAVY},
}
SHAPES = {
    "plain": {},
    "order 2": {"order": 2},
    "order 3": {"order": 3, "start_end": False},
    "no edges": {"edges": None},
    "typed": {"fit": {"edge_types": TYPES}},
    "forest": {"fit": {"parents": PARENTS}},
    "typed forest": {"fit": {"parents": PARENTS, "edge_types": TYPES}},
    "weights": {"fit": {"sample_weight": WEIGHTS}},
}
DATA = {"dense": X, "sparse": SPARSE}


def trained(kind, trainer="sgd", X=X, y=Y, fit=None, **arguments):
    """Return all parameters after two epochs in mini-batches of three."""
    usual = {"sweeps": 2, "batch_size": 3, "step": 0.05, "n_jobs": 1, "random_state": 0}
    if kind is HiddenUnitCRF:
        usual |= {"n_hidden": 5, "dropout": 0.0, "burn_in": 0}
    crf = kind(trainer=trainer, **(usual | arguments)).fit(X, y, **(fit or {}))
    return get_weights(crf.model_)


def assert_core_is_python(monkeypatch, kind, **arguments):
    def forbidden(*_):
        raise AssertionError("Python took a step")

    start = trained(kind, **arguments | {"sweeps": 0})
    with monkeypatch.context() as patch:
        patch.setattr("crfx.trainers.mini_batches.MiniBatches.__call__", forbidden)
        core = trained(kind, **arguments)
    with monkeypatch.context() as patch:
        patch.setattr(epochs, "can_take_steps", lambda *_: False)
        python = trained(kind, **arguments)
    assert np.isfinite(python).all()
    assert np.abs(python - start).max() > 100 * FLOAT32_STEPS
    np.testing.assert_allclose(core, python, rtol=FLOAT32_STEPS, atol=FLOAT32_STEPS)


@pytest.mark.parametrize(
    ("kind", "way", "shape", "truth", "data"),
    pairwise(KINDS, list(WAYS), list(SHAPES), list(TRUTHS), list(DATA)),
)
def test_objectives_and_structures(monkeypatch, kind, way, shape, truth, data):
    arguments = dict(WAYS[way])
    if "task_loss" in arguments and data == "sparse":
        arguments["task_loss"] = replace(COSTS, normalize=True)
    if way not in KNOWN_ONLY:
        arguments |= TRUTHS[truth]
    assert_core_is_python(monkeypatch, kind, X=DATA[data], **arguments, **SHAPES[shape])


SETTINGS = {
    "one instance a step": {"batch_size": 1},
    "average": {"batch_size": 5, "burn_in": 1, "sweeps": 3},
    "penalty": {"l2": 0.5},
    "shrunk anew": {"l2": 100.0, "step": 0.3, "batch_size": 1, "sweeps": 4},
    "ones": {"X": ONES},
}
LINEAR_SETTINGS = {
    "observed": {"features": "observed"},
    "all": {"features": "all", "batch_size": 1},
    "words": {"X": WORDS, "step": 0.1},
    "numbers": {"X": NUMBERS},
}
HIDDEN_SETTINGS = {
    "skip": {"skip": True},
    "no units": {"skip": True, "n_hidden": 0},
    "relu": {"activation": "relu"},
    "tanh": {"activation": "tanh"},
    "sigmoid": {"activation": "sigmoid"},
    "viterbi": {"decode": "viterbi"},
}


@pytest.mark.parametrize(
    ("kind", "trainer", "setting", "data"),
    [
        (kind, *row)
        for kind, settings in zip(KINDS, (LINEAR_SETTINGS, HIDDEN_SETTINGS), strict=True)
        for row in pairwise(["sgd", "perceptron"], list((SETTINGS | settings).items()), list(DATA))
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_settings(monkeypatch, kind, trainer, setting, data):
    arguments = {"trainer": trainer, "X": DATA[data], **setting[1]}
    assert_core_is_python(monkeypatch, kind, **arguments)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [(LinearCRF, sgd.AveragedParameters), (HiddenUnitCRF, core_steps.CoreParameters)],
)
def test_settings_count_shrinkage_anew(monkeypatch, kind, parameters):
    """The companion: the shrinkage of all steps together passes the border."""
    restarted, run = [], parameters.run

    def spy(self, *arguments, **options):
        before = self._product
        run(self, *arguments, **options)
        restarted.append(self._product > before)

    monkeypatch.setattr(core_steps, "STEPS_AT_ONCE", 1)
    monkeypatch.setattr(parameters, "run", spy)
    trained(kind, **SETTINGS["shrunk anew"])
    assert any(restarted)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_settings_move_parameters(trainer):
    """The companion: what the cases above vary moves the parameters by more than rounding."""
    plain = trained(HiddenUnitCRF, trainer)
    for other in (
        {"batch_size": 5},
        {"l2": 0.5},
        {"activation": "relu" if trainer == "sgd" else "tanh"},
        {"fit": {"sample_weight": WEIGHTS}},
        {"X": SPARSE},
    ):
        moved = np.abs(trained(HiddenUnitCRF, trainer, **other) - plain).max()
        assert moved > 10 * FLOAT32_STEPS


PAIRS = Constraints(forbidden=[("a", "b"), ("d", "a"), ("b", "b")], end_forbidden=["a"])
ALLOWED_Y = [["b", "a", "c", "c", "b", "d", "d", "c"][8 - n :] for n in LENGTHS]
ALLOWED = [[None if k % 2 else {label, "c"} for k, label in enumerate(y)] for y in ALLOWED_Y]
CONSTRAINED = ["plain", "order 2", "order 3", "no edges"]


@pytest.mark.parametrize(
    ("kind", "way", "shape", "allowed"), pairwise(KINDS, list(WAYS), CONSTRAINED, [None, ALLOWED])
)
def test_constraints_with_short_chains(monkeypatch, kind, way, shape, allowed):
    """Chains of two and three positions have no edge of order 3."""
    fit = {} if allowed is None else {"allowed": allowed}
    arguments = WAYS[way] | SHAPES[shape] | {"y": ALLOWED_Y, "constraints": PAIRS, "fit": fit}
    assert_core_is_python(monkeypatch, kind, **arguments)


BASES = {
    "plain": {},
    "no edges": {"edges": None},
    "a table for each edge": {"edges": "linear"},
    "typed": {"fit": {"edge_types": TYPES}},
    "forest": {"fit": {"parents": PARENTS}},
}


@pytest.mark.parametrize(
    ("kind", "base", "way", "edges"), pairwise(KINDS, list(BASES), list(WAYS), ["table", None])
)
def test_base_model(monkeypatch, kind, base, way, edges):
    settings = dict(BASES[base])
    fit = settings.pop("fit", {})
    below = LinearCRF(l2=5.0, max_iter=3, **settings).fit(X, Y, **fit)
    if kind is LinearCRF and edges == settings.get("edges", "table"):
        below = HiddenUnitCRF(3, edges=edges, step=0.1, sweeps=2).fit(X, Y, **fit)
    if edges is None and "parents" in fit:
        edges = "table"
    fit = {**fit, "init_model": below}
    assert_core_is_python(monkeypatch, kind, edges=edges, fit=fit, **WAYS[way])


def test_base_model_changes_steps():
    """The companion: what the base has right already moves no weight."""
    base = LinearCRF(edges=None, l2=1e-3).fit(WORDS, Y)
    above, alone = (
        trained(LinearCRF, "large_margin", X=WORDS, fit={"init_model": init_model})
        for init_model in (base, None)
    )
    assert not np.allclose(above, alone)


def test_conjunctions(monkeypatch):
    settings = FeatureInduction(rounds=1, min_count=1, min_gain=0.0, confidence=1.0)
    start = LinearCRF(feature_induction=settings, max_iter=5).fit(WORDS, Y)
    assert start.induced_features_
    assert_core_is_python(monkeypatch, LinearCRF, X=WORDS, fit={"init_model": start})


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_tiny_probability(monkeypatch, kind):
    """Messages do not resolve such marginals: the label-wise likelihood sums them one by one."""
    others = {label: LABELS[k - 1] for k, label in enumerate(LABELS)}
    wrong = [[others[label] for label in labels] for labels in Y]
    base = LinearCRF(l2=1e-4, max_iter=50, edges="linear").fit(X, wrong)
    base.model_.node.weights *= 20
    arguments = {"objective": "labelwise_likelihood", "fit": {"init_model": base}}
    assert_core_is_python(monkeypatch, kind, **arguments)


def test_forest_of_chains_is_a_chain():
    """Forests have no score for the last label."""
    fit = {"parents": [np.arange(n) - 1 for n in LENGTHS]}
    for kind, trainer in itertools.product(KINDS, TRAINERS):
        chain, forest = (
            trained(kind, trainer, start_end=False, fit=arguments) for arguments in (None, fit)
        )
        np.testing.assert_allclose(forest, chain, rtol=FLOAT32_STEPS, atol=FLOAT32_STEPS)


@pytest.mark.parametrize(
    ("kind", "arguments", "by_core"),
    [
        (LinearCRF, {"X": WORDS}, True),
        (LinearCRF, {"edges": "linear"}, False),
        (LinearCRF, {"objective": "expected_loss", "task_loss": "zero_one"}, False),
        (LinearCRF, {"objective": LossScaled(longest=2)}, False),
        (HiddenUnitCRF, {"X": SPARSE, "edges": None}, True),
        (HiddenUnitCRF, {"objective": "expected_loss", "task_loss": "zero_one"}, False),
    ],
)
def test_python_takes_steps_unsupported_by_the_core(monkeypatch, kind, arguments, by_core):
    """Linear edges, candidates and samples."""
    answers, whole = [], epochs.can_take_steps

    def spy(*args):
        answers.append(whole(*args))
        return answers[-1]

    monkeypatch.setattr(epochs, "can_take_steps", spy)
    trained(kind, **arguments, sweeps=1)
    assert answers == [by_core]


@pytest.mark.parametrize(
    ("kind", "data", "dropout", "batch_size"),
    [(LinearCRF, "sparse", None, 1)]
    + [(HiddenUnitCRF, *row) for row in pairwise(list(DATA), [0.0, 0.4], [1, 3])],
)
def test_epoch_in_parts_is_the_same(monkeypatch, kind, data, dropout, batch_size):
    """Dropout and the length of a step depend only on the number of the step."""
    arguments = {"X": DATA[data], "batch_size": batch_size}
    arguments |= {} if dropout is None else {"dropout": dropout}
    whole = trained(kind, **arguments)
    monkeypatch.setattr(core_steps, "STEPS_AT_ONCE", 2)
    np.testing.assert_array_equal(trained(kind, **arguments), whole)


# Threads ----------------------------------------------------------------------------------------

WIDE_LABELS = [f"l{k}" for k in range(12)]
WIDE_LENGTHS = random.integers(1, 20, 80)
WIDE_Y = [random.choice(WIDE_LABELS, n) for n in WIDE_LENGTHS]
WIDE_X = [random.normal(size=(n, 400)).astype(np.float32) for n in WIDE_LENGTHS]
WIDE_SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 1.3, 0, x)) for x in WIDE_X]
WIDE_UNKNOWN = [[None if random.random() < 0.2 else label for label in labels] for labels in WIDE_Y]
WIDE = {"batch_size": 80, "l2": 0.5, "step": 0.01}
"""Enough work in a step for more than two threads (`threads_worth` in mini_batch.hpp)."""
WIDE_DATA = {"dense": WIDE_X, "sparse": WIDE_SPARSE}
WIDE_ARGUMENTS = {
    "plain": {},
    "large margin": {"trainer": "large_margin"},
    "order 2": {"order": 2},
    "unknown": {"y": WIDE_UNKNOWN},
    "balanced": {"class_weight": "balanced", "y": WIDE_UNKNOWN},
    "expected": {"objective": "expected_loss"},
    "kl": {"objective": "kl"},
    "pseudo": {"objective": "pseudo_likelihood"},
    "labelwise": {"objective": "labelwise_likelihood"},
    "augmented": {"objective": "loss_augmented"},
    "forest": {"fit": {"parents": [np.arange(n) // 2 - (np.arange(n) == 0) for n in WIDE_LENGTHS]}},
}


@pytest.mark.parametrize(
    ("kind", "data", "arguments"), pairwise(KINDS, list(WIDE_DATA), list(WIDE_ARGUMENTS))
)
def test_core_steps_are_equal_for_any_thread_count(kind, data, arguments):
    arguments = WIDE | {"X": WIDE_DATA[data], "y": WIDE_Y} | WIDE_ARGUMENTS[arguments]
    if kind is HiddenUnitCRF:
        arguments |= {"n_hidden": 30, "dropout": 0.3, "skip": True}
    first, *others = (trained(kind, **arguments, n_jobs=n) for n in (1, 2, 3))
    assert np.isfinite(first).all()
    for other in others:
        np.testing.assert_array_equal(other, first)


@pytest.mark.parametrize("kind", KINDS)
def test_training_raises_if_scores_overflow(kind):
    arguments = WIDE | {"X": [np.float32(1e30) * x for x in WIDE_X], "batch_size": 40, "l2": 0.0}
    arguments |= {} if kind is LinearCRF else {"n_hidden": 30}
    for n_jobs in (1, 2):
        with pytest.raises(ValueError, match="node score"):
            trained(kind, y=WIDE_Y, n_jobs=n_jobs, **arguments)
