"""Stanford Sentiment Treebank: counts as published, binary trees, left before right."""

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.datasets import load_sst
from crfx.datasets.sst import parse_tree
from crfx.structures import Forest

SPLITS = {
    # trees, nodes, words, labels of the roots
    "train": (8544, 318582, 163563, [1092, 2218, 1624, 2322, 1288]),
    "dev": (1101, 41447, 21274, [139, 289, 229, 279, 165]),
    "test": (2210, 82600, 42405, [279, 633, 389, 510, 399]),
}


@pytest.fixture(scope="module")
def sst(load_or_skip):
    return load_or_skip(load_sst)


def test_counts(sst):
    for name in SPLITS:
        split = getattr(sst, name)
        n_trees, n_nodes, n_words, roots = SPLITS[name]
        lengths = [len(y) for y in split.y]
        assert len(lengths) == n_trees
        assert sum(lengths) == n_nodes
        for per_node in (split.words, split.parents, split.edge_types):
            assert [len(values) for values in per_node] == lengths
        assert sum(word is not None for words in split.words for word in words) == n_words
        assert np.bincount([y[0] for y in split.y]).tolist() == roots
        assert set(np.concatenate(split.y)) == set(range(5))
        assert "318,582" in sst.description
        # Inner nodes have a left and a right child.
        parents = np.concatenate(split.parents)
        Forest().check(Batch.from_lengths(lengths, parents=parents))
        starts = np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
        children = np.flatnonzero(parents != -1)
        types = np.concatenate(split.edge_types)
        n_children = np.zeros((len(parents), 2), dtype=int)
        np.add.at(n_children, ((starts + parents)[children], types[children]), 1)
        leaf = np.array([word is not None for words in split.words for word in words])
        assert (n_children == np.where(leaf, 0, 1)[:, None]).all()
        assert (parents == -1).sum() == len(lengths)
        assert all(
            parents[0] == -1 and edge_types[0] == 0
            for parents, edge_types in zip(split.parents, split.edge_types, strict=True)
        )


def test_the_first_sentence_and_words_with_a_no_break_space(sst):
    words = [word for word in sst.dev.words[0] if word is not None]
    text = "It 's a lovely film with lovely performances by Buy and Accorsi ."
    assert words == text.split()
    splits = (sst.train, sst.dev, sst.test)
    words = [word for split in splits for tree in split.words for word in tree if word]
    assert sum("\u00a0" in word for word in words) == 3
    assert not any(set(" ()") & set(word) for word in words)


def test_trees_are_read_left_before_right():
    assert parse_tree("(4 Brilliant)") == (["Brilliant"], [4], [-1], [0])
    words, labels, parents, sides = parse_tree("(1 (0 (2 a) (3 b)) (4 c))")
    assert words == [None, None, "a", "b", "c"]
    assert labels == [1, 0, 2, 3, 4]
    assert parents == [-1, 0, 1, 1, 0]
    assert sides == [0, 0, 0, 1, 1]
