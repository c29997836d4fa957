"""CoNLL-2000: sentences, tokens and chunks as published."""

from collections import Counter

import numpy as np
import pytest

from reproduce.datasets import load_conll2000

SPLITS = {
    # sentences, tokens, chunks, and those of the three most frequent types
    "train": (8936, 211727, 106978, {"NP": 55081, "VP": 21467, "PP": 21281}),
    "test": (2012, 47377, 23852, {"NP": 12422, "VP": 4658, "PP": 4811}),
}


@pytest.fixture(scope="module")
def conll2000(load_or_skip):
    return load_or_skip(load_conll2000)


def test_counts(conll2000):
    for name in SPLITS:
        split = getattr(conll2000, name)
        n_sentences, n_tokens, n_chunks, n_frequent = SPLITS[name]
        assert len(split.X) == len(split.y) == n_sentences
        assert sum(map(len, split.X)) == n_tokens
        assert all(len(x) == len(y) for x, y in zip(split.X, split.y, strict=True))
        chunks = Counter(tag[2:] for tag in np.concatenate(split.y) if tag.startswith("B-"))
        assert chunks.total() == n_chunks
        assert {kind: chunks[kind] for kind in n_frequent} == n_frequent


def test_tags_and_parts_of_speech(conll2000):
    tags = set(np.concatenate(conll2000.train.y))
    assert len(tags) == 22
    assert len({tag[2:] for tag in tags if tag != "O"}) == 11
    assert len({token.pos for x in conll2000.train.X for token in x}) == 44
    assert "11 types" in conll2000.description


def test_the_first_tokens(conll2000):
    tokens, tags = conll2000.train.X[0], conll2000.train.y[0]
    assert [tuple(token) for token in tokens[:3]] == [
        ("Confidence", "NN"),
        ("in", "IN"),
        ("the", "DT"),
    ]
    assert tags[:4].tolist() == ["B-NP", "B-PP", "B-NP", "I-NP"]


def test_every_chunk_begins_with_b(conll2000):
    for tags in conll2000.train.y + conll2000.test.y:
        before = np.array(["O", *tags[:-1]])
        inside = np.char.startswith(tags, "I-")
        kinds, kinds_before = np.char.replace(tags, "I-", "B-"), np.char.replace(before, "I-", "B-")
        assert (kinds[inside] == kinds_before[inside]).all()
