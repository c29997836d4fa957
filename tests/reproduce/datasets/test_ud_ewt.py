"""UD English EWT: counts as in the release, and trees that are trees."""

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.structures import Forest
from reproduce.datasets import load_ud_ewt

SPLITS = {
    # sentences, words, documents, non-projective sentences
    "train": (12544, 204577, 540, 280),
    "dev": (2001, 25147, 318, 31),
    "test": (2077, 25094, 316, 26),
}


@pytest.fixture(scope="module")
def ud_ewt(load_or_skip):
    return load_or_skip(load_ud_ewt)


def is_projective(parents):
    """Return whether no two edges between words cross (O(words²))."""
    (child,) = np.nonzero(parents != -1)
    low, high = np.minimum(child, parents[child]), np.maximum(child, parents[child])
    return not ((low[:, None] < low) & (low < high[:, None]) & (high[:, None] < high)).any()


def test_counts(ud_ewt):
    for name in SPLITS:
        split = getattr(ud_ewt, name)
        n_sentences, n_words, n_documents, n_non_projective = SPLITS[name]
        lengths = [len(tokens) for tokens in split.tokens]
        assert len(lengths) == len(split.documents) == n_sentences
        assert sum(lengths) == n_words
        for per_word in (split.upos, split.xpos, split.deprel, split.parents):
            assert [len(values) for values in per_word] == lengths
        assert np.unique(split.documents).tolist() == list(range(n_documents))
        assert (np.diff(split.documents) >= 0).all()
        assert sum(not is_projective(parents) for parents in split.parents) == n_non_projective

        # Trees have one root and no cycle.
        for parents, deprel in zip(split.parents, split.deprel, strict=True):
            assert (parents == -1).sum() == 1
            assert deprel[parents == -1].tolist() == ["root"]
        Forest().check(Batch.from_lengths(lengths, parents=np.concatenate(split.parents)))


def test_labels(ud_ewt):
    train = ud_ewt.train
    assert len(set(np.concatenate(train.upos))) == 17
    assert len(set(np.concatenate(train.xpos))) == 49
    relations = set(np.concatenate(train.deprel))
    assert len(relations) == 51
    assert len({relation.split(":")[0] for relation in relations}) == 36
    assert "CC BY-SA 4.0" in ud_ewt.description


def test_the_first_sentence(ud_ewt):
    dev = ud_ewt.dev
    assert dev.tokens[0] == ["From", "the", "AP", "comes", "this", "story", ":"]
    assert dev.upos[0].tolist() == ["ADP", "DET", "PROPN", "VERB", "DET", "NOUN", "PUNCT"]
    assert dev.xpos[0][3] == "VBZ"
    assert dev.deprel[0].tolist() == ["case", "det", "obl", "root", "det", "nsubj", "punct"]
    assert dev.parents[0].tolist() == [2, 2, 3, -1, 5, 3, 3]
    assert dev.parents[0].dtype == np.int64
