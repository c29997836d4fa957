"""The value of the pseudo-likelihood, by listing labels, and where scores are extreme."""

from dataclasses import replace

import numpy as np
import pytest

from crfx.inference.problem import prepare
from crfx.objectives.curvature import parse
from crfx.objectives.likelihood import Likelihood
from crfx.objectives.pseudo_likelihood import PseudoLikelihood
from crfx.objectives.truth import UNKNOWN
from crfx.testing import enumerate_instances
from tests.objectives.problems import EXACT, STRUCTURES, make_case, parts_of
from tests.pairwise import pairwise


def listed_value(raw, truth):
    """-sum w log p(y_t | the others), from the scores of whole labellings that differ at t."""
    value = 0.0
    for number, instance in enumerate(enumerate_instances(**raw.arguments())):
        labels = truth.labels[truth.batch.slice_of(number)]
        weight = 1.0 if truth.weights is None else truth.weights[number]
        for t in range(len(labels)):
            around = {t}.union(*(part for part in instance.parts if t in part))
            if any(labels[s] == UNKNOWN for s in around):
                continue
            scores = []
            for label in range(instance.n_labels):
                changed = np.where(labels == UNKNOWN, 0, labels)
                changed[t] = label
                scores.append(instance.score_of(changed))
            value -= weight * (scores[labels[t]] - np.logaddexp.reduce(scores))
    return value


@pytest.mark.parametrize(
    ("structure", "unknown", "weighted"),
    pairwise(list(STRUCTURES), [0.0, 0.3, 1.0], [False, True]),
)
def test_value_against_its_definition(structure, unknown, weighted):
    raw, problem, truth = make_case(structure, unknown=unknown, weighted=weighted)
    value = PseudoLikelihood(truth).evaluate(problem, ()).value
    np.testing.assert_allclose(value, listed_value(raw, truth), **EXACT)


def test_a_wrong_label_changes_the_value():
    """The companion of the test above."""
    raw, problem, truth = make_case({"lengths": (4, 3)})
    wrong = replace(truth, labels=(truth.labels + 1) % 3)
    value = PseudoLikelihood(wrong).evaluate(problem, ()).value
    assert abs(value - listed_value(raw, truth)) > 1e-3


def test_without_edges_it_is_the_likelihood():
    _, problem, truth = make_case("ends alone", unknown=0.3, weighted=True)
    parts = parts_of(problem)
    one, other = (kind(truth).evaluate(problem, parts) for kind in (PseudoLikelihood, Likelihood))
    np.testing.assert_allclose(one.value, other.value, **EXACT)
    for name in ("node", "start", "end"):
        np.testing.assert_allclose(one.gradient[name], other.gradient[name], **EXACT)


def assert_finite(evaluation):
    assert np.isfinite(evaluation.value)
    for array in (*evaluation.gradient.values(), *evaluation.curvature.values()):
        assert np.isfinite(array).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_scores_do_not_overflow(dtype):
    """Far apart, and all the truth's: the loss is 0."""
    raw, _, truth = make_case({"lengths": (4, 3)})
    node = np.zeros_like(raw.node)
    node[np.arange(7), truth.labels] = 1e4
    problem = prepare(**raw.with_arrays(node=node.astype(dtype)).arguments())
    evaluation = PseudoLikelihood(truth).evaluate(problem, ["node", "edge"], parse("mixing"))
    assert evaluation.value == 0.0
    assert_finite(evaluation)


def test_scores_around_unknown_labels_do_not_count():
    """Such positions count for nothing, whatever their scores are, -inf included."""
    raw, _, truth = make_case({"lengths": (5, 3)})
    truth.labels[3] = UNKNOWN
    node = raw.node.copy()
    node[3] = [-np.inf, 0.0, 0.0]
    node[0, (truth.labels[0] + 1) % 3] = -np.inf
    problem = prepare(**raw.with_arrays(node=node.copy()).arguments())
    evaluation = PseudoLikelihood(truth).evaluate(problem, parts_of(problem), parse("mixing"))
    assert_finite(evaluation)
    node[2:5] = 7.0
    again = prepare(**raw.with_arrays(node=node).arguments())
    assert PseudoLikelihood(truth).evaluate(again, ()).value == evaluation.value
