"""Subsets of documents: every level is there, every document may be, seeds decide."""

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.trainers.subsets import Subsets

SHARE = 0.02
"""How far a share of 20,000 draws may lie from its expectation."""


def subsets(lengths, relevance, size=3):
    return Subsets(Batch.from_lengths(lengths), np.array(relevance, float), size)


def draw(chosen, queries, seed=0):
    return chosen.draw(np.array(queries), np.random.default_rng(seed))


def test_queries_of_one_level_cannot_be_learned_from():
    chosen = subsets([1, 3, 2, 2], [1, 0, 1, 0, 2, 2, 0, 1])
    assert chosen.learnable.tolist() == [1, 3]


def test_small_queries_are_drawn_whole():
    chosen = subsets([2, 3], [0, 1, 0, 1, 2])
    drawn = draw(chosen, [1, 0, 1])
    assert drawn.offsets.tolist() == [0, 3, 5, 8]
    assert drawn.query.tolist() == [1, 0, 1]
    assert sorted(drawn.rows[:3]) == [2, 3, 4]
    assert sorted(drawn.rows[3:5]) == [0, 1]


def test_subsets_hold_every_level_and_no_document_twice():
    random = np.random.default_rng(1)
    lengths = random.integers(1, 12, 50)
    relevance = random.integers(3, size=lengths.sum())
    chosen = subsets(lengths, relevance, size=4)
    batch = Batch.from_lengths(lengths)
    for seed in range(20):
        drawn = draw(chosen, chosen.learnable, seed)
        for k, query in enumerate(chosen.learnable):
            rows = drawn.rows[drawn.offsets[k] : drawn.offsets[k + 1]]
            of_query = batch.slice_of(query)
            assert len(rows) == len(set(rows)) == min(4, lengths[query])
            assert rows.min() >= of_query.start
            assert rows.max() < of_query.stop
            assert set(relevance[rows]) == set(relevance[of_query])


def test_how_often_documents_are_drawn():
    """One of a level alone is always there; the others share what is left."""
    chosen = subsets([6], [0, 0, 0, 0, 0, 1], size=3)
    drawn = draw(chosen, np.zeros(20_000, int))
    shares = np.bincount(drawn.rows, minlength=6) / 20_000
    np.testing.assert_allclose(shares, [2 / 5] * 5 + [1.0], atol=SHARE)


def test_seeds_decide():
    chosen = subsets([9, 9], [0, 1, 2] * 6)
    first, again, other = (draw(chosen, [0, 1] * 5, seed).rows for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_some_of_the_subsets():
    chosen = subsets([4, 2, 5], [0, 1, 2, 0, 1, 0, 0, 1, 1, 0, 2])
    drawn = draw(chosen, [0, 1, 2])
    part = drawn.take(np.array([2, 0]))
    assert part.query.tolist() == [2, 0]
    assert part.offsets.tolist() == [0, 3, 6]
    np.testing.assert_array_equal(part.rows, np.concatenate([drawn.rows[5:8], drawn.rows[:3]]))


def test_no_queries_draw_no_documents():
    drawn = draw(subsets([2], [0, 1]), np.zeros(0, int))
    assert drawn.rows.tolist() == []
    assert drawn.offsets.tolist() == [0]


def test_more_levels_than_documents_raise():
    with pytest.raises(ValueError, match="query 1: it has 4 relevance levels, more than subset"):
        subsets([2, 5], [0, 1, 0, 1, 2, 3, 3])
