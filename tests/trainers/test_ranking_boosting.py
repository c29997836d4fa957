"""Boosting of ranking scores: what trees are asked to fit, and steps that are halved."""

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.objectives.ranking import OBJECTIVES
from crfx.potentials.base import Addition
from crfx.trainers.ranking_boosting import MOST_HALVINGS, RankingBoosting
from tests.trainers.ranking_tasks import make_ranking_task

EXACT = {"rtol": 1e-5, "atol": 1e-6}
"""Trees take float32."""


class Fixed:
    """Proposes the same change in every round, and keeps what it was asked and what was taken."""

    def __init__(self, n_followed=0):
        self.change, self.asked, self.steps = None, [], []
        self.n_followed = n_followed

    def propose(self, gradient, curvature, number):
        self.asked.append((gradient[:, 0], curvature[:, 0]))
        newton = -gradient / np.maximum(curvature, 1e-9) * (curvature > 0)
        change = newton if self.change is None else self.change[:, None]
        change = change.astype(np.float32)
        return Addition(change, [change] * self.n_followed, self.steps.append)


LENGTHS = [6, 3, 9]


def boosting(function, objective="kl", size=3, weights=None, **options):
    task, random = make_ranking_task(LENGTHS, objective, size=size, weights=weights)
    scores = random.normal(size=sum(LENGTHS)).astype(np.float32)
    return RankingBoosting(task, function, scores, 1.0, seed=0, n_rounds=0, **options)


def run(trainer, n_rounds):
    """Run up to ``n_rounds`` rounds, those already run included; return the new records."""
    trainer.first_round, trainer.n_rounds = trainer.n_rounds, n_rounds
    return list(trainer.rounds())


def test_trees_fit_sums_over_subsets():
    function = Fixed()
    weights = np.array([1.0, 2.0, 0.5])
    trainer = boosting(function, weights=weights)
    task, scores = trainer.task, trainer.scores.copy()
    run(trainer, 1)
    drawn = task.draw((0, 0))
    gradient, curvature = np.zeros((2, len(scores)))
    for k, query in enumerate(drawn.query):
        rows = drawn.rows[drawn.offsets[k] : drawn.offsets[k + 1]]
        evaluation = task.objective.evaluate(
            scores[rows], task.gains[rows], [0, len(rows)], curvature=True
        )
        gradient[rows] += weights[query] * evaluation.gradient / 2
        curvature[rows] += weights[query] * evaluation.curvature / 2
    np.testing.assert_allclose(function.asked[0][0], gradient, **EXACT)
    np.testing.assert_allclose(function.asked[0][1], curvature, **EXACT)
    left_out = np.setdiff1d(np.arange(len(scores)), drawn.rows)
    assert left_out.size
    assert not function.asked[0][1][left_out].any()


@pytest.mark.parametrize("objective", [name for name in OBJECTIVES if name != "expected_loss"])
def test_full_newton_steps_never_rise(objective):
    """The curvature is a bound: every document may take its own step at once."""
    function = Fixed()
    trainer = boosting(function, objective, size=9)
    records = run(trainer, 10)
    assert not any(record["halvings"] for record in records)
    assert np.diff([record["objective"] for record in records]).max() < 1e-6
    assert function.steps == [1.0] * 10


def test_a_step_that_rises_is_halved():
    function = Fixed()
    trainer = boosting(function, size=9)
    before = run(trainer, 1)[0]["objective"]
    function.change = 300 * (trainer.task.gains > 1.5) + 200 * (trainer.task.gains < 0.5)
    (record,) = run(trainer, 2)
    assert record["halvings"] > 0
    assert function.steps[1] == 0.5 ** record["halvings"]
    assert record["objective"] <= before


def test_a_step_in_a_wrong_direction_is_given_up():
    function = Fixed()
    trainer = boosting(function, size=9)
    run(trainer, 3)
    scores = trainer.scores.copy()
    function.change = np.sign(function.asked[-1][0]) * 1e3
    (record,) = run(trainer, 4)
    assert function.steps[-1] == 0.0
    assert record["halvings"] == MOST_HALVINGS
    np.testing.assert_array_equal(trainer.scores, scores)


def test_followed_scores_get_the_same_rounds():
    function = Fixed(n_followed=1)
    followed = np.zeros(18, np.float32)
    trainer = boosting(function, followed=[followed])
    start = trainer.scores.copy()
    assert len(run(trainer, 3)) == 3
    np.testing.assert_allclose(followed, trainer.scores - start, **EXACT)


def test_subsample_takes_a_share_of_the_queries():
    function = Fixed()
    trainer = boosting(function, subsample=0.4)
    run(trainer, 20)
    batch = Batch.from_lengths(LENGTHS)
    touched = [set(batch.instance_of_row[curvature > 0]) for _, curvature in function.asked]
    assert all(len(queries) == 1 for queries in touched)
    assert set.union(*touched) == {0, 1, 2}
