"""`importance`: what matters over all, to nodes and to edges, of every kind of model."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, RankingCRF, TreeCRF
from crfx.testing import make_task

KINDS = runpy.run_path(str(Path(__file__).parents[1] / "saved_models" / "kinds.py"))["KINDS"]
ONE = {"n_jobs": 1, "random_state": 0}
SAME = {"rel": 1e-6}


def told_task():
    """Labels that column 1 tells alone; column 2 makes them change."""
    random = np.random.default_rng(0)
    X = [random.normal(size=(8, 3)).astype(np.float32) for _ in range(20)]
    return X, [np.where(own[:, 1] > 0, "b", "a").tolist() for own in X]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_tells_it_greatest_first(name):
    crf = KINDS[name].fitted()
    found = crf.importance()
    assert found.node
    has_edges = not KINDS[name].ranks and crf.model_.edge_family is not None
    assert bool(found.edge) == has_edges
    assert (found.edge_by == "no edges") == (not has_edges)
    for values in (found.node, found.edge):
        assert all(value > 0 for value in values.values())
        assert list(values.values()) == sorted(values.values(), reverse=True)


@pytest.mark.parametrize(
    "crf",
    [
        GBCRF(5, max_depth=2, **ONE),
        GBCRF(5, max_depth=2, edges="trees", **ONE),
        TreeCRF(5, **ONE),
        LinearCRF(**ONE),
        LinearCRF(edges="linear", **ONE),
        HiddenUnitCRF(4, sweeps=5, **ONE),
    ],
    ids=str,
)
def test_the_column_that_tells_the_label_comes_first(crf):
    found = clone(crf).fit(*told_task()).importance()
    assert next(iter(found.node)) == "f1"


def test_gains_are_shares_of_all():
    X, y = make_task(0, n_instances=14)
    crf = GBCRF(3, max_depth=2, edges="trees", **ONE).fit(X, y)
    found = crf.importance()
    gains = crf.feature_importance()
    expected = {name: gain / sum(gains.values()) for name, gain in gains.items()}
    assert found.node == pytest.approx(expected, **SAME)
    assert sum(found.edge.values()) == pytest.approx(1.0, **SAME)
    found = TreeCRF(3, **ONE).fit(X, y).importance()
    assert set(found.edge) == {"label[-1]"}
    assert sum(found.node.values()) + sum(found.edge.values()) == pytest.approx(1.0, **SAME)


def test_weights_are_told_by_how_far_they_part_the_labels():
    kind = KINDS["linear-words"]
    crf = kind.fitted()
    weights = crf.coef_.toarray()
    found = crf.importance()
    expected = dict(zip(crf.feature_names_in_, np.ptp(weights, axis=0), strict=True))
    assert found.node == pytest.approx({k: v for k, v in expected.items() if v}, **SAME)
    table = crf.transitions_
    a, b = np.unravel_index(np.abs(table).argmax(), table.shape)
    assert next(iter(found.edge)) == f"{crf.classes_[a]} -> {crf.classes_[b]}"
    assert next(iter(found.edge.values())) == pytest.approx(abs(float(table[a, b])))


def test_a_ranking_tells_the_sizes_of_its_weights():
    kind = KINDS["ranking-linear"]
    crf = kind.fitted()
    found = crf.importance()
    assert (found.node_by, found.edge) == ("size of its weight", {})
    assert found.node == pytest.approx({f"f{k}": abs(w) for k, w in enumerate(crf.coef_)}, **SAME)
    assert (
        "f0"
        in RankingCRF("trees", n_estimators=2, **ONE)
        .fit(*kind.data(0)[:2], **kind.data(0)[2])
        .importance()
        .node
    )


def test_edges_have_types_and_constants():
    assert any("(type 1)" in name for name in KINDS["gbcrf-typed"].fitted().importance().edge)
    assert "(constant)" in KINDS["linear-edges"].fitted().importance().edge


def test_conjunctions_are_named():
    crf = KINDS["linear-induction"].fitted()
    joined = {" & ".join(map(str, own)) for own in crf.induced_features_}
    assert joined & set(crf.importance().node)


def test_a_regressor_does_not_tell():
    X, y = make_task(0, n_instances=10)
    for edges in ("table", "trees"):
        learner = DecisionTreeRegressor(max_depth=2)
        found = GBCRF(2, base_learner=learner, edges=edges, **ONE).fit(X, y).importance()
        assert not found.node
        assert "`explain` tells it of single predictions" in found.node_by
        assert bool(found.edge) == (edges == "table")
    assert found.edge_by == found.node_by
