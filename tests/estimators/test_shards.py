"""Shards give what the same instances in memory give."""

import numpy as np
import pytest
from scipy import sparse

import crfx

SAME_PROBABILITY = 1e-6
"""Scores of a chunk are those of the whole; BLAS may sum them in another order."""


def instances(n=60, seed=0):
    """Stacked, some of them empty; one label is not known."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 9, n)
    X = random.normal(size=(lengths.sum(), 5)).astype(np.float32)
    codes = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
    y = np.array(["A", "B", "C"])[codes].astype(object)
    y[3] = None
    return X, y, lengths


def as_sparse(X):
    return sparse.csr_matrix(X * (X > 0.3))


@pytest.fixture(params=["dense", "sparse"])
def kinds(request, tmp_path):
    """(shards, the same in memory)."""
    X, y, lengths = instances()
    X = X if request.param == "dense" else as_sparse(X)
    shards = crfx.write_shards(tmp_path, X, y, lengths=lengths, positions=70)
    assert len(shards) > 3
    return shards, {"X": X, "lengths": lengths}, y


@pytest.mark.parametrize(
    "crf",
    [
        crfx.LinearCRF(max_iter=5, n_jobs=1),
        crfx.LinearCRF(edges="linear", max_iter=5, n_jobs=1),
        crfx.TreeCRF(n_estimators=2, n_jobs=1),
    ],
    ids=["linear", "linear edges", "tree"],
)
@pytest.mark.filterwarnings("ignore:.*iterations")
def test_every_prediction_is_that_of_memory(crf, kinds):
    shards, given, y = kinds
    crf.fit(y=y, **given)
    assert (crf.predict(shards.X) == crf.predict(**given)).all()
    assert (crf.sample(shards.X, 2) == crf.sample(n=2, **given)).all()
    assert crf.score(shards.X, shards.y) == crf.score(y=y, **given)
    for method in ("predict_marginals", "predict_edge_marginals"):
        np.testing.assert_allclose(
            getattr(crf, method)(shards.X), getattr(crf, method)(**given), atol=SAME_PROBABILITY
        )
    np.testing.assert_allclose(
        crf.log_likelihood(shards.X, shards.y),
        crf.log_likelihood(y=y, **given),
        atol=100 * SAME_PROBABILITY,
    )
    for ours, theirs in zip(
        crf.predict_kbest(shards.X, 2), crf.predict_kbest(k=2, **given), strict=True
    ):
        assert [labels.tolist() for labels, _ in ours] == [best.tolist() for best, _ in theirs]
