"""Sentiment of every phrase of a sentence: the Stanford Sentiment Treebank (Socher et al. 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crfx.datasets.files import find_all, open_text

LEFT, RIGHT = 0, 1

_SHA256 = {
    "train.txt": "e2f3f41b0b1e6d4dddc0effe3bfc2d27ed8928079aa9a03d652311614fc5feb7",
    "dev.txt": "0e9336aed6e4730e19f58d00a77b3f0297efdb755f7b5e598c98a05e3f97ea40",
    "test.txt": "6e54806dee95cf80cd918e7dfb3f6770f6df24bf826f289a4d1f709e1c8f6761",
}
_HOW_TO_GET = (
    "It is in trainDevTestTrees_PTB.zip of https://nlp.stanford.edu/sentiment/. Unchanged copies: "
    "dev.txt and test.txt in trees/ of https://github.com/munikarmanish/RNTN (its train.txt holds "
    'dev too: do not use it), train.txt as the "copy" file in trees/ of '
    "https://github.com/iron-fe/rntn_on_Spark."
)


@dataclass(frozen=True, eq=False, slots=True)
class SstSplit:
    """Binary trees, one per sentence; each node comes before its children, the root is node 0.

    `words` has the word of a leaf and None at an inner node; `y` is the sentiment of the phrase
    below each node, 0 (very negative) to 4 (very positive); `parents` is -1 at the root;
    `edge_types` is 0 for left children and for the root, 1 for right children.
    """

    words: list[list[str | None]]
    y: list[NDArray[np.int64]]
    parents: list[NDArray[np.int64]]
    edge_types: list[NDArray[np.int64]]


@dataclass(frozen=True, eq=False, slots=True)
class Sst:
    """The official split."""

    train: SstSplit
    dev: SstSplit
    test: SstSplit
    description: str


def load_sst() -> Sst:
    """Load the Stanford Sentiment Treebank: binary trees with sentiments.

    Returns
    -------
    Sst
        ``train``, ``dev`` and ``test``.

    Raises
    ------
    FileNotFoundError
        If the data set is missing; the error says where to get it.

    Examples
    --------
    >>> data = load_sst()  # doctest: +SKIP
    >>> len(data.train.y)  # doctest: +SKIP
    8544
    """
    train, dev, test = map(_read, find_all("sst", _SHA256, how_to_get=_HOW_TO_GET))
    return Sst(
        train,
        dev,
        test,
        description=(
            "Stanford Sentiment Treebank (Socher et al. 2013): sentences of film reviews, each "
            "phrase with one of 5 sentiments; 8,544 / 1,101 / 2,210 trees, 318,582 / 41,447 / "
            "82,600 nodes; terms not stated"
        ),
    )


def _read(path: Path) -> SstSplit:
    split = SstSplit([], [], [], [])
    with open_text(path) as file:
        for line in file:
            words, labels, parents, sides = parse_tree(line.rstrip("\n"))
            split.words.append(words)
            split.y.append(np.array(labels, dtype=np.int64))
            split.parents.append(np.array(parents, dtype=np.int64))
            split.edge_types.append(np.array(sides, dtype=np.int64))
    return split


def parse_tree(text: str) -> tuple[list[str | None], list[int], list[int], list[int]]:
    """Return word, label, parent and side of each node of a tree in brackets.  O(nodes).

    >>> parse_tree("(3 (2 It) (4 (2 is) (3 good)))")
    ([None, 'It', None, 'is', 'good'], [3, 2, 4, 2, 3], [-1, 0, 0, 2, 2], [0, 0, 1, 0, 1])
    """
    words: list[str | None] = []
    labels, parents, sides = [], [], []
    above = [-1]  # the nodes with an open bracket
    side = LEFT
    # Split at the ASCII space only: some words contain a no-break space.
    for part in text.split(" "):
        if part.startswith("("):
            words.append(None)
            labels.append(int(part[1:]))
            parents.append(above[-1])
            sides.append(side)
            above.append(len(labels) - 1)
            side = LEFT
        else:
            word = part.rstrip(")")
            words[above[-1]] = word
            del above[len(above) - (len(part) - len(word)) :]
            side = RIGHT  # the next node to open is the sibling of one that has closed
    return words, labels, parents, sides
