"""Steps of the core lower what the objectives say, as those that Python takes; on any threads."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from crfx import Constraints, HiddenUnitCRF, LinearCRF
from crfx.model.flat_parameters import get_weights
from crfx.objectives import KL, CostMatrix, LossAugmented
from crfx.trainers import epochs

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
UNKNOWN = [
    [None if random.random() < 0.3 else label for label in labels] for labels in (*Y[:-1], ())
] + [[None] * len(Y[-1])]
UNKNOWN = [UNKNOWN[k] if k < len(Y) - 1 else UNKNOWN[-1] for k in range(len(Y))]
PARENTS = [np.array([-1, *(random.integers(-1, k) for k in range(1, n))][:n]) for n in LENGTHS]
TYPES = [random.integers(0, 3, n) for n in LENGTHS]
WEIGHTS = random.random(len(X)) * 2
HEAVY = {"a": 0.3, "b": 3.0, "c": 0.0}
COSTS = CostMatrix(
    1.5 * np.array([[0, 1, 2, 1], [2, 0, 1, 3], [1, 1, 0, 1], [2, 2, 1, 0]]), labels=LABELS
)
PAIRS = Constraints(forbidden=[("a", "b"), ("d", "a"), ("b", "b")], end_forbidden=["a"])
ALLOWED_Y = [["b", "a", "c", "c", "b", "d", "d", "c"][8 - n :] for n in LENGTHS]
OBJECTIVES = {
    "augmented": {"objective": LossAugmented(0.7), "task_loss": COSTS},
    "expected": {"objective": "expected_loss", "task_loss": COSTS},
    "scaled": {"objective": "loss_scaled"},
    "kl": {"objective": KL(temperature=0.7), "task_loss": COSTS},
    "pseudo": {"objective": "pseudo_likelihood"},
    "labelwise": {"objective": "labelwise_likelihood"},
}
WITHOUT_UNKNOWN = ("scaled", "kl")
TRAINERS = ["sgd", "perceptron", "large_margin"]


def trained(kind, trainer="sgd", X=X, y=Y, fit=None, **arguments):
    """All parameters after two sweeps in mini-batches of three."""
    usual = {"sweeps": 2, "batch_size": 3, "step": 0.05, "n_jobs": 1, "random_state": 0}
    if kind is HiddenUnitCRF:
        usual |= {"n_hidden": 5, "dropout": 0.0, "burn_in": 0}
    crf = kind(trainer=trainer, **(usual | arguments)).fit(X, y, **(fit or {}))
    return get_weights(crf.model_)


def by_python(patch):
    patch.setattr(epochs, "can_take_steps", lambda *_: False)
    patch.setattr(epochs, "can_take_steps", lambda *_: False)


def assert_core_is_python(monkeypatch, kind, **arguments):
    def forbidden(*_):
        raise AssertionError("Python took a step")

    start = trained(kind, **arguments | {"sweeps": 0})
    with monkeypatch.context() as patch:
        patch.setattr("crfx.trainers.mini_batches.MiniBatches.__call__", forbidden)
        core = trained(kind, **arguments)
    with monkeypatch.context() as patch:
        by_python(patch)
        python = trained(kind, **arguments)
    assert np.isfinite(python).all()
    assert np.abs(python - start).max() > 100 * FLOAT32_STEPS
    np.testing.assert_allclose(core, python, rtol=FLOAT32_STEPS, atol=FLOAT32_STEPS)


KINDS = pytest.mark.parametrize("kind", [LinearCRF, HiddenUnitCRF], ids=["linear", "hidden"])
SHAPES = {
    "plain": {},
    "order 2": {"order": 2},
    "order 3": {"order": 3, "start_end": False},
    "no edges": {"edges": None},
    "typed": {"fit": {"edge_types": TYPES}},
    "forest": {"fit": {"parents": PARENTS}},
    "typed forest": {"fit": {"parents": PARENTS, "edge_types": TYPES}},
    "weights": {"fit": {"sample_weight": WEIGHTS}},
    "sparse": {"X": SPARSE},
}


@KINDS
@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_unknown_labels(monkeypatch, kind, trainer, shape):
    assert_core_is_python(monkeypatch, kind, trainer=trainer, y=UNKNOWN, **SHAPES[shape])


@KINDS
@pytest.mark.parametrize("y", [Y, UNKNOWN], ids=["known", "unknown"])
@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_class_weights(monkeypatch, kind, trainer, shape, y):
    assert_core_is_python(
        monkeypatch, kind, trainer=trainer, y=y, class_weight=HEAVY, **SHAPES[shape]
    )


@KINDS
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_objectives(monkeypatch, kind, objective, shape, normalize):
    arguments = dict(OBJECTIVES[objective])
    if "task_loss" in arguments:
        arguments["task_loss"] = replace(COSTS, normalize=normalize)
    assert_core_is_python(monkeypatch, kind, **arguments, **SHAPES[shape])


@KINDS
@pytest.mark.parametrize("class_weight", [None, HEAVY], ids=["equal", "heavy"])
@pytest.mark.parametrize("objective", [name for name in OBJECTIVES if name not in WITHOUT_UNKNOWN])
def test_objectives_with_unknown_labels(monkeypatch, kind, objective, class_weight):
    assert_core_is_python(
        monkeypatch, kind, y=UNKNOWN, class_weight=class_weight, **OBJECTIVES[objective]
    )


@KINDS
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("way", [*TRAINERS, *OBJECTIVES])
def test_constraints_with_short_chains(monkeypatch, kind, way, order):
    """Chains of two and three positions have no edge of order 3."""
    arguments = {"trainer": way} if way in TRAINERS else OBJECTIVES[way]
    assert_core_is_python(
        monkeypatch, kind, y=ALLOWED_Y, order=order, constraints=PAIRS, **arguments
    )


BASES = {
    "plain": {},
    "no edges": {"edges": None},
    "a table for each edge": {"edges": "linear"},
    "typed": {"fit": {"edge_types": TYPES}},
    "forest": {"fit": {"parents": PARENTS}},
}


@KINDS
@pytest.mark.parametrize("edges", ["table", None])
@pytest.mark.parametrize("way", [*TRAINERS, *OBJECTIVES])
@pytest.mark.parametrize("base", BASES)
def test_base_model(monkeypatch, kind, base, way, edges):
    settings = dict(BASES[base])
    fit = settings.pop("fit", {})
    below = LinearCRF(l2=5.0, max_iter=3, **settings).fit(X, Y, **fit)
    if kind is LinearCRF and edges == settings.get("edges", "table"):
        below = HiddenUnitCRF(3, edges=edges, step=0.1, sweeps=2).fit(X, Y, **fit)
    if edges is None and "parents" in fit:
        edges = "table"
    arguments = {"trainer": way} if way in TRAINERS else OBJECTIVES[way]
    assert_core_is_python(
        monkeypatch, kind, edges=edges, fit={**fit, "init_model": below}, **arguments
    )


@KINDS
def test_labels_of_tiny_probability(monkeypatch, kind):
    """Messages do not resolve such marginals: the label-wise likelihood sums them one by one."""
    others = {label: LABELS[k - 1] for k, label in enumerate(LABELS)}
    wrong = [[others[label] for label in labels] for labels in Y]
    base = LinearCRF(l2=1e-4, max_iter=50, edges="linear").fit(X, wrong)
    base.model_.node.weights *= 20
    arguments = {"objective": "labelwise_likelihood", "fit": {"init_model": base}}
    assert_core_is_python(monkeypatch, kind, **arguments)


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("features", ["all", "observed"])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_dense_features(monkeypatch, trainer, features, batch_size):
    assert_core_is_python(
        monkeypatch, LinearCRF, trainer=trainer, features=features, batch_size=batch_size
    )


# Threads ----------------------------------------------------------------------------------------

WIDE_LABELS = [f"l{k}" for k in range(12)]
WIDE_LENGTHS = random.integers(1, 20, 80)
WIDE_Y = [random.choice(WIDE_LABELS, n) for n in WIDE_LENGTHS]
WIDE_X = [random.normal(size=(n, 400)).astype(np.float32) for n in WIDE_LENGTHS]
WIDE_SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 1.3, 0, x)) for x in WIDE_X]
WIDE_UNKNOWN = [[None if random.random() < 0.2 else label for label in labels] for labels in WIDE_Y]
WIDE = {"batch_size": 80, "l2": 0.5, "step": 0.01}
"""Enough work in a step for more than two threads (`threads_worth` in mini_batch.hpp)."""


@KINDS
@pytest.mark.parametrize("X", [WIDE_X, WIDE_SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"trainer": "large_margin"},
        {"order": 2},
        {"y": WIDE_UNKNOWN},
        {"class_weight": "balanced", "y": WIDE_UNKNOWN},
        {"objective": "expected_loss"},
        {"objective": "kl"},
        {"objective": "pseudo_likelihood"},
        {"objective": "labelwise_likelihood"},
        {"objective": "loss_augmented"},
        {"fit": {"parents": [np.arange(n) // 2 - (np.arange(n) == 0) for n in WIDE_LENGTHS]}},
    ],
    ids=lambda arguments: "-".join(map(str, itertools.chain(*arguments.items())))[:40],
)
def test_bits_do_not_depend_on_threads(kind, X, arguments):
    arguments = WIDE | {"X": X, "y": WIDE_Y} | arguments
    if kind is HiddenUnitCRF:
        arguments |= {"n_hidden": 30, "dropout": 0.3, "skip": True}
    first, *others = (trained(kind, **arguments, n_jobs=n) for n in (1, 2, 3))
    assert np.isfinite(first).all()
    for other in others:
        np.testing.assert_array_equal(other, first)


@KINDS
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_raises_where_scores_overflow_on_any_thread(kind, n_jobs):
    more = {} if kind is LinearCRF else {"n_hidden": 30}
    huge = [np.float32(1e30) * x for x in WIDE_X]
    with pytest.raises(ValueError, match="node score"):
        trained(
            kind, X=huge, y=WIDE_Y, n_jobs=n_jobs, **WIDE | {"batch_size": 40, "l2": 0.0} | more
        )
