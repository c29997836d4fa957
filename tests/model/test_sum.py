"""Sums of scores whose edges share tables differently, against sums edge by edge."""

import itertools

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.model.sum import add_scores, wider
from crfx.scores import Scores, table_index

SHARINGS = ("none", "shared", "typed", "each")
LENGTHS = (3, 0, 4, 1)
N_LABELS, N_TYPES, N_ROWS = 3, 2, sum(LENGTHS)


def make_batch(edge_types=None):
    if edge_types is None:
        edge_types = np.random.default_rng(9).integers(N_TYPES, size=N_ROWS)
    return Batch.from_lengths(LENGTHS, edge_types=edge_types)


def make_scores(sharing, seed, *, order=1, ends=True, n_types=N_TYPES):
    random = np.random.default_rng(seed)
    front = {"none": None, "shared": (), "typed": (n_types,), "each": (N_ROWS,)}[sharing]
    table = (N_LABELS,) * (order + 1)
    edge = None if front is None else random.normal(size=(*front, *table))
    start, end = random.normal(size=(2, N_LABELS)) if ends else (None, None)
    return Scores(random.normal(size=(N_ROWS, N_LABELS)), edge, start, end)


def by_edge(scores, sharing, batch):
    """(rows, labels, labels): every row's own table."""
    table = (N_LABELS,) * 2
    if scores.edge is None:
        return np.zeros((N_ROWS, *table))
    index = table_index(sharing, np.arange(N_ROWS), batch.edge_types)
    return np.broadcast_to(scores.edge[index] if index else scores.edge, (N_ROWS, *table))


@pytest.mark.parametrize(("a", "b"), list(itertools.product(SHARINGS, SHARINGS)))
def test_every_edge_gets_the_sum(a, b):
    batch, first, second = make_batch(), make_scores(a, 0), make_scores(b, 1)
    total_scores = add_scores(first, a, second, b, batch)
    assert wider(a, b) == max(a, b, key=SHARINGS.index)
    expected = by_edge(first, a, batch) + by_edge(second, b, batch)
    np.testing.assert_array_equal(by_edge(total_scores, wider(a, b), batch), expected)
    for name in ("node", "start", "end"):
        total = getattr(first, name) + getattr(second, name)
        np.testing.assert_array_equal(getattr(total_scores, name), total)
    assert total_scores.sharing(1, typed=wider(a, b) == "typed") == wider(a, b)
    for scores, seed, sharing in ((first, 0, a), (second, 1, b)):  # the summands stay as they are
        np.testing.assert_array_equal(scores.edge, make_scores(sharing, seed).edge)
        np.testing.assert_array_equal(scores.node, make_scores(sharing, seed).node)


def test_tables_of_other_rows_are_seen():
    """The companion: types shifted by one give another sum."""
    batch, other = make_batch(), make_batch(1 - make_batch().edge_types)
    first, second = make_scores("typed", 0), make_scores("each", 1)
    total, expected = (
        by_edge(add_scores(first, "typed", second, "each", which), "each", batch)
        for which in (other, batch)
    )
    assert not np.allclose(total, expected)


@pytest.mark.parametrize("flipped", [False, True])
def test_ends_of_one_of_the_two(flipped):
    """One model has start and end scores, the other not."""
    pair = make_scores("shared", 0), make_scores("shared", 1, ends=False)
    total = add_scores(pair[flipped], "shared", pair[1 - flipped], "shared", make_batch())
    np.testing.assert_array_equal(total.start, pair[0].start)
    np.testing.assert_array_equal(total.end, pair[0].end)


def test_no_edges_and_no_ends():
    total = add_scores(
        make_scores("none", 0, ends=False), "none", make_scores("none", 1, ends=False), "none",
        make_batch(),
    )  # fmt: skip
    assert total.edge is total.start is total.end is None


def test_higher_orders():
    batch = make_batch()
    first, second = make_scores("shared", 0, order=2), make_scores("each", 1, order=2)
    total = add_scores(first, "shared", second, "each", batch)
    np.testing.assert_array_equal(total.edge, first.edge + second.edge)


def test_types_are_ignored_where_no_edge_ends():
    """The first row of an instance may have any type, even one that does not exist."""
    types = make_batch().edge_types.copy()
    types[0], types[3] = -7, 1000
    first, second = make_scores("typed", 0), make_scores("each", 1)
    total = add_scores(first, "typed", second, "each", make_batch(types))
    expected = add_scores(first, "typed", second, "each", make_batch())
    rows = [1, 2, 4, 5, 6]
    np.testing.assert_array_equal(total.edge[rows], expected.edge[rows])


def test_different_numbers_of_types_raise():
    """One table must not be spread over all types only because NumPy would."""
    first = make_scores("typed", 0)
    for n_types in (1, 3):
        second = make_scores("typed", 1, n_types=n_types)
        with pytest.raises(ValueError, match=f"2 types cannot be added to those of {n_types}"):
            add_scores(first, "typed", second, "typed", make_batch())
