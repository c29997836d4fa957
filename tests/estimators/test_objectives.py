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
    SpanF1,
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
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_estimator_lowers_every_objective(kind, objective):
    X, y = task()
    crf = ESTIMATORS[kind](**OBJECTIVES[objective]).fit(X, y)
    values = crf.history_["objective"]
    # The first rounds of TreeCRF are of another objective.
    first = 3 if kind == "treecrf" else 0
    assert values[-1] < values[first]
    assert crf.score(X, y) > 0.6
    again = clone(crf).fit(X, y)
    assert again.history_["objective"] == values


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_another_objective_is_another_model(objective):
    X, y = task()
    plain, other = LinearCRF(l2=0.1).fit(X, y), LinearCRF(l2=0.1, **OBJECTIVES[objective]).fit(X, y)
    assert np.abs(plain.coef_ - other.coef_).max() > 1e-2


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_boosting_never_raises_an_objective(objective):
    """Steps are halved where curvature is borrowed; estimates by lists are compared as they are."""
    X, y = task()
    crf = GBCRF(n_estimators=15, learning_rate=1.0, max_depth=3, random_state=0,
                **OBJECTIVES[objective]).fit(X, y)  # fmt: skip
    values = crf.history_["objective"]
    assert all(b <= a + 1e-3 for a, b in pairwise(values))


@pytest.mark.filterwarnings("ignore:objective .loss_scaled. samples:RuntimeWarning")
def test_history_tells_what_was_sampled():
    X, y = task()
    n_long = sum(len(own) > 6 for own in y)
    for crf in (ESTIMATORS["gbcrf"], ESTIMATORS["linear"], ESTIMATORS["hidden sgd"]):
        history = crf(objective=LossScaled(longest=6, n_samples=30)).fit(X, y).history_
        assert history["sampled_instances"] == [n_long] * len(history["objective"])
        assert all(0 < size <= 32 for size in history["effective_sample_size"])
    assert "sampled_instances" not in ESTIMATORS["linear"]().fit(X, y).history_


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("objective", ["loss_scaled", "weighted", "matrix", "span"])
def test_files_keep_the_objective(kind, objective, tmp_path):
    X, y = task()
    crf = ESTIMATORS[kind](**OBJECTIVES[objective]).fit(X, y)
    crf.save(tmp_path / "model.crfx")
    loaded = load(tmp_path / "model.crfx")
    given = OBJECTIVES[objective]
    assert loaded.objective == given["objective"]
    if isinstance(given.get("task_loss"), CostMatrix):
        np.testing.assert_array_equal(loaded.task_loss.matrix, given["task_loss"].matrix)
    else:
        assert loaded.task_loss == given.get("task_loss")
    for a, b in zip(crf.predict(X), loaded.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_another_objective_goes_on_from_the_weights_alone():
    """Its steps and values are no guide: it would seem to have arrived."""
    X, y = task()
    first = ESTIMATORS["hidden"](objective="expected_loss").fit(X, y)
    on = ESTIMATORS["hidden"](objective="likelihood").fit(X, y, init_model=first)
    assert on.n_iter_ == len(on.history_["objective"]) > 3
    plain = ESTIMATORS["hidden"]().fit(X, y)
    assert on.history_["objective"][-1] < 1.05 * plain.history_["objective"][-1]


class OwnObjective:
    """What a user may write: a name, whether it asks for a loss, and `bind`."""

    name, uses_loss = "own", True

    def bind(self, truth, loss, n_jobs):
        return KL(0.3).bind(truth, loss, n_jobs)


@pytest.mark.parametrize("kind", ["gbcrf", "treecrf", "linear", "hidden"])
def test_an_objective_of_the_users_own(kind, tmp_path):
    X, y = task()
    crf = ESTIMATORS[kind](objective=OwnObjective(), task_loss="hamming").fit(X, y)
    same = ESTIMATORS[kind](objective=KL(0.3)).fit(X, y)
    assert crf.history_["objective"] == same.history_["objective"]
    crf.save(tmp_path / "model.crfx")
    loaded = load(tmp_path / "model.crfx")
    assert (loaded.objective, loaded.task_loss) == ("likelihood", None)


@pytest.mark.parametrize("kind", ["gbcrf", "linear"])
@pytest.mark.parametrize(
    "given",
    [{"objective": 5}, {"objective": "kl2"}, {"objective": {"objective": "kl", "temperature": -1}},
     {"objective": "kl", "task_loss": {"task_loss": "foo"}},
     {"objective": "kl", "task_loss": {"task_loss": "matrix", "matrix": "x", "normalize": False}}],
)  # fmt: skip
def test_files_with_broken_objectives(kind, given, tmp_path, changed):
    X, y = task()
    path = tmp_path / "model.crfx"
    ESTIMATORS[kind]().fit(X, y).save(path)
    changed(path, lambda values: values["arguments"].update(given))
    with pytest.raises(ValueError, match="is not a model file of crfx"):
        load(path)


def test_unknown_labels_of_an_eval_set_are_told_as_such():
    X, y = task()
    other = [list(own) for own in y]
    other[2][1] = None
    with pytest.raises(ValueError, match="eval_set: instance 2, position 1"):
        LinearCRF(objective="kl").fit(X, y, eval_set=(X, other))


@pytest.mark.parametrize("kind", ["gbcrf", "treecrf", "hidden sgd"])
def test_going_on_is_one_longer_run(kind):
    X, y = task()
    given = OBJECTIVES["kl"]
    name = "sweeps" if "hidden" in kind else "n_estimators"
    half = ESTIMATORS[kind](**given).set_params(**{name: 4}).fit(X, y)
    on = ESTIMATORS[kind](**given).set_params(**{name: 4}).fit(X, y, init_model=half)
    whole = ESTIMATORS[kind](**given).set_params(**{name: 8})
    if "hidden" in kind:
        half.burn_in = on.burn_in = whole.burn_in = 0
        half.fit(X, y)
        on.fit(X, y, init_model=half)
    whole.fit(X, y)
    for a, b in zip(on.predict_marginals(X), whole.predict_marginals(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_loss_of_an_eval_set_is_the_objective():
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
    for given in (CostMatrix(shuffled, labels=names), CostMatrix(frame)):
        np.testing.assert_array_equal(given.costs(classes), sorted_costs)
        again = task_loss.from_plain(task_loss.to_plain(given))
        np.testing.assert_array_equal(again.costs(classes), sorted_costs)
    with pytest.raises(ValueError, match="has no label 'C', which y has"):
        CostMatrix(np.zeros((2, 2)), labels=["A", "B"]).costs(classes)
    with pytest.raises(ValueError, match="one label for every row"):
        CostMatrix(np.zeros((2, 2)), labels=["A", "A"]).costs(classes)
    with pytest.raises(ValueError, match="other labels for its rows"):
        CostMatrix(pandas.DataFrame(np.zeros((2, 2)), index=["A", "B"], columns=["B", "A"]))


def test_costs_change_what_is_predicted():
    """Missing a B costs twenty times as much as any other mistake."""
    X, y = task(80)

    def missed(crf):
        found = np.concatenate(crf.fit(X, y).predict(X))
        return int(((np.concatenate(y) == "B-X") & (found != "B-X")).sum())

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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"objective": "hinge"}, "objective is 'hinge': choose one of"),
        ({"objective": KL}, "objective is the class KL: pass one of its kind, KL"),
        ({"objective": Hamming()}, ", a task_loss: choose"),
        ({"objective": "kl", "task_loss": {"O": 5}}, "task_loss is a dict: .* Hamming"),
        ({"task_loss": "hamming"}, "objective 'likelihood' knows no task loss"),
        ({"objective": "kl", "task_loss": "f1"}, "task_loss is 'f1': choose one of"),
        ({"objective": "loss_scaled", "task_loss": "span_f1"}, "a sum over positions"),
        ({"objective": "loss_augmented", "task_loss": SpanF1()}, "a sum over positions"),
        ({"objective": KL(candidates="kbest")}, "leave candidates out"),
        ({"objective": "kl", "task_loss": CostMatrix(np.zeros((2, 2)))}, "must be .3, 3."),
        ({"objective": "kl", "task_loss": CostMatrix(np.ones((3, 3)))}, "right label .* cost 0"),
        ({"objective": "kl", "task_loss": Hamming({"Z": 1.0})}, "'Z', a label that y has not"),
        ({"objective": "kl", "trainer": "perceptron"}, "has a loss of its own"),
        ({"objective": "kl", "feature_induction": 2}, "feature_induction is for the likelihood"),
    ],
)
def test_mistakes(arguments, message):
    X, y = task(5)
    with pytest.raises(ValueError, match=message):
        LinearCRF(**arguments).fit(X, y)


def test_loss_scaled_has_a_curvature_of_its_own():
    X, y = task(5)
    with pytest.raises(ValueError, match=r"curvature is 'mixing', .* has one of its own"):
        GBCRF(objective="loss_scaled", curvature="mixing").fit(X, y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KL(0.0), "temperature is 0.0: it must be above 0"),
        (lambda: KL(float("nan")), "temperature is nan"),
        (lambda: LossAugmented(-1.0), "weight is -1.0"),
        (lambda: LossScaled(longest=-1), "longest is -1"),
        (lambda: LossScaled(n_samples=0), "n_samples is 0"),
        (lambda: ExpectedLoss("all"), "candidates is 'all'"),
        (lambda: KL(None), "temperature is None"),
        (lambda: KL(True), "temperature is True"),
        (lambda: LossAugmented("2"), "weight is '2'"),
        (lambda: LossAugmented(1e39), "weight is 1e.39"),
        (lambda: LossScaled(seed=2**64), "seed is"),
        (lambda: ExpectedLoss(n_candidates=2**33), "n_candidates is"),
        (lambda: Hamming({"O": -1.0}), "weight of 'O' is -1.0"),
        (lambda: Hamming({"O": "x"}), "weight of 'O' is 'x'"),
        (lambda: Hamming([1, 2]), "weights is .1, 2.: pass a dict"),
        (lambda: Hamming(True), "weights is True: pass a dict"),
        (lambda: Hamming(normalize="no"), "normalize is 'no'"),
        (lambda: CostMatrix(-np.ones((3, 3))), "costs between 0 and 1e9"),
        (lambda: CostMatrix("abc"), "something else than costs"),
        (lambda: CostMatrix([[0, 1], [1]]), "rows of unequal lengths"),
        (lambda: CostMatrix(np.full((2, 2), 1e39)), "costs between 0 and 1e9"),
        (lambda: ExpectedLoss(n_candidates=1), "n_candidates is 1"),
    ],
)
def test_mistakes_in_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()
