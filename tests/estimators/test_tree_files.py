"""Trees of a model file: decoded once, and without XGBoost, which a saved model does not need."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from crfx import GBCRF, RankingCRF, load
from crfx.potentials import ubjson
from crfx.testing import make_task

X, Y = make_task(0, n_instances=8)
PREDICT = """
import sys
import numpy as np
from crfx import load

X = np.load(sys.argv[2])
crf = load(sys.argv[1])
found = crf.predict(X) if len(sys.argv) < 4 else crf.predict_marginals([X])[0]
assert "xgboost" not in sys.modules, "XGBoost was imported"
np.save(sys.argv[2], found)
"""


def predicted_elsewhere(folder, X, *more):
    """Return what the saved model says of X in a process that must not import XGBoost."""
    np.save(folder / "X.npy", X)
    command = [sys.executable, "-c", PREDICT, folder / "model.crfx", folder / "X.npy", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return np.load(folder / "X.npy")


@pytest.fixture
def decoded(monkeypatch):
    """One entry for every document that is decoded."""
    decode, calls = ubjson.decode, []

    def counted(data):
        calls.append(len(data))
        return decode(data)

    monkeypatch.setattr(ubjson, "decode", counted)
    return calls


@pytest.mark.parametrize(("edges", "n_documents"), [("table", 1), ("trees", 2)])
def test_labelling_trees_are_decoded_once_without_xgboost(edges, n_documents, tmp_path, decoded):
    crf = GBCRF(n_estimators=4, edges=edges, random_state=0).fit(X, Y)
    expected = crf.predict_marginals(X)
    crf.save(tmp_path / "model.crfx")
    decoded.clear()
    again = load(tmp_path / "model.crfx")
    assert again.n_rounds_ == again.model_.n_rounds == 4
    for _ in range(2):
        np.testing.assert_array_equal(*map(np.concatenate, (again.predict_marginals(X), expected)))
    assert len(decoded) == n_documents  # of positions and of edges
    assert predicted_elsewhere(tmp_path, X[0], "marginals").tobytes() == expected[0].tobytes()


def test_ranking_trees_are_decoded_once_without_xgboost(make_queries, tmp_path, decoded):
    X, relevance, group = make_queries()
    crf = RankingCRF(scorer="trees", n_estimators=4, random_state=0).fit(X, relevance, group=group)
    crf.save(tmp_path / "model.crfx")
    expected = crf.predict(X)
    decoded.clear()
    np.testing.assert_array_equal(load(tmp_path / "model.crfx").predict(X), expected)
    assert len(decoded) == 1
    assert predicted_elsewhere(tmp_path, X).tobytes() == expected.tobytes()


def test_decoded_trees_are_released_with_rounds(tmp_path):
    """A copy, a longer and a shorter ensemble score their own rounds, not those of the file."""
    longer = GBCRF(n_estimators=6, random_state=0).fit(X, Y)
    GBCRF(n_estimators=4, random_state=0).fit(X, Y).save(tmp_path / "model.crfx")
    made = {
        4: pickle.loads(pickle.dumps(load(tmp_path / "model.crfx"))),
        6: GBCRF(n_estimators=2, random_state=0).fit(
            X, Y, init_model=load(tmp_path / "model.crfx")
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
