"""Wall Street Journal sentences with parts of speech and dependency trees: a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crfx.datasets.files import find, read_blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHA256 = "5802c6438eae84512ee752d533dd10efa478d255e2a7b715287c9b1af29fd622"
_HOW_TO_GET = (
    "Its 199 files wsj_*.dp are in packages/corpora/dependency_treebank.zip of "
    "https://github.com/nltk/nltk_data (branch gh-pages): join them in name order, with a line "
    "'# wsj_NNNN' before each."
)


@dataclass(frozen=True, eq=False, slots=True)
class TreebankSample:
    """Per sentence the words, their Penn tags, and the tree; the number of its file, 1 to 199.

    `parents` counts within the sentence and is -1 at the root; each sentence has one root.
    """

    X: list[list[str]]
    y: list[NDArray[np.str_]]
    parents: list[NDArray[np.int64]]
    files: NDArray[np.int64]
    description: str


def load_treebank_sample() -> TreebankSample:
    """Load the sentences, in the order of the files."""
    X, y, parents, files, number = [], [], [], [], 0
    path = find("treebank-sample", "wsj_sample.dp", _SHA256, how_to_get=_HOW_TO_GET)
    for block in read_blocks(path):
        for line in block:
            if line.startswith("# wsj_"):
                number = int(line.removeprefix("# wsj_"))
        rows = [line.split("\t") for line in block if not line.startswith("# ")]
        if not rows:
            continue
        words, tags, heads = zip(*rows, strict=True)
        X.append(list(words))
        y.append(np.array(tags))
        # Heads count from 1 and are 0 at the root.
        parents.append(np.array(heads, dtype=np.int64) - 1)
        files.append(number)
    return TreebankSample(
        X,
        y,
        parents,
        np.array(files, dtype=np.int64),
        description=(
            "Penn Treebank sample, files 1 to 199 of the Wall Street Journal (Marcus, Santorini "
            "and Marcinkiewicz 1993): 3,914 sentences, 94,084 words, 45 tags; (c) LDC 1995, for "
            "non-commercial use"
        ),
    )
