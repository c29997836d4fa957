"""Properties of all rankers."""

import numpy as np
import pytest

from crfx.io.letor import Rankings
from crfx.ndcg import ndcg
from reproduce.rankers import Judge
from reproduce.rankers.base import linear, query_of, with_levels


def lists(relevance, group):
    n = len(relevance)
    X = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
    return Rankings(X, np.array(relevance, float), np.array(group), np.arange(len(group)) + 10)


def test_queries_of_one_level_are_left_out():
    part = lists([1, 1, 0, 2, 0, 0, 1], [2, 2, 1, 2])
    kept = with_levels(part)
    assert (kept.group.tolist(), kept.query_ids.tolist()) == ([2, 2], [11, 13])
    assert kept.relevance.tolist() == [0, 2, 0, 1]
    np.testing.assert_array_equal(kept.X, part.X[[2, 3, 5, 6]])
    assert query_of(kept).tolist() == [0, 0, 1, 1]


def test_nothing_to_learn_is_an_error():
    with pytest.raises(ValueError, match="nothing to learn"):
        with_levels(lists([1, 1, 0], [2, 1]))


def test_a_judge_takes_the_mean_over_its_cuts():
    part = lists([0, 1, 2, 0, 0, 1], [4, 2])
    scores = np.array([4.0, 3, 2, 1, 2, 1])
    expected = [
        ndcg(part.relevance, scores, part.group, cut=cut, definition="letor", gain="linear")
        for cut in (1, 2, 3, 4, 5)
    ]
    assert Judge()(part, scores) == pytest.approx(np.mean(expected))
    usual = Judge((2,), "usual", "exponential")(part, scores)
    assert usual == pytest.approx(ndcg(part.relevance, scores, part.group, cut=2))


def test_a_linear_ranker_scores_in_double_precision():
    fitted = linear(np.array([1.0, 1e-12]), rounds=3)
    scores = fitted.scores(np.array([[1, 1], [1, 0]], np.float32))
    assert scores[0] > scores[1]
    assert fitted.rounds == 3
