"""Reasons add up to the odds of two labels, and to the gap of two documents."""

import numpy as np
import pytest

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, RankingCRF, TreeCRF
from crfx.report.page.reasons import TOP, why_before, why_label
from crfx.testing import make_task

CLOSE = 1e-3
ROUNDING = 5e-3
X, Y = make_task(0, n_instances=12)


def log_odds(position, rival):
    return np.log(position.marginal[position.place]) - np.log(position.marginal[rival])


@pytest.mark.parametrize(
    "crf",
    [
        LinearCRF(max_iter=5),
        LinearCRF(max_iter=5, edges="linear"),
        LinearCRF(order=3, max_iter=5),
        GBCRF(3, max_depth=2, random_state=0),
        TreeCRF(2, max_leaves=4, random_state=0),
        HiddenUnitCRF(3, max_iter=5, trainer="lbfgs", random_state=0),
    ],
    ids=["linear", "linear edges", "order 3", "boosted", "context trees", "hidden units"],
)
def test_reasons_add_up_to_the_log_odds(crf):
    crf.set_params(n_jobs=1).fit(X, Y)
    n_over = 0
    for position in crf.explain(X[1]).positions:
        rival = (position.place + 1) % len(crf.classes_)
        why = why_label(position, rival, crf.model_.order)
        assert why.total == pytest.approx(log_odds(position, rival), abs=CLOSE)
        numbers = [reason.number for reason in why.reasons]
        assert sum(numbers) == pytest.approx(why.total, abs=ROUNDING)
        assert max(reason.size for reason in why.reasons) == pytest.approx(100, abs=CLOSE)
        assert why.together == (position.marginal[position.place], position.marginal[rival])
        over = [reason for reason in why.reasons if "reach over" in reason.name]
        assert all(abs(reason.number) >= ROUNDING for reason in over)
        n_over += len(over)
        _check_edge(why.edge, position, rival)
    assert bool(n_over) == (crf.model_.order > 1)


def _check_edge(edge, position, rival):
    """The terms of the edge into the position add up to the difference of its scores."""
    assert (edge is None) == (position.edge is None)
    if edge is not None:
        assert edge.given == position.edge.before
        gap = position.edge.score[position.place] - position.edge.score[rival]
        assert edge.total == pytest.approx(gap, abs=CLOSE)
        assert edge.total == pytest.approx(sum(reason.number for reason in edge.reasons), abs=CLOSE)


def test_reasons_of_many_features_and_of_forbidden_labels():
    words = [[f"f{k}" for k in range(20)]]
    crf = LinearCRF(n_jobs=1).fit([words, [["g"]]], [["A"], ["B"]])
    (position,) = crf.explain(words).positions
    why = why_label(position, 1 - position.place, 1)
    assert sum(reason.is_feature for reason in why.reasons) == TOP
    assert f"{20 - TOP} other features" in [reason.name for reason in why.reasons]
    assert why.total == pytest.approx(log_odds(position, 1 - position.place), abs=CLOSE)
    crf = LinearCRF(constraints="bio", n_jobs=1)
    crf.fit([[["a"], ["b"]], [["c"]]], [["B-X", "I-X"], ["O"]])
    position = crf.explain([["c"]]).positions[0]  # I cannot be first
    assert why_label(position, crf.classes_.tolist().index("I-X"), 1).total == np.inf


@pytest.mark.parametrize("scorer", ["linear", "trees"])
def test_documents_differ_by_their_features(scorer):
    random = np.random.default_rng(0)
    documents = random.normal(size=(24, 4)).astype(np.float32)
    crf = RankingCRF(scorer, n_jobs=1, random_state=0)
    crf.set_params(**({"n_estimators": 3, "min_child_weight": 0.1} if scorer == "trees" else {}))
    crf.fit(documents, (documents[:, 0] > 0).astype(float), group=[6] * 4)
    one, other = crf.explain(documents[:6], positions=[0, 3]).positions
    why = why_before(one, other)
    gap = crf.predict(documents[:6])
    assert why.total == pytest.approx(gap[0] - gap[3], abs=CLOSE)
