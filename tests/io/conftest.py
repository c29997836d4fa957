"""What tests of several formats share."""

import numpy as np
import pytest

VOCABULARY = 40


def _tagged(seed=0, n_sentences=60):
    """Sentences of feature dicts, texts among them, and labels that hang together."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for length in random.integers(1, 12, n_sentences):
        codes = np.cumsum(random.integers(2, size=length)) % 4
        sentence = []
        for code in codes:
            word = f"w{(random.integers(VOCABULARY) + 7 * code) % VOCABULARY}"
            if random.random() < 0.5:
                sentence.append({"word": word, "wert": float(random.normal()), "süß": code > 2})
            else:
                sentence.append({"word": word, "more": ["a", f"b{code}"], "deep": {"x": 0.5}})
        X.append(sentence)
        y.append([["O", "B-ü", "I-ü", "Z"][code] for code in codes])
    return X, y


@pytest.fixture(scope="session")
def make_tagged():
    """A function that makes sentences as CRFsuite takes them."""
    return _tagged
