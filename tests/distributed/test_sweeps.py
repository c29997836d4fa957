"""Workers that sweep over instances of their own: one model, as good as that of one alone."""

import numpy as np
import pytest

from crfx import HiddenUnitCRF, LinearCRF, load
from crfx.distributed.collective import together
from crfx.estimators.session import resumed
from crfx.features.words import Numbering
from crfx.inputs.passed import Passed
from crfx.inputs.training_set import Start, read_training_set
from crfx.model.flat_parameters import get_weights
from crfx.testing import make_task
from crfx.trainers.epochs import block_rates

X, Y = make_task(n_instances=90)
X_DEV, Y_DEV = make_task(1, 30)
WORDS = [[{f"{k}{round(v)}": 1.0 for k, v in enumerate(row)} for row in x] for x in X]
ALMOST_AS_GOOD = 0.03
"""On some 600 positions; what was learned by one of the workers alone is worse by more."""
SAME_SUM = 1e-9
"""Sums over workers are taken in another order."""
ONE = {"random_state": 0, "n_jobs": 1}
UNITS = {"n_hidden": 8, "sweeps": 12, "pretrain_sweeps": 2, **ONE}

KINDS = {
    "linear sgd": (LinearCRF, X, {"trainer": "sgd", "sweeps": 8, **ONE}),
    "linear perceptron": (
        LinearCRF,
        WORDS,
        {"trainer": "perceptron", "sweeps": 8, "n_hashed": 64, "features": "all", **ONE},
    ),
    "linear large margin": (LinearCRF, X, {"trainer": "large_margin", "sweeps": 8, **ONE}),
    "hidden sgd": (HiddenUnitCRF, X, {"l2": 0.1, **UNITS}),
    "hidden perceptron": (
        HiddenUnitCRF,
        WORDS,
        {"trainer": "perceptron", "n_hashed": 64, **UNITS},
    ),
    "hidden herding": (HiddenUnitCRF, X, {"trainer": "perceptron", "herding": True, **UNITS}),
    "hidden pretrained": (HiddenUnitCRF, X, {"pretrain": "discriminative", **UNITS}),
    "hidden contrastive": (HiddenUnitCRF, X, {"pretrain": "contrastive", "step": 0.05, **UNITS}),
}


def shares(n_workers, shares_of=None):
    """Instances by worker."""
    parts = shares_of or [1] * n_workers
    borders = np.cumsum(parts)[:-1] * len(X) // sum(parts)
    return np.split(np.arange(len(X)), borders)


def trained(make, data, parts, **arguments):
    return together(
        len(parts),
        lambda workers: make().fit(
            [data[k] for k in parts[workers.rank]], [Y[k] for k in parts[workers.rank]], **arguments
        ),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_workers_get_one_model_as_good_as_alone(kind):
    cls, data, settings = KINDS[kind]
    alone = cls(**settings).fit(data, Y)
    models = trained(lambda: cls(**settings), data, shares(3))
    for model in models[1:]:
        np.testing.assert_array_equal(get_weights(model.model_), get_weights(models[0].model_))
        assert model.history_["objective"] == models[0].history_["objective"]
    assert models[0].n_iter_ == alone.n_iter_
    assert models[0].score(data, Y) > alone.score(data, Y) - ALMOST_AS_GOOD
    if models[0].__dict__.get("votes_") is not None:
        np.testing.assert_array_equal(models[0].votes_, models[1].votes_)


@pytest.mark.parametrize("kind", ["linear sgd", "hidden sgd"])
def test_objective_covers_all_instances(kind):
    cls, data, settings = KINDS[kind]
    model = trained(lambda: cls(**settings), data, shares(2))[0]
    again = cls(**(settings | {"trainer": "lbfgs", "max_iter": 0, "l2": model._value("l2")}))
    again.fit(data, Y, init_model=model)
    whole = -again.log_likelihood(data, Y).sum()
    weights = get_weights(model.model_)
    expected = whole + model._value("l2") * (weights @ weights)
    np.testing.assert_allclose(model.history_["objective"][-1], expected, rtol=1e-5)


@pytest.mark.parametrize("kind", ["linear sgd", "hidden perceptron"])
def test_shares_may_be_of_very_different_size(kind):
    cls, data, settings = KINDS[kind]
    alone = cls(**settings).fit(data, Y)
    models = trained(lambda: cls(**settings), data, shares(3, [1, 1, 28]))
    assert models[0].score(data, Y) > alone.score(data, Y) - ALMOST_AS_GOOD


@pytest.mark.parametrize(
    "kind", ["linear sgd", "linear perceptron", "hidden sgd", "hidden herding"]
)
def test_interrupted_workers_resume_to_the_same_model(kind, tmp_path):
    cls, data, settings = KINDS[kind]
    parts, path = shares(3), tmp_path / "m.crfx"

    def keep(progress):
        if progress.n_rounds == 3:
            progress.save(path)

    def run(checkpoint=None):
        def work(workers):
            chosen = parts[workers.rank]
            arguments = {"X": [data[k] for k in chosen], "y": [Y[k] for k in chosen]}
            first = keep if workers.rank == 0 else lambda progress: None
            return resumed(cls(**settings), arguments, checkpoint and load(checkpoint), first)

        return together(3, work)

    whole = run()
    for model in run(path):
        np.testing.assert_array_equal(get_weights(model.model_), get_weights(whole[0].model_))
        assert model.history_["objective"] == whole[0].history_["objective"]


def test_block_rates_do_not_depend_on_the_split_of_rows():
    settings = {"n_hashed": 64, "block_steps": "size", **UNITS}
    thin = [[{"a": 1.0}] * len(words) if k < 45 else words for k, words in enumerate(WORDS)]

    def work(workers):
        crf = HiddenUnitCRF(**settings)
        chosen = shares(2)[workers.rank]
        passed = Passed([thin[k] for k in chosen], [Y[k] for k in chosen])
        training_set = read_training_set(passed, crf._input_settings(Numbering(), None), Start())
        return block_rates("size", crf._new_model(training_set, 0), training_set.batch.X).tolist()

    first, second = together(2, work)
    assert first == second


@pytest.mark.parametrize(
    ("cls", "data", "settings", "place"),
    [
        (LinearCRF, WORDS, {"trainer": "sgd", "sweeps": 4, "min_count": 2}, 0),
        (LinearCRF, WORDS, {"trainer": "sgd", "sweeps": 4, "min_count": 2}, 2),
        (HiddenUnitCRF, WORDS, {"n_hidden": 4, "sweeps": 3}, 2),
        (HiddenUnitCRF, X, {"n_hidden": 4, "sweeps": 3, "pretrain": "contrastive"}, 0),
    ],
)
def test_a_worker_may_have_no_instances(cls, data, settings, place):
    parts = shares(2)
    parts.insert(place, np.arange(0))
    models = trained(lambda: cls(**ONE, **settings), data, parts)
    for model in models[1:]:
        np.testing.assert_array_equal(get_weights(model.model_), get_weights(models[0].model_))
        assert model.history_["objective"] == models[0].history_["objective"]
