"""TreeCRF on several workers is TreeCRF on one: its cuts, its trees, its model."""

import traceback

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from crfx import TreeCRF
from crfx.distributed.collective import together
from crfx.potentials.tree_arrays import NAMES
from crfx.testing import make_task
from crfx.workers import WorkerLost, joined

SAME_OBJECTIVE = 1e-6
"""Sums over rows are taken in another order from the second round on."""
ONE = {"n_jobs": 1, "random_state": 0}

X, Y = make_task(n_instances=120, n_labels=2)  # some 480 rows: columns have more values than bins
X = [np.column_stack([x, np.floor(x[:, :1] * 3)]) for x in X]
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) > 0.5, x, 0)) for x in X]
FRAMES = [
    pd.DataFrame(
        {
            "number": x[:, 0],
            # The last two occur nowhere, some others not with every worker.
            "kind": pd.Categorical(np.clip(x[:, 4] + 5, 0, 12).astype(int), range(15)),
        }
    )
    for x in X
]
PARENTS = [np.array([(t - 1) // 2 if t else -1 for t in range(len(x))]) for x in X]
KINDS = {"dense": X, "sparse": SPARSE, "frames": FRAMES}
SETTINGS = {
    "plain": {},
    "window": {"window": (2, 1)},
    "order": {"order": 2},
    "curvature": {"curvature": "mixing"},
    "rows": {"subsample": 0.5},
    "few columns": {"colsample_bynode": 0.3},
    "many columns": {"colsample_bynode": 0.7},
    "trimming": {"influence_trimming": 0.2},
    "no pseudo-likelihood": {"pseudo_likelihood_rounds": 0},
}


def trees(crf, n_rounds=1):
    """The arrays of the first trees."""
    grown = crf.model_.node.trees.between(0, n_rounds * 2)
    return {name: getattr(grown, name) for name in NAMES}


def fitted_together(n_workers, settings, X, y=Y, **more):
    """The estimator that each of the workers has in the end."""

    def work(workers):
        part = np.array_split(np.arange(len(X)), workers.size)[workers.rank]
        lists = [[values[k] for k in part] for values in (X, y, *more.values())]
        part_arguments = dict(zip(("X", "y", *more), lists, strict=True))
        return TreeCRF(6, **ONE | settings).fit(**part_arguments)

    return together(n_workers, work)


def assert_same(crf, alone, X, **more):
    """The first round is to the bit: there gradients are halves."""
    for name, array in trees(alone).items():
        np.testing.assert_array_equal(trees(crf)[name], array, err_msg=name)
    np.testing.assert_allclose(
        crf.history_["objective"], alone.history_["objective"], rtol=SAME_OBJECTIVE
    )
    for labels, expected in zip(crf.predict(X, **more), alone.predict(X, **more), strict=True):
        assert labels.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("kind", "n_workers"), [("dense", 1), ("dense", 2), ("sparse", 2), ("frames", 3)]
)
def test_training_together_equals_training_alone(kind, n_workers):
    data, settings = KINDS[kind], {"window": 3}
    alone = TreeCRF(6, **ONE | settings).fit(data, Y)
    for crf in fitted_together(n_workers, settings, data):
        assert_same(crf, alone, data)


@pytest.mark.parametrize("name", SETTINGS)
def test_training_together_equals_training_alone_for_all_settings(name):
    alone = TreeCRF(6, **ONE | SETTINGS[name]).fit(X, Y)
    models = fitted_together(3, SETTINGS[name], X)
    for crf in models:
        assert_same(crf, alone, X)
        for name, array in trees(models[0], 6).items():
            np.testing.assert_array_equal(trees(crf, 6)[name], array, err_msg=name)


def test_forests_and_weights():
    weights = np.arange(len(X)) % 3 / 2
    structure = {"parents": PARENTS, "sample_weight": weights}
    alone = TreeCRF(6, **ONE).fit(X, Y, **structure)
    for crf in fitted_together(2, {}, X, **structure):
        assert_same(crf, alone, X, parents=PARENTS)


def test_fit_keeps_objective_if_one_worker_has_no_known_pairs():
    y = [[None if t % 2 else label for t, label in enumerate(labels)] for labels in Y]
    y[-40:] = Y[-40:]
    long = [k for k in range(len(X)) if len(X[k]) > 1]
    data, y = [X[k] for k in long], [y[k] for k in long]
    alone = TreeCRF(6, **ONE).fit(data, y)
    for crf in fitted_together(3, {}, data, y):
        assert_same(crf, alone, data)


def test_messages_per_round_are_small():
    n_leaves, n_labels, n_columns = 8, 2, X[0].shape[1]

    def n_bytes(workers, n_rounds):
        before = workers.n_bytes
        half = slice(workers.rank, None, 2)
        TreeCRF(n_rounds, max_leaves=n_leaves, **ONE).fit(X[half], Y[half])
        return workers.n_bytes - before

    short, long = (together(2, lambda workers, n=n: n_bytes(workers, n)) for n in (1, 2))
    per_round = long[0] - short[0]
    bins = 256 * n_columns
    assert per_round <= 16 * n_labels * (n_leaves - 1) * (bins + 2 * (n_labels + 1)) + 1000
    assert long == [long[0]] * 2


class Leaving:
    """A worker that gives up after so many sums."""

    def __init__(self, workers, n_sums):
        self.workers, self.rank, self.size, self.n_left = workers, workers.rank, 2, n_sums

    def gather(self, value):
        return self.workers.gather(value)

    def sum(self, array):
        self.n_left -= 1
        if self.n_left < 0:
            raise KeyboardInterrupt
        return self.workers.sum(array)


@pytest.mark.parametrize(("n_sums", "place"), [(2, "bind"), (40, "propose")])
def test_core_reports_a_lost_worker(n_sums, place):
    lost = []

    def work(workers):
        try:
            with joined(Leaving(workers, n_sums if workers.rank else 1000)):
                TreeCRF(2, **ONE).fit(X, Y)
        except WorkerLost as error:
            lost.append(error)

    with pytest.raises(KeyboardInterrupt) as left:
        together(2, work)
    assert place in {entry.name for entry in left.traceback}
    assert place in {frame.f_code.co_name for frame, _ in traceback.walk_tb(lost[0].__traceback__)}
