"""HiddenUnitCRF in model files: the same again; damaged files are rejected.

`tests/contracts` saves and damages files of every kind of estimator.
"""

import shutil

import numpy as np
import pytest

from crfx import HiddenUnitCRF, load
from crfx.testing import make_task

X, Y = make_task()
NOT_A_MODEL = "is not a model file of crfx"


def crf(trainer="sgd", **arguments):
    usual = {"n_hidden": 5, "sweeps": 4, "max_iter": 9, "step": 0.1}
    return HiddenUnitCRF(trainer=trainer, random_state=0, n_jobs=1, **(usual | arguments))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of every kind that is damaged."""
    folder = tmp_path_factory.mktemp("models")
    crf("sgd").fit(X, Y).save(folder / "sgd")
    crf("lbfgs").fit(X, Y).save(folder / "lbfgs")
    crf("perceptron", herding=True).fit(X, Y).save(folder / "herding")
    return folder


@pytest.fixture
def damaged(files, tmp_path, changed):
    """Return a function that copies a file and changes its manifest or arrays."""

    def damage(name, manifest=None, arrays=None):
        path = tmp_path / "m.crfx"
        shutil.copy(files / name, path)
        changed(path, manifest, arrays)
        return path

    return damage


def assert_rejected(path, message=NOT_A_MODEL):
    with pytest.raises(ValueError, match=NOT_A_MODEL) as caught:
        load(path)
    assert caught.match(message)


@pytest.mark.parametrize(
    ("trainer", "arguments"),
    [
        ("sgd", {"activation": "relu", "skip": True}),
        ("lbfgs", {"activation": "tanh", "edges": None}),
        ("perceptron", {"activation": "sigmoid", "order": 2, "start_end": False}),
        ("large_margin", {"n_hidden": 0, "skip": True, "decode": "marginal"}),
    ],
)
def test_loaded_model_is_the_same(arguments, trainer, tmp_path):
    model = crf(trainer, **arguments).fit(X, Y)
    model.save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx")
    assert again.get_params() == model.get_params()
    assert again.history_ == model.history_
    np.testing.assert_array_equal(again.model_.node.weights, model.model_.node.weights)
    for method in ("predict", "predict_marginals"):
        one, other = (np.concatenate(getattr(each, method)(X)) for each in (again, model))
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["sgd", "lbfgs", "herding"])
def test_load_reads_rewritten_file(name, damaged):
    """The companion of the tests below."""
    load(damaged(name, lambda values: None, {"node.weights": lambda array: array}))


def part(*names, value):
    """Return a change of the manifest."""

    def change(values):
        for name in names[:-1]:
            values = values[name]
        if value is None:
            del values[names[-1]]
        else:
            values[names[-1]] = value

    return change


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (part("model", "hidden", "activation", value="gelu"), "unknown activation 'gelu'"),
        (part("model", "hidden", "n_hidden", value=6), "not those of 6 hidden units"),
        (part("model", "hidden", "n_hidden", value=-1), "it has -1 hidden units"),
        (part("model", "hidden", "n_hidden", value=True), "hidden units"),
        (part("model", "hidden", "skip", value=True), "not those of 5 hidden units"),
        (part("model", "hidden", value=None), "hidden"),
        (part("model", "n_labels", value=4), "labels are not as many"),
        (part("n_features", value=5), "not those of 5 hidden units"),
        (part("class", value="HiddenCRF"), "which this crfx does not know"),
        (part("arguments", "n_units", value=3), NOT_A_MODEL),
        (part("training", "trainer", value="adam"), "in a way that this crfx does not know"),
        (part("training", "trainer", value="lbfgs"), NOT_A_MODEL),
        (part("training", "n_done", value=-1), "its n_done is -1: it must be a whole number"),
        (part("training", "arrays", value=["values"]), "lacks what it takes to go on"),
        (part("training", "numbers", "step", value=0.0), "impossible step"),
        (part("training", "numbers", "product", value=0.0), "impossible step"),
        (part("training", "numbers", "n_counted", value=-1), "counts what is not there"),
        (part("training", "numbers", "more", value=1.0), "lacks what it takes"),
    ],
)
def test_load_rejects_inconsistent_manifest(manifest, message, damaged):
    assert_rejected(damaged("sgd", manifest), message)


DAMAGES = {
    "short": lambda array: array[:-1],
    "long": lambda array: np.append(array, array[:1]),
    "nan": lambda array: np.full_like(array, np.nan),
    "whole numbers": lambda array: np.zeros(array.shape, np.int32),
    "missing": lambda array: None,
    "two axes": lambda array: array[None],
}


def test_load_rejects_arrays_of_wrong_shape(damaged):
    for change in DAMAGES.values():
        for name in ("node.weights", "training.values", "training.sum"):
            assert_rejected(damaged("sgd", arrays={name: change}))
        for name in ("at", "change0", "turn3"):
            assert_rejected(damaged("lbfgs", arrays={f"training.{name}": change}))


def test_load_checks_lbfgs_memory_size(files, damaged):
    assert load(files / "lbfgs").training_.standing.numbers["memory"] == 6
    for memory in (-1, 0, 5, 7, 1.5):
        assert_rejected(damaged("lbfgs", part("training", "numbers", "memory", value=memory)))
    for damage, change in DAMAGES.items():  # of the last values there may be any number
        path = damaged("lbfgs", arrays={"training.last_values": change})
        load(path) if damage in ("short", "long") else assert_rejected(path)


def test_load_rejects_invalid_lbfgs_steps(damaged):
    """A change of parameters against that of the gradient would be divided by."""
    path = damaged("lbfgs", arrays={"training.change2": np.zeros_like})
    assert_rejected(path, "steps that it cannot have taken")


def test_load_rejects_votes_of_wrong_shape(damaged):
    for name in ("short", "nan", "whole numbers"):
        change = DAMAGES[name]
        path = damaged("herding", arrays={"votes": lambda array, change=change: change(array.T).T})
        assert_rejected(path, "its votes")
