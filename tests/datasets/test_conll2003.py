"""CoNLL-2003: sentences, tokens, documents and entities as published."""

from collections import Counter

import numpy as np
import pytest

from crfx.datasets import load_conll2003

SPLITS = {
    # sentences, tokens, documents, entities
    "train": (14041, 203621, 946, {"LOC": 7140, "MISC": 3438, "ORG": 6321, "PER": 6600}),
    "testa": (3250, 51362, 216, {"LOC": 1837, "MISC": 922, "ORG": 1341, "PER": 1842}),
    "testb": (3453, 46435, 231, {"LOC": 1668, "MISC": 702, "ORG": 1661, "PER": 1617}),
}


@pytest.fixture(scope="module")
def conll2003(load_or_skip):
    return load_or_skip(load_conll2003)


def entities(tags):
    """IOB1: an entity starts at B-, and at I-X where the tag before is not of type X."""
    before = "O"
    for tag in tags:
        if tag[0] == "B" or (tag[0] == "I" and tag[2:] != before[2:]):
            yield tag[2:]
        before = tag


def test_counts(conll2003):
    for name in SPLITS:
        split = getattr(conll2003, name)
        n_sentences, n_tokens, n_documents, n_entities = SPLITS[name]
        assert len(split.X) == len(split.y) == len(split.documents) == n_sentences
        assert sum(map(len, split.X)) == n_tokens
        assert all(len(x) == len(y) for x, y in zip(split.X, split.y, strict=True))
        assert Counter(kind for tags in split.y for kind in entities(tags)) == n_entities
        # Documents are numbered as they come; one that had only its mark would leave a gap.
        assert set(split.documents) <= set(range(n_documents))
        assert split.documents[-1] == n_documents - 1
        assert (np.diff(split.documents) >= 0).all()


def test_the_first_sentence(conll2003):
    tokens, tags = conll2003.train.X[0], conll2003.train.y[0]
    words = " ".join(token.word for token in tokens)
    assert words == "EU rejects German call to boycott British lamb ."
    assert (tokens[1].pos, tokens[1].chunk) == ("VBZ", "I-VP")
    assert tags.tolist() == ["I-ORG", "O", "I-MISC", "O", "O", "O", "I-MISC", "O", "O"]


def test_document_marks_are_left_out_and_tags_are_iob1(conll2003):
    words = {token.word for x in conll2003.train.X for token in x}
    assert "-DOCSTART-" not in words
    assert "BRUSSELS" in words
    types = ("LOC", "MISC", "ORG", "PER")
    tags = set(np.concatenate(conll2003.train.y))
    assert {"O", *(f"I-{kind}" for kind in types)} <= tags
    assert tags <= {"O", *(f"{mark}-{kind}" for kind in types for mark in "BI")}
    assert "research use only" in conll2003.description
