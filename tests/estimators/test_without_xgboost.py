"""XGBoost grows trees and explains them; a saved model predicts without it, and starts sooner."""

import subprocess
import sys

import numpy as np

from crfx import GBCRF, RankingCRF

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
    np.save(folder / "X.npy", X)
    command = [sys.executable, "-c", PREDICT, folder / "crf.crfx", folder / "X.npy", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return np.load(folder / "X.npy")


def test_labels(tmp_path):
    random = np.random.default_rng(0)
    X = [random.normal(size=(9, 4)).astype(np.float32) for _ in range(10)]
    y = [(x[:, 0] > 0).astype(int).tolist() for x in X]
    crf = GBCRF(n_estimators=3, edges="trees").fit(X, y)
    crf.save(tmp_path / "crf.crfx")
    found = predicted_elsewhere(tmp_path, X[0], "marginals")
    assert found.tobytes() == crf.predict_marginals(X[:1])[0].tobytes()


def test_ranks(tmp_path, make_queries):
    X, relevance, group = make_queries()
    crf = RankingCRF(scorer="trees", n_estimators=3, random_state=0).fit(X, relevance, group=group)
    crf.save(tmp_path / "crf.crfx")
    assert predicted_elsewhere(tmp_path, X).tobytes() == crf.predict(X).tobytes()
