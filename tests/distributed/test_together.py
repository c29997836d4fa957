"""Workers that train together, as threads of one process: what they tell each other."""

import numpy as np
import pytest
from parts import fitted_together

from crfx import GBCRF
from crfx.distributed.collective import together
from crfx.features.matrix import Matrix
from crfx.potentials.xgboost_learner import XGBoostLearner
from crfx.testing import make_task
from crfx.workers import ALONE, count, place, sums, total

SAME_OBJECTIVE = 1e-6
"""Sums are taken in another order, and curvatures of tables travel in single precision."""


@pytest.mark.parametrize("n_workers", [1, 3])
def test_workers_gather_and_sum(n_workers):
    def work(workers):
        n = workers.rank + 1
        gathered = workers.gather({"rank": workers.rank, "name": "x" * n})
        summed = sums(
            workers,
            {"a": np.full((2, 2), n, np.float64), "b": np.array([n]), "none": np.zeros(0)},
        )
        return gathered, summed, total(workers, n / 2), count(workers, n), place(workers, n)

    everyone = sum(range(1, n_workers + 1))
    for rank, (gathered, summed, half, number, at) in enumerate(together(n_workers, work)):
        assert gathered == [{"rank": k, "name": "x" * (k + 1)} for k in range(n_workers)]
        assert (summed["a"] == everyone).all()
        assert summed["a"].shape == (2, 2)
        assert summed["b"].tolist() == [everyone]
        assert summed["none"].shape == (0,)
        assert (half, number) == (everyone / 2, everyone)
        assert at == (everyone, sum(range(1, rank + 1)))


def test_one_worker_sends_nothing():
    assert (ALONE.rank, ALONE.size, ALONE.gather("word")) == (0, 1, ["word"])
    assert place(ALONE, 3) == (3, 0)


def test_error_of_one_worker_does_not_block_others():
    def work(workers):
        if workers.rank == 1:
            raise ValueError("instance 7 of this worker is bad")
        workers.sum(np.ones(3))

    with pytest.raises(ValueError, match="instance 7"):
        together(3, work)


@pytest.mark.parametrize(("n_workers", "subsample"), [(2, 0.5), (3, 1.0)])
def test_boosting_together_equals_boosting_alone(n_workers, subsample):
    X, y = make_task(n_instances=60)
    crf = GBCRF(10, subsample=subsample, n_jobs=1, random_state=0)
    alone = GBCRF(**crf.get_params()).fit(X, y)
    models = fitted_together(n_workers, crf, {"X": X, "y": y})
    for model in models:
        np.testing.assert_allclose(
            model.history_["objective"], alone.history_["objective"], rtol=SAME_OBJECTIVE
        )
        assert [labels.tolist() for labels in model.predict(X)] == [
            labels.tolist() for labels in alone.predict(X)
        ]
        assert (model.transitions_ == models[0].transitions_).all()


@pytest.mark.parametrize(("n_workers", "edges"), [(1, "trees"), (2, None), (3, "trees")])
def test_trees_do_not_depend_on_the_number_of_workers(n_workers, edges):
    """Trees are equal to the bit unless a sum of all gradients moves a shared table."""
    X, y = make_task(n_instances=60)  # of more values than there are bins
    settings = {"max_bin": 16, "max_depth": 3, "edges": edges, "start_end": False, "n_jobs": 1}
    alone = GBCRF(4, **settings).fit(X, y)
    models = fitted_together(n_workers, GBCRF(4, **settings), {"X": X, "y": y})
    for model in models:
        for trees, other in zip(model.model_.growing, alone.model_.growing, strict=True):
            assert trees.raw == other.raw


@pytest.mark.parametrize("borders", [(0, 100, 300), (0, 300, 300), (0, 0, 100, 300)])
def test_workers_with_rows_on_disk_or_none_grow_the_same_trees(borders):
    """An edge type may be missing on a worker, and its features may be in memory or on disk."""
    random = np.random.default_rng(0)
    X, gradient = (random.normal(size=(300, n)).astype(np.float32) for n in (4, 3))
    learner = XGBoostLearner({"max_depth": 3}, max_bin=16)

    def grown(rows, part, workers=ALONE):
        matrix = learner.training_matrix(rows, workers)
        return learner.grow(matrix, gradient[part], np.ones_like(gradient[part]), 0).raw()

    def work(them):
        part = slice(*borders[them.rank : them.rank + 2])
        on_disk = Matrix([part.stop - part.start], X[:0], lambda number: X[part])
        return [grown(rows, part, them) for rows in (on_disk, X[part])]

    expected = grown(X, slice(None))
    for trees in together(len(borders) - 1, work):
        assert trees == [expected, expected]
