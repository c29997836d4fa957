"""Boosted rounds on rows of many kinds, for the tests of their format and of scoring."""

import functools

import numpy as np
import pandas as pd
from scipy import sparse

from crfx.potentials import tree_format, ubjson
from crfx.potentials.xgboost_learner import XGBoostLearner

N_ROWS, N_FEATURES = 300, 6
STEPS = (1.0, 0.3, 0.0, 0.05, 0.7, 1e-3, 0.3, 0.15)
KNOWN = {1: 3, 2: 150, 4: 0}
"""Categories of the columns of `frame`."""


def dense(n_rows=N_ROWS, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, N_FEATURES)).astype(np.float32)
    X[random.random(X.shape) < 0.2] = np.nan
    return X


def rounded():
    """Few values, so that many lie on a threshold; float64, so that they are converted."""
    return np.round(dense().astype(np.float64) * 3) / 10


def csr():
    """Absent entries; zeros and NaN that are there; many columns of which few are asked for."""
    random = np.random.default_rng(0)
    wide = sparse.random(N_ROWS, 500, density=0.05, random_state=1, format="csr", dtype=np.float32)
    wide.data[random.random(wide.nnz) < 0.1] = 0
    wide.data[random.random(wide.nnz) < 0.1] = np.nan
    return wide


def doubled():
    """Entries that are there twice, in bytes: their sum is not one."""
    random = np.random.default_rng(0)
    rows, columns = random.integers(N_ROWS, size=3000), random.integers(N_FEATURES, size=3000)
    data = random.integers(60, 127, size=3000).astype(np.int8)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=N_ROWS))])
    return sparse.csr_matrix((data, columns[np.argsort(rows)], starts), shape=(N_ROWS, N_FEATURES))


def frame():
    """Categories, few (one against the rest) and many (sets), some missing; whole numbers."""
    random = np.random.default_rng(0)
    letters = random.choice(list("uvw"), N_ROWS).astype(object)
    letters[random.random(N_ROWS) < 0.2] = None
    return pd.DataFrame(
        {
            "number": dense()[:, 0],
            "letter": pd.Categorical(letters),
            "digit": pd.Categorical(random.integers(0, 150, N_ROWS), categories=range(150)),
            "whole": random.integers(0, 5, N_ROWS),
            "nothing": pd.Categorical([None] * N_ROWS),
            "flag": pd.array(random.choice([True, False, None], N_ROWS), dtype="boolean"),
        }
    )


DEEP = {"max_leaves": 60, "grow_policy": "lossguide", "max_depth": 0, "min_child_weight": 0}
KINDS = {
    "numbers": (dense, 3, {"max_depth": 4}),
    "one output": (dense, 1, {"max_depth": 4}),
    "many outputs": (dense, 9, {"max_depth": 5}),
    "on thresholds": (rounded, 3, {"max_depth": 6, "min_child_weight": 0}),
    "stumps": (dense, 2, {"max_depth": 1}),
    "pruned": (dense, 2, {"max_depth": 6, "gamma": 2.0}),
    "leaves only": (dense, 2, {"gamma": 1e9}),
    "by leaves": (dense, 2, DEEP),
    "columns sampled": (dense, 2, {"colsample_bynode": 0.3}),
    "rows sampled": (dense, 3, {"subsample": 0.5}),
    "sparse": (csr, 3, {"max_depth": 6, "min_child_weight": 0}),
    "entries twice": (doubled, 3, {"max_depth": 4}),
    "categories": (frame, 3, {"max_depth": 6, "min_child_weight": 0}),
    "one category against the rest": (frame, 3, {"max_depth": 4, "max_cat_to_onehot": 200}),
    "deep sets of categories": (frame, 2, DEEP | {"max_cat_to_onehot": 1}),
}


def n_outputs(kind):
    return KINDS[kind][1]


@functools.cache
def grown(kind):
    """The rows, the learner, and a grown round per step, on gradients of any size."""
    make, n_outputs, params = KINDS[kind]
    X, random = make(), np.random.default_rng(1)
    learner = XGBoostLearner(params, seed=3)
    matrix = learner.training_matrix(X)
    rounds = []
    for number in range(len(STEPS)):
        gradient = random.normal(size=(N_ROWS, n_outputs)).astype(np.float32)
        curvature = random.uniform(0.1, 1, size=gradient.shape).astype(np.float32)
        rounds.append(learner.grow(matrix, gradient, curvature, number))
    return X, learner, rounds


@functools.cache
def joined(kind):
    return tree_format.join([trees.raw() for trees in grown(kind)[2]], STEPS)


def trees_of(raw):
    """The part of a model that holds its trees."""
    return ubjson.decode(raw)["learner"]["gradient_booster"]["model"]
