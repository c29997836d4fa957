"""MQ2008: counts as published, folds as LETOR deals them."""

import numpy as np
import pytest

from crfx.datasets import load_mq2008

DOCUMENTS = [2933, 3635, 3062, 2707, 2874]
QUERIES = [157, 157, 157, 157, 156]
LEVELS = [[2316, 427, 190], [3080, 385, 170], [2424, 411, 227], [2140, 400, 167], [2319, 378, 177]]


@pytest.fixture(scope="module")
def mq2008(load_or_skip):
    return load_or_skip(load_mq2008)


def test_counts(mq2008):
    assert [part.X.shape for part in mq2008.parts] == [(n, 46) for n in DOCUMENTS]
    assert [len(part.group) for part in mq2008.parts] == QUERIES
    assert [np.bincount(part.relevance.astype(int)).tolist() for part in mq2008.parts] == LEVELS
    assert "15,211 documents" in mq2008.description
    first = mq2008.parts[0]
    assert (first.query_ids[0], first.group[0]) == (10002, 8)
    np.testing.assert_array_equal(first.X[0, :5], np.float32([0.007477, 0, 1, 0, 0.007470]))


def test_facts_that_matter_to_its_evaluation(mq2008):
    group = np.concatenate([part.group for part in mq2008.parts])
    assert (group < 10).sum() == 403
    relevance = np.concatenate([part.relevance for part in mq2008.parts])
    queries = np.split(relevance, np.cumsum(group)[:-1])
    assert sum(len(np.unique(levels)) == 1 for levels in queries) == 220


def test_folds(mq2008):
    for k, (train, validation, test) in {
        1: ([0, 1, 2], 3, 4),
        2: ([1, 2, 3], 4, 0),
        3: ([2, 3, 4], 0, 1),
        4: ([3, 4, 0], 1, 2),
        5: ([4, 0, 1], 2, 3),
    }.items():
        fold = mq2008.fold(k)
        assert len(fold.train.X) == sum(DOCUMENTS[part] for part in train)
        ids = [mq2008.parts[part].query_ids for part in train]
        np.testing.assert_array_equal(fold.train.query_ids, np.concatenate(ids))
        assert fold.validation is mq2008.parts[validation]
        assert fold.test is mq2008.parts[test]
    for k in (0, 6):
        with pytest.raises(ValueError, match=f"there is no fold {k}: folds are 1 to 5"):
            mq2008.fold(k)
