"""Trees of a file are decoded once: for many small ones that takes longer than all the rest."""

import pickle

import numpy as np
import pytest

from crfx import GBCRF, RankingCRF, load
from crfx.potentials import ubjson
from crfx.testing import make_task

KINDS = {
    "table": (1, {}),
    "trees": (2, {"edges": "trees"}),  # of nodes and of edges
}


@pytest.fixture
def decoded(monkeypatch):
    """One entry for every document that is decoded."""
    decode, calls = ubjson.decode, []

    def counted(data):
        calls.append(len(data))
        return decode(data)

    monkeypatch.setattr(ubjson, "decode", counted)
    return calls


@pytest.mark.parametrize("kind", KINDS)
def test_a_labelling_model(kind, tmp_path, decoded):
    n_documents, arguments = KINDS[kind]
    X, y = make_task(0, n_instances=8)
    crf = GBCRF(n_estimators=4, random_state=0, **arguments).fit(X, y)
    expected = crf.predict_marginals(X)
    crf.save(tmp_path / "model.crfx")
    decoded.clear()
    found = load(tmp_path / "model.crfx")
    assert found.n_rounds_ == found.model_.n_rounds == 4
    for _ in range(2):
        np.testing.assert_array_equal(
            np.concatenate(found.predict_marginals(X)), np.concatenate(expected)
        )
    assert len(decoded) == n_documents


def test_a_ranking_model(make_queries, tmp_path, decoded):
    X, relevance, group = make_queries()
    crf = RankingCRF(scorer="trees", n_estimators=4, random_state=0).fit(X, relevance, group=group)
    crf.save(tmp_path / "model.crfx")
    expected = crf.predict(X)
    decoded.clear()
    found = load(tmp_path / "model.crfx")
    np.testing.assert_array_equal(found.predict(X), expected)
    assert len(decoded) == 1


def test_what_is_decoded_goes_with_its_rounds(tmp_path):
    """A copy, a longer and a shorter ensemble score their own rounds, not those of the file."""
    X, y = make_task(0, n_instances=8)
    longer = GBCRF(n_estimators=6, random_state=0).fit(X, y)
    GBCRF(n_estimators=4, random_state=0).fit(X, y).save(tmp_path / "model.crfx")
    made = {
        4: pickle.loads(pickle.dumps(load(tmp_path / "model.crfx"))),
        6: GBCRF(n_estimators=2, random_state=0).fit(
            X, y, init_model=load(tmp_path / "model.crfx")
        ),
        2: load(tmp_path / "model.crfx"),
    }
    made[2].model_.node.keep(2)
    stacked = np.concatenate(X)
    for n_rounds, crf in made.items():
        node = crf.model_.node
        assert node.n_rounds == n_rounds
        expected = longer.model_.node.scores(stacked, len(stacked), n_rounds)
        np.testing.assert_array_equal(node.scores(stacked, len(stacked)), expected)
