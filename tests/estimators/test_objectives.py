"""The arguments ``objective`` and ``task_loss``, for every labelling estimator."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, TreeCRF, load
from crfx.objectives import (
    KL,
    CostMatrix,
    ExpectedLoss,
    Hamming,
    LossAugmented,
    LossScaled,
    task_loss,
)

ESTIMATORS = {
    "gbcrf": lambda **a: GBCRF(n_estimators=8, max_depth=2, random_state=0, **a),
    "treecrf": lambda **a: TreeCRF(8, max_leaves=4, learning_rate=0.5, random_state=0, **a),
    "linear": lambda **a: LinearCRF(l2=0.1, **a),
    "linear sgd": lambda **a: LinearCRF(trainer="sgd", l2=0.1, sweeps=8, random_state=0, **a),
    "hidden": lambda **a: HiddenUnitCRF(4, "lbfgs", skip=True, random_state=0, **a),
    "hidden sgd": lambda **a: HiddenUnitCRF(
        4, "sgd", sweeps=8, step=0.1, skip=True, random_state=0, **a
    ),
}
OBJECTIVES = {
    "pseudo_likelihood": {"objective": "pseudo_likelihood"},
    "labelwise_likelihood": {"objective": "labelwise_likelihood"},
    "loss_augmented": {"objective": LossAugmented(0.5)},
    "loss_scaled": {"objective": LossScaled()},
    "expected_loss": {"objective": "expected_loss"},
    "kl": {"objective": KL(0.2)},
    "weighted": {"objective": "loss_augmented", "task_loss": Hamming({"B-X": 2.0})},
    "matrix": {"objective": "kl", "task_loss": CostMatrix(0.5 - 0.5 * np.eye(3))},
    "span": {"objective": ExpectedLoss("kbest", 5), "task_loss": "span_f1"},
}


def task(n=30, seed=0):
    """Labels that features tell with noise, and neighbours help to tell."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = random.integers(2, 9)
        codes = [int(random.integers(3))]
        for _ in range(length - 1):
            codes.append(codes[-1] if random.random() < 0.6 else int(random.integers(3)))
        X.append(np.eye(3)[codes] + random.normal(0, 0.5, (length, 3)))
        y.append([("B-X", "I-X", "O")[code] for code in codes])
    return X, y


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", ["gbcrf", "linear", "others"])
def test_estimators_lower_objectives(kind, objective):
    X, y = task()
    if kind == "others":  # in turns
        others = ["treecrf", "linear sgd", "hidden", "hidden sgd"]
        kind = others[list(OBJECTIVES).index(objective) % len(others)]
    crf = ESTIMATORS[kind](**OBJECTIVES[objective]).fit(X, y)
    values = crf.history_["objective"]
    # The first rounds of TreeCRF are of another objective.
    assert values[-1] < values[3 if kind == "treecrf" else 0]
    assert crf.score(X, y) > 0.6
    again = clone(crf).fit(X, y)
    assert again.history_["objective"] == values
    if kind == "linear":
        plain = ESTIMATORS[kind]().fit(X, y)
        assert np.abs(plain.coef_ - crf.coef_).max() > 1e-2


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_boosting_never_raises_an_objective(objective):
    """Steps are halved where curvature is borrowed; estimates by lists are compared as they are."""
    settings = {"n_estimators": 15, "learning_rate": 1.0, "max_depth": 3, "random_state": 0}
    values = GBCRF(**settings, **OBJECTIVES[objective]).fit(*task()).history_["objective"]
    assert all(later <= earlier + 1e-3 for earlier, later in pairwise(values))


@pytest.mark.filterwarnings("ignore:objective .loss_scaled. samples:RuntimeWarning")
def test_history_counts_sampled_instances():
    X, y = task(15)
    n_long = sum(len(labels) > 6 for labels in y)
    few = ESTIMATORS["gbcrf"](), ESTIMATORS["linear"](max_iter=9), ESTIMATORS["linear sgd"]()
    for crf in few:
        crf.set_params(objective=LossScaled(longest=6, n_samples=30))
        history = crf.fit(X, y).history_
        assert history["sampled_instances"] == [n_long] * len(history["objective"])
        assert all(0 < size <= 32 for size in history["effective_sample_size"])
    assert "sampled_instances" not in ESTIMATORS["linear"]().fit(X, y).history_


@pytest.mark.parametrize(
    ("kind", "objective"),
    [
        ("gbcrf", "matrix"),
        ("treecrf", "loss_scaled"),
        ("linear", "span"),
        ("hidden sgd", "weighted"),
    ],
)
def test_files_keep_the_objective(kind, objective, tmp_path):
    X, y = task()
    crf = ESTIMATORS[kind](**OBJECTIVES[objective]).fit(X, y)
    crf.save(tmp_path / "model.crfx")
    loaded = load(tmp_path / "model.crfx")
    settings = OBJECTIVES[objective]
    assert loaded.objective == settings["objective"]
    if isinstance(settings.get("task_loss"), CostMatrix):
        np.testing.assert_array_equal(loaded.task_loss.matrix, settings["task_loss"].matrix)
    else:
        assert loaded.task_loss == settings.get("task_loss")
    for a, b in zip(crf.predict(X), loaded.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_warm_start_with_another_objective_keeps_weights_only():
    """Its steps and values are no guide: it would seem to have arrived."""
    X, y = task()
    first = ESTIMATORS["hidden"](objective="expected_loss").fit(X, y)
    on = ESTIMATORS["hidden"](objective="likelihood").fit(X, y, init_model=first)
    assert on.n_iter_ == len(on.history_["objective"]) > 3
    plain = ESTIMATORS["hidden"]().fit(X, y)
    assert on.history_["objective"][-1] < 1.05 * plain.history_["objective"][-1]


class OwnObjective:
    """A user-defined objective: a name, whether it needs a loss, and `bind`."""

    name, uses_loss = "own", True

    def bind(self, truth, loss, n_jobs):
        return KL(0.3).bind(truth, loss, n_jobs)


@pytest.mark.parametrize("kind", ["gbcrf", "treecrf", "hidden"])
def test_user_defined_objective(kind, tmp_path):
    X, y = task()
    crf = ESTIMATORS[kind](objective=OwnObjective(), task_loss="hamming").fit(X, y)
    same = ESTIMATORS[kind](objective=KL(0.3)).fit(X, y)
    assert crf.history_["objective"] == same.history_["objective"]
    crf.save(tmp_path / "model.crfx")
    loaded = load(tmp_path / "model.crfx")
    assert (loaded.objective, loaded.task_loss) == ("likelihood", None)


@pytest.mark.parametrize(
    "arguments",
    [{"objective": 5}, {"objective": "kl2"}, {"objective": {"objective": "kl", "temperature": -1}},
     {"objective": "kl", "task_loss": {"task_loss": "foo"}},
     {"objective": "kl", "task_loss": {"task_loss": "matrix", "matrix": "x", "normalize": False}}],
)  # fmt: skip
def test_load_rejects_broken_objectives(arguments, tmp_path, changed):
    path = tmp_path / "model.crfx"
    LinearCRF(max_iter=1).fit(*task()).save(path)
    changed(path, lambda values: values["arguments"].update(arguments))
    with pytest.raises(ValueError, match="is not a model file of crfx"):
        load(path)


def test_loss_of_an_eval_set_is_the_objective():
    X, y = task()
    crf = LinearCRF(l2=0.1, objective="expected_loss").fit(X, y, eval_set=(X, y))
    marginals = np.concatenate(crf.predict_marginals(X))
    codes = np.searchsorted(crf.classes_, np.concatenate(y))
    wrong = 1 - marginals[np.arange(len(codes)), codes]
    assert crf.history_["eval_metric"][-1] == pytest.approx(wrong.mean(), rel=1e-4)


def test_cost_matrices_are_read_by_their_labels():
    pandas = pytest.importorskip("pandas")
    classes = np.array(["A", "B", "C"])
    sorted_costs = np.arange(9.0).reshape(3, 3) * (1 - np.eye(3))
    order = [2, 0, 1]
    shuffled, names = sorted_costs[np.ix_(order, order)], ["C", "A", "B"]
    frame = pandas.DataFrame(shuffled, index=names, columns=names)
    for costs in (CostMatrix(shuffled, labels=names), CostMatrix(frame)):
        np.testing.assert_array_equal(costs.costs(classes), sorted_costs)
        again = task_loss.from_plain(task_loss.to_plain(costs))
        np.testing.assert_array_equal(again.costs(classes), sorted_costs)
    with pytest.raises(ValueError, match="has no label 'C', which y has"):
        CostMatrix(np.zeros((2, 2)), labels=["A", "B"]).costs(classes)
    with pytest.raises(ValueError, match="one label for every row"):
        CostMatrix(np.zeros((2, 2)), labels=["A", "A"]).costs(classes)
    with pytest.raises(ValueError, match="other labels for its rows"):
        CostMatrix(pandas.DataFrame(np.zeros((2, 2)), index=["A", "B"], columns=["B", "A"]))


def test_cost_matrix_changes_predictions():
    """Missing a B costs twenty times as much as any other mistake."""
    X, y = task(80)

    def missed(crf):
        predicted = np.concatenate(crf.fit(X, y).predict(X))
        return int(((np.concatenate(y) == "B-X") & (predicted != "B-X")).sum())

    costly = Hamming(weights={"B-X": 20.0})
    plain = missed(LinearCRF(l2=0.1))
    assert missed(LinearCRF(l2=0.1, objective="loss_augmented", task_loss=costly)) < plain


def test_unknown_labels():
    X, y = task()
    y[0][0] = None
    for objective in ("labelwise_likelihood", "expected_loss", "loss_augmented"):
        LinearCRF(objective=objective).fit(X, y)
    for objective in ("kl", "loss_scaled"):
        with pytest.raises(ValueError, match=r"instance 0, position 0: .* needs every label"):
            LinearCRF(objective=objective).fit(X, y)
    with pytest.raises(ValueError, match="eval_set: instance 0, position 0"):
        LinearCRF(objective="kl").fit(*task(), eval_set=(X, y))


@pytest.mark.parametrize(
    ("crf", "message"),
    [
        (LinearCRF(objective="kl", task_loss={"O": 5}), "task_loss is a dict: .* Hamming"),
        (LinearCRF(objective="loss_scaled", task_loss="span_f1"), "a sum over positions"),
        (LinearCRF(objective="kl", task_loss=CostMatrix(np.zeros((2, 2)))), "must be .3, 3."),
        (LinearCRF(objective="kl", task_loss=CostMatrix(np.ones((3, 3)))), "right .* cost 0"),
        (LinearCRF(objective="kl", task_loss=Hamming({"Z": 1.0})), "'Z', a label that y has not"),
        (LinearCRF(objective="kl", trainer="perceptron"), "has a loss of its own"),
        (GBCRF(objective="loss_scaled", curvature="mixing"), "curvature is 'mixing', .* its own"),
    ],
)
def test_fit_rejects_unsuitable_losses(crf, message):
    with pytest.raises(ValueError, match=message):
        crf.fit(*task(5))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KL(None), "temperature is None"),
        (lambda: LossAugmented("2"), "weight is '2'"),
        (lambda: LossAugmented(1e39), "weight is 1e.39"),
        (lambda: LossScaled(seed=2**64), "seed is"),
        (lambda: ExpectedLoss(n_candidates=2**33), "n_candidates is"),
        (lambda: Hamming({"O": -1.0}), "weight of 'O' is -1.0"),
        (lambda: Hamming({"O": "x"}), "weight of 'O' is 'x'"),
        (lambda: Hamming([1, 2]), "weights is .1, 2.: pass a dict"),
        (lambda: Hamming(True), "weights is True: pass a dict"),
        (lambda: Hamming(normalize="no"), "normalize is 'no'"),
        (lambda: CostMatrix("abc"), "something else than costs"),
        (lambda: CostMatrix([[0, 1], [1]]), "rows of unequal lengths"),
        (lambda: CostMatrix(np.full((2, 2), 1e39)), "costs between 0 and 1e9"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()
