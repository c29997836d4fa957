"""Functions and tables that get more outputs: the old ones stay, the new ones are 0."""

import numpy as np
import pandas as pd
import pytest

from crfx import GBCRF
from crfx.potentials import tree_format
from crfx.potentials.hidden_unit import HiddenShape, HiddenUnitFunction
from crfx.potentials.transitions import Tables
from crfx.potentials.trees import BoostedTrees
from crfx.testing import make_task

X, Y = make_task()
ROWS = np.concatenate(X)
PLACES = np.array([4, 0, 2])
NEW = [1, 3]


def check_trees(node, rows, n_features, **settings):
    wider = node.with_outputs(PLACES, 5)
    tree_format.check(wider.raw, n_features=n_features, n_outputs=5)
    for n_rounds in (None, 1):
        scores = wider.scores(rows, len(ROWS), n_rounds)
        np.testing.assert_array_equal(
            scores[:, PLACES], node.scores(rows, len(ROWS), n_rounds), **settings
        )
        assert not scores[:, NEW].any()
    assert wider.n_rounds == node.n_rounds == 3


@pytest.mark.parametrize("params", [{}, {"num_parallel_tree": 3}])
def test_trees_keep_their_scores_for_old_outputs(params):
    crf = GBCRF(3, tree_params=params, random_state=0, n_jobs=1).fit(X, Y)
    check_trees(crf.model_.node, ROWS, 4)
    none = BoostedTrees(crf.model_.node.learner, 3)
    assert none.with_outputs(PLACES, 5).scores(ROWS, len(ROWS)).shape == (len(ROWS), 5)


def test_trees_with_categories_keep_their_scores():
    frames = [
        pd.DataFrame({"a": x[:, 0], "c": pd.Categorical(list("uvw" * 9)[: len(x)], list("uvw"))})
        for x in X
    ]
    crf = GBCRF(3, random_state=0, n_jobs=1).fit(frames, Y)
    stacked = crf.columns_.matched(pd.concat(frames, ignore_index=True))
    check_trees(crf.model_.node, stacked, 2)


@pytest.mark.parametrize("by_round", [True, False])
def test_tables_are_changed_in_every_round(by_round, monkeypatch):
    if not by_round:
        monkeypatch.setattr(Tables, "MOST_KEPT", 5)
    random = np.random.default_rng(0)
    tables = Tables({"edge": random.normal(size=(2, 2)), "start": np.zeros(2)}, 0.5)
    for _ in range(3):
        delta = {"edge": random.normal(size=(2, 2)), "start": random.normal(size=2)}
        tables.accept({k: v.astype(np.float32) for k, v in delta.items()}, 0.5)

    def twice(name, table):
        return np.concatenate([table, table], axis=-1)

    changed = tables.changed(twice)
    assert (changed.by_round, changed.l2) == (by_round, 0.5)
    for number in (None, 1) if by_round else (None,):
        for name, table in tables.at_round(number).items():
            after = changed.at_round(number)[name]
            np.testing.assert_allclose(after, twice(name, table), rtol=1e-6)


@pytest.mark.parametrize(("activation", "skip"), [("softplus", False), ("tanh", True)])
def test_hidden_units_keep_their_scores(activation, skip):
    shape = HiddenShape(4, 3, 3, activation, skip)
    node = HiddenUnitFunction.random(shape, 1.0, np.random.default_rng(0))
    wider = node.with_outputs(PLACES, 5)
    scores = wider.scores(ROWS, len(ROWS))
    np.testing.assert_allclose(
        scores[:, PLACES], node.scores(ROWS, len(ROWS)), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(scores[:, 1], scores[:, 3])
    origin = wider.shape.places_in(shape, PLACES)
    assert sorted(origin[origin >= 0]) == list(range(shape.size))
