"""Small lists of documents, in which some features say what is relevant."""

import numpy as np
import pytest

from crfx.io.letor import Rankings


@pytest.fixture
def make_lists():
    """Make queries whose relevance follows the first two of some features, and noise."""

    def make(seed=0, n_queries=60, n_features=4, noise=0.3, longest=9):
        random = np.random.default_rng(seed)
        group = random.integers(2, longest + 1, size=n_queries)
        X = random.uniform(size=(group.sum(), n_features)).astype(np.float32)
        signal = X[:, 0] + 0.5 * X[:, 1] + noise * random.normal(size=len(X))
        relevance = np.digitize(signal, [0.9, 1.2]).astype(np.float64)
        return Rankings(X, relevance, group, np.arange(n_queries))

    return make
