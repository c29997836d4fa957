"""Labels in evaluation data that no training has seen: told of, never right, never possible."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from crfx import GBCRF, Constraints, HiddenUnitCRF, LinearCRF, TreeCRF
from crfx.metrics import token_accuracy
from crfx.testing import make_task

X, Y = make_task()
STRANGE = [list(labels) for labels in Y]
STRANGE[1][0], STRANGE[1][1], STRANGE[4][0] = "Q", "Q", "R"
N = sum(map(len, Y))
NAMED = r"has labels that the model was not trained on, so often: 'Q' \(2\), 'R' \(1\); "
ESTIMATORS = {
    "GBCRF": GBCRF(3, random_state=0),
    "TreeCRF": TreeCRF(3, random_state=0),
    "LinearCRF": LinearCRF(max_iter=5),
    "HiddenUnitCRF": HiddenUnitCRF(3, trainer="lbfgs", max_iter=5, random_state=0),
}
BOTH = pytest.mark.parametrize("name", ["GBCRF", "LinearCRF"])
"""Scores are moved in training, or parameters."""


def test_score_and_log_likelihood_warn_of_unknown_labels():
    """They are wrong, and instances with them have probability 0."""
    crf = clone(ESTIMATORS["LinearCRF"]).fit(X, Y)
    with pytest.warns(UserWarning, match="y " + NAMED + "they count as wrong"):
        score = crf.score(X, STRANGE)
    predicted = crf.predict(X)
    assert score == token_accuracy(STRANGE, predicted)
    lost = sum(predicted[i][t] == Y[i][t] for i, t in ((1, 0), (1, 1), (4, 0)))
    assert score == pytest.approx(crf.score(X, Y) - lost / N)
    with pytest.warns(UserWarning, match="y " + NAMED + "the log-likelihood of their instances"):
        values = crf.log_likelihood(X, STRANGE)
    finite = np.isfinite(values)
    assert np.flatnonzero(~finite).tolist() == [1, 4]
    assert np.isneginf(values[~finite]).all()
    np.testing.assert_array_equal(values[finite], crf.log_likelihood(X, Y)[finite])
    missing = [[None, *labels[1:]] for labels in Y]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        crf.score(X, missing)
        assert np.isfinite(crf.log_likelihood(X, missing)).all()


@BOTH
def test_eval_metrics_count_unknown_labels_as_wrong(name):
    seen = {}

    def counted_accuracy(true, predicted):
        seen["true"] = [list(labels) for labels in true]
        return token_accuracy(true, predicted)

    for metric in ("token_accuracy", counted_accuracy):
        crf = clone(ESTIMATORS[name]).set_params(eval_metric=metric)
        with pytest.warns(UserWarning, match="eval_set " + NAMED + "eval_metric sees") as warned:
            crf.fit(X, Y, eval_set=(X, STRANGE))
        assert sum("eval_set has labels" in str(warning.message) for warning in warned) == 1
        with pytest.warns(UserWarning, match="they count as wrong"):
            assert crf.history_["eval_metric"][-1] == pytest.approx(crf.score(X, STRANGE))
    assert seen["true"] == STRANGE


@pytest.mark.parametrize("name", ESTIMATORS)
def test_eval_set_loss_sums_over_unknown_labels(name):
    crf = clone(ESTIMATORS[name])
    with pytest.warns(UserWarning, match="eval_set " + NAMED + "the loss sums over them"):
        crf.fit(X, Y, eval_set=(X, STRANGE))
    value = crf.history_["eval_metric"][-1]
    unknown = [[None if label in "QR" else label for label in labels] for labels in STRANGE]
    assert value * N == pytest.approx(-crf.log_likelihood(X, unknown).sum(), rel=1e-4)


def test_span_f1_counts_unknown_types_as_missed():
    tags = [["B-A" if k % 2 else "O" for k in range(len(labels))] for labels in Y]
    other = [[*labels[:-1], "B-NEW"] for labels in tags]
    crf = LinearCRF(max_iter=3, eval_metric="span_f1")
    with pytest.warns(UserWarning, match="'B-NEW' \\(30\\); eval_metric sees them"):
        crf.fit(X, tags, eval_set=(X, other))
    assert crf.history_["eval_metric"][-1] < 1


def test_warnings_name_the_first_of_many_unknown_labels():
    crf = LinearCRF(max_iter=3).fit(X, Y)
    many = [[f"{label}-{t}" for t, label in enumerate(labels)] for labels in Y]
    with pytest.warns(UserWarning, match=r"so often: .*, and \d+ more; they count as wrong"):
        assert crf.score(X, many) == 0


SPANS = [[("B-A", "I-A", "O")[t % 3] for t in range(len(labels))] for labels in Y]


@pytest.mark.filterwarnings("ignore:eval_set has labels:UserWarning")
@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("GBCRF", "loss"),
        ("TreeCRF", "token_accuracy"),
        ("LinearCRF", "loss"),
        ("HiddenUnitCRF", "span_f1"),
    ],
)
def test_unknown_labels_between_known_labels_satisfy_constraints(name, metric):
    """B-A, B-Q, E-A: no known label goes on from the first to the last."""
    plain = [[("B-A", "E-A", "O")[t % 3] for t in range(len(labels))] for labels in Y]
    strange = [list(tags) for tags in plain]
    strange[2][:3] = ["B-A", "B-Q", "E-A"]
    constraints = Constraints(forbidden=[("B-A", "B-A"), ("B-A", "O"), ("E-A", "E-A")])
    crf = clone(ESTIMATORS[name]).set_params(constraints=constraints, eval_metric=metric)
    crf.fit(X, plain, eval_set=(X, strange))
    metric_value = crf.history_["eval_metric"][-1]
    if metric == "loss":
        others = [*range(2), *range(3, len(X))]
        rest = crf.log_likelihood([X[k] for k in others], [plain[k] for k in others])
        assert metric_value * N == pytest.approx(-rest.sum(), rel=1e-4)
        with pytest.raises(ValueError, match="eval_set: constraints forbid what is known beside"):
            crf.fit(X, plain, eval_set=(X[2:3], strange[2:3]))
    else:
        assert 0 < metric_value < 1


@BOTH
def test_eval_set_loss_skips_forbidden_pairs(name):
    constraints = Constraints(forbidden=[("O", "I-A")])
    crf = clone(ESTIMATORS[name]).set_params(constraints=constraints)
    truth = [list(labels) for labels in SPANS]
    truth[1][:2] = ["O", "I-A"]
    for metric in ("token_accuracy", "span_f1", lambda *both: token_accuracy(*both)):
        crf.set_params(eval_metric=metric)
        value = crf.fit(X, SPANS, eval_set=(X, truth)).history_["eval_metric"][-1]
        assert value <= 1
        if metric != "span_f1":
            assert value == pytest.approx(crf.score(X, truth))
    allowed = [None] * len(X)
    allowed[1] = ["O", "I-A"] + [None] * (len(truth[1]) - 2)
    with pytest.raises(ValueError, match="eval_set: instance 1, position 0: constraints leave"):
        crf.fit(X, SPANS, eval_set={"X": X, "y": truth, "allowed": allowed})
    with pytest.raises(ValueError, match="eval_set: instance 1, position 1: constraints forbid"):
        crf.set_params(eval_metric="loss").fit(X, SPANS, eval_set=(X, truth))
