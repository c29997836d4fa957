"""Gradients of all objectives of labellings, against differences of their values."""

import numpy as np
import pytest

from crfx.objectives.task_loss import CostMatrix, Hamming
from tests.objectives.problems import (
    OBJECTIVES,
    PERCEPTRONS,
    STRUCTURES,
    TRUTHS,
    WHOLE,
    bind,
    differences,
    make_case,
    names_of,
    parts_of,
)
from tests.pairwise import pairwise

DIFFERENCES = {"rtol": 1e-6, "atol": 1e-8}
COSTS = np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0], [1.0, 2.0, 0.0]])


@pytest.mark.parametrize(
    ("name", "structure", "truth", "costs"),
    pairwise([*OBJECTIVES, *PERCEPTRONS], list(STRUCTURES), list(TRUTHS), ["hamming", "matrix"]),
)
def test_gradients_by_differences(name, structure, truth, costs):
    options = {"weighted": True} if name in WHOLE else TRUTHS[truth]
    _, problem, truth = make_case(structure, **options)
    n_labels = problem.scores.n_labels
    loss = Hamming() if costs == "hamming" else CostMatrix(COSTS[:n_labels, :n_labels])
    objective, parts = bind(name, truth, loss), parts_of(problem)
    gradient = objective.evaluate(problem, parts).gradient
    assert sorted(gradient) == sorted(names_of(problem, parts))
    for score_name, slope in gradient.items():
        expected = differences(objective, problem, score_name)
        np.testing.assert_allclose(slope, expected, **DIFFERENCES, err_msg=score_name)
    for part in parts:
        alone = objective.evaluate(problem, [part]).gradient
        assert sorted(alone) == sorted(names_of(problem, [part]))
        for score_name, slope in alone.items():
            np.testing.assert_array_equal(slope, gradient[score_name])
