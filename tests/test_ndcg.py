"""NDCG by hand, by a slow definition, and the quirks of LETOR's evaluation."""

import math

import numpy as np
import pytest

from crfx.ndcg import gain_of, mean_ndcg, ndcg, ndcg_by_query

ROUNDING = 1e-14
CUTS = (1, 2, 3, 4, 5, 10, None)


def slow(relevance, scores, cut, definition, gain):
    """NDCG of one query, word by word."""
    n = len(relevance)
    k = n if cut is None else cut
    worth = [2**r - 1 if gain == "exponential" else r for r in relevance]

    def dcg(order):
        total = 0.0
        for rank, document in enumerate(order[:k], 1):
            if definition == "usual":
                total += worth[document] / math.log2(1 + rank)
            elif rank <= 2:
                total += worth[document]
            else:
                total += worth[document] * math.log(2) / math.log(rank)
        return total

    best = dcg(sorted(range(n), key=lambda d: -relevance[d]))
    if best == 0:
        return math.nan if definition == "usual" else 0.0
    if definition == "letor" and cut is not None and n < cut:
        return 0.0
    return dcg(sorted(range(n), key=lambda d: -scores[d])) / best


@pytest.mark.parametrize("definition", ["usual", "letor"])
@pytest.mark.parametrize("gain", ["exponential", "linear"])
def test_agrees_with_the_slow_definition(definition, gain):
    random = np.random.default_rng(0)
    group = random.integers(1, 14, size=60)
    relevance = random.choice([0, 0, 0, 1, 2], size=group.sum())
    scores = random.integers(0, 6, size=group.sum()) / 4  # with ties
    result = ndcg_by_query(relevance, scores, group, cuts=CUTS, definition=definition, gain=gain)
    parts = zip(*(np.split(a, np.cumsum(group)[:-1]) for a in (relevance, scores)), strict=True)
    expected = [[slow(r, s, cut, definition, gain) for cut in CUTS] for r, s in parts]
    np.testing.assert_allclose(result, expected, rtol=0, atol=ROUNDING)
    assert np.isnan(result).any() == (definition == "usual")
    for column, cut in enumerate(CUTS):
        mean = ndcg(relevance, scores, group, cut=cut, definition=definition, gain=gain)
        assert mean == pytest.approx(np.nanmean(np.array(expected)[:, column]), abs=ROUNDING)


# One query by hand: the order is 1, 0, 2, the best one 2, 1, 0.
RELEVANCE, SCORES = [0, 2, 1], [0.5, 0.1, 0.9]
LOG3 = math.log2(3)


def test_by_hand():
    for definition, gain, expected in (
        ("usual", "exponential", [1 / 3, 1 / (3 + 1 / LOG3), (1 + 3 / 2) / (3 + 1 / LOG3)]),
        ("usual", "linear", [1 / 2, 1 / (2 + 1 / LOG3), (1 + 2 / 2) / (2 + 1 / LOG3)]),
        ("letor", "exponential", [1 / 3, 1 / 4, (1 + 3 / LOG3) / 4]),
        ("letor", "linear", [1 / 2, 1 / 3, (1 + 2 / LOG3) / 3]),
    ):
        kind = {"definition": definition, "gain": gain}
        (result,) = ndcg_by_query(RELEVANCE, SCORES, [3], cuts=(1, 2, 3), **kind)
        np.testing.assert_allclose(result, expected, rtol=0, atol=ROUNDING)
    # Levels need not be whole.
    assert gain_of(np.array([0.5]), "exponential")[0] == pytest.approx(math.sqrt(2) - 1)


def test_letor_definition_differs_from_usual_definition():
    relevance, scores, group = [1, 0, 0, 0, 1], [2, 1, 5, 4, 3], [2, 2, 1]
    assert ndcg(relevance, scores, group, cut=2) == 1.0  # of two queries
    assert ndcg(relevance, scores, group, cut=2, definition="letor") == pytest.approx(1 / 3)
    # Without a cut no list is too short.
    assert ndcg(relevance, scores, group, definition="letor") == pytest.approx(2 / 3)
    # Equal scores keep their order, infinite ones have a rank.
    assert ndcg([1, 0, 0], [3, 3, 3], [3], cut=1) == 1.0
    assert ndcg([0, 0, 1], [3, 3, 3], [3], cut=1) == 0.0
    assert ndcg([1, 0, 0], [np.inf, -np.inf, 1e300], [3], cut=1) == 1.0


def test_ndcg_rejects_what_cannot_be():
    for change, message in (
        ({"relevance": [1, -1, 0]}, r"relevance\[1\] is -1.0: it must be finite and 0 or more"),
        ({"relevance": [1, np.nan, 0]}, r"relevance\[1\] is nan"),
        ({"relevance": [1, 2]}, r"relevance has shape \(2,\), scores \(3,\)"),
        ({"relevance": [2000, 1, 0]}, "relevance is 2000: too much"),
        ({"scores": [1, 2, np.nan]}, r"scores\[2\] is NaN"),
        ({"group": [2, 2]}, "group adds up to 4, but there are 3 documents"),
        ({"group": [3, 0]}, r"group\[1\] is 0: a query has one document or more"),
        ({"group": [1.5, 1.5]}, "group must list whole numbers"),
        ({"cut": 0}, "cut is 0: it must be 1 or more"),
        ({"definition": "trec"}, "definition is 'trec'"),
        ({"gain": "cubic"}, "gain is 'cubic'"),
        ({"relevance": [0, 0, 0]}, "no query has a relevant document"),
    ):
        arguments = {"relevance": [1, 0, 2], "scores": [1, 2, 3], "group": [3]} | change
        with pytest.raises(ValueError, match=message):
            ndcg(**arguments)
    nothing = ndcg_by_query([], [], [], cuts=(1, 2))
    assert nothing.shape == (0, 2)
    with pytest.raises(ValueError, match="no query has a relevant document"):
        mean_ndcg(nothing)
