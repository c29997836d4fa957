"""HiddenUnitCRF in model files: the same again, and files that are damaged are refused."""

import numpy as np
import pytest
from scipy import sparse

from crfx import HiddenUnitCRF, load
from crfx.testing import make_task

X, Y = make_task()
NOT_A_MODEL = "is not a model file of crfx"
TRAINERS = ["sgd", "lbfgs", "perceptron", "large_margin"]


def crf(trainer="sgd", **arguments):
    usual = {"n_hidden": 5, "sweeps": 4, "max_iter": 9, "step": 0.1}
    return HiddenUnitCRF(trainer=trainer, random_state=0, n_jobs=1, **(usual | arguments))


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"activation": "relu", "skip": True},
        {"activation": "tanh", "edges": None},
        {"activation": "sigmoid", "order": 2, "start_end": False},
        {"n_hidden": 0, "skip": True, "decode": "marginal"},
    ],
    ids=str,
)
def test_round_trip(arguments, trainer, tmp_path):
    found = crf(trainer, **arguments).fit(X, Y)
    found.save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx")
    assert again.get_params() == found.get_params()
    assert again.history_ == found.history_
    assert (again.n_iter_, again.best_iteration_) == (found.n_iter_, found.best_iteration_)
    np.testing.assert_array_equal(again.model_.node.weights, found.model_.node.weights)
    for one, other in zip(again.predict(X), found.predict(X), strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(again.predict_marginals(X), found.predict_marginals(X), strict=True):
        np.testing.assert_array_equal(one, other)


def test_votes_are_kept(tmp_path):
    found = crf("perceptron", herding=True, burn_in=1).fit(X, Y)
    found.save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx")
    for one, other in zip(again.predict_marginals(X), found.predict_marginals(X), strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_votes_are_kept_as_none(tmp_path):
    found = crf("perceptron", herding=True, burn_in=9).fit(X, Y)
    found.save(tmp_path / "m.crfx")
    assert load(tmp_path / "m.crfx").votes_ == []


def test_words_are_kept(tmp_path):
    words = [[f"w{label}" for label in labels] for labels in Y]
    found = crf().fit(words, Y)
    found.save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx")
    np.testing.assert_array_equal(again.feature_names_in_, found.feature_names_in_)
    for one, other in zip(again.predict(words), found.predict(words), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_rewritten_unchanged_is_read(tmp_path, changed):
    """The companion of the refusals."""
    for trainer in TRAINERS:
        crf(trainer).fit(X, Y).save(tmp_path / "m.crfx")
        changed(tmp_path / "m.crfx", lambda values: None, {"node.weights": lambda array: array})
        load(tmp_path / "m.crfx")


def part(*names, value):
    """A change of the manifest."""

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
        (part("model", "hidden", "activation", value=3), "unknown activation 3"),
        (part("model", "hidden", "n_hidden", value=6), "not those of 6 hidden units"),
        (part("model", "hidden", "n_hidden", value=-1), "it has -1 hidden units"),
        (part("model", "hidden", "n_hidden", value=5.0), "it has 5.0 hidden units"),
        (part("model", "hidden", "n_hidden", value=True), "hidden units"),
        (part("model", "hidden", "n_hidden", value=2**62), "hidden units"),
        (part("model", "hidden", "skip", value=True), "not those of 5 hidden units"),
        (part("model", "hidden", "skip", value="no"), "hidden units"),
        (part("model", "hidden", value=None), "hidden"),
        (part("model", "hidden", value=[1]), NOT_A_MODEL),
        (part("model", "n_labels", value=4), "labels are not as many"),
        (part("model", "functions", value="linear"), NOT_A_MODEL),
        (part("model", "functions", value="trees"), NOT_A_MODEL),
        (part("n_features", value=5), "not those of 5 hidden units"),
        (part("class", value="HiddenCRF"), "which this crfx does not know"),
        (part("class", value="LinearCRF"), NOT_A_MODEL),
        (part("arguments", "n_units", value=3), NOT_A_MODEL),
        (part("training", "trainer", value="adam"), "in a way that this crfx does not know"),
        (part("training", "trainer", value="lbfgs"), NOT_A_MODEL),
        (part("training", "n_done", value=-1), "its n_done is -1: it must be a whole number"),
        (part("training", "n_done", value="x"), NOT_A_MODEL),
        (part("training", "n_done", value=None), "n_done"),
        (part("training", "arrays", value=["values"]), "lacks what it takes to go on"),
        (part("training", "arrays", value=["values", "sum", "x"]), NOT_A_MODEL),
        (part("training", "numbers", value={}), NOT_A_MODEL),
        (part("training", "numbers", "step", value=None), "step"),
        (part("training", "numbers", "step", value=0.0), "impossible step"),
        (part("training", "numbers", "product", value=0.0), "impossible step"),
        (part("training", "numbers", "n_counted", value=-1), "counts what is not there"),
        (part("training", "numbers", "more", value=1.0), "lacks what it takes"),
        (part("training", value=[1]), NOT_A_MODEL),
    ],
)
def test_a_manifest_that_lies(manifest, message, tmp_path, changed):
    crf().fit(X, Y).save(tmp_path / "m.crfx")
    changed(tmp_path / "m.crfx", manifest)
    with pytest.raises(ValueError, match=NOT_A_MODEL) as caught:
        load(tmp_path / "m.crfx")
    assert caught.match(message)


def with_nan(array):
    array[0] = np.nan
    return array


DAMAGES = {
    "short": lambda array: array[:-1],
    "long": lambda array: np.append(array, array[:1]),
    "nan": with_nan,
    "whole numbers": lambda array: np.zeros(array.shape, np.int32),
    "missing": lambda array: None,
    "two axes": lambda array: array[None],
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["node.weights", "training.values", "training.sum"])
def test_arrays_that_do_not_fit(name, damage, tmp_path, changed):
    crf().fit(X, Y).save(tmp_path / "m.crfx")
    changed(tmp_path / "m.crfx", arrays={name: DAMAGES[damage]})
    with pytest.raises(ValueError, match=NOT_A_MODEL):
        load(tmp_path / "m.crfx")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["at", "change0", "turn3", "last_values"])
def test_what_lbfgs_remembers_must_fit(name, damage, tmp_path, changed):
    crf("lbfgs").fit(X, Y).save(tmp_path / "m.crfx")
    changed(tmp_path / "m.crfx", arrays={f"training.{name}": DAMAGES[damage]})
    if name == "last_values" and damage in ("short", "long"):
        load(tmp_path / "m.crfx")  # there may be more or fewer
        return
    with pytest.raises(ValueError, match=NOT_A_MODEL):
        load(tmp_path / "m.crfx")


@pytest.mark.parametrize("memory", [-1, 0, 5, 7, 1.5])
def test_lbfgs_remembers_as_many_steps_as_it_says(memory, tmp_path, changed):
    found = crf("lbfgs").fit(X, Y)
    assert found.training_.standing.numbers["memory"] == 6
    found.save(tmp_path / "m.crfx")
    changed(tmp_path / "m.crfx", part("training", "numbers", "memory", value=memory))
    with pytest.raises(ValueError, match=NOT_A_MODEL):
        load(tmp_path / "m.crfx")


def test_steps_that_were_not_taken(tmp_path, changed):
    """A change of parameters against that of the gradient would be divided by."""
    crf("lbfgs").fit(X, Y).save(tmp_path / "m.crfx")
    changed(tmp_path / "m.crfx", arrays={"training.change2": np.zeros_like})
    with pytest.raises(ValueError, match="steps that it cannot have taken"):
        load(tmp_path / "m.crfx")


@pytest.mark.parametrize("damage", ["short", "nan", "whole numbers"])
def test_votes_that_do_not_fit(damage, tmp_path, changed):
    crf("perceptron", herding=True).fit(X, Y).save(tmp_path / "m.crfx")

    def change(array):
        return DAMAGES[damage](array.T).T

    changed(tmp_path / "m.crfx", arrays={"votes": change})
    with pytest.raises(ValueError, match="its votes"):
        load(tmp_path / "m.crfx")


def test_a_forest_and_sparse_features(tmp_path):
    parents = [np.arange(len(x)) - 1 for x in X]
    given = [sparse.csr_matrix(x) for x in X]
    found = crf().fit(given, Y, parents=parents)
    found.save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx")
    for one, other in zip(
        again.predict(given, parents=parents), found.predict(given, parents=parents), strict=True
    ):
        np.testing.assert_array_equal(one, other)
